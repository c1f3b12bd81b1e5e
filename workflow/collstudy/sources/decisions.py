"""What the simulated Open MPI's default runs."""

from __future__ import annotations

from typing import Any

from collstudy.base.files import read_csv
from collstudy.base.paths import ROOT
from collstudy.store.measurements import whole


def decisions(collective: str) -> list[dict[str, Any]]:
    """What the simulated Open MPI's default runs, as its table says: {ranks, bytes, algorithm, parameters}; the first row with
    more ranks and more bytes than asked for decides. None stands for any number. A chain there is one (fan-out 1).
    """
    # osu_reduce adds elements, which commutes.
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
