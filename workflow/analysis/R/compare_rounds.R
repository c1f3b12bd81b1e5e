#' Which algorithms of a cell are slower than its fastest, by what the launches of a round say
#'
#' The launches of one round ran one after another on the same nodes: their ratio does not feel what drifts from round
#' to round. For every algorithm of a cell the logarithms of its ratios to the fastest algorithm (lowest median) are
#' tested against zero, two-sided. Without rounds (`round` is NA) the launches of two algorithms are two independent
#' samples.
#'
#' - With so many rounds that it can reach the level, the test is Wilcoxon's signed-rank test, which needs no
#'   distribution: two launches of a round are exchangeable where the algorithms are equally fast, so the logarithm of
#'   their ratio is symmetric.
#' - With fewer it is a t-test of the mean whose variance is pooled over the neighbouring message sizes (two on either
#'   side) of the same two algorithms. Sizes of one launch are correlated, so the degrees of freedom are divided by
#'   1 + (m - 1) r^2 with r^2 the mean squared correlation between the m sizes. The pooled variance is never taken below
#'   half of the cell's own.
#' - Holm's step-down over the algorithms of the cell starts from all pairs of algorithms, not from those with the
#'   fastest, because the fastest was chosen on the same launches.
#'
#' @param rows Tibble of launches of one collective: algorithm, mapping, processes, size_bytes, launch, round,
#'   latency_us.
#' @param level Probability of calling any algorithm of a cell slower that is not.
#' @return Tibble, one row per cell (mapping x processes x size_bytes) and algorithm but the fastest: mapping,
#'   processes, size_bytes, algorithm, fastest, rounds (pairs; launches of the algorithm that has fewer where there
#'   are no rounds), ratio (median over the rounds of latency over the fastest's), low, high (distribution-free 95 %
#'   interval of that median, [summarise_launches()]), test (signed-rank, t, none), p_value (after Holm), slower
#'   (p_value at most `level` and ratio above 1). Cells where fewer than two algorithms have two launches or more are
#'   not in it.
#' @noRd
compare_rounds <- function(rows, level = 0.05) {
  rows <- rows[is.finite(rows$latency_us) & rows$latency_us > 0, ]
  if (!"round" %in% names(rows)) rows$round <- NA_character_
  # The sizes of one such part were swept by the same launches.
  parts <- split(seq_len(nrow(rows)), paste(rows$mapping, rows$processes, sep = "\r"), drop = TRUE)
  found <- unlist(map(parts, function(here) compare_part(rows[here, ], level)), recursive = FALSE)
  bind_rows(no_comparisons(), list_columns(unname(found)))
}

no_comparisons <- function() {
  tibble(
    mapping = character(), processes = numeric(), size_bytes = numeric(), algorithm = character(),
    fastest = character(), rounds = integer(), ratio = numeric(), low = numeric(), high = numeric(),
    test = character(), p_value = numeric(), slower = logical()
  )
}

#' A tibble of a list of lists of columns; faster than binding thousands of tibbles
#' @noRd
list_columns <- function(parts) {
  if (length(parts) == 0) return(no_comparisons())
  columns <- names(parts[[1]])
  as_tibble(setNames(map(columns, function(name) unlist(map(parts, name), use.names = FALSE)), columns))
}

compare_part <- function(rows, level) {
  size <- coalesce(as.numeric(rows$size_bytes), -1)
  sizes <- sort(unique(size))
  names <- sort(unique(as.character(rows$algorithm)))
  paired <- !anyNA(rows$round)
  unit <- if (paired) as.character(rows$round) else as.character(rows$launch)
  units <- unique(unit)
  logs <- array(NA_real_, c(length(units), length(names), length(sizes)), list(units, names, NULL))
  logs[cbind(match(unit, units), match(rows$algorithm, names), match(size, sizes))] <- log(rows$latency_us)
  Filter(Negate(is.null), map(seq_along(sizes), function(s) {
    found <- compare_cell(logs, s, paired, level)
    if (is.null(found)) return(NULL)
    others <- length(found$algorithm)
    c(list(
      mapping = rep(as.character(rows$mapping[1]), others), processes = rep(rows$processes[1], others),
      size_bytes = rep(if (sizes[s] < 0) NA_real_ else sizes[s], others)
    ), found)
  }))
}

#' @param logs Array round x algorithm x size of log latency.
#' @return List of columns as of [compare_rounds()], from `algorithm` on; NULL where there is nothing to compare.
#' @noRd
compare_cell <- function(logs, s, paired, level) {
  here <- matrix(logs[, , s], dim(logs)[1], dim(logs)[2], dimnames = dimnames(logs)[1:2])
  here <- here[, colSums(is.finite(here)) >= 2, drop = FALSE]
  if (ncol(here) < 2) return(NULL)
  fastest <- colnames(here)[which.min(apply(here, 2, median, na.rm = TRUE))]
  others <- setdiff(colnames(here), fastest)
  pairs <- ncol(here) * (ncol(here) - 1) / 2
  tests <- map(others, function(name) compare_two(logs, name, fastest, s, paired, level / pairs))
  of <- function(field) unlist(map(tests, field))
  p <- holm_from(of("p_value"), pairs)
  ratio <- of("ratio")
  list(
    algorithm = others, fastest = rep(fastest, length(others)), rounds = of("rounds"), ratio = ratio, low = of("low"),
    high = of("high"), test = of("test"), p_value = p, slower = !is.na(p) & p <= level & ratio > 1
  )
}

#' Holm's adjustment that starts from more hypotheses than are looked at
#' @noRd
holm_from <- function(p, hypotheses) {
  order <- order(p)
  adjusted <- pmin(1, cummax((hypotheses - seq_along(p) + 1) * p[order]))
  adjusted[order(order)]
}

compare_two <- function(logs, name, fastest, s, paired, smallest) {
  near <- max(1, s - 2):min(dim(logs)[3], s + 2)
  difference <- if (paired) {
    matrix(logs[, name, near] - logs[, fastest, near], dim(logs)[1])
  } else {
    unpaired_differences(logs[, name, near, drop = FALSE], logs[, fastest, near, drop = FALSE])
  }
  own <- difference[, match(s, near)]
  own <- own[!is.na(own)]
  n <- length(own)
  if (n < 2) {
    return(list(rounds = n, ratio = NA_real_, low = NA_real_, high = NA_real_, test = "none", p_value = NA_real_))
  }
  sorted <- sort(own)
  k <- max(1, stats::qbinom(0.025, n, 0.5))
  signed_rank <- paired && 2^(1 - n) <= smallest
  list(
    rounds = n, ratio = exp(middle(sorted, 0, n)), low = exp(sorted[k]), high = exp(sorted[n + 1 - k]),
    test = if (signed_rank) "signed-rank" else "t",
    p_value = if (signed_rank) signed_rank_p(own) else pooled_t_p(difference, match(s, near))
  )
}

#' Differences of two samples without pairs: each launch of the one over the mean of the other, so that the mean is the
#' difference of means; the variance of that mean is that of two samples, put in by scaling the deviations
#' @noRd
unpaired_differences <- function(a, b) {
  a <- matrix(a, dim(a)[1])
  b <- matrix(b, dim(b)[1])
  n <- nrow(a)
  if (n > 1 && all(is.finite(a)) && all(is.finite(b))) {
    # Without gaps all sizes in one go.
    of_all <- function(values) rep(values, each = n)
    mean_a <- colMeans(a)
    mean_b <- colMeans(b)
    shape <- a - of_all(mean_a)
    variance_a <- colSums(shape^2) / (n - 1)
    variance <- (variance_a + colSums((b - of_all(mean_b))^2) / (n - 1)) / n
    return(of_all(mean_a - mean_b) + shape * of_all(sqrt(variance * n / pmax(variance_a, 1e-300))))
  }
  found <- matrix(NA_real_, max(nrow(a), nrow(b)), ncol(a))
  for (s in seq_len(ncol(a))) {
    x <- a[is.finite(a[, s]), s]
    y <- b[is.finite(b[, s]), s]
    n <- min(length(x), length(y))
    if (n < 2) next
    variance <- stats::var(x) / length(x) + stats::var(y) / length(y)
    shape <- if (length(x) == n) x - mean(x) else y - mean(y)
    shape <- shape * sqrt(variance * n / max(stats::var(shape), 1e-300))
    found[seq_len(n), s] <- mean(x) - mean(y) + shape
  }
  found
}

#' Wilcoxon's signed-rank test, two-sided and exact; zeros are kept as half for and half against (Pratt 1959)
#' @noRd
signed_rank_p <- function(x) {
  n <- length(x)
  rank <- rank(abs(x))
  up <- sum(rank[x > 0]) + sum(rank[x == 0]) / 2
  extreme <- min(up, n * (n + 1) / 2 - up)
  min(1, 2 * stats::psignrank(floor(extreme + 1e-9), n))
}

#' t-test of the mean of one column, its variance pooled with the other columns'
#' @noRd
pooled_t_p <- function(difference, own) {
  x <- difference[, own]
  x <- x[!is.na(x)]
  counts <- colSums(!is.na(difference))
  difference <- difference[, counts >= 2, drop = FALSE]
  freedom <- counts[counts >= 2] - 1
  m <- ncol(difference)
  deviation <- difference - rep(colMeans(difference, na.rm = TRUE), each = nrow(difference))
  deviation[is.na(deviation)] <- 0
  squares <- colSums(deviation^2)
  variance <- max(sum(squares) / sum(freedom), sum((x - mean(x))^2) / (length(x) - 1) / 2)
  if (variance <= 0) return(if (mean(x) == 0) 1 else 0)
  spread <- 1
  if (m > 1) {
    squared <- crossprod(deviation)^2 / outer(squares, squares)
    diag(squared) <- 0
    spread <- sum(squared[is.finite(squared)]) / (m * (m - 1))
  }
  2 * stats::pt(-abs(mean(x)) / sqrt(variance / length(x)), sum(freedom) / (1 + (m - 1) * spread))
}

#' Made-up launches of one cell's algorithms, for the error and the power of [compare_rounds()]
#'
#' @param slow Slow-down of each algorithm, such as `c(a = 1, b = 1.05)`.
#' @param rounds Number of rounds.
#' @param sizes Number of message sizes.
#' @param noise Standard deviation of one launch's log latency.
#' @param family Distribution of a launch's log latency: `normal`; `skewed` (exponential); `heavy` (t with 3 degrees of
#'   freedom); `outliers` (one launch in ten is up to three times as slow); `modes` (every third launch is 3 `noise`
#'   slower).
#' @param drift Standard deviation of what all launches of a round share.
#' @param launch_share Share of the variance that the sizes of a launch have in common.
#' @return Tibble as [compare_rounds()] takes it, one mapping and process count. Simulated, not measured.
#' @noRd
simulate_rounds <- function(slow, rounds = 5, sizes = 7, noise = 0.03, family = "normal", drift = 0.1,
                            launch_share = 0) {
  grid <- expand.grid(
    size_bytes = 2^(seq_len(sizes) - 1), algorithm = names(slow), launch = seq_len(rounds), stringsAsFactors = FALSE
  )
  shared <- cumsum(stats::rnorm(rounds, 0, drift))
  launches <- paste(grid$algorithm, grid$launch)
  of_launch <- draw_noise(length(unique(launches)), family)[match(launches, unique(launches))]
  own <- sqrt(launch_share) * of_launch + sqrt(1 - launch_share) * draw_noise(nrow(grid), family)
  as_tibble(grid) |>
    mutate(
      mapping = "core", processes = 4, round = paste0("block:", .data$launch),
      latency_us = 5 * slow[.data$algorithm] * (1 + .data$size_bytes / 64) * exp(shared[.data$launch] + noise * own)
    )
}

draw_noise <- function(n, family) {
  switch(family,
    normal = stats::rnorm(n), skewed = stats::rexp(n) - 1, heavy = stats::rt(n, 3) / sqrt(3),
    outliers = stats::rnorm(n) + ifelse(stats::runif(n) < 0.1, stats::runif(n, 0, 35), 0),
    modes = stats::rnorm(n) / 3 + 3 * (stats::runif(n) < 1 / 3),
    stop("no family ", family, call. = FALSE)
  )
}

noise_families <- c("normal", "skewed", "heavy", "outliers", "modes")

#' How often the rule of [compare_rounds()] calls an algorithm slower: the error of the first kind and the power
#'
#' Simulated launches ([simulate_rounds()]): four algorithms, of which one is slower by `difference_pct`; a cell counts
#' as detected where that one is called slower, and as wrong where any of the three equally fast ones is.
#'
#' @param difference_pct By how much the fourth algorithm is slower, in percent.
#' @param rounds Numbers of rounds.
#' @param families Distributions, see [simulate_rounds()].
#' @param repeats Simulated studies for each combination; each has seven cells (message sizes).
#' @param seed Of the random numbers.
#' @param ... Passed on to [simulate_rounds()].
#' @return Tibble: family, rounds, difference_pct, cells, detected_pct (NA without a difference), wrong_pct.
#' @noRd
simulate_power <- function(difference_pct = c(0, 2, 5, 10, 20, 50), rounds = c(3, 5, 8, 12), families = "normal",
                           repeats = 100, seed = 1, ...) {
  set.seed(seed)
  grid <- expand.grid(
    difference_pct = difference_pct, rounds = rounds, family = families, stringsAsFactors = FALSE
  )
  bind_rows(pmap(grid, function(difference_pct, rounds, family) {
    slow <- c(a = 1, b = 1, c = 1, d = 1 + difference_pct / 100)
    # Each simulated study stands as a process count of its own.
    launches <- map_dfr(seq_len(repeats), function(i) {
      mutate(simulate_rounds(slow, rounds, family = family, ...), processes = i)
    })
    found <- compare_rounds(launches)
    truly <- difference_pct > 0 & found$algorithm == "d" & found$fastest != "d"
    cell <- paste(found$processes, found$size_bytes)
    cells <- length(unique(cell))
    tibble(
      family = family, rounds = rounds, difference_pct = difference_pct, cells = cells,
      detected_pct = if (difference_pct > 0) 100 * sum(found$slower & truly) / cells else NA_real_,
      wrong_pct = 100 * length(unique(cell[found$slower & !truly])) / cells
    )
  }))
}

#' Power curve of the rule that compares launches within rounds
#'
#' @param power Tibble from [simulate_power()].
#' @return ggplot: share of cells in which the slower algorithm is found, by difference and number of rounds.
#' @noRd
plot_power <- function(power) {
  rows <- filter(power, .data$difference_pct > 0)
  ggplot(rows, aes(.data$difference_pct, .data$detected_pct, colour = factor(.data$rounds))) +
    geom_line() +
    geom_point(aes(shape = factor(.data$rounds))) +
    scale_x_log10(breaks = sort(unique(rows$difference_pct))) +
    scale_y_continuous(limits = c(0, 100)) +
    scale_colour_viridis_d(end = 0.85) +
    facet_wrap(vars(.data$family)) +
    labs(
      x = "slow-down of one of four algorithms (%)", y = "cells in which it is found (%)", colour = "rounds",
      shape = "rounds"
    )
}
