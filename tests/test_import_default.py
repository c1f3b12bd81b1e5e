"""Import checks that compare algorithms with the library's default."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from collstudy.project.studies import Project
from collstudy.sources.imported_rows import add_what_ran
from collstudy.sources.importing.checking.findings import Finding
from collstudy.sources.importing.checking.of_default import exchanged_labels, other_units
from collstudy.sources.importing.reading import read_all
from collstudy.sources.importing.series import Launches
from collstudy.study.description import Imported
from conftest import reference_data
from made_rows import Rows, found, given, scaled, series, sound


def not_forced(rows: Rows) -> list[Finding]:
    """Return the algorithms that have the times of the default."""
    return [finding for finding in found(rows).get("wrong algorithm", []) if "not forced" in finding.found]


def test_an_algorithm_that_was_not_forced() -> None:
    """The default is a binomial tree for small and a chain for large messages; of "chain", all launches were the default's."""
    default = [
        row | {"algorithm": "default"} for row in sound(seed=4, algorithms=("binomial", "chain"))
        if row["algorithm"] == ("binomial" if row["size_bytes"] <= 4096 else "chain")
    ]  # fmt: skip
    assert not_forced(sound() + default) == []
    rng = random.Random(6)
    rest = sound(algorithms=("linear", "binomial", "binary_tree"))
    again = [row | {"algorithm": "chain"} | scaled(rng.gauss(1, 0.015))(row) for row in default]
    findings = not_forced(rest + default + again)
    assert {finding.where for finding in findings} == series("chain")
    assert {finding.confidence for finding in findings} == {"possible"}


def test_a_default_that_always_chooses_an_algorithm_accuses_nobody() -> None:
    """From 8 to 255 ranks, Open MPI's default gather is the binomial one."""
    gathers = [
        row | {"collective": "gather"} for row in sound(algorithms=("binomial", "linear")) if row["processes"] >= 8
    ]
    again = sound(seed=7, algorithms=("binomial",))
    default = [row | {"collective": "gather", "algorithm": "default"} for row in again if row["processes"] >= 8]
    assert "wrong algorithm" not in found(gathers + default)
    linear = given(default, algorithm="linear")
    assert "wrong algorithm" in found([row for row in gathers if row["algorithm"] == "binomial"] + linear + default)


def default_of(rows: Rows) -> Rows:
    """Return times of Open MPI 4.1's default broadcast, where it runs an algorithm of *rows*."""
    chosen = [
        (16, 32, 4096, 1 << 20, "binomial"), (8, 16, 16384, 32768, "binomial"), (32, 64, 1, 2048, "binomial"),
        (8, 16, 8, 64, "binary_tree"),
        (8, 16, 4096, 16384, "binary_tree"), (8, 16, 32768, 1 << 30, "linear"),
    ]  # fmt: skip
    rng = random.Random(11)
    return [
        row | {"algorithm": "default"} | scaled(rng.gauss(1, 0.015))(row)
        for least, below, first, end, algorithm in chosen
        for row in rows
        if row["algorithm"] == algorithm and least <= row["processes"] < below and first <= row["size_bytes"] < end
    ]


def exchanged(rows: Rows, one: str, two: str) -> Rows:
    """Return rows with two labels exchanged."""
    names = {one: two, two: one}
    return [row | {"algorithm": names.get(row["algorithm"], row["algorithm"])} for row in rows]


def test_two_labels_that_are_exchanged() -> None:
    rows = sound() + default_of(sound(seed=5))
    assert "wrong algorithm" not in found(rows) and "wrong algorithm" not in found(given(rows, parameters="x=1"))
    for one, two, expected in (
        ("binomial", "binary_tree", {"bcast binary_tree and binomial", "bcast binomial and binary_tree"}),
        ("binomial", "chain", {"bcast binomial and chain"}),
    ):
        findings = found(exchanged(rows, one, two))["wrong algorithm"]
        assert {finding.where for finding in findings} == expected
        assert all("labels are exchanged" in finding.found and finding.confidence == "likely" for finding in findings)
        assert "wrong algorithm" not in found(exchanged(rows, one, two), mpi="MPICH")
    # Nothing else shows that this is the default of Open MPI 4.1.
    two = exchanged(
        [row for row in rows if row["algorithm"] in ("binary_tree", "chain", "default")], "binary_tree", "chain"
    )
    assert [finding.confidence for finding in found(two)["wrong algorithm"]] == ["possible"]


def test_the_default_of_another_library_accuses_nobody() -> None:
    """It always is a binomial tree, also where that of Open MPI is binary or linear."""
    rows = sound()
    other = given([row for row in sound(seed=5) if row["algorithm"] == "binomial"], algorithm="default")
    assert [f for f in found(rows + other).get("wrong algorithm", []) if "exchanged" in f.found] == []


FACTORS = [*((1, factor) for factor in (1 / 8, 1 / 4, 1 / 2, 2, 4, 8)), (1 / 2, 1), (2, 1)]


def moved(rows: Rows, ranks: float, sizes: float) -> Rows:
    """Return rows with other numbers of ranks and sizes."""
    return [
        row | {"processes": row["processes"] * ranks, "size_bytes": row["size_bytes"] and row["size_bytes"] * sizes}
        for row in rows
    ]


@pytest.mark.parametrize(("ranks", "sizes"), FACTORS)
def test_sizes_and_ranks_of_another_unit(ranks: float, sizes: float) -> None:
    """In elements, or threads: only the library's default has an absolute scale."""
    rows = sound() + default_of(sound(seed=5))
    assert units(rows) == []
    (finding,) = units(moved(rows, ranks, sizes))
    assert (finding.check, finding.where) == ("processes" if ranks != 1 else "sizes", "bcast default")
    factor = f"{1 / (ranks * sizes):g}"
    assert f"decision tables name for {factor} times the {'bytes' if ranks == 1 else 'ranks'}, in " in finding.found


def units(rows: Rows) -> list[Finding]:
    """Return the findings of this check alone."""
    return list(other_units(Launches(rows).timed().medians()))


@pytest.mark.parametrize("study", ["orfeo-thin", "orfeo-epyc"])
def test_labels_of_other_authors_that_are_exchanged(study: str) -> None:
    """The algorithms that the default of Open MPI 4.1 runs at many numbers of ranks are found under another name."""
    reference_data()
    of: dict[tuple[str, str], Rows] = {}
    for row in rows_of(study):
        of.setdefault((row["source"], row["collective"]), []).append(row)
    known = {
        ("fantuzzi", "barrier"): {"recursive_doubling"}, ("fantuzzi", "bcast"): {"binary_tree", "linear"},
        ("mzampar", "bcast"): {"binary_tree", "binomial"}, ("zappia", "scatter"): {"binomial", "linear_nb"},
        ("derin", "bcast"): {"binomial"}, ("derin", "reduce"): {"binomial"}, ("tallone", "bcast"): {"binomial", "linear"},
        ("tallone", "reduce"): {"binary"},
    }  # fmt: skip
    tried = 0
    for place in known.keys() & of.keys():
        assert accused(of[place]) == []
        names = sorted({row["algorithm"] for row in of[place]} - {"default"})
        for one, two in itertools.combinations(names, 2):
            findings = accused(exchanged(of[place], one, two))
            assert bool(findings) == bool({one, two} & known[place]), (place, one, two)
            assert all({one, two} == set(finding.where.split(" ", 2)[2].split(" and ")) for finding in findings)
            tried += 1
    assert tried == (22 if study == "orfeo-thin" else 15)


@pytest.mark.parametrize("study", ["orfeo-thin", "orfeo-epyc"])
def test_data_of_other_authors_in_another_unit(study: str) -> None:
    """Without another study of the machine."""
    reference_data()
    rows = rows_of(study)
    assert units(rows) == []
    for factors in FACTORS:
        assert units(moved(rows, *factors)) != [], factors


def rows_of(study: str) -> Rows:
    """Return the rows of a study that it does not leave out."""
    project = Project()
    rows, _ = read_all(project.study(study), project.context.catalogue)
    return [row for row in rows if "left_out" not in row]


def accused(rows: Rows) -> list[Finding]:
    """Return the findings of this check alone."""
    return list(exchanged_labels(Launches(rows).timed().medians()))


def ran(rows: Rows, versions: tuple[str, ...] = ("4.1.5", "4.1.6"), **said: Any) -> dict[tuple[str, int, int], str]:
    """Return what ran under another name: by algorithm, ranks and size."""
    rows = [row | {"parameters": row.get("parameters", "")} for row in rows]
    said = {"mpi": "Open MPI", "mpi_version": versions[0]} | said
    add_what_ran(Imported(({}, {"mpi_version": versions[1]}), **said), rows)
    return {(row["algorithm"], row["processes"], row["size_bytes"]): row["runs"] for row in rows if "runs" in row}


def test_what_a_default_runs_under_another_name() -> None:
    rows = [row for row in sound() if row["processes"] in (2, 16)]
    default = given([row for row in rows if row["algorithm"] == "binomial"], algorithm="default")
    found = ran(rows + default)
    assert (found["default", 16, 4096], found["default", 16, 1 << 20]) == ("binomial", "scatter_allgather")
    assert {key[0] for key in found if key[1] == 16} == {"default"}
    # Between two ranks, all trees send one message.
    assert {key[0] for key in found if key[1] == 2} == {"default", "chain", "binomial", "binary_tree"}
    assert {found[key] for key in found if key[0] == "chain"} == {"linear"}
    assert ran(given(rows + default, parameters="segment_bytes=8192")) == {}
    for other in (
        {"mpi": "MPICH"}, {"versions": ("4.1.5", "5.0.7")}, {"versions": ("unknown", "4.1.6")},
        {"printed": {"bcast": {"linear": "Linear"}}},
    ):  # fmt: skip
        assert ran(rows + default, **other) == {}


@pytest.mark.parametrize("launch", [1, 2])
def test_a_default_with_other_times_is_that_of_another_library(launch: int) -> None:
    """Launches of one algorithm are numbered over all authors, so an author's own may have different numbers."""
    rows = [row for row in sound() if row["processes"] == 16]
    default = [row | {"algorithm": "default"} | scaled(0.5)(row) for row in rows if row["algorithm"] == "binomial"]
    assert ran(rows + given(default, launch=launch)) == {}


def test_a_default_with_the_times_of_another_algorithm_is_not_merged() -> None:
    """Where the tables of 4.1 name a binary tree, it has the times of the binomial one, which differ little from those of all others."""
    rows = [row | scaled(0.9)(row) if row["algorithm"] == "binary_tree" else row for row in sound()]
    default = default_of(sound(seed=5))
    assert {key[0] for key in ran(rows + default) if key[1] > 2} == {"default"}
    names = {name for key, name in ran(rows + default).items() if key[0] == "default"}
    assert names >= {"binomial", "binary_tree"}
    other = exchanged(rows, "binomial", "binary_tree") + default
    assert [finding.found for finding in found(other)["wrong algorithm"] if "another library" in finding.found]
    assert {key[0] for key in ran(other) if key[1] > 2} == set()
