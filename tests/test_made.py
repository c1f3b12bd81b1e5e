"""A run's products correspond to the store: manual changes are found, named and made again. Errors are printed alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from collstudy.project import made
from collstudy.project.status import run_summary
from conftest import IMPORTED, TINY, Checkout, local_study, must
from made_runs import MEASURED, cell_files, measured, run


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_was_changed_by_hand_is_made_again(checkout: Checkout) -> None:
    run(checkout, "--cores", "2", MEASURED)
    folder = checkout.folder / "results" / "tiny"
    first = files(folder)
    assert checkout.collstudy("verify").returncode == 0
    changed = (folder / "measurements.csv").read_text()
    (folder / "measurements.csv").write_text(changed.replace(",1,1,0.", ",1,1,1.", 1))
    # A time stamp in the future does not hide the change.
    os.utime(folder / "measurements.csv", (4e9, 4e9))
    (folder / "cells.csv").write_text("")
    (folder / "ranks.csv").unlink()
    (folder / "ranks.csv").mkdir()
    (folder / "ranks.csv" / "mine.txt").write_text("kept")
    (folder / "edges.csv").unlink()
    verified = checkout.collstudy("verify")
    assert verified.returncode == 1
    problems = [
        "cells.csv was changed",
        "edges.csv is missing",
        "measurements.csv was changed",
        "ranks.csv is a folder",
    ]
    for problem in problems:
        assert f"tiny: results/tiny/{problem}" in verified.stdout
    damaged = files(folder)
    assert "collect_measurements" in run(checkout, "-n", MEASURED)
    assert files(folder) == damaged
    printed = run(checkout, "--cores", "2", MEASURED)
    assert "tiny: made again, because files were changed: " + "; ".join(problems) in printed
    assert "to simulate" not in printed
    again = files(folder)
    assert again.pop("ranks.csv.damaged-1/mine.txt") == b"kept" and again == first
    assert "Nothing to be done" in run(checkout, MEASURED)
    # The same change for the second time: Snakemake remembers the contents of inputs.
    for _ in range(2):
        (folder / "cells.csv").write_text("")
        run(checkout, MEASURED)
        assert (folder / "cells.csv").read_bytes() == first["cells.csv"]


TUNED = (
    TINY.replace("algorithms: [default, linear]", "algorithms: [default, linear, chain]") + "analysis:\n  tuning: {}\n"
)
#: Products of a tuned study's run, and the problem that is reported after a manual change.
DAMAGE = {
    "results/tiny/tuning/openmpi-core-n1.rules": "was changed",
    "results/tiny/tuning/README.md": "was changed",
    "results/tiny/tuning/check.csv": "is a folder",
    "results/tiny/tuning/check-emitted.csv": "was changed",
    "results/tiny/tuning/decisions.csv": "was changed",
    "results/tiny/tuning/cells.csv": "is a folder",
    "results/tiny/tuning/sentences.csv": "is missing",
    "results/tiny/tables/tuning-verification.csv": "was changed",
    "results/tiny/tables/tuning-regret.csv": "is a folder",
    "results/tiny/tables/tuning-failed.csv": "is a folder",
    "results/front/text.csv": "was changed",
    "results/report/index.html": "was changed",
    "results/report/sec-tiny.html": "is a folder",
}


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """Return a checkout in which everything was made, including tuning files and report."""
    found = Checkout(tmp_path_factory.mktemp("tuned") / "checkout")
    found.write("config/studies/tiny.yaml", TUNED)
    found.write("config/config.yaml", "studies: [tiny]\nresults: results\n")
    run(found, "--cores", "2")
    assert "Nothing to be done" in run(found, "--cores", "2")
    return found


def damage(path: Path, how: str) -> None:
    if how == "was changed":
        path.write_text(path.read_text().replace("1", "2") if path.suffix != ".rules" else "")
    else:
        path.unlink()
    if how == "is a folder":
        path.mkdir()
        (path / "mine.txt").write_text("kept")


def remade(checkout: Checkout, problems: dict[str, str]) -> None:
    """Check that a run names the changed files and makes them again, and that the next run has nothing to do."""
    before = {name: (checkout.folder / name).read_text() for name in DAMAGE}
    for name, how in problems.items():
        damage(checkout.folder / name, how)
    verified = checkout.collstudy("verify")
    assert verified.returncode == 1
    for name, how in problems.items():
        assert f"{name} {how}" in verified.stdout
    printed = run(checkout, "--cores", "2")
    said = "\n".join(line for line in printed.splitlines() if "made again, because files were changed" in line)
    for name, how in problems.items():
        assert f"{name.removeprefix('results/tiny/').removeprefix('results/')} {how}" in said
    assert "to simulate" not in printed
    assert "Nothing to be done" in run(checkout, "--cores", "2")
    after = {name: (checkout.folder / name).read_text() for name in DAMAGE}
    # A report contains the time at which it was made.
    assert [name for name in DAMAGE if after[name] != before[name] and "report/" not in name] == []
    assert checkout.collstudy("verify").returncode == 0


@pytest.mark.long
def test_tuning_files_changed_by_hand_are_made_again(tuned: Checkout) -> None:
    remade(tuned, {name: how for name, how in DAMAGE.items() if "/tiny/" in name})
    assert (tuned.folder / "results/tiny/tuning/check.csv.damaged-1/mine.txt").read_text() == "kept"


@pytest.mark.long
def test_one_tuning_file_makes_its_rule_alone_run_again(tuned: Checkout) -> None:
    damage(tuned.folder / "results/tiny/tuning/openmpi-core-n1.rules", "was changed")
    planned = run(tuned, "-n")
    assert "keep_tuning" in planned and "decide_tuning" not in planned
    run(tuned, "--cores", "2")
    assert tuned.collstudy("verify").returncode == 0


@pytest.mark.long
def test_report_pages_changed_by_hand_are_made_again(tuned: Checkout) -> None:
    remade(tuned, {name: how for name, how in DAMAGE.items() if "/tiny/" not in name})


@pytest.mark.long
def test_front_page_of_other_studies_is_made_again(tuned: Checkout) -> None:
    """The commands reanalyse and publish write that of their own studies."""
    results = tuned.folder / "results"
    first = files(results / "front")
    shutil.copytree(results / "tiny", results / "other")
    study = json.loads((results / "other/study.json").read_text())
    (results / "other/study.json").write_text(json.dumps(study | {"name": "other"}))
    assert tuned.collstudy("front", "other").returncode == 0
    assert files(results / "front") != first
    run(tuned, "--cores", "2")
    assert files(results / "front") == first
    assert "Nothing to be done" in run(tuned, "--cores", "2")


@pytest.mark.long
def test_files_in_the_place_of_folders_are_set_aside(tuned: Checkout) -> None:
    for name in ("tiny/tuning", "front", "report"):
        shutil.rmtree(tuned.folder / "results" / name)
        (tuned.folder / "results" / name).write_text("kept")
    assert "Traceback" not in run(tuned, "--cores", "2")
    for name in ("tiny/tuning", "front", "report"):
        assert (tuned.folder / "results" / f"{name}.damaged-1").read_text() == "kept"
    assert "Nothing to be done" in run(tuned, "--cores", "2")


def test_the_parts_of_a_study_are_noted_apart(tmp_path: Path) -> None:
    folder = tmp_path / "tiny"
    names = (
        "measurements.csv",
        "tables/a.csv",
        "tables/tuning-x.csv",
        "models/b.csv",
        "figures/c.svg",
        "sentences.csv",
    )
    for name in (*names, "tuning/x.rules", "tuning/decisions.csv", "tables/a.csv.damaged-1/mine.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    for kind, listed in (("tables", "a.csv"), ("models", "b.csv"), ("figures", "c.svg")):
        (folder / kind / "index.csv").write_text(f"file\n{kind}/{listed}\n")
    made.note(tmp_path, "tiny", "collect")
    made.note(tmp_path, "tiny", "analyse")
    assert made.changed(folder) == {} and made.count(folder) == 8
    # Tables of other rules, and files that no rule made, are not included.
    (folder / "tables" / "tuning-x.csv").write_text("y")
    (folder / "tables" / "mine.csv").write_text("y")
    assert made.changed(folder) == {}
    for name in ("tables/a.csv", "models/b.csv"):
        (folder / name).write_text("y")
    (folder / "figures" / "c.svg").unlink()
    problems = ["tables/a.csv was changed", "models/b.csv was changed", "figures/c.svg is missing"]
    assert {part: set(texts) for part, texts in made.changed(folder).items()} == {"analyse": set(problems)}
    made.note(tmp_path, "tiny", "keep")
    for name in ("tuning/x.rules", "tuning/decisions.csv", "tables/tuning-x.csv"):
        (folder / name).write_text("z")
    assert set(made.changed(folder)["keep"]) == {"tuning/x.rules was changed", "tables/tuning-x.csv was changed"}
    # The rule after `keep` draws the runs of a program again.
    (folder / "tuning" / "pairs.png").write_text("of earlier runs")
    made.note(tmp_path, "tiny", "keep")
    (folder / "tuning" / "pairs.png").write_text("of these runs")
    made.note(tmp_path, "tiny", "tell")
    assert "keep" not in made.changed(folder)


@pytest.mark.parametrize("text", ["", "null", "[]", "7", '{"collect": 3}', "[" * 100_000])
def test_notes_that_say_nothing(tmp_path: Path, text: str) -> None:
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / made.NAME).write_text(text)
    assert made.changed(folder) == {}
    made.note(tmp_path, "tiny", "collect")
    assert json.loads((folder / made.NAME).read_text()) == {"collect": {}}


@pytest.mark.long
def test_damage_of_the_store_ends_in_no_traceback(checkout: Checkout) -> None:
    run(checkout, "--cores", "2", MEASURED)
    first = (checkout.folder / MEASURED).read_bytes()
    one, two, three, four = sorted((checkout.folder / "results" / "cells").rglob("*.json"))
    one.unlink()
    one.mkdir()
    two.unlink()
    two.symlink_to(two.name)
    document = json.loads(three.read_text())
    document["launches"][0]["samples"][0]["latency_us"] += 1
    three.write_text(json.dumps(document))
    document = json.loads(four.read_text())
    del document["launches"][0]["provenance"], document["content"]
    four.write_text(json.dumps(document))
    (checkout.folder / "results" / ".summaries.json").write_text("null")
    verified = checkout.collstudy("verify", "tiny")
    assert verified.returncode == 1 and "tiny: 4 stored files expected: 4 damaged" in verified.stdout
    for path in (one, two, three, four):
        assert path.name in verified.stdout
    printed = run(checkout, "--cores", "2", MEASURED)
    assert "Traceback" not in printed + verified.stderr
    assert printed.count("damaged cell file set aside") == 4
    assert (checkout.folder / MEASURED).read_bytes() == first


@pytest.mark.long
def test_launches_that_verify_tuning_files_are_checked_and_made_again(checkout: Checkout) -> None:
    checkout.write("config/studies/tiny.yaml", TUNED)
    target = "results/tiny/tuning/sentences.csv"
    run(checkout, "--cores", "2", target)
    verification = "results/tiny/tables/tuning-verification.csv"
    first = (checkout.folder / verification).read_bytes()
    cells = checkout.folder / "results" / "cells" / "bcast"
    verifying = [path for path in sorted(cells.glob("*.json")) if '"verification": 1' in path.read_text()]
    ordinary = len(list(cells.glob("*.json"))) - len(verifying)
    done = checkout.collstudy("verify")
    assert f"tiny: {ordinary + len(verifying)} stored files expected" in must(done).stdout
    changed, gone = (next(path for path in verifying if f"_{word}_" in path.name) for word in ("tuned", "default"))
    document = json.loads(changed.read_text())
    document["launches"][0]["samples"][0]["latency_us"] += 1
    changed.write_text(json.dumps(document))
    gone.unlink()
    done = checkout.collstudy("verify")
    assert done.returncode == 1 and f"tiny: damaged: results/cells/bcast/{changed.name}: " in done.stdout
    assert (
        f"{ordinary + len(verifying) - 2} intact, with a digest of the measurements, 1 missing, 1 damaged"
        in done.stdout
    )
    assert "tiny: 2 cells that verify the tuning files failed or are damaged" in checkout.collstudy("next").stdout
    assert "damaged cell file set aside" in run(checkout, "--cores", "2", target)
    assert (checkout.folder / verification).read_bytes() == first
    assert gone.exists() and checkout.collstudy("verify").returncode == 0
    assert "Nothing to be done" in run(checkout, "--cores", "2", target)
    # As in results of a version that did not list them.
    listed = checkout.folder / "results" / "tiny" / "tuning" / "cells.csv"
    text = listed.read_text()
    listed.unlink()
    notes = json.loads((checkout.folder / "results" / "tiny" / made.NAME).read_text())
    del notes["keep"]["tuning/cells.csv"]
    checkout.write(f"results/tiny/{made.NAME}", json.dumps(notes))
    run(checkout, "--cores", "2", target)
    assert listed.read_text() == text and "Nothing to be done" in run(checkout, "--cores", "2", target)


@pytest.mark.parametrize("content", [b"study;file\na;b\n", b"study,file\na\n", b"\xff\xfe\0"])
def test_a_damaged_list_of_cells_stops_no_run(checkout: Checkout, content: bytes) -> None:
    """Such as one that a spreadsheet has saved; it is made again like all derived files."""
    checkout.write("config/studies/tiny.yaml", TUNED)
    parts = {"tuning/cells.csv": "keep", "tables/tuning-failed.csv": "keep", "cells.csv": "collect"}
    notes = {part: {name: "0" * 64 for name in parts if parts[name] == part} for part in parts.values()}
    checkout.write(f"results/tiny/{made.NAME}", json.dumps(notes))
    study_json = checkout.project.source("tiny").study_json().decode()
    checkout.write("results/tiny/study.json", study_json)
    for name in parts:
        checkout.write(f"results/tiny/{name}", "").write_bytes(content)
    done = checkout.collstudy("verify", "tiny")
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    assert "cells.csv was changed" in done.stdout and "tuning-failed.csv was changed" in done.stdout
    done = checkout.snakemake("--dry-run")
    assert done.returncode == 0 and "keep_tuning" in done.stdout, done.stderr


def test_a_description_changed_by_hand_is_written_again(checkout: Checkout) -> None:
    """With an empty one, every later run failed; with another title, the report had it."""
    run(checkout, "--cores", "2", MEASURED)
    path = checkout.folder / "results" / "tiny" / "study.json"
    text = path.read_text()
    for damaged in ("", text.replace("A tiny study", "Another")):
        path.write_text(damaged)
        checkout.snakemake("--dry-run", MEASURED)
        run(checkout, "--cores", "2", MEASURED)
        assert path.read_text() == text
        assert "Nothing to be done" in run(checkout, "--cores", "2", MEASURED)


def test_a_damaged_file_of_a_block_is_written_again(checkout: Checkout) -> None:
    """Such as one that a killed run has written in part."""
    run(checkout, "--cores", "2", MEASURED)
    shutil.rmtree(checkout.folder / "results" / "cells")
    (block,) = (checkout.folder / "results" / "blocks").glob("*.json")
    text = block.read_text()
    block.write_text(text[: len(text) // 2])
    run(checkout, "--cores", "2", MEASURED)
    assert block.read_text() == text and len(cell_files(checkout)) == 4


def test_a_folder_where_a_lock_should_be_is_one_sentence(checkout: Checkout) -> None:
    run(checkout, "--cores", "2", MEASURED)
    shutil.rmtree(checkout.folder / "results" / "cells")
    for lock in (checkout.folder / "results" / ".locks").glob("*.lock"):
        lock.unlink()
        lock.mkdir()
    done = checkout.snakemake("--cores", "2", MEASURED)
    printed = done.stdout + done.stderr
    assert (
        done.returncode != 0 and "remove it: a lock file belongs in its place" in printed and "Traceback" not in printed
    )


@pytest.mark.parametrize(
    ("files", "arguments", "said"),
    [
        ({"studies/tiny.yaml": TINY.replace("[core]", "[cores]")}, (),
         "studies/tiny.yaml, line 8: sweeps.0.mappings: unknown mapping 'cores'"),
        ({"config.yaml": "studies: [tiny]\nstudies: [thin]\n"}, (), "config.yaml, line 2: duplicate key studies"),
        ({"config.yaml": "studies: [tiny\n"}, (), "config.yaml, line 2"),
        ({"config.yaml": "studios: [tiny]\n"}, (), "config.yaml, line 1: unknown key 'studios'"),
        ({}, ("--config", "studies=report"), "a study cannot be called 'report'"),
        ({}, ("--config", "studies=a b"), "a study cannot be called 'a b'"),
        ({}, ("--config", "studies=x{y}"), "a study cannot be called 'x{y}'"),
    ],
)  # fmt: skip
def test_errors_come_alone(checkout: Checkout, files: dict[str, str], arguments: tuple[str, ...], said: str) -> None:
    for name, text in files.items():
        checkout.write(f"config/{name}", text)
    done = checkout.snakemake(*arguments)
    assert done.returncode == 2
    (line,) = [line for line in done.stderr.splitlines() if not line.startswith("Using workflow specific profile")]
    assert line.startswith("error: ") and said in line
    assert not (checkout.folder / "results").exists()


def test_the_run_summary_counts_from_the_store(checkout: Checkout) -> None:
    run(checkout, "--cores", "2", MEASURED)
    cells = checkout.folder / "results" / "tiny" / "cells.csv"
    # As after a run that was interrupted before it collected: the table is from an earlier run.
    cells.write_text(cells.read_text().replace("measured", "missing", 1))
    project = checkout.project
    assert run_summary([project.source("tiny")], succeeded=False)[0] == "tiny: 4 simulated"
    next((checkout.folder / "results" / "cells").rglob("*.json")).unlink()
    assert run_summary([project.source("tiny")], succeeded=False)[0] == "tiny: 3 simulated, 1 missing"


def test_cells_that_lack_launches_are_incomplete_in_the_run_summary(checkout: Checkout) -> None:
    """As after an interruption; each cell of a block is launched once before any is launched again."""
    text = local_study("collective: barrier, algorithms: [default, linear], iterations: 20, warmup: 2")
    measured(checkout, "mine", text)
    assert run_summary([checkout.project.source("mine")], succeeded=False)[0] == "mine: 2 measured"
    checkout.write("config/studies/mine.yaml", text.replace("{min: 1, max: 1}", "{min: 2, max: 2}"))
    assert run_summary([checkout.project.source("mine")], succeeded=False)[0] == "mine: 2 incomplete"


def test_the_run_summary_of_imported_data(checkout: Checkout) -> None:
    checkout.write("config/studies/imported.yaml", IMPORTED)
    checkout.write("results/imported/cells.csv", "cell,status\n1,measured\n2,missing\n3,measured\n")
    summary = "imported: 2 imported, 1 not in the imported data, or only at some sizes"
    assert run_summary([checkout.project.source("imported")], succeeded=True) == [summary]


def test_the_run_summary_of_a_study_that_gathers_others(checkout: Checkout) -> None:
    project = checkout.project
    assert run_summary([project.source("atlas")], succeeded=False)[0] == "atlas: not collected"
    gathered = checkout.folder / "results" / "atlas" / "measurements.csv"
    gathered.parent.mkdir(parents=True)
    gathered.write_text("study\n")
    assert run_summary([project.source("atlas")], succeeded=False)[0] == "atlas: collected"


def test_sources_have_a_digest_also_below_a_folder_called_tests(checkout: Checkout, tmp_path: Path) -> None:
    moved = tmp_path / "tests" / "checkout"
    moved.parent.mkdir()
    checkout.folder.rename(moved)
    script = "from collstudy.base.digests import digest_of; print(digest_of(['workflow/analysis']))"

    def digest() -> bytes:
        environment = {**os.environ, "PYTHONPATH": str(moved / "workflow")}
        return subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=True).stdout

    before = digest()
    (moved / "workflow" / "analysis" / "R" / "new.R").write_text("# Another file.\n")
    assert digest() != before


@pytest.mark.long
def test_what_a_study_no_longer_makes_is_neither_reported_nor_published(checkout: Checkout) -> None:
    """Without `tuning` and the second collective, the report must not show the decisions and tables of the earlier definition."""
    folder = checkout.folder / "results" / "tiny"
    targets = [f"results/tiny/{name}" for name in ("tables/index.csv", "tuning/sentences.csv", "tuning/README.md")]
    barrier = "  - {collective: barrier, algorithms: [default, linear], mappings: [core], processes: [2, 4]}\n"
    checkout.write("config/studies/tiny.yaml", TINY + barrier + "analysis: {tuning: {}}\n")
    run(checkout, "--cores", "2", *targets)
    (folder / "tables" / "mine.csv").write_text("kept")
    before = set(files(folder))
    assert {"tables/barrier-winners.csv", "tables/tuning-regret.csv", "tuning/openmpi-core-n1.rules"} <= before
    checkout.write("config/studies/tiny.yaml", TINY)
    printed = run(checkout, "--cores", "2", targets[0])
    assert "files of an earlier definition of the study are moved to results/tiny/.earlier" in printed
    after = {name for name in files(folder) if not name.startswith(".")}
    assert not [name for name in after if name.startswith("tuning/") or "tuning-" in name or "barrier" in name]
    assert "tables/bcast-winners.csv" in after and (folder / "tables" / "mine.csv").read_text() == "kept"
    gone = {name for name in before - after if not name.startswith("figures/main/")}
    assert gone <= {name.removeprefix(".earlier/") for name in files(folder)}
    assert checkout.collstudy("verify").returncode == 0
    assert "Nothing to be done" in run(checkout, targets[0])


@pytest.mark.long
def test_tuning_files_of_a_mapping_that_was_removed_are_moved(checkout: Checkout) -> None:
    folder = checkout.folder / "results" / "tiny"
    tuned = TINY + "analysis: {tuning: {}}\n"
    checkout.write("config/studies/tiny.yaml", tuned.replace("[core]", "[core, socket]"))
    run(checkout, "--cores", "2", "results/tiny/tuning/README.md")
    earlier = {path.name for path in (folder / "tuning").glob("*socket*")}
    assert {"openmpi-socket-n1.rules", "openmpi-6.0-socket-n1.json", "intel-socket-n1.sh"} <= earlier
    checkout.write("config/studies/tiny.yaml", tuned)
    run(checkout, "--cores", "2", "results/tiny/tuning/README.md")
    assert (folder / "tuning" / "openmpi-core-n1.rules").exists()
    assert not list((folder / "tuning").glob("*socket*"))
    assert {path.name for path in (folder / made.EARLIER / "tuning").iterdir()} == earlier
    assert checkout.collstudy("verify").returncode == 0
