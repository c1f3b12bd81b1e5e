# The grid of one collective and mapping (algorithm x number of processes x message size): measurements, their noise,
# and interpolation between them.

#' Arrays algorithm x count x size of log latency and of its standard error (NA with one launch)
#' @noRd
tuning_grid <- function(rows) {
  names <- unique(rows$algorithm)
  names <- c(intersect("default", names), sort(setdiff(names, "default")))
  # Counts without the default are left out; if no count has the default, all are kept, so that this is reported.
  counts <- sort(unique(rows$processes[rows$algorithm == "default" | !"default" %in% names]))
  sizes <- sort(unique(coalesce(rows$size_bytes, -1)))
  at <- match(names, rows$algorithm)
  variants <- pmap(list(name = rows$algorithm_name[at], parameters = rows$parameters[at]), list)
  grid <- list(names = names, counts = counts, sizes = sizes, variants = variants)
  error <- median_error(log(rows$low_us), log(rows$high_us), as.numeric(rows$launches))
  latency <- put_on_grid(grid, rows, log(rows$latency_us))
  c(grid, list(
    latency = fill_sizes(latency, sizes), raw = latency, error = put_on_grid(grid, rows, error),
    series_error = put_on_grid(grid, rows, rows[["series_error"]] %||% rep(NA_real_, nrow(rows))),
    spread = put_on_grid(grid, rows, ifelse(rows$launches > 2, log(rows$high_us / rows$low_us), NA)),
    twice = if ("twice" %in% names(rows)) {
      rows[rows$algorithm == "default" & !is.na(rows$twice), c("processes", "ran", "twice")]
    }
  ))
}

#' Put a value of each row on the grid into an array algorithm x count x size; NA where there is no row
#' @noRd
put_on_grid <- function(grid, rows, values) {
  found <- array(values[NA_integer_], lengths(grid[1:3]), unname(grid[1:3]))
  cell <- cbind(
    match(rows$algorithm, grid$names), match(rows$processes, grid$counts),
    match(coalesce(rows$size_bytes, -1), grid$sizes)
  )
  here <- !is.na(rowSums(cell))
  found[cell[here, , drop = FALSE]] <- values[here]
  found
}

#' Interpolate sizes that a process count lacks between two that it has, because counts may have different sizes
#' @noRd
fill_sizes <- function(latency, sizes) {
  # A message of 0 B is as far from one of 1 B as that is from 2 B.
  x <- log(pmax(sizes, 0.5))
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

#' The grid of all process counts but one
#' @noRd
grid_without <- function(grid, count) {
  counts <- grid$counts != count
  measured <- is.finite(grid$raw[, counts, , drop = FALSE])
  names <- rowSums(measured) > 0
  sizes <- colSums(measured, dims = 2) > 0
  part <- function(values) values[names, counts, sizes, drop = FALSE]
  others <- list(
    names = grid$names[names], counts = grid$counts[counts], sizes = grid$sizes[sizes], variants = grid$variants[names],
    latency = part(grid$latency), raw = part(grid$raw), error = part(grid$error),
    series_error = part(grid$series_error), spread = part(grid$spread),
    twice = grid$twice[grid$twice$processes != count, ]
  )
  if (all(names) && all(sizes) && !is.null(grid$whole)) {
    others$whole <- list(names = grid$whole$names, middle = grid$whole$middle[counts, , drop = FALSE])
  }
  others
}

#' Relative standard deviation of one latency: from the launches or from the roughness over neighbouring cells, or, if
#' larger, from the difference between the default and the algorithm that it runs ([pool_same_messages()])
#'
#' Real changes between neighbours (of the protocol, a further step of a tree) add to the roughness. The noise is
#' therefore taken from the smoother direction, message sizes or process counts.
#'
#' @return List: sd (of one latency), series (of the mean over the sizes of a process count, in which a whole launch or
#'   job may be slower; 0 where this is not known), sizes (their number) and from.
#' @noRd
tuning_noise <- function(grid, simulated) {
  sizes <- length(grid$sizes)
  if (isTRUE(simulated)) return(list(sd = 0, series = 0, sizes = sizes, from = "simulated"))
  noise <- c(noise_between(grid), sizes = sizes)
  twice <- grid$twice
  if (is.null(twice) || nrow(twice) < 10) return(noise)
  sd <- 1.4826 * median(abs(twice$twice))
  if (isFALSE(sd <= noise$sd)) noise[c("sd", "from")] <- list(sd, "same messages")
  series <- vctrs::vec_group_id(twice[c("processes", "ran")])
  n <- tabulate(series)
  means <- (as.vector(rowsum(twice$twice, series)) / n)[n > 2]
  if (length(means) > 4) noise$series <- max(noise$series, 1.4826 * median(abs(means)))
  noise
}

noise_between <- function(grid) {
  known <- grid$error[is.finite(grid$error)]
  if (length(known) > 0 && length(known) >= sum(is.finite(grid$latency)) / 2) {
    return(list(sd = max(median(known), 1e-4), series = median(grid$series_error, na.rm = TRUE), from = "launches"))
  }
  bends <- list(roughness(grid, 3), roughness(grid, 2))
  bends <- bends[lengths(bends) >= 10]
  if (length(bends) == 0) return(list(sd = NA_real_, series = 0, from = "unknown"))
  sd <- min(map_dbl(bends, function(bend) 1.4826 * median(abs(bend))))
  # Outliers do not average out where a decision has one latency (barriers): the noise is that of a wide distribution.
  if (length(grid$sizes) == 1) sd <- max(sd, unname(quantile(abs(bends[[1]]), 0.95)) / qnorm(0.975))
  list(sd = sd, series = 0, from = "neighbours")
}

#' Distance of each relative latency from the line between its neighbours in size (`along` 3) or process count (2),
#' scaled to the standard deviation of one latency; empty for fewer than five sizes (counts)
#' @noRd
roughness <- function(grid, along) {
  if (length(if (along == 3) grid$sizes else grid$counts) < 5) return(numeric())
  x <- if (along == 3) log(pmax(grid$sizes, 0.5)) else log(grid$counts)
  raw <- list(latency = grid$raw, names = grid$names, whole = grid$whole)
  relative <- grid$raw - rep(reference(raw, along), each = length(grid$names))
  # One row per line of neighbours; lines with the same known values are computed together.
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

#' Reference latency of each count and size: the median over the algorithms without gaps or, if there are none, for each
#' size over those that every count has, if any. A median over changing sets of algorithms would depend on which of them
#' were measured.
#'
#' @param grid Grid from [tuning_grid()]; its optional element `whole` is the known reference of the algorithms `names`,
#'   which have no gaps.
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

#' Interpolate log latency at each count of `at`; returns `relative`, the difference to the reference (NA where an
#' algorithm is no candidate), and `level`, the reference
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

#' Group the columns of a logical matrix by their content
#' @noRd
alike <- function(known) {
  # Mostly everything is known, and this check is cheaper than grouping.
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

#' TRUE for counts at which an algorithm is no candidate, because others were measured there or beyond and it was not:
#' counts above its largest one; two processes, and counts below a quarter of its smallest one; and, if it was measured
#' at powers of two only but others elsewhere too, all counts that are not powers of two (libraries define some
#' algorithms for powers of two only, and silently run others elsewhere)
#'
#' @param known Indices of the counts at which the algorithm was measured.
#' @noRd
not_offered <- function(counts, known, at) {
  power <- function(p) log2(p) == round(log2(p))
  own <- range(counts[known])
  above <- at > own[2] & own[2] < max(counts)
  below <- (at < own[1] / 4 | (at == 2 & own[1] > 2)) & own[1] > min(counts)
  powers <- length(known) > 2 && all(power(counts[known])) && !all(power(counts))
  above | below | (powers & !power(at) & !at %in% counts[known])
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

#' Communicator sizes at which the default may change: powers of two in the decision tables of Open MPI 4.1 to 5.0
#' @noRd
default_bounds <- function(study) {
  mpi <- tolower(as.character(study$provenance$mpi %||% "Open MPI"))
  if (any(grepl("open ?mpi", mpi))) 2^(2:20) else numeric()
}

#' Number of consecutive messages from the root to the last rank; 1 for trees that are flat or not known
#'
#' Computed, because latencies are also interpolated at counts without launches, which edges.csv lacks.
#' @noRd
tree_depth <- function(variant, processes) {
  p <- pmax(processes, 2)
  pmax(1, switch(variant$name,
    chain = ceiling((p - 1) / parameter_of(variant$parameters, "fanout", 4)), pipeline = p - 1,
    binary_tree = floor(log2(p)), binomial = ceiling(log2(p)), rep(1, length(p))
  ))
}
