"""Algorithm numbers of Open MPI's coll/tuned by collective, for Open MPI 4.1 to 6.0.

Taken from `ompi/mca/coll/tuned/coll_tuned_<collective>_decision.c` of v4.1.6, v5.0.7 and the branch v6.0.x (August 2026), for
data and machines without an installed Open MPI (`ompi_info --param coll tuned --level 9`). Names are Open MPI's own; the
catalogue's entries refer to them.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from collstudy.base.errors import StudyError, allowed
from collstudy.study.catalogue import Catalogue, names_of

#: Open MPI 5.0: algorithms in the order of their numbers, which start at 1.
_NAMES = {
    "allgather": "linear bruck recursive_doubling ring neighbor two_proc sparbit",
    "allgatherv": "default bruck ring neighbor two_proc sparbit",
    "allreduce": "basic_linear nonoverlapping recursive_doubling ring segmented_ring rabenseifner",
    "alltoall": "linear pairwise modified_bruck linear_sync two_proc",
    "alltoallv": "basic_linear pairwise",
    "barrier": "linear double_ring recursive_doubling bruck two_proc tree",
    "bcast": "basic_linear chain pipeline split_binary_tree binary_tree binomial knomial scatter_allgather scatter_allgather_ring",
    "exscan": "linear recursive_doubling",
    "gather": "basic_linear binomial linear_sync",
    "reduce": "linear chain pipeline binary binomial in-order_binary rabenseifner",
    "reduce_scatter": "non-overlapping recursive_halving ring butterfly",
    "reduce_scatter_block": "basic_linear recursive_doubling recursive_halving butterfly",
    "scan": "linear recursive_doubling",
    "scatter": "basic_linear binomial linear_nb",
}
#: Algorithms of 5.0 that 4.1 lacks.
_SINCE_5 = {("allgather", "sparbit"), ("allgatherv", "sparbit")}
#: Algorithms that 6.0 appends; 6.0 also calls allgather's bruck "bruck-k-fanout".
_SINCE_6 = {"allgather": "direct-messaging", "allreduce": "allgather_reduce", "reduce": "knomial"}
VERSIONS = ("4.1", "5.0", "6.0")
_IN_SEGMENTS = {
    "bcast": ("chain", "pipeline", "split_binary_tree", "binary_tree", "binomial", "knomial"),
    "reduce": ("chain", "pipeline", "binary", "binomial", "in-order_binary"),
    "allreduce": ("segmented_ring",),
    "gather": ("linear_sync",),
}
#: By parameter and collective: the coll/tuned algorithms that use it (coll_tuned_<collective>_decision.c, *_do_this).
USES: dict[str, dict[str, tuple[str, ...]]] = {
    "segment_bytes": _IN_SEGMENTS,
    "fanout": {"bcast": ("chain",), "reduce": ("chain",)},
    "max_requests": {"alltoall": ("linear_sync",), "reduce": _IN_SEGMENTS["reduce"]},
    "radix": {"bcast": ("knomial",)},
}


def parameters_of(collective: str, settings: dict[str, Any]) -> list[str]:
    """Return the parameters that an algorithm of coll/tuned takes, from its settings in the catalogue."""
    return [key for key, users in USES.items() if set(users.get(collective, ())) & set(names_of(settings))]


#: Numbers of Open MPI 5.0: those of 4.1 and two more.
NUMBERS = {name: {word: i for i, word in enumerate(words.split(), 1)} for name, words in _NAMES.items()}


@functools.cache
def numbers_of(version: str) -> dict[str, dict[str, int]]:
    """Return {collective: {Open MPI's name: number}} for a version such as 4.1.6. Raises StudyError for an unknown version."""
    series = ".".join(version.split(".")[:2])
    if series not in VERSIONS:
        raise StudyError(f"the algorithm numbers of Open MPI {version} are unknown" + allowed(VERSIONS))
    if series == "6.0":
        new = {collective: {name: len(NUMBERS[collective]) + 1} for collective, name in _SINCE_6.items()}
        return {collective: names | new.get(collective, {}) for collective, names in NUMBERS.items()}
    return {
        collective: {
            name: number for name, number in names.items() if series != "4.1" or (collective, name) not in _SINCE_5
        }
        for collective, names in NUMBERS.items()
    }


def reads_version_2(version: str) -> bool:
    """Return whether coll/tuned of a version such as 5.0.7 reads rules files of version 2, which include max_requests."""
    release = tuple(int(word) for word in re.findall(r"\d+", version)[:3])
    return release >= (5, 0, 7) or (4, 1, 8) <= release < (5,)


def algorithm_of(catalogue: Catalogue, collective: str, number: int, version: str) -> str:
    """Return the catalogue's name of Open MPI's algorithm *number*; 0 is the library's default.

    Raises StudyError for a number or a collective that this version does not have.
    """
    if number == 0:
        return "default"
    known = numbers_of(version).get(collective, {})
    found = [name for name, its in known.items() if its == number]
    if not found:
        raise StudyError(f"Open MPI {version} has no {collective} algorithm {number}; it has 0 to {len(known)}")
    name = entry_of(catalogue, collective, found[0])
    if name is None:
        raise StudyError(f"config/algorithms.yaml: {collective}: no entry names Open MPI's {found[0]}")
    return name


def entry_of(catalogue: Catalogue, collective: str, word: str) -> str | None:
    """Return the catalogue's name of the algorithm that Open MPI calls *word*; None if the catalogue has no entry."""
    for name, entry in catalogue.algorithms.get(collective, {}).items():
        listed = entry.get("openmpi", {}).get("algorithm", [])
        if word in (listed if isinstance(listed, list) else [listed]):
            return name
    return None
