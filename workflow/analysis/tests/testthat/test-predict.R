results <- read_results(make_study(lawful(), levels = thin_levels))

test_that("the split depends on the grid alone", {
  data <- tibble::tibble(processes = rep(c(2, 4, 6, 8), each = 4), size_bytes = rep(c(1, 2, 4, 8), 4))
  held <- matrix(split_held_out(data), 4)
  expect_equal(held[, 1], c("", "", "sizes", ""))
  expect_equal(held[, 2], c("processes", "processes", "both", "processes"))
  expect_equal(held[, 4], c("", "", "sizes", ""))
})

test_that("interpolation is exact on what is linear in the logarithm, and constant beyond", {
  train <- tibble::tibble(processes = c(2, 6), size_bytes = 1, latency_us = exp(c(1, 3)))
  test <- tibble::tibble(processes = c(4, 8), size_bytes = 1)
  expect_equal(collanalysis:::predict_interpolation(train, test, NULL), exp(c(2, 3)))
  expect_equal(collanalysis:::predict_last_value(train, test, NULL), exp(c(1, 3)))
  train <- tibble::tibble(processes = 2, size_bytes = c(1, 16), latency_us = c(1, 16))
  expect_equal(collanalysis:::predict_interpolation(train, tibble::tibble(processes = 2, size_bytes = 4), NULL), 4)
})

test_that("the hop model gets back a law that is made of hops, and extrapolates it", {
  errors <- summarise_model_errors(results, "bcast")
  expect_named(errors, c(
    "collective", "algorithm", "mapping", "model", "held_out_cells", "held_out_mape_pct", "extrapolation_mape_pct"
  ))
  linear <- errors[errors$algorithm == "linear", ]
  expect_lt(linear$extrapolation_mape_pct[linear$model == "hops"], 15)
  expect_gt(linear$extrapolation_mape_pct[linear$model == "last_value"], 15)
  expect_equal(unique(linear$held_out_cells), 12 * 7 - 7 * 6)
})

test_that("collectives without sizes are judged with the published forms as well", {
  errors <- summarise_model_errors(results, "barrier")
  expect_true(all(c("linear", "spline", "log_linear", "interpolation") %in% errors$model))
  expect_lt(max(errors$held_out_mape_pct[errors$model == "linear"]), 1e-6)
})

test_that("too few process counts give a header only", {
  few <- read_results(make_study(lawful(counts = 2)))
  expect_equal(nrow(summarise_model_errors(few, "bcast")), 0)
  expect_equal(nrow(fit_hop_costs(few, "bcast")), 0)
})

test_that("hop costs are never negative and name their terms", {
  costs <- fit_hop_costs(results, "bcast")
  expect_true(all(costs$cost_us > 0))
  expect_true(all(grepl("^(constant|hops_|messages_|crowd_|sync_)", costs$term)))
  caption <- caption_costs(results, "bcast")
  for (kind in c("hops", "messages", "crowd", "sync")) expect_match(caption, paste0(kind, ": "))
})

test_that("a study with fewer sizes at many processes is judged without the model that needs them all", {
  rows <- lawful(c(default = 1.1, chain = 1.3), counts = 2 * 1:9, sizes = 4^(0:6)) |>
    dplyr::filter(.data$collective == "bcast", .data$processes <= 8 | .data$size_bytes >= 1024)
  detail <- summarise_model_detail(read_results(make_study(rows, levels = thin_levels)), "bcast")
  extrapolated <- unique(detail$model[detail$held_out == "extrapolation"])
  expect_true("interpolation" %in% extrapolated)
  expect_false("smooth" %in% extrapolated)
})

test_that("many process counts are fitted and judged on some: shared ones first, spread evenly", {
  some <- rows_to_model(results, "bcast")
  expect_equal(some, rows_to_fit(results, "bcast"))
  many <- read_results(make_study(lawful(c(default = 1.1, linear = 1), counts = 2:200), levels = list(
    list(name = "node", count = 2), list(name = "socket", count = 2), list(name = "core", count = 50)
  )))
  counts <- sort(unique(rows_to_model(many, "barrier")$processes))
  expect_length(counts, 96)
  expect_equal(range(counts), c(2, 200))
  expect_lte(max(diff(counts)), 3)
  expect_equal(unique(summarise_model_errors(many, "barrier")$held_out_cells), 47)
  expect_match(caption_errors(many, "barrier"), "At most 96 process counts of each algorithm and mapping are used.")
  expect_no_match(caption_errors(results, "barrier"), "at most 96")
  rows <- lawful(c(default = 1.1, linear = 1), counts = 2:200) |>
    dplyr::filter(.data$algorithm == "linear" | .data$processes %% 4 == 1)
  uneven <- rows_to_model(read_results(make_study(rows)), "barrier")
  of <- split(uneven$processes, as.character(uneven$algorithm))
  expect_equal(of$default, seq(5, 197, 4))
  expect_length(of$linear, 96)
  expect_true(all(of$default %in% of$linear))
})

test_that("models of a collective without sizes are not said to be tested on message sizes", {
  results <- read_results(make_study(lawful()))
  expect_match(describe_models(results, "barrier")[1], "^Interpolation to process counts that were left out")
  expect_match(describe_models(results, "bcast")[2], "^Interpolation to process counts and message sizes that were")
  expect_match(caption_errors(results, "barrier"), "every second number of processes was left out")
})

test_that("a caption says how sizes that other process counts lack are interpolated", {
  rows <- toy_rows("bcast", "linear", rep(c(3, 6, 12, 24), each = 4), c(8 * 8^(0:3), rep(9 * 8^(0:3), 3)), 1)
  told <- "Message sizes differ between process counts: where a count lacks a size, interpolation takes the latency of"
  expect_match(caption_errors(read_results(make_study(rows)), "bcast"), told)
  expect_no_match(caption_errors(results, "bcast"), "Message sizes differ")
})

test_that("every model of a legend is explained", {
  expect_match(model_note, "The smooth surface is a penalised regression spline of log latency")
})
