# Functions that provide inputs and resources of the rules.


def new_blocks(study):
    """Return a study's block files that do not exist yet, or are damaged. Others are identical, and a job of an earlier run may be
    reading one.
    """
    paths = [path.with_name(path.name.rsplit(".", 2)[0] + ".json") for path in PLAN.of_study(study)]
    return [path for path in paths if not path.exists() or STAGE.differs(f"blocks/{path.name}")]


def get_changed(part):
    """Return an input function for the files that trigger a part of a study's results again; [] if its files are unchanged."""

    def get_changed_part(wildcards):
        return PLAN.changed.get((wildcards.study, part), [])

    return get_changed_part


def get_stored(wildcards):
    """Return the inputs of a study's measurements.csv: the blocks of this run, including those of other studies that share cells with
    it, and the newest stored cell; for a study with rounds, also the last round.
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
    shared = PLAN.shared.get(study, [])
    rounds = round_blocks(study, last) if last else []
    return now + shared + found + rounds + decided_blocks(study)


def decided_blocks(study):
    """Return the blocks that use the decisions of another study of this run; they are known when that study has decided."""
    if study not in DECIDED_BY:
        return []
    planned = checkpoints.plan_replays.get(study=study)
    return [planned.output.pending, *read_pending(Path(planned.output.pending))]


def last_round(study):
    """Return the number of a study's last round: the first that selects nothing, or the last that is allowed. Return 0 for a study without
    rounds, and for a program without collectives that are worth measuring, which is known after its trace.
    """
    if study in TRACED_FIRST:
        account = checkpoints.account_program.get(study=study)
        if not read_csv(Path(account.output.cells)):
            return 0
    last = PLAN.sources[study].last_round
    for number in range(1, last):
        selected = checkpoints.select_points.get(study=study, round=number)
        if not read_csv(Path(selected.output.selected)):
            return number
    return last


def round_blocks(study, number):
    """Return the blocks of a round, known when the round has selected points: those found missing by this run, or those selected."""
    selected = checkpoints.select_points.get(study=study, round=number)
    now = PLAN.markers.get(study, {}).get(int(number))
    if now:
        return [selected.output.pending, RESULTS / study / "pending.txt", *now]
    return [selected.output.pending, *read_pending(Path(selected.output.pending))]


def get_round(wildcards):
    """Return the blocks of the round to be collected, and the points that rounds up to this one have selected."""
    blocks = round_blocks(wildcards.study, wildcards.round)
    return blocks + PLAN.sources[wildcards.study].selected_until(int(wildcards.round))


def get_round_before(wildcards):
    """Return the measurements before a round; [] before the first."""
    before = int(wildcards.round) - 1
    if not before:
        return []
    return [PLAN.sources[wildcards.study].folder_of(before) / "measurements.csv"]


def get_calibration(wildcards):
    """Return the measurements of this workflow's studies with which a machine is calibrated."""
    names = calibrate.studies_of_machine(PLAN.project.configuration, wildcards.machine)
    return [RESULTS / name / "measurements.csv" for name in names]


def get_traced(wildcards):
    """Return the blocks of this run that trace a program."""
    return PLAN.markers.get(wildcards.study, {}).get(0, [])


def get_decisions(wildcards):
    """Return the decisions of another study that a study uses."""
    return RESULTS / DECIDED_BY[wildcards.study] / "tuning" / "decisions.csv"


def get_planned(wildcards):
    """Return all blocks of a study that are known before the run."""
    return PLAN.of_study(wildcards.study)


def get_inputs(wildcards):
    """Return the files of other authors from which a study's rows are made, and the digest of what reads and checks them."""
    source = PLAN.sources[wildcards.study]
    return source.inputs() + ([IMPORT_SOURCES] if source.data() else [])


def get_verification(wildcards):
    """Return the blocks that verify a study's tuning files; they are known when these files are written."""
    emitted = checkpoints.emit_tuning.get(study=wildcards.study)
    return [emitted.output.pending, *read_pending(Path(emitted.output.pending))]


def get_before(wildcards):
    """Return the markers of this run's blocks for which a block waits: a replay waits for its trace."""
    return PLAN.before.get(wildcards.block, [])


@functools.cache
def content_of(block):
    """Return a block; cached, because Snakemake requests each resource separately."""
    return read_block(STAGE.find(f"blocks/{block}.json"))


@functools.cache
def resources_of(block, attempt):
    """Return the Slurm resources of a block."""
    return slurm_resources(content_of(block), Store(RESULTS), attempt)


def get_threads(wildcards):
    """Return the cores of a block's job: all, if it measures Slurm nodes and is no job of its own, but runs in an allocation of the user,
    because other jobs of this run would disturb it.
    """
    return workflow.cores if workflow.local_exec and content_of(wildcards.block).machine.kind == "slurm" else 1


def get_resource(name):
    """Return a function for one Slurm resource of a block; it returns None if the resource is not set, and without Slurm."""

    def get_block_resource(wildcards, attempt):
        return resources_of(wildcards.block, attempt).get(name)

    return get_block_resource


def get_analysis(wildcards):
    """Return all files of the studies that the report shows."""
    files = [
        "study.json",
        "cells.csv",
        "measurements.csv",
        "tables/index.csv",
        "models/index.csv",
        "figures/index.csv",
        "sentences.csv",
    ]
    return [RESULTS / study / file for study in STUDIES for file in files]


def get_texts(wildcards):
    """Return the authored chapters."""
    folder = PLAN.project.configuration.folder / "studies"
    texts = [folder / f"{study}.qmd" for study in STUDIES]
    return [text for text in texts if text.is_file()]


def get_products(wildcards):
    """Return the further products that a run makes from the studies' measurements."""
    return [RESULTS / name / path for name, source in PLAN.sources.items() for path in source.products()]


def get_judged(wildcards):
    """Return the tables that judge a study's decisions."""
    source = PLAN.sources[wildcards.study]
    return [RESULTS / wildcards.study / path for path in source.judged()]


def get_beside(wildcards):
    """Return the results of other studies of this run that the analysis of a study reads."""
    source = PLAN.sources.get(wildcards.study)
    paths = source.beside() if source else []
    return [path for path in paths if path.relative_to(RESULTS).parts[0] in STUDIES]


def get_sampled(wildcards):
    """Return the grid and selections of a sampled study; [] for other studies."""
    last = last_round(wildcards.study)
    return PLAN.sources[wildcards.study].selected_until(last) if last else []


def get_selected_before(wildcards):
    """Return the grid of a sampled study, and the selections of the rounds before this one."""
    source = PLAN.sources[wildcards.study]
    return source.selected_until(int(wildcards.round) - 1)
