# The chapter on extrapolation: its tables, figures and sentences.

extrapolation_words <- c(
  messages = "message model", messages_anchored = "anchored message model", last_value = "last value",
  log_linear = "log-linear in the nodes"
)

# Target: largest median error (%) of the model at four times the nodes of the fit.
extrapolation_target <- 25

# Largest error (%) in a figure: a line of log latency can be off by several hundred.
most_shown_error <- 120

tables_extrapolation <- function(results) {
  list(
    listed("extrapolation", NULL, summarise_extrapolation(results), paste(
      "Error of latencies predicted for more nodes than the models were fitted to: |predicted / measured - 1|.",
      "Times: nodes over the most nodes of the fit. The message model has one set of costs for all collectives and",
      "algorithms; the anchored model is scaled by its error on the most nodes of the fit. All models but the message",
      "model need latencies of the same algorithm in the fit, the log-linear one on two numbers of nodes. Bias:",
      "geometric mean of predicted / measured."
    )),
    listed("extrapolation", "costs", summarise_message_costs(results), paste0(
      "Costs of the message model (ns). ", and_list(paste0(names(cost_words), ": ", cost_words)),
      "; bytes_to_N: a byte of a message in the range that ends at N. Costs are not negative; 0: the fit does not use ",
      "the term."
    )),
    listed("extrapolation", "ring-steps", summarise_ring_steps(results), paste(
      "Time of one step of the ring algorithms with messages of at most 64 B (latency over number of steps, median",
      "over sizes), and the share of the messages that cross to another group (%)."
    ))
  )
}

figures_extrapolation <- function(results) {
  list(
    figure("extrapolation", "error", plot_errors_by_nodes(filter(
      summarise_extrapolation(results), .data$fitted_up_to == results$study$analysis$fit_up_to
    )), paste0(
      "Median error (points) and range to the 90th percentile (lines), over all collectives and algorithms that a ",
      "model can predict; fitted to at most ", results$study$analysis$fit_up_to, " nodes. ", cells_differ,
      " Dotted: the target, ", extrapolation_target, " %. Errors of more than ", most_shown_error, " % are cut off."
    ), 9, 4.5),
    figure("extrapolation", "steps", plot_ring_steps(results), paste(
      "Time of one step of the ring algorithms with messages of at most 64 B. Dotted: the most nodes of the fit."
    ), 9, 3.5)
  )
}

#' What a reader of [plot_errors_by_nodes()] must know before comparing models
#' @noRd
cells_differ <- "The models predict different cells (the table has their numbers)."

#' Error by number of nodes and model
#'
#' @param errors Tibble from [errors_of_extrapolation()], of one limit of the fit.
#' @param words Names of the models in the figure.
#' @return A ggplot.
#' @noRd
plot_errors_by_nodes <- function(errors, words = extrapolation_words) {
  rows <- filter(errors, .data$collective == "all", !is.na(.data$processes)) |>
    mutate(model = factor(words[.data$model], words), nodes = factor(.data$processes))
  beside <- position_dodge(width = 0.5)
  ggplot(rows, aes(.data$nodes, .data$median_abs_error_pct, colour = .data$model, shape = .data$model)) +
    geom_hline(yintercept = extrapolation_target, linetype = "dotted") +
    geom_linerange(aes(ymin = .data$median_abs_error_pct, ymax = .data$p90_abs_error_pct), position = beside) +
    geom_point(size = 2.2, position = beside) +
    scale_colour_manual(values = mapping_colours) +
    coord_cartesian(ylim = c(0, min(most_shown_error, max(rows$p90_abs_error_pct)))) +
    theme_study() +
    labs(
      title = "Error of predictions for more nodes than were fitted", x = "Nodes, one rank on each",
      y = "Absolute error (%)"
    )
}

#' Time of a ring's step by number of nodes
#'
#' @param results List from [read_results()].
#' @return A ggplot.
#' @noRd
plot_ring_steps <- function(results) {
  rows <- summarise_ring_steps(results)
  ggplot(rows, aes(.data$processes, .data$step_us, colour = collective_title(.data$collective))) +
    geom_vline(xintercept = results$study$analysis$fit_up_to, linetype = "dotted") +
    geom_point(size = 2.2) +
    scale_x_continuous(trans = "log2", breaks = sort(unique(rows$processes)), guide = guide_axis(n.dodge = 2)) +
    scale_colour_manual(values = mapping_colours) +
    expand_limits(y = 0) +
    theme_study() +
    labs(title = "Ring algorithms: time of one step", x = "Nodes, one rank on each", y = "Time of a step (\u00b5s)")
}

#' Sentences on the accuracy of extrapolation
#'
#' @inheritParams plot_ring_steps
#' @return Character vector.
#' @noRd
describe_extrapolation_study <- function(results) {
  limit <- results$study$analysis$fit_up_to
  errors <- filter(summarise_extrapolation(results), .data$collective == "all", .data$fitted_up_to == limit)
  own <- filter(errors, .data$model == "messages")
  whole <- filter(own, is.na(.data$processes))
  if (nrow(whole) == 0) return("Extrapolation needs runs on fewer and on more nodes.")
  each <- filter(own, !is.na(.data$processes))
  four <- filter(
    errors_at_four_times(extrapolations(results)), .data$fitted_up_to == limit, .data$model == "messages"
  )
  within <- each$median_abs_error_pct <= extrapolation_target
  nodes <- function(counts) paste(and_list(format_number(counts, 6)), "nodes")
  fit <- filter(summarise_message_costs(results), .data$fitted_up_to == limit)
  c(
    paste0(
      "A model of messages with ", nrow(fit), " costs, fitted to ", fit$cells[1], " cells on at most ", limit,
      " nodes, predicts ", count_of(whole$cells, "cell"), " on ", range_text(each$processes),
      " nodes with an error of ", format_pct(whole$median_abs_error_pct), " in the median and at least ",
      format_pct(whole$p90_abs_error_pct), " in a tenth of the cells."
    ),
    if (nrow(four) > 0) paste0(
      "At four times the nodes of the fit (", four$nodes, " nodes, ", four$cells, " cells) the median error is ",
      format_pct(four$median_abs_error_pct), ": the target of ", extrapolation_target, " % there is ",
      if (four$median_abs_error_pct <= extrapolation_target) "met." else "missed."
    ),
    paste0(
      "The median error is within the target on ",
      if (any(within)) nodes(each$processes[within]) else "no number of nodes",
      if (any(!within)) paste0(", and not on ", nodes(each$processes[!within])), "."
    ),
    describe_larger_fits(results), describe_ring_steps(results), describe_against_latencies(results, limit),
    describe_long_messages(results, limit)
  )
}

#' Sentence on the message model and the anchored one at four times the nodes of larger fits, where both predict
#' @noRd
describe_larger_fits <- function(results) {
  models <- c("messages", "messages_anchored")
  rows <- extrapolations(results) |>
    filter(.data$fitted_up_to > results$study$analysis$fit_up_to, .data$model %in% models) |>
    group_by(.data$fitted_up_to, .data$collective, .data$algorithm, .data$processes, .data$size_bytes) |>
    filter(n() == length(models)) |>
    ungroup() |>
    errors_at_four_times()
  if (nrow(rows) == 0) return(NULL)
  each <- split(rows, rows$fitted_up_to)
  paste0(
    "Median error of fits to more nodes, judged at four times as many on the cells that both models can predict: ",
    paste(map_chr(each, function(part) {
      paste0(
        format_number(part$fitted_up_to[1], 6), " to ", part$nodes[1], " nodes ",
        and_list(paste0(format_pct(part$median_abs_error_pct), " (", extrapolation_words[part$model], ")")),
        " (", count_of(part$cells[1], "cell"), ")"
      )
    }), collapse = "; "), "."
  )
}

#' Median errors at 3.5 to 4.5 times the nodes of each fit
#' @param rows Tibble from [extrapolate()].
#' @noRd
errors_at_four_times <- function(rows) {
  rows |>
    filter(.data$processes > 3.5 * .data$fitted_up_to, .data$processes < 4.5 * .data$fitted_up_to) |>
    group_by(.data$fitted_up_to, .data$model) |>
    summarise(
      cells = n(), nodes = and_list(format_number(sort(unique(.data$processes)), 6)),
      median_abs_error_pct = 100 * median(abs(.data$predicted_us / .data$latency_us - 1)), .groups = "drop"
    )
}

#' Sentence on the numbers of nodes on which a ring step takes a different time than on those of the fit
#' @noRd
describe_ring_steps <- function(results) {
  rows <- summarise_ring_steps(results)
  fitted <- rows$step_us[rows$processes <= results$study$analysis$fit_up_to]
  if (length(fitted) == 0) return(NULL)
  beyond <- filter(rows, .data$processes > results$study$analysis$fit_up_to) |>
    mutate(other = abs(log(.data$step_us / median(fitted))) > log(1.5))
  range_us <- function(x) paste(format_us(unique(signif(range(x), 2))), collapse = " to ")
  range_pct <- function(x) paste(format_pct(unique(round(range(x)))), collapse = " to ")
  other <- beyond[beyond$other, ]
  alike <- beyond[!beyond$other, ]
  if (nrow(other) == 0) return(NULL)
  same <- filter(rows, !.data$processes %in% other$processes)
  counts <- function(part) and_list(format_number(sort(unique(part$processes)), 6))
  paste0(
    "A step of a ring with short messages takes ", range_us(fitted), " on the nodes of the fit, but ",
    range_us(other$step_us), " on ", counts(other),
    if (nrow(alike) > 0) paste0(" (and ", range_us(alike$step_us), " on ", counts(alike), ")"),
    ", where ", range_pct(other$crossing_pct), " of its messages cross to another group (otherwise ",
    range_pct(same$crossing_pct), "). Runs on fewer nodes cannot show this change."
  )
}

#' Sentence comparing all models on the cells that all of them predict
#' @noRd
describe_against_latencies <- function(results, limit) {
  rows <- filter(extrapolations(results), .data$fitted_up_to == limit) |>
    mutate(error = 100 * abs(.data$predicted_us / .data$latency_us - 1)) |>
    group_by(.data$collective, .data$algorithm, .data$processes, .data$size_bytes) |>
    filter(n() == length(extrapolation_words)) |>
    ungroup()
  if (nrow(rows) == 0) return(NULL)
  medians <- tapply(rows$error, rows$model, median)[names(extrapolation_words)]
  paste0(
    "On the ", nrow(rows) / length(medians), " cells that all can predict, the median error is ",
    and_list(paste0(format_pct(medians), " (", extrapolation_words, ")")), "."
  )
}

#' Sentence on the error of the message model by message length
#' @noRd
describe_long_messages <- function(results, limit) {
  cells <- counted_cells(results)
  long <- rowSums(cells$counts[, paste0("bytes_to_", utils::tail(byte_ranges, 3)), drop = FALSE]) > 0
  rows <- filter(extrapolations(results), .data$fitted_up_to == limit, .data$model == "messages") |>
    inner_join(
      mutate(cells$rows, long = long), by = c("collective", "algorithm", "processes", "size_bytes", "latency_us")
    ) |>
    group_by(.data$long) |>
    summarise(
      cells = n(), error = 100 * median(abs(.data$predicted_us / .data$latency_us - 1)),
      bias = geometric_mean(.data$predicted_us / .data$latency_us)
    )
  words <- paste(ifelse(rows$long, "some", "no"), "message of more than", label_bytes(byte_ranges[2]))
  paste0("By size: ", and_list(paste0(
    "median error ", format_pct(rows$error), ", predicted / measured ", format_number(rows$bias, 2), " (", words, ", ",
    rows$cells, " cells)"
  )), ".")
}

sentences_extrapolation <- function(results) {
  left_out <- counted_cells(results)$left_out
  bind_rows(
    said("extrapolation", describe_extrapolation_study(results)),
    if (nrow(left_out) > 0) said("extrapolation", paste0(
      "Left out, because the messages of these algorithms are not modelled: ", paste0(
        unlist(imap(split(left_out$algorithm, left_out$collective), function(names, collective) {
          and_list(label_algorithm(names, results$study, collective))
        })), " (", collective_word(sort(unique(left_out$collective))), ")", collapse = "; "
      ), "."
    ), FALSE)
  )
}

describe_extrapolation_answer <- function(results) {
  paste0(study_name(results), ": ", lower_first(describe_extrapolation_study(results)[1]))
}
