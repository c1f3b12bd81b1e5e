test_that("winner, tie and regret by hand", {
  rows <- toy_rows(
    "bcast", rep(c("default", "linear", "chain"), each = 2), 2, rep(c(1, 1024), 3), c(1.015, 20, 1.00, 10, 3, 30)
  )
  winners <- decide_winners(read_results(make_study(rows)), "bcast")
  expect_equal(winners$winner, c("linear", "linear"))
  expect_equal(winners$tied, c("default", ""))
  expect_equal(winners$default_is, c("tied", "slower"))
  expect_equal(winners$default_regret_pct, c(1.5, 100))
  expect_equal(winners$runner_up, c("default", "default"))
})

launches_of_two <- function(linear, chain, ...) {
  n <- length(linear)
  toy_rows(
    "bcast", rep(c("linear", "chain"), each = n), 2, 1, c(linear, chain), launch = rep(seq_len(n), 2),
    round = rep(paste0("block:", seq_len(n)), 2), ...
  )
}

test_that("what drifts from round to round hides no difference within the rounds", {
  drift <- c(1, 2, 1.5, 3, 1.2, 2.5)
  slower <- drift * c(1.2, 1.21, 1.19, 1.2, 1.22, 1.18)
  apart <- decide_winners(read_results(make_study(launches_of_two(drift, slower))), "bcast")
  expect_equal(apart[c("winner", "tied", "tested")], tibble::tibble(winner = "linear", tied = "", tested = "rounds"))
  tied <- decide_winners(read_results(make_study(launches_of_two(drift, rev(drift)))), "bcast")
  expect_equal(tied$tied, "chain")
})

test_that("launches of different blocks are no pairs", {
  rows <- launches_of_two(c(1, 2, 1.5, 3, 1.2, 2.5), 1.2 * c(1, 2, 1.5, 3, 1.2, 2.5))
  rows$round <- NA
  found <- decide_winners(read_results(make_study(rows)), "bcast")
  expect_equal(found$tested, "launches")
  expect_equal(found$tied, "chain")
})

test_that("one launch has a tolerance: the tie width, or what the sources differ by", {
  sizes <- 2^(0:11)
  of <- function(source, factor) {
    times <- rep(c(1, 1), each = 12) * factor
    toy_rows("bcast", rep(c("default", "linear"), each = 12), 2, rep(sizes, 2), times, source = source)
  }
  single <- toy_rows("bcast", c("default", "linear"), 4, 1, c(1.03, 1), source = "one")
  alone <- decide_winners(read_results(make_study(single)), "bcast")
  expect_equal(alone[c("default_is", "tested")], tibble::tibble(default_is = "slower", tested = "tolerance"))
  agreeing <- dplyr::bind_rows(of("one", 1), dplyr::mutate(of("two", 1.1), launch = 2), single)
  results <- read_results(make_study(agreeing))
  expect_equal(tie_tolerance(results, "bcast"), 10)
  expect_match(tie_rule(results, "bcast"), paste(
    "^Algorithms within 10 % of the fastest count as tied: nine in ten differences between two authors' latencies of",
    "one algorithm in the same cell are smaller\\.$"
  ))
  found <- decide_winners(results, "bcast")
  expect_equal(found$default_is[found$processes == 4], "tied")
  # Only mapped by core did two authors measure the same cells.
  alone <- dplyr::mutate(single, mapping = "node")
  results <- read_results(make_study(dplyr::bind_rows(agreeing, alone)))
  expect_match(tie_rule(results, "bcast"), "in the same cell mapped by core are smaller\\.$")
})

test_that("two names of the same messages are one difference between the sources", {
  of <- function(source, ...) {
    grid <- expand.grid(algorithm = c("default", "binomial", "chain"), size_bytes = 2^(0:9), stringsAsFactors = FALSE)
    rows <- toy_rows("bcast", grid$algorithm, 4, grid$size_bytes, 1, source = source, ...)
    dplyr::mutate(rows, runs = ifelse(.data$algorithm == "default", "binomial", NA))
  }
  two <- of("two", launch = 2)
  two$latency_us <- ifelse(two$algorithm == "chain", 1.2, 1.1)
  two$latency_us[two$algorithm == "chain"][1:8] <- 1.01
  results <- read_results(make_study(dplyr::bind_rows(of("one"), two)))
  expect_equal(tie_tolerance(results, "bcast"), unname(quantile(c(rep(1, 8), rep(10, 10), 20, 20), 0.9)))
})

test_that("tolerances have two digits, and whole percents in full", {
  expect_equal(within_tolerance(c(2)), "within 2 %")
  expect_equal(within_tolerance(9.93), "within 9.9 %")
  expect_equal(within_tolerance(24.08), "within 24 %")
  expect_equal(within_tolerance(131.7), "within 132 %")
})

test_that("two authors who both see 40 % are not told that it is a tie", {
  rows <- launches_of_two(c(1, 1.1), c(1.4, 1.5))
  found <- decide_winners(read_results(make_study(rows)), "bcast")
  expect_equal(found[c("tied", "tested")], tibble::tibble(tied = "", tested = "tolerance"))
})

test_that("the rule for ties names a test only where one decided", {
  of <- function(source, launches, times = c(1, 1.5)) {
    toy_rows(
      "bcast", rep(c("default", "linear"), each = launches), 2, 1, rep(times, each = launches),
      launch = rep(seq_len(launches), 2), source = source
    )
  }
  # Three launches, but two authors, and thus two pairs.
  two <- read_results(make_study(dplyr::bind_rows(of("one", 2), dplyr::mutate(of("two", 1), launch = 3))))
  expect_equal(decide_winners(two, "bcast")$tested, "tolerance")
  expect_match(tie_rule(two, "bcast"), "^Algorithms within 2 % of the fastest count as tied, because")
  three <- map_dfr(1:3, function(i) mutate(of(letters[i], 1, c(1.5 + i / 100, 1)), launch = i))
  some <- read_results(make_study(dplyr::bind_rows(three, mutate(three[three$source == "a", ], processes = 4))))
  expect_setequal(decide_winners(some, "bcast")$tested, c("rounds", "tolerance"))
  few <- "where fewer than three authors measured both, "
  expect_match(tie_rule(some, "bcast"), paste0("a test of the latency ratios within authors .*; ", few, "those within"))
  expect_match(describe_answer(some), paste0("\\(not significantly slower or, ", few, "within 2 %\\)"))
})

test_that("of several launches of an author, none is left out of the test", {
  of <- function(source, default) {
    n <- length(default)
    toy_rows(
      "bcast", rep(c("default", "linear"), each = n), 2, 1, c(default, rep(1, n)), launch = rep(seq_len(n), 2),
      source = source
    )
  }
  ratio <- function(default) {
    rows <- dplyr::bind_rows(of("a", default), of("b", 1.4), of("c", 1.5))
    rows$launch <- vctrs::vec_group_id(rows[c("source", "launch")])
    compare_rounds(read_results(make_study(rows))$judged$launches)[c("ratio", "rounds")]
  }
  # Medians: the last launch of the first author does not decide.
  expect_equal(ratio(c(1.45, 1.45, 9)), tibble::tibble(ratio = 1.45, rounds = 3L))
  expect_equal(ratio(c(9, 1.45, 1.45)), tibble::tibble(ratio = 1.45, rounds = 3L))
})

test_that("a flagged launch is kept and in no number", {
  rows <- toy_rows(
    "bcast", rep(c("default", "linear"), each = 3), 2, 1, c(1, 1.1, 9000, 2, 2.1, 1.9), launch = rep(1:3, 2),
    flag = c("", "", "outlier", "", "", "")
  )
  results <- read_results(make_study(rows))
  expect_equal(nrow(results$rows), 6)
  expect_equal(results$medians$latency_us[results$medians$algorithm == "default"], 1.05)
  expect_match(describe_flagged(results$study, "bcast"), "^1 broadcast launch is flagged")
})

test_that("no sentence says tied and slower of the same thing", {
  set.seed(2)
  noise <- function(n) exp(rnorm(n, 0, 0.5))
  rows <- toy_rows(
    "bcast", rep(c("default", "linear"), each = 15), 2, rep(rep(c(1, 2, 4), 5), 2), noise(30),
    launch = rep(rep(1:5, each = 3), 2), round = rep(rep(paste0("b:", 1:5), each = 3), 2)
  )
  text <- describe_answer(read_results(make_study(rows)))
  expect_match(text, "the default is the fastest algorithm, or tied with it, in 100 % of the cells\\.$")
})

test_that("a default that is never the fastest is not said to be so in 0.0 % of the cells", {
  rows <- toy_rows("bcast", rep(c("default", "linear"), 2), 2, c(1, 1, 2, 2), c(2, 1, 3, 1))
  results <- read_results(make_study(rows))
  expect_match(describe_answer(results), paste(
    "the default is neither the fastest algorithm nor tied with it \\(within 2 %\\) in any of the 2 cells\\. It is",
    "slower by 145 %"
  ))
})

test_that("cells in which the default is equally slow have one number", {
  rows <- toy_rows("bcast", rep(c("default", "linear"), 2), 2, c(1, 1, 2, 2), c(2, 1, 4, 2))
  expect_match(describe_answer(read_results(make_study(rows))), "in any of the 2 cells\\. It is 100 % slower\\.$")
})

test_that("sentences on a single cell have no plural", {
  results <- read_results(make_study(toy_rows("bcast", c("default", "linear"), 2, 1, c(2, 1))))
  expect_match(describe_answer(results), "tied with it \\(within 2 %\\) in the only cell\\. It is 100 % slower\\.$")
  expect_match(describe_default_vs_best(results, "bcast")[1], "in 0 of 1 cell \\(")
  expect_match(describe_default_vs_best(results, "bcast")[2], "in 0 of 1 class\\.")
  expect_match(describe_decision(results, "bcast")[1], "^1 of 1 cell has a single fastest algorithm")
  alone <- read_results(make_study(toy_rows("bcast", "default", 2, 1, 2)))
  expect_match(describe_latency(alone, "bcast")[1], "^The only latency is 2 \u00b5s \\(")
})

test_that("a barrier whose default is never slower is not said to be slower by 0", {
  results <- read_results(make_study(toy_rows("barrier", c("default", "linear"), 4, NA, 1:2)))
  expect_match(describe_optimal(results, "barrier"), "at 0 of 1 process counts\\.$")
})

test_that("ties of simulated latencies are not explained by noise, which they lack", {
  rows <- toy_rows("bcast", c("default", "linear"), 2, 1, 1:2)
  expect_match(tie_rule(read_results(make_study(rows, simulated = TRUE)), "bcast"), "fastest count as tied\\.$")
  expect_match(tie_rule(read_results(make_study(rows)), "bcast"), "so few launches allow no test\\.$")
})

test_that("an algorithm that did not take part everywhere is named", {
  rows <- toy_rows("bcast", c("default", "linear", "chain", "default", "linear"), 2, c(1, 1, 1, 2, 2), 1:5)
  text <- describe_decision(read_results(make_study(rows)), "bcast")
  expect_match(text, "Algorithms compete only in cells in which .*: CHAIN \\(1\\)\\.", all = FALSE)
  complete <- read_results(make_study(rows[rows$algorithm != "chain", ]))
  expect_no_match(describe_decision(complete, "bcast"), "lacks")
})

test_that("one algorithm alone wins nothing", {
  alone <- read_results(make_study(toy_rows("bcast", "linear", 2, c(1, 2), c(1, 2))))
  expect_equal(nrow(decide_winners(alone, "bcast")), 0)
  expect_true("winner" %in% names(decide_winners(alone, "bcast")))
})

test_that("counts of launches and cells in sentences are exact", {
  study <- list(flagged = tibble::tibble(collective = "bcast", n = 1234))
  expect_match(describe_flagged(study, "bcast"), "^1,234 broadcast launches are")
  rows <- toy_rows("bcast", rep(c("default", "linear"), 1235), 4, rep(1:1235, each = 2), c(1, 2, rep(c(2, 1), 1234)))
  expect_match(describe_answer(read_results(make_study(rows))), "In the other 1,234 cells it is 100 % slower")
})

test_that("cells without the default do not count for or against it", {
  rows <- toy_rows("bcast", rep(c("default", "linear", "chain"), 3), 4, rep(c(1, 2, 4), each = 3), rep(c(2, 1, 3), 3))
  said <- function(rows) describe_answer(read_results(make_study(rows)))
  lacking <- rows$algorithm == "default" & rows$size_bytes == 4
  expect_match(said(rows[!lacking, ]), "in any of the 2 cells in which it was measured\\.")
  rows$latency_us[rows$algorithm == "default"] <- 1
  expect_match(said(rows[!lacking, ]), "in 100 % of the cells in which it was measured\\.$")
  expect_match(said(rows), "in 100 % of the cells\\.$")
})

test_that("a default that is exactly as fast as the others is not said to be faster", {
  results <- read_results(make_study(toy_rows("bcast", c("default", "linear"), 4, 1, 1)))
  expect_match(describe_default_vs_best(results, "bcast")[2], "is at least as fast as the best other .* 1 of 1 class")
})

test_that("cells in which two medians are equal, or even numbers of launches, are judged by the test as well", {
  judged <- function(...) {
    times <- list(...)
    rows <- purrr::imap_dfr(times, function(us, name) {
      launch <- seq_along(us)
      toy_rows("bcast", name, 2, 1, us, launch = launch, round = paste0("b:", launch))
    })
    decide_winners(read_results(make_study(rows)), "bcast")
  }
  # Medians of 1, 1 and 1.05: no difference between the three is significant.
  found <- judged(
    linear = c(0.9, 1, 1.2, 1, 0.8), chain = c(1, 1.1, 0.8, 0.9, 1), default = c(1.05, 0.8, 1.3, 0.9, 1.1)
  )
  expect_equal(unclass(found[c("winner", "tied", "tested")]), list(
    winner = "linear", tied = "chain;default", tested = "rounds"
  ), ignore_attr = TRUE)
  # Four launches: the smaller median has the larger median of logarithms.
  found <- judged(
    linear = c(0.5, 0.6, 1.4, 1.5), chain = c(0.5, 0.98, 1.0, 1.5), default = c(1.05, 1.1, 1.3, 0.9)
  )
  expect_equal(found$tested, "rounds")
  expect_equal(found$winner, "chain")
})

test_that("a latency of 0, to which nothing has a ratio, does not compete", {
  rows <- toy_rows("bcast", rep(c("default", "linear", "chain"), 2), 4, rep(c(8, 64), each = 3), c(2, 1, 0, 2, 1, 3))
  results <- read_results(make_study(rows))
  expect_equal(decide_winners(results, "bcast")$default_regret_pct, c(100, 100))
  answer <- summarise_answer(results)
  expect_equal(answer$default_geometric_mean_pct, 100)
  expect_equal(answer$best_single_geometric_mean_pct, 0)
})
