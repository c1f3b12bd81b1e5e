"""Traces and replays: what the trace library records, what is rejected, and the messages of a replay."""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import shutil
import struct
import subprocess
import time
from array import array
from collections import Counter
from pathlib import Path

import pytest
from collstudy.base.errors import StudyError
from collstudy.launch import tracefile
from collstudy.launch.actions import read_calls, write_actions
from collstudy.launch.openmpi import OVERSUBSCRIBED, library
from collstudy.launch.toolchain import mpi_environment, mpis
from conftest import ROOT, Checkout, compiled, csv_rows, finish, must
from made_runs import cell_rows, measured

TESTS = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build tests/traced.c with the MPI library of the study."""
    return compiled("traced", tmp_path_factory.mktemp("traced"))


def trace(
    folder: Path, ranks: int, *command: str | Path, preload: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command with the trace library, or another build of it."""
    folder.mkdir(parents=True, exist_ok=True)
    preload = preload or library().build / "trace" / "libcolltrace.so"
    start = [library().mpirun, "-n", str(ranks), *OVERSUBSCRIBED]
    start += ["-x", f"LD_PRELOAD={preload}", "-x", f"COLLTRACE_FOLDER={folder}"]
    return finish([*start, *command], timeout=120, env=mpi_environment())


@pytest.fixture(scope="module")
def recorded(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record four ranks of the program."""
    folder = tmp_path_factory.mktemp("recorded")
    must(trace(folder, 4, program))
    return folder


@pytest.fixture
def copied(recorded: Path, tmp_path: Path) -> Path:
    """Return a copy of the recorded files that a test may damage."""
    return Path(shutil.copytree(recorded, tmp_path / "ranks"))


@pytest.mark.long
def test_recording_is_free_of_undefined_behaviour(program: Path, tmp_path: Path) -> None:
    flags = "CFLAGS=-O1 -g -fsanitize=undefined -fno-sanitize-recover=undefined"
    make = ["make", "-s", "-C", ROOT / "workflow/native/trace", f"OUT={tmp_path}", f"MPICC={library().mpicc}"]
    must(finish([*make, flags], env=mpi_environment()))
    preload = tmp_path / "trace" / "libcolltrace.so"
    must(trace(tmp_path / "ranks", 4, program, preload=preload))
    for name in ("freed", "shared", "between", "failing", "orders", "cancelled"):
        must(trace(tmp_path / name, 2, program, name, preload=preload))


def rows_of(folder: Path, ranks: int, target: Path) -> tuple[dict, list[dict[str, str]]]:
    about = tracefile.collect(folder, ranks, target / "calls.csv.gz")
    return about, list(read_calls(target / "calls.csv.gz"))


def test_every_call_is_recorded_with_its_arguments(recorded: Path, tmp_path: Path) -> None:
    about, rows = rows_of(recorded, 4, tmp_path)
    assert about["complete"] and about["calls"] == len(rows)
    assert about["communicators"] == [[0, 1, 2, 3], [0, 2], [1, 3]]
    calls = {rank: [row for row in rows if row["rank"] == str(rank)] for rank in range(4)}
    names = [row["operation"] for row in calls[0]]
    assert names == [
        "init", "bcast", "alltoall", "irecv", "isend", "wait", "communicator", "allreduce", "isend", "wait", "isend", "wait",
        "gatherv", "finalize",
    ]  # fmt: skip
    by_name = {row["operation"]: row for row in calls[0]}
    assert [by_name["bcast"][name] for name in ("root", "sent_bytes", "received_bytes")] == ["1", "0", "400"]
    assert (calls[1][1]["sent_bytes"], calls[1][1]["received_bytes"]) == ("400", "0")
    assert by_name["alltoall"]["sent_bytes"] == "32"
    assert by_name["allreduce"]["communicator"] == "1"
    # The receive from any source completed with the message of rank 1 (tag 7); the send's request has no source.
    assert calls[0][5]["list"] == "1;1;7;2;-1;-1"
    assert by_name["gatherv"]["list"] == "1;2;3;4" and calls[3][-2]["list"] == ""
    for mine in calls.values():
        times = [(float(row["start_us"]), float(row["end_us"])) for row in mine]
        assert all(start <= end for start, end in times) and times == sorted(times)


def test_an_operation_that_does_not_commute_is_noted(program: Path, recorded: Path, tmp_path: Path) -> None:
    must(trace(tmp_path / "ranks", 2, program, "ordered"))
    assert (tmp_path / "ranks" / "ordered").exists() and not (recorded / "ordered").exists()


def test_a_rank_that_is_killed_leaves_what_it_did(program: Path, tmp_path: Path) -> None:
    done = trace(tmp_path / "ranks", 2, program, "die")
    assert done.returncode != 0
    about, rows = rows_of(tmp_path / "ranks", 2, tmp_path)
    assert not about["complete"]
    assert any(problem.startswith("rank 1 ended without MPI_Finalize after 3 calls") for problem in about["problems"])
    assert [row["operation"] for row in rows if row["rank"] == "1"] == ["init", "bcast", "alltoall"]


def calls_of(program: Path, case: str, folder: Path) -> list[list[str]]:
    """Record a case of the program on two ranks; return the calls of rank 0, each with the columns that its name needs."""
    must(trace(folder / "ranks", 2, program, case))
    about, rows = rows_of(folder / "ranks", 2, folder)
    assert about["complete"], about["problems"]
    columns = ("operation", "to", "from", "request", "list")
    return [[row[name] for name in columns] for row in rows if row["rank"] == "0"][1:-1]


def test_a_receive_may_end_after_its_communicator_was_freed(program: Path, tmp_path: Path) -> None:
    assert calls_of(program, "freed", tmp_path)[-1] == ["wait", "-1", "-1", "0", "1;1;3;2;-1;-1"]


def test_requests_that_share_a_handle_end_once_each(program: Path, tmp_path: Path) -> None:
    """Open MPI gives all requests that are complete at once the same handle."""
    waits = [call[-1] for call in calls_of(program, "shared", tmp_path) if call[0] == "wait"]
    numbers = [number for wait in waits for number in wait.split(";")[::3]]
    assert len(waits) == 2 and sorted(numbers) == ["1", "2", "3"]


def test_a_cancelled_receive_has_no_source(program: Path, tmp_path: Path) -> None:
    """A replay would wait for its message; a receive from MPI_PROC_NULL ends at once."""
    waits = [call[-1] for call in calls_of(program, "cancelled", tmp_path) if call[0] == "wait"]
    assert waits == ["1;-2;-1", "2;-2;-1"]


def test_a_matched_message_may_have_more_bytes_than_an_int_counts(program: Path, tmp_path: Path) -> None:
    trace(tmp_path / "ranks", 2, program, "matched")
    _, rows = rows_of(tmp_path / "ranks", 2, tmp_path)
    assert [row["received_bytes"] for row in rows if row["operation"] == "recv"] == [str(3 << 30)]


def test_messages_of_an_intercommunicator_are_not_recorded(program: Path, tmp_path: Path) -> None:
    """Its ranks are those of the other group, for which a trace has no communicator."""
    assert calls_of(program, "between", tmp_path) == []


def test_a_call_that_returns_an_error_is_not_recorded(program: Path, tmp_path: Path) -> None:
    assert calls_of(program, "failing", tmp_path) == []


def test_communicators_may_be_used_in_different_orders(program: Path, tmp_path: Path) -> None:
    must(trace(tmp_path / "ranks", 2, program, "orders"))
    about, rows = rows_of(tmp_path / "ranks", 2, tmp_path)
    # Made by MPI_Comm_idup, and from Open MPI 5 on also by the functions of MPI 4.
    ways = 1 if library().version.startswith("4.") else 3
    assert about["communicators"] == [[0, 1]] * (1 + 2 * ways)
    used = {
        (rank, operation): [row["communicator"] for row in rows if (row["rank"], row["operation"]) == (rank, operation)]
        for rank in "01"
        for operation in ("ibcast", "ibarrier")
    }
    assert used["0", "ibcast"] == used["1", "ibcast"] == [str(1 + 2 * way) for way in range(ways)]
    assert used["0", "ibarrier"] == used["1", "ibarrier"] == [str(2 + 2 * way) for way in range(ways)]


@pytest.mark.parametrize("name", ["openmpi", "mpich", "impi"])
def test_the_trace_library_has_only_functions_of_its_mpi_library(name: str) -> None:
    """mpi4py calls functions of MPI 4 where they exist: those of the trace library alone ended it with a segmentation fault."""
    if name not in mpis():
        pytest.skip(f"no {name}")
    path = mpis()[name].build / "trace" / "libcolltrace.so"
    loaded = must(finish(["ldd", path], env={**os.environ, **mpis()[name].environment()})).stdout
    (library,) = re.findall(r"libmpi\.so\S* => (\S+)", loaded)
    own, theirs = (
        set(re.findall(r" [TWi] (MPI_\w+)", must(finish(["nm", "-D", of])).stdout)) for of in (path, library)
    )
    assert "MPI_Allreduce" in own
    assert own - theirs == set()


def test_a_program_with_sessions_runs_untraced(program: Path, tmp_path: Path) -> None:
    if library().version.startswith("4."):
        pytest.skip("Open MPI 4 has no sessions")
    must(trace(tmp_path / "ranks", 2, program, "session"))
    assert not list((tmp_path / "ranks").iterdir())


def test_several_programs_in_one_run_are_refused(program: Path, tmp_path: Path) -> None:
    # Not as sh -c 'one && two' under one mpirun: there a rank may start the second program while another one still ends
    # the first, and Open MPI then hangs now and then. The library sees the same.
    for name in "freed", "between":
        must(trace(tmp_path / "ranks", 2, program, name))
    with pytest.raises(StudyError, match="the command runs several MPI programs, one after the other or"):
        rows_of(tmp_path / "ranks", 2, tmp_path)


def test_ranks_that_their_launcher_does_not_connect_are_refused_and_run_to_their_end(tmp_path: Path) -> None:
    """As by srun without its option --mpi: each process is rank 0. The second must not cut off the file that the first one writes."""
    program, ranks = compiled("tuned", tmp_path), tmp_path / "ranks"
    ranks.mkdir()
    traced = {"LD_PRELOAD": str(library().build / "trace" / "libcolltrace.so"), "COLLTRACE_FOLDER": str(ranks)}
    environment = mpi_environment() | traced
    first = subprocess.Popen([program, "quiet", "8", "1000"], env=environment)
    while not list(ranks.iterdir()):
        assert first.poll() is None
        time.sleep(0.01)
    must(finish([program, "plain", "8", "1"], env=environment))
    assert first.wait(60) == 0
    with pytest.raises(StudyError, match=r"or each rank on its own \(srun without"):
        rows_of(ranks, 1, tmp_path)


def test_a_file_that_was_cut_off_is_a_partial_trace(copied: Path, tmp_path: Path) -> None:
    path = copied / "rank-000000.trace"
    # Inside the list of gatherv, which is one slot before the end.
    path.write_bytes(path.read_bytes()[: -tracefile.RECORD.size - 20])
    about, rows = rows_of(copied, 4, tmp_path)
    assert about["problems"] == ["rank 0 ended without MPI_Finalize after 12 calls, in the middle of a record"]
    assert sum(row["rank"] == "0" for row in rows) == 12


def test_a_missing_rank_is_named(copied: Path, tmp_path: Path) -> None:
    (copied / "rank-000002.trace").unlink()
    with pytest.raises(StudyError, match=r"rank 2 of 4 left no trace in .* \(3 ranks did\)"):
        rows_of(copied, 4, tmp_path)


def test_another_version_is_refused(copied: Path, tmp_path: Path) -> None:
    path = copied / "rank-000001.trace"
    content = bytearray(path.read_bytes())
    struct.pack_into("=I", content, 8, 99)
    path.write_bytes(content)
    with pytest.raises(StudyError, match="version 99 .* reads version 3"):
        rows_of(copied, 4, tmp_path)
    path.write_bytes(b"rank,operation\n" * 100)
    with pytest.raises(StudyError, match="not a trace"):
        rows_of(copied, 4, tmp_path)


def test_files_of_different_runs_are_refused(copied: Path, program: Path, tmp_path: Path) -> None:
    trace(tmp_path / "other", 2, program)
    shutil.copy(tmp_path / "other" / "rank-000001.trace", copied)
    with pytest.raises(StudyError, match="of rank 1 of 2, not of rank 1 of 4"):
        rows_of(copied, 4, tmp_path)


def test_a_table_that_was_cut_off_is_refused(recorded: Path, tmp_path: Path) -> None:
    rows_of(recorded, 4, tmp_path)
    path = tmp_path / "calls.csv.gz"
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(StudyError, match="damaged or truncated"):
        list(read_calls(path))


MACHINE = """
kind: simulated
label: 2-ary 2-tree
levels: [{name: group, count: 2}, {name: node, count: 2}, {name: core, count: 1}]
simulation:
  eager_limit_bytes: 65536
  async_small_bytes: 65536
  fat_tree: {arity: 2, stages: 2, link_gb_s: 1, link_us: 1, routing: deterministic}
"""
STUDY = """
title: Traced
question: Does it work?
machine: traced-here
applications:
  - {name: known, label: Known calls, command: PROGRAM, ranks: 2}
  - {name: absent, label: Not here, command: no-such-program, ranks: 2, optional: true}
  - {name: dies, label: Dies, command: PROGRAM die, ranks: 2}
  - {name: threads, label: Threads, command: TUNED threads 8 1, ranks: 2}
replay:
  machines: [small-tree]
  ranks: 4
  alternatives:
    - {label: Other bcast, algorithms: {bcast: linear}, applications: [known]}
chapter: congestion
"""


def test_copies_of_a_rank_compute_in_another_order(tmp_path: Path) -> None:
    """What a rank computes before its collectives in a loop is what its copies compute there, each one time later."""
    loop = [("allreduce", 0, 10 * i + 1) for i in range(12)] + [("bcast", 0, 500)]
    rows = [dict.fromkeys(tracefile.COLUMNS, "0") | {"list": ""} for _ in loop]
    for row, (operation, root, compute_us) in zip(rows, loop, strict=True):
        row |= {"operation": operation, "root": str(root), "compute_us": str(compute_us)}
    with gzip.open(tmp_path / "calls.csv.gz", "wt") as stream:
        writer = csv.DictWriter(stream, tracefile.COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    write_actions(tmp_path / "calls.csv.gz", [[0]], 1, tmp_path)
    numbers = array("q", (tmp_path / "rank-000000.actions").read_bytes())

    def computed(copy: int) -> list[int]:
        found, at = [], 0
        while at < len(numbers):
            place = at + 10
            for _ in range(copy):
                place = numbers[place + 1]
            found.append(numbers[place] // 1000)
            at += 13 + numbers[at + 12]
        return found

    first = [us for _, _, us in loop]
    assert computed(0) == first
    # The first seven calls have others before them, and the broadcast occurs once.
    assert computed(1) == [*first[:7], *first[8:12], first[7], first[12]]
    assert computed(2) == [*first[:7], *first[9:12], *first[7:9], first[12]]


def test_a_study_traces_once_and_replays_by_the_rule(checkout: Checkout, program: Path, tmp_path: Path) -> None:
    checkout.write("config/machines/small-tree.yaml", MACHINE)
    tuned = compiled("tuned", tmp_path)
    checkout.write("config/studies/traced.yaml", STUDY.replace("PROGRAM", str(program)).replace("TUNED", str(tuned)))
    collected = ["--config", "studies=traced", "--", "results/traced/measurements.csv"]
    must(checkout.snakemake(*collected))
    results = checkout.folder / "results"
    status = {
        (row["collective"], row["algorithm"]): (row["status"], row["reason"])
        for row in csv_rows(results / "traced" / "cells.csv")
    }
    assert status[("known", "traced")] == status[("known", "default")] == ("measured", "")
    assert status[("dies", "traced")][0] == "failed" and "ended with" in status[("dies", "traced")][1]
    assert status[("dies", "default")] == ("failed", "no complete trace to replay")
    # The account of a program with several threads is right, but not the computation between the calls of all threads.
    assert status[("threads", "traced")] == ("measured", "")
    reason = "several threads of a rank call MPI, which a replay cannot reproduce"
    assert status[("threads", "default")] == ("failed", reason)
    study = json.loads((results / "traced" / "study.json").read_text())
    reason = "the program of 'no-such-program' is not installed"
    assert study["left_out"] == [{"name": "absent", "label": "Not here", "reason": reason}]
    # The calls of the dead application until its end are stored.
    dead = next(entry for entry in study["applications"] if entry["name"] == "dies")
    assert (results / dead["trace"] / "calls.csv.gz").exists()
    known = next(entry for entry in study["applications"] if entry["name"] == "known")
    replay = results / next(entry["folder"] for entry in known["replays"] if entry["label"] == "default")
    # "Up" stays within the copy, "down" goes to the next one; SMPI adds 16 bytes to each message. Twice 10 bytes also go up.
    sent = {
        (int(row["from"]), int(row["to"])): float(row["point_to_point_bytes"]) for row in csv_rows(replay / "pairs.csv")
    }
    assert {pair: size for pair, size in sent.items() if size} == {
        (0, 1): 1016 + 2 * 26, (2, 3): 1016 + 2 * 26, (1, 2): 516, (3, 0): 516,
    }  # fmt: skip
    # Nothing is lost on the way: hosts receive what hosts send, and what goes up comes down.
    ports = {row["link"]: row for row in csv_rows(replay / "ports.csv")}
    crossed: Counter[str] = Counter()
    for row in csv_rows(replay / "links.csv.gz"):
        port = ports[row["link"]]
        crossed[port["stage"] + port["port"].rstrip("0123456789")] += float(row["bytes"])
    pairs = csv_rows(replay / "pairs.csv")
    total = sum(float(row["collective_bytes"]) + float(row["point_to_point_bytes"]) for row in pairs)
    across = sum(
        float(row["collective_bytes"]) + float(row["point_to_point_bytes"])
        for row in pairs
        if int(row["from"]) // 2 != int(row["to"]) // 2
    )
    assert crossed["0up"] == pytest.approx(total, abs=len(ports)) and crossed["1down"] == crossed["0up"]
    assert crossed["1up"] == pytest.approx(across, abs=len(ports)) and crossed["2down"] == crossed["1up"]
    # In a second run the dead application is tried again, and complete ones remain untouched. What a killed run left is removed.
    staged = (results / dead["trace"]).parent / f".stage-{dead['trace'].rpartition('-')[2]}"
    staged.mkdir()
    (staged / "half.gz").touch()
    before = {path: path.stat().st_mtime_ns for path in results.glob("*/known_*/about.json")}
    again = checkout.snakemake(*collected)
    assert again.returncode == 0 and "4 of 7 traces and replays are stored, 3 to measure" in again.stderr, (
        again.stdout + again.stderr
    )
    assert before == {path: path.stat().st_mtime_ns for path in results.glob("*/known_*/about.json")}
    assert not staged.exists()
    # A changed number and a changed file are found; a replay with changed numbers is set aside and made again.
    about, calls = next(results.glob("replays/known_*/about.json")), next(results.glob("traces/known_*/calls.csv.gz"))
    document = json.loads(about.read_text())
    about.write_text(json.dumps(document | {"makespan_us": document["makespan_us"] + 1}))
    recorded = calls.read_bytes()
    calls.write_bytes(recorded[:-1] + b"x")
    study = next(name for name in (results.iterdir()) if (name / "cells.csv").exists()).name
    verified = checkout.collstudy("--results", "results", "verify", study)
    assert verified.returncode == 1, verified.stdout + verified.stderr
    assert "the digest differs" in verified.stdout + verified.stderr
    assert "calls.csv.gz: it was changed after it was written" in verified.stdout + verified.stderr
    calls.write_bytes(recorded)
    again = checkout.snakemake(*collected)
    assert (
        "damaged" in again.stdout + again.stderr
        and json.loads(about.read_text())["makespan_us"] == document["makespan_us"]
    )


LINKED = """
title: Linked
question: Which Open MPI?
machine: traced-here
applications:
  - {name: without, label: No Fortran library, command: PROGRAM, ranks: 2}
  - {name: same, label: Library of the same build, command: LINK, ranks: 2}
  - {name: other, label: Library of another build, command: env OMP_NUM_THREADS=1 OTHER, ranks: 2}
replay: {machines: [small-tree], ranks: 2}
chapter: congestion
"""


def linked(program: Path, fortran: Path) -> Path:
    """Build tests/traced.c linked to a Fortran library of Open MPI, which it also finds when it runs."""
    command = [library().mpicc, "-o", program, TESTS / "traced.c", "-Wl,--no-as-needed", fortran]
    subprocess.run([*command, f"-Wl,-rpath,{fortran.parent}"], check=True, env=library().environment())
    return program


@pytest.mark.long
def test_a_fortran_library_of_another_open_mpi_is_refused(checkout: Checkout, program: Path, tmp_path: Path) -> None:
    own = library().shared_library.resolve().parent
    name, source = "libmpi_mpifh.so.40", tmp_path / "fortran.c"
    other, link = tmp_path / "other" / name, tmp_path / "link" / name
    for folder in (other.parent, link.parent):
        folder.mkdir()
    source.write_text("int bindings(void) { return 0; }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", other, source], check=True)
    refused, accepted = linked(tmp_path / "refused", other), program
    # Set-up's own Open MPI has no Fortran library.
    if (own / name).exists():
        link.symlink_to(own / name)
        accepted = linked(tmp_path / "accepted", link)
    text = LINKED.replace("PROGRAM", str(program)).replace("LINK", str(accepted)).replace("OTHER", str(refused))
    checkout.write("config/machines/small-tree.yaml", MACHINE)
    measured(checkout, "linked", text)
    traced = [row for row in cell_rows(checkout, "linked") if row["algorithm"] == "traced"]
    status = {row["collective"]: (row["status"], row["reason"]) for row in traced}
    assert status["without"] == status["same"] == ("measured", "")
    reason = f"{refused} uses libmpi_mpifh in {other.parent}, which does not work with the Open MPI in {own}: put mpirun and mpicc"
    assert status["other"][0] == "failed" and status["other"][1].startswith(reason), status["other"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("ranks: 4", "ranks: 3"), "3 is not a multiple of the 2 ranks of known"),
        (("ranks: 4", "ranks: 8"), "8 is more than the 4 cores of small-tree"),
        (("ranks: 4", "ranks: 4\n  mapping: nose"), r"replay.mapping: unknown mapping 'nose' \(did you mean"),
        (
            ("ranks: 4", "ranks: 4\n  mapping: socket"),
            "replay.mapping: socket needs level 'socket', which machine small-tree lacks",
        ),
        (
            ("ranks: 4", "ranks: 4\n  mapping: shuffled"),
            "replay.mapping: shuffled has `hosts`, which replays do not support; known:",
        ),
        (
            ("Other bcast, ", "Random, mapping: random, "),
            "alternatives.0.mapping: random has `hosts`, which replays do not support",
        ),
        (("[small-tree]", "[this-machine]"), "replays need simulated machines; this-machine is of kind local"),
        (("bcast: linear", "bcast: fancy"), "no bcast algorithm 'fancy' that can be simulated; known: .*linear"),
        (("bcast: linear", "cast: linear"), r"unknown collective 'cast' \(did you mean 'bcast'\?\); known: "),
        (("applications: [known]", "applications: [other]"), "no application 'other'; known: absent, dies, known"),
        (("machine: traced-here", "machine: thin"), "kind local or slurm; thin is of kind simulated"),
        (("machine: traced-here", "machine: mpich-here"), "applications are traced with openmpi; .* has mpich"),
        (("name: absent", "name: known"), "applications.1.name: 'known' is used twice; names must be unique"),
    ],
)
def test_a_wrong_study_is_explained(checkout: Checkout, change: tuple[str, str], message: str) -> None:
    checkout.write("config/machines/small-tree.yaml", MACHINE)
    checkout.write("config/machines/mpich-here.yaml", "{kind: local, label: here, mpi: mpich}")
    checkout.write("config/studies/traced.yaml", STUDY.replace(*change))
    with pytest.raises(StudyError, match=message):
        checkout.configuration.study("traced")


def test_a_tree_with_other_levels_is_explained(checkout: Checkout) -> None:
    checkout.write("config/machines/small-tree.yaml", MACHINE.replace("group, count: 2", "group, count: 4"))
    with pytest.raises(StudyError, match="arity 2 with 2 stages has the levels {name: group, count: 2}"):
        checkout.configuration.machine("small-tree")


def test_the_spiking_network_is_the_same_on_any_number_of_ranks() -> None:
    spiking = library().build / "apps" / "spiking"
    found = []
    for ranks in (1, 3):
        start = [library().mpirun, "-n", str(ranks), *OVERSUBSCRIBED]
        options = ["--neurons", "600", "--indegree", "60", "--milliseconds", "60"]
        done = must(
            finish([*start, spiking, *options], timeout=60, env={**mpi_environment(), **{"OMP_NUM_THREADS": "1"}})
        )
        found.append(dict(re.findall(r"(\w+)=(\S+)", done.stdout)))
    one, three = found
    assert one["spikes"] == three["spikes"] and int(one["spikes"]) > 0
    # One exchange every 1.5 ms, and one more for every overflow of the buffers.
    assert int(three["rounds"]) == 40 + int(three["growths"]) and int(three["growths"]) > 0
