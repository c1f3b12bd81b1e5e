"""Import checks on other authors' data with known faults."""

from __future__ import annotations

import pytest
from collstudy.base.paths import ROOT
from collstudy.project.studies import Project
from collstudy.sources.importing.checking import checks
from collstudy.sources.importing.checking.agreement import agreement_of
from collstudy.sources.importing.reading import read_all
from collstudy.study.config import Configuration
from conftest import reference_data
from made_rows import Rows, found


@pytest.fixture(scope="module")
def published() -> dict[str, tuple[Rows, dict[str, int]]]:
    """Return rows and problems of the studies with other authors' data."""
    reference_data()
    project = Project()
    studies = {}
    for name in ("orfeo-thin-published", "orfeo-thin", "orfeo-epyc", "leonardo"):
        rows, account = read_all(project.study(name), project.context.catalogue)
        studies[name] = (rows, account["problems"])
    return studies


def test_other_authors_data(published: dict[str, tuple[Rows, dict[str, int]]]) -> None:
    """Under the original file names, the faults in data/README.md are found, and nothing else is reported."""
    thin, problems = published["orfeo-thin"]
    naive = [
        row | ({"algorithm": "linear"} if row["file"] == "bcast_linear.csv" and row["source"] == "mzampar" else {})
        for row in thin
    ]
    naive = [{key: value for key, value in row.items() if key != "left_out"} for row in naive]
    findings = found(naive, problems=problems)
    # A launch 22 times slower than its neighbours (138 us beside 6 us) is a true finding, too.
    slow = [(finding.where, finding.action) for finding in findings.pop("outlier")]
    assert slow == [("mzampar: bcast chain, by core", "kept, also in means; analysis.leave_out can exclude it")]
    assert set(findings) == {"wrong algorithm", "sources disagree", "placed on a single node"}
    assert {finding.where for finding in findings["wrong algorithm"]} == {"mzampar: bcast linear"}
    assert [finding.where for finding in findings["placed on a single node"]] == ["zappia: bcast chain, by node"]
    assert {finding.where.split(":")[0] for finding in findings["sources disagree"]} == {
        "bcast chain, by node", "bcast linear, by core", "bcast linear, by node", "bcast linear, by socket"
    }  # fmt: skip
    # With the names that the study assigns.
    findings = found(thin, problems=problems)
    assert set(findings) == {"sources disagree", "placed on a single node", "outlier"}
    warned = [finding for finding in (*findings["sources disagree"], *findings["placed on a single node"])]
    assert all(finding.action.startswith("left out by the study") for finding in warned)

    printed, problems = published["orfeo-thin-published"]
    findings = found(printed, {"orfeo-thin": thin}, problems)
    assert set(findings) == {"equal digit by digit", "outlier"}
    assert {finding.where for finding in findings["equal digit by digit"]} == {
        "barrier default", "barrier linear", "barrier recursive_doubling", "barrier tree"
    }  # fmt: skip
    naive = [row | ({"algorithm": "linear"} if row["algorithm"] == "binomial" else {}) for row in printed]
    assert {finding.where for finding in found(naive)["wrong algorithm"]} == {"bcast linear"}


def test_other_machines_data(published: dict[str, tuple[Rows, dict[str, int]]]) -> None:
    """On the EPYC nodes only the mapping by socket is noisy, and three launches are slow; for Leonardo nothing is found."""
    for name, machine, expected in (
        ("orfeo-epyc", "orfeo-epyc-nodes", {"noise", "outlier"}),
        ("leonardo", "leonardo", set()),
    ):
        rows, problems = published[name]
        findings = checks.check(rows, problems, Configuration(ROOT / "config").machine(machine), {})
        assert {finding.check for finding in findings} == expected, findings
        assert all(finding.where.endswith("by socket") for finding in findings if finding.check == "noise")
        assert sum(finding.check == "outlier" for finding in findings) == (3 if expected else 0)
        assert not any(row.get("flag") for row in rows)


def test_other_authors_agreement(published: dict[str, tuple[Rows, dict[str, int]]]) -> None:
    rows, _ = published["orfeo-thin"]
    found = agreement_of([row for row in rows if "left_out" not in row])
    of = {(r["algorithm"], r["mapping"], r["sources"]): r["median_abs_difference_pct"] for r in found}
    assert all(1.4 <= value <= 3 for value in of.values()), of
    assert of["default", "core", "fantuzzi and mzampar"] == pytest.approx(2.5, abs=0.01)
