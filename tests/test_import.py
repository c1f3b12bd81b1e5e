"""Other authors' measurements: CSV with a column mapping, raw OMB output, and faulty files."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from collstudy.sources.importing import reading
from conftest import IMPORTED, Checkout, csv_rows, must
from made_imports import HEAD, RAW, Import, output, write

STUDY = """
import:
  suite: OSU Micro-Benchmarks
  files:
    - path: {folder}/bcast_*.csv
      collective: bcast
      columns: {{algorithm: Algorithm, mapping: Allocation, processes: P, size_bytes: Size, latency_us: Latency, max_latency_us: Max}}
      algorithms: {{Flat: linear, Default: default}}
"""
GOOD = (
    "Algorithm, Allocation,P ,Size,Latency, Max\nFlat,core,2,1,0.5,0.6\nFlat,core,2,2,0.6,0.7\nDefault,core,2,1,0.4,0.5"
)


@pytest.fixture
def theirs(tmp_path: Path) -> Import:
    return Import(tmp_path)


def test_blanks_gaps_and_a_missing_last_newline(theirs: Import) -> None:
    theirs.collect(STUDY, {"bcast_a.csv": GOOD})
    found = [(r["algorithm"], r["size_bytes"], r["latency_us"], r["max_latency_us"]) for r in theirs.rows()]
    assert found == [("default", "1", "0.4", "0.5"), ("linear", "1", "0.5", "0.6"), ("linear", "2", "0.6", "0.7")]
    status = {row["algorithm"]: (row["status"], row["reason"]) for row in theirs.rows("cells")}
    assert status["linear"] == ("measured", "")
    assert status["default"] == ("missing", "1 of 2 sizes are not in the imported data")


def test_repetitions_are_launches(theirs: Import) -> None:
    """Also equal ones: a single time of two decimals is often measured twice."""
    more = "\nFlat,core,2,1,0.5,0.6\nFlat,core,2,1,0.9,1.0\nFlat,core,2,4,x,1\n"
    theirs.collect(STUDY, {"bcast_a.csv": GOOD + more})
    launches = [(r["launch"], r["latency_us"]) for r in theirs.rows() if r["algorithm"] == "linear"]
    assert launches[:3] == [("1", "0.5"), ("2", "0.5"), ("3", "0.9")]


HEADER = "Algorithm, Allocation,P ,Size,Latency, Max\n"
TIMES = [0.14, 0.14, 0.15, 0.16, 0.2, 0.31, 0.55, 1.02, 2.11]


def lines(times: list[float], algorithm: str = "Flat", ranks: int = 2) -> str:
    return "".join(f"{algorithm},core,{ranks},{2**power},{us},{us + 1}\n" for power, us in enumerate(times))


def launches_by_size(theirs: Import) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in theirs.rows():
        found.setdefault(row["size_bytes"], []).append(row["latency_us"])
    return found


def test_equal_times_of_single_launches_are_not_duplicates(theirs: Import) -> None:
    """Times of two decimals are often equal in two launches; only a launch that is equal in all its cells is a duplicate."""
    second = [0.14, 0.14, 0.15, 0.17, 0.2, 0.32, 0.55, 1.04, 2.12]
    theirs.collect(STUDY, {"bcast_a.csv": HEADER + lines(TIMES) + lines(second) + lines(TIMES)})
    found = launches_by_size(theirs)
    assert found["1"] == ["0.14", "0.14"] and found["8"] == ["0.16", "0.17"]


def test_a_file_that_repeats_another_is_counted_once(theirs: Import) -> None:
    """Authors publish the files of single algorithms and all of them in one file."""
    everything = lines([2 * us for us in TIMES], "Default") + lines(TIMES)
    theirs.collect(STUDY, {"bcast_a.csv": HEADER + lines(TIMES), "bcast_all.csv": HEADER + everything})
    assert [row["launch"] for row in theirs.rows()] == ["1"] * 18


def test_a_launch_that_a_file_repeats_among_others_is_dropped(theirs: Import) -> None:
    """Authors append the same output twice; the further launches of other process counts are none of its rows."""
    other = [1.01 * us + 0.1 for us in TIMES]
    theirs.collect(
        STUDY, {"bcast_a.csv": HEADER + lines(TIMES) + lines(TIMES, ranks=4) + lines(TIMES) + lines(other, ranks=4)}
    )
    count = [(row["processes"], row["launch"]) for row in theirs.rows() if row["size_bytes"] == "8"]
    assert count == [("2", "1"), ("4", "1"), ("4", "2")]


def test_runs_that_are_numbered_in_two_files(theirs: Import) -> None:
    """As those of two jobs: their numbers are no launches of the cell."""
    study = STUDY.replace("latency_us: Latency", "launch: Run, latency_us: Latency")
    files = {
        f"bcast_{job}.csv": HEADER.replace("Max", "Max,Run") + "".join(f"Flat,core,2,8,{us + run},9,{run}\n" for run in (2, 3))
        for job, us in (("a", 0.5), ("b", 0.7))
    }  # fmt: skip
    theirs.collect(study, files)
    assert [(row["launch"], row["latency_us"]) for row in theirs.rows()] == [
        ("1", "2.5"), ("2", "3.5"), ("3", "2.7"), ("4", "3.7")
    ]  # fmt: skip
    theirs.collect(study, {"bcast_b.csv": files["bcast_b.csv"].replace("2,8,", "4,8,")})
    assert [row["launch"] for row in theirs.rows()] == ["2", "3"] * 2


def test_numbers_of_launches_may_begin_at_0_and_have_gaps(theirs: Import) -> None:
    study = STUDY.replace("latency_us: Latency", "launch: Run, latency_us: Latency")
    for numbers, launches in (((0, 1, 3), ["1", "2", "4"]), ((7, 9, 12), ["7", "9", "12"])):
        rows = "".join(f"Flat,core,2,8,0.{run}5,9,{run}\n" for run in numbers)
        theirs.collect(study, {"bcast_a.csv": HEADER.replace("Max", "Max,Run") + rows})
        assert [row["launch"] for row in theirs.rows()] == launches and theirs.account["problems"] == {}
        assert [row["launches"] for row in theirs.rows("cells")] == ["3"]
        assert theirs.account["repeated_as_further_launches"] == 2


def test_equal_times_of_few_cells_in_two_files_are_launches(theirs: Import) -> None:
    theirs.collect(STUDY, dict.fromkeys(("bcast_a.csv", "bcast_b.csv"), HEADER + lines(TIMES[:3])))
    assert launches_by_size(theirs) == {"1": ["0.14"] * 2, "2": ["0.14"] * 2, "4": ["0.15"] * 2}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (GOOD.replace("Default", "Other"), ["algorithm 'Other' is not mapped", "Flat", "linear"]),
        (GOOD.replace("core", "corn"), ["mapping 'corn' is unknown", "core"]),
        ("", ["no row can be used: 1 files without rows (first: bcast_a.csv)"]),
    ],
)
def test_wrong_columns_and_names(theirs: Import, content: str, expected: list[str]) -> None:
    said = theirs.refused(STUDY, {"bcast_a.csv": content})
    assert [text for text in expected if text not in said] == []


def test_a_change_of_any_module_that_reads_files_invalidates_cached_imports() -> None:
    used = {inspect.getmodule(value) for value in vars(reading).values() if inspect.getmodule(value)}
    files = {Path(module.__file__) for module in used if module.__name__.startswith("collstudy.sources.importing")}
    assert {"csv_files.py", "convert.py"} <= {path.name for path in files}
    assert files - {*reading.READER} == set()


def test_missing_files(checkout: Checkout) -> None:
    checkout.write("config/studies/theirs.yaml", HEAD + STUDY.format(folder="data"))
    done = checkout.collstudy("--results", "results", "collect", "theirs")
    assert done.returncode == 2 and "no file matches" in done.stderr and "STUDY_REFERENCE_DATA" in done.stderr
    # If it is one of several studies, it is left out with one line; if it is the only one, there is nothing to do.
    checkout.write("config/config.yaml", "studies: [tiny, theirs]\n")
    done = checkout.collstudy("status")
    assert done.returncode == 0 and "study theirs is left out: no file matches" in done.stdout
    done = checkout.collstudy("status", "theirs")
    assert done.returncode == 2 and "no file matches" in done.stderr


def test_raw_output_with_facts_in_the_file_name(theirs: Import) -> None:
    recorded = (Path(__file__).parent / "data" / "omb-7.4" / "smpi-bcast-24-full.txt").read_text()
    theirs.collect(RAW, {"linear_core_24.txt": recorded})
    found = theirs.rows()
    assert {(r["algorithm"], r["mapping"], r["processes"]) for r in found} == {("linear", "core", "24")}
    assert [int(r["size_bytes"]) for r in found] == [2**k for k in range(21)]


PAIRS = """
import:
  files:
    - path: {folder}/pairs.csv
      collective: pairs
      columns: {{from_core: Core 1, to_core: Core 2, size_bytes: Size, latency_us: Latency}}
"""
ACROSS = """\
    - path: {folder}/across.csv
      collective: pairs
      columns: {{from_core: Core 1, to_core: Core 2, size_bytes: Size, latency_us: Latency}}
      constants: {{to_node: 1}}
"""


def ladder_text(us_inside: float, us_other_socket: float) -> str:
    rows = [
        f"{i},{j},{size},{us_inside if (i < 12) == (j < 12) else us_other_socket}"
        for i in range(24) for j in range(24) for size in (1, 2, 4) if i != j
    ]  # fmt: skip
    return "\n".join(["Core 1,Core 2,Size,Latency", *rows, "3,3,1,9.0"])


def test_a_ladder_of_pairs(theirs: Import) -> None:
    theirs.collect(PAIRS, {"pairs.csv": ladder_text(0.2, 0.4)})
    rows = theirs.rows()
    assert len(rows) == 24 * 23 * 3
    assert (rows[0]["from_rank"], rows[0]["to_rank"], rows[0]["processes"]) == ("0", "1", "48")


def test_pairs_without_a_core(theirs: Import) -> None:
    said = theirs.refused(PAIRS.replace("to_core: Core 2, ", ""), {"pairs.csv": ladder_text(0.2, 0.4)})
    assert "pairs need a column for to_core" in said


def test_a_mapping_over_a_level_that_the_machine_lacks(tmp_path: Path) -> None:
    """As with a machine file whose nodes have no sockets."""
    theirs = Import(tmp_path, "without-sockets")
    machine = "kind: imported\nlabel: A\nlevels: [{name: node, count: 2}, {name: core, count: 4}]\n"
    (tmp_path / "config" / "machines" / "without-sockets.yaml").write_text(machine)
    said = theirs.refused(STUDY, {"bcast_a.csv": GOOD.replace("core", "node")})
    assert "node needs level 'socket', which machine without-sockets lacks" in said
    theirs.collect(STUDY, {"bcast_a.csv": GOOD})


def test_cores_that_the_machine_lacks(tmp_path: Path) -> None:
    theirs = Import(tmp_path, "small")
    machine = "kind: imported\nlabel: s\nlevels: [{name: core, count: 4}]\n"
    write(theirs.folder, {"config/machines/small.yaml": machine})
    said = theirs.refused(PAIRS, {"pairs.csv": ladder_text(0.2, 0.4)})
    assert re.search("from_core is 0, machine small has cores 0 to 3|to_core is 4", said)


@pytest.mark.parametrize(
    ("inside", "other_socket", "message"),
    [
        (1.9, 2.1, None),
        (0.2, 0.4, "share a node"),
        pytest.param(3.0, 6.0, "2 times as fast", marks=pytest.mark.long),
    ],  # fmt: skip
)
def test_pairs_between_nodes_that_stayed_on_one_are_refused(
    checkout: Checkout, inside: float, other_socket: float, message: str | None
) -> None:
    checkout.write("data/pairs.csv", ladder_text(0.2, 0.4))
    checkout.write("data/across.csv", ladder_text(inside, other_socket))
    checkout.write("config/studies/theirs.yaml", HEAD + (PAIRS + ACROSS).format(folder=checkout.folder / "data"))
    done = checkout.snakemake("--config", "studies=theirs", "--cores", "1", "--", "results/theirs/tables/index.csv")
    assert (done.returncode == 0) == (message is None), done.stdout + done.stderr
    if message:
        assert message in done.stderr


@pytest.mark.long
def test_import_checks_are_made_again_when_the_checks_change(checkout: Checkout) -> None:
    checkout.write("config/studies/theirs.yaml", IMPORTED)
    lines = [
        "Processes,Size,Latency",
        "2,1,nan",
        *(f"{ranks},{size},{ranks * size}" for ranks in (2, 4) for size in (1, 2)),
    ]
    checkout.write("data/somebodys/bcast.csv", "\n".join(lines) + "\n")

    def found() -> list[str]:
        must(checkout.snakemake("--cores", "1", "--config", "studies=theirs", "--", "results/theirs/import-checks.csv"))
        return [row["action"] for row in csv_rows(checkout.folder / "results/theirs/import-checks.csv")]

    assert "not used" in found()
    code = checkout.folder / "workflow/collstudy/sources/importing/checking/checks.py"
    text = code.read_text()
    assert '"certain", "not used"' in text
    code.write_text(text.replace('"certain", "not used"', '"certain", "left out"'))
    assert "left out" in found() and "not used" not in found()


def test_a_cell_for_each_number_of_nodes(checkout: Checkout) -> None:
    text = IMPORTED.replace("columns: {", "columns: {algorithm: Algorithm, nodes: Nodes, ")
    checkout.write(
        "config/studies/theirs.yaml", text.replace("{algorithm: default, mapping: core, nodes: 1}", "{mapping: core}")
    )
    rows = [(1, "linear", 1), (1, "linear", 2), (2, "linear", 1), (2, "linear", 2), (2, "chain", 1), (2, "chain", 2)]
    lines = ["Nodes,Algorithm,Processes,Size,Latency", *(f"{nodes},{name},4,{size},7" for nodes, name, size in rows)]
    checkout.write("data/somebodys/bcast.csv", "\n".join(lines) + "\n")
    must(checkout.collstudy("--results", "results", "collect", "theirs"))
    found = {(c["algorithm"], c["nodes"]): c["status"] for c in csv_rows(checkout.folder / "results/theirs/cells.csv")}
    assert found == {
        ("linear", "1"): "measured", ("linear", "2"): "measured", ("chain", "1"): "missing", ("chain", "2"): "measured",
    }  # fmt: skip


@pytest.mark.parametrize("question", ["?", "Which?"])
def test_a_draft_is_no_reference_for_other_imports(theirs: Import, question: str) -> None:
    """Nobody has checked its names yet; with a question it is a study."""
    table = HEADER + "".join(lines([round(ranks * us, 2) for us in TIMES], ranks=ranks) for ranks in (4, 8, 16))
    files = dict.fromkeys(("bcast_a.csv", "other/bcast_a.csv"), table)
    copy = HEAD.replace("question: q", f"question: '{question}'") + STUDY.format(folder=theirs.data / "other")
    write(theirs.folder, {"config/studies/copy.yaml": copy})
    theirs.collect(STUDY, files)
    found = [row["found"] for row in theirs.rows("import-checks") if row["check"] == "equal digit by digit"]
    assert found if question != "?" else not found


SELECTED = STUDY + "      where: {{Max: {selected}}}\n"


@pytest.mark.parametrize(("selected", "times"), [("'0.5'", ["0.4"]), ("['0.5', '0.6']", ["0.4", "0.5"])])
def test_rows_of_a_table_are_selected(theirs: Import, selected: str, times: list[str]) -> None:
    """As of one of several machines; the others are no fault."""
    theirs.collect(SELECTED.replace("{selected}", selected), {"bcast_a.csv": GOOD})
    assert [row["latency_us"] for row in theirs.rows()] == times
    assert theirs.rows("import-checks") == []


def test_a_selection_that_cannot_be(theirs: Import) -> None:
    refused = theirs.refused(STUDY + "      where: {{Cloud: azure}}\n", {"bcast_a.csv": GOOD})
    assert "no column 'Cloud' for `where`" in refused
    refused = theirs.refused(SELECTED.replace("{selected}", "'7'"))
    assert "no row can be used: 3 table rows that the study does not select (where)" in refused
    refused = theirs.refused(RAW + "      where: {{Max: '1'}}\n", {"linear_core_2.txt": output("Broadcast", 1.0)})
    assert "`where` selects rows of the formats csv and pico, not of omb" in refused
