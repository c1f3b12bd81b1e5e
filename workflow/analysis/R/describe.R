# Sentences about the collectives of a study.

lower_first <- function(text) paste0(tolower(substr(text, 1, 1)), substring(text, 2))

study_name <- function(results) {
  title <- results$study$title %||% results$study$name
  paste0(title, if (!grepl("simulated", title, ignore.case = TRUE)) simulated_note(results$study))
}

per_mapping <- function(rows, text, study) {
  if (nrow(rows) == 1) return(text)
  and_list(paste0(text, " (", label_mapping(rows$mapping, study), ")"))
}

range_pct <- function(values) {
  low <- format_pct(min(values))
  high <- format_pct(max(values))
  if (low == high) low else paste(sub(" %", "", low), "to", high)
}

#' Sentences on the default against the best other algorithm
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
      count_of(sum(table$cells), "cell"), " (", format_pct(100 * sum(table$optimal) / sum(table$cells)), ")."
    ),
    paste0(
      "Averaged over each class (mapping, message size and number of processes), the default is at least as fast as ",
      "the best other algorithm in ", better, " of ", count_of(nrow(table), "class", "classes"), ".",
      if (worst$mean_difference_us > 0) paste0(
        " Its largest average loss is ", format_us(worst$mean_difference_us), ", mapped ",
        label_mapping(worst$mapping, results$study), " (message size: ",
        class_with_range(worst$size_class, results$study$analysis$size_classes, label_bytes), "; processes: ",
        class_with_range(worst$process_class, results$study$analysis$process_classes, format_count), ")."
      )
    )
  )
}

describe_optimal <- function(results, collective) {
  table <- summarise_optimal(results, collective)
  slower <- paste0(table$not_optimal, " of ", table$optimal + table$not_optimal + table$zero_difference)
  differences <- summarise_differences(results, collective)
  paste0(
    "The default is slower than the best other algorithm at ", per_mapping(table, slower, results$study),
    " process counts", if (any(table$not_optimal > 0)) {
      paste0(", by at most ", format_us(max(differences$difference_us)))
    }, "."
  )
}

#' Sentences on the fastest algorithm
#'
#' @inheritParams describe_default_vs_best
#' @return Character vector.
#' @noRd
describe_decision <- function(results, collective) {
  winners <- decide_winners(results, collective)
  if (nrow(winners) == 0) return("No cell was measured with two algorithms, so no fastest one can be named.")
  alone <- winners[winners$tied == "", ]
  counts <- sort(table(label_algorithm(alone$winner, results$study, collective)), decreasing = TRUE)
  answer <- filter(summarise_answer(results), .data$collective == .env$collective)
  c(
    paste0(
      format_number(nrow(alone), 6), " of ", count_of(nrow(winners), "cell"),
      if (nrow(alone) == 1) " has" else " have", " a single fastest algorithm",
      if (length(counts) > 0) paste0(
        ": ", and_list(paste0(names(counts), " (", format_number(as.vector(counts), 6), ")"))
      ), if (any(winners$tied != "")) paste0(
        "; in ", format_number(sum(winners$tied != ""), 6), " the fastest is tied with others"
      ), "."
    ),
    describe_absent(results, collective, winners),
    describe_flagged(results$study, collective),
    paste0(
      "The best single algorithm (", of_widely_in(results$study),
      ") and its slow-down against the fastest (geometric mean): ", and_list(paste0(
        label_mapping(answer$mapping, results$study), " ", answer$best_single, " (",
        format_pct(answer$best_single_geometric_mean_pct), ")"
      )), "."
    )
  )
}

#' Which algorithms lack a latency in some of the compared cells
#' @noRd
describe_absent <- function(results, collective, winners) {
  cells <- c("mapping", "processes", "size_bytes")
  rows <- competing(results, collective) |> mutate(mapping = as.character(.data$mapping))
  taking_part <- table(as.character(semi_join(rows, winners, by = cells)$algorithm))
  absent <- nrow(winners) - taking_part[taking_part < nrow(winners)]
  if (length(absent) == 0) return(NULL)
  paste0(
    "Algorithms compete only in cells in which they have a latency. Number of cells without one: ",
    and_list(paste0(
      label_algorithm(names(absent), results$study, collective), " (", format_number(as.vector(absent), 6), ")"
    )), "."
  )
}

#' Sentences of the report's section on the fastest algorithm
#'
#' @inheritParams describe_default_vs_best
#' @return Character vector.
#' @noRd
describe_default <- function(results, collective) {
  if (nrow(decide_winners(results, collective)) == 0) return(describe_decision(results, collective))
  c(describe_default_vs_best(results, collective), describe_decision(results, collective))
}

#' Sentences on the accuracy of the models
#'
#' @inheritParams describe_default_vs_best
#' @return Character vector.
#' @noRd
describe_models <- function(results, collective) {
  errors <- model_errors(results, collective)
  if (nrow(errors) == 0) return("There are too few process counts to test a model on held-out cells.")
  fits <- if (any(errors$model == "plane")) filter(fit_loglinear(results, collective), !is.na(.data$r_squared))
  c(
    if (!is.null(fits) && nrow(fits) > 0) paste0(
      "The log-linear plane (log latency as a linear function of log message size and of the number of processes) ",
      "explains ", range_pct(100 * fits$r_squared), " of the variance of log latency, but its mean error on the ",
      "latencies that it was fitted to is ", range_pct(fits$mape_pct), "."
    ),
    describe_errors(
      errors, "held_out_mape_pct", paste0(
        "Interpolation to process counts", if (has_sizes(results, collective)) " and message sizes",
        " that were left out of the fit"
      )
    ),
    describe_extrapolation(errors, results$study)
  )
}

has_sizes <- function(results, collective) !anyNA(rows_to_fit(results, collective)$size_bytes)

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
    start, ": the best model for each algorithm and mapping has a mean error of ", range_pct(best[[column]]),
    ". How often each model is the best: ", and_list(paste0(lower_first(model_words[names(count)]), " (", count, ")")),
    "."
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
        "Extrapolation from at most ", format_count(study$analysis$fit_up_to), " processes to more"
      )
    ),
    paste0(
      "In ", earns, " of ", nrow(both), " combinations of algorithm and mapping, at least one model is more accurate ",
      "than the latency at the largest fitted process count taken as constant, whose error is ", range_pct(both$last),
      ". The best model is selected after the comparison, which makes its error too small."
    )
  )
}

#' Sentences on latency: extremes and the best mapping
#'
#' @inheritParams describe_default_vs_best
#' @return Character vector.
#' @noRd
describe_latency <- function(results, collective) {
  if (collective %in% point_to_point) return(describe_ladder_of(results, collective))
  # With empty messages, which are not fitted.
  rows <- filter(results$medians, .data$collective == .env$collective, .data$latency_us > 0)
  if (nrow(rows) == 0) return("No cell of this collective has a latency.")
  if (anyNA(rows$size_bytes)) return(describe_barrier(results, collective))
  low <- slice_min(rows, .data$latency_us, n = 1, with_ties = FALSE)
  high <- slice_max(rows, .data$latency_us, n = 1, with_ties = FALSE)
  say <- function(row) {
    paste0(
      format_us(row$latency_us), " (", label_algorithm(as.character(row$algorithm), results$study, collective), ", ",
      label_mapping(row$mapping, results$study), ", ", label_processes(row$processes), ", ",
      label_bytes(row$size_bytes), ")"
    )
  }
  c(
    if (nrow(rows) == 1) {
      paste0("The only latency", simulated_note(results$study), " is ", say(low), ".")
    } else {
      paste0("Latencies", simulated_note(results$study), " range from ", say(low), " to ", say(high), ".")
    },
    describe_mappings(results, rows_to_fit(results, collective)),
    describe_per_node(results, collective),
    describe_claims(results, collective)
  )
}

describe_mappings <- function(results, rows) {
  most <- max(common_counts(rows, results$study$analysis$best_excludes), 0)
  all <- filter(rows, .data$processes == most, .data$algorithm != "default")
  full <- mutate(all, mappings = n_distinct(.data$mapping)) |>
    # What only some mappings have would decide between them.
    group_by(.data$algorithm, .data$size_bytes) |>
    filter(n() == .data$mappings, n() > 1) |>
    ungroup()
  # Between two ranks all algorithms send the same messages.
  if (nrow(full) == 0 || most <= 2) return(NULL)
  best <- full |>
    group_by(.data$size_bytes) |>
    filter(.data$latency_us == min(.data$latency_us)) |>
    distinct(.data$size_bytes, .data$mapping)
  counts <- sort(table(as.character(best$mapping)), decreasing = TRUE)
  names <- unique(label_algorithm(as.character(full$algorithm), results$study, full$collective[1]))
  lacking <- nrow(full) < nrow(all)
  compared <- if (lacking) paste0("of the algorithms that all mappings have (", and_list(names), ")")
  paste0(
    "With ", format_count(most), " processes, the lowest latency ", compared %||% "(without the default)",
    " is that of ranks mapped ",
    and_list(paste0(
      label_mapping(names(counts), results$study), " at ", counts, " of ", n_distinct(full$size_bytes), " sizes"
    )), ".",
    unequal_nodes(results, full)
  )
}

#' Numbers of nodes of the compared mappings where these differ, because more nodes also have more network interfaces;
#' empty where they are the same; the names of some mappings have theirs
#' @noRd
unequal_nodes <- function(results, compared) {
  nodes <- nodes_of(results, compared$collective[1]) |>
    filter(.data$mapping %in% as.character(compared$mapping), .data$processes == compared$processes[1])
  unnamed <- filter(nodes, .data$mapping == .data$mapped)
  if (n_distinct(nodes$nodes) < 2 || nrow(unnamed) == 0) return("")
  nodes <- group_by(unnamed, .data$mapping) |>
    summarise(nodes = paste(format_count(sort(.data$nodes)), collapse = " or "))
  paste0(
    " The numbers of nodes differ: ",
    and_list(paste(nodes$nodes, label_mapping(nodes$mapping, results$study))), "."
  )
}

#' Mapping, number of processes and number of nodes of the rows of a collective
#' @noRd
nodes_of <- function(results, collective) {
  filter(results$study$places, .data$collective == .env$collective, !is.na(.data$nodes)) |>
    distinct(.data$mapping, .data$mapped, .data$processes, .data$nodes)
}

#' Sentence on mappings whose process counts have different numbers of ranks per node: a curve over processes then also
#' shows the change of the placement
#' @noRd
describe_per_node <- function(results, collective) {
  nodes <- nodes_of(results, collective)
  if (!states_nodes(results$study, nodes$nodes)) return(NULL)
  nodes <- mutate(nodes, per_node = .data$processes / .data$nodes) |>
    group_by(.data$mapping) |>
    filter(n_distinct(.data$per_node) > 1) |>
    group_by(.data$mapping, .data$per_node) |>
    summarise(processes = and_list(format_count(sort(.data$processes))), .groups = "drop_last") |>
    summarise(text = and_list(paste0(
      format_number(.data$per_node), " at ", .data$processes, ifelse(row_number() == 1, " processes", "")
    )))
  if (nrow(nodes) == 0) return(NULL)
  paste0("Ranks per node mapped ", label_mapping(nodes$mapping, results$study), ": ", nodes$text, ".")
}

#' Sentences on the latency of a barrier (or another collective without message sizes)
#'
#' @inheritParams describe_default_vs_best
#' @return Character vector.
#' @noRd
describe_barrier <- function(results, collective = "barrier") {
  rows <- rows_to_fit(results, collective)
  if (nrow(rows) == 0) return("No cell of this collective has a latency.")
  most <- max(common_counts(rows))
  last <- filter(rows, .data$processes == most)
  slopes <- filter(
    fit_barriers(results, collective), .data$model == "linear", .data$term == "processes", .data$algorithm == "linear",
    !is.na(.data$r_squared)
  )
  # Algorithms that send the same messages take equally long where they are simulated.
  say <- function(latency_us) {
    equal <- filter(last, .data$latency_us == .env$latency_us) |>
      group_by(algorithm = label_algorithm(as.character(.data$algorithm), results$study, .env$collective)) |>
      summarise(mapped = and_list(label_mapping(.data$mapping, results$study))) |>
      group_by(.data$mapped) |>
      summarise(text = paste(and_list(.data$algorithm), "mapped", .data$mapped[1]))
    paste0(and_list(equal$text), " (", format_us(latency_us), ")")
  }
  fastest <- n_distinct(last$algorithm[last$latency_us == min(last$latency_us)])
  c(
    paste0(
      "With ", format_count(most), " processes", simulated_note(results$study), ", ",
      if (nrow(last) == 1) "there is only " else if (fastest == 1) "the fastest is " else "the fastest are ",
      say(min(last$latency_us)), if (nrow(last) > 1) paste0(", the slowest ", say(max(last$latency_us))), "."
    ),
    if (nrow(slopes) > 0) paste0(
      "Each additional process adds ", per_mapping(slopes, format_us(slopes$estimate), results$study),
      " to the latency of the linear algorithm."
    )
  )
}
