# Shared by the rules: the studies of this run, their missing work, and the environment of every job.
import functools
import os
import re
import shutil
import sys
from pathlib import Path

from snakemake.settings.types import DeploymentMethod

# The checkout: where this file is, also when another workflow uses it as a module.
BASE = Path(workflow.current_basedir.get_path_or_uri(secret_free=False)).parents[1]
sys.path.insert(0, str(BASE / "workflow"))

from collstudy.base.digests import digest_of
from collstudy.base.errors import StudyError
from collstudy.base.files import read_csv
from collstudy.base.paths import IMAGE_SETUP
from collstudy.calibration import calibrate
from collstudy.plan.blocks import (
    marker,
    pending_bytes,
    read_block,
    read_pending,
    slurm_resources,
)
from collstudy.project import made, needs
from collstudy.project.stage import Stage
from collstudy.project.status import (
    Progress,
    explain,
    run_summary,
    left_running,
    note_start,
)
from collstudy.project.studies import Project, opened, split_names
from collstudy.store.records import Store
from collstudy.study.document import read_yaml

# Jobs use the Python that runs Snakemake.
os.environ.update(
    PATH=os.pathsep.join(
        [str(Path(sys.executable).parent), os.getenv("PATH", os.defpath)]
    ),
    PYTHONPATH=str(BASE / "workflow"),
    R_LIBS=str(BASE / ".study" / "R"),
    # Sorting and number formats in R must not depend on the user's locale.
    LC_ALL="C.UTF-8",
)

# Another workflow has a folder with config.yaml, studies/ and machines/ of its own; a folder that Snakemake runs in has it at config/.
if "config_folder" in config:
    os.environ.update(COLLSTUDY_CONFIG=str(Path(config["config_folder"]).resolve()))
elif Path("config/studies").is_dir():
    os.environ.setdefault("COLLSTUDY_CONFIG", str(Path("config").resolve()))


def refuse(problem):
    """End with one line. An exception would come with the lines of the Snakefile that it passed through."""
    print(f"error: {problem}", file=sys.stderr, flush=True)
    os._exit(2)


# Not by `configfile:`, which accepts another version of YAML and has its own messages. The command line takes precedence.
try:
    for key, value in read_yaml(
        Path(os.environ.get("COLLSTUDY_CONFIG", BASE / "config")) / "config.yaml",
        "config",
    ).items():
        config.setdefault(key, value)
except StudyError as error:
    refuse(error)
RESULTS = Path(config["results"] if "results" in config else "results")
# Environment modules that jobs load, where a profile enables them.
MODULES = split_names(config.get("modules", []))
# The image in which analysis and report run with --sdm apptainer: this project's (Containerfile, apptainer.def), with R and Python at
# their places there, and the code of this checkout.
IMAGE = config.get("image")
IN_IMAGE = (
    IMAGE is not None
    and DeploymentMethod.APPTAINER in workflow.deployment_settings.deployment_method
)
if IN_IMAGE:
    prefix = "APPTAINERENV" if shutil.which("apptainer") else "SINGULARITYENV"
    os.environ[f"{prefix}_PREPEND_PATH"] = f"{IMAGE_SETUP}/venv/bin"
    os.environ[f"{prefix}_R_LIBS"] = f"{IMAGE_SETUP}/R"
# Without R, studies are measured but neither analysed nor reported.
HAS_R = IN_IMAGE or needs.has_r()
# Nothing below RESULTS is written while this file is read: dry runs read it too (project/stage.py).
STAGE = Stage(Path(".snakemake") / "collstudy", RESULTS)


wildcard_constraints:
    study="[A-Za-z0-9._-]+",
    block="[A-Za-z0-9._-]+",
    attempt="[0-9]+",


def project():
    """The project that `./study run` has checked in this process, where it is this one."""
    checked, mine = opened(None), Project(results=RESULTS)
    same = (checked.results, checked.configuration.folder) == (
        mine.results,
        mine.configuration.folder,
    )
    return checked if same else mine


class Plan:
    """What this run is to do. Jobs (on a cluster, each reads this file again) plan nothing: their blocks' files say what to do."""

    def __init__(self):
        self.project = project()
        self.project.store.memory = STAGE.folder / "summaries.json"
        self.sources, self.states, self.progress = {}, {}, None
        # By study and part: a file newer than changed derived files, which are therefore made again.
        self.changed = {}
        # Markers of the blocks of this run by study and round, and of their prerequisites.
        self.markers, self.before = {}, {}
        wanted = self.names()
        if not wanted and "calibrate" in config:
            return
        explicit = wanted != self.project.default_studies
        found, left_out = self.project.available(wanted, explicit)
        self.sources = {source.study.name: source for source in found}
        if workflow.is_main_process:
            print(*left_out, sep="\n", end="\n" * len(left_out), file=sys.stderr)
            if not HAS_R:
                print(
                    "R is not installed: no tables, figures and report", file=sys.stderr
                )
            self.make()

    def names(self):
        """The studies of this run: those that are asked for, or those that a machine is to be calibrated with."""
        if "calibrate" not in config:
            return split_names(config["studies"])
        return calibrate.studies_of_machine(
            self.project.configuration, config["calibrate"]
        )

    def make(self):
        """Compare the studies with the store, and stage the files that tell jobs what to do."""
        for name, source in self.sources.items():
            self.states[name] = self.project.state(source)
        rounds = self.project.blocks(list(self.states.values()))
        blocks = {
            name: [block for mine in of.values() for block in mine]
            for name, of in rounds.items()
        }
        for line in explain(blocks, self.states, config.get("max_node_hours")):
            print(line, file=sys.stderr)
        if any(b.machine.kind == "slurm" for mine in blocks.values() for b in mine):
            for line in left_running(Path.cwd()):
                print(line, file=sys.stderr)
        for name, source in self.sources.items():
            for file, content in source.files().items():
                STAGE.write(f"{name}/{file}", content)
        # The report is of all studies.
        for name in (*self.sources, ""):
            self.find_changed(name)
        of_work = {}
        for name, of in rounds.items():
            self.markers[name] = {
                number: [marker(block, RESULTS / "blocks") for block in mine]
                for number, mine in of.items()
            }
            if blocks[name]:
                # Snakemake does not run a job because its output is missing; an input that is newer with
                # another content (markers' numbers are unique) triggers it.
                STAGE.write(f"{name}/pending.txt", pending_bytes(self.of_study(name)))
        for mine in blocks.values():
            for block in mine:
                STAGE.write_block(block)
                of_work |= {task.work.digest: block for task in block.tasks}
        for mine in blocks.values():
            for block in mine:
                needed = {
                    of_work[work.digest].name: of_work[work.digest]
                    for task in block.tasks
                    for work in task.work.needs
                    if work.digest in of_work
                }
                self.before[block.name] = [
                    marker(other, RESULTS / "blocks") for other in needed.values()
                ]

    def find_changed(self, name):
        """Stage a file for each part of a study (or, without a name, for the report) of which a run makes files again."""
        for part, problems in made.changed(RESULTS / name).items():
            print(
                f"{name or 'report'}: made again, because files were changed: "
                + "; ".join(problems),
                file=sys.stderr,
            )
            path = STAGE.write(
                str(Path(name) / f"changed-{part}.txt"),
                "\n".join(problems).encode() + b"\n",
            )
            self.changed[name, part] = [
                STAGE.make_newest(path, RESULTS / (name or part))
            ]

    def of_study(self, study):
        """The markers of all blocks of a study."""
        return [path for mine in self.markers.get(study, {}).values() for path in mine]


try:
    PLAN = Plan()
except StudyError as error:
    refuse(error)
except OSError as error:
    refuse(
        f"{error}: measurements so far are stored; run again when the results folder is writable"
    )
STUDIES = list(PLAN.sources)
# Studies whose cells are known only after a trace: those of programs.
TRACED_FIRST = [
    name for name, source in PLAN.sources.items() if source.known_after_trace
]


onstart:
    note_start(Path(".snakemake"))
    # The plan is complete; Snakemake rejects inputs with time stamps in the future.
    for path in (path for paths in PLAN.changed.values() for path in paths):
        os.utime(path)
    for name in (*STUDIES, ""):
        for line in made.make_room(RESULTS / name):
            print(line, file=sys.stderr)
    blocks = {name: PLAN.of_study(name) for name in STUDIES}
    PLAN.progress = Progress(PLAN.states, blocks, Store(RESULTS))
    PLAN.progress.start()


onsuccess:
    PLAN.progress.end()
    print(
        "\n".join(run_summary(PLAN.sources.values(), succeeded=True)),
        file=sys.stderr,
    )


onerror:
    if PLAN.progress:
        PLAN.progress.end()
    print(
        "\n".join(run_summary(PLAN.sources.values(), succeeded=False)),
        file=sys.stderr,
    )


def new_blocks(study):
    """The files of a study's blocks that are not there yet. Others are the same: a job of an earlier run may be reading one."""
    paths = [
        path.with_name(path.name.rsplit(".", 2)[0] + ".json")
        for path in PLAN.of_study(study)
    ]
    return [path for path in paths if not path.exists()]


def get_changed(part):
    """A function that tells what makes a part of a study's results again: nothing where all is as it was made."""

    def get_changed_part(wildcards):
        return PLAN.changed.get((wildcards.study, part), [])

    return get_changed_part


def get_stored(wildcards):
    """What measurements.csv of a study is made of: the blocks of this run, and the newest cell that is stored already; of
    a study with rounds, also the last one.
    """
    study = wildcards.study
    now = PLAN.of_study(study)
    found = [RESULTS / study / "pending.txt"]
    if not now and not found[0].exists():
        found = []
    state = PLAN.states.get(study)
    if state and state.newest:
        found.append(state.newest)
    last = last_round(study)
    return now + found + (round_blocks(study, last) if last else [])


def last_round(study):
    """The number of a study's last round; 0 for one without rounds, and for a program that uses nothing that is
    worth measuring, which is known after its trace.
    """
    if study in TRACED_FIRST:
        account = checkpoints.account_program.get(study=study)
        if not read_csv(Path(account.output.cells)):
            return 0
    return PLAN.sources[study].last_round


def round_blocks(study, number):
    """The blocks of a round of a sampled study, known when it has selected them: what this run found lacking, or what was selected."""
    selected = checkpoints.select_points.get(study=study, round=number)
    now = PLAN.markers.get(study, {}).get(int(number))
    if now:
        return [selected.output.pending, RESULTS / study / "pending.txt", *now]
    return [selected.output.pending, *read_pending(Path(selected.output.pending))]


def get_round(wildcards):
    """The blocks of the round that is collected."""
    return round_blocks(wildcards.study, wildcards.round)


def get_round_before(wildcards):
    """What was measured before a round asks; nothing before the first."""
    before = int(wildcards.round) - 1
    if not before:
        return []
    return [PLAN.sources[wildcards.study].folder_of(before) / "measurements.csv"]


def get_calibration(wildcards):
    """What a machine is calibrated with, of this workflow's studies."""
    names = calibrate.studies_of_machine(PLAN.project.configuration, wildcards.machine)
    return [RESULTS / name / "measurements.csv" for name in names]


def get_traced(wildcards):
    """The blocks of this run that trace a program."""
    return PLAN.markers.get(wildcards.study, {}).get(0, [])


def get_inputs(wildcards):
    """Files of others that a study's rows are made of."""
    return PLAN.sources[wildcards.study].inputs()


def get_verification(wildcards):
    """The blocks that verify a study's tuning files: known when these are written."""
    emitted = checkpoints.emit_tuning.get(study=wildcards.study)
    return [emitted.output.pending, *read_pending(Path(emitted.output.pending))]


def get_before(wildcards):
    """Markers of the blocks of this run that a block has to wait for: a replay, for its trace."""
    return PLAN.before.get(wildcards.block, [])


@functools.cache
def resources_of(block, attempt):
    """What a block asks Slurm for in an attempt: worked out once, for all that Snakemake asks of it one by one."""
    content = read_block(STAGE.find(f"blocks/{block}.json"))
    return slurm_resources(content, Store(RESULTS), attempt)


def get_resource(name):
    """A function that tells what a block asks Slurm for; what is not set there, and everything elsewhere, is None."""

    def get_block_resource(wildcards, attempt):
        return resources_of(wildcards.block, attempt).get(name)

    return get_block_resource


def get_analysis(wildcards):
    """Everything that the report shows of the studies."""
    indexes = [
        RESULTS / study / part / "index.csv"
        for study in STUDIES
        for part in ("tables", "models", "figures")
    ]
    return indexes + [RESULTS / study / "sentences.csv" for study in STUDIES]


def get_texts(wildcards):
    """Chapters that people wrote."""
    folder = PLAN.project.configuration.folder / "studies"
    texts = [folder / f"{study}.qmd" for study in STUDIES]
    return [text for text in texts if text.is_file()]


def get_products(wildcards):
    """What else a run makes of the studies' measurements."""
    return [
        RESULTS / name / path
        for name, source in PLAN.sources.items()
        for path in source.products()
    ]


def get_judged(wildcards):
    """The tables that tell how good a study's decisions are."""
    source = PLAN.sources[wildcards.study]
    return [RESULTS / wildcards.study / path for path in source.judged()]


def get_beside(wildcards):
    """Results of other studies of this run that the analysis of a study reads."""
    source = PLAN.sources.get(wildcards.study)
    paths = source.beside() if source else []
    return [path for path in paths if path.parent.name in STUDIES]


def get_sampled(wildcards):
    """What the rounds of a sampled study have selected; nothing for other studies."""
    last = last_round(wildcards.study)
    return PLAN.sources[wildcards.study].selected_until(last) if last else []


def get_selected_before(wildcards):
    """The grid of a sampled study and what the rounds before one have selected."""
    source = PLAN.sources[wildcards.study]
    return source.selected_until(int(wildcards.round) - 1)


def stage_sources(part, parts):
    """Stage the digest of the project's own sources, so that what they make is made again when they change."""
    if workflow.is_main_process:
        STAGE.write(f"sources/{part}.sha256", digest_of(parts))
    return RESULTS / "sources" / f"{part}.sha256"
