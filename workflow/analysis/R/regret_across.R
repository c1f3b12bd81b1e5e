# Regret of decisions on data that were not used to decide: decided on one author's data and judged on another's, or
# decided on all process counts but one and judged on that one.

#' Regret of a study's decisions on data that were not used to decide
#'
#' With several sources that measured the default, rules are decided on each source, and on all others together, and
#' judged on each other one, among the algorithms that both measured. With one source, each process count but the
#' first and the last of a collective and mapping is judged with the rules decided on all other counts (at most 64,
#' `most_left_out`, evenly spread).
#'
#' @param results List from [read_results()].
#' @return Tibble: decided_on, judged_on, collective, mapping (and processes per node, where these vary; `all`: every
#'   mapping), policy (default, best-single, tuned), geometric_mean_pct, mean_pct, median_pct, p90_pct, p99_pct, cells.
#'   All policies are judged on the same cells.
#' @noRd
summarise_regret_across <- function(results) {
  rows <- rows_in_place(results$rows)
  sources <- sort(unique(rows$source[rows$algorithm == "default" & !is.na(rows$source)]))
  collectives <- setdiff(unique(rows$collective), c(point_to_point, applications))
  found <- if (length(sources) > 1) {
    everyone <- unique(rows$source[!is.na(rows$source)])
    pairs <- tidyr::expand_grid(decided_on = c(sources, if (length(everyone) > 2) all_others), judged_on = sources)
    pairs <- pairs[pairs$decided_on != pairs$judged_on, ]
    pmap(pairs, function(decided_on, judged_on) {
      deciding <- if (decided_on == all_others) setdiff(everyone, judged_on) else decided_on
      map(collectives, function(collective) {
        cells <- across_sources(rows, results$study, collective, deciding, judged_on)
        if (!is.null(cells)) mutate(cells, decided_on = .env$decided_on)
      })
    })
  } else {
    map(collectives, function(collective) across_counts(rows, results$study, collective))
  }
  cells <- bind_rows(found)
  if (nrow(cells) == 0) return(no_regret_across())
  bind_rows(mutate(cells, mapping = "all"), cells) |>
    group_by(.data$decided_on, .data$judged_on, .data$collective, .data$mapping, .data$policy) |>
    summarise(regret = summarise_slowdown(.data$slowdown), .groups = "drop") |>
    tidyr::unpack("regret") |>
    select(all_of(names(no_regret_across()))) |>
    arrange(.data$decided_on, .data$judged_on, .data$collective, .data$mapping != "all", .data$mapping, .data$policy)
}

all_others <- "all other authors"

# With a single source: each process count is judged by rules from all others.
the_other_counts <- "the other counts"

no_regret_across <- function() {
  tibble(
    decided_on = character(), judged_on = character(), collective = character(), mapping = character(),
    policy = character(), geometric_mean_pct = numeric(), mean_pct = numeric(), median_pct = numeric(),
    p90_pct = numeric(), p99_pct = numeric(), cells = integer()
  )
}

#' Unflagged rows with a latency; `mapping` includes the processes per node if a mapping was measured with several, and
#' the MPI library if there is a collective with several
#' @noRd
rows_in_place <- function(rows) {
  sound <- !is.na(rows$latency_us) & rows$latency_us > 0 & (is.na(rows$flag) | rows$flag == "")
  rows <- name_variants(keep_rows(rows, sound))
  rows$ppn <- rows$processes / rows$nodes
  # Few processes on a fixed number of nodes are the same placement; fewer processes per node on more nodes are not.
  vary <- function(column) varies(rows, c("collective", "mapping"), column)
  ppn <- ifelse(vary("nodes") & vary("ppn"), rows$ppn, NA)
  mpi <- if (any(varies(rows, "collective", "mpi"))) rows$mpi else NA
  mutate(rows, mapping = name_mapping(.data$mapping, ppn = .env$ppn, mpi = .env$mpi))
}

#' @param decided_on,judged_on Names of sources, one or several.
#' @noRd
across_sources <- function(rows, study, collective, decided_on, judged_on) {
  rows <- rows[rows$collective == collective, ]
  of <- function(source) rows[rows$source %in% source, ]
  # Mappings that only one source measured cannot be decided or cannot be judged.
  rows <- rows[rows$mapping %in% intersect(of(decided_on)$mapping, of(judged_on)$mapping), ]
  both <- intersect(of(decided_on)$algorithm, of(judged_on)$algorithm)
  if (!"default" %in% both || length(both) < 2) return(NULL)
  part <- function(source) {
    here <- of(source)
    pooled <- pool_same_messages(here[here$algorithm %in% both, ])
    list(study = study, judged = list(medians = summarise_launches(within_sources(pooled))))
  }
  decider <- part(decided_on)
  judge <- part(judged_on)
  counts <- tuning_counts(decider$judged$medians, collective)
  if (length(counts) == 0) return(NULL)
  split <- list(decide = counts, judge = tuning_counts(judge$judged$medians, collective))
  mutate(policy_cells(decider, collective, split, judge), judged_on = judged_on, collective = collective)
}

most_left_out <- 64

across_counts <- function(rows, study, collective) {
  rows <- rows[rows$collective == collective, ]
  bind_rows(map(unique(rows$mapping), function(mapping) {
    medians <- summarise_launches(within_sources(pool_same_messages(rows[rows$mapping == mapping, ])))
    counts <- tuning_counts(medians, collective)
    between <- spread_out(counts[-c(1, length(counts))], most_left_out)
    if (length(between) == 0) return(NULL)
    known <- with_slowdown(medians, collective, counts)
    single <- map_chr(between, function(count) best_single(known, known$processes != count))
    tuned <- decide_left_out(medians[medians$processes %in% counts, ], between, study)
    compare_policies(
      known[known$processes %in% between, ], mutate(tuned, mapping = .env$mapping),
      function(processes) single[match(processes, between)]
    ) |>
      mutate(
        decided_on = the_other_counts, judged_on = "each count",
        collective = .env$collective
      )
  }))
}

tables_across <- function(results) {
  if (is.null(results$study$import)) return(list())
  across <- summarise_regret_across(results)
  if (nrow(across) == 0) return(list())
  list(listed("regret-across", NULL, across, paste(
    "Regret of decisions on data that were not used to decide. Policies: the library's default, the tuned rules, and",
    "the best single algorithm (other than the default) of the deciding data. With several authors, only algorithms",
    "that both the deciding and the judging one measured take part; with a single author, each process count between",
    "the smallest and the largest is left out in turn (at most", most_left_out, "of them, evenly spread).",
    "All policies are judged on the same cells.", pooling_note(results), slowdown_note
  )))
}

#' How rules were decided and tested, in words
#' @noRd
across_words <- function(decided_on, judged_on) {
  ifelse(
    decided_on == the_other_counts,
    "rules tested on each process count between the smallest and the largest, decided on all others",
    paste("rules decided on the measurements of", decided_on, "and tested on those of", judged_on)
  )
}

#' Sentences on the results of [summarise_regret_across()]
#' @noRd
describe_across <- function(results) {
  if (is.null(results$study$import)) return(NULL)
  across <- filter(results$tables[["regret-across"]] %||% summarise_regret_across(results), .data$mapping == "all")
  if (nrow(across) == 0) return(NULL)
  wide <- across |>
    select("decided_on", "judged_on", "collective", "policy", "geometric_mean_pct", "cells") |>
    pivot_wider(names_from = "policy", values_from = "geometric_mean_pct")
  paste0(
    collective_title(wide$collective), ", ", across_words(wide$decided_on, wide$judged_on), " (",
    format_number(wide$cells, 6), " cells): the rules are ", format_pct(wide$tuned), " slower than the best ",
    ifelse(wide$decided_on == the_other_counts, "measured algorithm", "algorithm that both measured"),
    ", the default ", format_pct(wide$default), " (geometric means)."
  )
}
