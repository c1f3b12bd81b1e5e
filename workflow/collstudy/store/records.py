"""The cell store: one JSON file per cell, written atomically, checked against its digest when read."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collstudy.base.files import locked, write_atomically
from collstudy.base.statistics import interval_width_pct
from collstudy.study.cells import Cell, canonical
from collstudy.study.config import Policy


class Damaged(Exception):
    """A cell file that does not parse or is not about the cell that its name says."""


@dataclass(frozen=True)
class Summary:
    """What planning needs to know of a cell: launches, the widest interval, whether the newest attempt failed, mean seconds."""

    count: int = 0
    width: float | None = None
    failed: bool = False
    seconds: float | None = None

    def stop(self, cell: Cell, policy: Policy) -> str | None:
        """Why no further launch is needed: deterministic, narrow, limit; None when one is."""
        if cell.deterministic:
            return "deterministic" if self.count else None
        if self.count >= policy.maximum:
            return "limit"
        if self.count >= policy.minimum and self.width is not None and self.width <= policy.ci_width_pct:
            return "narrow"
        return None


@dataclass(frozen=True)
class Record:
    """What the store has about a cell.

    `launches`: list of {launch, samples: [{size_bytes, latency_us, ...}], provenance}; `proof`: see proof.py, or None;
    `failure`: {reason, log, time} of the newest attempt, or None.
    """

    launches: tuple[dict[str, Any], ...] = ()
    proof: dict[str, Any] | None = None
    failure: dict[str, Any] | None = None

    def interval_width_pct(self) -> float | None:
        """The widest confidence interval of the median over all message sizes (and pairs), in percent of the median."""
        by_row: dict[Any, list[float]] = {}
        for launch in self.launches:
            for sample in launch["samples"]:
                value = sample.get("latency_us", sample.get("bandwidth_mb_s"))
                row = (sample.get("size_bytes"), sample.get("from_rank"), sample.get("to_rank"))
                by_row.setdefault(row, []).append(value)
        widths = [interval_width_pct(values) for values in by_row.values()]
        return None if not widths or None in widths else max(widths)

    def stop(self, cell: Cell, policy: Policy) -> str | None:
        """Why no further launch is needed: deterministic, narrow, limit; None when one is."""
        count = len(self.launches)
        # The interval takes long to compute and matters only in between.
        width = self.interval_width_pct() if policy.minimum <= count < policy.maximum else None
        return Summary(count, width).stop(cell, policy)

    def summary(self) -> Summary:
        """The short form."""
        took = [s for launch in self.launches if (s := launch.get("provenance", {}).get("seconds")) is not None]
        mean = sum(took) / len(took) if took else None
        return Summary(len(self.launches), self.interval_width_pct(), self.failure is not None, mean)


class Store:
    """The folder `results/cells/`."""

    def __init__(self, results: Path):
        self.results = results

    def file(self, cell: Cell) -> Path:
        """The cell's file."""
        return self.results / cell.path

    def read(self, cell: Cell) -> Record:
        """Return what is stored; an empty record where nothing is. Raises Damaged."""
        path = self.file(cell)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return Record()
        try:
            document = json.loads(content)
            if document["digest"] != cell.digest or canonical(document["cell"]) != canonical(cell.identity()):
                raise Damaged(f"{path}: its content is not about the cell of its name")
            for launch in document["launches"]:
                if len(launch["samples"]) != len(cell.row_sizes):
                    raise Damaged(f"{path}: launch {launch['launch']} lacks message sizes")
            return Record(tuple(document["launches"]), document["proof"], document["failure"])
        except (ValueError, KeyError, TypeError) as error:
            raise Damaged(f"{path}: {type(error).__name__}: {error}") from None

    def summaries(self, cells: Sequence[Cell]) -> list[tuple[Summary, int]]:
        """Summary and time stamp (ns; 0 without a file) of many cells. A damaged file counts as none.

        A file that has not changed since it was last looked at is not read again: `.summaries.json` remembers, and may be deleted
        at any time.
        """
        path = self.results / ".summaries.json"
        known: dict[str, list[Any]] = {}
        with contextlib.suppress(OSError, ValueError):
            known = json.loads(path.read_bytes())
        found, fresh = [], {}
        base = str(self.results)
        for cell in cells:
            name = cell.path_text
            try:
                state = os.stat(f"{base}/{name}")
            except FileNotFoundError:
                found.append((Summary(), 0))
                continue
            entry = known.get(name)
            if entry and entry[:2] == [state.st_mtime_ns, state.st_size]:
                summary = Summary(*entry[2:])
            else:
                try:
                    summary = self.read(cell).summary()
                except Damaged:
                    found.append((Summary(), 0))
                    continue
                values = [summary.count, summary.width, summary.failed, summary.seconds]
                fresh[name] = [state.st_mtime_ns, state.st_size, *values]
            found.append((summary, state.st_mtime_ns if summary.count or summary.failed else 0))
        if fresh:
            # Only a memory: a full disk is for somebody else to complain about.
            with contextlib.suppress(OSError):
                write_atomically(path, json.dumps(known | fresh, separators=(",", ":")).encode())
        return found

    def set_aside(self, cell: Cell) -> Path | None:
        """Rename a damaged file to `<name>.damaged-<n>` and return the new name; None when it is gone already."""
        path = self.file(cell)
        number = 1
        while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
            number += 1
        try:
            os.rename(path, aside)
        except FileNotFoundError:
            return None
        return aside

    def write(self, cell: Cell, record: Record, stop: str | None) -> None:
        """Keep a record; the caller holds the cell's lock."""
        document = {
            "digest": cell.digest,
            "cell": cell.identity(),
            "stop": stop,
            "proof": record.proof,
            "failure": record.failure,
            "launches": list(record.launches),
        }
        write_atomically(self.file(cell), json.dumps(document, indent=1).encode() + b"\n")

    def block_lock(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Lock against another runner of the same block; `block_runs` asks for it."""
        return locked(self.results / ".locks" / f"{name}.lock")

    def block_runs(self, name: str) -> bool:
        """Whether somebody holds the lock of a block at this moment."""
        try:
            with open(self.results / ".locks" / f"{name}.lock") as stream:
                fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def lock(self, cell: Cell) -> contextlib.AbstractContextManager[None]:
        """Lock against another writer of the same cell."""
        return locked(self.results / ".locks" / f"{cell.digest[:16]}.lock")
