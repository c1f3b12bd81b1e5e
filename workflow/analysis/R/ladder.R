# Point-to-point ladders: the cost of a message between two cores, by the outermost level that separates them.

# As POINT_TO_POINT in collstudy/study/names.py
point_to_point <- c("latency", "bw", "multi_lat", "pairs")

#' The level that each cell of a point-to-point test measures, which a mapping of a ladder names; NA if it is not known
#'
#' @param rows Tibble with mapping, nodes and processes.
#' @noRd
ladder_level <- function(study, rows) {
  levels <- map_chr(study$machine$levels, "name")
  cells <- distinct(rows[c("mapping", "nodes", "processes")])
  named <- levels[match(cells$mapping, paste0("level-", levels))]
  placed <- map_chr(seq_len(nrow(cells)), function(i) {
    level_of_halves(find_placed(study, cells$mapping[i], cells$nodes[i], cells$processes[i]))
  })
  placed[!placed %in% levels] <- NA
  found <- coalesce(named, placed)
  found[vctrs::vec_match(rows[names(cells)], cells)]
}

#' The level that separates each rank of the first half from that of the second half with which it exchanges messages;
#' NA if it is not the same for all
#' @noRd
level_of_halves <- function(place) {
  if (is.null(place) || ncol(place) == 0) return(NA_character_)
  pairs <- nrow(place) / 2
  first <- seq_len(pairs) - 1
  found <- unique(colnames(place)[pair_level(place, first, first + pairs)])
  if (length(found) == 1) found else NA_character_
}

#' The rows of a study's point-to-point tests without those that import checks flagged; with mpi only if several
#' libraries ran them
#' @noRd
rows_of_ladder <- function(results) {
  several_libraries(filter(results$rows, .data$collective %in% point_to_point, is.na(.data$flag) | .data$flag == ""))
}

#' A table, without its column mpi if that has a single value
#' @noRd
several_libraries <- function(table) if (n_distinct(table$mpi) > 1) table else select(table, !"mpi")

#' The part of a ladder, or of its pairs, that one MPI library ran; all of one without the column mpi
#' @noRd
of_library <- function(ladder, mpi) {
  if ("mpi" %in% names(ladder)) select(filter(ladder, .data$mpi == .env$mpi), !"mpi") else ladder
}

#' The ladder, or its pairs, of each MPI library in a list with the libraries' labels; without the column mpi, a list of
#' one without names
#' @noRd
by_library <- function(ladder) {
  if (!"mpi" %in% names(ladder)) return(list(ladder))
  found <- split(ladder, droplevels(mpi_label(ladder$mpi)))
  map(found, function(own) select(own, !"mpi"))
}

#' The rows of a study's ladder
#'
#' A pair counts for the outermost level at which its two cores differ. Where all pairs were measured, the value of a
#' level is the median over its pairs.
#'
#' @param results List from [read_results()].
#' @return Tibble: mpi (only if several libraries were measured), level (outermost first, a factor), pairs (at once),
#'   size_bytes, latency_us (one way), bandwidth_mb_s (of a window of messages; NA for a ping-pong). Empty where the
#'   study has no ladder.
#' @noRd
read_ladder <- function(results) {
  none <- tibble(level = character(), pairs = numeric(), size_bytes = numeric(), latency_us = numeric(),
                 bandwidth_mb_s = numeric())
  if (!any(names(results$study$collectives) %in% point_to_point)) return(none)
  levels <- map_chr(results$study$machine$levels, "name")
  rows <- filter(rows_of_ladder(results), .data$collective != "pairs")
  mutate(rows, level = ladder_level(results$study, .env$rows), pairs = .data$processes / 2) |>
    filter(!is.na(.data$level)) |>
    select(any_of("mpi"), "level", "pairs", "size_bytes", "latency_us", "bandwidth_mb_s") |>
    bind_rows(mutate(read_pairs(results), pairs = 1, bandwidth_mb_s = NA_real_)) |>
    group_by(across(any_of("mpi")), level = factor(.data$level, levels), .data$pairs, .data$size_bytes) |>
    summarise(across(c("latency_us", "bandwidth_mb_s"), function(x) median(x, na.rm = TRUE)), .groups = "drop")
}

#' The latency of every pair of cores that was measured
#'
#' @param results List from [read_results()].
#' @return Tibble, one row per pair and size: mpi (only if several libraries were measured), from_core and to_core
#'   (numbered over the whole machine, from 0), level (the outermost at which they differ), size_bytes, latency_us
#'   (median over launches and both directions). Empty where the study did not measure all pairs.
#' @noRd
read_pairs <- function(results) {
  none <- tibble(
    from_core = numeric(), to_core = numeric(), level = character(), size_bytes = numeric(), latency_us = numeric()
  )
  if (!"pairs" %in% names(results$study$collectives)) return(none)
  rows <- filter(rows_of_ladder(results), .data$collective == "pairs")
  if (nrow(rows) == 0) return(none)
  most <- rows[which.max(rows$processes), ]
  place <- find_placed(results$study, most$mapping, most$nodes, most$processes)
  core <- place[, ncol(place)]
  rows |>
    mutate(
      level = colnames(place)[pair_level(place, .data$from_rank, .data$to_rank)],
      one = core[.data$from_rank + 1], two = core[.data$to_rank + 1]
    ) |>
    group_by(
      across(any_of("mpi")), from_core = pmin(.data$one, .data$two), to_core = pmax(.data$one, .data$two),
      .data$level, .data$size_bytes
    ) |>
    summarise(latency_us = median(.data$latency_us), .groups = "drop")
}

#' Check that the pairs of cores that are said to be on two nodes really were
#'
#' Either of two signs shows that they were not: more than a tenth of them are as fast as the median pair inside a node;
#' or pairs whose cores have the same position in their nodes (such as the same socket) are 1.5 times as fast as the
#' others, which a network does not cause.
#'
#' @param study List from [read_study()].
#' @param pairs Tibble from [read_pairs()].
#' @return `pairs`, invisibly; an error if the pairs did not leave a node.
#' @noRd
check_pairs <- function(study, pairs) {
  small <- pairs |>
    filter(.data$size_bytes <= 64) |>
    group_by(.data$from_core, .data$to_core, .data$level) |>
    summarise(latency_us = median(.data$latency_us), .groups = "drop")
  names <- map_chr(study$machine$levels, "name")
  outside <- intersect(c("group", "node"), names)
  across <- filter(small, .data$level %in% outside)
  inside <- filter(small, !.data$level %in% outside)
  if (nrow(across) == 0) return(invisible(pairs))
  stop_if <- function(wrong, why) {
    if (isTRUE(wrong)) {
      stop("the pairs across ", and_list(unique(across$level)), " share a node: ", why,
           "; this is not a ladder between nodes", call. = FALSE)
    }
  }
  as_fast <- mean(across$latency_us <= median(inside$latency_us[inside$level == outermost(names, inside$level)]))
  stop_if(as_fast > 0.1, paste0(format_pct(100 * as_fast), " of them are as fast as pairs within a node"))
  unit <- group_sizes(study)
  inner <- unit$ranks[match("node", unit$level) + 1]
  if (is.na(inner)) return(invisible(pairs))
  position <- function(core) core %% unit$ranks[unit$level == "node"] %/% inner
  same <- position(across$from_core) == position(across$to_core)
  ratio <- median(across$latency_us[!same]) / median(across$latency_us[same])
  stop_if(ratio > 1.5, paste0(
    "those with both cores in the same ", unit$level[match("node", unit$level) + 1], " of their nodes are ",
    format_number(ratio, 2), " times as fast as the others"
  ))
  invisible(pairs)
}

outermost <- function(names, present) intersect(names, present)[1]

#' The core x core matrix of small-message latencies (us); NULL unless all pairs of the machine's cores were measured
#' @noRd
pair_matrix <- function(pairs, cores) {
  small <- filter(pairs, .data$size_bytes == min(.data$size_bytes, Inf))
  if (nrow(small) < cores * (cores - 1) / 2 || cores < 2) return(NULL)
  found <- matrix(0, cores, cores)
  found[cbind(small$from_core, small$to_core) + 1] <- small$latency_us
  found + t(found)
}

#' Check that the pairs of each level of a ladder left the units of the next inner level that was measured
#'
#' @param ladder Tibble from [read_ladder()]. Levels may be missing, because their cells failed or were not asked for.
#' @return `ladder`, invisibly; an error if the small messages of a level are not slower than those of the inner one
#'   (for example, a launcher placed both "nodes" on one).
#' @noRd
check_ladder <- function(ladder) {
  small <- filter(ladder, .data$pairs == 1, .data$size_bytes <= 64, !is.na(.data$latency_us))
  names <- levels(droplevels(small$level))
  for (i in seq_along(names)[-1]) {
    check_crossing(small[small$level == names[i - 1], ], small[small$level == names[i], ], names[i - 1], names[i])
  }
  invisible(ladder)
}

#' Check that the pairs that are said to cross a level did cross it
#'
#' @param outer,inner Tibbles with size_bytes and latency_us: the pairs that are said to cross `outer_name`, and pairs
#'   that cross `inner_name` at most. Only messages of up to 64 bytes are compared.
#' @param outer_name,inner_name Names of the levels.
#' @return TRUE; an error unless the median of the outer pairs is 2 % larger: those pairs never left a unit of the outer
#'   level.
#' @noRd
check_crossing <- function(outer, inner, outer_name = "node", inner_name = "socket") {
  middle <- function(rows) median(rows$latency_us[rows$size_bytes <= 64])
  if (nrow(outer) == 0 || nrow(inner) == 0) stop("no small messages to compare", call. = FALSE)
  if (middle(outer) >= 1.02 * middle(inner)) return(TRUE)
  stop(
    "the pairs across ", outer_name, " are as fast as those across ", inner_name, " (", format_us(middle(outer)),
    " against ", format_us(middle(inner)), "): they did not leave one ", outer_name, "; this is not a ", outer_name,
    " ladder", call. = FALSE
  )
}

#' Fitted latency and bandwidth of each level, with 95 % intervals
#'
#' Latency: intercept of a straight line through the sizes up to 64 B. Bandwidth: inverse slope of a straight line
#' through the sizes from 64 KiB on. Both fits minimise relative errors.
#'
#' @param ladder Tibble with level, pairs, size_bytes, latency_us (one way), and optionally mpi and bandwidth_mb_s.
#' @return Tibble: mpi (if `ladder` has it), level, pairs, latency_us, latency_low_us, latency_high_us, bandwidth_gb_s,
#'   bandwidth_low_gb_s, bandwidth_high_gb_s, gap_us (time between small messages of a window, the processor time of one
#'   message; NA without a bandwidth test).
#' @noRd
summarise_ladder <- function(ladder) {
  ladder |>
    group_by(across(any_of("mpi")), .data$level, .data$pairs) |>
    group_modify(function(data, key) fit_level(data)) |>
    ungroup() |>
    # group_modify() calls its function once where there are no groups.
    filter(!is.na(.data$pairs)) |>
    mutate(level = as.character(.data$level))
}

fit_level <- function(data) {
  timed <- filter(data, !is.na(.data$latency_us))
  small <- line_through(filter(timed, .data$size_bytes <= 64), 1)
  large <- 1e-3 / line_through(filter(timed, .data$size_bytes >= 65536), 2)
  large[!is.na(large) & large < 0] <- NA # where the interval of the slope includes zero, bandwidth has no upper limit
  gap <- filter(data, !is.na(.data$bandwidth_mb_s))
  gap <- gap[gap$size_bytes == min(c(gap$size_bytes, Inf)), ]
  tibble(
    latency_us = small[1], latency_low_us = small[2], latency_high_us = small[3], bandwidth_gb_s = large[1],
    bandwidth_low_gb_s = large[3], bandwidth_high_gb_s = large[2],
    gap_us = if (nrow(gap) == 1) gap$size_bytes / gap$bandwidth_mb_s else NA_real_
  )
}

#' Estimate and interval of one coefficient of latency against size
#' @noRd
line_through <- function(data, coefficient) {
  if (nrow(data) < 3) return(c(NA_real_, NA_real_, NA_real_))
  fit <- lm(latency_us ~ size_bytes, data, weights = 1 / data$latency_us^2)
  range <- confidence_intervals(fit)[coefficient, ]
  unname(c(coef(fit)[coefficient], range))
}

#' Latency between two ranks: that of the outermost level at which their cores differ
#'
#' @param latencies Named vector: latency (us) of each level of the machine; or a matrix of the latencies (us) of every
#'   pair of its cores.
#' @param place Matrix from [place_ranks()].
#' @return Function of two vectors of ranks (from 0) that returns latencies in us.
#' @noRd
pair_latencies <- function(latencies, place) {
  if (is.matrix(latencies)) {
    core <- place[, ncol(place)] + 1
    return(function(a, b) latencies[cbind(core[a + 1], core[b + 1])])
  }
  of_level <- unname(latencies[colnames(place)])
  function(a, b) {
    pairs <- max(length(a), length(b))
    of_level[pair_level(place, rep_len(a, pairs), rep_len(b, pairs))]
  }
}

#' The analytical models of Derin (2025): latency only, from L(i, j)
#'
#' Source: Derin (2025), section 4. Bandwidth is neglected and nothing overlaps.
#' - pipeline: sum over i = 0..P-2 of L(i, i+1)
#' - binomial (broadcast and reduce): sum over i = 0..log2(P)-1 of L(0, 2^i)
#' - chain: maximum over the chains below the root of L(0, first) + sum of L along the chain
#' - binary (reduce): sum over i of max over r of L(r + 2^i, r)
#' - rabenseifner: twice that sum, for the reduce-scatter and for the gather
#'
#' If P is not a power of two, i runs while 2^i < P, and r while r + 2^i < P.
#'
#' @param algorithm pipeline, binomial, chain, binary or rabenseifner.
#' @param latency Function from [pair_latencies()].
#' @param chain The tree of the chain, from [sending_tree()].
#' @return Latency in us.
#' @noRd
model_latency_only <- function(algorithm, latency, chain, processes) {
  if (processes < 2) return(0)
  steps <- 2^seq(0, ceiling(log2(processes)) - 1)
  worst <- function(step) {
    r <- seq(0, processes - 1 - step)
    max(latency(r + step, r))
  }
  switch(algorithm,
    pipeline = sum(latency(seq_len(processes - 1) - 1, seq_len(processes - 1))),
    binomial = sum(latency(0, steps)),
    chain = if (is.null(chain)) NA_real_ else max(chain_sums(latency, chain)),
    binary = sum(map_dbl(steps, worst)),
    rabenseifner = 2 * sum(map_dbl(steps, worst)),
    NA_real_
  )
}

#' The sum of the latencies along each chain
#' @noRd
chain_sums <- function(latency, parent) {
  hop <- latency(parent, seq_along(parent))
  unname(vapply(split(hop, cumsum(parent == 0)), sum, 0))
}
