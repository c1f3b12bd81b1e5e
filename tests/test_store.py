"""The cell store: atomic writes, no loss of data; damage is in test_damage.py."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import os
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
from collstudy.base import files
from collstudy.base.errors import StudyError
from collstudy.base.files import write_atomically
from collstudy.base.statistics import interval_width_pct, median_interval
from collstudy.sources.verifying import Pair, VerifyingSource
from collstudy.store.records import Record
from collstudy.store.store import Store
from collstudy.study.cells import Cell
from collstudy.study.description import Policy
from conftest import Checkout
from made_cells import cells_of


@pytest.fixture
def cell(checkout: Checkout) -> Cell:
    return cells_of(checkout)[0]


def launch(cell: Cell, number: int, latency: float = 1.0) -> dict:
    samples = [{"size_bytes": size, "latency_us": latency} for size in cell.size_list]
    return {"launch": number, "samples": samples, "provenance": {}}


def test_round_trip(cell: Cell, tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.read(cell) == Record()
    record = Record((launch(cell, 1),), None, None)
    store.write(cell, record, "deterministic")
    assert store.read(cell) == record


def test_a_write_that_was_killed_leaves_nothing_after_the_next(cell: Cell, tmp_path: Path) -> None:
    store, record = Store(tmp_path), Record((launch(cell, 1),))
    writer = os.fork()
    if writer == 0:
        os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        store.write(cell, record, None)
    os.waitpid(writer, 0)
    folder = store.file(cell).parent
    assert len(list(folder.glob(".*.tmp"))) == 1 and store.read(cell) == Record()
    store.write(cell, record, None)
    assert list(folder.iterdir()) == [store.file(cell)]


def test_a_writer_of_the_cache_that_was_killed_leaves_nothing_after_the_next(cell: Cell, tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(cell, Record((launch(cell, 1),)), None)
    writer = os.fork()
    if writer == 0:
        os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        store.summaries([cell])
    os.waitpid(writer, 0)
    assert len(list(tmp_path.glob(".*.tmp"))) == 1 and not store.memory.exists()
    assert store.summaries([cell])[0][0].count == 1
    assert store.memory.exists() and not list(tmp_path.glob(".*.tmp"))


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    write_atomically(path, b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_early_stopping(cell: Cell) -> None:
    measured = dataclasses.replace(cell, machine={**cell.machine, "kind": "local"})
    policy = Policy(3, 5, 10.0)

    def record(*latencies: float) -> Record:
        return Record(tuple(launch(cell, i + 1, value) for i, value in enumerate(latencies)))

    assert Record((launch(cell, 1),)).stop(cell, policy) == "deterministic"
    assert record(1.0, 1.0).stop(measured, policy) is None
    assert record(1.0, 1.01, 1.02).stop(measured, policy) == "narrow"
    assert record(1.0, 1.01, 1.5).stop(measured, policy) is None
    assert record(1.0, 1.01, 1.5, 2, 3).stop(measured, policy) == "limit"


def test_median_interval() -> None:
    assert median_interval([1.0]) is None
    # n = 5: the range covers the median with 93.75 %; n = 10: [x2, x9] with 97.9 %; n = 20: [x6, x15] with 95.9 %.
    assert median_interval([1, 2, 3, 4, 5]) == (1, 5)
    assert median_interval(list(range(1, 11))) == (2, 9)
    assert median_interval(list(range(1, 21))) == (6, 15)
    assert interval_width_pct([1.0, 1.0, 1.1]) == pytest.approx(10.0)


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK])
def test_a_file_system_without_locks_is_one_message(
    cell: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """As Lustre that is mounted without the option flock."""

    def flock(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files.fcntl, "flock", flock)
    store = Store(tmp_path)
    said = r"\.lock: .*: its file system has no locks between processes \(flock\)"
    with pytest.raises(StudyError, match=said), store.lock(cell):
        pass
    with contextlib.suppress(StudyError), store.block_lock("one"):
        pass
    assert not store.block_runs("one")


def test_a_damaged_cell_that_verified_a_tuning_file_has_failed(cell: Cell, tmp_path: Path) -> None:
    """Damaged between its block and the rule `keep_tuning`, it was a traceback in this run and all later ones."""
    store = Store(tmp_path)
    tuned = dataclasses.replace(cell, algorithm="tuned")
    for one in (cell, tuned):
        store.write(one, Record((launch(one, 1),)), None)
    path = store.file(tuned)
    document = json.loads(path.read_text())
    document["launches"][0]["samples"][0]["latency_us"] = 1.5
    path.write_text(json.dumps(document))
    source = object.__new__(VerifyingSource)
    source.context = SimpleNamespace(store=store)
    pair = Pair(None, cell.collective, 1, cell.processes, True, cell, tuned, cell.processes)
    source.pairs = lambda: [pair]
    assert list(source.verified(pair)) == []
    (failure,) = source.failures()
    assert failure["algorithm"] == "tuned" and "the digest differs" in failure["reason"]
