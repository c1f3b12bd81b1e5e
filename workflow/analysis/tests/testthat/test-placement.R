study <- launched_study(
  thin_levels,
  list(bcast = c("linear", "pipeline", "binary_tree", "binomial", "chain", "chain:fanout=2"), reduce = "binomial"),
  c(2, 4:8, 10, 12, 26, 48), c("core", "socket", "node")
)
place <- function(mapping, processes) place_ranks(study, "bcast", mapping, processes)
tree <- function(collective, algorithm, processes, own = TRUE) {
  as.vector(sending_tree(study, "openmpi", collective, variant_of(study, collective, algorithm), processes, own))
}

test_that("ranks land where mpirun puts them", {
  expect_equal(place("core", 48)[c(1, 13, 25), "socket"], c(0, 1, 2))
  expect_equal(place("socket", 48)[c(1, 2, 3, 25, 26), "socket"], c(0, 1, 0, 2, 3))
  expect_equal(place("node", 4)[, "socket"], c(0, 2, 1, 3))
  expect_equal(anyDuplicated(place("node", 48)[, "core"]), 0)
  expect_null(place("core", 3 + 48))
})

test_that("trees", {
  expect_equal(tree("bcast", "linear", 4), c(0, 0, 0))
  expect_equal(tree("bcast", "pipeline", 4), c(0, 1, 2))
  expect_equal(tree("bcast", "binary_tree", 6), c(0, 0, 1, 2, 1))
  expect_equal(tree("bcast", "binomial", 6), c(0, 0, 1, 0, 1))
  expect_equal(tree("bcast", "chain", 7), c(0, 1, 0, 3, 0, 0))
  expect_equal(tree("bcast", "chain:fanout=2", 5), c(0, 1, 0, 3))
  # Below a reduction the neighbours come first; what is no tree has none of its own.
  expect_equal(tree("reduce", "binomial", 6), c(0, 0, 2, 0, 4))
})

test_that("hops of a linear broadcast over two nodes", {
  hops <- count_hops(study, "bcast", "linear", "core", c(2, 26))
  expect_equal(hops["2", "messages_core"], 1)
  expect_equal(unname(hops["26", c("messages_core", "messages_socket", "messages_node")]), c(11, 12, 2))
  expect_equal(hops["26", "hops_node"], 2 / 26)
})

test_that("chains in step crowd the link between nodes", {
  hops <- count_hops(study, "bcast", "chain", "node", c(8, 12))
  expect_equal(unname(hops[, "crowd_node"]), c(7, 6))
})

test_that("the barrier needs two more exchanges beyond a power of two", {
  hops <- count_hops(study, "bcast", "linear", "core", c(8, 10))
  expect_equal(unname(hops[, "sync_core"]), c(3, 5))
})

test_that("boundaries lie where a mapping needs another unit", {
  results <- list(study = study)
  lines <- summarise_boundaries(results, "bcast", c("core", "socket", "node"), 48)
  expect_equal(lines$processes[lines$mapping == "core"], c(24, 12, 36))
  expect_equal(lines$processes[lines$mapping == "socket"], 24)
  expect_equal(nrow(lines[lines$mapping == "node", ]), 0)
})
