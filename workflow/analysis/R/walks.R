# The time of calls whose messages follow trees. Everything that does not depend on the costs of messages (levels, order
# of steps, shared links) is computed once, because a fit evaluates hundreds of costs. The trees of all numbers of
# processes are walked together, because in R a step of many trees takes little longer than one of a single tree.

#' Time of an algorithm that is a tree: its first segment goes down or up the tree, and the others follow it
#'
#' @param place Matrix from [place_ranks()].
#' @param parent Tree from [sending_tree()].
#' @return The result of `seen` for the times of the ranks, for each size.
#' @noRd
time_tree <- function(place, collective, variant, parent, size, costs, form, seen,
                      forest = forest_of(list(place), list(parent))) {
  time_forest(forest, collective, variant, size, costs, form, seen)[, 1]
}

#' Time of an algorithm for several trees
#'
#' @param forest Environment from [forest_of()].
#' @return Matrix, one row per size and one column per tree.
#' @noRd
time_forest <- function(forest, collective, variant, size, costs, form, seen) {
  blocking <- form == "hockney"
  segment <- parameter_of(variant$parameters, "segment_bytes", 0)
  piece <- if (segment > 0) pmin(size, segment) else size
  alpha <- unname(costs$latency)[forest$level]
  gap <- unname(costs$gap_byte)[forest$level]
  walk <- if (collective == "bcast") walk_down else walk_up
  if (form == "shared" && collective == "reduce") gap <- unlist(shared_gaps_of(forest, costs))
  done <- walk(forest, alpha, gap, piece, costs, blocking)
  time <- vapply(forest$columns, function(at) seen(done[, at, drop = FALSE]), numeric(length(size)))
  time <- matrix(time, length(size))
  if (any(size > piece)) {
    for (i in seq_along(forest$columns)) {
      at <- forest$columns[[i]][-1]
      further <- pace(forest$parents[[i]], alpha[at], gap[at], piece, costs, blocking)
      time[, i] <- time[, i] + (ceiling(size / piece) - 1) * further
    }
  }
  if (form != "shared" || collective == "reduce") return(time)
  pmax(time, outer(size, busiest_units(forest, costs)))
}

#' Time between segments: further segments follow the first at the pace of the rank with the most to send (or receive)
#' @noRd
pace <- function(parent, alpha, gap, piece, costs, blocking) {
  pace <- 0 * piece
  for (of in split(seq_along(parent), parent)) {
    own <- rowSums(outer(piece, gap[of]) + rep(costs$overhead + blocking * alpha[of], each = length(piece)))
    pace <- pmax(pace, own)
  }
  pace
}

#' Properties of trees under their placements that do not depend on costs
#'
#' Each rank of each tree is one column.
#' @param places,parents Lists of matrices from [place_ranks()] and of trees from [sending_tree()].
#' @return Environment: `places`, `parents`, `columns` (of each tree), `roots`, `level` (of the message to each column;
#'   1 at roots, which receive none) and `steps` ([steps_of()]); [kept()] adds further properties.
#' @noRd
forest_of <- function(places, parents) {
  forest <- new.env(parent = emptyenv())
  forest$places <- places
  forest$parents <- parents
  ranks <- lengths(parents) + 1
  before <- cumsum(ranks) - ranks
  forest$columns <- map2(before, ranks, function(before, ranks) before + seq_len(ranks))
  forest$roots <- before + 1
  forest$level <- unlist(map2(places, parents, function(place, parent) {
    c(1, pair_level(place, seq_along(parent), parent))
  }))
  forest$steps <- steps_of(
    unlist(map2(parents, before, function(parent, before) before + attr(parent, "order") + 1)),
    unlist(map2(parents, before, function(parent, before) before + parent[attr(parent, "order")] + 1)),
    unlist(map(parents, depth_of))
  )
  forest
}

#' A property of the trees that is computed when it is first needed, and then kept
#' @noRd
kept <- function(forest, name, make) {
  if (is.null(forest[[name]])) assign(name, map2(forest$places, forest$parents, make), forest)
  forest[[name]]
}

#' The steps of trees: ranks of the same depth send to their first children, then to their second ones, ...
#'
#' @param child All columns but the roots, in the order in which their parents send to them.
#' @param from Column of the parent of each child.
#' @param depth Depth of each column.
#' @return List, one entry for each depth with parents, the roots' first: `parents` (columns, those with the most
#'   children first) and `children` (list: the first child of each parent, the second of those that have two, ...).
#' @noRd
steps_of <- function(child, from, depth) {
  if (length(child) == 0) return(list())
  turn <- integer(length(child))
  by_parent <- order(from)
  turn[by_parent] <- sequence(rle(from[by_parent])$lengths)
  most <- tabulate(from, length(depth))
  unname(lapply(split(seq_along(child), depth[from]), function(at) {
    parents <- unique(from[at])
    parents <- parents[order(-most[parents])]
    at <- at[order(match(from[at], parents))]
    list(parents = parents, children = unname(split(child[at], turn[at])))
  }))
}

depth_of <- function(parent) {
  depth <- numeric(length(parent) + 1)
  for (rank in seq_along(parent)) depth[rank + 1] <- depth[parent[rank] + 1] + 1
  depth
}

#' Time per byte of each message of a reduce (us) if subtrees of the same height send at the same time
#' @noRd
shared_gaps <- function(place, parent, costs, sharing = count_receivers(place, parent)) {
  gap <- numeric(length(parent))
  for (l in seq_along(sharing)) {
    if (is.na(costs$gap_byte[[l]])) next
    at <- sharing[[l]]$messages
    gap[at] <- pmax(gap[at], costs$gap_byte[[l]] * sharing[[l]]$receivers)
  }
  gap
}

#' [shared_gaps()] of each tree of a forest, by column
#' @noRd
shared_gaps_of <- function(forest, costs) {
  sharing <- kept(forest, "sharing", count_receivers)
  map(seq_along(sharing), function(i) {
    c(0, shared_gaps(forest$places[[i]], forest$parents[[i]], costs, sharing[[i]]))
  })
}

#' Number of receivers that share a unit with each message of a reduce if subtrees of the same height send at the same
#' time
#' @return List, one entry for each level: `messages` (indices of those that cross it) and `receivers` (at the busier
#'   end of each).
#' @noRd
count_receivers <- function(place, parent) {
  height <- numeric(length(parent) + 1)
  for (rank in rev(order(depth_of(parent)) - 1)) {
    if (rank > 0) height[parent[rank] + 1] <- max(height[parent[rank] + 1], height[rank + 1] + 1)
  }
  lapply(seq_len(ncol(place)), function(l) {
    from <- unname(place[-1, l])
    to <- unname(place[parent + 1, l])
    messages <- which(from != to)
    together <- vctrs::vec_group_id(vctrs::new_data_frame(list(
      unit = c(from[messages], to[messages]), height = rep(height[messages + 1], 2)
    )))
    receiver <- rep(parent[messages], 2)
    first <- !duplicated(together * (length(parent) + 1) + receiver)
    receivers <- tabulate(together[first], max(0L, together))[together]
    half <- seq_along(messages)
    list(messages = messages, receivers = pmax(receivers[half], receivers[length(messages) + half]))
  })
}

#' Time per byte (us) that the busiest unit of each tree needs for all messages that cross it (see [busy_units()])
#' @noRd
busiest_units <- function(forest, costs) {
  map_dbl(kept(forest, "crossing", most_crossing), function(crossing) {
    count <- ifelse(names(crossing$one_way) %in% costs$full_duplex, crossing$one_way, crossing$both_ways)
    used <- count > 0 & !is.na(costs$gap_byte[seq_along(count)])
    max(0, costs$gap_byte[seq_along(count)][used] * count[used])
  })
}

#' Number of messages that cross the busiest unit of each level: in its busier direction, and in both directions
#' @noRd
most_crossing <- function(place, parent) {
  count <- vapply(colnames(place), function(level) {
    from <- place[-1, level]
    to <- place[parent + 1, level]
    crossing <- from != to
    units <- unique(place[, level])
    leaving <- tabulate(match(from[crossing], units), length(units))
    entering <- tabulate(match(to[crossing], units), length(units))
    c(max(leaving, entering), max(leaving + entering))
  }, numeric(2))
  list(one_way = count[1, ], both_ways = count[2, ])
}

#' Broadcast: time at which each rank has received and sent all its messages
#'
#' Ranks that have sent to their last child are left out of further turns.
#' @param alpha,gap Latency (us) and time per byte (us) of the message to each column.
#' @return Matrix, one row per size and one column per column of the forest (us).
#' @noRd
walk_down <- function(forest, alpha, gap, size, costs, blocking) {
  rows <- length(size)
  late <- size > costs$eager
  bytes <- outer(size, gap)
  alpha <- matrix(alpha, rows, length(alpha), byrow = TRUE)
  here <- matrix(0, rows, length(gap))
  done <- here
  served <- logical(ncol(here))
  for (step in forest$steps) {
    at <- step$parents
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
      way <- alpha[, child]
      length_us <- bytes[, child]
      start <- start + costs$overhead
      begin <- pmax.int(start, wire)
      wire <- begin + length_us
      if (blocking) wire <- wire + way
      arrival <- begin + way - costs$overhead + length_us
      here[, child] <- arrival
      waited <- pmax.int(arrival, ended)
      ended <- start
      ended[late] <- waited[late]
    }
    done[, at] <- pmax.int(ended, here[, at])
  }
  done[, !served] <- here[, !served]
  done
}

#' Reduce: time at which each rank has combined the messages of its children and sent the result to its parent
#' @return As [walk_down()].
#' @noRd
walk_up <- function(forest, alpha, gap, size, costs, blocking) {
  rows <- length(size)
  late <- size > costs$eager
  bytes <- outer(size, gap)
  alpha <- matrix(alpha, rows, length(alpha), byrow = TRUE)
  ready <- matrix(0, rows, length(gap))
  done <- ready
  combine <- size * (costs$combine_byte %||% 0)
  for (step in rev(forest$steps)) {
    at <- step$parents
    time <- wire <- numeric(rows * length(at))
    for (child in step$children) {
      if (length(child) < length(at)) {
        rest <- seq_len(rows * length(child))
        ready[, at[-seq_along(child)]] <- time[-rest]
        at <- at[seq_along(child)]
        time <- time[rest]
        wire <- wire[rest]
      }
      sent <- as.vector(ready[, child])
      way <- alpha[, child]
      length_us <- bytes[, child]
      # The bytes of consecutive messages enter the receiver one after another.
      arrival <- pmax.int(sent + way - costs$overhead, wire) + length_us
      wire <- arrival
      # A late (rendezvous) message is transferred only when its receiver is ready.
      waited <- pmax.int(if (blocking) time + (way + length_us) else time, arrival) + costs$overhead
      if (!blocking) waited[late] <- (pmax.int(time, sent) + way + length_us)[late]
      time <- waited + combine
      left <- sent + costs$overhead
      left[late] <- waited[late]
      done[, child] <- left
    }
    ready[, at] <- time
  }
  done[, forest$roots] <- ready[, forest$roots]
  done
}
