# Everything to the report, and the verdict of the run.


rule render_report:
    input:
        get_analysis,
    output:
        html=RESULTS / "report" / "index.html",
        pdf=RESULTS / "report" / "report.pdf",
    log:
        "logs/report/render.log",
    params:
        studies=list(STATES),
        folder=RESULTS / "report",
    shell:
        "{sys.executable:q} -m collstudy.render --results {RESULTS:q} --studies {params.studies:q} --output {params.folder:q}"
        " > {log:q} 2>&1"


rule give_verdict:
    input:
        cells=[RESULTS / study / "cells.csv" for study in STATES],
        html=RESULTS / "report" / "index.html",
        pdf=RESULTS / "report" / "report.pdf",
    output:
        RESULTS / "complete.txt",
    params:
        studies=list(STATES),
    log:
        "logs/verdict.log",
    shell:
        "{sys.executable:q} -m collstudy --results {RESULTS:q} verdict {params.studies:q} 2>&1 | tee {log:q}"
        " && echo {params.studies:q} > {output:q}"
