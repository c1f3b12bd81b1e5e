# Figures of replays. All of them are simulated and labelled so.

simulated_figure <- function(..., section = NULL) {
  made <- c(figure(...), list(simulated = TRUE))
  if (!is.null(section)) made$section <- section
  made
}

#' The figures of one application's default replay, as Figures 2 to 8 of Duro et al. (RED-SEA)
#' @noRd
figures_of_replay <- function(application) {
  entry <- default_replay(application)
  replay <- entry$replay
  where <- paste0(
    "Replay of ", application$label, " with ", format_count(sum(replay$ports$stage == 0)), " ranks on ",
    entry$machine_label, ". "
  )
  width <- paste0("Intervals of ", format_us(replay$about$interval_us), ". ", phases_note)
  busiest <- busiest_switch(replay)
  list(
    simulated_figure(application$name, "pairs", plot_traffic(replay, application$label), paste0(
      where, "Bytes from rank to rank, sent by the algorithms of collectives and by point-to-point messages. White: ",
      "none."
    ), height = 5, section = "pairs"),
    simulated_figure(application$name, "ports", plot_ports(replay, busiest, application$label), paste0(
      where, "Bytes sent by switch ", busiest, " (the busiest), stacked by port. ", width
    ), height = 4.5, part = "dynamic"),
    simulated_figure(application$name, "switches", plot_switches(replay, application$label), paste0(
      where, "Bytes sent by each switch, stacked by port. ", "Intervals of ", format_us(replay$about$interval_us), "."
    ), height = 6, part = "dynamic"),
    simulated_figure(application$name, "latency", plot_message_latency(replay, application$label), paste0(
      where, "Mean time of a message from its start to its arrival, by the interval of its arrival. Line: the same on ",
      "an empty network. ", width
    ), height = 3.8, part = "dynamic"),
    simulated_figure(application$name, "saturation", plot_saturation(replay, application$label), paste0(
      where, "Share of the interval in which a port of the switch is saturated (the port with the largest share), ",
      "stacked by switch. ", flow_note, width
    ), height = 4.2, part = "dynamic"),
    simulated_figure(application$name, "saturation-map", plot_saturation_map(replay, application$label), paste0(
      where, "Share of each interval in which a port of the switch is saturated, by switch and time. S1: switches of ",
      "the first stage, connected to the hosts. ", flow_note
    ), height = 4.5, part = "dynamic"),
    simulated_figure(application$name, "throughput", plot_throughput(replay, application$label), paste0(
      where, "Received bytes as a share of the hosts' total bandwidth (bars), and load of the busiest link (line). ",
      width
    ), height = 3.8, part = "dynamic")
  )
}

#' Diverging palettes need three colours at least
#' @noRd
many_colours <- function(count, palette) grDevices::hcl.colors(max(3, count), palette)[seq_len(count)]

phases_note <- "Strip below the axis: share of ranks in each operation (grey: computing). "
flow_note <- paste(
  "Saturated: several messages together use the full bandwidth, so that at least one is delayed. This stands for",
  "queueing, because the flow-level simulator has no packets and no packet queues. "
)

#' The switch that sends most bytes
#' @noRd
busiest_switch <- function(replay) {
  links <- filter(left_join(replay$links, replay$ports, "link"), .data$stage > 0)
  if (nrow(links) == 0) return(replay$ports$sender[replay$ports$stage > 0][1])
  by_switch <- tapply(links$bytes, links$sender, sum)
  names(by_switch)[which.max(by_switch)]
}

#' Bytes from rank to rank
#'
#' @param replay List from [read_replay()].
#' @param label Label of the application.
#' @return A ggplot.
#' @noRd
plot_traffic <- function(replay, label) {
  ranks <- sum(replay$ports$stage == 0)
  rows <- replay$pairs |>
    pivot_longer(c("collective_bytes", "point_to_point_bytes"), names_to = "kind", values_to = "bytes") |>
    filter(.data$bytes > 0)
  kinds <- c(collective_bytes = "Collectives", point_to_point_bytes = "Point to point")
  rows$kind <- factor(rows$kind, names(kinds), paste0(kinds, ifelse(names(kinds) %in% rows$kind, "", ": none")))
  ggplot(rows, aes(.data$to, .data$from, fill = .data$bytes)) +
    geom_tile(width = 1, height = 1) +
    facet_wrap(vars(.data$kind), drop = FALSE) +
    scale_fill_viridis_c(
      "Bytes", trans = "log10", breaks = byte_breaks, labels = label_bytes, option = "mako", direction = -1
    ) +
    scale_x_continuous("To rank", expand = c(0, 0), limits = c(-0.5, ranks - 0.5)) +
    scale_y_reverse("From rank", expand = c(0, 0), limits = c(ranks - 0.5, -0.5)) +
    coord_equal() +
    labs(title = paste0(label, ": bytes between ranks")) + simulated_tag() + theme_study() +
    theme(legend.title = element_text(), legend.key.width = grid::unit(3, "lines"))
}

time_axis <- function(replay) {
  long <- replay$about$makespan_us > 5000
  scale_x_continuous(
    if (long) "Time (ms)" else "Time (\u00b5s)", labels = function(x) format_number(if (long) x / 1000 else x),
    expand = c(0.005, 0)
  )
}

#' A strip below the axis that shows what ranks do in each interval; `top` is the largest value of the figure
#' @noRd
phase_strip <- function(replay, top) {
  if (!is.finite(top) || top <= 0) top <- 1
  rows <- replay$operations |>
    mutate(operation = operation_class(.data$operation)) |>
    group_by(.data$interval, .data$operation) |>
    summarise(us = sum(.data$rank_us), .groups = "drop_last") |>
    arrange(.data$operation != "compute", .data$operation, .by_group = TRUE) |>
    mutate(high = cumsum(.data$us) / sum(.data$us), low = .data$high - .data$us / sum(.data$us)) |>
    ungroup() |>
    filter(.data$us > 0)
  width <- replay$about$interval_us
  geom_rect(
    aes(
      xmin = .data$interval * width, xmax = (.data$interval + 1) * width, ymin = top * (-0.17 + 0.14 * .data$low),
      ymax = top * (-0.17 + 0.14 * .data$high), fill = .data$operation
    ),
    data = rows, inherit.aes = FALSE
  )
}

#' The operations of the strip, those with most time first
#' @noRd
phase_operations <- function(replay) {
  traffic <- filter(summarise_traffic(replay), .data$time_us > 0)
  traffic$operation[order(-traffic$time_us)]
}

#' Breaks from zero upwards, round in the unit of the labels; the strip below zero gets none
#' @noRd
above_zero <- function(labels, unit_of = function(x) 1) {
  list(breaks = function(limits) {
    unit <- unit_of(limits[2])
    breaks <- scales::breaks_extended(5)(c(0, limits[2]) / unit) * unit
    breaks[breaks >= 0]
  }, labels = labels)
}

byte_unit <- function(bytes) 1024^floor(log(max(bytes, 1), 1024))

above_zero_bytes <- function() above_zero(label_bytes, byte_unit)

#' About five powers of two as breaks of a logarithmic scale of bytes
#' @noRd
byte_breaks <- function(limits) {
  powers <- seq(0, ceiling(log2(max(limits, 2))))
  powers <- powers[2^powers >= min(limits)]
  2^powers[powers %% max(1, ceiling(length(powers) / 5)) == 0]
}

phase_scale <- function(replay, more = character()) {
  operations <- phase_operations(replay)
  scale_fill_manual(values = c(more, colours_of_operations(operations)), breaks = operations)
}

plot_ports <- function(replay, switch, label) {
  rows <- replay$links |>
    inner_join(filter(replay$ports, .data$sender == switch), "link")
  ports <- unique(replay$ports$port[replay$ports$sender == switch])
  colours <- setNames(many_colours(length(ports), "Spectral"), ports)
  width <- replay$about$interval_us
  top <- max(0, tapply(rows$bytes, rows$interval, sum))
  y <- above_zero_bytes()
  ggplot(rows) +
    geom_col(
      aes((.data$interval + 0.5) * width, .data$bytes, fill = factor(.data$port, ports)), width = width
    ) +
    phase_strip(replay, top) + phase_scale(replay, colours) + time_axis(replay) +
    scale_y_continuous("Bytes in an interval", breaks = y$breaks, labels = y$labels) +
    labs(title = paste0(label, ": bytes by port of switch ", switch)) + simulated_tag() + theme_study()
}

plot_switches <- function(replay, label) {
  ports <- filter(replay$ports, .data$stage > 0)
  rows <- inner_join(replay$links, ports, "link")
  names <- unique(ports$port)
  colours <- setNames(many_colours(length(names), "Spectral"), names)
  width <- replay$about$interval_us
  ggplot(rows, aes((.data$interval + 0.5) * width, .data$bytes, fill = factor(.data$port, names))) +
    geom_col(width = width) +
    facet_wrap(vars(factor(.data$sender, unique(ports$sender))), ncol = 4, drop = FALSE) +
    scale_fill_manual(values = colours) + guides(fill = guide_legend(nrow = 2)) +
    time_axis(replay) +
    scale_y_continuous("Bytes in an interval", breaks = above_zero_bytes()$breaks, labels = label_bytes) +
    labs(title = paste0(label, ": bytes by switch and port")) + simulated_tag() + theme_study(9)
}

plot_message_latency <- function(replay, label) {
  rows <- filter(replay$intervals, .data$messages > 0)
  width <- replay$about$interval_us
  y <- above_zero(format_number)
  ggplot(rows, aes(.data$start_us + width / 2)) +
    geom_col(aes(y = .data$latency_us), width = width, fill = "#0072B2") +
    geom_segment(
      aes(.data$start_us, .data$unloaded_us, xend = .data$start_us + width, yend = .data$unloaded_us),
      colour = "#E69F00", linewidth = 0.4
    ) +
    phase_strip(replay, max(rows$latency_us, 0)) + phase_scale(replay) + time_axis(replay) +
    scale_y_continuous("Mean latency (\u00b5s)", breaks = y$breaks, labels = y$labels) +
    labs(title = paste0(label, ": message latency"), subtitle = "Line: on an empty network") +
    simulated_tag() + theme_study()
}

#' The largest share of an interval in which a port of a switch is saturated
#'
#' @param replay List from [read_replay()].
#' @return Tibble: interval, sender (the switch), stage, share (0 to 1).
#' @noRd
summarise_saturation <- function(replay) {
  width <- replay$about$interval_us
  replay$links |>
    inner_join(filter(replay$ports, .data$stage > 0), "link") |>
    group_by(.data$interval, .data$sender, .data$stage) |>
    summarise(share = pmin(1, max(.data$saturated_us, 0) / width), .groups = "drop")
}

#' The same for every switch and interval, with 0 where none is saturated
#' @noRd
complete_saturation <- function(replay) {
  switches <- unique(replay$ports$sender[replay$ports$stage > 0])
  summarise_saturation(replay)[c("interval", "sender", "share")] |>
    complete(interval = replay$intervals$interval, sender = switches, fill = list(share = 0)) |>
    mutate(sender = factor(.data$sender, switches))
}

plot_saturation <- function(replay, label) {
  rows <- complete_saturation(replay)
  switches <- levels(rows$sender)
  colours <- setNames(many_colours(length(switches), "Zissou 1"), switches)
  top <- max(0, tapply(rows$share, rows$interval, sum))
  width <- replay$about$interval_us
  y <- above_zero(scales::label_percent(accuracy = if (top < 0.05) 0.1 else 1))
  ggplot(rows) +
    geom_area(aes((.data$interval + 0.5) * width, .data$share, fill = .data$sender), position = "stack") +
    phase_strip(replay, top) + phase_scale(replay, colours) + time_axis(replay) +
    scale_y_continuous("Saturated, stacked by switch", breaks = y$breaks, labels = y$labels) +
    labs(title = paste0(label, ": link saturation")) + simulated_tag() + theme_study()
}

plot_saturation_map <- function(replay, label) {
  width <- replay$about$interval_us
  rows <- mutate(complete_saturation(replay), sender = factor(.data$sender, rev(levels(.data$sender))))
  ggplot(rows, aes((.data$interval + 0.5) * width, .data$sender, fill = .data$share)) +
    geom_tile(width = width, height = 0.95) +
    scale_fill_viridis_c("Saturated", labels = scales::label_percent(), option = "rocket", direction = -1) +
    time_axis(replay) +
    labs(y = "Switch", title = paste0(label, ": link saturation by switch")) + simulated_tag() + theme_study() +
    theme(
      legend.title = element_text(), legend.key.width = grid::unit(3, "lines"), panel.grid = element_blank(),
      axis.text.y = element_text(size = rel(if (nlevels(rows$sender) > 24) 0.6 else 0.85))
    )
}

plot_throughput <- function(replay, label) {
  width <- replay$about$interval_us
  hosts <- filter(replay$ports, .data$stage == 0)
  capacity <- sum(hosts$gb_s) * 1e3 * width
  busiest <- replay$links |>
    left_join(replay$ports, "link") |>
    group_by(.data$interval) |>
    summarise(share = max(.data$bytes / (.data$gb_s * 1e3 * width), 0)) |>
    complete(interval = replay$intervals$interval, fill = list(share = 0))
  rows <- mutate(replay$intervals, share = .data$bytes / capacity)
  top <- max(busiest$share, rows$share, 0)
  y <- above_zero(scales::label_percent(accuracy = if (top < 0.05) 0.1 else 1))
  ggplot(rows, aes(.data$start_us + width / 2, .data$share)) +
    geom_step(aes(.data$interval * width), data = busiest, colour = "#D55E00", linewidth = 0.35) +
    geom_col(width = width, fill = "#0072B2") +
    phase_strip(replay, top) + phase_scale(replay) + time_axis(replay) +
    scale_y_continuous("Share of capacity", breaks = y$breaks, labels = y$labels) +
    labs(
      title = paste0(label, ": network throughput"), subtitle = "Bars: all hosts together; line: the busiest link"
    ) +
    simulated_tag() + theme_study()
}

#' Figure of the change by each alternative, in percent of the default
#'
#' @param results List from [read_results()].
#' @param rows Tibble from [summarise_replays()].
#' @return A ggplot.
#' @noRd
plot_alternatives <- function(results, rows) {
  labels <- application_labels(results$study)
  measures <- c(
    makespan_change_pct = "Makespan", communication_change_pct = "Time in MPI", peak_change_pct = "Peak load"
  )
  first <- first_machine(results)
  shown <- rows |>
    filter(!(.data$replay == "default" & .data$machine == .env$first)) |>
    mutate(
      network = paste("On", map_chr(.data$machine, replay_machine, results = results)),
      what = ifelse(.data$machine == .env$first, .data$replay, .data$network),
      application = factor(labels[.data$application], labels)
    ) |>
    pivot_longer(all_of(names(measures)), names_to = "measure", values_to = "change") |>
    filter(!is.na(.data$change)) |>
    mutate(measure = factor(.data$measure, names(measures), measures))
  ggplot(shown, aes(.data$change, .data$what, fill = .data$change > 0)) +
    geom_col(width = 0.65) +
    geom_vline(xintercept = 0, linewidth = 0.3) +
    facet_grid(
      vars(.data$application), vars(.data$measure), scales = "free", space = "free_y",
      labeller = labeller(application = ggplot2::label_wrap_gen(16))
    ) +
    scale_fill_manual(values = c("TRUE" = "#D55E00", "FALSE" = "#0072B2"), guide = "none") +
    scale_x_continuous("Change (%)") +
    labs(
      y = NULL, title = "Change of each alternative against the default", subtitle = "Negative: better than the default"
    ) +
    simulated_tag() + theme_study() +
    theme(strip.text.y = element_text(angle = 0, hjust = 0))
}
