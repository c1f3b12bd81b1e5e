# Time and memory that the simulation of a study's cells took.

#' The simulated cells with their time and memory
#'
#' @param results List from [read_results()].
#' @return Tibble of the cells of collectives: the columns of [read_cells()], sizes (number of message sizes of the
#'   cell) and seconds_per_size. No rows where nothing was simulated.
#' @noRd
timed_cells <- function(results) {
  cells <- results$cells
  # A results folder of an earlier version lacks the columns.
  if (!results$study$simulated || !all(c("seconds", "peak_memory_mb", "cell") %in% names(cells))) return(tibble())
  sizes <- count(distinct(results$rows, .data$cell, .data$size_bytes), .data$cell, name = "sizes")
  cells |>
    filter(!is.na(.data$seconds), !.data$collective %in% c(point_to_point, applications)) |>
    left_join(sizes, "cell") |>
    mutate(seconds_per_size = .data$seconds / .data$sizes)
}

#' Wall time and memory of the simulator, by number of processes
#'
#' @param results List from [read_results()].
#' @return Tibble, one row per collective and number of processes: collective, processes, cells, median_seconds and
#'   max_seconds (wall time of a cell with all its message sizes), costliest (the algorithm that took longest),
#'   max_seconds_per_size (largest wall time of a cell over its number of sizes), peak_memory_mb (largest resident set
#'   of the simulator). No rows where nothing was simulated.
#' @noRd
summarise_simulation_cost <- function(results) {
  none <- tibble(
    collective = character(), processes = numeric(), cells = integer(), median_seconds = numeric(),
    max_seconds = numeric(), costliest = character(), max_seconds_per_size = numeric(), peak_memory_mb = numeric()
  )
  cells <- timed_cells(results)
  if (nrow(cells) == 0) return(none)
  found <- cells |>
    group_by(.data$collective, .data$processes) |>
    summarise(
      cells = n(), median_seconds = median(.data$seconds), max_seconds = max(.data$seconds),
      costliest = .data$algorithm[which.max(.data$seconds)], max_seconds_per_size = max(.data$seconds_per_size),
      peak_memory_mb = max(c(.data$peak_memory_mb, -Inf), na.rm = TRUE), .groups = "drop"
    )
  found$peak_memory_mb[found$peak_memory_mb < 0] <- NA # launches of an earlier version do not say it
  arrange(bind_rows(none, found), match(.data$collective, names(results$study$collectives)), .data$processes)
}

#' How the cost of the simulation grows with the number of processes
#'
#' @param results List from [read_results()].
#' @return Tibble, one row per collective and algorithm with at least three numbers of processes, the costliest first:
#'   collective, algorithm, parameters, from_processes and to_processes, from_seconds and to_seconds (per message size,
#'   mean over the cells), exponent (of the number of processes: slope of the regression line of the logarithms).
#' @noRd
simulation_growth <- function(results) {
  cells <- timed_cells(results)
  if (nrow(cells) == 0 || all(is.na(cells$sizes))) return(tibble())
  grown <- cells |>
    filter(!is.na(.data$sizes)) |>
    group_by(.data$collective, .data$algorithm, .data$parameters, .data$processes) |>
    summarise(seconds = sum(.data$seconds) / sum(.data$sizes), .groups = "drop_last") |>
    filter(n() >= 3)
  if (nrow(grown) == 0) return(tibble())
  grown |>
    summarise(
      from_processes = min(.data$processes), to_processes = max(.data$processes),
      from_seconds = .data$seconds[which.min(.data$processes)], to_seconds = .data$seconds[which.max(.data$processes)],
      exponent = stats::cov(log(.data$processes), log(.data$seconds)) / stats::var(log(.data$processes)),
      .groups = "drop"
    ) |>
    arrange(desc(.data$to_seconds))
}

tables_of_simulation_cost <- function(results) {
  cost <- summarise_simulation_cost(results)
  if (nrow(cost) == 0) return(NULL)
  growth <- simulation_growth(results)
  c(
    list(listed("simulation-cost", NULL, cost, paste(
      "Cost of the simulation by number of processes: wall time (s) of a cell with all its message sizes (on a",
      "possibly loaded computer), largest wall time per message size, and largest resident set (MB) of the simulator,",
      "which runs all ranks in one process."
    ))),
    if (nrow(growth) > 0) list(listed("simulation-cost", "growth", growth, paste(
      "Growth of the simulation's cost: wall time (s) per message size with the fewest and the most processes (mean",
      "over the cells of an algorithm), and the exponent with which it grows with the number of processes. The cells",
      "of an algorithm may differ in message sizes and number of calls."
    )))
  )
}

#' Sentence on the time and memory of the simulation
#'
#' @inheritParams summarise_simulation_cost
#' @return Character vector; empty where nothing was simulated.
#' @noRd
describe_simulation_cost <- function(results) {
  cost <- summarise_simulation_cost(results)
  most <- filter(cost, .data$processes == max(.data$processes, -Inf))
  if (nrow(most) == 0) return(character())
  costliest <- pmap(most[c("costliest", "collective", "max_seconds")], function(costliest, collective, max_seconds) {
    paste0(
      format_number(max_seconds, 2), " s (", collective_word(collective), ", ",
      label_algorithm(costliest, results$study, collective), ")"
    )
  })
  paste0(
    "Simulating a cell with ", format_number(most$processes[1], 6), " processes took at most ",
    and_list(unlist(costliest)),
    if (!anyNA(most$peak_memory_mb)) {
      paste0(", and ", format_number(max(most$peak_memory_mb) / 1000, 2), " GB of memory")
    },
    ".", growth_sentence(results)
  )
}

growth_sentence <- function(results) {
  growth <- simulation_growth(results)
  if (nrow(growth) == 0) return(NULL)
  ends <- growth[unique(c(which.min(growth$exponent), which.max(growth$exponent))), ]
  of <- pmap(ends[c("exponent", "collective", "algorithm")], function(exponent, collective, algorithm) {
    paste0(
      format_number(exponent, 2), " (", collective_word(collective), ", ",
      label_algorithm(algorithm, results$study, collective), ")"
    )
  })
  paste0(
    " The time per message size grows as a power of the number of processes, with an exponent of ",
    paste(unlist(of), collapse = " to "), "."
  )
}
