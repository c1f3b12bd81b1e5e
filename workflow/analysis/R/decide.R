#' The fastest algorithm (winner) of each cell, and those tied with it
#'
#' If two algorithms have at least three launches each, [compare_rounds()] decides: an algorithm that it does not call
#' slower is tied with the winner. With fewer launches the noise is not known, and algorithms are tied within a
#' tolerance ([tie_tolerance()]). Two latencies that differ by at most 0.005 us, half of the last digit that OSU
#' benchmarks print, are always tied.
#'
#' @param results List from [read_results()].
#' @param collective Name of a collective.
#' @return Tibble, one row per mapping x processes x size with two algorithms or more: mapping, processes, size_bytes,
#'   winner, winner_us, tied (other algorithms that are not slower, separated by ";"), runner_up, runner_up_us,
#'   default_us, default_regret_pct (slow-down of the default against the winner; 0 where the default is the winner),
#'   default_is (best, tied, slower, or NA where there is no default), tested (rounds, launches, tolerance: how the
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

#' Add whether each algorithm is tied with the fastest of its cell (`is_tied`), and how they were compared (`tested`)
#' @noRd
with_ties <- function(rows, results, collective) {
  launches <- results$judged$launches
  competed <- launches$collective == collective & launches$algorithm %in% as.character(unique(rows$algorithm))
  # Of equal medians, the same one is the fastest in both.
  launches <- mutate(keep_rows(launches, competed), algorithm = factor(.data$algorithm, levels(rows$algorithm)))
  compared <- compare_rounds(launches)
  keys <- c("mapping", "processes", "size_bytes", "algorithm")
  at <- vctrs::vec_match(mutate(rows[keys], across(where(is.factor), as.character)), compared[keys])
  # The fastest algorithm of the cell may have a single launch, and then is not among the compared ones.
  fastest <- as.character(rows$algorithm)[rows$rank == 1][match(rows$group, rows$group[rows$rank == 1])]
  # With two launches, no test can find a difference, however large it is.
  by_test <- !is.na(at) & compared$rounds[at] >= 3 & !is.na(compared$p_value[at]) & compared$fastest[at] == fastest
  tolerance <- 1 + tie_tolerance(results, collective) / 100
  within <- rows$latency_us <= rows$best_us * tolerance
  paired <- !is.na(launches$round)
  mutate(rows,
    tested = ifelse(by_test, if (all(paired)) "rounds" else "launches", "tolerance"),
    is_tied = ifelse(by_test, !compared$slower[at], within) | .data$latency_us - .data$best_us <= 0.005
  )
}

#' "within 24 %": a tolerance in words
#' @noRd
within_tolerance <- function(width) paste0("within ", format_number(width, max(2, ceiling(log10(width)))), " %")

#' " mapped by core", where no cell of the other mappings has two sources; empty where all mappings have such cells
#' @noRd
where_two_sources <- function(results, collective) {
  rows <- filter(results$judged$launches, .data$collective == .env$collective, !is.na(.data$source))
  cells <- distinct(rows, across(all_of(c(cell_keys, "source"))))
  both <- unique(cells$mapping[duplicated(cells[cell_keys])])
  medians <- results$judged$medians
  if (all(medians$mapping[medians$collective == collective] %in% both)) return("")
  paste0(" mapped ", and_list(label_mapping(both, results$study)))
}

#' The difference (%) up to which two algorithms with few launches count as tied
#'
#' The value is `analysis.tie_pct` (default 2 %) or, if larger, the 90th percentile of the difference between the
#' sources of the study's data in the same cell. Two names of the same messages ([pool_same_messages()]) have the same
#' launches, which count once.
#' @noRd
tie_tolerance <- function(results, collective) {
  remember(results, paste("tie tolerance", collective), function() find_tolerance(results, collective))
}

find_tolerance <- function(results, collective) {
  rows <- filter(results$judged$launches, .data$collective == .env$collective, !is.na(.data$source))
  tie <- results$study$analysis$tie_pct
  if (n_distinct(rows$source) < 2) return(tie)
  if ("messages" %in% names(rows)) rows <- rows[!duplicated(rows[c("messages", "launch")]), ]
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

#' Medians ([pool_same_messages()]) of the algorithms that compete: all but those of `analysis.best_excludes`, and
#' latencies of 0, to which nothing has a ratio
#' @noRd
competing <- function(results, collective) {
  results$judged$medians |>
    filter(
      .data$collective == .env$collective, !.data$algorithm_name %in% results$study$analysis$best_excludes,
      .data$latency_us > 0
    ) |>
    mutate(
      mapping = mapping_factor(.data$mapping, results$study, .env$collective),
      algorithm = algorithm_factor(.data$algorithm, results$study, .env$collective)
    )
}

#' Where too few launches were compared for a test, in words: pairs of launches are the authors of both algorithms if
#' these are the rounds
#' @noRd
where_few <- function(launches) {
  if (rounds_are_sources(launches)) return("where fewer than three authors measured both")
  "with fewer than three launches"
}

rounds_are_sources <- function(launches) nrow(launches) > 0 && isTRUE(all(launches$round == launches$source))

#' Sentence on the rule for ties, for captions
#' @noRd
tie_rule <- function(results, collective) {
  launches <- filter(results$judged$launches, .data$collective == .env$collective)
  by_tolerance <- decide_winners(results, collective)$tested == "tolerance"
  width <- tie_tolerance(results, collective)
  tolerance <- paste(within_tolerance(width), "of the fastest")
  of_authors <- if (width > results$study$analysis$tie_pct) paste0(
    "nine in ten differences between two authors' latencies of one algorithm in the same cell",
    where_two_sources(results, collective), " are smaller"
  )
  if (all(by_tolerance)) {
    why <- if (!is.null(of_authors)) {
      paste0(": ", of_authors)
    } else if (!results$study$simulated) {
      paste0(", because so few launches allow no test", two_runs(results, collective))
    }
    return(paste0("Algorithms ", tolerance, " count as tied", why, "."))
  }
  ratios <- paste("the latency ratios within", if (rounds_are_sources(launches)) "authors" else "rounds")
  if (anyNA(launches$round)) ratios <- "the launches"
  few <- any(by_tolerance) || min(results$judged$medians$launches[results$judged$medians$collective == collective]) < 3
  paste0(
    "Algorithms count as tied with the fastest unless a test of ", ratios,
    " finds them slower (5 % level per cell; docs/methodology.md, section 5)",
    if (few) paste0("; ", where_few(launches), ", those ", tolerance, " count as tied"),
    if (few && !is.null(of_authors)) paste0(", because ", of_authors), "."
  )
}
