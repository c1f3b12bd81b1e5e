"""Deferred import of large libraries that few commands need (pandas: half a second per job)."""

from __future__ import annotations

import importlib.util
import sys
import threading
from types import ModuleType
from typing import Any

#: Names that a module may lack: access to them does not load it.
_NO_REASON = {"__warningregistry__", "__wrapped__", "__path__", "__file__", "__bases__"}
_LOADING = threading.RLock()
_MARK = "_collstudy_is_loading"


class _Lazy(ModuleType):
    """A module that is loaded when something of it is used first.

    Unlike importlib's LazyLoader it is not loaded by another module that imports it: Snakemake's Slurm plugin, which is
    imported with Snakemake wherever that runs, imports pandas for a report that is seldom asked for.
    """

    def __getattr__(self, name: str) -> Any:
        """Load the module at the first name that it does not have yet."""
        if name in _NO_REASON:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        with _LOADING:  # another thread waits; names that the module uses during its own import may not exist yet
            if type(self) is _Lazy:
                if vars(self).get(_MARK):
                    raise AttributeError(f"module {self.__name__!r} has no attribute {name!r} yet")
                vars(self)[_MARK] = True
                try:
                    self.__spec__.loader.exec_module(self)
                finally:
                    del vars(self)[_MARK]
                self.__class__ = ModuleType
        return getattr(self, name)


def lazy(name: str) -> ModuleType:
    """The module *name*, which is loaded when something of it is used first."""
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    module = _Lazy(name)
    for key, value in vars(importlib.util.module_from_spec(spec)).items():
        setattr(module, key, value)
    sys.modules[name] = module
    return module
