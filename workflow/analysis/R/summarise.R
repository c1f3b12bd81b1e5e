cell_keys <- c("collective", "algorithm", "mapping", "processes", "size_bytes")
# Columns that go with the name of an algorithm: its name without parameters, and the parameters.
cell_names <- c("algorithm_name", "parameters")

#' Median over launches of each cell and message size
#'
#' The interval contains the median with about 95 % confidence: order statistics k and n + 1 - k, with k the 2.5 %
#' quantile of the binomial distribution (n, 1/2) (Hoefler and Belli 2015, rule 5; Le Boudec 2010, theorem 2.1). Below
#' six launches, it is the range of the launches, with the lower confidence 1 - 2^(1 - n).
#'
#' @param measurements Tibble, one row per cell x message size x launch, named by [name_rows()].
#' @return Tibble, one row per cell and size: collective, algorithm, mapping, processes, size_bytes, launches,
#'   latency_us (median), low_us and high_us (interval of the median; equal to it with one launch), series_error
#'   ([series_error()]), min_latency_us and max_latency_us (medians over launches of the extremes over ranks); for
#'   measurements of several authors also source, see [main_source()].
#' @noRd
summarise_launches <- function(measurements) {
  id <- vctrs::vec_group_id(measurements[cell_keys])
  groups <- max(0L, attr(id, "n"))
  keys <- measurements[!duplicated(id), c(cell_keys, intersect(cell_names, names(measurements)))]
  found <- median_interval(measurements$latency_us, id, groups)
  keys$source <- main_source(measurements[["source"]], id)
  if ("twice" %in% names(measurements)) {
    keys$twice <- group_median(measurements$twice, id, groups)
    keys$ran <- measurements$ran[!duplicated(id)]
  }
  mutate(keys,
    launches = found$n, latency_us = found$median, low_us = found$low, high_us = found$high,
    series_error = series_error(measurements, found$median[id]),
    min_latency_us = group_median(measurements$min_latency_us, id, groups),
    max_latency_us = group_median(measurements$max_latency_us, id, groups)
  )
}

#' Subtract the differences between sources from log latencies
#'
#' Sources measured different algorithms, each under conditions of its own (jobs, iterations, numbers of launches).
#' Otherwise an algorithm would be fast because a fast source measured it. In each cell, log latency is the sum of an
#' effect of the algorithm and one of the source (two-way layout without interaction, by least squares: the effects are
#' the means of what the others leave, in turn); that of the source is subtracted. The effects of the sources of a cell
#' have a mean of 0, so that the level stays that of all. A latency of 0, which has no logarithm, stays as it is.
#' @param rows Rows of [pool_same_messages()]: algorithms that send the same messages have the same launches.
#' @noRd
within_sources <- function(rows) {
  if (n_distinct(rows$source, na.rm = TRUE) < 2) return(rows)
  group <- function(...) as.integer(vctrs::vec_group_id(tibble(...)))
  known <- rows$latency_us > 0
  own <- keep_rows(rows, known)
  cell <- group(own[c("machine", "mpi", "nodes", setdiff(cell_keys, "algorithm"))])
  source <- group(cell, own$source)
  series <- group(source, own$algorithm)
  latency <- group_median(log(own$latency_us), series, max(0L, series))
  first <- !duplicated(series)
  of_algorithm <- group(cell, own$algorithm)[first]
  of_source <- source[first]
  mean_by <- function(values, id) as.vector(rowsum(values, id)) / tabulate(id)
  cell_of_source <- cell[!duplicated(source)]
  effect <- numeric(max(0L, source))
  for (turn in seq_len(30)) {
    algorithms <- mean_by(latency - effect[of_source], of_algorithm)
    effect <- mean_by(latency - algorithms[of_algorithm], of_source)
    effect <- effect - mean_by(effect, cell_of_source)[cell_of_source]
  }
  rows$latency_us[known] <- own$latency_us / exp(effect[source])
  rows
}

#' The median of each group, its interval and the number of values
#' @noRd
median_interval <- function(values, id, groups) {
  n <- tabulate(id, groups)
  start <- cumsum(n) - n
  k <- pmax(1, qbinom(0.025, n, 0.5))
  sorted <- values[order(id, values)]
  list(n = n, median = middle(sorted, start, n), low = sorted[start + k], high = sorted[start + n + 1 - k])
}

#' Standard error of a median, from its interval; NA with one value
#'
#' Of few values, the interval, their range, is no 95 % interval, and has fewer standard errors.
#' @noRd
median_error <- function(low, high, n) {
  beyond <- stats::pbinom(pmax(1, qbinom(0.025, n, 0.5)) - 1, n, 0.5)
  ifelse(n > 1, (high - low) / (-2 * stats::qnorm(beyond)), NA)
}

#' Relative standard error of the mean over the sizes of each cell: a launch may be slower at all sizes
#'
#' @param measurements As for [summarise_launches()]; an optional column `cell` tells launches of one number apart, as
#'   of a sampled study, whose rounds measure sizes of the same processes as cells of their own.
#' @param medians Median latency of the cell and size of each row of `measurements`.
#' @return Vector, one value for each cell and size, equal for all sizes of a cell; NA with one launch.
#' @noRd
series_error <- function(measurements, medians) {
  of_sizes <- vctrs::vec_group_id(measurements[cell_keys])
  series <- vctrs::vec_group_id(measurements[setdiff(cell_keys, "size_bytes")])
  own <- measurements[intersect(c("cell", "launch"), names(measurements))]
  launch <- vctrs::vec_group_id(mutate(own, series = as.integer(series)))
  # A latency of 0 has no logarithm.
  value <- log(measurements$latency_us / medians)
  known <- is.finite(value)
  value[!known] <- 0
  effect <- as.vector(rowsum(value, launch)) / pmax(1, tabulate(launch[known], attr(launch, "n")))
  found <- median_interval(effect, series[!duplicated(launch)], max(0L, attr(series, "n")))
  median_error(found$low, found$high, found$n)[series[!duplicated(of_sizes)]]
}

#' The author of each group of rows (of several, the one with the most rows in total); NULL if all rows have one author
#' @noRd
main_source <- function(source, id) {
  authors <- names(sort(table(source), decreasing = TRUE))
  if (length(authors) < 2) return(NULL)
  rank <- match(source, authors)
  factor(authors[rank[order(id, rank)][!duplicated(sort(id))]], authors)
}

middle <- function(sorted, start, n) (sorted[start + floor((n + 1) / 2)] + sorted[start + ceiling((n + 1) / 2)]) / 2

#' Medians of the known values of each group, without a loop over groups
#' @noRd
group_median <- function(values, id, groups) {
  known <- !is.na(values)
  n <- tabulate(id[known], groups)
  sorted <- values[known][order(id[known], values[known])]
  result <- middle(sorted, cumsum(n) - n, pmax(n, 1))
  ifelse(n == 0, NA_real_, result)
}

#' The collectives of a study that have measurements, in the study's order
#'
#' @param results List from [read_results()].
#' @param sized TRUE: only those with message sizes; FALSE: only those without; NULL: all.
#' @return Character vector.
#' @noRd
collectives_of <- function(results, sized = NULL) {
  found <- results$medians |>
    group_by(.data$collective) |>
    summarise(sized = any(!is.na(.data$size_bytes)))
  found <- filter(found, !.data$collective %in% c(point_to_point, applications))
  if (!is.null(sized)) found <- filter(found, .data$sized == .env$sized)
  intersect(union(names(results$study$collectives), found$collective), found$collective)
}

#' Latency of the default and of the best other algorithm
#'
#' Algorithms of `analysis.best_excludes` do not compete.
#'
#' @param results List from [read_results()].
#' @param collective Name of a collective.
#' @return Tibble, one row per mapping x processes x size where the default and at least one other algorithm were
#'   measured: default_us, best_us, best (name), difference_us = default_us - best_us (negative: the default is faster).
#' @noRd
summarise_differences <- function(results, collective) {
  remember(results, paste("differences", collective), function() find_differences(results, collective))
}

find_differences <- function(results, collective) {
  excludes <- results$study$analysis$best_excludes
  rows <- filter(results$judged$medians, .data$collective == .env$collective, !.data$algorithm_name %in% excludes)
  others <- rows |>
    filter(.data$algorithm != "default") |>
    arrange(.data$latency_us, algorithm_factor(.data$algorithm, results$study, .env$collective)) |>
    distinct(.data$mapping, .data$processes, .data$size_bytes, .keep_all = TRUE) |>
    select("mapping", "processes", "size_bytes", best = "algorithm", best_us = "latency_us")
  rows |>
    filter(.data$algorithm == "default") |>
    select("mapping", "processes", "size_bytes", default_us = "latency_us") |>
    inner_join(others, by = c("mapping", "processes", "size_bytes")) |>
    mutate(difference_us = .data$default_us - .data$best_us)
}

#' Default against the best other algorithm by classes of size and processes, as in Table 1 of Zampar (2024)
#'
#' @param results List from [read_results()].
#' @param collective Name of a collective with message sizes.
#' @return Tibble: mapping, size_class, process_class, cells, optimal (cells where the default is fastest, equal
#'   latencies included), optimal_pct, mean_difference_us and sd_difference_us (default minus best other algorithm;
#'   population standard deviation).
#' @noRd
summarise_default_vs_best <- function(results, collective) {
  analysis <- results$study$analysis
  summarise_differences(results, collective) |>
    mutate(
      mapping = mapping_factor(.data$mapping, results$study, .env$collective),
      size_class = class_of(.data$size_bytes, analysis$size_classes),
      process_class = class_of(.data$processes, analysis$process_classes)
    ) |>
    group_by(.data$mapping, .data$size_class, .data$process_class) |>
    summarise(
      cells = n(), optimal = sum(.data$difference_us <= 0), optimal_pct = 100 * .data$optimal / .data$cells,
      mean_difference_us = mean(.data$difference_us), sd_difference_us = population_sd(.data$difference_us),
      .groups = "drop"
    ) |>
    mutate(across(c("mapping", "size_class", "process_class"), as.character))
}

#' Number of cells in which the default is faster, slower or equal, as in Table 3 of Zampar (2024)
#'
#' @param results List from [read_results()].
#' @param collective Name of a collective without message sizes.
#' @return Tibble: mapping, optimal (default faster than all others), not_optimal (slower), zero_difference,
#'   not_optimal_pct.
#' @noRd
summarise_optimal <- function(results, collective) {
  summarise_differences(results, collective) |>
    mutate(mapping = mapping_factor(.data$mapping, results$study, .env$collective)) |>
    group_by(.data$mapping) |>
    summarise(
      optimal = sum(.data$difference_us < 0), not_optimal = sum(.data$difference_us > 0),
      zero_difference = sum(.data$difference_us == 0), not_optimal_pct = 100 * mean(.data$difference_us > 0)
    ) |>
    mutate(mapping = as.character(.data$mapping))
}

population_sd <- function(x) sqrt(mean((x - mean(x))^2))

#' The label of the class that contains each value; "other" if none does
#' @noRd
class_of <- function(values, classes) {
  label <- rep("other", length(values))
  for (i in seq_len(nrow(classes))) label[values >= classes$from[i] & values <= classes$to[i]] <- classes$label[i]
  factor(label, unique(c(classes$label, "other")))
}

mapping_factor <- function(mapping, study, collective) {
  order <- study$collectives[[collective]]$mappings
  factor(mapping, unique(c(order, sort(unique(as.character(mapping))))))
}

algorithm_factor <- function(algorithm, study, collective) {
  known <- study$algorithms$algorithm[study$algorithms$collective == collective]
  found <- unique(as.character(algorithm))
  # Shorter names first, so that segments of 8192 bytes come before those of 65536.
  found <- found[order(match(name_of(study, collective, found), known), nchar(found), found)]
  factor(algorithm, found)
}
