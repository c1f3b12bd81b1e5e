"""Verification: which cells, which arms, what the verdicts are, and what is withdrawn."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from collstudy import openmpi, tune, tuning
from collstudy.cells import expand
from collstudy.config import ROOT, Configuration, Study
from collstudy.tuning import Rule
from test_cells import VERSIONS
from test_tuning import decisions

CONFIG = Configuration(ROOT / "config")


@pytest.fixture
def cell():
    study: Study = CONFIG.study("tuning")
    return next(c for c in expand(study, CONFIG.catalogue, VERSIONS) if c.algorithm == "default" and c.processes == 24)


def test_verified_counts_are_on_and_off_the_grid():
    found = tune.verified_counts([2, 4, 8, 16, 24, 32, 48])
    assert [count for count, on_grid in found if on_grid] == [4, 16, 24, 48]
    assert all(count not in (2, 4, 8, 16, 24, 32, 48) for count, on_grid in found if not on_grid)
    assert tune.verified_counts([2]) == [(2, True)]


def test_sizes_between_those_that_decided():
    assert tune.size_ranges((1, 1024)) == [((1, 1024), True), ((3, 1024), False)]
    assert tune.size_ranges((512, 1024)) == [((512, 1024), True)]
    assert tune.size_ranges(None) == [(None, True)]


def test_arms_are_cells_of_their_own_and_the_content_of_the_file_is_part_of_them(cell):
    default, tuned = tune.arms(cell, {"library": "a", "own": "b"}, 1)
    assert len({cell.digest, default.digest, tuned.digest}) == 3
    assert tuned.algorithm == "tuned"
    assert tuned.selection["library"] == {"COLL_BARRIER": cell.selection["library"]["COLL_BARRIER"]}
    assert tune.arms(cell, {"library": "c", "own": "b"}, 1)[1].digest != tuned.digest
    assert tune.arms(cell, {"library": "a", "own": "x"}, 1)[1].digest == tuned.digest
    real = replace(cell, machine={**cell.machine, "kind": "local"}, selection={})
    assert tune.arms(real, {"library": "a", "own": "b"}, 1)[1].selection["rules"]["text"] == "b"
    several = tune.arms(real, {"library": "a", "own": "b", "han": "h"}, 1)[1]
    told = openmpi.selection_arguments(several, None)
    assert [
        Path(told[told.index(f"coll_{name}_dynamic_rules_filename") + 1]).read_text() for name in ("tuned", "han")
    ] == ["b", "h"]
    assert "coll" not in told and several.digest != tune.arms(real, {"library": "a", "own": "b"}, 1)[1].digest


def verified(placement, processes, size, default, tuned):
    table = placement.tables["bcast"]
    rule = tuning.selected(table, processes, size)
    return tune.Verified(placement, "bcast", processes, size, True, rule, default, tuned)


@pytest.mark.parametrize(
    "default, tuned, word",
    [
        ([10.0], [8.0], "faster"), ([10.0], [9.95], "tie"), ([8.0], [10.0], "slower"),
        ([10, 10, 10], [8, 9, 12], "tie"), ([10, 11, 10], [8, 9, 8], "faster"),
    ],
)  # fmt: skip
def test_verdicts(default, tuned, word):
    (placement,) = tuning.placements(decisions({8: {1: "linear"}}))
    assert verified(placement, 8, 1, default, tuned).verdict(2) == word


def tuner(rows, folder):
    fake = SimpleNamespace(folder=folder, decisions=rows, withdrawn=set(), tie_pct=2)
    fake._hit = lambda *a, **k: tune.Tuner._hit(fake, *a, **k)
    return fake


def test_a_rule_slower_on_average_goes_with_all_its_cells(tmp_path):
    rows = decisions({8: {1: "linear", 2: "linear", 4: "chain"}, 9: {1: "linear", 2: "linear", 4: "chain"}})
    (placement,) = tuning.placements(rows)
    fake = tuner(rows, tmp_path)
    tune.Tuner.withdraw(fake, [verified(placement, 9, 2, [10.0], [12.0]), verified(placement, 8, 4, [10.0], [8.0])])
    assert fake.withdrawn == {("bcast", "core", 2, p, s) for p in (8, 9) for s in (1, 2)}
    (again,) = tuning.placements(rows, fake.withdrawn)
    assert again.tables["bcast"][8][0] == Rule(0, "default")
    assert "linear" in (tmp_path / "tables" / "tuning-withdrawn.csv").read_text()


def test_of_a_rule_faster_on_average_only_the_slower_cell_goes(tmp_path):
    rows = decisions({8: {1: "linear", 2: "linear"}})
    (placement,) = tuning.placements(rows)
    fake = tuner(rows, tmp_path)
    tune.Tuner.withdraw(fake, [verified(placement, 8, 1, [10.0], [2.0]), verified(placement, 8, 3, [10.0], [12.0])])
    assert fake.withdrawn == {("bcast", "core", 2, 8, 2)}
