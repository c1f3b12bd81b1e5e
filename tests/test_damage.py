"""Stored data is what was measured: any damage is detected and set aside and measured again, or reported in one sentence."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from collstudy.base.errors import StudyError
from collstudy.project.status import stale_lock
from collstudy.store.records import Damaged, Record, Summary
from collstudy.store.store import Store
from collstudy.study.cells import Cell
from conftest import Checkout
from made_cells import cells_of
from test_store import launch

PROOF = {"used": True, "placed": True, "detail": "", "component": "tuned", "binding": []}


@pytest.fixture
def cell(checkout: Checkout) -> Cell:
    return cells_of(checkout)[0]


def stored(cell: Cell, folder: Path, content: bool = True) -> Path:
    """Write a cell's file with three launches; without *content*, as by earlier versions, without a digest of the measurements."""
    store = Store(folder)
    store.write(cell, Record(tuple(launch(cell, n, 1.0 + n / 8) for n in (1, 2, 3)), PROOF), None)
    path = store.file(cell)
    if not content:
        document = json.loads(path.read_text())
        del document["content"]
        path.write_text(json.dumps(document))
    return path


def change(path: Path, edit: Callable[[dict[str, Any]], Any]) -> None:
    document = json.loads(path.read_text())
    edit(document)
    path.write_text(json.dumps(document))


def put(name: str, value: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda document: document["launches"][0]["samples"][3].__setitem__(name, value)


def exchange(document: dict[str, Any]) -> None:
    samples = document["launches"][0]["samples"]
    samples[0], samples[1] = samples[1], samples[0]


#: Damage that no measurement can contain; it is found even without a digest.
IMPOSSIBLE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "text": put("latency_us", "fast"),
    "null": put("latency_us", None),
    "bool": put("latency_us", True),
    "negative": put("latency_us", -1.0),
    "nan": put("latency_us", math.nan),
    "infinite": put("min_latency_us", math.inf),
    "list": put("latency_us", [1.0]),
    "missing": lambda d: d["launches"][0]["samples"][3].pop("latency_us"),
    "other size": put("size_bytes", 3),
    "launch twice": lambda d: d["launches"].append(d["launches"][0]),
    "sizes exchanged": exchange,
    "size lacking": lambda d: d["launches"][0]["samples"].pop(),
    "samples a text": lambda d: d["launches"][0].__setitem__("samples", "x" * 11),
    "samples of numbers": lambda d: d["launches"][0].__setitem__("samples", [1.0] * 11),
    "launches a mapping": lambda d: d.__setitem__("launches", {"1": 2}),
    "launch a number": lambda d: d["launches"].__setitem__(0, 7),
    "no launch number": lambda d: d["launches"][0].pop("launch"),
    "no provenance": lambda d: d["launches"][0].pop("provenance"),
    "provenance a text": lambda d: d["launches"][0].__setitem__("provenance", "x"),
    "seconds a text": lambda d: d["launches"][0].__setitem__("provenance", {"seconds": "long"}),
    "library a list": lambda d: d["launches"][0].__setitem__("library", []),
    "empty proof": lambda d: d.__setitem__("proof", {}),
    "proof a list": lambda d: d.__setitem__("proof", [1]),
    "failure without reason": lambda d: d.__setitem__("failure", {}),
    "no failure": lambda d: d.pop("failure"),
    "another cell": lambda d: d["cell"].__setitem__("processes", 3),
}
#: Damage that only the digest of the measurements reveals.
POSSIBLE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "one digit": put("latency_us", 1.124),
    "latencies exchanged": lambda d: [put("latency_us", 1.25)(d), d["launches"][1]["samples"][3].update(latency_us=1.125)],
    "a launch less": lambda d: d["launches"].pop(),
    "another proof": lambda d: d["proof"].__setitem__("used", False),
}  # fmt: skip


@pytest.mark.parametrize("damage", [*IMPOSSIBLE, *POSSIBLE])
def test_changed_content_is_found_and_set_aside(cell: Cell, tmp_path: Path, damage: str) -> None:
    path = stored(cell, tmp_path)
    change(path, {**IMPOSSIBLE, **POSSIBLE}[damage])
    store = Store(tmp_path)
    with pytest.raises(Damaged) as caught:
        store.read(cell)
    assert path.name in str(caught.value) and "\n" not in str(caught.value)
    assert store.summaries([cell]) == [(Summary(), 0)]
    assert store.set_aside(cell) and store.read(cell) == Record()


@pytest.mark.parametrize("damage", IMPOSSIBLE)
def test_a_file_of_an_earlier_version_is_checked_for_range(cell: Cell, tmp_path: Path, damage: str) -> None:
    path = stored(cell, tmp_path, content=False)
    assert len(Store(tmp_path).read(cell).launches) == 3
    change(path, IMPOSSIBLE[damage])
    with pytest.raises(Damaged):
        Store(tmp_path).read(cell)


def test_a_file_of_an_earlier_version_gets_its_digest_when_it_is_written_again(cell: Cell, tmp_path: Path) -> None:
    path, store = stored(cell, tmp_path, content=False), Store(tmp_path)
    record = store.read(cell)
    store.write(cell, Record((*record.launches, launch(cell, 4)), record.proof), None)
    assert len(json.loads(path.read_text())["content"]) == 64
    change(path, POSSIBLE["one digit"])
    with pytest.raises(Damaged, match="the digest differs"):
        store.read(cell)


def test_what_could_not_be_read_again_is_not_written(cell: Cell, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="launch 1: latency_us is nan"):
        Store(tmp_path).write(cell, Record((launch(cell, 1, math.nan),)), None)
    assert not Store(tmp_path).file(cell).exists()


@pytest.mark.parametrize("kind", ["folder", "loop", "empty", "cut", "deep", "binary", "number", "huge number"])
def test_something_else_in_place_of_a_cells_file(cell: Cell, tmp_path: Path, kind: str) -> None:
    path = stored(cell, tmp_path)
    content = path.read_bytes()
    path.unlink()
    if kind == "folder":
        path.mkdir()
        (path / "x").touch()
    elif kind == "loop":
        path.symlink_to(path.name)
    else:
        others = {"empty": b"", "cut": content[: len(content) // 2], "deep": b"[" * 100_000, "binary": b"\xff\x00"}
        path.write_bytes((others | {"number": b"7", "huge number": b"9" * 10_000})[kind])
    store = Store(tmp_path)
    with pytest.raises(Damaged):
        store.read(cell)
    assert store.summaries([cell]) == [(Summary(), 0)]
    assert store.set_aside(cell) is not None
    assert store.read(cell) == Record()
    store.write(cell, Record((launch(cell, 1),)), None)
    assert len(store.read(cell).launches) == 1


def test_a_change_in_place_with_the_old_time_stamp_is_seen(cell: Cell, tmp_path: Path) -> None:
    path, store = stored(cell, tmp_path), Store(tmp_path)
    assert store.summaries([cell])[0][0].count == 3
    before = path.stat()
    with open(path, "r+b") as stream:
        content = stream.read()
        stream.seek(content.index(b"1.125"))
        stream.write(b"1.124")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns, after.st_ino) == (before.st_size, before.st_mtime_ns, before.st_ino)
    assert Store(tmp_path).summaries([cell]) == [(Summary(), 0)]


@pytest.mark.parametrize("memory", ["null", "[]", "7", '"x"', "{", "[" * 100_000, "{}", "entries"])
def test_the_memory_of_summaries_may_be_anything(cell: Cell, tmp_path: Path, memory: str) -> None:
    stored(cell, tmp_path)
    expected = Store(tmp_path).summaries([cell])
    path = tmp_path / ".summaries.json"
    entries = {cell.path_text: [None] * 9}
    path.write_text(json.dumps(entries) if memory == "entries" else memory)
    assert Store(tmp_path).summaries([cell]) == expected


def test_a_folder_in_place_of_the_memory_of_summaries(cell: Cell, tmp_path: Path) -> None:
    stored(cell, tmp_path)
    (tmp_path / ".summaries.json").mkdir()
    assert Store(tmp_path).summaries([cell])[0][0].count == 3


def test_a_folder_where_a_lock_should_be(cell: Cell, tmp_path: Path) -> None:
    store = Store(tmp_path)
    lock = tmp_path / ".locks" / f"{cell.digest[:16]}.lock"
    lock.mkdir(parents=True)
    with (
        pytest.raises(StudyError, match=rf"{lock.name}.*remove it: a lock file belongs in its place"),
        store.lock(cell),
    ):
        pass
    (tmp_path / ".locks" / "block.lock").mkdir()
    assert store.block_runs("block") is False


def test_a_file_where_the_locks_should_be(cell: Cell, tmp_path: Path) -> None:
    (tmp_path / ".locks").touch()
    with pytest.raises(StudyError, match="a lock file belongs in its place"), Store(tmp_path).lock(cell):
        pass
    assert Store(tmp_path).block_runs("block") is False


@pytest.mark.parametrize("owner", ["{}", "[]", "null", "7", '{"host": 1}', '{"host": "x", "pid": {}}', "[" * 100_000])
def test_a_note_of_the_run_that_says_nothing(tmp_path: Path, owner: str) -> None:
    (tmp_path / ".snakemake" / "locks").mkdir(parents=True)
    (tmp_path / ".snakemake" / "locks" / "0.input.lock").touch()
    (tmp_path / ".snakemake" / "collstudy-run.json").write_text(owner)
    assert "the holder of this folder's lock is unknown" in (stale_lock(tmp_path) or "")
