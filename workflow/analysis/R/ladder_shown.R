# Ladders: tables, figures and sentences.

tables_of_ladder <- function(results) {
  ladder <- read_ladder(results)
  if (nrow(ladder) == 0) return(NULL)
  for (own in by_library(read_pairs(results))) check_pairs(results$study, own)
  for (own in by_library(ladder)) check_ladder(own)
  timed <- ladder_collective(results)
  levels <- summarise_ladder(ladder)
  c(
    list(listed(timed, "levels", levels, paste0(
      "Fitted latency and bandwidth of each level", simulated_note(results$study), ", with the 95 % intervals of the ",
      "fits over message sizes: latency is the intercept of a line through the messages of up to 64 B, bandwidth the ",
      "inverse slope of a line through those of 64 KiB and more (1 GB = 10\u2079 B), with the least relative squares. ",
      "Pairs: number of pairs that send at the same time.", pairs_note(results),
      if (any(!is.na(levels$gap_us))) " Gap: time between the smallest messages of a window (\u00b5s)."
    ), part = "levels")),
    if (any(ladder$pairs > 1)) list(listed(timed, "contention", summarise_contention(levels), paste0(
      "Cost of concurrent pairs", simulated_note(results$study), ": latency and bandwidth of a pair relative to a ",
      "single pair, and of each level relative to the innermost level."
    ))),
    tables_published(results, ladder)
  )
}

#' How many pairs of cores the latency of a level is the median of, and at which sizes; empty where each level has one
#' pair
#' @noRd
pairs_note <- function(results) {
  found <- read_pairs(results)
  if (nrow(found) == 0) return("")
  sizes <- unique(found$size_bytes)
  ladder <- read_ladder(results)
  others <- setdiff(ladder$size_bytes[!is.na(ladder$latency_us) & ladder$pairs == 1], sizes)
  pairs <- distinct(found, .data$from_core, .data$to_core, .data$level)
  levels <- intersect(map_chr(results$study$machine$levels, "name"), pairs$level)
  counts <- table(factor(pairs$level, levels))
  paste0(
    " Latencies ", if (length(others) > 0) paste("of messages of", size_range(min(sizes), max(sizes)), ""),
    "are medians over the pairs of cores that the level separates: ",
    and_list(paste(count_of(counts, "pair"), "of level", level_word(levels))), "."
  )
}

ladder_collective <- function(results) {
  intersect(c("latency", "multi_lat", "pairs", "bw"), names(results$study$collectives))[1]
}

summarise_contention <- function(levels) {
  inner <- utils::tail(unique(levels$level), 1)
  levels |>
    group_by(across(any_of("mpi")), .data$level) |>
    mutate(
      latency_ratio = .data$latency_us / .data$latency_us[match(1, .data$pairs)],
      bandwidth_ratio = .data$bandwidth_gb_s / .data$bandwidth_gb_s[match(1, .data$pairs)]
    ) |>
    group_by(across(any_of("mpi")), .data$pairs) |>
    mutate(
      latency_over_core = .data$latency_us / .data$latency_us[match(inner, .data$level)],
      bandwidth_over_core = .data$bandwidth_gb_s / .data$bandwidth_gb_s[match(inner, .data$level)]
    ) |>
    ungroup() |>
    select(
      any_of("mpi"), "level", "pairs", "latency_ratio", "bandwidth_ratio", "latency_over_core", "bandwidth_over_core"
    )
}

#' The published ping-pong (Wisner), if the study is of the same machine
#'
#' @param results List from [read_results()].
#' @return Tibble: level, pairs, size_bytes, latency_us (half of the round trip). NULL for other machines.
#' @noRd
read_published_pingpong <- function(results) {
  if (!identical(results$study$machine$name, "ethernet-lab")) return(NULL)
  path <- system.file("extdata", "wisner_pingpong.csv", package = "collanalysis")
  readr::read_csv(path, col_types = "ddcd", progress = FALSE) |>
    transmute(
      .data$level, .data$pairs, .data$size_bytes, bandwidth_mb_s = NA_real_,
      latency_us = .data$round_trip_ns_per_byte * .data$size_bytes / 2000
    )
}

tables_published <- function(results, ladder) {
  published <- read_published_pingpong(results)
  if (is.null(published)) return(NULL)
  keys <- c("level", "pairs")
  fitted <- function(rows) select(summarise_ladder(rows), any_of(c("mpi", keys, "latency_us", "bandwidth_gb_s")))
  both <- inner_join(
    rename(fitted(published), published_us = "latency_us", published_gb_s = "bandwidth_gb_s"),
    rename(fitted(ladder), ours_us = "latency_us", ours_gb_s = "bandwidth_gb_s"), by = keys
  )
  list(listed("multi_lat", "published", arrange(both, .data$pairs), paste0(
    "Published measurements [@wisner-svd] beside this study", simulated_note(results$study), ", both fitted in the ",
    "same way: one-way latency (\u00b5s) and bandwidth of a pair (GB/s). The parameters of the machine come from the ",
    "published single pair, so only the three concurrent pairs, and the shape between the ends, can be compared."
  )))
}

figures_of_ladder <- function(results) {
  ladder <- read_ladder(results)
  if (nrow(ladder) == 0) return(NULL)
  note <- empty_among(ladder$size_bytes)
  ladder <- filter(ladder, .data$size_bytes > 0)
  timed <- filter(ladder, !is.na(.data$latency_us))
  several <- any(timed$pairs > 1)
  published <- read_published_pingpong(results)
  height <- 2 + 2.6 * length(by_library(ladder))
  c(
    if (nrow(timed) > 0) list(figure(
      ladder_collective(results), "ladder",
      plot_ladder(results, timed, "latency_us", "Latency (\u00b5s)", "Point-to-point latency of each level"), paste0(
        "One-way time of a message (\u00b5s) against its size, by the outermost level that separates the two cores; ",
        "logarithmic axes.", if (nzchar(pairs_note(results))) " Medians over the pairs of cores of a level.", note
      ), 9, height
    )),
    if (several) list(figure(
      ladder_collective(results), "per-byte", plot_per_byte(results, timed, published), paste0(
        "Round-trip time per byte (ns/B) against message size, one pair and concurrent pairs; logarithmic axes.",
        if (!is.null(published)) " Hollow points, dashed: measurements by @wisner-svd.", note
      ), 9.5, height
    )),
    figures_of_pairs(results),
    if (any(!is.na(ladder$bandwidth_mb_s))) list(figure(
      "bw", "ladder", plot_ladder(
        results, filter(ladder, !is.na(.data$bandwidth_mb_s)), "bandwidth_mb_s", "Bandwidth (MB/s)",
        "Point-to-point bandwidth of each level"
      ),
      paste0("Bandwidth (MB/s) of a window of messages against their size; logarithmic axes.", note), 9, height
    ))
  )
}

figures_of_pairs <- function(results) {
  pairs <- read_pairs(results)
  if (nrow(pairs) == 0) return(NULL)
  small <- min(pairs$size_bytes)
  pairs <- filter(pairs, .data$size_bytes == small)
  if (n_distinct(pairs$from_core) == 1) return(list(figure_from_core(results, pairs)))
  list(figure("pairs", "matrix", plot_pairs(results, pairs), paste0(
    "Latency (\u00b5s) of a message of ", label_bytes(small), " between every two cores, numbered over the whole ",
    "machine; the colour scale is logarithmic. White: not measured, or a core with itself.",
    if (length(unit_lines(results$study, pairs)) > 0) paste0(
      " Lines: boundaries between units of the outermost level (", group_sizes(results$study)$level[1], ")."
    )
  ), 7.6, 1.6 + 5 * length(by_library(pairs))))
}

#' The boundaries between the units of the outermost level among the cores of pairs
#' @noRd
unit_lines <- function(study, pairs) {
  cores <- group_sizes(study)$ranks[1]
  if (is.na(cores)) numeric() else seq(0, max(pairs$to_core), by = cores)[-1] - 0.5
}

#' Figure of the latencies from a single core to all others, whose matrix would be a single row
#' @noRd
figure_from_core <- function(results, pairs) {
  lines <- unit_lines(results$study, pairs)
  # The measurements need not reach the last core.
  lacking <- count_cores(results$study) - 1 - n_distinct(pairs$to_core)
  plot <- ggplot(pairs, aes(.data$to_core, .data$latency_us)) +
    geom_vline(xintercept = lines, colour = "grey30", linewidth = 0.3) +
    geom_point(size = 1, colour = mapping_colours[1]) +
    panel_of_library(pairs) +
    scale_y_log10("Latency (\u00b5s)", labels = format_number, breaks = scales::breaks_log(6)) +
    labs(title = paste("Latency between core", pairs$from_core[1], "and the others"), x = "Core") +
    tag_simulated(results$study) + theme_study()
  figure("pairs", "matrix", plot, paste0(
    "Latency (\u00b5s) of a message of ", label_bytes(pairs$size_bytes[1]), "; cores are numbered over the whole ",
    "machine.", if (length(lines) > 0) paste0(
      " Vertical lines: boundaries between units of the outermost level (", group_sizes(results$study)$level[1], ")."
    ),
    if (lacking > 0) paste0(" Not measured: ", count_of(lacking, "core"), ".")
  ), 9, 1.4 + 2.6 * length(by_library(pairs)))
}

plot_pairs <- function(results, pairs) {
  both <- bind_rows(pairs, rename(pairs, from_core = "to_core", to_core = "from_core"))
  lines <- unit_lines(results$study, pairs)
  ggplot(both, aes(.data$from_core, .data$to_core, fill = .data$latency_us)) +
    geom_raster() +
    geom_vline(xintercept = lines, colour = "grey30", linewidth = 0.3) +
    geom_hline(yintercept = lines, colour = "grey30", linewidth = 0.3) +
    scale_fill_viridis_c("Latency (\u00b5s)", trans = "log10", labels = format_number) +
    scale_x_continuous("Core", expand = c(0, 0)) +
    scale_y_continuous("Core", expand = c(0, 0)) +
    coord_fixed() +
    panel_of_library(pairs) +
    labs(title = "Latency between every two cores") + tag_simulated(results$study) + theme_study() +
    theme(legend.position = "right", legend.title = element_text(), legend.key.width = NULL)
}

#' A panel for each MPI library, one below the other, if there are several
#' @noRd
panel_of_library <- function(rows) if ("mpi" %in% names(rows)) facet_wrap(vars(mpi_label(.data$mpi)), ncol = 1)

#' A panel for each number of pairs; rows: MPI libraries, if there are several
#' @noRd
panels_of_ladder <- function(rows) {
  label <- labeller(pairs = label_pairs)
  if ("mpi" %in% names(rows)) return(facet_grid(vars(mpi_label(.data$mpi)), vars(.data$pairs), labeller = label))
  if (any(rows$pairs > 1)) facet_wrap(vars(.data$pairs), labeller = label)
}

plot_ladder <- function(results, rows, column, title_y, title) {
  rows$level <- forcats_rev(rows$level)
  ggplot(rows, aes(.data$size_bytes, .data[[column]], colour = .data$level, shape = .data$level)) +
    geom_line(linewidth = 0.35, alpha = 0.7) +
    geom_point(size = 1.3) +
    panels_of_ladder(rows) +
    scale_colour_manual(values = mapping_colours, labels = level_word) +
    scale_shape_manual(values = point_shapes, labels = level_word) +
    scale_x_size() +
    scale_y_log10(title_y, labels = format_number, breaks = scales::breaks_log(6)) +
    labs(title = title) + tag_simulated(results$study) + theme_study()
}

forcats_rev <- function(level) {
  level <- droplevels(factor(level, levels(level) %||% unique(level)))
  factor(level, rev(levels(level)))
}

label_pairs <- function(pairs) ifelse(pairs == 1, "one pair", paste(pairs, "concurrent pairs"))

plot_per_byte <- function(results, rows, published) {
  per_byte <- function(rows) mutate(rows, value = 2000 * .data$latency_us / .data$size_bytes)
  rows$level <- forcats_rev(rows$level)
  if (!is.null(published)) published$level <- factor(published$level, levels(rows$level))
  ggplot(per_byte(rows), aes(.data$size_bytes, .data$value, colour = .data$level)) +
    (if (!is.null(published)) geom_line(data = per_byte(published), linetype = "dashed", linewidth = 0.35)) +
    (if (!is.null(published)) geom_point(data = per_byte(published), shape = 1, size = 1.5)) +
    geom_line(linewidth = 0.5) +
    geom_point(size = 1.2) +
    panels_of_ladder(rows) +
    scale_colour_manual(values = mapping_colours, labels = level_word) +
    scale_x_size() +
    scale_y_log10("Round trip per byte (ns/B)", labels = format_number, breaks = scales::breaks_log(6)) +
    labs(title = "Round trip per byte at each level") + tag_simulated(results$study) + theme_study()
}

#' The ladder in sentences
#'
#' @param results List from [read_results()].
#' @return Character vector.
#' @noRd
describe_ladder <- function(results) {
  unlist(each_library(read_ladder(results), function(ladder) describe_levels(results, ladder)), use.names = FALSE)
}

#' Sentences on the ladder of each MPI library, which begin with its label if there are several
#' @return List by library.
#' @noRd
each_library <- function(ladder, describe) {
  own <- by_library(ladder)
  said <- map(own, describe)
  if (is.null(names(own))) said else imap(said, function(text, label) paste0(label, ": ", lower_first(text)))
}

#' One ladder in sentences
#' @param ladder Tibble from [read_ladder()], of one MPI library.
#' @noRd
describe_levels <- function(results, ladder) {
  levels <- summarise_ladder(ladder)
  if (nrow(levels) == 0) return(if (nrow(rows_of_ladder(results)) == 0) {
    "There are no point-to-point measurements."
  } else {
    "The levels of the machine that the point-to-point measurements cross are not known."
  })
  if (all(is.na(ladder$latency_us))) return(describe_bandwidth(results, ladder))
  fewest <- min(levels$pairs)
  one <- arrange(filter(levels, .data$pairs == fewest), .data$latency_us)
  of_pairs <- if (fewest > 1) paste(" of", fewest, "concurrent pairs") else ""
  timed <- filter(one, !is.na(.data$latency_us))
  wide <- filter(one, !is.na(.data$bandwidth_gb_s))
  most <- filter(levels, .data$pairs == max(.data$pairs), .data$pairs > fewest, !is.na(.data$bandwidth_gb_s)) |>
    inner_join(select(wide, "level", alone_gb_s = "bandwidth_gb_s"), by = "level")
  c(
    if (nrow(timed) > 0) paste0(
      "Latency", of_pairs, " fitted to messages of up to 64 B", simulated_note(results$study), ", by the outermost ",
      "level that separates the two cores: ",
      and_list(paste0(format_us(signif(timed$latency_us, 2)), " (", level_word(timed$level), ")")),
      if (nrow(timed) > 1) paste0(
        "; the slowest level takes ", format_number(utils::tail(timed$latency_us, 1) / timed$latency_us[1], 2),
        " times as long as the fastest"
      ), lacking_partners(results), "."
    ),
    if (nrow(wide) > 0) paste0(
      "Bandwidth of large messages", of_pairs, ": ",
      and_list(paste0(format_number(wide$bandwidth_gb_s, 2), " GB/s (", level_word(wide$level), ")")), "."
    ),
    if (nrow(timed) + nrow(wide) == 0) "Too few message sizes were measured to fit latency or bandwidth.",
    if (nrow(most) > 0) paste0(
      "With ", most$pairs[1], " concurrent pairs, each pair has ", and_list(paste0(
        format_number(most$bandwidth_gb_s), " GB/s (", level_word(most$level), ", ",
        format_pct(100 * most$bandwidth_gb_s / most$alone_gb_s), " of that of ",
        if (fewest > 1) paste(fewest, "pairs)") else "a single pair)"
      )), "."
    ),
    describe_published(results, ladder)
  )
}

#' "; core 0 was not paired with 32 of the 255 other cores" if pairs of a single core were measured, but not all
#' @noRd
lacking_partners <- function(results) {
  pairs <- distinct(read_pairs(results), .data$from_core, .data$to_core)
  others <- count_cores(results$study) - 1
  if (n_distinct(pairs$from_core) != 1 || nrow(pairs) >= others) return("")
  paste0(
    "; core ", pairs$from_core[1], " was not paired with ", format_count(others - nrow(pairs)), " of the ",
    format_count(others), " other cores"
  )
}

count_cores <- function(study) prod(map_dbl(study$machine$levels, function(level) level$count %||% 1))

#' One point-to-point test in sentences: the bandwidths of a bandwidth test, else the ladder
#' @noRd
describe_ladder_of <- function(results, collective) {
  if (collective != "bw") return(describe_ladder(results))
  rows <- filter(read_ladder(results), !is.na(.data$bandwidth_mb_s))
  if (nrow(rows) == 0) return("There is no bandwidth measurement.")
  unlist(each_library(rows, function(rows) describe_bandwidth(results, rows)), use.names = FALSE)
}

describe_bandwidth <- function(results, rows) {
  best <- rows |>
    group_by(.data$level) |>
    slice_max(.data$bandwidth_mb_s, n = 1, with_ties = FALSE) |>
    arrange(.data$bandwidth_mb_s)
  paste0(
    "A window of messages reaches up to ", and_list(paste0(
      format_number(best$bandwidth_mb_s / 1000), " GB/s (", level_word(as.character(best$level)), ", ",
      label_bytes(best$size_bytes), ")"
    )), simulated_note(results$study), "."
  )
}

#' The published bandwidth of concurrent pairs (Wisner), compared with this study
#' @noRd
describe_published <- function(results, ladder) {
  published <- read_published_pingpong(results)
  if (is.null(published) || all(ladder$pairs == 1)) return(NULL)
  shares <- function(ladder) filter(summarise_contention(summarise_ladder(ladder)), .data$pairs > 1)
  theirs <- shares(published)
  ours <- shares(ladder)
  both <- inner_join(
    select(theirs, "level", "pairs", theirs = "bandwidth_ratio"),
    select(ours, "level", "pairs", ours = "bandwidth_ratio"), by = c("level", "pairs")
  )
  say <- function(ratio) and_list(paste0(format_pct(100 * ratio), " (", both$level, ")"))
  c(
    paste0(
      "In the published measurements [@wisner-svd] each of ", both$pairs[1], " concurrent pairs keeps ",
      say(both$theirs), " of the bandwidth of a single pair; here ", say(both$ours), simulated_note(results$study), "."
    ),
    unlist(pmap(both, function(level, pairs, theirs, ours) explain_contention(results, level, pairs, theirs, ours)))
  )
}

#' Why the contention at a level differs from the published one; NULL where the difference is at most a quarter
#' @noRd
explain_contention <- function(results, level, pairs, theirs, ours) {
  if (abs(ours / theirs - 1) <= 0.25) return(NULL)
  both_ways <- level %in% duplex_levels(results$study$machine$levels) && abs(ours * pairs - 1) < 0.15
  if (both_ways && theirs > ours && theirs <= 2.1 / pairs) {
    return(paste0(
      "Across ", level, " the link is full duplex, which allows each of ", pairs, " pairs ", format_pct(200 / pairs),
      " if half of them send in the opposite direction, as in the published measurements. In the simulation all ",
      "pairs send in the same direction at the same time, which leaves ", format_pct(100 / pairs),
      " to each."
    ))
  }
  paste0(
    "Across ", level, " the published contention is ", if (theirs < ours) "stronger" else "weaker",
    " than the machine model can express: ", pairs, " pairs together had ", format_number(theirs * pairs, 2),
    " times the bandwidth of one, here ", format_number(ours * pairs, 2),
    ". The published measurement takes precedence."
  )
}
