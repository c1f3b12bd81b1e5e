"""Drafts of a user's own study, and studies that use all available cores."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from collstudy.base.errors import StudyError
from collstudy.cli.main import main
from collstudy.project.studies import Project
from collstudy.study import machines
from collstudy.study.document import shown
from collstudy.study.machines import Level
from collstudy.study.sweeps import Choice, expand_ranks
from conftest import ROOT


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """Return the studies folder of a separate configuration."""
    shutil.copytree(ROOT / "config", tmp_path / "config")
    monkeypatch.setenv("COLLSTUDY_CONFIG", str(tmp_path / "config"))
    return tmp_path / "config" / "studies"


def test_new_writes_a_study_that_can_be_read_and_its_text(folder, capsys):
    assert main(["new", "mine"]) == 0
    assert str(folder / "mine.yaml") in capsys.readouterr().out
    assert Project().configuration.study("mine").sweeps[0].collective == "bcast"
    assert "results/mine/tables/index.csv" in (folder / "mine.qmd").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("program: {command: \"mpirun -n 2 'x\", folder: /tmp}\nanalysis: {tuning: {}}", "program.command: No closing quotation: mpirun"),
        ("applications: [{name: x, label: x, command: \"ls 'x\", ranks: 2}]", "applications.0.command: No closing quotation: ls 'x"),
        ("applications: [{name: x, label: x, command: ' ', ranks: 2}]", "applications.0.command has no word"),
    ],
)  # fmt: skip
def test_commands_that_are_no_words(folder, capsys, text, said):
    """Also for commands that read all studies, such as `advise`."""
    (folder / "odd.yaml").write_text(f"title: t\nquestion: q\nmachine: this-machine\n{text}\n", encoding="utf-8")
    assert main(["check", "odd"]) == 2
    error = capsys.readouterr().err
    assert "odd.yaml, line 4: " in error and said in error


def test_messages_about_imports_name_the_study_in_use(folder, capsys):
    """The folder is that of COLLSTUDY_CONFIG."""
    data = "import: {files: [{path: /nowhere/a.csv, collective: bcast}]}"
    (folder / "theirs.yaml").write_text(f"title: t\nquestion: q\nmachine: orfeo-thin\n{data}\n", encoding="utf-8")
    assert main(["collect", "theirs"]) == 2
    error = capsys.readouterr().err
    assert f"error: {shown(folder / 'theirs.yaml')}: import.files: no file matches /nowhere/a.csv" in error, error


def test_verdict_and_measure_without_results(folder, tmp_path, capsys, monkeypatch):
    """The folder of the results is that of config.yaml; a block that is none is one message."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results" / "tiny").mkdir(parents=True)
    columns = "cell,collective,algorithm,mapping,processes,status,reason"
    (tmp_path / "results" / "tiny" / "cells.csv").write_text(f"{columns}\nc,bcast,chain,core,4,failed,crash\n")
    shutil.copy(folder / "this-machine.yaml", folder / "tiny.yaml")
    assert main(["verdict", "tiny"]) == 1
    assert "failed: tiny: bcast chain mapping core processes 4: crash" in capsys.readouterr().err
    assert main(["measure", "none.json", "--log", "log"]) == 2
    assert capsys.readouterr().err.startswith("error: none.json: not the file of a block: ")


def test_new_leaves_what_is_there(folder, capsys):
    (folder / "mine.qmd").write_text("my words", encoding="utf-8")
    assert main(["new", "mine"]) == 2
    assert "mine.qmd: already exists" in capsys.readouterr().err
    assert (folder / "mine.qmd").read_text(encoding="utf-8") == "my words" and not (folder / "mine.yaml").exists()
    assert main(["new", "../mine"]) == 2
    assert "cannot be called" in capsys.readouterr().err


TRACED = """
title: Traced
question: Does it work?
machine: this-machine
applications:
  - {name: one, label: One, command: "true", ranks: 4}
  - {name: other, label: Other, command: "true", ranks: 4}
chapter: congestion
"""
ACCOUNT = """application,ranks,communicators,operation,size_bytes,operations,gain_pct,spread_us,transfer_us,typical_bytes
One,4,1,bcast,4096,3,0.5,1,5,5000
One,4,1,allreduce,8,10,2,1,5,8
One,2,2,allreduce,64,10,1,1,5,64
One,4,1,barrier,0,1,0.3,1,5,0
One,4,1,scatterv,4096,1,9,1,5,4096
One,4,1,gather,64,1,0.001,1,5,64
Other,4,1,alltoall,16,1,7,1,5,16
"""


@pytest.fixture
def traced(folder, tmp_path, monkeypatch) -> list[str]:
    """Write a study with an account of its applications; return the arguments that name it."""
    levels = (Level("node", 1), Level("socket", 1), Level("core", 4))
    monkeypatch.setattr(machines, "local_levels", lambda: levels)
    (folder / "traced.yaml").write_text(TRACED, encoding="utf-8")
    tables = tmp_path / "results" / "traced" / "tables"
    tables.mkdir(parents=True)
    (tables / "account-cells.csv").write_text(ACCOUNT, encoding="utf-8")
    return ["--results", str(tmp_path / "results"), "new", "drafted", "--cells-of", "traced"]


def test_new_drafts_the_cells_of_an_application_most_to_gain_first(traced):
    assert main([*traced, "--application", "one", "--budget", "2.5"]) == 0
    study = Project().configuration.study("drafted")
    # No benchmark calls scatterv, and gather takes too little time to matter.
    assert [(sweep.collective, sweep.processes) for sweep in study.sweeps] == [
        ("allreduce", (2,)), ("allreduce", (4,)), ("bcast", (4,)), ("bcast", (4,)), ("barrier", (4,)),
    ]  # fmt: skip
    assert [sweep.sizes for sweep in study.sweeps] == [(64, 64), (8, 8), (5000, 5000), (5000, 5000), None]
    assert study.sweeps[3].algorithms == (Choice("chain", (("fanout", 2),)),)
    assert {"default", "recursive_doubling", "ring"} <= {choice.name for choice in study.sweeps[0].algorithms}
    assert "tuning" in study.analysis and study.source.sampling.budget_node_minutes == 2.5


REPLAYED = """
application,machine,ranks,operation,size_bytes,gain_pct,spread_us,transfer_us,typical_bytes
One,thin,48,allreduce,8,5,1,5,8
One,thin,48,bcast,65536,2,900,5,70000
Other,thin,48,barrier,0,1,40,5,0
Other,thin,48,alltoall,256,3,1,5,300
"""


@pytest.mark.parametrize(("ranks", "calls", "by_topology"), [(24, 3, []), (48, 3, ["node"]), (256, 2, ["node"])])
def test_drafts_of_all_to_alls_limit_the_messages(traced, folder, tmp_path, ranks, calls, by_topology):
    machine = "orfeo-epyc" if ranks == 256 else "thin"
    text = TRACED.replace("chapter:", f"replay: {{machines: [{machine}], ranks: {ranks}}}\nchapter:")
    (folder / "traced.yaml").write_text(text, encoding="utf-8")
    rows = f"One,{machine},{ranks},alltoallv,8,5,0,5,8\n"
    (tmp_path / "results" / "traced" / "tables" / "gain-cells.csv").write_text(
        REPLAYED.lstrip().splitlines()[0] + "\n" + rows
    )
    assert main(traced) == 0
    (sweep,) = Project().configuration.study("drafted").sweeps
    assert (sweep.iterations, [choice.name for choice in sweep.algorithms][3:]) == (calls, by_topology)


def test_new_drafts_the_cells_of_replays_for_the_machine_of_these(traced, folder, tmp_path, capsys):
    text = TRACED.replace("chapter:", "replay: {machines: [thin], ranks: 48}\nchapter:")
    (folder / "traced.yaml").write_text(text, encoding="utf-8")
    assert main(traced) == 2
    assert "no replays of One or Other; ./study run traced makes them" in capsys.readouterr().err
    (tmp_path / "results" / "traced" / "tables" / "gain-cells.csv").write_text(REPLAYED.lstrip())
    assert main(traced) == 0
    study = Project().configuration.study("drafted")
    assert study.machine.name == "thin" and study.analysis == {"tuning": {}}
    assert {(sweep.collective, sweep.processes, sweep.sizes) for sweep in study.sweeps} >= {
        ("allreduce", (48,), (8, 8)), ("alltoall", (48,), (300, 300)), ("bcast", (48,), (70000, 70000)),
        ("barrier", (48,), None),
    }  # fmt: skip
    # Ranks arrive like the program's, except for a rooted collective.
    assert {(sweep.collective, sweep.barrier, sweep.spread_us, sweep.iterations) for sweep in study.sweeps} == {
        ("allreduce", "default", 1, 10), ("alltoall", "default", 1, 10), ("bcast", "aligned", None, 3),
        ("barrier", "default", 32, 10),
    }  # fmt: skip
    # The algorithms that can be simulated and exist in Open MPI, and by topology those that two nodes of one group have.
    alltoall = next(sweep for sweep in study.sweeps if sweep.collective == "alltoall")
    assert [choice.name for choice in alltoall.algorithms] == ["default", "linear", "pairwise", "bruck", "node"]
    # Also for the study whose decisions are to be replayed.
    Project().configuration.study_path("drafted").unlink()
    text = text.replace("ranks: 48}", "ranks: 48, decisions: drafted, traces: 2}")
    (folder / "traced.yaml").write_text(text, encoding="utf-8")
    assert main([*traced, "--application", "one"]) == 0
    assert {sweep.collective for sweep in Project().configuration.study("drafted").sweeps} == {"allreduce", "bcast"}
    assert Project().configuration.study("traced").source.replay.decisions == "drafted"


@pytest.mark.parametrize("option", [("--budget", "5"), ("--application", "one")])
def test_options_of_an_applications_cells_alone_are_an_error(folder, capsys, option):
    assert main(["new", "mine", *option]) == 2
    assert f"{option[0]} needs --cells-of" in capsys.readouterr().err
    assert not (folder / "mine.yaml").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "study traced has several applications: choose one with --application; known: one, other"),
        (["--application", "two"], "study traced has no application 'two'; known: one, other"),
        (["--cells-of", "this-machine"], "study this-machine traces no applications"),
    ],
)
def test_cells_that_cannot_be_drafted_are_explained(traced, capsys, words, message):
    assert main([*traced, *words]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("budget", ["0", "-5", "nan"])
def test_a_budget_is_a_number_above_0(traced, folder, capsys, budget):
    with pytest.raises(SystemExit):
        main([*traced, "--application", "one", f"--budget={budget}"])
    assert f"argument --budget: {budget!r} is not a number above 0" in capsys.readouterr().err
    assert not (folder / "drafted.yaml").exists()


def test_cells_need_an_account_with_something_to_gain(traced, tmp_path, capsys):
    path = tmp_path / "results" / "traced" / "tables" / "account-cells.csv"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], lines[5]]))
    assert main([*traced, "--application", "one"]) == 2
    assert "One calls no collective that can be measured and has algorithms to choose from" in capsys.readouterr().err
    path.unlink()
    assert main([*traced, "--application", "one"]) == 2
    assert "One was not analysed yet; ./study run traced does it" in capsys.readouterr().err


def test_an_account_of_an_earlier_version_is_written_again(traced, tmp_path, capsys):
    path = tmp_path / "results" / "traced" / "tables" / "account-cells.csv"
    path.write_text("".join(line.rpartition(",")[0] + "\n" for line in ACCOUNT.splitlines()))
    assert main([*traced, "--application", "one"]) == 2
    assert "written by an earlier version; ./study run traced writes it again" in capsys.readouterr().err


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
        with pytest.raises(StudyError, match="it needs 2 cores; this machine has 1"):
            Project().available(["this-machine"], explicit=False)


def test_drafts_are_written_to_the_configuration_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another folder, which has no machines of its own: those of the checkout are known, too."""
    config, data = tmp_path / "config", tmp_path / "data"
    for folder in (config, data):
        folder.mkdir()
    (config / "config.yaml").write_text("studies: [theirs]\n")
    (data / "bcast_linear_core_np4.csv").write_text("size,latency (us)\n1,0.5\n2,0.6\n")
    monkeypatch.setenv("COLLSTUDY_CONFIG", str(config))
    assert main(["import", str(data), "--name", "theirs", "--machine", "orfeo-thin"]) == 0
    assert "does not exist" not in capsys.readouterr().err
    assert "machine: orfeo-thin\n" in (config / "studies" / "theirs.yaml").read_text()
    assert main(["probe", "mine"]) == 0
    assert "kind: " in (config / "machines" / "mine.yaml").read_text()
    assert not [path for path in ROOT.glob("config/*/*") if path.stem in ("theirs", "mine")]
