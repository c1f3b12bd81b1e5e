# Strong scaling of applications: time to solution against the number of processes, and a model of that time.

# As APPLICATIONS in collstudy/study/names.py
applications <- "svd"

#' The runs of a study's applications
#'
#' @param results List from [read_results()].
#' @return Tibble, one row per application, problem size, number of processes, of nodes and MPI library: application,
#'   mapping and mapped (as [name_rows()] names them), n, processes, launches, seconds (median over launches of the time
#'   to solution), comm_pct (share of that time in communication calls, waiting included, mean over the ranks), sweeps,
#'   flops (of the whole run), residual. Empty where the study runs no application.
#' @noRd
read_scaling <- function(results) {
  none <- tibble(
    application = character(), mapping = character(), mapped = character(), n = numeric(), processes = numeric(),
    launches = integer(), seconds = numeric(), comm_pct = numeric(), sweeps = numeric(), flops = numeric(),
    residual = numeric()
  )
  if (!any(names(results$study$collectives) %in% applications)) return(none)
  found <- name_rows(filter(results$rows, .data$collective %in% applications, !is.na(.data$latency_us))) |>
    group_by(
      application = .data$collective, .data$mapping, .data$mapped, n = parameter_n(.data$parameters), .data$processes
    ) |>
    summarise(
      launches = n(), seconds = median(.data$latency_us) / 1e6,
      comm_pct = 100 * median(.data$comm_us / .data$latency_us),
      across(c("sweeps", "flops", "residual"), max), .groups = "drop"
    )
  bind_rows(none, found)
}

parameter_n <- function(parameters) map_dbl(parameters, parameter_of, "n", NA_real_)

#' Speed-up over one process
#'
#' @param scaling Tibble from [read_scaling()].
#' @return `scaling` with speedup (time of the same program on one process over time); NA if one process was not
#'   measured.
#' @noRd
summarise_scaling <- function(scaling) {
  scaling |>
    group_by(.data$application, .data$mapped, .data$n) |>
    mutate(speedup = c(.data$seconds[.data$processes == 1], NA)[1] / .data$seconds) |>
    ungroup()
}

# The model of the SVD

#' Flop rate of one core: geometric mean of flops / seconds over the problem sizes that ran on one process
#'
#' @param scaling Tibble from [read_scaling()].
#' @return GFlop/s; NaN without such a run.
#' @noRd
fit_flop_rate <- function(scaling) {
  alone <- filter(scaling, .data$processes == 1)
  geometric_mean(alone$flops / alone$seconds) / 1e9
}

#' Time to solution of the one-sided Jacobi SVD from a flop rate and a ladder
#'
#' The model follows one sweep step by step (workflow/native/apps/svd/solve.c). Each of P processes has two of the 2 P
#' blocks of columns. A step rotates all pairs of columns of the two blocks; then the blocks move to the neighbours on
#' the line in the ordering of Brent and Luk (1985), 2 P - 1 steps per sweep. A process begins a step when its blocks
#' have arrived: once both ends are ready, a message takes latency + bytes x gap of the outermost level between them,
#' and messages that enter or leave a unit (core, socket, node) at the same time share its bandwidth, as in
#' [model_messages()]. Each sweep ends in a reduction of one number, so sweeps do not overlap. The matrix is scattered
#' from rank 0 and gathered there at the speed of the busiest unit.
#'
#' @param place Matrix from [place_ranks()]: where each process runs.
#' @param n Rows and columns of the matrix.
#' @param sweeps,flops Number of sweeps over all pairs of columns, and flops, of the run on one process.
#' @param rate GFlop/s of one core.
#' @param costs List with `latency` (us) and `gap_byte` (us), named by level, as from [message_costs()].
#' @return Named vector in seconds: `compute` (sum of the longest computation of each step, without messages) and
#'   `total`.
#' @noRd
model_svd <- function(place, n, sweeps, flops, rate, costs) {
  processes <- nrow(place)
  blocks <- 2 * processes
  columns <- n %/% blocks + (seq_len(blocks) - 1 < n %% blocks)
  pair_s <- flops / (sweeps * n * (n - 1) / 2) / (rate * 1e9)
  inside <- columns * (columns - 1) / 2
  # A record: a column of A and one of V, each padded to whole cache lines of 8, and one line for its norm.
  column_bytes <- 8 * ceiling(n / 8) * 8
  record_bytes <- 2 * column_bytes + 64
  link <- link_costs(place, costs)

  left <- seq(1, blocks, 2)
  right <- left + 1
  time <- numeric(processes)
  compute <- 0
  for (step in seq_len(blocks - 1)) {
    pairs <- columns[left] * columns[right] + if (step == 1) inside[left] + inside[right] else 0
    compute <- compute + max(pairs) * pair_s
    time <- time + pairs * pair_s
    if (processes == 1) break
    to_right <- left[-processes]
    to_right[1] <- right[1]
    bytes <- record_bytes * pmax(columns[to_right], columns[right[-1]])
    there <- pmax(utils::head(time, -1), time[-1]) + link$latency_s + bytes * link$gap_s
    time <- pmax(time, c(0, there), c(there, 0))
    moved <- c(left[1], to_right)
    right <- c(right[-1], left[processes])
    left <- moved
  }
  ends <- root_seconds(link, n * column_bytes) + root_seconds(link, n * record_bytes)
  c(compute = sweeps * compute, total = sweeps * (max(time) + link$reduction_s) + ends)
}

#' Whether the ladder has latency and bandwidth of all levels between neighbours on the line, and to rank 0
#' @noRd
has_costs <- function(place, costs) {
  if (is.null(place)) return(FALSE)
  to <- seq_len(nrow(place) - 1)
  used <- colnames(place)[c(pair_level(place, to - 1, to), pair_level(place, to, rep(0, length(to))))]
  !anyNA(c(costs$latency[used], costs$gap_byte[used]))
}

#' Costs (s) of the messages between neighbours on the line, of a reduction, and of the traffic of rank 0
#' @noRd
link_costs <- function(place, costs) {
  processes <- nrow(place)
  if (processes == 1) return(list(processes = 1, reduction_s = 0))
  from <- seq_len(processes - 1) - 1
  level <- pair_level(place, from, from + 1)
  to_root <- pair_level(place, from + 1, rep(0, processes - 1))
  latency <- costs$latency[colnames(place)]
  gap <- costs$gap_byte[colnames(place)]
  # Both neighbours send at the same time.
  both <- list(gap_byte = gap, full_duplex = costs$full_duplex)
  shared <- busy_units(place, c(from, from + 1), c(from + 1, from), both)
  reduction <- map_dbl(2^seq(0, ceiling(log2(processes)) - 1), function(step) {
    rank <- seq(0, processes - 1 - step)
    max(latency[pair_level(place, rank, rank + step)])
  })
  list(
    processes = processes, latency_s = unname(latency[level]) * 1e-6, gap_s = shared[seq_along(from)] * 1e-6,
    reduction_s = sum(reduction) * 1e-6, root_latency_s = max(latency[to_root]) * 1e-6,
    # Time per byte of the whole matrix: the part that crosses a level is the share of the ranks beyond that level.
    root_gap_s = max(map_dbl(unique(to_root), function(l) gap[[l]] * sum(to_root <= l) / processes)) * 1e-6
  )
}

root_seconds <- function(link, bytes) {
  if (link$processes == 1) 0 else link$root_latency_s + bytes * link$root_gap_s
}

#' Predict the time of every run from the runs on one process and the study's ladder
#'
#' @param results List from [read_results()].
#' @param scaling Tibble from [read_scaling()].
#' @return Tibble, one row per run whose problem size also ran on one process, and whose levels the ladder has (none
#'   without such a run on more processes): application, mapping, n, processes, seconds, flops_only_s (time of one
#'   process at the fitted rate / P), compute_s and model_s (see [model_svd()]), counted_s (model_s with the sweeps and
#'   flops that the run itself counted; its error is that of messages and waiting).
#' @noRd
predict_scaling <- function(results, scaling = read_scaling(results)) {
  none <- tibble(
    application = character(), mapping = character(), n = numeric(), processes = numeric(), seconds = numeric(),
    flops_only_s = numeric(), compute_s = numeric(), model_s = numeric(), counted_s = numeric()
  )
  alone <- filter(scaling, .data$processes == 1)
  if (nrow(alone) == 0 || nrow(read_ladder(results)) == 0) return(none)
  rate <- fit_flop_rate(scaling)
  known <- inner_join(
    scaling, select(alone, "application", "mapped", "n", sweeps_1 = "sweeps", flops_1 = "flops"),
    by = c("application", "mapped", "n")
  )
  known$place <- pmap(known[c("application", "mapping", "processes")], function(application, mapping, processes) {
    place_ranks(results$study, application, mapping, processes)
  })
  known$costs <- pmap(known[c("application", "mapping")], function(application, mapping) {
    costs <- ladder_costs(results, mpi_of(results$study, application, mapping))
    c(costs, full_duplex = list(duplex_levels(results$study$machine$levels)))
  })
  known <- filter(known, purrr::map2_lgl(.data$place, .data$costs, has_costs))
  if (!any(known$processes > 1)) return(none)
  model <- function(place, costs, n, sweeps, flops) model_svd(place, n, sweeps, flops, rate, costs)
  found <- pmap(select(known, "place", "costs", "n", sweeps = "sweeps_1", flops = "flops_1"), model)
  counted <- pmap(known[c("place", "costs", "n", "sweeps", "flops")], model)
  bind_rows(none, transmute(known,
    .data$application, .data$mapping, .data$n, .data$processes, .data$seconds,
    flops_only_s = .data$flops_1 / (rate * 1e9) / .data$processes, compute_s = map_dbl(found, "compute"),
    model_s = map_dbl(found, "total"), counted_s = map_dbl(counted, "total")
  ))
}

#' The rows of models/comparison.csv: errors for the runs on more than one process, to which nothing was fitted
#' @noRd
compare_scaling_models <- function(results) {
  predict_scaling(results) |>
    filter(.data$processes > 1) |>
    pivot_longer(c("flops_only_s", "model_s", "counted_s"), names_to = "model", values_to = "predicted") |>
    mutate(
      model = unname(c(flops_only_s = "flops_only", model_s = "flops_ladder", counted_s = "flops_counted")[.data$model])
    ) |>
    group_by(collective = .data$application, algorithm = "default", .data$mapping, .data$model) |>
    summarise(held_out_cells = n(), held_out_mape_pct = mape_pct(.data$predicted, .data$seconds), .groups = "drop")
}
