"""The data package of irregular checkouts and results; tests/test_publish.py measures and publishes a study."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import pytest
import yaml
from collstudy.base.errors import StudyError
from collstudy.cli.main import main
from collstudy.project import made
from collstudy.publish import again, citation, package
from collstudy.store.described import read_study
from conftest import ROOT, finish, must


def small(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Write a checkout of few files, with results of a study of one cell; return the checkout and the results."""
    checkout, results = folder / "checkout", folder / "results"
    for module in (package, citation):
        monkeypatch.setattr(module, "ROOT", checkout)
    # Looking for programs takes seconds.
    monkeypatch.setattr(package, "info", dict)
    files = {
        checkout / "CITATION.cff": (ROOT / "CITATION.cff").read_text(),
        checkout / "config" / "config.yaml": "studies: [other]\n",
        checkout / "config" / "studies" / "mine.yaml": "title: Mine\n",
        checkout / "data" / "table.csv": "a\n1\n",
        results / "report" / "index.html": "<html></html>",
        results / "report" / "report.pdf": "%PDF-1.7",
        results / "mine" / "study.json": json.dumps({"title": "Mine", "question": "Which?", "provenance": {}}),
        results / "mine" / "measurements.csv": "collective\n",
        results / "mine" / "cells.csv": "cell\n0123456789abcdef\n",
        results / "cells" / "bcast" / "linear_p2-0123456789abcdef.json": json.dumps({"launches": []}),
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return checkout, results


def packed(results: Path, target: Path) -> dict[str, str]:
    """Publish the study of `small`; return the text of each file of the package."""
    package.publish(results, ["mine"], target, {})
    with zipfile.ZipFile(target / "data-package.zip") as archive:
        names = [name for name in archive.namelist() if "ro-crate" not in name]
        return {name.removeprefix("data-package/"): archive.read(name).decode() for name in names}


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=Zoë Ångström", "-c", "user.email=zoe@example.org"]
    must(finish(["git", *identity, *arguments], cwd=folder))


@pytest.mark.parametrize("repository", [False, True])
def test_a_package_has_the_studies_that_nobody_committed(
    repository: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of ./study new are not in git, and a package in turn is no repository."""
    checkout, results = small(tmp_path, monkeypatch)
    if repository:
        (checkout / ".gitignore").write_text("*.o\n")
        git(checkout, "init")
        git(checkout, "add", "CITATION.cff", "config/config.yaml", ".gitignore")
        git(checkout, "commit", "-m", "Begin")
        (checkout / "config" / "built.o").write_text("")
    found = packed(results, tmp_path / "publish")
    assert {"config/studies/mine.yaml", "data/table.csv", "config/config.yaml", "CITATION.cff"} <= found.keys()
    assert (".gitignore" in found) == repository and "config/built.o" not in found


def test_a_package_has_traces_replays_and_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The analysis of an application reads its trace, and its runs are measurements as well."""
    _, results = small(tmp_path, monkeypatch)
    listed = {"cells.csv": "abc", "tuning/cells.csv": "e", "sampling/synchronised.csv": "0"}
    for name, digits in listed.items():
        (results / "mine" / name).parent.mkdir(exist_ok=True)
        (results / "mine" / name).write_text("\n".join(["cell", *(16 * digit for digit in digits)]) + "\n")
    mine = [
        "traces/app.x_here_p4-aaaaaaaaaaaaaaaa", "replays/app.x_there_core_p8-bbbbbbbbbbbbbbbb",
        "traces/app-v1.2_here_p4-cccccccccccccccc",
    ]  # fmt: skip
    others = [
        "traces/app.x_here_p4-aaaaaaaaaaaaaaaa.damaged-1", "traces/app_here_p4-dddddddddddddddd", "traces/.stage-aaaaaaaaaaaaaaaa",
    ]  # fmt: skip
    for folder in (*mine, *others):
        (results / folder / "log").mkdir(parents=True)
        (results / folder / "about.json").write_text(json.dumps({"provenance": {"seconds": 20}}))
        (results / folder / "log" / "calls.csv.gz").write_text("calls")
    run = {"launches": [{"provenance": {"seconds": 30}}]}
    (results / "runs").mkdir()
    for name in ("app-v1.2_here_p4_tuned-eeeeeeeeeeeeeeee", "app_here_p4_tuned-ffffffffffffffff"):
        (results / "runs" / f"{name}.json").write_text(json.dumps(run))
    (results / "cells" / "bcast" / "linear_p2-0000000000000000.json").write_text(json.dumps({"launches": []}))
    found = packed(results, tmp_path / "publish")
    stored = {"runs/app-v1.2_here_p4_tuned-eeeeeeeeeeeeeeee.json", "cells/bcast/linear_p2-0000000000000000.json"}
    stored |= {f"{folder}/{file}" for folder in mine for file in ("about.json", "log/calls.csv.gz")}
    kinds = ("traces/", "replays/", "runs/", "cells/")
    assert {name for name in found if name.startswith(tuple(f"results/{kind}" for kind in kinds))} == {
        f"results/{name}" for name in stored
    }
    assert "| Mine (mine) | `./study run mine -- --config results=again` | 1 min 30 s |" in found["ARTIFACT.md"]


def test_a_study_without_measurements_of_its_own_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have imported its data, or gathered the measurements of other studies."""
    _, results = small(tmp_path, monkeypatch)
    (results / "mine" / "cells.csv").write_text("cell\n")
    line = "| Mine (mine) | `./study reanalyse` | no measurements of its own (imported or gathered) |"
    assert line in packed(results, tmp_path / "publish")["ARTIFACT.md"].splitlines()


def test_data_that_may_not_be_redistributed_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their numbers are in measurements.csv, and the metadata for archives name only the licence of this project."""
    checkout, results = small(tmp_path, monkeypatch)
    (checkout / "config" / "data.yaml").write_text(
        "free: {source: a, licence: MIT}\nunfree: {source: b, licence: none seen}\n"
    )
    files = [
        tmp_path / folder / name
        for folder, name in (("free", "a.csv"), ("unfree", "a.csv"), ("unfree", "b.csv"), ("new", "a.csv"))
    ]
    for file in files:
        file.parent.mkdir(exist_ok=True)
        file.write_text("a\n")
    lines = package.publish(results, ["mine"], tmp_path / "publish", {"mine": files}, checkout / "config")
    told = (
        "no licence is known of imported data (new, unfree), whose numbers are in the package: ask their authors first"
    )
    assert told in lines
    assert not [line for line in package.publish(results, ["mine"], tmp_path / "publish", {}) if "licence" in line]


def test_a_package_agrees_with_its_digests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, results = small(tmp_path, monkeypatch)
    (results / "mine" / "tuning").mkdir()
    for name in ("README.md", "pending.txt"):
        (results / "mine" / "tuning" / name).write_text("text\n")
    (results / "mine" / "measurements.csv.damaged-1").write_text("x")
    for study, part in (("mine", "collect"), ("mine", "emit"), ("mine", "keep"), ("", "report")):
        made.note(results, study, part)
    packed(results, tmp_path / "publish")
    with zipfile.ZipFile(tmp_path / "publish" / "data-package.zip") as archive:
        archive.extractall(tmp_path)
    unpacked = tmp_path / "data-package" / "results"
    for folder in (unpacked, unpacked / "mine"):
        assert made.count(folder) and made.changed(folder) == {}
    assert not list(unpacked.rglob("*.damaged-*"))


def test_files_analysed_again_are_not_reported_as_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another version of R may write other bytes."""
    _, results = small(tmp_path, monkeypatch)
    table = results / "mine" / "tables" / "a.csv"
    table.parent.mkdir()
    table.write_text("1\n")
    (results / "mine" / "tables" / "index.csv").write_text("file\ntables/a.csv\n")
    made.note(results, "mine", "analyse")
    monkeypatch.setattr(again, "_call", lambda command, *_: table.write_text("1.0\n"))
    assert main(["--results", str(results), "reanalyse", "mine"]) == 0
    assert table.read_text() == "1.0\n" and made.changed(results / "mine") == {}


@pytest.mark.parametrize("name", ["measurements.csv", "cells.csv", "study.json"])
@pytest.mark.parametrize("text", ["coll", None])
def test_a_damaged_package_is_not_analysed(
    name: str, text: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would give tables and a report of fewer or other measurements. Nor are the studies before it, which takes minutes."""
    _, results = small(tmp_path, monkeypatch)
    shutil.copytree(results / "mine", results / "damaged")
    made.note(results, "damaged", "collect")
    path = results / "damaged" / name
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    monkeypatch.setattr(again, "_call", lambda command, *_: pytest.fail("analysed"))
    assert main(["--results", str(results), "reanalyse", "mine", "damaged"]) == 2
    assert str(path) in capsys.readouterr().err


def test_what_a_part_of_the_program_says_is_the_message() -> None:
    """Not the command of that part around it; of other failures, all output and the command."""
    for said, told in (("error: the package is old", "the package is old"), ("Killed", "failed:\nKilled\n")):
        with pytest.raises(StudyError) as raised:
            again._call(["sh", "-c", f"echo '{said}' >&2; exit 2"])
        assert str(raised.value) == told or ("sh -c" in str(raised.value) and str(raised.value).endswith(told))


def test_publishing_again_replaces_what_was_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder may be a repository, with files of its own. An interrupted run is continued by the next."""
    _, results = small(tmp_path, monkeypatch)
    theirs = tmp_path / "theirs.csv"
    theirs.write_text("a\n")
    (results / "report" / "report.html").write_text("<html></html>")
    (results / "report" / "figures" / "old").mkdir(parents=True)
    (results / "report" / "figures" / "old" / "a.svg").write_text("<svg/>")
    target = tmp_path / "publish"
    (target / ".stage" / "results").mkdir(parents=True)
    package.publish(results, ["mine"], target, {"mine": [theirs]})
    # The description is that of the package's files, which are not in this folder; earlier versions copied it.
    assert not (target / "ro-crate-metadata.json").exists()
    (target / "ro-crate-metadata.json").write_text("{}")
    git(target, "init")
    (target / "CNAME").write_text("example.org\n")
    before = {path.relative_to(target).as_posix() for path in target.rglob("*") if ".git" not in path.parts}
    gone = {"report.html", "figures/old/a.svg", "imported.csv", "ro-crate-metadata.json"}
    assert gone <= before
    (results / "report" / "report.html").unlink()
    (results / "report" / "figures" / "old" / "a.svg").unlink()
    said = package.publish(results, ["mine"], target, {})
    assert "report.html" not in said[0]
    after = {path.relative_to(target).as_posix() for path in target.rglob("*") if ".git" not in path.parts}
    assert after == before - gone
    sums = (target / "SHA256SUMS").read_text()
    assert ".git/" not in sums and ".github/workflows/pages.yml" in sums
    must(finish(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=target))
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(StudyError, match="is a file"):
        package.publish(results, ["mine"], file, {})
    assert file.read_text() == "mine"


def test_authors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of git, unless it has only the last commits; then those of CITATION.cff."""
    checkout, _ = small(tmp_path, monkeypatch)
    cited = [author.name for author in citation.read_citation().authors]
    git(checkout, "init")
    for message in ("One", "Two"):
        git(checkout, "commit", "--allow-empty", "-m", message)
    monkeypatch.setenv("LC_ALL", "C")
    for encoding in ("UTF-8", "latin1"):
        git(checkout, "config", "i18n.logOutputEncoding", encoding)
        assert [author.name for author in citation.read_citation().authors] == ["Zoë Ångström"]
    git(tmp_path, "clone", "--depth", "1", f"file://{checkout}", "shallow")
    shutil.copy(checkout / "CITATION.cff", tmp_path / "shallow")
    monkeypatch.setattr(citation, "ROOT", tmp_path / "shallow")
    assert [author.name for author in citation.read_citation().authors] == cited != []


def test_compared_points_are_of_one_study_and_library(tmp_path: Path) -> None:
    """An atlas has the same cell of several machines, and a study may measure two MPI libraries."""
    header = "study,mpi,collective,algorithm,parameters,mapping,nodes,processes,size_bytes,launch,latency_us\n"
    for folder, factor in (("a", 1), ("b", 2)):
        path = tmp_path / folder / "all" / "measurements.csv"
        path.parent.mkdir(parents=True)
        rows = [
            f"{of},bcast,default,,core,1,2,8,1,{us}\n"
            for of, us in (("x,mpich", 1), ("x,openmpi", 5 * factor), ("y,mpich", 9))
        ]
        path.write_text(header + "".join(rows))
    (line,) = again.compare(tmp_path / "a", tmp_path / "b")
    assert line.startswith("all: 3 of 3 points measured again; 2 identical, 67 % within 10 %")


def test_a_comparison_of_two_versions_names_them(tmp_path: Path) -> None:
    header = "study,mpi,collective,algorithm,parameters,mapping,nodes,processes,size_bytes,launch,latency_us\n"
    for folder, version in (("a", "5.0.7, 4.3"), ("b", "5.0.11, 4.3")):
        path = tmp_path / folder / "mine" / "measurements.csv"
        path.parent.mkdir(parents=True)
        path.write_text(header + "mine,openmpi,bcast,default,,core,1,2,8,1,1\n")
        how = {"suite": "collbench", "suite_version": "1.0", "mpi": "openmpi, mpich", "mpi_version": version}
        path.with_name("study.json").write_text(json.dumps({"provenance": how}))
    (line,) = again.compare(tmp_path / "a", tmp_path / "b")
    assert line.endswith(
        "; of collbench 1.0, Open MPI 5.0.7, MPICH 4.3, then collbench 1.0, Open MPI 5.0.11, MPICH 4.3"
    )
    (line,) = again.compare(tmp_path / "a", tmp_path / "a")
    assert line.endswith("from 1.000 to 1.000")


@pytest.mark.parametrize("names", ["[\n  other,\n]", "\n  # Mine\n  - other\n\n  - another", "other"])
def test_a_package_analyses_its_own_studies(names: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the style of config.yaml; a study may be called like a number."""
    checkout, results = small(tmp_path, monkeypatch)
    (checkout / "config" / "config.yaml").write_text(f"results: /elsewhere\nstudies: {names}\nmore: 1\n")
    shutil.copytree(results / "mine", results / "2026")
    package.publish(results, ["mine", "2026"], tmp_path / "publish", {})
    with zipfile.ZipFile(tmp_path / "publish" / "data-package.zip") as archive:
        found = yaml.safe_load(archive.read("data-package/config/config.yaml"))
    assert found == {"results": "results", "studies": ["mine", "2026"], "more": 1}


def test_a_package_has_the_configuration_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """COLLSTUDY_CONFIG names another folder than config/; what it lacks is taken from there."""
    checkout, results = small(tmp_path, monkeypatch)
    config = tmp_path / "my config"
    (config / "studies").mkdir(parents=True)
    (config / "config.yaml").write_text("studies: [mine]\n")
    (config / "studies" / "mine.yaml").write_text("title: In use\n")
    (config / "data.yaml").write_text("theirs: {licence: MIT}\n")
    (checkout / "config" / "studies" / "other.yaml").write_text("title: Other\n")
    data_file = tmp_path / "theirs" / "a.csv"
    data_file.parent.mkdir()
    data_file.write_text("a\n")
    package.publish(results, ["mine"], tmp_path / "publish", {"mine": [data_file]}, config)
    with zipfile.ZipFile(tmp_path / "publish" / "data-package.zip") as archive:
        assert archive.read("data-package/config/studies/mine.yaml") == b"title: In use\n"
        assert "data-package/config/studies/other.yaml" in archive.namelist()
        assert archive.read("data-package/imported.csv").decode().endswith(",mine,not stated,MIT\n")


def rendered(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], list[str]]]:
    """Replace the rendering of a package's report; return the list of its studies and options, to which each call adds."""
    calls: list[tuple[list[str], list[str]]] = []

    def render(results: Path, studies: list[str], options: list[str], folder: Path) -> None:
        calls.append((studies, options))
        for name in (
            "report/index.html",
            "report/report.pdf",
            "front/text.csv",
            "report-build/report.json",
            ".pages/a",
        ):
            (folder / results / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / results / name).write_text("of these studies")

    monkeypatch.setattr(again, "render", render)
    return calls


def test_the_published_report_is_that_of_the_studies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """./study run STUDY makes a report of this study only; a report of more studies shows data that nobody wants to publish."""
    _, results = small(tmp_path, monkeypatch)
    calls = rendered(monkeypatch)
    described = results / "report-build" / "report.json"
    described.parent.mkdir()
    described.write_text(json.dumps({"studies": ["other"]}))
    with pytest.raises(StudyError, match=r"report has no chapter of mine; first ./study run mine$"):
        package.publish(results, ["mine"], tmp_path / "publish", {})
    assert not (tmp_path / "publish").exists()
    described.write_text(json.dumps({"studies": ["mine", "other"], "revision": "v1"}))
    found = packed(results, tmp_path / "publish")
    assert calls == [(["mine"], ["--revision", "v1"])]
    assert found["results/report/index.html"] == (tmp_path / "publish" / "index.html").read_text() == "of these studies"
    assert "results/front/text.csv" in found
    assert not [name for name in found if "report-build" in name or ".pages" in name]
    assert (results / "report" / "index.html").read_text() == "<html></html>"
    described.write_text(json.dumps({"studies": ["mine"]}))
    assert packed(results, tmp_path / "publish")["results/report/index.html"] == "<html></html>" and len(calls) == 1


def test_one_file_is_rendered_for_the_package_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report in the results stays, with all its studies."""
    _, results = small(tmp_path, monkeypatch)
    calls = rendered(monkeypatch)
    package.publish(results, ["mine"], tmp_path / "publish", {}, single_file=True)
    assert calls == [(["mine"], ["--revision", "", "--single-file"])]
    (results / "report" / "report.html").write_text("")
    package.publish(results, ["mine"], tmp_path / "publish", {}, single_file=True)
    assert len(calls) == 1


def test_measured_cells_whose_files_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell that failed or was not measured has no file, either."""
    _, results = small(tmp_path, monkeypatch)
    header = "collective,algorithm,mapping,processes,status,cell\n"
    row = "bcast,linear,core,2,{},0123456789abcdef\n"
    (results / "mine" / "cells.csv").write_text(header + row.format("measured") + "bcast,chain,core,2,missing,\n")
    assert package.publish(results, ["mine"], tmp_path / "publish", {})
    (stored,) = (results / "cells" / "bcast").iterdir()
    stored.unlink()
    with pytest.raises(
        StudyError, match=r"results lacks the files of 1 measured cell of mine, such as bcast linear core proc"
    ):
        package.publish(results, ["mine"], tmp_path / "publish", {})
    (results / "mine" / "cells.csv").write_text(header + row.format("failed"))
    assert package.publish(results, ["mine"], tmp_path / "publish", {})


def test_a_folder_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, results = small(tmp_path, monkeypatch)
    with pytest.raises(StudyError, match=r"^/proc/none: No such file or directory; choose another folder$"):
        package.publish(results, ["mine"], Path("/proc/none"), {})


@pytest.mark.parametrize("command", ["verify", "reanalyse"])
def test_the_path_of_a_package_is_not_a_study(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    for path in ("data-package.zip", "../publish"):
        assert main([command, path]) == 2
        assert f"unpack it, and run ./study {command} in its folder data-package" in capsys.readouterr().err


def test_imported_data_without_their_files_are_not_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their source and licence are those of the files."""
    _, results = small(tmp_path, monkeypatch)
    about = {"title": "Mine", "question": "Which?", "provenance": {}, "import": {"files": ["a.csv", "b.csv"]}}
    (results / "mine" / "study.json").write_text(json.dumps(about))
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for file in files:
        file.write_text("a\n")
    with pytest.raises(StudyError, match=r"mine was imported from b.csv, which .* STUDY_REFERENCE_DATA"):
        package.publish(results, ["mine"], tmp_path / "publish", {"mine": files[:1]})
    assert package.publish(results, ["mine"], tmp_path / "publish", {"mine": files})


@pytest.mark.parametrize("text", ["3", "null", '{"provenance": 3}'])
def test_a_description_that_says_nothing_is_written_again(text: str, tmp_path: Path) -> None:
    (tmp_path / "study.json").write_text(text)
    with pytest.raises(StudyError, match=f"./study run {tmp_path.name} writes it again"):
        read_study(tmp_path)


def test_a_table_that_is_no_text_is_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine" / "measurements.csv"
    path.parent.mkdir()
    for content, why in ((b"\xff\xfe\0", "not UTF-8"), (b"study\n" + 200_000 * b"a", "field larger than")):
        path.write_bytes(content)
        assert main(["compare", str(tmp_path), str(tmp_path)]) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"error: {path} cannot be read: ") and why in said


@pytest.mark.parametrize(
    "damage",
    ["collective,algorithm\n1,2\n", "HEADER\nbcast,default,,core,1", "HEADER\nbcast,default,,core,1,2,8,1,x\n"],
)
def test_damaged_measurements_are_named(damage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine" / "measurements.csv"
    path.parent.mkdir()
    header = "collective,algorithm,parameters,mapping,nodes,processes,size_bytes,launch,latency_us"
    path.write_text(damage.replace("HEADER", header))
    assert main(["compare", str(tmp_path), str(tmp_path)]) == 2
    assert f"{path}: row 1 is not a measurement" in capsys.readouterr().err


def test_a_missing_program_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, results = small(tmp_path, monkeypatch)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(StudyError, match="Rscript is not on PATH"):
        again.analyse(results / "mine")


@pytest.mark.parametrize("missing", ["published", "again"])
def test_a_folder_without_measurements_to_compare_is_an_error(missing: str, tmp_path: Path, capsys) -> None:
    for name in {"published", "again"} - {missing}:
        (tmp_path / name / "one").mkdir(parents=True)
        (tmp_path / name / "one" / "measurements.csv").write_text("study\n")
    assert main(["compare", str(tmp_path / "published"), str(tmp_path / "again")]) == 2
    assert f"error: {tmp_path / missing}: no folder of a study with measurements.csv" in capsys.readouterr().err


def test_licences_of_folders_with_the_same_name(tmp_path: Path) -> None:
    for author in ("bergmann", "alarcon"):
        (tmp_path / author / "results").mkdir(parents=True)
        (tmp_path / author / "results" / "LICENSE").write_text(author)
    inputs = {"one": [tmp_path / author / "results" / "bcast.csv" for author in ("bergmann", "alarcon")]}
    package._copy_licences(inputs, tmp_path / "licences")
    assert sorted(path.read_text() for path in (tmp_path / "licences").glob("*/LICENSE")) == ["alarcon", "bergmann"]
