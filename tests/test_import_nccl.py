"""Import of nccl-tests output, and the NCCL tuner file that such a study writes. All numbers are invented."""

from __future__ import annotations

import pytest
from collstudy.base.paths import ROOT
from collstudy.cli.main import main
from collstudy.study.config import Configuration
from collstudy.tuning import nccl
from collstudy.tuning.rules import placements
from conftest import Checkout, csv_rows, must
from test_tuning import decisions

MACHINE = """
kind: imported
label: GPU nodes (made up)
levels: [{name: node, count: 4}, {name: core, count: 8}]
"""
STUDY = """
title: NCCL (made up)
question: Which algorithm and protocol?
machine: gpus
import:
  suite: nccl-tests
  mpi: nccl
  mpi_version: 2.27.3
  files:
    - &chosen {path: "FOLDER/allreduce_{algorithm}_{protocol}_n{nodes}_*.txt", format: nccl-tests, collective: allreduce}
    - &default {path: "FOLDER/allreduce_default_*.txt", format: nccl-tests, collective: allreduce}
    - {<<: *chosen, path: "FOLDER/allgather_{algorithm}_{protocol}_n{nodes}_*.txt", collective: allgather}
    - {<<: *default, path: "FOLDER/allgather_default_*.txt", collective: allgather}
"""
PROGRAMS = {"allreduce": "all_reduce", "allgather": "all_gather"}
#: Start-up time (us per rank) and transfer time (us per KiB).
COSTS = {
    "default": (1.6, 0.020), "Ring_LL": (1.0, 0.040), "Ring_LL128": (1.5, 0.012), "Ring_Simple": (3.0, 0.008),
    "Tree_LL": (0.4, 0.060),
}  # fmt: skip
CHOICES = {"allreduce": tuple(COSTS), "allgather": ("default", "Ring_LL", "Ring_Simple")}
SIZES = [4**i for i in range(5, 13)]


def printed(
    collective: str,
    nodes: int,
    times: dict[int, float],
    gpus: int = 8,
    wrong: str = "0",
    chosen: str = "",
    ran: str = "",
) -> str:
    """Return output of nccl-tests (src/util.cu, version 2.17): *chosen* are NCCL's lines at the start, *ran* is one within each row."""
    lines = [
        "# nccl-tests version 2.17.6 nccl-headers=22703 nccl-library=22703",
        f"# Collective test starting: {PROGRAMS[collective]}_perf",
        f"# nThread 1 nGpus 1 minBytes {min(times)} maxBytes {max(times)} step: 4(factor) warmup iters: 1 iters: 20 agg iters: 1 "
        "validation: 1 graph: 0 unalign: 0",
        "#",
        "# Using devices",
    ]
    for rank in range(nodes * gpus):
        lines.append(
            f"#  Rank {rank:2} Group  0 Pid {4000 + rank:6} on {f'gpu{rank // gpus}':>10} device {rank % gpus:2} "
            f"[0000:{rank % gpus:02x}:00] Some GPU"
        )
    lines += [chosen] if chosen else []
    lines += [
        "#",
        "#                                                              out-of-place                       in-place          ",
        "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong ",
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         ",
    ]
    for size, us in times.items():
        begin = f"{size:12}  {size // 4:12}  {'float':>8}  {'sum':>6}  {-1:6}"
        half = f"  {us:7.2f}  {1.0:6.2f}  {1.5:6.2f}  {wrong:>6}"
        debug = f"gpu0:4000:4100 [0] NCCL INFO {PROGRAMS[collective]}: {size} Bytes -> {ran}\n" if ran else ""
        lines.append(begin + debug + half + half)
    lines += ["# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 1.5 ", "#"]
    return "\n".join(lines) + "\n"


def modelled(choice: str, ranks: int, run: int) -> dict[int, float]:
    start, per_kib = COSTS[choice]
    return {
        s: (start * ranks + per_kib * s / 1024) * (1 + 0.004 * ((i * 3 + run * 2) % 5 - 2)) for i, s in enumerate(SIZES)
    }


def study(checkout: Checkout, files: dict[str, str], text: str = STUDY) -> None:
    checkout.write("config/machines/gpus.yaml", MACHINE)
    checkout.write("config/studies/gpus.yaml", text.replace("FOLDER", str(checkout.folder / "data")))
    for name, content in files.items():
        checkout.write(f"data/{name}", content)


def plugins(text: str, collective: str, size: int, nodes: int, ranks: int) -> tuple[str, str] | None:
    """Return the choice of NCCL's example tuner (plugin.c): the first matching line, or None."""
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        assert len(line) < 255
        kind, low, high, algorithm, protocol, channels, wanted_nodes, wanted_ranks = line.split(",")
        assert channels == "-1"
        fits = int(wanted_nodes) in (-1, nodes) and int(wanted_ranks) in (-1, ranks)
        if kind == collective and int(low) <= size <= int(high) and fits:
            return algorithm, protocol
    return None


@pytest.mark.long
def test_from_the_output_to_the_tuners_file(checkout: Checkout, capsys) -> None:
    files = {}
    for collective, choices in CHOICES.items():
        for choice in choices:
            for nodes in (1, 2, 4):
                for run in (1, 2, 3):
                    text = printed(collective, nodes, modelled(choice, 8 * nodes, run))
                    files[f"{collective}_{choice}_n{nodes}_{run}.txt"] = text
    study(checkout, files, STUDY + "analysis: {tuning: {}}\n")
    targets = [f"results/gpus/tuning/{name}" for name in ("README.md", "sentences.csv")]
    must(checkout.snakemake("--config", "studies=gpus", "--cores", "2", "--", *targets))
    folder = checkout.folder / "results" / "gpus"
    measured = csv_rows(folder / "measurements.csv")
    assert {(row["nodes"], row["processes"], row["mapping"]) for row in measured} == {
        ("1", "8", "core"), ("2", "16", "core"), ("4", "32", "core")
    }  # fmt: skip
    assert {row["launch"] for row in measured} == {"1", "2", "3"} and {row["iterations"] for row in measured} == {"20"}
    # nccl-tests counts the bytes that all ranks receive, MPI benchmarks those of one rank.
    sizes = {
        row["collective"]: {int(r["size_bytes"]) for r in measured if r["collective"] == row["collective"]}
        for row in measured
    }
    assert sizes["allreduce"] == set(SIZES) and min(sizes["allgather"]) == SIZES[0] // 32
    assert sorted(path.name for path in (folder / "tuning").glob("*-*.*")) == ["check-emitted.csv", "nccl-core.csv"]
    text = (folder / "tuning" / "nccl-core.csv").read_text()
    shapes = {(row["collective"], int(row["processes"])): int(row["nodes"]) for row in measured}
    chosen = set()
    for row in csv_rows(folder / "tuning" / "decisions.csv"):
        ranks = int(row["processes"])
        if (row["collective"], ranks) not in shapes or row["size_bytes"] == "":
            continue
        size = int(row["size_bytes"]) * (ranks if row["collective"] == "allgather" else 1)
        decided = (
            None if row["algorithm"] == "default" else (row["algorithm"], row["parameters"].removeprefix("protocol="))
        )
        found = plugins(text, row["collective"], size, shapes[row["collective"], ranks], ranks)
        assert found == decided, row
        chosen.add((row["collective"], found))
    # The fastest according to the invented costs.
    assert plugins(text, "allreduce", SIZES[0], 4, 32) == ("tree", "ll")
    assert plugins(text, "allreduce", SIZES[-1], 4, 32) == ("ring", "simple")
    assert {found for collective, found in chosen if collective == "allreduce"} >= {("ring", "ll128")}
    # No rule for shapes that were not measured: other nodes, other ranks, other sizes.
    for size, nodes, ranks in ((SIZES[0], 8, 32), (SIZES[0], 2, 12), (2 * SIZES[-1], 4, 32)):
        assert plugins(text, "allreduce", size, nodes, ranks) is None
    readme = (folder / "tuning" / "README.md").read_text()
    assert 'NCCL_TUNER_CONFIG_FILE="$PWD/nccl-core.csv"' in readme and "nChannels = 0" in readme
    assert (
        main(["explain", str(folder / "tuning" / "nccl-core.csv"), "--ranks", "32", "--size", "1024", "--nodes", "4"])
        == 0
    )
    assert "allreduce, 32 ranks on 4 nodes, 1024 bytes per rank: tree (in the file: tree ll)" in capsys.readouterr().out


def test_the_same_ranks_on_other_nodes_have_lines_of_their_own() -> None:
    rows = decisions({8: {1024: "ring:protocol=ll", 4096: "default"}}, "allreduce", nodes=1)
    rows += decisions({8: {1024: "tree:protocol=ll128", 4096: "tree"}, 16: {1024: "ring"}}, "allreduce", nodes=2)
    rows += decisions({8: {1024: "ring"}, 16: {1024: "ring"}}, "bcast", nodes=2)
    measured = {"collectives": {"allreduce": {"processes": [8]}, "bcast": {"processes": [8, 16]}}}
    text = nccl.study_csv(placements(rows), measured, Configuration(ROOT / "config").catalogue, ["long " * 80])
    assert plugins(text, "allreduce", 1024, 1, 8) == ("ring", "ll")
    assert plugins(text, "allreduce", 4096, 1, 8) is plugins(text, "allreduce", 8192, 2, 8) is None
    assert plugins(text, "allreduce", 1024, 2, 8) == ("tree", "ll128") and plugins(text, "allreduce", 4096, 2, 8) == (
        "tree",
        "simple",
    )
    assert plugins(text, "broadcast", 2047, 2, 8) == plugins(text, "broadcast", 512, 2, 16) == ("ring", "simple")
    assert plugins(text, "broadcast", 511, 2, 16) is None
    assert plugins(text, "broadcast", 2047, 1, 8) is plugins(text, "allreduce", 1024, 2, 16) is None


SET = "gpu0:4000:4000 [0] NCCL INFO NCCL_{} set by environment to {}."
CHOSEN = f"{SET.format('PROTO', 'LL128')}\n{SET.format('ALGO', '{}')}"
TIMES = modelled("Ring_LL128", 8, 1)


def collected(checkout: Checkout, text: str, mpi: str = "nccl") -> tuple[int, str]:
    """Return status and error for a study of one file whose name contains no information."""
    lines = [
        line
        for line in STUDY.replace("mpi: nccl", f"mpi: {mpi}").splitlines()
        if "- &chosen" not in line and "<<" not in line
    ]
    study(checkout, {"allreduce_default_1.txt": text}, "\n".join(lines) + "\n")
    done = checkout.collstudy("--results", "results", "collect", "gpus")
    return done.returncode, done.stderr


def test_nccls_own_lines_say_what_was_set_and_what_ran(checkout: Checkout) -> None:
    chosen = CHOSEN.format("Ring")
    status, error = collected(
        checkout, printed("allreduce", 1, TIMES, chosen=chosen, ran="Algo RING proto LL128 channel{Lo..Hi}={0..7}")
    )
    assert status == 0, error
    rows = csv_rows(checkout.folder / "results/gpus/measurements.csv")
    assert {(row["algorithm"], row["parameters"]) for row in rows} == {("ring", "protocol=ll128")}
    assert [float(row["latency_us"]) for row in rows] == [round(us, 2) for us in TIMES.values()]
    # Older versions print numbers; a row with another protocol is not used.
    status, error = collected(checkout, printed("allreduce", 1, TIMES, chosen=chosen, ran="Algo 1 proto 2 time 3.5"))
    assert (
        status == 2 and f"{len(TIMES)} rows for which NCCL printed another algorithm or protocol than was set" in error
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (printed("allreduce", 1, TIMES, chosen=CHOSEN.format("Ring,Tree")), "line 15: 'Ring,Tree' is not a single algorithm of NCCL"),
        (printed("allreduce", 1, TIMES, chosen=CHOSEN.format("Ring").splitlines()[1]), "but the protocol that NCCL chose is unknown"),
        (printed("allreduce", 1, TIMES, chosen=CHOSEN.format("NVLSTree")).replace("all_reduce_perf", "all_gather_perf"),
         "line 2: collective is allgather, but the study has allreduce"),
        (printed("allreduce", 1, TIMES).rpartition("# Avg")[0], "the run is incomplete"),
        (printed("allreduce", 1, TIMES).replace("    time ", " cputime "), "no header above has the column time"),
        (printed("allreduce", 2, TIMES).replace("Rank  9", "Rank  0"), "do not list each rank once: several instances of a program"),
        (printed("allreduce", 1, TIMES).replace("Rank  1 Group  0", "Rank  1 Group  1"), "several groups of ranks"),
        (printed("allreduce", 1, TIMES).replace("float", "half", 1), "line 19: several types or operations"),
        (printed("allreduce", 1, TIMES) + "gpu1: Test NCCL failure common.cu:961 'unhandled system error'\n", "ended abnormally"),
        (printed("allreduce", 1, TIMES, wrong="3"), "rows whose results were wrong"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_one_message(checkout: Checkout, text: str, message: str) -> None:
    status, error = collected(checkout, text)
    assert status == 2 and message in error and "Traceback" not in error


@pytest.mark.long
def test_the_draft_of_a_folder_imports_the_same_rows(checkout: Checkout) -> None:
    files = {
        f"nccl/{collective}_{choice}_n{nodes}_1.txt": printed(collective, nodes, modelled(choice, 8 * nodes, 1))
        for collective, choices in CHOICES.items()
        for choice in choices
        for nodes in (1, 2)
    }
    study(checkout, files, STUDY.replace("FOLDER", "FOLDER/nccl"))
    must(checkout.collstudy("import", str(checkout.folder / "data" / "nccl"), "--machine", "gpus", "--name", "drafted"))
    drafted = checkout.folder / "config" / "studies" / "drafted.yaml"
    names = {line.split("/")[-1] for line in drafted.read_text().splitlines() if "path:" in line}
    assert names == {
        f"{name}_{rest}" for name in CHOICES for rest in ("{algorithm}_{protocol}_n*_*.txt", "default_n*_*.txt")
    }
    drafted.write_text(drafted.read_text().replace("mpi: nccl", "mpi: nccl\n  mpi_version: 2.27.3"))
    rows = {}
    for name in ("gpus", "drafted"):
        must(checkout.collstudy("--results", "results", "collect", name))
        found = csv_rows(checkout.folder / "results" / name / "measurements.csv")
        rows[name] = sorted(tuple({**row, "study": ""}.items()) for row in found)
    assert rows["drafted"] == rows["gpus"] != []


def test_the_study_names_nccl(checkout: Checkout) -> None:
    status, error = collected(checkout, printed("allreduce", 1, TIMES), "Open MPI")
    assert status == 2 and "measurements of NCCL need import.mpi: nccl, not 'Open MPI'" in error


def test_name_and_log_agree(checkout: Checkout) -> None:
    study(checkout, {"allreduce_Tree_LL128_n1_1.txt": printed("allreduce", 1, TIMES, chosen=CHOSEN.format("Ring"))})
    study_file = checkout.folder / "config/studies/gpus.yaml"
    study_file.write_text(
        "\n".join(line for line in study_file.read_text().splitlines() if "default" not in line and "<<" not in line)
    )
    done = checkout.collstudy("--results", "results", "collect", "gpus")
    assert done.returncode == 2 and "algorithm is ring, but the study has tree" in done.stderr
