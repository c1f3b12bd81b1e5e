# The choice of algorithms over the message sizes of each process count, from predicted latencies and their noise.

choose_algorithms <- function(relative, grid, noise, tie, near) {
  shape <- dim(relative)[-1]
  choice <- array(1L, shape)
  reason <- array("the default is the best or within noise of it", shape)
  of_default <- function(values) array(rep(values[1, , ], each = length(grid$names)), dim(values))
  gain <- of_default(grid$latency) - grid$latency
  error <- sqrt((of_default(grid$error)^2 + grid$error^2) / 2)
  for (p in seq_len(shape[1])) {
    excess <- matrix(relative[, p, ], dim(relative)[1])
    known <- is.finite(excess[1, ])
    reason[p, !known] <- "the default is kept: it was not measured nearby"
    alone <- known & colSums(is.finite(excess)) < 2
    reason[p, alone] <- "only the default was measured nearby"
    free <- which(known & !alone)
    if (length(free) == 0) next
    excess <- excess[, free, drop = FALSE]
    previous <- if (p > 1) choice[p - 1, free]
    measured <- list(
      gain = gain[, , free, drop = FALSE], error = error[, , free, drop = FALSE], sizes = grid$sizes[free]
    )
    picked <- pick_sure(excess, previous, tie, noise, near[[p]], measured)
    choice[p, free] <- picked
    better <- "better than the default by more than the noise"
    runs <- rle(picked)
    # In some sizes of a run, the algorithm may be no better.
    over <- rep(ifelse(runs$lengths > 1, ", over a range of sizes", ""), runs$lengths)
    reason[p, free][picked > 1] <- paste0(better, over)[picked > 1]
  }
  list(choice = choice, reason = reason)
}

#' The cheapest sequence of algorithms over sizes in which every run has a significant gain
#'
#' If the gain of a run is not significant, its algorithm is excluded for the sizes that [drop_unsure()] sets back, and
#' the cheapest sequence is sought again, so that an algorithm without measured neighbours does not hide another one
#' that has them.
#' @noRd
pick_sure <- function(excess, previous, tie, noise, near, measured) {
  repeat {
    picked <- shortest_path(excess, tie)
    if (!is.null(previous)) picked <- keep_previous(picked, previous, excess, tie)
    gone <- which(picked != drop_unsure(picked, excess, noise, near, measured))
    if (length(gone) == 0) return(picked)
    excess[cbind(picked[gone], gone)] <- NA
  }
}

#' The measured process counts around a count: `below` and `above` (ascending indices), `own` (index of the count
#' itself; NA if it was not measured), `bound` (TRUE: the default may change at it), `same_range` (TRUE: the default's
#' table treats a measured count like this one), `sized` (TRUE: several message sizes)
#' @noRd
neighbours <- function(grid, at, bounds) {
  counts <- grid$counts
  range <- findInterval(at, bounds)
  list(
    sized = length(grid$sizes) > 1,
    below = which(counts < at), above = which(counts > at), own = match(at, counts), bound = at %in% bounds,
    same_range = length(bounds) == 0 || range %in% findInterval(counts, bounds)
  )
}

#' The cheapest sequence of algorithms over sizes. Its cost: predicted regret, plus `tie` for each change, minus `tie`
#' for each size with the default
#' @noRd
shortest_path <- function(excess, tie) {
  cost <- exp(excess - rep(apply(excess, 2, min, na.rm = TRUE), each = nrow(excess))) - 1
  cost[is.na(cost)] <- Inf
  cost[1, ] <- cost[1, ] - tie
  total <- cost[, 1]
  from <- matrix(seq_len(nrow(cost)), nrow(cost), ncol(cost))
  for (s in seq_len(ncol(cost))[-1]) {
    cheapest <- which.min(total)
    stay <- total <= total[cheapest] + tie
    from[!stay, s] <- cheapest
    total <- ifelse(stay, total, total[cheapest] + tie) + cost[, s]
  }
  picked <- integer(ncol(cost))
  picked[ncol(cost)] <- which.min(total)
  for (s in rev(seq_len(ncol(cost)))[-1]) picked[s] <- from[picked[s + 1], s + 1]
  picked
}

#' Keep the choice of the previous process count if that costs less than a quarter of the tie width, so that neighbours
#' agree
#' @noRd
keep_previous <- function(picked, previous, excess, tie) {
  lost <- excess[cbind(previous, seq_along(previous))] - excess[cbind(picked, seq_along(picked))]
  if (all(is.finite(lost)) && mean(lost) < tie / 4) previous else picked
}

#' Set runs whose gain is not significant back to the default
#'
#' Sizes at which the gain would be significant alone are kept unless all are such: they may be a run of their own.
#'
#' The level (5 %, one-sided) is divided by the number of algorithms, because the best of several seems to gain by
#' chance more often.
#'
#' @param near List from [neighbours()]; NULL: neighbours are not compared.
#' @param measured List of arrays algorithm x measured count x size: `gain` (log latency of the default minus that of
#'   the algorithm) and `error` (its standard error by the launches, divided by the square root of 2 as the noise of one
#'   latency is; NA where it is unknown); and the `sizes`.
#' @noRd
drop_unsure <- function(picked, excess, noise, near, measured) {
  runs <- rle(picked)
  end <- cumsum(runs$lengths)
  level <- qnorm(1 - 0.05 / (nrow(excess) - 1)) * sqrt(2)
  for (i in which(runs$values > 1)) {
    at <- seq(end[i] - runs$lengths[i] + 1, end[i])
    if (is_one_small_size(at, measured$sizes)) {
      picked[at] <- 1L
      next
    }
    own <- excess[1, at] - excess[cbind(picked[at], at)]
    beside <- gain_beside(measured$gain[picked[at[1]], , at, drop = FALSE], near)
    error <- error_of_mean(matrix(measured$error[picked[at[1]], , at], ncol = length(at)), near)
    least <- level * max(noise_of_mean(noise, length(at)), error)
    if (mean(own) > 0 && sure_of(mean(own), beside, near, least, length(at))) next
    clear <- own > level * noise_of_mean(noise, 1)
    picked[at[!clear | all(clear)]] <- 1L
  }
  picked
}

#' TRUE if the gain of a run is significant at its own process count, or together with those at the neighbouring counts
#'
#' The gain of a run of one or two sizes must also be seen at a neighbouring count, so that a single outlier makes no
#' rule.
#' @noRd
sure_of <- function(own, beside, near, least, sizes) {
  alone <- is_clear(own, least)
  if (is.null(near)) return(alone)
  if (is.na(near$own)) return(sure_between(own, beside, near, least))
  found <- c(alone, is_clear(c(own, beside), least))
  if (sizes < 3 && length(beside) > 0) all(found, max(beside) > 0) else any(found)
}

#' The same at a count without measurements
#'
#' A barrier has one cell per count, and its latency jumps where the default changes: its gain must be significant at
#' both neighbouring counts and between them, and it is not decided at powers of two.
#' @noRd
sure_between <- function(own, beside, near, least) {
  if (near$sized) return((is_clear(own, least) || is_clear(beside, least)) && reached(beside, near))
  length(beside) == 2 && !near$bound && min(own, beside) > least
}

#' @param least Gain that is significant at one count; the mean of n counts may be smaller by the square root of n.
#' @noRd
is_clear <- function(gains, least) length(gains) > 0 && mean(gains) > least / sqrt(length(gains))

#' The mean gain of an algorithm over some sizes at the nearest counts below and above at which it was measured
#'
#' @param gain Array 1 x measured count x size.
#' @noRd
gain_beside <- function(gain, near) {
  gain <- matrix(gain, dim(gain)[2])
  known <- rowSums(is.finite(gain)) > 0
  beside <- c(tail(near$below[known[near$below]], 1), head(near$above[known[near$above]], 1))
  gain <- gain[beside, , drop = FALSE]
  rowMeans(ifelse(is.finite(gain), gain, NA), na.rm = TRUE)
}

#' TRUE if a run is a single size of at most 64 B, though others were measured: messages up to a cache line cost the
#' same, but for the first one of a launch, which has the first calls (connections, warm-up)
#' @noRd
is_one_small_size <- function(at, sizes) length(at) == 1 && sizes[at] <= 64 && sum(sizes <= 64) > 2

#' Standard error of the mean gain over some sizes at a count, or at the nearest measured counts, by their launches
#'
#' The noise of all cells ([tuning_noise()]) is that of a typical one; the launches of some cells differ far more.
#' @param error Matrix measured count x size; NA where it is unknown.
#' @noRd
error_of_mean <- function(error, near) {
  if (is.null(near)) return(0)
  at <- if (is.na(near$own)) c(tail(near$below, 1), head(near$above, 1)) else near$own
  error <- error[at, , drop = FALSE]
  of_mean <- sqrt(rowSums(error^2, na.rm = TRUE)) / rowSums(!is.na(error))
  max(of_mean[is.finite(of_mean)], 0)
}

#' Standard deviation of the mean of an algorithm's log latencies over some sizes of a process count
#'
#' More sizes make it smaller only down to what all sizes share, because a launch or a job may be slower at all of them.
#' @param noise List from [tuning_noise()].
#' @noRd
noise_of_mean <- function(noise, sizes) {
  all <- noise$sizes
  shared <- if (all > 1) max(0, noise$series^2 - noise$sd^2 / all) / (1 - 1 / all) else 0
  sqrt(shared + max(0, noise$sd^2 - shared) / sizes)
}

#' TRUE if a count without measurements may be decided: between two measured counts, or above one in the same range of
#' communicator sizes of the default's table, because the behaviour of the default beyond that range is not known
#' @noRd
reached <- function(beside, near) {
  length(beside) == 2 || (near$same_range && length(near$below) > 0)
}
