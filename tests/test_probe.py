"""The drafted machine file: hwloc's topologies, sinfo's lines, and validity of the draft."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest
from collstudy.base.errors import StudyError
from collstudy.cli import probe
from collstudy.study.config import Configuration
from conftest import Checkout, finish, must


def xml_of(synthetic: str) -> str:
    program = shutil.which("lstopo-no-graphics") or shutil.which("lstopo")
    if program is None:
        pytest.skip("no lstopo (hwloc)")
    environment = {**os.environ, "HWLOC_SYNTHETIC": synthetic}
    return must(finish([program, "--of", "xml"], env=environment)).stdout


@pytest.mark.parametrize(
    ("synthetic", "levels"),
    [
        ("pack:2 numa:1 l3:1 core:12 pu:1", [("socket", 2), ("core", 12)]),
        ("pack:2 numa:4 l3:4 core:4 pu:2", [("socket", 2), ("numa", 4), ("ccx", 4), ("core", 4)]),
        ("pack:1 l3:2 core:4 pu:1", [("socket", 1), ("ccx", 2), ("core", 4)]),
    ],
)
def test_levels_of_hwloc(synthetic: str, levels: list[tuple[str, int]]) -> None:
    assert probe.topology(xml_of(synthetic)) == levels


def test_levels_of_lscpu_without_hwloc() -> None:
    text = """{"lscpu": [{"field": "CPU(s):", "data": "128", "children": [{"field": "Socket(s):", "data": "2"},
      {"field": "Core(s) per socket:", "data": "64"}]}, {"field": "NUMA node(s):", "data": "8"}]}"""
    assert probe.topology_of_lscpu(text) == [("socket", 2), ("numa", 4), ("core", 16)]


def test_the_default_partition_is_first() -> None:
    found = probe.partitions("EPYC|8|2|64|1|epyc,ib|3-00:00:00\nTHIN*|12|2|12|1|(null)|1-00:00:00\n")
    assert [(p.name, p.nodes, p.cores, p.features) for p in found] == [("THIN", 12, 12, ""), ("EPYC", 8, 64, "epyc,ib")]


def fake(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IEXEC)


def test_a_draft_is_a_valid_machine(checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machines = checkout.folder / "config" / "machines"
    programs = tmp_path / "bin"
    programs.mkdir()
    fake(programs, "sinfo", "exit 1")
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    probe.write("plain", machines)
    fake(programs, "sinfo", "echo 'THIN*|2|2|12|1|(null)|1-00:00:00'")
    monkeypatch.setenv("HWLOC_SYNTHETIC", "pack:2 numa:2 l3:1 core:6 pu:1")
    probe.write("cluster", machines)
    configuration = Configuration(checkout.folder / "config")
    assert configuration.machine("plain").kind == "local"
    drafted = configuration.machine("cluster")
    assert (drafted.kind, drafted.nodes, drafted.slurm["partition"]) == ("slurm", 2, "THIN")
    assert drafted.cores_per_node == 24
    with pytest.raises(StudyError, match="exists"):
        probe.write("cluster", machines)


def test_a_failed_draft_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "run", lambda command: "")
    with pytest.raises(StudyError, match="neither lstopo"):
        probe.write("mine", tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_draft_for_a_host_named_by_a_number(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    """Containers are named by hexadecimal digits."""
    monkeypatch.setattr(probe.platform, "node", lambda: "123456789012")
    probe.write("container", checkout.folder / "config" / "machines")
    assert Configuration(checkout.folder / "config").machine("container").label == "123456789012"
