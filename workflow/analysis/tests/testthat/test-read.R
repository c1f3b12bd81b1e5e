measured <- function(rows) read_measured(make_study(rows))$medians

test_that("unproved rows and rows without a latency are left out", {
  rows <- toy_rows("bcast", "linear", 2, c(1, 2, 4), c(1, 2, NA))
  rows$proved <- c(TRUE, FALSE, TRUE)
  expect_equal(measured(rows)$size_bytes, 1)
})

test_that("algorithms with several parameters, places and libraries are told apart", {
  rows <- toy_rows("bcast", "chain", c(2, 2, 4), 1, c(1, 2, 3))
  rows$mpi <- "A"
  rows$parameters <- c("fanout=2", "fanout=4", "fanout=4")
  expect_equal(
    measured(rows)$algorithm, c("chain:fanout=2", "chain:fanout=4", "chain:fanout=4")
  )
  rows$parameters <- ""
  rows$nodes <- c(1, 2, 2)
  expect_equal(measured(rows)$mapping, c("core on 1 node", "core on 2 nodes", "core on 2 nodes"))
  rows$nodes <- 1
  rows$mpi <- c("A", "B", "B")
  expect_equal(measured(rows)$mapping, c("core, A", "core, B", "core, B"))
})

test_that("in files, an algorithm and its parameters are two columns, also in lists of names", {
  rows <- toy_rows("bcast", rep(c("default", "chain", "chain"), each = 2), 2, rep(c(1, 2), 3), c(9, 9, 1, 2, 1, 2))
  rows$parameters <- rep(c("", "fanout=2;segment_bytes=64", "fanout=4"), each = 2)
  results <- read_results(make_study(rows))
  table <- split_variants(decide_winners(results, "bcast"), results$study, "bcast")
  expect_equal(table$winner, c("chain", "chain"))
  expect_setequal(c(table$winner_parameters, table$runner_up_parameters), c("fanout=2;segment_bytes=64", "fanout=4"))
  expect_equal(lengths(strsplit(table$tied, ";")), c(1, 1))
  decisions <- split_variants(decide_all(results), results$study)
  expect_true(all(decisions$algorithm %in% c("default", "chain")))
  expect_true("parameters" %in% names(decisions))
})

test_that("a missing column is named with its file", {
  rows <- toy_rows("bcast", "linear", 2, 1, 1)
  folder <- make_study(rows)
  readr::write_csv(rows[names(rows) != "mapping"], file.path(folder, "measurements.csv"))
  expect_error(read_results(folder), "measurements.csv: no column mapping")
})

test_that("defaults of the analysis come from the grid", {
  study <- read_study(make_study(lawful(sizes = 2^(0:8)), levels = thin_levels))
  expect_equal(study$analysis$size_classes$label, c("Small", "Medium", "Large"))
  expect_equal(study$analysis$size_classes$to, c(4, 32, 256))
  expect_equal(study$analysis$barrier_tree_knots, 12)
  expect_equal(study$analysis$fit_up_to, 16)
  expect_equal(study$analysis$figure_sizes, c(1, 8, 32, 256))
})

test_that("cells.csv may be missing", {
  expect_equal(nrow(read_cells(make_study(lawful()))), 0)
})
