# Sampling replayed on a complete grid: the points that it would have measured, and the regret of its decisions.

#' Replay a complete study round by round as if it were sampled
#'
#' The cost assumes one node and OMB's default iterations (1000 + 100 up to 8 KiB, 100 + 10 above).
#'
#' @param results List from [read_results()].
#' @param collective Name of a collective.
#' @param seed Seed of the random first points.
#' @param rounds,first_pct,round_pct,target_regret_pct,startup_s See the keys of `sampling` in config/README.md.
#' @return Tibble, one row per round: seed, share_of_time_pct (of the grid's measurement time), cells_pct (of its
#'   points), expected_regret_pct, geometric_mean_regret_pct and mean_regret_pct (over all cells of the grid, measured
#'   or not), max_regret_pct.
#' @noRd
replay_sampling <- function(results, collective, seed, rounds = 5, first_pct = 1, round_pct = 2, target_regret_pct = 0,
                            startup_s = 0) {
  set.seed(seed)
  counts <- tuning_counts(results$medians, collective)
  rows <- results$medians[results$medians$collective == collective & results$medians$processes %in% counts, ]
  rows <- mutate(rows, nodes = 1, calls = ifelse(coalesce(.data$size_bytes, 0) > 8192, 110, 1100), usable = TRUE)
  complete <- map(split(rows, as.character(rows$mapping)), sampling_part)
  truths <- map(complete, function(part) exp(part$grid$latency))
  parts <- map(complete, function(part) {
    part$grid$latency[] <- NA
    part
  })
  rules <- list(
    first_pct = first_pct, round_pct = round_pct, target_regret_pct = target_regret_pct, budget_node_s = Inf,
    startup_s = startup_s
  )
  price <- function(truth, part) point_cost(utils::modifyList(part, list(model = list(whole = log(truth)))), startup_s)
  costs <- pmap(list(truths, parts), price)
  found <- list()
  for (round in seq_len(rounds)) {
    selected <- select_points(parts, round, rules, results$study)
    if (sum(map_dbl(selected, nrow)) == 0) break
    parts <- pmap(list(parts, selected, truths, costs), measure_points)
    parts <- map(parts, model_part, study = results$study)
    found[[round]] <- judge_round(parts, truths, costs, results$study)
  }
  mutate(bind_rows(found), seed = .env$seed, .before = 1)
}

measure_points <- function(part, cells, truth, cost) {
  part$grid$latency[cells] <- log(truth[cells])
  part$spent <- part$spent + price_of(cells, cost)
  part$model <- NULL
  part
}

judge_round <- function(parts, truths, costs, study) {
  regret <- true_regret_pct(parts, truths, study$analysis$tie_pct / 100)
  tibble(
    share_of_time_pct = 100 * sum(map_dbl(parts, "spent")) / sum(map_dbl(costs, "total")),
    cells_pct = 100 * sum(map_dbl(parts, function(part) sum(known_points(part)))) /
      sum(map_dbl(parts, function(part) sum(part$usable))),
    expected_regret_pct = expected_regret_pct(parts), geometric_mean_regret_pct = geometric_regret(regret),
    mean_regret_pct = mean_known(regret), max_regret_pct = max_known(regret)
  )
}
#' Average of replays with several seeds
#'
#' @param results List from [read_results()].
#' @param collective Name of a collective.
#' @param seeds Seeds of the first points.
#' @return Tibble, one row per start-up time of a launch (0 and 1 s) and round: collective, startup_s,
#'   share_of_time_pct, cells_pct, seeds, geometric_mean_regret_pct and mean_regret_pct (over all cells of the grid,
#'   mean over seeds), sd_over_seeds (of geometric_mean_regret_pct), max_regret_pct (largest of any seed),
#'   expected_regret_pct (estimated by the sampling itself, mean over seeds).
#' @noRd
summarise_sampling <- function(results, collective, seeds = 1:20) {
  one <- function(startup) {
    runs <- parallel::mclapply(seeds, function(seed) replay_sampling(results, collective, seed, startup_s = startup))
    bind_rows(runs) |>
      group_by(.data$seed) |>
      mutate(round = row_number()) |>
      group_by(.data$round) |>
      summarise(
        collective = .env$collective, startup_s = startup, share_of_time_pct = mean(.data$share_of_time_pct),
        cells_pct = mean(.data$cells_pct), seeds = n(), sd_over_seeds = stats::sd(.data$geometric_mean_regret_pct),
        geometric_mean_regret_pct = mean(.data$geometric_mean_regret_pct),
        mean_regret_pct = mean(.data$mean_regret_pct), max_regret_pct = max(.data$max_regret_pct),
        expected_regret_pct = mean(.data$expected_regret_pct)
      ) |>
      select(-"round")
  }
  map_dfr(c(0, 1), one)
}

#' Figure of the regret against the share of measurement time
#'
#' @param results List from [read_results()].
#' @param sampling Tibble from [summarise_sampling()].
#' @return A ggplot.
#' @noRd
plot_sampling <- function(results, sampling) {
  sampling$cost <- ifelse(
    sampling$startup_s == 0, "time of the calls",
    paste("time of the calls and", sampling$startup_s, "s to start each launch")
  )
  # Of the cells of the replays: the whole grid.
  cells <- with_slowdown(
    results$medians, sampling$collective[1], tuning_counts(results$medians, sampling$collective[1])
  )
  default <- 100 * (geometric_mean(cells$slowdown[cells$algorithm == "default"]) - 1)
  ggplot(
    sampling, aes(.data$share_of_time_pct, .data$geometric_mean_regret_pct, colour = .data$cost, fill = .data$cost)
  ) +
    geom_hline(yintercept = default, linetype = "dashed", colour = "grey40") +
    geom_hline(yintercept = 2.5, linetype = "dotted", colour = "grey40") +
    geom_ribbon(
      aes(
        ymin = pmax(0, .data$geometric_mean_regret_pct - .data$sd_over_seeds),
        ymax = .data$geometric_mean_regret_pct + .data$sd_over_seeds
      ),
      alpha = 0.15, colour = NA
    ) +
    geom_line(linewidth = 0.6) +
    geom_point(size = 1.8) +
    scale_colour_manual(values = c("#0072B2", "#D55E00"), aesthetics = c("colour", "fill")) +
    expand_limits(x = 0, y = 0) +
    labs(
      x = "Share of the grid's measurement time (%)", y = "Regret, geometric mean (%)",
      title = "Regret of the model's choice from a part of the measurements"
    ) +
    tag_simulated(results$study) +
    theme_study()
}

#' Replay the sampling of a study: `tables/sampling.csv` and `tuning/sampling.svg` (and .png)
#'
#' The collective is the first with message sizes that was measured with the default and another algorithm.
#'
#' @param results List from [read_results()].
#' @param folder Folder `results/<study>`.
#' @param seeds Seeds.
#' @return Paths.
#' @examples
#' results <- read_results(system.file("extdata", "example", package = "collanalysis"))
#' write_sampling(results, tempfile(), seeds = 1:2)
#' @export
write_sampling <- function(results, folder = results$study$folder, seeds = 1:20) {
  # Imported data may lack the default of a collective.
  decidable <- function(name) length(tuning_counts(results$medians, name)) > 0
  collective <- Find(decidable, collectives_of(results, sized = TRUE))
  if (is.null(collective)) {
    sampling <- tibble(collective = character())
    picture <- ggplot() + theme_void() +
      annotate("text", 0, 0, label = "No collective was measured with its default, so no sampling can be replayed.")
  } else {
    sampling <- summarise_sampling(results, collective, seeds)
    picture <- plot_sampling(results, sampling)
  }
  dir.create(file.path(folder, "tuning"), showWarnings = FALSE, recursive = TRUE)
  figures <- file.path(folder, "tuning", paste0("sampling.", c("svg", "png")))
  for (path in figures) ggsave(path, picture, width = 7, height = 4, dpi = 150)
  c(write_table(sampling, file.path(folder, "tables", "sampling.csv")), figures)
}
