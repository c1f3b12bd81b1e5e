# Sampled studies, which measure only the points that are needed, in rounds: select_points() (sampling.R) selects them,
# collstudy/sources/sampled.py turns them into cells. Files: `sampling/grid.csv` (all points of the grid),
# `sampling/round-<n>/selected.csv` (the points that a round selected) and `sampling/round-<n>/measurements.csv` (all
# measurements up to the end of the round).

grid_columns <- list(
  collective = "c", algorithm = "c", parameters = "c", mpi = "c", mapping = "c", nodes = "d", processes = "d",
  size_bytes = "d", iterations = "d", warmup = "d", weight = "d", start = "c", spread_us = "c", cell = "d"
)
point_keys <- c("collective", "algorithm", "parameters", "mapping", "nodes", "processes", "size_bytes")

#' Read the grid of a sampled study with its measurements
#'
#' @param study Study from [read_study()].
#' @param rounds Number of rounds that have selected points.
#' @param measurements Path of the measurements; if the file does not exist, nothing is measured yet.
#' @return List: `points` (tibble, one row per row of grid.csv: collective, algorithm, mapping as in [name_rows()],
#'   nodes, processes, size_bytes, weight, calls (of all launches of a cell), arrivals (the spread or spreads of
#'   arrivals of grid.csv), spread_us (their mean), selected (the first round that selected
#'   it, or NA), latency_us, low_us, high_us, launches, usable (FALSE: selected but without a measurement)), `launches`
#'   (tibble: collective, mapping, id, round, node_s; one row for each collective of a shared launch), `startup_s`
#'   (start-up time of all launches of a cell: measured if the launches have it, else `sampling.startup_s`).
#' @noRd
read_sampled <- function(study, rounds = study$sampling$rounds,
                         measurements = file.path(study$folder, "measurements.csv")) {
  folder <- file.path(study$folder, "sampling")
  types <- do.call(readr::cols_only, grid_columns)
  grid <- readr::read_csv(file.path(folder, "grid.csv"), col_types = types, lazy = FALSE, progress = FALSE)
  least <- study$provenance$launches$min %||% 1
  points <- name_rows(grid) |>
    mutate(
      calls = .data$iterations + .data$warmup, selected = NA_real_, arrivals = .data$spread_us,
      spread_us = mean_spread(.data$arrivals)
    )
  for (round in seq_len(rounds)) {
    path <- file.path(folder, paste0("round-", round), "selected.csv")
    # The rounds end with the first that selects nothing: files of later rounds are left from an earlier run.
    if (!file.exists(path)) break
    keys <- do.call(readr::cols_only, grid_columns[point_keys])
    selected <- readr::read_csv(path, col_types = keys, progress = FALSE)
    if (nrow(selected) == 0) break
    at <- vctrs::vec_match(selected[point_keys], grid[point_keys])
    at <- at[!is.na(at) & is.na(points$selected[at])]
    points$selected[at] <- round
  }
  rows <- if (file.exists(measurements)) filter(read_rows(measurements), !is.na(.data$latency_us)) else mutate(
    grid[0, ], launch = integer(), latency_us = numeric(), min_latency_us = numeric(), max_latency_us = numeric(),
    cell = character(), seconds = numeric(), round = character()
  )
  at <- vctrs::vec_match(rows[point_keys], grid[point_keys])
  rows <- rows[!is.na(at), ]
  at <- at[!is.na(at)]
  launched <- c("cell", "launch", "latency_us", "min_latency_us", "max_latency_us")
  launched <- bind_cols(points[at, cell_keys], rows[launched])
  medians <- select(
    summarise_launches(launched), all_of(cell_keys), "launches", "latency_us", "low_us", "high_us", "series_error"
  )
  points <- left_join(points, medians, by = cell_keys) |>
    mutate(usable = is.na(.data$selected) | !is.na(.data$latency_us))
  launches <- summarise_cost(bind_cols(
    points[at, c("collective", "mapping", "nodes", "processes", "selected", "calls", "start", "spread_us")],
    rows[c("cell", "launch", "latency_us", "seconds")], order = rows$round
  ))
  # Cells with wide intervals get more launches than the minimum; the same is assumed for cells not yet measured.
  repeats <- max(least, mean(medians$launches), na.rm = TRUE)
  points$calls <- points$calls * repeats
  startup <- median(launches$startup_s, na.rm = TRUE)
  startup <- if (is.na(startup)) study$sampling$startup_s else startup
  launches$node_s <- launches$nodes * coalesce(launches$seconds, launches$loops_s + startup)
  list(points = points, launches = launches, startup_s = startup * repeats)
}

#' Mean of the spreads (us) that successive calls take in turn (`20`, `0,0,64`); NA without a spread
#' @noRd
mean_spread <- function(arrivals) map_dbl(strsplit(arrivals, ",", fixed = TRUE), function(us) mean(as.numeric(us)))

#' Cost of each launch: time in loops (timed and untimed calls x latency), and start-up time if it is known
#'
#' Cells that share a launch share its time and have the same order.
#' @noRd
summarise_cost <- function(rows) {
  rows |>
    mutate(loop_us = .data$calls * (.data$latency_us + coalesce(.data$spread_us, 0))) |>
    group_by(across(all_of(c(
      "collective", "mapping", "nodes", "processes", "start", "order", "cell", "launch"
    )))) |>
    summarise(
      round = max(0, .data$selected), loops_s = sum(.data$loop_us) * 1e-6,
      seconds = .data$seconds[1], .groups = "drop"
    ) |>
    mutate(
      id = ifelse(.data$start == "shared", paste(.data$processes, .data$order), paste(.data$cell, .data$launch))
    ) |>
    group_by(.data$id) |>
    mutate(all_s = sum(.data$seconds), all_loops_s = sum(.data$loops_s)) |>
    group_by(.data$collective, .data$mapping, .data$nodes, .data$id, .data$all_s, .data$all_loops_s) |>
    summarise(
      round = max(0, .data$round), loops_s = sum(.data$loops_s), seconds = sum(.data$seconds), .groups = "drop"
    ) |>
    mutate(startup_s = pmax(0, .data$all_s - .data$all_loops_s))
}

#' The parts of a sampled study ([sampling_part()]) in their state after a round, named by collective and mapping
#' @noRd
parts_after <- function(sampled, round = Inf) {
  points <- sampled$points
  late <- is.na(points$selected) | points$selected > round
  points[late, c("latency_us", "low_us", "high_us", "launches")] <- NA
  points$usable <- points$usable | late
  points$row <- seq_len(nrow(points))
  map(split(points, paste(points$collective, points$mapping, sep = "\r")), function(rows) {
    launches <- semi_join(sampled$launches, rows, by = c("collective", "mapping"))
    part <- sampling_part(rows, sum(launches$node_s[launches$round <= round]))
    row <- put_on_grid(part$grid, rows, rows$row)
    c(part, list(collective = rows$collective[1], mapping = rows$mapping[1], row = row))
  })
}

sampling_rules <- function(sampling, startup_s) {
  list(
    first_pct = sampling$first_pct, round_pct = sampling$round_pct, target_regret_pct = sampling$target_regret_pct,
    budget_node_s = 60 * (sampling$budget_node_minutes %||% Inf), startup_s = startup_s
  )
}

#' Write the points that a round of a sampled study selects: `sampling/round-<round>/selected.csv`
#'
#' No points are selected for collectives and mappings that allow no decision (no default, or no other algorithm).
#'
#' @param folder Folder `results/<study>` with `study.json` and `sampling/`.
#' @param round Number of the round; the previous round must be measured.
#' @return The path.
#' @examples
#' folder <- file.path(tempdir(), "sampled")
#' dir.create(file.path(folder, "sampling"), recursive = TRUE)
#' example <- system.file("extdata", "example", package = "collanalysis")
#' study <- jsonlite::read_json(file.path(example, "study.json"))
#' study$sampling <- list(
#'   rounds = 3, first_pct = 10, round_pct = 10, target_regret_pct = 0.5, startup_s = 1, seed = 1
#' )
#' jsonlite::write_json(study, file.path(folder, "study.json"), auto_unbox = TRUE)
#' grid <- read.csv(file.path(example, "measurements.csv"))
#' grid$iterations <- 100
#' grid$warmup <- 10
#' grid$weight <- 1
#' grid$start <- "own"
#' grid$spread_us <- NA
#' grid$cell <- seq_len(nrow(grid))
#' write.csv(grid, file.path(folder, "sampling", "grid.csv"), row.names = FALSE, na = "")
#' read.csv(write_selected(folder, 1))
#' @export
write_selected <- function(folder, round) {
  study <- read_study(folder)
  where <- function(round, file) file.path(folder, "sampling", paste0("round-", round), file)
  sampled <- read_sampled(study, round - 1, where(round - 1, "measurements.csv"))
  parts <- Filter(function(part) is.null(cannot_decide(part$grid)), parts_after(sampled))
  set.seed(study$sampling$seed)
  selected <- select_points(parts, round, sampling_rules(study$sampling, sampled$startup_s), study)
  rows <- unlist(map(seq_along(parts), function(i) parts[[i]]$row[selected[[i]]]))
  # As text, so that numbers keep the form in which Python wrote them (100000, not 1e5).
  text <- readr::cols(.default = "c")
  grid <- readr::read_csv(file.path(folder, "sampling", "grid.csv"), col_types = text, progress = FALSE)
  write_table(grid[rows, point_keys], where(round, "selected.csv"))
}

#' Decisions of a sampled study, as in [decide_tuning()] but with the model's predictions at points without measurements
#' @noRd
decide_sampled <- function(results) {
  study <- results$study
  sampled <- read_sampled(study)
  found <- map(unname(parts_after(sampled)), function(part) {
    at <- fill_counts(part$grid$counts)
    part <- model_part(part, study)
    shape <- c(length(part$grid$names), length(at), length(part$grid$sizes))
    unknown <- list(relative = array(NA_real_, shape), level = matrix(NA_real_, shape[2], shape[3]))
    model <- if (!is.null(part$model)) predict_process(part, study, at)
    predicted <- if (is.null(model)) unknown else list(relative = model$mean, level = model$level)
    found <- decide_mapping(part$grid, part$collective, part$mapping, at, study, predicted)
    at_grid <- cbind(match(found$processes, part$grid$counts), match(coalesce(found$size_bytes, -1), part$grid$sizes))
    known <- function(names) known_points(part)[cbind(match(names, part$grid$names), at_grid)] %in% TRUE
    mutate(found, basis = ifelse(known(.data$algorithm) & known("default"), "measured", "interpolated"))
  })
  with_nodes(bind_rows(no_decisions(), found), sampled$points, study)
}

#' Points and cost of each round, and regret of the choice after it
#'
#' @param results List from [read_results()] of a sampled study.
#' @return Tibble, one row per round that selected points: round, points (algorithm x processes x size, in this round),
#'   launches, node_minutes; cumulative: points_pct (of the grid), share_of_time_pct (of the cost of the whole grid),
#'   expected_regret_pct (by the model); over the cells of the grid in the complete study that `analysis.compare` names
#'   (NA without one), against the best of the grid's algorithms: geometric_mean_regret_pct, mean_regret_pct,
#'   max_regret_pct, default_geometric_mean_regret_pct.
#' @noRd
summarise_rounds <- function(results) {
  study <- results$study
  sampled <- read_sampled(study)
  complete <- read_compared(results)$medians %||% results$medians[0, ]
  none <- tibble(
    round = integer(), points = integer(), launches = integer(), node_minutes = numeric(), points_pct = numeric(),
    share_of_time_pct = numeric(), expected_regret_pct = numeric(),
    geometric_mean_regret_pct = numeric(), mean_regret_pct = numeric(), max_regret_pct = numeric(),
    default_geometric_mean_regret_pct = numeric()
  )
  rounds <- sort(unique(sampled$points$selected))
  bind_rows(none, map(rounds, function(round) {
    parts <- Filter(function(part) is.null(cannot_decide(part$grid)), parts_after(sampled, round))
    parts <- map(parts, model_part, study = study)
    truths <- map(parts, function(part) {
      rows <- filter(complete, .data$collective == part$collective, .data$mapping == part$mapping)
      put_on_grid(part$grid, rows, rows$latency_us)
    })
    costs <- pmap(list(parts, truths), function(part, truth) {
      if (!anyNA(truth)) part$model <- list(whole = log(truth))
      point_cost(part, sampled$startup_s)
    })
    judged <- judge_round(parts, truths, costs, study)
    mine <- filter(sampled$launches, .data$round == .env$round)
    transmute(judged,
      round = round, points = sum(sampled$points$selected %in% round), launches = n_distinct(mine$id),
      node_minutes = sum(mine$node_s) / 60, points_pct = .data$cells_pct, .data$share_of_time_pct,
      .data$expected_regret_pct, .data$geometric_mean_regret_pct, .data$mean_regret_pct, .data$max_regret_pct,
      default_geometric_mean_regret_pct = geometric_regret(unlist(map(truths, function(truth) {
        100 * (truth[1, , ] / apply(truth, 2:3, least_known) - 1)
      })))
    )
  }))
}

tables_of_rounds <- function(results) {
  list(listed(
    "sampling", "rounds", summarise_rounds(results), paste(
      "Points selected by each round and their cost. Shares of points and time are cumulative, in percent of the whole",
      "grid. The expected regret is the model's estimate;", regret_note(results)
    )
  ))
}

regret_note <- function(results) {
  name <- results$study$analysis$compare$study
  if (is.null(read_compared(results))) return("the true regret is unknown, because no other study has the whole grid.")
  paste0(
    "the other columns give the true regret of the model's choice over the cells of the grid in the complete study ",
    name, " (geometric mean, arithmetic mean, largest), and that of the default (geometric mean)."
  )
}

figures_of_rounds <- function(results) {
  rounds <- summarise_rounds(results)
  if (nrow(rounds) == 0) return(list())
  list(figure(
    "sampling", "regret", plot_rounds(results, rounds), paste(
      "Regret after each round against the cost spent, in percent of the cost of the whole grid. Dotted: the target.",
      if (is.null(read_compared(results))) "The true regret is unknown, because no other study has the whole grid." else
        paste0("True: over the cells of the grid in the complete study ", results$study$analysis$compare$study, ".")
    ), width = 7, height = 4
  ))
}

#' Figure of the regret after each round against the cost spent
#'
#' @param results List from [read_results()].
#' @param rounds Tibble from [summarise_rounds()].
#' @return A ggplot.
#' @noRd
plot_rounds <- function(results, rounds) {
  words <- c(
    expected_regret_pct = "expected by the model", geometric_mean_regret_pct = "true, of the model's choice",
    default_geometric_mean_regret_pct = "true, of the default"
  )
  rows <- pivot_longer(rounds[c("share_of_time_pct", names(words))], names(words)) |>
    filter(!is.na(.data$value)) |>
    mutate(what = factor(words[.data$name], words))
  ggplot(rows, aes(.data$share_of_time_pct, .data$value, colour = .data$what)) +
    geom_hline(yintercept = results$study$sampling$target_regret_pct, linetype = "dotted", colour = "grey40") +
    geom_line(linewidth = 0.6) +
    geom_point(size = 1.8) +
    scale_colour_manual(values = setNames(c("#0072B2", "#D55E00", "grey40"), words)) +
    expand_limits(x = 0, y = 0) +
    labs(
      x = "Share of the grid's cost (%)", y = "Regret, geometric mean (%)", colour = NULL,
      title = "Regret of the model's choice from a part of the grid"
    ) +
    tag_simulated(results$study) +
    theme_study()
}

#' Sentences on the cost of sampling in rounds and on the regret that it reached
#'
#' @param results List from [read_results()] of a sampled study.
#' @return Character vector.
#' @noRd
describe_rounds <- function(results) {
  study <- results$study
  rounds <- results$tables[["sampling-rounds"]] %||% summarise_rounds(results)
  if (nrow(rounds) == 0) return("No round selected points, because no decision was open.")
  last <- tail(rounds, 1)
  spent <- sum(rounds$node_minutes)
  ended <- if (last$expected_regret_pct <= study$sampling$target_regret_pct) {
    paste0("which is not above the target of ", format_number(study$sampling$target_regret_pct), " %")
  } else if (spent >= (study$sampling$budget_node_minutes %||% Inf)) {
    paste0("and the budget of ", format_number(study$sampling$budget_node_minutes), " node-minutes was spent")
  } else {
    "and the limit of rounds or cost was reached"
  }
  c(
    paste0(
      "In ", count_of(nrow(rounds), "round"), " ", format_number(last$points_pct),
      " % of the grid's points were ",
      if (study$simulated) "simulated" else "measured", ", in ", sum(rounds$launches), " launches that cost ",
      format_number(spent), " node-minutes (", format_number(last$share_of_time_pct),
      " % of the cost of the whole grid). The expected regret was then ", format_pct(last$expected_regret_pct),
      ", ", ended, "."
    ),
    describe_unaffordable(study),
    if (!is.na(last$geometric_mean_regret_pct)) paste0(
      "Over the cells of the grid in the complete study ", study$analysis$compare$study,
      ", the model's choice is then ", format_pct(last$geometric_mean_regret_pct),
      " slower than the best of the grid's algorithms (geometric mean; arithmetic mean ",
      format_pct(last$mean_regret_pct), ", at most ", format_pct(last$max_regret_pct),
      "), the default ", format_pct(last$default_geometric_mean_regret_pct), "."
    )
  )
}

#' A sentence on the collectives for which the budget did not suffice; NULL if there are none
#' @noRd
describe_unaffordable <- function(study) {
  parts <- Filter(function(part) is.null(cannot_decide(part$grid)), parts_after(read_sampled(study)))
  # Points that were selected and have no measurement are not usable.
  untried <- function(part) !any(known_points(part)) && all(part$usable | is.na(part$cell))
  left <- unique(map_chr(Filter(untried, parts), "collective"))
  if (is.null(study$sampling$budget_node_minutes) || length(left) == 0) return(NULL)
  paste0("Not measured, because the budget did not suffice: ", paste(collective_word(left), collapse = ", "), ".")
}

describe_rounds_answer <- function(results) paste0(study_name(results), ": ", lower_first(describe_rounds(results)))
