two_sources <- function(second) {
  rows <- lawful(c(default = 1.3, linear = 1, chain = 1.1))
  rows <- rows[rows$collective == "bcast", ]
  other <- dplyr::mutate(rows, latency_us = .data$latency_us * second[.data$algorithm])
  dplyr::bind_rows(
    dplyr::mutate(rows, source = "one"), dplyr::mutate(other, source = "two", launch = 2L)
  )
}

across_of <- function(rows) {
  results <- read_results(make_study(rows))
  results$study$import <- list()
  summarise_regret_across(results)
}

test_that("rules of one source are judged on the other, by hand", {
  # On the second source's machine chain is the fastest: 1.1 / 1 there for linear, 1.3 for the default.
  found <- across_of(two_sources(c(default = 1, linear = 1.1, chain = 1 / 1.1)))
  expect_equal(names(found), names(no_regret_across()))
  there <- found[found$decided_on == "one" & found$mapping == "all", ]
  expect_equal(there$geometric_mean_pct[match(c("default", "best-single", "tuned"), there$policy)], c(30, 10, 10))
  back <- found[found$decided_on == "two" & found$mapping == "core" & found$policy == "tuned", ]
  expect_equal(back$geometric_mean_pct, 10)
  expect_equal(back$cells, 84)
})

test_that("with three sources, rules are also decided on all but the judging one", {
  rows <- two_sources(c(default = 1, linear = 1.5, chain = 1))
  # The third source has no default and measured only chains: it takes part in deciding and is not judged.
  third <- dplyr::mutate(rows[rows$source == "two" & rows$algorithm == "chain", ], source = "three", launch = 3L)
  expect_false(all_others %in% across_of(rows)$decided_on)
  found <- across_of(dplyr::bind_rows(rows, third))
  together <- found[found$decided_on == all_others & found$mapping == "all" & found$policy == "tuned", ]
  expect_equal(together$judged_on, c("one", "two"))
  # Sources two and three choose chain, which takes 1.1 times as long as linear on source one.
  expect_equal(together$geometric_mean_pct, c(10, 100 * (1.5 / 1.1 - 1)))
})

test_that("with one source of the default, the difference to the others is subtracted, too", {
  counts <- seq(4, 24, 4)
  rows <- dplyr::bind_rows(
    toy_rows("bcast", rep(c("default", "linear"), each = 6), rep(counts, 2), 8, rep(c(1.3, 1), each = 6), source = "a"),
    # Everything takes half the time there: chain is slower than linear.
    toy_rows(
      "bcast", rep(c("linear", "chain"), each = 6), rep(counts, 2), 8, rep(c(0.5, 0.6), each = 6), launch = 2,
      source = "b"
    )
  )
  found <- dplyr::filter(across_of(rows), .data$mapping == "all")
  expect_equal(found$decided_on, rep(the_other_counts, 3))
  expect_equal(found$geometric_mean_pct[match(c("default", "best-single"), found$policy)], c(30, 0), tolerance = 1e-6)
})

test_that("sizes and process counts beyond those of the deciding source keep the default", {
  rows <- two_sources(c(default = 1, linear = 1, chain = 1))
  rows <- rows[rows$source == "two" | (rows$size_bytes <= 64 & rows$processes <= 16), ]
  results <- read_results(make_study(rows))
  cells <- across_sources(rows_in_place(results$rows), results$study, "bcast", "one", "two")
  tuned <- cells[cells$policy == "tuned", ]
  inside <- tuned$size_bytes < 128 & tuned$processes <= 16
  expect_true(any(inside) && any(tuned$size_bytes >= 128) && any(tuned$processes > 16))
  expect_equal(unique(tuned$algorithm[inside]), "linear")
  expect_equal(unique(tuned$algorithm[!inside]), "default")
})

test_that("nothing of the judging source reaches the rules", {
  rows <- two_sources(c(default = 1, linear = 1, chain = 1))
  policies <- function(rows) {
    parts <- rows_in_place(read_results(make_study(rows))$rows)
    study <- read_results(make_study(rows))$study
    cells <- across_sources(parts, study, "bcast", "one", "two")
    cells[cells$policy == "tuned", c("processes", "size_bytes", "algorithm")]
  }
  scrambled <- rows
  second <- scrambled$source == "two"
  scrambled$latency_us[second] <- rev(scrambled$latency_us[second])
  expect_equal(policies(scrambled), policies(rows))
})

test_that("one source: every process count between is judged by the others", {
  rows <- lawful(c(default = 1.3, linear = 1), counts = c(4, 8, 16, 32), sizes = 2^(0:10))
  rows <- dplyr::mutate(rows[rows$collective == "bcast", ], source = "one")
  found <- across_of(rows)
  expect_equal(unique(found$judged_on), "each count")
  tuned <- found[found$policy == "tuned" & found$mapping == "all", ]
  expect_equal(tuned$cells, 2L * 11L)
  expect_equal(tuned$geometric_mean_pct, 0)
})

test_that("flagged rows and mappings of one source alone are in no policy", {
  rows <- dplyr::mutate(two_sources(c(default = 1, linear = 1, chain = 1)), flag = "")
  rows$flag[rows$source == "two" & rows$processes == 8] <- "outlier"
  alone <- dplyr::mutate(rows[rows$source == "two", ], mapping = "node")
  found <- across_of(dplyr::bind_rows(rows, alone))
  expect_equal(unique(found$mapping), c("all", "core"))
  expect_equal(max(found$cells[found$judged_on == "two"]), 84 - 7)
})

test_that("a count that is left out is decided as if it had never been measured", {
  rows <- lawful(c(default = 1.3, linear = 1, chain = 0.9), counts = c(2, 4, 8, 12, 16, 24, 32), sizes = 2^(0:10))
  rows <- rows[rows$collective == "bcast", ]
  rows$latency_us <- rows$latency_us * exp(sin(seq_len(nrow(rows))) / 50)
  small <- rows$algorithm == "linear" & rows$size_bytes < 64
  rows$latency_us[small] <- 1.6 * rows$latency_us[small]
  # Gaps: an algorithm at one count alone, and one without a size at another.
  rows <- rows[!(rows$algorithm == "chain" & rows$processes != 8), ]
  rows <- rows[!(rows$algorithm == "linear" & rows$processes == 12 & rows$size_bytes == 64), ]
  results <- read_results(make_study(rows))
  counts <- tuning_counts(results$medians, "bcast")
  between <- counts[-c(1, length(counts))]
  columns <- c("processes", "size_bytes", "algorithm")
  anew <- dplyr::bind_rows(lapply(between, function(count) {
    decide_tuning(results, "bcast", setdiff(counts, count), count)[columns]
  }))
  medians <- results$medians[results$medians$collective == "bcast", ]
  expect_equal(decide_left_out(medians, between, results$study), anew)
  expect_gt(dplyr::n_distinct(anew$algorithm), 1)
})

test_that("the default of one MPI library is not compared with the algorithms of another one", {
  rows <- dplyr::mutate(toy_rows("bcast", c("default", "linear"), 4, 8, c(2, 1)), mpi = "openmpi")
  other <- dplyr::mutate(rows, mpi = "mpich", latency_us = c(30, 30))
  found <- summarise_by_collective(read_results(make_study(dplyr::bind_rows(rows, other))))
  expect_equal(c(found$cells, found$max_pct), c(2, 100))
})

test_that("a sentence says among which algorithms the rules were judged, and the chapter shows it with its table", {
  results <- read_results(make_study(two_sources(c(default = 1, linear = 1.1, chain = 1 / 1.1))))
  results$study$import <- list()
  told <- describe_across(results)
  expect_match(told[1], paste(
    "^Broadcast, rules decided on the measurements of one and tested on those of two \\(84 cells\\): the rules are",
    "10 % slower than the best algorithm that both measured, the default 30 %"
  ))
  rows <- lawful(c(default = 1.3, linear = 1, chain = 1.1))
  alone <- read_results(make_study(rows[rows$collective == "bcast", ]))
  alone$study$import <- list()
  expect_match(describe_across(alone), paste(
    "^Broadcast, rules tested on each process count between the smallest and the largest, decided on all others .*",
    "slower than the best measured algorithm"
  ))
  expect_true("regret-across" %in% sections_showing("further", c("selection", "regret-across")))
})
