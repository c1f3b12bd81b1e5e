#' Which process counts decide and which judge, from the grid alone, before anything is fitted
#'
#' @param counts Process counts.
#' @param first 1: the first, third, fifth ... count decides; 2: the second, fourth, ...
#' @return List of `decide` and `judge`, both sorted.
#' @noRd
split_tuning <- function(counts, first = 1) {
  counts <- sort(unique(counts))
  decide <- counts[seq_along(counts) %% 2 == first %% 2]
  list(decide = decide, judge = setdiff(counts, decide))
}

#' Process counts at which a decision can rest: the default and another algorithm were measured there
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
#' 1. Each latency is taken relative to the median over the algorithms of its cell, so that what hits all alike cancels.
#' 2. Between the measured process counts the logarithm of that ratio is interpolated linearly over log(P x depth of the
#'    algorithm's tree): chains and trees get slower where they get deeper, not in between. Two processes send one
#'    message whatever the algorithm is called, so P = 2 tells nothing about other counts. Open MPI's default is
#'    interpolated only within the communicator sizes that its own table treats alike (it changes at powers of two).
#' 3. Over the sizes of one process count the sequence with the least predicted regret is chosen (dynamic programming)
#'    where each change of algorithm costs the tie width (`analysis.tie_pct`) and the default has that much credit.
#' 4. Each run of sizes stays with the default unless the mean gain of the run is above its noise (95 %, one-sided). The
#'    noise comes from the launches; with a single launch from how rough latency is over neighbouring sizes (or process
#'    counts); where there are too few of those, nothing is decided and the default stays. A run of one or two sizes has
#'    to be seen at a neighbouring process count as well ([supported()]), and a count that was not measured needs
#'    measured counts on both sides, or one below it in the default's own range ([reached()]). Neighbours are counts
#'    at which the algorithm was measured; where a run is not sure, the next best algorithm is looked at
#'    ([pick_sure()]).
#' 5. The choice of the next lower process count is kept where it is predicted to cost less than a quarter of the tie
#'    width more.
#'
#' @param results List from [read_results()].
#' @param collective Name of a collective.
#' @param counts Process counts that may be used; rows of other counts do not reach the decision.
#' @param at Process counts to decide for.
#' @return Tibble, one row per mapping x count x size: collective, mapping, processes, size_bytes, algorithm, reason,
#'   basis (measured, interpolated, extrapolated), expected_us, default_us (both at that cell, in us), gain_pct (default
#'   over chosen), noise_pct (standard deviation of one latency), noise_from (launches, neighbours, simulated, unknown).
#' @noRd
decide_tuning <- function(results, collective, counts = NULL, at = NULL) {
  rows <- results$medians[results$medians$collective == collective & results$medians$latency_us > 0, ]
  if (!is.null(counts)) rows <- rows[rows$processes %in% counts, ]
  grids <- map(split(rows, as.character(rows$mapping)), tuning_grid)
  bind_rows(no_decisions(), unname(imap(grids, function(grid, mapping) {
    decide_mapping(grid, collective, mapping, at %||% grid$counts, results$study)
  })))
}

no_decisions <- function() {
  tibble(
    collective = character(), mapping = character(), processes = numeric(), size_bytes = numeric(),
    algorithm = character(), reason = character(), basis = character(), expected_us = numeric(),
    default_us = numeric(), gain_pct = numeric(), noise_pct = numeric(), noise_from = character()
  )
}

#' Arrays algorithm x count x size of log latency and of its standard error (NA with one launch)
#' @noRd
tuning_grid <- function(rows) {
  names <- unique(rows$algorithm)
  names <- c(intersect("default", names), sort(setdiff(names, "default")))
  # Counts without the default cannot be compared with it; without any default all counts are kept, to be reported.
  counts <- sort(unique(rows$processes[rows$algorithm == "default" | !"default" %in% names]))
  sizes <- sort(unique(coalesce(rows$size_bytes, -1)))
  at <- match(names, rows$algorithm)
  variants <- pmap(list(name = rows$algorithm_name[at], parameters = rows$parameters[at]), list)
  grid <- list(names = names, counts = counts, sizes = sizes, variants = variants)
  error <- ifelse(rows$launches > 1, (rows$high_us - rows$low_us) / (2 * 1.96 * rows$latency_us), NA)
  latency <- put_on_grid(grid, rows, log(rows$latency_us))
  c(grid, list(latency = fill_sizes(latency, sizes), raw = latency, error = put_on_grid(grid, rows, error)))
}

#' Array algorithm x count x size of a value for each row; NA where there is none
#' @noRd
put_on_grid <- function(grid, rows, values) {
  found <- array(values[NA_integer_], lengths(grid[1:3]), unname(grid[1:3]))
  here <- rows$processes %in% grid$counts
  rows <- rows[here, ]
  cell <- cbind(
    match(rows$algorithm, grid$names), match(rows$processes, grid$counts),
    match(coalesce(rows$size_bytes, -1), grid$sizes)
  )
  found[cell] <- values[here]
  found
}

#' Sizes that a process count lacks, between two that it has: counts may have been measured at other sizes
#' @noRd
fill_sizes <- function(latency, sizes) {
  x <- log(pmax(sizes, 1))
  lacking <- which(rowSums(!is.finite(latency), dims = 2) > 0, arr.ind = TRUE)
  for (i in seq_len(nrow(lacking))) {
    a <- lacking[i, 1]
    p <- lacking[i, 2]
    known <- which(is.finite(latency[a, p, ]))
    if (length(known) < 2) next
    gaps <- setdiff(seq(min(known), max(known)), known)
    if (length(gaps) > 0) latency[a, p, gaps] <- approx(x[known], latency[a, p, known], x[gaps])$y
  }
  latency
}

#' A grid without one of its process counts: that of the other counts' rows
#' @noRd
grid_without <- function(grid, count) {
  counts <- grid$counts != count
  measured <- is.finite(grid$raw[, counts, , drop = FALSE])
  names <- rowSums(measured) > 0
  sizes <- colSums(measured, dims = 2) > 0
  part <- function(values) values[names, counts, sizes, drop = FALSE]
  others <- list(
    names = grid$names[names], counts = grid$counts[counts], sizes = grid$sizes[sizes], variants = grid$variants[names],
    latency = part(grid$latency), raw = part(grid$raw), error = part(grid$error)
  )
  if (all(names) && all(sizes) && !is.null(grid$whole)) {
    others$whole <- list(names = grid$whole$names, middle = grid$whole$middle[counts, , drop = FALSE])
  }
  others
}

#' Decisions at each of some process counts, made of what was measured at all other ones
#'
#' @param rows Rows of [summarise_launches()] of one collective and mapping, at counts on which a decision can rest.
#' @param at Process counts, neither the first nor the last of the rows.
#' @return Tibble: processes, size_bytes, algorithm.
#' @noRd
decide_left_out <- function(rows, at, study) {
  grid <- tuning_grid(rows)
  # Without one of many counts the reference is mostly that of the same algorithms.
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

#' @param predicted List of `relative` and `level` at each count of `at`: log latencies are their sums.
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
  found <- tibble(
    collective = collective, mapping = mapping, processes = at[cell$at],
    size_bytes = ifelse(grid$sizes[cell$size] < 0, NA, grid$sizes[cell$size]),
    algorithm = if (grid$names[1] == "default") grid$names[choice] else "default",
    reason = decided$reason[cbind(cell$at, cell$size)],
    basis = ifelse(at %in% grid$counts, "measured", ifelse(inside, "interpolated", "extrapolated"))[cell$at],
    expected_us = pick(choice), default_us = if (grid$names[1] == "default") pick(1L) else NA_real_,
    gain_pct = 100 * (.data$default_us / .data$expected_us - 1), noise_pct = 100 * decided$noise$sd,
    noise_from = decided$noise$from
  )
  arrange(found, .data$processes, .data$size_bytes)
}

#' The decision of each cell of `at` (sorted) and the grid's sizes
#'
#' @return List: `choice` (position in the grid's names) and `reason`, both count x size; `relative` and `level`, as
#'   [decide_mapping()] takes them; `noise`, of [tuning_noise()].
#' @noRd
decide_cells <- function(grid, at, study, predicted = NULL) {
  why <- cannot_decide(grid)
  noise <- tuning_noise(grid, study$simulated)
  if (is.null(why) && is.na(noise$sd)) {
    why <- "one launch per cell and too few neighbouring cells: the noise is unknown, the default is kept"
  }
  # What a model predicts (rounds.R) is not held against neighbours: they may not have been measured.
  near <- if (is.null(predicted)) map(at, function(p) neighbours(grid$counts, p, default_bounds(study)))
  if (is.null(predicted)) predicted <- interpolate(grid, at, study)
  chosen <- if (is.null(why)) {
    choose_algorithms(predicted$relative, grid, noise$sd, study$analysis$tie_pct / 100, near)
  } else {
    shape <- c(length(at), length(grid$sizes))
    list(choice = array(1L, shape), reason = array(why, shape))
  }
  c(chosen, list(relative = predicted$relative, level = predicted$level, noise = noise))
}

cannot_decide <- function(grid) {
  if (!"default" %in% grid$names) return("no measurements of the default: it is kept")
  if (length(grid$names) == 1) return("only the default was measured")
  NULL
}

#' Relative standard deviation of one latency: from the launches, or from the roughness over neighbouring cells
#' @noRd
tuning_noise <- function(grid, simulated) {
  if (isTRUE(simulated)) return(list(sd = 0, from = "simulated"))
  known <- grid$error[is.finite(grid$error)]
  if (length(known) > 0 && length(known) >= sum(is.finite(grid$latency)) / 2) {
    return(list(sd = max(median(known), 1e-4), from = "launches"))
  }
  bend <- roughness(grid)
  if (length(bend) < 10) return(list(sd = NA_real_, from = "unknown"))
  list(sd = 1.4826 * median(abs(bend)), from = "neighbours")
}

#' How far each relative latency is from the line between its neighbours in size (or, without sizes, in process count),
#' scaled to the standard deviation of one latency
#' @noRd
roughness <- function(grid) {
  along <- if (length(grid$sizes) >= 5) 3 else if (length(grid$counts) >= 5) 2 else return(numeric())
  x <- if (along == 3) log(pmax(grid$sizes, 1)) else log(grid$counts)
  raw <- list(latency = grid$raw, names = grid$names, whole = grid$whole)
  relative <- grid$raw - rep(reference(raw, along), each = length(grid$names))
  # One line for each neighbourhood; those with the same values known are computed together.
  lines <- matrix(aperm(relative, c(setdiff(1:3, along), along)), ncol = length(x))
  unlist(map(alike(t(is.finite(lines))), function(at) {
    known <- which(is.finite(lines[at[1], ]))
    if (length(known) < 3) return(NULL)
    values <- lines[at, known, drop = FALSE]
    middle <- seq(2, length(known) - 1)
    before <- x[known[middle - 1]]
    weight <- (x[known[middle]] - before) / (x[known[middle + 1]] - before)
    on_each <- function(values) rep(values, each = length(at))
    bend <- values[, middle] - on_each(1 - weight) * values[, middle - 1] - on_each(weight) * values[, middle + 1]
    bend / on_each(sqrt(1 + weight^2 + (1 - weight)^2))
  }), use.names = FALSE)
}

#' Median over the algorithms of each count and size: those without gaps, if any; else, for each size, those that every
#' count has, if any. A median over now these, now those algorithms would move with what happens to be measured.
#'
#' @param grid Of [tuning_grid()]; `whole`, where given, is the known reference of the algorithms `names`, which have no
#'   gaps.
#' @param along 2: the same algorithms at all counts; 3: the same at all sizes of a count.
#' @noRd
reference <- function(grid, along = 2) {
  shape <- dim(grid$latency)
  middle <- function(values) {
    values <- matrix(values, ncol = prod(dim(values)[-1]))
    group_median(as.vector(values), as.vector(col(values)), ncol(values))
  }
  complete <- without_gaps(grid)
  if (any(complete) && identical(grid$names[complete], grid$whole$names)) return(grid$whole$middle)
  if (any(complete)) return(matrix(middle(grid$latency[complete, , , drop = FALSE]), shape[2]))
  other <- setdiff(2:3, along)
  slices <- lapply(seq_len(shape[other]), function(i) {
    slice <- if (other == 3) grid$latency[, , i] else grid$latency[, i, ]
    slice <- matrix(slice, shape[1])
    known <- colSums(is.finite(slice)) > 0
    everywhere <- rowSums(is.finite(slice[, known, drop = FALSE])) == sum(known)
    middle(if (any(everywhere)) slice[everywhere, , drop = FALSE] else slice)
  })
  found <- matrix(unlist(slices), shape[along])
  if (along == 2) found else t(found)
}

without_gaps <- function(grid) rowSums(is.na(grid$latency)) == 0

#' Log latency at each count of `at`: `relative` to the reference (NA where an algorithm is no candidate), and its
#' `level`
#' @noRd
interpolate <- function(grid, at, study) {
  middle <- reference(grid)
  relative <- grid$latency - rep(middle, each = length(grid$names))
  found <- array(NA_real_, c(length(grid$names), length(at), length(grid$sizes)))
  bounds <- default_bounds(study)
  for (a in seq_along(grid$names)) {
    for (s in alike(is.finite(matrix(relative[a, , ], length(grid$counts))))) {
      known <- which(is.finite(relative[a, , s[1]]))
      if (length(known) == 0) next
      values <- matrix(relative[a, known, s], length(known))
      found[a, , s] <- along_depth(grid$variants[[a]], grid$counts[known], values, at, bounds)
      found[a, not_offered(grid$counts, known, at), s] <- NA
    }
  }
  level <- matrix(NA_real_, length(at), length(grid$sizes))
  for (s in alike(is.finite(middle))) {
    known <- is.finite(middle[, s[1]])
    if (any(known)) level[, s] <- along_rows(log(grid$counts[known]), middle[known, s, drop = FALSE], log(at))
  }
  list(relative = found, level = level)
}

#' Columns of a logical matrix, grouped by their content
#' @noRd
alike <- function(known) {
  # Mostly everything is known, and looking is cheaper than grouping.
  if (all(known)) return(list(seq_len(ncol(known))))
  unname(split(seq_len(ncol(known)), vctrs::vec_group_id(t(known))))
}

#' [along_processes()] of each column of a matrix
#' @return Matrix, one row for each of `at`.
#' @noRd
along_rows <- function(known, values, at) {
  if (length(known) == 1) return(values[rep(1, length(at)), , drop = FALSE])
  left <- findInterval(at, known, all.inside = TRUE)
  share <- pmin(pmax((at - known[left]) / (known[left + 1] - known[left]), 0), 1)
  low <- values[left, , drop = FALSE]
  low + (values[left + 1, , drop = FALSE] - low) * share
}

#' Counts at which an algorithm is no candidate, because others were measured there or beyond and it was not: those
#' above its largest one; and where it was measured at powers of two only, but others elsewhere too, all that are no
#' power of two (libraries define some algorithms there only, and run another one elsewhere without saying so)
#'
#' @param known Positions of the counts that it was measured at.
#' @noRd
not_offered <- function(counts, known, at) {
  power <- function(p) log2(p) == round(log2(p))
  beyond <- at > max(counts[known]) & max(counts[known]) < max(counts)
  beyond | (!power(at) & !at %in% counts[known] & length(known) > 2 & all(power(counts[known])) & !all(power(counts)))
}

#' @param values Matrix, one row for each of `counts`.
#' @return Matrix, one row for each of `at`.
#' @noRd
along_depth <- function(variant, counts, values, at, bounds) {
  informative <- if (any(counts > 2)) counts > 2 else rep(TRUE, length(counts))
  x <- function(p) log(p * tree_depth(variant, p))
  line <- function(use, to) along_rows(x(counts[use]), values[use, , drop = FALSE], x(to))
  found <- line(informative, at)
  if (variant$name == "default") {
    range <- findInterval(counts, bounds)
    for (part in unique(findInterval(at, bounds))) {
      use <- informative & range == part
      here <- findInterval(at, bounds) == part
      if (any(use)) found[here, ] <- line(use, at[here])
    }
  }
  own <- match(at, counts)
  found[!is.na(own), ] <- values[own[!is.na(own)], ]
  found
}

#' Communicator sizes at which the default may change: Open MPI's own tables, 4.1 to 5.0, change at powers of two
#' @noRd
default_bounds <- function(study) {
  mpi <- tolower(as.character(study$how$mpi %||% "Open MPI"))
  if (any(grepl("open ?mpi", mpi))) 2^(2:20) else numeric()
}

#' Messages one after another from the root to the last rank; 1 for shapes that are flat or not known
#' @noRd
tree_depth <- function(variant, processes) {
  p <- pmax(processes, 2)
  pmax(1, switch(variant$name,
    chain = ceiling((p - 1) / parameter_of(variant$parameters, "fanout", 4)), pipeline = p - 1,
    binary_tree = floor(log2(p)), binomial = ceiling(log2(p)), rep(1, length(p))
  ))
}

choose_algorithms <- function(relative, grid, noise, tie, near) {
  shape <- dim(relative)[-1]
  choice <- array(1L, shape)
  reason <- array("the default is the best or within noise of it", shape)
  gain <- array(rep(grid$latency[1, , ], each = length(grid$names)), dim(grid$latency)) - grid$latency
  for (p in seq_len(shape[1])) {
    excess <- matrix(relative[, p, ], dim(relative)[1])
    known <- is.finite(excess[1, ])
    reason[p, !known] <- "the default is kept: it was not measured nearby"
    alone <- known & colSums(is.finite(excess)) < 2
    reason[p, alone] <- "only the default was measured nearby"
    free <- which(known & !alone)
    if (length(free) == 0) next
    excess <- excess[, free, drop = FALSE]
    previous <- if (p > 1) choice[p - 1, free]
    picked <- pick_sure(excess, previous, tie, noise, near[[p]], gain[, , free, drop = FALSE])
    choice[p, free] <- picked
    reason[p, free][picked > 1] <- "better than the default beyond noise"
  }
  list(choice = choice, reason = reason)
}

#' The cheapest sequence over sizes of which every run is sure
#'
#' Where a run is not sure, its algorithm is no candidate for these sizes, and what is then the cheapest is looked at:
#' an algorithm that was not measured beside must not hide another one that was.
#' @noRd
pick_sure <- function(excess, previous, tie, noise, near, gain) {
  repeat {
    picked <- shortest_path(excess, tie)
    if (!is.null(previous)) picked <- keep_previous(picked, previous, excess, tie)
    gone <- which(picked != drop_unsure(picked, excess, noise, near, gain))
    if (length(gone) == 0) return(picked)
    excess[cbind(picked[gone], gone)] <- NA
  }
}

#' The measured process counts around one: `below` and `above` (positions, ascending), `measured` (it is one itself),
#' `same_range` (another count was measured where the default's table has no boundary between)
#' @noRd
neighbours <- function(counts, at, bounds) {
  range <- findInterval(at, bounds)
  list(
    below = which(counts < at), above = which(counts > at), measured = at %in% counts,
    same_range = length(bounds) == 0 || range %in% findInterval(counts, bounds)
  )
}

#' The cheapest sequence over sizes: predicted regret, plus `tie` for each change, less `tie` where the default is used
#' @noRd
shortest_path <- function(excess, tie) {
  cost <- exp(excess - rep(apply(excess, 2, min, na.rm = TRUE), each = nrow(excess))) - 1
  cost[is.na(cost)] <- Inf
  cost[1, ] <- cost[1, ] - tie
  total <- cost[, 1]
  from <- matrix(seq_len(nrow(cost)), nrow(cost), ncol(cost))
  for (s in seq_len(ncol(cost))[-1]) {
    cheapest <- which.min(total)
    stay <- total <= total[cheapest] + tie
    from[!stay, s] <- cheapest
    total <- ifelse(stay, total, total[cheapest] + tie) + cost[, s]
  }
  picked <- integer(ncol(cost))
  picked[ncol(cost)] <- which.min(total)
  for (s in rev(seq_len(ncol(cost)))[-1]) picked[s] <- from[picked[s + 1], s + 1]
  picked
}

#' The choice of the process count before, where that costs less than a quarter of the tie width: neighbours agree
#' @noRd
keep_previous <- function(picked, previous, excess, tie) {
  lost <- excess[cbind(previous, seq_along(previous))] - excess[cbind(picked, seq_along(picked))]
  if (all(is.finite(lost)) && mean(lost) < tie / 4) previous else picked
}

#' Runs whose gain is not sure go back to the default
#'
#' @param near Of [neighbours()]; NULL: they are not looked at.
#' @param gain Array algorithm x measured count x size: log latency of the default less the algorithm's.
#' @noRd
drop_unsure <- function(picked, excess, noise, near, gain) {
  runs <- rle(picked)
  end <- cumsum(runs$lengths)
  for (i in which(runs$values > 1)) {
    at <- seq(end[i] - runs$lengths[i] + 1, end[i])
    own <- mean(excess[1, at] - excess[cbind(picked[at], at)])
    beside <- gain_beside(gain[picked[at[1]], , at, drop = FALSE], near)
    sure <- own > 1.645 * noise * sqrt(2 / length(at)) && (
      is.null(near) || (if (near$measured) supported(own, beside, noise, length(at)) else reached(beside, near))
    )
    if (!sure) picked[at] <- 1L
  }
  picked
}

#' The gain of an algorithm over some sizes at the nearest counts below and above that it was measured at
#'
#' @param gain Array 1 x measured count x size.
#' @noRd
gain_beside <- function(gain, near) {
  gain <- matrix(gain, dim(gain)[2])
  known <- rowSums(is.finite(gain)) > 0
  beside <- c(tail(near$below[known[near$below]], 1), head(near$above[known[near$above]], 1))
  gain <- gain[beside, , drop = FALSE]
  rowMeans(ifelse(is.finite(gain), gain, NA), na.rm = TRUE)
}

#' Is the gain of a short run seen at a neighbouring process count as well? One odd cell makes no rule.
#' @noRd
supported <- function(own, beside, noise, sizes) {
  if (sizes > 2 || length(beside) == 0) return(TRUE)
  max(beside) > 0 && mean(c(own, beside)) > 1.645 * noise * sqrt(2 / (sizes * (1 + length(beside))))
}

#' May a count that was not measured be decided? Between two measured ones, or beyond those in the range of communicator
#' sizes that the default's table treats alike: what the default does beyond that is not known.
#' @noRd
reached <- function(beside, near) length(beside) == 2 || (near$same_range && length(near$below) > 0)

#' Decisions for every process count of the measured range
#'
#' @param results List from [read_results()].
#' @return Tibble from [decide_tuning()] for all collectives with two process counts or algorithms, with `nodes`.
#' @noRd
decide_all <- function(results) {
  if (!is.null(results$study$sampling)) return(decide_sampled(results))
  found <- map(collectives_of(results), function(collective) {
    counts <- tuning_counts(results$medians, collective)
    if (length(counts) == 0) counts <- sort(unique(results$medians$processes[results$medians$collective == collective]))
    decide_tuning(results, collective, at = fill_counts(counts))
  })
  found <- bind_rows(no_decisions(), found)
  places <- results$study$places
  at <- match(paste(found$collective, found$mapping, sep = "\r"), paste(places$collective, places$mapping, sep = "\r"))
  most <- max(1, results$cells[["nodes"]], na.rm = TRUE)
  found$nodes <- ifelse(places$spread[at], places$nodes[at], most)
  found$mapping <- places$mapped[at]
  relocate(found, "nodes", .after = "mapping")
}

#' All counts of a range up to 128 wide; else the measured ones, those half-way between, and powers of two
#' @noRd
fill_counts <- function(counts) {
  if (max(counts) - min(counts) < 128) return(seq(min(counts), max(counts)))
  between <- round((head(counts, -1) + tail(counts, -1)) / 2)
  powers <- 2^seq(ceiling(log2(min(counts))), floor(log2(max(counts))))
  sort(unique(c(counts, between, powers)))
}

#' Decide for a study: `tuning/decisions.csv` and `tables/tuning-regret.csv`
#'
#' @param results List from [read_results()].
#' @param folder Folder `results/<study>`.
#' @return Paths.
#' @examples
#' results <- read_results(system.file("extdata", "example", package = "collanalysis"))
#' write_tuning(results, tempfile())
#' @export
write_tuning <- function(results, folder = results$study$folder) {
  # A sampled study has too few cells with all algorithms to judge on: its rounds are, on a complete one (rounds.R).
  judged <- if (is.null(results$study$sampling)) collectives_of(results)
  regret <- bind_rows(no_regret(), map(judged, function(name) summarise_regret(results, name)))
  c(
    write_table(split_variants(decide_all(results), results$study), file.path(folder, "tuning", "decisions.csv")),
    write_table(regret, file.path(folder, "tables", "tuning-regret.csv")),
    write_table(summarise_shared(results), file.path(folder, "tables", "tuning-shared.csv"))
  )
}
