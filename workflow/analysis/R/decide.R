#' Which algorithm wins each cell, and what ties with it
#'
#' Where two algorithms have three launches or more, [compare_rounds()] decides: an algorithm that is not called slower
#' is tied with the winner. Where one has fewer, the noise is not known: it is tied within a tolerance
#' ([tie_tolerance()]). Two latencies that differ by at most 0.005 us, half the digit that OSU benchmarks print, are
#' tied in any case.
#'
#' @param results List from [read_results()].
#' @param collective Name of a collective.
#' @return Tibble, one row per mapping x processes x size with two algorithms or more: mapping, processes, size_bytes,
#'   winner, winner_us, tied (other algorithms that are not slower, separated by ";"), runner_up, runner_up_us,
#'   default_us, default_regret_pct (how much slower than the winner the default's latency is; 0 where it wins),
#'   default_is (best, tied, slower, or empty where there is no default), tested (rounds, launches, tolerance: how the
#'   default, or without one the runner-up, was compared with the winner).
#' @noRd
decide_winners <- function(results, collective) {
  remember(results, paste("winners", collective), function() find_winners(results, collective))
}

find_winners <- function(results, collective) {
  rows <- competing(results, collective)
  rows <- arrange(rows, .data$mapping, .data$processes, .data$size_bytes, .data$latency_us, .data$algorithm)
  id <- vctrs::vec_group_id(rows[c("mapping", "processes", "size_bytes")])
  first <- which(!duplicated(id))[id]
  rows <- mutate(rows, group = id, rank = seq_along(id) - first + 1L, best_us = .data$latency_us[first])
  rows <- rows[tabulate(id, max(0L, id))[id] > 1, ]
  rows <- with_ties(rows, results, collective)
  second <- rows[rows$rank == 2, c("group", "algorithm", "latency_us", "tested")]
  default <- rows[rows$algorithm == "default", ]
  default <- tibble(
    group = default$group, default_us = default$latency_us,
    default_regret_pct = 100 * (default$latency_us / default$best_us - 1),
    default_is = ifelse(default$rank == 1, "best", ifelse(default$is_tied, "tied", "slower")),
    default_tested = ifelse(default$rank == 1, second$tested[match(default$group, second$group)], default$tested)
  )
  rows |>
    filter(.data$rank == 1) |>
    transmute(
      mapping = as.character(.data$mapping), .data$processes, .data$size_bytes, .data$group,
      winner = as.character(.data$algorithm), winner_us = .data$latency_us
    ) |>
    left_join(summarise_tied(rows), by = "group") |>
    left_join(rename(second, runner_up = "algorithm", runner_up_us = "latency_us"), by = "group") |>
    left_join(default, by = "group") |>
    mutate(
      tied = coalesce(.data$tied, ""), runner_up = as.character(.data$runner_up),
      tested = coalesce(.data$default_tested, .data$tested)
    ) |>
    select(-"group", -"default_tested") |>
    relocate("tested", .after = "default_is")
}

#' For each algorithm of a cell: is it tied with the fastest (rank 1), and how was that found?
#' @noRd
with_ties <- function(rows, results, collective) {
  launches <- results$launches
  competed <- launches$collective == collective & launches$algorithm %in% as.character(unique(rows$algorithm))
  launches <- keep_rows(launches, competed)
  compared <- compare_rounds(launches)
  keys <- c("mapping", "processes", "size_bytes", "algorithm")
  at <- vctrs::vec_match(mutate(rows[keys], across(where(is.factor), as.character)), compared[keys])
  # The fastest of the launches that were compared may have a rival with a single launch.
  fastest <- as.character(rows$algorithm)[rows$rank == 1][match(rows$group, rows$group[rows$rank == 1])]
  # Two launches show nothing that a test could find, however large the difference is.
  by_test <- !is.na(at) & compared$rounds[at] >= 3 & !is.na(compared$p_value[at]) & compared$fastest[at] == fastest
  tolerance <- 1 + tie_tolerance(results, collective) / 100
  within <- rows$latency_us <= rows$best_us * tolerance
  paired <- !is.na(launches$round)
  mutate(rows,
    tested = ifelse(by_test, if (all(paired)) "rounds" else "launches", "tolerance"),
    is_tied = ifelse(by_test, !compared$slower[at], within) | .data$latency_us - .data$best_us <= 0.005
  )
}

#' By how much two single launches may differ without a difference being claimed, in percent
#'
#' `analysis.tie_pct` (default 2 %), or the 90th percentile of how much the sources of the study's data differ in the
#' same cell, if they are several and that is more.
#' @noRd
tie_tolerance <- function(results, collective) {
  remember(results, paste("tie tolerance", collective), function() find_tolerance(results, collective))
}

find_tolerance <- function(results, collective) {
  rows <- filter(results$launches, .data$collective == .env$collective, !is.na(.data$source))
  tie <- results$study$analysis$tie_pct
  if (n_distinct(rows$source) < 2) return(tie)
  id <- vctrs::vec_group_id(rows[c(cell_keys, "source")])
  medians <- rows[!duplicated(id), cell_keys]
  medians$latency_us <- group_median(rows$latency_us, id, nrow(medians))
  medians <- medians[several(medians, cell_keys), ]
  cell <- vctrs::vec_group_id(medians[cell_keys])
  by_latency <- order(cell, medians$latency_us)
  sorted <- medians$latency_us[by_latency]
  first <- !duplicated(cell[by_latency])
  last <- !duplicated(cell[by_latency], fromLast = TRUE)
  differences <- 100 * (sorted[last] / sorted[first] - 1)
  if (length(differences) < 10) return(tie)
  max(tie, unname(quantile(differences, 0.9)))
}

summarise_tied <- function(rows) {
  rows <- filter(rows, .data$rank > 1, .data$is_tied)
  if (nrow(rows) == 0) return(tibble(group = integer(), tied = character()))
  names <- split(as.character(rows$algorithm), rows$group)
  tibble(group = as.integer(names(names)), tied = vapply(names, paste, "", collapse = ";", USE.NAMES = FALSE))
}

#' The algorithms that compete
#' @noRd
competing <- function(results, collective) {
  results$medians |>
    filter(
      .data$collective == .env$collective, !.data$algorithm_name %in% results$study$analysis$best_excludes
    ) |>
    mutate(
      mapping = mapping_factor(.data$mapping, results$study, .env$collective),
      algorithm = algorithm_factor(.data$algorithm, results$study, .env$collective)
    )
}

#' The rule for ties, as a sentence
#' @noRd
tie_rule <- function(results, collective) {
  launches <- results$launches[results$launches$collective == collective, ]
  most <- results$medians$launches[results$medians$collective == collective]
  tolerance <- paste0("latencies within ", format_number(tie_tolerance(results, collective)), " %")
  if (max(most, 0) < 3) {
    return(paste0(
      "Tied with the fastest: ", tolerance, " of it, because the noise of so few launches is unknown."
    ))
  }
  pairs <- if (anyNA(launches$round)) "launches" else if (anyNA(launches$source)) "rounds" else "sources"
  paste0(
    "Tied with the fastest: not significantly slower by the ratios within ", pairs,
    " (5 % per cell; docs/methodology.md, section 5)",
    if (min(most) < 3) paste0(
      "; with fewer than three launches, ", tolerance, " of it"
    ), "."
  )
}
