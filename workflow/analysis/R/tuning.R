#' Split the process counts into those that decide and those that judge, from the grid alone and before any fit
#'
#' @param counts Process counts.
#' @param first 1: the first, third, fifth ... counts decide; 2: the second, fourth, ...
#' @return List of `decide` and `judge`, both sorted.
#' @noRd
split_tuning <- function(counts, first = 1) {
  counts <- sort(unique(counts))
  decide <- counts[seq_along(counts) %% 2 == first %% 2]
  list(decide = decide, judge = setdiff(counts, decide))
}

#' Process counts on which a decision can be based: those with the default and another algorithm
#'
#' @param medians Tibble from [summarise_launches()].
#' @param collective Name of a collective.
#' @return Sorted vector.
#' @noRd
tuning_counts <- function(medians, collective) {
  rows <- medians[medians$collective == collective, ]
  both <- intersect(rows$processes[rows$algorithm == "default"], rows$processes[rows$algorithm != "default"])
  sort(unique(both))
}

#' Choose the algorithm for each mapping, number of processes and message size
#'
#' Of several sources' data, the algorithms are compared within sources ([within_sources()]).
#'
#' 1. Each latency is divided by the median over the algorithms of its cell, so that common effects cancel.
#' 2. Between the measured process counts, the logarithm of that ratio is interpolated linearly over log(P x depth of
#'    the algorithm's tree), because chains and trees get slower where they get deeper. Between two processes all
#'    algorithms send the same message, so P = 2 is not used for other counts, nor other counts for P = 2
#'    ([not_offered()]). Open MPI's default is interpolated only
#'    within the ranges of communicator sizes that its decision table distinguishes (it changes at powers of two).
#' 3. Over the sizes of one process count, dynamic programming chooses the sequence of algorithms with the smallest
#'    predicted regret, where each change of algorithm costs the tie width (`analysis.tie_pct`) and the default gets a
#'    bonus of the same width.
#' 4. A run of sizes keeps the default unless the mean gain of the run exceeds its noise ([drop_unsure()],
#'    [noise_of_mean()]). The noise is estimated from the launches or, with single launches, from the roughness of
#'    latency over neighbouring sizes or process counts (the smoother of the two) and from algorithms that were
#'    measured twice, and is at least that of the run's own launches ([error_of_mean()]); with too few neighbours, or
#'    if the default differs too much from the algorithm that it runs ([does_not_repeat()]) or a barrier's launches
#'    from each other ([launches_differ()]), the default is kept. A run of one or two sizes must also show a gain at a
#'    neighbouring process count, and [is_one_small_size()] is none. A count without measurements needs measured counts
#'    on both sides or one below it in the same range of the default ([reached()]); for barriers, a significant gain at
#'    both of its neighbours ([sure_between()]). Neighbours are counts at which the algorithm was measured. If a run is
#'    not significant, the next best algorithm is tried ([pick_sure()]).
#' 5. The choice of the next lower process count is kept if it is predicted to cost less than a quarter of the tie width
#'    more.
#'
#' @param results List from [read_results()].
#' @param collective Name of a collective.
#' @param counts Process counts that may be used for the decision; NULL: all.
#' @param at Process counts to decide for.
#' @return Tibble, one row per mapping x count x size: collective, mapping, processes, size_bytes, from_bytes
#'   ([first_faster()]), algorithm, reason, basis (measured: the choice and the default were, at that cell;
#'   interpolated, extrapolated; NA without measurements of the default), expected_us, default_us (both at that cell, in
#'   us), gain_pct (default over chosen), noise_pct (standard deviation of one latency), series_noise_pct (that of the
#'   mean over all sizes of a process count; 0: that of independent latencies), noise_from (launches, neighbours, same
#'   messages, simulated, unknown).
#' @noRd
decide_tuning <- function(results, collective, counts = NULL, at = NULL) {
  medians <- results$judged$medians
  rows <- medians[medians$collective == collective & medians$latency_us > 0, ]
  if (!is.null(counts)) rows <- rows[rows$processes %in% counts, ]
  grids <- map(split(rows, as.character(rows$mapping)), tuning_grid)
  bind_rows(no_decisions(), unname(imap(grids, function(grid, mapping) {
    decide_mapping(grid, collective, mapping, at %||% grid$counts, results$study)
  })))
}

no_decisions <- function() {
  tibble(
    collective = character(), mapping = character(), processes = numeric(), size_bytes = numeric(),
    from_bytes = numeric(), algorithm = character(), reason = character(), basis = character(), expected_us = numeric(),
    default_us = numeric(), gain_pct = numeric(), noise_pct = numeric(), series_noise_pct = numeric(),
    noise_from = character()
  )
}

#' Decisions at some process counts, each from the measurements at all other counts
#'
#' @param rows Rows of [summarise_launches()] of one collective and mapping, at counts of [tuning_counts()].
#' @param at Process counts, neither the first nor the last of the rows.
#' @return Tibble: processes, size_bytes, algorithm.
#' @noRd
decide_left_out <- function(rows, at, study) {
  grid <- tuning_grid(rows)
  # Without one of many counts, the reference mostly stays that of the same algorithms and is reused.
  whole <- grid$names[without_gaps(grid)]
  if (length(whole) > 0) grid$whole <- list(names = whole, middle = reference(grid))
  bind_rows(tibble(processes = numeric(), size_bytes = numeric(), algorithm = character()), map(at, function(count) {
    others <- grid_without(grid, count)
    choice <- decide_cells(others, count, study)$choice[1, ]
    list(
      processes = rep(count, length(choice)), size_bytes = ifelse(others$sizes < 0, NA, others$sizes),
      algorithm = others$names[choice]
    )
  }))
}

#' @param predicted List of `relative` and `level` at each count of `at`, whose sums are the predicted log latencies.
#' @noRd
decide_mapping <- function(grid, collective, mapping, at, study, predicted = NULL) {
  at <- sort(unique(at))
  decided <- decide_cells(grid, at, study, predicted)
  inside <- at >= min(grid$counts) & at <= max(grid$counts)
  cell <- expand.grid(at = seq_along(at), size = seq_along(grid$sizes))
  pick <- function(a) {
    exp(decided$relative[cbind(a, cell$at, cell$size)] + decided$level[cbind(cell$at, cell$size)])
  }
  choice <- decided$choice[cbind(cell$at, cell$size)]
  measured <- function(a) is.finite(grid$raw[cbind(a, match(at, grid$counts)[cell$at], cell$size)])
  otherwise <- ifelse(inside, "interpolated", "extrapolated")[cell$at]
  # Without the default, the first algorithm of the grid is another one.
  known <- grid$names[1] == "default"
  found <- tibble(
    collective = collective, mapping = mapping, processes = at[cell$at],
    size_bytes = ifelse(grid$sizes[cell$size] < 0, NA, grid$sizes[cell$size]),
    from_bytes = first_faster(decided, grid$sizes)[cbind(cell$at, cell$size)],
    algorithm = if (known) grid$names[choice] else "default",
    reason = decided$reason[cbind(cell$at, cell$size)],
    basis = if (known) ifelse(measured(choice) & measured(1L), "measured", otherwise) else NA_character_,
    expected_us = if (known) pick(choice) else NA_real_, default_us = if (known) pick(1L) else NA_real_,
    gain_pct = 100 * (.data$default_us / .data$expected_us - 1), noise_pct = 100 * decided$noise$sd,
    series_noise_pct = 100 * decided$noise$series, noise_from = decided$noise$from
  )
  arrange(found, .data$processes, .data$size_bytes)
}

#' The size from which the choice for a size is faster than that for the previous one
#'
#' Between the two sizes, the logarithm of the ratio of their predicted latencies is interpolated over the logarithm of
#' the size.
#' @param decided List from [decide_cells()].
#' @param sizes Ascending sizes (B), as the columns of `decided$choice`; without sizes and for empty messages at most 0.
#' @return Matrix, count x size (B); NA where there is no such size.
#' @noRd
first_faster <- function(decided, sizes) {
  from <- array(NA_real_, dim(decided$choice))
  for (size in which(head(sizes, -1) > 0)) {
    counts <- seq_len(nrow(from))
    slower <- function(at) {
      decided$relative[cbind(decided$choice[, size], counts, at)] -
        decided$relative[cbind(decided$choice[, size + 1], counts, at)]
    }
    before <- slower(size)
    after <- slower(size + 1)
    # From slower to faster than the previous choice.
    crosses <- is.finite(before) & is.finite(after) & before < 0 & after > 0
    share <- ifelse(crosses, before / (before - after), NA)
    from[, size + 1] <- pmin(floor(sizes[size] * (sizes[size + 1] / sizes[size])^share) + 1, sizes[size + 1])
  }
  from
}

#' Decide each cell of the counts `at` (sorted) and the sizes of the grid
#'
#' @return List: `choice` (index into the grid's names) and `reason`, both count x size; `relative` and `level`, as in
#'   [decide_mapping()]; `noise`, from [tuning_noise()].
#' @noRd
decide_cells <- function(grid, at, study, predicted = NULL) {
  why <- cannot_decide(grid)
  noise <- tuning_noise(grid, study$simulated)
  if (is.null(why) && is.na(noise$sd)) {
    why <- "one launch per cell and too few neighbouring cells: the noise is unknown, the default is kept"
  }
  # Predictions of a model (rounds.R) are not compared with neighbours, which may lack measurements.
  near <- if (is.null(predicted)) map(at, function(p) neighbours(grid, p, default_bounds(study)))
  if (is.null(predicted)) predicted <- interpolate(grid, at, study)
  chosen <- if (is.null(why)) {
    choose_algorithms(predicted$relative, grid, noise, study$analysis$tie_pct / 100, near)
  } else {
    shape <- c(length(at), length(grid$sizes))
    list(choice = array(1L, shape), reason = array(why, shape))
  }
  c(chosen, list(relative = predicted$relative, level = predicted$level, noise = noise))
}

cannot_decide <- function(grid) {
  if (!"default" %in% grid$names) return("no measurements of the default: it is kept")
  if (length(grid$names) == 1) return("only the default was measured")
  if (does_not_repeat(grid$twice$twice)) {
    return(paste0(
      "the default is kept: in 5 % of the cells ",
      "it differs from the algorithm that it runs by more than a factor of 3"
    ))
  }
  if (length(grid$sizes) == 1 && launches_differ(grid$spread[1, , ])) {
    return("the default is kept: in 5 % of the cells its launches differ by more than a factor of 3")
  }
  NULL
}

#' TRUE if the default differs from the algorithm that it runs by more than a factor of 3 in 5 % of the cells
#'
#' Means of such latencies have no known noise, and their gains are not found again in other authors' data.
#' @param twice Logarithms of [pool_same_messages()]: differences divided by the square root of 2; from 40 on, because
#'   one outlier is 5 % of fewer.
#' @noRd
does_not_repeat <- function(twice) length(twice) >= 40 && unname(quantile(abs(twice), 0.95)) > log(3) / sqrt(2)

#' TRUE if the interval of the default's median spans more than a factor of 3 in 5 % of the cells of a barrier
#'
#' Such a barrier waits for something other than messages. Over several message sizes it would average out.
#' @param spread Logarithm of the interval's upper over its lower limit; NA with fewer than three launches.
#' @noRd
launches_differ <- function(spread) any(is.finite(spread)) && quantile(spread, 0.95, na.rm = TRUE) > log(3)

#' Decisions for all collectives over the measured range of process counts
#'
#' @param results List from [read_results()].
#' @return Tibble as [decide_tuning()], with the columns of [with_nodes()].
#' @noRd
decide_all <- function(results) {
  if (!is.null(results$study$sampling)) return(decide_sampled(results))
  found <- map(collectives_of(results), function(collective) {
    counts <- tuning_counts(results$medians, collective)
    if (length(counts) == 0) counts <- sort(unique(results$medians$processes[results$medians$collective == collective]))
    decide_tuning(results, collective, at = fill_counts(counts))
  })
  with_nodes(bind_rows(no_decisions(), found), results$study$places, results$study)
}

#' Add the nodes of the ranks to decisions
#'
#' Ranks that were not measured use the allocation of the next larger number that was, and are the first ranks of its
#' placement. Fewer or more ranks than were measured with a mapping have no decision, though other mappings have one. If
#' the same ranks use the same nodes of several allocations, the decision is that of the smallest one.
#'
#' @param found Tibble from [decide_tuning()].
#' @param places Tibble of what was measured: collective, mapping, place and mapped ([name_rows()]), nodes, processes.
#' @return `found` with nodes (that the ranks use) and allocated (`nodes` of the measurements); mapping without nodes.
#' @noRd
with_nodes <- function(found, places, study) {
  cells <- distinct(found, .data$collective, .data$mapping, .data$processes)
  at <- map_dbl(seq_len(nrow(cells)), function(i) {
    own <- which(places$collective == cells$collective[i] & places$mapping == cells$mapping[i])
    own <- own[order(places$processes[own])]
    counts <- places$processes[own]
    if (cells$processes[i] < min(counts)) NA else own[match(TRUE, counts >= cells$processes[i])]
  })
  cells <- cells[!is.na(at), ]
  at <- at[!is.na(at)]
  cells <- mutate(cells, allocated = places$nodes[at], mapped = places$mapped[at])
  stated <- states_nodes(study, places$nodes)
  cells$nodes <- map_dbl(seq_len(nrow(cells)), function(i) {
    ranks <- if (!stated) find_placed(study, places$place[at[i]], cells$allocated[i], places$processes[at[i]])
    if ("node" %in% colnames(ranks)) n_distinct(ranks[seq_len(cells$processes[i]), "node"]) else cells$allocated[i]
  })
  smallest <- cells |>
    group_by(.data$collective, .data$mapped, .data$nodes, .data$processes) |>
    filter(.data$allocated == min(.data$allocated, Inf)) |>
    ungroup() |>
    select("collective", "mapping", "mapped", "nodes", "allocated", "processes")
  inner_join(found, smallest, c("collective", "mapping", "processes")) |>
    mutate(mapping = .data$mapped, mapped = NULL) |>
    relocate("nodes", "allocated", .after = "mapping")
}

#' Whether the numbers of nodes of imported rows are those that the ranks use; otherwise they are those of the machine,
#' over which the ranks were mapped
#' @noRd
states_nodes <- function(study, nodes) {
  levels <- Filter(function(level) level$name %in% c("group", "node"), study$machine$levels)
  whole <- prod(map_dbl(levels, function(level) level$count %||% 1))
  length(study$import) > 0 && (identical(study$provenance$mpi, "nccl") || any(nodes != whole))
}

#' The process counts to decide: all counts if their range is narrower than 512, else the measured ones, their midpoints
#' and powers of two
#'
#' A file's rules apply up to its next count. With fewer counts, those of a power of two would apply to the counts above
#' it, for which libraries and algorithms behave in another way.
#' @noRd
fill_counts <- function(counts) {
  if (max(counts) - min(counts) < 512) return(seq(min(counts), max(counts)))
  between <- round((head(counts, -1) + tail(counts, -1)) / 2)
  powers <- 2^seq(ceiling(log2(min(counts))), floor(log2(max(counts))))
  sort(unique(c(counts, between, powers)))
}

#' Write the decisions of a study and their regret: `tuning/decisions.csv`, `tables/tuning-regret.csv` and
#' `tables/tuning-shared.csv`
#'
#' @param results List from [read_results()].
#' @param folder Folder `results/<study>`.
#' @return Paths.
#' @examples
#' results <- read_results(system.file("extdata", "example", package = "collanalysis"))
#' write_tuning(results, tempfile())
#' @export
write_tuning <- function(results, folder = results$study$folder) {
  # A sampled study has too few cells with all algorithms; its rounds are judged on a complete study (rounds.R).
  judged <- if (is.null(results$study$sampling)) collectives_of(results)
  regret <- bind_rows(no_regret(), map(judged, function(name) summarise_regret(results, name)))
  c(
    write_table(split_variants(decide_all(results), results$study), file.path(folder, "tuning", "decisions.csv")),
    write_table(regret, file.path(folder, "tables", "tuning-regret.csv")),
    write_table(summarise_shared(results), file.path(folder, "tables", "tuning-shared.csv"))
  )
}
