# What simulating the cells of a study took.

#' Seconds and memory of the simulator, by number of processes
#'
#' @param results List from [read_results()].
#' @return Tibble, one row per collective and number of processes: collective, processes, cells, median_seconds and
#'   max_seconds (wall time of a cell with the message sizes that the study asks for together), costliest (the algorithm
#'   that took the longest), peak_memory_mb (largest resident set of the simulator). No rows where nothing was
#'   simulated.
#' @noRd
summarise_simulation_cost <- function(results) {
  none <- tibble(
    collective = character(), processes = numeric(), cells = integer(), median_seconds = numeric(),
    max_seconds = numeric(), costliest = character(), peak_memory_mb = numeric()
  )
  if (!results$study$simulated) return(none)
  cells <- results$cells
  # A results folder of an earlier version lacks the columns.
  if (!all(c("seconds", "peak_memory_mb") %in% names(cells))) return(none)
  found <- cells |>
    filter(!is.na(.data$seconds), !.data$collective %in% c(point_to_point, applications)) |>
    group_by(.data$collective, .data$processes) |>
    summarise(
      cells = n(), median_seconds = median(.data$seconds), max_seconds = max(.data$seconds),
      costliest = .data$algorithm[which.max(.data$seconds)],
      peak_memory_mb = max(c(.data$peak_memory_mb, -Inf), na.rm = TRUE), .groups = "drop"
    )
  found$peak_memory_mb[found$peak_memory_mb < 0] <- NA # launches of an earlier version do not say it
  arrange(bind_rows(none, found), match(.data$collective, names(results$study$collectives)), .data$processes)
}

tables_of_simulation_cost <- function(results) {
  cost <- summarise_simulation_cost(results)
  if (nrow(cost) == 0) return(NULL)
  list(listed("simulation-cost", NULL, cost, paste(
    "Cost of the simulation by number of processes: wall time (s) of a cell with all message sizes of the study",
    "(on a possibly loaded computer), and the largest resident set (MB) of the simulator, in",
    "which all ranks are one process."
  )))
}

#' What simulating took, in a sentence
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
      format_number(max_seconds), " s (", collective_word(collective), ", ",
      label_algorithm(costliest, results$study, collective), ")"
    )
  })
  paste0(
    "Simulating a cell of ", format_number(most$processes[1], 6), " processes took at most ",
    and_list(unlist(costliest)),
    if (!anyNA(most$peak_memory_mb)) paste0(", and ", format_number(max(most$peak_memory_mb) / 1000), " GB"), "."
  )
}
