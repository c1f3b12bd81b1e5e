#' Fit the log-linear plane of Table 2 of Zampar (2024) to latencies
#'
#' log(latency_us) = intercept + coef_log_size log(size_bytes) + coef_processes P, natural logarithms, least squares.
#'
#' @param results List from [read_results()].
#' @param collective Name of a collective with message sizes.
#' @return Tibble: algorithm, mapping, intercept, coef_log_size, coef_processes, r_squared, mape_pct (mean absolute
#'   error of the fitted latency in percent of the measured one, on the fitted cells).
#' @noRd
fit_loglinear <- function(results, collective) {
  rows <- rows_to_fit(results, collective)
  fit_groups(rows, fit_plane, no_planes())
}

no_planes <- function() {
  tibble(
    algorithm = character(), mapping = character(), intercept = numeric(), coef_log_size = numeric(),
    coef_processes = numeric(), r_squared = numeric(), mape_pct = numeric()
  )
}

rows_to_fit <- function(results, collective) {
  remember(results, paste("rows to fit", collective), function() find_rows_to_fit(results, collective))
}

find_rows_to_fit <- function(results, collective) {
  results$medians |>
    filter(.data$collective == .env$collective, is.na(.data$size_bytes) | .data$size_bytes > 0, .data$latency_us > 0) |>
    mutate(
      algorithm = algorithm_factor(.data$algorithm, results$study, .env$collective),
      mapping = mapping_factor(.data$mapping, results$study, .env$collective)
    ) |>
    arrange(.data$algorithm, .data$mapping, .data$processes, .data$size_bytes)
}

# Largest number of process counts with which models are fitted and judged. More hardly change the errors, and the cost
# grows with the square of the number of processes. Half as many would change the errors by 4 to 20 % (medians of two
# studies) and save less than a tenth of the time, because the cost of a fit hardly depends on its number of rows.
most_modelled <- 96

#' [rows_to_fit()] with at most `most_modelled` numbers of processes of each algorithm and mapping
#'
#' Process counts that most algorithms and mappings have are preferred, because models select the fastest of these;
#' among equals, they are spread evenly.
#' @noRd
rows_to_model <- function(results, collective) {
  rows <- rows_to_fit(results, collective)
  groups <- split(seq_len(nrow(rows)), list(rows$algorithm, rows$mapping), drop = TRUE)
  counts <- map(groups, function(at) sort(unique(rows$processes[at])))
  having <- table(unlist(counts))
  kept <- map2(groups, counts, function(at, counts) {
    chosen <- numeric()
    for (alike in rev(split(counts, having[as.character(counts)]))) {
      chosen <- c(chosen, spread_out(alike, most_modelled - length(chosen)))
    }
    at[rows$processes[at] %in% chosen]
  })
  rows[sort(unlist(kept, use.names = FALSE)), ]
}

#' Apply a fit to each algorithm and mapping; `none` is a tibble without rows that has the columns of the result
#' @noRd
fit_groups <- function(rows, fit, none) {
  found <- rows |>
    group_by(.data$algorithm, .data$mapping) |>
    group_modify(function(data, key) fit(data)) |>
    ungroup() |>
    mutate(across(c("algorithm", "mapping"), as.character))
  bind_rows(none, found[intersect(names(none), names(found))])
}

fit_plane <- function(data) {
  if (n_distinct(data$processes) < 2 || n_distinct(data$size_bytes) < 2 || nrow(data) < 4) return(tibble())
  fit <- lm(log(latency_us) ~ log(size_bytes) + processes, data)
  estimate <- unname(coef(fit))
  tibble(
    intercept = estimate[1], coef_log_size = estimate[2], coef_processes = estimate[3],
    r_squared = r_squared(log(data$latency_us), fitted(fit)), mape_pct = mape_pct(exp(fitted(fit)), data$latency_us)
  )
}

#' Share of the variance that a fit explains; NA for equal values, which have none
#' @noRd
r_squared <- function(observed, predicted) {
  if (diff(range(observed)) <= 1e-12 * max(abs(observed))) return(NA_real_)
  1 - sum((observed - predicted)^2) / sum((observed - mean(observed))^2)
}

#' Mean absolute error in percent of the observed values
#' @noRd
mape_pct <- function(predicted, observed) 100 * mean(abs(predicted / observed - 1))

#' The form that Zampar (2024, section 6) fits to each barrier algorithm
#' @noRd
barrier_forms <- c(linear = "linear", tree = "spline", recursive_doubling = "log_linear")

#' Fit a barrier model of Zampar (2024), Figures 9-11: latency against the number of processes
#'
#' `linear`: a + b P. `spline`: continuous and straight between the knots, a + b P + sum c_k max(0, P - k).
#' `log_linear`: a + b P + c log2 P. Least squares in microseconds.
#'
#' @param data Tibble with processes and latency_us of one algorithm and mapping.
#' @param form "linear", "spline" or "log_linear".
#' @param knots Process counts at which the slope of the spline may change; unusable ones are left out
#'   ([usable_knots()]).
#' @return An object of class lm.
#' @noRd
fit_barrier <- function(data, form = c("linear", "spline", "log_linear"), knots = numeric()) {
  form <- match.arg(form)
  knots <- usable_knots(data, knots)
  terms <- switch(form,
    linear = "processes",
    spline = c("processes", sprintf("pmax(processes - %s, 0)", format(knots, trim = TRUE)))[seq_len(1 + length(knots))],
    log_linear = c("processes", "log2(processes)")
  )
  lm(stats::reformulate(terms, "latency_us"), data)
}

#' Knots within the measured process counts; of knots that are less than two counts apart, the first
#' @noRd
usable_knots <- function(data, knots) {
  counts <- sort(unique(data$processes))
  knots <- knots[knots > min(counts) & knots < max(counts)]
  knots[!duplicated(findInterval(knots, counts[c(TRUE, FALSE)]))]
}

#' Coefficients of the barrier models with 95 % intervals
#'
#' @param results List from [read_results()].
#' @param collective Name of a collective without message sizes.
#' @return Tibble: algorithm, mapping, model (linear, spline, log_linear), chosen (TRUE for the form that the figures
#'   show: the published form for that algorithm, or else that with the smallest sum of AIC over the mappings, which one
#'   figure shows), term, estimate, low, high, r_squared, mape_pct. Terms are intercept (us), processes and
#'   after_<knot> (us per process; after_<knot> is the change of slope), log2_processes (us).
#' @noRd
fit_barriers <- function(results, collective) {
  remember(results, paste("fits of barriers", collective), function() fit_each_barrier(results, collective))
}

fit_each_barrier <- function(results, collective) {
  knots <- results$study$analysis$barrier_tree_knots
  rows <- filter(rows_to_fit(results, collective), .data$algorithm != "default")
  none <- tibble(
    algorithm = character(), mapping = character(), model = character(), aic = numeric(), term = character(),
    estimate = numeric(), low = numeric(), high = numeric(), r_squared = numeric(), mape_pct = numeric()
  )
  forms <- setNames(nm = c("linear", "spline", "log_linear"))
  found <- fit_groups(rows, function(data) {
    if (nrow(data) < length(knots) + 4) return(tibble())
    fits <- map(forms, function(form) fit_barrier(data, form, knots))
    map_dfr(fits, function(fit) mutate(barrier_terms(fit), aic = stats::AIC(fit)), .id = "model")
  }, none)
  best <- filter(found, .data$term == "intercept") |>
    group_by(.data$algorithm, .data$model) |>
    summarise(aic = sum(.data$aic), .groups = "drop_last") |>
    slice_min(.data$aic, n = 1, with_ties = FALSE)
  shown <- coalesce(
    unname(barrier_forms[name_of(results$study, collective, found$algorithm)]),
    best$model[match(found$algorithm, best$algorithm)]
  )
  mutate(found, chosen = .data$model == shown, aic = NULL, .after = "model")
}

#' 95 % confidence intervals of a linear model's coefficients
#'
#' Simulated points may lie exactly on a line. The intervals then have no width, and R's warning about a perfect fit is
#' suppressed; any other warning passes.
#' @noRd
confidence_intervals <- function(fit) {
  withCallingHandlers(stats::confint(fit), warning = function(condition) {
    if (startsWith(conditionMessage(condition), "essentially perfect fit")) tryInvokeRestart("muffleWarning")
  })
}

barrier_terms <- function(fit) {
  interval <- confidence_intervals(fit)
  names <- sub("^pmax\\(processes - ([0-9.]+), 0\\)$", "after_\\1", rownames(interval))
  names <- c("(Intercept)" = "intercept", "log2(processes)" = "log2_processes")[names] |> coalesce(names)
  observed <- stats::model.response(stats::model.frame(fit))
  tibble(
    term = unname(names), estimate = unname(coef(fit)), low = interval[, 1], high = interval[, 2],
    r_squared = r_squared(observed, fitted(fit)), mape_pct = mape_pct(fitted(fit), observed)
  )
}

#' Slopes between the knots of the tree barrier's spline, as in Table 4 of Zampar (2024)
#'
#' @param results List from [read_results()].
#' @param collective Name of a collective without message sizes.
#' @return Tibble: mapping, from_processes, to_processes, slope (us per process).
#' @noRd
fit_tree_slopes <- function(results, collective) {
  knots <- results$study$analysis$barrier_tree_knots
  rows <- filter(rows_to_fit(results, collective), .data$algorithm_name == "tree")
  none <- tibble(mapping = character(), from_processes = numeric(), to_processes = numeric(), slope = numeric())
  fit_groups(rows, function(data) {
    if (nrow(data) < length(knots) + 3) return(tibble())
    inner <- usable_knots(data, knots)
    tibble(
      from_processes = c(min(data$processes), inner), to_processes = c(inner, max(data$processes)),
      slope = cumsum(unname(coef(fit_barrier(data, "spline", inner)))[-1])
    )
  }, none)
}
