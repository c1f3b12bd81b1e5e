#' The front page's table: is the default good enough, and would one algorithm do?
#'
#' @param results List from [read_results()].
#' @return Tibble, one row per collective and mapping: collective, mapping, default_best_pct (cells in which the default
#'   is fastest or tied, see [decide_winners()]), slower (cells in which it is slower), default_ with each of
#'   [summarise_slowdown()]'s columns (the default's regret over all compared cells), cells (compared), best_single (the
#'   algorithm with the smallest geometric mean of regret among those measured in every compared cell),
#'   best_single_geometric_mean_pct, best_single_mean_pct.
#' @noRd
summarise_answer <- function(results) {
  none <- tibble(
    collective = character(), mapping = character(), default_best_pct = numeric(), slower = integer(),
    default_geometric_mean_pct = numeric(), default_mean_pct = numeric(), default_median_pct = numeric(),
    default_p90_pct = numeric(), default_p99_pct = numeric(), default_max_pct = numeric(), cells = integer(),
    best_single = character(), best_single_geometric_mean_pct = numeric(), best_single_mean_pct = numeric()
  )
  # A chapter of its own compares by other rules, and says so there.
  if (!is.null(own_chapter(results))) return(none)
  bind_rows(none, map_dfr(collectives_of(results), function(collective) answer_collective(results, collective)))
}

answer_collective <- function(results, collective) {
  winners <- decide_winners(results, collective)
  if (nrow(winners) == 0) return(NULL)
  winners |>
    group_by(mapping = mapping_factor(.data$mapping, results$study, .env$collective)) |>
    summarise(
      default_best_pct = share(.data$default_is %in% c("best", "tied"), !is.na(.data$default_is)),
      slower = sum(.data$default_is %in% "slower"),
      default = summarise_slowdown(1 + .data$default_regret_pct / 100), compared = n()
    ) |>
    tidyr::unpack("default", names_sep = "_") |>
    select(-"default_cells") |>
    rename(cells = "compared") |>
    mutate(mapping = as.character(.data$mapping), collective = .env$collective) |>
    left_join(summarise_single(results, collective, winners), by = "mapping")
}

share <- function(yes, of) if (any(of)) 100 * sum(yes & of) / sum(of) else NA_real_
mean_known <- function(x) if (all(is.na(x))) NA_real_ else mean(x, na.rm = TRUE)
max_known <- function(x) if (all(is.na(x))) NA_real_ else max(x, na.rm = TRUE)

#' Regret of using one algorithm everywhere
#' @noRd
summarise_single <- function(results, collective, winners) {
  keys <- c("mapping", "processes", "size_bytes")
  competing(results, collective) |>
    mutate(across(c("mapping", "algorithm"), as.character)) |>
    inner_join(select(winners, all_of(keys), "winner_us"), by = keys) |>
    group_by(.data$mapping, .data$algorithm) |>
    summarise(covered = n(), regret = summarise_slowdown(.data$latency_us / .data$winner_us), .groups = "drop_last") |>
    tidyr::unpack("regret") |>
    filter(.data$covered == max(.data$covered)) |>
    slice_min(.data$geometric_mean_pct, n = 1, with_ties = FALSE) |>
    ungroup() |>
    transmute(
      .data$mapping, best_single = label_algorithm(.data$algorithm, results$study, .env$collective),
      best_single_geometric_mean_pct = .data$geometric_mean_pct, best_single_mean_pct = .data$mean_pct
    )
}

tables_of_answer <- function(results) {
  list(listed("answer", NULL, summarise_answer(results), paste(
    "How often the library's default is the fastest or tied with it, and its regret over all cells, tied ones",
    "included.",
    slowdown_note, "Best single: the algorithm with the smallest mean slow-down if used for every cell."
  )), listed("answer", "collectives", summarise_by_collective(results), paste(
    "The default's regret by collective; slower: the share of the cells in which it is more than 5 % slower than the",
    "best measured algorithm.", slowdown_note
  )))
}

#' The default's regret by collective, all mappings together, by the rule of the chapter on all machines
#'
#' @param results List from [read_results()].
#' @return Columns of [summarise_atlas()], and best_other (the algorithm other than the default with the smallest regret
#'   among those measured in most cells) with best_other_geometric_mean_pct. No rows for a chapter of its own.
#' @noRd
summarise_by_collective <- function(results) {
  none <- mutate(summarise_atlas(atlas_rows(list(rows = results$rows[0, ]))),
    best_other = character(), best_other_geometric_mean_pct = numeric())
  if (!is.null(own_chapter(results))) return(none)
  results$rows$machine <- coalesce(results$rows$machine, results$study$machine$name)
  results$rows$simulated <- coalesce(results$rows$simulated, results$study$simulated)
  rows <- atlas_rows(results)
  if (nrow(rows) == 0) return(none)
  others <- filter(rows, .data$algorithm != "default") |>
    group_by(.data$collective, .data$algorithm) |>
    summarise(covered = n(), mean = geometric_mean(.data$slowdown), .groups = "drop_last") |>
    filter(.data$covered == max(.data$covered)) |>
    slice_min(.data$mean, n = 1, with_ties = FALSE) |>
    ungroup()
  others$label <- map2_chr(others$algorithm, others$collective, function(algorithm, collective) {
    label_algorithm(algorithm, results$study, collective)
  })
  left_join(summarise_atlas(rows), transmute(others,
    .data$collective, best_other = .data$label, best_other_geometric_mean_pct = 100 * (.data$mean - 1)
  ), by = "collective")
}

#' The answer of a study in sentences
#'
#' @param results List from [read_results()].
#' @return Character vector, one sentence each.
#' @noRd
describe_answer <- function(results) {
  if (has_applications(results)) {
    return(c(describe_accounts(results), describe_gain(results), describe_alternatives(results)))
  }
  if (!is.null(own_chapter(results))) return(own_chapter(results)$answer(results))
  answer <- filter(summarise_answer(results), !is.na(.data$default_best_pct))
  if (nrow(answer) == 0) return(paste0(study_name(results), ": ", answer_otherwise(results)))
  vapply(split(answer, factor(answer$collective, unique(answer$collective))), function(rows) {
    paste0(
      study_name(results), ", ", collective_word(rows$collective[1]),
      ": the default is the fastest or tied with it in ",
      per_mapping(rows, format_pct(rows$default_best_pct), results$study), " of the cells",
      slower_words(results, rows$collective[1]), "."
    )
  }, "", USE.NAMES = FALSE)
}

#' How much slower the default is in the cells in which it is slower; nothing is said of those in which it is tied
#' @noRd
slower_words <- function(results, collective) {
  winners <- decide_winners(results, collective)
  slower <- summarise_slowdown(1 + winners$default_regret_pct[winners$default_is %in% "slower"] / 100)
  if (slower$cells == 0) return("")
  if (slower$cells == 1) return(paste0("; in the other one it is ", format_pct(slower$max_pct), " slower"))
  paste0(
    "; in the other ", format_number(slower$cells), " cells it is slower by ", format_pct(slower$geometric_mean_pct),
    " (geometric mean; arithmetic mean ", format_pct(slower$mean_pct), "), by more than ", format_pct(slower$p90_pct),
    " in one cell of ten, at most by ", format_pct(slower$max_pct)
  )
}

#' The answer of a study that compares no algorithms
#' @noRd
answer_otherwise <- function(results) {
  scaling <- summarise_scaling(read_scaling(results))
  if (nrow(scaling) > 0) {
    return(lower_first(c(describe_speedup(scaling, simulated_note(results$study)), describe_communication(scaling))[1]))
  }
  if (nrow(read_ladder(results)) > 0) return(lower_first(describe_ladder(results)[1]))
  "no cell has both the default and another algorithm."
}

lower_first <- function(text) paste0(tolower(substr(text, 1, 1)), substring(text, 2))

study_name <- function(results) {
  title <- results$study$title %||% results$study$name
  paste0(title, if (!grepl("simulated", title, ignore.case = TRUE)) simulated_note(results$study))
}

per_mapping <- function(rows, text, study) {
  if (nrow(rows) == 1) return(text)
  and_list(paste0(text, " (", label_mapping(rows$mapping, study), ")"))
}

range_words <- function(values) {
  low <- format_pct(min(values))
  high <- format_pct(max(values))
  if (low == high) low else paste(sub(" %", "", low), "to", high)
}

#' Default against the best of the others, in sentences
#'
#' @inheritParams describe_answer
#' @param collective Name of a collective.
#' @return Character vector.
#' @noRd
describe_default_vs_best <- function(results, collective) {
  differences <- summarise_differences(results, collective)
  if (nrow(differences) == 0) return("No cell has both the default and another algorithm.")
  if (anyNA(differences$size_bytes)) return(describe_optimal(results, collective))
  table <- summarise_default_vs_best(results, collective)
  worst <- slice_max(table, .data$mean_difference_us, n = 1, with_ties = FALSE)
  better <- sum(table$mean_difference_us <= 0)
  c(
    paste0(
      "The default is at least as fast as every other algorithm in ", format_number(sum(table$optimal), 6), " of ",
      format_number(sum(table$cells), 6), " cells (", format_pct(100 * sum(table$optimal) / sum(table$cells)), ")."
    ),
    paste0(
      "In the mean over each class of mapping, message size and number of processes, the default is faster than the ",
      "best other algorithm in ", better, " of ", nrow(table), " classes",
      if (worst$mean_difference_us > 0) paste0(
        "; its largest mean loss is ", format_us(worst$mean_difference_us), ", mapped ",
        class_words(worst, results$study)
      ), "."
    )
  )
}

class_words <- function(row, study) {
  paste0(
    label_mapping(row$mapping, study), " with ", tolower(row$size_class), " messages and ",
    if (grepl("node", row$process_class)) "processes on " else "", tolower(row$process_class),
    if (!grepl("node", row$process_class)) " processes"
  )
}

describe_optimal <- function(results, collective) {
  table <- summarise_optimal(results, collective)
  slower <- paste0(table$not_optimal, " of ", table$optimal + table$not_optimal + table$zero_difference)
  differences <- summarise_differences(results, collective)
  paste0(
    "The default is slower than the best of the others at ", per_mapping(table, slower, results$study),
    " process counts; the largest loss is ", format_us(max(differences$difference_us, 0)), "."
  )
}

#' Which algorithm wins, in sentences
#'
#' @inheritParams describe_default_vs_best
#' @return Character vector.
#' @noRd
describe_decision <- function(results, collective) {
  winners <- decide_winners(results, collective)
  if (nrow(winners) == 0) return("No cell was measured with two algorithms, so there is no winner.")
  alone <- winners[winners$tied == "", ]
  counts <- sort(table(label_algorithm(alone$winner, results$study, collective)), decreasing = TRUE)
  answer <- filter(summarise_answer(results), .data$collective == .env$collective)
  c(
    paste0(
      format_number(nrow(alone), 6), " of ", format_number(nrow(winners), 6), " cells have a single winner",
      if (length(counts) > 0) paste0(
        ": ", and_list(paste0(names(counts), " (", format_number(as.vector(counts), 6), ")"))
      ), if (any(winners$tied != "")) paste0(
        "; in ", format_number(sum(winners$tied != ""), 6), " the fastest is tied with others"
      ), "."
    ),
    describe_absent(results, collective, winners),
    describe_flagged(results$study, collective),
    paste0(
      "Best single algorithm for all cells of a mapping (geometric mean of its slow-down against the fastest): ",
      and_list(paste0(
        answer$best_single, " mapped ", label_mapping(answer$mapping, results$study), " (",
        format_pct(answer$best_single_geometric_mean_pct), ")"
      )), "."
    )
  )
}

#' Which algorithms did not take part in every cell that has a winner
#' @noRd
describe_absent <- function(results, collective, winners) {
  cells <- c("mapping", "processes", "size_bytes")
  rows <- competing(results, collective) |> mutate(mapping = as.character(.data$mapping))
  taking_part <- table(as.character(semi_join(rows, winners, by = cells)$algorithm))
  absent <- nrow(winners) - taking_part[taking_part < nrow(winners)]
  if (length(absent) == 0) return(NULL)
  paste0(
    "Winners are chosen among the algorithms that were measured. Cells that an algorithm lacks: ",
    and_list(paste0(
      label_algorithm(names(absent), results$study, collective), " (", format_number(as.vector(absent), 6), ")"
    )), "."
  )
}

#' Everything about default and decision, for the report's section on winners
#'
#' @inheritParams describe_default_vs_best
#' @return Character vector.
#' @noRd
describe_default <- function(results, collective) {
  if (nrow(decide_winners(results, collective)) == 0) return(describe_decision(results, collective))
  c(describe_default_vs_best(results, collective), describe_decision(results, collective))
}

#' How good the models are, in sentences
#'
#' @inheritParams describe_default_vs_best
#' @return Character vector.
#' @noRd
describe_models <- function(results, collective) {
  errors <- model_errors(results, collective)
  if (nrow(errors) == 0) return("There are too few process counts to judge a model on held-out cells.")
  fits <- if (any(errors$model == "plane")) fit_loglinear(results, collective)
  c(
    if (!is.null(fits) && nrow(fits) > 0) paste0(
      "The log-linear plane (log latency as a linear function of log message size and of the number of processes) ",
      "explains ", range_words(100 * fits$r_squared), " of the variance of log latency, but its mean error on the ",
      "latencies that it was fitted to is ", range_words(fits$mape_pct), "."
    ),
    describe_errors(
      errors, "held_out_mape_pct", "Interpolation, on process counts and message sizes that were left out of the fit"
    ),
    describe_extrapolation(errors, results$study)
  )
}

smallest_errors <- function(errors, column) {
  errors |>
    filter(!is.na(.data[[column]])) |>
    group_by(.data$algorithm, .data$mapping) |>
    slice_min(.data[[column]], n = 1, with_ties = FALSE) |>
    ungroup()
}

describe_errors <- function(errors, column, start) {
  best <- smallest_errors(errors, column)
  if (nrow(best) == 0) return(NULL)
  count <- sort(table(best$model), decreasing = TRUE)
  paste0(
    start, ": the best model of each algorithm and mapping has a mean error of ", range_words(best[[column]]),
    ". That model is ", and_list(paste0("the ", lower_first(model_words[names(count)]), " (", count, "\u00d7)")), "."
  )
}

describe_extrapolation <- function(errors, study) {
  best <- filter(errors, !.data$model %in% c("interpolation", "last_value")) |>
    smallest_errors("extrapolation_mape_pct")
  last <- filter(errors, .data$model == "last_value", !is.na(.data$extrapolation_mape_pct))
  both <- inner_join(
    best, select(last, "algorithm", "mapping", last = "extrapolation_mape_pct"), by = c("algorithm", "mapping")
  )
  if (nrow(both) == 0) return(NULL)
  earns <- sum(both$extrapolation_mape_pct < both$last)
  c(
    describe_errors(
      filter(errors, .data$model != "interpolation"), "extrapolation_mape_pct",
      paste0(
        "Extrapolation, fitted up to ", study$analysis$fit_up_to, " processes and compared with measurements of more"
      )
    ),
    paste0(
      "In ", earns, " of ", nrow(both), " combinations of algorithm and mapping some model extrapolates better than ",
      "the latency of the largest fitted process count, whose error is ", range_words(both$last),
      ". The best model is selected with hindsight, so its errors are slightly optimistic."
    )
  )
}

#' Latency in sentences: extremes and what a mapping changes
#'
#' @inheritParams describe_default_vs_best
#' @return Character vector.
#' @noRd
describe_latency <- function(results, collective) {
  if (collective %in% point_to_point) return(describe_ladder_of(results, collective))
  rows <- rows_to_fit(results, collective)
  if (nrow(rows) == 0) return("No cell of this collective has a latency.")
  if (anyNA(rows$size_bytes)) return(describe_barrier(results, collective))
  low <- slice_min(rows, .data$latency_us, n = 1, with_ties = FALSE)
  high <- slice_max(rows, .data$latency_us, n = 1, with_ties = FALSE)
  say <- function(row) {
    paste0(
      format_us(row$latency_us), " (", label_algorithm(as.character(row$algorithm), results$study, collective), ", ",
      label_mapping(row$mapping, results$study), ", ", row$processes, " processes, ", label_bytes(row$size_bytes), ")"
    )
  }
  c(
    paste0("Latencies", simulated_note(results$study), " range from ", say(low), " to ", say(high), "."),
    describe_mappings(results, rows),
    describe_claims(results, collective)
  )
}

describe_mappings <- function(results, rows) {
  most <- max(common_counts(rows, results$study$analysis$best_excludes))
  full <- filter(rows, .data$processes == most, .data$algorithm != "default")
  # Between two ranks all algorithms send the same messages.
  if (n_distinct(full$mapping) < 2 || most <= 2) return(NULL)
  best <- full |>
    group_by(.data$size_bytes) |>
    slice_min(.data$latency_us, n = 1, with_ties = FALSE)
  counts <- sort(table(as.character(best$mapping)), decreasing = TRUE)
  paste0(
    "With ", most, " processes the fastest algorithm, other than the default, is mapped ",
    and_list(paste0(label_mapping(names(counts), results$study), " at ", counts, " of ", nrow(best), " sizes")), "."
  )
}

#' Barrier (or another collective without sizes) in sentences
#'
#' @inheritParams describe_default_vs_best
#' @return Character vector.
#' @noRd
describe_barrier <- function(results, collective = "barrier") {
  rows <- rows_to_fit(results, collective)
  if (nrow(rows) == 0) return("No cell of this collective has a latency.")
  most <- max(common_counts(rows))
  last <- filter(rows, .data$processes == most) |> arrange(.data$latency_us)
  first <- last[1, ]
  final <- last[nrow(last), ]
  slopes <- filter(
    fit_barriers(results, collective), .data$model == "linear", .data$term == "processes", .data$algorithm == "linear"
  )
  name <- function(row) {
    algorithm <- label_algorithm(as.character(row$algorithm), results$study, collective)
    paste(algorithm, label_mapping(row$mapping, results$study))
  }
  c(
    paste0(
      "With ", most, " processes", simulated_note(results$study), " the fastest is ", name(first), " at ",
      format_us(first$latency_us),
      if (nrow(last) > 1) paste0(", the slowest ", name(final), " at ", format_us(final$latency_us)), "."
    ),
    if (nrow(slopes) > 0) paste0(
      "Each further process adds ", per_mapping(slopes, format_us(slopes$estimate), results$study),
      " to the linear algorithm."
    )
  )
}
