# The default runs the binomial algorithm, which was measured by name, too; noise made the default 21 % slower.
twice <- function(...) {
  names <- c("default", "binomial", "chain")
  grid <- expand.grid(algorithm = names, processes = c(8, 16, 24, 32), stringsAsFactors = FALSE)
  rows <- toy_rows("bcast", grid$algorithm, grid$processes, 64, 1)
  rows$latency_us <- c(default = 12.1, binomial = 10, chain = 11.5)[rows$algorithm]
  rows$runs <- ifelse(rows$algorithm == "default", "binomial", NA)
  dplyr::mutate(rows, ...)
}

test_that("the default and the algorithm that it runs have one latency in decisions and regret", {
  results <- read_results(make_study(twice()))
  winners <- decide_winners(results, "bcast")
  expect_equal(unique(winners$winner_us), 11)
  expect_true(all(winners$default_is %in% c("best", "tied")))
  expect_equal(unique(winners$default_regret_pct), 0)
  expect_equal(unique(summarise_differences(results, "bcast")$difference_us), 0)
  expect_equal(unique(rows_of_slowdown(results, "bcast")$slowdown), c(1, 11.5 / 11))
  expect_equal(unique(decide_all(results)$algorithm), "default")
  expect_equal(unique(results$medians$latency_us), c(12.1, 10, 11.5))
  expect_match(caption_winners(results, "bcast"), "count as one")
  rows <- twice(runs = NA)
  expect_equal(unique(decide_winners(read_results(make_study(rows)), "bcast")$winner), "binomial")
})

test_that("equal latencies stay equal when two names are pooled", {
  # exp(log(0.05)) is larger than 0.05.
  results <- read_results(make_study(twice(latency_us = 0.05)))
  expect_equal(unique(decide_winners(results, "bcast")$winner), "default")
  expect_true(all(summarise_differences(results, "bcast")$difference_us <= 0))
  expect_identical(unique(results$judged$medians$latency_us), 0.05)
})

test_that("launches, authors and parameters stay apart", {
  rows <- dplyr::bind_rows(twice(source = "one"), twice(source = "two", latency_us = latency_us * 2, launch = 2))
  pooled <- pool_same_messages(rows_in_place(read_results(make_study(rows))$rows))
  expect_equal(sort(unique(round(pooled$latency_us[pooled$source == "two"], 9))), c(22, 23))
  with_segments <- dplyr::mutate(twice(), parameters = ifelse(algorithm == "binomial", "segment_bytes=8192", NA))
  pooled <- pool_same_messages(rows_in_place(read_results(make_study(with_segments))$rows))
  expect_equal(unique(pooled$latency_us), c(12.1, 10, 11.5))
})

test_that("an author's default is a launch of the algorithm that another author measured by name", {
  one <- twice(source = "one")
  two <- dplyr::filter(twice(source = "two", latency_us = 16, launch = 2), .data$algorithm == "default")
  medians <- read_results(make_study(dplyr::bind_rows(one, two)))$judged$medians
  # Without the authors' difference, chains of author one are as much slower than the default as this author measured.
  expect_equal(unique(medians$latency_us[medians$algorithm != "chain"]), sqrt(11 * 16), tolerance = 1e-3)
  expect_equal(unique(medians$latency_us[medians$algorithm == "chain"]), sqrt(11 * 16) * 11.5 / 11, tolerance = 1e-3)
  expect_equal(unique(medians$launches[medians$algorithm == "binomial"]), 2)
})

test_that("two times of one algorithm show the noise of decisions", {
  rows <- toy_rows("bcast", "default", 8, 2^(0:11), 1)
  rows <- dplyr::bind_rows(rows, dplyr::mutate(rows, algorithm = "binomial"), dplyr::mutate(rows, algorithm = "chain"))
  rows$latency_us <- c(default = 1.3, binomial = 1, chain = 1)[rows$algorithm]
  noise <- function(rows) {
    decided <- decide_all(read_results(make_study(rows)))
    list(unique(decided$noise_from), unique(decided$noise_pct), unique(decided$algorithm))
  }
  expect_equal(noise(rows), list("neighbours", 0, "binomial"))
  rows$runs <- ifelse(rows$algorithm == "default", "binomial", NA)
  expect_equal(noise(rows), list("same messages", 100 * 1.4826 * log(1.3) / sqrt(2), "default"))
})

test_that("runs that are slower at all sizes of a process count make no rule", {
  grid <- expand.grid(
    algorithm = c("default", "binomial", "chain"), processes = seq(4, 24, 4), size_bytes = 2^(0:5),
    stringsAsFactors = FALSE
  )
  rows <- toy_rows("bcast", grid$algorithm, grid$processes, grid$size_bytes, ifelse(grid$algorithm == "chain", 0.89, 1))
  # The default is as fast as the algorithm that it runs: 10 % faster and slower in turn, as whole runs or by size.
  differing <- function(by) {
    rows$runs <- ifelse(rows$algorithm == "default", "binomial", NA)
    rows$latency_us <- rows$latency_us * ifelse(rows$algorithm == "default", 1.1^((-1)^by), 1)
    decide_all(read_results(make_study(rows)))
  }
  noise <- 100 * 1.4826 * log(1.1) / sqrt(2)
  by_run <- differing(rows$processes / 4)
  expect_equal(range(by_run$noise_pct, by_run$series_noise_pct), c(noise, noise))
  expect_equal(unique(by_run$algorithm), "default")
  by_size <- differing(log2(rows$size_bytes))
  expect_equal(unique(by_size$noise_pct), noise)
  expect_equal(unique(by_size$series_noise_pct), 0)
  expect_equal(unique(by_size$algorithm), "chain")
})

test_that("regret on other data does not contain the noise between two runs of one algorithm", {
  rows <- dplyr::bind_rows(twice(source = "one"), twice(source = "two", latency_us = latency_us * 2, launch = 2))
  found <- summarise_regret_across(read_results(make_study(rows)))
  expect_equal(unique(found$geometric_mean_pct[found$policy == "default"]), 0)
  found <- summarise_regret_across(read_results(make_study(dplyr::mutate(rows, runs = NA))))
  expect_equal(unique(found$geometric_mean_pct[found$policy == "default"]), 21)
})

test_that("the difference between two runs of one algorithm is a table and a sentence", {
  rows <- twice(source = "one")
  same <- summarise_same_messages(read_results(make_study(rows)))
  expect_equal(same$cells, 4)
  expect_equal(c(same$bias_pct, same$median_abs_difference_pct, same$p90_abs_difference_pct), rep(21, 3))
  expect_match(describe_same_messages(same), "In 4 cells the default .* differ by 21 %, although")
  rule <- tie_rule(read_results(make_study(rows)), "bcast")
  expect_match(rule, "allow no test; two runs of one algorithm differ by 21 % \\(median\\)\\.$")
  both <- dplyr::bind_rows(rows, twice(source = "two", launch = 2))
  both <- summarise_same_messages(read_results(make_study(both)))
  expect_match(describe_same_messages(both), "In 8 cells \\(counted for each author\\) the default")
  expect_length(tables_of_same_messages(read_results(make_study(dplyr::mutate(rows, runs = NA)))), 0)
})

test_that("launches are numbered over all authors of a cell, and pooled for each author", {
  one <- dplyr::filter(twice(source = "one"), .data$algorithm != "binomial")
  two <- twice(source = "two")
  two$launch <- ifelse(two$algorithm == "binomial", 1, 2)
  results <- read_results(make_study(dplyr::bind_rows(one, two)))
  medians <- dplyr::filter(results$judged$medians, .data$algorithm != "chain")
  expect_equal(unique(medians$launches), 2)
  expect_equal(unique(round(medians$latency_us, 9)), round(sqrt(12.1 * 11), 9), tolerance = 1e-3)
  same <- summarise_same_messages(results)
  expect_equal(c(same$source, same$cells, same$bias_pct), c("two", 4, 21))
})

test_that("a cell with several names of the same messages is one cell", {
  rows <- toy_rows("bcast", c("default", "linear", "chain", "binomial"), 2, 64, c(1.1, 1, 1, 1))
  rows$source <- "one"
  rows$runs <- ifelse(rows$algorithm == "linear", NA, "linear")
  same <- summarise_same_messages(read_results(make_study(rows)))
  expect_equal(same$cells, 1)
  expect_match(describe_same_messages(same), "^In 1 cell the default runs")
  # Only the algorithm that the default runs counts, or cells of two ranks would count several times.
  rows$latency_us[rows$algorithm == "chain"] <- 2
  rows$latency_us[rows$algorithm == "binomial"] <- 3
  expect_equal(summarise_same_messages(read_results(make_study(rows)))$bias_pct, 10)
})

test_that("a default that was ten times as fast differs as much as one that was ten times as slow", {
  rows <- twice(source = "one")
  rows$latency_us[rows$algorithm == "default"] <- c(1, 1, 100, 100)
  same <- summarise_same_messages(read_results(make_study(rows)))
  expect_equal(c(same$median_abs_difference_pct, same$p90_abs_difference_pct), c(900, 900))
})

test_that("latencies of 0 do not give an algorithm more launches", {
  rows <- twice()
  rows$latency_us[rows$algorithm == "default" & rows$processes == 8] <- 0
  medians <- read_results(make_study(rows))$judged$medians
  expect_equal(unique(medians$launches), 1)
  expect_equal(medians$latency_us[medians$algorithm == "default"], medians$latency_us[medians$algorithm == "binomial"])
})

test_that("a default may run an algorithm that nobody measured", {
  results <- read_results(make_study(dplyr::filter(twice(), .data$algorithm != "binomial")))
  expect_equal(results$judged$medians$latency_us, results$medians$latency_us)
  expect_length(tables_of_same_messages(results), 0)
})

test_that("one decision for all placements loses nothing by the noise between two runs of one algorithm", {
  here <- dplyr::mutate(twice(), nodes = 1)
  # By node, the default was the faster run.
  there <- dplyr::mutate(here, mapping = "node")
  there$latency_us <- c(default = 10, binomial = 12.1, chain = 11.5)[there$algorithm]
  shared <- summarise_shared(read_results(make_study(dplyr::bind_rows(here, there))))
  expect_equal(unique(shared$max_pct), 0)
})
