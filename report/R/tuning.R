# The parts of the tuning chapter; its numbers are computed in the package collanalysis.

#' Table of the regret of the decisions; `study` may be any study with tables/tuning-regret.csv.
show_regret <- function(study) {
  table <- read_table(file.path(study$folder, "tables", "tuning-regret.csv"))
  if (is.null(table) || nrow(table) == 0) return(invisible(NULL))
  # Both halves together only serve the front page.
  table <- table[table$split != "both halves", c(
    "collective", "split", "mapping", "policy", "geometric_mean_pct", "mean_pct", "median_pct", "p90_pct", "p99_pct",
    "max_pct", "cells"
  )]
  caption <- caption_of(study, paste(
    "Regret of each policy against the best measured algorithm, on process counts not used to decide.",
    "Policies: the library's default, the tuned rules, and the best single algorithm (other than the default) of the",
    "deciding process counts."
  ))
  show <- function(rows, id) emit_table(paste0("tbl-", study$id, id), rows, caption)
  if (nrow(table) <= paper_rows) return(show(table, "-tuning-regret"))
  screen_only(TRUE, show(table, "-tuning-regret"))
  short <- table[table$mapping %in% "all", setdiff(names(table), "mapping")]
  if (nrow(short) <= paper_rows) paper_only(show(short, "-tuning-regret-paper"))
}

#' Table of the additional time if one file served all placements.
show_shared <- function(study) {
  table <- read_table(file.path(study$folder, "tables", "tuning-shared.csv"))
  if (NROW(table) == 0) return(invisible(NULL))
  emit_table(paste0("tbl-", study$id, "-tuning-shared"), table, caption_of(study, paste(
    "Additional time if one decision serves all placements (mapping and number of nodes) with the same number of processes,",
    "relative to the fastest algorithm of each placement: the cost of a tuning file that does not distinguish placements. Shapes:",
    "number of placements. The values are upper bounds, because the minimum over noisy latencies is biased low."
  )))
}

#' Section on the decisions and their regret; `key` is part of the label of the heading.
show_decided <- function(study, title, key) {
  emit("## ", title, " {#sec-", study$id, "-", key, "}")
  found <- said_in(study, "tuning")
  if (length(found)) emit(paste0("- ", found, collapse = "\n"))
  show_regret(study)
  show_shared(study)
  show_sampling(study)
}

#' The section on tuning for chapters of other kinds, if the study has decisions.
show_tuned <- function(study) {
  decided <- file.exists(file.path(study$folder, "tables", "tuning-regret.csv"))
  if (decided || length(said_in(study, "tuning"))) show_decided(study, "Tuning", "tuning")
}

#' A tuning study: decisions, the files for the library, and the gain in fresh launches.
show_tuning <- function(study) {
  parts <- parts_of(study)
  sampled <- vapply(parts, function(part) identical(part$key, "sampling"), TRUE)
  if (any(sampled)) show_parts(study, parts[sampled])
  show_decided(study, "Decisions and their test", "decided")
  emit("## Check by the library {#sec-", study$id, "-check}")
  paragraph(paste(said_in(study, "check"), collapse = " "))
  paragraph("The files and the exact commands are in ", code(file.path(study$name, "tuning", "README.md")), ".")
  emit("## Verification with fresh launches {#sec-", study$id, "-verified}")
  show_verification(study)
  show_withdrawn(study)
  show_parts(study, parts[!sampled])
}

show_sampling <- function(study) {
  show_drawing(study, "sampling", "Regret against the share of measurement time", paste(
    "Regret over the whole grid (geometric mean) of rules decided on a sample, against the share of the grid's measurement",
    "time that the sample takes. Line and band: mean and standard deviation over random samples. Dashed: the library's default.",
    "Dotted: 2.5 %."
  ))
}

#' Show a figure of the folder `tuning`, which has no index, if it exists.
show_drawing <- function(study, id, title, caption) {
  row <- data.frame(
    id = id, file = paste0("tuning/", id, ".svg"), title = title, caption = caption, width_in = 7,
    height_in = 4, interactive = NA
  )
  if (file.exists(file.path(study$folder, row$file))) show_figure(study, row)
}

show_verification <- function(study) {
  table <- read_table(file.path(study$folder, "tables", "tuning-verified.csv"))
  if (NROW(table) == 0) return(invisible(NULL))
  emit_table(label_of("tbl", study, "tuning-verified"), table, caption_of(study, paste(
    "Interleaved fresh launches of the default and of the rules file. Regret is relative to the fastest known algorithm of the",
    "cell; speed-up is the geometric mean over the cells whose rule is not the default. The table shows the state before slower",
    "rules were withdrawn.",
    if (study$simulated) "Simulations are deterministic, so only cells not used to decide add information." else ""
  )))
}

show_withdrawn <- function(study) {
  paragraph(said_in(study, "withdrawn"))
  table <- read_table(file.path(study$folder, "tables", "tuning-withdrawn.csv"))
  if (NROW(table) == 0) return(invisible(NULL))
  screen_only(nrow(table) > paper_rows, emit_table(label_of("tbl", study, "tuning-withdrawn"), table, caption_of(
    study, "Rules that were slower than the default in fresh launches. They were withdrawn, and the files were written again."
  )))
}

#' The results of the runs with the tuning file.
show_trial <- function(study) {
  emit("## The program with the tuning file {#sec-", study$id, "-trial}")
  paragraph(paste(said_in(study, "tuning"), collapse = " "))
  result <- readLines(file.path(study$folder, "tuning", "result.txt"), encoding = "UTF-8")
  if (length(result) > 1) {
    paragraph("In a job script:")
    emit("```\n", result[2], "\n```")
  }
  show_drawing(study, "pairs", "Time of the program with and without the tuning file", paste(
    "Runs without and with the tuning file. A line joins the two runs of a pair, which were launched one after the other",
    "in random order."
  ))
  judged <- read_table(file.path(study$folder, "tables", "tuning-judged.csv"))
  if (NROW(judged) > 0) emit_table(label_of("tbl", study, "tuning-judged"), judged, caption_of(study, paste(
    "Speed-up with the tuning file: median over the pairs of runs, with the interval from order statistics. Collectives:",
    "time in collective calls, mean over ranks, in runs with the trace library."
  )))
  ran <- read_table(file.path(study$folder, "tables", "tuning-ran.csv"))
  if (NROW(ran) > 0) emit_table(label_of("tbl", study, "tuning-ran"), ran[setdiff(names(ran), "known_by")], caption_of(study, paste(
    "Algorithms that ran in the program without (default) and with the tuning file (tuned), by communicator and",
    "collective, as printed by ./study what-ran."
  )))
}
