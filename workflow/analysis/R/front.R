# The front page of a report: what all of its studies say together. It reads tables that the studies' analyses wrote,
# so that a number on it is the number of a chapter.

#' What the front page of a report says
#'
#' @param folders Folders `results/<study>` of the studies with results.
#' @return List: `question` (one sentence), `answer` (sentences: measured machines first, then what was simulated),
#'   `table` (tibble, at most 12 rows: machine, study, collective, cells, slower_pct, geometric_mean_pct, best_other,
#'   best_other_geometric_mean_pct), `left_out` (names of its rows that are not shown), `advice` (list: see
#'   [advise_front()]), `judged` (number of machines and collectives whose rules were judged), `trust`
#'   (sentences), `silent` (list by study: the sentence about one that can tell
#'   no algorithms apart), `findings` (list by study: one sentence about what it found),
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
    left_out = name_cells(rows[-seq_len(nrow(shown)), ]), advice = advise_front(studies, rows),
    judged = nrow(front_gains(studies, rows)), trust = front_trust(studies, rows),
    silent = purrr::compact(setNames(map(studies, describe_two_ranks), map_chr(studies, "name"))),
    findings = purrr::compact(setNames(map(studies, front_finding), map_chr(studies, "name"))),
    order = front_order(studies)
  )
}

#' What the front page needs of a study
#' @noRd
read_front_study <- function(folder) {
  about <- read_study(folder)
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

#' One study asks its own question; several ask one together
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
  sentences <- c(
    if (nrow(measured) > 0) c(front_overall(measured), front_extremes(measured)),
    front_rules(studies, measured), front_transfer(studies),
    if (nrow(simulated) > 0) {
      paste("Simulated, not measured:", lower_first(front_overall(simulated, define = nrow(measured) == 0)))
    }
  )
  # Studies of another question (an application, a ladder) have answers of their own.
  if (length(sentences) == 0) sentences <- head(unlist(map(studies, "answers")), 5)
  if (length(sentences) == 0) return("No study of this report compares the library's default with another algorithm.")
  sentences
}

front_overall <- function(rows, define = TRUE) {
  # The sentence says by itself what is simulated.
  rows$machine <- sub(", simulated$", "", rows$machine)
  machines <- split(rows, factor(rows$machine, unique(rows$machine)))
  pooled <- map_dfr(machines, pool_front)
  fastest <- paste("the fastest", if (all(rows$simulated)) "simulated" else "measured", "algorithm")
  on <- within_text(names(machines))
  cells <- paste(format_number(pooled$cells, 6), c("cells", rep("", length(on) - 1)))
  paste0(
    if (length(machines) == 1) {
      paste0(
        "On ", on, " the default takes ", format_pct(pooled$geometric_mean_pct), " longer than ", fastest,
        " (geometric mean) and is more than 5 % slower in ", format_pct(pooled$slower_pct), " of ", cells, "."
      )
    } else {
      paste0(
        "In the geometric mean the default takes longer than ", fastest, " by ",
        and_list(paste0(format_pct(pooled$geometric_mean_pct), " on ", on, " (", trimws(cells), ")")),
        "; it is more than 5 % slower in ", and_list(format_pct(pooled$slower_pct)), " of them, in this order."
      )
    },
    if (define) paste(
      " A cell is one combination of collective, mapping of processes to cores, number of processes and message size."
    )
  )
}

front_extremes <- function(rows) {
  # A handful of cells is no extreme of a machine, where others have many.
  many <- rows$cells >= 30
  if (sum(many) > 1) rows <- rows[many, ]
  if (nrow(rows) < 2) return(NULL)
  say <- function(row) {
    paste0(
      collective_word(row$collective), if (n_distinct(rows$machine) > 1) paste0(" on ", within_text(row$machine)), " (",
      format_pct(row$geometric_mean_pct)
    )
  }
  worst <- rows[which.max(rows$geometric_mean_pct), ]
  best <- rows[which.min(rows$geometric_mean_pct), ]
  paste0(
    if (sum(many) > 1 && !all(many)) "Among collectives with at least 30 cells, the" else "The",
    " loss is largest for ", say(worst), "; in a tenth of the cells more than ", format_pct(worst$p90_pct),
    ") and smallest for ", say(best), ")."
  )
}

#' What rules are worth that were decided on other process counts
#' @noRd
front_rules <- function(studies, rows) {
  gains <- front_gains(studies, rows)
  if (nrow(gains) == 0) return(NULL)
  clear <- gains[gains$gain_low_pct > 0, ]
  if (nrow(clear) == 0) {
    return(paste(
      "Selecting algorithms by rules has no clear gain: rules decided on half of the process counts are not",
      "significantly faster than the default on the other half."
    ))
  }
  best <- clear[which.max(clear$gain_low_pct), ]
  unclear <- sum(gains$gain_low_pct <= 0 & gains$gain_high_pct >= 0)
  slower <- sum(gains$gain_high_pct < 0)
  paste0(
    "Rules that select the algorithm by process count and message size are significantly faster than the default for ",
    and_list(name_cells(clear)), ", on process counts that were not used to decide them; the largest gain is ",
    format_saving(best), " less time for ", name_cells(best), ".",
    if (unclear > 0) paste0(
      " For ", unclear, " other ", if (unclear > 1) "combinations" else "combination",
      " of machine and collective there is no clear difference."
    ),
    if (slower > 0) paste0(" For ", slower, " the rules are slower.")
  )
}

#' The share of the default's time that rules save, of how much longer it takes: "52 % (95 % interval 42 to 54 %)"
#' @noRd
format_saving <- function(row) {
  saved <- function(gain_pct) format_pct(100 * (1 - 1 / (1 + gain_pct / 100)))
  if (is.na(row$gain_low_pct)) return(saved(row$gain_pct))
  paste0(
    saved(row$gain_pct), " (95 % interval ", sub(" %", "", saved(row$gain_low_pct)), " to ", saved(row$gain_high_pct),
    ")"
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
    select("machine", "policy", "geometric_mean_pct", "cells") |>
    pivot_wider(names_from = "policy", values_from = "geometric_mean_pct")
  wide$rule <- wide[["rule of the other machines"]]
  wide$label <- within_text(coalesce(unname(labels[wide$machine]), wide$machine))
  changed <- found$machine[found$policy == "rule of the other machines" & found$changed_pct > 0]
  kept <- wide[!wide$machine %in% changed, ]
  other <- wide[wide$machine %in% changed, ]
  better <- sum(wide$rule < wide$default - 0.5)
  paste0(
    if (better > nrow(wide) / 2) "Rules carry over between machines" else "Rules have to be decided on each machine",
    ": rules learned on the other machines ",
    paste(c(
      if (nrow(other) > 0) paste0("take ", and_list(paste0(
        format_pct(other$rule), " longer than the fastest algorithm on ", other$label, " (the default ",
        format_pct(other$default), "; ", format_number(other$cells, 6), " cells of shared collectives)"
      ))),
      if (nrow(kept) > 0) paste("keep the default on", and_list(kept$label))
    ), collapse = " and "), "."
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
    and_list(paste0(format_pct(table$value), " on ", within_text(table$label)))
  }
  lacking <- map_dbl(studies, function(study) sum(study$cells$status != "measured"))
  selected <- map_dbl(studies, function(study) NROW(study$cells))
  imported <- unique(rows$machine[rows$numbers == "measured, imported"])
  compared <- map_chr(studies, "name") %in% rows$study[!rows$simulated]
  c(
    if (NROW(agreement) > 0) paste0(
      "Two authors' latencies of the same cells differ by ", by_machine(agreement, "median_abs_difference_pct"),
      " (medians). Smaller differences between algorithms are not significant."
    ),
    if (length(imported) > 0) paste0(
      "The measurements on ", and_list(within_text(imported)), " were made by other authors, mostly with one launch ",
      "per cell, so the variation between launches is unknown."
    ),
    if (nrow(accuracy) > 0) paste0(
      "Simulated latencies differ from measured ones by ", by_machine(accuracy, "median_abs_error_pct"), " (medians)."
    ),
    if (sum(lacking) > 0) paste0(
      format_number(sum(lacking), 6), " of ", format_number(sum(selected), 6),
      " configurations (algorithm, mapping and number of processes) have no usable number; the appendix lists the ",
      "reasons."
    ),
    paste0(
      "The fastest algorithm is the fastest of the measured ones", front_libraries(studies[compared]),
      ": other versions of the library may have other defaults."
    )
  )
}

#' ", with Open MPI 4.1.6 on Leonardo Booster", for the machines of studies; empty where no version is known
#' @noRd
front_libraries <- function(studies) {
  found <- map_dfr(studies, function(study) {
    how <- study$about$provenance
    if (length(how$mpi_version) != 1 || how$mpi_version %in% c("", "unknown")) return(NULL)
    tibble(library = paste(mpi_label(how$mpi), how$mpi_version), machine = within_text(front_machine(study)))
  })
  if (nrow(found) == 0) return("")
  on <- vapply(split(found$machine, found$library), function(machines) and_list(unique(machines)), "")
  paste0(", with ", and_list(paste(names(on), "on", on)))
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

#' What a study found, in one sentence: the default's loss by collective, or the first sentence of its own answer
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

#' Studies in the order in which they tell most: all machines together, then measured before simulated ones, each by its
#' number of compared cells; last those that can tell nothing
#' @noRd
front_order <- function(studies) {
  if (length(studies) == 0) return(character())
  compared <- map_dbl(studies, function(study) sum(study$by_collective$cells))
  together <- map_lgl(studies, function(study) identical(study$about$chapter, "atlas"))
  silent <- map_lgl(studies, function(study) !is.null(describe_two_ranks(study)))
  simulated <- map_lgl(studies, "simulated")
  map_chr(studies, "name")[order(silent, !together, simulated, compared == 0, -compared)]
}
