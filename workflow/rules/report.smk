# Write the front page, render the report, and give the verdict on the run.
REPORT_SOURCES = stage_sources(
    "report",
    [
        "report",
        "workflow/collstudy/publish/building.py",
        "workflow/collstudy/publish/fallback.py",
        "workflow/collstudy/publish/pages.py",
        "workflow/collstudy/publish/quarto.py",
        "workflow/collstudy/publish/render.py",
        "workflow/collstudy/publish/renderers.py",
    ],
)


rule write_front:
    input:
        get_analysis,
        get_products,
        ANALYSIS_SOURCES,
        lambda wildcards: PLAN.changed.get(("", "front"), []),
    output:
        text=RESULTS / "front" / "text.csv",
        table=RESULTS / "front" / "table.csv",
        studies=RESULTS / "front" / "studies.csv",
    log:
        "logs/report/front.log",
    localrule: True
    container:
        IMAGE
    params:
        results=RESULTS,
        studies=STUDIES,
    shell:
        "python -m collstudy --results {params.results:q} front {params.studies:q} > {log:q} 2>&1"
        " || {{ tail -n 3 {log:q} >&2; exit 1; }}"


rule render_report:
    input:
        get_analysis,
        get_products,
        rules.write_front.output,
        REPORT_SOURCES,
        get_texts,
        lambda wildcards: PLAN.changed.get(("", "report"), []),
    output:
        html=RESULTS / "report" / "index.html",
        pdf=RESULTS / "report" / "report.pdf",
    log:
        "logs/report/render.log",
    localrule: True
    container:
        IMAGE
    params:
        results=RESULTS,
        base=BASE,
        studies=STUDIES,
        folder=RESULTS / "report",
    # The revision is determined in the shell: as a parameter, it would trigger rendering after every commit.
    shell:
        "revision=$(git -C {params.base:q} --git-dir=.git describe --always --dirty 2>> {log:q} || echo unknown) && "
        "python -m collstudy --results {params.results:q} render --studies {params.studies:q} --output {params.folder:q}"
        " --revision $revision > {log:q} 2>&1"


rule give_verdict:
    input:
        cells=[RESULTS / study / "cells.csv" for study in STUDIES],
        html=RESULTS / "report" / "index.html",
        pdf=RESULTS / "report" / "report.pdf",
    output:
        RESULTS / "complete.txt",
    log:
        "logs/verdict.log",
    localrule: True
    params:
        results=RESULTS,
        studies=STUDIES,
    shell:
        "python -m collstudy --results {params.results:q} verdict {params.studies:q} 2>&1 | tee {log:q}"
        " && echo {params.studies:q} > {output:q}"
