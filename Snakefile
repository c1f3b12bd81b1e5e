# The reproducible study of MPI collective communication. `./study help` tells the commands, config/README.md the keys.
from snakemake.utils import min_version

min_version("9.14")


include: "workflow/rules/common.smk"
include: "workflow/rules/measure.smk"
include: "workflow/rules/sample.smk"
include: "workflow/rules/calibrate.smk"
include: "workflow/rules/analyse.smk"
include: "workflow/rules/tune.smk"
include: "workflow/rules/report.smk"


# On a cluster only blocks are jobs; what computes for seconds runs where snakemake runs.
localrules:
    all,
    describe_study,
    note_sources,
    collect_measurements,
    measure_here,
    ask_points,
    collect_round,
    calibrate,
    analyse_study,
    decide_tuning,
    replay_sampling,
    emit_tuning,
    keep_tuning,
    tell_tuning,
    render_report,
    give_verdict,


rule all:
    default_target: True
    input:
        RESULTS / "complete.txt",
