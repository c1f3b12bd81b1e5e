"""Select MPICH's algorithms: one by variables, or tuning decisions by two files (written by tuning/trees.py)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from collstudy.base.files import write_atomically

Tree = dict[str, Any]
#: Suffixes of a collective's variables, by key of the catalogue.
CVARS = {"algorithm": "INTRA_ALGORITHM", "fanout": "TREE_KVAL", "segment_bytes": "TREE_PIPELINE_CHUNK_SIZE"}
#: Suffix of the variable with the radix, by algorithm.
RADIX_CVARS = {
    "k_dissemination": "DISSEM_KVAL", "k_brucks": "BRUCKS_KVAL", "recursive_multiplying": "RECURSIVE_MULTIPLYING_KVAL",
    "recexch": "RECEXCH_KVAL", "recexch_doubling": "RECEXCH_KVAL", "recexch_halving": "RECEXCH_KVAL",
    "k_reduce_scatter_allgather": "RECEXCH_KVAL",
}  # fmt: skip


def forcing_environment(collective: str, chosen: dict[str, Any]) -> dict[str, str]:
    """Return the variables that force the algorithm *chosen* (the catalogue's entry) of a collective for all sizes."""
    prefix = f"MPIR_CVAR_{collective.upper()}"
    variables = {f"{prefix}_{CVARS[key]}": str(value) for key, value in chosen.items() if key in CVARS}
    if "fanout" in chosen:
        variables[f"{prefix}_TREE_TYPE"] = "kary"
    if "radix" in chosen:
        variables[f"{prefix}_{RADIX_CVARS[chosen['algorithm']]}"] = str(chosen["radix"])
    # Otherwise, on several nodes, the device layer would run the algorithm among node leaders and again within each node.
    variables[f"{prefix}_DEVICE_COLLECTIVE"] = "0"
    return variables


def environment(path: Path) -> dict[str, str]:
    """Return the variables that make MPICH use the files of `write_both`."""
    return {
        "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE": str(path),
        "MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE": str(device_file(path)),
    }


def environment_of_both(path: Path) -> dict[str, str]:
    """Return the same for a file with both trees in a list, as in a cell's rules; writes the two files beside it if missing."""
    files = path.with_suffix(".json")
    if not files.exists():
        write_both(json.loads(path.read_text(encoding="utf-8")), files)
    return environment(files)


def device_file(path: Path) -> Path:
    """Return the path of the device layer's file, beside that of the algorithms."""
    return path.with_suffix(".ch4.json")


def write_both(both: Iterable[Tree], path: Path) -> None:
    """Write the tree of the algorithms to *path*, and that of the device layer beside it."""
    # environment_of_both tests whether *path* exists: writing it last ensures that both files exist.
    for file, tree in reversed(list(zip((path, device_file(path)), both, strict=True))):
        write_atomically(file, (json.dumps(tree, indent=1) + "\n").encode())
