# The same two algorithms after a barrier and in windows: linear seems faster after a barrier, and is not.
starts_study <- function() {
  loop <- toy_rows("bcast", rep(c("linear", "chain"), 2), 4, rep(c(8, 1024), each = 2), c(1, 2, 10, 10))
  loop$suite <- "OSU Micro-Benchmarks"
  loop$iterations <- 100
  loop$late <- NA
  windows <- loop
  windows$suite <- "collbench-windows"
  windows$latency_us <- c(4, 2, 10, 20)
  windows$iterations <- 90
  windows$late <- c(10, 0, 0, 0)
  read_results(make_study(dplyr::bind_rows(loop, windows)))
}

test_that("the bias of the barrier and dropped calls are those of each cell", {
  rows <- summarise_starts(starts_study())
  expect_equal(rows$algorithm, c("chain", "chain", "linear", "linear"))
  expect_equal(rows$bias_pct, c(0, -50, -75, 0))
  expect_equal(rows$late_pct, c(0, 0, 10, 0))
  fastest <- fastest_by_start(rows)
  expect_equal(fastest$barrier[1], "linear")
  expect_equal(fastest$window, c("chain", "linear"))
  expect_equal(fastest$costs_pct[1], 100)
})

test_that("sentences say bias, other winners and late calls", {
  results <- starts_study()
  said <- describe_starts(results)
  expect_match(said[1], "is 0.595 times that in windows in the geometric mean (0.25 times to 1 times)", fixed = TRUE)
  expect_match(said[2], "100 % slower in the median and 100 % at most", fixed = TRUE)
  # Of all calls, 10 of 370 (2.7 %).
  late <- paste(
    "In the mean over the cases, 2.5 % of the calls in windows were dropped because a rank started late (at most 10 %",
    "in a case)"
  )
  expect_match(said[3], late, fixed = TRUE)
  expect_setequal(ids(tables_starts(results)), "starts-bias")
  expect_no_error(ggplot2::ggplot_build(figures_starts(results)[[1]]$plot))
  expect_match(describe_starts_answer(results), said[1], fixed = TRUE)
})

test_that("algorithms with different parameters are different cases", {
  rows <- toy_rows("bcast", "chain", 4, 8, c(1, 10, 2, 30))
  rows$parameters <- rep(c("fanout=2", "fanout=4"), each = 2)
  rows$suite <- rep(c("OSU Micro-Benchmarks", "collbench-windows"), 2)
  rows$iterations <- 100
  rows$late <- 0
  found <- summarise_starts(read_results(make_study(rows)))
  expect_equal(found$barrier_us, c(1, 2))
  expect_equal(found$window_us, c(10, 30))
})

test_that("MPI libraries are different cases", {
  rows <- toy_rows("bcast", rep(c("linear", "chain"), 4), 4, 8, c(1, 2, 4, 3, 1, 2, 4, 3))
  rows$mpi <- rep(c("openmpi", "mpich"), each = 2, times = 2)
  rows$suite <- rep(c("OSU Micro-Benchmarks", "collbench-windows"), each = 4)
  rows$iterations <- 100
  rows$late <- 0
  results <- read_results(make_study(rows))
  found <- summarise_starts(results)
  expect_equal(found$barrier_us, found$window_us)
  expect_setequal(found$barrier_us, 1:4)
  expect_match(describe_starts(results)[2], "the same fastest algorithm in 2 of 2 cases", fixed = TRUE)
  expect_no_error(ggplot2::ggplot_build(figures_starts(results)[[1]]$plot))
  expect_true("mpi" %in% names(tables_starts(results)[[1]]$data))
})

test_that("of algorithms that are equally fast, all are the fastest", {
  rows <- toy_rows("bcast", rep(c("chain", "linear"), 2), 4, 8, c(1, 1, 1.1, 1.05))
  rows$suite <- rep(c("OSU Micro-Benchmarks", "collbench-windows"), each = 2)
  rows$iterations <- 100
  rows$late <- 0
  expect_match(
    describe_starts(read_results(make_study(rows)))[2], "the same fastest algorithm in 1 of 1 case.", fixed = TRUE
  )
})
