# The answer of a study: regret of the default, and of using a single algorithm everywhere.

#' Regret of the default and of the best single algorithm, by collective and mapping
#'
#' @param results List from [read_results()].
#' @return Tibble, one row per collective and mapping: collective, mapping, default_best_pct (cells in which the default
#'   is fastest or tied, see [decide_winners()]), slower (cells in which it is slower), the columns of
#'   [summarise_slowdown()] with the prefix default_ (regret over all compared cells), cells (compared), best_single
#'   (of the algorithms of [stands_for_all()], the one with the smallest geometric mean of regret),
#'   best_single_geometric_mean_pct, best_single_mean_pct.
#' @noRd
summarise_answer <- function(results) {
  remember(results, "answer", function() answer_collectives(results))
}

answer_collectives <- function(results) {
  none <- tibble(
    collective = character(), mapping = character(), default_best_pct = numeric(), slower = integer(),
    default_geometric_mean_pct = numeric(), default_mean_pct = numeric(), default_median_pct = numeric(),
    default_p90_pct = numeric(), default_p99_pct = numeric(), default_max_pct = numeric(), cells = integer(),
    best_single = character(), best_single_geometric_mean_pct = numeric(), best_single_mean_pct = numeric()
  )
  # Chapters with their own question compare by other rules, which they explain.
  if (!is.null(own_chapter(results))) return(none)
  bind_rows(none, map_dfr(collectives_of(results), function(collective) answer_collective(results, collective)))
}

answer_collective <- function(results, collective) {
  winners <- decide_winners(results, collective)
  if (nrow(winners) == 0) return(NULL)
  winners |>
    group_by(mapping = mapping_factor(.data$mapping, results$study, .env$collective)) |>
    summarise(
      default_best_pct = share(.data$default_is %in% c("best", "tied"), !is.na(.data$default_is)),
      slower = if (all(is.na(.data$default_is))) NA else sum(.data$default_is %in% "slower"),
      default = summarise_slowdown(1 + .data$default_regret_pct / 100), compared = n()
    ) |>
    tidyr::unpack("default", names_sep = "_") |>
    select(-"default_cells") |>
    rename(cells = "compared") |>
    mutate(mapping = as.character(.data$mapping), collective = .env$collective) |>
    left_join(summarise_single(results, collective, winners), by = "mapping")
}

share <- function(yes, of) if (any(of)) 100 * sum(yes & of) / sum(of) else NA_real_
mean_known <- function(x) if (all(is.na(x))) NA_real_ else mean(x, na.rm = TRUE)
max_known <- function(x) if (all(is.na(x))) NA_real_ else max(x, na.rm = TRUE)

#' Which algorithms were measured in enough cells for the best single one: at least 90 % as many as the one with most,
#' because a few cells of another author must not exclude all algorithms that this author did not measure
#'
#' @param cells Number of cells of each algorithm.
#' @noRd
stands_for_all <- function(cells) cells >= 0.9 * max(0, cells)

#' What [stands_for_all()] is, for captions
#' @noRd
of_widely <- function(found) paste("of those", found, "in at least 90 % of the cells")

#' [of_widely()] of a study
#' @noRd
of_widely_in <- function(study) of_widely(if (study$simulated) "simulated" else "measured")

#' Regret of using one algorithm everywhere
#' @noRd
summarise_single <- function(results, collective, winners) {
  keys <- c("mapping", "processes", "size_bytes")
  competing(results, collective) |>
    mutate(across(c("mapping", "algorithm"), as.character)) |>
    inner_join(select(winners, all_of(keys), "winner_us"), by = keys) |>
    group_by(.data$mapping, .data$algorithm) |>
    summarise(covered = n(), regret = summarise_slowdown(.data$latency_us / .data$winner_us), .groups = "drop_last") |>
    tidyr::unpack("regret") |>
    filter(stands_for_all(.data$covered)) |>
    slice_min(.data$geometric_mean_pct, n = 1, with_ties = FALSE) |>
    ungroup() |>
    transmute(
      .data$mapping, best_single = label_algorithm(.data$algorithm, results$study, .env$collective),
      best_single_geometric_mean_pct = .data$geometric_mean_pct, best_single_mean_pct = .data$mean_pct
    )
}

tables_of_answer <- function(results) {
  list(listed("answer", NULL, summarise_answer(results), paste(
    "How often the library's default is the fastest algorithm or tied with it, and its regret over all cells (ties",
    "included): slow-down against the fastest algorithm of the cell. Best single algorithm:",
    paste0(of_widely_in(results$study), ", the one with the smallest regret.")
  )), listed("answer", "collectives", summarise_by_collective(results), paste(
    "Regret of the default by collective, in cells of more than two processes.", slowdown_note
  )), listed(
    "answer", "mappings", summarise_by_mapping(results),
    "Regret of the default by collective and mapping: geometric mean over the cells of more than two processes."
  ))
}

#' Regret of the default by collective over all mappings, computed as in the chapter on all machines
#'
#' @param results List from [read_results()].
#' @return Columns of [summarise_atlas()], and best_other (the algorithm other than the default with the smallest regret
#'   among those of [stands_for_all()]) with best_other_geometric_mean_pct, and the columns of [summarise_by_slowest()].
#'   No rows for an [own_chapter()].
#' @noRd
summarise_by_collective <- function(results) {
  remember(results, "by collective", function() find_by_collective(results))
}

find_by_collective <- function(results) {
  none <- summarise_atlas(atlas_rows(list(rows = results$rows[0, ]))) |>
    mutate(
      best_other = character(), best_other_geometric_mean_pct = numeric(), slowest_cells = integer(),
      mean_there_pct = numeric(), slowest_pct = numeric()
    )
  if (!is.null(own_chapter(results))) return(none)
  rows <- atlas_rows_alone(results)
  if (nrow(rows) == 0) return(none)
  others <- filter(rows, .data$algorithm != "default") |>
    group_by(.data$collective, .data$algorithm) |>
    summarise(covered = n(), mean = geometric_mean(.data$slowdown), .groups = "drop_last") |>
    filter(stands_for_all(.data$covered)) |>
    slice_min(.data$mean, n = 1, with_ties = FALSE) |>
    ungroup()
  others$label <- map2_chr(others$algorithm, others$collective, function(algorithm, collective) {
    label_algorithm(algorithm, results$study, collective)
  })
  others <- transmute(
    others, .data$collective, best_other = .data$label, best_other_geometric_mean_pct = 100 * (.data$mean - 1)
  )
  left_join(summarise_atlas(rows), others, by = "collective") |>
    left_join(summarise_by_slowest(results), by = "collective")
}

#' Slow-down of the default by the time of the slowest rank, where latencies are means over the ranks
#'
#' From a reduce or a broadcast many ranks return early, more of them with some algorithms than with others.
#'
#' @param results List from [read_results()].
#' @return Tibble: collective, slowest_cells (in which the time of the slowest rank is known), mean_there_pct and
#'   slowest_pct (geometric means of the default's slow-down in these cells, by the mean over the ranks and by the
#'   slowest rank).
#' @noRd
summarise_by_slowest <- function(results) {
  rows <- results$rows
  of_mean <- !startsWith(coalesce(rows$statistic, ""), "slowest_rank")
  rows <- keep_rows(rows, !is.na(rows$max_latency_us) & of_mean)
  slowdown <- function(rows) {
    results$rows <- rows
    filter(atlas_rows_alone(results), .data$algorithm == "default") |>
      group_by(.data$collective) |>
      summarise(cells = n(), pct = 100 * (geometric_mean(.data$slowdown) - 1))
  }
  inner_join(
    slowdown(rows), slowdown(mutate(rows, latency_us = .data$max_latency_us)), "collective", suffix = c("", "_slowest")
  ) |>
    select("collective", slowest_cells = "cells", mean_there_pct = "pct", slowest_pct = "pct_slowest")
}

#' TRUE where the time of the slowest rank and the mean over the ranks lead to slow-downs that differ by more than 10 %
#' @noRd
slowest_differs <- function(rows) {
  coalesce(abs(log((100 + rows$slowest_pct) / (100 + rows$mean_there_pct))) > log(1.1), FALSE)
}

slowest_words <- function(results, collective) {
  row <- filter(summarise_by_collective(results), .data$collective == .env$collective)
  if (!any(slowest_differs(row))) return("")
  paste0(
    " Judged by the slowest rank instead of the mean over the ranks, the default is ", format_pct(row$slowest_pct),
    " instead of ", format_pct(row$mean_there_pct), " slower than the fastest algorithm (geometric means over the ",
    count_of(row$slowest_cells, "cell"), " of more than two processes in which both are known)."
  )
}

#' Regret of the default by collective and mapping, over the cells of [summarise_by_collective()]
#'
#' @param results List from [read_results()].
#' @return Tibble: collective, mapping, cells, geometric_mean_pct. No rows for an [own_chapter()].
#' @noRd
summarise_by_mapping <- function(results) {
  rows <- if (is.null(own_chapter(results))) atlas_rows_alone(results) else atlas_rows(list(rows = results$rows[0, ]))
  filter(rows, .data$algorithm == "default") |>
    group_by(.data$collective, .data$mapping) |>
    summarise(cells = n(), geometric_mean_pct = 100 * (geometric_mean(.data$slowdown) - 1), .groups = "drop")
}

#' [atlas_rows()] of a single study
#' @noRd
atlas_rows_alone <- function(results) {
  results$rows$machine <- coalesce(results$rows$machine, results$study$machine$name)
  results$rows$simulated <- coalesce(results$rows$simulated, results$study$simulated)
  atlas_rows(results)
}

#' Sentences with the answer of a study
#'
#' @param results List from [read_results()].
#' @return Character vector, one sentence each.
#' @noRd
describe_answer <- function(results) {
  if (has_applications(results)) {
    return(c(describe_accounts(results), describe_gain(results), describe_alternatives(results)))
  }
  if (!is.null(own_chapter(results))) return(own_chapter(results)$answer(results))
  answer <- filter(summarise_answer(results), !is.na(.data$default_best_pct))
  if (nrow(answer) == 0) return(paste0(study_name(results), ": ", answer_otherwise(results)))
  vapply(split(answer, factor(answer$collective, unique(answer$collective))), function(rows) {
    never <- all(rows$default_best_pct == 0)
    known <- !is.na(decide_winners(results, rows$collective[1])$default_is)
    cells <- sum(known)
    measured <- if (all(known)) "" else " in which it was measured"
    paste0(
      study_name(results), ", ", collective_word(rows$collective[1]),
      if (never) {
        paste0(
          ": the default is neither the fastest algorithm nor tied with it", tied_words(results, rows$collective[1]),
          " in ",
          if (cells == 1) "the only cell" else paste0("any of the ", format_count(cells), " cells"), measured, "."
        )
      } else {
        paste0(
          ": the default is the fastest algorithm, or tied with it", tied_words(results, rows$collective[1]), ", in ",
          per_mapping(rows, format_pct(rows$default_best_pct), results$study), " of the cells", measured, "."
        )
      },
      slower_words(results, rows$collective[1], never), slowest_words(results, rows$collective[1])
    )
  }, "", USE.NAMES = FALSE)
}

#' " (within 34 %)", where a tolerance decides whether the default is tied; empty where a test does
#' @noRd
tied_words <- function(results, collective) {
  winners <- decide_winners(results, collective)
  tested <- winners$tested[winners$default_is %in% c("tied", "slower")]
  if (!"tolerance" %in% tested) return("")
  within <- within_tolerance(tie_tolerance(results, collective))
  if (all(tested == "tolerance")) return(paste0(" (", within, ")"))
  few <- where_few(filter(results$judged$launches, .data$collective == .env$collective))
  paste0(" (not significantly slower or, ", few, ", ", within, ")")
}

#' A sentence on the cells in which the default is slower, and not tied with the fastest algorithm; empty without any
#' @noRd
slower_words <- function(results, collective, never = FALSE) {
  winners <- decide_winners(results, collective)
  slower <- summarise_slowdown(1 + winners$default_regret_pct[winners$default_is %in% "slower"] / 100)
  if (slower$cells == 0) return("")
  where <- if (never) {
    " It"
  } else if (slower$cells == 1) {
    " In the other cell it"
  } else {
    paste0(" In the other ", format_count(slower$cells), " cells it")
  }
  shown <- unique(format_pct(c(slower$geometric_mean_pct, slower$mean_pct, slower$max_pct)))
  if (length(shown) == 1) return(paste0(where, " is ", shown, " slower."))
  paste0(
    where, " is slower by ",
    format_pct(slower$geometric_mean_pct), " (geometric mean; arithmetic mean ", format_pct(slower$mean_pct), ")",
    # A tenth of fewer cells is less than one.
    if (slower$cells >= 10) paste0(", by at least ", format_pct(slower$p90_pct), " in a tenth of them,"),
    " and by at most ", format_pct(slower$max_pct), "."
  )
}

#' The answer of a study that compares no algorithms
#' @noRd
answer_otherwise <- function(results) {
  scaling <- summarise_scaling(read_scaling(results))
  if (nrow(scaling) > 0) {
    return(lower_first(c(describe_speedup(scaling, simulated_note(results$study)), describe_communication(scaling))[1]))
  }
  ladder <- read_ladder(results)
  if (nrow(ladder) > 0) {
    said <- map_chr(each_library(ladder, function(own) describe_levels(results, own)[1]), 1)
    return(if (length(said) > 1) paste(said, collapse = " ") else lower_first(said))
  }
  "no cell has both the default and another algorithm."
}
