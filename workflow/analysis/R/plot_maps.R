# Maps of cells: slow-down of each algorithm, default against the best other algorithm, fastest algorithm.

#' Slow-down of each algorithm against the fastest of its cells, by message size
#'
#' @inheritParams plot_processes
#' @param rows Tibble from [rows_of_slowdown()].
#' @return A ggplot: rows algorithms, columns message sizes, a panel per mapping, colours on a logarithmic scale.
#' @noRd
plot_slowdown <- function(results, collective, rows) {
  ticks <- c(1, 1.25, 1.5, 2, 3, most_slowdown)
  ggplot(rows, aes(cell_axis(.data$size_bytes), .data$algorithm, fill = .data$slowdown)) +
    geom_tile() +
    facet_wrap(vars(.data$mapping), labeller = labeller(.default = mapping_labels(results$study)), ncol = 3) +
    scale_fill_viridis_c(
      "Latency relative to the fastest", option = "E", direction = -1, trans = "log", limits = range(ticks),
      breaks = ticks, labels = paste0(rep(c("", "\u2265 "), c(5, 1)), ticks), oob = scales::squish,
      guide = guide_colourbar(title.position = "top", title.hjust = 0.5, barwidth = 16, barheight = 0.6)
    ) +
    scale_x_discrete(
      "Message size", breaks = thinned(6), labels = function(x) label_bytes(as.numeric(x)), expand = c(0, 0)
    ) +
    scale_y_discrete(NULL, labels = function(x) label_algorithm(x, results$study, collective), expand = c(0, 0)) +
    labs(title = paste0(collective_title(collective), ": slow-down of each algorithm by message size")) +
    tag_simulated(results$study) + theme_study() + theme_cells() +
    theme(panel.spacing.x = grid::unit(16, "pt"), plot.margin = margin(5.5, 16, 5.5, 5.5))
}

#' The slow-down at which the colour scale of [plot_slowdown()] saturates
#' @noRd
most_slowdown <- 5

#' Map of the default's latency relative to the best other algorithm, in every cell
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
  # A cell without a difference is nearly white, so those that lack a latency are grey.
  tiles <- tidyr::expand_grid(distinct(rows, .data$mapping, .data$processes), distinct(rows, .data$size_bytes)) |>
    left_join(rows, c("mapping", "processes", "size_bytes"))
  ggplot(tiles, aes(cell_axis(.data$processes), cell_axis(.data$size_bytes), fill = .data$pct)) +
    geom_tile() +
    facet_cells(results, rows) +
    scale_fill_gradient2(
      "Latency of the default against the best other algorithm", low = "#0072B2", mid = "#F7F7F7", high = "#D55E00",
      limits = c(-limit, limit), breaks = limit * c(-1, -0.5, 0, 0.5, 1), oob = scales::squish, na.value = "grey75",
      labels = function(x) {
        paste0(c(if (limit < 100) "\u2264 " else "", "", "", "", "\u2265 "), ifelse(x > 0, "+", ""), x, " %")
      },
      guide = guide_colourbar(title.position = "top", title.hjust = 0.5, barwidth = 16, barheight = 0.6)
    ) +
    scale_cells() +
    labs(title = title_count(collective, "the default is more than 5 % slower", rows$pct > 5)) +
    tag_simulated(results$study) + theme_study() + theme_cells()
}

cell_axis <- function(values) factor(values, sort(unique(values)))

scale_cells <- function() {
  list(
    scale_x_discrete("Processes", breaks = thinned(8), labels = format_count, expand = c(0, 0)),
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
#' @return A ggplot. Full colour: the only fastest algorithm. Pale with a dot: tied; the dot has the colour of the
#'   default if the default is among the tied algorithms, else of the next algorithm. A map with too many columns has no
#'   dots. Without message sizes the map has one row per mapping.
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
    scale_x_discrete(
      "Processes", breaks = thinned(if (sized) 8 else 24), labels = format_count, expand = c(0, 0)
    ) +
    (if (sized) scale_cells()[[2]] else scale_y_discrete(
      NULL, labels = mapping_labels(results$study), expand = c(0, 0)
    )) +
    labs(
      title = title_decision(rows, collective),
      subtitle = paste0("Colour: the fastest algorithm. Pale", if (dotted) {
        " with a dot: tied; the dot's colour shows with which algorithm (the default first)"
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
    collective_title(collective), ": ", finding, " in ", format_number(sum(yes), 6), " of ",
    format_number(length(yes), 6), " cells"
  )
}

title_decision <- function(rows, collective) {
  known <- !is.na(rows$default_is)
  if (!any(known)) return(paste0(collective_title(collective), ": fastest algorithms"))
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
