# A simulated machine that was fitted to runs on few nodes, judged on more of them, next to the predictions of an
# extrapolation study from the same runs.

simulated_words <- function() c(simulated = "simulation", extrapolation_words)

#' Latencies on more nodes than a machine was fitted to: simulated, and as the compared study predicts them
#'
#' @inheritParams compare_studies
#' @return Tibble as from [extrapolate()], with the model `simulated` and only the cells that were simulated; NULL
#'   unless `analysis.compare.fitted_up_to` is set and the compared study extrapolates.
#' @noRd
extrapolated_by_simulation <- function(results, measured) {
  limit <- results$study$analysis$compare[["fitted_up_to"]]
  if (is.null(limit) || !identical(measured$study$chapter, "extrapolation")) return(NULL)
  measured$study$ranks <- read_placements(measured$study$folder)
  measured$study$exchanges <- read_exchanges(measured$study$folder)
  keys <- c("collective", "algorithm", "processes", "size_bytes")
  simulated <- compare_studies(results, measured) |>
    filter(.data$algorithm != "default", .data$processes > limit) |>
    select(all_of(keys), latency_us = "measured_us", predicted_us = "simulated_us") |>
    mutate(fitted_up_to = limit, model = "simulated")
  # Without a run that is small enough, only the simulation predicts.
  known <- counted_cells(measured)$rows$processes
  if (!any(known <= limit)) return(simulated)
  bind_rows(simulated, semi_join(extrapolate(measured, limit), simulated, by = keys))
}

tables_of_extrapolated <- function(results, measured) {
  rows <- extrapolated_by_simulation(results, measured)
  if (NROW(rows) == 0) return(list())
  list(listed(
    "accuracy", "extrapolation", errors_of_extrapolation(rows, names(simulated_words())), paste(
      "Error of the latencies on more nodes than the machine was fitted to, |predicted / measured - 1|: simulated, and",
      "predicted from the same runs without a simulator, for the cells that were simulated and that a model can",
      "predict. Times: nodes over the most nodes of the fit. Bias: geometric mean of predicted / measured."
    )
  ))
}

figures_of_extrapolated <- function(results, measured) {
  rows <- extrapolated_by_simulation(results, measured)
  if (NROW(rows) == 0) return(list())
  list(figure(
    "accuracy", "extrapolation", plot_errors_by_nodes(
      errors_of_extrapolation(rows, names(simulated_words())), simulated_words()
    ), paste0(
      "Median error (points) and range to the 90th percentile (lines) over all simulated cells that a model can ",
      "predict; all were fitted to at most ", rows$fitted_up_to[1], " nodes. ", cells_differ, " Dotted: the target, ",
      extrapolation_target, " %. Errors of more than ", most_shown_error, " % are cut off."
    ), 9, 4.5
  ))
}

describe_extrapolated <- function(results, measured) {
  rows <- extrapolated_by_simulation(results, measured)
  if (NROW(rows) == 0) return(NULL)
  rows <- mutate(rows, error = 100 * abs(.data$predicted_us / .data$latency_us - 1))
  own <- filter(rows, .data$model == "simulated")
  near <- own$error[own$processes > 3.5 * own$fitted_up_to & own$processes < 4.5 * own$fitted_up_to]
  common <- rows |>
    group_by(.data$collective, .data$algorithm, .data$processes, .data$size_bytes) |>
    filter(n() == length(simulated_words())) |>
    ungroup()
  medians <- tapply(common$error, common$model, median)[names(simulated_words())]
  c(
    paste0(
      "Fitted to at most ", own$fitted_up_to[1], " nodes, the simulation predicts ",
      count_of(nrow(own), "cell"), " on ", range_text(own$processes),
      " nodes with an error of ", format_pct(median(own$error)),
      " in the median",
      if (length(near) > 0) paste0(
        "; at about four times the nodes of the fit it is ", format_pct(median(near)), " (", length(near), " cells, ",
        "target ", extrapolation_target, " %)"
      ), "."
    ),
    if (nrow(common) > 0) paste0(
      "On the ", nrow(common) / length(medians), " cells that all models can predict, the median error is ",
      and_list(paste0(format_pct(medians), " (", simulated_words(), ")")), "."
    )
  )
}
