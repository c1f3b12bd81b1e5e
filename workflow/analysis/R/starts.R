# Synchronised starts: the same cells with calls after a barrier (OMB's loop) and in time windows of synchronised clocks
# (collbench -w).

windows_suite <- "collbench-windows"

#' Latency after a barrier against latency in windows
#'
#' @param results List from [read_results()]; rows of the suite `collbench-windows` were measured in windows.
#' @return Tibble, one row per cell and message size that was measured in both ways: collective, algorithm, mpi,
#'   mapping, nodes, processes, size_bytes, barrier_us and window_us (median over launches of the mean over ranks, as
#'   OMB reports), bias_pct (barrier over window), late_pct (share of the calls in windows that were dropped, because a
#'   rank started late).
#' @noRd
summarise_starts <- function(results) {
  cell <- c("collective", "algorithm", "mpi", "mapping", "nodes", "processes", "size_bytes")
  rows <- mutate(name_variants(results$rows), windows = .data$suite == windows_suite)
  rows |>
    filter(!is.na(.data$latency_us)) |>
    group_by(across(all_of(cell))) |>
    filter(any(.data$windows), any(!.data$windows)) |>
    summarise(
      barrier_us = median(.data$latency_us[!.data$windows]), window_us = median(.data$latency_us[.data$windows]),
      late_pct = 100 * sum(.data$late[.data$windows]) / sum((.data$late + .data$iterations)[.data$windows]),
      .groups = "drop"
    ) |>
    mutate(bias_pct = 100 * (.data$barrier_us / .data$window_us - 1), .before = "late_pct")
}

#' The algorithm that is the fastest after a barrier, and in windows; of several, one that is also fast in the other way
#' @noRd
fastest_by_start <- function(rows) {
  rows |>
    group_by(across(all_of(c("collective", "mpi", "mapping", "nodes", "processes", "size_bytes")))) |>
    filter(n() > 1) |>
    summarise(
      barrier = .data$algorithm[order(.data$barrier_us, .data$window_us)[1]],
      window = .data$algorithm[order(.data$window_us, .data$barrier_us)[1]],
      # Additional time, in windows, of the algorithm that is the fastest after a barrier.
      costs_pct = 100 * (.data$window_us[.data$algorithm == .data$barrier] / min(.data$window_us) - 1), .groups = "drop"
    )
}

tables_starts <- function(results) {
  rows <- summarise_starts(results)
  if (n_distinct(rows$mpi) == 1) rows <- select(rows, -"mpi")
  list(listed("starts", "bias", rows, paste0(
    "Latency (\u00b5s; mean over ranks) of calls after a barrier and in time windows of synchronised clocks, how much ",
    "longer the former is (bias, in % of the latter), and ",
    "the share of the calls in windows that were dropped because a rank started late."
  )))
}

figures_starts <- function(results) {
  rows <- filter(summarise_starts(results), !is.na(.data$size_bytes))
  map(unique(rows$collective), function(collective) {
    own <- rows[rows$collective == collective, ]
    figure(
      "starts", collective, plot_starts(results, own, collective), paste0(
        "Latency after a barrier over latency in windows: ", collective_word(collective),
        ". Above 1, the barrier's exit skew adds to the latency; below 1, it hides part of the latency."
      ), 9, 2.2 + 2.3 * ceiling(n_distinct(own$mpi, own$nodes, own$processes, own$mapping) / 2)
    )
  })
}

plot_starts <- function(results, rows, collective) {
  rows <- name_places(rows, results)
  if (n_distinct(rows$mpi) > 1) rows$place <- paste0(mpi_label(rows$mpi), ", ", rows$place)
  ggplot(rows, aes(.data$size_bytes, .data$barrier_us / .data$window_us)) +
    geom_hline(yintercept = 1, colour = "grey40") +
    geom_line(aes(colour = .data$algorithm), linewidth = 0.4) +
    geom_point(aes(colour = .data$algorithm, shape = .data$algorithm), size = 1.8) +
    facet_wrap(vars(.data$place), ncol = 2) +
    scale_algorithm(results, collective, rows$algorithm) +
    scale_x_size() +
    scale_y_log10() +
    labs(
      title = paste0(collective_title(collective), ": latency after a barrier over latency in windows"),
      y = "Latency, barrier / window"
    ) +
    theme_study()
}

#' Sentences on the effect of the barrier
#' @noRd
describe_starts <- function(results) {
  rows <- summarise_starts(results)
  if (nrow(rows) == 0) return(NULL)
  c(describe_bias(rows), describe_other_winners(fastest_by_start(rows)), paste0(
    "In the mean over the cases, ", format_pct(mean(rows$late_pct)), " of the calls in windows were dropped because a ",
    "rank started late (at most ", format_pct(max(rows$late_pct)), " in a case)."
  ))
}

describe_bias <- function(rows) {
  paste0(
    "Over ", count_of(nrow(rows), "case"), " (algorithm, ranks, message size), the latency after a barrier is ",
    format_times(geometric_mean(rows$barrier_us / rows$window_us)), " that in windows in the geometric mean (",
    format_times(min(rows$barrier_us / rows$window_us)), " to ", format_times(max(rows$barrier_us / rows$window_us)),
    ")."
  )
}

describe_other_winners <- function(fastest) {
  if (nrow(fastest) == 0) return(NULL)
  other <- fastest[fastest$barrier != fastest$window, ]
  paste0(
    "Both methods find the same fastest algorithm in ", nrow(fastest) - nrow(other), " of ",
    count_of(nrow(fastest), "case"), if (nrow(other)) paste0(
      "; in the others, the algorithm that is the fastest after a barrier is, in windows, ",
      format_pct(stats::median(other$costs_pct)), " slower in the median and ", format_pct(max(other$costs_pct)),
      " at most"
    ), "."
  )
}

describe_starts_answer <- function(results) {
  rows <- summarise_starts(results)
  if (nrow(rows)) paste0(study_name(results), ": ", describe_bias(rows))
}
