# Comparison of mappings, each with the best algorithm for each message size ([duro-redsea], section 3.2.3).

#' The best algorithm of each mapping and message size
#'
#' At each size, only algorithms that every mapping has compete, so that a failed cell does not count against its
#' mapping. Mappings are compared on the same number of nodes if they have several, and with the same MPI library.
#'
#' @param results List from [read_results()].
#' @return Tibble: collective, mapping, processes, nodes and mpi (only if they vary), size_bytes, algorithm (the
#'   fastest), latency_us (of the slowest rank), bandwidth_mb_s, best_pct (slow-down in percent against the best mapping
#'   at this size), panel (of the figures).
#' @noRd
summarise_mappings <- function(results) {
  rows <- read_slowest(results)
  varying <- c(
    if (any(varies(rows, c("collective", "mapping", "processes"), "nodes"))) "nodes",
    if (any(varies(rows, "collective", "mpi"))) "mpi"
  )
  mutate(rows, panel = name_mapping(
    paste0(collective_title(.data$collective), ", ", label_processes(.data$processes)),
    if ("nodes" %in% varying) .data$nodes else NA,
    mpi = if ("mpi" %in% varying) as.character(mpi_label(.data$mpi)) else NA
  )) |>
    group_by(.data$panel) |>
    mutate(mappings = n_distinct(.data$mapping)) |>
    group_by(.data$panel, .data$size_bytes, .data$algorithm) |>
    filter(n_distinct(.data$mapping) == .data$mappings, .data$mappings > 1) |>
    ungroup() |>
    arrange(.data$latency_us) |>
    distinct(.data$panel, .data$mapping, .data$size_bytes, .keep_all = TRUE) |>
    group_by(.data$panel, .data$size_bytes) |>
    mutate(best_pct = 100 * (.data$latency_us / .data$latency_us[1] - 1)) |>
    ungroup() |>
    mutate(bandwidth_mb_s = .data$size_bytes / .data$latency_us) |>
    arrange(
      .data$collective, .data$processes, .data$panel, .data$size_bytes,
      mapping_label_factor(results$study, .data$mapping)
    ) |>
    select(
      "collective", "mapping", "processes", all_of(varying), "size_bytes", "algorithm", "latency_us", "bandwidth_mb_s",
      "best_pct", "panel"
    )
}

tables_mapping <- function(results) {
  list(listed("mapping", "best", select(
    summarise_mappings(results), -"panel", slower_than_best_mapping_pct = "best_pct"
  ), paste0(
    "Fastest algorithm of each mapping and message size", simulated_note(results$study), ", its latency (\u00b5s) and ",
    "bandwidth (MB/s), and slow-down against the best mapping. ", slowest_note
  )))
}

figures_mapping <- function(results) {
  rows <- summarise_mappings(results)
  if (nrow(rows) == 0) return(list())
  sizes <- unique(rows$size_bytes[!is.na(rows$size_bytes)])
  cut <- stats::median(sizes)
  halves <- list(short = sizes[sizes <= cut], long = sizes[sizes > cut])
  halves <- halves[map_lgl(halves, function(sizes) length(sizes) > 0)]
  c(
    map(names(halves), function(half) {
      figure(
        "mapping", half, plot_mapping_policies(results, range(halves[[half]])), paste0(
          "Bandwidth of each mapping with the best algorithm at each size (shape of the points). ", bandwidth_note
        ), 9, 4.4
      )
    }),
    list(figure("mapping", "loss", plot_mapping_loss(results), paste0(
      "Slow-down of each mapping against the best one at the same size, in percent. ", slowest_note
    ), 9, 4))
  )
}

#' Bandwidth of each mapping with its best algorithm (RED-SEA, Figures 13 and 14)
#'
#' @param results List from [read_results()].
#' @param sizes Smallest and largest message size to show (bytes).
#' @return A ggplot.
#' @noRd
plot_mapping_policies <- function(results, sizes) {
  rows <- filter(summarise_mappings(results), .data$size_bytes >= sizes[1], .data$size_bytes <= sizes[2]) |>
    mutate(mapping = mapping_label_factor(results$study, .data$mapping)) |>
    group_by(.data$collective) |>
    mutate(algorithm = label_algorithm(.data$algorithm, results$study, .data$collective[1])) |>
    ungroup()
  colours <- setNames(rep_len(mapping_colours, nlevels(rows$mapping)), levels(rows$mapping))
  ggplot(rows, aes(.data$size_bytes, .data$bandwidth_mb_s, colour = .data$mapping)) +
    geom_line(linewidth = 0.4) +
    geom_point(aes(shape = .data$algorithm), size = 2.2) +
    facet_wrap(vars(.data$panel), scales = "free_y") +
    scale_colour_manual(values = colours) +
    scale_shape_manual(values = point_shapes) +
    scale_x_size() +
    scale_y_continuous("Bandwidth (MB/s)", limits = c(0, NA), labels = scales::label_comma()) +
    labs(title = paste0(
      "Mappings, each with its best algorithm: ", label_bytes(min(rows$size_bytes)), " to ",
      label_bytes(max(rows$size_bytes))
    )) +
    tag_simulated(results$study) + theme_study()
}

plot_mapping_loss <- function(results) {
  rows <- mutate(summarise_mappings(results), mapping = mapping_label_factor(results$study, .data$mapping))
  colours <- setNames(rep_len(mapping_colours, nlevels(rows$mapping)), levels(rows$mapping))
  sizes <- sort(unique(rows$size_bytes), na.last = TRUE)
  rows$size <- factor(rows$size_bytes, sizes, coalesce(label_bytes(sizes), "no data"), exclude = NULL)
  ggplot(rows, aes(.data$size, .data$best_pct, fill = .data$mapping)) +
    geom_col(position = "dodge", width = 0.75) +
    facet_wrap(vars(.data$panel)) +
    scale_fill_manual(values = colours) +
    scale_x_discrete("Message size") +
    scale_y_continuous("Slower than the best mapping (%)") +
    labs(title = "Slow-down of each mapping against the best") +
    tag_simulated(results$study) + theme_study() + theme(axis.text.x = element_text(angle = 45, hjust = 1))
}

#' Sentences that answer the question of the RED-SEA project about mappings
#'
#' @param results List from [read_results()].
#' @return Character vector.
#' @noRd
describe_mapping_policies <- function(results) {
  rows <- summarise_mappings(results)
  if (nrow(rows) == 0) return("No algorithm was measured with all mappings.")
  cell <- c("collective", "processes", intersect(c("nodes", "mpi"), names(rows)), "size")
  cell[cell == "mpi"] <- "MPI library"
  what <- if (n_distinct(rows$panel) > 1) paste0(" cells (", and_list(cell), ")") else " sizes"
  tie <- results$study$analysis$tie_pct
  each <- rows |>
    group_by(.data$mapping) |>
    summarise(
      best = sum(.data$best_pct <= tie), sizes = n(), mean = mean(.data$best_pct), most = max(.data$best_pct)
    ) |>
    arrange(.data$mean)
  first <- each$mapping[1]
  short <- min(rows$size_bytes)
  long <- max(rows$size_bytes)
  published <- "DFNF"
  one <- n_distinct(rows$panel) == 1 && !is.na(short)
  c(
    paste0(
      "With the best algorithm for each size, ", and_list(paste0(
        each$mapping, " is the best mapping or tied with it at ", each$best, " of ", each$sizes, what, " (on average ",
        format_pct(each$mean), " slower than the best, at most ", format_pct(each$most), ")"
      )), "."
    ),
    if (published %in% each$mapping) paste0(
      "@duro-redsea found that filling first a socket, then a node (DFNF) is best: ",
      if (first == published) "this also holds here." else paste0("here ", first, " is, on average over", what, "."),
      if (one) paste0(" DFNF reaches ", and_list(map_chr(c(short, long), function(size) {
        here <- filter(rows, .data$mapping == published, .data$size_bytes == size)
        paste0(
          scales::label_comma(1)(here$bandwidth_mb_s[1]), " MB/s at ", label_bytes(size), " (",
          label_algorithm(here$algorithm[1], results$study, here$collective[1]), ")"
        )
      })), ".")
    )
  )
}

describe_mapping_answer <- function(results) paste0(study_name(results), ": ", describe_mapping_policies(results)[1])
