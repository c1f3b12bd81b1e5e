test_that("the median and its interval are order statistics over launches", {
  rows <- toy_rows("bcast", "linear", 2, 1, c(5, 1, 4, 2, 3), launch = 1:5)
  found <- summarise_launches(rows)
  expect_equal(unlist(found[c("launches", "latency_us", "low_us", "high_us")], use.names = FALSE), c(5, 3, 1, 5))
  ten <- summarise_launches(toy_rows("bcast", "linear", 2, 1, 1:10, launch = 1:10))
  expect_equal(unlist(ten[c("latency_us", "low_us", "high_us")], use.names = FALSE), c(5.5, 2, 9))
  rows$min_latency_us <- c(1, 2, 3, NA, NA)
  expect_equal(summarise_launches(rows)$min_latency_us, 2)
})

test_that("default minus best, by hand", {
  rows <- toy_rows(
    "bcast", rep(c("default", "linear", "chain", "binomial"), each = 2), 2, rep(c(1, 1024), 4),
    c(2, 10, 2, 14, 3, 12, 1, 1)
  )
  analysis <- list(
    size_classes = list(list(label = "All", from = 1, to = 4096)),
    process_classes = list(list(label = "Two", from = 2, to = 2)),
    best_excludes = list("binomial")
  )
  table <- summarise_default_vs_best(read_results(make_study(rows, analysis)), "bcast")
  expect_equal(table$cells, 2)
  expect_equal(table$optimal, 2)
  expect_equal(table$optimal_pct, 100)
  expect_equal(table$mean_difference_us, -1)
  expect_equal(table$sd_difference_us, 1)
  expect_named(table, c(
    "mapping", "size_class", "process_class", "cells", "optimal", "optimal_pct", "mean_difference_us",
    "sd_difference_us"
  ))
})

test_that("cells outside every class are shown as other", {
  analysis <- list(process_classes = list(list(label = "Few", from = 2, to = 4)))
  table <- summarise_default_vs_best(read_results(make_study(lawful(counts = c(2, 8)), analysis)), "bcast")
  expect_setequal(table$process_class, c("Few", "other"))
})

test_that("the barrier's table counts faster, slower and equal", {
  rows <- toy_rows("barrier", rep(c("default", "tree"), each = 4), rep(c(2, 4, 6, 8), 2), NA, c(1, 2, 3, 4, 2, 2, 2, 2))
  table <- summarise_optimal(read_results(make_study(rows)), "barrier")
  expect_equal(unlist(table[-1], use.names = FALSE), c(1, 2, 1, 50))
})

test_that("the answer has regret by hand", {
  rows <- toy_rows("bcast", rep(c("default", "linear"), each = 2), 2, rep(c(1, 1024), 2), c(2, 10, 1, 10))
  answer <- summarise_answer(read_results(make_study(rows)))
  expect_equal(answer$cells, 2)
  expect_equal(answer$default_best_pct, 50)
  expect_equal(answer$default_mean_pct, 50)
  expect_equal(answer$default_max_pct, 100)
  expect_equal(answer$best_single, "LINEAR")
  expect_equal(answer$best_single_geometric_mean_pct, 0)
})

test_that("the best single algorithm may lack some of the cells", {
  # The default and linear in all of 20 cells, chain in 19, tree in half of them.
  row <- function(algorithm, sizes, us) toy_rows("bcast", algorithm, 4, 2^seq_len(sizes), us)
  rows <- dplyr::bind_rows(row("default", 20, 3), row("linear", 20, 4), row("chain", 19, 2), row("tree", 10, 1))
  results <- read_results(make_study(rows))
  expect_equal(summarise_answer(results)$best_single, "CHAIN")
  found <- summarise_by_collective(results)
  expect_equal(found$best_other, "CHAIN")
  # Twice as slow as the tree in ten cells, the fastest in nine.
  expect_equal(found$best_other_geometric_mean_pct, 100 * (2^(10 / 19) - 1))
  cells <- with_slowdown(results$judged$medians, "bcast", 4)
  expect_equal(best_single(cells), "chain")
})

test_that("the default is also judged by the slowest rank where its time is known", {
  rows <- dplyr::mutate(
    toy_rows("reduce", rep(c("default", "linear"), each = 3), 4, rep(c(1, 8, 64), 2), c(4, 8, 9, 1, 2, 3)),
    max_latency_us = c(6, 6, NA, 3, 4, NA)
  )
  results <- read_results(make_study(rows))
  found <- summarise_by_collective(results)
  expect_equal(found$slowest_cells, 2)
  expect_equal(found$geometric_mean_pct, 100 * (48^(1 / 3) - 1))
  expect_equal(found$mean_there_pct, 300)
  expect_equal(found$slowest_pct, 100 * (sqrt(2 * 1.5) - 1))
  expect_match(describe_answer(results), paste(
    "Judged by the slowest rank instead of the mean over the ranks, the default is 73 % instead of 300 % slower than",
    "the fastest algorithm \\(geometric means over the 2 cells of more than two processes in which both are",
    "known\\)\\.$"
  ))
  # A latency that is the slowest rank's already has no other one; a difference of a tenth is not told.
  results <- read_results(make_study(dplyr::mutate(rows, statistic = "slowest_rank")))
  expect_true(is.na(summarise_by_collective(results)$slowest_pct))
  rows$max_latency_us <- 2 * rows$latency_us
  expect_no_match(describe_answer(read_results(make_study(rows))), "slowest rank")
})

test_that("a collective without its default has no number of cells in which that is slower", {
  rows <- toy_rows("bcast", rep(c("chain", "linear"), each = 2), 4, rep(c(1, 1024), 2), c(2, 10, 1, 10))
  expect_true(is.na(summarise_answer(read_results(make_study(rows)))$slower))
})

test_that("mappings are compared where both were measured", {
  rows <- toy_rows("bcast", "linear", 4, c(1, 64, 1024, 1, 64), c(1, 2, 3, 2, 1), rep(c("core", "node"), c(3, 2)))
  rows <- dplyr::bind_rows(rows, toy_rows("bcast", "chain", 4, 1, 0.1))
  expect_match(
    describe_latency(read_results(make_study(rows)), "bcast")[2],
    "mapped by core at 1 of 2 sizes and by node at 1 of 2 sizes"
  )
})

test_that("mappings that take equally long are both the fastest", {
  rows <- toy_rows("bcast", "linear", 4, c(1, 64, 1, 64), c(1, 2, 1, 3), rep(c("core", "node"), each = 2))
  expect_match(
    describe_latency(read_results(make_study(rows[4:1, ])), "bcast")[2],
    "mapped by core at 2 of 2 sizes and by node at 1 of 2 sizes", fixed = TRUE
  )
})

test_that("of other algorithms that are equally fast, the best is the same in any order of the rows", {
  rows <- toy_rows("bcast", c("default", "linear", "chain"), 4, 8, c(2, 1, 1))
  results <- read_results(make_study(rows))
  results$judged$medians <- results$judged$medians[3:1, ]
  expect_equal(summarise_differences(results, "bcast")$best, decide_winners(results, "bcast")$winner)
})

test_that("a comparison of mappings names its algorithms if some mapping lacks others", {
  rows <- toy_rows("bcast", "linear", 4, c(1, 64, 1, 64), c(1, 3, 2, 2), rep(c("core", "node"), each = 2))
  told <- function(rows) describe_latency(read_results(make_study(rows)), "bcast")[2]
  expect_match(told(rows), "^With 4 processes, the lowest latency \\(without the default\\) is that")
  # Chain by core is faster at both sizes, but was not measured by node.
  expect_match(
    told(dplyr::bind_rows(rows, toy_rows("bcast", "chain", 4, c(1, 64), c(0.1, 0.2)))), paste(
      "With 4 processes, the lowest latency of the algorithms that all mappings have (LINEAR) is that of ranks mapped",
      "by core at 1 of 2 sizes"
    ), fixed = TRUE
  )
})

test_that("the fastest barrier needs another one", {
  told <- function(algorithms) {
    describe_barrier(read_results(make_study(toy_rows("barrier", algorithms, 4, NA, seq_along(algorithms)))))
  }
  expect_equal(told("tree"), "With 4 processes, there is only TREE mapped by core (1 \u00b5s).")
  expect_match(told(c("tree", "linear")), "the fastest is TREE mapped by core .*, the slowest LINEAR mapped by core")
})

test_that("algorithms of a simulated study are not said to be measured", {
  rows <- toy_rows("bcast", c("default", "linear"), 4, 1, c(2, 1))
  told <- function(simulated) {
    results <- read_results(make_study(rows, simulated = simulated))
    c(describe_decision(results, "bcast"), tables_of_answer(results)[[1]]$caption)
  }
  expect_length(grep("of those measured in at least", told(FALSE), fixed = TRUE), 2)
  expect_length(grep("of those simulated in at least", told(TRUE), fixed = TRUE), 2)
})

test_that("barriers that take equally long are named together", {
  rows <- toy_rows(
    "barrier", c("default", "tree", "linear", "default", "tree", "linear"), 4, NA, c(2, 3, 4, 1, 1, 4),
    rep(c("core", "node"), each = 3)
  )
  expect_match(
    describe_barrier(read_results(make_study(rows)))[1], paste(
      "the fastest are DEFAULT and TREE mapped by node (1 \u00b5s), the slowest LINEAR mapped by core and by node",
      "(4 \u00b5s)"
    ), fixed = TRUE
  )
})

test_that("a class is named as the study names it", {
  classes <- list(process_classes = list(list(label = "One NUMA domain", from = 2, to = 8)))
  rows <- toy_rows("bcast", rep(c("default", "linear"), each = 2), 4, c(1, 1024, 1, 1024), c(2, 2, 1, 2))
  expect_match(
    describe_default_vs_best(read_results(make_study(rows, classes)), "bcast")[2],
    "1 \u00b5s, mapped by core (message size: Small, 1 B; processes: One NUMA domain, 2 to 8).", fixed = TRUE
  )
})

test_that("the ranges of classes are in the caption, unless their names say them", {
  classes <- list(
    process_classes = list(list(label = "Few", from = 2, to = 8), list(label = "Many", from = 16, to = 1024)),
    size_classes = list(list(label = "1 B to 1 KiB", from = 1, to = 1024))
  )
  rows <- toy_rows("bcast", rep(c("default", "linear"), each = 2), 4, c(1, 1024, 1, 1024), c(2, 2, 1, 2))
  caption <- caption_default_vs_best(read_results(make_study(rows, classes)), "bcast")
  expect_match(caption, " Processes: Few is up to 8 and Many up to 1,024.", fixed = TRUE)
  expect_no_match(caption, "Message size:")
})

test_that("mappings on different numbers of nodes are not compared without saying so", {
  rows <- toy_rows(
    "bcast", rep(c("default", "linear"), 4), rep(c(8, 8, 16, 16), each = 2), 1, 1:8,
    rep(rep(c("core", "node"), each = 2), 2)
  )
  told <- function(nodes, mpi = "openmpi") {
    rows$nodes <- nodes
    rows$mpi <- mpi
    levels <- list(list(name = "node", count = 64), list(name = "socket", count = 1), list(name = "core", count = 8))
    results <- read_results(make_study(rows, levels = levels))
    results$study$import <- list(rows_read = 8)
    c(describe_mappings(results, rows_to_fit(results, "bcast")), describe_per_node(results, "bcast"))
  }
  expect_match(
    told(rep(c(2, 8, 4, 16), each = 2)), "The numbers of nodes differ: 4 by core and 16 by node.", fixed = TRUE
  )
  expect_no_match(told(rep(16, 8)), "numbers of nodes")
  # Each with another MPI library.
  libraries <- ifelse(rows$mapping == "core", "openmpi", "mpich")
  expect_match(
    told(rep(c(2, 8, 4, 16), each = 2), libraries), fixed = TRUE,
    "The numbers of nodes differ: 4 by core, Open MPI and 16 by node, MPICH."
  )
  # Both mappings on 4 and 16 nodes, as their names say.
  rows <- dplyr::bind_rows(rows, rows)
  expect_no_match(told(rep(c(4, 16), each = 8)), "numbers of nodes")
  rows <- rows[1:8, ]
  # By core, 4 and then 8 ranks are on each node.
  expect_match(
    told(rep(c(2, 8, 2, 16), each = 2)), "^Ranks per node mapped by core: 4 at 8 processes and 8 at 16\\.$", all = FALSE
  )
})
