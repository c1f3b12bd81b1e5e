# The workflow at the place where `snakemake` finds it in a checkout. `./study help` lists the commands, config/README.md the keys.
include: "workflow/Snakefile"


# An included file does not define the default target.
workflow.default_target = "all"
