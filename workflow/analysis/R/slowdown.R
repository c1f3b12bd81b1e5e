# How much slower than the best: the numbers that stand for many cells.

#' Slow-downs in a few numbers that an outlier does not decide
#'
#' The geometric mean stands for many cells: ratios multiply, and one cell that is a thousand times slower moves it
#' little. The arithmetic mean, which such a cell decides, stands beside it.
#'
#' @param ratio Latencies over the best of their cells; NA is left out.
#' @return Tibble of one row: geometric_mean_pct, mean_pct, median_pct, p90_pct, p99_pct, max_pct (percent above 1; NA
#'   without a value), cells.
#' @noRd
summarise_slowdown <- function(ratio) {
  ratio <- ratio[!is.na(ratio)]
  above <- function(x) 100 * (unname(x) - 1)
  if (length(ratio) == 0) {
    none <- NA_real_
    return(tibble(
      geometric_mean_pct = none, mean_pct = none, median_pct = none, p90_pct = none, p99_pct = none, max_pct = none,
      cells = 0L
    ))
  }
  tibble(
    geometric_mean_pct = above(geometric_mean(ratio)), mean_pct = above(mean(ratio)),
    median_pct = above(median(ratio)), p90_pct = above(quantile(ratio, 0.9)), p99_pct = above(quantile(ratio, 0.99)),
    max_pct = above(max(ratio)), cells = length(ratio)
  )
}

#' The geometric mean of regrets: that of the ratios, in percent above 1; NA without a value
#'
#' @param regret_pct How much slower than the best, in percent; NA is left out.
#' @noRd
geometric_regret <- function(regret_pct) summarise_slowdown(1 + regret_pct / 100)$geometric_mean_pct

#' What the columns of [summarise_slowdown()] are, for captions
#' @noRd
slowdown_note <- paste(
  "Regret is the slow-down of a choice against the best algorithm of the cell; the columns give its means, median and",
  "other quantiles over the cells."
)

#' How many launches the import checks flagged, which are in no number; NULL where none is
#' @noRd
describe_flagged <- function(study, collective) {
  n <- sum(study$flagged$n[study$flagged$collective == collective])
  if (n == 0) return(NULL)
  paste0(
    format_count(n), " ", collective_word(collective), " ", if (n == 1) "launch is" else "launches are",
    " flagged by the import checks and excluded from all numbers."
  )
}
