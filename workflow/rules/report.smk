# Everything to the report, and the verdict of the run.
from collstudy.base.digests import note_sources

REPORT_SOURCES = RESULTS / "sources" / "report.sha256"
if workflow.is_main_process:
    note_sources(REPORT_SOURCES, ["report", "workflow/collstudy/publish/render.py"])


rule render_report:
    input:
        get_analysis,
        lambda wildcards: wanted_files(RESULTS, STATES.studies),
        REPORT_SOURCES,
    output:
        html=RESULTS / "report" / "index.html",
        pdf=RESULTS / "report" / "report.pdf",
    log:
        "logs/report/render.log",
    params:
        results=RESULTS,
        base=BASE,
        studies=list(STATES),
        folder=RESULTS / "report",
    # The revision is asked for in the shell: as a parameter it would make every commit a reason to render again.
    shell:
        "revision=$(git -C {params.base:q} describe --always --dirty 2>> {log:q} || echo unknown) && "
        "python -m collstudy.publish.render --results {params.results:q} --studies {params.studies:q} --output {params.folder:q}"
        " --revision $revision > {log:q} 2>&1"


rule give_verdict:
    input:
        cells=[RESULTS / study / "cells.csv" for study in STATES],
        html=RESULTS / "report" / "index.html",
        pdf=RESULTS / "report" / "report.pdf",
    output:
        RESULTS / "complete.txt",
    log:
        "logs/verdict.log",
    params:
        results=RESULTS,
        studies=list(STATES),
    shell:
        "python -m collstudy --results {params.results:q} verdict {params.studies:q} 2>&1 | tee {log:q}"
        " && echo {params.studies:q} > {output:q}"
