# Convert measurements to decisions and tuning files for MPI libraries, and verify these files with fresh launches.


rule decide_tuning:
    input:
        **MEASURED,
        sources=ANALYSIS_SOURCES,
        study=RESULTS / "{study}" / "study.json",
        sampled=get_sampled,
        changed=get_changed("decide"),
    output:
        decisions=RESULTS / "{study}" / "tuning" / "decisions.csv",
        regret=RESULTS / "{study}" / "tables" / "tuning-regret.csv",
        shared=RESULTS / "{study}" / "tables" / "tuning-shared.csv",
    log:
        "logs/tune/{study}-decide.log",
    localrule: True
    container:
        IMAGE
    params:
        results=RESULTS,
        script=BASE / "workflow" / "scripts" / "analyse.R",
        folder=lambda wildcards: RESULTS / wildcards.study,
    shell:
        "{{ Rscript {params.script:q} decide {params.folder:q} && "
        "python -m collstudy --results {params.results:q} made {wildcards.study:q} decide; }} > {log:q} 2>&1"


rule replay_sampling:
    input:
        **MEASURED,
        sources=ANALYSIS_SOURCES,
        study=RESULTS / "{study}" / "study.json",
        changed=get_changed("sample"),
    output:
        table=RESULTS / "{study}" / "tables" / "sampling.csv",
        figure=RESULTS / "{study}" / "tuning" / "sampling.svg",
        dots=RESULTS / "{study}" / "tuning" / "sampling.png",
    log:
        "logs/tune/{study}-sampling.log",
    localrule: True
    container:
        IMAGE
    threads: 2
    params:
        results=RESULTS,
        script=BASE / "workflow" / "scripts" / "analyse.R",
        folder=lambda wildcards: RESULTS / wildcards.study,
    shell:
        "{{ Rscript {params.script:q} sample {params.folder:q} && "
        "python -m collstudy --results {params.results:q} made {wildcards.study:q} sample; }} > {log:q} 2>&1"


# The verification blocks depend on the files, so Snakemake re-evaluates the plan once they are written. The rule takes all
# cores, because it starts the library with several ranks, and nothing may be measured at the same time.
checkpoint emit_tuning:
    input:
        study=RESULTS / "{study}" / "study.json",
        measurements=RESULTS / "{study}" / "measurements.csv",
        decisions=RESULTS / "{study}" / "tuning" / "decisions.csv",
        shared=RESULTS / "{study}" / "tables" / "tuning-shared.csv",
        changed=get_changed("emit"),
    output:
        check=RESULTS / "{study}" / "tuning" / "check-emitted.csv",
        pending=RESULTS / "{study}" / "tuning" / "pending.txt",
    log:
        "logs/tune/{study}-emit.log",
    localrule: True
    threads: workflow.cores
    params:
        results=RESULTS,
    shell:
        "python -m collstudy --results {params.results:q} tuning emit {wildcards.study:q} 2>&1 | tee {log:q}"


rule keep_tuning:
    input:
        study=RESULTS / "{study}" / "study.json",
        measurements=RESULTS / "{study}" / "measurements.csv",
        decisions=RESULTS / "{study}" / "tuning" / "decisions.csv",
        shared=RESULTS / "{study}" / "tables" / "tuning-shared.csv",
        check=RESULTS / "{study}" / "tuning" / "check-emitted.csv",
        verified=get_verification,
        changed=get_changed("keep"),
    output:
        readme=RESULTS / "{study}" / "tuning" / "README.md",
        check=RESULTS / "{study}" / "tuning" / "check.csv",
        verification=RESULTS / "{study}" / "tables" / "tuning-verification.csv",
        withdrawn=RESULTS / "{study}" / "tables" / "tuning-withdrawn.csv",
        failed=RESULTS / "{study}" / "tables" / "tuning-failed.csv",
        cells=RESULTS / "{study}" / "tuning" / "cells.csv",
    log:
        "logs/tune/{study}-keep.log",
    localrule: True
    threads: workflow.cores
    params:
        results=RESULTS,
    shell:
        "python -m collstudy --results {params.results:q} tuning keep {wildcards.study:q}"
        f" --latency {LATENCY_WAIT}"
        " 2>&1 | tee {log:q}"


rule tell_tuning:
    input:
        sources=ANALYSIS_SOURCES,
        study=RESULTS / "{study}" / "study.json",
        judged=get_judged,
        changed=get_changed("tell"),
    output:
        sentences=RESULTS / "{study}" / "tuning" / "sentences.csv",
        index=RESULTS / "{study}" / "tuning" / "index.csv",
        verified=RESULTS / "{study}" / "tables" / "tuning-verified.csv",
    log:
        "logs/tune/{study}-tell.log",
    localrule: True
    container:
        IMAGE
    params:
        results=RESULTS,
        script=BASE / "workflow" / "scripts" / "analyse.R",
        folder=lambda wildcards: RESULTS / wildcards.study,
    shell:
        "{{ Rscript {params.script:q} say {params.folder:q} && "
        "python -m collstudy --results {params.results:q} made {wildcards.study:q} tell; }} > {log:q} 2>&1"
