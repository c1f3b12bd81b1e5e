test_that("slow-downs in a few numbers, by hand", {
  found <- summarise_slowdown(c(1, 1, 4, NA))
  expect_equal(found$geometric_mean_pct, 100 * (4^(1 / 3) - 1))
  expect_equal(found$mean_pct, 100)
  expect_equal(found$median_pct, 0)
  expect_equal(found$p90_pct, 240)
  expect_equal(found$max_pct, 300)
  expect_equal(found$cells, 3)
})

test_that("one outlier does not decide the geometric mean", {
  found <- summarise_slowdown(c(rep(1.01, 999), 1e6))
  expect_lt(found$geometric_mean_pct, 3)
  expect_gt(found$mean_pct, 90000)
  expect_equal(found$median_pct, 1)
})

test_that("nothing is NA, not an error", {
  expect_equal(summarise_slowdown(numeric())$cells, 0)
  expect_true(is.na(summarise_slowdown(NA_real_)$geometric_mean_pct))
})
