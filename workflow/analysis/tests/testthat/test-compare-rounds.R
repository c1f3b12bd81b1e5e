# Launches here are simulated (simulate_rounds()); what is tested is how often the rule is wrong and right.

test_that("a difference within the rounds is found by hand", {
  rows <- simulate_rounds(c(a = 1, b = 1), rounds = 8, sizes = 1, noise = 0, drift = 0.5)
  rows$latency_us[rows$algorithm == "b"] <- rows$latency_us[rows$algorithm == "b"] *
    c(1.1, 1.2, 1.05, 1.1, 1.15, 1.1, 1.1, 1.3)
  found <- compare_rounds(rows)
  expect_equal(found$fastest, "a")
  expect_equal(found$ratio, 1.1)
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
  expect_equal(holm_within(c(1, 1, 1), c(0.01, 0.04, 0.02), c(6, 6, 6)), c(0.06, 0.16, 0.1))
  # Groups do not touch each other, and a value that is not known is no hypothesis less.
  expect_equal(
    holm_within(c(2, 1, 2, 1, 2), c(0.01, 0.5, NA, 0.02, 0.3), c(6, 3, 6, 3, 6)), c(0.06, 1, NA, 0.06, 1)
  )
  p <- c(0.01, 0.03, 0.02, 0.9)
  expect_equal(holm_within(rep(1, 4), p, rep(4, 4)), stats::p.adjust(p, "holm"))
})

# Launches of many kinds, with ties and gaps; every part (mapping x processes) has its own number of rounds.
odd_launches <- function(seed, paired = TRUE) {
  set.seed(seed)
  rows <- map_dfr(1:6, function(part) {
    names <- sample(letters, sample(1:6, 1))
    slow <- setNames(1 + sample(c(0, 0.02, 0.5), length(names), TRUE), names)
    found <- simulate_rounds(slow, c(1, 2, 3, 5, 9, 14)[part], sizes = sample(1:7, 1), noise = sample(c(0, 0.1), 1))
    mutate(found, processes = part, mapping = sample(c("core", "node"), 1), latency_us = signif(.data$latency_us, 2))
  })
  rows <- rows[stats::runif(nrow(rows)) > 0.2, ]
  if (!paired) rows$round <- NA_character_
  rows
}

test_that("the parts of a study do not touch each other, and the order of the rows says nothing", {
  for (paired in c(TRUE, FALSE)) {
    rows <- odd_launches(5, paired)
    found <- compare_rounds(rows)
    expect_gt(nrow(found), 20)
    expect_equal(compare_rounds(rows[sample(nrow(rows)), ]), found)
    alone <- map_dfr(split(rows, paste(rows$mapping, rows$processes, sep = "\r")), compare_rounds)
    expect_equal(alone, found)
    # One part without rounds leaves the pairs of the others.
    mixed <- bind_rows(rows, mutate(odd_launches(6, FALSE), mapping = "socket"))
    expect_equal(filter(compare_rounds(mixed), .data$mapping != "socket"), found)
  }
})

test_that("every cell is compared as the tests of the stats package compare it", {
  rows <- map_dfr(7:9, function(seed) mutate(odd_launches(seed), processes = .data$processes + 10 * seed))
  found <- compare_rounds(rows)
  expect_setequal(found$test, c("none", "t", "signed-rank"))
  for (i in seq_len(nrow(found))) {
    keys <- c("mapping", "processes", "size_bytes")
    cell <- inner_join(rows, found[i, keys], by = keys)
    able <- cell[several(cell, "algorithm"), ]
    typical <- tapply(able$latency_us, able$algorithm, median)
    expect_equal(found$fastest[i], names(which.min(typical)))
    pairs <- inner_join(
      cell[cell$algorithm == found$algorithm[i], ], cell[cell$algorithm == found$fastest[i], ], by = "round"
    )
    expect_equal(found$rounds[i], nrow(pairs))
    if (nrow(pairs) < 2) next
    expect_equal(found$ratio[i], exp(median(log(pairs$latency_us.x / pairs$latency_us.y))))
  }
})

test_that("the p-values of one size are those of the stats package", {
  set.seed(8)
  rows <- simulate_rounds(c(a = 1, b = 1.05), rounds = 9, sizes = 1)
  x <- log(rows$latency_us[rows$algorithm == "b"] / rows$latency_us[rows$algorithm == "a"])
  expect_equal(compare_rounds(rows)$p_value, stats::wilcox.test(x, exact = TRUE)$p.value)
  # Ties share their rank, zeros are half for and half against (Pratt).
  expect_equal(signed_rank_p(cbind(c(1, -1, 2, 3, 4, NA))), 2 * stats::psignrank(1, 5))
  expect_equal(signed_rank_p(cbind(c(0, 0, 1, 2), c(-1, -2, -3, -4))), c(2 * stats::psignrank(1, 4), 2 / 2^4))
  few <- simulate_rounds(c(a = 1, b = 1.05), rounds = 4, sizes = 1)
  x <- log(few$latency_us[few$algorithm == "b"] / few$latency_us[few$algorithm == "a"])
  expect_equal(compare_rounds(few)$p_value, stats::t.test(x)$p.value)
  # Without rounds: the means of two samples, of which the one has gaps.
  apart <- mutate(few, round = NA_character_)[-1, ]
  a <- log(apart$latency_us[apart$algorithm == "a"])
  b <- log(apart$latency_us[apart$algorithm == "b"])
  t <- abs(mean(a) - mean(b)) / sqrt(var(a) / 3 + var(b) / 4)
  expect_equal(compare_rounds(apart)$p_value, 2 * stats::pt(-t, 2))
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
