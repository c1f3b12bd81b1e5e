"""A study that gathers the measurements of other studies: the atlas."""

import pytest
from collstudy.base.errors import StudyError
from conftest import csv_rows

ROWS = "Algorithm,Processes,Size,Latency\ndefault,4,1,1.5\ndefault,4,2,2.5\nchain,4,1,1.0\nchain,4,2,2.0\n"
MEMBER = """\
title: One
question: What?
machine: theirs
import:
  files:
    - path: {path}
      collective: bcast
      columns: {{algorithm: Algorithm, processes: Processes, size_bytes: Size, latency_us: Latency}}
      constants: {{mapping: core}}
      algorithms: {{default: default, chain: chain}}
"""
ATLAS = "title: All\nquestion: Where?\nmachine: theirs\nchapter: atlas\ngather: [one, two]\n"


@pytest.fixture
def project(checkout):
    checkout.write("config/machines/theirs.yaml", "kind: imported\nlabel: Theirs\nlevels: [{name: core, count: 4}]\n")
    data = checkout.write("data/one.csv", ROWS)
    checkout.write("config/studies/one.yaml", MEMBER.format(path=data))
    checkout.write("config/studies/two.yaml", MEMBER.format(path=data.parent / "not-here.csv"))
    checkout.write("config/studies/all.yaml", ATLAS)
    return checkout.project


def test_rows_of_the_studies_that_can_be_had_keep_their_names(project):
    project.source("one").collect()
    gathered = project.source("all")
    assert gathered.inputs() == [project.results / "one" / "measurements.csv"]
    gathered.collect()
    rows = csv_rows(project.results / "all" / "measurements.csv")
    assert [row["study"] for row in rows] == ["one"] * 4
    assert sorted(float(row["latency_us"]) for row in rows) == [1.0, 1.5, 2.0, 2.5]


def test_the_studies_come_along_and_what_is_not_here_is_named(project):
    sources, left_out = project.available(["all"], explicit=True)
    assert [source.study.name for source in sources] == ["all", "one"]
    assert len(left_out) == 1 and "study two is left out: no file matches" in left_out[0]


def test_its_status_does_not_call_it_imported(project, checkout):
    """The studies that it gathers may have been measured here."""
    printed = checkout.collstudy("status", "all").stdout.splitlines()
    assert printed[-2:] == [f"{name}: imported or gathered data, nothing to measure" for name in ("all", "one")]


def test_a_chapter_without_studies_to_gather_is_refused(project, checkout):
    text = (checkout.folder / "config" / "studies" / "one.yaml").read_text()
    checkout.write("config/studies/three.yaml", text + "chapter: atlas\n")
    with pytest.raises(StudyError, match="the chapter atlas needs studies to gather"):
        checkout.project.study("three")


@pytest.mark.parametrize("gathered", ["[one, two]", "[one, more]"])
def test_a_study_that_gathers_others_cannot_be_gathered(project, checkout, gathered):
    """Its rows would count twice, or two studies would gather each other for ever."""
    checkout.write("config/studies/all.yaml", ATLAS.replace("[one, two]", gathered))
    checkout.write("config/studies/more.yaml", ATLAS.replace("[one, two]", "[one, all]"))
    done = checkout.collstudy("status", "more")
    where = "config/studies/more.yaml, line 5: gather.1"
    assert (done.returncode, done.stderr) == (2, f"error: {where}: study 'all' gathers others; name these instead\n")
