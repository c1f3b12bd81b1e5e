# Parts shared by the figures of collectives: points and lines, boundaries of units, notes for captions, message sizes.

#' Points with thin lines, and intervals where there are several launches
#'
#' A line joins the cells of one author only: a step between two authors is not a property of the machine.
#' @noRd
layer_points <- function(rows, line = TRUE, low = "low_us", high = "high_us") {
  authors <- n_distinct(rows[["source"]]) > 1
  list(
    if (line && authors) geom_line(aes(linetype = .data$source), linewidth = 0.35, alpha = 0.7),
    if (line && !authors) geom_line(linewidth = 0.35, alpha = 0.7),
    if (line && authors) scale_linetype_manual(
      values = rep(c("solid", "22", "12", "42"), length.out = nlevels(rows$source)), labels = capitalised
    ),
    if (any(rows$launches > 1)) geom_linerange(
      aes(ymin = .data[[low]], ymax = .data[[high]]), linewidth = 0.4, alpha = 0.6
    ),
    geom_point(size = 1.3)
  )
}

# Most process counts of one algorithm whose points fit side by side in a panel of half a page, and of a quarter.
most_in_half <- 60
most_in_quarter <- 30

#' Rows to draw: at most `most` process counts of each algorithm and mapping, evenly spread from the first to the last
#' @noRd
drawn_counts <- function(rows, most = most_in_half) {
  kept <- map(split(seq_len(nrow(rows)), list(rows$algorithm, rows$mapping), drop = TRUE), function(at) {
    at[rows$processes[at] %in% spread_out(sort(unique(rows$processes[at])), most)]
  })
  rows[sort(unlist(kept)), ]
}

#' A note for captions on what [drawn_counts()] leaves out; empty where it leaves out nothing
#' @noRd
drawn_note <- function(rows, most = most_in_half) {
  counts <- count(distinct(rows, .data$algorithm, .data$mapping, .data$processes), .data$algorithm, .data$mapping)
  if (max(0, counts$n) <= most) return("")
  paste0(" At most ", most, " process counts of each algorithm are drawn, evenly spread; the tables have all.")
}

#' Process counts at which a mapping begins to use one more unit of a level
#'
#' @param results List from [read_results()].
#' @param collective Name of a collective.
#' @param mappings Names of mappings.
#' @param most Largest number of processes of the figure.
#' @return Tibble: mapping, processes (the last count that needs no further unit), level. Empty where the levels of the
#'   machine are not known.
#' @noRd
summarise_boundaries <- function(results, collective, mappings, most) {
  key <- paste(c("boundaries", collective, most, as.character(mappings)), collapse = "\r")
  remember(results, key, function() find_boundaries(results, collective, mappings, most))
}

find_boundaries <- function(results, collective, mappings, most) {
  none <- tibble(mapping = character(), processes = numeric(), level = character())
  names <- group_sizes(results$study)$level
  if (length(names) == 0 || most < 2) return(none)
  found <- map_dfr(mappings, function(mapping) {
    place <- place_most(results$study, collective, mapping, most)
    if (is.null(place)) return(none)
    map_dfr(rev(names), function(name) {
      used <- cumsum(!duplicated(place[, name]))
      tibble(mapping = mapping, processes = which(diff(used) > 0), level = name)
    })
  })
  # Where the lines of a level would touch, none of that level is drawn: drawing a few would look like all.
  found <- bind_rows(none, found) |>
    group_by(.data$mapping, .data$level) |>
    filter(all(diff(sort(.data$processes)) >= most / 20)) |>
    ungroup() |>
    filter(.data$processes > most / 10)
  distinct(arrange(found, match(.data$level, names)), .data$mapping, .data$processes, .keep_all = TRUE) |>
    group_by(.data$mapping) |>
    filter(!beside(.data$processes, most / 20)) |>
    ungroup()
}

#' For each value: is an earlier one (of an outer level) so near that the two lines would coincide?
#' @noRd
beside <- function(values, near) {
  vapply(seq_along(values), function(i) any(abs(values[seq_len(i - 1)] - values[i]) < near), TRUE)
}

layer_boundaries <- function(results, rows, collective) {
  mappings <- as.character(unique(rows$mapping))
  lines <- summarise_boundaries(results, collective, mappings, max(rows$processes))
  if (nrow(lines) == 0) return(NULL)
  lines$mapping <- factor(lines$mapping, levels(rows$mapping))
  outer <- lines$level == group_sizes(results$study)$level[1]
  list(
    layer_line(lines[outer, ], "grey35", "dashed"),
    layer_line(lines[!outer, ], "grey65", "dotted")
  )
}

layer_line <- function(lines, colour, linetype) {
  if (nrow(lines) == 0) return(NULL)
  geom_vline(aes(xintercept = .data$processes), lines, colour = colour, linetype = linetype, linewidth = 0.35)
}

boundary_note <- function(results, collective, mappings, most) {
  lines <- summarise_boundaries(results, collective, mappings, most)
  outer <- group_sizes(results$study)$level[1]
  kinds <- c(
    if (any(lines$level == outer)) paste0("a further ", level_word(outer), " (dashed)"),
    if (any(lines$level != outer)) {
      paste0("a further ", paste(level_word(setdiff(unique(lines$level), outer)), collapse = " or "), " (dotted)")
    }
  )
  if (length(kinds) == 0) return("")
  paste0(" Beyond a vertical line, processes need ", paste(kinds, collapse = " or "), ".")
}

interval_note <- function(rows) {
  several <- rows$launches[rows$launches > 1]
  bars <- if (all(several < 6)) "their range" else paste0(
    "the 95 % intervals of the medians", if (any(several < 6)) " (of fewer than six launches, their range)"
  )
  paste0(
    if (length(several) == 0) " Points are single launches;" else paste0(
      " Points are medians over ", count_range(rows$launches, "launch", "launches"), ", bars ", bars, ";"
    ),
    " lines only guide the eye.",
    if (n_distinct(rows[["source"]]) > 1) paste(
      " Line type: the author of a cell, or the one of its authors with the most measurements."
    )
  )
}

shown_sizes <- function(results, rows) {
  wanted <- results$study$analysis$figure_sizes
  found <- sort(unique(rows$size_bytes))
  here <- intersect(wanted, found)
  if (length(here) == 0) spread_out(found, 4) else sort(here)
}

#' The sizes that [plot_mappings()] draws: so few that its panels (one per algorithm and size) are about a dozen
#' @noRd
mapped_sizes <- function(results, rows) {
  spread_out(shown_sizes(results, rows), max(2, 12 %/% n_distinct(rows$algorithm)))
}

size_factor <- function(size) {
  size <- as.numeric(size)
  known <- sort(unique(size))
  factor(size, known, label_bytes(known))
}
