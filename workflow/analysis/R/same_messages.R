# Measurements of one algorithm under two names: the default, and the algorithm that it runs.

#' Give algorithms that send the same messages the same launches, each with the geometric mean of their latencies
#'
#' The default of Open MPI 4.1 runs algorithms that were measured by name, too (`runs` of measurements.csv). That one of
#' the two is faster is then noise, and the smaller time would favour it by chance.
#'
#' @param rows Tibble named by [name_rows()] or [name_variants()].
#' @return `rows`, in which all algorithms of a cell with the same messages have one row for each launch of any of them
#'   (of several authors' data, the nth launch of an author);
#'   twice: the logarithm of the default over that mean, scaled to the standard deviation of the logarithm of one
#'   latency (NA where a launch has only one).
#' @noRd
pool_same_messages <- function(rows) {
  if (all(is.na(rows$runs))) return(rows)
  names <- c("algorithm", cell_names)
  rows <- with_messages(rows)
  named <- distinct(rows[c("messages", names)])
  shared <- rows$messages %in% named$messages[duplicated(named$messages)]
  part <- rows[shared, ]
  launch <- vctrs::vec_group_id(part[launch_keys])
  logs <- rowsum(log(part$latency_us), launch)
  n <- tabulate(launch, nrow(logs))
  default <- match(seq_along(n), launch[part$algorithm == "default"])
  default <- log(part$latency_us[part$algorithm == "default"])[default]
  part <- part[!duplicated(launch), setdiff(names(part), names)]
  # Equal latencies stay equal: exp(log(x)) is x up to the last digits only.
  part$latency_us <- signif(exp(as.vector(logs) / n), 12)
  part$cell <- NA_character_
  part$twice <- ifelse(n > 1, (default - as.vector(logs) / n) / sqrt(1 - 1 / n), NA)
  bind_rows(rows[!shared, ], inner_join(part, named, by = "messages", relationship = "many-to-many"))
}

launch_keys <- c("messages", "source", "own_launch", "round")

#' Number of each launch among those of its author in its cell: imported launches are numbered over all authors
#' @param cell Names of the columns that tell the cells of an algorithm apart.
#' @noRd
own_launch <- function(rows, cell) {
  of_author <- rank_within(vctrs::vec_group_id(rows[c(cell, "source")]), rows$launch)
  ifelse(is.na(rows$source), rows$launch, of_author)
}

#' Add the number of the cell and messages of each row, and of its launch
#' @noRd
with_messages <- function(rows) {
  ran <- ifelse(is.na(rows$runs), paste(rows$algorithm_name, rows$parameters), paste0(rows$runs, " "))
  cell <- c("machine", "mpi", "collective", "mapping", "nodes", "processes", "size_bytes")
  rows$ran <- ran
  rows$messages <- vctrs::vec_group_id(rows[c(cell, "ran")])
  rows$own_launch <- own_launch(rows, c("messages", "algorithm"))
  mutate(rows, launch = as.integer(vctrs::vec_group_id(rows[c("source", "own_launch")])))
}

#' Difference between the default and the algorithm that it runs, measured by name in the same launch
#'
#' @param results List from [read_results()].
#' @return Tibble: machine, source, collective, mapping, cells, bias_pct (median of default / algorithm - 1),
#'   median_abs_difference_pct, p90_abs_difference_pct (larger / smaller - 1). Flagged rows take no part.
#' @noRd
summarise_same_messages <- function(results) {
  rows <- rows_in_place(results$rows)
  rows <- with_messages(rows[!rows$collective %in% point_to_point, ])
  place <- c("machine", "collective", "mapping", launch_keys)
  default <- rows[rows$algorithm == "default" & !is.na(rows$runs), c(place, "latency_us")]
  # Between two ranks, further names run the same algorithm.
  named <- rows[rows$algorithm != "default" & is.na(rows$runs), c(place, "latency_us")]
  inner_join(default, named, by = place, suffix = c("", "_named"), relationship = "many-to-many") |>
    mutate(
      ratio = .data$latency_us / .data$latency_us_named, difference = pmax(.data$ratio, 1 / .data$ratio) - 1
    ) |>
    group_by(.data$machine, .data$source, .data$collective, .data$mapping) |>
    summarise(
      cells = n_distinct(.data$messages), bias_pct = 100 * (median(.data$ratio) - 1),
      median_abs_difference_pct = 100 * median(.data$difference),
      p90_abs_difference_pct = 100 * unname(quantile(.data$difference, 0.9)), .groups = "drop"
    )
}

#' Sentences for captions that judge algorithms, on launches that are pooled; NULL where none are
#' @noRd
pooling_note <- function(results) {
  notes <- c(
    if (!all(is.na(results$rows$runs))) paste(
      "The default and the algorithm that it runs there by Open MPI's decision tables count as one, with the",
      "measurements of both, because they send the same messages."
    ),
    if (n_distinct(results$rows$source, na.rm = TRUE) > 1) {
      "Where several authors measured a cell, its algorithms are compared within the data of each author."
    }
  )
  if (length(notes) > 0) paste(notes, collapse = " ")
}

tables_of_same_messages <- function(results) {
  same <- summarise_same_messages(results)
  if (nrow(same) == 0) return(list())
  # Its name says nothing where it is the only one.
  if (n_distinct(same$machine) == 1) same <- select(same, -"machine")
  list(listed("import", "same-messages", same, paste(
    "Difference between the default and the algorithm that it runs by the decision tables of Open MPI 4.1, which the",
    "same author measured by name in the same cells. Both send the same messages, so these are differences between two",
    "runs, not between algorithms. Difference: larger / smaller latency - 1. Bias: median of default / algorithm - 1."
  )))
}

#' "; two runs of one algorithm differ by 2.0 to 10 % (medians)", where the default and the algorithm that it runs were
#' both measured; empty elsewhere
#' @noRd
two_runs <- function(results, collective) {
  same <- remember(results, "same messages", function() summarise_same_messages(results))
  same <- filter(same, .data$collective == .env$collective)
  if (nrow(same) == 0) return("")
  paste0(
    "; two runs of one algorithm differ by ", range_pct(same$median_abs_difference_pct),
    if (nrow(same) > 1) " (medians)" else " (median)"
  )
}

#' @param same Tibble from [summarise_same_messages()].
#' @noRd
describe_same_messages <- function(same) {
  if (nrow(same) == 0) return(NULL)
  differences <- same$median_abs_difference_pct
  paste0(
    "In ", count_of(sum(same$cells), "cell"), if (n_distinct(same$source) > 1) " (counted for each author)",
    " the default runs an algorithm that the same author also measured by ",
    "name. The two latencies differ by ", range_pct(differences), if (nrow(same) > 1) paste0(
      " (medians for each author, collective and mapping; median of these ", format_pct(median(differences)), ")"
    ), ", although the messages are the same: these are differences between two runs, not between algorithms. ",
    "Decisions and regret count the measurements of both for each."
  )
}
