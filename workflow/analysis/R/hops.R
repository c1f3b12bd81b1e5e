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
#' Algorithms that are no tree are counted along one that stands for them: the default along a linear one, others along
#' a binomial one (edges.csv).
#'
#' @param study Study of [read_results()].
#' @param collective,algorithm,mapping Names.
#' @param processes Vector of process counts.
#' @return Numeric matrix with one named row per process count; columns as above, with the level's name, plus
#'   `constant`. NULL where it is not known where the ranks run.
#' @noRd
count_hops <- function(study, collective, algorithm, mapping, processes) {
  variant <- variant_of(study, collective, algorithm)
  mpi <- mpi_of(study, collective, mapping)
  rows <- map(processes, function(count) {
    place <- place_ranks(study, collective, mapping, count)
    parent <- sending_tree(study, mpi, collective, variant, count, own = FALSE)
    if (!is.null(place) && (count < 2 || !is.null(parent))) count_hops_once(place, parent)
  })
  if (any(map_lgl(rows, is.null))) return(NULL)
  matrix(unlist(rows), length(rows), byrow = TRUE, dimnames = list(processes, names(rows[[1]])))
}

count_hops_once <- function(place, parent) {
  level <- pair_level(place, seq_along(parent), parent)
  path <- path_counts(parent, level, ncol(place))
  depth <- rowSums(path)[-1]
  crowd <- map_dbl(seq_len(ncol(place)), function(l) crowding(place, parent, level, depth, l))
  counts <- list(
    hops = colMeans(path), messages = tabulate(level, ncol(place)), crowd = crowd, sync = sync_counts(place)
  )
  c(constant = 1, setNames(unlist(counts, use.names = FALSE),
                           paste0(rep(names(counts), each = ncol(place)), "_", colnames(place))))
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
