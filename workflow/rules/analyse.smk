# Measurements to tables, models and figures.


rule analyse_study:
    input:
        script="workflow/scripts/analyse.R",
        study=RESULTS / "{study}" / "study.json",
        measurements=RESULTS / "{study}" / "measurements.csv",
        cells=RESULTS / "{study}" / "cells.csv",
    output:
        index=RESULTS / "{study}" / "{part}" / "index.csv",
    log:
        "logs/analyse/{study}-{part}.log",
    wildcard_constraints:
        part="tables|models|figures",
    params:
        folder=lambda wildcards: RESULTS / wildcards.study,
    shell:
        "Rscript {input.script:q} {wildcards.part} {params.folder:q} > {log:q} 2>&1"
