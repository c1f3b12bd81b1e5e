"""Cells that an accuracy study calls held out are those of algorithms to which its machine was not fitted, under any name."""

from __future__ import annotations

import math

import pytest
from collstudy.base.paths import ROOT
from collstudy.sources.decisions import decisions
from collstudy.study.config import Configuration
from collstudy.study.document import read_yaml


def algorithms_of_default(collective: str, processes: list[int]) -> set[str]:
    """Return what Open MPI's default runs without a message size, by the decision tables that simulations use."""
    tables = decisions(collective)
    return {next(row["algorithm"] for row in tables if count < (row["ranks"] or math.inf)) for count in processes}


@pytest.mark.parametrize("name", ["simulation-accuracy", "simulation-accuracy-epyc", "simulation-leonardo"])
def test_an_algorithm_that_the_fitted_default_ran_is_not_held_out(name: str) -> None:
    configuration = Configuration(ROOT / "config")
    study = configuration.study(name)
    block = read_yaml(configuration.machine_path(study.machine.name), "machine")["calibration"]
    used = block.get("exchanges") or {"bcast": block["algorithms"], "barrier": block["barriers"]}
    used = {collective: set(names) for collective, names in used.items() if names}
    if "default" in used.get("barrier", ()):
        used["barrier"] |= algorithms_of_default("barrier", block["processes"])
    fitted = study.analysis["compare"]["fitted"]
    assert {collective: set(names) for collective, names in fitted.items()} == used
