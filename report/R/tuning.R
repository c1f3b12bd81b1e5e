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
  if (nrow(study$tuned) > 0) emit(paste0("- ", md(study$tuned$text), collapse = "\n"))
  show_regret(study)
  show_shared(study)
  show_sampling(study)
}

#' The section on tuning for chapters of other kinds, if the study has decisions.
show_tuned <- function(study) {
  decided <- file.exists(file.path(study$folder, "tables", "tuning-regret.csv"))
  if (decided || nrow(study$tuned) > 0) show_decided(study, "Tuning", "tuning")
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
  emit_table(paste0("tbl-", study$id, "-verification"), table, caption_of(study, paste(
    "Interleaved fresh launches of the default and of the rules file. Regret is relative to the fastest known algorithm of the",
    "cell; speed-up is the geometric mean over the cells whose rule is not the default. The table shows the state before slower",
    "rules were withdrawn.",
    if (study$simulated) "Simulations are deterministic, so only cells not used to decide add information." else ""
  )))
}

show_withdrawn <- function(study) {
  table <- read_table(file.path(study$folder, "tables", "tuning-withdrawn.csv"))
  if (is.null(table) || nrow(table) == 0) {
    paragraph("No rule was slower in fresh launches; none was withdrawn.")
    return(invisible(NULL))
  }
  screen_only(nrow(table) > paper_rows, emit_table(paste0("tbl-", study$id, "-withdrawn"), table, caption_of(
    study, "Rules that were slower than the default in fresh launches. They were withdrawn, and the files were written again."
  )))
  if (nrow(table) > paper_rows) {
    paper_only(paragraph(count_of(nrow(table), "rule"), " were slower than the default in fresh launches and withdrawn."))
  }
}

show_check <- function(study) {
  table <- read_table(file.path(study$folder, "tuning", "check.csv"))
  if (is.null(table) || nrow(table) == 0) {
    paragraph("The files are not checked, because no Open MPI was available.")
    return(invisible(NULL))
  }
  # A row comes from asking the library or, as all rows of earlier versions, from counting its messages.
  asked <- table$asked %or% FALSE
  said <- function(rows, how, what) {
    if (nrow(rows) == 0) return(NULL)
    paste0(
      md(rows$mpi[1]), " was ", how, " at ", nrow(rows), " sizes around the boundaries of the ",
      "rules; at ", sum(rows$agrees), " of them it ", what, " the algorithm that the file names. At ",
      sum(rows$tells_apart), " of the sizes, every other algorithm of the same entry would have given another result, so ",
      "agreement is conclusive there."
    )
  }
  paragraph(paste(c(
    said(table[asked, ], "asked", "selected"), said(table[!asked, ], "started with the files", "sent the messages of")
  ), collapse = " "))
}
