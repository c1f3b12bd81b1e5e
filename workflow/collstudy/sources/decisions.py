"""What the simulated Open MPI's default runs."""

from __future__ import annotations

import re
from typing import Any

from collstudy.base.paths import ROOT


def decisions(collective: str) -> list[dict[str, Any]]:
    """What the simulated Open MPI's default runs, as its table says: {ranks, bytes, algorithm}; the first row with more ranks
    and more bytes than asked for decides. None stands for any number.
    """
    # osu_reduce adds elements, which commutes.
    table = collective + ("_commuting" if collective in ("reduce", "allreduce") else "")
    text = (ROOT / "workflow" / "native" / "coll" / "ompi_decide.c").read_text(encoding="utf-8")
    body = re.search(rf"struct row {table}\[\] = {{(.*?)\n}};", text, re.DOTALL)
    if body is None:
        return []
    rows = re.findall(rf"{{(\w+), (\w+), ompi_{collective}_(\w+)}}", body.group(1))

    def limit(text: str) -> int | None:
        return None if text == "ANY" else int(text)

    return [{"ranks": limit(ranks), "bytes": limit(size), "algorithm": name} for ranks, size, name in rows]
