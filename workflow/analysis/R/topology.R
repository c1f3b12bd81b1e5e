#' Where each rank runs
#'
#' Ranks are dealt to the machine's levels in the order in which `config/mappings.yaml` lets them vary: the levels of
#' the mapping's `cycle` first (`mappings.<name>.cycle` in study.json), then the others from the innermost outwards.
#'
#' @param study List from [read_study()].
#' @param mapping Name of a mapping.
#' @param processes Number of ranks.
#' @return Integer matrix, one row per rank and one column per level, outermost first: the unit of that level in which
#'   the
#'   rank runs (numbered over the whole machine).
#' @export
place_ranks <- function(study, mapping, processes) {
  levels <- machine_levels(study, processes)
  order <- c(intersect(mapping_cycle(study, mapping), names(levels)), rev(names(levels)))
  order <- order[!duplicated(order)]
  rank <- seq_len(processes) - 1
  digits <- matrix(0, processes, length(levels), dimnames = list(NULL, names(levels)))
  for (level in order) {
    digits[, level] <- rank %% levels[[level]]
    rank <- rank %/% levels[[level]]
  }
  digits[, 1] <- digits[, 1] + rank * levels[[1]]
  for (i in seq_along(levels)[-1]) digits[, i] <- digits[, i - 1] * levels[[i]] + digits[, i]
  digits
}

machine_levels <- function(study, processes) {
  levels <- study$machine$levels
  if (length(levels) == 0) return(c(core = processes))
  setNames(as.numeric(map(levels, function(level) level$count %||% 1)), map_chr(levels, "name"))
}

mapping_cycle <- function(study, mapping) {
  name <- sub("( on [0-9]+ nodes)?(, .*)?$", "", mapping)
  as.character(unlist(study$mappings[[name]]$cycle))
}

#' The parent of each rank in an algorithm's tree
#'
#' Linear: the root is everybody's parent. Chain: `fanout` chains of consecutive ranks. Pipeline: one chain. Binary
#' tree: see binary_parents(). All others, whose shape is not known: a binomial tree (r without its highest bit).
#'
#' @param algorithm Name as in the catalogue, perhaps with `[parameters]`.
#' @param processes Number of ranks, at least 2.
#' @return Integer vector: parents (from 0) of the ranks 1, 2, ..., processes - 1.
#' @export
tree_parents <- function(algorithm, processes) {
  rank <- seq_len(processes - 1)
  switch(base_name(algorithm),
    linear = , default = rep(0, processes - 1),
    pipeline = rank - 1,
    chain = chain_parents(processes, chain_fanout(algorithm)),
    binary_tree = binary_parents(rank),
    rank - 2^floor(log2(rank))
  )
}

# Open MPI numbers a binary tree level by level, with the children of rank r one and two level widths after it
# (ompi_coll_base_topo_build_tree): 1 has 3 and 5, not 3 and 4.
binary_parents <- function(rank) {
  width <- 2^(floor(log2(rank + 1)) - 1)
  rank - ifelse(rank < 3 * width - 1, width, 2 * width)
}

chain_fanout <- function(algorithm) {
  given <- regmatches(algorithm, regexpr("fanout=[0-9]+", algorithm))
  if (length(given) == 1) as.numeric(sub("fanout=", "", given)) else 4
}

chain_parents <- function(processes, fanout) {
  others <- processes - 1
  lengths <- rep(others %/% fanout, fanout) + (seq_len(fanout) <= others %% fanout)
  heads <- cumsum(c(1, lengths))[seq_len(fanout)]
  ifelse(seq_len(others) %in% heads, 0, seq_len(others) - 1)
}

#' What an algorithm does under a mapping, counted: the columns of the hop model
#'
#' A message between two ranks belongs to the outermost level at which their places differ. For each level: `hops`
#' (messages
#' on the path from the root, mean over ranks), `messages` (of the whole tree), `crowd` (sum over the depths of the
#' tree of
#' the messages that cross the same pair of units at once: chains that move in step share a link), and `sync`
#' (messages that
#' the most burdened rank exchanges in a recursive doubling barrier, which OMB runs between iterations and whose skew is
#' part of the measured time; it jumps where the number of processes passes a power of two).
#'
#' @inheritParams place_ranks
#' @param algorithm Name of an algorithm.
#' @param processes Vector of process counts.
#' @return Numeric matrix with one named row per process count; columns as above, with the level's name, plus
#'   `constant`.
#' @export
count_hops <- function(study, algorithm, mapping, processes) {
  rows <- map(processes, function(count) count_hops_once(study, algorithm, mapping, count))
  matrix(unlist(rows), length(rows), byrow = TRUE, dimnames = list(processes, names(rows[[1]])))
}

count_hops_once <- function(study, algorithm, mapping, processes) {
  place <- place_ranks(study, mapping, max(processes, 2))
  names <- colnames(place)
  parent <- tree_parents(algorithm, max(processes, 2))
  level <- pair_level(place, seq_along(parent), parent)
  path <- path_counts(parent, level, length(names))
  depth <- rowSums(path)[-1]
  crowd <- map_dbl(seq_along(names), function(l) crowding(place, parent, level, depth, l))
  counts <- list(
    hops = colMeans(path), messages = tabulate(level, length(names)), crowd = crowd, sync = sync_counts(place)
  )
  c(constant = 1, unlist(imap(counts, function(x, what) setNames(x, paste0(what, "_", names))), use.names = FALSE) |>
    setNames(paste0(rep(names(counts), each = length(names)), "_", names)))
}

#' The outermost level (number) at which the places of two ranks differ
#' @noRd
pair_level <- function(place, a, b) {
  max.col(place[a + 1, , drop = FALSE] != place[b + 1, , drop = FALSE], ties.method = "first")
}

path_counts <- function(parent, level, levels) {
  path <- matrix(0, length(parent) + 1, levels)
  for (rank in seq_along(parent)) {
    path[rank + 1, ] <- path[parent[rank] + 1, ]
    path[rank + 1, level[rank]] <- path[rank + 1, level[rank]] + 1
  }
  path
}

crowding <- function(place, parent, level, depth, l) {
  at <- which(level == l)
  if (length(at) == 0) return(0)
  if (l == ncol(place)) return(0)
  link <- paste(depth[at], place[parent[at] + 1, l], place[at + 1, l])
  sum(tapply(tabulate(match(link, unique(link))), depth[at][!duplicated(link)], max))
}

sync_counts <- function(place) {
  processes <- nrow(place)
  rounds <- floor(log2(processes))
  power <- 2^rounds
  count <- matrix(0, processes, ncol(place))
  base <- seq_len(power) - 1
  for (k in seq_len(rounds) - 1) {
    at <- cbind(base + 1, pair_level(place, base, bitwXor(base, 2^k)))
    count[at] <- count[at] + 1
  }
  extra <- seq_len(processes - power) + power - 1
  if (length(extra) > 0) {
    level <- pair_level(place, extra, extra - power)
    for (at in list(cbind(extra + 1, level), cbind(extra - power + 1, level))) count[at] <- count[at] + 2
  }
  burden <- count %*% 4^(rev(seq_len(ncol(place))) - 1)
  count[which.max(burden), ]
}
