"""Summarise the calls of launches, and number the launches of imported rows; rows that repeat others exactly are dropped."""

from __future__ import annotations

from collections import Counter
from typing import Any

from collstudy.base.lazy import lazy

np = lazy("numpy")

#: Minimum number of equal cells, and of different times among them, for rows to be those of the same launch.
COPIED, DIFFERENT = 8, 6


def _duplicates(rows: list[dict[str, Any]]) -> set[int]:
    """Return the numbers of the rows that repeat others exactly.

    Single launches of a cell may have equal times. Rows are therefore compared by *block*, rows in which each cell occurs once: the
    k-th occurrence of each cell in a file. A block's rows are duplicates if all cells that it shares with an earlier block have
    equal values, at least COPIED cells with DIFFERENT times. Blocks are the rows of an algorithm and mapping, then those of a number
    of processes, as a launch sweeps them.
    """
    # A missing field counts as None.
    given = sorted({name for row in rows for name in row} - {"file", "line", "path"})
    content = [tuple(map(row.get, given)) for row in rows]
    series = [(row["path"], row["collective"], row["algorithm"], row.get("parameters"), row["mapping"]) for row in rows]
    launches = [(*name, row["nodes"], row["processes"]) for name, row in zip(series, rows, strict=True)]
    twice = _repeated(rows, content, series, set())
    return twice | _repeated(rows, content, launches, twice)


def _repeated(rows: list[dict[str, Any]], content: list[tuple], names: list[tuple], without: set[int]) -> set[int]:
    """Return the numbers of the rows, other than *without*, in blocks that repeat an earlier one; the rows of a block have the same
    name, which begins with their file.
    """
    occurrences: Counter = Counter()
    blocks: dict[tuple, dict[tuple, int]] = {}
    for index, row in enumerate(rows):
        if index in without:
            continue
        cell = (*cell_of(row), row["launch"])
        occurrences[row["path"], cell] += 1
        blocks.setdefault((*names[index], occurrences[row["path"], cell]), {})[cell] = index
    having: dict[tuple, list[tuple]] = {}
    twice: set[int] = set()
    for name, block in blocks.items():
        if len(block) < COPIED:
            continue
        for earlier in dict.fromkeys(of for index in block.values() for of in having.get(content[index], ())):
            common = [(index, blocks[earlier][cell]) for cell, index in block.items() if cell in blocks[earlier]]
            enough = len(common) >= COPIED and len({rows[index]["latency_us"] for index, _ in common}) >= DIFFERENT
            if enough and all(content[one] == content[two] for one, two in common):
                twice.update(one for one, _ in common)
                break
        for index in block.values():
            having.setdefault(content[index], []).append(name)
    return twice


def cell_of(row: dict[str, Any]) -> tuple:
    """Return what distinguishes the cell and size of a row."""
    get = row.get
    return (
        row["collective"], row["algorithm"], get("parameters"), row["mapping"], row["nodes"], row["processes"],
        row["size_bytes"], get("from_rank"), get("to_rank"),
    )  # fmt: skip


def number_launches(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    """Drop exact duplicates, and number the remaining launches of each cell and size from 1, in the order of the sources, unless they
    have different numbers of their own. Numbers from 0 on become those from 1 on.
    """
    twice = _duplicates(rows)
    distinct = [row for index, row in enumerate(rows) if index not in twice]
    shared = any("source" in row for row in rows)
    if any(row["launch"] == 0 for row in distinct):
        for row in distinct:
            row["launch"] = None if row["launch"] is None else row["launch"] + 1
    launches: dict[tuple, list[dict[str, Any]]] = {}
    for row in distinct:
        launches.setdefault(cell_of(row), []).append(row)
    for mine in launches.values():
        numbers = {row["launch"] for row in mine}
        if shared or None in numbers or len(numbers) < len(mine):
            for number, row in enumerate(mine, 1):
                row["launch"] = number
    return distinct, len(twice)


def summary(times: list[float]) -> dict[str, Any]:
    """Return the fields of a launch whose calls took these times (us): median, quartiles and number."""
    low, middle, high = np.percentile(times, [25, 50, 75])
    return {"latency_us": float(middle), "q1_us": float(low), "q3_us": float(high), "iterations": len(times)}
