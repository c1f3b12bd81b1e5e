# 3-D surfaces, drawn as flat polygons so that they need only ggplot2.

#' Project points of the unit cube onto the page (orthographic projection)
#' @noRd
project <- function(x, y, z) {
  turn <- 40 * pi / 180
  tilt <- 24 * pi / 180
  x <- x - 0.5
  y <- y - 0.5
  across <- x * cos(turn) - y * sin(turn)
  away <- x * sin(turn) + y * cos(turn)
  tibble(h = across, v = z * 0.75 * cos(tilt) + away * sin(tilt), depth = away)
}

unit_range <- function(x, range) (x - range[1]) / max(diff(range), 1e-9)

#' The quadrilaterals of a surface over the grid processes x size
#' @noRd
surface_quads <- function(rows, value, ranges) {
  counts <- sort(unique(rows$processes))
  sizes <- sort(unique(rows$size_bytes))
  z <- matrix(NA_real_, length(counts), length(sizes))
  z[cbind(match(rows$processes, counts), match(rows$size_bytes, sizes))] <- rows[[value]]
  corner <- expand.grid(i = seq_len(length(counts) - 1), j = seq_len(length(sizes) - 1))
  corner$quad <- seq_len(nrow(corner))
  quads <- bind_rows(
    map(list(c(0, 0), c(1, 0), c(1, 1), c(0, 1)), function(d) mutate(corner, i = .data$i + d[1], j = .data$j + d[2]))
  )
  quads$z <- z[cbind(quads$i, quads$j)]
  # The corners of a quadrilateral are as many rows apart as there are quadrilaterals.
  mean_of_corners <- function(values) rep(rowMeans(matrix(values, ncol = 4)), 4)
  at <- project(
    unit_range(log2(sizes[quads$j]), ranges$size), unit_range(counts[quads$i], ranges$processes),
    unit_range(quads$z, ranges$value)
  )
  bind_cols(quads, at) |>
    mutate(level = mean_of_corners(.data$z), far = mean_of_corners(.data$depth)) |>
    filter(!is.na(.data$level)) |>
    arrange(desc(.data$far), .data$quad) |>
    mutate(quad = match(.data$quad, unique(.data$quad)))
}

surface_ranges <- function(rows, value) {
  list(size = range(log2(rows$size_bytes)), processes = range(rows$processes), value = range(rows[[value]]))
}

#' The back edges of the box, and the labels of ticks and axes
#' @noRd
surface_frame <- function(ranges) {
  sizes <- 2^pretty_in(ranges$size, 4)
  counts <- pretty_in(ranges$processes, 4)
  values <- pretty_in(ranges$value, 4)
  label <- bind_rows(
    mutate(project(unit_range(log2(sizes), ranges$size), -0.06, 0), text = label_bytes(sizes), hjust = 0, vjust = 1),
    mutate(project(-0.06, unit_range(counts, ranges$processes), 0), text = format_number(counts), hjust = 1, vjust = 1),
    mutate(
      project(-0.03, 1.03, unit_range(values, ranges$value)), text = format_number(10^values), hjust = 1, vjust = 0.5
    ),
    mutate(project(0.5, -0.3, 0), text = "Message size", hjust = 0, vjust = 1),
    mutate(project(-0.3, 0.5, 0), text = "Processes", hjust = 1, vjust = 1),
    mutate(project(0, 1, 1.1), text = "Latency (\u00b5s)", hjust = 0.5, vjust = 0)
  )
  lines <- list(
    project(c(0, 1), c(0, 0), c(0, 0)), project(c(0, 0), c(0, 1), c(0, 0)), project(c(0, 1), c(1, 1), c(0, 0)),
    project(c(1, 1), c(0, 1), c(0, 0)), project(c(0, 0), c(1, 1), c(0, 1)), project(c(1, 1), c(1, 1), c(0, 1)),
    project(c(1, 1), c(0, 0), c(0, 1)), project(c(0, 1), c(1, 1), c(1, 1)), project(c(1, 1), c(0, 1), c(1, 1))
  )
  list(label = label, lines = bind_rows(lines, .id = "edge"))
}

pretty_in <- function(range, n) {
  at <- pretty(range, n)
  at <- at[at >= range[1] - 1e-9 & at <= range[2] + 1e-9]
  if (length(at) == 0) range else at
}

draw_surface <- function(quads, frame) {
  ggplot() +
    geom_path(aes(.data$h, .data$v, group = .data$edge), frame$lines, colour = "grey75", linewidth = 0.3) +
    geom_polygon(
      aes(.data$h, .data$v, group = .data$quad, fill = 10^.data$level), quads, colour = "white", linewidth = 0.08
    ) +
    geom_text(
      aes(.data$h, .data$v, label = .data$text, hjust = .data$hjust, vjust = .data$vjust), frame$label, size = 2.7,
      colour = "grey25"
    ) +
    scale_fill_viridis_c("Latency (\u00b5s)", trans = "log10", labels = format_number) +
    coord_equal(clip = "off") +
    theme_study() +
    theme(
      axis.text = element_blank(), axis.title = element_blank(), panel.grid.major = element_blank(),
      panel.border = element_blank(),
      # The cube leaves too little width for title and tag side by side.
      plot.tag.position = c(0.995, 0.02),
      legend.title = element_text(size = rel(0.85)), legend.key.width = grid::unit(2.5, "lines")
    )
}

#' Surface of latency over processes and message size for each algorithm under one mapping ([zampar2024],
#' Figure 13, still image)
#'
#' @inheritParams plot_processes
#' @return A ggplot.
#' @noRd
plot_surface <- function(results, collective, mapping) {
  rows <- thin_processes(surface_rows(results, collective, mapping), 20)
  ranges <- surface_ranges(rows, "log_latency")
  quads <- rows |>
    group_by(.data$algorithm) |>
    group_modify(function(data, key) surface_quads(data, "log_latency", ranges)) |>
    ungroup() |>
    mutate(quad = paste(.data$algorithm, .data$quad)) |>
    mutate(quad = factor(.data$quad, unique(.data$quad)))
  labels <- setNames(label_algorithm(levels(rows$algorithm), results$study, collective), levels(rows$algorithm))
  draw_surface(quads, surface_frame(ranges)) +
    facet_wrap(vars(.data$algorithm), ncol = 2, labeller = as_labeller(labels)) +
    labs(title = paste0(
      collective_title(collective), ", mapped ", label_mapping(mapping, results$study),
      ": latency by size and processes"
    )) +
    tag_simulated(results$study)
}

#' Rows with at most `most` process counts of each algorithm, evenly spread, for a small file
#' @noRd
thin_processes <- function(rows, most) {
  rows |>
    group_by(.data$algorithm) |>
    filter(.data$processes %in% spread_out(sort(unique(.data$processes)), .env$most)) |>
    ungroup()
}

surface_rows <- function(results, collective, mapping) {
  filter(rows_to_fit(results, collective), .data$mapping == .env$mapping) |>
    in_grid() |>
    mutate(log_latency = log10(.data$latency_us)) |>
    droplevels()
}

#' Rows of algorithms and mappings whose cells nearly fill a grid of process counts and sizes, and thus form a surface
#' @noRd
in_grid <- function(rows) {
  rows |>
    group_by(.data$mapping, .data$algorithm) |>
    filter(
      n_distinct(.data$processes) >= least_surface, n_distinct(.data$size_bytes) > 1,
      n() >= 0.75 * n_distinct(.data$processes) * n_distinct(.data$size_bytes)
    ) |>
    ungroup()
}

#' Logarithm of the measured surface with the plane of Table 2 ([zampar2024], Figure 5)
#'
#' @inheritParams plot_processes
#' @param algorithm Name of an algorithm.
#' @return A ggplot.
#' @noRd
plot_plane <- function(results, collective, algorithm, mapping) {
  rows <- filter(surface_rows(results, collective, mapping), .data$algorithm == .env$algorithm)
  fit <- lm(log10(latency_us) ~ log(size_bytes) + processes, rows)
  corners <- expand.grid(processes = range(rows$processes), size_bytes = range(rows$size_bytes))
  corners$plane <- predict(fit, corners)
  ranges <- surface_ranges(tibble(
    processes = c(rows$processes, corners$processes), size_bytes = c(rows$size_bytes, corners$size_bytes),
    log_latency = c(rows$log_latency, corners$plane)
  ), "log_latency")
  plane <- surface_quads(corners, "plane", ranges)
  rows <- thin_processes(rows, 40)
  draw_surface(surface_quads(rows, "log_latency", ranges), surface_frame(ranges)) +
    geom_polygon(aes(.data$h, .data$v), plane, fill = "#D55E00", colour = "#D55E00", alpha = 0.28, linewidth = 0.5) +
    labs(
      title = paste0(
        collective_title(collective), ", ", label_algorithm(algorithm, results$study, collective),
        ", mapped ", label_mapping(mapping, results$study)
      ),
      subtitle = paste(
        if (results$study$simulated) "Simulated" else "Measured", "latency and the fitted log-linear plane"
      )
    ) +
    tag_simulated(results$study)
}

#' The surface of [zampar2024], Figure 13, as an HTML widget that readers can rotate
#'
#' @param results List from [read_results()].
#' @param collective Name of a collective with message sizes; by default the first one that has measurements.
#' @param mapping A mapping; by default the first.
#' @return A plotly widget with one surface per algorithm (shown or hidden by the legend), logarithmic latency in us.
#' @noRd
plot_surface_interactive <- function(results, collective = NULL, mapping = NULL) {
  collective <- collective %||% collectives_of(results, sized = TRUE)[1]
  mapping <- mapping %||% levels(droplevels(rows_to_fit(results, collective)$mapping))[1]
  rows <- surface_rows(results, collective, mapping)
  colours <- colours_of(results$study, collective, levels(rows$algorithm))
  widget <- plotly::plot_ly()
  for (name in levels(rows$algorithm)) {
    widget <- add_algorithm(
      widget, filter(rows, .data$algorithm == name), label_algorithm(name, results$study, collective), colours[[name]]
    )
  }
  plotly::layout(widget,
    showlegend = TRUE, margin = list(l = 0, r = 0, t = 30, b = 0),
    # Debian's plotly.js 1.31 shows no title that is a list.
    title = if (results$study$simulated) "simulated" else "",
    scene = list(
      xaxis = list(title = "Message size (B)", type = "log", exponentformat = "none"),
      yaxis = list(title = "Processes"),
      zaxis = list(title = "Latency (\u00b5s)", type = "log")
    )
  )
}

add_algorithm <- function(widget, rows, label, colour) {
  wide <- pivot_wider(
    select(rows, "processes", "size_bytes", "latency_us"), names_from = "size_bytes", values_from = "latency_us",
    names_sort = TRUE
  )
  plotly::add_surface(widget,
    x = as.numeric(names(wide)[-1]), y = wide$processes, z = signif(as.matrix(wide[-1]), 5), name = label,
    showlegend = TRUE, showscale = FALSE, opacity = 0.85, colorscale = list(list(0, colour), list(1, colour))
  )
}
