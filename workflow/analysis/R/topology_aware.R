# Topology-aware collectives (nodes and groups) against those of the MPI library, for several orders of hosts
# ([bijlani2021]).

topology_parts <- c("speedup", "hosts", "choice", "setup", "placement")
topology_collectives <- c("bcast", "reduce", "gather", "alltoallv")

# seed001 is a policy that selects algorithms.
topology_policies <- "seed001"

# The mappings of the published example of two placements, which has a binomial tree.
placement_examples <- c("one-node-each-half", "all-sends-cross")

#' Speed-up over the MPI library's default
#'
#' The baseline is the default with the same order of hosts, nodes, processes per node and message size: `speedup` =
#' latency of the default / latency of the algorithm.
#'
#' @param rows Tibble from [read_slowest()].
#' @return `rows` without the default and without cells that lack the default, with the columns default_us and speedup.
#' @noRd
summarise_speedup <- function(rows) {
  keys <- c("collective", "mpi", "mapping", "nodes", "processes", "size_bytes")
  base <- select(filter(rows, .data$algorithm == "default"), all_of(keys), default_us = "latency_us")
  inner_join(filter(rows, .data$algorithm != "default"), base, by = keys) |>
    mutate(speedup = .data$default_us / .data$latency_us)
}

large_message <- 1048576

#' Regret of selection policies
#'
#' Regret is the slow-down (%) of a choice against the fastest measured algorithm of the same cell. The policies: each
#' algorithm used everywhere, the hand-made rules of Bijlani and Raol (2021), and a classification tree over nodes,
#' processes per node and message size, learned from all cells (`fitted`) or from the cells of the other numbers of
#' nodes (`held_out`). No policy uses the order of hosts, or the MPI library.
#'
#' @param results List from [read_results()].
#' @return Tibble: collective, policy, cells, fastest_pct (share of cells in which it selects the fastest algorithm or
#'   one within the tie width), geometric_mean_regret_pct, mean_regret_pct, max_regret_pct.
#' @noRd
summarise_policies <- function(results) {
  rows <- topology_rows(results)
  map_dfr(intersect(topology_collectives, rows$collective), function(collective) {
    cells <- topology_cells(filter(rows, .data$collective == .env$collective), results$study$analysis$tie_pct)
    if (nrow(cells$table) == 0) return(NULL)
    tree <- tibble(policy = "tree_fitted", cells$table["cell"], algorithm = predict_tree(cells, cells$table))
    fresh <- map_dfr(unique(cells$table$nodes), function(n) {
      apart <- cells$table$nodes == n
      if (all(apart)) return(NULL)
      tibble(
        policy = "tree_held_out", cell = cells$table$cell[apart],
        algorithm = predict_tree(list(table = cells$table[!apart, ], regret = cells$regret), cells$table[apart, ])
      )
    })
    learned <- inner_join(bind_rows(tree, fresh), cells$regret, by = c("cell", "algorithm"))
    fixed <- mutate(cells$regret, policy = .data$algorithm)
    bind_rows(fixed, learned) |>
      group_by(.data$policy) |>
      summarise(
        cells = n(), fastest_pct = 100 * mean(.data$regret_pct <= results$study$analysis$tie_pct),
        geometric_mean_regret_pct = geometric_regret(.data$regret_pct), mean_regret_pct = mean(.data$regret_pct),
        max_regret_pct = max(.data$regret_pct)
      ) |>
      arrange(.data$geometric_mean_regret_pct) |>
      mutate(collective = .env$collective, .before = 1)
  })
}

#' The cells of the grid, without those of the placement example
#' @noRd
topology_rows <- function(results) {
  filter(
    read_slowest(results), .data$collective %in% topology_collectives, !.data$mapping %in% placement_examples
  )
}

#' One row for each cell with its fastest algorithm, and the regret of every algorithm in it
#' @noRd
topology_cells <- function(rows, tie_pct) {
  keys <- c("mpi", "mapping", "nodes", "ppn", "size_bytes")
  rows$cell <- vctrs::vec_group_id(rows[keys])
  whole <- rows |>
    group_by(.data$cell) |>
    mutate(best_us = min(.data$latency_us[!.data$algorithm %in% topology_policies], Inf)) |>
    filter("default" %in% .data$algorithm, n() > 1) |>
    mutate(regret_pct = 100 * (.data$latency_us / .data$best_us - 1)) |>
    ungroup()
  candidates <- filter(whole, !.data$algorithm %in% topology_policies)
  # The default is preferred within the tie width, because it needs no additional communicators.
  table <- candidates |>
    mutate(shown = .data$regret_pct + ifelse(.data$algorithm == "default", -tie_pct, 0)) |>
    arrange(.data$cell, .data$shown) |>
    group_by(.data$cell) |>
    summarise(across(all_of(keys), first), best = first(.data$algorithm), stake = mean(.data$regret_pct))
  list(table = table, regret = select(whole, "cell", "algorithm", "regret_pct"))
}

#' Fit a classification tree for one collective: nodes, processes per node and message size decide the algorithm
#'
#' The weight of a cell is the mean regret of its algorithms plus one, because the choice matters little where all are
#' equally fast.
#' @noRd
fit_tree <- function(cells) {
  data <- transmute(cells$table,
    best = factor(.data$best), .data$nodes, .data$ppn, size = log2(.data$size_bytes), stake = .data$stake + 1
  )
  rpart::rpart(
    best ~ nodes + ppn + size, data, weights = data$stake, method = "class",
    control = rpart::rpart.control(minsplit = 6, minbucket = 3, cp = 0.01, maxdepth = 5, xval = 0)
  )
}

predict_tree <- function(cells, table) {
  if (n_distinct(cells$table$best) == 1) return(rep(cells$table$best[1], nrow(table)))
  at <- tibble(nodes = table$nodes, ppn = table$ppn, size = log2(table$size_bytes))
  as.character(stats::predict(fit_tree(cells), at, type = "class"))
}

#' The rules of the learned trees in words
#'
#' @param results List from [read_results()].
#' @return Tibble: collective, rule, algorithm, cells (that the rule decides).
#' @noRd
summarise_tree <- function(results) {
  rows <- topology_rows(results)
  map_dfr(intersect(topology_collectives, rows$collective), function(collective) {
    cells <- topology_cells(filter(rows, .data$collective == .env$collective), results$study$analysis$tie_pct)
    if (n_distinct(cells$table$best) < 2) {
      only <- cells$table$best[1]
      return(tibble(collective = collective, rule = "always", algorithm = only, cells = nrow(cells$table)))
    }
    tree <- fit_tree(cells)
    leaves <- tree$frame[tree$frame$var == "<leaf>", ]
    tibble(
      collective = collective, rule = map_chr(as.integer(rownames(leaves)), function(leaf) {
        tree_words(tree, leaf, cells$table)
      }),
      algorithm = attr(tree, "ylevels")[leaves$yval], cells = leaves$n
    )
  })
}

#' The conditions of a leaf in words: "fewer than 3 processes per node, from 1 MiB"
#'
#' Limits are rounded up to points of the grid `table`. Node n of the tree has the children 2n and 2n + 1; the row of
#' its split follows the rows of all earlier splits with their competitors and surrogates.
#' @noRd
tree_words <- function(tree, leaf, table) {
  frame <- tree$frame
  row <- cumsum(c(1, (frame$var != "<leaf>") + frame$ncompete + frame$nsurrogate))
  above <- leaf %/% 2^rev(seq_len(floor(log2(leaf))))
  below <- c(above[-1], leaf)
  parts <- map2_chr(above, below, function(node, child) {
    at <- match(node, rownames(frame))
    split <- tree$splits[row[at], ]
    less <- (child == 2 * node) == (split[["ncat"]] < 0)
    if (frame$var[at] == "size") {
      limit <- min(table$size_bytes[log2(table$size_bytes) >= split[["index"]]])
      return(paste(if (less) "below" else "from", label_bytes(limit)))
    }
    var <- as.character(frame$var[at])
    limit <- min(table[[var]][table[[var]] >= split[["index"]]])
    paste(if (less) "fewer than" else "at least", limit, c(nodes = "nodes", ppn = "processes per node")[[var]])
  })
  if (length(parts) == 0) "always" else paste(parts, collapse = ", ")
}

#' The learned decisions in the format of the collectives library (COLL_RULES)
#'
#' @param results List from [read_results()].
#' @return Lines: collective, nodes, processes per node, most bytes, algorithm, for every point of the study's grid.
#' @noRd
write_decision_rules <- function(results) {
  rows <- topology_rows(results)
  lines <- map(intersect(topology_collectives, rows$collective), function(collective) {
    cells <- topology_cells(filter(rows, .data$collective == .env$collective), results$study$analysis$tie_pct)
    grid <- distinct(cells$table, .data$nodes, .data$ppn, .data$size_bytes) |>
      arrange(.data$nodes, .data$ppn, .data$size_bytes)
    grid$algorithm <- predict_tree(cells, grid)
    # The bytes of an all-to-all are all bytes that a rank sends.
    grid$most <- grid$size_bytes * (if (collective == "alltoallv") grid$nodes * grid$ppn else 1)
    grid |>
      group_by(.data$nodes, .data$ppn) |>
      filter(.data$algorithm != lead(.data$algorithm, default = "")) |>
      mutate(most = ifelse(row_number() == n(), "*", format(.data$most, scientific = FALSE, trim = TRUE))) |>
      ungroup() |>
      transmute(line = paste(.env$collective, .data$nodes, .data$ppn, .data$most, "->", .data$algorithm)) |>
      pull("line")
  })
  c(
    "# Learned from the measurements of one study. COLL_RULES=<this file>",
    "# <collective> <nodes> <processes per node> <most bytes> -> <algorithm>", unlist(lines)
  )
}
