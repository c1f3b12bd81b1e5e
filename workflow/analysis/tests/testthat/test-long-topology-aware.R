# On 2, 4 and 8 nodes "node" is twice as fast as the default from 1 KiB on, half as fast below.
toy_topology <- function() {
  grid <- expand.grid(
    algorithm = c("default", "node", "seed001"), nodes = c(2, 4, 8), ppn = c(1, 4), size_bytes = 2^(7:14),
    mapping = c("block", "shuffled"), stringsAsFactors = FALSE
  )
  long <- grid$size_bytes >= 1024
  factor <- ifelse(long == (grid$algorithm == "node"), 0.5, 2)
  slowest <- grid$size_bytes * ifelse(grid$algorithm == "default", 1, factor)
  rows <- toy_rows(
    "bcast", grid$algorithm, grid$nodes * grid$ppn, grid$size_bytes, slowest / 4, grid$mapping,
    setup_us = 1000, left_pct = 0
  )
  rows$nodes <- grid$nodes
  rows$max_latency_us <- slowest
  rows$mpi <- "smpi-openmpi"
  placements <- rep(c("one-node-each-half", "all-sends-cross"), each = 8)
  example <- toy_rows("bcast", "binomial", 8, rep(2^(7:14), 2), 1, placements)
  example$max_latency_us <- rep(c(1, 3), each = 8)
  example$nodes <- 2
  example$mpi <- "smpi-openmpi"
  folder <- make_study(dplyr::bind_rows(rows, example), simulated = TRUE)
  change_study(folder, chapter = "topology")
  read_results(folder)
}

test_that("speed-up is the default's latency over the algorithm's, of the slowest rank", {
  rows <- summarise_speedup(read_slowest(toy_topology()))
  node <- rows[rows$algorithm == "node", ]
  expect_equal(node$speedup, ifelse(node$size_bytes >= 1024, 2, 0.5))
  expect_equal(unique(node$default_us[node$size_bytes == 128]), 128)
  expect_false("default" %in% rows$algorithm)
})

test_that("the tree finds where the algorithms change, also for numbers of nodes that it has not seen", {
  results <- toy_topology()
  tree <- summarise_tree(results)
  expect_setequal(paste(tree$rule, tree$algorithm), c("from 1 KiB node", "below 1 KiB default"))
  policies <- summarise_policies(results)
  expect_equal(policies$geometric_mean_regret_pct[policies$policy == "node"], 100 * (2^(3 / 8) - 1))
  regret <- setNames(policies$mean_regret_pct, policies$policy)
  expect_equal(unname(regret[c("tree_fitted", "tree_held_out")]), c(0, 0))
  # Below 1 KiB, three of eight sizes, "node" takes twice as long; from there on the default does.
  expect_equal(regret[["node"]], 100 * 3 / 8)
  expect_equal(regret[["default"]], 100 * 5 / 8)
})

test_that("the learned decisions are lines that the collectives library reads", {
  lines <- write_decision_rules(toy_topology())
  expect_true(all(c("bcast 4 4 512 -> default", "bcast 4 4 * -> node") %in% lines))
})

test_that("figures, tables and sentences of the chapter are there and say simulated", {
  results <- toy_topology()
  write_analysis(results)
  read <- function(file) readr::read_csv(file.path(results$study$folder, file), show_col_types = FALSE)
  tables <- read("tables/index.csv")
  figures <- read("figures/index.csv")
  wanted <- c("speedup-by-hosts", "choice-policies", "choice-tree", "setup-cost", "placement-example")
  expect_setequal(tables$id, wanted)
  expect_true("speedup-bcast" %in% figures$id)
  expect_true(all(grepl("simulated", c(tables$caption, figures$caption))))
  said <- read("sentences.csv")
  expect_match(said$text[said$section == "placement"], "3 to 3 times")
})

test_that("the best algorithm of a cell is not a policy", {
  # Below 1 KiB, three of eight sizes, only seed001 is faster than the default.
  expect_match(
    describe_hosts(toy_topology()), paste0("takes ", format_number(2^(-5 / 8)), " times that latency"), fixed = TRUE
  )
})

test_that("a cell in which the default failed is in no mean over orders of hosts", {
  results <- toy_topology()
  failed <- with(results$rows, algorithm == "default" & mapping == "shuffled" & processes == 2 & size_bytes == 128)
  results$rows <- results$rows[!failed, ]
  expect_match(describe_hosts(results), "the default takes 1 times \\(broadcast\\) its latency in block order")
})

test_that("a study without node + group answers with the regret of its policies, or that it has none", {
  results <- toy_topology()
  expect_match(describe_topology_answer(results), "^Toy \\(simulated\\): Regret \\(geometric mean\\)")
  results$rows <- results$rows[results$rows$algorithm != "seed001", ]
  expect_match(describe_topology_answer(results), "^Toy \\(simulated\\): no topology-aware algorithm was compared")
})

test_that("the limits of the tree are points of the grid", {
  results <- toy_topology()
  # The next power of two above the split, between 900 and 3,000 B, is 2 KiB.
  wide <- results$rows$collective == "bcast" & results$rows$algorithm != "binomial"
  results$rows$size_bytes[wide] <- c(100, 300, 900, 3000, 9000, 27000, 81000, 243000)[
    match(results$rows$size_bytes[wide], 2^(7:14))
  ]
  expect_setequal(summarise_tree(results)$rule, paste(c("from", "below"), label_bytes(3000)))
})

test_that("every algorithm has a symbol, however many there are", {
  names <- c("default", paste0("algorithm", 1:20))
  results <- read_results(make_study(toy_rows("bcast", names, 8, 8, 1)))
  scales <- scale_algorithms_of_all(results, factor(names, names))
  plot <- ggplot2::ggplot(tibble::tibble(name = factor(names, names)), ggplot2::aes(1, 1, shape = name)) +
    ggplot2::geom_point() + scales
  expect_false(anyNA(ggplot2::ggplot_build(plot)$data[[1]]$shape))
})

test_that("a binomial tree among the algorithms of the grid is one of them", {
  results <- toy_topology()
  binomial <- dplyr::filter(results$rows, algorithm == "node") |>
    dplyr::mutate(algorithm = "binomial", max_latency_us = max_latency_us / 4)
  results$rows <- dplyr::bind_rows(results$rows, binomial)
  expect_setequal(topology_rows(results)$algorithm, c("default", "node", "seed001", "binomial"))
  expect_setequal(topology_rows(results)$mapping, c("block", "shuffled"))
  policies <- summarise_policies(results)
  expect_equal(policies$mean_regret_pct[policies$policy == "binomial"], 0)
  expect_equal(nrow(placement_table(results)), 8)
})

test_that("each MPI library is compared with its own default", {
  one <- toy_topology()
  # Ten times as slow: the same speed-ups and regrets.
  other <- dplyr::mutate(one$rows, mpi = "smpi-mpich", max_latency_us = 10 * max_latency_us)
  two <- one
  two$rows <- dplyr::bind_rows(one$rows, other)
  columns <- c("policy", "geometric_mean_regret_pct", "max_regret_pct")
  expect_equal(summarise_policies(two)[columns], summarise_policies(one)[columns])
  expect_equal(write_decision_rules(two), write_decision_rules(one))
  expect_equal(sub(", MPI libraries", "", describe_hosts(two)), describe_hosts(one))
  expect_match(describe_hosts(two), "geometric mean over nodes, processes, MPI libraries and sizes", fixed = TRUE)
  speedup <- function(results) speedup_table(results, topology_rows(results))
  expect_equal(nrow(speedup(two)), 2 * nrow(speedup(one)))
  expect_setequal(speedup(two)$mpi, c("smpi-openmpi", "smpi-mpich"))
  expect_false("mpi" %in% c(names(speedup(one)), names(setup_table(topology_rows(one)))))
  expect_setequal(setup_table(topology_rows(two))$mpi, c("smpi-openmpi", "smpi-mpich"))
  for (plot in list(plot_topology_speedup(two, "bcast"), plot_host_orders(two))) {
    lines <- ggplot2::ggplot_build(plot)$data[[2]]
    expect_equal(anyDuplicated(lines[c("PANEL", "group", "x")]), 0)
    expect_equal(dplyr::n_distinct(lines$linetype), 2)
  }
  expect_match(figures_topology(two)[[1]]$caption, "Line type: the MPI library.", fixed = TRUE)
  expect_no_match(figures_topology(one)[[1]]$caption, "Line type")
})

test_that("without hosts in block order, the figure of their orders says with which the others are compared", {
  texts <- function(results) {
    plot <- plot_host_orders(results)
    caption <- purrr::keep(figures_topology(results), function(figure) figure$id == "hosts-orders")[[1]]$caption
    c(plot$labels$title, plot$scales$get_scales("y")$name, caption)
  }
  results <- toy_topology()
  expect_match(texts(results), "block order", all = TRUE)
  results$rows <- dplyr::mutate(results$rows, mapping = ifelse(.data$mapping == "block", "random", .data$mapping))
  expect_no_match(texts(results), "block order")
  expect_match(texts(results), "with host file random", all = TRUE)
})
