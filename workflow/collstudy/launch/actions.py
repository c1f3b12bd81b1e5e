"""Convert the table of a trace to the actions of each rank for a replay (format: workflow/native/replay/replay.c)."""

from __future__ import annotations

import csv
import gzip
import struct
from array import array
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from collstudy.base.errors import StudyError
from collstudy.launch.tracefile import KNOWN_COLUMNS, operation_names

#: Operations that a replay skips: the simulator itself initialises and finalizes, communicators are created beforehand, and
#: a probe is followed by its receive.
LEFT_OUT = ("init", "finalize", "communicator", "probe")
#: Computations are at the same site of a program if this many calls, the one that follows included, have the same operation,
#: communicator and root.
SITE = 8


def read_calls(path: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of a trace's table. Raises StudyError if it is invalid or incomplete."""
    try:
        with gzip.open(path, "rt", encoding="ascii", newline="") as stream:
            rows = csv.reader(stream)
            header = next(rows, [])
            if tuple(header) not in KNOWN_COLUMNS:
                raise StudyError(f"{path}: not the table of a trace: its columns are {', '.join(header)}")
            for row in rows:
                yield dict(zip(header, row, strict=True))
    except (EOFError, gzip.BadGzipFile, ValueError) as error:
        raise StudyError(
            f"{path}: the table of the trace is damaged or truncated ({error}): delete its folder to trace again"
        ) from None


class _Rank:
    """The actions of one rank as a flat array of integers; `open` has the positions of receives whose source is not yet known."""

    def __init__(self) -> None:
        self.numbers = array("q")
        self.open: dict[int, int] = {}
        self.compute_ns = 0.0
        self._latest: deque[tuple[int, ...]] = deque(maxlen=SITE)
        self._sites: dict[tuple[tuple[int, ...], ...], list[int]] = {}

    def add(self, row: dict[str, str], numbers: dict[str, int]) -> None:
        operation = row["operation"]
        self.compute_ns += float(row["compute_us"]) * 1000
        if operation in LEFT_OUT:
            return
        listed = [int(part) for part in row["list"].split(";")] if row["list"] else []
        request = int(row["request"])
        if operation in ("wait", "test"):
            for number, source, tag in zip(listed[::3], listed[1::3], listed[2::3], strict=True):
                at = self.open.pop(number, None)
                if at is not None and source != -1:
                    self.numbers[at + 4], self.numbers[at + 6] = source, tag
            listed = listed[::3]
        elif operation == "irecv":
            self.open[request] = len(self.numbers)
        self.numbers.extend(
            [
                numbers[operation], int(row["communicator"]), int(row["root"]), int(row["to"]), int(row["from"]),
                int(row["send_tag"]), int(row["receive_tag"]), int(row["sent_bytes"]), int(row["received_bytes"]), request,
                round(self.compute_ns), 0, len(listed), *listed,
            ]
        )  # fmt: skip
        self.compute_ns = 0.0
        self._latest.append((numbers[operation], int(row["communicator"]), int(row["root"])))
        self._sites.setdefault(tuple(self._latest), []).append(len(self.numbers) - len(listed) - 3)

    def link_sites(self) -> None:
        """Let each computation name the next one of the same site, and the last one the first."""
        for places in self._sites.values():
            for place, following in zip(places, [*places[1:], places[0]], strict=True):
                self.numbers[place + 1] = following


def write_actions(calls: Path, communicators: list[list[int]], ranks: int, folder: Path) -> None:
    """Write rank-NNNNNN.actions for each traced rank, and the file `communicators`, to *folder*."""
    numbers = {name: number for number, name in enumerate(operation_names(), start=1)}
    state = [_Rank() for _ in range(ranks)]
    for row in read_calls(calls):
        state[int(row["rank"])].add(row, numbers)
    for rank, done in enumerate(state):
        done.link_sites()
        (folder / f"rank-{rank:06d}.actions").write_bytes(done.numbers.tobytes())
    listed = [value for members in communicators[1:] for value in (len(members), *members)]
    (folder / "communicators").write_bytes(struct.pack(f"={len(listed)}q", *listed))
