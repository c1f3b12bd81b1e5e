study_with_cells <- function(simulated = TRUE) {
  folder <- make_study(lawful(), simulated = simulated, levels = thin_levels)
  cells <- tibble::tibble(
    collective = c("bcast", "bcast", "bcast", "barrier", "latency"),
    algorithm = c("linear", "chain", "chain", "linear", "x"), mapping = "core", processes = c(24, 24, 24, 24, 2),
    seconds = c(5, 2, 4, 1, 9), peak_memory_mb = c(100, 200, 300, 50, 1)
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
  expect_match(said, "24 processes took at most .*5 s \\(broadcast, LINEAR\\), and 0.3 GB")
  expect_equal(nrow(summarise_simulation_cost(study_with_cells(simulated = FALSE))), 0)
})
