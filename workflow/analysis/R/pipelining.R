# One blocking call, one non-blocking call with its wait, and a pipeline of non-blocking calls ([duro-redsea], section
# 3.2.2).

non_blocking <- c(ibcast = "bcast", iallreduce = "allreduce", ireduce_scatter = "reduce_scatter")

pipelining_kinds <- c(
  "one blocking call", "one non-blocking call", "segments: fixed number", "segments: fixed size"
)

#' Bandwidth of every way to perform an operation
#'
#' @param results List from [read_results()].
#' @return Tibble as [read_slowest()] plus operation (bcast, allreduce, reduce_scatter), kind (one blocking call; one
#'   non-blocking call and its wait; pipelined with a fixed number of segments; pipelined with segments of a fixed
#'   size), segmented (whether the message has several segments), name (label of the algorithm), way (label with the
#'   segments), and bandwidth_mb_s = message size (10^6 B) / latency (s), as in the figures of [duro-redsea].
#' @noRd
summarise_bandwidth <- function(results) {
  rows <- read_slowest(results)
  places <- name_places(rows, results)$place
  if (n_distinct(places) > 1) rows$mpi <- paste0(mpi_label(rows$mpi), ", ", places)
  known <- results$study$algorithms
  at <- match(paste(rows$collective, rows$algorithm), paste(known$collective, known$algorithm))
  parameters <- results$study$variants$parameters[variant_at(results$study, rows$collective, rows$algorithm)]
  parameter <- function(name) map_dbl(parameters, parameter_of, name, NA_real_)
  segments <- coalesce(parameter("segments"), 0)
  pipelined <- known$inside[at] != ""
  bytes <- ifelse(pipelined, parameter("segment_bytes"), NA)
  # "Ring, 1 MiB" instead of "pipelined ring", because the title of the panel says so.
  name <- ifelse(pipelined, known$inside[at], known$label[at])
  mutate(rows,
    operation = coalesce(unname(non_blocking[.data$collective]), .data$collective),
    kind = factor(case_when(
      !is.na(.env$bytes) ~ pipelining_kinds[4], .env$segments > 1 ~ pipelining_kinds[3],
      .env$segments == 1 | .data$collective %in% names(non_blocking) ~ pipelining_kinds[2], TRUE ~ pipelining_kinds[1]
    ), pipelining_kinds),
    segmented = .env$segments > 1 | coalesce(.data$size_bytes > .env$bytes, FALSE),
    name = .env$name, way = way_words(.env$name, .env$segments, .env$bytes),
    bandwidth_mb_s = .data$size_bytes / .data$latency_us
  )
}

way_words <- function(name, segments, bytes) {
  if (length(name) == 0) return(character())
  case_when(
    !is.na(bytes) ~ paste0(name, ", ", label_bytes(bytes)),
    segments > 1 ~ paste0(name, ", ", segments, " segments"),
    TRUE ~ name
  )
}

mpi_label <- function(mpi) factor(coalesce(unname(mpi_labels()[mpi]), mpi), unique(c(unname(mpi_labels()), mpi)))

#' Gain from pipelining: the best pipelined variant against the best single call
#'
#' @param rows Tibble from [summarise_bandwidth()].
#' @return Tibble: operation, mpi, size_bytes, blocking_mb_s and non_blocking_mb_s (the best of each), pipelined_mb_s,
#'   pipelined (the variant that reaches it), gain_over_one_pct (pipelined over the better of the others).
#' @noRd
summarise_pipelining <- function(rows) {
  best <- filter(rows, as.integer(.data$kind) <= 2 | .data$segmented) |>
    mutate(what = c("blocking", "non_blocking", "pipelined", "pipelined")[as.integer(.data$kind)]) |>
    arrange(desc(.data$bandwidth_mb_s)) |>
    distinct(.data$operation, .data$mpi, .data$size_bytes, .data$what, .keep_all = TRUE)
  named <- best |>
    filter(.data$what == "pipelined") |>
    select("operation", "mpi", "size_bytes", pipelined = "way")
  wide <- best |>
    select("operation", "mpi", "size_bytes", "what", "bandwidth_mb_s") |>
    pivot_wider(names_from = "what", values_from = "bandwidth_mb_s", names_glue = "{what}_mb_s")
  for (name in setdiff(c("blocking_mb_s", "non_blocking_mb_s", "pipelined_mb_s"), names(wide))) wide[[name]] <- NA_real_
  left_join(wide, named, by = c("operation", "mpi", "size_bytes")) |>
    mutate(gain_over_one_pct = 100 * (
      .data$pipelined_mb_s / pmax(.data$blocking_mb_s, .data$non_blocking_mb_s, na.rm = TRUE) - 1
    )) |>
    arrange(.data$operation, mpi_label(.data$mpi), .data$size_bytes) |>
    select("operation", "mpi", "size_bytes", "blocking_mb_s", "non_blocking_mb_s", "pipelined_mb_s", "pipelined",
           "gain_over_one_pct")
}

#' Gain from pipelining the same algorithm, as [duro-redsea] compares them: the ring against the ring in segments
#' @noRd
summarise_same_way <- function(rows) {
  one <- rows |>
    filter(.data$kind == pipelining_kinds[2]) |>
    select("operation", "mpi", "name", "size_bytes", one_mb_s = "bandwidth_mb_s")
  rows |>
    filter(.data$segmented) |>
    inner_join(one, by = c("operation", "mpi", "name", "size_bytes")) |>
    arrange(desc(.data$bandwidth_mb_s), desc(.data$one_mb_s)) |>
    distinct(.data$operation, .data$mpi, .data$name, .data$size_bytes, .keep_all = TRUE) |>
    mutate(gain_pct = 100 * (.data$bandwidth_mb_s / .data$one_mb_s - 1))
}

pipelined_operations <- c("allreduce", "bcast", "reduce_scatter")

operations_of <- function(rows) intersect(pipelined_operations, rows$operation)

bandwidth_note <- "Bandwidth: message size (10\u2076 B) / time (s) until the last rank is done [@duro-redsea]."

tables_pipelining <- function(results) {
  rows <- summarise_bandwidth(results)
  gains <- summarise_pipelining(rows)
  map(operations_of(rows), function(operation) {
    listed(operation, "gain", select(filter(gains, .data$operation == .env$operation), -"operation"), caption_in(
      results, operation, "bandwidth (MB/s) of the best blocking call, the best single non-blocking call and the best ",
      "pipelined variant, and the gain of the latter over the better of the two. ", bandwidth_note
    ))
  })
}

figures_pipelining <- function(results) {
  rows <- summarise_bandwidth(results)
  map(operations_of(rows), function(operation) {
    libraries <- n_distinct(rows$mpi[rows$operation == operation])
    figure(
      operation, "bandwidth", plot_operation_bandwidth(results, operation), paste0(
        bandwidth_note, " Rows: MPI libraries and, if there are several, placements; columns: how the operation is ",
        "called.", launches_note(rows)
      ), 10, 2.6 + 2.3 * libraries
    )
  })
}

launches_note <- function(rows) {
  if (all(rows$launches == 1)) return("")
  paste0(" Points are medians over ", count_range(rows$launches, "launch", "launches"), ", bars their range.")
}

#' Bandwidth against message size; rows: MPI libraries, columns: kinds of calls (RED-SEA, Figures 10 to 12)
#'
#' @param results List from [read_results()].
#' @param operation bcast, allreduce or reduce_scatter.
#' @return A ggplot.
#' @noRd
plot_operation_bandwidth <- function(results, operation) {
  rows <- filter(summarise_bandwidth(results), .data$operation == .env$operation) |>
    mutate(way = factor(.data$way, unique(.data$way[order(
      .data$kind, match(.data$algorithm, results$study$algorithms$algorithm)
    )])))
  colours <- setNames(
    rep(c("#333333", spare_colours), length.out = nlevels(rows$way)), levels(rows$way)
  )
  ggplot(rows, aes(.data$size_bytes, .data$bandwidth_mb_s, colour = .data$way, shape = .data$way)) +
    (if (any(rows$launches > 1)) geom_linerange(
      aes(ymin = .data$size_bytes / .data$high_us, ymax = .data$size_bytes / .data$low_us), linewidth = 0.35,
      alpha = 0.5
    )) +
    geom_line(linewidth = 0.35, alpha = 0.7) +
    geom_point(size = 1.5) +
    facet_grid(vars(mpi_label(.data$mpi)), vars(.data$kind)) +
    scale_colour_manual(values = colours) +
    scale_shape_manual(values = rep(point_shapes, length.out = nlevels(rows$way))) +
    scale_x_size() +
    scale_y_continuous("Bandwidth (MB/s)", limits = c(0, NA), labels = scales::label_comma()) +
    labs(title = paste0(collective_title(operation), ": one call, and a pipeline of non-blocking calls")) +
    tag_simulated(results$study) + theme_study() +
    theme(axis.text.x = element_text(angle = 45, hjust = 1), panel.spacing.x = grid::unit(1.2, "lines"))
}

#' Sentences that answer the questions of the RED-SEA project about pipelining
#'
#' @param results List from [read_results()].
#' @param part An operation: bcast, allreduce or reduce_scatter.
#' @return Character vector.
#' @noRd
describe_pipelining <- function(results, part) {
  rows <- filter(summarise_bandwidth(results), .data$operation == .env$part)
  if (nrow(rows) == 0) return(character())
  largest <- max(rows$size_bytes)
  gains <- filter(summarise_pipelining(rows), .data$size_bytes == largest, !is.na(.data$gain_over_one_pct))
  same <- filter(summarise_same_way(rows), .data$size_bytes == largest)
  c(
    if (nrow(gains) > 0) paste0(
      "At ", label_bytes(largest), " the best pipelined ", collective_word(part), " reaches ",
      and_list(paste0(
        scales::label_comma(1)(gains$pipelined_mb_s), " MB/s with ", mpi_label(gains$mpi), " (", gains$pipelined, "), ",
        gain_words(gains$gain_over_one_pct)
      )), " the best single call."
    ),
    if (nrow(same) > 0) paste0(
      "At ", label_bytes(largest), ", pipelined against one non-blocking call of the same algorithm: ",
      and_list(paste0(
        same$name, " with ", mpi_label(same$mpi), " ", scales::label_comma(1)(same$bandwidth_mb_s), " against ",
        scales::label_comma(1)(same$one_mb_s), " MB/s (", ifelse(same$gain_pct >= 0, "+", "\u2212"),
        format_pct(abs(same$gain_pct)), ")"
      )), "."
    )
  )
}

gain_words <- function(pct) paste(format_pct(abs(pct)), ifelse(pct >= 0, "above", "below"))

describe_pipelining_answer <- function(results) {
  sentence <- describe_pipelining(results, "allreduce")
  if (length(sentence) == 0) return(paste0(study_name(results), ": no allreduce was measured."))
  paste0(study_name(results), ": ", sentence[1])
}
