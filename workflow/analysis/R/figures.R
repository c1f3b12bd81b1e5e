write_figures <- function(figures, folder, study) {
  none <- tibble(
    id = character(), section = character(), file = character(), title = character(), caption = character(),
    width_in = numeric(), height_in = numeric(), interactive = character()
  )
  # A figure with nothing to draw, such as sizes that one of the mappings lacks, is left out.
  figures <- purrr::discard(figures, function(figure) is.data.frame(figure$plot$data) && nrow(figure$plot$data) == 0)
  index <- bind_rows(none, map_dfr(figures, function(figure) write_figure(figure, folder, study)))
  write_table(index, file.path(folder, "figures", "index.csv"))
  write_main_figures(index, folder)
  index[c("section", "file")]
}

#' Copy the first figure of every section, with its caption as reStructuredText, for `snakemake --report`
#' @noRd
write_main_figures <- function(index, folder) {
  main <- file.path(folder, "figures", "main")
  unlink(main, recursive = TRUE)
  dir.create(main, recursive = TRUE)
  index <- distinct(index, .data$section, .keep_all = TRUE)
  file.copy(file.path(folder, index$file), main)
  captions <- gsub("([\\\\*`_|])", "\\\\\\1", index$caption)
  purrr::walk2(captions, file.path(main, paste0(index$id, ".rst")), readr::write_lines)
}

# Chapters with a question of their own have their own figures.
figures_of <- function(results) {
  own <- own_chapter(results)
  if (has_applications(results)) return(figures_of_applications(results))
  if (!is.null(own)) return(own$figures(results))
  c(
    of_collectives(results, figures_with_sizes, figures_without),
    figures_of_ladder(results),
    figures_of_messages(results),
    figures_of_scaling(results),
    figures_accuracy(results),
    figures_of_import(results)
  )
}

#' An entry of figures/index.csv; `about`, `what` and `part` as in [listed()]
#'
#' @param interactive A function without arguments that returns the plotly widget of an interactive figure, or NULL.
#' @noRd
figure <- function(about, what, plot, caption, width = 9, height = 5, part = NULL, interactive = NULL) {
  list(id = paste0(about, "-", what), section = section_name(about, part), plot = plot, caption = caption,
       width = width, height = height, interactive = interactive)
}

# A larger SVG slows browsers down; a PNG is then written beside it, which the report's HTML pages show.
most_drawn_bytes <- 5e5

write_figure <- function(figure, folder, study) {
  file <- file.path("figures", paste0(figure$id, ".svg"))
  path <- file.path(folder, file)
  dir.create(dirname(path), showWarnings = FALSE, recursive = TRUE)
  temporary <- sub("svg$", "tmp.svg", path)
  svglite::svglite(temporary, width = figure$width, height = figure$height)
  laid_out <- tryCatch({
    grob <- ggplotGrob(figure$plot)
    grid::grid.draw(grob)
    grob
  }, finally = grDevices::dev.off())
  dots <- sub("svg$", "png", path)
  if (file.size(temporary) > most_drawn_bytes) {
    grDevices::png(dots, width = figure$width, height = figure$height, units = "in", res = 130, type = "cairo")
    tryCatch(grid::grid.draw(laid_out), finally = grDevices::dev.off())
  } else {
    unlink(dots)
  }
  file.rename(temporary, path)
  title <- figure$plot$labels$title
  if (isTRUE(figure$simulated)) study <- list(simulated = TRUE)
  tibble(
    id = figure$id, section = figure$section, file = file, title = title,
    caption = paste0(title, if (!grepl("simulated", title)) simulated_note(study), ". ", figure$caption),
    width_in = figure$width, height_in = figure$height,
    interactive = write_interactive(figure, folder)
  )
}

#' The widget of a figure as JSON for plotly.js; NA without one, or without the package plotly
#' @noRd
write_interactive <- function(figure, folder) {
  if (is.null(figure$interactive) || !requireNamespace("plotly", quietly = TRUE)) return(NA_character_)
  built <- plotly::plotly_build(figure$interactive())$x[c("data", "layout", "config")]
  file <- file.path("figures", paste0(figure$id, ".json"))
  jsonlite::write_json(
    built, file.path(folder, file), auto_unbox = TRUE, digits = I(15), null = "null", na = "null", force = TRUE
  )
  file
}

figures_with_sizes <- function(results, collective) {
  rows <- rows_to_fit(results, collective)
  c(
    if (n_distinct(rows$processes) > 1) figures_processes(results, collective, rows),
    figures_sizes(results, collective),
    figures_surface(results, collective, rows),
    figures_wins(results, collective),
    figures_slowdown(results, collective),
    figures_models(results, collective)
  )
}

figures_processes <- function(results, collective, rows) {
  # A mapping with one number of processes has no curve.
  drawn <- purrr::keep(levels(droplevels(rows$mapping)), function(mapping) {
    nrow(rows_of_curves(results, collective, mapping)) > 0
  })
  by_mapping <- map(drawn, function(mapping) {
    sizes <- length(shown_sizes(results, rows_of_curves(results, collective, mapping)))
    plot <- plot_processes(results, collective, mapping)
    figure(
      collective, paste0("processes-", slug(mapping)), plot,
      paste0(
        "Latency (\u00b5s) against the number of processes, one panel per message size, each with its ",
        "own logarithmic axis.",
        interval_note(plot$data), drawn_note(filter(rows, .data$mapping == .env$mapping)),
        boundary_note(results, collective, mapping, max(rows$processes))
      ),
      9, 1.3 + 2.5 * ceiling(sizes / 2)
    )
  })
  mapped <- rows_of_mappings(results, collective)
  if (nrow(mapped) == 0) return(by_mapping)
  shown <- length(mapped_sizes(results, mapped))
  sizes <- length(shown_sizes(results, mapped))
  plot <- plot_mappings(results, collective)
  c(by_mapping, list(figure(
    collective, "mappings", plot,
    paste0(
      "Latency (\u00b5s) against processes for each algorithm (rows) and message size (columns). Colour: mapping. ",
      "Logarithmic vertical axes.",
      if (shown < sizes) paste0(" Only ", shown, " of the ", sizes, " message sizes of the figures above are drawn."),
      interval_note(plot$data), drawn_note(mapped, most_in_quarter)
    ),
    10, 1.4 + 1.75 * n_distinct(mapped$algorithm)
  )))
}

figures_sizes <- function(results, collective) {
  drawn <- rows_of_sizes(results, collective)
  large <- rows_of_bandwidth(results, collective)
  list(
    figure(
      collective, "sizes", plot_sizes(results, collective),
      paste0(
        "Latency (\u00b5s) against message size for selected numbers of processes; both axes are logarithmic.",
        empty_note(results, collective), interval_note(drawn)
      ),
      9.5, height_of_sizes(drawn)
    ),
    if (nrow(large) > 0) figure(
      collective, "bandwidth", plot_bandwidth(results, collective),
      paste0(
        "Bandwidth (MB/s) for the same numbers of processes: message size divided by latency.", interval_note(large)
      ),
      9.5, height_of_sizes(large)
    )
  ) |> purrr::compact()
}

height_of_sizes <- function(rows) {
  panels <- distinct(rows, .data$processes, .data$mapping)
  1.8 + 2.1 * max(if (is_grid(panels)) n_distinct(panels$processes) else ceiling(nrow(panels) / 3), 1.3)
}

#' The fewest process counts that make a surface: with fewer it consists of a few flat pieces
#' @noRd
least_surface <- 6

figures_surface <- function(results, collective, rows) {
  rows <- in_grid(rows)
  if (nrow(rows) == 0) return(NULL)
  mappings <- levels(droplevels(rows$mapping))
  mapping <- if ("socket" %in% mappings) "socket" else mappings[1]
  algorithms <- as.character(unique(rows$algorithm[rows$mapping == mapping]))
  algorithm <- if ("chain" %in% algorithms) "chain" else rev(algorithms)[1]
  plane <- filter(fit_loglinear(results, collective), .data$algorithm == .env$algorithm, .data$mapping == .env$mapping)
  here <- levels(droplevels(rows$algorithm[rows$mapping == mappings[1]]))
  c(
    if (nrow(plane) == 1) list(figure(
      collective, "surface-plane", plot_plane(results, collective, algorithm, mapping), caption_plane(plane),
      8, 5.4, part = "models"
    )),
    list(figure(
      collective, "surface", plot_surface(results, collective, mappings[1]),
      paste(
        "Latency (\u00b5s, logarithmic) over processes and message size. In print: one panel per algorithm. On the",
        "HTML pages: the surfaces can be rotated, and the legend shows or hides algorithms."
      ),
      9, 1.5 + 3.4 * ceiling(length(here) / 2),
      interactive = function() plot_surface_interactive(results, collective, mappings[1])
    ))
  )
}

caption_plane <- function(plane) {
  paste0(
    "Logarithm of latency (\u00b5s) and the plane fitted to it",
    if (is.na(plane$r_squared)) ", with" else paste0(": R\u00b2 ", formatC(plane$r_squared, 3, format = "f"), ", but"),
    " a mean error of ", format_pct(plane$mape_pct), " on the fitted cells themselves."
  )
}

figures_wins <- function(results, collective) {
  compared <- summarise_differences(results, collective)
  winners <- decide_winners(results, collective)
  sized <- !anyNA(winners$size_bytes)
  # A map with one number of processes is a single column; the table and the plot against size show the same.
  if (n_distinct(winners$processes) < 2) return(NULL)
  c(
    if (nrow(winners) > 0) list(figure(
      collective, "decision-map", plot_decision(results, collective), paste0(
        "Fastest algorithm of each cell. ", tie_rule(results, collective), competing_note(results, collective),
        map_note(winners)
      ), 9.5, if (sized) map_height(winners) else 2.4 + 0.35 * n_distinct(winners$mapping), part = "wins"
    )),
    if (nrow(compared) > 0 && sized) list(figure(
      collective, "default-map", plot_default_map(results, collective), paste0(
        "Latency of the default relative to the best other algorithm (%): orange where the default is slower, blue ",
        "where it is faster; the colour saturates at the ends of the scale.", competing_note(results, collective),
        map_note(compared, "Grey")
      ), 9.5, map_height(compared), part = "wins"
    )),
    if (nrow(compared) > 0 && !sized && n_distinct(compared$processes) > 1) list(figure(
      collective, "default-minus-best", plot_difference(results, collective), paste0(
        "Latency of the default minus that of the best other algorithm (\u00b5s).",
        boundary_note(results, collective, unique(compared$mapping), max(compared$processes)),
        competing_note(results, collective)
      ), 9, 3.8, part = "wins"
    ))
  )
}

figures_slowdown <- function(results, collective) {
  # With one process count, the plot of latency against size shows the same.
  if (n_distinct(rows_to_fit(results, collective)$processes) < 2) return(NULL)
  rows <- rows_of_slowdown(results, collective)
  if (n_distinct(rows$size_bytes) < 2) return(NULL)
  found <- if (results$study$simulated) "simulated" else "measured"
  list(figure(
    collective, "slowdown", plot_slowdown(results, collective, rows), paste0(
      "Slow-down of each algorithm against the fastest one of the same cell, geometric mean over the process counts ",
      "above two at which it was ", found, ". White: not ", found, ", or the only algorithm.",
      empty_note(results, collective), competing_note(results, collective)
    ), 9.5, 1.9 + 0.23 * n_distinct(rows$algorithm) * ceiling(n_distinct(rows$mapping) / 3), part = "wins"
  ))
}

map_height <- function(rows) 1.9 + 3 * ceiling(n_distinct(rows$mapping) / 3)

figures_models <- function(results, collective) {
  errors <- model_errors(results, collective)
  if (nrow(errors) == 0) return(NULL)
  list(figure(
    # The title begins with the collective, as the caption of the table does.
    collective, "model-errors", plot_model_errors(results, collective, errors),
    capitalised(sub("^[^:]*: ", "", caption_errors(results, collective))),
    10, 2 + 0.42 * n_distinct(errors$algorithm) * (1 + any(!is.na(errors$extrapolation_mape_pct))), part = "models"
  ))
}

#' Errors of the models, which [write_analysis()] has computed already
#' @return As [summarise_model_errors()].
#' @noRd
model_errors <- function(results, collective) {
  results$models[[paste0(collective, "-comparison")]] %||% summarise_model_errors(results, collective)
}

figures_without <- function(results, collective) {
  rows <- rows_to_fit(results, collective)
  c(
    if (n_distinct(rows$processes) > 1) figures_processes_unsized(results, collective, rows),
    figures_wins(results, collective),
    figures_fits(results, collective),
    figures_models(results, collective)
  )
}

figures_processes_unsized <- function(results, collective, rows) {
  mappings <- levels(droplevels(rows$mapping))
  mapped <- rows_of_mappings(results, collective)
  c(
    list(figure(
      collective, "processes", plot_processes_unsized(results, collective), paste0(
        "Latency (\u00b5s) against the number of processes, one panel per mapping.", interval_note(rows),
        drawn_note(rows, most_in_quarter),
        boundary_note(results, collective, mappings, max(rows$processes))
      ), 9.5, 4
    )),
    if (nrow(mapped) > 0) list(figure(
      collective, "mappings", plot_mappings(results, collective),
      paste0(
        "Latency (\u00b5s) against the number of processes, one panel per algorithm, each with its own axis. Colour: ",
        "mapping.", interval_note(mapped), drawn_note(mapped)
      ),
      9, 1.4 + 2.4 * ceiling(n_distinct(mapped$algorithm) / 2)
    ))
  )
}

figures_fits <- function(results, collective) {
  fits <- fit_barriers(results, collective)
  chosen <- distinct(filter(fits, .data$chosen), .data$algorithm, .keep_all = TRUE)
  pmap(chosen[c("algorithm", "model")], function(algorithm, model) {
    here <- distinct(
      filter(fits, .data$algorithm == .env$algorithm, .data$model == .env$model), .data$mapping, .data$mape_pct
    )
    plot <- plot_fit(results, collective, algorithm, model, here$mapping)
    figure(
      collective, paste0("fit-", slug(algorithm)), plot, paste0(
        if (results$study$simulated) "Simulated" else "Measured", " latency (\u00b5s) and the fit with the 95 % ",
        "interval of its mean. Mean error on the fitted cells: ",
        and_list(paste(format_pct(here$mape_pct), label_mapping(here$mapping, results$study))), ".",
        drawn_note(filter(rows_to_fit(results, collective), .data$algorithm == .env$algorithm))
      ),
      9, 3.7,
      part = "models"
    )
  })
}
