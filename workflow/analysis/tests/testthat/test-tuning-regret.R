test_that("a rule is judged by what its file says at a size that did not decide", {
  rules <- tibble::tibble(mapping = "core", processes = 4, size_bytes = c(8, 64), algorithm = c("chain", "linear"))
  places <- tibble::tibble(
    mapping = "core", processes = c(4, 4, 4, 4, 4, 8), size_bytes = c(4, 16, 64, 127, 128, 64)
  )
  # The file ends at twice the largest size, and has no rule for 8 processes.
  expect_equal(rule_at(rules, places), c("chain", "chain", "linear", "linear", "default", "default"))
  # Its rules begin at half of the smallest size, unless that is one element.
  expect_equal(
    rule_at(dplyr::mutate(rules, size_bytes = 4 * size_bytes), places),
    c("default", "chain", "chain", "chain", "chain", "default")
  )
  barrier <- tibble::tibble(mapping = "core", processes = 4, size_bytes = NA_real_, algorithm = "linear")
  expect_equal(rule_at(barrier, barrier), "linear")
  empty <- tibble::tibble(mapping = "core", processes = 4, size_bytes = 0, algorithm = "linear")
  expect_equal(rule_at(empty, dplyr::bind_rows(empty, dplyr::mutate(empty, size_bytes = 1))), c("linear", "default"))
})

test_that("process counts are judged by what a file of the deciding ones says", {
  rules <- tibble::tibble(
    mapping = c("core", "core", "node"), processes = c(4, 8, 8), algorithm = c("chain", "linear", "ring")
  )
  found <- rules_at_counts(rules, c(2, 4, 6, 8, 10))
  expect_equal(found[c("mapping", "processes", "algorithm")], tibble::tibble(
    mapping = c("core", "core", "core", "node"), processes = c(4, 6, 8, 8),
    algorithm = c("chain", "chain", "linear", "ring")
  ))
  expect_equal(nrow(rules_at_counts(rules[0, ], 4)), 0)
  # Between 24 and 768 ranks, a file has no entry for 48 but one for 32 ranks.
  counts <- c(24, 48, 96, 192, 768)
  results <- with_rows(lawful(c(default = 1.3, linear = 1, chain = 1.1), counts))
  cells <- policy_cells(results, "bcast", split_tuning(counts))
  expect_false(48 %in% fill_counts(c(24, 96, 768)))
  expect_equal(fill_counts(2^(1:8)), 2:256)
  expect_equal(unique(cells$algorithm[cells$policy == "tuned"]), "linear")
  cells <- policy_cells(results, "bcast", split_tuning(counts, 2))
  tuned <- cells[cells$policy == "tuned", ]
  expect_equal(unique(tuned$processes[tuned$algorithm == "linear"]), 96)
  expect_equal(unique(tuned$processes[tuned$algorithm == "default"]), c(24, 768))
})

test_that("regret by hand", {
  regret <- summarise_regret(with_rows(lawful(c(default = 1.3, linear = 1, chain = 1.1))), "bcast", 1)
  all <- regret[regret$mapping == "all", ]
  # The last of the six judged counts is above the deciding ones, where a file has the default.
  by_hand <- c(30, 0, 100 * (1.3^(1 / 6) - 1))
  expect_equal(all$geometric_mean_pct[match(c("default", "best-single", "tuned"), all$policy)], by_hand)
  expect_equal(all$algorithm[all$policy == "best-single"], "linear")
  expect_equal(all$cells, rep(6L * 7L, 3))
  both <- summarise_regret(with_rows(lawful(c(default = 1.3, linear = 1, chain = 1.1))), "bcast")
  both <- both[both$split == both_halves & both$mapping == "all", ]
  expect_equal(c(both$cells, both$groups[both$policy == "tuned"]), c(rep(12L * 7L, 3), 12L))
})

test_that("one decision for all placements loses what the placements' own would gain", {
  places <- tibble::tribble(
    ~mapping, ~algorithm, ~latency_us,
    "core", "default", 4, "core", "linear", 1, "core", "chain", 2,
    "node", "default", 4, "node", "linear", 9, "node", "chain", 2, "node", "binomial", 1
  )
  rows <- toy_rows("bcast", places$algorithm, 8, 64, places$latency_us, places$mapping)
  # Alone at its number of processes a placement shares nothing.
  rows <- dplyr::bind_rows(rows, toy_rows("bcast", c("default", "linear"), 4, 64, 1:2, "core"))
  # One algorithm that both placements have is no decision.
  single <- toy_rows("bcast", c("linear", "chain", "linear"), 9, 64, 1:3, c("core", "core", "node"))
  rows <- dplyr::bind_rows(rows, single)
  results <- read_results(make_study(rows))
  shared <- summarise_shared(results)
  # Chain: twice linear by core, and the fastest by node of those that both have (binomial is not by core).
  expect_equal(shared$collective, c("bcast", "all"))
  expect_equal(shared$shapes, c(2, 2))
  expect_equal(shared$cells, c(2, 2))
  expect_equal(shared$geometric_mean_pct, rep(100 * (sqrt(2) - 1), 2))
  expect_equal(shared$max_pct, c(100, 100))
  alone <- summarise_shared(read_results(make_study(rows[rows$mapping == "core", ])))
  expect_equal(nrow(alone), 0)
  # The cells of a sampled study lack algorithms, which might be faster.
  results$study$sampling <- list(rounds = 3)
  expect_equal(summarise_shared(results), alone)
})

test_that("no decision is shared by MPI libraries, which read different files", {
  rows <- toy_rows("bcast", c("default", "linear"), 4, 8, 1:2)
  rows <- dplyr::bind_rows(rows, dplyr::mutate(rows, mpi = "mpich", latency_us = 2:1))
  expect_equal(nrow(summarise_shared(read_results(make_study(rows)))), 0)
  # By node, with Open MPI only.
  both <- dplyr::bind_rows(rows, toy_rows("bcast", c("default", "linear"), 4, 8, 1:2, "node"))
  expect_equal(summarise_shared(read_results(make_study(both)))$max_pct, c(0, 0))
})

test_that("of decisions that lose the same in the mean, the order of the rows selects none", {
  # Over both mappings, chain and linear take twice as long as the fastest: chain 1 and 4 times, linear 2 times.
  rows <- toy_rows(
    "bcast", rep(c("default", "chain", "linear"), 2), 4, 8, c(8, 1, 2, 1, 4, 2), rep(c("core", "node"), each = 3)
  )
  most <- function(rows) summarise_shared(read_results(make_study(rows)))$max_pct
  expect_equal(most(rows), most(rows[rev(seq_len(nrow(rows))), ]))
})
