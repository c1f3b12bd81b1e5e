# Traced applications and their replays: reading and summaries. Paths in study.json are relative to the results folder,
# which holds the study's folder, `traces/` and `replays/`.

point_to_point_calls <- c(
  "send", "ssend", "bsend", "rsend", "recv", "sendrecv", "isend", "issend", "ibsend", "irsend", "irecv", "probe",
  "wait", "test"
)
# Calls that transfer no data of the application.
silent_calls <- c("init", "finalize", "communicator")

operation_class <- function(operation) {
  case_when(
    operation == "compute" ~ "compute", operation %in% point_to_point_calls ~ "point to point", TRUE ~ operation
  )
}

has_applications <- function(results) length(results$study$applications) > 0

application_labels <- function(study) {
  setNames(map_chr(study$applications, "label"), map_chr(study$applications, "name"))
}

results_root <- function(study) dirname(normalizePath(study$folder))

call_columns <- readr::cols_only(
  rank = "i", operation = "c", start_us = "d", end_us = "d", cpu_us = "d", compute_us = "d", communicator = "i",
  root = "i", to = "i", from = "i", sent_bytes = "d", received_bytes = "d", datatypes = "c", reduction = "c", site = "i"
)
# Columns of texts that traces of earlier versions lack, and all that some lack.
text_columns <- c("datatypes", "reduction")
added_columns <- c(text_columns, "site")

#' Read the trace of an application
#'
#' @param folder Folder of a trace (`results/traces/...`) with `about.json` and `calls.csv.gz`.
#' @return A list: `about` (the content of `about.json`) and `calls` (tibble, one row per MPI call: rank, operation,
#'   start_us, end_us, cpu_us, compute_us, communicator, root, to, from, sent_bytes, received_bytes, size_bytes: the
#'   message size as benchmarks count it, per pair of ranks for all-to-all and per rank for gather, scatter,
#'   allgather; datatypes, reduction and site: see workflow/collstudy/launch/tracefile.py, NA in traces of earlier
#'   versions).
#'   NULL where there is no trace.
#' @noRd
read_trace <- function(folder) {
  path <- file.path(folder, "calls.csv.gz")
  if (!file.exists(path)) return(NULL)
  about <- jsonlite::read_json(file.path(folder, "about.json"))
  columns <- call_columns
  missing <- setdiff(added_columns, strsplit(readLines(path, 1), ",", fixed = TRUE)[[1]])
  columns$cols[missing] <- NULL
  # Warnings become errors, so that a truncated table does not pass for a shorter run.
  calls <- withCallingHandlers(
    readr::read_csv(path, col_types = columns, lazy = FALSE, progress = FALSE),
    warning = function(w) stop(path, ": ", conditionMessage(w), call. = FALSE)
  )
  if (nrow(calls) != about$trace$calls) {
    stop(
      path, ": ", nrow(calls), " calls, of ", about$trace$calls, " that were recorded: the table is truncated",
      call. = FALSE
    )
  }
  calls[missing] <- list(datatypes = NA_character_, reduction = NA_character_, site = NA_integer_)[missing]
  # To MPI_PROC_NULL nothing is sent.
  calls$sent_bytes[calls$operation %in% point_to_point_calls & calls$to < 0] <- 0
  members <- c(lengths(about$trace$communicators), 1)
  size <- members[ifelse(calls$communicator < 0, length(members), calls$communicator + 1)]
  calls$size_bytes <- message_size(calls, size)
  list(about = about, calls = calls)
}

message_size <- function(calls, ranks) {
  with(calls, case_when(
    operation %in% c("alltoall", "ialltoall", "alltoallv", "ialltoallv", "alltoallw") ~ sent_bytes / ranks,
    grepl("gather", operation) ~ sent_bytes,
    operation %in% c("scatter", "iscatter", "scatterv", "reduce_scatter_block") ~ received_bytes,
    operation %in% c("recv", "irecv", "probe") ~ received_bytes,
    TRUE ~ pmax(sent_bytes, received_bytes)
  ))
}

#' Operations of a trace: number, bytes and time
#'
#' @param trace List from [read_trace()].
#' @return Tibble, one row per operation: operation, collective (logical), calls (of all ranks), operations (each
#'   collective counted once for all ranks of its communicator: the most calls of any of them), sent_bytes (in the send
#'   buffers of all ranks), median_bytes and largest_bytes (of the message size), time_us (in the call, mean over
#'   ranks).
#' @noRd
summarise_operations <- function(trace) {
  ranks <- trace$about$trace$ranks
  trace$calls |>
    filter(!.data$operation %in% silent_calls) |>
    group_by(.data$operation) |>
    summarise(
      collective = !.data$operation[1] %in% point_to_point_calls, calls = n(),
      operations = if (.data$collective[1]) count_operations(.data$rank, .data$communicator) else n(),
      sent_bytes = sum(.data$sent_bytes), median_bytes = median(.data$size_bytes),
      largest_bytes = max(.data$size_bytes, 0),
      time_us = sum(.data$end_us - .data$start_us) / ranks
    ) |>
    arrange(desc(.data$collective), desc(.data$sent_bytes), desc(.data$calls))
}

#' Collective operations in calls: on each communicator, the most calls of any rank
#' @noRd
count_operations <- function(rank, communicator) {
  # Each rank has a MPI_COMM_SELF of its own, number -1.
  own <- ifelse(communicator < 0, -1 - rank, communicator)
  sum(tapply(rank, own, function(ranks) max(tabulate(ranks + 1))))
}

#' Message sizes of a trace by powers of two
#'
#' @inheritParams summarise_operations
#' @return Tibble: operation, size_bytes (lower end of the class: 0, 1, 2, 4, ...), calls.
#' @noRd
summarise_sizes <- function(trace) {
  trace$calls |>
    filter(!.data$operation %in% c(silent_calls, "wait", "test", "barrier", "ibarrier", "recv", "irecv", "probe")) |>
    mutate(size_bytes = class_start(.data$size_bytes)) |>
    count(.data$operation, .data$size_bytes, name = "calls")
}

#' Time of each rank in computation, collectives and point-to-point calls
#'
#' @inheritParams summarise_operations
#' @return Tibble: rank, kind (compute, collectives, point to point), wall_us (elapsed time; compute is all time between
#'   calls), cpu_us (processor time).
#' @noRd
summarise_time <- function(trace) {
  calls <- filter(trace$calls, .data$operation != "communicator")
  inside <- calls |>
    filter(!.data$operation %in% silent_calls) |>
    mutate(kind = if_else(.data$operation %in% point_to_point_calls, "point to point", "collectives")) |>
    group_by(.data$rank, .data$kind) |>
    summarise(wall_us = sum(.data$end_us - .data$start_us), cpu_us = sum(.data$cpu_us), .groups = "drop")
  spent <- summarise(group_by(inside, .data$rank), inside_us = sum(.data$wall_us))
  between <- trace$calls |>
    group_by(.data$rank) |>
    summarise(all_us = max(.data$end_us) - min(.data$start_us), cpu_us = sum(.data$compute_us)) |>
    left_join(spent, "rank") |>
    transmute(.data$rank, kind = "compute", wall_us = .data$all_us - coalesce(.data$inside_us, 0), .data$cpu_us)
  bind_rows(inside, between) |>
    mutate(kind = factor(.data$kind, c("compute", "collectives", "point to point"))) |>
    arrange(.data$rank, .data$kind)
}

#' Read a replay
#'
#' @param folder Folder of a replay (`results/replays/...`).
#' @return A list: `about` (the content of `about.json`: makespan_us, messages, interval_us, ...), `ports`, `links`
#'   (bytes, saturated_us and held_us of each link and interval in which bytes crossed it), `intervals`, `operations`,
#'   `pairs` (see workflow/native/fattree/traffic.cpp). NULL where there is no replay or it failed.
#' @noRd
read_replay <- function(folder) {
  if (!file.exists(file.path(folder, "links.csv.gz"))) return(NULL)
  read <- function(name, types) {
    readr::read_csv(file.path(folder, name), col_types = types, lazy = FALSE, progress = FALSE)
  }
  about <- jsonlite::read_json(file.path(folder, "about.json"))
  if (nzchar(about$failure)) return(NULL)
  list(
    about = about, ports = read("ports.csv", "iccid"), links = read("links.csv.gz", "iiddd"),
    intervals = read("intervals.csv", "idddddd"), operations = read("operations.csv", "icddd"),
    pairs = read("pairs.csv", "iidd")
  )
}

#' Summary of a replay
#'
#' @param replay List from [read_replay()].
#' @param width Length of the intervals of the peak load (us): that of the replay, or doublings of it.
#' @return Tibble with one row: makespan_us; communication_us (time in MPI, mean over ranks); network_bytes (sent by the
#'   hosts); peak_load_pct (load of the busiest link in its busiest interval, of its bandwidth); saturated_us (longest
#'   time in which several messages used the full bandwidth of one link); held_us (that time summed over all links,
#'   times the number of messages minus one); latency_us and unloaded_us (mean time of a message, and what it would be
#'   on an empty network).
#' @noRd
summarise_replay <- function(replay, width = replay$about$interval_us) {
  links <- left_join(replay$links, replay$ports, "link")
  loads <- links |>
    group_by(.data$link, .data$gb_s, interval = .data$interval %/% (width / replay$about$interval_us)) |>
    summarise(bytes = sum(.data$bytes), .groups = "drop")
  ranks <- sum(replay$ports$stage == 0)
  busy <- sum(replay$operations$rank_us[replay$operations$operation != "compute"])
  intervals <- filter(replay$intervals, .data$messages > 0)
  tibble(
    makespan_us = replay$about$makespan_us, communication_us = busy / ranks,
    network_bytes = sum(links$bytes[links$stage == 0]),
    peak_load_pct = 100 * max(loads$bytes / (loads$gb_s * 1e3 * width), 0),
    saturated_us = max(tapply(links$saturated_us, links$link, sum), 0), held_us = sum(links$held_us),
    latency_us = stats::weighted.mean(intervals$latency_us, intervals$messages),
    unloaded_us = stats::weighted.mean(intervals$unloaded_us, intervals$messages)
  )
}

#' Bytes, messages and time of each class of operation in a replay
#'
#' @inheritParams summarise_replay
#' @return Tibble with a row per operation class, most bytes first: operation, bytes, messages, time_us (mean over
#'   ranks).
#' @noRd
summarise_traffic <- function(replay) {
  ranks <- sum(replay$ports$stage == 0)
  replay$operations |>
    mutate(operation = operation_class(.data$operation)) |>
    group_by(.data$operation) |>
    summarise(bytes = sum(.data$bytes), messages = sum(.data$messages), time_us = sum(.data$rank_us) / ranks) |>
    arrange(desc(.data$bytes))
}

dominating_collective <- function(replay) {
  rows <- filter(summarise_traffic(replay), !.data$operation %in% c("compute", "point to point"), .data$bytes > 0)
  if (nrow(rows) == 0) NA_character_ else rows$operation[1]
}

#' Read the traces and replays of a study's applications
#'
#' @param study List from [read_study()].
#' @param applications The applications of study.json, or its program in a list.
#' @return A list by application: name, label, description, ranks, `trace` ([read_trace()]) and `replays`, a list of
#'   the replays of study.json with `replay` ([read_replay()]) and `timed` ([read_timed_replay()]) added; NULL for those
#'   that do not exist. `further` has the replays of each further trace, likewise.
#' @noRd
read_applications <- function(study, applications = study$applications) {
  root <- results_root(study)
  replays <- function(entries, trace = NULL) {
    lapply(entries, function(entry) {
      folder <- file.path(root, entry$folder)
      timed <- read_timed_replay(folder, study$replay$nodes, trace)
      c(entry, list(replay = read_replay(folder), timed = timed))
    })
  }
  read <- lapply(applications, function(application) {
    application$trace <- read_trace(file.path(root, application$trace))
    application$replays <- replays(application$replays, application$trace)
    application$further <- lapply(application$further, function(one) list(replays = replays(one$replays)))
    application
  })
  setNames(read, map_chr(read, "name"))
}

default_replay <- function(application) {
  found <- Filter(function(entry) entry$label == "default" && !is.null(entry$replay), application$replays)
  if (length(found)) found[[1]] else NULL
}

#' The study's first machine, on which alternatives are replayed
#' @noRd
first_machine <- function(results) {
  unlist(map(unname(results$applications), function(application) map(application$replays, "machine")))[1]
}

#' The label of the machine of a replay, for sentences that already say that it is simulated
#' @noRd
replay_machine <- function(results, machine) {
  entries <- unlist(map(unname(results$applications), "replays"), recursive = FALSE)
  label <- unlist(map(entries, function(entry) if (identical(entry$machine, machine)) entry$machine_label))[1]
  within_text(plain_machine(if (length(label) == 0 || is.na(label)) machine else label))
}

#' Results of each replay of a study, and their change against the default replay
#'
#' @inheritParams read_applications
#' @return Tibble: application, machine, replay (its label), mapping, the columns of [summarise_replay()], and
#'   makespan_change_pct, communication_change_pct, peak_change_pct and held_change_pct against the default on the
#'   study's first machine (NA for a value of 0, and where the default has no replay there).
#' @noRd
summarise_replays <- function(results) {
  rows <- map_dfr(results$applications, function(application) {
    # Loads are comparable over intervals of one length; those of a longer replay may be twice as long.
    widths <- map_dbl(application$replays, function(entry) entry$replay$about$interval_us %||% 0)
    map_dfr(application$replays, function(entry) {
      if (is.null(entry$replay)) return(NULL)
      bind_cols(
        tibble(
          application = application$name, machine = entry$machine, replay = entry$label, mapping = entry$mapping
        ),
        summarise_replay(entry$replay, max(widths))
      )
    })
  })
  if (nrow(rows) == 0) return(rows)
  change <- function(values, is_base) {
    base <- values[is_base][1]
    if (is.na(base) || base == 0) NA_real_ else 100 * (values / base - 1)
  }
  first <- first_machine(results)
  rows |>
    group_by(.data$application) |>
    mutate(
      is_base = .data$replay == "default" & .data$machine == .env$first,
      makespan_change_pct = change(.data$makespan_us, .data$is_base),
      communication_change_pct = change(.data$communication_us, .data$is_base),
      peak_change_pct = change(.data$peak_load_pct, .data$is_base),
      held_change_pct = change(.data$held_us, .data$is_base)
    ) |>
    ungroup() |>
    select(!"is_base")
}

#' Summary of each trace
#'
#' @inheritParams read_applications
#' @return Tibble: application, ranks, calls, seconds (from MPI_Init to MPI_Finalize), mpi_wall_pct, mpi_cpu_pct
#'   (share of the ranks' time, and of their processor time, in MPI), collective_operations, sent_bytes, complete.
#' @noRd
summarise_traces <- function(results) {
  map_dfr(results$applications, function(application) {
    trace <- application$trace
    if (is.null(trace)) return(NULL)
    time <- summarise_time(trace)
    operations <- summarise_operations(trace)
    inside <- time$kind != "compute"
    tibble(
      application = application$label, ranks = trace$about$trace$ranks, calls = trace$about$trace$calls,
      seconds = trace$about$trace$seconds, mpi_wall_pct = 100 * sum(time$wall_us[inside]) / sum(time$wall_us),
      mpi_cpu_pct = 100 * sum(time$cpu_us[inside]) / sum(time$cpu_us),
      collective_operations = sum(operations$operations[operations$collective]),
      sent_bytes = sum(operations$sent_bytes),
      complete = isTRUE(trace$about$trace$complete)
    )
  })
}
