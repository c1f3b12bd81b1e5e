# What the rules share: the studies of this run, what the store lacks of them, and the environment of every job.
import os
import sys
from pathlib import Path

BASE = Path(workflow.basedir)
sys.path.insert(0, str(BASE / "workflow"))

from snakemake.exceptions import WorkflowError

from collstudy.calibration import calibrate
from collstudy.sources import sampled, traced
from collstudy.base.errors import StudyError
from collstudy.project import needs
from collstudy.project.project import Project, split_names
from collstudy.plan.blocks import (
    read_block,
    read_pending,
    slurm_resources,
    write_blocks,
    write_pending,
)
from collstudy.project.status import (
    Progress,
    explain,
    last_words,
    left_running,
    note_start,
)
from collstudy.store.store import Store

# Jobs use the Python that runs Snakemake.
os.environ.update(
    PATH=os.pathsep.join(
        [str(Path(sys.executable).parent), os.getenv("PATH", os.defpath)]
    ),
    PYTHONPATH=str(BASE / "workflow"),
    R_LIBS=str(BASE / ".study" / "R"),
)

RESULTS = Path(config.get("results", "results"))
# Without R, studies are measured, and neither analysed nor reported.
HAS_R = needs.has_r()


def name_studies():
    """The studies of this run: those that are asked for, or those that a machine is to be calibrated with."""
    if "calibrate" not in config:
        return split_names(config["studies"])
    return calibrate.studies_of_machine(Project().configuration, config["calibrate"])


wildcard_constraints:
    job="[A-Za-z0-9._-]+",
    study="[A-Za-z0-9._-]+",
    block="[A-Za-z0-9._-]+",
    attempt="[0-9]+",


class StatesOnDemand(dict):
    """States of studies, each made when it is asked for: a job of a block asks for none."""

    def __init__(self, project, studies):
        self.project, self.studies = project, {study.name: study for study in studies}
        super().__init__(dict.fromkeys(self.studies))

    def __getitem__(self, name):
        if self.get(name) is None:
            self[name] = self.project.state(self.studies[name])
        return self.get(name)


def plan():
    """Compare the studies with the store, write the files that tell jobs what to do, and return the state of each study.

    Jobs (on a cluster, each reads this file again) do not plan: what they are to do is in their block's file.
    """
    project = Project(results=RESULTS)
    wanted = name_studies()
    if not wanted and "calibrate" in config:
        return StatesOnDemand(project, []), {}
    explicit = wanted != project.default_studies
    studies, left_out = project.available(wanted, explicit)
    states = StatesOnDemand(project, studies)
    if not workflow.is_main_process:
        return states, {name: [] for name in states}
    for line in left_out:
        print(line, file=sys.stderr)
    if not HAS_R:
        print("R is not here: no tables, figures and report", file=sys.stderr)
    blocks = project.blocks([states[name] for name in states])
    for line in explain(blocks, states, config.get("max_node_hours")):
        print(line, file=sys.stderr)
    if any(block.machine.kind == "slurm" for mine in blocks.values() for block in mine):
        for line in left_running(Path.cwd()):
            print(line, file=sys.stderr)
    names = {}
    for study in studies:
        state = states[study.name]
        project.write_description(study, list(state.cells))
        if study.sampling:
            names[study.name] = sampled.ask_again(project, study)
        else:
            names[study.name] = write_blocks(blocks[study.name], RESULTS / "blocks")
        if study.applications:
            names[study.name], lines = traced.plan(
                project.jobs(study)[0], study.name, RESULTS
            )
            print(*lines, sep="\n", end="\n" * len(lines), file=sys.stderr)
        if names[study.name]:
            # A missing input is no reason for Snakemake to run the job that makes it; one that is newer and says something
            # else (the markers' numbers never come twice) is.
            write_pending(pending_file(study.name), names[study.name])
    return states, names


def pending_file(study):
    """The blocks that the newest run of a study had to measure."""
    return RESULTS / study / "pending.txt"


try:
    STATES, BLOCKS = plan()
except StudyError as error:
    raise WorkflowError(str(error))
except OSError as error:
    raise WorkflowError(
        f"{error}: what is measured is kept; run again when the results folder can be written"
    )


onstart:
    note_start(Path(".snakemake"))
    Progress(STATES, BLOCKS, Store(RESULTS)).start()


onsuccess:
    print("\n".join(last_words(RESULTS, list(STATES), succeeded=True)), file=sys.stderr)


onerror:
    print(
        "\n".join(last_words(RESULTS, list(STATES), succeeded=False)),
        file=sys.stderr,
    )


def get_stored(wildcards):
    """What measurements.csv of a study is made of: the blocks of this run, and the newest cell that is stored already; of
    a sampled study, also the last round.
    """
    study = wildcards.study
    older = [
        path
        for path in (STATES[study].newest, pending_file(study))
        if path and path.exists()
    ]
    rounds = STATES.studies[study].sampling
    return (
        BLOCKS[study] + older + (round_blocks(study, rounds.rounds) if rounds else [])
    )


def round_blocks(study, number):
    """The blocks of a round of a sampled study, known when it has asked."""
    asked = checkpoints.ask_points.get(study=study, round=number)
    return [asked.output.pending, *read_pending(Path(asked.output.pending))]


def get_round(wildcards):
    """The blocks of the round that is collected."""
    return round_blocks(wildcards.study, wildcards.round)


def get_round_before(wildcards):
    """What was measured before a round asks; nothing before the first."""
    before = int(wildcards.round) - 1
    folder = RESULTS / wildcards.study / "sampling" / f"round-{before}"
    return [folder / "measurements.csv"] if before else []


def get_calibration(wildcards):
    """What a machine is calibrated with, of this workflow's studies."""
    names = calibrate.studies_of_machine(Project().configuration, wildcards.machine)
    return [RESULTS / name / "measurements.csv" for name in names]


def get_imported(wildcards):
    """The data files of an imported study."""
    from collstudy.sources.imported import files_of

    study = STATES[wildcards.study].study
    return [path for _, path in files_of(study)] if study.imports else []


def get_verification(wildcards):
    """The blocks that verify a study's tuning files: known when these are written."""
    emitted = checkpoints.emit_tuning.get(study=wildcards.study)
    return [emitted.output.pending, *read_pending(Path(emitted.output.pending))]


def get_resource(name):
    """A function that tells what a block asks Slurm for; what is not set there, and everything elsewhere, is None."""

    def get_block_resource(wildcards, attempt):
        block = read_block(RESULTS / "blocks" / f"{wildcards.block}.json")
        return slurm_resources(block, Store(RESULTS), attempt).get(name)

    return get_block_resource


def get_trace_resource(name):
    """A function that tells what a trace's job asks Slurm for; what is not set there is None."""

    def get_application_resource(wildcards, attempt):
        request = RESULTS / "applications" / f"{wildcards.job}.json"
        return traced.slurm_resources(request, attempt).get(name)

    return get_application_resource


def get_trace(wildcards):
    """The marker of the trace that a replay is of, where this run makes that trace."""
    request = RESULTS / "applications" / f"{wildcards.job}.json"
    trace = traced.read_request(request).trace.name
    return [
        path
        for markers in BLOCKS.values()
        for path in markers
        if path.name.startswith(f"{trace}.")
    ]


def get_analysis(wildcards):
    """Everything that the report shows of the studies."""
    return [
        RESULTS / study / part / "index.csv"
        for study in STATES
        for part in ("tables", "figures")
    ] + [RESULTS / study / "models" / "index.csv" for study in STATES]


def compared_with(wildcards):
    """Measurements of the study that `analysis.compare` names, where that study is part of this run."""
    study = STATES.studies.get(wildcards.study)
    name = study.analysis.get("compare", {}).get("study") if study else None
    return [RESULTS / name / "measurements.csv"] if name in STATES else []
