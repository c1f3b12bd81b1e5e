"""`mpirun-tuned`: the file for a job's shape, from mpirun's options, host files and Slurm's variables."""

from __future__ import annotations

import ast
import json
import os
import stat
from pathlib import Path

import pytest
from collstudy.launch.openmpi import library
from collstudy.study.config import Configuration
from collstudy.study.openmpi_numbers import NUMBERS
from collstudy.tuning import emission, mpirun_tuned
from collstudy.tuning.rules import Decision, placements, selected
from conftest import ROOT, finish, must
from made_nodes import make_node

CONFIG = Configuration(ROOT / "config")
HOW = {
    "mpi": "openmpi",
    "mpi_version": "5.0.11",
    "suite": "s",
    "suite_version": "1",
    "simulator": "",
    "simulator_version": "",
}
#: Two nodes of one socket.
LEVELS = [{"name": name, "count": count} for name, count in (("node", 2), ("socket", 1), ("core", 4))]
STUDY = {
    "name": "toy", "title": "Toy", "simulated": False, "machine": {"label": "M", "levels": LEVELS}, "provenance": HOW,
    "collectives": {"bcast": {"processes": [2, 4, 8]}},
}  # fmt: skip
#: Decisions for nodes of four cores: (mapping, nodes) -> algorithm.
DECIDED = {("core", 1): "linear", ("core", 2): "chain", ("node", 2): "binomial"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write the tuning folder of a study with three placements, and a fake mpirun (Open MPI 5) that prints its arguments."""
    tuning = tmp_path / "results of toy" / "tuning"
    rows = [
        Decision("bcast", mapping, nodes, p, 8, algorithm, (), 10.0)
        for (mapping, nodes), algorithm in DECIDED.items()
        for p in ((2, 4) if nodes == 1 else (4, 8))
    ]
    emission.emit(STUDY, placements(rows), CONFIG.catalogue, tuning, NUMBERS)
    fake_mpirun(tmp_path, "5.0.11")
    return tuning


def test_rules_for_reductions_warn_of_operations_that_do_not_commute() -> None:
    """Open MPI 5.0.11 gives wrong results for these with a ring or a binomial tree, also by a rules file."""
    for algorithm, warned in (("ring", True), ("default", False)):
        rows = [Decision("allreduce", "core", 1, 4, 8, algorithm, (), 10.0)]
        text = emission.readme(STUDY, placements(rows), CONFIG.catalogue, None)
        assert ("Not for programs with operations that do not commute" in text) == warned


def test_the_readme_names_the_environment_of_the_measurements() -> None:
    rows = [Decision("bcast", "core", 1, 4, 8, "linear", (), 10.0)]
    machine = {"label": "M", "environment": {"UCX_TLS": "rc,self,sm", "UCX_RNDV_THRESH": "8192"}}
    text = emission.readme(STUDY | {"machine": machine}, placements(rows), CONFIG.catalogue, None)
    assert "Measured with `UCX_TLS=rc,self,sm`, `UCX_RNDV_THRESH=8192` (`environment` of the machine)" in text
    assert "`environment` of" not in emission.readme(STUDY, placements(rows), CONFIG.catalogue, None)


def fake_mpirun(folder: Path, version: str) -> None:
    """Write an mpirun with a version that prints its arguments, one per line."""
    path = folder / "bin" / "mpirun"
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        f'#!/bin/sh\n[ "$1" != --version ] || exec echo "mpirun (Open MPI) {version}"\nprintf "%s\\n" "$@"\n'
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_a_file_for_all_numbers_of_nodes_has_all_measured_shapes(tmp_path: Path) -> None:
    rows = [Decision("bcast", "core", 1 + (p > 4), p, 8, "linear", (), 10.0) for p in range(2, 9)]
    emission.emit(STUDY, placements(rows), CONFIG.catalogue, tmp_path, NUMBERS)
    lines = (tmp_path / "coll-core-n2.rules").read_text().splitlines()
    assert {tuple(line.split()[1:3]) for line in lines if line.startswith("bcast")} == {
        ("1", "2"),
        ("1", "4"),
        ("2", "4"),
    }
    (entry,) = json.loads((tmp_path / "shapes.json").read_text())
    assert entry["nodes"] == {"1": [2, 4], "2": [8, 8]}
    assert "## For mapping core, 1 or 2 nodes\n" in (tmp_path / "README.md").read_text()
    assert "mapping core, 1 or 2 nodes; no other placement." in (tmp_path / "openmpi-core-n2.rules").read_text()


#: Prefixes of variables that would tell the tests about the job in which they run.
OF_JOBS = ("SLURM_", "OMPI_", "PRTE_", "PBS_", "LSB_", "PE_")


def started(folder: Path, *words: str, **variables: str) -> tuple[list[str], str]:
    """Return the arguments that mpirun gets, and the output on standard error."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(OF_JOBS)}
    path = f"{folder.parent.parent / 'bin'}:{clean['PATH']}"
    done = must(finish([folder / "mpirun-tuned", *words], timeout=60, env={**clean, "PATH": path, **variables}))
    return done.stdout.splitlines(), done.stderr


def file_of(arguments: list[str]) -> str:
    """Return the name of the rules file among the arguments; "" if there is none."""
    key = "coll_tuned_dynamic_rules_filename"
    return Path(arguments[arguments.index(key) + 1]).name if key in arguments else ""


def test_ranks_between_two_measured_numbers_may_use_fewer_nodes(tmp_path: Path) -> None:
    """With one and four ranks on each of two nodes of four cores, rules for 3 and 4 ranks are those of one node."""
    tuning = tmp_path / "results of toy" / "tuning"
    rows = [Decision("bcast", "core", 1 + (p in (2, 5, 6, 7, 8)), p, 8, "linear", (), 10.0) for p in range(2, 9)]
    emission.emit(STUDY, placements(rows), CONFIG.catalogue, tuning, NUMBERS)
    fake_mpirun(tmp_path, "5.0.11")
    for words in (("-N", "1"), ("-N", "4"), ("-n", "8", "--map-by", "core"), ("-n", "4", "--map-by", "core")):
        assert file_of(started(tuning, *HOSTS, *words, "a.out")[0]) == "openmpi-core-n2.rules"
    arguments, said = started(tuning, *HOSTS, "-N", "2", "a.out")
    assert file_of(arguments) == "" and "4 ranks on 2 nodes by core were not measured" in said


HOSTS = ("--host", "a:4,b:4")
SLURM = {"SLURM_JOB_NODELIST": "n[1-2]", "SLURM_TASKS_PER_NODE": "4(x2)"}


@pytest.mark.parametrize(
    ("words", "variables", "file"),
    [
        (("-n", "4", "--map-by", "core"), {}, "openmpi-core-n1.rules"),
        (("-np", "8", *HOSTS, "--map-by", "core"), {}, "openmpi-core-n2.rules"),
        # By core, four ranks fill the first host; by node, there are two on each.
        (("-n", "4", *HOSTS, "--map-by", "slot:PE=1"), {}, "openmpi-core-n1.rules"),
        (("-n", "4", *HOSTS, "--map-by", "node"), {}, "openmpi-node-n2.rules"),
        (("-n", "4", *HOSTS, "--map-by", "ppr:2:node"), {}, "openmpi-core-n2.rules"),
        (("-N", "4", "-H", "a:4,b:4", "-map-by", "core"), {}, "openmpi-core-n2.rules"),
        (("-N", "4", "-H", "a:4,b:4"), {}, "openmpi-core-n2.rules"),
        (("--host=a,a,b,b", "--map-by=node"), {}, "openmpi-node-n2.rules"),
        (("-n", "8", "--map-by", "core"), SLURM, "openmpi-core-n2.rules"),
        (("--map-by", "node", "--bind-to", "core", "-x", "NAME=1", "--mca", "btl", "self"), SLURM, "openmpi-node-n2.rules"),
        (("-n", "4", "--host", "n1:4", "--map-by", "core"), SLURM, "openmpi-core-n1.rules"),
        (("-n", "4", *HOSTS, "--mca", "rmaps_base_mapping_policy", "node"), {}, "openmpi-node-n2.rules"),
        (("-n", "4", *HOSTS), {"OMPI_MCA_rmaps_base_mapping_policy": "node"}, "openmpi-node-n2.rules"),
        (("--map-by", "core", *HOSTS, "--output-filename", "out", "-n", "4"), {}, "openmpi-core-n1.rules"),
        (("--map-by", "core", *HOSTS, "--tune", "t", "--rank-by", "slot", "-n", "4"), {}, "openmpi-core-n1.rules"),
    ],
)  # fmt: skip
def test_the_file_is_that_of_the_shape(
    folder: Path, words: tuple[str, ...], variables: dict[str, str], file: str
) -> None:
    arguments, said = started(folder, *words, "./program", "-n", "7", **variables)
    assert (file_of(arguments), said) == (file, "")
    # The user's own words follow unchanged.
    assert arguments[-len(words) - 3 :] == [*words, "./program", "-n", "7"]
    assert Path(arguments[arguments.index("coll_tuned_dynamic_rules_filename") + 1]).exists()


@pytest.mark.parametrize(
    ("words", "variables", "why"),
    [
        (("-n", "3", *HOSTS, "--map-by", "node"), {}, "3 ranks on 2 nodes by node were not measured"),
        (("-n", "8", "--map-by", "core"), {}, "8 ranks on 1 node by core were not measured"),
        (("-n", "4", *HOSTS), {}, "--map-by is missing; measured: core, node"),
        (("-n", "4", "--map-by", "seq"), {}, "no rules for --map-by seq"),
        (("-n", "4", "--map-by", "core", "--rankfile", "file"), {}, "no rules for --rankfile"),
        (("-n", "4", *HOSTS, "--map-by", "core", "-bynode"), {}, "no rules for -bynode"),
        (("-n", "4", *HOSTS, "--map-by", "node", "--rank-by", "slot"), {}, "no rules for --rank-by slot with another --map-by"),
        (("-n", "4", *HOSTS, "--map-by", "core:PE=2"), {}, "no rules for --map-by core:PE=2, with several cores for each rank"),
        # Ranks on two threads of a core, or on the sockets of both nodes in turn.
        (("-n", "4", *HOSTS, "--map-by", "hwthread"), {}, "no rules for --map-by hwthread"),
        (("-n", "4", *HOSTS, "--map-by", "slot:HWTCPUS"), {}, "no rules for --map-by slot:HWTCPUS"),
        (("-n", "4", *HOSTS, "--map-by", "core", "--use-hwthread-cpus"), {}, "no rules for --use-hwthread-cpus"),
        (("-n", "4", *HOSTS, "--map-by", "socket:SPAN", "--rank-by", "slot"), {}, "no rules for --map-by socket:SPAN"),
        (("-n", "40", *HOSTS, "--map-by", "core"), {}, "40 ranks do not fit on 2 hosts"),
        (("-n", "many", "--map-by", "core"), {}, "'many' is not a number of ranks"),
        (("-n", "4", "--hostfile", "no such file", "--map-by", "core"), {}, "host file no such file: No such file"),
        (("-n", "2", "./a", ":", "-n", "2"), {}, "several programs"),
        (("--map-by", "core"), {"SLURM_JOB_NODELIST": "n1"}, "the Slurm job does not define its tasks per node"),
    ],
)  # fmt: skip
def test_an_unknown_shape_starts_without_a_file_and_says_so(
    folder: Path, words: tuple[str, ...], variables: dict[str, str], why: str
) -> None:
    arguments, said = started(folder, *words, "./program", **variables)
    assert arguments == [*words, "./program"]
    assert said.startswith("mpirun-tuned: started without a tuning file: ") and why in said and said.count("\n") == 1


@pytest.mark.parametrize(
    ("version", "words", "mapping"),
    [
        ("4.1.8", "--map-by socket", "socket"),
        ("4.1.8", "--map-by node", "node"),
        ("5.0.11", "--map-by socket --rank-by slot", "socket"),
        ("5.0.11", "--map-by node", "BFNF"),
        ("5.0.11", "--map-by core", "core"),
        ("5.0.11", "-N 4", "core"),
        ("5.0.11", "--map-by socket", "fills one socket after the other; for the measured order add --rank-by slot"),
        ("5.0.11", "--map-by socket --rank-by span", "add --rank-by slot"),
        ("5.0.11", "--map-by socket --mca rmaps_base_ranking_policy slot", "socket"),
    ],
)
def test_a_release_has_its_own_order_of_ranks(tmp_path: Path, version: str, words: str, mapping: str) -> None:
    """As the simulated resource manager of Open MPI 5.0.11 shows: with --map-by socket alone, 8 ranks are placed as by core."""
    levels = [{"name": name, "count": count} for name, count in (("node", 2), ("socket", 2), ("core", 2))]
    measured = [name for name in ("core", "socket", "node", "BFNF") if version[0] == "5" or name != "BFNF"]
    rows = [Decision("bcast", name, 2, 8, 8, "chain", (), 10.0) for name in measured]
    tuning = tmp_path / "results" / "tuning"
    emission.emit(
        STUDY | {"machine": {"label": "M", "levels": levels}}, placements(rows), CONFIG.catalogue, tuning, NUMBERS
    )
    fake_mpirun(tmp_path, version)
    said_once = "From Open MPI 5 on, ranks alternate with `--map-by socket --rank-by slot` only.\n"
    assert (tuning / "README.md").read_text().count(said_once) == 1
    arguments, said = started(tuning, *HOSTS, *words.split(), "-n", "8", "./program")
    assert file_of(arguments) == f"openmpi-{mapping}-n2.rules" if mapping in measured else mapping in said


def test_open_mpi_5_does_not_alternate_between_the_sockets_of_nodes(tmp_path: Path) -> None:
    levels = [{"name": name, "count": count} for name, count in (("node", 2), ("socket", 2), ("core", 2))]
    rows = [Decision("bcast", "node", 2, 8, 8, "chain", (), 10.0)]
    tuning = tmp_path / "results" / "tuning"
    emission.emit(
        STUDY | {"machine": {"label": "M", "levels": levels}}, placements(rows), CONFIG.catalogue, tuning, NUMBERS
    )
    fake_mpirun(tmp_path, "5.0.11")
    arguments, said = started(tuning, *HOSTS, "--map-by", "node", "-n", "8", "./program")
    assert (
        not file_of(arguments)
        and "Open MPI 5 fills the sockets of a node one after the other; measured: in turn" in said
    )


def test_a_single_measured_mapping_is_not_that_of_every_job(tmp_path: Path) -> None:
    """Without --map-by, mpirun maps more than two ranks by socket or NUMA domain."""
    fake_mpirun(tmp_path, "5.0.11")
    tuning = tmp_path / "results" / "tuning"
    rows = [Decision("bcast", "core", 1, 4, 8, "chain", (), 10.0)]
    emission.emit(STUDY, placements(rows), CONFIG.catalogue, tuning, NUMBERS)
    arguments, said = started(tuning, "-n", "4", "./program")
    assert not file_of(arguments) and "--map-by is missing; measured: core" in said


def test_a_mapping_that_options_do_not_determine_gets_no_file(tmp_path: Path) -> None:
    """`--map-by node` is BFNF and BFSF, and the order of hosts is no option of mpirun (config/mappings.yaml)."""
    fake_mpirun(tmp_path, "5.0.11")
    tuning = tmp_path / "results" / "tuning"
    for mappings, policy, file, why in (
        (("BFNF", "BFSF"), "node", "", "--map-by node may be one of the measured mappings BFNF, BFSF"),
        (("block", "shuffled"), "core", "openmpi-block-n2.rules", ""),
        (("shuffled",), "core", "", "8 ranks on 2 nodes by core were not measured"),
    ):
        rows = [Decision("bcast", mapping, 2, 8, 8, "chain", (), 10.0) for mapping in mappings]
        emission.emit(STUDY, placements(rows), CONFIG.catalogue, tuning, NUMBERS)
        arguments, said = started(tuning, "-n", "8", *HOSTS, "--map-by", policy, "./program")
        assert file_of(arguments) == file and why in said


def test_the_readme_says_what_the_format_cannot_express() -> None:
    """Open MPI ignores the sizes of alltoallv."""
    rows = [Decision("alltoallv", "core", 1, 4, *rule, (), 10.0) for rule in ((8, "linear"), (64, "pairwise"))]
    study = {**STUDY, "collectives": {"alltoallv": {"processes": [4]}}}
    (found,) = placements(rows)
    text = emission.readme(study, [found], CONFIG.catalogue, None)
    assert "2 of them other than the default. The format of `openmpi-core-n1.rules` can express 0 of these 2" in text
    rows = [Decision("bcast", "core", 1, 4, 8, "linear", (), 10.0)]
    assert "can express" not in emission.readme(STUDY, placements(rows), CONFIG.catalogue, None)


def test_the_default_applies_outside_of_the_measured_sizes() -> None:
    """Below half of the smallest size, unless that is one element, and from twice the largest one on."""

    def chosen(smallest: int) -> list[str]:
        rows = [Decision("bcast", "core", 1, 4, size, "linear", (), 10.0) for size in (smallest, 1024)]
        (found,) = placements(rows)
        assert (
            emission.header_of(STUDY, found)[-1] == "Outside of the measured sizes and processes the library decides."
        )
        return [selected(found.tables["bcast"], 4, size).algorithm for size in (0, 31, 32, 2047, 2048)]

    assert chosen(64) == ["default", "default", "linear", "linear", "default"]
    assert chosen(8) == ["linear", "linear", "linear", "linear", "default"]


def test_a_measured_default_is_no_rule_beyond_the_measured_sizes() -> None:
    """Intel MPI's variables apply the nearest measured rule to all other sizes."""
    sizes = {64: "default", 1024: "linear"}
    rows = [Decision("bcast", "core", 1, 4, size, algorithm, (), 10.0) for size, algorithm in sizes.items()]
    (found,) = placements(rows, of_program=True)
    assert [(rule.size, rule.algorithm) for rule in found.tables["bcast"][4] if not rule.beyond] == [
        (0, "default"),
        (1024, "linear"),
    ]


def test_a_host_file_and_the_releases_of_open_mpi(folder: Path) -> None:
    hosts = folder / "hosts"
    hosts.write_text("# two nodes\na slots=4\nb slots=2 max_slots=4\nb slots=2\n")
    words = ("-n", "8", "--hostfile", str(hosts), "--map-by", "core", "./program")
    arguments, _ = started(folder, *words)
    assert file_of(arguments) == "openmpi-core-n2.rules"
    # From 5.0 on, coll/han has a second file on several nodes; 6.0 reads JSON.
    assert any(word.endswith("openmpi-han-core-n2.rules") for word in arguments)
    fake_mpirun(folder.parent.parent, "4.1.4")
    assert not any("han" in word for word in started(folder, *words)[0])
    fake_mpirun(folder.parent.parent, "6.0.0")
    assert file_of(started(folder, *words)[0]) == "openmpi-6.0-core-n2.json"
    fake_mpirun(folder.parent.parent, "7.0.0")
    assert "no file for Open MPI 7" in started(folder, *words)[1]
    hosts.write_text("a\nb\n")
    assert "does not give the slots of its 2 hosts" in started(folder, *words)[1]


@pytest.mark.parametrize("lines", ["a count=4\nb cpu=4\n", "a max-slots=9 slots=4\nb slots=4 # n\u00f6\udcff\n"])
@pytest.mark.parametrize(
    ("words", "variable"),
    [
        (("--hostfile", "HOSTS"), ""),
        (("--default-hostfile", "HOSTS"), ""),
        (("--mca", "orte_default_hostfile", "HOSTS"), ""),
        (("--prtemca", "prte_default_hostfile", "HOSTS"), ""),
        ((), "OMPI_MCA_orte_default_hostfile"),
        ((), "PRTE_MCA_prte_default_hostfile"),
    ],
)
def test_a_host_file_may_be_named_in_other_ways(
    folder: Path, words: tuple[str, ...], variable: str, lines: str
) -> None:
    """Open MPI 4.1 and 5.0 start as many ranks: with the default host file a job of two nodes had the file of one."""
    hosts = folder / "hosts"
    hosts.write_text(lines, errors="surrogateescape")
    named = [word.replace("HOSTS", str(hosts)) for word in words]
    variables = {variable: str(hosts)} if variable else {}
    for ranks, nodes in ((4, 1), (8, 2)):
        arguments, said = started(folder, *named, "-n", str(ranks), "--map-by", "core", "./program", **variables)
        assert (file_of(arguments), said) == (f"openmpi-core-n{nodes}.rules", "")
    # Hosts that an option names, and those of a Slurm job, take precedence.
    if "--hostfile" not in words:
        for more, own in ((("--host", "a:4"), {}), ((), SLURM | {"SLURM_TASKS_PER_NODE": "4"})):
            words_ = (*named, *more, "-n", "4", "--map-by", "core", "./program")
            assert file_of(started(folder, *words_, **variables, **own)[0]) == "openmpi-core-n1.rules"


@pytest.mark.parametrize(
    ("variable", "manager"), [("PBS_JOBID", "PBS"), ("LSB_JOBID", "LSF"), ("PE_HOSTFILE", "Grid Engine")]
)
def test_a_job_whose_hosts_are_not_read_is_not_one_of_this_computer(folder: Path, variable: str, manager: str) -> None:
    words = ("-n", "4", "--map-by", "core", "./program")
    arguments, said = started(folder, *words, **{variable: "1"})
    assert file_of(arguments) == "" and f"the hosts of a job of {manager} are not read; name them by --host" in said
    assert file_of(started(folder, *HOSTS, *words, **{variable: "1"})[0]) == "openmpi-core-n1.rules"


def test_without_a_number_there_is_a_rank_on_each_core_not_on_each_thread(tmp_path: Path) -> None:
    """As the help of Open MPI says: it defaults to the number of processor cores."""
    make_node(tmp_path, 2, 4, threads=2)
    system = tmp_path / "sys/devices/system/cpu"
    threads = [int(path.name[3:]) for path in system.glob("cpu[0-9]*")]
    assert (len(threads), mpirun_tuned.cores(threads, system)) == (16, 8)
    assert mpirun_tuned.cores([0, 1], tmp_path / "nothing") == 2


def test_it_runs_with_python_3_6(folder: Path, tmp_path: Path) -> None:
    """The Python of RHEL 8 and its clones; `text` and `capture_output` of subprocess are of 3.7."""
    ast.parse((folder / "mpirun-tuned").read_text(), feature_version=(3, 6))
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "sitecustomize.py").write_text(
        "import subprocess\nrun = subprocess.run\n"
        "def older(words, text=None, capture_output=None, **given):\n"
        "    assert text is None and capture_output is None\n"
        "    return run(words, **given)\n"
        "subprocess.run = older\n"
    )
    words = ("-n", "4", "--map-by", "core", "./program")
    assert file_of(started(folder, *words, PYTHONPATH=str(tmp_path / "old"))[0]) == "openmpi-core-n1.rules"


def test_what_is_missing_is_one_message(folder: Path) -> None:
    words = ("-n", "4", "--map-by", "core", "./program")
    done = finish([folder / "mpirun-tuned", *words], env={**os.environ, "TUNED_MPIRUN": "/no/mpirun"})
    assert (done.returncode, done.stderr) == (1, "mpirun-tuned: TUNED_MPIRUN is /no/mpirun, which is not a program\n")
    for content in ("[", None):
        (folder / "shapes.json").write_text(content) if content else (folder / "shapes.json").unlink()
        arguments, said = started(folder, *words)
        assert arguments == [*words] and "without a tuning file: shapes.json cannot be read: " in said
        assert said.count("\n") == 1


def test_releases_that_ignore_a_file_get_none(tmp_path: Path) -> None:
    """Only version 2 of the rules limits requests; it is read from 4.1.8 and 5.0.7 on."""
    tuning = tmp_path / "results of toy" / "tuning"
    rows = [Decision("alltoall", "core", 1, p, 8, "linear_sync", (("max_requests", 4),), 10.0) for p in (2, 4)]
    study = {**STUDY, "collectives": {"alltoall": {"processes": [2, 4]}}}
    emission.emit(study, placements(rows), CONFIG.catalogue, tuning, NUMBERS)
    assert (tuning / "openmpi-core-n1.rules").read_text().startswith("rule-file-version-2")
    assert "Open MPI 4.1.8 and 5.0.7 (earlier ones ignore the file; for 6.0" in (tuning / "README.md").read_text()
    for version, needed in (("4.1.6", "4.1.8"), ("4.1.8", ""), ("5.0.6", "5.0.7"), ("5.0.11", "")):
        fake_mpirun(tmp_path, version)
        arguments, said = started(tuning, "-n", "4", "--map-by", "core", "./program")
        assert file_of(arguments) == ("" if needed else "openmpi-core-n1.rules")
        assert (f"openmpi-core-n1.rules needs Open MPI {needed}" in said) == bool(needed)


def test_the_installed_mpirun_reads_the_file(folder: Path) -> None:
    mpi = library()
    probe = mpi.build / "probe" / "collprobe"
    options = ["-n", "2", "--map-by", "core:OVERSUBSCRIBE", "--bind-to", "none", "--mca", "coll_base_verbose", "0"]
    environment = {**mpi.environment(), "TUNED_MPIRUN": str(mpi.mpirun), "TUNED_VERBOSE": "1"}
    done = must(finish([folder / "mpirun-tuned", *options, probe, "bcast", "8"], timeout=60, env=environment))
    assert "mpirun-tuned: openmpi-core-n1.rules" in done.stderr


def test_the_files_of_a_shape_are_listed_once(folder: Path) -> None:
    entries = json.loads((folder / "shapes.json").read_text())
    assert {(entry["file"], tuple(entry["nodes"])) for entry in entries} == {
        ("openmpi-core-n1.rules", ("1",)), ("openmpi-core-n2.rules", ("2",)), ("openmpi-node-n2.rules", ("2",)),
    }  # fmt: skip
    assert all(Path(word.replace("{folder}", str(folder))).exists()
               for entry in entries for words in entry["arguments"].values() for word in words if "{folder}" in word)  # fmt: skip
    readme = (folder / "README.md").read_text()
    assert "./mpirun-tuned -n 4 --map-by core ./program" in readme and "would lose" not in readme


def test_the_readme_says_what_one_file_loses(tmp_path: Path) -> None:
    table = tmp_path / "tables" / "tuning-shared.csv"
    table.parent.mkdir()
    table.write_text(
        "collective,shapes,cells,geometric_mean_pct,median_pct,p90_pct,max_pct\n"
        "bcast,2,10,5,4,11,30\nall,3,40,7.25,5,12.5,42\n"
    )
    text = " ".join(emission.lost(tmp_path / "tuning", simulated=False))
    assert "by 7.2 % (geometric mean over 40 cells; 90th percentile 12.5 %, maximum 42 %)" in text
    assert "so this is an upper bound" in text
    assert "noisy" not in " ".join(emission.lost(tmp_path / "tuning", simulated=True))


def test_sizes_of_one_class_have_rules_of_their_own() -> None:
    sizes = {21: "linear", 26: "chain", 100: "default", 110: "linear"}
    rows = [Decision("bcast", "core", 1, 4, size, algorithm, (), 10.0) for size, algorithm in sizes.items()]
    (found,) = placements(rows, of_program=True)
    assert [(rule.size, rule.algorithm) for rule in found.tables["bcast"][4]] == [
        (0, "default"), (16, "linear"), (26, "chain"), (32, "default"), (110, "linear"), (128, "default"),
    ]  # fmt: skip
