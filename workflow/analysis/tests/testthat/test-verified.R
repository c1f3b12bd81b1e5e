test_that("verification by hand: regret over the fastest known, speed-up over the changed cells", {
  folder <- tempfile()
  dir.create(file.path(folder, "tables"), recursive = TRUE)
  readr::write_csv(tibble::tibble(
    mapping = "core", on_grid = TRUE, rule = c("linear", "chain", "default"), default_us = c(20, 10, 5),
    tuned_us = c(10, 12, 5), best_known_us = c(8, 10, NA), speedup = c(2, 0.5, 1),
    verdict = c("faster", "slower", "tie")
  ), file.path(folder, "tables", "tuning-verification.csv"))
  found <- summarise_verification(folder)
  expect_equal(c(found$cells, found$changed, found$faster, found$tie, found$slower), c(3, 2, 1, 0, 1))
  expect_equal(found$speedup, 1)
  expect_equal(found$default_mean_pct, 50)
  expect_equal(found$tuned_mean_pct, 15)
  for (simulated in c(FALSE, TRUE)) {
    jsonlite::write_json(list(name = "here", simulated = simulated), file.path(folder, "study.json"), auto_unbox = TRUE)
    write_tuning_sentences(folder)
    told <- readr::read_csv(file.path(folder, "tuning", "sentences.csv"), show_col_types = FALSE)
    expect_match(told$text, "of 2 cells .* faster than the default in 1, tied .* 0 and slower in 1\\.", all = FALSE)
    # The regret is that of all cells, not only of those with another rule than the default.
    expect_match(told$text, paste(
      "Over all 3 cells of these launches, the default is 36 % slower than the fastest known algorithm, the rules 14 %",
      "(geometric means; before the slower rules were withdrawn)."
    ), fixed = TRUE, all = FALSE)
    # Only what was made is in the index: no figures, no rules that were withdrawn, no regret.
    index <- readr::read_csv(file.path(folder, "tuning", "index.csv"), show_col_types = FALSE)
    expect_equal(index$file, "tables/tuning-verified.csv")
    # Of a sampled study, only a part of the grid decided.
    expect_equal(found$where, "sizes and processes of the grid")
    expect_equal(grepl("Simulations are deterministic", index$caption), simulated)
  }
  expect_null(summarise_verification(tempfile()))
})

test_that("simulated latencies have no noise that makes the loss of one file an upper bound", {
  folder <- tempfile()
  dir.create(file.path(folder, "tables"), recursive = TRUE)
  readr::write_csv(tibble::tibble(collective = "all", cells = 2), file.path(folder, "tables", "tuning-shared.csv"))
  for (simulated in c(FALSE, TRUE)) {
    jsonlite::write_json(list(name = "here", simulated = simulated), file.path(folder, "study.json"), auto_unbox = TRUE)
    expect_equal(grepl("upper bounds, because the minimum over noisy", index_tuning(folder)$caption), !simulated)
  }
})

test_that("the picture of a program's runs is gone with the runs", {
  folder <- tempfile()
  dir.create(file.path(folder, "tables"), recursive = TRUE)
  dir.create(file.path(folder, "tuning"))
  rows <- tibble::tibble(pair = 1:2, part = "whole", default_s = 2, tuned_s = 1, speedup = 2)
  for (runs in list(rows, rows[0, ])) {
    readr::write_csv(runs, file.path(folder, "tables", "tuning-pairs.csv"))
    write_tuning_sentences(folder)
    listed <- readr::read_csv(file.path(folder, "tuning", "index.csv"), show_col_types = FALSE)$id
    expect_equal(c("pairs" %in% listed, file.exists(file.path(folder, "tuning", "pairs.png"))), rep(nrow(runs) > 0, 2))
  }
})

test_that("the verdict of a program's runs is an answer of its chapter", {
  folder <- tempfile()
  dir.create(file.path(folder, "tuning"), recursive = TRUE)
  writeLines("No tuning file: the program is not clearly faster with it.", file.path(folder, "tuning", "result.txt"))
  write_tuning_sentences(folder)
  told <- readr::read_csv(file.path(folder, "tuning", "sentences.csv"), show_col_types = FALSE)
  expect_equal(told$section, c("answer", "tuning"))
  expect_match(told$text, "^No tuning file: ")
})

test_that("a check without findings does not claim a cause that is not known", {
  folder <- tempfile()
  dir.create(file.path(folder, "tuning"), recursive = TRUE)
  checked <- function() {
    write_tuning_sentences(folder)
    told <- readr::read_csv(file.path(folder, "tuning", "sentences.csv"), show_col_types = FALSE)
    told$text[told$section == "check"]
  }
  expect_length(checked(), 0)
  rows <- tibble::tibble(mpi = "Open MPI 5.0.11", agrees = c(TRUE, TRUE), tells_apart = c(TRUE, FALSE), asked = TRUE)
  readr::write_csv(rows[0, ], file.path(folder, "tuning", "check.csv"))
  expect_match(checked(), "^Nothing was checked: no rule differs from the default, or no installed library")
  # A file that was checked and not kept, such as that of a program which it does not make faster.
  readr::write_csv(rows, file.path(folder, "tuning", "check-emitted.csv"))
  expect_length(checked(), 0)
  readr::write_csv(rows, file.path(folder, "tuning", "check.csv"))
  expect_equal(checked(), paste(
    "Open MPI 5.0.11 was asked at 2 sizes around the boundaries of the rules: at all of them it selected the algorithm",
    "that the file names. Every other algorithm of the same entry would have given another result at 1 of them, so",
    "agreement is conclusive there."
  ))
  readr::write_csv(rows[2, ], file.path(folder, "tuning", "check.csv"))
  expect_equal(checked(), paste(
    "Open MPI 5.0.11 was asked at 1 size around the boundaries of the rules: there it selected the algorithm that the",
    "file names. Another algorithm of the same entry might have given the same result, so agreement is not conclusive."
  ))
})

test_that("a single algorithm that is better than the rules is named", {
  folder <- make_study(lawful()[1:4, ])
  dir.create(file.path(folder, "tables"))
  rows <- expand.grid(
    policy = c("default", "best-single", "tuned"), mapping = c("all", "core", "node", "socket"), collective = "bcast",
    stringsAsFactors = FALSE
  )
  rows$geometric_mean_pct <- c(30, 9, 8, 20, 10, 5, 40, 6, 18, 20, 7.5, 8)
  rows <- dplyr::mutate(rows,
    algorithm = ifelse(policy == "best-single", "linear", ""), split = "both halves", p99_pct = 1, max_pct = 1,
    cells = 9
  )
  path <- file.path(folder, "tables", "tuning-regret.csv")
  readr::write_csv(rows, path)
  # By socket, the difference is within 1 %.
  expect_equal(describe_regret(folder), paste(
    "Broadcast: on process counts that did not decide, a single algorithm is better than the tuned rules: LINEAR by",
    "node (slow-down 6.0 %, of the rules 18 %, of the default 40 %); geometric means."
  ))
  # A study of one mapping has the same rows twice.
  readr::write_csv(rows[c(7:9, 7:9), ] |> dplyr::mutate(mapping = rep(c("all", "node"), each = 3)), path)
  expect_match(describe_regret(folder), "LINEAR (slow-down 6.0 %", fixed = TRUE)
  readr::write_csv(rows[1:6, ], path)
  expect_length(describe_regret(folder), 0)
})

test_that("without a best single algorithm, the regret of the rules is said without it", {
  # At 2, 6 and 10 processes the default and another algorithm were measured, but under different mappings.
  rows <- dplyr::bind_rows(
    toy_rows("bcast", "default", c(2, 4, 6, 8, 10, 12), 8, 2), toy_rows("bcast", "linear", c(4, 8, 12), 8, 1),
    toy_rows("bcast", "linear", c(2, 6, 10), 8, 1, "node")
  )
  results <- read_results(make_study(rows))
  write_tuning(results)
  expect_equal(describe_regret(results$study$folder), paste(
    "Broadcast, rules decided at 2, 6 and 10 processes and tested on 3 cells of the other process counts: the tuned",
    "rules are 100 % slower than the best algorithm of the cell (geometric mean; at most 100 %), the default 100 %."
  ))
})

test_that("sentences on regret and verification claim only what few cells, or none, can show", {
  folder <- make_study(lawful()[1:4, ])
  dir.create(file.path(folder, "tables"))
  told <- function(cells) {
    readr::write_csv(tibble::tibble(
      collective = "bcast", policy = c("default", "best-single", "tuned"), algorithm = c("", "linear", ""),
      split = "decided at 2 and 8", mapping = "all", geometric_mean_pct = c(3, 4, 1), p99_pct = c(30, 40, 10),
      max_pct = c(31, 41, 11), cells = cells
    ), file.path(folder, "tables", "tuning-regret.csv"))
    describe_regret(folder)
  }
  # Also of simulated studies, in which nothing was measured.
  expect_match(told(99), "rules are 1.0 % slower than the best algorithm of the cell (geometric mean", fixed = TRUE)
  expect_match(told(99), "(geometric mean; at most 11 %), the default 3.0 %", fixed = TRUE)
  expect_match(told(100), "(geometric mean; at least 10 % in 1 % of the cells), the default", fixed = TRUE)
  readr::write_csv(tibble::tibble(
    collective = "bcast", startup_s = 0, share_of_time_pct = 5, geometric_mean_regret_pct = 2, sd_over_seeds = 1,
    seeds = 3
  ), file.path(folder, "tables", "sampling.csv"))
  # No rules: these also keep the default where a gain is within its noise.
  expect_match(describe_sampling(folder), "the model's choices from a sample that takes 5.0 %", fixed = TRUE)
  withdrawn <- tibble::tibble(collective = character())
  readr::write_csv(withdrawn, file.path(folder, "tables", "tuning-withdrawn.csv"))
  expect_length(describe_withdrawn(folder), 0)
  readr::write_csv(tibble::tibble(collective = "bcast"), file.path(folder, "tables", "tuning-verification.csv"))
  expect_match(describe_withdrawn(folder), "^No rule was slower in fresh launches")
  # A row is a verified cell; a rule may have several.
  readr::write_csv(tibble::tibble(
    collective = "bcast", size_bytes = c(8, 16, 64), rule = c("chain", "chain", "linear"), speedup = c(0.9, 0.8, 0.9)
  ), file.path(folder, "tables", "tuning-withdrawn.csv"))
  expect_equal(
    describe_withdrawn(folder), paste(
      "In 3 cells of the fresh launches a rule was slower than the default; there, or completely if it was slower on",
      "average over its cells, it was withdrawn."
    )
  )
  # A program has no fresh launches of cells: without a tuning file for it, no rule was kept.
  readr::write_csv(tibble::tibble(
    collective = "bcast", size_bytes = 8, rule = "chain", speedup = NA
  ), file.path(folder, "tables", "tuning-withdrawn.csv"))
  expect_equal(
    describe_withdrawn(folder), "The program keeps no tuning file; the table lists the 1 rule that it would have had."
  )
})
