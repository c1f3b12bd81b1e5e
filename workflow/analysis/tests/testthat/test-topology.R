study <- list(machine = list(levels = thin_levels), mappings = cycles)

test_that("ranks land where mpirun puts them", {
  expect_equal(place_ranks(study, "core", 48)[c(1, 13, 25), "socket"], c(0, 1, 2))
  expect_equal(place_ranks(study, "socket", 48)[c(1, 2, 3, 25, 26), "socket"], c(0, 1, 0, 2, 3))
  expect_equal(place_ranks(study, "node", 4)[, "socket"], c(0, 2, 1, 3))
  expect_equal(anyDuplicated(place_ranks(study, "node", 48)[, "core"]), 0)
  given <- modifyList(study, list(mappings = list(odd = list(label = "odd", cycle = list("node")))))
  expect_equal(place_ranks(given, "odd", 3)[, "node"], c(0, 1, 0))
})

test_that("trees", {
  expect_equal(tree_parents("linear", 4), c(0, 0, 0))
  expect_equal(tree_parents("pipeline", 4), c(0, 1, 2))
  expect_equal(tree_parents("binary_tree", 6), c(0, 0, 1, 2, 1))
  expect_equal(tree_parents("binomial", 6), c(0, 0, 1, 0, 1))
  expect_equal(tree_parents("chain", 7), c(0, 1, 0, 3, 0, 0))
  expect_equal(tree_parents("chain [fanout=2]", 5), c(0, 1, 0, 3))
})

test_that("hops of a linear broadcast over two nodes", {
  hops <- count_hops(study, "linear", "core", c(2, 26))
  expect_equal(hops["2", "messages_core"], 1)
  expect_equal(unname(hops["26", c("messages_core", "messages_socket", "messages_node")]), c(11, 12, 2))
  expect_equal(hops["26", "hops_node"], 2 / 26)
})

test_that("chains in step crowd the link between nodes", {
  hops <- count_hops(study, "chain", "node", c(8, 12))
  expect_equal(unname(hops[, "crowd_node"]), c(7, 6))
})

test_that("the barrier needs two more exchanges beyond a power of two", {
  hops <- count_hops(study, "linear", "core", c(8, 10))
  expect_equal(unname(hops[, "sync_core"]), c(3, 5))
})

test_that("boundaries lie where a mapping needs another unit", {
  results <- read_results(make_study(lawful(), levels = thin_levels))
  lines <- summarise_boundaries(results, c("core", "socket", "node"), 48)
  expect_equal(lines$processes[lines$mapping == "core"], c(24, 12, 36))
  expect_equal(lines$processes[lines$mapping == "socket"], 24)
  expect_equal(nrow(lines[lines$mapping == "node", ]), 0)
})
