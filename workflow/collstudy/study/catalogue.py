"""The catalogue: the algorithms of each collective, and the process mappings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


def names_of(settings: dict[str, Any]) -> list[str]:
    """Return the library's names of an algorithm: several if releases call it differently."""
    names = settings.get("algorithm", [])
    return names if isinstance(names, list) else [names]


def own_settings(entry: dict[str, Any]) -> dict[str, Any] | None:
    """Return the settings of an algorithm in this project's collectives library, those for simulations first; None if it lacks it."""
    return entry.get("simulated", entry.get("library"))


@dataclass(frozen=True)
class Catalogue:
    """Algorithms by collective, and process mappings, as in config/algorithms.yaml and config/mappings.yaml."""

    algorithms: dict[str, dict[str, dict[str, Any]]]
    mappings: dict[str, dict[str, Any]]

    def pattern(self, collective: str, algorithm: str, mpi: str) -> str | None:
        """Return the name of the message pattern of an algorithm in the MPI library *mpi*; None if it is not known."""
        known = self.algorithms[collective][algorithm].get("pattern", {})
        return ({"openmpi": known} if isinstance(known, str) else known).get(mpi)

    def settings(self, collective: str, algorithm: str, parameters: dict[str, int], mpi: str) -> dict[str, Any] | None:
        """Return the settings that select an algorithm in the MPI library *mpi*; None if it does not support these parameters."""
        entry = self.algorithms[collective].get(algorithm, {}).get(mpi)
        # Open MPI's algorithms use or ignore parameters; for other libraries the catalogue lists the parameters of each algorithm.
        if entry is None or not (mpi == "openmpi" or set(parameters) <= set(entry)):
            return None
        return {**entry, **parameters}
