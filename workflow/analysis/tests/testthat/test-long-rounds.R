# A sampled study of the toy law: grid.csv and study.json as Python writes them.
sampled_study <- function(rows, sampling = list(), simulated = TRUE, iterations = 3, start = "own") {
  folder <- make_study(rows, simulated = simulated)
  sampling <- utils::modifyList(
    list(rounds = 3, first_pct = 10, round_pct = 10, target_regret_pct = 0.5, startup_s = 1, seed = 1), sampling
  )
  provenance <- list(mpi = "smpi-openmpi", launches = list(min = 1, max = 1))
  change_study(folder, sampling = sampling, provenance = provenance)
  dir.create(file.path(folder, "sampling"))
  grid <- dplyr::mutate(
    rows, mpi = "smpi-openmpi", iterations = iterations, warmup = 1, weight = 1, start = start, spread_us = NA,
    cell = vctrs::vec_group_id(rows[setdiff(collanalysis:::point_keys, c("parameters", "size_bytes"))])
  )
  columns <- c(names(collanalysis:::grid_columns))
  readr::write_csv(grid[columns], file.path(folder, "sampling", "grid.csv"), na = "")
  file.remove(file.path(folder, "measurements.csv"))
  folder
}

read_selected <- function(folder, round) {
  types <- do.call(readr::cols_only, collanalysis:::grid_columns[collanalysis:::point_keys])
  readr::read_csv(file.path(folder, "sampling", paste0("round-", round), "selected.csv"), col_types = types)
}

# What Python does between two rounds: everything selected so far (but for `failing`) is measured as `rows` say.
measure_round <- function(folder, rows, round, failing = "none", file = NULL) {
  selected <- dplyr::distinct(dplyr::bind_rows(lapply(seq_len(round), function(n) read_selected(folder, n))))
  selected$parameters <- ""
  found <- dplyr::inner_join(rows, selected, by = collanalysis:::point_keys)
  found <- dplyr::mutate(
    found[found$algorithm != failing, ], cell = paste(.data$collective, .data$algorithm, .data$mapping, .data$processes)
  )
  path <- if (is.null(file)) file.path(folder, "sampling", paste0("round-", round), "measurements.csv") else file
  readr::write_csv(found, path, na = "")
}

run_rounds <- function(folder, rows, rounds = 3, ...) {
  for (round in seq_len(rounds)) {
    write_selected(folder, round)
    measure_round(folder, rows, round, ...)
  }
  measure_round(folder, rows, rounds, ..., file = file.path(folder, "measurements.csv"))
  read_results(folder)
}

broadcast <- function(...) dplyr::filter(lawful(...), .data$collective == "bcast")

test_that("the first round draws points with all algorithms, the same ones again", {
  rows <- broadcast()
  folder <- sampled_study(rows)
  write_selected(folder, 1)
  selected <- read_selected(folder, 1)
  expect_setequal(unique(selected$algorithm), c("default", "linear", "chain"))
  expect_equal(dplyr::n_distinct(table(selected$algorithm)), 1)
  expect_lt(nrow(selected), nrow(rows) / 2)
  expect_equal(nrow(dplyr::anti_join(selected, rows, by = c("algorithm", "processes", "size_bytes"))), 0)
  write_selected(folder, 1)
  expect_equal(read_selected(folder, 1), selected)
})

test_that("points are written as the grid has them", {
  rows <- broadcast(counts = c(2, 4), sizes = 1e5 * 2^(0:3))
  folder <- sampled_study(rows, list(first_pct = 100))
  path <- file.path(folder, "sampling", "grid.csv")
  writeLines(gsub("1e5", "100000", readLines(path)), path)
  write_selected(folder, 1)
  expect_match(readLines(file.path(folder, "sampling", "round-1", "selected.csv")), "100000$", all = FALSE)
})

test_that("sampled decisions are those of the law, and say what was measured", {
  rows <- broadcast(c(default = 1.3, linear = 1, chain = 1.6))
  results <- run_rounds(sampled_study(rows), rows)
  found <- decide_all(results)
  expect_equal(unique(found$algorithm), "linear")
  expect_setequal(unique(found$processes), 2:24)
  expect_setequal(unique(found$basis), c("measured", "interpolated"))
  measured <- paste(found$processes, found$size_bytes)[found$basis == "measured"]
  known <- results$medians[results$medians$algorithm == "linear", ]
  expect_true(all(measured %in% paste(known$processes, known$size_bytes)))
  at <- found$processes == 8 & found$size_bytes == 1024
  expect_equal(found$expected_us[at], 4, tolerance = 0.2)
})

test_that("a round asks for nothing when the target is reached or the budget is spent", {
  rows <- broadcast()
  reached <- sampled_study(rows, list(target_regret_pct = 1000))
  spent <- sampled_study(rows, list(budget_node_minutes = 0.001))
  for (folder in c(reached, spent)) {
    run_rounds(folder, rows)
    # The expected regret counts from the second round on.
    expect_equal(nrow(read_selected(folder, 2)) == 0, folder == spent)
    expect_equal(nrow(read_selected(folder, 3)), 0)
  }
  results <- read_results(reached)
  rounds <- summarise_rounds(results)
  expect_equal(rounds$round, 1:2)
  write_analysis(results)
  expect_match(describe_rounds(results)[1], "not above the target of 1,000 %")
})

test_that("what failed is not selected again, and is no candidate", {
  rows <- broadcast()
  folder <- sampled_study(rows, list(target_regret_pct = 0))
  results <- run_rounds(folder, rows, failing = "linear")
  first <- read_selected(folder, 1)
  again <- dplyr::bind_rows(read_selected(folder, 2), read_selected(folder, 3))
  keys <- c("algorithm", "processes", "size_bytes")
  expect_equal(nrow(dplyr::semi_join(first[first$algorithm == "linear", ], again, by = keys)), 0)
  expect_gt(sum(first$algorithm == "linear"), 0)
  found <- decide_all(results)
  failed <- paste(found$processes, found$size_bytes) %in%
    with(first[first$algorithm == "linear", ], paste(processes, size_bytes))
  expect_false(any(found$algorithm[failed] == "linear"))
})

test_that("where nothing can be decided nothing is measured, and the default stays", {
  for (algorithms in list(c(linear = 1, chain = 1.2), c(default = 1))) {
    rows <- broadcast(algorithms)
    folder <- sampled_study(rows)
    results <- run_rounds(folder, rows)
    expect_equal(nrow(read_selected(folder, 1)), 0)
    found <- decide_all(results)
    expect_equal(unique(found$algorithm), "default")
    why <- if ("default" %in% names(algorithms)) "only the default" else "no measurements of the default"
    expect_match(found$reason, why, all = TRUE)
    write_analysis(results)
    expect_match(describe_rounds(results), "no decision was open")
    expect_length(collanalysis:::figures_of_rounds(results), 0)
  }
})

test_that("one real launch a cell: the noise is not known, and the default stays", {
  rows <- broadcast(c(default = 1.3, linear = 1), counts = c(4, 8, 16), sizes = 4^(0:3))
  results <- run_rounds(sampled_study(rows, simulated = FALSE), rows)
  found <- decide_all(results)
  expect_equal(unique(found$algorithm), "default")
  expect_match(found$reason, "one launch per cell", all = TRUE)
})

test_that("rounds by hand: points, launches, node-minutes, and the true regret in the complete study", {
  rows <- broadcast(c(default = 1.3, linear = 1))
  folder <- sampled_study(rows, list(rounds = 1, startup_s = 2))
  complete <- make_study(rows, folder = file.path(dirname(folder), "complete"))
  change_study(folder, analysis = list(compare = list(study = "complete")))
  results <- run_rounds(folder, rows, rounds = 1)
  found <- summarise_rounds(results)
  selected <- read_selected(folder, 1)
  expect_equal(found$points, nrow(selected))
  expect_equal(found$points_pct, 100 * nrow(selected) / nrow(rows))
  expect_equal(found$launches, nrow(dplyr::distinct(selected, .data$algorithm, .data$processes)))
  loops <- 4 * 1e-6 * sum(dplyr::semi_join(rows, selected, by = c("algorithm", "processes", "size_bytes"))$latency_us)
  expect_equal(found$node_minutes, (loops + 2 * found$launches) / 60)
  whole <- (4 * 1e-6 * sum(rows$latency_us) + 2 * 24) / 60
  expect_equal(found$share_of_time_pct, 100 * found$node_minutes / whole)
  expect_equal(found$default_geometric_mean_regret_pct, 30)
  expect_equal(found$geometric_mean_regret_pct, 0)
  expect_equal(found$mean_regret_pct, 0)
  unlink(complete, recursive = TRUE)
})

test_that("a complete study with further algorithms and sizes judges the grid's, also where it lacks a cell", {
  rows <- broadcast(c(default = 1.3, linear = 1))
  folder <- sampled_study(rows, list(rounds = 1))
  complete <- broadcast(c(default = 1.3, linear = 1, chain = 0.5), sizes = 4^(0:7))
  complete <- dplyr::filter(complete, .data$algorithm != "linear" | .data$processes != 24)
  complete <- make_study(complete, folder = file.path(dirname(folder), "complete"))
  change_study(folder, analysis = list(compare = list(study = "complete")))
  found <- summarise_rounds(run_rounds(folder, rows, rounds = 1))
  expect_equal(found$geometric_mean_regret_pct, 0)
  # Of 12 counts, the default is alone at one, and 30 % slower at the others.
  expect_equal(found$default_geometric_mean_regret_pct, 100 * (1.3^(11 / 12) - 1))
  unlink(complete, recursive = TRUE)
})

test_that("a launch sweeps the sizes between two where that costs less than another launch", {
  part <- list(usable = array(TRUE, c(1, 1, 6)), cell = array(1, c(1, 1, 6)))
  cells <- cbind(1, 1, c(1, 3, 6))
  cost <- list(point = array(c(1, 1, 1, 5, 5, 1), c(1, 1, 6)), launch = 2)
  joined <- collanalysis:::join_launches(part, cells, cost)
  expect_equal(joined[, 3], c(1, 2, 3, 6))
  expect_equal(collanalysis:::launch_of(joined), c(1, 1, 1, 2))
  # Sizes of different cells, such as those of a program, cannot share a launch.
  part$cell[] <- 1:6
  expect_equal(collanalysis:::join_launches(part, cells, cost)[, 3], c(1, 3, 6))
})

test_that("the whole grid costs a launch for each cell", {
  points <- tidyr::expand_grid(algorithm = c("default", "linear"), processes = 4, size_bytes = c(1, 20, 300))
  points <- dplyr::mutate(
    points, nodes = 1, calls = 0, latency_us = NA, launches = 0, usable = TRUE, algorithm_name = .data$algorithm,
    parameters = ""
  )
  total <- function(points) collanalysis:::point_cost(collanalysis:::sampling_part(points), 10)$total
  expect_equal(total(points), 20)
  points$cell <- 1:6
  expect_equal(total(points), 60)
  expect_equal(total(dplyr::mutate(points, start = "shared")), 20)
})

test_that("a launch that algorithms share takes along what costs less than another launch", {
  part <- list(usable = array(TRUE, c(2, 1, 3)), grid = list(latency = array(NA_real_, c(2, 1, 3))), shared = TRUE)
  # By algorithm, then size: the last size of both is expensive.
  cost <- list(point = array(c(0.1, 0.2, 0.5, 0.6, 5, 5), c(2, 1, 3)), launch = 2)
  joined <- collanalysis:::join_launches(part, cbind(1, 1, 1), cost)
  expect_equal(joined, rbind(c(1, 1, 1), c(1, 1, 2), c(2, 1, 1), c(2, 1, 2)), ignore_attr = TRUE)
  # Where ranks wait for each other at each call, that costs as well.
  points <- tidyr::expand_grid(algorithm = c("default", "linear"), processes = 4, size_bytes = c(1, 2))
  points <- dplyr::mutate(points, nodes = 1, calls = 100, latency_us = NA, usable = TRUE, spread_us = 1e4) |>
    dplyr::mutate(launches = 0, algorithm_name = .data$algorithm, parameters = "")
  expect_true(all(collanalysis:::point_cost(collanalysis:::sampling_part(points), 1)$point > 1))
})

test_that("rounds with shared launches reach the law's decisions for a fraction of the starts", {
  rows <- dplyr::filter(broadcast(c(default = 1.3, linear = 1, chain = 1.6), sizes = 2^(0:6)), .data$processes == 8)
  rows <- dplyr::mutate(rows, seconds = 0.5 / 3, round = "block:0")
  sampling <- list(rounds = 2, first_pct = 20, round_pct = 20)
  folder <- sampled_study(rows, sampling, simulated = FALSE, start = "shared")
  results <- run_rounds(folder, rows, rounds = 2)
  decided <- collanalysis:::decide_sampled(results)
  expect_setequal(decided$algorithm[decided$processes == 8], "linear")
  found <- collanalysis:::summarise_rounds(results)
  # All is measured in one launch of half a second; alone each of the three algorithms would have had one.
  expect_equal(found$launches, 1)
  expect_equal(found$node_minutes, 0.5 / 60)
  expect_equal(found$share_of_time_pct, 100 / 3, tolerance = 0.02)
  expect_equal(found$points_pct, 100)
  caption <- collanalysis:::tables_of_rounds(results)[[1]]$caption
  expect_no_match(caption, "the whole grid was not measured")
  expect_match(caption, "the true regret is unknown, because no other study has the whole grid.", fixed = TRUE)
})

test_that("a collective that the budget does not allow keeps the default, and the others decide when the rounds end", {
  rows <- lawful()
  folder <- sampled_study(rows, list(budget_node_minutes = 0.07, target_regret_pct = 50))
  complete <- make_study(rows, folder = file.path(dirname(folder), "complete"))
  change_study(folder, analysis = list(compare = list(study = "complete")))
  results <- run_rounds(folder, rows)
  expect_equal(unique(read_selected(folder, 1)$collective), "bcast")
  expect_equal(nrow(read_selected(folder, 3)), 0)
  text <- describe_rounds(results)
  expect_match(text[1], "not above the target of 50 %")
  expect_match(text[2], "the budget did not suffice: barrier")
  # Of 84 broadcasts and 12 barriers, all barriers have a default that is 10 % slower.
  found <- tail(summarise_rounds(results), 1)
  expect_equal(found$geometric_mean_regret_pct, 100 * (1.1^(12 / 96) - 1))
  unlink(complete, recursive = TRUE)
})

test_that("a collective whose launches all failed is not said to lack a budget", {
  rows <- lawful()
  folder <- sampled_study(rows, list(budget_node_minutes = 100, rounds = 1))
  results <- run_rounds(folder, dplyr::filter(rows, .data$collective == "bcast"), rounds = 1)
  expect_setequal(read_selected(folder, 1)$collective, c("bcast", "barrier"))
  expect_length(describe_rounds(results), 1)
})
