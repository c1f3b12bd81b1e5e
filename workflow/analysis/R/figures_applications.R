# Figures of traced applications (figures of their replays: figures_replays.R).

compute_colour <- "grey88"
operation_colours <- c(
  "point to point" = "#999999", alltoall = "#D55E00", alltoallv = "#E69F00", allreduce = "#0072B2", bcast = "#009E73",
  reduce = "#56B4E9", barrier = "#882255", allgather = "#CC79A7", allgatherv = "#F0E442", scatterv = "#44AA99",
  gatherv = "#117733", gather = "#DDCC77", scatter = "#332288"
)

colours_of_operations <- function(operations) {
  all <- unique(operations)
  colours <- setNames(operation_colours[all], all)
  free <- grDevices::hcl.colors(max(2, sum(is.na(colours))), "Dark 3")
  colours[is.na(colours)] <- free[seq_len(sum(is.na(colours)))]
  colours["compute"] <- compute_colour
  colours
}

simulated_tag <- function() labs(tag = "simulated")

figures_of_applications <- function(results) {
  applications <- Filter(function(application) !is.null(application$trace), results$applications)
  if (length(applications) == 0) return(NULL)
  static <- list(
    figure("applications", "operations", plot_operations(applications, "operations"), paste(
      "Operations of each kind. A collective counts once for all participating ranks; each point-to-point call that",
      "sends, or starts to send, counts by itself."
    ), height = 2.2 + 1.5 * ceiling(length(applications) / 2)),
    figure("applications", "bytes", plot_operations(applications, "sent_bytes"), paste(
      "Bytes in the send buffers of all ranks, by kind of operation."
    ), height = 2.2 + 1.5 * ceiling(length(applications) / 2)),
    figure("applications", "sizes", plot_message_sizes(applications), paste(
      "Number of calls by message size, in powers of two. Size: per pair of ranks for all-to-all, per rank for gather,",
      "scatter and allgather, otherwise of the message. Receives are not counted."
    ), height = 2.2 + 1.6 * ceiling(length(applications) / 2)),
    figure("applications", "time", plot_time(applications), paste(
      "Share of the elapsed time and of the processor time of each traced rank, by kind.",
      oversubscribed_note(results$study)
    ), height = 4.5)
  )
  # Without data, there are no bytes and no sizes.
  static <- purrr::keep(static, function(figure) nrow(figure$plot$data) > 0)
  replayed <- Filter(function(application) !is.null(default_replay(application)), applications)
  dynamic <- unlist(unname(map(replayed, figures_of_replay)), recursive = FALSE)
  rows <- summarise_replays(results)
  others <- if (nrow(rows) > 0) filter(
    rows, !(.data$replay == "default" & .data$machine == first_machine(.env$results)), !is.na(.data$makespan_change_pct)
  )
  alternatives <- if (NROW(others) > 0) {
    list(simulated_figure("replays", "alternatives", plot_alternatives(results, rows), paste(
      "Effect of another algorithm or mapping, relative to the default on",
      replay_machine(results, first_machine(results)), "and of another network.", replay_columns()
    ), height = 2 + 0.28 * nrow(rows)))
  }
  c(static, figures_of_accounts(results), figures_of_gain(results), dynamic, alternatives)
}

#' Number of operations, or bytes, of each kind
#'
#' @param applications List from [read_applications()] with traces.
#' @param what Column of [summarise_operations()]: operations or sent_bytes.
#' @return A ggplot.
#' @noRd
plot_operations <- function(applications, what) {
  rows <- map_dfr(applications, function(application) {
    bind_cols(application = application$label, summarise_operations(application$trace))
  })
  rows <- filter(rows, !.data$operation %in% c("wait", "test", "recv", "irecv", "probe"), .data[[what]] > 0) |>
    mutate(
      application = factor(.data$application, unique(.data$application)), kind = operation_class(.data$operation)
    ) |>
    arrange(.data[[what]]) |>
    # Each panel has its own order.
    mutate(bar = factor(paste(.data$application, .data$operation), paste(.data$application, .data$operation)))
  names <- setNames(rows$operation, rows$bar)
  bytes <- what == "sent_bytes"
  ggplot(rows, aes(.data[[what]], .data$bar, fill = .data$kind)) +
    geom_col(width = 0.75) +
    geom_text(
      aes(label = if (bytes) label_bytes(.data[[what]]) else format_number(.data[[what]], 7)), hjust = -0.12, size = 2.9
    ) +
    facet_wrap(vars(.data$application), scales = "free_y", ncol = 2) +
    scale_fill_manual(values = colours_of_operations(rows$kind), guide = "none") +
    scale_x_log10(
      if (bytes) "Bytes in send buffers" else "Operations", labels = if (bytes) label_bytes else format_number,
      breaks = if (bytes) byte_breaks else scales::breaks_log(5), expand = expansion(c(0, 0.3))
    ) +
    scale_y_discrete(NULL, labels = names) +
    labs(title = if (bytes) "Bytes sent by each MPI operation" else "Number of MPI operations") +
    theme_study()
}

plot_message_sizes <- function(applications) {
  rows <- map_dfr(applications, function(application) {
    bind_cols(application = application$label, summarise_sizes(application$trace))
  })
  sizes <- sort(unique(rows$size_bytes))
  rows <- mutate(rows,
    application = factor(.data$application, unique(.data$application)), kind = operation_class(.data$operation),
    size = factor(.data$size_bytes, sizes, ifelse(sizes == 0, "0", label_bytes(sizes)))
  )
  rows <- group_by(rows, .data$application, .data$kind, .data$size) |>
    summarise(calls = sum(.data$calls), .groups = "drop")
  ggplot(rows, aes(.data$size, .data$calls, fill = .data$kind)) +
    geom_col(width = 0.9) +
    facet_wrap(vars(.data$application), scales = "free_y", ncol = 2) +
    scale_fill_manual(values = colours_of_operations(rows$kind)) +
    scale_x_discrete("Message size", breaks = thinned(8), drop = FALSE) +
    scale_y_continuous("Calls of all ranks", labels = format_number) +
    labs(title = "Calls by message size") + theme_study()
}

#' Breaks for an axis of integers
#' @noRd
whole_breaks <- function(limits) unique(round(scales::breaks_pretty(4)(limits)))

plot_time <- function(applications) {
  rows <- map_dfr(applications, function(application) {
    bind_cols(application = application$label, summarise_time(application$trace))
  }) |>
    pivot_longer(c("wall_us", "cpu_us"), names_to = "clock", values_to = "us") |>
    mutate(
      clock = factor(.data$clock, c("wall_us", "cpu_us"), c("Elapsed time", "Processor time")),
      application = factor(.data$application, unique(.data$application)),
      kind = factor(.data$kind, c("point to point", "collectives", "compute"))
    )
  ggplot(rows, aes(.data$rank, .data$us, fill = .data$kind)) +
    geom_col(position = "fill", width = 0.85) +
    facet_grid(
      vars(.data$clock), vars(.data$application), labeller = labeller(application = ggplot2::label_wrap_gen(18))
    ) +
    scale_fill_manual(values = c(compute = compute_colour, collectives = "#0072B2", "point to point" = "#999999")) +
    scale_x_continuous("Rank", breaks = whole_breaks) +
    scale_y_continuous(NULL, labels = scales::label_percent(), expand = c(0, 0)) +
    labs(title = "Time in MPI and in computation, by rank") + theme_study()
}
