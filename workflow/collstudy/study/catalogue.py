"""The catalogue: the algorithms of each collective, and the mappings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Catalogue:
    """Algorithms by collective, and mappings, as in their files."""

    algorithms: dict[str, dict[str, dict[str, Any]]]
    mappings: dict[str, dict[str, Any]]

    def pattern(self, collective: str, algorithm: str, mpi: str) -> str | None:
        """The message pattern of an algorithm of the MPI library *mpi*; None if it is not known."""
        known = self.algorithms[collective][algorithm].get("pattern", {})
        return ({"openmpi": known} if isinstance(known, str) else known).get(mpi)

    def settings(self, collective: str, algorithm: str, parameters: dict[str, int], mpi: str) -> dict[str, Any] | None:
        """The settings of the MPI library *mpi* for an algorithm with these parameters; None if it does not support them."""
        entry = self.algorithms[collective].get(algorithm, {}).get(mpi)
        # Open MPI's algorithms accept or ignore segments; for other libraries the catalogue lists the parameters of each.
        if entry is None or not (mpi == "openmpi" or set(parameters) <= set(entry)):
            return None
        return {**entry, **parameters}
