test_that("a new algorithm does not fit the models of the others again", {
  rows <- lawful()
  kept <- function(folder) list.files(file.path(dirname(folder), ".analysis"))
  place <- function() {
    parent <- tempfile("results")
    dir.create(parent)
    file.path(parent, "toy")
  }
  models <- function(folder) {
    results <- read_results(folder)
    results$study <- storing(results$study, file.path(dirname(folder), ".analysis"))
    found <- models_of(results)
    found[[match("comparison", purrr::map_chr(found, "id"))]]$data
  }
  folder <- make_study(rows, levels = thin_levels, folder = place())
  fitted <- models(folder)
  first <- kept(folder)
  expect_gt(length(first), 0)
  # The same rows again, in another study beside it.
  same <- make_study(rows, levels = thin_levels, folder = file.path(dirname(folder), "same"))
  expect_equal(models(same), fitted)
  expect_equal(kept(same), first)
  # One algorithm more: what is kept grows by what that one needs.
  another <- dplyr::mutate(rows[rows$algorithm == "chain", ], algorithm = "other", latency_us = latency_us * 1.5)
  more <- make_study(
    dplyr::bind_rows(rows, another), levels = thin_levels, folder = file.path(dirname(folder), "more")
  )
  models(more)
  expect_true(all(first %in% kept(more)))
  grown <- length(kept(more)) - length(first)
  expect_gt(grown, 0)
  expect_lte(grown, 2 * dplyr::n_distinct(paste(another$collective, another$mapping)))
  # A file that is damaged is made again.
  for (file in kept(folder)) writeLines("", file.path(dirname(folder), ".analysis", file))
  expect_equal(models(same), fitted)
})

test_that("gaps in the grid are left out, not invented", {
  rows <- lawful()
  rows <- rows[-c(3, 10, 50, 51, 52, nrow(rows)), ]
  folder <- make_study(rows, levels = thin_levels)
  make_everything(folder)
  expect_complete(folder)
})

test_that("one algorithm only: headers without rows, no crash", {
  folder <- make_study(lawful(c(linear = 1)))
  make_everything(folder)
  expect_complete(folder)
  table <- readr::read_csv(file.path(folder, "tables", "bcast-default-vs-best.csv"), show_col_types = FALSE)
  expect_equal(nrow(table), 0)
  expect_true("mean_difference_us" %in% names(table))
  expect_false(any(grepl("NA|NaN|Inf", all_sentences(folder))))
})

test_that("the first figure of every section is kept with its caption for snakemake --report", {
  # Containers and batch jobs often have no other locale; the captions have a micro sign.
  withr::local_locale(LC_CTYPE = "C")
  folder <- make_study(lawful(counts = c(4, 8, 16), sizes = c(1, 64)))
  figures <- make_everything(folder)
  main <- figures[!duplicated(figures$section), ]
  kept <- file.path(folder, "figures", "main", paste0(main$id, ".svg"))
  expect_setequal(list.files(file.path(folder, "figures", "main"), "svg$"), basename(kept))
  captions <- vapply(sub("svg$", "rst", kept), function(path) paste(readr::read_lines(path), collapse = ""), "")
  expect_equal(unname(gsub("\\\\", "", captions)), main$caption)
})
