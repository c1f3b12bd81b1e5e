# Latencies made of known costs of messages, on nodes in two groups.
levels_of_groups <- list(
  list(name = "group", count = 2), list(name = "node", count = 128), list(name = "core", count = 1)
)

made_of_messages <- function(cost, counts = c(4, 8, 16, 32, 64, 256)) {
  grid <- expand.grid(
    algorithm = c("ring", "recursive_doubling"), processes = counts, size_bytes = 8^(1:7), stringsAsFactors = FALSE
  )
  rows <- toy_rows("allgather", grid$algorithm, grid$processes, grid$size_bytes, 1)
  rows$nodes <- rows$processes
  results <- read_results(make_study(
    rows, list(extrapolation = list(fit_up_to = 32)), levels = levels_of_groups
  ))
  cells <- count_cells(results)
  results$medians$latency_us <- drop(cells$counts %*% cost(cells$counts))
  remembering(results)
}

test_that("an algorithm's steps are its messages", {
  study <- launched_study(levels_of_groups, list(
    allreduce = c("rabenseifner", "recursive_doubling", "linear"), allgather = "neighbor_exchange", barrier = "tree"
  ), c(10, 16, 20))
  of <- function(...) steps_of_call(study, "openmpi", ...)
  steps <- of("allreduce", "rabenseifner", 16, 1024)
  expect_equal(sum(steps$bytes * steps$times), 2 * 1024 * 15 / 16)
  expect_equal(steps$bytes[steps$combines], c(512, 256, 128, 64))
  # Beyond a power of two, ranks fold before and after.
  expect_equal(nrow(of("allreduce", "recursive_doubling", 20, 8)), 4 + 2)
  # Rabenseifner's folded ranks exchange halves before: as many bytes, half of them summed.
  folded <- of("allreduce", "rabenseifner", 20, 1024)
  expect_equal(folded$bytes[c(1, 2, nrow(folded))], c(512, 512, 1024))
  expect_equal(folded$combines[1:2], c(TRUE, FALSE))
  expect_equal(of("allgather", "neighbor_exchange", 10, 8)$times, c(1, 4))
  expect_null(of("allreduce", "linear", 10, 8))
  expect_null(of("barrier", "tree", 10, NA))
})

test_that("messages between groups are counted by who sends to whom", {
  levels <- list(list(name = "group", count = 4), list(name = "node", count = 4), list(name = "core", count = 1))
  grid <- expand.grid(algorithm = c("recursive_doubling", "ring"), processes = c(12, 16), stringsAsFactors = FALSE)
  rows <- dplyr::mutate(toy_rows("allreduce", grid$algorithm, grid$processes, 64, 1), nodes = .data$processes)
  study <- read_results(make_study(rows, levels = levels))$study
  count <- function(...) count_messages(study, "allreduce", ..., 64)
  # Of 16 ranks, those at distances 4 and 8 are in another group.
  expect_equal(count("recursive_doubling", "core", 16)[["crossing"]], 2)
  # Of 12 ranks, 1, 3, 5, 7 and 8 to 11 take part: half of the second step's messages cross, and all of the third's.
  expect_equal(count("recursive_doubling", "core", 12)[["crossing"]], 1.5)
  expect_equal(count("ring", "core", 16)[["crossing"]], 30 / 4)
  # With fewer bytes than ranks, Open MPI runs another algorithm instead of the ring.
  expect_null(count_messages(study, "allreduce", "ring", "core", 16, 8))
})

test_that("known costs are found on few nodes and predict many", {
  cost <- function(counts) {
    known <- c(messages = 2, crossing = 1, bytes_to_2048 = 1e-3, bytes_to_16384 = 5e-4)
    cost <- setNames(numeric(ncol(counts)), colnames(counts))
    cost[names(known)] <- known
    cost[grepl("bytes_to", names(cost)) & cost == 0] <- 1e-4
    cost
  }
  results <- made_of_messages(cost)
  found <- dplyr::filter(summarise_message_costs(results), .data$fitted_up_to == 32)
  expect_equal(found$cost_ns[found$term == "messages"], 2000, tolerance = 1e-3)
  expect_equal(found$cost_ns[found$term == "bytes_to_16384"], 0.5, tolerance = 1e-3)
  errors <- dplyr::filter(
    summarise_extrapolation(results), .data$fitted_up_to == 32, .data$collective == "all", .data$processes %in% 256
  )
  expect_equal(errors$times, rep(8, nrow(errors)))
  expect_setequal(errors$model, names(extrapolation_words))
  of <- function(model) errors$median_abs_error_pct[errors$model == model]
  # No rank's partner on up to 32 nodes is in the other group: that message's cost is not in the data of the fit.
  expect_lt(of("messages"), 15)
  expect_gt(of("last_value"), 50)
  expect_lt(of("messages"), of("log_linear"))
})

test_that("sentences say whether the target is met, and where steps change", {
  cost <- function(counts) c(2, rep(0, ncol(counts) - 1))
  results <- made_of_messages(cost)
  said <- describe_extrapolation_study(results)
  expect_match(said[1], "fitted to 56 cells on at most 32 nodes, predicts 28 cells on 64 to 256 nodes")
  expect_match(said[2], "The median error is within the target on 64 and 256 nodes")
  expect_false(any(grepl("A step of a ring", said)))
  slow <- results$medians$processes == 256
  results$medians$latency_us[slow] <- 3 * results$medians$latency_us[slow]
  said <- describe_extrapolation_study(remembering(results[names(results) != "memory"]))
  expect_match(said, "A step of a ring .* takes 2 \u00b5s on the nodes of the fit, but 6 \u00b5s on 256", all = FALSE)
  expect_match(said, "and not on 256 nodes", all = FALSE)
})

test_that("a simulation fitted to few nodes is judged on more, next to the models of the same runs", {
  measured <- made_of_messages(function(counts) ifelse(colnames(counts) == "messages", 2, 1e-4))
  base <- tempfile("results")
  dir.create(base)
  of <- function(folder, analysis, latency_us, simulated = FALSE, ...) {
    cells <- measured$medians
    rows <- toy_rows("allgather", as.character(cells$algorithm), cells$processes, cells$size_bytes, latency_us)
    rows <- dplyr::mutate(rows, nodes = .data$processes, ...)
    make_study(rows, analysis, simulated, levels_of_groups, file.path(base, folder))
  }
  latency <- measured$medians$latency_us
  real <- of("real", list(extrapolation = list(fit_up_to = 32)), latency, statistic = "slowest_rank_median")
  change_study(real, chapter = "extrapolation")
  compare <- list(study = "real", fitted = list(allgather = list("ring", "recursive_doubling")), fitted_up_to = 32)
  # The mean over ranks says nothing here: the slowest rank takes a fifth longer.
  results <- read_results(of("toy", list(compare = compare), 1, TRUE, max_latency_us = 1.2 * latency))
  compared <- compare_studies(results)
  expect_equal(compared$ratio, rep(1.2, nrow(compared)))
  expect_equal(compared$held_out, compared$processes > 32)
  tables <- tables_accuracy(results)
  found <- tables[[which(ids(tables) == "accuracy-extrapolation")]]$data
  whole <- dplyr::filter(found, .data$collective == "all", is.na(.data$processes))
  expect_equal(whole$median_abs_error_pct[whole$model == "simulated"], 20)
  expect_setequal(whole$model, names(simulated_words()))
  expect_lt(whole$median_abs_error_pct[whole$model == "messages"], 15)
  said <- describe_accuracy(results)
  expect_match(said[1], "those of the slowest rank")
  expect_match(said[2], "the simulation predicts 28 cells on 64 to 256 nodes with an error of 20 %")
  expect_match(said[3], "the median error is 20 % \\(simulation\\)")
  expect_true("accuracy-extrapolation" %in% ids(figures_accuracy(results)))
  # Without a run that is small enough, there is nothing to fit the models to.
  results$study$analysis$compare$fitted_up_to <- 2
  expect_equal(unique(extrapolated_by_simulation(results, read_compared(results))$model), "simulated")
})

test_that("predictions for one number of nodes are not for a range", {
  results <- made_of_messages(function(counts) c(2, rep(0, ncol(counts) - 1)), counts = c(4, 8, 16, 32, 64))
  expect_match(describe_extrapolation_study(results)[1], "predicts 14 cells on 64 nodes")
})

test_that("the error by message length names the length for short messages, too", {
  results <- made_of_messages(function(counts) c(2, rep(0, ncol(counts) - 1)), counts = c(4, 8, 16, 32, 64))
  said <- describe_long_messages(results, 32)
  expect_match(said, "(no message of more than 16 KiB, ", fixed = TRUE)
  expect_match(said, "(some message of more than 16 KiB, ", fixed = TRUE)
})

test_that("models are compared at four times the nodes on the cells that both predict", {
  results <- made_of_messages(function(counts) c(2, rep(0, ncol(counts) - 1)))
  # The anchored model has no latency of the ring on 64 nodes or fewer, and is wrong for the others on 256.
  medians <- results$medians
  medians <- medians[!(as.character(medians$algorithm) == "ring" & medians$processes <= 64), ]
  other <- medians$processes == 256 & as.character(medians$algorithm) != "ring"
  medians$latency_us[other] <- 2 * medians$latency_us[other]
  results$medians <- medians
  results <- remembering(results[names(results) != "memory"])
  each <- filter(errors_at_four_times(extrapolations(results)), .data$fitted_up_to == 64)
  expect_equal(each$cells[match(c("messages", "messages_anchored"), each$model)], c(14, 7))
  said <- describe_larger_fits(results)
  expect_match(said, "on the cells that both models can predict: 64 to 256 nodes 50 % .* and 50 % .* \\(7 cells\\)\\.")
  expect_match(figures_extrapolation(results)[[1]]$caption, "The models predict different cells")
})
