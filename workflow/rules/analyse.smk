# Measurements to tables, models and figures.
ANALYSIS_SOURCES = stage_sources(
    "analysis", ["workflow/analysis", "workflow/scripts/analyse.R"]
)


rule analyse_study:
    input:
        sources=ANALYSIS_SOURCES,
        study=RESULTS / "{study}" / "study.json",
        measurements=RESULTS / "{study}" / "measurements.csv",
        cells=RESULTS / "{study}" / "cells.csv",
        compared=compared_with,
    output:
        index=RESULTS / "{study}" / "{part}" / "index.csv",
    log:
        "logs/analyse/{study}-{part}.log",
    wildcard_constraints:
        part="tables|models|figures",
    params:
        script=BASE / "workflow" / "scripts" / "analyse.R",
        folder=lambda wildcards: RESULTS / wildcards.study,
    shell:
        "Rscript {params.script:q} {wildcards.part} {params.folder:q} > {log:q} 2>&1 || {{ tail -n 3 {log:q} >&2; exit 1; }}"
