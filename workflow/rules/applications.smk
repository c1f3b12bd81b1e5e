# Applications to traces, traces to replays in the simulator. Both are kept by their content, as cells are (measure.smk).


rule trace_application:
    input:
        request=ancient(RESULTS / "applications" / "{job}.json"),
    output:
        marker=RESULTS / "applications" / "{job}.{attempt}.traced",
    log:
        "logs/applications/{job}.{attempt}.log",
    # Read by Slurm alone, from the machine's YAML.
    resources:
        nodes=get_trace_resource("nodes"),
        tasks=get_trace_resource("tasks"),
        tasks_per_node=get_trace_resource("tasks_per_node"),
        mpi=get_trace_resource("mpi"),
        runtime=get_trace_resource("runtime"),
        slurm_partition=get_trace_resource("slurm_partition"),
        slurm_account=get_trace_resource("slurm_account"),
        constraint=get_trace_resource("constraint"),
        qos=get_trace_resource("qos"),
        mem_mb=get_trace_resource("mem_mb"),
        slurm_extra=get_trace_resource("slurm_extra"),
    params:
        results=RESULTS,
    shell:
        "python -m collstudy --results {params.results:q} application {input.request:q} --log {log:q}"
        " && touch {output.marker:q}"


# The same on the computer where snakemake runs. All cores, because nothing else may disturb a measurement.
rule trace_here:
    input:
        request=ancient(RESULTS / "applications" / "{job}.json"),
    output:
        marker=RESULTS / "applications" / "{job}.{attempt}.traced_here",
    log:
        "logs/applications/{job}.{attempt}.log",
    threads: workflow.cores
    params:
        results=RESULTS,
    shell:
        "python -m collstudy --results {params.results:q} application {input.request:q} --log {log:q}"
        " && touch {output.marker:q}"


# A simulation: one core, and a few hundred MB for the simulated ranks.
rule replay_trace:
    input:
        request=ancient(RESULTS / "applications" / "{job}.json"),
        traced=get_trace,
    output:
        marker=RESULTS / "applications" / "{job}.{attempt}.replayed",
    log:
        "logs/applications/{job}.{attempt}.log",
    resources:
        runtime=30,
        tasks=1,
        mem_mb=4000,
    params:
        results=RESULTS,
    shell:
        "python -m collstudy --results {params.results:q} application {input.request:q} --log {log:q}"
        " && touch {output.marker:q}"
