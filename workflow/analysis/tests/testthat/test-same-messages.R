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
  expect_equal(unique(decide_all(results)$algorithm), "default")
  expect_equal(unique(results$medians$latency_us), c(12.1, 10, 11.5))
  expect_match(caption_winners(results, "bcast"), "one latency")
  rows <- twice(runs = NA)
  expect_equal(unique(decide_winners(read_results(make_study(rows)), "bcast")$winner), "binomial")
})

test_that("launches, authors and parameters stay apart", {
  rows <- dplyr::bind_rows(twice(source = "one"), twice(source = "two", latency_us = latency_us * 2, launch = 2))
  pooled <- pool_same_messages(rows_in_place(read_results(make_study(rows))$rows))
  expect_equal(unique(pooled$latency_us[pooled$source == "two"]), c(22, 23))
  with_segments <- dplyr::mutate(twice(), parameters = ifelse(algorithm == "binomial", "segment_bytes=8192", NA))
  pooled <- pool_same_messages(rows_in_place(read_results(make_study(with_segments))$rows))
  expect_equal(unique(pooled$latency_us), c(12.1, 10, 11.5))
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
  expect_match(describe_same_messages(same), "In 4 cells .* differ by 21 %, although")
  expect_length(tables_of_same_messages(read_results(make_study(dplyr::mutate(rows, runs = NA)))), 0)
})
