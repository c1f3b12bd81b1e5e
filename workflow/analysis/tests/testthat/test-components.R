# Two components and two forced algorithms with known latencies: which component, and which algorithm then?
components_study <- function(latencies, lacking = NULL, unproved = character()) {
  grid <- expand.grid(algorithm = names(latencies), size_bytes = c(8, 1024), stringsAsFactors = FALSE)
  rows <- toy_rows("bcast", grid$algorithm, 4, grid$size_bytes, unlist(latencies[grid$algorithm]) * grid$size_bytes)
  folder <- make_study(rows)
  document <- jsonlite::read_json(file.path(folder, "study.json"))
  document$chapter <- "components"
  document$lacking <- lacking
  document$collectives$bcast$algorithms <- lapply(document$collectives$bcast$algorithms, function(entry) {
    if (entry$name %in% c("tuned", "sm", "han")) entry$component <- entry$name
    entry
  })
  jsonlite::write_json(document, file.path(folder, "study.json"), auto_unbox = TRUE)
  cells <- tibble::tibble(
    study = "toy", collective = "bcast", algorithm = names(latencies), mapping = "core", nodes = rows$nodes[1],
    processes = 4, status = ifelse(names(latencies) %in% unproved, "unproved", "measured"), reason = "",
    component = "tuned"
  )
  readr::write_csv(cells, file.path(folder, "cells.csv"))
  read_results(folder)
}

known <- list(default = 3, tuned = 3, sm = 1.5, linear = 2, chain = 1)

test_that("the fastest component and the fastest forced algorithm of each cell are found", {
  rows <- summarise_components(components_study(known))
  expect_equal(nrow(rows), 2)
  expect_equal(unique(rows$component), "sm")
  expect_equal(rows$component_us, 1.5 * rows$size_bytes)
  expect_equal(rows$component_gain_pct, c(100, 100))
  expect_equal(unique(rows$algorithm), "chain")
  expect_equal(rows$algorithm_gain_pct, c(50, 50))
  expect_equal(unique(rows$worst), "tuned")
  expect_equal(rows$worst_pct, c(100, 100))
  expect_equal(unique(rows$default_ran), "tuned")
})

test_that("sentences say which component, then which algorithm, and what matters more", {
  said <- describe_components(components_study(known, lacking = list("ucc", "xhc")))
  expect_match(said[1], "SM is the fastest in 2 of 2 cells", fixed = TRUE)
  expect_match(said[1], "The default (run by coll/tuned) is slower than the fastest component", fixed = TRUE)
  expect_match(said[1], "2 of 2 cells; in the geometric mean it takes 2 times as long", fixed = TRUE)
  expect_match(said[1], "the fastest forced one beats the fastest component in 2 of 2 cells (CHAIN)", fixed = TRUE)
  expect_match(said[2], "takes 2 times as long as the best component, and that takes 1.5 times", fixed = TRUE)
  expect_match(said[2], "the component matters more than the algorithm", fixed = TRUE)
  expect_equal(said[3], "The installed Open MPI lacks the components ucc and xhc.")
  other <- describe_components(components_study(list(default = 3, tuned = 3, sm = 2.9, chain = 1)))
  expect_match(other[2], "the algorithm matters more than the component", fixed = TRUE)
  same <- describe_components(components_study(list(default = 1, tuned = 1, sm = 1.01, chain = 1)))
  expect_match(same[2], "both are within the tolerance", fixed = TRUE)
})

test_that("a component that another one replaced is named, and the chapter is written without forced algorithms", {
  results <- components_study(list(default = 3, tuned = 3, sm = 2, han = 1), unproved = "han")
  said <- describe_components(results)
  expect_match(tail(said, 1), "because another component ran the collective: coll/han for broadcast", fixed = TRUE)
  expect_false(any(grepl("beats", said)))
  expect_setequal(ids(tables_components(results)), "components-best")
  figures <- figures_components(results)
  expect_equal(ids(figures), "components-bcast")
  expect_no_error(ggplot2::ggplot_build(figures[[1]]$plot))
})
