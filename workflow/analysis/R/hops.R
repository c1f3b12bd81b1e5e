#' Count the messages of an algorithm under a mapping: the columns of the hop model
#'
#' A message between two ranks counts for the outermost level at which their places differ. For each level: `hops`
#' (messages on the path from the root, mean over ranks), `messages` (of the whole tree), `crowd` (most messages that
#' cross the same pair of units at once, summed over the depths of the tree: parallel chains share a link), and `sync`
#' (messages of the busiest rank in a recursive doubling barrier, which OMB runs between iterations and whose skew is
#' part of the measured time; it jumps where the number of processes passes a power of two).
#'
#' An algorithm that is not a tree is counted along a substitute (edges.csv): a linear tree for the default, a binomial
#' tree for the others.
#'
#' @param study Study of [read_results()].
#' @param collective,algorithm,mapping Names.
#' @param processes Vector of process counts.
#' @return Numeric matrix with one named row per process count; columns as above, with the level's name, plus
#'   `constant`. NULL if the placement of the ranks is not known.
#' @noRd
count_hops <- function(study, collective, algorithm, mapping, processes) {
  variant <- variant_of(study, collective, algorithm)
  mpi <- mpi_of(study, collective, mapping)
  key <- paste("hops", collective, mapping, mpi, variant$name, variant$parameters, sep = "\r")
  remember(study, paste(c(key, processes), collapse = "\r"), function() {
    placed <- map(processes, function(count) place_ranks(study, collective, mapping, count))
    trees <- map(processes, function(count) sending_tree(study, mpi, collective, variant, count, own = FALSE))
    unknown <- map_lgl(placed, is.null) | (map_lgl(trees, is.null) & processes > 1)
    if (any(unknown)) return(NULL)
    # Collectives that run in the same places have the same barriers.
    sync <- map(placed, function(place) {
      remember(study, paste("sync", mpi, rlang::hash(place), sep = "\r"), function() sync_counts(study, mpi, place))
    })
    if (any(map_lgl(sync, is.null))) return(NULL)
    rows <- vector("list", length(processes))
    counted <- NULL
    # The ranks of a smaller process count are mostly the first ranks of a larger one, whose counts are then reused.
    for (i in order(processes, decreasing = TRUE)) {
      if (!begins_with(counted, placed[[i]], trees[[i]])) counted <- count_tree(placed[[i]], trees[[i]])
      rows[[i]] <- c(1, counted$counts[nrow(placed[[i]]), ], sync[[i]])
    }
    levels <- colnames(placed[[1]])
    names <- paste0(rep(c("hops", "messages", "crowd", "sync"), each = length(levels)), "_", levels)
    matrix(unlist(rows), length(rows), byrow = TRUE, dimnames = list(processes, c("constant", names)))
  })
}

begins_with <- function(counted, place, parent) {
  if (is.null(counted)) return(FALSE)
  ranks <- seq_len(nrow(place))
  identical(counted$place[ranks, , drop = FALSE], place) &&
    identical(as.vector(counted$parent)[ranks[-1] - 1], as.vector(parent))
}

#' Counts of a tree for each number of its first ranks
#' @return List: `place`, `parent`, `counts` (matrix, one row per number of ranks: hops, messages and crowd by level).
#' @noRd
count_tree <- function(place, parent) {
  levels <- ncol(place)
  level <- pair_level(place, seq_along(parent), parent)
  path <- path_counts(parent, level, levels)
  depth <- rowSums(path)[-1]
  of_level <- matrix(rep(level, levels) == rep(seq_len(levels), each = length(level)), ncol = levels)
  crowd <- vapply(seq_len(levels), function(l) crowding(place, parent, level, depth, l), numeric(length(parent)))
  summed <- function(values) rbind(0, matrix(apply(matrix(values, ncol = levels), 2, cumsum), ncol = levels))
  hops <- matrix(apply(path, 2, cumsum), ncol = levels) / seq_len(nrow(place))
  list(place = place, parent = parent, counts = cbind(hops, summed(of_level), summed(crowd)))
}

path_counts <- function(parent, level, levels) {
  path <- matrix(0, length(parent) + 1, levels)
  for (rank in seq_along(parent)) {
    path[rank + 1, ] <- path[parent[rank] + 1, ]
    path[rank + 1, level[rank]] <- path[rank + 1, level[rank]] + 1
  }
  path
}

#' Increase of a level's crowd by each further rank: one where its link then has more messages than any other link of
#' the same depth
#' @noRd
crowding <- function(place, parent, level, depth, l) {
  raised <- numeric(length(parent))
  at <- which(level == l)
  if (length(at) == 0 || l == ncol(place)) return(raised)
  link <- vctrs::vec_group_id(vctrs::new_data_frame(list(
    depth = depth[at], from = unname(place[parent[at] + 1, l]), to = unname(place[at + 1, l])
  )))
  sharing <- stats::ave(at, link, FUN = seq_along)
  most <- stats::ave(sharing, depth[at], FUN = function(count) cummax(count) - c(0, utils::head(cummax(count), -1)))
  raised[at] <- most
  raised
}

#' Messages of a barrier by level for the busiest rank: the number of steps in which it sends or receives
#' @noRd
sync_counts <- function(study, mpi, place) {
  processes <- nrow(place)
  levels <- ncol(place)
  steps <- exchange_of(study, mpi, "barrier", plain("recursive_doubling"), processes)
  if (is.null(steps)) return(if (processes == 1) numeric(levels))
  # Lists are indexed much faster than tibbles.
  columns <- as.list(steps[c("partner", "distance", "first", "last", "every", "stays", "pairs")])
  ends <- map(seq_len(nrow(steps)), function(i) ends_of(lapply(columns, `[[`, i), processes))
  from <- unlist(map(ends, "from"))
  to <- unlist(map(ends, "to"))
  step <- rep(seq_along(ends), lengths(map(ends, "from")))
  level <- pair_level(place, from, to)
  # A rank that sends and receives across a level in one step counts once.
  met <- unique(((c(step, step) - 1) * processes + c(from, to)) * levels + c(level, level) - 1)
  count <- matrix(tabulate(met %% (processes * levels) + 1, processes * levels), levels)
  burden <- 4^(rev(seq_len(levels)) - 1) %*% count
  as.numeric(count[, which.max(burden)])
}
