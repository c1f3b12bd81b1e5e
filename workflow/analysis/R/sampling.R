#' Replay a study cell by cell, as if it were measured with as few cells as possible
#'
#' For each mapping: a few random points (process count and size) are measured with all algorithms. Then, in rounds: a
#' Gaussian process over log latency (a part that all algorithms share, and a part of each algorithm, over
#' log2(P x depth of its tree) and log2(size)) predicts every cell with its uncertainty; the cells that are asked for
#' next are those with the largest expected change of a decision, here and at correlated neighbours, per second of
#' measuring.
#' It ends when the expected regret is below `target_pct` or the budget is spent.
#'
#' Time is that of the benchmark's loops: (iterations + warm-up) x latency, with OMB's default iterations (1000 + 100 up
#' to 8 KiB, 100 + 10 above), plus `startup_s` for each launch of a round (an algorithm on a number of processes,
#' whatever its sizes).
#'
#' @param results List from [read_results()].
#' @param collective Name of a collective.
#' @param seed Seed of the first points.
#' @param budgets_pct Share of the grid's measurement time after which each round ends.
#' @param target_pct Stop when the expected mean regret is below.
#' @param startup_s Seconds that each launch costs beside the loops.
#' @return Tibble, one row per round: seed, share_of_time_pct, cells_pct, expected_regret_pct, mean_regret_pct (over all
#'   cells of the grid, measured or not), max_regret_pct.
#' @export
replay_sampling <- function(results, collective, seed, budgets_pct = c(2, 4, 6, 8, 9.8), target_pct = 0,
                            startup_s = 0) {
  set.seed(seed)
  counts <- tuning_counts(results$medians, collective)
  rows <- results$medians[results$medians$collective == collective & results$medians$processes %in% counts, ]
  parts <- map(split(rows, as.character(rows$mapping)), function(part) start_sampling(part, budgets_pct[1], startup_s))
  rounds <- list()
  for (budget in budgets_pct) {
    parts <- map(parts, function(part) ask_cells(part, budget, startup_s, results$study))
    rounds[[length(rounds) + 1]] <- judge_sampling(parts, seed, results$study$analysis$tie_pct / 100)
    if (tail(rounds, 1)[[1]]$expected_regret_pct <= target_pct) break
  }
  bind_rows(rounds)
}

start_sampling <- function(rows, budget, startup_s) {
  grid <- tuning_grid(rows)
  truth <- exp(grid$latency)
  loops <- ifelse(pmax(grid$sizes, 0) > 8192, 110, 1100)
  seconds <- truth * rep(loops, each = prod(dim(truth)[1:2])) * 1e-6
  launches <- sum(apply(is.finite(truth), 1:2, any))
  part <- list(
    grid = grid, truth = truth, seconds = seconds, loops = loops, known = array(FALSE, dim(truth)), spent = 0,
    total = sum(seconds, na.rm = TRUE) + launches * startup_s
  )
  # All algorithms at random points, one from each slice of the sizes, until half of the first budget is spent.
  n <- dim(truth)
  repeat {
    for (s in sample(n[3])) {
      p <- sample(n[2], 1)
      part <- measure_cells(part, cbind(seq_len(n[1]), p, s), startup_s)
      if (part$spent > part$total * budget / 200) return(part)
    }
  }
}

measure_cells <- function(part, cells, startup_s) {
  cells <- cells[is.finite(part$truth[cells]) & !part$known[cells], , drop = FALSE]
  part$known[cells] <- TRUE
  part$spent <- part$spent + sum(part$seconds[cells]) + startup_s * nrow(unique(cells[, 1:2, drop = FALSE]))
  part
}

ask_cells <- function(part, budget, startup_s, study) {
  limit <- part$total * budget / 100
  part$model <- part$model %||% predict_process(part, study)
  picked <- pick_cells(part, limit, startup_s)
  # What a cell takes is known afterwards: the round ends with the cell that reaches its budget.
  took <- cumsum(part$seconds[picked] + startup_s * !duplicated(picked[, 1:2, drop = FALSE]))
  within <- c(TRUE, took < limit - part$spent)[seq_len(nrow(picked))]
  part <- measure_cells(part, picked[within, , drop = FALSE], startup_s)
  part$model <- predict_process(part, study)
  part
}

#' Mean and standard deviation of each algorithm's own part, and the whole log latency, for every cell of the grid
#' @noRd
predict_process <- function(part, study) {
  grid <- part$grid
  n <- dim(grid$latency)
  cell <- which(part$known, arr.ind = TRUE)
  depth <- vapply(grid$names, function(name) log2(grid$counts * tree_depth(name, grid$counts)), numeric(n[2]))
  size <- log2(pmax(grid$sizes, 1))
  at <- function(i) {
    list(a = i[, 1], x = depth[cbind(i[, 2], i[, 1])], p = log2(grid$counts[i[, 2]]), s = size[i[, 3]],
      region = findInterval(grid$counts[i[, 2]], default_bounds(study)) * (grid$names[i[, 1]] == "default"))
  }
  known <- at(cell)
  own <- function(u, v) {
    same <- outer(u$a, v$a, "==") * ifelse(outer(u$region, v$region, "=="), 1, 0.6)
    near <- exp(-abs(outer(u$x, v$x, "-")) / 2 - abs(outer(u$s, v$s, "-")) / 8)
    same * (0.3^2 * near + 0.4^2)
  }
  shared <- function(u, v) {
    3^2 * exp(-abs(outer(u$p, v$p, "-")) / 10 - abs(outer(u$s, v$s, "-")) / 20)
  }
  middle <- mean(grid$latency[cell])
  inverse <- chol2inv(chol(own(known, known) + shared(known, known) + diag(0.02^2, nrow(cell))))
  weight <- drop(inverse %*% (grid$latency[cell] - middle))
  mean <- sd <- whole <- array(NA_real_, n)
  for (a in seq_len(n[1])) {
    target <- as.matrix(expand.grid(a, seq_len(n[2]), seq_len(n[3])))
    to <- at(target)
    cross <- own(to, known)
    mean[target] <- cross %*% weight
    sd[target] <- sqrt(pmax(0.3^2 + 0.4^2 - rowSums((cross %*% inverse) * cross), 1e-6))
    whole[target] <- middle + mean[target] + shared(to, known) %*% weight
  }
  mean[part$known] <- (grid$latency - (whole - mean))[part$known]
  sd[part$known] <- 0.01
  gone <- !is.finite(grid$latency)
  mean[gone] <- NA
  list(mean = mean, sd = sd, whole = whole, size = size, depth = depth)
}

#' Expected loss that measuring each cell could avoid: that it beats the choice, or that the choice loses to the next
#' @noRd
expected_gain <- function(model) {
  gain <- apply(model$mean, 2:3, function(mu) {
    ordered <- sort(mu)
    ifelse(mu == ordered[1], mu - if (length(ordered) > 1) ordered[2] else Inf, ordered[1] - mu)
  })
  z <- gain / model$sd
  gain <- gain * stats::pnorm(z) + model$sd * stats::dnorm(z)
  gain[!is.finite(gain)] <- 0
  gain
}

pick_cells <- function(part, limit, startup_s) {
  model <- part$model
  gain <- expected_gain(model)
  gain[part$known] <- 0
  cost <- exp(model$whole) * rep(part$loops, each = prod(dim(gain)[1:2])) * 1e-6
  near_s <- exp(-abs(outer(model$size, model$size, "-")) / 4)
  near_p <- map(seq_len(dim(gain)[1]), function(a) exp(-abs(outer(model$depth[, a], model$depth[, a], "-"))))
  worth <- function(a) near_p[[a]] %*% matrix(gain[a, , ], dim(gain)[2]) %*% near_s
  open <- !part$known & is.finite(part$truth)
  value <- gain
  for (a in seq_len(dim(gain)[1])) value[a, , ] <- worth(a)
  picked <- matrix(integer(), 0, 3)
  started <- array(FALSE, dim(gain)[1:2])
  spent <- part$spent
  repeat {
    score <- value / (cost + startup_s * rep(!started, dim(gain)[3]))
    score[!open | spent + cost + startup_s * rep(!started, dim(gain)[3]) > limit] <- -Inf
    best <- which.max(score)
    if (!is.finite(score[best]) || score[best] <= 0) return(picked)
    cell <- arrayInd(best, dim(gain))
    spent <- spent + cost[best] + if (started[cell[, 1:2, drop = FALSE]]) 0 else startup_s
    started[cell[, 1:2, drop = FALSE]] <- TRUE
    picked <- rbind(picked, cell)
    open[best] <- FALSE
    a <- cell[1]
    # What this cell tells about its neighbours need not be asked for again.
    gain[a, , ] <- gain[a, , ] * (1 - 0.9 * outer(near_p[[a]][, cell[2]], near_s[, cell[3]]))
    value[a, , ] <- worth(a)
  }
}

judge_sampling <- function(parts, seed, tie) {
  regret <- unlist(map(parts, function(part) {
    best <- apply(part$truth, 2:3, min, na.rm = TRUE)
    map(seq_len(dim(part$truth)[2]), function(p) {
      picked <- shortest_path(matrix(part$model$mean[, p, ], dim(part$truth)[1]), tie)
      part$truth[cbind(picked, p, seq_along(picked))] / best[p, ] - 1
    })
  }))
  tibble(
    seed = seed, share_of_time_pct = 100 * sum(map_dbl(parts, "spent")) / sum(map_dbl(parts, "total")),
    cells_pct = 100 * sum(map_dbl(parts, function(p) sum(p$known))) /
      sum(map_dbl(parts, function(p) sum(is.finite(p$truth)))),
    expected_regret_pct = 100 * mean(unlist(map(parts, function(part) apply(expected_gain(part$model), 2:3, max)))),
    mean_regret_pct = 100 * mean(regret), max_regret_pct = 100 * max(regret)
  )
}

#' Replays from several seeds, averaged
#'
#' @param results List from [read_results()].
#' @param collective Name of a collective.
#' @param seeds Seeds of the first points.
#' @param startups_s Seconds that a launch costs beside its loops, one replay for each.
#' @return Tibble, one row per start-up cost and round: collective, startup_s, share_of_time_pct, cells_pct, seeds,
#'   mean_regret_pct (over all cells of the grid, mean over seeds), sd_over_seeds (of mean_regret_pct), max_regret_pct
#'   (largest of any seed), expected_regret_pct (what the sampling itself expected, mean over seeds).
#' @export
summarise_sampling <- function(results, collective, seeds = 1:20, startups_s = c(0, 1)) {
  one <- function(startup) {
    runs <- parallel::mclapply(seeds, function(seed) replay_sampling(results, collective, seed, startup_s = startup))
    bind_rows(runs) |>
      group_by(.data$seed) |>
      mutate(round = row_number()) |>
      group_by(.data$round) |>
      summarise(
        collective = .env$collective, startup_s = startup, share_of_time_pct = mean(.data$share_of_time_pct),
        cells_pct = mean(.data$cells_pct), seeds = n(), sd_over_seeds = stats::sd(.data$mean_regret_pct),
        mean_regret_pct = mean(.data$mean_regret_pct), max_regret_pct = max(.data$max_regret_pct),
        expected_regret_pct = mean(.data$expected_regret_pct)
      ) |>
      select(-"round")
  }
  map_dfr(startups_s, one)
}

#' Regret against the share of measurement time
#'
#' @param results List from [read_results()].
#' @param sampling Tibble from [summarise_sampling()].
#' @return A ggplot.
#' @export
plot_sampling <- function(results, sampling) {
  sampling$cost <- ifelse(
    sampling$startup_s == 0, "time in the benchmark's loops",
    paste("loops and", sampling$startup_s, "s for each launch")
  )
  regret <- summarise_regret(results, sampling$collective[1], 1)
  default <- regret$mean_regret_pct[regret$policy == "default" & regret$mapping == "all"]
  ggplot(sampling, aes(.data$share_of_time_pct, .data$mean_regret_pct, colour = .data$cost, fill = .data$cost)) +
    geom_hline(yintercept = default, linetype = "dashed", colour = "grey40") +
    geom_hline(yintercept = 2.5, linetype = "dotted", colour = "grey40") +
    geom_ribbon(
      aes(
        ymin = pmax(0, .data$mean_regret_pct - .data$sd_over_seeds), ymax = .data$mean_regret_pct + .data$sd_over_seeds
      ),
      alpha = 0.15, colour = NA
    ) +
    geom_line(linewidth = 0.6) +
    geom_point(size = 1.8) +
    scale_colour_manual(values = c("#0072B2", "#D55E00"), aesthetics = c("colour", "fill")) +
    expand_limits(x = 0, y = 0) +
    labs(
      x = "Share of the grid's measurement time (%)", y = "Mean regret over the whole grid (%)",
      title = "Measuring only what could change a decision"
    ) +
    tag_simulated(results$study) +
    theme_study()
}

#' Replay the sampling of a study: `tables/sampling.csv` and `tuning/sampling.svg` (and .png)
#'
#' @param results List from [read_results()].
#' @param folder Folder `results/<study>`.
#' @param seeds Seeds.
#' @return Paths.
#' @export
write_sampling <- function(results, folder = results$study$folder, seeds = 1:20) {
  collective <- collectives_of(results, sized = TRUE)[1]
  sampling <- summarise_sampling(results, collective, seeds)
  dir.create(file.path(folder, "tuning"), showWarnings = FALSE, recursive = TRUE)
  picture <- plot_sampling(results, sampling)
  figures <- file.path(folder, "tuning", paste0("sampling.", c("svg", "png")))
  for (path in figures) ggsave(path, picture, width = 7, height = 4, dpi = 150)
  c(write_table(sampling, file.path(folder, "tables", "sampling.csv")), figures)
}
