test_that("winner, tie and regret by hand", {
  rows <- toy_rows(
    "bcast", rep(c("default", "linear", "chain"), each = 2), 2, rep(c(1, 1024), 3), c(1.015, 20, 1.00, 10, 3, 30)
  )
  winners <- decide_winners(read_results(make_study(rows)), "bcast")
  expect_equal(winners$winner, c("linear", "linear"))
  expect_equal(winners$tied, c("default", ""))
  expect_equal(winners$default_is, c("tied", "slower"))
  expect_equal(winners$default_regret_pct, c(1.5, 100))
  expect_equal(winners$runner_up, c("default", "default"))
})

test_that("overlapping intervals over launches are a tie, apart ones are not", {
  launches <- function(values) {
    toy_rows("bcast", rep(c("linear", "chain"), each = 3), 2, 1, values, launch = rep(1:3, 2))
  }
  tied <- decide_winners(read_results(make_study(launches(c(1, 1.2, 1.4, 1.3, 1.5, 1.7)))), "bcast")
  expect_equal(tied$tied, "chain")
  apart <- decide_winners(read_results(make_study(launches(c(1, 1.2, 1.4, 1.6, 1.7, 1.8)))), "bcast")
  expect_equal(apart$tied, "")
})

test_that("an algorithm that did not take part everywhere is named", {
  rows <- toy_rows("bcast", c("default", "linear", "chain", "default", "linear"), 2, c(1, 1, 1, 2, 2), 1:5)
  text <- describe_decision(read_results(make_study(rows)), "bcast")
  expect_match(text, "the fastest is that of those that have: CHAIN lacks 1\\.", all = FALSE)
  expect_no_match(describe_decision(read_results(make_study(rows[rows$algorithm != "chain", ])), "bcast"), "lacks")
})

test_that("one algorithm alone wins nothing", {
  alone <- read_results(make_study(toy_rows("bcast", "linear", 2, c(1, 2), c(1, 2))))
  expect_equal(nrow(decide_winners(alone, "bcast")), 0)
  expect_true("winner" %in% names(decide_winners(alone, "bcast")))
})
