# Regret and gain of tuned decisions on the process counts that were not used to decide.

#' Regret of each policy against the best measured algorithm, on process counts that were not used to decide
#'
#' @param results List from [read_results()].
#' @param collective Name of a collective.
#' @param firsts The splits ([split_tuning()]); several are also judged together (split `both_halves`).
#' @return Tibble: collective, policy (default, best-single: the algorithm other than the default with the smallest
#'   geometric mean of regret on the deciding counts, tuned), algorithm (of best-single), split, mapping (or "all"), and
#'   the columns of [summarise_slowdown()] and of [summarise_gains()].
#' @noRd
summarise_regret <- function(results, collective, firsts = 1:2) {
  counts <- tuning_counts(results$medians, collective)
  if (length(counts) < 4) return(no_regret())
  halves <- map(firsts, function(first) {
    split <- split_tuning(counts, first)
    mutate(policy_cells(results, collective, split), split = paste0("decided at ", spell_counts(split$decide)))
  })
  together <- if (length(firsts) > 1) list(mutate(bind_rows(halves), split = both_halves))
  bind_rows(no_regret(), map(c(halves, together), function(rows) {
    bind_rows(mutate(rows, mapping = "all"), rows) |>
      group_by(.data$policy, .data$mapping) |>
      summarise(
        algorithm = paste(unique(.data$algorithm[.data$policy == "best-single"]), collapse = ";"),
        regret = summarise_slowdown(.data$slowdown), .groups = "drop"
      ) |>
      tidyr::unpack("regret") |>
      left_join(summarise_gains(rows), by = c("policy", "mapping")) |>
      mutate(collective = .env$collective, split = rows$split[1])
  }))
}

#' The split of all process counts, each half judged with the rules that the other one decided
#' @noRd
both_halves <- "both halves"

#' Additional time of the default over each policy, with 95 % intervals
#'
#' Neighbouring sizes of one process count and mapping are correlated, so each such group counts as one value: the mean
#' over its cells of the logarithm of the ratio. The interval is that of the mean over the groups ([clustered_error()]).
#'
#' @param rows Tibble from [policy_cells()].
#' @return Tibble: policy, mapping (or "all"), groups, degrees (of freedom), gain_pct, gain_low_pct, gain_high_pct
#'   (95 %; NA without a degree of freedom).
#' @noRd
summarise_gains <- function(rows) {
  default <- filter(rows, .data$policy == "default") |>
    select("mapping", "processes", "size_bytes", default = "slowdown")
  groups <- filter(rows, .data$policy != "default") |>
    inner_join(default, by = c("mapping", "processes", "size_bytes")) |>
    group_by(.data$policy, .data$mapping, .data$processes) |>
    summarise(gain = mean(log(.data$default / .data$slowdown)), .groups = "drop") |>
    mutate(of = .data$mapping)
  bind_rows(mutate(groups, mapping = "all"), groups) |>
    group_by(.data$policy, .data$mapping) |>
    summarise(
      groups = n(), clustered_error(.data$gain, .data$of, .data$processes), gain = mean(.data$gain), .groups = "drop"
    ) |>
    transmute(
      .data$policy, .data$mapping, .data$groups, .data$degrees, gain_interval(.data$gain, .data$error, .data$degrees)
    )
}

#' Standard error of a mean over mappings and process counts
#'
#' Neighbouring process counts (those with the same nearest power of two) have the same trees and rules, so their gains
#' are correlated: those of one mapping are a cluster. The mappings are not a sample of all mappings, so only the
#' variation within each of them counts. The largest clusters have most of the values, so the error is that of the
#' jackknife over clusters, and the degrees of freedom are those of the effective number of clusters of each mapping (1
#' over the sum of their squared shares). With one mapping and one value in each cluster, the error is that of the mean
#' of independent values. A mapping with one cluster is assumed to vary like the others.
#'
#' @param values Gains, one or several for each mapping and process count.
#' @return Tibble of one row: error (NA without a mapping of several clusters), degrees (of freedom: effective clusters
#'   minus mappings, at least 1; 0 where the error is NA).
#' @noRd
clustered_error <- function(values, mapping, processes) {
  cluster <- paste(mapping, 2^round(log2(processes)))
  sums <- c(tapply(values - stats::ave(values, mapping), cluster, sum))
  of <- c(tapply(rep_len(as.character(mapping), length(values)), cluster, first))
  size <- c(table(cluster))
  share <- size / stats::ave(size, of, FUN = sum)
  several <- share < 1
  if (!any(several)) return(tibble(error = NA_real_, degrees = 0))
  variance <- mean((sums / (1 - share))[several]^2) * (1 - n_distinct(of[several]) / sum(several))
  tibble(
    error = sqrt(length(sums) * variance) / length(values), degrees = max(1, sum(1 / tapply(share^2, of, sum) - 1))
  )
}

#' Mean gain (logarithm) in percent, with its 95 % interval (Student's t)
#' @noRd
gain_interval <- function(gain, error, degrees) {
  half <- stats::qt(0.975, pmax(degrees, 1)) * error
  tibble(
    gain_pct = 100 * expm1(gain), gain_low_pct = 100 * expm1(gain - half), gain_high_pct = 100 * expm1(gain + half)
  )
}

no_regret <- function() {
  tibble(
    collective = character(), policy = character(), algorithm = character(), split = character(),
    mapping = character(), geometric_mean_pct = numeric(), mean_pct = numeric(), median_pct = numeric(),
    p90_pct = numeric(), p99_pct = numeric(), max_pct = numeric(), cells = integer(), groups = integer(),
    degrees = numeric(), gain_pct = numeric(), gain_low_pct = numeric(), gain_high_pct = numeric()
  )
}

spell_counts <- function(counts) {
  words <- format_count(counts)
  if (length(words) <= 4) and_list(words) else paste(c(words[1:2], "...", tail(words, 1)), collapse = ", ")
}

#' Decide on `split$decide` and compute the slow-down of each policy at `split$judge` ([compare_policies()]), with the
#' rules that a file of these decisions has there
#' @noRd
policy_cells <- function(results, collective, split, judged = results) {
  cells <- with_slowdown(judged$judged$medians, collective, split$judge)
  single <- best_single(with_slowdown(results$judged$medians, collective, split$decide))
  # As in decide_all(); a file has no rules outside the deciding counts of a mapping.
  decided <- decide_tuning(results, collective, split$decide, fill_counts(split$decide))
  rules <- rules_at_counts(filter(decided, !.data$basis %in% "extrapolated"), split$judge)
  compare_policies(cells, rules, function(processes) single)
}

#' The rules at some process counts, as in collstudy/tuning/rules.py: those of the largest decided count that is not
#' above; none below and above the decided counts of a mapping
#' @noRd
rules_at_counts <- function(rules, counts) {
  bind_rows(rules[0, ], map(unname(split(rules, rules$mapping)), function(own) {
    known <- sort(unique(own$processes))
    at <- counts[counts >= known[1] & counts <= max(known)]
    of <- tibble(judged = at, processes = known[findInterval(at, known)])
    inner_join(of, own, "processes", relationship = "many-to-many") |>
      mutate(processes = .data$judged, judged = NULL)
  }))
}

#' Slow-down of each policy in each judged cell. Cells in which the algorithm of a policy was not measured are left out
#' for all policies, so that all are judged on the same cells
#'
#' @param cells Tibble from [with_slowdown()]: the judged cells.
#' @param tuned Decisions: mapping, processes, size_bytes, algorithm.
#' @param single Function that returns the best single algorithm for each of some process counts (NA: none).
#' @noRd
compare_policies <- function(cells, tuned, single) {
  places <- distinct(cells, .data$mapping, .data$processes, .data$size_bytes)
  wanted <- bind_rows(
    mutate(places, policy = "default", algorithm = "default"),
    mutate(places, policy = "best-single", algorithm = single(.data$processes)),
    mutate(places, policy = "tuned", algorithm = rule_at(tuned, places))
  )
  wanted <- wanted[!is.na(wanted$algorithm), ]
  found <- inner_join(wanted, cells, by = c("mapping", "processes", "size_bytes", "algorithm"))
  of_place <- function(data) vctrs::vec_match(data[names(places)], places)
  at <- of_place(found)
  found[(tabulate(at, nrow(places)) == tabulate(of_place(wanted), nrow(places)))[at], ]
}

#' The algorithm that a rules file of the decisions selects at each place: that of the largest decided size that is not
#' above the size of the place, below the smallest decided size that of this size, and the default outside of
#' [has_rules()]
#' @noRd
rule_at <- function(decisions, places) {
  size <- function(data) coalesce(data$size_bytes, -1)
  key <- function(data) paste(data$mapping, data$processes, sep = "\r")
  decided <- order(size(decisions))
  of <- split(decided, key(decisions)[decided])
  found <- rep("default", nrow(places))
  sizes <- size(places)
  limits <- size(decisions)
  judged <- split(seq_len(nrow(places)), key(places))
  for (place in intersect(names(judged), names(of))) {
    rules <- of[[place]]
    at <- judged[[place]]
    at <- at[max(limits[rules]) < 0 | has_rules(sizes[at], limits[rules])]
    found[at] <- decisions$algorithm[rules][pmax(1, findInterval(sizes[at], limits[rules]))]
  }
  found
}

#' Every measured cell with its slow-down against the best algorithm at the same place; without places that lack the
#' default or have only the default
#' @noRd
with_slowdown <- function(medians, collective, counts) {
  rows <- medians |>
    filter(.data$collective == .env$collective, .data$processes %in% counts, .data$latency_us > 0) |>
    mutate(mapping = as.character(.data$mapping), algorithm = as.character(.data$algorithm))
  cell <- vctrs::vec_group_id(rows[c("mapping", "processes", "size_bytes")])
  by_latency <- order(cell, rows$latency_us)
  best <- rows$latency_us[by_latency][!duplicated(cell[by_latency])]
  several <- tabulate(cell, max(0L, cell)) > 1
  with_default <- seq_along(several) %in% cell[rows$algorithm == "default"]
  mutate(rows, slowdown = .data$latency_us / best[cell])[(several & with_default)[cell], ]
}

#' The best single algorithm other than the default: of those of [stands_for_all()], the one with the smallest geometric
#' mean of slow-downs; NA without one
#'
#' @param cells Tibble from [with_slowdown()].
#' @param use TRUE for the rows that decide.
#' @noRd
best_single <- function(cells, use = TRUE) {
  use <- use & cells$algorithm != "default"
  slowdowns <- split(cells$slowdown[use], cells$algorithm[use])
  slowdowns <- slowdowns[stands_for_all(lengths(slowdowns))]
  if (length(slowdowns) == 0) NA_character_ else names(which.min(vapply(slowdowns, geometric_mean, 0)))
}

#' Additional time of one decision for all placements over a decision for each
#'
#' Some tuning files select by number of ranks and cannot distinguish placements (mapping, nodes). For each number of
#' processes and message size that several placements have, the algorithm that is best for all of them (geometric mean
#' of its slow-down) is compared with the fastest of each, among the algorithms (two or more) that all of them have.
#'
#' @param results List from [read_results()].
#' @return Tibble, one row per collective and one for `all`: collective, shapes (most placements compared), cells,
#'   geometric_mean_pct, median_pct, p90_pct, max_pct (additional time of the shared decision). Empty where no two
#'   placements have a cell in common, and for sampled studies, whose cells lack algorithms that might be faster.
#' @noRd
summarise_shared <- function(results) {
  # Each MPI library has files of its own.
  call <- c("collective", "mpi", "processes", "size_bytes")
  places <- distinct(results$study$places, .data$collective, .data$mapping, .data$mpi)
  rows <- filter(results$judged$medians, .data$latency_us > 0, is.null(results$study$sampling)) |>
    mutate(mapping = as.character(.data$mapping), algorithm = as.character(.data$algorithm)) |>
    left_join(places, by = c("collective", "mapping")) |>
    # Of algorithms that lose the same, the first by name is taken.
    arrange(.data$algorithm) |>
    group_by(across(all_of(call))) |>
    mutate(shapes = n_distinct(.data$mapping)) |>
    group_by(.data$algorithm, .add = TRUE) |>
    filter(.data$shapes > 1, n_distinct(.data$mapping) == .data$shapes) |>
    # A single algorithm is no choice, and loses nothing.
    group_by(across(all_of(call))) |>
    filter(n_distinct(.data$algorithm) > 1) |>
    ungroup()
  if (nrow(rows) == 0) {
    return(tibble(
      collective = character(), shapes = integer(), cells = integer(), geometric_mean_pct = numeric(),
      median_pct = numeric(), p90_pct = numeric(), max_pct = numeric()
    ))
  }
  rows <- rows |>
    group_by(across(all_of(c(call, "mapping")))) |>
    mutate(slowdown = .data$latency_us / min(.data$latency_us)) |>
    group_by(across(all_of(c(call, "algorithm")))) |>
    mutate(together = geometric_mean(.data$slowdown)) |>
    group_by(across(all_of(call))) |>
    filter(.data$algorithm == .data$algorithm[which.min(.data$together)]) |>
    ungroup()
  lost <- function(data) {
    summarise(data,
      shapes = max(.data$shapes), cells = n(), geometric_mean_pct = 100 * (geometric_mean(.data$slowdown) - 1),
      median_pct = 100 * (median(.data$slowdown) - 1), p90_pct = 100 * (unname(quantile(.data$slowdown, 0.9)) - 1),
      max_pct = 100 * (max(.data$slowdown) - 1)
    )
  }
  bind_rows(lost(group_by(rows, .data$collective)), mutate(lost(rows), collective = "all", .before = 1))
}

#' Whether a file has rules for some sizes, as in collstudy/tuning/rules.py: from half of the smallest decided size on
#' (from 0 if that has at most 8 bytes), and below twice the largest one
#' @noRd
has_rules <- function(sizes, decided) {
  bounds <- range(decided)
  (bounds[1] <= 8 | sizes >= bounds[1] / 2) & sizes < max(2 * bounds[2], 1)
}
