# The R part of the workflow: Rscript analyse.R STAGE results/<study> [ROUND]. Files are described in docs/files.md.
#   study   tables/, models/, figures/ and sentences.csv
#   decide  tuning/decisions.csv and tables/tuning-regret.csv
#   sample  tables/sampling.csv and a figure, by a replay on complete data
#   say     tuning/sentences.csv, tuning/index.csv and tables/tuning-verified.csv
#   account sampling/cells.csv, the cells that a program uses
#   select  the points that ROUND of a sampled study measures, sampling/round-<ROUND>/selected.csv
#   front   the front page of a report, front/: Rscript analyse.R front results STUDY,STUDY
suppressPackageStartupMessages(library(collanalysis))

stages <- list(
  study = function(folder) write_analysis(read_results(folder)),
  decide = function(folder) write_tuning(read_results(folder)),
  sample = function(folder) write_sampling(read_results(folder)),
  say = write_tuning_sentences,
  account = write_account,
  select = function(folder, round) write_selected(folder, as.integer(round)),
  front = function(results, studies) write_front(results, strsplit(studies, ",")[[1]])
)
arguments <- commandArgs(trailingOnly = TRUE)
if (!arguments[1] %in% names(stages) || length(arguments) != 1 + length(formals(stages[[arguments[1]]]))) {
  message(
    "usage: Rscript analyse.R {", paste(setdiff(names(stages), "front"), collapse = "|"),
    "} results/<study> [ROUND of select], or front results STUDY,STUDY"
  )
  quit(status = 2)
}
tryCatch(
  invisible(do.call(stages[[arguments[1]]], as.list(arguments[-1]))),
  # R would print "Execution halted".
  interrupt = function(condition) quit(status = 130)
)
