# Rscript tune.R decide results/<study>: tuning/decisions.csv and tables/tuning-regret.csv
# Rscript tune.R sample results/<study>: tables/sampling.csv and a figure, by a replay on complete data
# Rscript tune.R say results/<study>: tuning/sentences.csv and tables/tuning-verified.csv
# Rscript tune.R account results/<study>: sampling/cells.csv, the cells that a program uses
# Rscript tune.R select results/<study> ROUND: the points that a round of a sampled study measures,
#   sampling/round-<ROUND>/selected.csv
suppressPackageStartupMessages(library(collanalysis))

stages <- list(
  decide = function(folder) write_tuning(read_results(folder)),
  sample = function(folder) write_sampling(read_results(folder)),
  say = write_tuning_sentences,
  account = write_account,
  select = function(folder, round) write_selected(folder, as.integer(round))
)
arguments <- commandArgs(trailingOnly = TRUE)
if (!arguments[1] %in% names(stages) || length(arguments) != 1 + length(formals(stages[[arguments[1]]]))) {
  message("usage: Rscript tune.R {decide|sample|say|account} results/<study>, or select results/<study> ROUND")
  quit(status = 2)
}
invisible(do.call(stages[[arguments[1]]], as.list(arguments[-1])))
