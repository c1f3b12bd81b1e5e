# Two EPYC nodes in small: a study of that name, with a law for each algorithm of P and m.
epyc <- function(laws, counts = c(16, 32, 256), sizes = c(2, 1024, 2^20), name = "orfeo-epyc") {
  levels <- list(
    list(name = "node", count = 2, latency_us = 1.7, bandwidth_gb_s = 11),
    list(name = "core", count = 128, latency_us = 0.1, bandwidth_gb_s = 8)
  )
  grid <- expand.grid(processes = counts, size_bytes = sizes)
  rows <- purrr::map_dfr(names(laws), function(algorithm) {
    toy_rows("bcast", algorithm, grid$processes, grid$size_bytes, laws[[algorithm]](grid$processes, grid$size_bytes))
  })
  results <- read_results(make_study(rows, simulated = TRUE, levels = levels))
  results$study$machine$name <- name
  results
}

laws <- list(
  default = function(p, m) 1 + 0 * p, binomial = function(p, m) 2 + 0 * p, chain = function(p, m) 2.2 + 0 * p,
  linear = function(p, m) 3 + 0 * p, pipeline = function(p, m) p
)

test_that("each statement is counted over the cells that it speaks of", {
  judged <- judge_published_claims(epyc(laws), "bcast")
  of <- function(words) judged[grepl(words, judged$statement), ]
  expect_equal(of("Default consistently")[c("cells", "holds_pct")], tibble::tibble(cells = 3L, holds_pct = 100))
  expect_equal(of("From 32")$cells, 6)
  expect_true(all(judged$holds_pct[!grepl("[Mm]odel", judged$statement)] == 100))
  slow <- utils::modifyList(laws, list(default = function(p, m) ifelse(p > 16 & m > 1024, 9, 1)))
  expect_equal(judge_published_claims(epyc(slow), "bcast")$verdict[1], "not here")
  expect_match(describe_claims(epyc(slow), "bcast"), "in fewer: \u201cDefault consistently.*is unknown")
})

test_that("two latencies within 25 % of each other are so in either order", {
  holds <- function(chain) {
    judged <- judge_published_claims(epyc(utils::modifyList(laws, list(chain = function(p, m) chain + 0 * p))), "bcast")
    judged$holds_pct[judged$statement == "Chain and Binomial show similar performance"]
  }
  # Of the binomial tree's 2 us.
  expect_equal(purrr::map_dbl(c(2 * 1.24, 2 / 1.24), holds), c(100, 100))
  expect_equal(purrr::map_dbl(c(2 * 1.26, 2 / 1.26), holds), c(0, 0))
})

test_that("other machines are not judged, nor a study that lacks an algorithm", {
  expect_equal(nrow(judge_published_claims(epyc(laws, name = "other"), "bcast")), 0)
  expect_equal(nrow(judge_published_claims(epyc(laws[-1]), "bcast")), 0)
})

test_that("a statement about sizes or counts that were not measured is left out", {
  judged <- judge_published_claims(epyc(laws, counts = c(16, 32), sizes = c(3, 1024)), "bcast")
  expect_equal(sort(judged$cells), c(2, 2, 4))
  expect_false(any(grepl("2 bytes|larger messages", judged$statement)))
  expect_equal(nrow(judge_published_claims(epyc(laws, counts = 16, sizes = 3), "reduce")), 0)
})
