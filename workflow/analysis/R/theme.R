# Colours of Okabe and Ito (2008) and Tol (2021), which colour-blind readers can distinguish; the default is nearly
# black. Each algorithm has the same colour in the whole report; within a collective, all but rare algorithms differ.
# In a decision map ties are pale, and pale blue looks like sky: no library has algorithms of both colours.
hues <- c(
  orange = "#E69F00", sky = "#56B4E9", green = "#009E73", blue = "#0072B2", pink = "#CC79A7", red = "#D55E00",
  wine = "#882255", teal = "#44AA99", olive = "#999933", indigo = "#332288", purple = "#AA4499", brown = "#7A4B1F",
  yellow = "#F0E442"
)
colour_names <- c(
  linear = "orange", chain = "pink", pipeline = "brown", binary_tree = "green", binary = "green", tree = "green",
  binomial = "blue", split_binary_tree = "red", in_order_binary = "red", knomial = "wine",
  scatter_allgather = "teal", scatter_allgather_ring = "olive",
  recursive_doubling = "red", recursive_halving = "wine", rabenseifner = "teal", ring = "pink", double_ring = "pink",
  segmented_ring = "wine", nonoverlapping = "blue", butterfly = "green", bruck = "blue", two_proc = "wine",
  neighbor_exchange = "green", sparbit = "brown", gather_bcast = "orange", pairwise = "green",
  linear_nb = "pink", linear_sync = "pink",
  node = "indigo", group = "olive", node_group = "purple", node_group_chain = "brown", rank_reorder = "yellow",
  node_group_pipelined = "wine", node_gatherv = "wine",
  pipelined = "purple", pipelined_binomial = "indigo", pipelined_chain = "brown", pipelined_ring = "brown",
  pipelined_recursive_doubling = "yellow",
  tuned = "blue", basic = "orange", sm = "green", han = "red", adapt = "pink", xhc = "brown", acoll = "wine",
  ucc = "teal", hcoll = "olive", libnbc = "orange",
  collnet_direct = "indigo", collnet_chain = "sky", nvls = "olive", nvls_tree = "brown", pat = "teal"
)
algorithm_colours <- c(
  default = "#333333", aligned = "#999999", setNames(hues[colour_names], names(colour_names))
)
spare_colours <- unname(c(hues[names(hues) != "sky"], hues["sky"]))
mapping_colours <- c("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255", "#333333")
point_shapes <- c(16, 17, 15, 18, 4, 8, 3, 1, 2, 0, 5, 6, 7, 9, 10)

#' The ggplot theme of all figures
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
  assign_colours(unique(c(known, algorithms)))[algorithms]
}

#' A colour for each of the algorithms; an algorithm without its own colour, or whose colour an earlier one has, gets a
#' spare one
#' @noRd
assign_colours <- function(algorithms) {
  colours <- setNames(algorithm_colours[algorithms], algorithms)
  colours[duplicated(colours)] <- NA
  free <- setdiff(c(spare_colours, grDevices::hcl.colors(length(algorithms), "Dark 3")), colours)
  colours[is.na(colours)] <- free[seq_len(sum(is.na(colours)))]
  colours
}

shapes_of <- function(study, collective, algorithms) {
  all <- unique(c(study$algorithms$algorithm[study$algorithms$collective == collective], algorithms))
  setNames(point_shapes[(seq_along(all) - 1) %% length(point_shapes) + 1], all)[algorithms]
}

scale_algorithm <- function(results, collective, algorithms, aesthetics = c("colour", "shape")) {
  algorithms <- levels(algorithms) %||% levels(algorithm_factor(algorithms, results$study, collective))
  labels <- label_algorithm(algorithms, results$study, collective)
  guide <- guide_legend(ncol = legend_columns(labels))
  scales <- list(
    colour = scale_colour_manual(
      values = colours_of(results$study, collective, algorithms), breaks = algorithms, labels = labels, guide = guide
    ),
    fill = scale_fill_manual(
      values = colours_of(results$study, collective, algorithms), breaks = algorithms, labels = labels, drop = FALSE,
      guide = guide
    ),
    shape = scale_shape_manual(
      values = shapes_of(results$study, collective, algorithms), breaks = algorithms, labels = labels, guide = guide
    )
  )
  scales[aesthetics]
}

#' Number of columns of a legend that fits the width of a figure, with rows of about equal length; NULL: ggplot2 decides
#' @noRd
legend_columns <- function(labels) {
  # A figure is about as wide as 110 letters of a legend; a key is as wide as 8.
  room <- max(1, floor(110 / (max(nchar(labels), 1) + 8)))
  if (length(labels) <= min(room, 5) || room > 4) return(NULL)
  ceiling(length(labels) / ceiling(length(labels) / room))
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

#' Powers of 4 or more; for few sizes powers of two, or the ends of the axis
#' @noRd
size_breaks <- function(limits) {
  # The axis of a single size extends by 0.05 to both sides in log10.
  if (diff(log10(limits)) < 0.101) return(round(sqrt(prod(limits))))
  powers <- seq(floor(log2(max(limits[1], 1))), ceiling(log2(max(limits[2], 2))))
  several <- function(breaks) sum(breaks >= limits[1] & breaks <= limits[2]) > 1
  even <- 2^powers[powers %% max(2, 2 * ceiling(length(powers) / 12)) == 0]
  if (several(even)) even else if (several(2^powers)) 2^powers else unique(limits)
}

scale_y_latency_log <- function() {
  scale_y_log10("Latency (\u00b5s)", labels = format_number, breaks = scales::breaks_log(5))
}

tag_simulated <- function(study) if (study$simulated) labs(tag = "simulated") else NULL
