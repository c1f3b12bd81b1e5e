# Convert measurements to tables, models and figures.
ANALYSIS_SOURCES = stage_sources("analysis", ["workflow/analysis", "workflow/scripts/analyse.R"])


# One job creates all parts, because figures and sentences report the accuracy of the models. The traces and replays of a study with
# applications are not inputs, because study.json identifies them by their content.
rule analyse_study:
    input:
        **MEASURED,
        sources=ANALYSIS_SOURCES,
        study=RESULTS / "{study}" / "study.json",
        sampled=get_sampled,
        checks=RESULTS / "{study}" / "import-checks.csv",
        agreement=RESULTS / "{study}" / "agreement.csv",
        beside=get_beside,
        changed=get_changed("analyse"),
    output:
        tables=RESULTS / "{study}" / "tables" / "index.csv",
        models=RESULTS / "{study}" / "models" / "index.csv",
        figures=RESULTS / "{study}" / "figures" / "index.csv",
        # For `snakemake --report`: the first figure of every section, each with its caption beside it.
        main=report(
            directory(RESULTS / "{study}" / "figures" / "main"),
            patterns=["{figure}.svg"],
            caption="../report/figure.rst",
            category="{study}",
            labels={"figure": "{figure}"},
        ),
        sentences=RESULTS / "{study}" / "sentences.csv",
    log:
        "logs/analyse/{study}.log",
    # Figures of imported studies need not wait for the blocks of other studies.
    priority: 1
    localrule: True
    container:
        IMAGE
    params:
        results=RESULTS,
        script=BASE / "workflow" / "scripts" / "analyse.R",
        folder=lambda wildcards: RESULTS / wildcards.study,
    shell:
        "{{ Rscript {params.script:q} study {params.folder:q} && "
        "python -m collstudy --results {params.results:q} made {wildcards.study:q} analyse; }}"
        " > {log:q} 2>&1 || {{ tail -n 3 {log:q} >&2; exit 1; }}"
