# Launches here are simulated (simulate_rounds()); what is tested is how often the rule is wrong and right.

test_that("a difference within the rounds is found by hand", {
  rows <- simulate_rounds(c(a = 1, b = 1), rounds = 8, sizes = 1, noise = 0, drift = 0.5)
  rows$latency_us[rows$algorithm == "b"] <- rows$latency_us[rows$algorithm == "b"] *
    c(1.1, 1.2, 1.05, 1.1, 1.15, 1.1, 1.1, 1.3)
  found <- compare_rounds(rows)
  expect_equal(found$fastest, "a")
  expect_equal(found$ratio, 1.1)
  expect_equal(c(found$low, found$high), c(1.05, 1.3))
  expect_equal(found$test, "signed-rank")
  expect_equal(found$p_value, 2 / 2^8)
  expect_true(found$slower)
})

test_that("few rounds are tested with the variance of the neighbouring sizes, not with their means", {
  set.seed(4)
  rows <- simulate_rounds(c(a = 1, b = 1), rounds = 5, sizes = 7, noise = 0.01, drift = 0.3)
  crossing <- rows$algorithm == "b" & rows$size_bytes > 8
  rows$latency_us[crossing] <- rows$latency_us[crossing] * 1.5
  found <- compare_rounds(rows)
  expect_equal(unique(found$test), "t")
  expect_equal(found$slower[order(found$size_bytes)], rep(c(FALSE, TRUE), c(4, 3)))
})

test_that("Holm starts from all pairs of the cell's algorithms", {
  expect_equal(holm_from(c(0.01, 0.04, 0.02), 6), c(0.06, 0.16, 0.1))
})

test_that("what was measured once, or never in the same round, is not compared", {
  rows <- simulate_rounds(c(a = 1, b = 2), rounds = 1)
  expect_equal(nrow(compare_rounds(rows)), 0)
  expect_equal(nrow(compare_rounds(rows[0, ])), 0)
  apart <- simulate_rounds(c(a = 1, b = 2), rounds = 4)
  apart$round[apart$algorithm == "b"] <- "another:1"
  expect_false(any(compare_rounds(apart)$slower))
})

test_that("the error of the first kind is at most 5 % of the cells, whatever the noise is", {
  found <- simulate_power(0, c(3, 5, 8), noise_families, repeats = 20, seed = 11)
  # 300 cells of five families: 5 % and three standard errors of a share.
  by_rounds <- tapply(found$wrong_pct, found$rounds, mean)
  expect_lte(max(by_rounds), 5)
  expect_lte(max(found$wrong_pct), 5 + 3 * 100 * sqrt(0.05 * 0.95 / found$cells[1]))
  together <- simulate_power(0, 5, c("normal", "heavy"), repeats = 20, seed = 12, launch_share = 0.7)
  expect_lte(mean(together$wrong_pct), 5)
})

test_that("a difference of five times the noise is found with five rounds, drift or not", {
  found <- simulate_power(c(5, 20), 5, repeats = 15, seed = 13, drift = 0.5)
  expect_gt(found$detected_pct[2], 95)
  expect_gt(found$detected_pct[2], found$detected_pct[1])
  expect_s3_class(plot_power(found), "ggplot")
})
