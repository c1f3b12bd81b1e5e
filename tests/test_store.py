"""The cell store: atomic writes, no loss of data; damage is in test_damage.py."""

from __future__ import annotations

import dataclasses
import os
import signal
from pathlib import Path

import pytest
from collstudy.base.files import write_atomically
from collstudy.base.statistics import interval_width_pct, median_interval
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
