"""Verify a cell by an untimed launch before the first timed one: messages of the collective, and placement of ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from collstudy.launch import bindings
from collstudy.study.cells import Cell
from collstudy.study.names import APPLICATIONS, POINT_TO_POINT
from collstudy.study.patterns import PATTERNS, messages_an_edge
from collstudy.study.placement import Core


def probed_sizes(cell: Cell) -> list[int]:
    """Return the message sizes (bytes) of the untimed launch: the smallest and the largest."""
    return sorted({cell.sizes[0], cell.size_list[-1] or 0}) if cell.sizes else [1]


def probe(cell: Cell, build: Path) -> list[str | Path]:
    """Return the program of the untimed launch, in the folder *build*, with its arguments."""
    # Without a forced algorithm only the placement is verified.
    called = "barrier" if cell.collective in (*POINT_TO_POINT, *APPLICATIONS) else cell.collective
    return [build / "probe" / "collprobe", called, *map(str, probed_sizes(cell))]


def other_messages(cell: Cell, parameters: Mapping[str, Any], folder: Path) -> list[str]:
    """Return the differences between the recorded messages and those of the cell's pattern with the *parameters* of its algorithm."""
    pattern = cell.pattern
    sizes, seen = probed_sizes(cell), messages(folder)
    expected = frozenset(
        pair for size in sizes for pair in PATTERNS[pattern](cell.processes, {**parameters, "size_bytes": size})
    )
    odd = sorted(set(seen) ^ expected)
    if odd:
        return [
            f"recorded messages do not match pattern {pattern}: {len(odd)} (sender, receiver) pairs differ, such as {odd[:6]}"
        ]
    segments = [messages_an_edge(pattern, parameters, size) for size in sizes]
    wrong = sorted({number for number in seen.values() if None not in segments and number != sum(segments)})
    return [f"segments: {sum(segments)} messages between two ranks expected, {wrong[0]} counted"] if wrong else []


def messages(folder: Path, name: str = "messages") -> dict[tuple[int, int], int]:
    """Return the number of messages per pair (sender, receiver), recorded by Open MPI's monitoring component or libmessages.so.

    The files are `<name>.<rank>.prof`; `collprobe -p` names them `messages-<bytes>`. Only lines `I sender receiver bytes bytes
    messages msgs sent` belong to the collective on MPI_COMM_WORLD.
    """
    seen: dict[tuple[int, int], int] = {}
    for path in folder.glob(f"{name}.*.prof"):
        for line in path.read_text().splitlines():
            fields = line.split()
            if fields[:1] == ["I"] and int(fields[5]) > 0:
                pair = int(fields[1]), int(fields[2])
                seen[pair] = seen.get(pair, 0) + int(fields[5])
    return seen


def placed_as_asked(
    cell: Cell, output: str, placement: Sequence[Core], hosts: Sequence[str], bound: bool
) -> tuple[bool | None, list[str], list[dict[str, Any]]]:
    """Return whether each rank is on the requested core, the differences, and the place of each rank.

    The first value is None if ranks are not *bound*, because there are more ranks than cores.
    """
    found = bindings.read_bindings(output)
    binding = [
        {
            "rank": one.rank, "host": one.host, "socket": one.socket, "cores": [] if one.core is None else [one.core],
            "cpus": one.cpus,
        }
        for one in found
    ]  # fmt: skip
    if not bound:
        return None, [], binding
    problems = bindings.misplaced(found, placement, hosts)
    more = [f"{len(problems) - 3} more ranks"] if len(problems) > 3 else []
    return not problems, problems[:3] + more, binding


def judgement(
    cell: Cell, component: str | None, used: bool | None, placed: bool | None, problems: Sequence[str], binding: list[dict[str, Any]]
) -> dict[str, Any]:  # fmt: skip
    """Return what is stored of a verification."""
    return {
        "component": component, "used": used, "placed": placed, "detail": "; ".join(problems), "pattern": cell.pattern,
        "binding": binding,
    }  # fmt: skip
