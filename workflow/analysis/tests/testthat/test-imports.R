imported_study <- function(rows, checks, agreement = NULL) {
  folder <- make_study(rows)
  change_study(folder, import = list(files = list("a.csv")))
  readr::write_csv(checks, file.path(folder, "import-checks.csv"))
  none <- tibble::tibble(
    machine = character(), collective = character(), algorithm = character(), mapping = character(),
    sources = character(), cells = integer(), median_abs_difference_pct = numeric(),
    p90_abs_difference_pct = numeric()
  )
  readr::write_csv(dplyr::bind_rows(none, agreement), file.path(folder, "agreement.csv"))
  read_results(folder)
}

nothing <- tibble::tibble(
  check = character(), where = character(), found = character(), confidence = character(), action = character()
)
finding <- function(check, confidence) {
  tibble::tibble(
    check = check, where = "bcast chain, by core", found = "3 of 9", confidence = confidence, action = "kept"
  )
}
two_authors <- function(factor) {
  rows <- lawful(c(default = 1.3, linear = 1, chain = 1.1))
  other <- dplyr::mutate(rows, latency_us = .data$latency_us * factor, source = "two", launch = 2L)
  dplyr::bind_rows(dplyr::mutate(rows, source = "one"), other)
}

test_that("a study that imports nothing has no table, figure or sentence of it", {
  results <- read_results(make_study(lawful(c(default = 1.3, linear = 1))))
  expect_null(tables_of_import(results))
  expect_equal(figures_of_import(results), list())
  expect_equal(describe_import(results), character())
})

test_that("the columns of findings that an older version wrote are read", {
  checks <- finding("noise", "certain")
  old <- dplyr::rename(checks, how_sure = "confidence", done = "action")
  checks$where <- "broadcast, CHAIN, by core"
  expect_equal(read_import(imported_study(two_authors(1.02), old))$checks, dplyr::as_tibble(checks), ignore_attr = TRUE)
})

test_that("a sentence says how many findings are certain", {
  expect_equal(how_many_certain(c("certain", "likely", "possible")), "1 of these 3 findings is certain")
  expect_equal(how_many_certain(c("likely", "possible")), "none of these findings is certain")
  expect_equal(how_many_certain(c("certain", "certain")), "all of these findings are certain")
  expect_equal(how_many_certain("certain"), "the finding is certain")
  expect_equal(how_many_certain("likely"), "the finding is not certain")
})

test_that("findings are listed with the labels of algorithms, and counted in a sentence", {
  checks <- dplyr::bind_rows(finding("noise", "certain"), finding("noise", "likely"), finding("outlier", "certain"))
  results <- imported_study(two_authors(1.02), checks)
  tables <- tables_of_import(results)
  expect_length(tables, 1)
  checks$where <- "broadcast, CHAIN, by core"
  expect_equal(as.data.frame(tables[[1]]$data), as.data.frame(checks))
  expect_equal(describe_import(results), paste(
    "The checks of the imported data found \u201cnoise\u201d in 2 places and \u201coutlier\u201d in 1 place;",
    "2 of these 3 findings are certain."
  ))
  expect_equal(
    describe_import(imported_study(two_authors(1.02), nothing)),
    "The checks of the imported data found no problems."
  )
})

test_that("mappings that only one author measured are named beside the agreement of authors", {
  agreement <- tibble::tibble(
    machine = "m", collective = "bcast", algorithm = "linear", mapping = "core", sources = "one and two", cells = 9,
    median_abs_difference_pct = 2, p90_abs_difference_pct = 3
  )
  caption <- function(rows) tables_of_import(imported_study(rows, nothing, agreement))[[2]]$caption
  expect_match(caption(two_authors(1.2)), "This is the noise floor of results for these cells\\.$")
  by_node <- dplyr::filter(dplyr::mutate(two_authors(1.2), mapping = "node"), .data$source == "one")
  rows <- dplyr::bind_rows(two_authors(1.2), by_node)
  expect_match(caption(rows), "for these cells, mapped by core\\. By node, no cell has two authors\\.$")
  folder <- imported_study(rows, nothing, agreement)$study$folder
  dir.create(file.path(folder, "tables"))
  write_table(agreement, file.path(folder, "tables", "agreement.csv"))
  expect_match(
    front_agreement(list(read_front_study(folder))),
    "differ by 2.0 % on M \\(only mapped by core\\) \\(the median of the medians for each algorithm and mapping\\)\\."
  )
})

test_that("agreement of sources: table, sentence and the figure by cell", {
  agreement <- tibble::tibble(
    machine = "m", collective = "bcast", algorithm = c("default", "chain"), mapping = "core",
    sources = "one and two", cells = 84L, median_abs_difference_pct = c(2, 4), p90_abs_difference_pct = c(5, 9)
  )
  results <- imported_study(two_authors(1.15), nothing, agreement)
  expect_equal(purrr::map_chr(tables_of_import(results), "id"), c("import-checks", "agreement"))
  expect_match(
    describe_import(results)[2],
    "differ by 2.0 to 4.0 % (medians for each algorithm and mapping; median of these 3.0 %)",
    fixed = TRUE
  )
  cells <- summarise_agreement_by_cell(results)
  expect_equal(cells$difference_pct, rep(15, nrow(cells)))
  expect_equal(unique(cells$algorithms), 3L)
  figures <- figures_of_import(results)
  expect_equal(purrr::map_chr(figures, "section"), "import")
  expect_true(all(ggplot2::ggplot_build(figures[[1]]$plot)$data[[1]]$fill == "#FD8D3C"))
  one_count <- two_authors(1.2)[two_authors(1.2)$processes == 8, ]
  expect_equal(figures_of_import(imported_study(one_count, nothing, agreement)), list())
})

test_that("the difference of two authors does not depend on which of them comes first", {
  for (factor in c(1.25, 1 / 1.25)) {
    cells <- summarise_agreement_by_cell(imported_study(two_authors(factor), nothing))
    expect_equal(cells$difference_pct, rep(25, nrow(cells)))
  }
})

test_that("flagged launches and cells of one author alone are in no difference", {
  rows <- dplyr::mutate(two_authors(1.25), flag = "")
  rows$flag[rows$source == "two" & rows$processes == 8] <- "outlier"
  rows <- rows[!(rows$source == "one" & rows$processes == 12), ]
  cells <- summarise_agreement_by_cell(imported_study(rows, nothing))
  expect_false(any(c(8, 12) %in% cells$processes))
  expect_gt(nrow(cells), 0)
})

test_that("findings have the unit of the other texts", {
  file <- withr::local_tempfile()
  writeLines(c("check,where,found,confidence,action", "fast,\"bcast x, 4 us\",two take 0.12 us; us_a,certain,"), file)
  checks <- read_checks(file, list(algorithms = tibble::tibble()))
  expect_equal(checks$where, "bcast x, 4 \u00b5s")
  expect_equal(checks$found, "two take 0.12 \u00b5s; us_a")
})

test_that("an atlas shows the findings of the studies that it gathers", {
  found <- imported_study(two_authors(1.02), finding("noise", "certain"))$study$folder
  sound <- imported_study(two_authors(1.02), nothing)$study$folder
  change_study(found, title = "With findings")
  change_study(sound, title = "Without findings")
  # A study with measurements of its own has an empty list of findings: nothing was checked.
  here <- imported_study(two_authors(1.02), nothing)$study$folder
  document <- jsonlite::read_json(file.path(here, "study.json"))
  document$import <- NULL
  jsonlite::write_json(document, file.path(here, "study.json"), auto_unbox = TRUE)
  results <- list(study = list(
    folder = file.path(dirname(found), "atlas"),
    gathered = list(basename(found), basename(sound), basename(here), "not-here")
  ))
  table <- tables_of_gathered(results)[[1]]
  expect_equal(table$data$study, "With findings")
  expect_equal(table$data$check, "noise")
  expect_match(table$caption, "Nothing was found in \u201cWithout findings\u201d.", fixed = TRUE)
})

test_that("algorithms in findings are named by their labels, whole names only", {
  study <- list(algorithms = tibble::tibble(
    collective = c("bcast", "bcast", "bcast", "reduce"),
    label = c("Linear", "Linear, non-blocking", "Chain, 4", "Ring"),
    series = c("linear", "linear_nb", "chain [fanout=4]", "ring")
  ))
  said <- function(text) label_series(text, study)
  expect_equal(said("one: bcast linear, by core"), "one: broadcast, Linear, by core")
  expect_equal(said("bcast linear_nb and bcast linear"), "broadcast, Linear, non-blocking and broadcast, Linear")
  expect_equal(said("bcast chain [fanout=4], by node: one and two"), "broadcast, Chain, 4, by node: one and two")
  expect_equal(said("allreduce ring, bcast linear_sync"), "allreduce ring, bcast linear_sync")
})
