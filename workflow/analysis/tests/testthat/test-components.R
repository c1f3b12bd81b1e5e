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

test_that("the fastest component and the fastest forced algorithm of each class of sizes are found", {
  rows <- summarise_components(components_study(known))
  expect_equal(rows$message_sizes, c("8 B", "1 KiB"))
  expect_equal(unique(rows$component), "sm")
  expect_equal(rows$default_slower_pct, c(100, 100))
  expect_equal(unique(rows$algorithm), "chain")
  expect_equal(rows$component_slower_pct, c(50, 50))
  expect_equal(unique(rows$default_ran), "tuned")
})

test_that("a class has one choice, of those that were measured at each of its sizes", {
  results <- components_study(known)
  results$study$analysis$size_classes <- tibble::tibble(label = "All", from = 0, to = Inf)
  results$rows$max_latency_us <- results$rows$latency_us
  set <- function(results, name, size, us) {
    at <- results$rows$algorithm == name & results$rows$size_bytes == size
    results$rows$latency_us[at] <- results$rows$max_latency_us[at] <- us
    results
  }
  # coll/sm wins one size by less than coll/tuned wins the other.
  rows <- summarise_components(set(set(results, "tuned", 1024, 1024), "tuned", 8, 1.5 * 8 * 1.2))
  expect_equal(rows$message_sizes, "8 B to 1 KiB")
  expect_equal(rows$component, "tuned")
  expect_equal(rows$default_slower_pct, 100 * (sqrt(3 / 1.8 * 3) - 1))
  results$rows <- results$rows[!(results$rows$algorithm == "sm" & results$rows$size_bytes == 8), ]
  expect_equal(summarise_components(results)$component, "tuned")
})

test_that("a default of several cells is one case", {
  results <- components_study(known)
  more <- dplyr::mutate(results$cells[results$cells$algorithm == "default", ], status = "failed", component = NA)
  results$cells <- dplyr::bind_rows(results$cells, more)
  rows <- summarise_components(results)
  expect_equal(rows$message_sizes, c("8 B", "1 KiB"))
  expect_equal(rows$default_ran, c("tuned", "tuned"))
  results$cells$component[nrow(results$cells)] <- "han"
  expect_equal(summarise_components(results)$default_ran, rep("han or tuned", 2))
})

test_that("a study whose components all failed is analysed", {
  results <- components_study(known)
  results$rows <- results$rows[!results$rows$algorithm %in% c("tuned", "sm"), ]
  expect_equal(nrow(summarise_components(results)), 0)
  expect_no_error(sentences_of_components(results))
  expect_length(describe_components_answer(results), 0)
})

test_that("sentences say which component, then which algorithm, and what matters more", {
  results <- components_study(known, lacking = list("ucc", "xhc"))
  said <- sentences_of_components(results)
  own <- said$text[said$section == "bcast"]
  whole <- c(describe_components_answer(results), said$text[said$section == "components" & said$claim])
  expect_match(own[1], "The fastest component is SM in 2 of 2 cases", fixed = TRUE)
  expect_match(own[2], "(run by coll/tuned) is more than 2.0 % slower than it in 2 of 2 cases", fixed = TRUE)
  expect_match(own[2], "takes 2 times as long (geometric mean)", fixed = TRUE)
  expect_match(own[3], "faster than the fastest component in 2 of 2 cases: CHAIN; there the component takes 1.5 times",
               fixed = TRUE)
  expect_match(whole[1], "takes 2 times as long as the fastest component, and that takes 1.5 times", fixed = TRUE)
  expect_match(whole[1], "the component matters more than the algorithm", fixed = TRUE)
  expect_match(whole[2], "lacks coll/ucc and coll/xhc", fixed = TRUE)
  matters <- function(...) {
    results <- components_study(list(...))
    describe_component_matters(summarise_components(results), results)
  }
  expect_match(matters(default = 3, tuned = 3, sm = 2.9, chain = 1), "the algorithm matters more", fixed = TRUE)
  expect_match(matters(default = 1, tuned = 1, sm = 1.01, chain = 1), "neither choice gains", fixed = TRUE)
})

test_that("a component that another one replaced is named, and the chapter is written without forced algorithms", {
  results <- components_study(list(default = 3, tuned = 3, sm = 2, han = 1), unproved = "han")
  said <- sentences_of_components(results)$text
  expect_true(any(grepl("because another component ran the collective: coll/han for broadcast", said, fixed = TRUE)))
  expect_false(any(grepl("forced", said)))
  expect_null(describe_components_answer(results))
  expect_setequal(ids(tables_components(results)), "components-choice")
  figures <- figures_components(results)
  expect_equal(ids(figures), "bcast-components")
  expect_no_error(ggplot2::ggplot_build(figures[[1]]$plot))
})

test_that("latencies of emulated nodes are not compared, only what ran is told", {
  results <- components_study(known)
  results$study$machine$emulated_nodes <- 2
  expect_equal(describe_components_answer(results), "Toy: By default, coll/tuned runs broadcast.")
  said <- sentences_of_components(results)$text
  expect_match(said[1], "The nodes are emulated on one computer", fixed = TRUE)
  expect_equal(said[-1], "By default, coll/tuned runs broadcast.")
})
