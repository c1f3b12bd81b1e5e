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

test_that("the sentences say the numbers, and that there is nothing to compare without the measured study", {
  results <- pair_of_studies()
  expect_match(describe_accuracy(results)[1], "4 cells .* error of 75 % in the median")
  expect_match(describe_accuracy(results)[2], "Larger error: binomial \\(messages up to 64 B\\)")
  unlink(file.path(dirname(results$study$folder), "real"), recursive = TRUE)
  expect_match(describe_accuracy(results), "nothing can be compared")
  expect_equal(nrow(compare_studies(results)), 0)
})
