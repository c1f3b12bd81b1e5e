"""The study on a real Slurm: one job per block, measuring only changes, accounting, launchers."""

# Fixtures are imported, and their names are used again as arguments.
# ruff: noqa: F811
from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
from pathlib import Path

import pytest
from cluster import Cluster
from collstudy.launch.openmpi import library
from collstudy.launch.proof import messages
from collstudy.launch.toolchain import Mpi, identify, mpis
from collstudy.study.names import LIBRARIES
from collstudy.study.patterns import PATTERNS
from collstudy.tuning import emission
from conftest import ROOT, compiled, csv_rows, executable
from slurm_study import MACHINE, MEASURED, SlurmStudy, cluster, hosts_only, tiny, two  # noqa: F401
from test_program import WRONG
from test_tuning_emitted import emitted, pasted


@pytest.mark.long
def test_only_what_changed(two, cluster) -> None:
    """Check the submitted jobs and the measured cells for each kind of change."""
    hosts_only(cluster)
    study = two()

    def submitted(printed_cells: int | None, study_text: str | None = None) -> None:
        before = len(study.jobs()), study.launches()
        if study_text is not None:
            study.checkout.write("config/studies/two.yaml", study_text)
        output = study.run()
        if printed_cells is None:
            assert "to measure" not in output and len(study.jobs()) == before[0]
            return
        assert f"{printed_cells} to measure in 1 block," in output, output
        assert "node-hours" in output, output
        assert len(study.jobs()) == before[0] + 1
        assert len(study.launches()) == len(before[1]) + printed_cells
        study.assert_complete(before[1], 2)

    submitted(4)
    launch = next(iter(study.launches().values()))[0]["provenance"]
    assert launch["hosts"] == cluster.nodes and launch["slurm"]["job"] == study.jobs()[0]["id"]
    assert set(launch["nodes"]) == set(cluster.nodes) and all("kernel" in node for node in launch["nodes"].values())
    job = cluster.job(int(study.jobs()[0]["id"]))
    assert job["JobName"].startswith("collstudy_")
    assert (job["NumNodes"], job["Partition"], job["OverSubscribe"], job["NumTasks"]) == ("2", "THIN", "NO", "48")
    assert list((study.folder / "logs" / "slurm").rglob("pair_openmpi_n2-*/*.log"))
    # A second run, another partition or limit, and a copy without Snakemake's records: nothing to measure.
    changed = MACHINE.replace("setup_minutes: 1", "setup_minutes: 3, account: other").replace("60", "90")
    study.checkout.write("config/machines/pair.yaml", changed)
    submitted(None)
    study.checkout.write("config/machines/pair.yaml", MACHINE)
    shutil.rmtree(study.folder / ".snakemake")
    submitted(None)
    # A parameter of one algorithm, one process count, one mapping: one job each, with only the new cells.
    submitted(
        1,
        study.study.replace("binomial]", "binomial, {name: binomial, segment_bytes: 1024}]").replace(
            "core, node", "core"
        ),
    )
    submitted(2, study.study.replace("[4]", "[4, 6]").replace("core, node", "core"))
    submitted(2, study.study.replace("core, node", "core, node, BFNF"))
    assert "6 of 6 cells done, 0 failed" in study.collstudy("status").stdout


@pytest.mark.long
def test_a_checkout_in_a_folder_with_a_blank(cluster, tmp_path: Path) -> None:
    """With each MPI library, also what is preloaded into the ranks: the collectives library, and what verifies algorithms."""
    hosts_only(cluster)
    study = SlurmStudy(cluster, tmp_path / "my study", launches=1, mappings="core")
    swept = "mpi: [openmpi, mpich, impi], algorithms: [default, binomial, node]"
    study.checkout.write("config/studies/two.yaml", study.study.replace("algorithms: [linear, binomial]", swept))
    folder = study.folder / ".study"
    study.environment["PATH"] = f"{folder}/venv/bin:{folder}/openmpi/bin:{os.environ['PATH']}"
    process = study.start(MEASURED, snakemake=["python", "-m", "collstudy", "run", "--"])
    assert process.wait(300) == 0, study.output() + study.logs()
    study.assert_complete({}, 1)
    rows = csv_rows(study.folder / MEASURED)
    assert {row["mpi"]: row["left_pct"] for row in rows if row["algorithm"] == "node"} == dict.fromkeys(
        LIBRARIES, "0.0"
    )


def test_in_the_shell_of_salloc_on_the_login_node(cluster, tmp_path: Path) -> None:
    """The block runs on the nodes of the job; files for its ranks are not in a folder that only the login node has."""
    hosts_only(cluster)
    study = SlurmStudy(cluster, tmp_path / "study", launches=1, mappings="core")
    study.checkout.write("config/studies/two.yaml", study.study.replace("processes: [4]", "nodes: [1], processes: [4]"))
    study.environment["TMPDIR"] = "/dev/shm"
    command = ["salloc", "-N", "1", "--exclusive", sys.executable, "-m", "snakemake", "--cores", "1", "--", MEASURED]
    with open(study.folder / "output", "w") as output:
        options = {"stdout": output, "stderr": output, "cwd": study.folder, "env": study.environment}
        assert cluster.popen(command, **options).wait(300) == 0, study.output() + study.logs()
    study.assert_complete({}, 1)
    assert {one["provenance"]["slurm"]["job"] for cell in study.launches().values() for one in cell}


SAMPLED = """
sampling: {rounds: 2, first_pct: 50, round_pct: 100, target_regret_pct: 0}
analysis: {tuning: {}}
chapter: tuning
"""


def test_from_the_question_to_the_report(two, cluster) -> None:
    """`snakemake --profile slurm` alone completes a study: sampling in rounds, decisions and verification run on the nodes; tables,
    tuning files, report and verdict are made on the login node.
    """
    hosts_only(cluster)
    study = two(launches=1, mappings="core")
    text = study.study.replace("[linear, binomial]", "[default, linear]") + SAMPLED
    study.checkout.write("config/studies/two.yaml", text)
    study.environment["STUDY_PROGRESS_SECONDS"] = "1"
    output = study.run_all()
    # Of the cells of the second round, and of the block that verifies the tuning files.
    assert re.search(r"two: 2 of \d cells done.*blocks 1 not started", output)
    assert re.search(r"two: (\d) of \1 cells done, 0 failed; verifying tuning files; blocks 1 not started", output)
    study.assert_complete({}, 1)
    results = study.folder / "results"
    # Each round that selected points, and the verification, is a Slurm job.
    rounds = [row for row in csv_rows(results / "two" / "tables" / "sampling-rounds.csv") if row["points"] != "0"]
    jobs = [job["id"] for job in study.jobs()]
    assert len(jobs) == len(rounds) + 1 and len(rounds) == 2, output
    launched = {name: one[0]["provenance"]["slurm"]["job"] for name, one in study.launches().items()}
    tuned = {job for name, job in launched.items() if "_tuned_" in name}
    assert tuned == {jobs[-1]} and set(launched.values()) == set(jobs)
    measured = csv_rows(results / "two" / "measurements.csv")
    assert all(float(row["seconds"]) > 0 for row in measured)
    verified = csv_rows(results / "two" / "tables" / "tuning-verification.csv")
    assert {row["verdict"] for row in verified} <= {"faster", "tie", "slower"} and verified
    page = "".join(path.read_text() for path in (results / "report").glob("*.html"))
    assert "Two nodes" in page and "Two test nodes" in page and "Sampled in rounds" in page
    assert (results / "report" / "report.pdf").read_bytes().startswith(b"%PDF")
    # Nothing is left to do.
    assert "Nothing to be done" in study.run_all() and len(study.jobs()) == len(jobs), output
    # A verification that is not visible yet is not judged as missing.
    late = next((results / "cells").rglob("*_tuned_*.json"))
    shutil.move(late, study.folder)
    judged = study.collstudy("tuning", "keep", "two", "--latency", "1")
    assert judged.returncode == 2 and "of two: the file of 1 cell is not visible here after 1 s" in judged.stderr
    assert csv_rows(results / "two" / "tables" / "tuning-verification.csv") == verified


def use_open_mpi_5(study) -> Mpi:
    """Let the study use the Open MPI of .study/openmpi, even if pytest runs with another one first on PATH."""
    folder = ROOT / ".study" / "openmpi" / "bin"
    if not (folder / "mpirun").exists():
        pytest.fail("no Open MPI 5 in .study/openmpi: ./study test installs it")
    study.environment["PATH"] = f"{Path(sys.executable).parent}:{folder}:{os.environ['PATH']}"
    built = study.cluster.run(
        [sys.executable, "-m", "collstudy", "build"], check=False, cwd=study.folder, env=study.environment
    )
    assert built.returncode == 0, built.stderr
    return identify(folder)


def test_two_nodes_with_open_mpi_5(two, cluster) -> None:
    hosts_only(cluster)
    study = two(mappings="core, BFNF")
    use_open_mpi_5(study)
    study.run()
    study.assert_complete({}, 2)
    document = json.loads(next((study.folder / "results" / "cells").rglob("*BFNF*.json")).read_text())
    assert document["cell"]["mpi"]["version"].startswith("5.")
    assert document["proof"]["placed"] is True
    assert [(b["host"], b["cores"]) for b in document["proof"]["binding"]][:3] == [
        ("thin001", [0]), ("thin002", [0]), ("thin001", [1])
    ]  # fmt: skip


def test_the_collectives_library_on_two_nodes(two, cluster) -> None:
    """The library reaches the ranks of both nodes, creates its communicators there, and executes every call itself."""
    hosts_only(cluster)
    study = two(mappings="node", launches=1)
    use_open_mpi_5(study)
    names = {"node", "node_group_chain"}
    study.checkout.write("config/studies/two.yaml", study.study.replace("[linear, binomial]", f"[{', '.join(names)}]"))
    study.run()
    study.assert_complete({}, 1)
    rows = csv_rows(study.folder / MEASURED)
    assert {row["algorithm"] for row in rows} == names
    assert all(float(row["setup_us"]) > 0 and float(row["left_pct"]) == 0 for row in rows)


@pytest.mark.long
def test_components_on_two_nodes(two, cluster) -> None:
    """The component that a cell requests runs there, as its communicator's table shows; missing components are left out."""
    hosts_only(cluster)
    study = two(mappings="node", launches=1)
    use_open_mpi_5(study)
    text = study.study.replace("[linear, binomial]", "[default, tuned, basic, han, hcoll]")
    study.checkout.write("config/studies/two.yaml", text)
    study.run()
    status = {row["algorithm"]: row["status"] for row in csv_rows(study.folder / "results" / "two" / "cells.csv")}
    assert {name: status[name] for name in ("default", "tuned", "basic", "han")} == dict.fromkeys(
        ("default", "tuned", "basic", "han"), "measured"
    )
    assert status.get("hcoll", "left out") not in ("measured", "failed")


def test_tuning_files_of_several_nodes_act_on_two_nodes(two, cluster, tmp_path) -> None:
    """The command of tuning/README.md in a job: a pipeline below 1 KiB, which coll/han would not use; coll/han from there on."""
    hosts_only(cluster)
    study = two()
    mpi = use_open_mpi_5(study)
    placement = emitted(tmp_path / "tuning", 2, mpi=mpi)
    *exports, command = pasted(tmp_path / "tuning", emission.han_path(Path(), placement).name)
    lines = [
        f"cd {tmp_path}/tuning",
        *exports,
        "export OMPI_MCA_pml_monitoring_enable=2 OMPI_MCA_pml_monitoring_enable_output=3",
    ]
    seen = {}
    for name, size, words in (
        ("small", 1023, command),
        ("large", 1024, command),
        ("default", 1024, "mpirun ./program"),
    ):
        seen[name] = tmp_path / name
        seen[name].mkdir()
        words = words.replace("./program", f"{mpi.build}/probe/collprobe bcast {size}")
        lines.append(f"OMPI_MCA_pml_monitoring_filename={seen[name]}/messages {words}")
    output = tmp_path / "output"
    number = cluster.submit("\n".join(lines), "-N2", "--ntasks-per-node=2", f"-o{output}", env=study.environment)
    assert cluster.wait(number) == "COMPLETED", output.read_text()
    assert set(messages(seen["small"])) == PATTERNS["pipeline"](4, {})
    assert set(messages(seen["large"])) == set(messages(seen["default"])) != PATTERNS["pipeline"](4, {})


def test_two_nodes_with_mpich_and_intel_mpi(two, cluster, tmp_path) -> None:
    """Ranks alternate between the nodes, in an allocation of the user; what MPICH ran is verified between the nodes."""
    hosts_only(cluster)
    if not {"mpich", "impi"} <= set(mpis()):
        pytest.fail("no MPICH or Intel MPI in .study: ./study test installs them")
    study = two(mappings="node", launches=1)
    libraries = "mpi: [mpich, impi], algorithms: [default]"
    text = study.study.replace("algorithms: [linear, binomial]", libraries)
    sweep = text[text.index("  - {") :].replace(
        libraries, "mpi: [mpich], algorithms: [{name: pipeline, segment_bytes: 16}]"
    )
    study.checkout.write("config/studies/two.yaml", text + sweep)
    output = tmp_path / "output"
    script = f"cd {study.folder}; snakemake --cores 2 -- {MEASURED}"
    number = cluster.submit(script, "-N2", "--exclusive", "--ntasks-per-node=24", f"-o{output}", env=study.environment)
    assert cluster.wait(number) == "COMPLETED", output.read_text() + study.logs()
    assert {row["status"] for row in study.cells()} == {"measured"} and len(study.cells()) == 3
    files = (study.folder / "results" / "cells").rglob("*.json")
    proofs = {"_".join(path.name.split("_")[1:3]): json.loads(path.read_text())["proof"] for path in files}
    assert {name: (proof["used"], proof["placed"]) for name, proof in proofs.items()} == {
        "mpich_default": (None, True), "mpich_pipeline": (True, True), "impi_default": (None, True)
    }  # fmt: skip
    for proof in proofs.values():
        # The processors of a node alternate between its sockets, and the ranks of a node do.
        assert [place["socket"] for place in proof["binding"]] == [0, 0, 1, 1]
        assert [(place["host"], place["cpus"]) for place in proof["binding"]] == [
            ("thin001", "0"), ("thin002", "0"), ("thin001", "1"), ("thin002", "1")
        ]  # fmt: skip


@pytest.mark.long
def test_windows_on_two_nodes_with_each_library(two, cluster, tmp_path) -> None:
    """Two ranks, one on each node; their clocks are compared over the network.

    Do not run beside other tests: if ranks wait for their cores, all calls may start late, and then the cell fails.
    """
    hosts_only(cluster)
    study = two(mappings="node", launches=1)
    use_open_mpi_5(study)
    libraries = ("openmpi", "mpich", "impi")
    sweep = f"mpi: [{', '.join(libraries)}], barrier: window, algorithms: [default]"
    text = study.study.replace("algorithms: [linear, binomial]", sweep).replace("processes: [4]", "processes: [2]")
    text = text.replace("iterations: 5", "iterations: 500").replace("to: 64", "to: 2")
    study.checkout.write("config/studies/two.yaml", text)
    output = tmp_path / "output"
    script = f"cd {study.folder}; snakemake --cores 2 -- {MEASURED}"
    number = cluster.submit(script, "-N2", "--exclusive", "--ntasks-per-node=24", f"-o{output}", env=study.environment)
    assert cluster.wait(number) == "COMPLETED", output.read_text() + study.logs()
    assert {(row["status"], row["reason"]) for row in study.cells()} == {("measured", "")}
    rows = csv_rows(study.folder / MEASURED)
    assert {row["mpi"] for row in rows} == set(libraries) and len(rows) == 6
    assert {(row["suite"], row["nodes"], row["processes"]) for row in rows} == {("collbench-windows", "2", "2")}
    assert all(int(row["iterations"]) + int(row["late"]) == 500 and int(row["iterations"]) > 0 for row in rows)


@pytest.mark.long
@pytest.mark.parametrize("mpi", ["openmpi", "mpich", "impi"])
def test_srun_places_ranks_as_requested(two, cluster, mpi) -> None:
    hosts_only(cluster)
    study = two(launches=1, mappings="node")
    use_open_mpi_5(study)
    machine = MACHINE.replace("exclusive", "launcher: srun, exclusive").replace("mpi: openmpi", f"mpi: {mpi}")
    study.checkout.write("config/machines/pair.yaml", f"{machine}environment: {{OF_SITE: a b}}\n")
    study.checkout.write("config/studies/two.yaml", study.study.replace("[linear, binomial]", "[default, binomial]"))
    study.run()
    assert {(row["status"], row["algorithm"]) for row in study.cells()} == {
        ("measured", "default"), ("measured", "binomial")
    }, study.logs()  # fmt: skip
    for file in (study.folder / "results" / "cells").rglob("*.json"):
        document = json.loads(file.read_text())
        used = {"default": None, "binomial": True}[document["cell"]["algorithm"]]
        assert (document["proof"]["used"], document["proof"]["placed"]) == (used, True), document["proof"]
        assert [(place["host"], place["cpus"], place["socket"]) for place in document["proof"]["binding"]] == [
            ("thin001", "0", 0), ("thin002", "0", 0), ("thin001", "1", 1), ("thin002", "1", 1)
        ]  # fmt: skip
        assert " srun --mpi=" in document["launches"][0]["provenance"]["command"]
        assert document["cell"]["machine"]["environment"] == {"OF_SITE": "a b"}


@pytest.mark.long
@pytest.mark.parametrize("name", ["openmpi", "mpich"])
def test_an_mpi_library_without_mpirun(two, cluster, tmp_path, name) -> None:
    """As clusters build them for Slurm; algorithms of Open MPI share launches."""
    hosts_only(cluster)
    study = two(launches=1, mappings="node")
    use_open_mpi_5(study)
    for tool in ("mpicc", "ompi_info"):
        executable(tmp_path / tool, f'#!/bin/sh\nexec {ROOT}/.study/{name}/bin/{tool} "$@"\n')
    study.environment["PATH"] = f"{Path(sys.executable).parent}:{tmp_path}:{os.environ['PATH']}"
    machine = MACHINE.replace("exclusive", "launcher: srun, exclusive").replace("mpi: openmpi", f"mpi: {name}")
    study.checkout.write("config/machines/pair.yaml", machine)
    start = "[default, binomial], start: shared" if name == "openmpi" else "[default, binomial]"
    study.checkout.write("config/studies/two.yaml", study.study.replace("[linear, binomial]", start))
    study.run()
    assert {(row["status"], row["reason"]) for row in study.cells()} == {("measured", "")}, study.logs()
    documents = [json.loads(file.read_text()) for file in (study.folder / "results" / "cells").rglob("*.json")]
    assert {one["cell"]["algorithm"]: one["proof"]["used"] for one in documents} == {"default": None, "binomial": True}
    for document in documents:
        assert document["proof"]["placed"] is True
        assert "mpirun" not in " ".join(document["launches"][0]["provenance"]["software"])
        assert " srun --mpi=" in document["launches"][0]["provenance"]["command"]


def test_more_than_the_allowed_node_hours_is_refused(two) -> None:
    study = two()
    for arguments in (("--config", "max_node_hours=0.001"), ("-n", "--config", "max_node_hours=0.001")):
        output = study.run(*arguments, "--", MEASURED, status=2)
        assert "but max_node_hours = 0.001" in output and "two: 0 of 4 cells are stored" in output
    assert study.jobs() == []
    assert "two: 0 of 4 cells are stored, 4 to measure in 1 block," in study.run("-n", MEASURED)
    assert study.jobs() == []


@pytest.mark.long
def test_with_accounting_by_sacct(tmp_path) -> None:
    if not shutil.which("slurmdbd", path="/usr/sbin:/usr/bin"):
        pytest.skip("not installed: slurmdbd mariadb-server")
    with Cluster(name=f"acctstudy{os.getpid()}", accounting=True) as accounted:
        hosts_only(accounted)
        study = SlurmStudy(accounted, tmp_path / "study", launches=1, mappings="core")
        study.run("--slurm-status-command", "sacct", "--", MEASURED)
        study.assert_complete({}, 1)
        time.sleep(1)
        states = accounted.run(["sacct", "-n", "-X", "-P", "-o", "State"]).stdout.split()
        assert states == ["COMPLETED"]


#: A machine that four ranks do not fill.
SMALL = """
kind: slurm
label: Two small test nodes
mpi: openmpi
levels: [{name: node, count: 2}, {name: core, count: 4}]
slurm: {partition: THIN, exclusive: true, setup_minutes: 1}
launch_time_limit_s: 60
"""


@pytest.mark.long
def test_a_program_is_tuned_on_two_nodes(two, cluster, tmp_path: Path) -> None:
    hosts_only(cluster)
    study: SlurmStudy = two()
    study.checkout.write("config/machines/small.yaml", SMALL)
    compiled("tuned", tmp_path)
    study.environment |= WRONG
    command = ["tune", "--name", "far", "--runs", "5", "--budget", "0.5", "--machine", "small"]
    # A single node would have cores for all ranks.
    command += ["--folder", str(tmp_path), "--", str(library().mpirun), "-n", "4", "-N", "2"]
    command += ["./tuned", "across", "65536", "300"]
    written = study.collstudy(*command)
    assert written.returncode == 0, written.stderr
    # For `./study`: the folder of the results, and the words for `./study run`.
    results, words = study.folder / "results" / "tune-far", "tune-far -- --profile slurm"
    assert written.stdout.splitlines() == [str(results), words]
    study.run("--config", "studies=tune-far", limit_s=900)
    # The trace, the runs of the program and the cells all run in jobs on both nodes.
    (about,) = (study.folder / "results" / "traces").glob("*/about.json")
    assert json.loads(about.read_text())["trace"]["hosts"] == cluster.nodes
    assert {row["nodes"] for row in csv_rows(results / "cells.csv")} == {"2"}
    # Its communicators have a rank on each node, and so have the cells.
    assert {row["placements"] for row in csv_rows(results / "tables" / "account-cells.csv")} == {"2 x 1"}
    assert {row["node"] for row in csv_rows(results / "ranks.csv") if row["rank"] == "1"} == {"1"}
    submitted = [job["id"] for job in study.jobs()]
    measured = {one["provenance"]["slurm"]["job"] for cell in study.launches().values() for one in cell}
    assert measured and measured < set(submitted)
    judged = {row["part"]: row["verdict"] for row in csv_rows(results / "tables" / "tuning-judged.csv")}
    assert judged == {"whole": "faster", "collectives": "faster"}
    ran = {row["file"]: row["algorithm"] for row in csv_rows(results / "tables" / "tuning-ran.csv")}
    # coll/han broadcasts between and within the nodes.
    assert ran["default"].startswith("pipeline[segment 512]") and ran["tuned"] not in ("", ran["default"])
    assert "openmpi-core-n2.rules" in (results / "tuning" / "result.txt").read_text()
