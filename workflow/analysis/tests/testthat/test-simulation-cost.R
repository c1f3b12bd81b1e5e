study_with_cells <- function(simulated = TRUE) {
  folder <- make_study(lawful(), simulated = simulated, levels = thin_levels)
  cells <- tibble::tibble(
    collective = c("bcast", "bcast", "bcast", "barrier", "latency"),
    algorithm = c("linear", "chain", "chain", "linear", "x"), mapping = "core", processes = c(24, 24, 24, 24, 2),
    cell = letters[1:5], seconds = c(5, 2, 4, 1, 9), peak_memory_mb = c(100, 200, 300, 50, 1)
  )
  readr::write_csv(cells, file.path(folder, "cells.csv"))
  read_results(folder)
}

test_that("the cost of the cells of a collective; point-to-point tests do not count, real machines have no such cost", {
  cost <- summarise_simulation_cost(study_with_cells())
  expect_equal(cost$collective, c("barrier", "bcast"))
  bcast <- cost[cost$collective == "bcast", ]
  expect_equal(bcast[c("cells", "median_seconds", "max_seconds", "costliest", "peak_memory_mb")], tibble::tibble(
    cells = 3L, median_seconds = 4, max_seconds = 5, costliest = "linear", peak_memory_mb = 300
  ))
  said <- describe_simulation_cost(study_with_cells())
  expect_match(said, "24 processes took at most .*5 s \\(broadcast, LINEAR\\), and 0.3 GB of memory")
  expect_equal(nrow(summarise_simulation_cost(study_with_cells(simulated = FALSE))), 0)
})

test_that("the cost of a message size and the exponent of the number of processes", {
  results <- study_with_cells()
  results$cells <- tibble::tibble(
    collective = "bcast", algorithm = "chain", parameters = "", processes = c(64, 128, 256, 256, 512, 512),
    cell = letters[1:6], seconds = c(2, 8, 16, 48, 8, 9), peak_memory_mb = 1
  )
  results$cells$algorithm[5:6] <- "linear"
  # One size of 64 ranks, two of 128; two cells of 256 with one and three sizes.
  results$rows <- tibble::tibble(cell = rep(letters[1:6], c(1, 2, 1, 3, 1, 1)), size_bytes = c(1, 1:2, 1, 1:3, 1, 1))
  growth <- simulation_growth(results)
  expect_equal(growth$algorithm, "chain") # linear has one number of processes
  expect_equal(growth$from_processes, 64)
  expect_equal(growth$to_processes, 256)
  expect_equal(growth$from_seconds, 2)
  expect_equal(growth$to_seconds, 16)
  expect_equal(growth$exponent, 1.5)
  expect_equal(summarise_simulation_cost(results)$max_seconds_per_size, c(2, 4, 16, 9))
  tables <- vapply(tables_of_simulation_cost(results), `[[`, "", "id")
  expect_equal(tables, c("simulation-cost", "simulation-cost-growth"))
  said <- describe_simulation_cost(results)
  grows <- "grows as a power of the number of processes, with an exponent of 1.5 (broadcast, CHAIN)."
  expect_match(said, grows, fixed = TRUE)
  # With fewer than three numbers of processes there is no growth, and no warning.
  results$cells <- results$cells[1:2, ]
  expect_equal(nrow(expect_no_warning(simulation_growth(results))), 0)
})
