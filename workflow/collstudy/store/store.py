"""The store: one JSON file per cell and run, one folder per trace and replay; digests are checked when they are read."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import fcntl
import glob
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from collstudy.base.digests import file_digest
from collstudy.base.errors import StudyError
from collstudy.base.files import locked, read_json, set_aside, write_atomically
from collstudy.store.records import Damaged, Record, Summary, check_record
from collstudy.study.cells import Cell, cell_from
from collstudy.study.traces import Replay, Run
from collstudy.study.work import Work, canonical, content_digest


def _content_of(about: dict[str, Any]) -> dict[str, Any]:
    """Return the part of an `about.json` that its digest `content` covers."""
    return {name: value for name, value in about.items() if name not in ("digest", "identity", "content")}


def _files_of(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the size and digest of each file in a folder, by relative path."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): {"bytes": path.stat().st_size, "sha256": file_digest(path)}
        for path in paths
    }


#: What is wrong with a file that was renamed, or whose identity was changed.
_OF_ANOTHER = "{path}: its content belongs to another {kind} than its name"


@contextlib.contextmanager
def _named_damage(path: Path, kind: str) -> Iterator[None]:
    """Raise Damaged for what the content of a file that is not valid leads to."""
    try:
        yield
    except RecursionError:
        raise Damaged(f"{path}: nested too deeply") from None
    except ValueError as error:
        raise Damaged(f"{path}: {error}") from None
    except (AttributeError, KeyError, TypeError) as error:
        raise Damaged(f"{path}: it is not a valid {kind} file: {type(error).__name__}: {error}") from None


def _record_in(document: dict[str, Any], path: Path, row_sizes: Sequence[int | None]) -> tuple[Record, bool]:
    """Return the record in the file of a cell or run, and whether the file has a digest. Raises Damaged and ValueError."""
    record = Record(tuple(document["launches"]), document["proof"], document["failure"])
    # Files of earlier versions have no digest; they get one the next time they are written.
    sealed = "content" in document
    if sealed and document["content"] != content_digest(record.content()):
        raise Damaged(f"{path}: its content was changed after it was written (the digest differs)")
    check_record(record, row_sizes)
    return record, sealed


#: Types of a cell's entry in `.summaries.json`: size, mtime, inode and ctime of its file, then the fields of its Summary.
_REMEMBERED = (int, int, int, int, int, (int, float, type(None)), bool, (int, float, type(None)), bool)


def _remembered(path: Path) -> dict[str, list[Any]]:
    """Return the valid entries of `.summaries.json`; entries of other versions and unrelated content are dropped."""
    return {name: entry for name, entry in read_json(path).items() if _has_form(entry)}


def _has_form(entry: Any) -> bool:
    return isinstance(entry, list) and len(entry) == len(_REMEMBERED) and all(map(isinstance, entry, _REMEMBERED))


class Store:
    """The folders `cells/`, `runs/`, `traces/` and `replays/` in the results folder."""

    def __init__(self, results: Path):
        self.results = results
        #: The cache file of `summaries`; it may be deleted at any time.
        self.memory = results / ".summaries.json"

    def file(self, work: Work) -> Path:
        """Return the path of the file with the stored data."""
        return self.results / work.path_text

    def read(self, work: Work) -> Record:
        """Return the stored data, or an empty record if nothing is stored. Raises Damaged."""
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
        """Check the content of a stored file; return its record and whether the file has a digest. Raises Damaged."""
        path, kind = self.file(work), type(work).__name__.lower()
        with _named_damage(path, kind):
            document = json.loads(content)
            identity = document["identity" if work.in_folder else "cell"]
            if document["digest"] != work.digest or canonical(identity) != canonical(work.identity()):
                raise Damaged(_OF_ANOTHER.format(path=path, kind=kind))
            if work.in_folder:
                sealed = self._check_folder(path, document)
                return self._record_of(work, document), sealed
            assert isinstance(work, Cell | Run)
            return _record_in(document, path, work.row_sizes)

    def check(self, path: Path) -> bool:
        """Check the file of a cell or run whose identity is known from the file alone; return whether it has a digest. Raises Damaged,
        and OSError if it cannot be read.
        """
        content, kind = path.read_bytes(), "run" if path.parent.name == "runs" else "cell"
        with _named_damage(path, kind):
            document = json.loads(content)
            digest = content_digest(document["cell"])
            if document["digest"] != digest or not path.stem.endswith(f"-{digest[:16]}"):
                raise Damaged(_OF_ANOTHER.format(path=path, kind=kind))
            row_sizes = [None] if kind == "run" else cell_from(document["cell"]).row_sizes
            return _record_in(document, path, row_sizes)[1]

    def _record_of(self, work: Work, about: dict[str, Any]) -> Record:
        """Build the record of a trace or replay: one launch or a failure; empty if a required part is missing or has changed."""
        if about["failure"]:
            return Record(failure={"reason": about["failure"]}, about=about)
        if isinstance(work, Replay):
            if self.about(work.trace).get("calls_sha256") != about["calls_sha256"]:
                return Record()  # the replay belongs to a trace that no longer exists
            took = about["makespan_us"]
        else:
            if not (self.file(work).parent / "calls.csv.gz").exists():
                return Record()
            took = about["trace"]["seconds"] * 1e6
        launch = {"launch": 1, "samples": [{"latency_us": round(took, 3)}], "provenance": about["provenance"]}
        return Record((launch,), about=about)

    def _check_folder(self, path: Path, about: dict[str, Any]) -> bool:
        """Return whether *about* has digests of itself and its files. Raise Damaged if one, or the size of a file, differs."""
        if "content" not in about:
            return False  # written by an earlier version
        if about["content"] != content_digest(_content_of(about)):
            raise Damaged(f"{path}: its content was changed after it was written (the digest differs)")
        for name, file in about["files"].items():
            size = (path.parent / name).stat().st_size if (path.parent / name).is_file() else None
            if size != file["bytes"]:
                said = "is not there" if size is None else f"has {size} bytes, not {file['bytes']}"
                raise Damaged(f"{path.parent / name}: it {said}")
        return True

    def check_files(self, work: Work, content: bytes) -> None:
        """Check the digest of each file in the folder whose `about.json` is *content*. Raise Damaged if one differs."""
        for name, file in json.loads(content).get("files", {}).items():
            path = self.file(work).parent / name
            if file_digest(path) != file["sha256"]:
                raise Damaged(f"{path}: it was changed after it was written (its digest differs)")

    def about(self, work: Work) -> dict[str, Any]:
        """Return the content of `about.json` of a trace or a replay; {} if nothing valid is stored."""
        try:
            return self.read(work).about or {}
        except Damaged:
            return {}

    def keep(self, work: Work, stage: Path, about: dict[str, Any]) -> None:
        """Move a finished folder to its place in the store by renaming; previous content (a failure, another trace) is removed."""
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
        """Return the summary and time stamp (ns; 0 without a file) of each piece of work. A damaged file counts as missing.

        Files that have not changed since they were last read are not read again (cache: `memory`).
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
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ELOOP, errno.ENOTDIR):
                    raise
                found.append((Summary(seconds=self._seconds_of_variants(work)), 0))
                continue
            # ctime reveals a file that was changed in place and whose mtime was restored.
            key = [state.st_size, state.st_mtime_ns, state.st_ino, state.st_ctime_ns]
            entry = known.get(name)
            # Work with a prerequisite is always read again: the validity of a replay depends on its trace.
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
            # This is only a cache; a full disk, or a folder with this name, is reported elsewhere.
            with contextlib.suppress(OSError, StudyError), locked(self.memory.parent / ".locks" / "summaries.lock"):
                text = json.dumps(known | fresh, separators=(",", ":"))
                write_atomically(self.memory, text.encode(), sole_writer=True)
        return found

    def _seconds_of_variants(self, work: Work) -> float | None:
        """Return the mean duration of the stored launches of all variants of a program's run; None for all other work."""
        if not isinstance(work, Run):
            return None
        took: list[float] = []
        for path in self.results.glob(f"{glob.escape(work.variants_text)}*.json"):
            # A damaged file is reported elsewhere.
            with contextlib.suppress(AttributeError, KeyError, TypeError):
                took += [float(launch["provenance"]["seconds"]) for launch in read_json(path)["launches"]]
        return sum(took) / len(took) if took else None

    def set_aside(self, work: Work) -> Path | None:
        """Rename a damaged file or folder to `<name>.damaged-<n>` and return the new path; None if it no longer exists."""
        try:
            return set_aside(self.file(work).parent if work.in_folder else self.file(work))
        except FileNotFoundError:
            return None

    def write(self, cell: Cell | Run, record: Record, stop: str | None) -> None:
        """Store a record; the caller must hold the cell's lock. Raise ValueError if the record would be rejected when read."""
        check_record(record, cell.row_sizes)
        document = {
            "digest": cell.digest,
            "cell": cell.identity(),
            "stop": stop,
            "content": content_digest(record.content()),
            **record.content(),
        }
        content = json.dumps(document, indent=1).encode() + b"\n"
        write_atomically(self.file(cell), content, sole_writer=True)

    def block_lock(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Return a lock against other runners of the same block; `block_runs` tests it."""
        return locked(self.results / ".locks" / f"{name}.lock")

    def block_runs(self, name: str) -> bool:
        """Return whether a runner holds the lock of a block at this moment."""
        try:
            with open(self.results / ".locks" / f"{name}.lock") as stream:
                fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def lock(self, work: Work) -> contextlib.AbstractContextManager[None]:
        """Return a lock against other writers of the same cell, trace, replay or run."""
        return locked(self.results / ".locks" / f"{work.digest[:16]}.lock")
