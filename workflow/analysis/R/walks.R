# The time of a call whose messages follow a tree. What does not depend on the costs of messages (levels, the order of
# steps, who shares what) is worked out once for a tree and a placement, because fitting asks for hundreds of costs.

#' An algorithm that is a tree: its first segment down or up the tree, and the others behind it
#'
#' @param place Matrix from [place_ranks()].
#' @param parent Tree from [sending_tree()].
#' @param ways Environment from [ways_of()].
#' @noRd
time_tree <- function(place, collective, variant, parent, size, costs, form, seen, ways = ways_of(place, parent)) {
  segment <- parameter_of(variant$parameters, "segment_bytes", 0)
  piece <- if (segment > 0) pmin(size, segment) else size
  alpha <- unname(costs$latency[ways$level])
  gap <- unname(costs$gap_byte[ways$level])
  walk <- if (collective == "bcast") walk_down else walk_up
  if (form == "shared" && collective == "reduce") gap <- shared_gaps(place, parent, costs, ways)
  time <- seen(walk(ways, alpha, gap, piece, costs, form == "hockney"))
  if (any(size > piece)) {
    own_pace <- pace(parent, alpha, gap, piece, costs, form == "hockney")
    time <- time + (ceiling(size / piece) - 1) * own_pace
  }
  if (form != "shared" || collective == "reduce") return(time)
  pmax(time, size * busiest_unit(place, parent, costs, ways))
}

#' Further segments follow the first at the pace of the rank with the most to send (or receive)
#' @noRd
pace <- function(parent, alpha, gap, piece, costs, blocking) {
  pace <- 0 * piece
  for (of in split(seq_along(parent), parent)) {
    own <- rowSums(outer(piece, gap[of]) + rep(costs$overhead + blocking * alpha[of], each = length(piece)))
    pace <- pmax(pace, own)
  }
  pace
}

#' What of a tree under a placement does not depend on costs
#'
#' @return Environment: `level` (of the message to each rank but 0) and `steps` ([steps_of()]); what else is asked for
#'   is kept in it.
#' @noRd
ways_of <- function(place, parent) {
  ways <- new.env(parent = emptyenv())
  ways$level <- pair_level(place, seq_along(parent), parent)
  ways$steps <- steps_of(parent)
  ways
}

#' Something of a tree and a placement that is worked out when it is first asked for
#' @noRd
kept <- function(ways, name, make) {
  if (is.null(ways[[name]])) assign(name, make(), ways)
  ways[[name]]
}

#' The steps of a tree: ranks of the same depth serve their first children, then their second ones, ...
#'
#' @return List, one entry for each depth with parents, the root's first: `parents` (ranks from 0, those with the most
#'   children first) and `children` (list: the first child of each parent, the second of those that have two, ...).
#' @noRd
steps_of <- function(parent) {
  if (length(parent) == 0) return(list())
  depth <- depth_of(parent)
  child <- attr(parent, "order")
  from <- parent[child]
  turn <- integer(length(child))
  by_parent <- order(from)
  turn[by_parent] <- sequence(tabulate(match(from[by_parent], unique(from[by_parent]))))
  most <- tabulate(from + 1, length(parent) + 1)
  unname(lapply(split(seq_along(child), depth[from + 1]), function(at) {
    parents <- unique(from[at])
    parents <- parents[order(-most[parents + 1])]
    at <- at[order(match(from[at], parents))]
    list(parents = parents, children = unname(split(child[at], turn[at])))
  }))
}

depth_of <- function(parent) {
  depth <- numeric(length(parent) + 1)
  for (rank in seq_along(parent)) depth[rank + 1] <- depth[parent[rank] + 1] + 1
  depth
}

#' Time a byte of each message of a reduce, when subtrees of the same height send at the same time
#' @noRd
shared_gaps <- function(place, parent, costs, ways = ways_of(place, parent)) {
  sharing <- kept(ways, "sharing", function() count_receivers(place, parent))
  gap <- numeric(length(parent))
  for (l in seq_along(sharing)) {
    at <- sharing[[l]]$messages
    gap[at] <- pmax(gap[at], costs$gap_byte[[l]] * sharing[[l]]$receivers)
  }
  gap
}

#' Receivers that share a unit with a message of a reduce, when subtrees of the same height send at the same time
#' @return List, one entry for each level: `messages` (that cross it) and `receivers` (at its busier end).
#' @noRd
count_receivers <- function(place, parent) {
  height <- numeric(length(parent) + 1)
  for (rank in rev(order(depth_of(parent)) - 1)) {
    if (rank > 0) height[parent[rank] + 1] <- max(height[parent[rank] + 1], height[rank + 1] + 1)
  }
  lapply(seq_len(ncol(place)), function(l) {
    from <- place[-1, l]
    to <- place[parent + 1, l]
    messages <- which(from != to)
    together <- vctrs::vec_group_id(list(
      unit = c(from[messages], to[messages]), height = rep(height[messages + 1], 2)
    ) |> vctrs::new_data_frame())
    receiver <- rep(parent[messages], 2)
    first <- !duplicated(together * (length(parent) + 1) + receiver)
    receivers <- tabulate(together[first], max(0L, together))[together]
    half <- seq_along(messages)
    list(messages = messages, receivers = pmax(receivers[half], receivers[length(messages) + half]))
  })
}

#' Time a byte that the busiest unit needs for all messages of a tree that cross it (see [busy_units()])
#' @noRd
busiest_unit <- function(place, parent, costs, ways) {
  crossing <- kept(ways, "crossing", function() most_crossing(place, parent))
  count <- ifelse(colnames(place) %in% costs$full_duplex, crossing$one_way, crossing$both_ways)
  used <- count > 0
  max(0, costs$gap_byte[seq_along(count)][used] * count[used])
}

#' How many messages cross the busiest unit of each level: in its busier direction, and in both
#' @noRd
most_crossing <- function(place, parent) {
  count <- vapply(seq_len(ncol(place)), function(l) {
    from <- place[-1, l]
    to <- place[parent + 1, l]
    crossing <- from != to
    units <- unique(place[, l])
    leaving <- tabulate(match(from[crossing], units), length(units))
    entering <- tabulate(match(to[crossing], units), length(units))
    c(max(leaving, entering), max(leaving + entering))
  }, numeric(2))
  list(one_way = count[1, ], both_ways = count[2, ])
}

#' Broadcast: when each rank has received and sent all it has to
#'
#' The columns of a step are its parents'; those that have served their last child are left out of further turns.
#' @return Matrix, one row per size and one column per rank (us).
#' @noRd
walk_down <- function(ways, alpha, gap, size, costs, blocking) {
  rows <- length(size)
  late <- size > costs$eager
  bytes <- outer(size, gap)
  alpha <- matrix(alpha, rows, length(alpha), byrow = TRUE)
  here <- matrix(0, rows, length(gap) + 1)
  done <- here
  served <- logical(ncol(here))
  for (step in ways$steps) {
    at <- step$parents + 1
    served[at] <- TRUE
    start <- wire <- ended <- as.vector(here[, at])
    for (child in step$children) {
      if (length(child) < length(at)) {
        rest <- seq_len(rows * length(child))
        gone <- at[-seq_along(child)]
        done[, gone] <- pmax.int(ended[-rest], here[, gone])
        at <- at[seq_along(child)]
        start <- start[rest]
        wire <- wire[rest]
        ended <- ended[rest]
      }
      start <- start + costs$overhead
      begin <- pmax.int(start, wire)
      wire <- begin + bytes[, child]
      if (blocking) wire <- wire + alpha[, child]
      arrival <- begin + alpha[, child] - costs$overhead + bytes[, child]
      here[, child + 1] <- arrival
      waited <- pmax.int(arrival, ended)
      ended <- start
      ended[late] <- waited[late]
    }
    done[, at] <- pmax.int(ended, here[, at])
  }
  done[, !served] <- here[, !served]
  done
}

#' Reduce: when each rank has combined what it gets and passed it on
#' @return As [walk_down()].
#' @noRd
walk_up <- function(ways, alpha, gap, size, costs, blocking) {
  rows <- length(size)
  late <- size > costs$eager
  bytes <- outer(size, gap)
  alpha <- matrix(alpha, rows, length(alpha), byrow = TRUE)
  ready <- matrix(0, rows, length(gap) + 1)
  done <- ready
  combine <- size * (costs$combine_byte %||% 0)
  for (step in rev(ways$steps)) {
    at <- step$parents + 1
    time <- wire <- numeric(rows * length(at))
    for (child in step$children) {
      if (length(child) < length(at)) {
        rest <- seq_len(rows * length(child))
        ready[, at[-seq_along(child)]] <- time[-rest]
        at <- at[seq_along(child)]
        time <- time[rest]
        wire <- wire[rest]
      }
      sent <- as.vector(ready[, child + 1])
      way <- alpha[, child]
      # The bytes of one message follow those of the other into the receiver.
      arrival <- pmax.int(sent + way - costs$overhead, wire) + bytes[, child]
      wire <- arrival
      # What is late arrives only after its receiver is ready for it.
      waited <- pmax.int(if (blocking) time + (way + bytes[, child]) else time, arrival) + costs$overhead
      if (!blocking) waited[late] <- (pmax.int(time, sent) + way + bytes[, child])[late]
      time <- waited + combine
      left <- sent + costs$overhead
      left[late] <- waited[late]
      done[, child + 1] <- left
    }
    ready[, at] <- time
  }
  done[, 1] <- ready[, 1]
  done
}
