"""The published folder: complete, verified by its checksums, analysed again without measuring, measured again and compared."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest
import yaml
from conftest import IMPORTED, TINY, Checkout, finish, must
from made_runs import MEASURED, run


def published(checkout: Checkout, *targets: str, cells: int = 4) -> Path:
    """Measure, publish and unpack; return the unpacked package. With *targets*, nothing else is made, and the report is empty."""
    run(checkout, *targets)
    if targets:
        checkout.write("results/report/index.html", "<html></html>")
        checkout.write("results/report/report.pdf", "%PDF-1.7")
    done = must(checkout.collstudy("--results", "results", "publish", "--to", "publish"))
    assert f"1 study, {cells} cell files" in done.stdout
    folder = checkout.folder / "publish"
    shutil.unpack_archive(folder / "data-package.zip", folder)
    return folder / "data-package"


def assert_valid_crate(package: Path) -> None:
    """Validate the crate by the rules of RO-Crate and of workflows in it. The context, which the validator would download, is replaced
    by the one in ro-crate-py, with the names of version 1.1.
    """
    script = """
import sys, requests, rocrate
from pathlib import Path
from rocrate_validator import services
from rocrate_validator.utils.http import HttpRequester

context = (Path(rocrate.__file__).parent / "data" / "ro-crate.jsonld").read_bytes()

def get(self, url, **_):
    assert url == "https://w3id.org/ro/crate/1.1/context", url
    response = requests.Response()
    response.status_code, response.url = 200, url
    response._content = context.replace(b"bioschemas.org/terms/", b"bioschemas.org/")
    response.headers["Content-Type"] = "application/ld+json"
    return response

HttpRequester.get = get
found = services.validate(services.ValidationSettings(rocrate_uri=sys.argv[1], profile_identifier="workflow-ro-crate-1.0"))
print([(issue.check.identifier, issue.message) for issue in found.get_issues()])
sys.exit(not found.passed())
"""
    # The validator cannot convert a path with a blank to a URI.
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(package, Path(folder) / "crate", symlinks=True)
        command = [sys.executable, "-c", script, Path(folder) / "crate"]
        done = finish(command)
    assert done.returncode == 0, done.stdout + done.stderr


def test_package(checkout: Checkout) -> None:
    header = "section,order,text,claim,shown_in\n"
    claim = "Linear | default differ.,TRUE,figures/a.svg;tables/a.csv\n"
    checkout.write(
        "results/tiny/sentences.csv", f"{header}answer,1,{claim}bcast,1,{claim}how,1,It was measured.,FALSE,\n"
    )
    decided = "tuning,1,Linear is decided.,TRUE,tables/tuning-regret.csv\n"
    checkout.write("results/tiny/tuning/sentences.csv", header + decided)
    package = published(checkout, MEASURED)
    site = package.parent
    assert {p.name for p in site.iterdir()} >= {"index.html", "report.pdf", "data-package.zip", "SHA256SUMS", ".github"}
    for folder in (package, site):
        subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=folder, check=True)
    crate = json.loads((package / "ro-crate-metadata.json").read_text())
    parts = {entry["@id"]: entry for entry in crate["@graph"]}
    kept_to = [profile["@id"] for profile in parts["ro-crate-metadata.json"]["conformsTo"]]
    assert kept_to == ["https://w3id.org/ro/crate/1.1", "https://w3id.org/workflowhub/workflow-ro-crate/1.0"]
    assert {"results/tiny/measurements.csv", "Snakefile", "config/studies/tiny.yaml", "versions.json"} <= set(parts)
    assert all((package / part["@id"]).exists() for part in parts["./"]["hasPart"])
    assert_valid_crate(package)
    # Authors and version agree in all files.
    cited = yaml.safe_load((package / "CITATION.cff").read_text())
    codemeta = json.loads((package / "codemeta.json").read_text())
    zenodo = json.loads((package / ".zenodo.json").read_text())
    names = [author["name"] for author in cited["authors"]]
    assert names and names == [author["name"] for author in codemeta["author"]]
    assert names == [author["name"] for author in zenodo["creators"]]
    assert zenodo["description"] == "Data package of the study tiny."
    assert cited["version"] == codemeta["version"] == zenodo["version"] == parts["./"]["version"]
    assert str(cited["date-released"]) == codemeta["dateModified"] == zenodo["publication_date"]
    appendix = (package / "ARTIFACT.md").read_text()
    assert appendix.count("`./study run tiny ") == 1 and "\n### A tiny study (tiny)\n" in appendix
    claims = [line for line in appendix.splitlines() if line.startswith("| Linear")]
    assert claims == [
        "| Linear \\| default differ. | `figures/a.svg`, `tables/a.csv` | `./study reanalyse tiny` |",
        "| Linear is decided. | `tables/tuning-regret.csv` | `./study run tiny` |",
    ]
    assert "It was measured" not in appendix
    # The package is a checkout with complete cells: nothing is measured there.
    (package / ".study").symlink_to(checkout.folder / ".study")
    environment = {**os.environ, "PYTHONPATH": str(package / "workflow")}
    os.chmod(package / "study", 0o755)
    again = finish(["snakemake", "-n", MEASURED], cwd=package, env=environment)
    assert again.returncode == 0 and "to simulate" not in again.stderr + again.stdout


@pytest.mark.long
def test_a_package_has_the_launches_that_verify_tuning_files(checkout: Checkout) -> None:
    """A run in the package measures nothing, and judges the files alike."""
    checkout.write("config/studies/tiny.yaml", TINY + "analysis: {tuning: {}}\n")
    target = "results/tiny/tuning/sentences.csv"
    run(checkout, target)
    stored = {path.name for path in (checkout.folder / "results" / "cells" / "bcast").iterdir()}
    package = published(checkout, target, cells=len(stored))
    assert {path.name for path in (package / "results" / "cells" / "bcast").iterdir()} == stored
    (package / ".study").symlink_to(checkout.folder / ".study")
    environment = {**os.environ, "PYTHONPATH": str(package / "workflow")}
    verification = package / "results" / "tiny" / "tables" / "tuning-verification.csv"
    before = verification.read_bytes()
    must(finish(["python", "-m", "collstudy", "verify"], cwd=package, env=environment))
    done = must(finish(["snakemake", target], cwd=package, env=environment))
    assert "cells verified" in done.stdout and verification.read_bytes() == before
    assert not list((package / "results" / "blocks").glob("*.done"))


@pytest.mark.long
def test_companions_are_published_with_their_study(checkout: Checkout) -> None:
    """The report has a chapter of each companion."""
    run(checkout, MEASURED)
    checkout.write("config/studies/tiny2.yaml", TINY + "companions: [tiny, absent]\n")
    checkout.write("config/studies/absent.yaml", TINY)
    for name in ("tiny2", "report"):
        shutil.copytree(checkout.folder / "results" / "tiny", checkout.folder / "results" / name)
    for name in ("index.html", "report.pdf"):
        checkout.write(f"results/report/{name}", "")
    done = must(checkout.collstudy("--results", "results", "publish", "tiny2"))
    assert "2 studies, 4 cell files" in done.stdout
    with zipfile.ZipFile(checkout.folder / "publish" / "data-package.zip") as package:
        names = package.namelist()
    assert {f"data-package/results/{name}/measurements.csv" for name in ("tiny", "tiny2")} <= set(names)


@pytest.mark.long
def test_imported_data_keep_their_source_and_licence(checkout: Checkout) -> None:
    checkout.write("config/config.yaml", "studies: [theirs]\nresults: results\n")
    checkout.write("config/studies/theirs.yaml", IMPORTED)
    checkout.write("config/data.yaml", "somebodys: {source: 'https://example.org/data', licence: MIT}\n")
    checkout.write("data/somebodys/LICENSE", "MIT License\n")
    data = checkout.write("data/somebodys/bcast.csv", "Processes,Size,Latency\n2,1,1.5\n2,2,1.6\n")
    package = published(checkout, "results/theirs/measurements.csv", cells=0)
    digest = hashlib.sha256(data.read_bytes()).hexdigest()
    header, row = (package / "imported.csv").read_text().splitlines()
    assert header == "file,sha256,studies,source,licence"
    assert row == f"somebodys/bcast.csv,{digest},theirs,https://example.org/data,MIT"
    assert (package / "licences" / "somebodys" / "LICENSE").read_text() == "MIT License\n"
    parts = {entry["@id"]: entry for entry in json.loads((package / "ro-crate-metadata.json").read_text())["@graph"]}
    (based,) = parts["results/theirs/measurements.csv"]["isBasedOn"]
    assert_valid_crate(package)
    assert parts[based["@id"]]["url"] == "https://example.org/data" and "MIT" in parts[based["@id"]]["description"]


@pytest.mark.long
def test_measured_again_and_compared(checkout: Checkout) -> None:
    run(checkout, MEASURED)
    run(checkout, "--config", "results=again", "--", "again/tiny/measurements.csv")
    done = checkout.collstudy("compare", "results", "again")
    assert "tiny: 44 of 44 points measured again; 44 identical, 100 % within 10 %; median ratio 1.000" in done.stdout


def test_not_complete(checkout: Checkout) -> None:
    done = checkout.collstudy("--results", "results", "publish", "tiny")
    assert done.returncode == 2 and "; first ./study run tiny\n" in done.stderr


def test_results_that_were_changed_by_hand_are_not_published(checkout: Checkout) -> None:
    run(checkout, MEASURED)
    for name in ("index.html", "report.pdf"):
        checkout.write(f"results/report/{name}", "")
    path = checkout.folder / MEASURED
    path.write_text(path.read_text().replace(",1,1,0.", ",1,1,1.", 1))
    done = checkout.collstudy("--results", "results", "publish", "tiny")
    assert done.returncode == 2
    assert done.stderr == f"error: not as it was made: tiny: {MEASURED} was changed; first ./study run tiny\n"
    assert not (checkout.folder / "publish").exists()


def test_damaged_cells_are_not_published(checkout: Checkout) -> None:
    """./study verify and the reader of the package would find them."""
    run(checkout, MEASURED)
    for name in ("index.html", "report.pdf"):
        checkout.write(f"results/report/{name}", "")
    for path in (checkout.folder / "results" / "cells" / "bcast").iterdir():
        path.write_text(path.read_text() + " x")
    done = checkout.collstudy("--results", "results", "publish", "tiny")
    assert done.returncode == 2 and done.stderr.count("damaged: ") == 3
    assert done.stderr.endswith("; 1 more; first ./study run tiny\n")


@pytest.mark.long
def test_analysed_again_without_measuring(checkout: Checkout) -> None:
    package = published(checkout)
    (package / ".study").symlink_to(checkout.folder / ".study")
    for name in ("tables", "figures", "models"):
        assert (package / "results" / "tiny" / name / "index.csv").exists()
    before = {
        p: p.read_bytes() for folder in ("tiny/tables", "front") for p in (package / "results" / folder).glob("*.csv")
    }
    for name in ("front/text.csv", "report/index.html"):
        (package / "results" / name).unlink()
    # Simulate another machine: another folder, user and locale.
    other = package.parents[1].parent / "somewhere else"
    package.rename(other)
    elsewhere = {
        "HOME": str(other),
        "USER": "somebody",
        "LOGNAME": "somebody",
        "LANG": "C",
        "LC_ALL": "C",
        "TZ": "Asia/Tokyo",
    }
    environment = {**os.environ, "PYTHONPATH": str(other / "workflow"), **elsewhere}
    must(finish(["python", "-m", "collstudy", "reanalyse"], cwd=other, env=environment))
    assert (other / "results" / "report" / "sec-appendix.html").stat().st_size > 10000
    assert {p: (other / p.relative_to(package)).read_bytes() for p in before} == before
