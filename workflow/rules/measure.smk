# Blocks to cells, cells to measurements.


rule measure_block:
    input:
        block=ancient(RESULTS / "blocks" / "{block}.json"),
    output:
        marker=RESULTS / "blocks" / "{block}.{attempt}.done",
    log:
        "logs/measure/{block}.{attempt}.log",
    threads: get_block_threads
    shell:
        "{sys.executable:q} -m collstudy --results {RESULTS:q} measure {input.block:q} --log {log:q}"
        " && touch {output.marker:q}"


rule collect_measurements:
    input:
        study=RESULTS / "{study}" / "study.json",
        stored=get_stored,
        imported=get_imported,
    output:
        measurements=RESULTS / "{study}" / "measurements.csv",
        cells=RESULTS / "{study}" / "cells.csv",
    log:
        "logs/collect/{study}.log",
    shell:
        "{sys.executable:q} -m collstudy --results {RESULTS:q} collect {wildcards.study:q} > {log:q} 2>&1"
