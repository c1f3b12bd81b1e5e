#' Select the points to measure next
#'
#' A point is one algorithm, number of processes and message size. For each collective and mapping, the first round
#' draws random process counts and a few sizes at each, with all algorithms. From then on, a Gaussian process over log
#' latency (a part common to all algorithms, and a part of each algorithm, over log2(P x depth of its tree) and
#' log2(size)) predicts every point with its uncertainty. The selected points have the largest expected gain from
#' changing a decision, at the point and at correlated neighbours, per cost of measuring. Nothing is selected when the
#' expected regret is below the target, from the third round on, or the budget is spent: what the model expects from the
#' few process counts of the first round alone is far too low for some machines.
#'
#' If algorithms share a launch, all further points at a number of processes cost only their calls, and those whose
#' calls together cost less than a launch are measured along with the selected ones.
#'
#' The cost in node-seconds is calls (timed and untimed) x latency (known or predicted), plus the start-up of each
#' launch. A launch sweeps neighbouring sizes, so sizes between two selected ones are also measured if that costs less
#' than another launch.
#'
#' @param parts List of [sampling_part()]s, one for each collective and mapping.
#' @param round Number of the round, from 1.
#' @param rules List: first_pct and round_pct (percent of the grid's cost that the first and each later round may add),
#'   target_regret_pct, budget_node_s, startup_s (of one launch).
#' @param study Study from [read_study()].
#' @return List of matrices (algorithm, count, size: indices into the part's grid), one for each part.
#' @noRd
select_points <- function(parts, round, rules, study) {
  parts <- map(parts, model_part, study = study)
  costs <- map(parts, point_cost, startup_s = rules$startup_s)
  totals <- map_dbl(costs, "total")
  left <- rules$budget_node_s - sum(map_dbl(parts, "spent"))
  share <- (if (round == 1) rules$first_pct else rules$round_pct) / 100
  # Without a point whose measurement did not fail, the total is 0.
  done <- left <= 0 || sum(totals) == 0 || round > 2 && expected_regret_pct(parts) <= rules$target_regret_pct
  if (done) return(rep(list(matrix(integer(), 0, 3)), length(parts)))
  picked <- map(seq_along(parts), function(i) {
    part <- parts[[i]]
    limit <- min(share * totals[i], left * totals[i] / sum(totals))
    picked <- if (is.null(part$model)) draw_points(part, limit, costs[[i]]) else pick_points(part, limit, costs[[i]])
    join_launches(part, picked, costs[[i]])
  })
  drop_unaffordable(picked, parts, costs, left)
}

#' The selections without those first draws of parts that cost more than what is `left` (node-seconds) of the budget
#'
#' The draws of the parts with most weight come first, after the points of the others. At least one part is measured.
#' @noRd
drop_unaffordable <- function(picked, parts, costs, left) {
  first <- map_lgl(parts, function(part) is.null(part$model))
  kept <- !all(first)
  started <- character()
  for (i in order(first, -map_dbl(parts, function(part) sum(part$weight)))) {
    if (nrow(picked[[i]]) == 0) next
    shared <- if (isTRUE(parts[[i]]$shared)) paste(parts[[i]]$mapping, parts[[i]]$grid$counts)
    price <- price_of(picked[[i]], costs[[i]], shared, started)
    if (first[i] && kept && price > left) {
      picked[[i]] <- picked[[i]][0, , drop = FALSE]
      next
    }
    left <- left - price
    kept <- TRUE
    started <- c(started, shared[picked[[i]][, 2]])
  }
  picked
}

#' Node-seconds of measuring points (rows of `cells`)
#'
#' @param shared Names of the launches that algorithms share, by count; NULL if they share none.
#' @param started Names of launches that other collectives need as well.
#' @noRd
price_of <- function(cells, cost, shared = NULL, started = NULL) {
  launches <- if (is.null(shared)) launch_of(cells) else shared[cells[, 2]]
  sum(cost$point[cells], cost$launch[cells[!duplicated(launches) & !launches %in% started, 2]])
}

#' The state of sampling for one collective and mapping
#'
#' @param points Tibble: algorithm, processes, nodes, size_bytes, calls, latency_us (NA where not measured), low_us,
#'   high_us, launches, usable (FALSE: the measurement failed, so the point is no candidate). Optional columns: weight
#'   (of a cell; default 1), start (`shared`: all algorithms share a launch), spread_us (time over which the ranks enter
#'   a call; NA: together).
#' @param spent Node-seconds spent so far.
#' @return List: grid (as in [decide_tuning()]), usable and calls (arrays on it), weight (count x size), nodes (by
#'   count), spent, shared, spread (us, an array on it).
#' @noRd
sampling_part <- function(points, spent = 0) {
  grid <- tuning_grid(points)
  usable <- put_on_grid(grid, points, points$usable)
  weight <- put_on_grid(grid, points, points[["weight"]] %||% rep(1, nrow(points)))
  shared <- any(points[["start"]] %in% "shared")
  sweep <- vctrs::vec_group_id(points[c("algorithm", "processes")])
  list(
    grid = grid, usable = usable & !is.na(usable), calls = put_on_grid(grid, points, points$calls),
    cell = put_on_grid(grid, points, as.numeric(if (shared) sweep else points[["cell"]] %||% sweep)),
    weight = matrix(apply(weight, 2:3, function(w) max(0, w, na.rm = TRUE)), dim(weight)[2]),
    nodes = points$nodes[match(grid$counts, points$processes)], spent = spent,
    shared = shared,
    # Each call also takes the time over which the ranks enter it.
    spread = put_on_grid(grid, points, coalesce(as.numeric(points[["spread_us"]] %||% NA), rep(0, nrow(points))))
  )
}

known_points <- function(part) is.finite(part$grid$latency) & part$usable

#' The part with its `model` ([predict_process()]) added, once a point is known
#' @noRd
model_part <- function(part, study) {
  if (is.null(part$model) && any(known_points(part))) part$model <- predict_process(part, study)
  part
}

#' Cost in node-seconds of each point, of each launch (by count), and of the whole grid with a launch for each cell
#'
#' Before the first measurements, the latency is estimated as in blocks.py: 20 us x log2(P + 1) + P x bytes / 10 GB/s.
#' @noRd
point_cost <- function(part, startup_s) {
  grid <- part$grid
  n <- dim(grid$latency)
  guess <- outer(grid$counts, pmax(grid$sizes, 0), function(p, size) 20 * log2(p + 1) + p * size / 1e4)
  latency <- if (is.null(part$model)) rep(guess, each = n[1]) else exp(part$model$whole)
  point <- array((latency + (part$spread %||% 0)) * part$calls * 1e-6 * rep(part$nodes, each = n[1]), n)
  launch <- startup_s * part$nodes
  launches <- map_dbl(seq_len(n[2]), function(p) n_distinct(part$cell[, p, ][part$usable[, p, ]]))
  list(point = point, launch = launch, total = sum(point[part$usable]) + sum(launches * launch))
}

#' Draw points: all algorithms at random process counts, with one random size of each third, until `limit` is spent
#' @noRd
draw_points <- function(part, limit, cost) {
  n <- dim(part$grid$latency)
  thirds <- split(seq_len(n[3]), ceiling(3 * seq_len(n[3]) / n[3]))
  drawn <- matrix(integer(), 0, 3)
  spent <- 0
  for (p in sample_from(seq_len(n[2]))) {
    sizes <- map_dbl(thirds, function(third) sample_from(third)[1])
    drawn <- rbind(drawn, as.matrix(expand.grid(seq_len(n[1]), p, unname(sizes))))
    launches <- if (isTRUE(part$shared)) 1 else n_distinct(part$cell[, p, sizes], na.rm = TRUE)
    spent <- spent + launches * cost$launch[p] + sum(cost$point[, p, sizes], na.rm = TRUE)
    if (spent >= limit) break
  }
  drawn[(part$usable & !known_points(part))[drawn], , drop = FALSE]
}

sample_from <- function(values) values[sample.int(length(values))]

#' Pick the points with the largest expected gain per cost until `limit` is spent; at least one
#' @noRd
pick_points <- function(part, limit, cost) {
  model <- part$model
  open <- part$usable & !known_points(part)
  gain <- expected_gain(model)
  gain[!open] <- 0
  n <- dim(gain)
  gain <- gain * rep(part$weight, each = n[1])
  near_s <- exp(-abs(outer(model$size, model$size, "-")) / 4)
  near_p <- map(seq_len(n[1]), function(a) exp(-abs(outer(model$depth[, a], model$depth[, a], "-"))))
  worth <- function(a) near_p[[a]] %*% matrix(gain[a, , ], n[2]) %*% near_s
  value <- gain
  for (a in seq_len(n[1])) value[a, , ] <- worth(a)
  picked <- matrix(integer(), 0, 3)
  launch <- array(rep(cost$launch, each = n[1]), n)
  spent <- 0
  repeat {
    price <- cost$point + launch
    score <- ifelse(open & (spent == 0 | spent + price <= limit), value / price, -Inf)
    best <- which.max(score)
    if (score[best] <= 0) return(picked)
    cell <- arrayInd(best, n)
    spent <- spent + price[best]
    if (isTRUE(part$shared)) launch[, cell[2], ] <- 0 else launch[part$cell %in% part$cell[best]] <- 0
    picked <- rbind(picked, cell)
    open[best] <- FALSE
    a <- cell[1]
    # The point also informs its neighbours, whose expected gain is reduced accordingly.
    gain[a, , ] <- gain[a, , ] * (1 - 0.9 * outer(near_p[[a]][, cell[2]], near_s[, cell[3]]))
    value[a, , ] <- worth(a)
  }
}

#' Sort points by launch, and add the points between them that cost less than another launch; for launches that
#' algorithms share, add the cheapest others that together cost less than another launch
#' @noRd
join_launches <- function(part, cells, cost) {
  if (isTRUE(part$shared)) {
    cells <- rbind(cells, ride_along(part, cells, cost))
    return(cells[order(cells[, 1], cells[, 2], cells[, 3]), , drop = FALSE])
  }
  cells <- cells[order(cells[, 1], cells[, 2], cells[, 3]), , drop = FALSE]
  between <- map(seq_len(nrow(cells))[-1], function(i) {
    from <- cells[i - 1, ]
    if (any(from[1:2] != cells[i, 1:2]) || cells[i, 3] - from[3] < 2) return(NULL)
    gap <- cbind(from[1], from[2], seq(from[3] + 1, cells[i, 3] - 1))
    one_cell <- n_distinct(part$cell[rbind(gap, from, cells[i, ])]) == 1
    if (one_cell && all(part$usable[gap]) && sum(cost$point[gap]) <= cost$launch[from[2]]) gap
  })
  cells <- do.call(rbind, c(list(cells), between))
  cells[order(cells[, 1], cells[, 2], cells[, 3]), , drop = FALSE]
}

ride_along <- function(part, cells, cost) {
  open <- part$usable & !known_points(part)
  open[cells] <- FALSE
  others <- map(unique(cells[, 2]), function(p) {
    here <- which(open & slice.index(open, 2) == p, arr.ind = TRUE)
    here <- here[order(cost$point[here]), , drop = FALSE]
    here[cumsum(cost$point[here]) <= cost$launch[p], , drop = FALSE]
  })
  do.call(rbind, others)
}

#' Number of the launch of each point: neighbouring sizes of one algorithm and process count share a launch
#' @noRd
launch_of <- function(cells) {
  if (nrow(cells) < 2) return(seq_len(nrow(cells)))
  step <- diff(cells)
  cumsum(c(TRUE, step[, 1] != 0 | step[, 2] != 0 | step[, 3] != 1))
}

#' Predict every point of the grid, or of other process counts `at`, with the Gaussian process
#'
#' @return List of arrays: mean and sd of each algorithm's own part (NA where it is no candidate), whole (log latency);
#'   and level (count x size: the common part), size and depth (coordinates of the process).
#' @noRd
predict_process <- function(part, study, at = part$grid$counts) {
  grid <- part$grid
  n <- c(length(grid$names), length(at), length(grid$sizes))
  process <- fit_process(part, study)
  place_all <- function(a) process_places(grid, as.matrix(expand.grid(a, seq_len(n[2]), seq_len(n[3]))), at, study)
  level <- matrix(process$middle + shared_covariance(place_all(1), process$from) %*% process$weight, n[2])
  mean <- sd <- whole <- array(NA_real_, n)
  for (a in seq_len(n[1])) {
    # The own part of an algorithm correlates only with the points of that algorithm.
    same <- which(process$from$a == a)
    cross <- own_covariance(place_all(a), map(process$from, function(coordinate) coordinate[same]))
    mean[a, , ] <- cross %*% process$weight[same]
    explained <- rowSums((cross %*% process$inverse[same, same, drop = FALSE]) * cross)
    sd[a, , ] <- process$scale * sqrt(pmax(0.3^2 + 0.4^2 - explained, 1e-6))
    whole[a, , ] <- mean[a, , ] + level
  }
  column <- match(at, grid$counts)
  measured <- known_points(part)[, column, , drop = FALSE]
  measured <- measured & !is.na(measured)
  latency <- grid$latency[, column, , drop = FALSE][measured]
  mean[measured] <- mean[measured] + latency - whole[measured]
  whole[measured] <- latency
  sd[measured] <- 0.01
  # Between two counts of the grid, an algorithm is a candidate if it is one at either.
  below <- pmax(findInterval(at, grid$counts), 1)
  above <- pmin(below + is.na(column), length(grid$counts))
  mean[!(part$usable[, below, , drop = FALSE] | part$usable[, above, , drop = FALSE])] <- NA
  list(
    mean = mean, sd = sd, whole = whole, level = level, size = log2(pmax(grid$sizes, 1)), depth = log_depths(grid, at)
  )
}

#' Fit the Gaussian process to the known points
#' @return List: from (their [process_places()]), inverse (of their covariance), weight, middle (mean log latency),
#'   scale (factor on the standard deviation).
#' @noRd
fit_process <- function(part, study) {
  cell <- which(known_points(part), arr.ind = TRUE)
  latency <- part$grid$latency[cell]
  from <- process_places(part$grid, cell, part$grid$counts, study)
  middle <- mean(latency)
  inverse <- chol2inv(chol(own_covariance(from, from) + shared_covariance(from, from) + diag(0.02^2, nrow(cell))))
  weight <- drop(inverse %*% (latency - middle))
  # Scale the uncertainty by the error of predicting each known process count from the others (squared, over the
  # variance; Rasmussen and Williams 2006, 5.4.2), as if two further counts had exactly the expected error.
  errors <- map_dbl(split(seq_len(nrow(cell)), cell[, 2]), function(i) {
    mean(backsolve(chol(inverse[i, i, drop = FALSE]), weight[i], transpose = TRUE)^2)
  })
  scale <- sqrt((2 + sum(errors)) / (2 + length(errors)))
  list(from = from, inverse = inverse, weight = weight, middle = middle, scale = scale)
}

#' Coordinates of points (rows of indices of algorithm, count and size) in the Gaussian process
#' @noRd
process_places <- function(grid, points, counts, study) {
  processes <- counts[points[, 2]]
  list(
    a = points[, 1], x = log_depths(grid, counts)[points[, 2:1, drop = FALSE]], p = log2(processes),
    s = log2(pmax(grid$sizes, 1))[points[, 3]],
    region = findInterval(processes, default_bounds(study)) * (grid$names[points[, 1]] == "default")
  )
}

log_depths <- function(grid, counts) {
  depths <- map(grid$variants, function(variant) log2(counts * tree_depth(variant, counts)))
  matrix(unlist(depths), length(counts))
}

own_covariance <- function(u, v) {
  same <- outer(u$a, v$a, "==") * ifelse(outer(u$region, v$region, "=="), 1, 0.6)
  near <- exp(-abs(outer(u$x, v$x, "-")) / 2 - abs(outer(u$s, v$s, "-")) / 8)
  same * (0.3^2 * near + 0.4^2)
}

shared_covariance <- function(u, v) 3^2 * exp(-abs(outer(u$p, v$p, "-")) / 10 - abs(outer(u$s, v$s, "-")) / 20)

#' Expected gain from measuring each point: that it is faster than the current choice or, for the choice itself, that
#' the next best is faster
#' @noRd
expected_gain <- function(model) {
  n <- dim(model$mean)
  best <- second <- matrix(Inf, n[2], n[3])
  for (a in seq_len(n[1])) {
    here <- matrix(model$mean[a, , ], n[2])
    here[is.na(here)] <- Inf
    second <- pmin(second, pmax(best, here))
    best <- pmin(best, here)
  }
  gain <- rep(best, each = n[1]) - model$mean
  leads <- which(gain == 0)
  gain[leads] <- rep(best - second, each = n[1])[leads]
  z <- gain / model$sd
  gain <- gain * stats::pnorm(z) + model$sd * stats::dnorm(z)
  gain[!is.finite(gain)] <- 0
  gain
}

#' Expected regret (%): expected gain from a better choice, weighted mean over all process counts and sizes of the parts
#' with a known point; Inf without one
#' @noRd
expected_regret_pct <- function(parts) {
  parts <- Filter(function(part) !is.null(part$model), parts)
  if (length(parts) == 0) return(Inf)
  weight <- c(numeric(), unlist(map(parts, "weight")))
  gain <- c(numeric(), unlist(map(parts, function(part) apply(expected_gain(part$model), 2:3, max))))
  100 * stats::weighted.mean(gain, weight)
}

#' True regret (%) of each choice of the models, and of the default where nothing is known; NA where the true latencies
#' are not known
#'
#' @param truths True latencies of the whole grid, an array for each part.
#' @noRd
true_regret_pct <- function(parts, truths, tie) {
  100 * unlist(map(seq_along(parts), function(i) {
    truth <- truths[[i]]
    if (all(is.na(truth))) return(NA_real_)
    map(seq_len(dim(truth)[2]), function(p) {
      model <- parts[[i]]$model
      picked <- if (is.null(model)) 1L else shortest_path(matrix(model$mean[, p, ], dim(truth)[1]), tie)
      best <- apply(matrix(truth[, p, ], dim(truth)[1]), 2, least_known)
      truth[cbind(picked, p, seq_along(best))] / best - 1
    })
  }))
}

#' The smallest known value; Inf without one
#' @noRd
least_known <- function(values) min(values, Inf, na.rm = TRUE)
