# Models of algorithms in whose steps many ranks send at once (halving, doubling, rings), and of algorithms composed of
# other collectives. Their steps are read from exchanges.csv, which workflow/collstudy/study/exchanges.py describes.

exchange_columns <- list(
  mpi = "c", collective = "c", algorithm = "c", parameters = "c", processes = "d", step = "d", from_bytes = "d",
  to_bytes = "d", partner = "c", distance = "d", first = "d", last = "d", every = "d", stays = "c", pairs = "d",
  times = "d", share = "d", combines = "l", call_collective = "c", call_algorithm = "c"
)

#' Read the exchanges of a study
#' @return List by algorithm and number of processes ([exchange_key()]) of tibbles, one row per step, columns as in the
#'   file; an open upper end of sizes is Inf.
#' @noRd
read_exchanges <- function(folder) {
  rows <- readr::read_csv(
    file.path(folder, "exchanges.csv"), col_types = do.call(readr::cols_only, exchange_columns), progress = FALSE
  )
  rows$to_bytes <- coalesce(rows$to_bytes, Inf)
  split(rows, exchange_key(tree_key(rows$mpi, rows$collective, rows$algorithm, rows$parameters), rows$processes))
}

exchange_key <- function(what, processes) paste(what, processes, sep = "\r")

#' The steps of an algorithm; NULL if it is a tree or not known
#' @inheritParams sending_tree
#' @noRd
exchange_of <- function(study, mpi, collective, variant, processes) {
  study$exchanges[[exchange_key(tree_key(mpi, collective, variant$name, variant$parameters), processes)]]
}

#' The messages of one step
#' @param step Row of [read_exchanges()].
#' @return List: `from` and `to` (ranks from 0).
#' @noRd
ends_of <- function(step, processes) {
  fold <- fold_ranks(step, processes)
  rank <- seq_len(processes) - 1
  sender <- if (is.na(step$first)) seq_along(fold$taking_part) - 1 else seq(step$first, step$last, step$every)
  switch(step$partner,
    # Of two repetitions of a neighbour exchange, as many messages go the other way.
    neighbour = , "next" = list(from = rank, to = (rank + 1) %% processes),
    bit = list(from = fold$taking_part[sender + 1], to = fold$taking_part[bitwXor(sender, step$distance) + 1]),
    stay = list(from = fold$aside, to = fold$stay),
    aside = list(from = fold$stay, to = fold$aside),
    both = list(from = c(fold$stay, fold$aside), to = c(fold$aside, fold$stay)),
    stop("exchanges.csv: no messages are known for partner ", step$partner, call. = FALSE)
  )
}

#' The ranks that are folded away (`aside`), those that act for them (`stay`), and all that take part (`taking_part`)
#' @noRd
fold_ranks <- function(step, processes) {
  pair <- seq_len(step$pairs) - 1
  aside <- switch(coalesce(step$stays, "low"), even = 2 * pair + 1, odd = 2 * pair, low = processes - step$pairs + pair)
  stay <- switch(coalesce(step$stays, "low"), even = 2 * pair, odd = 2 * pair + 1, low = pair)
  list(stay = stay, aside = aside, taking_part = setdiff(seq_len(processes) - 1, aside))
}

#' One step: messages sent at the same time, at most one from each rank and at most one to each rank
#'
#' @param place Matrix from [place_ranks()].
#' @param from,to Ranks (from 0), one message each.
#' @param costs,form As in [model_messages()].
#' @return Function that returns `time` after the step. Its arguments: `time` (us, one row per size and one column per
#'   rank: when each rank is ready), `bytes` (of a message, for each size), `combines` (TRUE: the receiver reduces the
#'   message into its own data).
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

#' Time of an algorithm that is not a tree; NA for sizes at which its steps are not known
#'
#' @param launch,costs,form,seen As in [time_call()].
#' @param steps Tibble from [exchange_of()].
#' @noRd
time_exchange <- function(launch, steps, size, costs, form, seen) {
  time <- rep(NA_real_, length(size))
  ends <- sort(unique(c(steps$from_bytes, steps$to_bytes)))
  for (at in split(seq_along(size), findInterval(size, ends))) {
    own <- steps[steps$from_bytes <= size[at[1]] & size[at[1]] < steps$to_bytes, ]
    if (nrow(own) == 0) next
    of <- if (own$partner[1] == "call") time_calls else time_steps
    time[at] <- of(launch, own, size[at], costs, form, seen)
  }
  time
}

time_steps <- function(launch, steps, size, costs, form, seen) {
  time <- matrix(0, length(size), nrow(launch$place))
  for (i in seq_len(nrow(steps))) {
    ends <- ends_of(steps[i, ], nrow(launch$place))
    pass_on <- step_of(launch$place, ends$from, ends$to, costs, form)
    for (again in seq_len(steps$times[i])) time <- pass_on(time, size * steps$share[i], steps$combines[i])
  }
  seen(time)
}

#' Time of consecutive collective calls: each begins when the root of the previous one is done
#' @noRd
time_calls <- function(launch, calls, size, costs, form, seen) {
  at_root <- function(time) time[, 1]
  parts <- map(seq_len(nrow(calls)), function(i) {
    time_call(
      launch, calls$call_collective[i], plain(calls$call_algorithm[i]), size, costs, form,
      if (i < nrow(calls)) at_root else seen
    )
  })
  if (any(map_lgl(parts, is.null))) NA_real_ else Reduce(`+`, parts)
}
