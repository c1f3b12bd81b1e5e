# The workflow, where `snakemake` finds it in a checkout. `./study help` tells the commands, config/README.md the keys.
include: "workflow/Snakefile"


# An included file has no say in what is made when no target is named.
workflow.default_target = "all"
