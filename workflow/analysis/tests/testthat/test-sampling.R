noisy_grid <- function() {
  set.seed(7)
  rows <- lawful(c(default = 1.3, linear = 1, chain = 1.1), counts = seq(2, 24, 2), sizes = 2^(0:12))
  crossing <- rows$algorithm == "chain" & !is.na(rows$size_bytes) & rows$size_bytes >= 256
  rows$latency_us[crossing] <- rows$latency_us[crossing] / 1.4
  rows$latency_us <- rows$latency_us * exp(rnorm(nrow(rows), 0, 0.01))
  read_results(make_study(rows))
}

test_that("a replay stays within its budget and finds the crossing", {
  results <- noisy_grid()
  run <- replay_sampling(results, "bcast", 1, budgets_pct = c(5, 15))
  expect_true(all(run$share_of_time_pct <= c(5, 15) + 1))
  expect_lt(run$mean_regret_pct[2], 3)
  expect_identical(replay_sampling(results, "bcast", 1, budgets_pct = c(5, 15)), run)
})

test_that("a replay ends when the expected regret is below the target", {
  expect_equal(nrow(replay_sampling(noisy_grid(), "bcast", 1, budgets_pct = c(5, 15), target_pct = 1000)), 1)
})

test_that("what was not asked for does not reach the model", {
  results <- noisy_grid()
  rows <- results$medians[results$medians$collective == "bcast", ]
  set.seed(1)
  part <- collanalysis:::start_sampling(rows, 5, 0)
  other <- part
  hidden <- !part$known
  other$grid$latency[hidden] <- other$grid$latency[hidden] + rnorm(sum(hidden))
  other$truth <- exp(other$grid$latency)
  expect_equal(
    collanalysis:::predict_process(other, results$study)$mean, collanalysis:::predict_process(part, results$study)$mean
  )
})
