# The analysis of one study: Rscript analyse.R {tables|models|figures|all} results/<study>
# Reads study.json, cells.csv and measurements.csv there; writes tables/, models/ and figures/.
suppressPackageStartupMessages(library(collanalysis))

stages <- list(tables = write_tables, models = write_models, figures = write_figures)
arguments <- commandArgs(trailingOnly = TRUE)
if (length(arguments) != 2 || !arguments[1] %in% c(names(stages), "all")) {
  message("usage: Rscript analyse.R {", paste(c(names(stages), "all"), collapse = "|"), "} results/<study>")
  quit(status = 2)
}
results <- read_results(arguments[2])
for (stage in if (arguments[1] == "all") names(stages) else arguments[1]) invisible(stages[[stage]](results))
