# Gain of applications from decisions for the cells that they use: replays on a simulated machine with and without the
# decisions, compared with the gain that the measurements of the cells predict.

#' Read a replay on a machine other than a fat tree
#'
#' @param folder Folder of a replay (`results/replays/...`).
#' @param node_of The node of each rank; NULL if it is not needed.
#' @param trace List from [read_trace()] for the call sites of the operations; NULL without them.
#' @return A list: makespan_us; `operations` ([collective_operations()], with the columns of [placed_communicators()]);
#'   `ranks` (tibble: rank, compute_us, point_to_point_us, collectives_us, end_us). NULL where there is no replay or it
#'   failed.
#' @noRd
read_timed_replay <- function(folder, node_of = NULL, trace = NULL) {
  path <- file.path(folder, "calls.csv.gz")
  if (!file.exists(path)) return(NULL)
  about <- jsonlite::read_json(file.path(folder, "about.json"))
  if (nzchar(about$failure)) return(NULL)
  calls <- readr::read_csv(path, col_types = "icddiidd", lazy = FALSE, progress = FALSE)
  if (nrow(calls) != about$calls) stop(path, ": ", nrow(calls), " calls, not ", about$calls, call. = FALSE)
  calls$size_bytes <- message_size(calls, calls$ranks)
  calls$site <- replayed_sites(calls$rank, trace)
  several <- filter(calls, .data$communicator >= 0, .data$ranks > 1)
  members <- with(distinct(several, .data$communicator, .data$rank), split(rank, communicator))
  placed <- placed_communicators(members, unlist(node_of), as.numeric(names(members)))
  list(
    makespan_us = about$makespan_us, operations = left_join(collective_operations(several), placed, "communicator"),
    ranks = readr::read_csv(file.path(folder, "ranks.csv"), col_types = "idddd", lazy = FALSE, progress = FALSE)
  )
}

#' Call sites of the collectives of a replay, in which each rank makes those of one traced rank in its order
#'
#' @param rank Of each call of the replay, in the order of calls.
#' @param trace List from [read_trace()], or NULL.
#' @return Integer, as in [read_trace()]; NA without a trace, and where a rank has another number of calls.
#' @noRd
replayed_sites <- function(rank, trace) {
  sites <- rep(NA_integer_, length(rank))
  if (is.null(trace)) return(sites)
  made <- filter(trace$calls, !.data$operation %in% c(point_to_point_calls, silent_calls))
  made <- split(made$site, factor(made$rank, seq_len(trace$about$trace$ranks) - 1))
  at <- split(seq_along(rank), rank)
  for (name in names(at)) {
    traced <- made[[as.numeric(name) %% length(made) + 1]]
    if (length(traced) == length(at[[name]])) sites[at[[name]]] <- traced
  }
  sites
}

timed_replay <- function(application, label) {
  found <- Filter(function(entry) entry$label == label && !is.null(entry$timed), application$replays)
  if (length(found)) found[[1]] else NULL
}

has_timed_replays <- function(results) {
  any(map_lgl(results$applications, function(application) !is.null(timed_replay(application, "default"))))
}

#' Read the rules of the replay with decisions (`replay$rules` of study.json), with the measured latencies
#'
#' @param study List from [read_study()].
#' @return Tibble, ordered by from_bytes: operation, nodes and per_node (ranks per node, rounded up) of the
#'   communicators, from_bytes, measured (a tibble of all sizes of the cells that decided: size_bytes (0 for a
#'   barrier), slowest_us and fastest_us, the latency of the slowest and of the fastest rank with the rule's algorithm,
#'   default_us, that of the slowest rank with the default). No rows until the study of the cells has made decisions.
#' @noRd
read_decided <- function(study) {
  rules <- bind_rows(study$replay$rules)
  if (nrow(rules) == 0) {
    return(tibble(
      operation = character(), nodes = numeric(), per_node = numeric(), from_bytes = numeric(), measured = list()
    ))
  }
  folder <- file.path(results_root(study), study$replay$decisions)
  mapped <- function(rows) {
    rename(filter(rows, .data$mapping == .env$study$replay$mapping), operation = "collective", ranks = "processes")
  }
  types <- do.call(readr::cols_only, c(grid_columns[c("collective", "mapping", "nodes", "processes")], allocated = "d"))
  shapes <- mapped(readr::read_csv(file.path(folder, "tuning", "decisions.csv"), col_types = types, progress = FALSE))
  cells <- c("operation", "ranks", "allocated", "size_bytes")
  latencies <- mapped(read_rows(file.path(folder, "measurements.csv"))) |>
    rename(allocated = "nodes") |>
    mutate(size_bytes = coalesce(.data$size_bytes, 0), parameters = coalesce(.data$parameters, "")) |>
    group_by(across(all_of(c(cells, "algorithm", "parameters")))) |>
    summarise(
      slowest_us = median(coalesce(.data$max_latency_us, .data$latency_us)),
      fastest_us = median(coalesce(.data$min_latency_us, .data$latency_us)), .groups = "drop"
    )
  default <- select(filter(latencies, .data$algorithm == "default"), all_of(cells), default_us = "slowest_us")
  measured <- inner_join(latencies, default, cells) |>
    tidyr::nest(measured = c("size_bytes", "slowest_us", "fastest_us", "default_us"))
  shapes <- distinct(shapes, .data$operation, .data$ranks, .data$nodes, .data$allocated)
  left_join(rules, shapes, c("operation", "ranks", "nodes")) |>
    left_join(measured, c("operation", "ranks", "allocated", "algorithm", "parameters")) |>
    select("operation", "nodes", "per_node", "from_bytes", "measured") |>
    arrange(.data$from_bytes)
}

# As ROOTED in collstudy/study/names.py; cells of these have ranks that arrive together (collstudy/sources/account.py).
rooted <- c("bcast", "reduce", "gather", "scatter")

#' Add the time of each operation (`took_us`) and the time that is predicted with the decisions (`predicted_us`)
#'
#' An operation saves the same share of its time as the cell would at its size. A rooted one saves the same time,
#' because its data move before the last rank arrives; but it takes at least as long as the cell's fastest rank, whose
#' data are waiting. Operations without a rule save nothing.
#' @noRd
predict_operations <- function(operations, decided) {
  keys <- c("operation", "nodes", "per_node")
  asked <- operations |>
    mutate(per_node = ceiling(.data$ranks / .data$nodes)) |>
    select(all_of(keys), "size_bytes")
  cases <- distinct(asked)
  cases <- bind_cols(cases, map_dfr(seq_len(nrow(cases)), function(i) {
    case <- cases[i, ]
    rules <- decided[
      decided$operation == case$operation & decided$nodes == case$nodes & decided$per_node == case$per_node,
    ]
    at <- findInterval(cases$size_bytes[i], rules$from_bytes)
    measured_at(if (at > 0) rules$measured[[at]], case$size_bytes)
  }))
  cell <- left_join(asked, cases, c(keys, "size_bytes"))
  took_us <- operations$end_us - operations$start_us
  predicted_us <- ifelse(
    operations$operation %in% rooted,
    pmax(took_us - (cell$default_us - cell$slowest_us), pmin(took_us, cell$fastest_us)),
    took_us * cell$slowest_us / cell$default_us
  )
  mutate(operations, took_us = .env$took_us, predicted_us = coalesce(.env$predicted_us, .env$took_us))
}

#' Interpolate the latencies of a rule (`measured` in [read_decided()]) at a message size, on a straight line of the
#' logarithms between neighbouring sizes; outside of them, those of the nearest size; NA without measurements
#' @noRd
measured_at <- function(measured, size_bytes) {
  position <- function(size) log2(pmax(size, 1))
  map(c(slowest_us = "slowest_us", fastest_us = "fastest_us", default_us = "default_us"), function(column) {
    us <- measured[[column]]
    if (length(us) < 2) return(us %||% NA_real_)
    exp(approx(position(measured$size_bytes), log(us), position(size_bytes), rule = 2)$y)
  })
}

#' The cells of an application's replays: time without decisions, predicted time, and time with decisions
#'
#' @param study List from [read_study()].
#' @param application An element of [read_applications()], or of its `further`.
#' @param decided Tibble from [read_decided()].
#' @return Tibble, a row per number of ranks, operation and class of message sizes: the columns of [account_rows()] but
#'   node_of_rank, default_us (sum of the transfers of all operations without decisions), predicted_us and decided_us
#'   (the same with decisions: predicted from the measurements of the cells, and in the replay; NA without decisions).
#' @noRd
gain_cells <- function(application, decided) {
  default <- timed_replay(application, "default")$timed
  after <- timed_replay(application, "decided")$timed
  classed <- function(operations) mutate(operations, size_bytes = class_start(.data$size_bytes))
  keys <- c("ranks", "operation", "size_bytes")
  rows <- select(account_rows(default$operations, nrow(default$ranks), default$makespan_us), !"node_of_rank")
  sums <- classed(predict_operations(default$operations, decided)) |>
    group_by(across(all_of(keys))) |>
    summarise(
      default_us = sum(.data$took_us), predicted_us = if (is.null(after)) NA_real_ else sum(.data$predicted_us),
      .groups = "drop"
    )
  saved <- if (is.null(after)) {
    tibble(ranks = integer(), operation = character(), size_bytes = numeric(), decided_us = numeric())
  } else {
    classed(after$operations) |>
      group_by(across(all_of(keys))) |>
      summarise(decided_us = sum(.data$end_us - .data$start_us), .groups = "drop")
  }
  rows |>
    left_join(sums, keys) |>
    left_join(saved, keys)
}

#' Gain of each application from the decisions
#'
#' @param results List from [read_results()].
#' @return Tibble, one row per application with a replay without and one with the decisions: application, machine,
#'   ranks, traces (number of traces with both replays), and medians over the traces: collectives_us (time in
#'   collectives, mean over the ranks, without the decisions), waiting_pct (its part before the last rank arrives),
#'   default_us and decided_us (transfer, from the last arrival to the last return, without and with the decisions),
#'   replayed_pct (saved share of the transfer in the replay) with its range replayed_low_pct and replayed_high_pct,
#'   predicted_pct (the same predicted from the cells), in_mpi_pct and makespan_pct (saved share of the total time in
#'   MPI calls, and of the makespan); off_pct (prediction over replay, minus 1; NA if both are below 1 %).
#' @noRd
summarise_gain <- function(results) remember(results, "gain", function() find_gain(results))

find_gain <- function(results) {
  if (!has_timed_replays(results)) return(tibble())
  decided <- read_decided(results$study)
  map_dfr(results$applications, function(application) {
    each <- map_dfr(c(list(application), application$further), gain_of_trace, decided)
    if (nrow(each) == 0) return(NULL)
    range <- range(each$replayed_pct)
    bind_cols(
      tibble(application = application$label, each[1, c("machine", "ranks")], traces = nrow(each)),
      summarise(each, across(-c("machine", "ranks"), median))
    ) |>
      mutate(
        replayed_low_pct = range[1], replayed_high_pct = range[2], .after = "replayed_pct"
      ) |>
      mutate(
        off_pct = if (max(abs(.data$replayed_pct), abs(.data$predicted_pct)) >= 1) {
          100 * (.data$predicted_pct / .data$replayed_pct - 1)
        } else {
          NA_real_
        },
        .after = "predicted_pct"
      )
  })
}

#' The gain in the replays of one trace (`traced$replays`), without range and off_pct; NULL if one of the two is missing
#' @noRd
gain_of_trace <- function(traced, decided) {
  before <- timed_replay(traced, "default")
  after <- timed_replay(traced, "decided")
  if (is.null(before) || is.null(after)) return(NULL)
  cells <- gain_cells(traced, decided)
  in_mpi <- function(replay) mean(replay$ranks$point_to_point_us + replay$ranks$collectives_us)
  default <- sum(cells$default_us)
  tibble(
    machine = before$machine, ranks = nrow(before$timed$ranks),
    collectives_us = mean(before$timed$ranks$collectives_us),
    waiting_pct = 100 * sum(cells$waiting_pct) / sum(cells$time_pct), default_us = default,
    decided_us = sum(cells$decided_us), replayed_pct = 100 * (1 - .data$decided_us / default),
    predicted_pct = 100 * (1 - sum(cells$predicted_us) / default),
    in_mpi_pct = 100 * (1 - in_mpi(after$timed) / in_mpi(before$timed)),
    makespan_pct = 100 * (1 - after$timed$makespan_us / before$timed$makespan_us)
  )
}

gain_columns <- paste(
  "Simulated. Transfer: from the arrival of the last rank at a blocking collective to the return of the last one;",
  "no algorithm can save the time spent waiting for the last rank. Replayed: share of the transfer that the decisions",
  "save in the replay. Predicted: the same, if each operation saves the share that the slowest rank saves in its cell,",
  "and a rooted one, whose data move before the last rank arrives, as much time as the cell, down to the time of the",
  "cell's fastest rank."
)

several_traces <- function(gain) nrow(gain) > 0 && any(gain$traces > 1)

tables_of_gain <- function(results) {
  if (!has_timed_replays(results)) return(list())
  decided <- read_decided(results$study)
  cells <- map_dfr(results$applications, function(application) {
    before <- timed_replay(application, "default")
    if (is.null(before)) return(NULL)
    bind_cols(application = application$label, machine = before$machine, gain_cells(application, decided))
  })
  gain <- summarise_gain(results)
  c(
    if (nrow(gain) > 0) list(listed("gain", "applications", gain, paste(
      "Gain of the applications from the decisions for the cells that they use.", gain_columns, "Times without",
      "(default) and with the decisions (decided) are transfers, summed over all operations; in collectives: mean over",
      "the ranks, without the decisions. Waiting: share of the time in collectives before the last rank arrives. In",
      "MPI and makespan: share of the total time in MPI calls and of the makespan that the decisions save. Off:",
      "predicted over replayed gain, minus 1 (none where both are below 1 %).",
      if (several_traces(gain)) "Values are medians over the traces of an application; low and high are their range."
    ))),
    list(listed("gain", "cells", cells, paste(
      "Collectives of the replays", if (several_traces(gain)) "of the first traces", "by communicator size and message",
      "size. Shares are in percent of the makespan; spread (how much the times of the ranks from their previous",
      "collective to this one differ) and transfer are medians over the operations, the other times are sums.",
      gain_columns
    )))
  )
}

figures_of_gain <- function(results) {
  gain <- summarise_gain(results)
  if (nrow(gain) == 0) return(list())
  list(simulated_figure("gain", "replayed", plot_gain(gain), paste0(
    "Share of the applications' time in collectives that the decisions for their cells save, on ",
    format_count(gain$ranks[1]), " ranks of ", replay_machine(results, gain$machine[1]), ". ", gain_columns,
    if (several_traces(gain)) " Bars: medians over the traces of an application; line: range of the replays."
  ), height = 2 + 0.6 * nrow(gain)))
}

plot_gain <- function(gain) {
  rows <- gain |>
    mutate(application = factor(.data$application, rev(unique(.data$application)))) |>
    pivot_longer(c("predicted_pct", "replayed_pct"), names_to = "kind", values_to = "pct") |>
    mutate(
      ranged = .data$kind == "replayed_pct" & .data$traces > 1,
      low = ifelse(.data$ranged, .data$replayed_low_pct, NA_real_),
      high = ifelse(.data$ranged, .data$replayed_high_pct, NA_real_),
      kind = factor(.data$kind, c("replayed_pct", "predicted_pct"), c("replayed", "predicted from the cells"))
    )
  ggplot(rows, aes(.data$pct, .data$application, fill = .data$kind)) +
    geom_vline(xintercept = 0, colour = "grey60", linewidth = 0.4) +
    geom_col(width = 0.7, position = position_dodge(width = 0.7)) +
    geom_linerange(
      aes(xmin = .data$low, xmax = .data$high), position = position_dodge(width = 0.7), na.rm = TRUE, linewidth = 0.5
    ) +
    scale_fill_manual(values = c(replayed = "#0072B2", "predicted from the cells" = "#999999")) +
    scale_x_continuous("Saved time in collectives, without waiting (%)", expand = expansion(c(0.05, 0.05))) +
    scale_y_discrete(NULL) +
    labs(title = "Time in collectives that the decisions save") + simulated_tag() + theme_study()
}

#' Sentences on the gain from the decisions
#'
#' @param results List from [read_results()].
#' @return Character vector: a sentence for each application, that which saves most time first, and one on the
#'   predictions.
#' @noRd
describe_gain <- function(results) {
  gain <- summarise_gain(results)
  if (nrow(gain) == 0) {
    if (!has_timed_replays(results)) return(character())
    return(paste0(
      "The replays on ", replay_machine(results, results$study$replay$machines[[1]]),
      " use the library's default, because there are no decisions yet for the cells of the applications."
    ))
  }
  # The first sentence is also the study's answer on the front page.
  gain <- arrange(gain, desc(.data$default_us - .data$decided_us))
  each <- map_chr(seq_len(nrow(gain)), function(i) {
    row <- gain[i, ]
    paste0(
      row$application, " on ", format_count(row$ranks), " ranks of ", replay_machine(results, row$machine),
      " (simulated) spends ",
      format_us(row$default_us),
      " in collectives, excluding waiting for late ranks; with the decisions it spends ", changed_by(row$replayed_pct),
      " (",
      if (row$traces > 1) paste0(
        "median of ", row$traces, " traces, ", changed_between(row$replayed_low_pct, row$replayed_high_pct), "; "
      ),
      "predicted from the cells: ", changed_by(row$predicted_pct), "). Total time in MPI is ",
      changed_by(row$in_mpi_pct), ", the makespan ", changed_by(row$makespan_pct), "."
    )
  })
  judged <- filter(gain, !is.na(.data$off_pct))
  agree <- judged$application[abs(judged$off_pct) <= 100 / 3]
  inside <- filter(
    judged, !.data$application %in% agree, .data$traces > 1,
    .data$predicted_pct >= .data$replayed_low_pct, .data$predicted_pct <= .data$replayed_high_pct
  )$application
  compared <- paste0("Prediction and replay ", if (several_traces(gain)) "(medians over the traces) ")
  c(each, if (nrow(judged) == 1) paste0(
    compared, if (length(agree) == 1) "agree" else "do not agree", " within a third."
  ), if (nrow(judged) > 1) paste0(
    compared, "agree within a third for ", length(agree), " of the ", nrow(judged),
    " applications whose time in collectives changes by 1 % or more in one of the two."
  ), if (length(inside) > 0) paste0(
    "The prediction for ", and_list(inside), " is within the range of the replays."
  ))
}

changed_by <- function(saved_pct) {
  if (abs(saved_pct) < 0.05) return("the same")
  paste(format_pct(abs(saved_pct)), if (saved_pct > 0) "less" else "more")
}

changed_between <- function(low_pct, high_pct) {
  if (changed_by(low_pct) == changed_by(high_pct)) return(paste(changed_by(low_pct), "in each"))
  if (low_pct * high_pct <= 0) return(paste(changed_by(low_pct), "to", changed_by(high_pct)))
  sizes <- range(abs(c(low_pct, high_pct)))
  paste(sub(" %", "", format_pct(sizes[1]), fixed = TRUE), "to", changed_by(sign(low_pct) * sizes[2]))
}
