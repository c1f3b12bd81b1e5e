# Okabe and Ito (2008), told apart by colour-blind readers; the default is nearly black. Each algorithm keeps its
# colour.
algorithm_colours <- c(
  default = "#333333", linear = "#E69F00", chain = "#56B4E9", binary_tree = "#009E73", binomial = "#0072B2",
  pipeline = "#CC79A7", recursive_doubling = "#D55E00", tree = "#009E73"
)
spare_colours <- c("#D55E00", "#CC79A7", "#0072B2", "#56B4E9", "#009E73", "#E69F00", "#F0E442", "#882255", "#44AA99")
mapping_colours <- c("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255", "#333333")
point_shapes <- c(16, 17, 15, 18, 4, 8, 3, 1, 2, 0, 5, 6, 7, 9, 10)

#' The look of every figure
#'
#' @param base_size Size of the text in points.
#' @return A ggplot theme.
#' @noRd
theme_study <- function(base_size = 10.5) {
  theme_minimal(base_size = base_size) +
    theme(
      plot.title = element_text(face = "bold", size = rel(1.1), margin = margin(b = 6)),
      plot.title.position = "plot", plot.subtitle = element_text(colour = "grey35"),
      plot.tag = element_text(size = rel(0.8), face = "italic", colour = "#B03A2E", hjust = 1),
      plot.tag.position = c(0.995, 0.985), plot.background = element_rect(fill = "white", colour = NA),
      panel.grid.minor = element_blank(), panel.grid.major = element_line(linewidth = 0.25, colour = "grey90"),
      panel.border = element_rect(fill = NA, colour = "grey80", linewidth = 0.3),
      strip.text = element_text(face = "bold", hjust = 0, size = rel(0.92)),
      axis.title = element_text(size = rel(0.92)),
      legend.position = "bottom", legend.title = element_blank(), legend.key.width = grid::unit(1.6, "lines"),
      panel.spacing = grid::unit(0.9, "lines")
    )
}

#' Colours of a collective's algorithms, named by algorithm
#' @noRd
colours_of <- function(study, collective, algorithms) {
  known <- study$algorithms$algorithm[study$algorithms$collective == collective]
  all <- unique(c(intersect(known, known), algorithms))
  colours <- setNames(algorithm_colours[all], all)
  free <- setdiff(c(spare_colours, grDevices::hcl.colors(length(all), "Dark 3")), colours)
  colours[is.na(colours)] <- free[seq_len(sum(is.na(colours)))]
  colours[algorithms]
}

shapes_of <- function(study, collective, algorithms) {
  all <- unique(c(study$algorithms$algorithm[study$algorithms$collective == collective], algorithms))
  setNames(point_shapes[(seq_along(all) - 1) %% length(point_shapes) + 1], all)[algorithms]
}

scale_algorithm <- function(results, collective, algorithms, aesthetics = c("colour", "shape")) {
  algorithms <- as.character(levels(algorithms) %||% unique(algorithms))
  labels <- label_algorithm(algorithms, results$study, collective)
  scales <- list(
    colour = scale_colour_manual(
      values = colours_of(results$study, collective, algorithms), breaks = algorithms, labels = labels
    ),
    fill = scale_fill_manual(
      values = colours_of(results$study, collective, algorithms), breaks = algorithms, labels = labels, drop = FALSE
    ),
    shape = scale_shape_manual(
      values = shapes_of(results$study, collective, algorithms), breaks = algorithms, labels = labels
    )
  )
  scales[aesthetics]
}

scale_mapping <- function(study, mappings) {
  mappings <- levels(mappings)
  values <- setNames(mapping_colours[(seq_along(mappings) - 1) %% 8 + 1], mappings)
  shapes <- setNames(point_shapes[(seq_along(mappings) - 1) %% 15 + 1], mappings)
  list(
    scale_colour_manual(values = values, breaks = mappings, labels = mapping_labels(study)),
    scale_shape_manual(values = shapes, breaks = mappings, labels = mapping_labels(study))
  )
}

scale_x_size <- function(...) scale_x_log10("Message size", labels = label_bytes, breaks = size_breaks, ...)

size_breaks <- function(limits) {
  powers <- seq(floor(log2(max(limits[1], 1))), ceiling(log2(max(limits[2], 2))))
  2^powers[powers %% max(2, 2 * ceiling(length(powers) / 12)) == 0]
}

scale_y_latency_log <- function() {
  scale_y_log10("Latency (\u00b5s)", labels = format_number, breaks = scales::breaks_log(5))
}

tag_simulated <- function(study) if (study$simulated) labs(tag = "simulated") else NULL
