# Rscript tune.R {decide|sample} results/<study>: tuning/decisions.csv and tables/tuning-regret.csv, or sampling.csv.
suppressPackageStartupMessages(library(collanalysis))

stages <- list(decide = write_tuning, sample = write_sampling)
arguments <- commandArgs(trailingOnly = TRUE)
if (length(arguments) != 2 || !arguments[1] %in% names(stages)) {
  message("usage: Rscript tune.R {", paste(names(stages), collapse = "|"), "} results/<study>")
  quit(status = 2)
}
invisible(stages[[arguments[1]]](read_results(arguments[2])))
