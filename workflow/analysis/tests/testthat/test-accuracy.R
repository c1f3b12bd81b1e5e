pair_of_studies <- function() {
  base <- tempfile("results")
  dir.create(base)
  measured <- lawful(c(default = 1.1, linear = 1, chain = 1.3, binomial = 2), counts = c(2, 4), sizes = c(1, 1024))
  simulated <- dplyr::mutate(measured, latency_us = latency_us * ifelse(algorithm == "binomial", 0.25, 1.1))
  make_study(measured, folder = file.path(base, "real"))
  compare <- list(compare = list(study = "real", fitted = list(bcast = list("linear", "chain"))))
  read_results(make_study(simulated, analysis = compare, simulated = TRUE, folder = file.path(base, "toy")))
}

test_that("errors, held-out algorithms and regret are those of the cells that both studies have", {
  compared <- compare_studies(pair_of_studies())
  expect_equal(nrow(compared), 4 * 2 * 2 + 4 * 2)
  table <- summarise_accuracy(compared)
  rows <- table[table$collective == "bcast" & table$mapping == "all", ]
  of <- function(name) rows[rows$algorithm == name, ]
  expect_equal(of("linear")$median_abs_error_pct, 10)
  expect_false(of("linear")$held_out)
  expect_true(of("binomial")$held_out)
  expect_equal(of("all")$median_abs_error_pct, 75)
  expect_equal(of("all")$cells, 4)
  expect_equal(of("all")$winner_agreement_pct, 0)
  expect_equal(of("all")$geometric_mean_regret_pct, 100)
  expect_equal(of("linear")$bias, 1.1)
  expect_equal(of("all")$bias, 0.25)
})

test_that("a choice among algorithms of the fit alone counts only where none is held out", {
  compared <- compare_studies(pair_of_studies())
  # On two processes, to which the machine was fitted, the simulation chooses right; on four it does not.
  right <- ifelse(compared$processes == 2, compared$measured_us, compared$simulated_us)
  choice_of <- function(held_out) {
    table <- summarise_accuracy(dplyr::mutate(compared, simulated_us = right, held_out = .env$held_out))
    all <- table[table$collective == "bcast" & table$algorithm == "all" & table$mapping == "all", ]
    c(all$winner_agreement_pct, all$geometric_mean_regret_pct)
  }
  expect_equal(choice_of(compared$processes > 2), c(0, 100))
  expect_equal(choice_of(FALSE), c(50, 100 * (sqrt(2) - 1)))
})

test_that("a default is not held out where it runs an algorithm of the fit", {
  base <- tempfile("results")
  dir.create(base)
  rows <- toy_rows("bcast", c("default", "default", "linear"), 4, c(1, 1024, 1), 1)
  compare <- list(compare = list(study = "real", fitted = list(bcast = list("linear"))))
  toy <- make_study(rows, analysis = compare, simulated = TRUE, folder = file.path(base, "toy"))
  make_study(dplyr::mutate(rows, runs = c("linear", "binomial", NA)), folder = file.path(base, "real"))
  compared <- compare_studies(read_results(toy))
  of_default <- compared[compared$algorithm == "default", ]
  expect_equal(of_default$held_out, of_default$size_bytes == 1024)
  expect_equal(nrow(compared), 3)
})

test_that("the sentences say the numbers, and that there is nothing to compare without the measured study", {
  results <- pair_of_studies()
  said <- describe_accuracy(results)[1]
  expect_match(said, "4 cells .* error of 75 % in the median")
  expect_match(said, "Of all algorithms, including those of the fit, .* 0.0 % of 4 combinations of mapping, processes")
  expect_match(describe_accuracy(results)[2], "Larger error: BINOMIAL \\(messages up to 64 B\\)")
  unlink(file.path(dirname(results$study$folder), "real"), recursive = TRUE)
  expect_match(describe_accuracy(results), "no results of the measured study to compare with")
  expect_equal(nrow(compare_studies(results)), 0)
})

# Two authors: the second measured chain 40 % slower, so that the first one's choice is wrong there; the simulation
# takes binomial.
two_authors <- function() {
  base <- tempfile("results")
  dir.create(base)
  grid <- expand.grid(algorithm = c("linear", "chain", "binomial"), processes = c(2, 4), size_bytes = c(1, 1024))
  names <- as.character(grid$algorithm)
  rows <- function(latency, ...) toy_rows("bcast", names, grid$processes, grid$size_bytes, unname(latency[names]), ...)
  measured <- dplyr::bind_rows(
    rows(c(linear = 1.2, chain = 1, binomial = 2), source = "first"),
    dplyr::filter(
      rows(c(linear = 1.2, chain = 1.4, binomial = 2), source = "second", launch = 2), .data$algorithm != "binomial"
    )
  )
  make_study(measured, folder = file.path(base, "real"))
  simulated <- rows(c(linear = 1, chain = 1.5, binomial = 0.5))
  read_results(make_study(
    simulated, analysis = list(compare = list(study = "real")), simulated = TRUE, folder = file.path(base, "toy")
  ))
}

test_that("noise between authors is told apart from the model, on what both measured", {
  results <- two_authors()
  noise <- summarise_noise(compare_studies(results), read_compared(results))
  all <- noise[noise$mapping == "all", ]
  expect_equal(all$between, "authors")
  expect_equal(all$cells, 4)
  expect_equal(all$pairs, 8)
  # Binomial, which one author has, is no choice. By the first author chain, 1.4 / 1.2 on the second; by the second
  # linear, 1.2 on the first; by simulation linear: 1.2 on the first, right on the second.
  expect_equal(all$other_regret_pct, 100 * (sqrt(1.4 / 1.2 * 1.2) - 1))
  expect_equal(all$simulated_regret_pct, 100 * (sqrt(1.2) - 1))
  expect_equal(all$model_regret_pct, 0)
  expect_equal(all$other_error_pct, 100 * mean(c(0.4, 1 - 1 / 1.4)) / 2)
  mistakes <- summarise_mistakes(compare_studies(results))
  expect_equal(mistakes$chosen, "binomial")
  expect_equal(mistakes$share_pct, 100)
  said <- describe_accuracy(results)
  expect_match(said, "Noise and model: 4 cells have algorithms that two authors measured\\.", all = FALSE)
  expect_match(said, "The wrong choice that costs most is BINOMIAL", all = FALSE)
  one <- dplyr::filter(compare_studies(results), .data$processes == 4, .data$size_bytes == 1)
  expect_match(noise_sentences(results, one, "bcast"), "Noise and model: 1 cell has algorithms")
  tables <- tables_accuracy(results)
  expect_true("accuracy-noise" %in% ids(tables))
  caption <- tables[[match("accuracy", ids(tables))]]$caption
  expect_match(caption, "Errors and bias are those of the latencies as measured\\. For the choice:")
  # Algorithms of several collectives share names: each collective has figures of its own.
  expect_equal(ids(figures_accuracy(results)), paste0("accuracy-", c("ratio", "processes", "ranks"), "-bcast"))
  # A study of one launch of each cell says that it cannot tell.
  expect_match(describe_accuracy(pair_of_studies()), "measured twice, so the part of the error", all = FALSE)
})

test_that("two authors are compared on all algorithms that both measured, whoever else measured some of them", {
  # Imported launches of an algorithm are numbered over its authors: the third author's chain is the first launch.
  others <- function(algorithm, us, ...) toy_rows("bcast", algorithm, 4, 1, us, ...)
  measured <- dplyr::bind_rows(
    others("chain", 1.1, source = "third"), others(c("linear", "binomial"), c(1, 2), source = "first"),
    others("chain", 1.5, source = "first", launch = 2),
    others(c("linear", "binomial"), c(1.6, 2), source = "second", launch = 2),
    others("chain", 1.2, source = "second", launch = 3)
  )
  base <- tempfile("results")
  dir.create(base)
  make_study(measured, folder = file.path(base, "real"))
  results <- read_results(make_study(
    others(c("linear", "chain", "binomial"), c(2, 1, 3)), analysis = list(compare = list(study = "real")),
    simulated = TRUE, folder = file.path(base, "toy")
  ))
  noise <- summarise_noise(compare_studies(results), read_compared(results))
  all <- noise[noise$mapping == "all", ]
  expect_equal(all$pairs, 2)
  # By the first author linear, 1.6 / 1.2 on the second; by the second chain, 1.5 on the first.
  expect_equal(all$other_regret_pct, 100 * (sqrt(1.6 / 1.2 * 1.5) - 1))
  expect_equal(all$simulated_regret_pct, 100 * (sqrt(1.5) - 1))
})

test_that("of algorithms that are equally fast in the simulation, their order chooses none", {
  # In this order, linear is the first one.
  compared_of <- function(names) {
    base <- tempfile("results")
    dir.create(base)
    rows <- function(us) toy_rows("bcast", rep(names, 2), 4, rep(c(1, 1024), each = 3), rep(unname(us[names]), 2))
    make_study(rows(c(linear = 1, chain = 1.21, binomial = 2)), folder = file.path(base, "real"))
    simulated <- rows(c(linear = 1, chain = 1, binomial = 3))
    read_results(make_study(
      simulated, analysis = list(compare = list(study = "real")), simulated = TRUE, folder = file.path(base, "toy")
    ))
  }
  for (names in list(c("linear", "chain", "binomial"), c("chain", "linear", "binomial"))) {
    results <- compared_of(names)
    compared <- compare_studies(results)
    all <- filter(summarise_accuracy(compared), .data$algorithm == "all", .data$mapping == "all")
    expect_equal(all$winner_agreement_pct, 50)
    expect_equal(all$geometric_mean_regret_pct, 10)
    mistakes <- summarise_mistakes(compared)
    expect_equal(
      as.list(mistakes[c("chosen", "fastest", "cells")]), list(chosen = "chain", fastest = "linear", cells = 2)
    )
    expect_equal(mistakes$geometric_mean_regret_pct, 21)
    expect_equal(mistakes$share_pct, 100)
    expect_match(describe_accuracy(results)[1], "in 50 % of 2 combinations")
  }
  expect_equal(log_regret(c(1, 1, 3), c(1, 1.21, 2)), log(1.1))
})

test_that("a tenth of the cells is stated for ten cells or more", {
  compared <- tibble::tibble(
    collective = "bcast", algorithm = "linear", mapping = "core", processes = 4, size_bytes = 1:10, simulated_us = 11,
    measured_us = 10, judged_us = 10, ratio = 1.1, held_out = TRUE
  )
  study <- list(algorithms = tibble::tibble(collective = "bcast", algorithm = "linear", label = "Linear"))
  said <- function(rows) accuracy_sentences(compared[rows, ], study)[1]
  expect_match(said(1:10), "of 10 cells .* 10 % in the median and at least 10 % in a tenth of the cells")
  expect_match(said(1), "of 1 cell that .* has an error of 10 % in the median\\.$")
})
