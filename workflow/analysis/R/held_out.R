# Accuracy of models on the cells that they were not fitted to.

#' Predictions of every model for the held-out cells of a collective
#'
#' @param results List from [read_results()].
#' @param collective Name of a collective.
#' @return Tibble, one row per held-out cell, algorithm and model: collective, algorithm, mapping, model, processes,
#'   size_bytes, latency_us (measured), predicted_us. All models predict the same cells, those of [split_held_out()].
#' @noRd
predict_held_out <- function(results, collective) {
  rows <- rows_to_model(results, collective)
  if (nrow(rows) == 0) return(tibble())
  sized <- !anyNA(rows$size_bytes)
  statistical <- if (sized) {
    models_sized[c("plane", "interpolation", "hops", "blend")]
  } else {
    models_unsized[c("linear", "interpolation", "hops")]
  }
  models <- c(statistical, if (sized) models_of_messages)
  groups <- split(rows, list(rows$algorithm, rows$mapping), drop = TRUE)
  map_dfr(groups, function(data) {
    costs <- message_costs(results, mpi_of(results$study, collective, data$mapping[1]))
    predict_group(data, results$study, collective, costs, models)
  }) |>
    mutate(collective = .env$collective, .before = 1)
}

predict_group <- function(data, study, collective, costs, models) {
  study <- remembering(study)
  algorithm <- as.character(data$algorithm[1])
  mapping <- as.character(data$mapping[1])
  held_out <- split_held_out(data)
  train <- data[held_out == "", ]
  test <- data[held_out != "", ]
  if (n_distinct(train$processes) < 4 || nrow(test) == 0) return(tibble())
  context <- list(
    study = study, collective = collective, algorithm = algorithm, mapping = mapping, costs = costs,
    hops = count_hops(study, collective, algorithm, mapping, unique(data$processes)),
    fitted = new.env(parent = emptyenv())
  )
  bind_rows(imap(models, function(model, name) {
    predicted <- model(train, test, context)
    if (is.null(predicted)) return(NULL)
    known <- !is.na(predicted)
    tibble(
      model = name, algorithm = algorithm, mapping = mapping, processes = test$processes[known],
      size_bytes = test$size_bytes[known], latency_us = test$latency_us[known], predicted_us = predicted[known]
    )
  }))
}

#' Errors of all models, over all collectives of a study
#'
#' @param predictions Tibble from [predict_held_out()].
#' @param others Tibbles from [summarise_model_errors()]: errors of the other models on the same cells.
#' @return Tibble: collective, algorithm, mapping, model, held_out_cells, held_out_mape_pct.
#' @noRd
summarise_comparison <- function(predictions, others = NULL) {
  columns <- c("collective", "algorithm", "mapping", "model", "held_out_cells", "held_out_mape_pct")
  none <- tibble(
    collective = character(), algorithm = character(), mapping = character(), model = character(),
    held_out_cells = integer(), held_out_mape_pct = numeric()
  )
  if (nrow(predictions) > 0) {
    own <- predictions |>
      filter(.data$model %in% names(models_of_messages)) |>
      group_by(across(all_of(columns[1:4]))) |>
      summarise(
        held_out_cells = n(), held_out_mape_pct = mape_pct(.data$predicted_us, .data$latency_us), .groups = "drop"
      )
    none <- bind_rows(none, own)
  }
  others <- bind_rows(others)
  if (nrow(others) > 0) none <- bind_rows(others[columns], none)
  filter(none, .data$held_out_cells > 0) |>
    arrange(match(.data$collective, unique(.data$collective)), match(.data$algorithm, unique(.data$algorithm)),
            .data$mapping, .data$held_out_mape_pct)
}

#' Accuracy and regret of selecting algorithms by a model
#'
#' In each held-out cell, a model picks the algorithm with the lowest predicted latency, among the forced algorithms
#' that it covers (all but the default). Regret: measured slow-down (%) of the picked algorithm against the fastest of
#' all forced algorithms that any model covers; others (with too few process counts for a fit) may be faster.
#'
#' @param predictions Tibble from [predict_held_out()].
#' @param medians Tibble from [summarise_launches()].
#' @param tie_pct Picks within this percentage of the best count as right.
#' @return Tibble: collective, mapping, model, cells, algorithms (largest number that the model covers in a cell),
#'   pick_accuracy_pct, geometric_mean_regret_pct, mean_regret_pct, max_regret_pct; the model `library_default` is the
#'   library's own choice.
#' @noRd
summarise_selection <- function(predictions, medians, tie_pct = 2) {
  none <- tibble(
    collective = character(), mapping = character(), model = character(), cells = integer(), algorithms = integer(),
    pick_accuracy_pct = numeric(), geometric_mean_regret_pct = numeric(), mean_regret_pct = numeric(),
    max_regret_pct = numeric()
  )
  if (nrow(predictions) == 0) return(none)
  cell <- c("collective", "mapping", "processes", "size_bytes")
  forced <- predictions[predictions$algorithm != "default", ]
  algorithms <- distinct(forced[c(cell, "algorithm", "latency_us")])
  best <- distinct(algorithms[several(distinct(algorithms[c(cell, "algorithm")]), cell)[
    vctrs::vec_match(algorithms[c(cell, "algorithm")], distinct(algorithms[c(cell, "algorithm")]))
  ], ]) |>
    arrange(.data$latency_us) |>
    distinct(across(all_of(cell)), .keep_all = TRUE) |>
    select(all_of(cell), best_us = "latency_us")
  forced <- forced[vctrs::vec_in(forced[cell], best[cell]), ]
  if (nrow(forced) == 0) return(none)
  forced <- forced[several(forced, c(cell, "model")), ]
  id <- vctrs::vec_group_id(forced[c(cell, "model")])
  # The algorithm with the lowest predicted latency; the first one if there are several.
  least <- order(id, forced$predicted_us)
  least <- least[!duplicated(id[least])]
  picked <- mutate(forced[least, c(cell, "model", "latency_us")], algorithms = tabulate(id)[id[least]])
  default <- filter(medians, .data$algorithm == "default") |>
    transmute(.data$collective, .data$mapping, .data$processes, .data$size_bytes, .data$latency_us,
              model = "library_default", algorithms = 1L)
  bind_rows(picked, default) |>
    inner_join(best, by = cell) |>
    mutate(regret = 100 * (.data$latency_us / .data$best_us - 1)) |>
    group_by(.data$collective, .data$mapping, .data$model) |>
    summarise(
      cells = n(), algorithms = max(.data$algorithms), pick_accuracy_pct = 100 * mean(.data$regret <= tie_pct),
      geometric_mean_regret_pct = geometric_regret(.data$regret), mean_regret_pct = mean(.data$regret),
      max_regret_pct = max(.data$regret), .groups = "drop"
    ) |>
    arrange(match(.data$collective, unique(.data$collective)), .data$mapping, .data$geometric_mean_regret_pct)
}
