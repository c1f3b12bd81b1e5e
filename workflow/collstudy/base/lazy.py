"""Import large libraries only when they are used (importing pandas takes half a second per job)."""

from __future__ import annotations

import importlib.util
import sys
import threading
from types import ModuleType
from typing import Any

#: Optional module attributes: a lookup of one that is missing does not load the module.
_NO_REASON = {"__warningregistry__", "__wrapped__", "__path__", "__file__", "__bases__"}
_LOADING = threading.RLock()
_MARK = "_collstudy_is_loading"


class _Lazy(ModuleType):
    """A module that is loaded on the first access to one of its attributes.

    An import by another module does not load it, unlike with importlib's LazyLoader: Snakemake always imports its Slurm
    plugin, and the plugin imports pandas for a report that is rarely requested.
    """

    def __getattr__(self, name: str) -> Any:
        """Load the module on the first access to an attribute that it does not have yet."""
        if name in _NO_REASON:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        with _LOADING:  # other threads wait; during its own import the module may look up names that do not exist yet
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
    """Return the module *name*, to be loaded on the first access to one of its attributes."""
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
