"""Decision tables of Open MPI 4.1's default, which simulated Open MPI has, too."""

from __future__ import annotations

import functools
import math
from typing import Any

from collstudy.base.files import read_csv
from collstudy.base.paths import ROOT
from collstudy.store.measurements import whole
from collstudy.study.names import REDUCTIONS

#: Names of the decision tables that differ from those of the catalogue.
OF_TABLE = {("bcast", "binary"): "binary_tree", ("bcast", "split_binary"): "split_binary_tree"}


@functools.cache
def run_by_default(collective: str, processes: int, size: int) -> str:
    """Return the algorithm that the default runs; "" if it has parameters or is unknown. *size* in bytes (barriers: 0)."""
    for row in decisions(collective):
        if processes < (row["ranks"] or math.inf) and size < (row["bytes"] or math.inf):
            return "" if row["parameters"] else OF_TABLE.get((collective, row["algorithm"]), row["algorithm"])
    return ""


@functools.cache
def decisions(collective: str) -> list[dict[str, Any]]:
    """Return the decision table of simulated Open MPI's default: {ranks, bytes, algorithm, parameters}. The first row whose
    ranks and bytes both exceed those of the call applies; None means no limit. A chain always has fan-out 1 there.
    """
    # Benchmarks of reductions use a sum, which is a commutative operation.
    table = collective + ("_commuting" if collective in REDUCTIONS else "")
    rows = read_csv(ROOT / "workflow" / "native" / "coll" / "algorithms" / "ompi_decisions.csv")
    return [
        {
            "ranks": whole(row["ranks_below"]),
            "bytes": whole(row["bytes_below"]),
            "algorithm": row["algorithm"],
            "parameters": "fanout=1" if row["algorithm"] == "chain" else "",
        }
        for row in rows
        if row["table"] == table
    ]
