# Applications: tables and sentences.

tables_of_applications <- function(results) {
  applications <- results$applications
  labels <- application_labels(results$study)
  operations <- map_dfr(applications, function(application) {
    if (is.null(application$trace)) return(NULL)
    bind_cols(application = application$label, select(summarise_operations(application$trace), !"collective"))
  })
  replays <- summarise_replays(results)
  if (nrow(replays) > 0) replays <- mutate(replays, application = unname(labels[.data$application]))
  tables <- list(
    listed("applications", "traces", summarise_traces(results), paste(
      "The traced applications: calls of all ranks, time from MPI_Init to MPI_Finalize, share of the ranks' elapsed",
      "and processor time spent in MPI calls, collective operations (counted once for all participating ranks), bytes",
      "in send buffers.", oversubscribed_note(results$study)
    )),
    listed("applications", "operations", operations, paste(
      "MPI operations of the applications: calls of all ranks, operations (a collective counts once for its ranks),",
      "bytes in the send buffers of all ranks, median and largest message (per pair of ranks for all-to-all, per rank",
      "for gather, scatter and allgather), time in the call (mean over ranks).", oversubscribed_note(results$study)
    ))
  )
  tables <- c(tables, tables_of_accounts(results), tables_of_gain(results))
  if (nrow(replays) == 0) return(tables)
  machines <- filter(replays, .data$replay == "default")
  first <- first_machine(results)
  alternatives <- filter(replays, .data$machine == .env$first) |>
    select(
      "application", "replay", "mapping", "makespan_us", "makespan_change_pct", "communication_us",
      "communication_change_pct", "peak_load_pct", "peak_change_pct", "held_us", "held_change_pct"
    )
  c(tables, list(
    listed("replays", "machines", select(machines, !c("replay", "mapping", ends_with("change_pct"))), paste0(
      "Replays on different networks (simulated). ", replay_columns()
    )),
    listed("replays", "alternatives", alternatives, paste0(
      "Effect of another algorithm or mapping, on ", replay_machine(results, first), " (simulated). ",
      replay_columns()
    ))
  ))
}

replay_columns <- function() {
  paste(
    "Communication: time in MPI calls, mean over ranks. Peak load: load of the busiest link in its busiest interval,",
    "in percent of its bandwidth; all replays of an application have intervals of one length. Saturated: the longest",
    "time in which several messages used the full bandwidth of one link. Held: that time summed over all links, times",
    "the number of messages minus one (those that would queue)."
  )
}

oversubscribed_note <- function(study) {
  if (!isTRUE(study$provenance$oversubscribed)) return("")
  "The ranks shared cores during tracing, so elapsed time includes waiting for a core."
}

# Sentences ----------------------------------------------------------------------------------------------------------

#' Sentences on the MPI calls of the applications
#'
#' @param results List from [read_results()].
#' @return Character vector, a sentence for each application.
#' @noRd
describe_applications <- function(results) {
  map_chr(unname(results$applications), function(application) {
    if (is.null(application$trace)) return(paste0(application$label, " could not be traced."))
    operations <- summarise_operations(application$trace)
    collective <- filter(operations, .data$collective)
    partial <- if (isTRUE(application$trace$about$trace$complete)) "" else " (partial trace: a rank died)"
    if (nrow(collective) == 0) return(paste0(application$label, partial, " calls no collective."))
    often <- slice_max(collective, .data$operations, n = 1, with_ties = FALSE)
    sent <- sum(collective$sent_bytes)
    share <- 100 * sent / max(sum(operations$sent_bytes), 1)
    paste0(
      application$label, partial, " on ", format_count(application$ranks), " ranks calls ",
      count_of(nrow(collective), "kind of collective", "kinds of collectives"), ", most often ",
      often$operation, " (", format_pct(100 * often$operations / sum(collective$operations)), " of ",
      format_number(sum(collective$operations), 4), " operations); ",
      if (sum(operations$sent_bytes) == 0) "no data are sent" else paste(
        if (share > 0 && share < 0.05) "less than 0.1 %" else format_pct(share), "of its bytes are sent by collectives"
      ),
      if (sent > 0) {
        paste0(
          if (max(collective$sent_bytes) > sent / 2) ", most of them by " else ", the largest part by ",
          collective$operation[which.max(collective$sent_bytes)]
        )
      }, "."
    )
  })
}

#' Sentences on how evenly the traffic is distributed over pairs of ranks
#'
#' @inheritParams describe_applications
#' @return Character vector: for each application the share of pairs that collectives use, and the bytes of the busiest
#'   sender relative to the average rank.
#' @noRd
describe_pairs <- function(results) {
  unlist(map(unname(results$applications), function(application) {
    entry <- default_replay(application)
    if (is.null(entry) || sum(entry$replay$pairs$collective_bytes) == 0) return(NULL)
    pairs <- entry$replay$pairs
    by_sender <- tapply(pairs$collective_bytes, pairs$from, sum)
    ranks <- sum(entry$replay$ports$stage == 0)
    used <- sum(pairs$collective_bytes > 0) / (ranks * (ranks - 1))
    most <- max(by_sender) / (sum(by_sender) / ranks)
    paste0(
      application$label, " (simulated): collectives use ", format_pct(100 * used), " of the pairs of ranks; ",
      if (most < 1.05) "all ranks send about the same number of bytes." else paste0(
        "rank ", names(by_sender)[which.max(by_sender)], " sends most, ", format_number(most),
        " times as much as the average rank."
      )
    )
  }))
}

#' Sentences on the load of the network in the replays
#'
#' @inheritParams describe_applications
#' @return Character vector.
#' @noRd
describe_congestion <- function(results) {
  unlist(map(unname(results$applications), function(application) {
    entry <- default_replay(application)
    if (is.null(entry)) return(NULL)
    one <- summarise_replay(entry$replay)
    intervals <- filter(entry$replay$intervals, .data$messages > 0)
    if (nrow(intervals) == 0) return(paste0(application$label, " (simulated): the replay sends no messages."))
    worst <- slice_max(intervals, .data$latency_us / .data$unloaded_us, n = 1, with_ties = FALSE)
    # The messages that arrive in an interval began earlier, by their latency.
    began <- worst$interval - round(worst$latency_us / entry$replay$about$interval_us)
    cause <- entry$replay$operations |>
      filter(.data$interval >= began, .data$interval <= worst$interval) |>
      count(operation = operation_class(.data$operation), wt = .data$bytes, name = "bytes") |>
      filter(.data$bytes > 0) |>
      slice_max(.data$bytes, n = 1, with_ties = FALSE)
    paste0(
      application$label, " (simulated",
      if (!entry$machine %in% first_machine(results)) paste0(", on ", replay_machine(results, entry$machine)),
      "): over the ", format_us(one$makespan_us), " of the replay, a message takes ",
      format_us(one$latency_us), " on average, and ", format_us(one$unloaded_us),
      " on an empty network; in the worst interval, at ", format_us(worst$start_us), ", it takes ",
      format_number(worst$latency_us / worst$unloaded_us), " times as long as on an empty network",
      if (nrow(cause)) paste0(" (most bytes belong to ", cause$operation, ")"),
      ". The busiest link uses ", format_pct(one$peak_load_pct), " of its bandwidth in its busiest interval of ",
      format_us(entry$replay$about$interval_us), "."
    )
  }))
}

#' Sentences on the gain from another algorithm or mapping
#'
#' @inheritParams describe_applications
#' @return Character vector: for each application the collective with most bytes and the best alternative.
#' @noRd
describe_alternatives <- function(results) {
  replays <- summarise_replays(results)
  if (nrow(replays) == 0) return(character())
  unlist(map(unname(results$applications), function(application) {
    entry <- default_replay(application)
    rows <- filter(replays, .data$application == .env$application$name, .data$machine == first_machine(results))
    tried <- filter(rows, .data$replay != "default", !is.na(.data$makespan_change_pct))
    if (is.null(entry) || nrow(tried) == 0) return(NULL)
    best <- slice_min(tried, .data$makespan_us, n = 1, with_ties = FALSE)
    dominating <- dominating_collective(entry$replay)
    paste0(
      application$label, " (simulated): ", if (is.na(dominating)) "no collective sends data" else paste0(
        "the collective with most bytes is ", dominating
      ), ". Among the alternatives, ", best$replay, if (best$makespan_change_pct < 0) " gains most" else " costs least",
      ": the makespan changes by ", signed_pct(best$makespan_change_pct), ", time in MPI by ",
      signed_pct(best$communication_change_pct), ", the peak load by ", signed_pct(best$peak_change_pct), "."
    )
  }))
}

signed_pct <- function(x) {
  if (is.na(x)) return("nothing that can be compared")
  paste0(if (x >= 0) "+" else "\u2212", format_pct(abs(x)))
}
