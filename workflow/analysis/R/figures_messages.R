# Tables, models, figures and sentences about ladders and about models of messages; write_*() call them.

tables_of_ladder <- function(results) {
  ladder <- read_ladder(results)
  if (nrow(ladder) == 0) return(NULL)
  check_pairs(results$study, read_pairs(results))
  check_ladder(ladder, asked_levels(results))
  timed <- ladder_collective(results)
  levels <- summarise_ladder(ladder)
  c(
    list(listed(timed, "levels", levels, paste0(
      "Latency and bandwidth of each level", simulated_note(results$study), " by fit, with 95 % intervals: latency is ",
      "the intercept of a line through the messages up to 64 B, bandwidth the inverse slope of one through those from ",
      "64 KiB on (GB/s, 1 GB = 10\u2079 B).",
      if (any(!is.na(levels$gap_us))) " Gap: time between the smallest messages of a window (\u00b5s)."
    ), part = "levels")),
    if (any(ladder$pairs > 1)) list(listed(timed, "contention", summarise_contention(levels), paste0(
      "What several pairs at once cost", simulated_note(results$study), ": latency and bandwidth of a pair ",
      "relative to ",
      "one pair alone, and of each level relative to the core level."
    ))),
    tables_published(results, ladder)
  )
}

#' The levels that the study's ladder asks for, outermost first
#' @noRd
asked_levels <- function(results) {
  mappings <- unlist(map(results$study$collectives[names(results$study$collectives) %in% point_to_point], "mappings"))
  asked <- sub(level_prefix, "", grep(level_prefix, mappings, value = TRUE))
  intersect(map_chr(results$study$machine$levels, "name"), c(asked, read_pairs(results)$level))
}

ladder_collective <- function(results) {
  intersect(c("latency", "multi_lat", "pairs"), names(results$study$collectives))[1]
}

summarise_contention <- function(levels) {
  inner <- utils::tail(unique(levels$level), 1)
  levels |>
    group_by(.data$level) |>
    mutate(
      latency_ratio = .data$latency_us / .data$latency_us[.data$pairs == 1],
      bandwidth_ratio = .data$bandwidth_gb_s / .data$bandwidth_gb_s[.data$pairs == 1]
    ) |>
    group_by(.data$pairs) |>
    mutate(
      latency_over_core = .data$latency_us / .data$latency_us[.data$level == inner],
      bandwidth_over_core = .data$bandwidth_gb_s / .data$bandwidth_gb_s[.data$level == inner]
    ) |>
    ungroup() |>
    select("level", "pairs", "latency_ratio", "bandwidth_ratio", "latency_over_core", "bandwidth_over_core")
}

#' Seed 004's ping-pong, where the study is of its machine
#'
#' @param results List from [read_results()].
#' @return Tibble: level, pairs, size_bytes, latency_us (half of the round trip). NULL for other machines.
#' @noRd
read_published_pingpong <- function(results) {
  if (!identical(results$study$machine$name, "ethernet-lab")) return(NULL)
  path <- system.file("extdata", "seed004_pingpong.csv", package = "collanalysis")
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
  columns <- c(keys, "latency_us", "bandwidth_gb_s")
  both <- inner_join(
    rename(summarise_ladder(published)[columns], published_us = "latency_us", published_gb_s = "bandwidth_gb_s"),
    rename(summarise_ladder(ladder)[columns], ours_us = "latency_us", ours_gb_s = "bandwidth_gb_s"), by = keys
  )
  list(listed("multi_lat", "published", arrange(both, .data$pairs), paste0(
    "Seed 004's measurements beside this study", simulated_note(results$study), ", both fitted in the same way: ",
    "latency ",
    "one way (\u00b5s) and bandwidth of a pair (GB/s). The machine's file takes its numbers from the seed's ",
    "single pair, ",
    "so only three pairs at once, and the shape between the ends, are a comparison."
  )))
}

figures_of_ladder <- function(results) {
  ladder <- read_ladder(results)
  if (nrow(ladder) == 0) return(NULL)
  timed <- filter(ladder, !is.na(.data$latency_us))
  several <- any(timed$pairs > 1)
  published <- read_published_pingpong(results)
  c(
    list(figure(
      ladder_collective(results), "ladder", plot_ladder(results, timed, "latency_us", "Latency (\u00b5s)",
        "Point-to-point latency of each level"), paste0(
        "Time of one message (\u00b5s) between two cores that differ first at the level, against its size; ",
        "logarithmic axes."
      ), NA, 9, 4.6
    )),
    if (several) list(figure(
      ladder_collective(results), "per-byte", plot_per_byte(results, timed, published), paste0(
        "Round trip per byte (ns/B) against message size, one pair and several at once; logarithmic axes.",
        if (!is.null(published)) " Hollow points, dashed: seed 004's measurements."
      ), NA, 9.5, 4.6
    )),
    figures_of_pairs(results),
    if (any(!is.na(ladder$bandwidth_mb_s))) list(figure(
      "bw", "ladder", plot_ladder(results, filter(ladder, !is.na(.data$bandwidth_mb_s)), "bandwidth_mb_s",
        "Bandwidth (MB/s)", "Point-to-point bandwidth of each level"),
      "Bandwidth (MB/s) of a window of messages against their size; logarithmic axes.", NA, 9, 4.6
    ))
  )
}

figures_of_pairs <- function(results) {
  pairs <- read_pairs(results)
  if (nrow(pairs) == 0) return(NULL)
  small <- min(pairs$size_bytes)
  list(figure("pairs", "matrix", plot_pairs(results, filter(pairs, .data$size_bytes == small)), paste0(
    "Latency (\u00b5s) of a message of ", label_bytes(small), " between every two cores, numbered over the whole ",
    "machine; colour is logarithmic. White: not measured, or a core with itself. Lines: the outermost unit (",
    group_sizes(results$study)$level[1], ")."
  ), NA, 7.6, 6.6))
}

plot_pairs <- function(results, pairs) {
  both <- bind_rows(pairs, rename(pairs, from_core = "to_core", to_core = "from_core"))
  units <- group_sizes(results$study)$ranks[1]
  lines <- if (is.na(units)) numeric() else seq(units, max(both$to_core) + 1, by = units) - 0.5
  lines <- lines[lines < max(both$to_core)]
  ggplot(both, aes(.data$from_core, .data$to_core, fill = .data$latency_us)) +
    geom_raster() +
    geom_vline(xintercept = lines, colour = "grey30", linewidth = 0.3) +
    geom_hline(yintercept = lines, colour = "grey30", linewidth = 0.3) +
    scale_fill_viridis_c("Latency (\u00b5s)", trans = "log10", labels = format_number) +
    scale_x_continuous("Core", expand = c(0, 0)) +
    scale_y_continuous("Core", expand = c(0, 0)) +
    coord_fixed() +
    labs(title = "Latency between every two cores") + tag_simulated(results$study) + theme_study() +
    theme(legend.position = "right", legend.title = element_text(), legend.key.width = NULL)
}

plot_ladder <- function(results, rows, column, title_y, title) {
  rows$level <- forcats_rev(rows$level)
  ggplot(rows, aes(.data$size_bytes, .data[[column]], colour = .data$level, shape = .data$level)) +
    geom_line(linewidth = 0.35, alpha = 0.7) +
    geom_point(size = 1.3) +
    (if (any(rows$pairs > 1)) facet_wrap(vars(.data$pairs), labeller = labeller(pairs = label_pairs))) +
    scale_colour_manual(values = mapping_colours) +
    scale_shape_manual(values = point_shapes) +
    scale_x_size() +
    scale_y_log10(title_y, labels = format_number, breaks = scales::breaks_log(6)) +
    labs(title = title) + tag_simulated(results$study) + theme_study()
}

forcats_rev <- function(level) {
  level <- droplevels(factor(level, levels(level) %||% unique(level)))
  factor(level, rev(levels(level)))
}

label_pairs <- function(pairs) ifelse(pairs == 1, "one pair", paste(pairs, "pairs at once"))

plot_per_byte <- function(results, rows, published) {
  per_byte <- function(rows) mutate(rows, value = 2000 * .data$latency_us / .data$size_bytes)
  rows$level <- forcats_rev(rows$level)
  if (!is.null(published)) published$level <- factor(published$level, levels(rows$level))
  ggplot(per_byte(rows), aes(.data$size_bytes, .data$value, colour = .data$level)) +
    (if (!is.null(published)) geom_line(data = per_byte(published), linetype = "dashed", linewidth = 0.35)) +
    (if (!is.null(published)) geom_point(data = per_byte(published), shape = 1, size = 1.5)) +
    geom_line(linewidth = 0.5) +
    geom_point(size = 1.2) +
    facet_wrap(vars(.data$pairs), labeller = labeller(pairs = label_pairs)) +
    scale_colour_manual(values = mapping_colours) +
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
  levels <- summarise_ladder(read_ladder(results))
  if (nrow(levels) == 0) return("There is no point-to-point measurement.")
  one <- arrange(filter(levels, .data$pairs == 1), .data$latency_us)
  times <- function(x) paste(format_number(x, 2), "times")
  most <- filter(levels, .data$pairs == max(.data$pairs))
  c(
    paste0(
      "A small message takes ", and_list(paste0(format_us(one$latency_us), " (", one$level, ")")),
      simulated_note(results$study), ": across the outermost level ",
      times(utils::tail(one$latency_us, 1) / one$latency_us[1]), " as long as across the innermost."
    ),
    paste0(
      "A large one moves at ", and_list(paste0(format_number(one$bandwidth_gb_s), " GB/s (", one$level, ")")), "."
    ),
    if (max(levels$pairs) > 1) paste0(
      "With ", most$pairs[1], " pairs at once, each pair has ", and_list(paste0(
        format_number(most$bandwidth_gb_s), " GB/s (", most$level, ", ",
        format_pct(100 * most$bandwidth_gb_s / one$bandwidth_gb_s[match(most$level, one$level)]), " of one pair's)"
      )), "."
    ),
    describe_published(results)
  )
}

# Models of messages and of applications

#' models/comparison.csv and models/selection.csv: all models of all collectives on the same held-out cells
#'
#' @param models Entries of the models folder that are there already.
#' @noRd
models_of_study <- function(results, models) {
  names <- collectives_of(results)
  if (length(names) == 0) return(models_of_applications(results))
  costs <- message_costs(results)
  predictions <- map_dfr(names, function(collective) predict_held_out(results, collective, costs))
  others <- map(models[grepl("-comparison$", map_chr(models, "id"))], "data")
  source <- c(
    ladder = "per-level costs come from the study's ladder", machine = "per-level costs are those of the ",
    "machine's file",
    none = "there is no ladder, so only the fitted model is judged"
  )[[costs$source]]
  list(
    listed("comparison", NULL, summarise_comparison(predictions, others), paste0(
      "Mean absolute error (%) of every model on held-out cells", simulated_note(results$study), ", best first. ",
      "Hockney ",
      "and LogGP models send as the algorithm does; ", source, "."
    )),
    listed(
      "selection", NULL, summarise_selection(predictions, results$medians, results$study$analysis$tie_pct), paste0(
      "Which algorithm a model would pick in each held-out cell", simulated_note(results$study), ": share of ",
      "right picks ",
      "(within ", results$study$analysis$tie_pct, " % of the best), and regret: what following the model costs ",
      "over the ",
      "best measured of the forced algorithms (%)."
    ))
  )
}

models_of_applications <- function(results) {
  compared <- compare_scaling_models(results)
  if (nrow(compared) == 0) return(NULL)
  entry <- listed("comparison", NULL, arrange(compared, .data$held_out_mape_pct), paste0(
    "Mean absolute error (%) of the models of time to solution", simulated_note(results$study), " on the runs with ",
    "more than one process; only runs on one process were fitted."
  ))
  entry$section <- section_name(compared$collective[1], "models")
  list(entry)
}

figures_of_messages <- function(results) {
  costs <- tryCatch(message_costs(results), error = function(e) list(source = "none"))
  if (costs$source == "none") return(NULL)
  sized <- intersect(collectives_of(results, sized = TRUE), modelled_collectives)
  unlist(map(sized, function(name) figures_of_messages_in(results, name, costs)), recursive = FALSE)
}

figures_of_messages_in <- function(results, collective, costs) {
  rows <- rows_to_fit(results, collective)
  if (n_distinct(rows$processes) < 3) return(NULL)
  mappings <- levels(droplevels(rows$mapping))
  seed <- unname(c(bcast = 6, reduce = 7)[collective])
  unlist(map(mappings, function(mapping) {
    here <- droplevels(filter(rows, .data$mapping == .env$mapping))
    algorithms <- levels(here$algorithm)
    fewest <- min(here$processes)
    known <- algorithms[map_lgl(algorithms, function(a) {
      !is.null(model_messages(results$study, collective, a, mapping, fewest, 8, costs))
    })]
    if (length(known) == 0) return(NULL)
    here <- droplevels(filter(here, .data$algorithm %in% known))
    small <- min(here$size_bytes)
    most <- max(here$processes)
    height <- 1.6 + 2.3 * ceiling(length(known) / 2)
    found <- if (results$study$simulated) "simulated" else "measured"
    note <- if (collective == "reduce") reduce_note(unique(here$algorithm_name[here$algorithm %in% known])) else ""
    list(
      figure(collective, paste0("model-latency-", slug(mapping)), plot_models(
        results, collective, filter(here, .data$size_bytes == small), "processes", costs), paste0(
        "Latency (\u00b5s) of ", label_bytes(small), " messages against processes: ", found, " (points) and models ",
        "made of point-to-point costs; the lower bound holds for any algorithm whose ranks start together. Vertical ",
        "lines: more processes need a second unit of a level (", boundary_words(results, collective, mapping, most),
        "). Logarithmic axes.", note, bound_note(results, filter(here, .data$size_bytes == small), costs)
      ), seed, 9.5, height, part = "models"),
      figure(collective, paste0("model-bound-", slug(mapping)), plot_models(
        results, collective, filter(here, .data$processes == most), "size_bytes", costs), paste0(
        "Latency (\u00b5s) with ", most, " processes against message size: ", found, " (points), models, and the ",
        "bound by latency and bandwidth that no algorithm can beat whose ranks start together. Logarithmic axes.",
        bound_note(results, filter(here, .data$processes == most), costs)
      ), NA, 9.5, height, part = "models")
    )
  }), recursive = FALSE)
}

#' Points below the bound, and how that can be
#' @noRd
bound_note <- function(results, rows, costs) {
  bound <- map2_bound(results$study, rows$collective[1], as.character(rows$mapping[1]), rows, costs)
  below <- sum(rows$latency_us < bound)
  if (below == 0) return("")
  paste0(
    " ", below, " of ", nrow(rows), " points are below it: the ranks leave the barrier before a call at different ",
    "times, each starts its clock then, and a late one finds its message there already."
  )
}

#' What to know before a model of a reduce is compared with what a benchmark prints
#' @noRd
reduce_note <- function(algorithms) {
  paste0(
    " The latency is the mean over the ranks, of which most leave as soon as they have sent; seed 003's models give ",
    "the time until the root has the result.",
    if ("rabenseifner" %in% algorithms) paste0(
      " With fewer elements than processes Open MPI replaces Rabenseifner's algorithm by the linear one, presumably ",
      "also in seed 003's measurement of 2 bytes."
    )
  )
}

boundary_words <- function(results, collective, mapping, most) {
  lines <- level_boundaries(results, collective, mapping, most)
  if (nrow(lines) == 0) return("none here")
  and_list(paste(lines$level, "at", lines$processes))
}

#' The last number of processes that fits one unit of each level
#' @noRd
level_boundaries <- function(results, collective, mapping, most) {
  place <- place_most(results$study, collective, mapping, most)
  if (is.null(place)) return(tibble(level = character(), processes = numeric()))
  inner <- utils::head(colnames(place), -1)
  last <- map_dbl(inner, function(level) {
    used <- place[, level] != place[1, level]
    if (any(used)) which(used)[1] - 1 else NA_real_
  })
  tibble(level = rev(inner), processes = rev(last)) |>
    filter(!is.na(.data$processes), .data$processes > 1)
}

plot_models <- function(results, collective, rows, along, costs) {
  mapping <- as.character(rows$mapping[1])
  lines <- map_dfr(levels(rows$algorithm), function(algorithm) {
    data <- filter(rows, .data$algorithm == .env$algorithm)
    context <- list(
      study = results$study, collective = collective, algorithm = algorithm, mapping = mapping, costs = costs
    )
    models <- models_of_messages[c(if (along == "processes") "seed003", "hockney", "loggp", "loggp_shared")]
    bound <- function(train, test, context) {
      map2_bound(results$study, collective, mapping, test, costs)
    }
    map_dfr(c(models, list(bound = bound)), .id = "model", function(model) {
      value <- model(NULL, data, context)
      if (is.null(value) || all(is.na(value))) return(tibble())
      tibble(algorithm = algorithm, at = data[[along]], value = value)
    })
  })
  label <- function(x) {
    words <- function(names) label_algorithm(names, results$study, collective)
    factor(words(as.character(x)), words(levels(rows$algorithm)))
  }
  lines <- mutate(lines, panel = label(.data$algorithm), model = factor(.data$model, names(line_words)))
  rows <- mutate(rows, panel = label(.data$algorithm), at = .data[[along]])
  marks <- if (along == "processes") level_boundaries(results, collective, mapping, max(rows$processes))
  ggplot(lines, aes(.data$at, .data$value)) +
    (if (NROW(marks) > 0) geom_vline(
      aes(xintercept = .data$processes), marks, colour = "grey55", linetype = "dotted", linewidth = 0.35
    )) +
    geom_line(aes(colour = .data$model, linetype = .data$model), linewidth = 0.6) +
    geom_point(aes(y = .data$latency_us), rows, size = 1.2) +
    facet_wrap(vars(.data$panel), ncol = 2) +
    scale_colour_manual(values = line_colours, labels = line_words, breaks = names(line_words)) +
    scale_linetype_manual(
      values = c(seed003 = "longdash", hockney = "dotted", loggp = "dashed", loggp_shared = "solid", bound = "solid"),
      labels = line_words, breaks = names(line_words)
    ) +
    (if (along == "processes") scale_x_continuous("Processes", trans = "log2", breaks = 2^(1:16)) else scale_x_size()) +
    scale_y_latency_log() +
    labs(title = paste0(
      capitalised(collective_word(collective)), ", mapped ", label_mapping(mapping), ": models and measurements"
    )) +
    tag_simulated(results$study) + theme_study()
}

map2_bound <- function(study, collective, mapping, test, costs) {
  found <- numeric(nrow(test))
  for (at in split(seq_len(nrow(test)), test$processes)) {
    found[at] <- bound_latency(study, collective, mapping, test$processes[at[1]], test$size_bytes[at], costs)
  }
  found
}

line_words <- c(
  seed003 = "Seed 003 (latency only)", hockney = "Hockney", loggp = "LogGP", loggp_shared = "LogGP, shared links",
  bound = "Lower bound"
)
line_colours <- c(
  seed003 = "#CC79A7", hockney = "#E69F00", loggp = "#56B4E9", loggp_shared = "#0072B2", bound = "#999999"
)

#' One point-to-point test in sentences: bandwidths where it measures those, else the ladder
#' @noRd
describe_ladder_of <- function(results, collective) {
  if (!collective %in% c("bw", "bandwidth")) return(describe_ladder(results))
  rows <- filter(read_ladder(results), !is.na(.data$bandwidth_mb_s))
  if (nrow(rows) == 0) return("There is no bandwidth measurement.")
  best <- rows |>
    group_by(.data$level) |>
    slice_max(.data$bandwidth_mb_s, n = 1, with_ties = FALSE) |>
    arrange(.data$bandwidth_mb_s)
  paste0(
    "A window of messages moves at up to ", and_list(paste0(
      format_number(best$bandwidth_mb_s / 1000), " GB/s (", best$level, ", ", label_bytes(best$size_bytes), ")"
    )), simulated_note(results$study), "."
  )
}

#' What seed 004 measured with several pairs at once, beside this study
#' @noRd
describe_published <- function(results) {
  published <- read_published_pingpong(results)
  if (is.null(published) || all(read_ladder(results)$pairs == 1)) return(NULL)
  shares <- function(ladder) filter(summarise_contention(summarise_ladder(ladder)), .data$pairs > 1)
  theirs <- shares(published)
  ours <- shares(read_ladder(results))
  both <- inner_join(
    select(theirs, "level", "pairs", theirs = "bandwidth_ratio"),
    select(ours, "level", "pairs", ours = "bandwidth_ratio"), by = c("level", "pairs")
  )
  say <- function(ratio) and_list(paste0(format_pct(100 * ratio), " (", both$level, ")"))
  c(
    paste0(
      "Seed 004 measured that, of one pair's bandwidth, each of ", both$pairs[1], " pairs keeps ", say(both$theirs),
      "; here it is ", say(both$ours), simulated_note(results$study), "."
    ),
    unlist(pmap(both, function(level, pairs, theirs, ours) explain_contention(results, level, pairs, theirs, ours)))
  )
}

#' Why a level's contention differs from the seed's, where it does by more than a quarter
#' @noRd
explain_contention <- function(results, level, pairs, theirs, ours) {
  if (abs(ours / theirs - 1) <= 0.25) return(NULL)
  both_ways <- level %in% duplex_levels(results$study$machine$levels) && abs(ours * pairs - 1) < 0.15
  if (both_ways && theirs > ours && theirs <= 2.1 / pairs) {
    return(paste0(
      "Across ", level, " the link has its bandwidth in each direction, which allows each of ", pairs, " pairs ",
      format_pct(200 / pairs), " if half of them send the other way; the seed's come to that. In the simulation they ",
      "stay in step and all send the same way at once, which leaves each ", format_pct(100 / pairs), "."
    ))
  }
  paste0(
    "Across ", level, " the seed's contention is ", if (theirs < ours) "stronger" else "weaker",
    " than the machine's file can state: ", pairs, " pairs had ", format_number(theirs * pairs, 2),
    " times the bandwidth of one together, here it is ", format_number(ours * pairs, 2), ". Believe the seed."
  )
}

#' Which model to believe, in sentences
#'
#' @param results List from [read_results()].
#' @return Character vector; empty where the study's models folder has no selection.csv.
#' @noRd
describe_selection <- function(results) {
  selection <- results$models$selection %||% tibble()
  comparison <- results$models$comparison %||% tibble()
  if (nrow(selection) == 0 || nrow(comparison) == 0) return(character())
  words <- model_labels()
  word <- function(model) unname(coalesce(words[model], model))
  unlist(map(unique(selection$collective), function(name) {
    errors <- comparison |>
      filter(.data$collective == name) |>
      group_by(.data$model) |>
      summarise(error = mean(.data$held_out_mape_pct)) |>
      arrange(.data$error)
    made <- filter(errors, .data$model %in% setdiff(names(models_of_messages), "loggp_fitted"))
    picks <- filter(selection, .data$collective == name) |>
      group_by(.data$model) |>
      summarise(right = mean(.data$pick_accuracy_pct), regret = mean(.data$mean_regret_pct)) |>
      arrange(.data$regret)
    default <- filter(picks, .data$model == "library_default")
    best <- filter(picks, .data$model != "library_default")[1, ]
    physical <- filter(picks, .data$model %in% made$model)
    of_default <- filter(comparison, .data$collective == name, .data$algorithm == "default")
    modelled <- filter(of_default, .data$model %in% names(models_of_messages))
    c(
      paste0(
        capitalised(collective_word(name)), simulated_note(results$study), ": on held-out cells the smallest ",
        "mean error ",
        "has ", word(errors$model[1]), " (", format_pct(errors$error[1]), ")",
        if (nrow(made) > 0) paste0(
          "; of the models that were fitted to no collective at all, ", word(made$model[1]), " (",
          format_pct(made$error[1]), ")"
        ), "."
      ),
      paste0(
        "Following ", word(best$model), " costs ", format_pct(best$regret), " over the best algorithm on ",
        "average (right in ",
        format_pct(best$right), " of the cells)",
        if (nrow(physical) > 0) paste0(
          ", following ", word(physical$model[1]), ", which needs the ladder only, ", format_pct(physical$regret[1])
        ),
        if (nrow(default) > 0) paste0(", the library's default ", format_pct(default$regret)), "."
      ),
      if (nrow(modelled) > 0) paste0(
        "The default is modelled as the algorithm that the library's table chooses in each cell (mean error of ",
        word(modelled$model[which.min(modelled$held_out_mape_pct)]), ": ",
        format_pct(min(modelled$held_out_mape_pct)), ")",
        if (max(of_default$held_out_cells) > max(modelled$held_out_cells)) paste0(
          "; of the ", max(of_default$held_out_cells), " held-out cells, ",
          max(of_default$held_out_cells) - max(modelled$held_out_cells), " have a choice without a model"
        ), "."
      ) else if (nrow(of_default) > 0) paste0(
        "What the default chooses is not known here, so no model of messages covers it."
      )
    )
  }))
}
