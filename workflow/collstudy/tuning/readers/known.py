"""What the readers of tuning files know: format names, the catalogue, and the version of Open MPI whose numbers apply."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from collstudy.study.catalogue import Catalogue
from collstudy.study.openmpi_numbers import entry_of, numbers_of

#: Formats that can be read, by their names in `./study convert`.
FORMATS = {
    "openmpi": "rules of Open MPI's coll/tuned, version 1",
    "openmpi-2": "rules of Open MPI's coll/tuned, version 2",
    "openmpi-json": "JSON rules of Open MPI 6.0",
    "openmpi-han": "rules of Open MPI's coll/han",
    "mpich": "selection tree of MPICH",
    "mpich-5.1": "named subtrees of MPICH 5.1",
    "intel": "I_MPI_ADJUST variables of Intel MPI",
    "ucc": "UCC_TL_UCP_TUNE of UCC",
    "nccl": "CSV of NCCL's example tuner",
    "coll": "COLL_RULES of this project's collectives library",
}
#: Formats that `./study convert` writes; only a study writes that of the collectives library.
WRITTEN = tuple(name for name in FORMATS if name != "coll")


@dataclass(frozen=True)
class Known:
    """What a file is read with: the catalogue, and the version of Open MPI whose numbers and rules apply."""

    catalogue: Catalogue
    version: str

    @functools.cached_property
    def numbers(self) -> dict[str, dict[str, int]]:
        """Return the numbers of Open MPI's algorithms."""
        return numbers_of(self.version)

    @property
    def ignored(self) -> str:
        """Return what Open MPI does with a classic file that it cannot read."""
        return f"Open MPI {self.version} ignores the whole file"

    @property
    def release(self) -> tuple[int, ...]:
        """Return the version as numbers."""
        return tuple(int(word) for word in re.findall(r"\d+", self.version)[:3])

    def named(self, collective: str, word: str) -> str | None:
        """Return the catalogue's name of the algorithm that Open MPI calls *word*."""
        return entry_of(self.catalogue, collective, word)
