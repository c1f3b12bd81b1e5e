# The workflow, where `snakemake` finds it in a checkout. `./study help` tells the commands, config/README.md the keys.
include: "workflow/Snakefile"
