"""Open MPI's MCA parameters, as arguments of mpirun."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

#: Components allowed with a forced algorithm or a rules file: tuned follows them; basic and libnbc provide what tuned lacks.
COMPONENTS = "tuned,basic,libnbc,self"
#: The same and the monitoring component, which counts messages.
MONITORED = f"{COMPONENTS},monitoring"


def arguments_of(parameters: Mapping[str, Any]) -> list[str]:
    """Return the arguments of mpirun that set *parameters*."""
    return [part for name, value in parameters.items() for part in ("--mca", name, str(value))]


def parameters_of(arguments: Sequence[str]) -> dict[str, str]:
    """Return the parameters that *arguments*, all made by `arguments_of`, set."""
    return dict(zip(arguments[1::3], arguments[2::3], strict=True))
