# The parts of the tuning chapter; its numbers are computed in the package collanalysis.

#' Show a table of the study's tuning (tuning/index.csv), if it has one, a long one only on the HTML pages; returns TRUE
#' then. `choose` returns the rows and columns to show.
show_tuned_table <- function(study, id, choose = identity, label = id) {
  row <- study$tuning[study$tuning$id %in% id, ]
  table <- if (nrow(row) > 0) read_table(file.path(study$folder, row$file))
  if (NROW(table) == 0) return(invisible(FALSE))
  table <- choose(table)
  long <- nrow(table) > paper_rows
  if (nrow(table) > 0) screen_only(long, emit_table(label_of("tbl", study, label), table, caption_of(study, row$caption)))
  invisible(long)
}

show_tuned_figure <- function(study, id) {
  row <- study$tuning[study$tuning$id %in% id, ]
  if (nrow(row) > 0) show_figure(study, row)
}

#' Table of the regret of the decisions; a long one is replaced in print by its rows over all mappings.
show_regret <- function(study) {
  # Both halves together only serve the front page.
  tested <- function(table) table[table$split != "both halves", c(
    "collective", "split", "mapping", "policy", "geometric_mean_pct", "mean_pct", "median_pct", "p90_pct", "p99_pct",
    "max_pct", "cells"
  )]
  overall <- function(table) subset(tested(table), mapping %in% "all", -mapping)
  long <- show_tuned_table(study, "tuning-regret", tested)
  if (long) paper_only(show_tuned_table(study, "tuning-regret", overall, "tuning-regret-paper"))
}

#' Table of what the tuned rules save: the numbers that the front page quotes.
show_saved <- function(study) {
  table <- read_table(file.path(study$folder, "tables", "tuning-regret.csv"))
  if (!"gain_low_pct" %in% names(table)) return(invisible(NULL))
  table <- table[table$policy == "tuned" & table$split == "both halves" & !is.na(table$gain_low_pct), ]
  if (nrow(table) == 0) return(invisible(NULL))
  saved <- lapply(table[c("gain_pct", "gain_low_pct", "gain_high_pct")], collanalysis::share_saved)
  names(saved) <- c("saved_pct", "saved_low_pct", "saved_high_pct")
  rows <- cbind(table[c("collective", "mapping", "cells")], as.data.frame(saved))
  screen_only(nrow(rows) > paper_rows, emit_table(label_of("tbl", study, "tuning-saved"), rows, caption_of(study, paste(
    "Share of the default's time that the tuned rules save on process counts that did not decide them (each half of the",
    "counts with the rules of the other half): geometric mean, with its 95 % interval (low, high). Each interval is by itself;",
    "the front page corrects significance for the number of tests."
  ))))
}

#' Section on the decisions and their regret; `key` is part of the label of the heading.
show_decided <- function(study, title, key) {
  emit("## ", title, " {#sec-", study$id, "_", key, "}")
  found <- said_in(study, "tuning")
  if (length(found)) emit(paste0("- ", found, collapse = "\n"))
  show_regret(study)
  show_saved(study)
  show_tuned_table(study, "tuning-shared")
  show_tuned_figure(study, "sampling")
}

#' The section on tuning for chapters of other kinds, if the study has decisions.
show_tuned <- function(study) {
  judged <- NROW(read_table(file.path(study$folder, "tables", "tuning-regret.csv"))) > 0
  if (judged || length(said_in(study, "tuning"))) show_decided(study, "Tuning", "tuning")
}

#' A tuning study: decisions, the files for the library, and the gain in fresh launches.
show_tuning <- function(study) {
  parts <- parts_of(study)
  sampled <- vapply(parts, function(part) identical(part$key, "sampling"), TRUE)
  if (any(sampled)) show_parts(study, parts[sampled])
  show_decided(study, "Decisions and their test", "decided")
  emit("## Check by the library {#sec-", study$id, "_check}")
  paragraph(paste(said_in(study, "check"), collapse = " "))
  paragraph("The files and the exact commands are in ", code(file.path(study$name, "tuning", "README.md")), ".")
  emit("## Verification with fresh launches {#sec-", study$id, "_verified}")
  show_tuned_table(study, "tuning-verified")
  paragraph(said_in(study, "withdrawn"))
  show_tuned_table(study, "tuning-withdrawn")
  show_tuned_table(study, "tuning-failed")
  show_parts(study, parts[!sampled])
}

#' The results of the runs with the tuning file.
show_trial <- function(study) {
  emit("## The program with the tuning file {#sec-", study$id, "_trial}")
  paragraph(paste(said_in(study, "tuning"), collapse = " "))
  result <- readLines(file.path(study$folder, "tuning", "result.txt"), encoding = "UTF-8")
  if (length(result) > 1) {
    paragraph("In a job script:")
    emit("```\n", result[2], "\n```")
  }
  show_tuned_figure(study, "pairs")
  show_tuned_table(study, "tuning-judged")
  show_tuned_table(study, "tuning-ran", function(table) table[setdiff(names(table), "known_by")])
}
