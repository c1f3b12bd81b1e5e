"""Decision tables of the default in simulated Open MPI."""

from __future__ import annotations

from typing import Any

from collstudy.base.files import read_csv
from collstudy.base.paths import ROOT
from collstudy.store.measurements import whole


def decisions(collective: str) -> list[dict[str, Any]]:
    """Return the decision table of simulated Open MPI's default: {ranks, bytes, algorithm, parameters}. The first row whose
    ranks and bytes both exceed those of the call applies; None means no limit. A chain always has fan-out 1 there.
    """
    # Benchmarks of reductions use a sum, which is a commutative operation.
    table = collective + ("_commuting" if collective in ("reduce", "allreduce", "reduce_scatter") else "")
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
