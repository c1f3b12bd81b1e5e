# Figures of collectives.

#' Latency against the number of processes, one panel per message size, one colour per algorithm ([zampar2024],
#' Figures 1-3)
#'
#' @param results List from [read_results()].
#' @param collective Name of a collective with message sizes.
#' @param mapping The mapping to show.
#' @return A ggplot.
#' @noRd
plot_processes <- function(results, collective, mapping) {
  rows <- rows_of_curves(results, collective, mapping)
  rows <- filter(rows, .data$size_bytes %in% shown_sizes(results, rows)) |> droplevels() |> drawn_counts()
  ggplot(rows, aes(.data$processes, .data$latency_us, colour = .data$algorithm, shape = .data$algorithm)) +
    layer_boundaries(results, rows, collective) +
    layer_points(rows) +
    facet_wrap(vars(size_factor(.data$size_bytes)), scales = "free_y", ncol = 2) +
    scale_algorithm(results, collective, rows$algorithm) +
    scale_x_processes(rows$processes) +
    scale_y_latency_log() +
    labs(title = paste0(
      capitalised(collective_word(collective)), ": latency against processes, mapped ",
      label_mapping(mapping, results$study)
    )) +
    tag_simulated(results$study) + theme_study()
}

#' Few counts over a wide range, such as 4 to 2048, are apart on a logarithmic axis alone
#' @noRd
scale_x_processes <- function(processes) {
  counts <- unique(processes)
  if (length(counts) <= 12 && max(counts) >= 16 * min(counts)) return(scale_x_processes_log(counts))
  scale_x_continuous("Processes", breaks = process_breaks)
}

process_breaks <- function(limits) {
  step <- c(1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024)
  step <- step[which(diff(limits) / step <= 9)[1]]
  if (is.na(step)) scales::breaks_extended()(limits) else seq(0, limits[2], step)
}

#' One algorithm over mappings: latency against processes, rows algorithms, columns sizes ([zampar2024], Figure 4;
#' 7 without sizes)
#'
#' @inheritParams plot_processes
#' @return A ggplot.
#' @noRd
plot_mappings <- function(results, collective) {
  rows <- rows_of_mappings(results, collective)
  sized <- !anyNA(rows$size_bytes)
  if (sized) rows <- filter(rows, .data$size_bytes %in% mapped_sizes(results, rows))
  rows <- drawn_counts(rows, if (sized) most_in_quarter else most_in_half)
  rows <- mutate(rows,
    panel = factor(
      label_algorithm(as.character(.data$algorithm), results$study, .env$collective),
      label_algorithm(levels(.data$algorithm), results$study, .env$collective)
    ),
    size = if (sized) size_factor(.data$size_bytes)
  )
  ggplot(rows, aes(.data$processes, .data$latency_us, colour = .data$mapping, shape = .data$mapping)) +
    layer_points(rows) +
    (if (sized) facet_wrap(vars(.data$panel, .data$size), scales = "free_y", ncol = n_distinct(rows$size),
      labeller = single_line)
     else facet_wrap(vars(.data$panel), scales = "free_y", ncol = 2)) +
    scale_mapping(results$study, rows$mapping) +
    scale_x_processes(rows$processes) +
    (if (sized) scale_y_latency_log() else scale_y_continuous("Latency (\u00b5s)", limits = c(0, NA))) +
    labs(title = paste0(capitalised(collective_word(collective)), ": each algorithm under each mapping")) +
    tag_simulated(results$study) + theme_study()
}

single_line <- function(labels) label_value(labels, multi_line = FALSE)

#' Latency of a collective without sizes against processes, one panel per mapping ([zampar2024], Figure 6)
#'
#' @inheritParams plot_processes
#' @param collective Name of a collective without message sizes.
#' @return A ggplot.
#' @noRd
plot_processes_unsized <- function(results, collective) {
  rows <- drawn_counts(rows_to_fit(results, collective), most_in_quarter)
  # On a linear axis the slowest algorithm would flatten the others.
  most <- map_dbl(split(rows$latency_us, as.character(rows$algorithm)), max)
  apart <- length(most) > 0 && max(most) > 5 * min(most)
  ggplot(rows, aes(.data$processes, .data$latency_us, colour = .data$algorithm, shape = .data$algorithm)) +
    layer_boundaries(results, rows, collective) +
    layer_points(rows) +
    facet_wrap(vars(.data$mapping), labeller = labeller(.default = mapping_labels(results$study))) +
    scale_algorithm(results, collective, rows$algorithm) +
    scale_x_processes(rows$processes) +
    (if (apart) scale_y_latency_log() else scale_y_continuous("Latency (\u00b5s)", limits = c(0, NA))) +
    labs(title = paste0(capitalised(collective_word(collective)), ": latency against processes")) +
    tag_simulated(results$study) + theme_study()
}

#' Default minus best of the others against processes ([zampar2024], Figure 8)
#'
#' @inheritParams plot_processes_unsized
#' @return A ggplot.
#' @noRd
plot_difference <- function(results, collective) {
  rows <- summarise_differences(results, collective) |>
    mutate(
      mapping = mapping_factor(.data$mapping, results$study, .env$collective),
      best = algorithm_factor(.data$best, results$study, .env$collective)
    )
  ggplot(rows, aes(.data$processes, .data$difference_us)) +
    layer_boundaries(results, rows, collective) +
    geom_hline(yintercept = 0, linewidth = 0.4) +
    geom_segment(aes(xend = .data$processes, yend = 0), colour = "grey60", linewidth = 0.3) +
    geom_point(aes(colour = .data$best, shape = .data$best), size = 1.7) +
    facet_wrap(vars(.data$mapping), labeller = labeller(.default = mapping_labels(results$study))) +
    scale_algorithm(results, collective, rows$best) +
    scale_x_processes(rows$processes) +
    scale_y_continuous("Default \u2212 best of the others (\u00b5s)") +
    labs(
      title = title_count(collective, "the default is slower than the best of the others", rows$difference_us > 0),
      subtitle = "Above zero the default is slower; colour: the best of the others"
    ) +
    tag_simulated(results$study) + theme_study()
}

form_words <- c(
  linear = "a straight line", spline = "a degree-1 spline", log_linear = "a logarithm and a straight line"
)

#' A fitted form beside the data ([zampar2024], Figures 9-11)
#'
#' @inheritParams plot_processes_unsized
#' @param algorithm Name of an algorithm.
#' @param form "linear", "spline" or "log_linear".
#' @return A ggplot; the ribbon is the 95 % confidence interval of the fitted mean.
#' @noRd
plot_fit <- function(results, collective, algorithm, form) {
  knots <- results$study$analysis$barrier_tree_knots
  rows <- filter(rows_to_fit(results, collective), .data$algorithm == .env$algorithm) |> droplevels()
  lines <- rows |>
    group_by(.data$mapping) |>
    group_modify(function(data, key) fitted_line(data, form, knots)) |>
    ungroup()
  rows <- drawn_counts(rows)
  colour <- colours_of(results$study, collective, algorithm)[[1]]
  ggplot(rows, aes(.data$processes, .data$latency_us)) +
    geom_ribbon(aes(ymin = .data$low, ymax = .data$high), lines, alpha = 0.18, fill = colour) +
    geom_line(data = lines, colour = colour, linewidth = 0.8) +
    layer_points(rows, line = FALSE) +
    facet_wrap(vars(.data$mapping), labeller = labeller(.default = mapping_labels(results$study))) +
    scale_x_processes(rows$processes) +
    scale_y_continuous("Latency (\u00b5s)") +
    labs(title = paste0(
      capitalised(collective_word(collective)), ", ", label_algorithm(algorithm, results$study, collective), ": ",
      form_words[[form]]
    )) +
    tag_simulated(results$study) + theme_study()
}

fitted_line <- function(data, form, knots) {
  fit <- fit_barrier(data, form, knots)
  at <- tibble(processes = sort(unique(c(seq(min(data$processes), max(data$processes), length.out = 100), knots))))
  at <- filter(at, .data$processes >= min(data$processes), .data$processes <= max(data$processes))
  band <- as_tibble(predict(fit, at, interval = "confidence"))
  tibble(processes = at$processes, latency_us = band$fit, low = band$lwr, high = band$upr)
}

#' Latency against message size, rows process counts, columns mappings ([zampar2024], Figure 12); where mappings have
#' different process counts, a panel for each pair that was measured
#'
#' @inheritParams plot_processes
#' @return A ggplot with logarithmic axes.
#' @noRd
plot_sizes <- function(results, collective) {
  rows <- rows_of_sizes(results, collective)
  rotated <- n_distinct(rows$mapping, rows$processes) > 1
  label <- mapping_labels(results$study)
  panels <- arrange(distinct(rows, .data$processes, .data$mapping), .data$processes, .data$mapping)
  label_panel <- function(processes, mapping) paste0(label_processes(processes), ", ", label(mapping))
  rows$panel <- factor(
    label_panel(rows$processes, rows$mapping), label_panel(panels$processes, panels$mapping)
  )
  ggplot(rows, aes(.data$size_bytes, .data$latency_us, colour = .data$algorithm, shape = .data$algorithm)) +
    layer_points(rows) +
    (if (is_grid(panels)) facet_grid(
      vars(.data$processes), vars(.data$mapping), scales = "free_y",
      labeller = labeller(processes = label_processes, mapping = label)
    ) else facet_wrap(vars(.data$panel), scales = "free_y", ncol = min(3, nrow(panels)))) +
    scale_algorithm(results, collective, rows$algorithm) +
    scale_x_size() +
    scale_y_latency_log() +
    labs(title = paste0(capitalised(collective_word(collective)), ": latency against message size")) +
    tag_simulated(results$study) + theme_study() +
    theme(strip.text.y = element_text(hjust = 0.5)) +
    (if (rotated) theme(axis.text.x = element_text(angle = 45, hjust = 1)))
}

label_processes <- function(processes) paste(processes, "processes")

#' Process counts that nearly all pairs of algorithm and mapping (but the excluded ones) have; without that of two
#' processes, where all algorithms send the same messages, if there are others
#'
#' Nearly all: three quarters of the most; an algorithm that another author measured elsewhere must not decide alone.
#' @noRd
common_counts <- function(rows, excludes = character()) {
  competing <- filter(rows, !.data$algorithm_name %in% excludes)
  if (nrow(competing) > 0) rows <- competing
  have <- count(distinct(rows, .data$algorithm, .data$mapping, .data$processes), .data$processes)
  counts <- sort(have$processes[have$n >= 0.75 * max(have$n)])
  if (any(counts > 2)) counts[counts > 2] else counts
}

#' How much slower or faster than the best of the others the default is, in every cell
#'
#' @inheritParams plot_processes
#' @return A ggplot.
#' @noRd
plot_default_map <- function(results, collective) {
  rows <- summarise_differences(results, collective) |>
    mutate(
      mapping = mapping_factor(.data$mapping, results$study, .env$collective),
      pct = 100 * (.data$default_us / .data$best_us - 1)
    )
  rows$size_bytes <- drawn_sizes(rows)
  limit <- max(10, min(100, ceiling(quantile(abs(rows$pct), 0.98, names = FALSE) / 10) * 10))
  ggplot(rows, aes(cell_axis(.data$processes), cell_axis(.data$size_bytes), fill = .data$pct)) +
    geom_tile() +
    facet_cells(results, rows) +
    scale_fill_gradient2(
      "Default against the best of the others", low = "#0072B2", mid = "#F7F7F7", high = "#D55E00",
      limits = c(-limit, limit),
      oob = scales::squish, labels = function(x) paste0(ifelse(x > 0, "+", ""), x, " %"),
      guide = guide_colourbar(title.position = "top", title.hjust = 0.5, barwidth = 16, barheight = 0.6)
    ) +
    scale_cells() +
    labs(title = title_count(collective, "the default is more than 5 % slower", rows$pct > 5)) +
    tag_simulated(results$study) + theme_study() + theme_cells()
}

cell_axis <- function(values) factor(values, sort(unique(values)))

scale_cells <- function() {
  list(
    scale_x_discrete("Processes", breaks = thinned(8), expand = c(0, 0)),
    scale_y_discrete(
      "Message size", breaks = thinned(11), labels = function(x) label_bytes(as.numeric(x)), expand = c(0, 0)
    )
  )
}

thinned <- function(most) {
  function(values) values[(seq_along(values) - 1) %% ceiling(length(values) / most) == 0]
}

theme_cells <- function() {
  theme(
    panel.grid.major = element_blank(), legend.title = element_text(size = rel(0.85)),
    legend.key.width = grid::unit(2, "lines")
  )
}

#' Decision map: the fastest algorithm of each cell, ties marked
#'
#' @inheritParams plot_processes
#' @return A ggplot. Full colour: the fastest algorithm, alone. Pale with a dot: tied; the dot has the colour of the
#'   default where the default is among the tied, else of the next algorithm. A map with too many columns has no dots.
#'   Without sizes the map has one row per mapping.
#' @noRd
plot_decision <- function(results, collective) {
  rows <- decision_rows(results, collective)
  sized <- !anyNA(rows$size_bytes)
  if (sized) rows$size_bytes <- drawn_sizes(rows)
  dotted <- n_distinct(rows$processes) <= most_dotted
  y <- if (sized) cell_axis(rows$size_bytes) else factor(rows$mapping, rev(levels(rows$mapping)))
  ggplot(mutate(rows, y = y), aes(cell_axis(.data$processes), .data$y)) +
    geom_tile(aes(fill = .data$winner, alpha = .data$mate != ""), colour = if (sized) NA else "white") +
    (if (dotted) geom_point(
      aes(colour = .data$mate), function(data) mutate_mate(data, levels(rows$winner)), size = if (sized) 0.75 else 2.2
    )) +
    (if (sized) facet_cells(results, rows)) +
    scale_algorithm(results, collective, rows$winner, c("fill", "colour")) +
    scale_alpha_manual(values = c("FALSE" = 1, "TRUE" = 0.42), guide = "none") +
    guides(colour = "none") +
    scale_x_discrete("Processes", breaks = thinned(if (sized) 8 else 24), expand = c(0, 0)) +
    (if (sized) scale_cells()[[2]] else scale_y_discrete(
      NULL, labels = mapping_labels(results$study), expand = c(0, 0)
    )) +
    labs(
      title = title_decision(rows, collective),
      subtitle = paste0("Colour: the fastest algorithm; pale", if (dotted) {
        " with a dot: tied, the colour of the dot shows with which (the default first)"
      } else {
        ": tied with at least one other algorithm"
      })
    ) +
    tag_simulated(results$study) + theme_study() + theme_cells() + theme(legend.title = element_blank())
}

#' "Broadcast: the default is slower in 12 of 40 cells"
#' @noRd
title_count <- function(collective, finding, yes) {
  paste0(
    capitalised(collective_word(collective)), ": ", finding, " in ", format_number(sum(yes), 6), " of ",
    format_number(length(yes), 6), " cells"
  )
}

title_decision <- function(rows, collective) {
  known <- !is.na(rows$default_is)
  if (!any(known)) return(paste0(capitalised(collective_word(collective)), ": fastest algorithm of each cell"))
  title_count(collective, "the default is fastest or tied", rows$default_is[known] %in% c("best", "tied"))
}

mutate_mate <- function(data, algorithms) {
  data <- data[data$mate != "", ]
  data$mate <- factor(data$mate, algorithms)
  data
}

decision_rows <- function(results, collective) {
  rows <- decide_winners(results, collective)
  tied <- strsplit(rows$tied, ";", fixed = TRUE)
  mate <- vapply(tied, function(names) if ("default" %in% names) "default" else c(names, "")[1], "")
  all <- unique(c(rows$winner, mate[mate != ""]))
  mutate(rows,
    mate = mate, mapping = mapping_factor(.data$mapping, results$study, collective),
    winner = factor(.data$winner, levels(algorithm_factor(all, results$study, collective)))
  )
}

model_words <- c(
  plane = "Log-linear plane", linear = "Straight line", spline = "Degree-1 spline",
  log_linear = "Logarithm + line", smooth = "Smooth surface", interpolation = "Log-interpolation",
  last_value = "Latency of the largest fitted count", hops = "Hop model", hops_anchored = "Hop model, anchored",
  blend = "Hop model \u00d7 interpolation"
)

#' Errors of the models on cells that they have not seen
#'
#' @inheritParams plot_processes
#' @param errors Tibble from [summarise_model_errors()].
#' @return A ggplot.
#' @noRd
plot_model_errors <- function(results, collective, errors) {
  rows <- errors |>
    pivot_longer(c("held_out_mape_pct", "extrapolation_mape_pct"), names_to = "kind", values_to = "mape") |>
    filter(!is.na(.data$mape)) |>
    mutate(
      kind = factor(.data$kind, c("held_out_mape_pct", "extrapolation_mape_pct"), c("Interpolation", "Extrapolation")),
      algorithm = first_on_top(
        label_algorithm(.data$algorithm, results$study, .env$collective), results, .env$collective
      ),
      mapping = mapping_factor(.data$mapping, results$study, .env$collective),
      model = factor(.data$model, intersect(names(model_words), .data$model))
    )
  rows <- filter(rows, !(.data$kind == "Extrapolation" & .data$model == "interpolation"))
  # A logarithmic axis has no place for an error of zero.
  least <- 0.1
  most <- 1000
  note <- c(
    if (any(rows$mape < least)) paste0("; errors below ", least, " % are drawn there"),
    if (any(rows$mape > most)) paste0("; errors above ", format_number(most), " % are drawn there")
  )
  rows <- mutate(rows, mape = pmin(pmax(.data$mape, .env$least), .env$most))
  best <- rows |> group_by(.data$kind, .data$mapping, .data$algorithm) |>
    slice_min(.data$mape, n = 1, with_ties = FALSE)
  colours <- c(
    plane = "#999999", linear = "#999999", spline = "#777777", log_linear = "#BBBBBB", smooth = "#E69F00",
    interpolation = "#56B4E9",
    last_value = "#CC79A7", hops = "#009E73", hops_anchored = "#D55E00", blend = "#0072B2"
  )
  ggplot(rows, aes(.data$mape, .data$algorithm, colour = .data$model, shape = .data$model)) +
    geom_point(data = best, shape = 1, size = 4, colour = "black", stroke = 0.4) +
    geom_point(size = 1.8) +
    facet_grid(vars(.data$kind), vars(.data$mapping), labeller = labeller(mapping = mapping_labels(results$study))) +
    scale_colour_manual(values = colours, labels = model_words) +
    scale_shape_manual(
      values = setNames(c(3, 3, 4, 8, 15, 16, 18, 2, 17, 6), names(model_words)), labels = model_words
    ) +
    scale_x_log10("Mean absolute error (%)", breaks = error_breaks, labels = format_number) +
    labs(
      y = NULL,
      title = paste0(capitalised(collective_word(collective)), ": errors of models on cells left out of the fit"),
      subtitle = paste(c("A ring marks the smallest error of its row", note), collapse = "")
    ) +
    tag_simulated(results$study) + theme_study() + theme(strip.text.y = element_text(hjust = 0.5))
}

#' 1, 2, 5, 10, ... as far as labels have room beside each other
#' @noRd
error_breaks <- function(limits) {
  breaks <- c(outer(c(1, 2, 5), 10^(-1:3)))
  breaks <- breaks[breaks >= limits[1] & breaks <= limits[2]]
  if (length(breaks) > 7) breaks <- intersect(breaks, 10^(-1:4))
  breaks
}

first_on_top <- function(labels, results, collective) {
  here <- unique(results$medians$algorithm[results$medians$collective == collective])
  ordered <- levels(algorithm_factor(here, results$study, collective))
  factor(labels, rev(unique(label_algorithm(ordered, results$study, collective))))
}
