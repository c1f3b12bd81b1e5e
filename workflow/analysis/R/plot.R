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
      collective_title(collective), ": latency against processes, mapped ",
      label_mapping(mapping, results$study)
    )) +
    tag_simulated(results$study) + theme_study()
}

#' Axis of the number of processes; logarithmic for few counts over a wide range, such as 4 to 2,048
#' @noRd
scale_x_processes <- function(processes) {
  counts <- unique(processes)
  if (length(counts) <= 12 && max(counts) >= 16 * min(counts)) return(scale_x_processes_log(counts))
  scale_x_continuous("Processes", breaks = process_breaks, labels = format_count)
}

process_breaks <- function(limits) {
  step <- c(1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024)
  step <- step[which(diff(limits) / step <= 9)[1]]
  if (is.na(step)) scales::breaks_extended()(limits) else seq(0, limits[2], step)
}

#' Latency against processes for each algorithm under each mapping; rows: algorithms, columns: message sizes
#' ([zampar2024], Figure 4; Figure 7 without sizes)
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
  panels <- if (sized) {
    columns <- n_distinct(rows$size)
    facet_wrap(vars(.data$panel, .data$size), scales = "free_y", ncol = columns, labeller = single_line)
  } else {
    facet_wrap(vars(.data$panel), scales = "free_y", ncol = 2)
  }
  ggplot(rows, aes(.data$processes, .data$latency_us, colour = .data$mapping, shape = .data$mapping)) +
    layer_points(rows) +
    panels +
    scale_mapping(results$study, rows$mapping) +
    scale_x_processes(rows$processes) +
    (if (sized) scale_y_latency_log() else scale_y_continuous("Latency (\u00b5s)", limits = c(0, NA))) +
    labs(title = paste0(collective_title(collective), ": each algorithm under each mapping")) +
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
  # On a linear axis, a much slower algorithm would hide the differences between the others.
  most <- map_dbl(split(rows$latency_us, as.character(rows$algorithm)), max)
  apart <- length(most) > 0 && max(most) > 5 * min(most)
  ggplot(rows, aes(.data$processes, .data$latency_us, colour = .data$algorithm, shape = .data$algorithm)) +
    layer_boundaries(results, rows, collective) +
    layer_points(rows) +
    facet_wrap(vars(.data$mapping), labeller = labeller(.default = mapping_labels(results$study))) +
    scale_algorithm(results, collective, rows$algorithm) +
    scale_x_processes(rows$processes) +
    (if (apart) scale_y_latency_log() else scale_y_continuous("Latency (\u00b5s)", limits = c(0, NA))) +
    labs(title = paste0(collective_title(collective), ": latency against processes")) +
    tag_simulated(results$study) + theme_study()
}

#' Latency of the default minus that of the best other algorithm, against processes ([zampar2024], Figure 8)
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
    scale_y_continuous("Default \u2212 best other (\u00b5s)") +
    labs(
      title = title_count(collective, "the default is slower than the best other algorithm", rows$difference_us > 0),
      subtitle = "Above zero, the default is slower. Colour: the best other algorithm"
    ) +
    tag_simulated(results$study) + theme_study()
}

form_words <- c(
  linear = "a straight line", spline = "a degree-1 spline", log_linear = "a logarithm and a straight line"
)

#' A fitted form with the data ([zampar2024], Figures 9-11)
#'
#' @inheritParams plot_processes_unsized
#' @param algorithm Name of an algorithm.
#' @param form "linear", "spline" or "log_linear".
#' @param mappings Names of the mappings that have enough data for the fit.
#' @return A ggplot; the ribbon is the 95 % confidence interval of the fitted mean.
#' @noRd
plot_fit <- function(results, collective, algorithm, form, mappings) {
  knots <- results$study$analysis$barrier_tree_knots
  rows <- rows_to_fit(results, collective) |>
    filter(.data$algorithm == .env$algorithm, .data$mapping %in% mappings) |>
    droplevels()
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
      collective_title(collective), ", ", label_algorithm(algorithm, results$study, collective), ": ",
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

#' Latency against message size; rows: process counts, columns: mappings ([zampar2024], Figure 12); one panel per
#' measured pair if mappings have different process counts
#'
#' @inheritParams plot_processes
#' @return A ggplot with logarithmic axes.
#' @noRd
plot_sizes <- function(results, collective) {
  rows <- rows_of_sizes(results, collective)
  ggplot(rows, aes(.data$size_bytes, .data$latency_us, colour = .data$algorithm, shape = .data$algorithm)) +
    layer_points(rows) +
    panels_of_sizes(results, collective, rows) +
    scale_y_latency_log() +
    labs(title = paste0(collective_title(collective), ": latency against message size"))
}

#' Bandwidth of large messages against message size, in the panels of [plot_sizes()]
#'
#' @inheritParams plot_processes
#' @return A ggplot; the horizontal axis is logarithmic.
#' @noRd
plot_bandwidth <- function(results, collective) {
  rows <- mutate(rows_of_bandwidth(results, collective),
    bandwidth_mb_s = .data$size_bytes / .data$latency_us,
    low_mb_s = .data$size_bytes / .data$high_us, high_mb_s = .data$size_bytes / .data$low_us
  )
  ggplot(rows, aes(.data$size_bytes, .data$bandwidth_mb_s, colour = .data$algorithm, shape = .data$algorithm)) +
    layer_points(rows, low = "low_mb_s", high = "high_mb_s") +
    panels_of_sizes(results, collective, rows) +
    scale_y_continuous("Bandwidth (MB/s)", limits = c(0, NA), labels = scales::label_comma()) +
    labs(title = paste0(collective_title(collective), ": bandwidth of large messages"))
}

panels_of_sizes <- function(results, collective, rows) {
  rotated <- n_distinct(rows$mapping, rows$processes) > 1
  label <- mapping_labels(results$study)
  panels <- arrange(distinct(rows, .data$processes, .data$mapping), .data$processes, .data$mapping)
  label_panel <- function(processes, mapping) paste0(label_processes(processes), ", ", label(mapping))
  in_order <- label_panel(panels$processes, panels$mapping)
  list(
    if (is_grid(panels)) facet_grid(
      vars(.data$processes), vars(.data$mapping), scales = "free_y",
      labeller = labeller(processes = label_processes, mapping = label)
    ) else facet_wrap(
      vars(panel = factor(label_panel(.data$processes, .data$mapping), in_order)), scales = "free_y",
      ncol = min(3, nrow(panels))
    ),
    scale_algorithm(results, collective, rows$algorithm), scale_x_size(), tag_simulated(results$study), theme_study(),
    theme(strip.text.y = element_text(hjust = 0.5)),
    if (rotated) theme(axis.text.x = element_text(angle = 45, hjust = 1))
  )
}

label_processes <- function(processes) paste(format_count(processes), "processes")

#' Process counts that nearly all pairs of algorithm and mapping (but the excluded ones) have; without two processes,
#' between which all algorithms send the same messages, if there are other counts
#'
#' Nearly all: at least three quarters of the largest number of pairs at any count, so that an algorithm that another
#' author measured at other counts does not decide alone.
#' @noRd
common_counts <- function(rows, excludes = character()) {
  competing <- filter(rows, !.data$algorithm_name %in% excludes)
  if (nrow(competing) > 0) rows <- competing
  have <- count(distinct(rows, .data$algorithm, .data$mapping, .data$processes), .data$processes)
  counts <- sort(have$processes[have$n >= 0.75 * max(have$n, 0)])
  if (any(counts > 2)) counts[counts > 2] else counts
}

model_words <- c(
  plane = "Log-linear plane", linear = "Straight line", spline = "Degree-1 spline",
  log_linear = "Logarithm + line", smooth = "Smooth surface", interpolation = "Log-interpolation",
  last_value = "Latency at the next smaller fitted count", hops = "Hop model", hops_anchored = "Anchored hop model",
  blend = "Hop model \u00d7 interpolation"
)

#' Figure of the errors of the models on cells that they were not fitted to
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
  best <- rows |>
    group_by(.data$kind, .data$mapping, .data$algorithm) |>
    slice_min(.data$mape, n = 1, with_ties = FALSE)
  colours <- c(
    plane = "#999999", linear = "#999999", spline = "#777777", log_linear = "#BBBBBB", smooth = "#E69F00",
    interpolation = "#56B4E9",
    last_value = "#CC79A7", hops = "#009E73", hops_anchored = "#D55E00", blend = "#0072B2"
  )
  rows_of_legend <- ceiling(n_distinct(rows$model) / 4)
  ggplot(rows, aes(.data$mape, .data$algorithm, colour = .data$model, shape = .data$model)) +
    geom_point(data = best, shape = 1, size = 4, colour = "black", stroke = 0.4) +
    geom_point(size = 1.8) +
    facet_grid(vars(.data$kind), vars(.data$mapping), labeller = labeller(mapping = mapping_labels(results$study))) +
    scale_colour_manual(values = colours, labels = model_words) +
    scale_shape_manual(
      values = setNames(c(3, 3, 4, 8, 15, 16, 18, 2, 17, 6), names(model_words)), labels = model_words
    ) +
    scale_x_log10("Mean absolute percentage error (%)", breaks = error_breaks, labels = format_number) +
    # Two rows of nine models are wider than the figure.
    guides(colour = guide_legend(nrow = rows_of_legend), shape = guide_legend(nrow = rows_of_legend)) +
    labs(
      y = NULL,
      title = paste0(collective_title(collective), ": errors of models on cells left out of the fit"),
      subtitle = paste(c("A ring marks the smallest error of its row", note), collapse = "")
    ) +
    tag_simulated(results$study) + theme_study() + theme(strip.text.y = element_text(hjust = 0.5))
}

#' Breaks 1, 2, 5, 10, ..., or powers of ten only where their labels would overlap
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
