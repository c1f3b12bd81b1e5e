# The front page of a report: a summary of all its studies. It reads the tables that the analyses of the studies wrote,
# so its numbers are those of the chapters.

#' Write the front page of a report: `front/text.csv`, `front/table.csv` and `front/studies.csv`
#'
#' @param results The results folder, named as readers see it: commands on the page contain it.
#' @param studies Names of the report's studies. Those without results are left out; without any, nothing is written.
#' @return The paths.
#' @examples
#' results <- tempfile()
#' example <- system.file("extdata", "example", package = "collanalysis")
#' dir.create(results)
#' file.copy(example, results, recursive = TRUE)
#' write_analysis(read_results(example), file.path(results, "example"))
#' write_front(results, "example")
#' @export
write_front <- function(results, studies) {
  has <- function(file) file.exists(file.path(results, studies, file))
  folders <- file.path(results, studies)[has("study.json") & has("measurements.csv")]
  if (length(folders) == 0) return(character())
  front <- describe_front(folders, results)
  text <- bind_rows(
    said("question", front$question, claim = FALSE), said("answer", front$answer),
    said("caption", front$caption, claim = FALSE),
    said("advice", front$advice[c("sentence", "others", "verified")]),
    map_dfr(front$steps, function(step) {
      bind_rows(said("step", step$text, claim = FALSE), said("command", step$command, claim = FALSE))
    }),
    said("trust", front$trust)
  )
  tables <- list(text = in_order(text), table = front$table, studies = front$studies)
  map_chr(names(tables), function(name) write_table(tables[[name]], file.path(results, "front", paste0(name, ".csv"))))
}

#' Content of a report's front page
#'
#' @param folders Folders `results/<study>` of the studies with results.
#' @param label The results folder as shown to readers.
#' @return List: `question` (one sentence), `answer` (sentences: measured machines first, then simulated ones), `table`
#'   (tibble, at most 12 rows: machine, study, collective, cells, slower_pct, geometric_mean_pct, best_other,
#'   best_other_geometric_mean_pct; rows with few cells last), `caption` (of the table), `advice` (list, see
#'   [advise_front()]), `steps` (how to follow the advice: list of `text` and `command`, either may be missing),
#'   `trust` (sentences), `studies` (tibble from [front_studies()]).
#' @noRd
describe_front <- function(folders, label = "results") {
  studies <- map(folders, read_front_study)
  rows <- bind_rows(no_front_rows(), map_dfr(studies, front_rows))
  # Measurements that two studies share, such as a publication's own analysis of them, count once.
  every <- rows
  rows <- rows |>
    arrange(desc(.data$cells)) |>
    distinct(.data$machine, .data$simulated, .data$collective, .keep_all = TRUE) |>
    arrange(.data$simulated, .data$cells < few_cells, desc(.data$geometric_mean_pct))
  shown <- head(rows, front_rows_shown)
  advice <- advise_front(studies, rows)
  list(
    question = front_question(studies), answer = front_answer(rows, studies), table = front_table(shown),
    caption = front_caption(rows[-seq_len(nrow(shown)), ], setdiff(every$study, rows$study)), advice = advice,
    steps = front_steps(studies, rows, advice, label), trust = front_trust(studies, rows),
    studies = front_studies(studies)
  )
}

#' Read what the front page needs from a study
#' @noRd
read_front_study <- function(folder) {
  about <- read_labelled(folder)
  read <- function(file) {
    path <- file.path(folder, file)
    if (!file.exists(path) || file.size(path) == 0) return(NULL)
    table <- readr::read_csv(path, show_col_types = FALSE, progress = FALSE)
    if (nrow(table) > 0) table
  }
  answers <- read("sentences.csv")
  tables <- c(
    by_collective = "answer-collectives", by_mapping = "answer-mappings", regret = "tuning-regret",
    verified = "tuning-verification", withdrawn = "tuning-withdrawn",
    agreement = "agreement", accuracy = "accuracy", one_rule = "atlas-one-rule"
  )
  c(
    list(
      name = about$name, folder = folder, about = about, simulated = isTRUE(about$simulated), cells = read("cells.csv"),
      decisions = read("tuning/decisions.csv"), tried = !is.null(read("tuning/sentences.csv")),
      answers = answers$text[answers$section %in% "answer"]
    ),
    map(tables, function(table) read(file.path("tables", paste0(table, ".csv"))))
  )
}

#' With fewer cells, a mean says little about a machine
#' @noRd
few_cells <- 30

#' Rows of the table on the front page
#' @noRd
front_rows_shown <- 12

front_machine <- function(study) study$about$machine$label %||% study$about$machine$name %||% "an unnamed machine"

no_front_rows <- function() {
  tibble(
    machine = character(), study = character(), simulated = logical(), numbers = character(), collective = character(),
    cells = integer(), slower_pct = numeric(), geometric_mean_pct = numeric(), p90_pct = numeric(),
    median_pct = numeric(), best_other = character(), best_other_geometric_mean_pct = numeric(),
    slowest_cells = integer(), mean_there_pct = numeric(), slowest_pct = numeric()
  )
}

#' One row for each collective of a study that can distinguish algorithms
#' @noRd
front_rows <- function(study) {
  found <- study$by_collective
  if (is.null(found) || has_two_ranks(study)) return(NULL)
  transmute(found,
    machine = front_machine(.env$study), study = .env$study$name, simulated = .env$study$simulated,
    numbers = front_numbers(.env$study), .data$collective, .data$cells, .data$slower_pct, .data$geometric_mean_pct,
    .data$p90_pct, .data$median_pct, best_other = as.character(.data$best_other), .data$best_other_geometric_mean_pct,
    .data$slowest_cells, .data$mean_there_pct, .data$slowest_pct
  )
}

front_numbers <- function(study) {
  if (study$simulated) return("simulated")
  if (identical(study$about$machine$kind, "imported")) "measured, imported" else "measured here"
}

#' "measured here; 1,234 grid cells": what the list of studies says of each
#' @noRd
front_facts <- function(study) {
  cells <- study$cells
  replayed <- length(study$about$replay) > 0
  measured <- sum(cells$status == "measured")
  traces <- sum(cells$algorithm %in% "traced")
  facts <- c(
    if (replayed) "measured here and simulated" else front_numbers(study),
    if (replayed && !is.null(cells)) {
      paste(count_of(traces, "trace"), "and", count_of(nrow(cells) - traces, "replay"))
    } else if (!is.null(cells)) {
      counted <- count_of(nrow(cells), if (traces == nrow(cells)) "trace" else "grid cell")
      paste0(if (measured < nrow(cells)) paste(format_count(measured), "of "), counted)
    }
  )
  paste(facts, collapse = "; ")
}

#' @param left_out Rows that the table has no place for.
#' @param hidden Studies of which another one has all pairs of machine and collective.
#' @noRd
front_caption <- function(left_out, hidden) {
  others <- front_left_out(left_out)
  paste0(
    "Slow-down (geometric mean) against the fastest algorithm of each cell. Best other algorithm: ",
    of_widely("measured"), " (without the default), the one with the smallest slow-down. Collectives with fewer than ",
    few_cells, " cells come last. ",
    "Cells of two processes are excluded: between two ranks most algorithms send the same messages.",
    if (length(others) > 0) paste0(" Beyond ", front_rows_shown, " rows, not shown: ", and_list(others), "."),
    if (length(hidden) > 0) paste0(
      " Of several studies of a collective on one machine, the one with most cells is shown; for ", and_list(hidden),
      ", see the chapter."
    )
  )
}

front_table <- function(rows) {
  rows |>
    # Whole percents, because two authors of one machine differ by more than that.
    mutate(across(c("slower_pct", "geometric_mean_pct", "best_other_geometric_mean_pct"), round)) |>
    mutate(
      machine = machine_name(.data$machine, .data$simulated), collective = collective_word(.data$collective)
    ) |>
    select(
      "machine", "study", "collective", "cells", "slower_pct", "geometric_mean_pct", "best_other",
      "best_other_geometric_mean_pct"
    )
}

#' "reduce on ORFEO EPYC", for each row
#' @noRd
name_cells <- function(rows) {
  if (nrow(rows) == 0) return(character())
  paste(collective_word(rows$collective), "on", within_text(machine_name(rows$machine, rows$simulated)))
}

#' "barrier on ORFEO THIN, allgather and allreduce on Leonardo Booster": the same by machine
#' @noRd
name_by_machine <- function(rows) {
  machines <- machine_name(rows$machine, rows$simulated)
  and_list(map_chr(unique(machines), function(machine) {
    paste(and_list(collective_word(rows$collective[machines == machine])), "on", within_text(machine))
  }))
}

#' The rows that the table does not show: names of measured ones, number of simulated ones
#' @noRd
front_left_out <- function(rows) {
  simulated <- sum(rows$simulated)
  measured <- rows[!rows$simulated, ]
  c(
    if (nrow(measured) > 0) name_by_machine(measured),
    if (simulated > 0) count_of(simulated, "simulated collective")
  )
}

#' The question of the report: that of its only study, or a common one for several studies
#' @noRd
front_question <- function(studies) {
  if (length(studies) == 1 && !is.null(studies[[1]]$about$question)) return(studies[[1]]$about$question)
  if (any(map_lgl(studies, function(study) !is.null(study$by_collective)))) {
    return(paste(
      "Does an MPI library select the fastest algorithm for each collective operation by default, how much time is",
      "lost where it does not, and what can a user do about it?"
    ))
  }
  studies[[1]]$about$question %||% ""
}

#' Whether a study that compares algorithms has at most two ranks, between which most of them send the same messages
#' @noRd
has_two_ranks <- function(study) {
  collectives <- study$about$collectives
  collectives <- collectives[setdiff(names(collectives), c(point_to_point, applications))]
  counts <- as.numeric(unlist(map(collectives, "processes")))
  length(counts) > 0 && max(counts) <= 2 && is.null(study$about$chapter)
}

#' Sentence on a study that has at most two ranks and does not decide between algorithms
#'
#' @param study List from [read_front_study()].
#' @return A sentence, or NULL for other studies.
#' @noRd
describe_two_ranks <- function(study) {
  if (!has_two_ranks(study) || !is.null(study$decisions) || !any(study$cells$status == "measured")) return(NULL)
  paste0(
    study$about$title %||% study$name, ": with two ranks, most algorithms send the same messages, so this study does ",
    "not compare them."
  )
}

#' The result of a study in one sentence: the default's slow-down by collective, or the first sentence of its answer
#' @noRd
front_finding <- function(study) {
  found <- study$by_collective
  if (is.null(found)) return(head(study$answers, 1))
  paste0(
    "the default takes longer than the fastest algorithm by ",
    and_list(paste0(format_pct(found$geometric_mean_pct), " for ", collective_word(found$collective))),
    " (geometric means)."
  )
}

#' The studies, most informative first: all machines together, then measured before simulated studies, each by its
#' number of compared cells; last those that cannot distinguish algorithms
#'
#' @param studies List from [read_front_study()].
#' @return Tibble: study, facts (kind of its numbers and count of its grid cells), finding (one sentence, or NA), silent
#'   (TRUE: it does not compare algorithms, and the finding says why).
#' @noRd
front_studies <- function(studies) {
  map_dfr(in_chapter_order(studies), function(one) {
    silent <- describe_two_ranks(one)
    finding <- c(silent, front_finding(one), NA_character_)[1]
    tibble(study = one$name, facts = front_facts(one), finding = finding, silent = !is.null(silent))
  })
}

in_chapter_order <- function(studies) {
  compared <- map_dbl(studies, function(study) sum(study$by_collective$cells))
  together <- map_lgl(studies, function(study) identical(study$about$chapter, "atlas"))
  two_ranks <- map_lgl(studies, has_two_ranks)
  simulated <- map_lgl(studies, "simulated")
  studies[order(two_ranks, !together, simulated, compared == 0, -compared)]
}
