# Models of messages: tables, figures and sentences.

#' models/comparison.csv and models/selection.csv: all models of all collectives on the same held-out cells
#'
#' @param models Entries of the models folder that are there already.
#' @noRd
models_of_study <- function(results, models) {
  names <- collectives_of(results)
  if (length(names) == 0) return(models_of_applications(results))
  predictions <- map_dfr(names, function(collective) predict_held_out(results, collective))
  others <- map(Filter(function(entry) identical(entry$what, "comparison"), models), "data")
  source <- c(
    ladder = "their costs per level come from the study's ping-pong ladder",
    machine = "their costs per level are those of the machine's file",
    none = paste(
      "without a ping-pong ladder, only the fitted model is evaluated, with assumed ratios between the levels"
    )
  )[[message_costs(results)$source]]
  list(
    listed("comparison", NULL, summarise_comparison(predictions, others), paste0(
      "Mean absolute percentage error (MAPE) of every model on held-out cells", simulated_note(results$study),
      ", best first. The ",
      "Hockney and LogGP models follow the messages of the algorithm; ", source, ". ", fitted_note
    )),
    listed(
      "selection", NULL, summarise_selection(predictions, results$medians, results$study$analysis$tie_pct), paste0(
        "Algorithm selection by models in held-out cells", simulated_note(results$study), ", among the algorithms ",
        "that they cover (without the default): share of correct selections (within ", results$study$analysis$tie_pct,
        " % of the fastest of these), and regret: slow-down (%) of the selected algorithm, or of the default, ",
        "against the fastest of these (negative: the default is faster). Algorithms: most that a model covers in a ",
        "cell."
      )
    )
  )
}

#' What the fitted LogGP is, for captions
#' @noRd
fitted_note <- paste(
  "The fitted LogGP has one factor for the latencies of all levels, one for their times per byte and one for the",
  "overhead, in reductions also a time per reduced byte, fitted to at most four of the process counts to which the",
  "other models are fitted."
)

models_of_applications <- function(results) {
  compared <- compare_scaling_models(results)
  if (nrow(compared) == 0) return(NULL)
  entry <- listed("comparison", NULL, arrange(compared, .data$held_out_mape_pct), paste0(
    "Mean absolute percentage error (MAPE) of the models of time to solution", simulated_note(results$study),
    " on the runs with ",
    "more than one process; the models are fitted to the runs on one process only."
  ))
  entry$section <- section_name(compared$collective[1], "models")
  list(entry)
}

figures_of_messages <- function(results) {
  if (message_costs(results)$source == "none") return(NULL)
  sized <- intersect(collectives_of(results, sized = TRUE), modelled_collectives)
  unlist(map(sized, function(name) figures_of_messages_in(results, name)), recursive = FALSE)
}

figures_of_messages_in <- function(results, collective) {
  rows <- rows_to_fit(results, collective)
  if (n_distinct(rows$processes) < 3) return(NULL)
  mappings <- levels(droplevels(rows$mapping))
  unlist(map(mappings, function(mapping) {
    here <- droplevels(filter(rows, .data$mapping == .env$mapping))
    costs <- message_costs(results, mpi_of(results$study, collective, mapping))
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
        results, collective, filter(here, .data$size_bytes == small), "processes", costs
      ), paste0(
        "Latency (\u00b5s) of ", label_bytes(small), " messages against processes: ", found, " (points) and models ",
        "based on point-to-point costs; the lower bound holds for any algorithm whose ranks start together.",
        boundary_words(results, collective, mapping, most), " Logarithmic axes.", note,
        bound_note(results, filter(here, .data$size_bytes == small), costs)
      ), 9.5, height, part = "models"),
      figure(collective, paste0("model-bound-", slug(mapping)), plot_models(
        results, collective, filter(here, .data$processes == most), "size_bytes", costs
      ), paste0(
        "Latency (\u00b5s) with ", label_processes(most), " against message size: ", found, " (points), models, ",
        "and the lower bound by latency and bandwidth for algorithms whose ranks start together. Logarithmic axes.",
        bound_note(results, filter(here, .data$processes == most), costs)
      ), 9.5, height, part = "models")
    )
  }), recursive = FALSE)
}

#' How many points are below the lower bound, and, unless all ranks start a call together, why that is possible
#' @noRd
bound_note <- function(results, rows, costs) {
  bound <- map2_bound(results$study, rows$collective[1], as.character(rows$mapping[1]), rows, costs)
  below <- sum(rows$latency_us < bound, na.rm = TRUE)
  if (below == 0) return("")
  barriers <- as.character(unlist(results$study$provenance$barriers))
  paste0(
    " ", below, " of ", nrow(rows), " points are below the bound",
    if (length(barriers) == 0 || !all(barriers %in% c("aligned", "window"))) paste0(
      " because of barrier exit skew: ranks leave the barrier, and start their clocks, at different times, and for a ",
      "late rank the message has already arrived"
    ), "."
  )
}

#' What to know before a model of a reduce is compared with what a benchmark prints
#' @noRd
reduce_note <- function(algorithms) {
  paste0(
    " The latency is the mean over the ranks, most of which leave as soon as they have sent; the latency-only models ",
    "of @derin2025 give the time until the root has the result.",
    if ("rabenseifner" %in% algorithms) paste0(
      " With fewer elements than processes Open MPI replaces Rabenseifner's algorithm by the linear one, presumably ",
      "also in the published measurement of 2 bytes."
    )
  )
}

boundary_words <- function(results, collective, mapping, most) {
  lines <- level_boundaries(results, collective, mapping, most)
  if (nrow(lines) == 0) return("")
  paste0(
    " Beyond a vertical line, processes occupy a second unit of a level (",
    and_list(paste(level_word(lines$level), "at", format_count(lines$processes))), ")."
  )
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
  results$study <- remembering(results$study)
  mapping <- as.character(rows$mapping[1])
  lines <- map_dfr(levels(rows$algorithm), function(algorithm) {
    data <- filter(rows, .data$algorithm == .env$algorithm)
    context <- list(
      study = results$study, collective = collective, algorithm = algorithm, mapping = mapping, costs = costs
    )
    models <- models_of_messages[c(if (along == "processes") "latency_only", "hockney", "loggp", "loggp_shared")]
    bound <- function(train, test, context) {
      map2_bound(results$study, collective, mapping, test, costs)
    }
    map_dfr(c(models, list(bound = bound)), .id = "model", function(model) {
      value <- model(NULL, data, context)
      if (is.null(value)) value <- numeric()
      tibble(algorithm = algorithm, at = data[[along]][seq_along(value)], value = value)
    })
  })
  label <- function(x) {
    words <- function(names) label_algorithm(names, results$study, collective)
    factor(words(as.character(x)), words(levels(rows$algorithm)))
  }
  lines <- filter(lines, !is.na(.data$value)) |>
    mutate(panel = label(.data$algorithm), model = factor(.data$model, names(line_colours)))
  rows <- mutate(rows, panel = label(.data$algorithm), at = .data[[along]])
  marks <- if (along == "processes") level_boundaries(results, collective, mapping, max(rows$processes)) |>
    filter(.data$processes >= min(rows$processes))
  ggplot(lines, aes(.data$at, .data$value)) +
    (if (NROW(marks) > 0) geom_vline(
      aes(xintercept = .data$processes), marks, colour = "grey55", linetype = "dotted", linewidth = 0.35
    )) +
    geom_line(aes(colour = .data$model, linetype = .data$model), linewidth = 0.6) +
    geom_point(aes(y = .data$latency_us), rows, size = 1.2) +
    facet_wrap(vars(.data$panel), ncol = 2) +
    scale_colour_manual(values = line_colours, labels = line_words(), breaks = names(line_colours)) +
    scale_linetype_manual(
      values = c(
        latency_only = "longdash", hockney = "dotted", loggp = "dashed", loggp_shared = "solid", bound = "solid"
      ),
      labels = line_words(), breaks = names(line_colours)
    ) +
    (if (along == "processes") scale_x_continuous("Processes", trans = "log2", breaks = 2^(1:16)) else scale_x_size()) +
    scale_y_latency_log() +
    labs(title = paste0(
      collective_title(collective), ", mapped ", label_mapping(mapping, results$study),
      ": models and ", if (results$study$simulated) "simulated latencies" else "measurements",
      if (along == "processes") {
        paste(" of", label_bytes(rows$size_bytes[1]), "messages")
      } else {
        paste(" with", label_processes(rows$processes[1]))
      }
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

line_words <- function() c(message_model_words[names(line_colours)[-5]], bound = "Lower bound")
line_colours <- c(
  latency_only = "#CC79A7", hockney = "#E69F00", loggp = "#56B4E9", loggp_shared = "#0072B2", bound = "#999999"
)

#' Accuracy of the models, in sentences
#'
#' @param results List from [read_results()].
#' @return Character vector; empty where the study's models folder has no selection.csv.
#' @noRd
describe_selection <- function(results) {
  selection <- results$models$selection %||% tibble()
  comparison <- results$models$comparison %||% tibble()
  if (nrow(selection) == 0 || nrow(comparison) == 0) return(character())
  unlist(map(unique(selection$collective), function(name) {
    of_default <- filter(comparison, .data$collective == name, .data$algorithm == "default")
    c(
      describe_held_out(filter(comparison, .data$collective == name), name, results$study),
      describe_picks(filter(selection, .data$collective == name), results$study),
      describe_modelled_default(of_default)
    )
  })) |>
    c(describe_unrecorded(
      filter(comparison, .data$collective %in% selection$collective, .data$algorithm == "default"), results$study,
      comparison$model
    ))
}

#' One sentence for all collectives whose default is not modelled, because the algorithms that it selected are not known
#' @param models The models of the study.
#' @noRd
describe_unrecorded <- function(of_default, study, models) {
  lacking <- setdiff(intersect(modelled_collectives, of_default$collective), names(study$decisions))
  known <- intersect(models, names(models_of_messages))
  if (length(lacking) == 0 || length(known) == 0) return(NULL)
  paste0(
    "The algorithms that the default selected for ", and_list(collective_word(lacking)), " are not recorded, so ",
    if (any(known %in% models_of_pingpongs())) "Hockney's model and LogGP do" else "LogGP does",
    " not cover the default."
  )
}

model_word <- function(model) unname(coalesce(model_labels()[model], model))

messages_in_text <- c(
  latency_only = "the latency-only model (Derin 2025)", hockney = "Hockney's model", loggp = "LogGP",
  loggp_shared = "LogGP with shared links", loggp_fitted = "the fitted LogGP"
)

#' A model within a sentence: "the hop model", but "Hockney's model", "LogGP" and "log-interpolation"
#' @noRd
model_in_text <- function(model) {
  if (model %in% names(messages_in_text)) return(messages_in_text[[model]])
  paste0(if (model != "interpolation") "the ", lower_first(model_word(model)))
}

#' Models that need ping-pongs only
#' @noRd
models_of_pingpongs <- function() setdiff(names(models_of_messages), "loggp_fitted")

#' Mean error of each model over its held-out cells, the smallest first
#' @param comparison Tibble with a row for each model and algorithm or mapping.
#' @noRd
errors_by_model <- function(comparison) {
  comparison |>
    group_by(.data$model) |>
    summarise(
      error = stats::weighted.mean(.data$held_out_mape_pct, .data$held_out_cells), cells = sum(.data$held_out_cells)
    ) |>
    arrange(.data$error)
}

describe_held_out <- function(comparison, collective, study) {
  errors <- errors_by_model(comparison)
  best <- covering(errors)
  made <- covering(filter(errors, .data$model %in% models_of_pingpongs()))
  paste0(
    collective_title(collective), simulated_note(study), ": the smallest mean error of a model on the ",
    count_of(best$cells, "latency", "latencies"), " left out of the fit is ", format_pct(best$error), " (",
    model_in_text(best$model), ")",
    if (nrow(made) > 0) paste0(
      "; of the models that need only ping-pongs, ", format_pct(made$error), " (", model_in_text(made$model),
      part_of(made, best, "latencies"), ")"
    ), "."
  )
}

#' The first of the models that cover most cells: means over other cells cannot be compared
#' @noRd
covering <- function(models) head(models[models$cells == max(models$cells, 0), ], 1)

part_of <- function(part, whole, what) {
  if (part$cells == whole$cells) return("")
  paste0(", which covers ", format_count(part$cells), " of the ", format_count(whole$cells), " ", what)
}

describe_picks <- function(selection, study) {
  picks <- selection |>
    group_by(.data$model) |>
    summarise(
      right = stats::weighted.mean(.data$pick_accuracy_pct, .data$cells),
      regret = pooled_regret(.data$geometric_mean_regret_pct, .data$cells), cells = sum(.data$cells)
    ) |>
    arrange(.data$regret)
  default <- filter(picks, .data$model == "library_default")
  best <- covering(filter(picks, .data$model != "library_default"))
  physical <- covering(filter(picks, .data$model %in% models_of_pingpongs()))
  # The fastest algorithm of a cell may be one that no model covers.
  paste0(
    collective_title(selection$collective[1]), simulated_note(study), ", among the algorithms that the ",
    "models cover (without the default): the algorithm with the lowest latency predicted by ",
    model_in_text(best$model), " is within ", format_number(study$analysis$tie_pct), " % of the fastest of them in ",
    format_pct(best$right), " of the ", count_of(best$cells, "held-out cell"), "; the selected algorithms are ",
    format_pct(best$regret),
    " slower than the fastest (geometric mean)",
    if (nrow(physical) > 0) paste0(
      ", those selected by ", model_in_text(physical$model), ", which needs only ping-pongs",
      sub(", which", " and", part_of(physical, best, "cells")), ", ", format_pct(physical$regret)
    ), ".",
    if (nrow(default) > 0) paste0(
      " The library's default is ", format_pct(abs(default$regret)), if (default$regret < 0) " faster" else " slower",
      " than the fastest of them."
    )
  )
}

#' How the message models predict the default, which itself selects among algorithms
#' @noRd
describe_modelled_default <- function(of_default) {
  modelled <- filter(of_default, .data$model %in% names(models_of_messages))
  if (nrow(modelled) == 0) return(NULL)
  best <- covering(errors_by_model(modelled))
  left_out <- max(tapply(of_default$held_out_cells, of_default$model, sum))
  without <- left_out - best$cells
  paste0(
    "The default is modelled as the algorithm that the library's decision table selects in each cell (mean error of ",
    model_in_text(best$model), ": ", format_pct(best$error), ")",
    if (without > 0) paste0(
      "; in ", format_count(without), " of the ", format_count(left_out),
      " cells left out, no model covers that algorithm"
    ),
    "."
  )
}
