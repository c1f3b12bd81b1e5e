"""Decision tables of the simulated Open MPI's default."""

from __future__ import annotations

from typing import Any

from collstudy.base.files import read_csv
from collstudy.base.paths import ROOT
from collstudy.store.measurements import whole


def decisions(collective: str) -> list[dict[str, Any]]:
    """The decision table of the simulated Open MPI's default: {ranks, bytes, algorithm, parameters}; the first row with
    more ranks and more bytes than the call decides. None stands for any number. A chain has fan-out 1 there.
    """
    # osu_reduce sums, a commutative operation.
    table = collective + ("_commuting" if collective in ("reduce", "allreduce") else "")
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
