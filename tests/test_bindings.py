"""Binding reports of Open MPI 4.1.4 and 5.0.11, recorded on two emulated nodes with 2 sockets x 12 cores."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from collstudy.launch.bindings import Binding, misplaced, parse_bindings

RECORDED = Path(__file__).parent / "data" / "bindings"
HOSTS = ["thin001", "thin002"]
#: (node, core) of ranks 0 to 9 for each mapping.
ASKED = {
    "core": [(0, core) for core in range(10)],
    "socket": [(0, 12 * (rank % 2) + rank // 2) for rank in range(10)],
    "bfnf": [(rank % 2, rank // 2) for rank in range(10)],
    "bfsf": [(rank % 2, 12 * (rank // 2 % 2) + rank // 4) for rank in range(10)],
}


def places(mapping):
    return [SimpleNamespace(node=node, core_of_node=core) for node, core in ASKED[mapping]]


@pytest.mark.parametrize("version", ["4.1.4", "5.0.11"])
@pytest.mark.parametrize("mapping", ASKED)
def test_rank_files_put_the_ranks_where_they_were_asked(version, mapping):
    bindings = parse_bindings((RECORDED / f"openmpi-{version}-rankfile-{mapping}.txt").read_text())
    assert [binding.rank for binding in bindings] == list(range(10))
    assert all(binding.socket == binding.core // 12 for binding in bindings)
    assert misplaced(bindings, places(mapping), HOSTS) == []


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*.txt")), ids=lambda path: path.stem)
def test_the_report_agrees_with_what_the_processes_themselves_saw(path):
    text = path.read_text()
    threads = 2 if "thread" in path.name else 1
    seen = re.findall(r"^rank (\d+) of \d+ on (\S+) cpus (\S+),", text, re.MULTILINE)
    bindings = {binding.rank: binding for binding in parse_bindings(text)}
    if "display-map" in path.name:
        assert not bindings
        return
    for rank, host, cpus in seen:
        binding = bindings[int(rank)]
        # The second node of these recordings has one thread per core.
        divisor = threads if host == "thin001" else 1
        assert binding.host == host
        if "unbound" in path.name:
            assert binding.cores == () and binding.socket is None and binding.core is None
        else:
            assert {core for _, core in binding.cores} == {int(cpu) // divisor for cpu in cpus.split(",")}


@pytest.mark.parametrize("version", ["4.1.4", "5.0.11"])
def test_several_cores_are_all_reported(version):
    bindings = parse_bindings((RECORDED / f"openmpi-{version}-three-cores-a-rank.txt").read_text())
    assert bindings[3] == Binding(3, "thin002", ((0, 3), (0, 4), (0, 5)))
    assert bindings[3].core is None and bindings[3].socket == 0


def test_the_default_binding_of_map_by_node_differs_between_the_versions():
    sockets = {}
    for version in ("4.1.4", "5.0.11"):
        bindings = parse_bindings((RECORDED / f"openmpi-{version}-map-by-node-default-binding.txt").read_text())
        sockets[version] = [binding.socket for binding in bindings]
    assert sockets == {"4.1.4": [0, 0, 1, 1, 0, 0, 1, 1], "5.0.11": [0] * 8}


def test_reports_of_older_5_0_without_the_letter():
    text = "[n1:7] Rank 0 bound to package[1][core:12-13]\n"
    assert parse_bindings(text) == [Binding(0, "n1", ((1, 12), (1, 13)))]


def test_every_kind_of_disagreement_is_named():
    text = "[thin001.x:1] Rank 0 bound to package[0][core:L0]\n[thin001:1] Rank 1 bound to package[0][core:L5]\n"
    text += "[thin002:1] Rank 2 is not bound (or bound to all available processors)\n"
    assert misplaced(parse_bindings(text), places("core")[:4], HOSTS) == [
        "rank 1: requested thin001 core 1, placed on thin001 core 5",
        "rank 2: requested thin001 core 2, not bound on thin002",
        "rank 3: requested thin001 core 3, not reported",
    ]
