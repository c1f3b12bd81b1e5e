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
  run <- replay_sampling(results, "bcast", 1, rounds = 2, first_pct = 5, round_pct = 10)
  expect_true(all(run$share_of_time_pct <= c(5, 15) + 3))
  expect_lt(run$geometric_mean_regret_pct[2], 3)
  expect_true(all(run$geometric_mean_regret_pct <= run$mean_regret_pct))
  expect_identical(replay_sampling(results, "bcast", 1, rounds = 2, first_pct = 5, round_pct = 10), run)
})

test_that("a replay ends when the expected regret is below the target, but not after the random first round", {
  expect_equal(nrow(replay_sampling(noisy_grid(), "bcast", 1, target_regret_pct = 1000)), 2)
})

test_that("what was not selected does not reach the choice of points", {
  results <- noisy_grid()
  rows <- results$medians[results$medians$collective == "bcast", ]
  whole <- collanalysis:::sampling_part(dplyr::mutate(rows, nodes = 1, calls = 10, usable = TRUE))
  rules <- list(first_pct = 5, round_pct = 5, target_regret_pct = 0, budget_node_s = Inf, startup_s = 0)
  run <- function(truth) {
    set.seed(1)
    parts <- list(whole)
    parts[[1]]$grid$latency[] <- NA
    cost <- collanalysis:::point_cost(c(whole, list(model = list(whole = log(truth)))), 0)
    lapply(1:3, function(round) {
      selected <- collanalysis:::select_points(parts, round, rules, results$study)
      parts[[1]] <<- collanalysis:::measure_points(parts[[1]], selected[[1]], truth, cost)
      selected[[1]]
    })
  }
  truth <- exp(whole$grid$latency)
  selected <- run(truth)
  hidden <- array(TRUE, dim(truth))
  hidden[do.call(rbind, selected)] <- FALSE
  expect_gt(sum(hidden), sum(!hidden))
  truth[hidden] <- truth[hidden] * exp(rnorm(sum(hidden)))
  expect_identical(run(truth), selected)
})

test_that("nothing is selected if the measurement of every point failed", {
  rows <- noisy_grid()$medians |>
    dplyr::filter(collective == "bcast") |>
    dplyr::mutate(nodes = 1, calls = 10, usable = FALSE, latency_us = NA_real_)
  rules <- list(first_pct = 5, round_pct = 5, target_regret_pct = 0, budget_node_s = 60, startup_s = 1)
  selected <- collanalysis:::select_points(list(collanalysis:::sampling_part(rows)), 2, rules, noisy_grid()$study)
  expect_equal(nrow(selected[[1]]), 0)
})

test_that("first draws that the budget does not allow are left out, those of least weight first", {
  rows <- dplyr::mutate(
    noisy_grid()$medians, nodes = 1, calls = 10, usable = TRUE, latency_us = NA_real_, low_us = NA_real_,
    high_us = NA_real_
  )
  part <- function(weight) collanalysis:::sampling_part(dplyr::mutate(rows, weight = .env$weight))
  drawn <- function(budget_node_s) {
    rules <- list(first_pct = 1, round_pct = 1, target_regret_pct = 0, startup_s = 1, budget_node_s = budget_node_s)
    set.seed(1)
    map_dbl(collanalysis:::select_points(map(c(2, 1, 3), part), 1, rules, noisy_grid()$study), nrow)
  }
  # A draw has a launch of 1 s for each of three algorithms, which sweeps the sizes.
  expect_equal(drawn(Inf) > 0, c(TRUE, TRUE, TRUE))
  expect_equal(drawn(7) > 0, c(TRUE, FALSE, TRUE))
  expect_equal(drawn(5) > 0, c(FALSE, FALSE, TRUE))
  expect_equal(drawn(1) > 0, c(FALSE, FALSE, TRUE))
})

test_that("collectives that share launches cost the start of one", {
  rows <- dplyr::filter(noisy_grid()$medians, .data$processes == 8) |>
    dplyr::mutate(
      nodes = 1, calls = 10, usable = TRUE, latency_us = NA_real_, low_us = NA_real_, high_us = NA_real_,
      start = "shared"
    )
  part <- collanalysis:::sampling_part(rows)
  rules <- list(first_pct = 1, round_pct = 1, target_regret_pct = 0, startup_s = 1, budget_node_s = 1.5)
  selected <- collanalysis:::select_points(list(part, part), 1, rules, noisy_grid()$study)
  expect_true(all(map_dbl(selected, nrow) > 0))
  # Other nodes, or numbers of ranks, are other launches.
  fewer <- collanalysis:::sampling_part(dplyr::mutate(rows, processes = 4))
  expect_equal(nrow(collanalysis:::select_points(list(part, fewer), 1, rules, noisy_grid()$study)[[2]]), 0)
})

test_that("first draws cost what the other collectives' points of the round leave", {
  rows <- dplyr::mutate(
    noisy_grid()$medians, nodes = 1, calls = 10, usable = TRUE, low_us = latency_us, high_us = latency_us, weight = 1
  )
  known <- collanalysis:::sampling_part(rows)
  known$grid$latency[, -1, ] <- NA
  new <- collanalysis:::sampling_part(dplyr::mutate(rows, latency_us = NA_real_, weight = 2))
  rules <- list(first_pct = 1, round_pct = 10, target_regret_pct = 0, startup_s = 1, budget_node_s = 5)
  set.seed(1)
  selected <- collanalysis:::select_points(list(known, new), 2, rules, noisy_grid()$study)
  # 2 or more of 5 s are spent on the first, and a draw has three launches of 1 s.
  expect_equal(map_dbl(selected, nrow) > 0, c(TRUE, FALSE))
})

test_that("one point is one launch; neighbouring sizes share one", {
  expect_equal(launch_of(matrix(c(1, 2, 3), 1)), 1)
  expect_equal(launch_of(rbind(c(1, 2, 3), c(1, 2, 4), c(1, 3, 5))), c(1, 1, 2))
})

test_that("the replay takes a collective that was measured with its default, or says that there is none", {
  rows <- lawful(counts = seq(2, 24, 4), sizes = 4^(0:3))
  scatter <- dplyr::mutate(rows[rows$collective == "bcast", ], collective = "scatter")
  without <- dplyr::bind_rows(rows[rows$collective == "bcast" & rows$algorithm != "default", ], scatter)
  folder <- withr::local_tempdir()
  written <- write_sampling(read_results(make_study(without)), folder, seeds = 1:2)
  expect_true(all(file.exists(written)))
  expect_setequal(readr::read_csv(written[1], show_col_types = FALSE)$collective, "scatter")
  written <- write_sampling(read_results(make_study(without[without$collective == "bcast", ])), folder, seeds = 1:2)
  expect_true(all(file.exists(written)))
  expect_equal(nrow(readr::read_csv(written[1], show_col_types = FALSE)), 0)
  expect_match(paste(readLines(written[2]), collapse = ""), "no sampling can be replayed")
})

test_that("the dashed line is the default's regret in the cells of the replays, all process counts", {
  counts <- c(2, 4, 6, 8, 10)
  # The default loses at the first, third and fifth count, which decide if half of the counts judge.
  rows <- dplyr::bind_rows(
    toy_rows("bcast", "default", counts, 8, 10 * c(2, 1, 2, 1, 2)), toy_rows("bcast", "linear", counts, 8, 10)
  )
  sampling <- tibble::tibble(
    collective = "bcast", startup_s = 0, share_of_time_pct = 10, geometric_mean_regret_pct = 5, sd_over_seeds = 1
  )
  lines <- ggplot2::layer_data(plot_sampling(read_results(make_study(rows)), sampling), 1)
  expect_equal(lines$yintercept, 100 * (2^(3 / 5) - 1))
})
