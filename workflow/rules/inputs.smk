# Functions that tell the rules their inputs and resources.


def new_blocks(study):
    """The files of a study's blocks that do not exist yet. Existing ones are equal, and a job of an earlier run may be reading one."""
    paths = [
        path.with_name(path.name.rsplit(".", 2)[0] + ".json")
        for path in PLAN.of_study(study)
    ]
    return [path for path in paths if not path.exists()]


def get_changed(part):
    """A function that returns what triggers a part of a study's results again: nothing if its files are unchanged."""

    def get_changed_part(wildcards):
        return PLAN.changed.get((wildcards.study, part), [])

    return get_changed_part


def get_stored(wildcards):
    """The inputs of a study's measurements.csv: the blocks of this run, including those of other studies that share cells with it,
    and the newest stored cell; for a study with rounds, also the last one.
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
    """The blocks that use the decisions of another study of this run: known when it has decided."""
    if study not in DECIDED_BY:
        return []
    planned = checkpoints.plan_replays.get(study=study)
    return [planned.output.pending, *read_pending(Path(planned.output.pending))]


def last_round(study):
    """The number of a study's last round, the first that selects nothing or the last that is allowed; 0 for one without rounds, and for a program that uses nothing that is
    worth measuring, which is known after its trace.
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
    """The blocks of a round of a sampled study, known when it has selected them: those that this run found missing, or those selected."""
    selected = checkpoints.select_points.get(study=study, round=number)
    now = PLAN.markers.get(study, {}).get(int(number))
    if now:
        return [selected.output.pending, RESULTS / study / "pending.txt", *now]
    return [selected.output.pending, *read_pending(Path(selected.output.pending))]


def get_round(wildcards):
    """The blocks of the round that is collected, and what the rounds until then have selected."""
    blocks = round_blocks(wildcards.study, wildcards.round)
    return blocks + PLAN.sources[wildcards.study].selected_until(int(wildcards.round))


def get_round_before(wildcards):
    """The measurements before a round; none before the first."""
    before = int(wildcards.round) - 1
    if not before:
        return []
    return [PLAN.sources[wildcards.study].folder_of(before) / "measurements.csv"]


def get_calibration(wildcards):
    """The data of this workflow's studies with which a machine is calibrated."""
    names = calibrate.studies_of_machine(PLAN.project.configuration, wildcards.machine)
    return [RESULTS / name / "measurements.csv" for name in names]


def get_traced(wildcards):
    """The blocks of this run that trace a program."""
    return PLAN.markers.get(wildcards.study, {}).get(0, [])


def get_decisions(wildcards):
    """The decisions of the study that decides for another one."""
    return RESULTS / DECIDED_BY[wildcards.study] / "tuning" / "decisions.csv"


def get_planned(wildcards):
    """All blocks of a study that are known before the run."""
    return PLAN.of_study(wildcards.study)


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
    """The Slurm resources of a block in an attempt, computed once although Snakemake asks for each separately."""
    content = read_block(STAGE.find(f"blocks/{block}.json"))
    return slurm_resources(content, Store(RESULTS), attempt)


def get_resource(name):
    """A function that returns a Slurm resource of a block; None for what is not set, and for everything without Slurm."""

    def get_block_resource(wildcards, attempt):
        return resources_of(wildcards.block, attempt).get(name)

    return get_block_resource


def get_analysis(wildcards):
    """Everything that the report shows of the studies."""
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
    """Chapters with authored text."""
    folder = PLAN.project.configuration.folder / "studies"
    texts = [folder / f"{study}.qmd" for study in STUDIES]
    return [text for text in texts if text.is_file()]


def get_products(wildcards):
    """Further products of a run from the studies' measurements."""
    return [
        RESULTS / name / path
        for name, source in PLAN.sources.items()
        for path in source.products()
    ]


def get_judged(wildcards):
    """The tables that judge a study's decisions."""
    source = PLAN.sources[wildcards.study]
    return [RESULTS / wildcards.study / path for path in source.judged()]


def get_beside(wildcards):
    """Results of other studies of this run that the analysis of a study reads."""
    source = PLAN.sources.get(wildcards.study)
    paths = source.beside() if source else []
    return [path for path in paths if path.relative_to(RESULTS).parts[0] in STUDIES]


def get_sampled(wildcards):
    """What the rounds of a sampled study have selected; nothing for other studies."""
    last = last_round(wildcards.study)
    return PLAN.sources[wildcards.study].selected_until(last) if last else []


def get_selected_before(wildcards):
    """The grid of a sampled study and what the rounds before one have selected."""
    source = PLAN.sources[wildcards.study]
    return source.selected_until(int(wildcards.round) - 1)
