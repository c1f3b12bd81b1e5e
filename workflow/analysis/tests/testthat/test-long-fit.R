test_that("of equal latencies, no share of the variance and no slope is given", {
  rows <- dplyr::filter(lawful(), algorithm != "chain")
  rows$latency_us <- 5
  folder <- make_study(rows)
  write_analysis(read_results(folder), folder)
  read <- function(file) readr::read_csv(file.path(folder, file), show_col_types = FALSE)
  expect_true(all(is.na(c(read("models/bcast-loglinear.csv")$r_squared, read("models/barrier-fits.csv")$r_squared))))
  expect_false(any(grepl("variance of log latency|Each additional process|Inf|NA %|NaN", read("sentences.csv")$text)))
  captions <- read("figures/index.csv")$caption
  expect_match(captions, "the plane fitted to it, with a mean error of 0.0 % on the fitted cells", all = FALSE)
})

test_that("captions name the empty messages that axes and models leave out", {
  captions <- function(sizes) {
    folder <- make_study(dplyr::filter(lawful(sizes = sizes), collective == "bcast"))
    write_analysis(read_results(folder), folder)
    index <- purrr::map(c("figures", "models"), function(kind) {
      readr::read_csv(file.path(folder, kind, "index.csv"), show_col_types = FALSE)[c("id", "caption")]
    })
    tibble::deframe(dplyr::bind_rows(index))
  }
  with <- captions(c(0, 4^(0:6)))
  named <- c("sizes", "slowdown", "model-errors", "loglinear", "comparison", "hop-costs")
  expect_match(with[paste0("bcast-", named)], "Messages of 0 B are left out.", fixed = TRUE)
  expect_no_match(with[c("bcast-decision-map", "bcast-default-map")], "0 B")
  expect_no_match(captions(4^(0:6)), "0 B")
})
