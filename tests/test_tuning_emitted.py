"""The folder of tuning files that a study writes: its commands work, and the libraries follow the files."""

from types import SimpleNamespace

import pytest
from collstudy.base.errors import StudyError
from collstudy.launch import hydra, openmpi, proof
from collstudy.launch.rulesfile import rules_arguments
from collstudy.launch.toolchain import exporting, mpis
from collstudy.study.openmpi_numbers import NUMBERS
from collstudy.study.patterns import PATTERNS
from collstudy.tuning import check, emission, rules
from collstudy.tuning.findings import complain
from collstudy.tuning.library import launch, library_of, on_two_nodes
from collstudy.tuning.rules import placements
from conftest import executable, finish, must
from test_tuning import CATALOGUE, decisions

STUDY = {
    "name": "few", "title": "Few", "simulated": False, "machine": {"label": "A machine"},
    "collectives": {"bcast": {"processes": [4]}},
    "provenance": {
        "suite": "collbench", "suite_version": "1", "mpi": "openmpi", "mpi_version": "5.0.11", "simulator": "",
        "simulator_version": "",
    },
}  # fmt: skip


def emitted(folder, nodes, mpi=None, built=None):
    """Write the tuning files of a study that measured an installed MPI library, built in a folder; return the placement."""
    mpi = mpi or mpis()["openmpi"]
    how = {**STUDY["provenance"], "mpi": mpi.name, "mpi_version": mpi.version}
    (found,) = placements(decisions({4: {1: "pipeline", 1024: "default"}}, nodes=nodes))
    library = library_of(mpi, CATALOGUE, NUMBERS)
    emission.emit(
        {**STUDY, "provenance": how},
        [found],
        CATALOGUE,
        folder,
        NUMBERS,
        library.write,
        built or mpi.build,
    )
    return found


def pasted(folder, word):
    """Return the lines of README.md to paste: those that set variables, and the command that contains *word*."""
    lines = [line.strip() for line in (folder / "README.md").read_text().splitlines() if line.startswith("    ")]
    return [line for line in lines if line.startswith("export") or word in line]


def run_pasted(tmp_path, mpi, word, *more):
    """Paste the lines in a copy of the folder, then start a broadcast of 64 bytes with four ranks in another folder."""
    executable(tmp_path / "else where" / "program", f'#!/bin/sh\nexec "{mpis()[mpi].build}/probe/collprobe" bcast 64\n')
    *exports, command = pasted(tmp_path / "a copy", word)
    command = command.replace("mpirun", " ".join(["mpirun", "-n", "4", *more]), 1)
    # With monitoring enabled, Open MPI crashes if the monitoring component is excluded.
    command = command.replace("libnbc,self", "libnbc,self,monitoring")
    script = "\n".join([f"cd '{tmp_path}/a copy'", *exports, f"cd '{tmp_path}/else where'", command])
    environment = {**mpis()[mpi].environment(), "COLL_VERBOSE": "1"}
    return must(finish(["bash", "-ec", script], env=environment, timeout=60))


def test_a_study_of_intel_mpi_gets_what_intel_mpi_reads_and_nothing_else(tmp_path):
    found = placements(decisions({4: {1: "preset_2", 8: "default"}}, collective="iallreduce"))
    study = {
        **STUDY,
        "collectives": {"iallreduce": {"processes": [4]}},
        "provenance": {**STUDY["provenance"], "mpi": "impi"},
    }
    emission.emit(study, found, CATALOGUE, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"README.md", "intel-core-n2.sh"}
    assert pasted(tmp_path, "mpirun") == ['export TUNING="$PWD"', '. "$TUNING/intel-core-n2.sh" && mpirun ./program']


def test_the_readmes_command_works_in_a_copy_of_the_folder(tmp_path):
    emitted(tmp_path / "tuning", 1)
    (tmp_path / "tuning").rename(tmp_path / "a copy")
    monitoring = [*openmpi.monitoring(tmp_path), "--mca", "coll_monitoring_priority", "0"]
    run_pasted(tmp_path, "openmpi", "openmpi-core-n1.rules", *openmpi.OVERSUBSCRIBED, *monitoring)
    assert set(proof.messages(tmp_path)) == PATTERNS["pipeline"](4, {})


@pytest.mark.parametrize("folder", ["built", "built here"])
def test_the_readmes_command_for_the_collectives_library_works(tmp_path, folder):
    """Also if the path of the library has a blank, as that of a checkout may: LD_PRELOAD is split at blanks."""
    mpi = mpis()["openmpi"]
    (tmp_path / folder).symlink_to(mpi.build)
    emitted(tmp_path / "tuning", 1, built=tmp_path / folder)
    (tmp_path / "tuning").rename(tmp_path / "a copy")
    done = run_pasted(tmp_path, "openmpi", "COLL_RULES", *openmpi.OVERSUBSCRIBED, "-x", "COLL_VERBOSE")
    assert "libcollstudy: bcast: 1 calls, 0 left to the MPI library" in done.stdout + done.stderr


def test_the_readmes_command_for_mpich_works(tmp_path):
    if "mpich" not in mpis():
        pytest.skip("mpich is not installed (./study test installs it in .study/mpich)")
    emitted(tmp_path / "tuning", 1, mpis()["mpich"])
    (tmp_path / "tuning").rename(tmp_path / "a copy")
    watching = [f"'{word}'" for word in exporting("mpich", hydra.watching(mpis()["mpich"], tmp_path))]
    run_pasted(tmp_path, "mpich", "SELECTION_TUNING", *watching)
    assert set(proof.messages(tmp_path)) == PATTERNS["pipeline"](4, {})


def test_han_is_the_default_of_an_open_mpi_5_on_several_nodes_only():
    one, two = (placements(decisions({4: {1: "linear"}}, nodes=nodes))[0] for nodes in (1, 2))
    old = {"provenance": {**STUDY["provenance"], "mpi_version": "4.1.4"}}
    simulated = {"provenance": {**STUDY["provenance"], "mpi": "smpi-openmpi", "mpi_version": "SimGrid 3.32"}}
    assert [rules.han_default(STUDY, place) for place in (one, two)] == [None, "han"]
    assert [rules.han_default(study, two) for study in (old, simulated)] == ["tuned", "tuned"]


def test_on_several_nodes_the_rules_act_through_coll_han_and_not_without_it(tmp_path):
    """Uses emulated nodes of the installed Open MPI 5; tests/slurm has real ones."""
    mpi = mpis()["openmpi"]
    if not openmpi.emulates_nodes(mpi):
        pytest.skip("namespaces are not permitted, or no Open MPI 5")
    placement = emitted(tmp_path, 2)
    rules, han = emission.rules_path(tmp_path, "openmpi", placement), emission.han_path(tmp_path, placement)

    def pairs(size, *arguments):
        return frozenset(on_two_nodes(mpi, list(arguments), "bcast", 4, size))

    both = rules_arguments(rules, han=han)
    pipeline = PATTERNS["pipeline"](4, {})
    assert pairs(1023, *both) == pipeline
    alone = pairs(1024)
    assert pairs(1024, *both) == alone != pipeline
    # With coll/tuned's rules alone, coll/han ignores them.
    assert pairs(1023, *rules_arguments(rules)[3:]) == alone


@pytest.mark.long
def test_rules_for_communicators_inside_coll_han_are_no_fault(tmp_path):
    """Of 8 ranks on two nodes, coll/han broadcasts among the 4 of a node with coll/tuned, for which the file has a rule."""
    mpi = mpis()["openmpi"]
    if not openmpi.emulates_nodes(mpi):
        pytest.skip("namespaces are not permitted, or no Open MPI 5")
    (found,) = placements(decisions({4: {1: "pipeline"}, 8: {1: "default"}}, nodes=2))
    rules, han = emission.rules_path(tmp_path, "openmpi", found), emission.han_path(tmp_path, found)
    emission.emit(STUDY, [found], CATALOGUE, tmp_path)
    assert frozenset(on_two_nodes(mpi, rules_arguments(rules, han=han), "bcast", 8, 1)) != frozenset(
        on_two_nodes(mpi, [], "bcast", 8, 1)
    )
    findings = check.check_han(found, rules, han, "han", CATALOGUE, mpi, NUMBERS)
    assert all(one.agrees for one in findings) and {one.entry for one in findings} >= {4, 8}


def test_a_launch_that_hangs_is_tried_once_more(tmp_path, monkeypatch):
    monkeypatch.setattr("collstudy.tuning.library.LAUNCH_LIMIT_S", 0.5)
    once = f"[ -e '{tmp_path}/tried' ] || {{ touch '{tmp_path}/tried'; exec sleep 9; }}"
    launch(["sh", "-c", once], {}, tmp_path)
    assert (tmp_path / "tried").exists()
    with pytest.raises(StudyError, match="not finished after 0.5 s, twice"):
        launch(["sleep", "9"], {}, tmp_path)


def test_a_file_of_han_that_is_not_followed_is_named(tmp_path, monkeypatch):
    (found,) = placements(decisions({4: {1: "pipeline", 8: "default"}}))

    def deaf(mpi, arguments, collective, processes, size):
        return {(0, 99): 1}

    monkeypatch.setattr(check, "on_two_nodes", deaf)
    mpi = SimpleNamespace(version="5.x")
    findings = check.check_han(found, tmp_path / "a", tmp_path / "h.rules", "han", CATALOGUE, mpi, NUMBERS)
    with pytest.raises(
        StudyError, match=r"two emulated nodes does not follow .*\n *h\.rules: bcast, entry for 4 processes, 1 B"
    ):
        complain(findings)
    assert all(one.agrees for one in findings if one.rule == "default")
