"""The collectives library's layers: which files and folders call each other, from the symbols of the built objects."""

from __future__ import annotations

import re
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from collstudy.study.checks import library_algorithms
from conftest import ROOT, finish, must, tool
from test_coll_library import ALGORITHMS, build

COLL = ROOT / "workflow" / "native" / "coll"
#: A folder may call only itself and the folders before it.
FOLDERS = ("core", "algorithms", "interface")


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("layers"), tool("smpicc", "SMPICC"), "all")


@pytest.fixture(scope="module")
def calls(objects: Path) -> dict[str, set[str]]:
    """Return, for each object file (`core/cache`), the files that define the symbols it needs."""
    defined: dict[str, str] = {}
    needed: dict[str, set[str]] = defaultdict(set)
    for path in sorted(objects.glob("*/*.o")):
        file = str(path.relative_to(objects).with_suffix(""))
        needed[file] = set()
        listed = must(finish(["nm", "--extern-only", "-P", path])).stdout
        for symbol, kind, *_ in (line.split() for line in listed.splitlines()):
            if kind == "U":
                needed[file].add(symbol)
            else:
                assert defined.setdefault(symbol, file) == file, f"{symbol} is defined twice"
    return {file: {defined[symbol] for symbol in needed[file] & set(defined)} for file in needed}


def includes() -> dict[str, set[str]]:
    """Return, for each source and header, the headers of this library that it includes."""
    found = {}
    for path in COLL.glob("*/*.[ch]"):
        if path.parent.name in FOLDERS:
            names = re.findall(r'^#include "(\w+/[\w.]+)"', path.read_text(encoding="utf-8"), re.MULTILINE)
            found[str(path.relative_to(COLL))] = set(names)
    return found


def acyclic(graph: dict[str, set[str]]) -> None:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a cycle: {' -> '.join(error.args[1])}")


def upwards(graph: dict[str, set[str]]) -> list[tuple[str, str]]:
    rank = {folder: depth for depth, folder in enumerate(FOLDERS)}
    return [(a, b) for a in graph for b in graph[a] if rank[a.split("/")[0]] < rank[b.split("/")[0]]]


def test_every_source_is_in_the_graph_of_calls(calls: dict[str, set[str]]) -> None:
    sources = {
        str(path.relative_to(COLL).with_suffix("")) for folder in FOLDERS for path in (COLL / folder).glob("*.c")
    }
    assert set(calls) == sources
    assert sum(map(len, calls.values())) > 20


def test_no_file_calls_in_a_circle(calls: dict[str, set[str]]) -> None:
    acyclic({file: of - {file} for file, of in calls.items()})


def test_a_folder_calls_only_those_below_it(calls: dict[str, set[str]]) -> None:
    assert upwards(calls) == []


def test_includes_go_the_same_way() -> None:
    graph = includes()
    acyclic(graph)
    assert upwards(graph) == []


def test_a_circle_is_seen() -> None:
    with pytest.raises(pytest.fail.Exception, match="a cycle: "):
        acyclic({"a": {"b"}, "b": {"c"}, "c": {"a"}})
    assert upwards({"core/a": {"algorithms/b"}, "interface/c": {"core/a"}}) == [("core/a", "algorithms/b")]


def test_the_results_of_every_algorithm_are_tested() -> None:
    for collective, known in library_algorithms().items():
        tested = {text.split(":")[0] for text in ALGORITHMS[collective.upper()].split()}
        # With `aligned`, all ranks leave at the same time, which only works in the simulator: see test_workflow.py.
        assert set(known) - {"aligned"} == tested
