# How much of a simulation's error and regret is the measurement's own: another measurement of the same cells is no
# simulation, and still differs.

#' The measured numbers of a study's cells one by one: each launch, or each author's number
#' @noRd
replicates_of <- function(measured) {
  measured$launches |>
    filter(.data$algorithm != "default", !.data$collective %in% c(point_to_point, applications)) |>
    transmute(
      .data$collective, .data$algorithm, .data$mapping, .data$processes, .data$size_bytes,
      source = coalesce(.data$source, ""), .data$launch, .data$latency_us
    ) |>
    mutate(across(c("collective", "algorithm", "mapping"), as.character))
}

#' Two measurements of the same cells, and the simulation of these cells
#'
#' Of every two measurements of one cell by different authors, or where a collective has one author, of different
#' launches, each is once the one that predicts and once the one that judges. The simulation predicts for the same
#' judges.
#'
#' @param compared Tibble from [compare_studies()].
#' @param measured List from [read_results()] of the measured study.
#' @return Tibble, one row per pair and algorithm: the keys of a cell, judge, other (source and launch), judge_us,
#'   other_us, simulated_us, between ("authors" or "launches").
#' @noRd
pair_replicates <- function(compared, measured) {
  keys <- c("collective", "algorithm", "mapping", "processes", "size_bytes")
  rows <- inner_join(replicates_of(measured), select(compared, all_of(keys), "simulated_us"), by = keys)
  pairs <- inner_join(
    rename(rows, judge_source = "source", judge = "launch", judge_us = "latency_us"),
    rename(select(rows, -"simulated_us"), other_source = "source", other = "launch", other_us = "latency_us"),
    by = keys, relationship = "many-to-many"
  ) |>
    mutate(between = ifelse(.data$judge_source != .data$other_source, "authors", "launches")) |>
    filter(.data$between == "authors" | .data$judge != .data$other)
  pairs |>
    group_by(.data$collective) |>
    filter(.data$between == "authors" | !any(.data$between == "authors")) |>
    ungroup()
}

#' Noise and model: errors and regret of another measurement and of the simulation, on the same cells and algorithms
#'
#' @inheritParams pair_replicates
#' @return Tibble: collective, mapping (or `all`), between, cells (with two algorithms or more that both measured),
#'   pairs (of their measurements), other_error_pct and simulated_error_pct (medians), other_regret_pct and
#'   simulated_regret_pct (geometric means), model_regret_pct (what the simulation's has beyond the other measurement's,
#'   at least 0).
#' @noRd
summarise_noise <- function(compared, measured) {
  none <- tibble(
    collective = character(), mapping = character(), between = character(), cells = integer(), pairs = integer(),
    other_error_pct = numeric(), simulated_error_pct = numeric(), other_regret_pct = numeric(),
    simulated_regret_pct = numeric(), model_regret_pct = numeric()
  )
  if (is.null(measured)) return(none)
  each <- pair_replicates(compared, measured) |>
    group_by(
      .data$collective, .data$mapping, .data$between, .data$processes, .data$size_bytes, .data$judge_source,
      .data$judge, .data$other_source, .data$other
    ) |>
    filter(n() > 1)
  if (nrow(each) == 0) return(none)
  each <- each |>
    summarise(
      other_error = median(abs(.data$other_us / .data$judge_us - 1)),
      simulated_error = median(abs(.data$simulated_us / .data$judge_us - 1)),
      other = log(.data$judge_us[which.min(.data$other_us)] / min(.data$judge_us)),
      simulated = log(.data$judge_us[which.min(.data$simulated_us)] / min(.data$judge_us)), .groups = "drop"
    )
  each$place <- each$mapping
  found <- bind_rows(mutate(each, mapping = "all"), each) |>
    group_by(.data$collective, .data$mapping, .data$between) |>
    summarise(
      cells = n_distinct(paste(.data$place, .data$processes, .data$size_bytes)), pairs = n(),
      other_error_pct = 100 * median(.data$other_error),
      simulated_error_pct = 100 * median(.data$simulated_error),
      other_regret_pct = 100 * expm1(mean(.data$other)),
      simulated_regret_pct = 100 * expm1(mean(.data$simulated)),
      model_regret_pct = 100 * expm1(pmax(mean(.data$simulated) - mean(.data$other), 0)), .groups = "drop"
    )
  bind_rows(none, found)
}

#' Which wrong choices cost most
#'
#' @inheritParams pair_replicates
#' @return Tibble: collective, mapping, chosen (by simulation), fastest (measured), cells, geometric_mean_regret_pct,
#'   share_pct (of the logarithm of all regret of the collective).
#' @noRd
summarise_mistakes <- function(compared) {
  compared |>
    filter(.data$algorithm != "default") |>
    group_by(.data$collective, .data$mapping, .data$processes, .data$size_bytes) |>
    filter(n() > 1) |>
    summarise(
      chosen = .data$algorithm[which.min(.data$simulated_us)], fastest = .data$algorithm[which.min(.data$measured_us)],
      cost = log(.data$measured_us[which.min(.data$simulated_us)] / min(.data$measured_us)), .groups = "drop"
    ) |>
    group_by(.data$collective) |>
    mutate(share = if (sum(.data$cost) > 0) .data$cost / sum(.data$cost) else 0) |>
    filter(.data$cost > 0) |>
    group_by(.data$collective, .data$mapping, .data$chosen, .data$fastest) |>
    summarise(
      cells = n(), geometric_mean_regret_pct = 100 * expm1(mean(.data$cost)), share_pct = 100 * sum(.data$share),
      .groups = "drop"
    ) |>
    arrange(.data$collective, desc(.data$share_pct))
}

tables_of_choice <- function(results, compared) {
  noise <- summarise_noise(compared, read_compared(results))
  list(
    if (nrow(noise) > 0) listed("accuracy", "noise", noise, paste(
      "Noise and model: what another measurement of the same cells (of another author, or another launch) is off, and",
      "costs when the algorithm is chosen by it, and the same of the simulation, on the same cells and algorithms.",
      "Errors are medians, regret is the geometric mean; model: regret of the simulation beyond that of another",
      "measurement."
    )),
    listed("accuracy", "mistakes", summarise_mistakes(compared), paste(
      "Wrong choices of the simulation: what it chose, what was measured to be fastest, and the share of the logarithm",
      "of all regret of the collective (%)."
    ))
  ) |>
    purrr::compact()
}

#' The wrong choices that cost most, in a sentence
#' @noRd
mistake_sentence <- function(rows, study) {
  mistakes <- summarise_mistakes(rows)
  if (nrow(mistakes) == 0) return(NULL)
  said <- function(name) gsub("_", " ", name)
  first <- mistakes[1, ]
  names <- unique(c(mistakes$chosen, mistakes$fastest))
  share <- map_dbl(names, function(name) sum(mistakes$share_pct[mistakes$chosen == name | mistakes$fastest == name]))
  paste0(
    "The wrong choice that costs most is ", said(first$chosen), " in place of ", said(first$fastest), ", mapped ",
    label_mapping(first$mapping, study), ": ", count_cells_word(first$cells), " with ", format_pct(first$share_pct),
    " of all regret; wrong choices of or against ", said(names[which.max(share)]), " have ", format_pct(max(share)), "."
  )
}

count_cells_word <- function(count) paste(count, if (count == 1) "cell" else "cells")

#' Noise and model, in a sentence
#' @noRd
noise_sentences <- function(results, compared, collective) {
  measured <- read_compared(results)
  noise <- filter(
    summarise_noise(filter(compared, .data$collective == .env$collective), measured), .data$mapping == "all"
  )
  if (nrow(noise) == 0) {
    return(paste0(
      capitalised(collective_word(collective)), ": no cell has two algorithms that were measured twice, so the part ",
      "of the error and the regret that is noise is unknown."
    ))
  }
  paste0(
    "Noise and model: ", noise$cells, " cells have algorithms that two ", noise$between, " measured. These differ by ",
    format_pct(noise$other_error_pct), " (median), and choosing the algorithm by one of them has a regret of ",
    format_pct(noise$other_regret_pct), " on the other (geometric mean); among the same algorithms the simulation is ",
    format_pct(noise$simulated_error_pct), " off and has a regret of ", format_pct(noise$simulated_regret_pct),
    ", of which ", format_pct(noise$model_regret_pct), " is the model's."
  )
}
