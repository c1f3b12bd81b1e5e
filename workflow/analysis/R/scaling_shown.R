# Strong scaling of applications: tables, figures and sentences.

#' The published run times (Wisner), if the study is of the same machine
#'
#' @param results List from [read_results()].
#' @return Tibble: n, processes, seconds, speedup. NULL for other machines.
#' @noRd
read_published_svd <- function(results) {
  if (!identical(results$study$machine$name, "ethernet-lab")) return(NULL)
  path <- system.file("extdata", "wisner_svd.csv", package = "collanalysis")
  readr::read_csv(path, col_types = "ddd", progress = FALSE) |>
    group_by(.data$n) |>
    mutate(speedup = .data$seconds[.data$processes == 1] / .data$seconds) |>
    ungroup()
}

size_label <- function(n) if (length(n) == 0) character() else paste(n, "\u00d7", n)

#' One row per number of processes (and mapping, if there are several), one column per problem size
#' @noRd
spread_sizes <- function(scaling, column, unit) {
  scaling |>
    mutate(name = paste0(.data$n, "x", .data$n, unit)) |>
    arrange(.data$n) |>
    select(any_of(several_mappings(scaling)), "processes", "name", all_of(column)) |>
    pivot_wider(names_from = "name", values_from = all_of(column)) |>
    arrange(across(any_of(c("mapping", "processes"))))
}

#' "mapping" where the runs have several
#' @noRd
several_mappings <- function(rows) if (n_distinct(rows[["mapping"]]) > 1) "mapping"

#' Panels by the columns `by`, and by mapping where there are several
#' @noRd
facet_runs <- function(results, rows, by = NULL, ...) {
  by <- c(by, several_mappings(rows))
  if (is.null(by)) return(NULL)
  facet_wrap(by, labeller = labeller(mapping = mapping_labels(results$study)), ...)
}

tables_of_scaling <- function(results) {
  scaling <- summarise_scaling(read_scaling(results))
  unlist(map(unique(scaling$application), function(name) {
    here <- filter(scaling, .data$application == name)
    tables_of_application(results, name, here)
  }), recursive = FALSE)
}

tables_of_application <- function(results, name, scaling) {
  note <- simulated_note(results$study)
  c(
    list(
      listed(name, "times", spread_sizes(scaling, "seconds", "_s"), paste0(
        "Time to solution (s)", note, ", by number of processes and matrix size", median_note(scaling), "."
      )),
      listed(name, "speedups", spread_sizes(filter(scaling, !is.na(.data$speedup)), "speedup", ""), paste0(
        "Speed-up", note, " over one process of the same program, by number of processes and matrix size."
      )),
      listed(name, "communication", spread_sizes(scaling, "comm_pct", "_pct"), paste0(
        "Share of the time to solution in communication calls", note,
        ", including waiting for the neighbours, mean over the ranks (%)."
      ))
    ),
    tables_published_svd(results, name, scaling)
  )
}

median_note <- function(scaling) if (any(scaling$launches > 1)) ", median over the launches" else ""

tables_published_svd <- function(results, name, scaling) {
  published <- read_published_svd(results)
  if (is.null(published) || name != "svd") return(NULL)
  shown <- filter(published, .data$n %in% scaling$n, .data$processes %in% scaling$processes)
  list(listed(name, "published", spread_sizes(shown, "speedup", ""), paste0(
    "Measured speed-ups of @wisner-svd, for comparison. That program rotates the pairs inside a block at every step, ",
    "this one once per sweep; the flop rate of the simulated machine is taken from the published times of one ",
    "process, so only the shape of the curves can be compared."
  )))
}

join_published <- function(scaling, published) {
  inner_join(
    transmute(filter(scaling, !is.na(.data$speedup)), .data$n, .data$processes, ours_speedup = .data$speedup),
    transmute(published, .data$n, .data$processes, published_speedup = .data$speedup), by = c("n", "processes")
  )
}

models_of_scaling <- function(results) {
  scaling <- read_scaling(results)
  predicted <- predict_scaling(results, scaling)
  unlist(map(unique(predicted$application), function(name) {
    here <- filter(predicted, .data$application == name)
    list(listed(name, "predicted", mutate(
      select(here, any_of(several_mappings(here)), "n":"counted_s"),
      error_pct = 100 * (.data$model_s / .data$seconds - 1)
    ), paste0(
      "Time to solution (s)", simulated_note(results$study), " and the model. The rate of a core, ",
      format_number(fit_flop_rate(scaling)), " GFlop/s, is fitted to the runs on one process, whose sweeps and flops ",
      "the model also takes; message costs are those of the study's ladder. Flops only: the time of one process ",
      "divided by P. Compute: the longest pair of blocks of each step, without messages. Counted: the model with the ",
      "sweeps and flops of the run itself, for comparison; it is not a prediction."
    ), part = "models"))
  }), recursive = FALSE)
}

figures_of_scaling <- function(results) {
  scaling <- summarise_scaling(read_scaling(results))
  unlist(map(unique(scaling$application), function(name) {
    here <- filter(scaling, .data$application == name)
    if (n_distinct(here$processes) < 2) return(NULL)
    compared <- filter(here, !is.na(.data$speedup))
    published <- if (name == "svd") read_published_svd(results)
    lines <- boundary_note(results, name, unique(here$mapping), max(here$processes))
    c(
      if (nrow(compared) > 0) list(
        figure(name, "speedup", plot_speedup(results, compared, published), paste0(
          "Speed-up over one process against the number of processes, one line per matrix size. Grey: ideal.",
          if (!is.null(published)) " Hollow points, dashed: measurements by @wisner-svd. Logarithmic axes.",
          if (is.null(published)) " Logarithmic axes.", lines
        ), 9.5, if (is.null(published)) 4.2 else 6.4)
      ),
      list(
        figure(name, "communication", plot_communication(results, here), paste0(
          "Share of the time to solution that a rank spends in communication calls, including waiting (mean over the ",
          "ranks, %), against the number of processes.", lines
        ), 9, 4.2)
      ),
      figures_of_scaling_model(results, name, lines)
    )
  }), recursive = FALSE)
}

figures_of_scaling_model <- function(results, name, lines) {
  predicted <- filter(predict_scaling(results), .data$application == name)
  if (nrow(predicted) == 0) return(NULL)
  list(figure(name, "model", plot_scaling_model(results, predicted), paste0(
    "Time to solution (s; points: ", if (results$study$simulated) "simulated" else "measured", ") against the number ",
    "of processes, one panel per matrix size. Models: flops only, flops and messages at the costs of the ladder, and ",
    "the same with the flops that each run counted. Logarithmic axes.", lines
  ), 9.5, 1.5 + 2.4 * ceiling(n_distinct(predicted$n, predicted$mapping) / 3), part = "models"))
}

scale_x_processes_log <- function(processes) {
  # Labels of neighbours that are closer than a third apart would touch.
  known <- sort(unique(processes))
  breaks <- Reduce(function(kept, p) if (p >= 1.3 * kept[length(kept)]) c(kept, p) else kept, known)
  scale_x_continuous("Processes", trans = "log2", breaks = breaks, minor_breaks = known, labels = format_count)
}

size_levels <- function(n) factor(size_label(n), size_label(sort(unique(n))))

scale_matrix_sizes <- function(panels) {
  count <- nlevels(panels)
  more <- grDevices::hcl.colors(max(1, count), "Dark 3")
  list(
    scale_colour_manual(values = if (count <= length(mapping_colours)) mapping_colours else more),
    scale_shape_manual(values = rep_len(point_shapes, count))
  )
}

plot_speedup <- function(results, scaling, published) {
  ideal <- distinct(scaling, .data$processes)
  rows <- mutate(scaling, panel = size_levels(.data$n), mapping = factor(.data$mapping))
  draw <- ggplot(rows, aes(.data$processes, .data$speedup)) +
    layer_boundaries(results, rows, rows$application[1]) +
    geom_line(aes(y = .data$processes), ideal, colour = "grey60", linewidth = 0.4)
  if (is.null(published)) {
    draw <- draw + geom_line(aes(colour = .data$panel), linewidth = 0.5) +
      geom_point(aes(colour = .data$panel), size = 1.6) + facet_runs(results, rows)
  } else {
    published <- mutate(filter(published, .data$n %in% rows$n), panel = size_levels(.data$n))
    draw <- draw +
      geom_line(aes(colour = .data$panel), published, linetype = "dashed", linewidth = 0.4) +
      geom_point(aes(colour = .data$panel), published, shape = 1, size = 1.6) +
      geom_line(aes(colour = .data$panel), linewidth = 0.6) +
      geom_point(aes(colour = .data$panel), size = 1.6) +
      facet_runs(results, rows, "panel", ncol = 3) + guides(colour = "none")
  }
  draw +
    scale_matrix_sizes(rows$panel) +
    scale_x_processes_log(rows$processes) +
    scale_y_continuous("Speed-up", trans = "log2", labels = format_number) +
    labs(title = "Strong scaling: speed-up over one process") + tag_simulated(results$study) + theme_study()
}

plot_communication <- function(results, scaling) {
  rows <- mutate(scaling, size = size_levels(.data$n), mapping = factor(.data$mapping))
  ggplot(rows, aes(.data$processes, .data$comm_pct, colour = .data$size, shape = .data$size)) +
    layer_boundaries(results, rows, rows$application[1]) +
    geom_line(linewidth = 0.4) + geom_point(size = 1.6) + facet_runs(results, rows) +
    scale_matrix_sizes(rows$size) +
    scale_x_processes_log(rows$processes) +
    scale_y_continuous("Time in communication (%)", limits = c(0, 100)) +
    labs(title = "Strong scaling: share of communication") + tag_simulated(results$study) + theme_study()
}

plot_scaling_model <- function(results, predicted) {
  words <- setNames(
    message_model_words[c("flops_only", "flops_ladder", "flops_counted")], c("flops_only_s", "model_s", "counted_s")
  )
  rows <- mutate(predicted, panel = size_levels(.data$n), mapping = factor(.data$mapping))
  lines <- pivot_longer(rows, all_of(names(words)), names_to = "model", values_to = "value")
  ggplot(rows, aes(.data$processes, .data$seconds)) +
    layer_boundaries(results, rows, rows$application[1]) +
    geom_line(aes(y = .data$value, colour = .data$model, linetype = .data$model), lines, linewidth = 0.6) +
    geom_point(size = 1.5) +
    facet_runs(results, rows, "panel", scales = "free_y", ncol = 3) +
    scale_colour_manual(
      values = c(flops_only_s = "#E69F00", model_s = "#0072B2", counted_s = "#009E73"), labels = words,
      breaks = names(words)
    ) +
    scale_linetype_manual(
      values = c(flops_only_s = "dashed", model_s = "solid", counted_s = "dotted"), labels = words,
      breaks = names(words)
    ) +
    scale_x_processes_log(rows$processes) +
    scale_y_log10("Time to solution (s)", labels = format_number, breaks = scales::breaks_log(5)) +
    labs(title = "Strong scaling: time to solution and models") + tag_simulated(results$study) + theme_study()
}

#' Sentences on strong scaling
#'
#' @param results List from [read_results()].
#' @return Character vector; empty where the study runs no application.
#' @noRd
describe_scaling <- function(results) {
  scaling <- summarise_scaling(read_scaling(results))
  if (nrow(scaling) == 0) return(character())
  note <- simulated_note(results$study)
  rate <- fit_flop_rate(scaling)
  c(
    paste0(
      "A time is that of one run, from the matrix in the memory of rank 0 to U, S and V in the same place. The ",
      "largest relative residual |A - U S V'| / |A| of all runs is ", format(max(scaling$residual), digits = 2), "."
    ),
    if (results$study$simulated) paste0(
      "The simulator executes the arithmetic, so results and number of sweeps are real; its simulated time is that of ",
      if (is.nan(rate)) "the machine's flop rate" else paste(format_number(rate), "GFlop/s per core"),
      ". Messages also take simulated time."
    ),
    describe_speedup(scaling, note),
    describe_communication(scaling),
    describe_published_svd(results, scaling),
    describe_compared_scaling(results)
  )
}

describe_speedup <- function(scaling, note) {
  best <- scaling |>
    filter(!is.na(.data$speedup)) |>
    group_by(.data$n) |>
    filter(any(.data$processes > 1)) |>
    slice_max(.data$speedup, n = 1, with_ties = FALSE) |>
    ungroup()
  if (nrow(best) == 0) return(NULL)
  gained <- filter(best, .data$processes > 1)
  none <- size_label(best$n[best$processes == 1])
  paste0(
    "The largest speed-up", note, " is ", and_list(c(
      if (nrow(gained) > 0) paste0(
        format_number(gained$speedup), " on ", format_count(gained$processes), " processes (", size_label(gained$n), ")"
      ),
      if (length(none) > 0) paste0("none: more processes are not faster (", and_list(none), ")")
    )), "."
  )
}

#' Sentence on the speed-ups of the same program in the study that `analysis.compare` names
#' @noRd
describe_compared_scaling <- function(results) {
  measured <- read_compared(results)
  if (is.null(measured)) return(NULL)
  scaling <- filter(summarise_scaling(read_scaling(measured)), .data$processes > 1, !is.na(.data$speedup))
  if (nrow(scaling) == 0) return(NULL)
  paste0(
    "The same program with real messages on ", measured$study$machine$label, " (study ", measured$study$name,
    ") has speed-ups from ", format_number(min(scaling$speedup)), " to ", format_number(max(scaling$speedup)), " on ",
    range_text(scaling$processes), " processes."
  )
}

range_text <- function(x) paste(format_count(unique(range(x))), collapse = " to ")

describe_communication <- function(scaling) {
  most <- filter(scaling, .data$processes == max(.data$processes))
  of_size <- split(most$comm_pct, most$n)
  falls <- length(of_size) > 1 && all(map_dbl(of_size, max)[-1] < head(map_dbl(of_size, min), -1))
  paste0(
    "On ", count_of(most$processes[1], "process", "processes"), " a rank spends ", range_pct(most$comm_pct),
    " of the time in ",
    "communication calls, including waiting for its neighbours", if (falls) ": the larger the matrix, the less", "."
  )
}

describe_published_svd <- function(results, scaling) {
  published <- read_published_svd(results)
  if (is.null(published)) return(NULL)
  both <- join_published(scaling, published)
  if (nrow(both) == 0) return(NULL)
  # On one process both are 1.
  agreement <- filter(both, .data$processes > 1) |>
    group_by(.data$n) |>
    summarise(rho = rank_correlation(.data$published_speedup, .data$ours_speedup)) |>
    filter(!is.na(.data$rho))
  c(
    if (nrow(agreement) > 0) paste0(
      "The Spearman rank correlation between published [@wisner-svd] and simulated speed-ups is ",
      and_list(paste0(format_number(agreement$rho, 2), " (", size_label(agreement$n), ")")), "."
    ),
    unlist(map(boundaries_between(results, both), function(at) {
      before <- both[both$processes == at$before, ]
      after <- both[both$processes == at$after & both$n %in% before$n, ]
      before <- before[match(after$n, before$n), ]
      sizes <- nrow(after)
      if (sizes == 0) return(NULL)
      falls <- function(column) sum(after[[column]] < before[[column]])
      paste0(
        "From ", format_count(at$before), " to ", format_count(at$after), " processes, where a further ", at$level,
        " is needed, the published ",
        "speed-up falls at ", falls("published_speedup"), " of ", sizes, " matrix sizes, the simulated one at ",
        falls("ours_speedup"), "."
      )
    }))
  )
}

#' The neighbouring numbers of processes between which a further socket or node comes into use
#' @noRd
boundaries_between <- function(results, both) {
  counts <- sort(unique(both$processes))
  lines <- filter(level_boundaries(results, "svd", "core", max(counts)), .data$processes >= min(counts))
  map(seq_len(nrow(lines)), function(i) {
    after <- counts[counts > lines$processes[i]][1]
    list(level = lines$level[i], before = max(counts[counts <= lines$processes[i]]), after = after)
  })
}

#' Sentences on the accuracy of the model of time to solution
#'
#' @inheritParams describe_scaling
#' @return Character vector.
#' @noRd
describe_scaling_model <- function(results) {
  errors <- compare_scaling_models(results)
  if (nrow(errors) == 0) {
    return(paste(
      "There is no model; it needs a run on one process, runs on more processes, and a ladder with latency and",
      "bandwidth of the levels between their ranks."
    ))
  }
  predicted <- filter(predict_scaling(results), .data$processes > 1) |>
    mutate(error = 100 * (.data$model_s / .data$seconds - 1))
  worst <- slice_max(predicted, abs(.data$error), n = 1, with_ties = FALSE)
  runs <- errors$held_out_cells[errors$model == "flops_ladder"]
  of <- function(model) stats::weighted.mean(errors$held_out_mape_pct[errors$model == model], runs)
  sweeps <- read_scaling(results)
  others <- sum(sweeps$processes > 1)
  c(
    paste0(
      "The model takes ", format_number(fit_flop_rate(sweeps)), " GFlop/s per core, the sweeps and the flops from the ",
      "runs on one process, and the costs of messages from the ladder", simulated_note(results$study),
      ". It predicts ", if (sum(runs) < others) paste0(sum(runs), " of "), "the other ", others, " runs ",
      if (sum(runs) < others) "(the rest lack a run on one process, or a level of the ladder) ",
      "with a mean error of ",
      format_pct(of("flops_ladder")), "; flops alone have an error of ", format_pct(of("flops_only")), "."
    ),
    paste0(
      "The largest error is on ", format_count(worst$processes), " processes at ", size_label(worst$n), ": ",
      format_pct(abs(worst$error)), if (worst$error < 0) " too fast." else " too slow."
    ),
    describe_work(sweeps, of("flops_counted"), results$study$simulated)
  )
}

#' Sentence on an effect that the model lacks: the order of the pairs, and thus the number of rotations and sweeps,
#' depends on the number of processes
#' @noRd
describe_work <- function(scaling, error, simulated) {
  work <- scaling |>
    group_by(.data$n) |>
    mutate(ratio = .data$flops / c(.data$flops[.data$processes == 1], NA)[1]) |>
    ungroup() |>
    filter(.data$processes > 1, !is.na(.data$ratio))
  if (nrow(work) == 0 || all(work$ratio == 1)) return(NULL)
  change <- 100 * (range(work$ratio) - 1)
  more <- ifelse(change < 0, "fewer", "more")
  # "3 % to 5 % more", but "3 % fewer to 5 % more".
  more[1] <- if (more[1] == more[2]) "" else paste0(" ", more[1])
  paste0(
    "The model does not include that the order in which columns are paired, and with it the number of rotations, ",
    "depends on the number of processes: on more than one process the runs counted ", format_pct(abs(change[1])),
    more[1],
    " to ", format_pct(abs(change[2])), " ", more[2], " flops than on one, in ", count_range(work$sweeps, "sweep"),
    ". With these counts, the mean error of the model is ", format_pct(error), ", due to messages and waiting",
    if (!simulated) " and to other shared resources of a real machine (memory, other jobs)", "."
  )
}
