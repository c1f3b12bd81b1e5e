# What a simulated machine's messages cost, fitted to measurements: only `./study calibrate MACHINE` asks for it.


rule calibrate:
    input:
        measured=get_calibration,
    output:
        compared=RESULTS / "calibration" / "{machine}.csv",
    log:
        "logs/calibrate/{machine}.log",
    # It runs as many simulations at once as there are cores.
    threads: workflow.cores
    params:
        results=RESULTS,
    shell:
        "python -m collstudy --results {params.results:q} calibrate {wildcards.machine:q} 2>&1 | tee {log:q}"
