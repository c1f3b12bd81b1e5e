# Whole studies: every table, model, figure and sentence, also where there is little to say.
test_that("a simulated study is complete and says so", {
  folder <- make_study(lawful(), simulated = TRUE, levels = thin_levels)
  figures <- make_everything(folder)
  expect_complete(folder)
  expect_true(all(grepl("simulated", figures$caption)))
  for (kind in c("tables", "models")) {
    index <- readr::read_csv(file.path(folder, kind, "index.csv"), show_col_types = FALSE)
    expect_match(index$caption, "[Ss]imulat", info = kind)
    expect_no_match(index$caption, "best measured algorithm")
  }
  expect_true(grepl("simulated", paste(readLines(file.path(folder, figures$file[1])), collapse = "")))
  said <- all_sentences(folder)
  expect_true(all(nzchar(said)))
  expect_false(any(grepl("NA|NaN|Inf", said)))
})

test_that("a mapping with one process count has no curve, and no other one is compared with it", {
  rows <- dplyr::bind_rows(
    lawful(counts = c(4, 8), sizes = c(1, 64)), dplyr::mutate(lawful(counts = 8, sizes = c(1, 64)), mapping = "node")
  )
  results <- read_results(make_study(rows))
  figures <- figures_processes(results, "bcast", rows_to_fit(results, "bcast"))
  expect_equal(purrr::map_chr(figures, "id"), "bcast-processes-core")
})

test_that("algorithms of a barrier that are far apart have a logarithmic axis", {
  axis <- function(slow) {
    rows <- lawful(c(default = 1, linear = slow), counts = c(4, 8, 16), sizes = 1)
    drawn <- ggplot2::ggplot_build(plot_processes_unsized(read_results(make_study(rows)), "barrier"))
    drawn$layout$panel_scales_y[[1]]$trans$name
  }
  expect_equal(c(axis(2), axis(20)), c("identity", "log-10"))
})

test_that("one process count, several launches", {
  rows <- lawful(counts = 2)
  rows <- dplyr::bind_rows(rows, dplyr::mutate(rows, launch = 2, latency_us = latency_us * 1.05))
  folder <- make_study(rows)
  make_everything(folder)
  expect_complete(folder)
  expect_false(any(grepl("NA|NaN|Inf", all_sentences(folder))))
})

test_that("no measurement at all", {
  folder <- make_study(lawful()[0, ])
  make_everything(folder)
  expect_complete(folder)
  expect_equal(nrow(summarise_answer(read_results(folder))), 0)
})

test_that("the surface that can be turned has one surface per algorithm", {
  skip_if_not_installed("plotly")
  widget <- plotly::plotly_build(plot_surface_interactive(read_results(make_study(lawful()))))
  expect_equal(sum(vapply(widget$x$data, function(trace) identical(trace$type, "surface"), TRUE)), 3)
  simulated <- plotly::plotly_build(plot_surface_interactive(read_results(make_study(lawful(), simulated = TRUE))))
  expect_equal(simulated$x$layout$title, "simulated")
  # Its file has the sizes in full.
  rows <- dplyr::mutate(lawful(), size_bytes = 131072 * size_bytes)
  folder <- make_study(rows)
  dir.create(file.path(folder, "figures"))
  file <- write_interactive(
    list(id = "surface", interactive = function() plot_surface_interactive(read_results(folder))), folder
  )
  written <- jsonlite::read_json(file.path(folder, file), simplifyVector = FALSE)
  expect_equal(unlist(written$data[[1]]$x), sort(unique(rows$size_bytes)))
})

test_that("empty messages, which logarithmic axes and models lack, are in the range of the latencies", {
  # As in files of the Intel MPI Benchmarks.
  folder <- make_study(dplyr::filter(lawful(counts = c(4, 8), sizes = c(0, 64)), .data$collective == "bcast"))
  expect_match(
    describe_latency(read_results(folder), "bcast")[1],
    "range from 1\\.5 \u00b5s \\(LINEAR, by core, 4 processes, 0 B\\)"
  )
  folder <- make_study(dplyr::filter(lawful(counts = c(4, 8), sizes = 0), .data$collective == "bcast"))
  make_everything(folder)
  expect_complete(folder)
  expect_match(all_sentences(folder), "^Latencies range from 1\\.5 \u00b5s ", all = FALSE)
})
