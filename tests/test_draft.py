"""A study of one's own to begin with, and studies that use all cores that there are."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from collstudy.base.errors import StudyError
from collstudy.cli.main import main
from collstudy.project.studies import Project
from collstudy.study import machines
from collstudy.study.machines import Level
from collstudy.study.sweeps import expand_ranks

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A configuration of one's own."""
    shutil.copytree(ROOT / "config", tmp_path / "config")
    monkeypatch.setenv("COLLSTUDY_CONFIG", str(tmp_path / "config"))
    return tmp_path / "config" / "studies"


def test_new_writes_a_study_that_can_be_read_and_its_text(folder, capsys):
    assert main(["new", "mine"]) == 0
    assert str(folder / "mine.yaml") in capsys.readouterr().out
    assert Project().configuration.study("mine").sweeps[0].collective == "bcast"
    assert "results/mine/tables/index.csv" in (folder / "mine.qmd").read_text(encoding="utf-8")


def test_new_leaves_what_is_there(folder, capsys):
    (folder / "mine.qmd").write_text("my words", encoding="utf-8")
    assert main(["new", "mine"]) == 2
    assert "mine.qmd: there already" in capsys.readouterr().err
    assert (folder / "mine.qmd").read_text(encoding="utf-8") == "my words" and not (folder / "mine.yaml").exists()
    assert main(["new", "../mine"]) == 2
    assert "cannot be called" in capsys.readouterr().err


@pytest.mark.parametrize(("cores", "ranks"), [(1, (2,)), (2, (2,)), (4, (2, 4)), (6, (2, 4, 6)), (16, (2, 4, 8, 16))])
def test_cores_are_always_among_the_ranks(cores, ranks):
    assert expand_ranks({"from": 2, "to": "cores", "factor": 2}, cores, "here") == ranks


@pytest.mark.parametrize("cores", [1, 2, 4, 16])
def test_this_machine_uses_its_cores(folder, monkeypatch, cores):
    levels = (Level("node", 1), Level("socket", 1), Level("core", cores))
    monkeypatch.setattr(machines, "local_levels", lambda: levels)
    sweeps = Project().configuration.study("this-machine").sweeps
    assert {sweep.processes[-1] for sweep in sweeps} == {max(2, cores)}
    if cores == 1:
        with pytest.raises(StudyError, match="it needs 2 cores, and this machine has 1"):
            Project().available(["this-machine"], explicit=False)
