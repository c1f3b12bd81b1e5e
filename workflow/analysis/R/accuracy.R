#' Join the latencies of a simulated study with those of a measured one
#'
#' @param results List from [read_results()]: the simulated study.
#' @param measured The results of the measured study. Default: the study that `analysis.compare` names, in the folder
#'   next to the simulated one.
#' @return Tibble, one row for each cell and size that both have: collective, algorithm, mapping, processes, size_bytes,
#'   simulated_us, measured_us, judged_us (measured, after [pool_same_messages()]: for the choice of an algorithm),
#'   ratio (simulated / measured) and held_out (TRUE: the machine was not fitted to the
#'   cell: `analysis.compare.fitted` names neither its algorithm nor the one that it runs, or it has more processes than
#'   `fitted_up_to`). No rows where the measured study has no results here.
#' @noRd
compare_studies <- function(results, measured = read_compared(results)) {
  none <- tibble(
    collective = character(), algorithm = character(), mapping = character(), processes = numeric(),
    size_bytes = numeric(), simulated_us = numeric(), measured_us = numeric(), judged_us = numeric(), ratio = numeric(),
    held_out = logical()
  )
  if (is.null(measured)) return(none)
  compare <- results$study$analysis$compare
  fitted <- compare[["fitted"]]
  fitted <- paste(rep(names(fitted), lengths(fitted)), unlist(fitted))
  runs_fitted <- filter(name_rows(measured$rows), paste(.data$collective, .data$runs) %in% fitted)[cell_keys]
  short <- function(medians) {
    # Applications and ladders are compared in their own chapters, which explain the differences between the machines.
    medians <- filter(medians, !.data$collective %in% c(point_to_point, applications))
    mutate(medians[c(cell_keys, "latency_us")], across(c("collective", "algorithm", "mapping"), as.character))
  }
  simulated <- if (measures_slowest(measured)) read_slowest(results) else results$medians
  inner_join(
    rename(short(simulated), simulated_us = "latency_us"),
    rename(short(measured$medians), measured_us = "latency_us"),
    by = cell_keys
  ) |>
    left_join(rename(short(measured$judged$medians), judged_us = "latency_us"), by = cell_keys) |>
    mutate(
      ratio = .data$simulated_us / .data$measured_us,
      held_out = !(paste(.data$collective, .data$algorithm) %in% fitted |
                     vctrs::vec_in(across(all_of(cell_keys)), runs_fitted)) |
        .data$processes > (compare[["fitted_up_to"]] %||% Inf)
    )
}

#' Is a latency of the measured study that of the slowest rank (as in PICO's files), not the mean over ranks?
#' @noRd
measures_slowest <- function(measured) {
  any(startsWith(coalesce(as.character(measured$rows$statistic), ""), "slowest_rank"))
}

#' The measured study that a simulated one is compared with; NULL where it has no results
#' @noRd
read_compared <- function(results) {
  name <- results$study$analysis$compare$study
  if (is.null(name)) return(NULL)
  folder <- file.path(dirname(normalizePath(results$study$folder)), name)
  if (!file.exists(file.path(folder, "measurements.csv"))) return(NULL)
  remember(results, paste("compared study", name), function() {
    measured <- remembering(read_measured(folder))
    measured$study <- remembering(measured$study)
    measured
  })
}

#' Accuracy of the simulation against the measurement
#'
#' Errors are |simulated / measured - 1|. Agreement and regret describe the choice of an algorithm by simulation, among
#' the algorithms that both studies have in the cell. Regret is the measured slow-down of the chosen algorithm against
#' the one measured as fastest; its geometric mean is that of the ratios. Both refer to all algorithms together, so rows
#' of a single algorithm have none.
#'
#' @param compared Tibble from [compare_studies()].
#' @return Tibble: collective, algorithm (or `all`: those of [whole()]), mapping (or `all`), held_out, cells,
#'   median_abs_error_pct, p90_abs_error_pct, bias (geometric mean of simulated / measured), winner_agreement_pct,
#'   geometric_mean_regret_pct.
#' @noRd
summarise_accuracy <- function(compared) {
  parts <- bind_rows(
    compared, mutate(compared, mapping = "all"), mutate(whole(compared), algorithm = "all"),
    mutate(whole(compared), algorithm = "all", mapping = "all")
  )
  choice <- choose_by_simulation(compared)
  choice <- bind_rows(choice, mutate(choice, mapping = "all")) |>
    group_by(.data$collective, .data$mapping) |>
    summarise(
      winner_agreement_pct = 100 * stats::weighted.mean(.data$chosen == .data$fastest, .data$weight),
      geometric_mean_regret_pct = pooled_regret(.data$regret_pct, .data$weight), .groups = "drop"
    ) |>
    mutate(algorithm = "all")
  parts |>
    group_by(.data$collective, .data$algorithm, .data$mapping, .data$held_out) |>
    summarise(
      cells = n(), median_abs_error_pct = 100 * median(abs(.data$ratio - 1)),
      p90_abs_error_pct = 100 * unname(quantile(abs(.data$ratio - 1), 0.9)),
      bias = geometric_mean(.data$ratio), .groups = "drop"
    ) |>
    left_join(choice, by = c("collective", "algorithm", "mapping")) |>
    arrange(desc(.data$collective == "bcast"), .data$algorithm != "all", .data$algorithm, .data$mapping != "all")
}

#' The rows that "all" stands for: without the default, whose latency also depends on which algorithm it selects, and
#' only cells that the machine was not fitted to, if there are any
#' @noRd
whole <- function(compared) {
  compared |>
    group_by(.data$collective) |>
    filter(.data$algorithm != "default", .data$held_out | !any(.data$held_out)) |>
    ungroup()
}

#' For each cell: the algorithm that the simulation chooses, the one measured as fastest, and the regret of the choice
#'
#' Cells with only algorithms to which the machine was fitted count where the collective has no others. Where the
#' simulation finds several algorithms equally fast, each is one row, with its share of the cell as `weight`: otherwise
#' their order would choose.
#' @noRd
choose_by_simulation <- function(compared) {
  compared |>
    filter(.data$algorithm != "default") |>
    group_by(.data$collective) |>
    mutate(counts = .data$held_out | !any(.data$held_out)) |>
    group_by(.data$collective, .data$mapping, .data$processes, .data$size_bytes) |>
    filter(n() > 1, any(.data$counts)) |>
    mutate(
      chosen = .data$algorithm, fastest = .data$algorithm[which.min(.data$judged_us)],
      regret_pct = 100 * (.data$judged_us / .data$judged_us[which.min(.data$judged_us)] - 1),
      rank_correlation = rank_correlation(.data$simulated_us, .data$judged_us)
    ) |>
    filter(dplyr::min_rank(.data$simulated_us) == 1) |>
    mutate(weight = 1 / n()) |>
    ungroup() |>
    # Two algorithms that send the same messages are equally fast.
    mutate(fastest = ifelse(.data$regret_pct == 0, .data$chosen, .data$fastest)) |>
    select(
      "collective", "mapping", "processes", "size_bytes", "chosen", "weight", "fastest", "regret_pct",
      "rank_correlation"
    )
}

#' Logarithm of the measured slow-down of the algorithm with the lowest `by`; of several, their mean, as above
#' @noRd
log_regret <- function(by, measured) mean(log(measured[by == min(by)])) - log(min(measured))

rank_correlation <- function(one, other) {
  if (length(one) < 3 || n_distinct(one) < 2 || n_distinct(other) < 2) return(NA_real_)
  stats::cor(one, other, method = "spearman")
}

#' Sentences on where the simulation is accurate, from the comparison with measurements
#'
#' @inheritParams compare_studies
#' @return Sentences.
#' @noRd
describe_accuracy <- function(results) {
  measured <- read_compared(results)
  compared <- compare_studies(results, measured)
  if (nrow(compared) == 0) return("There are no results of the measured study to compare with.")
  of_collectives <- map(unique(compared$collective), function(name) {
    rows <- filter(compared, .data$collective == name)
    c(accuracy_sentences(rows, results$study), noise_sentences(results, compared, name))
  })
  c(
    if (measures_slowest(measured)) "Measured and simulated latencies are those of the slowest rank.",
    describe_extrapolated(results, measured), unlist(of_collectives)
  )
}

accuracy_sentences <- function(rows, study) {
  collective <- rows$collective[1]
  all <- filter(summarise_accuracy(rows), .data$algorithm == "all", .data$mapping == "all")
  c(
    if (nrow(all) == 1) paste0(
      collective_title(collective), ": the simulated latency of ", count_of(all$cells, "cell"),
      if (all$held_out) " that the machine was not fitted to" else "", " has an error of ",
      format_pct(all$median_abs_error_pct), " in the median",
      # A tenth of fewer cells is less than one.
      if (all$cells >= 10) paste0(" and at least ", format_pct(all$p90_abs_error_pct), " in a tenth of the cells"),
      ".",
      if (!is.na(all$geometric_mean_regret_pct)) paste0(
        " Of all algorithms", if (any(!rows$held_out)) ", including those of the fit", ", the one with the lowest ",
        "simulated latency is the one measured as fastest in ", format_pct(all$winner_agreement_pct), " of ",
        count_of(round(sum(choose_by_simulation(rows)$weight)), "combination"),
        " of mapping, processes and size; its regret is ", format_pct(all$geometric_mean_regret_pct),
        " (geometric mean)."
      )
    ),
    trust_sentence(rows, study), extreme_sentence(rows, study), mistake_sentence(rows, study)
  )
}

size_class <- function(bytes) {
  cut(bytes, c(-Inf, 64, 8192, Inf), c("up to 64 B", "above 64 B up to 8 KiB", "above 8 KiB"))
}

#' Sentence on the parts (algorithm x size class) with a median error of at most 20 %, and on the others
#' @noRd
trust_sentence <- function(rows, study) {
  collective <- rows$collective[1]
  parts <- whole(rows) |>
    mutate(size = size_class(.data$size_bytes)) |>
    group_by(.data$algorithm, .data$size) |>
    summarise(trusted = median(abs(.data$ratio - 1)) <= 0.2, .groups = "drop") |>
    mutate(text = paste0(
      label_algorithm(.data$algorithm, study, .env$collective),
      ifelse(is.na(.data$size), "", paste0(" (messages ", .data$size, ")"))
    ))
  if (nrow(parts) == 0) return(NULL)
  none <- function(words) if (length(words) == 0) "nothing" else and_list(words)
  paste0(
    "Median error of at most 20 %: ", none(parts$text[parts$trusted]), ". Larger error: ",
    none(parts$text[!parts$trusted]), "."
  )
}

#' Sentence on the algorithm, mapping and size class with the smallest and the largest error, over the rows of [whole()]
#' @noRd
extreme_sentence <- function(rows, study) {
  rows <- whole(rows)
  parts <- rows |>
    mutate(size = size_class(.data$size_bytes)) |>
    group_by(.data$algorithm, .data$mapping, .data$size) |>
    summarise(error = 100 * median(abs(.data$ratio - 1)), bias = median(.data$ratio), .groups = "drop") |>
    arrange(.data$error)
  if (nrow(parts) < 2) return(NULL)
  say <- function(part) {
    paste0(
      label_algorithm(part$algorithm, study, rows$collective[1]), " mapped ", label_mapping(part$mapping, study),
      if (!is.na(part$size)) paste0(", messages ", part$size), " (median error ", format_pct(part$error),
      ", simulated / measured ", format_number(part$bias, 2), ")"
    )
  }
  paste0("The error is smallest for ", say(parts[1, ]), " and largest for ", say(parts[nrow(parts), ]), ".")
}

tables_accuracy <- function(results) {
  measured <- read_compared(results)
  compared <- compare_studies(results, measured)
  if (nrow(compared) == 0) return(list())
  note <- pooling_note(measured)
  c(tables_of_extrapolated(results, measured), list(listed(
    "accuracy", NULL, summarise_accuracy(compared), paste(
      "Error of the simulated latencies, |simulated / measured - 1|, over the cells that both studies have. All:",
      "without the default, and only cells that the machine was not fitted to (held out), if there are any.",
      "Winner agreement and regret refer to choosing by simulation among all algorithms of the cells that have a",
      "held-out one: the share of cells in which the choice was measured as fastest, and its slow-down (geometric",
      "mean); of algorithms that are equally fast in the simulation, each is chosen with the same probability. Bias:",
      "geometric mean of simulated / measured.",
      if (!is.null(note)) paste("Errors and bias are those of the latencies as measured. For the choice:", note)
    )
  )), tables_of_choice(results, compared))
}

figures_accuracy <- function(results) {
  measured <- read_compared(results)
  compared <- filter(compare_studies(results, measured), !is.na(.data$size_bytes))
  each <- map(unique(compared$collective), function(collective) {
    here <- filter(compared, .data$collective == .env$collective)
    height <- 2.5 + 0.8 * n_distinct(here$algorithm)
    ordered <- any(!is.na(choose_by_simulation(here)$rank_correlation))
    figures <- list(
      figure(
        "accuracy", paste0("ratio-", collective), plot_ratio(here, results$study),
        "Line: median over the numbers of processes; band: middle 80 %. 1 is exact; dotted: a factor of 2.", 9, height
      ),
      figure(
        "accuracy", paste0("processes-", collective), plot_ratio_processes(here, results$study),
        "Median over the message sizes of each class.", 9, height
      )
    )
    # A single algorithm has no order.
    c(figures, if (ordered) list(figure(
      "accuracy", paste0("ranks-", collective), plot_rank_correlation(here, results$study), paste(
        "Spearman rank correlation between simulated and measured latencies of a cell's algorithms: 1 is the same",
        "order."
      )
    )))
  })
  c(figures_of_extrapolated(results, measured), unlist(each, recursive = FALSE))
}

#' Title of a figure about one collective
#' @noRd
titled <- function(compared, text) paste0(collective_title(compared$collective[1]), ": ", text)

#' What the figures of simulated / measured have in common; `x`: the column on the horizontal axis
#' @noRd
ratio_panels <- function(rows, compared, study, x, text) {
  collective <- compared$collective[1]
  list(
    geom_hline(yintercept = 1, linewidth = 0.3),
    geom_hline(yintercept = c(0.5, 2), linewidth = 0.3, linetype = "dotted"),
    geom_line(), geom_point(size = 0.8), layer_absent(rows, c("algorithm", "mapping"), x),
    facet_grid(vars(label_algorithm(.data$algorithm, study, collective)), vars(label_mapping(.data$mapping, study))),
    scale_y_log10(), theme_study(), theme(strip.text.y = element_text(angle = 0)),
    labs(title = titled(compared, paste("simulated / measured latency by", text)), y = "Simulated / measured")
  )
}

#' Simulated / measured against size, by algorithm and mapping
#'
#' @param compared Tibble from [compare_studies()], rows of one collective.
#' @param study The simulated study.
#' @return A ggplot.
#' @noRd
plot_ratio <- function(compared, study) {
  rows <- compared |>
    group_by(.data$algorithm, .data$mapping, .data$size_bytes) |>
    summarise(
      low = quantile(.data$ratio, 0.1), middle = median(.data$ratio), high = quantile(.data$ratio, 0.9),
      .groups = "drop"
    )
  ggplot(rows, aes(.data$size_bytes, .data$middle, ymin = .data$low, ymax = .data$high, colour = "")) +
    geom_ribbon(alpha = 0.2, fill = mapping_colours[1], colour = NA) +
    ratio_panels(rows, compared, study, "size_bytes", "message size") +
    scale_colour_manual(values = mapping_colours[1], guide = "none") +
    size_axis()
}

size_axis <- function() {
  scale_x_continuous("Message size", trans = "log2", breaks = 2^c(0, 5, 10, 15, 20), labels = label_bytes)
}

#' Simulated / measured against the number of processes, by algorithm and mapping
#'
#' @inheritParams plot_ratio
#' @return A ggplot.
#' @noRd
plot_ratio_processes <- function(compared, study) {
  rows <- compared |>
    mutate(class = class_of(.data$size_bytes, study$analysis$size_classes)) |>
    group_by(.data$algorithm, .data$mapping, .data$processes, .data$class) |>
    summarise(middle = median(.data$ratio), .groups = "drop")
  ggplot(rows, aes(.data$processes, .data$middle, colour = .data$class)) +
    ratio_panels(rows, compared, study, "processes", "processes") +
    scale_colour_manual(values = rep(mapping_colours, length.out = nlevels(rows$class))) +
    scale_x_continuous("Processes")
}

#' Rank correlation of the algorithms in each cell, against size
#'
#' @inheritParams plot_ratio
#' @return A ggplot.
#' @noRd
plot_rank_correlation <- function(compared, study) {
  rows <- choose_by_simulation(compared) |>
    filter(!is.na(.data$rank_correlation)) |>
    distinct(.data$mapping, .data$processes, .data$size_bytes, .data$rank_correlation) |>
    group_by(.data$mapping, .data$size_bytes) |>
    summarise(middle = median(.data$rank_correlation), .groups = "drop") |>
    mutate(mapping = factor(.data$mapping))
  ggplot(rows, aes(.data$size_bytes, .data$middle, colour = .data$mapping, shape = .data$mapping)) +
    geom_hline(yintercept = 0, linewidth = 0.3) +
    geom_line() +
    geom_point() +
    size_axis() +
    scale_mapping(study, rows$mapping) +
    coord_cartesian(ylim = c(-1, 1)) +
    theme_study() +
    labs(
      title = titled(compared, "order of the algorithms, simulated and measured"), y = "Median rank correlation"
    )
}
