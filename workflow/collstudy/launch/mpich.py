"""Selection of MPICH's algorithms: one by variables, or decisions by two files (written by tuning/trees.py)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from collstudy.base.files import write_atomically

Tree = dict[str, Any]
#: Suffixes of the variables of a collective, by keys of the catalogue.
CVARS = {"algorithm": "INTRA_ALGORITHM", "fanout": "TREE_KVAL", "segment_bytes": "TREE_PIPELINE_CHUNK_SIZE"}


def forcing_environment(collective: str, chosen: dict[str, Any]) -> dict[str, str]:
    """The variables that force the algorithm *chosen* (the catalogue's entry) of a collective for all sizes."""
    prefix = f"MPIR_CVAR_{collective.upper()}"
    variables = {f"{prefix}_{CVARS[key]}": str(value) for key, value in chosen.items() if key in CVARS}
    if "fanout" in chosen:
        variables[f"{prefix}_TREE_TYPE"] = "kary"
    # On several nodes the device would run the algorithm among node leaders and again within each node.
    variables[f"{prefix}_DEVICE_COLLECTIVE"] = "0"
    return variables | {"MPIR_CVAR_COLLECTIVE_FALLBACK": "error"}


def environment(path: Path) -> dict[str, str]:
    """The variables that make MPICH use the files of `write`."""
    return {
        "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE": str(path),
        "MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE": str(device_file(path)),
    }


def environment_of_both(path: Path) -> dict[str, str]:
    """The same for a file with both trees in a list, as in the rules of a cell: they are written beside it."""
    files = path.with_suffix(".json")
    if not files.exists():
        write_both(json.loads(path.read_text(encoding="utf-8")), files)
    return environment(files)


def device_file(path: Path) -> Path:
    """The file of the device beside that of the algorithms."""
    return path.with_suffix(".ch4.json")


def write_both(both: Iterable[Tree], path: Path) -> None:
    """Write the trees of the algorithms to *path*, and those of the device beside it."""
    # The file whose existence is tested is written last: then both exist.
    for file, tree in reversed(list(zip((path, device_file(path)), both, strict=True))):
        write_atomically(file, (json.dumps(tree, indent=1) + "\n").encode())
