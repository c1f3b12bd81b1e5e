# The placement of the ranks and the trees along which they send, read from ranks.csv and edges.csv. These come from the
# launchers' own placement and from the patterns that verify algorithms (workflow/collstudy/sources/edges.py).

rank_keys <- list(mapping = "c", nodes = "d", per_node = "d", from_processes = "d", to_processes = "d", rank = "d")
edge_columns <- list(
  mpi = "c", collective = "c", algorithm = "c", parameters = "c", tree = "c", from_processes = "d", to_processes = "d",
  rank = "d", parent = "d"
)

#' Read the placements of a study
#' @return List by mapping and number of nodes ([placement_key()]) of lists with `from` and `to` (numbers of processes)
#'   and `place`: matrix, one row per rank, one column per level (outermost first), with the unit that the rank is in.
#' @noRd
read_placements <- function(folder) {
  path <- file.path(folder, "ranks.csv")
  rows <- readr::read_csv(path, col_types = readr::cols(mapping = "c", .default = "d"), progress = FALSE)
  levels <- setdiff(names(rows), names(rank_keys))
  groups <- split(rows, paste(rows$mapping, rows$nodes, rows$per_node, rows$to_processes, sep = "\r"))
  found <- unname(map(groups, function(group) {
    place <- as.matrix(group[order(group$rank), levels])
    list(key = placement_key(group$mapping[1], group$nodes[1]), from = group$from_processes[1],
         to = group$to_processes[1], place = place)
  }))
  split(found, map_chr(found, "key"))
}

placement_key <- function(mapping, nodes) paste(mapping, nodes, sep = "\r")

#' Read the trees of a study
#' @return List by algorithm ([tree_key()]) of lists with `from` and `to` (numbers of processes), `own` (FALSE: the tree
#'   is a substitute for an algorithm that is not a tree) and `edges` (tibble: rank, parent; in the order in which
#'   parents send to their children).
#' @noRd
read_trees <- function(folder) {
  rows <- readr::read_csv(
    file.path(folder, "edges.csv"), col_types = do.call(readr::cols_only, edge_columns), progress = FALSE
  )
  key <- tree_key(rows$mpi, rows$collective, rows$algorithm, rows$parameters)
  group <- vctrs::vec_group_id(tibble(key, rows$to_processes))
  first <- which(!duplicated(group))
  edges <- split(rows[c("rank", "parent")], factor(group, unique(group)))
  found <- unname(imap(first, function(row, i) {
    list(
      from = rows$from_processes[row], to = rows$to_processes[row], own = rows$tree[row] == "own", edges = edges[[i]]
    )
  }))
  split(found, key[first])
}

tree_key <- function(mpi, collective, algorithm, parameters) {
  paste(mpi, collective, algorithm, coalesce(parameters, ""), sep = "\r")
}

holding <- function(found, processes) {
  Filter(function(one) one$from <= processes && processes <= one$to, found)
}

#' The placement of the ranks of a cell
#'
#' @param study Study of [read_results()].
#' @param collective,mapping Names as in the medians of [read_results()].
#' @param processes Number of ranks.
#' @return Matrix, one row per rank and one column per level of the machine, outermost first: the unit of that level in
#'   which the rank runs, numbered over the whole machine. NULL if it is not known, or differs between cells.
#' @noRd
place_ranks <- function(study, collective, mapping, processes) {
  remember(study, paste("place", collective, mapping, processes, sep = "\r"), function() {
    find_place(study, collective, mapping, processes)
  })
}

find_place <- function(study, collective, mapping, processes) {
  cell <- places_of(study, collective, mapping)
  nodes <- unique(cell$nodes[cell$processes == processes])
  if (length(nodes) == 0) nodes <- unique(cell$nodes)
  find_placed(study, cell$place[1], nodes, processes)
}

#' The placement of the first ranks of a mapping (of the catalogue) on one of several numbers of nodes
#' @noRd
find_placed <- function(study, place, nodes, processes) {
  keys <- placement_key(place, nodes)
  found <- unlist(unname(lapply(study$ranks[intersect(keys, names(study$ranks))], holding, processes)), FALSE)
  found <- unique(map(found, function(one) one$place[seq_len(processes), , drop = FALSE]))
  if (length(found) == 1) found[[1]]
}

#' The placement for the largest number of processes of a mapping that is at most `most`
#' @noRd
place_most <- function(study, collective, mapping, most) {
  counts <- sort(places_of(study, collective, mapping)$processes)
  places <- map(counts[counts <= most], function(count) place_ranks(study, collective, mapping, count))
  if (length(places) == 0) return(NULL)
  place <- places[[length(places)]]
  first <- map_lgl(places, function(fewer) identical(fewer, place[seq_len(NROW(fewer)), , drop = FALSE]))
  if (all(first)) place
}

places_of <- function(study, collective, mapping) {
  places <- study$places
  places[places$collective == collective & places$mapping == as.character(mapping), ]
}

#' The MPI library that ran a collective under a mapping
#' @noRd
mpi_of <- function(study, collective, mapping) {
  remember(study, paste("mpi", collective, mapping, sep = "\r"), function() {
    places_of(study, collective, mapping)$mpi[1]
  })
}

#' The tree along which an algorithm sends
#'
#' @param study Study of [read_results()].
#' @param mpi,collective Names.
#' @param variant List of `name` and `parameters`, see [variant_of()].
#' @param processes Number of ranks.
#' @param own TRUE: NULL for an algorithm that is not a tree; FALSE: its substitute tree of the hop model.
#' @return Vector: the parent (from 0) of ranks 1, 2, ...; attribute `order`: the ranks in the order in which their
#'   parents send to them. NULL if it is not known.
#' @noRd
sending_tree <- function(study, mpi, collective, variant, processes, own = TRUE) {
  key <- tree_key(mpi, collective, variant$name, variant$parameters)
  remember(study, paste("tree", key, processes, own, sep = "\r"), function() {
    find_tree(study$trees[[key]], processes, own)
  })
}

find_tree <- function(trees, processes, own) {
  found <- holding(trees, processes)
  if (length(found) == 0 || (own && !found[[1]]$own)) return(NULL)
  edges <- found[[1]]$edges
  edges <- edges[edges$rank < processes, ]
  structure(edges$parent[order(edges$rank)], order = edges$rank)
}

#' The outermost level (number) at which the places of two ranks differ; the innermost for ranks that share a core
#' @noRd
pair_level <- function(place, a, b) {
  differ <- place[a + 1, , drop = FALSE] != place[b + 1, , drop = FALSE]
  ifelse(rowSums(differ) == 0, ncol(place), max.col(differ, ties.method = "first"))
}

#' Number of the outermost level at which the cores of two ranks differ; 0 on the diagonal
#' @noRd
level_matrix <- function(place) {
  found <- matrix(ncol(place), nrow(place), nrow(place))
  for (level in rev(seq_len(ncol(place)))) found[outer(place[, level], place[, level], "!=")] <- level
  diag(found) <- 0L
  found
}
