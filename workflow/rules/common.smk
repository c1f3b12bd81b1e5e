# Definitions that all rules share: the studies of this run, their missing work, and the environment of every job.
import functools
import os
import re
import shutil
import sys
from pathlib import Path
from shlex import quote

from snakemake.logging import logger
from snakemake.settings.enums import Quietness
from snakemake.settings.types import DeploymentMethod

# The checkout that contains this file, also if another workflow uses it as a module.
BASE = Path(workflow.current_basedir.get_path_or_uri(secret_free=False)).parents[1]
sys.path.insert(0, str(BASE / "workflow"))

from collstudy.base.commands import ask
from collstudy.base.digests import digest_of
from collstudy.base.errors import StudyError
from collstudy.base.files import read_csv
from collstudy.base.paths import IMAGE_SETUP
from collstudy.calibration import calibrate
from collstudy.launch.execute import slurm_job
from collstudy.plan.blocks import (
    marker,
    pending_bytes,
    read_block,
    read_pending,
    slurm_resources,
)
from collstudy.plan.executors import correct as correct_executors
from collstudy.project import made
from collstudy.sources import needs
from collstudy.project.stage import Stage
from collstudy.project.status import (
    Progress,
    explain,
    run_summary,
    verdict_given,
    left_running,
    note_start,
)
from collstudy.project.studies import Project, opened, split_names
from collstudy.sources.source import VERIFYING
from collstudy.store.store import Store
from collstudy.study.document import read_yaml
from snakemake_logger_plugin_collstudy import JOB_REFUSED, SlurmErrors

correct_executors(workflow)

# Seconds to wait for files that jobs have written. No parameter of the rules that use it, for which another value would be a change.
LATENCY_WAIT = str(getattr(workflow.execution_settings, "latency_wait", 0))

# Jobs use the same Python as Snakemake. The packages that R needs may be those of a module or of Spack, which R_LIBS names.
R_LIBRARIES = [str(BASE / ".study" / "R"), *os.getenv("R_LIBS", "").split(os.pathsep)]
os.environ.update(
    PATH=os.pathsep.join([str(Path(sys.executable).parent), os.getenv("PATH", os.defpath)]),
    PYTHONPATH=str(BASE / "workflow"),
    R_LIBS=os.pathsep.join(dict.fromkeys(filter(None, R_LIBRARIES))),
    # Sorting and number formats in R must not depend on the user's locale.
    LC_ALL="C.UTF-8",
    # R collects garbage less often: an eighth less time for two fifths more memory, at most 0.8 GB in total for a million rows.
    R_GC_MEM_GROW="3",
)

# Another workflow has its own folder with config.yaml, studies/ and machines/; if Snakemake runs in a folder with config/, that is used.
if "config_folder" in config:
    os.environ.update(COLLSTUDY_CONFIG=str(Path(config["config_folder"]).resolve()))
elif Path("config/studies").is_dir():
    os.environ.setdefault("COLLSTUDY_CONFIG", str(Path("config").resolve()))


def refuse(problem):
    """Print one line and exit. An exception would print a traceback through the Snakefile."""
    print(f"error: {problem}", file=sys.stderr, flush=True)
    os._exit(2)


# The other loggers print it themselves.
if Quietness.RULES in (workflow.output_settings.quiet or ()):
    if not workflow.output_settings.log_handler_settings:
        logger.addHandler(SlurmErrors())

# `configfile:` is not used: it accepts another version of YAML and has its own messages. The command line takes precedence.
try:
    for key, value in read_yaml(
        Path(os.environ.get("COLLSTUDY_CONFIG", BASE / "config")) / "config.yaml",
        "config",
    ).items():
        config.setdefault(key, value)
except StudyError as error:
    refuse(error)
RESULTS = Path(config.get("results") or "results")
# Environment modules that jobs load if a profile enables them.
MODULES = split_names(config.get("modules", []))
if MODULES and DeploymentMethod.ENV_MODULES in workflow.deployment_settings.deployment_method:
    if ask(["bash", "-c", "command -v module"]).returncode:
        # The job would print `module: command not found` and measure with what it finds.
        refuse(
            f"modules are to be loaded ({', '.join(MODULES)}), but a job's shell (bash -c) has no command `module`: set BASH_ENV to "
            "the bash initialization file of Lmod or Environment Modules (such as $LMOD_PKG/init/bash or $MODULESHOME/init/bash)"
        )
    # Snakemake starts a job's command right after `module load`, whatever its exit status. A module may have a Python of its own.
    shell.prefix(
        f"if [ $? -ne 0 ]; then echo 'error: module load {' '.join(MODULES)} failed; nothing is measured' >&2; exit 1; fi; "
        f'export PATH={quote(str(Path(sys.executable).parent))}:"$PATH" PYTHONPATH={quote(os.environ.get("PYTHONPATH", ""))}; '
        "set -euo pipefail; "
    )
# The image in which analysis and report run with --sdm apptainer: this project's (Containerfile, apptainer.def). R and Python are those
# of the image, the code is that of this checkout.
IMAGE = config.get("image")
IN_IMAGE = IMAGE is not None and DeploymentMethod.APPTAINER in workflow.deployment_settings.deployment_method
if IN_IMAGE:
    prefix = "APPTAINERENV" if shutil.which("apptainer") else "SINGULARITYENV"
    os.environ[f"{prefix}_PREPEND_PATH"] = f"{IMAGE_SETUP}/venv/bin"
    os.environ[f"{prefix}_R_LIBS"] = f"{IMAGE_SETUP}/R"
# Without R, studies are measured, but neither analysed nor reported.
HAS_R = IN_IMAGE or needs.has_r()
# Reading this file must not write anything below RESULTS, because dry runs read it, too (project/stage.py).
STAGE = Stage(Path(".snakemake") / "collstudy", RESULTS)


def project():
    """Return the project that `./study run` has checked in this process if it is the same, otherwise a new one."""
    checked, mine = opened(None), Project(results=RESULTS)
    same = (checked.results, checked.configuration.folder) == (
        mine.results,
        mine.configuration.folder,
    )
    return checked if same else mine


class Plan:
    """The plan of this run. Jobs (each reads this file again on a cluster) plan nothing: the files of blocks contain their work."""

    def __init__(self):
        self.project = project()
        self.project.store.memory = STAGE.folder / "summaries.json"
        self.sources, self.states, self.progress = {}, {}, None
        # The machines of the blocks that are measured on Slurm nodes.
        self.slurm = {}
        # By study and part: a file that is newer than changed derived files, so that these are made again.
        self.changed = {}
        # Markers of the blocks of this run by study and round, and of the blocks for which each block waits.
        self.markers, self.before = {}, {}
        # By study: markers of other studies' blocks that also measure cells of this study.
        self.shared = {}
        wanted = self.names()
        if not wanted and "calibrate" in config:
            return
        explicit = "calibrate" in config or wanted != self.project.default_studies
        # A job needs only what its block is measured with, which is checked there: R may be on the login node alone.
        found, left_out = self.project.available(wanted, explicit, whatever_is_here=not workflow.is_main_process)
        self.sources = {source.study.name: source for source in found}
        if workflow.is_main_process:
            print(*left_out, sep="\n", end="\n" * len(left_out), file=sys.stderr)
            if not HAS_R:
                print("R is not installed: no tables, figures and report", file=sys.stderr)
                # Nor decisions; of the other studies, this is already said.
                remarks = [line for source in found if source.decided_by in self.sources for line in source.remarks()]
                print(*remarks, sep="\n", end="\n" * len(remarks), file=sys.stderr)
            self.make()

    def names(self):
        """Return the studies of this run: the requested ones, or those with which a machine is calibrated."""
        if "calibrate" not in config:
            return split_names(config["studies"])
        return calibrate.studies_of_machine(self.project.configuration, config["calibrate"])

    def make(self):
        """Compare the studies with the store, and stage the files that tell jobs what to do."""
        for name, source in self.sources.items():
            self.states[name] = self.project.state(source)
        rounds = self.project.blocks(list(self.states.values()))
        blocks = {name: [block for mine in of.values() for block in mine] for name, of in rounds.items()}
        for line in explain(blocks, self.states, config.get("max_node_hours")):
            print(line, file=sys.stderr)
        self.slurm = {b.name: b.machine for mine in blocks.values() for b in mine if b.machine.kind == "slurm"}
        if self.slurm:
            for line in left_running(Path.cwd()):
                print(line, file=sys.stderr)
        for name, source in self.sources.items():
            for file, content in source.files().items():
                STAGE.write(f"{name}/{file}", content)
                # Snakemake does not copy the same content again, whatever has become of the copy.
                if STAGE.differs(f"{name}/{file}"):
                    path = STAGE.trigger(f"{name}/changed-{Path(file).stem}.txt", b"changed\n")
                    self.changed[name, file] = [STAGE.make_newest(path, RESULTS / name)]
        # The empty name stands for the report, which covers all studies.
        for name in (*self.sources, ""):
            self.find_changed(name)
        of_work = {}
        for name, of in rounds.items():
            self.markers[name] = {
                number: [marker(block, RESULTS / "blocks") for block in mine] for number, mine in of.items()
            }
            if blocks[name]:
                # A missing output does not make Snakemake run this job; a newer input does.
                STAGE.trigger(f"{name}/pending.txt", pending_bytes(self.of_study(name)))
        for mine in blocks.values():
            for block in mine:
                STAGE.write_block(block)
                of_work |= {task.work.digest: block for task in block.tasks}
        for name, state in self.states.items():
            needed = [of_work[task.work.digest] for task in state.tasks.get(0, [])]
            self.shared[name] = [
                marker(other, RESULTS / "blocks")
                for other in {block.name: block for block in needed}.values()
                if other not in blocks[name]
            ]
        for mine in blocks.values():
            for block in mine:
                needed = {
                    of_work[work.digest].name: of_work[work.digest]
                    for task in block.tasks
                    for work in task.work.needs
                    if work.digest in of_work
                }
                self.before[block.name] = [marker(other, RESULTS / "blocks") for other in needed.values()]

    def find_changed(self, name):
        """Stage a file for each part of a study (of the report, if *name* is empty) whose files must be made again."""
        for part, problems in made.changed(RESULTS / name).items():
            print(
                f"{name or 'report'}: made again, because files were changed: " + "; ".join(problems),
                file=sys.stderr,
            )
            path = STAGE.trigger(
                str(Path(name) / f"changed-{part}.txt"),
                "\n".join(problems).encode() + b"\n",
            )
            self.changed[name, part] = [STAGE.make_newest(path, RESULTS / (name or part))]
        # Snakemake does not make a deleted file again if the targets are newer than what it was made from; earlier versions wrote
        # no list of the launches that verify the tuning files.
        for part, file in {"collect": "measurements.csv", "keep": VERIFYING}.items():
            if name and not (RESULTS / name / file).exists():
                path = STAGE.trigger(f"{name}/changed-{part}.txt", b"missing\n")
                self.changed[name, part] = [path]
        # reanalyse and publish write the front page of their own studies.
        page = RESULTS / "front" / "studies.csv"
        if page.is_file() and not name and (name, "front") not in self.changed:
            if {row.get("study") for row in read_csv(page)} != set(self.sources):
                path = STAGE.trigger("changed-front.txt", b"other studies\n")
                self.changed[name, "front"] = [STAGE.make_newest(path, page.parent)]
        # Launches that failed to verify the tuning files, or are lost, are requested again with these files.
        if name and self.sources[name].unverified():
            path = STAGE.trigger(f"{name}/changed-emit.txt", b"not verified\n")
            self.changed[name, "emit"] = [STAGE.make_newest(path, RESULTS / name)]

    def of_study(self, study):
        """Return the markers of all blocks of a study."""
        return [path for mine in self.markers.get(study, {}).values() for path in mine]


try:
    PLAN = Plan()
except StudyError as error:
    refuse(error)
except OSError as error:
    refuse(f"{error}: measurements so far are stored; run again when the results folder is writable")
STUDIES = list(PLAN.sources)


wildcard_constraints:
    # Files of other studies cannot be made, because the plan lacks these. The alternative matches nothing.
    study="|".join(map(re.escape, STUDIES)) or "(?!)",
    block="[A-Za-z0-9._-]+",
    attempt="[0-9]+",


# Studies whose cells are known only after a trace: those of programs.
TRACED_FIRST = [name for name, source in PLAN.sources.items() if source.known_after_trace]
# Study whose work uses the decisions of another study of this run -> that study. Decisions need R.
DECIDED_BY = {
    name: source.decided_by for name, source in PLAN.sources.items() if HAS_R and source.decided_by in STUDIES
}


onstart:
    # Whether blocks become jobs is known here, not when this file is read; without this, each block would say so.
    wanted = {job.wildcards_dict.get("block") for job in workflow.dag.needrun_jobs()} & PLAN.slurm.keys()
    if wanted and workflow.local_exec:
        try:
            slurm_job(PLAN.slurm[min(wanted)])
        except StudyError as error:
            print(f"error: {error}", file=sys.stderr, flush=True)
            sys.exit(2)
    note_start(Path(".snakemake"))
    STAGE.settle(state.newest for state in PLAN.states.values() if state.newest)
    for name in (*STUDIES, ""):
        for line in made.make_room(RESULTS / name):
            print(line, file=sys.stderr)
    for name, source in PLAN.sources.items():
        for line in made.retire(RESULTS, name, [*source.products(), *source.judged()]):
            print(line, file=sys.stderr)
    PLAN.progress = Progress(PLAN.states, Store(RESULTS), PLAN.project.state)
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
        "\n".join(
            run_summary(
                PLAN.sources.values(),
                succeeded=False,
                refused=JOB_REFUSED.is_set(),
                listed=verdict_given(Path.cwd()),
            )
        ),
        file=sys.stderr,
    )


def stage_sources(part, parts):
    """Stage the digest of the project's own sources, so that their products are made again when the sources change."""
    if workflow.is_main_process:
        STAGE.write(f"sources/{part}.sha256", digest_of(parts))
    return RESULTS / "sources" / f"{part}.sha256"
