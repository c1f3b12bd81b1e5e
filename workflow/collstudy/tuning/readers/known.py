"""What a tuning file is read with: the names of the formats, the catalogue, and the Open MPI whose numbers apply."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from collstudy.study.catalogue import Catalogue
from collstudy.study.openmpi_numbers import entry_of, numbers_of

#: What can be read, by its name in `./study convert`.
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
}


@dataclass(frozen=True)
class Known:
    """What a file is read with: the catalogue, and the Open MPI whose numbers and rules apply."""

    catalogue: Catalogue
    version: str

    @functools.cached_property
    def numbers(self) -> dict[str, dict[str, int]]:
        """Numbers of Open MPI's algorithms."""
        return numbers_of(self.version)

    @property
    def release(self) -> tuple[int, ...]:
        """The version as numbers."""
        return tuple(int(word) for word in re.findall(r"\d+", self.version)[:3])

    def named(self, collective: str, word: str) -> str | None:
        """The catalogue's name of an algorithm that Open MPI calls *word*."""
        return entry_of(self.catalogue, collective, word)
