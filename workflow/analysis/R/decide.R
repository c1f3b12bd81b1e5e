#' Which algorithm wins each cell, and what ties with it
#'
#' Every latency is an interval: that of the median over launches ([summarise_launches()]) or, if larger, +- half the
#' tie width (`analysis.tie_pct`, default 2 %) and at least +- 0.005 us, half the digit that OSU benchmarks print.
#' Algorithms whose interval overlaps the winner's are tied with it.
#'
#' @param results List from [read_results()].
#' @param collective Name of a collective.
#' @return Tibble, one row per mapping x processes x size with two algorithms or more: mapping, processes, size_bytes,
#'   winner, winner_us, tied (other algorithms within noise, separated by ";"), runner_up, runner_up_us, default_us,
#'   default_regret_pct (how much slower than the winner the default is; 0 where it wins), default_is (best, tied,
#'   slower, or empty where there is no default).
#' @noRd
decide_winners <- function(results, collective) {
  rows <- competing(results, collective)
  rows <- rows |>
    arrange(.data$mapping, .data$processes, .data$size_bytes, .data$latency_us, .data$algorithm)
  id <- vctrs::vec_group_id(rows[c("mapping", "processes", "size_bytes")])
  first <- which(!duplicated(id))[id]
  rows <- mutate(rows,
    group = id, rank = seq_along(id) - first + 1L, is_tied = .data$low_us <= .data$high_us[first],
    best_us = .data$latency_us[first]
  )
  rows <- rows[tabulate(id, max(0L, id))[id] > 1, ]
  tied <- summarise_tied(rows)
  default <- rows[rows$algorithm == "default", ]
  default <- tibble(
    group = default$group, default_us = default$latency_us,
    default_regret_pct = 100 * (default$latency_us / default$best_us - 1),
    default_is = ifelse(default$rank == 1, "best", ifelse(default$is_tied, "tied", "slower"))
  )
  second <- rows[rows$rank == 2, c("group", "algorithm", "latency_us")]
  rows |>
    filter(.data$rank == 1) |>
    transmute(
      mapping = as.character(.data$mapping), .data$processes, .data$size_bytes, .data$group,
      winner = as.character(.data$algorithm), winner_us = .data$latency_us
    ) |>
    left_join(tied, by = "group") |>
    left_join(rename(second, runner_up = "algorithm", runner_up_us = "latency_us"), by = "group") |>
    left_join(default, by = "group") |>
    mutate(tied = coalesce(.data$tied, ""), runner_up = as.character(.data$runner_up)) |>
    select(-"group")
}

summarise_tied <- function(rows) {
  rows <- filter(rows, .data$rank > 1, .data$is_tied)
  if (nrow(rows) == 0) return(tibble(group = integer(), tied = character()))
  names <- split(as.character(rows$algorithm), rows$group)
  tibble(group = as.integer(names(names)), tied = vapply(names, paste, "", collapse = ";", USE.NAMES = FALSE))
}

#' The algorithms that compete, each latency with its interval
#' @noRd
competing <- function(results, collective) {
  analysis <- results$study$analysis
  results$medians |>
    filter(.data$collective == .env$collective, !.data$algorithm_name %in% analysis$best_excludes) |>
    mutate(
      mapping = mapping_factor(.data$mapping, results$study, .env$collective),
      algorithm = algorithm_factor(.data$algorithm, results$study, .env$collective),
      half = pmax(.data$latency_us * analysis$tie_pct / 200, 0.005),
      low_us = pmin(.data$low_us, .data$latency_us - .data$half),
      high_us = pmax(.data$high_us, .data$latency_us + .data$half)
    )
}

#' The rule for ties, as a sentence
#' @noRd
tie_rule <- function(results) {
  several <- any(results$medians$launches > 1)
  paste0(
    "Algorithms are tied with the fastest where the intervals of their latencies overlap: ",
    if (several) "the interval of the median over launches, at least " else "",
    "\u00b1", format_number(results$study$analysis$tie_pct / 2), " % and at least \u00b10.005 \u00b5s",
    if (several) "." else " (one launch, so the noise is not known)."
  )
}
