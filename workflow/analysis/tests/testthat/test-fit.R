test_that("the plane gets back the plane it was made from", {
  grid <- expand.grid(processes = c(2, 4, 8), size_bytes = c(1, 16, 256))
  rows <- toy_rows(
    "bcast", "linear", grid$processes, grid$size_bytes, exp(-1 + 0.5 * log(grid$size_bytes) + 0.1 * grid$processes)
  )
  fit <- fit_loglinear(read_results(make_study(rows)), "bcast")
  expect_equal(unlist(fit[3:7], use.names = FALSE), c(-1, 0.5, 0.1, 1, 0), tolerance = 1e-8)
})

test_that("slopes between knots", {
  counts <- seq(2, 20, 2)
  rows <- toy_rows("barrier", "tree", counts, NA, 1 + 0.5 * counts - 0.3 * pmax(counts - 10, 0))
  slopes <- fit_tree_slopes(read_results(make_study(rows, list(barrier_tree_knots = list(10)))), "barrier")
  expect_equal(slopes$from_processes, c(2, 10))
  expect_equal(slopes$to_processes, c(10, 20))
  expect_equal(slopes$slope, c(0.5, 0.2))
})

test_that("slopes lie between the knots that the spline uses", {
  counts <- c(4, 8, 12, 16, 24, 32, 40, 48)
  rows <- toy_rows("barrier", "tree", counts, NA, 1 + 0.5 * counts - 0.3 * pmax(counts - 12, 0))
  slopes <- fit_tree_slopes(read_results(make_study(rows, list(barrier_tree_knots = list(12, 24, 36)))), "barrier")
  expect_equal(slopes$to_processes, c(12, 24, 48))
  expect_equal(slopes$slope, c(0.5, 0.2, 0.2))
})

test_that("barrier fits give coefficients with intervals and mark the form shown", {
  counts <- seq(2, 24, 2)
  rows <- dplyr::bind_rows(
    toy_rows("barrier", "linear", counts, NA, 1 + 0.5 * counts + rep(c(-0.01, 0.01), 6)),
    toy_rows("barrier", "recursive_doubling", counts, NA, 1 + 0.1 * counts + 2 * log2(counts) + rep(c(-0.01, 0.01), 6))
  )
  fits <- fit_barriers(read_results(make_study(rows, list(barrier_tree_knots = list(12)))), "barrier")
  expect_setequal(fits$model, c("linear", "spline", "log_linear"))
  chosen <- dplyr::filter(fits, chosen)
  expect_equal(unique(chosen$model), c("linear", "log_linear"))
  expect_equal(chosen$estimate, c(1, 0.5, 1, 0.1, 2), tolerance = 0.05)
  expect_true(all(chosen$low <= chosen$estimate & chosen$estimate <= chosen$high))
})

test_that("the form marked as chosen is the one that the figure shows, also if another mapping fits another form", {
  counts <- seq(2, 24, 2)
  noise <- rep(c(-0.01, 0.01), 6)
  rows <- dplyr::bind_rows(
    toy_rows("barrier", "bruck", counts, NA, 1 + 0.5 * counts - 0.4 * pmax(counts - 12, 0) + noise),
    toy_rows("barrier", "bruck", counts, NA, 1 + 0.1 * counts + 2 * log2(counts) + 30 * noise, mapping = "node")
  )
  results <- read_results(make_study(rows, list(barrier_tree_knots = list(12))))
  chosen <- dplyr::filter(fit_barriers(results, "barrier"), chosen)
  expect_setequal(chosen$mapping, c("core", "node"))
  expect_equal(unique(chosen$model), "spline")
  caption <- figures_fits(results, "barrier")[[1]]$caption
  for (mape in unique(chosen$mape_pct)) expect_match(caption, format_pct(mape), fixed = TRUE)
})

test_that("non-negative least squares", {
  a <- cbind(1, c(0, 1, 2, 3))
  expect_equal(fit_nonnegative(a, c(1, 3, 5, 7)), c(1, 2))
  expect_equal(fit_nonnegative(a, c(6, 4, 2, 0)), c(3, 0))
  expect_equal(fit_nonnegative(a, c(-1, -1, -1, -1)), c(0, 0))
})

test_that("of knots that are nearer to each other than two measured counts, the first is used", {
  counts <- seq(2, 62, 5)
  data <- tibble::tibble(processes = counts, latency_us = 1 + 0.5 * counts - 0.2 * pmax(counts - 4, 0))
  fit <- fit_barrier(data, "spline", seq(4, 60, 4))
  expect_false(anyNA(coef(fit)))
  expect_true("pmax(processes - 4, 0)" %in% names(coef(fit)))
  expect_length(coef(fit_barrier(data, "spline", c(20, 40))), 4)
})

test_that("a fit is drawn for the mappings that have enough process counts", {
  rows <- dplyr::bind_rows(
    toy_rows("barrier", "linear", 2 * 1:8, NA, 1 + 1:8 + c(-0.1, 0.1)),
    toy_rows("barrier", "linear", c(2, 4, 8), NA, c(1, 2, 5), mapping = "node")
  )
  plot <- figures_fits(read_results(make_study(rows)), "barrier")[[1]]$plot
  expect_equal(as.character(unique(plot$data$mapping)), "core")
})

test_that("the caption of the plane says of which of its terms the logarithm is taken", {
  results <- read_results(make_study(lawful()))
  expect_match(
    caption_loglinear(results, "bcast"), "of the number of processes and of the natural logarithm of message size"
  )
})
