# Probability that any algorithm of a cell is called slower although it is not.
most_p <- 0.05

#' Test which algorithms of a cell are slower than the fastest one, within rounds
#'
#' The launches of one round ran one after another on the same nodes, so drift between rounds cancels in their ratio.
#' For every algorithm of a cell, the logarithms of its ratios to the fastest algorithm (lowest median) are tested
#' against zero, two-sided. Without rounds (`round` is NA), the launches of two algorithms are two independent samples.
#'
#' - With enough rounds to reach the level, the test is Wilcoxon's signed-rank test, which assumes no distribution: two
#'   launches of a round are exchangeable if the algorithms are equally fast, so the logarithm of their ratio is
#'   symmetric.
#' - With fewer rounds, it is a t-test of the mean whose variance is pooled over the neighbouring message sizes (two on
#'   either side) of the same two algorithms. Sizes of one launch are correlated, so the degrees of freedom are divided
#'   by 1 + (m - 1) r^2, with r^2 the mean squared correlation between the m sizes. The pooled variance is at least half
#'   of the cell's own.
#' - Holm's step-down procedure over the algorithms of the cell starts from the number of all pairs of algorithms, not
#'   only those with the fastest, because the fastest was chosen on the same launches.
#'
#' @param rows Tibble of launches of one collective: algorithm, mapping, processes, size_bytes, launch, round,
#'   latency_us. Of algorithms with the same median, the first level of the factor `algorithm` is the fastest.
#' @return Tibble, one row per cell (mapping x processes x size_bytes) and algorithm but the fastest: mapping,
#'   processes, size_bytes, algorithm, fastest, rounds (number of pairs; without rounds, the smaller number of
#'   launches), ratio (of the latency to that of the fastest, median over rounds), test (signed-rank, t, none), p_value
#'   (after Holm), slower (p_value at most 5 % and ratio above 1). Cells in which fewer than two algorithms have at
#'   least two launches are left out.
#' @noRd
compare_rounds <- function(rows) {
  rows <- rows[is.finite(rows$latency_us) & rows$latency_us > 0, ]
  if (nrow(rows) == 0) return(no_comparisons())
  if (!"round" %in% names(rows)) rows$round <- NA_character_
  # The launches of one part swept all its message sizes.
  part <- as.integer(vctrs::vec_group_id(rows[c("mapping", "processes")]))
  paired <- !part %in% part[is.na(rows$round)]
  unit <- rank_within(part, ifelse(paired, vctrs::vec_group_id(rows$round), rows$launch))
  size <- coalesce(as.numeric(rows$size_bytes), -1)
  algorithms <- levels(factor(rows$algorithm))
  values <- tibble(
    part = part, unit = unit, size = size, s = rank_within(part, size), a = match(rows$algorithm, algorithms),
    latency = rows$latency_us
  )
  # Of several launches in one round, as of one author of imported data, the median counts.
  entry <- as.integer(vctrs::vec_group_id(values[c("part", "unit", "s", "a")]))
  values$latency <- group_median(values$latency, entry, max(entry))[entry]
  # Parts with the same number of launches are compared in one matrix; the number of parts in it is limited.
  launches <- as.integer(tapply(unit, part, max))
  alike <- vctrs::vec_group_id(tibble(paired = paired, launches[part], (cumsum(tabulate(part)) %/% 1e5)[part]))
  found <- map_dfr(split(seq_along(part), alike), function(here) compare_parts(values[here, ], paired[here[1]]))
  if (nrow(found) == 0) return(no_comparisons())
  parts <- rows[!duplicated(part), c("mapping", "processes")]
  place <- order(order(paste(parts$mapping, parts$processes, sep = "\r")))
  found <- found[order(place[found$part], found$size, found$a), ]
  found |>
    mutate(
      mapping = as.character(parts$mapping)[.data$part], processes = parts$processes[.data$part],
      size_bytes = ifelse(.data$size < 0, NA_real_, .data$size), algorithm = algorithms[.data$a],
      fastest = algorithms[.data$fastest],
      slower = !is.na(.data$p_value) & .data$p_value <= most_p & .data$ratio > 1
    ) |>
    select(all_of(names(no_comparisons())))
}

no_comparisons <- function() {
  tibble(
    mapping = character(), processes = numeric(), size_bytes = numeric(), algorithm = character(),
    fastest = character(), rounds = integer(), ratio = numeric(), test = character(), p_value = numeric(),
    slower = logical()
  )
}

#' Rank of each value among the different values of its group (integers from 1)
#' @noRd
rank_within <- function(group, value) {
  id <- vctrs::vec_group_id(tibble(group, value))
  first <- !duplicated(id)
  rank <- integer(sum(first))
  rank[order(group[first], value[first])] <- sequence(tabulate(group[first]))
  rank[id]
}

#' The comparisons of all cells of parts that have the same number of launches
#'
#' @param values Tibble: part, unit (round, or launch without rounds), size, s (number of the size in its part), a
#'   (number of the algorithm), latency.
#' @param paired TRUE: launches of different algorithms with the same unit form a pair.
#' @return Tibble, one row per comparison: part, size, a, fastest, rounds, ratio, test, p_value.
#' @noRd
compare_parts <- function(values, paired) {
  parts <- unique(values$part)
  part <- match(values$part, parts)
  sizes <- max(values$s)
  algorithms <- sort(unique(values$a))
  # One column per part, algorithm and size; two empty sizes on either side stand for missing neighbours.
  column <- function(s, a, part) s + 2L + (sizes + 4L) * ((a - 1L) + length(algorithms) * (part - 1L))
  latencies <- matrix(NA_real_, max(values$unit), (sizes + 4L) * length(algorithms) * length(parts))
  latencies[cbind(values$unit, column(values$s, match(values$a, algorithms), part))] <- values$latency
  logs <- log(latencies)
  if (!paired) logs[] <- logs[order(col(logs), is.na(logs))]
  cells <- distinct(tibble(part, s = values$s, size = values$size))
  of_cells <- function(values) {
    matrix(values[column(cells$s, rep(seq_along(algorithms), each = nrow(cells)), cells$part)], nrow(cells))
  }
  able <- of_cells(colSums(!is.na(logs)) >= 2)
  typical <- of_cells(group_median(c(latencies), c(col(latencies)), ncol(latencies)))
  typical[!able] <- Inf
  fastest <- max.col(-typical, ties.method = "first")
  cells$pairs <- rowSums(able) * (rowSums(able) - 1) / 2
  able[cbind(seq_along(fastest), fastest)] <- FALSE
  compared <- which(able, arr.ind = TRUE)
  cell <- compared[, "row"]
  found <- tibble(cells[cell, ], a = compared[, "col"], fastest = fastest[cell])
  difference <- function(which, by) {
    this <- logs[, column(found$s + by, found$a, found$part)[which], drop = FALSE]
    that <- logs[, column(found$s + by, found$fastest, found$part)[which], drop = FALSE]
    if (paired) this - that else unpaired_differences(this, that)
  }
  own <- difference(seq_along(cell), 0L)
  rounds <- as.integer(colSums(!is.na(own)))
  signed_rank <- paired & 2^(1 - rounds) <= most_p / found$pairs
  p_value <- rep(NA_real_, length(cell))
  p_value[signed_rank] <- signed_rank_p(own[, signed_rank, drop = FALSE])
  p_value[!signed_rank] <- pooled_t_p(map(-2:2, function(by) difference(!signed_rank, by)))
  tibble(
    part = parts[found$part], size = found$size, a = algorithms[found$a], fastest = algorithms[found$fastest],
    rounds = rounds, ratio = exp(group_median(c(own), c(col(own)), ncol(own))),
    test = c("none", "t", "signed-rank")[1 + (rounds >= 2) + signed_rank],
    p_value = holm_within(cell, p_value, found$pairs)
  )
}

#' Holm's adjustment within groups, for more hypotheses than there are p-values
#'
#' @param group Integer: the group of each p-value.
#' @param p P-values; NA stays NA.
#' @param hypotheses For each p-value: number of hypotheses of its group.
#' @return The adjusted p-values.
#' @noRd
holm_within <- function(group, p, hypotheses) {
  order <- order(group, p)
  step <- sequence(rle(group[order])$lengths)
  adjusted <- pmin(1, (hypotheses[order] - step + 1) * p[order])
  # An adjusted p-value is never below the previous one of its group.
  for (k in seq_len(max(step, 0))[-1]) {
    here <- which(step == k)
    adjusted[here] <- pmax(adjusted[here - 1], adjusted[here])
  }
  adjusted[order(order)]
}

#' Differences of two unpaired samples, in the form of paired ones
#'
#' The mean of the values is the difference of the two means; their deviations are scaled so that the variance of that
#' mean is the one for two independent samples.
#'
#' @param a,b Matrices, one sample per column with its missing values at the end.
#' @return Matrix with as many values in each column as the smaller sample has; none if it has fewer than two.
#' @noRd
unpaired_differences <- function(a, b) {
  n_a <- colSums(!is.na(a))
  n_b <- colSums(!is.na(b))
  n <- pmin(n_a, n_b)
  a <- list(mean = colMeans(a, na.rm = TRUE), deviation = deviations(a))
  b <- list(mean = colMeans(b, na.rm = TRUE), deviation = deviations(b))
  variance_a <- colSums(a$deviation^2, na.rm = TRUE) / (n_a - 1)
  variance_b <- colSums(b$deviation^2, na.rm = TRUE) / (n_b - 1)
  swap <- n_b < n_a
  shape <- a$deviation
  shape[, swap] <- b$deviation[, swap]
  variance <- variance_a / n_a + variance_b / n_b
  scale <- sqrt(variance * n / pmax(ifelse(swap, variance_b, variance_a), 1e-300))
  scale[n < 2] <- NA
  of_all <- function(values) rep(values, each = nrow(shape))
  of_all(a$mean - b$mean) + shape * of_all(scale)
}

deviations <- function(values) values - rep(colMeans(values, na.rm = TRUE), each = nrow(values))

#' Exact two-sided p-value of Wilcoxon's signed-rank test for each column; zeros count half for either sign (Pratt 1959)
#' @noRd
signed_rank_p <- function(values) {
  n <- colSums(!is.na(values))
  size <- abs(values)
  order <- order(col(size), size)
  # Equal sizes share their mean rank; missing values are last and do not count.
  same <- vctrs::vec_group_id(tibble(column = c(col(size)), size = c(size))[order, ])
  rank <- size
  rank[order] <- (rowsum(c(row(size)), same) / tabulate(same))[same]
  up <- colSums(rank * ((values > 0) + (values == 0) / 2), na.rm = TRUE)
  statistic <- tibble(n = n, extreme = floor(pmin(up, n * (n + 1) / 2 - up) + 1e-9))
  each <- distinct(statistic)
  each$p <- pmin(1, 2 * stats::psignrank(each$extreme, each$n))
  each$p[vctrs::vec_match(statistic, each[c("n", "extreme")])]
}

#' P-value of a t-test of the mean, with the variance pooled over neighbouring message sizes
#'
#' @param near List of matrices of differences at neighbouring sizes, that of the tested size in the middle; one column
#'   per test.
#' @noRd
pooled_t_p <- function(near) {
  deviation <- map(near, function(values) replace(deviations(values), is.na(values), 0))
  squares <- map(deviation, function(values) colSums(values^2))
  freedom <- map(near, function(values) pmax(0, colSums(!is.na(values)) - 1))
  own <- ceiling(length(near) / 2)
  n <- freedom[[own]] + 1
  mean <- colMeans(near[[own]], na.rm = TRUE)
  variance <- pmax(Reduce(`+`, squares) / Reduce(`+`, freedom), squares[[own]] / (n - 1) / 2)
  m <- Reduce(`+`, map(freedom, function(values) values > 0))
  correlated <- 0
  for (i in seq_along(near)) {
    for (j in seq_len(i - 1)) {
      squared <- colSums(deviation[[i]] * deviation[[j]])^2 / (squares[[i]] * squares[[j]])
      correlated <- correlated + 2 * replace(squared, !is.finite(squared), 0)
    }
  }
  spread <- correlated / pmax(1, m * (m - 1))
  p <- 2 * stats::pt(-abs(mean) / sqrt(variance / n), Reduce(`+`, freedom) / (1 + (m - 1) * spread))
  p <- ifelse(variance > 0, p, as.numeric(mean == 0))
  replace(p, n < 2, NA)
}

#' Random launches of one cell's algorithms, to find the error rate and the power of [compare_rounds()]
#'
#' @param slow Slow-down of each algorithm, such as `c(a = 1, b = 1.05)`.
#' @param rounds Number of rounds.
#' @param sizes Number of message sizes.
#' @param noise Standard deviation of one launch's log latency.
#' @param family Distribution of a launch's log latency: `normal`; `skewed` (exponential); `heavy` (t with 3 degrees of
#'   freedom); `outliers` (one launch in ten is up to three times as slow); `modes` (every third launch is 3 `noise`
#'   slower).
#' @param drift Standard deviation of the change of log latency from round to round, common to all launches of a round.
#' @param launch_share Share of the variance that all sizes of a launch have in common.
#' @return Tibble for [compare_rounds()], with one mapping and process count. Random numbers, not measured.
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

#' Type I error and power of [compare_rounds()]
#'
#' Random launches ([simulate_rounds()]) of four algorithms, one of which is slower by `difference_pct`; a cell counts
#' as detected if that one is called slower, and as wrong if any of the three equally fast ones is.
#'
#' @param difference_pct By how much the fourth algorithm is slower, in percent.
#' @param rounds Numbers of rounds.
#' @param families Distributions, see [simulate_rounds()].
#' @param repeats Number of random studies for each combination; each has seven cells (message sizes).
#' @param seed Seed of the random numbers.
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
    # Each random study has its own process count.
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

#' Power of [compare_rounds()] against the size of the difference
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
      x = "slow-down of one of four algorithms (%)", y = "cells in which it is detected (%)", colour = "rounds",
      shape = "rounds"
    )
}
