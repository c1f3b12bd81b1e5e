# Each round of a sampled study selects points from the measurements so far. Their blocks are measured like all others, and
# points that the store already contains are not measured again. A round without new points has no blocks.


# The analysis package is not an input: a change of its figures must not change the selected points.
checkpoint select_points:
    input:
        script=BASE / "workflow" / "scripts" / "analyse.R",
        study=RESULTS / "{study}" / "study.json",
        selected=get_selected_before,
        measured=get_round_before,
    output:
        selected=RESULTS / "{study}" / "sampling" / "round-{round}" / "selected.csv",
        pending=RESULTS / "{study}" / "sampling" / "round-{round}" / "pending.txt",
    log:
        "logs/sample/{study}-{round}.log",
    wildcard_constraints:
        round="[0-9]+",
    localrule: True
    params:
        results=RESULTS,
        folder=lambda wildcards: RESULTS / wildcards.study,
    shell:
        "{{ Rscript {input.script:q} select {params.folder:q} {wildcards.round}"
        " && python -m collstudy --results {params.results:q} request {wildcards.study:q} {wildcards.round}; }} > {log:q} 2>&1"


rule collect_round:
    input:
        blocks=get_round,
    output:
        measurements=RESULTS / "{study}" / "sampling" / "round-{round}" / "measurements.csv",
        cells=RESULTS / "{study}" / "sampling" / "round-{round}" / "cells.csv",
    log:
        "logs/sample/{study}-{round}-collect.log",
    wildcard_constraints:
        round="[0-9]+",
    localrule: True
    params:
        results=RESULTS,
    shell:
        "python -m collstudy --results {params.results:q} collect {wildcards.study:q} --round {wildcards.round}"
        f" --latency {LATENCY_WAIT}"
        " > {log:q} 2>&1"
        " || {{ tail -n 1 {log:q} >&2; exit 1; }}"
