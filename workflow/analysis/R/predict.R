#' Non-negative least squares (Lawson and Hanson 1974, chapter 23)
#'
#' @param a Matrix.
#' @param b Vector.
#' @return The vector x >= 0 that minimises |a x - b|.
#' @noRd
fit_nonnegative <- function(a, b) {
  x <- numeric(ncol(a))
  free <- logical(ncol(a))
  for (round in seq_len(10 * ncol(a))) {
    gradient <- drop(crossprod(a, b - a %*% x))
    gradient[free] <- -Inf
    if (max(gradient) <= 1e-9 * max(abs(b), 1)) break
    free[which.max(gradient)] <- TRUE
    step <- settle(a, b, x, free)
    x <- step$x
    free <- step$free
  }
  x
}

#' Least squares on the free columns; while some solutions are negative, step to the boundary and fix them at zero
#' @noRd
settle <- function(a, b, x, free) {
  while (any(free)) {
    solved <- stats::.lm.fit(a[, free, drop = FALSE], b)
    target <- numeric(length(x))
    target[which(free)[solved$pivot]] <- solved$coefficients
    if (all(target[free] > 0)) return(list(x = target, free = free))
    low <- free & target <= 0
    share <- min(ifelse(x[low] > 0, x[low] / (x[low] - target[low]), 0))
    x <- x + share * (target - x)
    free <- free & x > 1e-12
    x[!free] <- 0
  }
  list(x = x, free = free)
}

#' Fit the hop model
#'
#' For each message size, latency is the sum over the columns of [count_hops()] of count times a non-negative cost,
#' fitted by least squares on the relative error. Separate costs for each size need no assumption on protocol switches.
#'
#' @param data Tibble of one algorithm and mapping: processes, size_bytes, latency_us.
#' @param hops Matrix from [count_hops()] with a row for each process count of `data`.
#' @return Matrix of costs in us: one row per size (named), one column per column of `hops`.
#' @noRd
fit_hops <- function(data, hops) {
  row <- match(as.character(data$processes), rownames(hops))
  sizes <- split(seq_along(row), size_key(data$size_bytes))
  costs <- map(sizes, function(at) {
    fit_nonnegative(hops[row[at], , drop = FALSE] / data$latency_us[at], rep(1, length(at)))
  })
  matrix(unlist(costs), length(costs), byrow = TRUE, dimnames = list(names(costs), colnames(hops)))
}

#' Costs of the hop model, fitted to all cells
#'
#' @param results List from [read_results()].
#' @param collective Name of a collective.
#' @return Tibble: algorithm, mapping, size_bytes, term (a column of [count_hops()]), cost_us (per unit of the term).
#'   Terms with a cost of zero are left out.
#' @noRd
fit_hop_costs <- function(results, collective) {
  rows <- mutate(
    rows_to_model(results, collective), name = as.character(.data$algorithm), place = as.character(.data$mapping)
  )
  none <- tibble(
    algorithm = character(), mapping = character(), size_bytes = numeric(), term = character(), cost_us = numeric()
  )
  fit_groups(rows, function(data) {
    if (n_distinct(data$processes) < 4) return(tibble())
    hops <- count_hops(results$study, collective, data$name[1], data$place[1], unique(data$processes))
    if (is.null(hops)) return(tibble())
    costs <- fit_hops(data, hops)
    as_tibble(costs) |>
      mutate(size_bytes = if (anyNA(data$size_bytes)) NA_real_ else as.numeric(rownames(costs))) |>
      pivot_longer(-"size_bytes", names_to = "term", values_to = "cost_us") |>
      filter(.data$cost_us > 0)
  }, none)
}

size_key <- function(size) {
  size[is.na(size)] <- 0
  factor(size, sort(unique(size)))
}

# A predictor takes training rows, test rows (processes, size_bytes) and a context (study, algorithm, mapping, hops) and
# returns the predicted latency of each test row in us, or NULL if the model cannot be fitted.

predict_plane <- function(train, test, context) {
  sized <- n_distinct(train$size_bytes) > 1
  fit <- lm(if (sized) log(latency_us) ~ log(size_bytes) + processes else log(latency_us) ~ processes, train)
  exp(unname(predict(fit, test)))
}

predict_smooth <- function(train, test, context) {
  counts <- n_distinct(train$processes)
  sizes <- n_distinct(train$size_bytes)
  if (counts < 5) return(NULL)
  k <- c(min(12, sizes), min(7, counts - 1))
  # Some sizes of a study may have been measured at large numbers of processes only.
  if (sizes >= 5 && prod(k) > nrow(train)) return(NULL)
  formula <- if (anyNA(train$size_bytes)) {
    log(latency_us) ~ s(processes, k = k[2])
  } else if (sizes >= 5) {
    log(latency_us) ~ te(log2(size_bytes), processes, k = k)
  } else {
    log(latency_us) ~ log(size_bytes) + s(processes, k = k[2])
  }
  environment(formula) <- list2env(list(k = k), parent = asNamespace("mgcv"))
  exp(as.numeric(predict(mgcv::gam(formula, data = train), test)))
}

predict_interpolation <- function(train, test, context) {
  over_sizes(train, test, function(data, at) along_processes(data$processes, log(data$latency_us), at))
}

predict_last_value <- function(train, test, context) {
  over_sizes(train, test, function(data, at) along_processes(data$processes, log(data$latency_us), at, "constant"))
}

predict_hops <- function(train, test, context) {
  if (is.null(context$hops)) return(NULL)
  costs <- hop_costs(train, context)
  over_sizes(train, test, function(data, at) hop_line(data, at, costs, context))
}

#' [fit_hops()], computed once for all models with the same training rows
#' @noRd
hop_costs <- function(train, context) {
  fitted <- context$fitted
  if (is.null(fitted)) return(fit_hops(train, context$hops))
  if (is.null(fitted$costs)) fitted$costs <- fit_hops(train, context$hops)
  fitted$costs
}

predict_hops_anchored <- function(train, test, context) {
  if (is.null(context$hops)) return(NULL)
  costs <- hop_costs(train, context)
  over_sizes(train, test, function(data, at) {
    ratio <- log(data$latency_us) - hop_line(data, data$processes, costs, context)
    hop_line(data, at, costs, context) + along_processes(data$processes, ratio, at)
  })
}

predict_blend <- function(train, test, context) {
  if (is.null(context$hops)) return(NULL)
  sqrt(predict_hops(train, test, context) * predict_interpolation(train, test, context))
}

predict_barrier_form <- function(form) {
  function(train, test, context) {
    knots <- context$study$analysis$barrier_tree_knots
    pmax(unname(predict(fit_barrier(train, form, knots), test)), 0.01)
  }
}

#' Log of the hop model's latency; never below a thousandth of the smallest measured one
#' @noRd
hop_line <- function(data, at, costs, context) {
  cost <- costs[as.character(coalesce(data$size_bytes[1], 0)), ]
  log(pmax(drop(context$hops[as.character(at), , drop = FALSE] %*% cost), min(data$latency_us) / 1000))
}

#' Interpolate linearly between the known process counts, constant beyond them
#' @noRd
along_processes <- function(known, values, at, method = "linear") {
  if (length(known) == 1) return(rep(values, length(at)))
  if (is.unsorted(known, strictly = TRUE) || anyNA(values)) {
    return(approx(known, values, at, method = method, rule = 2)$y)
  }
  # The same as approx(), without the cost of its argument checks.
  left <- findInterval(at, known, all.inside = TRUE)
  right <- left + 1L
  share <- if (method == "linear") (at - known[left]) / (known[right] - known[left]) else 0
  found <- values[left] + (values[right] - values[left]) * share
  ifelse(at <= known[1], values[1], ifelse(at >= known[length(known)], values[length(known)], found))
}

#' Predict log latency against processes for each training size, then interpolate linearly in log size
#' @noRd
over_sizes <- function(train, test, line) {
  at <- sort(unique(test$processes))
  parts <- split(seq_len(nrow(train)), size_key(train$size_bytes))
  known <- as.numeric(names(parts))
  grid <- matrix(unlist(map(parts, function(rows) {
    line(list(
      processes = train$processes[rows], size_bytes = train$size_bytes[rows], latency_us = train$latency_us[rows]
    ), at)
  })), length(at))
  column <- match(coalesce(test$size_bytes, 0), known)
  row <- match(test$processes, at)
  value <- grid[cbind(row, column)]
  between <- which(is.na(column))
  if (length(between) == 0) return(exp(value))
  if (length(known) == 1) {
    value[between] <- grid[row[between], 1]
  } else {
    x <- log2(known)
    to <- log2(test$size_bytes[between])
    left <- findInterval(to, x, all.inside = TRUE)
    share <- pmin(pmax((to - x[left]) / (x[left + 1] - x[left]), 0), 1)
    low <- grid[cbind(row[between], left)]
    value[between] <- low + (grid[cbind(row[between], left + 1)] - low) * share
  }
  exp(value)
}

models_sized <- list(
  plane = predict_plane, smooth = predict_smooth, interpolation = predict_interpolation,
  last_value = predict_last_value,
  hops = predict_hops, hops_anchored = predict_hops_anchored, blend = predict_blend
)

models_unsized <- list(
  linear = predict_barrier_form("linear"), spline = predict_barrier_form("spline"),
  log_linear = predict_barrier_form("log_linear"), smooth = predict_smooth, interpolation = predict_interpolation,
  last_value = predict_last_value, hops = predict_hops, hops_anchored = predict_hops_anchored, blend = predict_blend
)

#' Decide which cells are held out, from the grid alone and before any fit
#'
#' Held out are every second process count (from the second on, never the last) with all its sizes, and every fourth
#' size (from the third on, never the last) at all process counts.
#'
#' @param data Tibble with processes and size_bytes.
#' @return Character vector, one per row: "" (fitted), "processes", "sizes" or "both".
#' @noRd
split_held_out <- function(data) {
  counts <- sort(unique(data$processes))
  sizes <- sort(unique(data$size_bytes))
  by_count <- data$processes %in% setdiff(counts[seq_along(counts) %% 2 == 0], utils::tail(counts, 1))
  by_size <- data$size_bytes %in% setdiff(sizes[seq_along(sizes) %% 4 == 3], utils::tail(sizes, 1))
  ifelse(by_count, ifelse(by_size, "both", "processes"), ifelse(by_size, "sizes", ""))
}

#' Errors of every model on cells that it was not fitted to
#'
#' @param results List from [read_results()].
#' @param collective Name of a collective.
#' @param detail Tibble from [summarise_model_detail()].
#' @return Tibble, one row per algorithm, mapping and model: collective, algorithm, mapping, model, held_out_cells,
#'   held_out_mape_pct (cells of [split_held_out()]), extrapolation_mape_pct (fitted on processes up to
#'   `analysis.extrapolation.fit_up_to`, judged above).
#' @noRd
summarise_model_errors <- function(results, collective, detail = summarise_model_detail(results, collective)) {
  detail |>
    mutate(across(c("algorithm", "mapping", "model"), function(x) factor(x, unique(x)))) |>
    group_by(.data$collective, .data$algorithm, .data$mapping, .data$model) |>
    summarise(
      held_out_cells = sum(.data$cells[.data$held_out != "extrapolation"]),
      held_out_mape_pct = mean_error(.data$mape_pct, .data$cells, .data$held_out != "extrapolation"),
      extrapolation_mape_pct = mean_error(.data$mape_pct, .data$cells, .data$held_out == "extrapolation"),
      .groups = "drop"
    ) |>
    mutate(across(c("algorithm", "mapping", "model"), as.character))
}

mean_error <- function(mape_pct, cells, use) {
  if (any(use)) sum(mape_pct[use] * cells[use]) / sum(cells[use]) else NA_real_
}

#' Errors of every model by the reason for which a cell was held out
#'
#' @inheritParams summarise_model_errors
#' @return Tibble: collective, algorithm, mapping, model, held_out (processes, sizes, both, extrapolation), cells,
#'   mape_pct.
#' @noRd
summarise_model_detail <- function(results, collective) {
  rows <- rows_to_model(results, collective)
  none <- tibble(
    algorithm = character(), mapping = character(), model = character(), held_out = character(), cells = integer(),
    mape_pct = numeric()
  )
  groups <- split(rows, list(rows$algorithm, rows$mapping), drop = TRUE)
  found <- map_dfr(groups, function(data) judge_models(data, results$study, collective))
  bind_rows(none, found) |> mutate(collective = .env$collective, .before = 1)
}

judge_models <- function(data, study, collective) {
  data$algorithm <- as.character(data$algorithm)
  data$mapping <- as.character(data$mapping)
  hops <- count_hops(study, collective, data$algorithm[1], data$mapping[1], unique(data$processes))
  context <- list(study = study, hops = hops)
  models <- if (anyNA(data$size_bytes)) models_unsized else models_sized
  beyond <- ifelse(data$processes > study$analysis$fit_up_to, "extrapolation", "")
  told <- list(
    "judged", data[c("processes", "size_bytes", "latency_us")], hops, study$analysis$barrier_tree_knots, beyond
  )
  recall(study, told, function() {
    bind_rows(judge_split(data, split_held_out(data), models, context), judge_split(data, beyond, models, context))
  }) |>
    mutate(algorithm = data$algorithm[1], mapping = data$mapping[1], .before = 1)
}

judge_split <- function(data, held_out, models, context) {
  train <- data[held_out == "", ]
  test <- data[held_out != "", ]
  if (length(unique(train$processes)) < 4 || nrow(test) == 0) return(tibble())
  reason <- held_out[held_out != ""]
  context$fitted <- new.env(parent = emptyenv())
  bind_rows(imap(models, function(model, name) {
    predicted <- model(train, test, context)
    if (is.null(predicted)) return(NULL)
    errors <- split(abs(predicted / test$latency_us - 1), reason)
    tibble(
      model = name, held_out = names(errors), cells = lengths(errors, use.names = FALSE),
      mape_pct = 100 * vapply(errors, mean, 0, USE.NAMES = FALSE)
    )
  }))
}
