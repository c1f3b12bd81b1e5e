# Models of algorithms in whose steps many ranks send at once: halving, doubling, rings; and what is made of two trees.

#' One step: messages that leave at the same time, at most one from each rank and at most one to each
#'
#' @param place Matrix from [place_ranks()].
#' @param from,to Ranks (from 0), one message each.
#' @param costs,form As in [model_messages()].
#' @return Function of `time` (us, one row per size and one column per rank: when each is ready), `bytes` (of a message,
#'   for each size) and `combines` (the receiver adds what it gets to its own): `time` after the step.
#' @noRd
step_of <- function(place, from, to, costs, form) {
  level <- pair_level(place, from, to)
  gap <- if (form == "shared") busy_units(place, from, to, costs) else unname(costs$gap_byte[level])
  alpha <- unname(costs$latency[level])
  function(time, bytes, combines = FALSE) {
    late <- bytes > costs$eager
    sender <- time[, from + 1, drop = FALSE]
    ready <- sender
    ready[late, ] <- pmax(sender, time[, to + 1, drop = FALSE])[late, ]
    there <- ready + outer(bytes, gap) + rep(alpha, each = length(bytes))
    left <- sender + costs$overhead
    left[late, ] <- there[late, ]
    time[, from + 1] <- pmax(sender, left)
    time[, to + 1] <- pmax(time[, to + 1, drop = FALSE], there) +
      if (combines) bytes * (costs$combine_byte %||% 0) else 0
    time
  }
}

#' Ranks beyond a power of two: of the first pairs one rank stands aside
#' @noRd
fold_ranks <- function(processes, stays) {
  extra <- processes - largest_power(processes)
  low <- 2 * seq_len(extra) - 2
  list(
    stay = if (stays == "low") low else low + 1, aside = if (stays == "low") low + 1 else low, pairs = extra,
    taking_part = c(if (stays == "low") low else low + 1, seq_len(processes - 2 * extra) + 2 * extra - 1)
  )
}

largest_power <- function(processes) 2^floor(log2(processes))

#' Rabenseifner: halve and exchange; then gather the parts along a binomial tree (reduce), or double (allreduce)
#' @return When each rank is done (us, one row per size and one column per rank).
#' @noRd
time_halving <- function(place, collective, size, costs, form) {
  fold <- fold_ranks(nrow(place), "low")
  at <- fold$taking_part
  step <- function(from, to) step_of(place, from, to, costs, form)
  time <- matrix(0, length(size), nrow(place))
  if (fold$pairs > 0) {
    time <- step(c(fold$stay, fold$aside), c(fold$aside, fold$stay))(time, size / 2, TRUE)
    time <- step(fold$aside, fold$stay)(time, size / 2)
  }
  index <- seq_along(at) - 1
  rounds <- seq_len(log2(length(at))) - 1
  for (k in rounds) time <- step(at, at[bitwXor(index, 2^k) + 1])(time, size / 2^(k + 1), TRUE)
  for (k in rev(rounds)) {
    giver <- if (collective == "allreduce") index else index[bitwAnd(index, 2^k) > 0 & index < 2^(k + 1)]
    time <- step(at[giver + 1], at[bitwXor(giver, 2^k) + 1])(time, size / 2^(k + 1))
  }
  if (collective == "allreduce" && fold$pairs > 0) time <- step(fold$stay, fold$aside)(time, size)
  time
}

time_doubling <- function(place, size, costs, form) {
  fold <- fold_ranks(nrow(place), "high")
  at <- fold$taking_part
  step <- function(from, to) step_of(place, from, to, costs, form)
  time <- matrix(0, length(size), nrow(place))
  if (fold$pairs > 0) time <- step(fold$aside, fold$stay)(time, size, TRUE)
  index <- seq_along(at) - 1
  for (k in seq_len(log2(length(at))) - 1) time <- step(at, at[bitwXor(index, 2^k) + 1])(time, size, TRUE)
  if (fold$pairs > 0) time <- step(fold$stay, fold$aside)(time, size)
  time
}

time_ring <- function(place, size, costs, form) {
  rank <- seq_len(nrow(place)) - 1
  pass_on <- step_of(place, rank, (rank + 1) %% nrow(place), costs, form)
  time <- matrix(0, length(size), nrow(place))
  for (combines in c(TRUE, FALSE)) {
    for (step in rank[-1]) time <- pass_on(time, size / nrow(place), combines)
  }
  time
}

#' Allreduce: mean over ranks of the time of a call, for each size
#'
#' A linear or non-overlapping one is a reduce, whose root then broadcasts to ranks that wait. With fewer bytes
#' (elements of MPI_CHAR) than ranks a ring is replaced by recursive doubling, Rabenseifner by the linear algorithm, as
#' in Open MPI. A segmented ring is a ring as long as no block has a second segment.
#' @noRd
time_allreduce <- function(launch, variant, size, costs, form) {
  place <- launch$place
  processes <- nrow(place)
  reduce_bcast <- function(size, name) {
    of <- function(collective, seen) {
      time_call(launch, collective, plain(name), size, costs, form, seen)
    }
    parts <- list(of("reduce", function(time) time[, 1]), of("bcast", rowMeans))
    if (any(map_lgl(parts, is.null))) rep(NA_real_, length(size)) else parts[[1]] + parts[[2]]
  }
  doubling <- function(size) rowMeans(time_doubling(place, size, costs, form))
  ring <- function(size) rowMeans(time_ring(place, size, costs, form))
  segment <- parameter_of(variant$parameters, "segment_bytes", 2^20)
  switch(variant$name,
    linear = reduce_bcast(size, "linear"),
    nonoverlapping = reduce_bcast(size, "default"),
    recursive_doubling = doubling(size),
    ring = by_size(size, size < processes, doubling, ring),
    segmented_ring = by_size(size, size < processes, doubling, function(size) {
      ifelse(size < processes * segment, ring(size), NA_real_)
    }),
    rabenseifner = by_size(size, size < largest_power(processes), function(size) reduce_bcast(size, "linear"),
      function(size) rowMeans(time_halving(place, "allreduce", size, costs, form))),
    NULL
  )
}

#' One function for some sizes, another for the rest
#' @noRd
by_size <- function(size, small, if_small, if_not) {
  found <- numeric(length(size))
  if (any(small)) found[small] <- if_small(size[small])
  if (any(!small)) found[!small] <- if_not(size[!small])
  found
}
