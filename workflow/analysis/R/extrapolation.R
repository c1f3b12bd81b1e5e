# Extrapolation from few nodes to many: message costs are fitted to all algorithms and collectives on few nodes
# together, and predict the latencies on more nodes. One rank per node. These costs of calls are not the costs of a
# simulated machine (workflow/collstudy/calibration/exchanges.py): there are none for first messages to a partner and
# for new pages there, and the simulator adds its own.

#' The steps of an algorithm: messages that every rank sends, and the distance to the receiver
#'
#' Beyond a power of two, the first pairs of ranks fold before and after. Other algorithms that the library runs instead
#' for too small sizes are left out.
#'
#' @param size Message size as benchmarks count it (B; for allgather, the part of one rank).
#' @return Tibble, one row per kind of step: `bytes` of a message, `distance` between the ranks (1: the next rank,
#'   else the partner differs in this bit), `times`, `combines` (the receiver reduces). NULL where they are not known.
#' @noRd
steps_of_call <- function(study, mpi, collective, algorithm, processes, size) {
  steps <- exchange_of(study, mpi, collective, variant_of(study, collective, algorithm), processes)
  if (is.na(size)) return(NULL)
  steps <- steps[steps$from_bytes <= size & size < steps$to_bytes & steps$partner != "call", ]
  if (NROW(steps) == 0) return(NULL)
  mutate(steps, bytes = .env$size * .data$share)
}

#' Size of the temporary vectors whose pages are new in each call: glibc returns vectors above 32 MiB to the system when
#' they are freed (mallopt(3), M_MMAP_THRESHOLD)
#' @return Bytes.
#' @noRd
fresh_bytes <- function(collective, algorithm, processes, size) {
  vectors <- switch(paste(collective, algorithm),
    "reduce_scatter ring" = size * c(1, 1 / processes, 1 / processes),
    "reduce_scatter recursive_halving" = size * c(1, 1),
    "allreduce ring" = size / processes * c(1, 1),
    "allreduce recursive_doubling" = , "allreduce rabenseifner" = size,
    0
  )
  sum(vectors[vectors > 2^25])
}

# Upper ends (B) of the ranges of message sizes in which a byte has its own cost.
byte_ranges <- c(2^c(11, 14, 17, 20), Inf)

cost_words <- c(
  messages = "a message", partners = "the first message to a partner", crossing = "a message to another group",
  summed = "a byte that is reduced", fresh = "a byte of a temporary vector of more than 32 MiB"
)

#' Count the messages and bytes of a call: the columns of the message model
#' @return Numeric vector named by the counted quantity; NULL if the algorithm or its placement is not known.
#' @noRd
count_messages <- function(study, collective, algorithm, mapping, processes, size) {
  steps <- steps_of_call(study, mpi_of(study, collective, mapping), collective, algorithm, processes, size)
  place <- place_ranks(study, collective, mapping, processes)
  if (is.null(steps) || is.null(place)) return(NULL)
  crossing <- map_dbl(seq_len(nrow(steps)), function(i) crossing_share(study, place, steps[i, ]))
  ends <- c(0, byte_ranges)
  ranges <- map_dbl(seq_along(byte_ranges), function(i) {
    sum(steps$times * pmax(pmin(steps$bytes, ends[i + 1]) - ends[i], 0))
  })
  c(
    messages = sum(steps$times), partners = n_distinct(steps$distance), crossing = sum(steps$times * crossing),
    setNames(ranges, paste0("bytes_to_", byte_ranges)), summed = sum((steps$times * steps$bytes)[steps$combines]),
    fresh = fresh_bytes(collective, algorithm, processes, size)
  )
}

#' Share of the messages of a step that go to a different unit of the outermost level
#' @noRd
crossing_share <- function(study, place, step) {
  who <- step[c("partner", "distance", "first", "last", "every", "stays", "pairs")]
  remember(study, paste("crossing", rlang::hash(list(who, place[, 1])), sep = "\r"), function() {
    ends <- ends_of(step, nrow(place))
    mean(place[ends$from + 1, 1] != place[ends$to + 1, 1])
  })
}

#' Fit non-negative costs that make the sum of |log(predicted / measured)| small
#'
#' Six iterations of least squares on the relative error, with weights from the previous errors.
#' @param counts Matrix, one row per cell.
#' @param latency Vector (us).
#' @return Named vector: cost in us per unit of each column.
#' @noRd
fit_call_costs <- function(counts, latency) {
  scale <- pmax(apply(counts, 2, max), 1e-12)
  scaled <- sweep(counts, 2, scale, "/")
  weight <- 1 / latency
  for (round in 1:6) {
    cost <- fit_nonnegative(scaled * weight, latency * weight)
    predicted <- pmax(drop(scaled %*% cost), 1e-3)
    weight <- 1 / sqrt(predicted * latency * pmax(abs(log(predicted / latency)), 0.1))
  }
  cost / scale
}

#' Cells with the counts of [count_messages()]
#' @return List: `rows` (collective, algorithm, processes, size_bytes, latency_us) and `counts` (matrix, a row for
#'   each).
#' @noRd
counted_cells <- function(results) remember(results, "counted cells", function() count_cells(results))

count_cells <- function(results) {
  rows <- mutate(
    results$medians[c("collective", "algorithm", "mapping", "processes", "size_bytes", "latency_us")],
    across(c("collective", "algorithm", "mapping"), as.character)
  )
  counts <- pmap(rows[1:5], function(collective, algorithm, mapping, processes, size_bytes) {
    count_messages(results$study, collective, algorithm, mapping, processes, size_bytes)
  })
  known <- !map_lgl(counts, is.null)
  list(rows = rows[known, ], counts = do.call(rbind, counts[known]), left_out = distinct(rows[!known, 1:2]))
}

#' Numbers of nodes up to which models are fitted: that of the study (`fit_up_to`), and every larger measured one but
#' the largest
#' @noRd
fitting_limits <- function(results) {
  counts <- sort(unique(counted_cells(results)$rows$processes))
  limit <- results$study$analysis$fit_up_to
  c(limit, counts[counts > limit & counts < max(counts)])
}

#' Predictions for more nodes than the models were fitted to
#'
#' `messages` is the message model. The other models need latencies of the same algorithm at the same size (interpolated
#' linearly in the logarithms; outside the measured sizes, the nearest): `last_value` is the latency on the most nodes
#' of the fit, `messages_anchored` the message model scaled by its error there, `log_linear` a line through log latency
#' against log nodes, which needs two numbers of nodes.
#'
#' @param results List from [read_results()] of a study with one rank per node.
#' @param fit_up_to Most nodes of the fit.
#' @return Tibble: fitted_up_to, collective, algorithm, processes, size_bytes, latency_us, model, predicted_us.
#' @noRd
extrapolate <- function(results, fit_up_to) {
  cells <- counted_cells(results)
  fitted <- cells$rows$processes <= fit_up_to
  cost <- fit_call_costs(cells$counts[fitted, , drop = FALSE], cells$rows$latency_us[fitted])
  cells$rows$model_us <- drop(cells$counts %*% cost)
  known <- cells$rows[fitted, ]
  beyond <- cells$rows[!fitted, ]
  each <- pmap(beyond[c("collective", "algorithm", "processes", "size_bytes")], extrapolate_latency, known = known)
  beyond |>
    mutate(
      fitted_up_to = fit_up_to, messages = .data$model_us,
      messages_anchored = .data$model_us * map_dbl(each, "wrong_by"),
      last_value = map_dbl(each, "last_value"), log_linear = map_dbl(each, "log_linear")
    ) |>
    pivot_longer(all_of(names(extrapolation_words)), names_to = "model", values_to = "predicted_us") |>
    filter(!is.na(.data$predicted_us)) |>
    select("fitted_up_to", "collective", "algorithm", "processes", "size_bytes", "latency_us", "model", "predicted_us")
}

extrapolate_latency <- function(collective, algorithm, processes, size_bytes, known) {
  same <- known[known$collective == collective & known$algorithm == algorithm, ]
  counts <- sort(unique(same$processes))
  if (length(counts) == 0) return(list(last_value = NA_real_, log_linear = NA_real_, wrong_by = NA_real_))
  at_size <- function(count, value) {
    one <- same[same$processes == count, ]
    one <- one[order(one$size_bytes), ]
    along_processes(log(one$size_bytes), log(value(one)), log(size_bytes))
  }
  latency <- map_dbl(counts, at_size, function(one) one$latency_us)
  line <- if (length(counts) > 1) stats::coef(stats::lm.fit(cbind(1, log(counts)), latency))
  list(
    last_value = exp(utils::tail(latency, 1)),
    log_linear = if (is.null(line)) NA_real_ else exp(sum(line * c(1, log(processes)))),
    wrong_by = exp(at_size(max(counts), function(one) one$latency_us / one$model_us))
  )
}

#' Costs of the message model
#' @return Tibble: fitted_up_to, term (see `cost_words`; `bytes_to_N`: a byte of a message in the range that ends at N),
#'   cost_ns, cells (of the fit).
#' @noRd
summarise_message_costs <- function(results) {
  cells <- counted_cells(results)
  map_dfr(fitting_limits(results), function(limit) {
    fitted <- cells$rows$processes <= limit
    cost <- fit_call_costs(cells$counts[fitted, , drop = FALSE], cells$rows$latency_us[fitted])
    tibble(fitted_up_to = limit, term = names(cost), cost_ns = 1000 * unname(cost), cells = sum(fitted))
  })
}

extrapolations <- function(results) {
  remember(results, "extrapolations", function() {
    map_dfr(fitting_limits(results), function(limit) extrapolate(results, limit))
  })
}

#' Errors of the predictions for more nodes
#'
#' @return Tibble, one row per limit of the fit, collective, algorithm (`all`: both together), number of nodes (NA: all)
#'   and model: fitted_up_to, collective, algorithm, processes, times (processes / fitted_up_to), model, cells,
#'   median_abs_error_pct, p90_abs_error_pct, bias (geometric mean of predicted / measured).
#' @noRd
summarise_extrapolation <- function(results) {
  remember(results, "extrapolation errors", function() errors_of_extrapolation(extrapolations(results)))
}

errors_of_extrapolation <- function(rows, models = names(extrapolation_words)) {
  all <- mutate(rows, collective = "all", algorithm = "all")
  bind_rows(all, mutate(all, processes = NA), rows, mutate(rows, processes = NA)) |>
    mutate(ratio = .data$predicted_us / .data$latency_us) |>
    group_by(.data$fitted_up_to, .data$collective, .data$algorithm, .data$processes, .data$model) |>
    summarise(
      times = .data$processes[1] / .data$fitted_up_to[1], cells = n(),
      median_abs_error_pct = 100 * median(abs(.data$ratio - 1)),
      p90_abs_error_pct = 100 * unname(quantile(abs(.data$ratio - 1), 0.9)), bias = geometric_mean(.data$ratio),
      .groups = "drop"
    ) |>
    relocate("times", .after = "processes") |>
    arrange(
      .data$fitted_up_to, .data$collective != "all", .data$collective, .data$algorithm, !is.na(.data$processes),
      .data$processes, match(.data$model, models)
    )
}

#' Time of one step of the ring algorithms, with messages of at most 64 B
#'
#' @return Tibble: collective, processes, steps, crossing_pct (of its messages between groups), step_us (median over
#'   sizes).
#' @noRd
summarise_ring_steps <- function(results) {
  cells <- counted_cells(results)
  cells$rows |>
    mutate(
      steps = cells$counts[, "messages"], crossing_pct = 100 * cells$counts[, "crossing"] / .data$steps,
      bytes = ifelse(.data$collective == "allgather", .data$size_bytes, .data$size_bytes / .data$processes)
    ) |>
    filter(.data$algorithm == "ring", .data$bytes <= 64) |>
    group_by(.data$collective, .data$processes, .data$steps, .data$crossing_pct) |>
    summarise(step_us = median(.data$latency_us / .data$steps), .groups = "drop")
}
