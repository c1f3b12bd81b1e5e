flat <- list(list(name = "node", count = 2), list(name = "core", count = 2))
placed <- launched_study(flat, list(bcast = "linear"), 1:4)
place <- function(processes) place_ranks(placed, "bcast", "core", processes)
costs <- list(latency = c(node = 2e6, core = 1e6), gap_byte = c(node = 4e3, core = 1e3))

# Runs of one law: 4 GFlop/s a core, and on P processes `extra` seconds more.
runs <- function(counts = c(1, 2, 4), sizes = c(24, 48), extra = 0) {
  grid <- expand.grid(processes = counts, n = sizes)
  flops <- 1e3 * grid$n^3
  seconds <- flops / 4e9 / grid$processes + extra * (grid$processes > 1)
  rows <- toy_rows(
    "svd", "default", grid$processes, NA, 1e6 * seconds, comm_us = 1e6 * extra * (grid$processes > 1), sweeps = 8,
    flops = flops, residual = 1e-14, bandwidth_mb_s = NA_real_
  )
  dplyr::mutate(rows, parameters = paste0("n=", grid$n))
}

ladder <- function(levels = c(core = 0.2, node = 3)) {
  grid <- expand.grid(level = names(levels), size_bytes = 2^(0:20), stringsAsFactors = FALSE)
  toy_rows(
    "latency", "default", 2, grid$size_bytes, levels[grid$level] + grid$size_bytes / 5000,
    mapping = paste0("level-", grid$level), comm_us = NA, sweeps = NA, flops = NA, residual = NA,
    bandwidth_mb_s = NA_real_
  )
}

study_of <- function(rows) read_results(make_study(rows, levels = flat))

test_that("the model by hand: one process, and two cores of a node", {
  # 4 columns: 6 pairs a sweep at 1 s each.
  expect_equal(model_svd(place(1), 4, 5, 5 * 6e9, 1, costs), c(compute = 30, total = 30))
  # 3 steps of one pair; a record of 64 + 64 + 64 bytes each way at 1 ms a byte, both over one core's link; one step of
  # the reduction; the matrix (4 x 64 bytes) to and the records from the other process, half of them.
  expect_equal(
    model_svd(place(2), 4, 5, 5 * 6e9, 1, costs),
    c(compute = 15, total = 5 * (3 * (1 + 1 + 2 * 0.192) + 1) + (1 + 0.128) + (1 + 0.384))
  )
})

test_that("blocks that do not divide evenly, and more processes than columns", {
  for (processes in 2:4) {
    found <- model_svd(place(processes), 7, 1, 21e9, 1, costs)
    # No order is faster than dividing the pairs evenly, none slower than one process alone.
    expect_gte(found[["compute"]], 21 / processes)
    expect_lte(found[["compute"]], 21)
  }
  expect_equal(model_svd(place(4), 2, 1, 1e9, 1, costs)[["compute"]], 1)
})

test_that("runs across a level that the ladder lacks have no model", {
  results <- study_of(dplyr::bind_rows(runs(), ladder(c(core = 0.2))))
  expect_equal(predict_scaling(results)$processes, rep(1:2, 2))
  expect_match(describe_scaling_model(results)[1], "It predicts 2 of the other 4 runs \\(")
  # Without sizes from 64 KiB on there is no bandwidth.
  short <- study_of(dplyr::bind_rows(runs(), dplyr::filter(ladder(), size_bytes < 65536)))
  expect_false("svd-predicted" %in% ids(models_of_scaling(short)[lengths(models_of_scaling(short)) > 0]))
  expect_length(figures_of_scaling_model(short, "svd", ""), 0)
  expect_match(describe_scaling_model(short), "There is no model; it needs .* a ladder with .* of the levels")
})

test_that("speed-up, share of communication and flop rate come back", {
  scaling <- summarise_scaling(read_scaling(study_of(runs(extra = 1e-5))))
  expect_equal(fit_flop_rate(scaling), 4)
  alone <- scaling$seconds[scaling$n == 48 & scaling$processes == 1]
  four <- scaling[scaling$n == 48 & scaling$processes == 4, ]
  expect_equal(four$speedup, alone / (alone / 4 + 1e-5))
  expect_equal(four$comm_pct, 100 * 1e-5 / four$seconds)
})

test_that("an application is not a collective", {
  results <- study_of(dplyr::bind_rows(runs(), ladder()))
  expect_equal(collectives_of(results), character())
})

test_that("with a ladder there is a model, its comparison and its figures; without, there is not", {
  results <- study_of(dplyr::bind_rows(runs(), ladder()))
  models <- models_of(results)
  names(models) <- ids(models)
  expect_true(all(c("svd-predicted", "comparison") %in% names(models)))
  comparison <- models$comparison$data
  expect_named(comparison, c("collective", "algorithm", "mapping", "model", "held_out_cells", "held_out_mape_pct"))
  # Nothing but flops was put into the runs.
  expect_equal(comparison$held_out_mape_pct[comparison$model == "flops_only"], 0, tolerance = 1e-6)
  expect_true(all(c("svd-speedup", "svd-communication", "svd-model") %in% ids(figures_of(results))))
  expect_match(describe_scaling_model(results)[1], "The model takes 4 GFlop/s per core")
  expect_match(describe_answer(results), "the largest speed-up is 4 on 4 processes")

  bare <- study_of(runs())
  expect_false("svd-predicted" %in% ids(models_of(bare)))
  expect_match(describe_scaling_model(bare), "There is no model")
})

test_that("runs under two mappings have rows, panels and one error of the model", {
  slower <- dplyr::mutate(runs(), mapping = "socket", latency_us = ifelse(processes > 1, 2, 1) * latency_us)
  levels <- append(flat, list(list(name = "socket", count = 1)), 1)
  folder <- make_study(dplyr::bind_rows(runs(), slower, ladder()), levels = levels)
  results <- read_results(folder)
  expect_no_warning(write_analysis(results, folder))
  read <- function(file) readr::read_csv(file.path(folder, file), show_col_types = FALSE)
  speedups <- read("tables/svd-speedups.csv")
  expect_equal(speedups[["48x48"]][speedups$mapping == "core"], c(1, 2, 4))
  expect_equal(speedups[["48x48"]][speedups$mapping == "socket"], c(1, 1, 2))
  expect_equal(nrow(read("models/svd-predicted.csv")), nrow(dplyr::distinct(read("models/svd-predicted.csv")[1:3])))
  plots <- purrr::map(figures_of_scaling(results), "plot")
  panels <- purrr::map_int(plots, function(plot) nrow(ggplot2::ggplot_build(plot)$layout$layout))
  expect_equal(panels, c(2, 2, 4))
  said <- describe_scaling_model(results)
  expect_match(said[1], "predicts the other 8 runs with a mean error of .*; flops alone have an error of 25 %")
  expect_length(grep("^The model takes", said), 1)
})

test_that("runs with two MPI libraries, or on several numbers of nodes, are told apart", {
  slower <- dplyr::mutate(runs(), mpi = "mpich", latency_us = ifelse(processes > 1, 2, 1) * latency_us)
  folder <- make_study(dplyr::bind_rows(runs(), slower, ladder()), levels = flat)
  results <- read_results(folder)
  expect_no_warning(write_analysis(results, folder))
  speedups <- readr::read_csv(file.path(folder, "tables/svd-speedups.csv"), show_col_types = FALSE)
  expect_equal(speedups$mapping, rep(c("core, mpich", "core, openmpi"), each = 3))
  expect_equal(speedups[["48x48"]], c(1, 1, 2, 1, 2, 4))
  expect_match(describe_scaling_model(results)[1], "predicts the other 8 runs")

  apart <- dplyr::mutate(dplyr::filter(runs(), processes > 1), nodes = 2, latency_us = 2 * latency_us)
  spread <- summarise_scaling(read_scaling(study_of(dplyr::bind_rows(runs(), apart))))
  # One process is the baseline of both.
  expect_equal(spread$speedup[spread$n == 48 & spread$mapping == "core on 1 node"], c(1, 2, 4))
  expect_equal(spread$speedup[spread$n == 48 & spread$mapping == "core on 2 nodes"], c(1, 2))
})

test_that("any number of matrix sizes can be drawn", {
  results <- study_of(runs(sizes = 24 * 1:17))
  for (figure in figures_of_scaling(results)) {
    expect_no_warning(built <- ggplot2::ggplot_build(figure$plot))
    points <- dplyr::bind_rows(built$data[purrr::map_lgl(built$data, function(layer) "shape" %in% names(layer))])
    expect_false(anyNA(points[c("colour", "shape")]))
  }
})

test_that("no speed-up is said to be none", {
  results <- study_of(runs(counts = c(1, 2), sizes = 24, extra = 1))
  said <- paste(describe_scaling(results), collapse = " ")
  expect_match(said, "speed-up is none: more processes are not faster \\(24")
})

test_that("matrix sizes without a run on one process have no speed-up and no rate", {
  partly <- dplyr::filter(runs(), processes > 1 | parameters == "n=24")
  results <- study_of(partly)
  tables <- tables_of_scaling(results)
  expect_named(tables[[which(ids(tables) == "svd-speedups")]]$data, c("processes", "24x24"))
  for (figure in figures_of_scaling(results)) expect_no_warning(ggplot2::ggplot_build(figure$plot))

  lacking <- read_results(make_study(dplyr::filter(runs(), processes > 1), levels = flat, simulated = TRUE))
  expect_equal(nrow(tables_of_scaling(lacking)[[2]]$data), 0)
  expect_equal(ids(figures_of_scaling(lacking)), "svd-communication")
  expect_no_match(describe_scaling(lacking), "NaN")
})

test_that("the published speed-ups are compared where there are enough of both", {
  said <- function(counts) {
    lab <- list(list(name = "node", count = 2), list(name = "socket", count = 2), list(name = "core", count = 16))
    folder <- make_study(runs(counts, sizes = 256), levels = lab, simulated = TRUE)
    change_study(folder, machine = list(name = "ethernet-lab"))
    results <- read_results(folder)
    describe_published_svd(results, summarise_scaling(read_scaling(results)))
  }
  # Published: 2.28, 4.94 and 0.73 on 2, 32 and 64 processes; the point of one process does not count.
  expect_equal(said(c(1, 2, 32, 64)), c(
    "The Spearman rank correlation between published [@wisner-svd] and simulated speed-ups is -0.5 (256 \u00d7 256).",
    paste0(
      "From ", c("2 to 32", "32 to 64"), " processes, where a further ", c("socket", "node"), " is needed, the ",
      "published speed-up falls at ", 0:1, " of 1 matrix sizes, the simulated one at 0."
    )
  ))
  expect_length(said(c(1, 2)), 0)
  expect_length(said(c(32, 40)), 0)
})

test_that("matrix sizes that lack a run on either side of a boundary are not compared there", {
  lab <- list(list(name = "node", count = 2), list(name = "socket", count = 2), list(name = "core", count = 16))
  rows <- runs(c(1, 2, 32, 64), sizes = c(256, 512))
  folder <- make_study(dplyr::filter(rows, .data$parameters != "n=256" | .data$processes != 32), levels = lab)
  change_study(folder, machine = list(name = "ethernet-lab"))
  results <- read_results(folder)
  said <- describe_published_svd(results, summarise_scaling(read_scaling(results)))
  expect_match(said, "^From 2 to 32 .* falls at 0 of 1 matrix sizes, the simulated one at 0\\.$", all = FALSE)
  expect_match(said, "^From 32 to 64 .* falls at 1 of 1 matrix sizes, the simulated one at 0\\.$", all = FALSE)
})

test_that("runs on one process say nothing of more", {
  said <- paste(describe_scaling(study_of(runs(counts = 1))), collapse = " ")
  expect_no_match(said, "speed-up is none")
  expect_match(said, "On 1 process a rank spends 0.0 % of the time")
})

test_that("shares of communication that are equal for all sizes are not said to fall", {
  said <- function(extra) describe_communication(read_scaling(study_of(runs(extra = extra))))
  expect_no_match(said(0), "the larger the matrix")
  expect_match(said(1e-5), "the larger the matrix, the less")
})

test_that("mappings of one matrix size say nothing about larger ones", {
  rows <- dplyr::filter(runs(extra = 1e-5), .data$parameters == "n=24")
  by_node <- dplyr::mutate(rows, mapping = "node", comm_us = .data$comm_us / 2)
  flat_socket <- list(list(name = "node", count = 2), list(name = "socket", count = 1), list(name = "core", count = 2))
  said <- describe_communication(read_scaling(read_results(
    make_study(dplyr::bind_rows(rows, by_node), levels = flat_socket)
  )))
  expect_no_match(said, "the larger the matrix")
})

test_that("fewer and more flops than on one process are told apart, and so are the sweeps", {
  said <- function(ratios) {
    runs <- tibble::tibble(n = 24, processes = c(1, 2, 4), flops = c(100, ratios), sweeps = c(9, 8, 8))
    describe_work(runs, 1, TRUE)
  }
  expect_match(said(c(103, 105)), "counted 3.0 % to 5.0 % more flops than on one, in 8 sweeps\\.")
  expect_match(said(c(90, 105)), "counted 10.0 % fewer to 5.0 % more flops than on one")
  expect_match(said(c(90, 95)), "counted 10.0 % to 5.0 % fewer flops than on one")
})
