# A program whose collectives are tuned: its account, its measured cells and the decisions for them. Its runs with the
# tuning file are made later; verified.R reports them.

#' The cells of a program with their measurements and decisions
#'
#' @param results List from [read_results()].
#' @return Tibble, a row per cell of [decide_sampled()] that the program uses, largest possible gain first: collective,
#'   processes, size_bytes, algorithm (chosen), default_us, expected_us, weight_pct (largest possible gain from ideal
#'   collectives of this size, of the run time), saved_pct (expected gain of the choice, of the run time: the weight
#'   times the share of the latency that it saves), spread_us (time over which the ranks arrived in the measurement, or
#'   several that successive calls took in turn: `0,0,64`; NA: together), and, if the cell was also measured with ranks
#'   that arrive together: together_algorithm (the fastest; the default unless another one is faster by more than a
#'   tie), together_default_us, together_us.
#' @noRd
decided_cells <- function(results) {
  none <- tibble(
    collective = character(), processes = numeric(), size_bytes = numeric(), algorithm = character(),
    default_us = numeric(), expected_us = numeric(), weight_pct = numeric(), saved_pct = numeric(),
    spread_us = character(), together_algorithm = character(), together_default_us = numeric(), together_us = numeric()
  )
  if (length(results$study$collectives) == 0) return(none)
  points <- read_sampled(results$study)$points
  weights <- distinct(
    points, .data$collective, .data$processes, .data$size_bytes, weight_pct = .data$weight,
    spread_us = .data$arrivals
  )
  decide_sampled(results) |>
    inner_join(weights, by = c("collective", "processes", "size_bytes")) |>
    mutate(saved_pct = .data$weight_pct * (1 - .data$expected_us / .data$default_us)) |>
    left_join(measured_together(results$study), by = c("collective", "processes", "size_bytes")) |>
    select(all_of(names(none))) |>
    bind_rows(none) |>
    arrange(desc(.data$weight_pct))
}

#' Latency of the default and of the fastest algorithm with ranks that arrive together, for cells with spread arrivals
#' @noRd
measured_together <- function(study) {
  path <- file.path(study$folder, "sampling", "synchronised.csv")
  none <- tibble(
    collective = character(), processes = numeric(), size_bytes = numeric(), together_algorithm = character(),
    together_default_us = numeric(), together_us = numeric()
  )
  rows <- if (file.exists(path)) filter(read_rows(path), !is.na(.data$latency_us))
  if (NROW(rows) == 0) return(none)
  name_rows(rows) |>
    group_by(.data$collective, .data$processes, .data$size_bytes, .data$algorithm) |>
    summarise(us = median(.data$latency_us), .groups = "drop_last") |>
    filter(any(.data$algorithm == "default")) |>
    summarise(
      together_default_us = .data$us[.data$algorithm == "default"],
      clear = min(.data$us) < .data$together_default_us * (1 - study$analysis$tie_pct / 100),
      best = if (.data$clear) which.min(.data$us) else which(.data$algorithm == "default"),
      together_algorithm = .data$algorithm[.data$best], together_us = .data$us[.data$best], .groups = "drop"
    ) |>
    select(!c("best", "clear"))
}

tables_program <- function(results) {
  if (length(results$study$collectives) == 0) return(tables_of_accounts(results))
  c(
    tables_of_accounts(results), tables_of_rounds(results),
    list(listed("decided", "cells", decided_cells(results), paste(
      "The cells of the program: the chosen algorithm, the latency of the default and of the choice, the largest",
      "possible gain from ideal (zero-cost) collectives of this size (weight) and the expected gain of the choice",
      "(saved), both in percent of the run time. Where the ranks of the program arrive further apart than the",
      "transfer takes, the cell was measured, and decided, with arrivals spread over the time Spread; several values",
      "were taken by successive calls in turn, in proportion to the program's call sites. Together: ranks arrive at",
      "once."
    )))
  )
}

figures_program <- function(results) {
  if (length(results$study$collectives) == 0) return(figures_of_accounts(results))
  c(
    figures_of_accounts(results),
    list(
      figure("cells", "measured", plot_cells(results), paste(
        "Measured latency of the algorithms in the cells that the program uses (median over",
        "launches), relative to the default. Circle: the choice."
      ), height = 2 + 2 * length(results$study$collectives)),
      figure("decided", "gain", plot_decided(decided_cells(results)), paste(
        "Expected gain of the choices, and the upper bound (gain from ideal, zero-cost collectives), in percent of the",
        "run time."
      ), height = 2 + 0.3 * nrow(decided_cells(results)))
    )
  )
}

label_cell <- function(rows) {
  paste0(
    collective_title(rows$collective),
    ifelse(is.na(rows$size_bytes), "", paste0(", ", label_bytes(rows$size_bytes))), ", ",
    format_count(rows$processes), " ranks"
  )
}

plot_cells <- function(results) {
  keys <- c("collective", "processes", "size_bytes")
  rows <- results$medians |>
    group_by(across(all_of(keys))) |>
    filter(any(.data$algorithm == "default")) |>
    mutate(relative = .data$latency_us / .data$latency_us[.data$algorithm == "default"][1]) |>
    ungroup() |>
    left_join(select(decided_cells(results), all_of(keys), chosen = "algorithm"), by = keys) |>
    mutate(
      panel = paste0(collective_title(.data$collective), ", ", format_count(.data$processes), " ranks"),
      chosen = .data$algorithm == .data$chosen,
      algorithm = factor(.data$algorithm, unique(results$study$algorithms$algorithm))
    )
  sizes <- sort(unique(rows$size_bytes))
  rows$size <- factor(rows$size_bytes, sizes, label_bytes(sizes))
  ggplot(rows, aes(.data$size, .data$relative, colour = .data$algorithm, shape = .data$algorithm)) +
    geom_hline(yintercept = 1, colour = "grey60", linewidth = 0.4) +
    geom_point(size = 1.8, position = position_dodge(width = 0.5)) +
    # Circles for all points, most of them invisible, so that they are dodged like the points.
    geom_point(
      aes(group = .data$algorithm, alpha = as.numeric(.data$chosen %in% TRUE)), size = 4, shape = 1,
      colour = "black", position = position_dodge(width = 0.5)
    ) +
    scale_alpha_identity() +
    facet_wrap(vars(.data$panel), scales = "free", ncol = 1) +
    scale_y_log10("Latency, relative to the default") +
    scale_algorithms_of_all(results, rows$algorithm) +
    labs(title = "Latency of each algorithm in the cells of the program", x = "Message size") + theme_study()
}

plot_decided <- function(cells) {
  rows <- cells |>
    mutate(cell = factor(label_cell(cells), rev(unique(label_cell(cells))))) |>
    pivot_longer(c("weight_pct", "saved_pct"), names_to = "kind", values_to = "pct") |>
    mutate(kind = factor(.data$kind, c("weight_pct", "saved_pct"), c("at most", "expected of the choice")))
  ggplot(rows, aes(.data$pct, .data$cell, fill = .data$kind)) +
    geom_col(width = 0.7, position = position_dodge(width = 0.7)) +
    scale_fill_manual(values = c("at most" = "#999999", "expected of the choice" = "#0072B2")) +
    scale_x_continuous("Share of the run time (%)", expand = expansion(c(0, 0.05))) +
    scale_y_discrete(NULL) +
    labs(title = "Run time that the decisions can save and are expected to save") + theme_study()
}

#' Sentences on a program's account and on the decisions for its cells
#' @noRd
describe_program <- function(results) {
  program <- results$study$program
  if (!is.null(program$failure)) return(paste0(program$label, " could not be traced: ", program$failure, "."))
  accounts <- describe_accounts(results)
  cells <- decided_cells(results)
  changed <- filter(cells, .data$algorithm != "default")
  if (nrow(cells) == 0) return(accounts)
  c(accounts, if (nrow(changed) == 0) {
    "In none of its cells is another algorithm clearly faster than the default."
  } else {
    paste0(
      "In ", nrow(changed), " of its ", nrow(cells), " cells an algorithm other than the default was chosen; ",
      "together, these choices are expected to save ", format_pct(sum(pmax(0, changed$saved_pct))), " of the run time."
    )
  })
}

#' Sentences on the data of a program that its measured collectives do not have
#' @noRd
describe_unlike <- function(results) {
  unlist(map(unname(results$applications), describe_datatypes, unique(decided_cells(results)$collective)))
}

describe_overhead <- function(results) {
  overhead <- results$study$program$overhead
  if (length(overhead) == 0) return(NULL)
  pct <- map_chr(overhead, function(ratio) signed_pct(100 * (ratio - 1)))
  paste0(
    "Tracing changes the run time by ", pct[["ratio"]], " (median over ",
    count_of(results$study$program$runs, "pair of runs", "pairs of runs"), " with and without the trace library; ",
    "interval ", pct[["low"]], " to ", pct[["high"]], ")."
  )
}

#' Draw the runs of a program with and without its tuning file: `tuning/pairs.svg` (and .png); none without runs
#' @noRd
draw_pairs <- function(folder) {
  path <- file.path(folder, "tables", "tuning-pairs.csv")
  figures <- file.path(folder, "tuning", paste0("pairs.", c("svg", "png")))
  unlink(figures)
  if (!file.exists(path)) return(NULL)
  rows <- readr::read_csv(path, show_col_types = FALSE, progress = FALSE)
  if (nrow(rows) == 0) return(NULL)
  words <- c(whole = "the whole command", collectives = "time in collectives (traced runs)")
  rows <- rows |>
    pivot_longer(c("default_s", "tuned_s"), names_to = "file", values_to = "seconds") |>
    mutate(
      part = factor(words[.data$part], words),
      file = factor(.data$file, c("default_s", "tuned_s"), c("without the file", "with it"))
    )
  picture <- ggplot(rows, aes(.data$file, .data$seconds, group = .data$pair)) +
    geom_line(colour = "grey60") +
    geom_point(aes(colour = .data$file), size = 2, show.legend = FALSE) +
    facet_wrap(vars(.data$part), scales = "free_y") +
    scale_colour_manual(values = c("without the file" = "#999999", "with it" = "#0072B2")) +
    scale_y_continuous("Time (s)", limits = c(0, NA)) +
    labs(title = "Time of the program with and without the tuning file", x = NULL) + theme_study()
  for (figure in figures) ggsave(figure, picture, width = 7, height = 4, dpi = 150)
  figures
}

describe_trial <- function(folder) {
  path <- file.path(folder, "tuning", "result.txt")
  if (file.exists(path)) readLines(path, n = 1, encoding = "UTF-8")
}
