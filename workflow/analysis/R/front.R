# The front page of a report: what all of its studies say together. It reads tables that the studies' analyses wrote,
# so that a number on it is the number of a chapter.

#' What the front page of a report says
#'
#' @param folders Folders `results/<study>` of the studies with results.
#' @return List: `question` (one sentence), `answer` (sentences: measured machines first, then what was simulated),
#'   `table` (tibble, at most 12 rows: machine, study, numbers, collective, cells, slower_pct, geometric_mean_pct,
#'   p90_pct, best_other, best_other_geometric_mean_pct), `left_out` (its rows that are not shown), `advice` (list: see
#'   [advise_front()]), `judged` (number of machines and collectives whose rules were judged), `trust`
#'   (sentences), `silent` (list by study: the sentence about one that can tell
#'   no algorithms apart),
#'   `order` (names of the studies, most informative first).
#' @examples
#' folder <- tempfile()
#' write_analysis(read_results(system.file("extdata", "example", package = "collanalysis")), folder)
#' file.copy(system.file("extdata", "example", "study.json", package = "collanalysis"), folder)
#' describe_front(folder)$answer
#' @export
describe_front <- function(folders) {
  studies <- map(folders, read_front_study)
  rows <- bind_rows(no_front_rows(), map_dfr(studies, front_rows))
  # The same measurements under two names, such as a publication's own view of them, count once.
  rows <- rows |>
    arrange(desc(.data$cells)) |>
    distinct(.data$machine, .data$simulated, .data$collective, .keep_all = TRUE) |>
    arrange(.data$simulated, desc(.data$geometric_mean_pct))
  shown <- head(rows, 12)
  list(
    question = front_question(studies), answer = front_answer(rows, studies), table = front_table(shown),
    left_out = nrow(rows) - nrow(shown), advice = advise_front(studies, rows),
    judged = nrow(front_gains(studies, rows)), trust = front_trust(studies, rows),
    silent = purrr::compact(setNames(map(studies, describe_two_ranks), map_chr(studies, "name"))),
    order = front_order(studies, rows)
  )
}

#' What the front page needs of a study
#' @noRd
read_front_study <- function(folder) {
  about <- jsonlite::read_json(file.path(folder, "study.json"))
  read <- function(file) {
    path <- file.path(folder, file)
    if (!file.exists(path) || file.size(path) == 0) return(NULL)
    table <- readr::read_csv(path, show_col_types = FALSE, progress = FALSE)
    if (nrow(table) > 0) table
  }
  answers <- read("sentences.csv")
  tables <- c(
    by_collective = "answer-collectives", regret = "tuning-regret", verified = "tuning-verification",
    agreement = "agreement", accuracy = "accuracy", one_rule = "atlas-one-rule"
  )
  c(
    list(
      name = about$name, folder = folder, about = about, simulated = isTRUE(about$simulated), cells = read("cells.csv"),
      decisions = read("tuning/decisions.csv"), answers = answers$text[answers$section %in% "answer"]
    ),
    map(tables, function(table) read(file.path("tables", paste0(table, ".csv"))))
  )
}

front_machine <- function(study) study$about$machine$label %||% study$about$machine$name %||% "an unnamed machine"

no_front_rows <- function() {
  tibble(
    machine = character(), study = character(), simulated = logical(), numbers = character(), collective = character(),
    cells = integer(), slower_pct = numeric(), geometric_mean_pct = numeric(), p90_pct = numeric(),
    best_other = character(), best_other_geometric_mean_pct = numeric()
  )
}

#' One row for each collective of a study in which algorithms can be told apart
#' @noRd
front_rows <- function(study) {
  found <- study$by_collective
  if (is.null(found) || !is.null(describe_two_ranks(study))) return(NULL)
  transmute(found,
    machine = front_machine(.env$study), study = .env$study$name, simulated = .env$study$simulated,
    numbers = front_numbers(.env$study), .data$collective, .data$cells, .data$slower_pct, .data$geometric_mean_pct,
    .data$p90_pct, best_other = as.character(.data$best_other), .data$best_other_geometric_mean_pct
  )
}

front_numbers <- function(study) {
  if (study$simulated) return("simulated")
  if (identical(study$about$machine$kind, "imported")) "measured, imported" else "measured here"
}

front_table <- function(rows) {
  rows |>
    # Whole percents: two authors of one machine differ by more than that.
    mutate(across(c("slower_pct", "geometric_mean_pct", "p90_pct", "best_other_geometric_mean_pct"), round)) |>
    mutate(collective = collective_word(.data$collective)) |>
    select(
      "machine", "study", "numbers", "collective", "cells", "slower_pct", "geometric_mean_pct", "p90_pct",
      "best_other", "best_other_geometric_mean_pct"
    )
}

#' One study asks its own question; several ask one together
#' @noRd
front_question <- function(studies) {
  if (length(studies) == 1 && !is.null(studies[[1]]$about$question)) return(studies[[1]]$about$question)
  if (any(map_lgl(studies, function(study) !is.null(study$by_collective)))) {
    return(paste(
      "Where does an MPI library's default choose a slower algorithm for a collective operation than it could, how",
      "much does that cost, and what helps?"
    ))
  }
  studies[[1]]$about$question %||% ""
}

#' Pool groups of cells: the share that is slower, and the geometric mean of the slow-down
#' @noRd
pool_front <- function(rows) {
  tibble(
    cells = sum(rows$cells), slower_pct = stats::weighted.mean(rows$slower_pct, rows$cells),
    geometric_mean_pct = pooled_regret(rows$geometric_mean_pct, rows$cells)
  )
}

front_answer <- function(rows, studies) {
  measured <- rows[!rows$simulated, ]
  simulated <- rows[rows$simulated, ]
  told <- c(
    if (nrow(measured) > 0) c(front_overall(measured), front_extremes(measured)),
    front_rules(studies, measured), front_transfer(studies),
    if (nrow(simulated) > 0) paste("Simulated, not measured:", lower_first(front_overall(simulated)))
  )
  # Studies of another question (an application, a ladder) have answers of their own.
  if (length(told) == 0) told <- head(unlist(map(studies, "answers")), 5)
  if (length(told) == 0) "No study of this report compares the library's default with another algorithm." else told
}

front_overall <- function(rows) {
  pooled <- pool_front(rows)
  machines <- unique(rows$machine)
  paste0(
    if (length(machines) > 1) paste0("On ", length(machines), " machines (", and_list(machines), ")") else
      paste("On", machines),
    " the default is more than 5 % slower than the fastest measured algorithm in ", format_pct(pooled$slower_pct),
    " of ", format_number(pooled$cells, 6), " cells (collective, mapping, processes, message size); over all cells it ",
    "is ", format_pct(pooled$geometric_mean_pct), " slower (geometric mean)."
  )
}

front_extremes <- function(rows) {
  if (nrow(rows) < 2) return(NULL)
  say <- function(row) paste(collective_word(row$collective), "on", row$machine)
  # A handful of cells is no extreme of a machine, where others have many.
  many <- rows$cells >= 30
  if (sum(many) > 1) rows <- rows[many, ]
  worst <- rows[which.max(rows$geometric_mean_pct), ]
  best <- rows[which.min(rows$geometric_mean_pct), ]
  paste0(
    "It is furthest from the fastest", if (sum(many) > 1) " (of the combinations with at least 30 cells)", " for ",
    say(worst), ": ", format_pct(worst$geometric_mean_pct),
    " slower, and more than ", format_pct(worst$p90_pct), " in one cell of ten; it is closest for ", say(best), ": ",
    format_pct(best$geometric_mean_pct), "."
  )
}

#' What rules are worth that were decided on other process counts
#' @noRd
front_rules <- function(studies, rows) {
  gains <- front_gains(studies, rows)
  if (nrow(gains) == 0) return(NULL)
  clear <- gains[gains$gain_low_pct > 0, ]
  if (nrow(clear) == 0) {
    return("Rules that were decided on half of the process counts gain nothing that is clear on the other half.")
  }
  best <- clear[which.max(clear$gain_low_pct), ]
  paste0(
    "Rules that were decided on half of the process counts and judged on the other half are clearly faster than the ",
    "default in ", nrow(clear), " of ", nrow(gains), " combinations of machine and collective, most of all for ",
    collective_word(best$collective), " on ", best$machine, ", where the default takes ", format_gain(best),
    " longer."
  )
}

#' "12 % (95 % interval 8.1 to 16 %)"
#' @noRd
format_gain <- function(row) {
  paste0(
    format_pct(row$gain_pct), " (95 % interval ", sub(" %", "", format_pct(row$gain_low_pct)), " to ",
    format_pct(row$gain_high_pct), ")"
  )
}

#' The gain of tuned rules by machine and collective, both halves of the process counts together
#'
#' @param studies List from [read_front_study()].
#' @param rows The rows of the front page: only their studies count.
#' @return Tibble: study, machine, simulated, collective, cells, groups, gain_pct, gain_low_pct, gain_high_pct.
#' @noRd
front_gains <- function(studies, rows) {
  none <- tibble(
    study = character(), machine = character(), simulated = logical(), collective = character(), cells = integer(),
    groups = integer(), gain_pct = numeric(), gain_low_pct = numeric(), gain_high_pct = numeric()
  )
  bind_rows(none, map_dfr(studies, function(study) {
    regret <- study$regret
    if (is.null(regret) || !"gain_pct" %in% names(regret)) return(NULL)
    regret |>
      filter(.data$policy == "tuned", .data$mapping == "all", !is.na(.data$gain_low_pct)) |>
      group_by(.data$collective) |>
      group_modify(function(halves, key) pool_gains(halves)) |>
      ungroup() |>
      mutate(
        machine = front_machine(.env$study), simulated = .env$study$simulated, study = .env$study$name
      )
  })) |>
    semi_join(rows, by = c("study", "collective"))
}

#' Estimates from disjoint process counts in one; their standard errors follow from the intervals
#' @noRd
pool_gains <- function(halves) {
  log_gain <- log1p(halves$gain_pct / 100)
  error <- (log1p(halves$gain_high_pct / 100) - log_gain) / stats::qt(0.975, halves$groups - 1)
  weight <- halves$groups / sum(halves$groups)
  mean <- sum(weight * log_gain)
  half <- stats::qt(0.975, sum(halves$groups - 1)) * sqrt(sum((weight * error)^2))
  tibble(
    cells = sum(halves$cells), groups = sum(halves$groups), gain_pct = 100 * expm1(mean),
    gain_low_pct = 100 * expm1(mean - half), gain_high_pct = 100 * expm1(mean + half)
  )
}

#' Whether what one machine teaches helps on another (of the study that has all of them)
#' @noRd
front_transfer <- function(studies) {
  found <- bind_rows(map(studies, "one_rule"))
  if (nrow(found) == 0) return(NULL)
  names <- map_chr(studies, function(study) study$about$machine$name %||% "")
  labels <- setNames(map_chr(studies, front_machine), names)
  wide <- found |>
    filter(.data$policy %in% c("default", "rule of the other machines")) |>
    select("machine", "policy", "geometric_mean_pct") |>
    pivot_wider(names_from = "policy", values_from = "geometric_mean_pct")
  rule <- wide[["rule of the other machines"]]
  better <- sum(rule < wide$default - 0.5)
  worse <- sum(rule > wide$default + 0.5)
  paste0(
    "A rule learned on the other machines is closer to the fastest than the default on ", better, " of ", nrow(wide),
    " machines", if (worse > 0) paste0(" and further from it on ", worse), " (",
    paste0(
      coalesce(labels[wide$machine], wide$machine), ": ", format_pct(rule), " slower than the fastest, the default ",
      format_pct(wide$default),
      collapse = "; "
    ), ")."
  )
}

#' What to do: the rules with the clearest gain, their file where one was written, and the command
#'
#' @inheritParams front_gains
#' @return List with `study`, `sentence` and `others` (where the gain is clear), `files` (names of tuning files; none
#'   where none was written) with `command` (how to use the first), `ask` (the command that answers for a single call),
#'   `verified` (what fresh launches gave); NULL where no rules have a clear gain.
#' @noRd
advise_front <- function(studies, rows) {
  gains <- filter(front_gains(studies, rows), .data$gain_low_pct > 0) |>
    arrange(.data$simulated, desc(.data$gain_low_pct))
  if (nrow(gains) == 0) return(NULL)
  best <- gains[1, ]
  study <- studies[[match(best$study, map_chr(studies, "name"))]]
  files <- list.files(file.path(study$folder, "tuning"), "[.](rules|json|sh)$")
  list(
    study = best$study,
    sentence = paste0(
      "On ", best$machine, if (best$simulated) " (simulated)", ", use rules by process count and message size for ",
      collective_word(best$collective), ": the default takes ", format_gain(best), " longer than they do, over ",
      format_number(best$cells, 6), " cells of process counts that did not decide them."
    ),
    others = if (nrow(gains) > 1) paste0(
      "The gain is clear as well for ",
      and_list(paste0(
        collective_word(gains$collective), " on ", gains$machine, ifelse(gains$simulated, " (simulated)", ""), " (",
        map_chr(seq_len(nrow(gains)), function(i) format_gain(gains[i, ])), ")"
      )[-1][seq_len(min(4, nrow(gains) - 1))]), "."
    ),
    files = files, command = tuning_command(study, files), ask = advise_command(study, best$collective),
    verified = front_verified(studies)
  )
}

#' How Open MPI is told of a rules file; NULL without one
#' @noRd
tuning_command <- function(study, files) {
  file <- grep("^openmpi-[^0-9].*[.]rules$", grep("^openmpi-han-", files, value = TRUE, invert = TRUE), value = TRUE)
  if (length(file) == 0) return(NULL)
  paste0(
    "mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename ",
    file.path("results", study$name, "tuning", file[1]), " ./program"
  )
}

#' What rules files gained on fresh launches, of the study with most verified cells
#' @noRd
front_verified <- function(studies) {
  found <- map_dfr(studies, function(study) {
    rows <- study$verified
    rows <- rows[rows$rule != "default" & !is.na(rows$speedup), ]
    if (NROW(rows) == 0) return(NULL)
    groups <- rows |>
      group_by(.data$mapping, .data$processes) |>
      summarise(gain = mean(log(.data$speedup)), .groups = "drop")
    n <- nrow(groups)
    half <- if (n > 1) stats::qt(0.975, n - 1) * stats::sd(groups$gain) / sqrt(n) else NA_real_
    tibble(
      machine = front_machine(study), simulated = study$simulated, cells = nrow(rows),
      gain_pct = 100 * expm1(mean(groups$gain)), gain_low_pct = 100 * expm1(mean(groups$gain) - half),
      gain_high_pct = 100 * expm1(mean(groups$gain) + half)
    )
  })
  if (nrow(found) == 0) return(NULL)
  paste0(
    "On fresh launches", ifelse(found$simulated, " (simulated)", ""), " on ", found$machine, ", the default takes ",
    map_chr(seq_len(nrow(found)), function(i) {
      if (is.na(found$gain_low_pct[i])) format_pct(found$gain_pct[i]) else format_gain(found[i, ])
    }), " longer than the rules file, over the ", format_number(found$cells, 6), " verified cells that it changes."
  )
}

#' The command that says which algorithm to use, for the decision with the largest gain at the most processes
#' @noRd
advise_command <- function(study, collective) {
  found <- study$decisions
  if (is.null(found)) return(NULL)
  found <- filter(found,
    .data$collective == .env$collective, .data$algorithm != "default", .data$basis == "measured",
    .data$processes %% .data$nodes == 0
  ) |>
    arrange(desc(.data$processes), desc(.data$gain_pct))
  if (nrow(found) == 0) return(NULL)
  cell <- found[1, ]
  paste0(
    "./study advise --study ", study$name, " --collective ", collective, " --nodes ", cell$nodes, " --ppn ",
    cell$processes / cell$nodes, " --mapping ", cell$mapping,
    if (!is.na(cell$size_bytes)) paste0(" --size ", cell$size_bytes)
  )
}

#' How far to trust the page
#' @noRd
front_trust <- function(studies, rows) {
  agreement <- bind_rows(map(studies, function(study) {
    if (!is.null(study$agreement)) mutate(study$agreement, label = front_machine(study))
  }))
  accuracy <- map_dfr(studies, function(study) {
    found <- study$accuracy
    if (is.null(found)) return(NULL)
    filter(found, .data$algorithm == "all", .data$mapping == "all") |> mutate(label = front_machine(study))
  })
  by_machine <- function(table, value) {
    table <- table |> group_by(.data$label) |> summarise(value = median(.data[[value]]))
    and_list(paste0(format_pct(table$value), " on ", table$label))
  }
  lacking <- map_dbl(studies, function(study) sum(study$cells$status != "measured"))
  asked <- map_dbl(studies, function(study) NROW(study$cells))
  imported <- unique(rows$machine[rows$numbers == "measured, imported"])
  c(
    if (NROW(agreement) > 0) paste0(
      "Authors who measured the same cells of a machine differ by ", by_machine(agreement, "median_abs_difference_pct"),
      " in the median, so a difference of a few percent is no finding here."
    ),
    if (length(imported) > 0) paste0(
      "The numbers of ", and_list(imported), " are other authors' files, mostly with one launch for each cell: what ",
      "varies between launches is not in them."
    ),
    if (nrow(accuracy) > 0) paste0(
      "Simulated latencies are off by ", by_machine(accuracy, "median_abs_error_pct"), " in the median."
    ),
    if (sum(lacking) > 0) paste0(
      format_number(sum(lacking), 6), " of ", format_number(sum(asked), 6),
      " cells have no number that can be used; the appendix says why."
    ),
    paste(
      "The fastest algorithm is the fastest of those that were measured, in the library's version that is named in",
      "each chapter."
    )
  )
}

#' A study of two ranks at most has nothing to choose between
#'
#' @param study List from [read_front_study()].
#' @return A sentence, or NULL where some collective has more ranks, or the study is about something else.
#' @noRd
describe_two_ranks <- function(study) {
  collectives <- study$about$collectives
  collectives <- collectives[setdiff(names(collectives), c(point_to_point, applications))]
  counts <- as.numeric(unlist(map(collectives, "processes")))
  if (length(counts) == 0 || max(counts) > 2 || !is.null(study$about$chapter)) return(NULL)
  paste0(
    study$about$title %||% study$name, ": two ranks cannot tell algorithms apart (between two ranks all of them send ",
    "the same messages), so this study decides nothing."
  )
}

#' Studies in the order in which they tell most: all machines together, then measured before simulated ones, each by its
#' number of compared cells; last those that can tell nothing
#' @noRd
front_order <- function(studies, rows) {
  if (length(studies) == 0) return(character())
  compared <- map_dbl(studies, function(study) sum(study$by_collective$cells))
  together <- map_lgl(studies, function(study) identical(study$about$chapter, "atlas"))
  silent <- map_lgl(studies, function(study) !is.null(describe_two_ranks(study)))
  simulated <- map_lgl(studies, "simulated")
  map_chr(studies, "name")[order(silent, !together, simulated, compared == 0, -compared)]
}
