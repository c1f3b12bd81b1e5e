"""The store: one JSON file for each cell, one folder for each trace and replay, checked against their digests when read."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import fcntl
import hashlib
import json
import math
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collstudy.base.digests import file_digest
from collstudy.base.files import locked, write_atomically
from collstudy.base.statistics import interval_width_pct
from collstudy.study.cells import Cell
from collstudy.study.description import Policy
from collstudy.study.traces import Replay, Run
from collstudy.study.work import Work, canonical


class Damaged(Exception):
    """A cell file that differs from what was written, or belongs to another cell than its name states."""


@dataclass(frozen=True)
class Summary:
    """Summary of a cell for planning: launches, the widest interval, whether the newest attempt failed, mean seconds,
    and whether the verification found that something else was measured.
    """

    count: int = 0
    width: float | None = None
    failed: bool = False
    seconds: float | None = None
    unproved: bool = False

    @property
    def status(self) -> str:
        """failed, missing, unproved or measured."""
        if self.failed or not self.count:
            return "failed" if self.failed else "missing"
        return "unproved" if self.unproved else "measured"

    def stop(self, work: Work, policy: Policy) -> str | None:
        """Why no further launch is needed: deterministic, narrow, limit; None if one is needed."""
        if work.deterministic:
            return "deterministic" if self.count else None
        if self.count >= policy.maximum:
            return "limit"
        if self.count >= policy.minimum and self.width is not None and self.width <= policy.ci_width_pct:
            return "narrow"
        return None


@dataclass(frozen=True)
class Record:
    """The stored data of a cell, a trace or a replay.

    `launches`: list of {launch, samples: [{size_bytes, latency_us, ...}], provenance}; `proof`: see proof.py, or None;
    `failure`: {reason, log, time} of the newest attempt, or None; `about`: the content of `about.json` of a trace or a replay.
    """

    launches: tuple[dict[str, Any], ...] = ()
    proof: dict[str, Any] | None = None
    failure: dict[str, Any] | None = None
    about: dict[str, Any] | None = None

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

    def stop(self, work: Work, policy: Policy) -> str | None:
        """Why no further launch is needed: deterministic, narrow, limit; None if one is needed."""
        count = len(self.launches)
        # The interval is expensive to compute and matters only between the two limits.
        width = self.interval_width_pct() if policy.minimum <= count < policy.maximum else None
        return Summary(count, width).stop(work, policy)

    def proved(self) -> bool | None:
        """Whether the forced algorithm ran and the ranks were placed as requested; None if there was nothing to verify."""
        if self.proof is None:
            return None
        return False if self.proof["placed"] is False else self.proof["used"]

    def status(self) -> tuple[str, str]:
        """As Summary.status, and why."""
        if self.failure:
            return "failed", self.failure["reason"]
        if not self.launches:
            return "missing", "not measured yet"
        if self.proved() is False:
            detail = self.proof["detail"] if self.proof else ""
            return "unproved", detail or "the ranks were not placed on cores of their own"
        return "measured", ""

    def content(self) -> dict[str, Any]:
        """The measurements of a cell as plain JSON values: the part of the file that its digest covers."""
        return {"proof": self.proof, "failure": self.failure, "launches": list(self.launches)}

    def summary(self) -> Summary:
        """The short form."""
        took = [s for launch in self.launches if (s := launch.get("provenance", {}).get("seconds")) is not None]
        mean = sum(took) / len(took) if took else None
        return Summary(
            len(self.launches), self.interval_width_pct(), self.failure is not None, mean, self.proved() is False
        )


def content_digest(content: dict[str, Any]) -> str:
    """SHA-256 of the measurements (Record.content), in hexadecimal."""
    return hashlib.sha256(canonical(content)).hexdigest()


def _content_of(about: dict[str, Any]) -> dict[str, Any]:
    """The part of an `about.json` that its digest `content` covers."""
    return {name: value for name, value in about.items() if name not in ("digest", "identity", "content")}


def _files_of(folder: Path) -> dict[str, dict[str, Any]]:
    """Size and digest of each file of a folder, by its path in it."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): {"bytes": path.stat().st_size, "sha256": file_digest(path)}
        for path in paths
    }


def check_record(record: Record, cell: Cell | Run) -> None:
    """Raise ValueError, with the problem, for launches that cannot be measurements of *cell*."""
    numbers = [launch["launch"] for launch in record.launches]
    if numbers != list(range(1, len(numbers) + 1)):
        raise ValueError(f"its launches are numbered {numbers}, not from 1 on")
    for launch in record.launches:
        where = f"launch {launch['launch']}"
        sizes = [sample.get("size_bytes") for sample in launch["samples"]]
        if sizes != cell.row_sizes:
            raise ValueError(f"{where} has the message sizes {_short(sizes)}, not {_short(cell.row_sizes)}")
        for sample in launch["samples"]:
            if "latency_us" not in sample and "bandwidth_mb_s" not in sample:
                raise ValueError(f"{where} has neither a latency nor a bandwidth at size {sample.get('size_bytes')}")
            for name, value in sample.items():
                # A pipeline of operations is complete without a size; every other value is a number.
                if value is not None or name in ("latency_us", "bandwidth_mb_s"):
                    _check_number(value, f"{where}: {name}")
        for part in ("library", "provenance"):
            facts = launch.get(part, {} if part == "library" else None)
            if not isinstance(facts, dict):
                raise ValueError(f"{where} has no {part}")
            for name in ("seconds", "peak_memory_mb", "setup_us", "left_pct"):
                if facts.get(name) is not None:
                    _check_number(facts[name], f"{where}: {name}")
    if record.proof is not None:
        for key in ("used", "placed"):
            if record.proof[key] not in (True, False, None):
                raise ValueError(f"proof.{key} is {_short(record.proof[key])}")
        if not isinstance(record.proof["detail"], str):
            raise ValueError("proof.detail is not a text")
    if record.failure is not None and not isinstance(record.failure["reason"], str):
        raise ValueError("failure.reason is not a text")


def _check_number(value: Any, where: str) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value < 0:
        raise ValueError(f"{where} is {_short(value)}, not a finite number from 0 on")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:80]}..."


#: Entry of a cell in `.summaries.json`: size, mtime, inode and ctime of its file, and the fields of its Summary.
_REMEMBERED = (int, int, int, int, int, (int, float, type(None)), bool, (int, float, type(None)), bool)


def _remembered(path: Path) -> dict[str, list[Any]]:
    """The valid entries of `.summaries.json`; entries of other versions or other files are dropped."""
    try:
        known = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(known, dict):
        return {}
    return {name: entry for name, entry in known.items() if _has_form(entry)}


def _has_form(entry: Any) -> bool:
    return isinstance(entry, list) and len(entry) == len(_REMEMBERED) and all(map(isinstance, entry, _REMEMBERED))


class Store:
    """The folders `cells/`, `traces/` and `replays/` in the results folder."""

    def __init__(self, results: Path):
        self.results = results
        #: The cache of `summaries`; may be deleted at any time.
        self.memory = results / ".summaries.json"

    def file(self, work: Work) -> Path:
        """The file with the stored data."""
        return self.results / work.path_text

    def read(self, work: Work) -> Record:
        """Return the stored data, or an empty record if there are none. Raises Damaged."""
        path = self.file(work)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return Record()
        except OSError as error:
            if error.errno not in (errno.EISDIR, errno.ELOOP, errno.ENOTDIR):
                raise
            raise Damaged(f"{path}: {error.strerror}") from None
        return self.checked(content, work)[0]

    def checked(self, content: bytes, work: Work) -> tuple[Record, bool]:
        """The record in the file of a piece of work, and whether it has a digest. Raises Damaged."""
        path = self.file(work)
        try:
            document = json.loads(content)
            identity = document["identity" if work.in_folder else "cell"]
            if document["digest"] != work.digest or canonical(identity) != canonical(work.identity()):
                raise Damaged(f"{path}: its content belongs to another {type(work).__name__.lower()} than its name")
            if work.in_folder:
                sealed = self._check_folder(path, document)
                return self._record_of(work, document), sealed
            assert isinstance(work, Cell | Run)
            record = Record(tuple(document["launches"]), document["proof"], document["failure"])
            # Files of earlier versions have no digest; they get one when they are written again.
            sealed = "content" in document
            if sealed and document["content"] != content_digest(record.content()):
                raise Damaged(f"{path}: its content was changed after it was written (the digest differs)")
            check_record(record, work)
            return record, sealed
        except RecursionError:
            raise Damaged(f"{path}: too many levels of lists") from None
        except ValueError as error:
            raise Damaged(f"{path}: {error}") from None
        except (AttributeError, KeyError, TypeError) as error:
            kind = type(work).__name__.lower()
            raise Damaged(f"{path}: it is not a valid {kind} file: {type(error).__name__}: {error}") from None

    def _record_of(self, work: Work, about: dict[str, Any]) -> Record:
        """The content of a folder as a record of one launch or of a failure; empty if a required part is missing or has changed."""
        if about["failure"]:
            return Record(failure={"reason": about["failure"]}, about=about)
        if isinstance(work, Replay):
            if self.about(work.trace).get("calls_sha256") != about["calls_sha256"]:
                return Record()  # of a deleted trace
            took = about["makespan_us"]
        else:
            if not (self.file(work).parent / "calls.csv.gz").exists():
                return Record()
            took = about["trace"]["seconds"] * 1e6
        launch = {"launch": 1, "samples": [{"latency_us": round(took, 3)}], "provenance": about["provenance"]}
        return Record((launch,), about=about)

    def _check_folder(self, path: Path, about: dict[str, Any]) -> bool:
        """Whether *about* has digests of itself and its files; raises Damaged if one, or the size of a file, differs."""
        if "content" not in about:
            return False  # of an earlier version
        if about["content"] != content_digest(_content_of(about)):
            raise Damaged(f"{path}: its content was changed after it was written (the digest differs)")
        for name, file in about["files"].items():
            size = (path.parent / name).stat().st_size if (path.parent / name).is_file() else None
            if size != file["bytes"]:
                said = "is not there" if size is None else f"has {size} bytes, not {file['bytes']}"
                raise Damaged(f"{path.parent / name}: it {said}")
        return True

    def check_files(self, work: Work, content: bytes) -> None:
        """Read all files of the folder whose `about.json` is *content*; raises Damaged for a changed one."""
        for name, file in json.loads(content).get("files", {}).items():
            path = self.file(work).parent / name
            if file_digest(path) != file["sha256"]:
                raise Damaged(f"{path}: it was changed after it was written (its digest differs)")

    def about(self, work: Work) -> dict[str, Any]:
        """The content of `about.json` of a trace or a replay; empty if nothing valid is stored."""
        try:
            return self.read(work).about or {}
        except Damaged:
            return {}

    def keep(self, work: Work, stage: Path, about: dict[str, Any]) -> None:
        """Move a finished folder to its place atomically; previous content (a failure, another trace) is removed."""
        about = {"digest": work.digest, "identity": work.identity(), **about, "files": _files_of(stage)}
        about["content"] = content_digest(_content_of(about))
        write_atomically(stage / "about.json", json.dumps(about, indent=1).encode() + b"\n")
        target = self.file(work).parent
        target.parent.mkdir(parents=True, exist_ok=True)
        os.chmod(stage, 0o755)
        if target.exists():
            old = Path(tempfile.mkdtemp(prefix=".old-", dir=target.parent))
            os.rename(target, old / "old")
            os.rename(stage, target)
            shutil.rmtree(old)
        else:
            os.rename(stage, target)

    def summaries(self, works: Sequence[Work]) -> list[tuple[Summary, int]]:
        """Summary and time stamp (ns; 0 without a file) of many cells, traces and replays. A damaged file counts as none.

        A file that has not changed since it was last read is not read again (cache: `memory`).
        """
        known: dict[str, list[Any]] = {}
        for path in dict.fromkeys((self.results / ".summaries.json", self.memory)):
            known |= _remembered(path)
        found, fresh = [], {}
        base = str(self.results)
        for work in works:
            name = work.path_text
            try:
                state = os.stat(f"{base}/{name}")
            except FileNotFoundError:
                found.append((Summary(), 0))
                continue
            except OSError as error:
                if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                    raise
                found.append((Summary(), 0))
                continue
            # A file that was changed in place and whose time stamp was restored has another ctime.
            key = [state.st_size, state.st_mtime_ns, state.st_ino, state.st_ctime_ns]
            entry = known.get(name)
            # The validity of a replay depends on its trace.
            if entry and not work.needs and entry[: len(key)] == key:
                summary = Summary(*entry[len(key) :])
            else:
                try:
                    summary = self.read(work).summary()
                except Damaged:
                    found.append((Summary(), 0))
                    continue
                fresh[name] = [*key, *dataclasses.astuple(summary)]
            found.append((summary, state.st_mtime_ns if summary.count or summary.failed else 0))
        if fresh:
            # Only a cache: a full disk, or a folder in its place, is reported elsewhere.
            with contextlib.suppress(OSError):
                write_atomically(self.memory, json.dumps(known | fresh, separators=(",", ":")).encode())
        return found

    def set_aside(self, work: Work) -> Path | None:
        """Rename a damaged file (or the folder of one) to `<name>.damaged-<n>` and return the new name; None when it is gone already."""
        path = self.file(work).parent if work.in_folder else self.file(work)
        number = 1
        while os.path.lexists(aside := path.with_name(f"{path.name}.damaged-{number}")):
            number += 1
        try:
            os.rename(path, aside)
        except FileNotFoundError:
            return None
        return aside

    def write(self, cell: Cell | Run, record: Record, stop: str | None) -> None:
        """Store a record; the caller holds the cell's lock. Raises ValueError for a record that could not be read back."""
        check_record(record, cell)
        document = {
            "digest": cell.digest,
            "cell": cell.identity(),
            "stop": stop,
            "content": content_digest(record.content()),
            **record.content(),
        }
        write_atomically(self.file(cell), json.dumps(document, indent=1).encode() + b"\n")

    def block_lock(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Lock against another runner of the same block; `block_runs` tests it."""
        return locked(self.results / ".locks" / f"{name}.lock")

    def block_runs(self, name: str) -> bool:
        """Whether the lock of a block is held at this moment."""
        try:
            with open(self.results / ".locks" / f"{name}.lock") as stream:
                fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return False
        except BlockingIOError:
            return True
        return False

    def lock(self, work: Work) -> contextlib.AbstractContextManager[None]:
        """Lock against another writer of the same cell, trace or replay."""
        return locked(self.results / ".locks" / f"{work.digest[:16]}.lock")
