# Run blocks to store cells, traces and replays, and collect these to measurements.
# What reads and checks the files of other authors: their tables are made again when it changes.
IMPORT_SOURCES = stage_sources("import", ["workflow/collstudy/sources/importing"])


# Copies the staged files of the plan to their targets if they have changed. Errors reach the terminal with tee: on a full disk,
# the log is empty.
rule describe_study:
    input:
        staged=STAGE.folder / "{study}" / "{file}",
        changed=lambda wildcards: PLAN.changed.get((wildcards.study, wildcards.file), []),
    output:
        RESULTS / "{study}" / "{file}",
    log:
        "logs/plan/{study}/{file}.log",
    wildcard_constraints:
        file=r"study\.json|program\.json|sampling/grid\.csv",
    localrule: True
    shell:
        "cp {input.staged:q} {output:q} 2>&1 | tee {log:q} >&2"


# The cells of a program are known only after its trace.
if TRACED_FIRST:

    ruleorder: account_program > describe_study

    checkpoint account_program:
        input:
            script=BASE / "workflow" / "scripts" / "analyse.R",
            program=RESULTS / "{study}" / "program.json",
            traced=get_traced,
        output:
            cells=RESULTS / "{study}" / "sampling" / "cells.csv",
            study=RESULTS / "{study}" / "study.json",
            grid=RESULTS / "{study}" / "sampling" / "grid.csv",
        log:
            "logs/account/{study}.log",
        wildcard_constraints:
            study="|".join(map(re.escape, TRACED_FIRST)),
        localrule: True
        params:
            results=RESULTS,
            folder=lambda wildcards: RESULTS / wildcards.study,
        shell:
            "{{ Rscript {input.script:q} account {params.folder:q} && "
            "python -m collstudy --results {params.results:q} describe {wildcards.study:q}; }} > {log:q} 2>&1"
            " || {{ tail -n 3 {log:q} >&2; exit 1; }}"


# Replays that use the decisions of another study in this run are known only when that study has decided.
if DECIDED_BY:

    ruleorder: plan_replays > describe_study

    checkpoint plan_replays:
        input:
            staged=STAGE.folder / "{study}" / "undecided.json",
            decisions=get_decisions,
            planned=get_planned,
        output:
            study=RESULTS / "{study}" / "study.json",
            pending=RESULTS / "{study}" / "replays.txt",
        log:
            "logs/plan/{study}-replays.log",
        wildcard_constraints:
            study="|".join(map(re.escape, DECIDED_BY)),
        localrule: True
        params:
            results=RESULTS,
        shell:
            "python -m collstudy --results {params.results:q} replays {wildcards.study:q} > {log:q} 2>&1"
            " || {{ tail -n 3 {log:q} >&2; exit 1; }}"


rule note_sources:
    input:
        staged=STAGE.folder / "sources" / "{part}.sha256",
    output:
        RESULTS / "sources" / "{part}.sha256",
    log:
        "logs/plan/sources-{part}.log",
    # The analysis waits for it.
    priority: 1
    localrule: True
    shell:
        "cp {input.staged:q} {output:q} 2>&1 | tee {log:q} >&2"


# One rule per study, because the number of blocks depends on the store.
for planned in STUDIES:
    if PLAN.of_study(planned):

        rule:
            name:
                f"plan_{planned}"
            input:
                staged=STAGE.folder / planned / "pending.txt",
            output:
                pending=RESULTS / planned / "pending.txt",
                blocks=new_blocks(planned),
            log:
                f"logs/plan/{planned}.log",
            localrule: True
            params:
                staged=STAGE.folder / "blocks",
                folder=RESULTS / "blocks",
            shell:
                "{{ mkdir -p {params.folder:q} && cp {input.staged:q} {output.pending:q}"
                ' && for block in {output.blocks:q}; do cp {params.staged:q}/"${{block##*/}}" "$block" || exit; done; }}'
                " 2>&1 | tee {log:q} >&2"


rule measure_block:
    input:
        block=ancient(RESULTS / "blocks" / "{block}.json"),
        before=get_before,
    output:
        marker=RESULTS / "blocks" / "{block}.{attempt}.done",
    log:
        "logs/measure/{block}.{attempt}.log",
    envmodules:
        *MODULES,
    threads: get_threads
    # Used with Slurm only; determined from the machine's YAML and the work that is missing at submission (blocks.py, slurm_resources).
    resources:
        nodes=get_resource("nodes"),
        tasks=get_resource("tasks"),
        tasks_per_node=get_resource("tasks_per_node"),
        mpi=get_resource("mpi"),
        runtime=get_resource("runtime"),
        slurm_partition=get_resource("slurm_partition"),
        slurm_account=get_resource("slurm_account"),
        constraint=get_resource("constraint"),
        qos=get_resource("qos"),
        mem_mb=get_resource("mem_mb"),
        slurm_extra=get_resource("slurm_extra"),
    params:
        results=RESULTS,
    shell:
        "python -m collstudy --results {params.results:q} measure {input.block:q} --log {log:q}"
        " && touch {output.marker:q}"


# The same on the computer where snakemake runs, with any profile: a machine of kind local is that computer. The rule takes
# all cores, because other jobs would disturb the measurement.
rule measure_here:
    input:
        block=ancient(RESULTS / "blocks" / "{block}.json"),
        before=get_before,
    output:
        marker=RESULTS / "blocks" / "{block}.{attempt}.here",
    log:
        "logs/measure/{block}.{attempt}.log",
    localrule: True
    threads: workflow.cores
    params:
        results=RESULTS,
    shell:
        "python -m collstudy --results {params.results:q} measure {input.block:q} --log {log:q}"
        " && touch {output.marker:q}"


# What was measured in a study: the tables that its analysis reads.
MEASURED = {
    name: RESULTS / "{study}" / f"{name}.csv" for name in ("measurements", "cells", "ranks", "edges", "exchanges")
}


rule collect_measurements:
    input:
        study=RESULTS / "{study}" / "study.json",
        stored=get_stored,
        selected=get_sampled,
        imported=get_inputs,
        changed=get_changed("collect"),
    output:
        **MEASURED,
        checks=RESULTS / "{study}" / "import-checks.csv",
        agreement=RESULTS / "{study}" / "agreement.csv",
    log:
        "logs/collect/{study}.log",
    priority: 1
    localrule: True
    params:
        results=RESULTS,
    shell:
        "python -m collstudy --results {params.results:q} collect {wildcards.study:q}"
        f" --latency {LATENCY_WAIT}"
        " > {log:q} 2>&1 "
        "|| {{ tail -n 1 {log:q} >&2; exit 1; }}"


# Target without R: the measurements of all studies, and the verdict on them.
rule measure:
    input:
        [RESULTS / study / "measurements.csv" for study in STUDIES],
        cells=[RESULTS / study / "cells.csv" for study in STUDIES],
    output:
        RESULTS / "measured.txt",
    log:
        "logs/measure.log",
    localrule: True
    params:
        results=RESULTS,
        studies=STUDIES,
    shell:
        "python -m collstudy --results {params.results:q} verdict {params.studies:q} 2>&1 | tee {log:q}"
        " && echo {params.studies:q} > {output:q}"
