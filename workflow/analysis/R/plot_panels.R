# The panels, rows and columns of figures of collectives for studies that do not fill the grid of mappings, process
# counts and message sizes: panels without points, or with a single one, are left out.

#' Rows of one mapping at message sizes that have nearly all process counts, and thus a curve against processes
#'
#' Nearly all: at least three quarters of the largest number, as in [common_counts()].
#' @noRd
rows_of_curves <- function(results, collective, mapping) {
  rows <- rows_to_fit(results, collective)
  rows <- rows[rows$mapping == mapping, ]
  of_size <- vctrs::vec_group_id(rows["size_bytes"])
  cells <- !duplicated(data.frame(of_size, rows$processes))
  counts <- tabulate(of_size[cells])[of_size]
  rows[counts > 1 & counts >= 0.75 * max(counts, 1), ]
}

#' Rows in which mappings can be compared: algorithms and sizes that at least two mappings have at two process counts
#' @noRd
rows_of_mappings <- function(results, collective) {
  rows <- rows_to_fit(results, collective)
  cells <- distinct(rows[c("algorithm", "size_bytes", "processes", "mapping")])
  points <- count(cells, .data$algorithm, .data$size_bytes, .data$processes)
  curves <- count(points[points$n > 1, ], .data$algorithm, .data$size_bytes)
  curves <- curves[curves$n > 1, c("algorithm", "size_bytes")]
  droplevels(rows[vctrs::vec_in(rows[c("algorithm", "size_bytes")], curves), ])
}

#' Rows at up to three process counts that nearly every algorithm has
#' @noRd
rows_of_sizes <- function(results, collective) {
  rows <- rows_to_fit(results, collective)
  counts <- spread_out(common_counts(rows, results$study$analysis$best_excludes), 3)
  droplevels(filter(rows, .data$processes %in% counts))
}

#' Those rows of [rows_of_sizes()] whose bandwidth is drawn: 64 KiB and more, if there are at least three such sizes
#' @noRd
rows_of_bandwidth <- function(results, collective) {
  filter(rows_of_sizes(results, collective), .data$size_bytes >= 2^16) |>
    group_by(.data$algorithm, .data$mapping, .data$processes) |>
    filter(n() > 2) |>
    ungroup() |>
    droplevels()
}

#' Slow-down of each algorithm against the fastest of its cell (geometric mean), by mapping and message size
#'
#' @return Tibble: mapping, algorithm (a factor, in reverse order of the legends), size_bytes, slowdown. Cells with a
#'   single algorithm are left out, and those of two ranks, between which all algorithms send the same messages.
#' @noRd
rows_of_slowdown <- function(results, collective) {
  excludes <- results$study$analysis$best_excludes
  judged <- c(results["study"], results$judged)
  rows <- filter(find_rows_to_fit(judged, collective), !.data$algorithm_name %in% excludes, .data$processes > 2)
  rows$size_bytes <- drawn_sizes(rows)
  rows |>
    group_by(.data$mapping, .data$processes, .data$size_bytes) |>
    filter(n_distinct(.data$algorithm) > 1) |>
    mutate(slowdown = .data$latency_us / min(.data$latency_us, Inf)) |> # Inf: there may be no rows
    group_by(.data$mapping, .data$algorithm, .data$size_bytes) |>
    summarise(slowdown = geometric_mean(.data$slowdown), .groups = "drop") |>
    mutate(algorithm = factor(.data$algorithm, rev(levels(droplevels(.data$algorithm)))))
}

#' TRUE if every mapping has every process count of these panels
#' @noRd
is_grid <- function(panels) nrow(panels) == n_distinct(panels$processes) * n_distinct(panels$mapping)

# Largest number of columns of a map that leaves room for a dot in each.
most_dotted <- 60

#' The base (8, 4 or 2) to whose powers a map rounds its message sizes; 1: no rounding
#'
#' Sizes that are multiples of different process counts would each need a row, most of it empty. The largest base is
#' chosen with which no two sizes of one column coincide.
#' @noRd
size_step <- function(rows) {
  cells <- distinct(rows, .data$mapping, .data$processes, .data$size_bytes)
  columns <- nrow(distinct(cells, .data$mapping, .data$processes))
  if (anyNA(cells$size_bytes) || nrow(cells) >= 0.7 * columns * n_distinct(cells$size_bytes)) return(1)
  for (step in c(8, 4, 2)) {
    together <- mutate(cells, size_bytes = step^round(log(.data$size_bytes, step)))
    if (nrow(distinct(together)) == nrow(cells)) return(step)
  }
  1
}

drawn_sizes <- function(rows) {
  step <- size_step(rows)
  if (step == 1) rows$size_bytes else step^round(log(rows$size_bytes, step))
}

#' Panels of a map, one per mapping, with its own process counts as columns; few columns have equal widths in all panels
#' @noRd
facet_cells <- function(results, rows) {
  label <- labeller(.default = mapping_labels(results$study))
  counts <- map(split(rows$processes, as.character(rows$mapping)), function(here) sort(unique(here)))
  same <- length(unique(counts)) == 1
  if (same || length(counts) > 3 || max(lengths(counts)) > 24) {
    return(facet_wrap(vars(.data$mapping), scales = if (same) "fixed" else "free_x", labeller = label))
  }
  facet_grid(cols = vars(.data$mapping), scales = "free_x", space = "free_x", labeller = label)
}

#' A note for captions on rounded message sizes and empty cells of a map
#'
#' @param empty Their colour.
#' @noRd
map_note <- function(rows, empty = "White") {
  if (anyNA(rows$size_bytes)) return("")
  step <- size_step(rows)
  cells <- nrow(distinct(rows, .data$mapping, .data$processes, .data$size_bytes))
  rows$size_bytes <- drawn_sizes(rows)
  room <- nrow(distinct(rows, .data$mapping, .data$processes)) * n_distinct(rows$size_bytes)
  notes <- c(
    if (step > 1) paste0(
      " Message sizes are rounded to powers of ", step, ", because they differ between process counts."
    ),
    if (cells < room) paste0(" ", empty, ": fewer than two algorithms were measured.")
  )
  paste(notes, collapse = "")
}

#' A text in the panels of a grid that have no rows, in the middle of the horizontal axis and at height 1
#'
#' @param rows Tibble; each pair of values of `panels` (two column names) is a panel.
#' @param x Column of the horizontal axis; the middle of a logarithmic axis is the geometric mean of its ends.
#' @noRd
layer_absent <- function(rows, panels, x, words = "not measured") {
  all <- do.call(expand.grid, c(map(rows[panels], unique), stringsAsFactors = FALSE))
  absent <- anti_join(all, rows, panels)
  if (nrow(absent) == 0) return(NULL)
  ends <- range(rows[[x]])
  absent[[x]] <- if (x == "size_bytes") geometric_mean(ends) else mean(ends)
  geom_text(
    aes(.data[[x]], 1), absent, label = words, inherit.aes = FALSE, vjust = -0.8, size = 2.8, colour = "grey45"
  )
}
