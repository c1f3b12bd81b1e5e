# How much of a simulation's error and regret is due to noise of the measurement: a second measurement of the same cells
# differs, too.

#' The single measurements of a study's cells: each launch of each author
#' @noRd
replicates_of <- function(measured) {
  rows <- measured$launches |>
    filter(.data$algorithm != "default", !.data$collective %in% c(point_to_point, applications))
  rows$launch <- own_launch(rows, cell_keys)
  rows |>
    transmute(
      .data$collective, .data$algorithm, .data$mapping, .data$processes, .data$size_bytes,
      source = coalesce(.data$source, ""), .data$launch, .data$latency_us
    ) |>
    mutate(across(c("collective", "algorithm", "mapping"), as.character))
}

#' Two measurements of the same cells, and the simulation of these cells
#'
#' The pairs are measurements of one cell by different authors or, if a collective has one author, different launches.
#' In each pair, each measurement serves once as the prediction (`other`) and once as the reference (`judge`). The
#' simulation is compared with the same references.
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

#' Noise and model error: errors and regret of a second measurement and of the simulation, on the same cells and
#' algorithms
#'
#' @inheritParams pair_replicates
#' @return Tibble: collective, mapping (or `all`), between, cells (with at least two algorithms that both measured),
#'   pairs (of their measurements), other_error_pct and simulated_error_pct (medians), other_regret_pct and
#'   simulated_regret_pct (geometric means), model_regret_pct (regret of the simulation beyond that of the other
#'   measurement, at least 0).
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
      other = log_regret(.data$other_us, .data$judge_us), simulated = log_regret(.data$simulated_us, .data$judge_us),
      .groups = "drop"
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

#' The wrong choices of the simulation, most costly first
#'
#' @inheritParams pair_replicates
#' @return Tibble: collective, mapping, chosen (by simulation), fastest (measured), cells, geometric_mean_regret_pct,
#'   share_pct (of the logarithm of all regret of the collective).
#' @noRd
summarise_mistakes <- function(compared) {
  choose_by_simulation(compared) |>
    group_by(.data$collective) |>
    mutate(
      cost = .data$weight * log1p(.data$regret_pct / 100),
      share = if (sum(.data$cost) > 0) .data$cost / sum(.data$cost) else 0
    ) |>
    filter(.data$cost > 0) |>
    group_by(.data$collective, .data$mapping, .data$chosen, .data$fastest) |>
    summarise(
      cells = n(), geometric_mean_regret_pct = pooled_regret(.data$regret_pct, .data$weight),
      share_pct = 100 * sum(.data$share), .groups = "drop"
    ) |>
    arrange(.data$collective, desc(.data$share_pct))
}

tables_of_choice <- function(results, compared) {
  noise <- summarise_noise(compared, read_compared(results))
  list(
    if (nrow(noise) > 0) listed("accuracy", "noise", noise, paste(
      "Noise and model error: error of a second measurement of the same cells (by another author, or another launch)",
      "and regret of choosing the algorithm by it, and the same for the simulation, on the same cells and algorithms.",
      "Errors are medians, regrets geometric means. Model: regret of the simulation beyond that of the second",
      "measurement."
    )),
    listed("accuracy", "mistakes", summarise_mistakes(compared), paste(
      "Wrong choices of the simulation: the algorithm that it chose, the one measured as fastest, and the share (%) of",
      "the summed logarithmic regret of the collective. Algorithms that are equally fast in the simulation share a",
      "cell."
    ))
  ) |>
    purrr::compact()
}

#' Sentence on the most costly wrong choices
#' @noRd
mistake_sentence <- function(rows, study) {
  mistakes <- summarise_mistakes(rows)
  if (nrow(mistakes) == 0) return(NULL)
  first <- mistakes[1, ]
  said <- function(name) label_algorithm(name, study, first$collective)
  names <- unique(c(mistakes$chosen, mistakes$fastest))
  share <- map_dbl(names, function(name) sum(mistakes$share_pct[mistakes$chosen == name | mistakes$fastest == name]))
  paste0(
    "The wrong choice that costs most is ", said(first$chosen), " instead of ", said(first$fastest), ", mapped ",
    label_mapping(first$mapping, study), ": ", format_pct(first$share_pct), " of all regret, in ",
    count_of(first$cells, "cell"), ". All wrong choices that involve ", said(names[which.max(share)]),
    " make up ", format_pct(max(share)), "."
  )
}

#' Sentence on noise and model error
#' @noRd
noise_sentences <- function(results, compared, collective) {
  measured <- read_compared(results)
  noise <- filter(
    summarise_noise(filter(compared, .data$collective == .env$collective), measured), .data$mapping == "all"
  )
  if (nrow(noise) == 0) {
    return(paste0(
      collective_title(collective), ": no cell has two algorithms that were measured twice, so the part ",
      "of the error and of the regret that is due to noise is unknown."
    ))
  }
  paste0(
    "Noise and model: ", count_of(noise$cells, "cell has", "cells have"),
    " algorithms that two ", noise$between, " measured. These ",
    "measurements differ by ", format_pct(noise$other_error_pct), " (median); choosing the algorithm by one of them ",
    "has a regret of ", format_pct(noise$other_regret_pct), " on the other (geometric mean). For the same algorithms, ",
    "the simulation has an error of ", format_pct(noise$simulated_error_pct), " and a regret of ",
    format_pct(noise$simulated_regret_pct), ", of which ", format_pct(noise$model_regret_pct), " is due to the model."
  )
}
