# Fit a simulated machine's message costs to measurements; only `./study calibrate MACHINE` requests this.


rule calibrate:
    input:
        measured=get_calibration,
    output:
        compared=RESULTS / "calibration" / "{machine}.csv",
    log:
        "logs/calibrate/{machine}.log",
    localrule: True
    # Runs one simulation per core.
    threads: workflow.cores
    params:
        results=RESULTS,
    shell:
        "python -m collstudy --results {params.results:q} calibrate {wildcards.machine:q} 2>&1 | tee {log:q}"
