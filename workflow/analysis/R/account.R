# Upper bound on the run time that faster collectives could save in a traced application. The time in a collective is
# split into the wait for the last rank to arrive, which no algorithm changes, and the time after that.

#' Share of the run time (%) below which collectives are not worth tuning
#' @noRd
little_pct <- 1

#' Collective operations of a trace
#'
#' The n-th collective of each rank on a communicator is one operation. Its transfer begins when the last rank arrives
#' and ends when the last rank returns; the time that a rank spends in the call before that is waiting.
#'
#' @param trace List from [read_trace()].
#' @return Tibble, one row per blocking operation on a communicator of several ranks: ranks, communicator and the
#'   columns of [placed_communicators()], operation, size_bytes (largest of its ranks), start_us (the last arrival),
#'   end_us (the last return), time_us and waiting_us (sums over its ranks), spread_us (how much the times differ that
#'   its ranks take to arrive from their previous collective; the spread of the arrivals themselves also has that of the
#'   returns, which depends on the algorithm), site (where the lowest rank calls it, see [read_trace()]), datatypes and
#'   reduction (those of all ranks, separated by `;`).
#' @noRd
read_operations <- function(trace) {
  about <- trace$about$trace
  members <- lengths(about$communicators)
  trace$calls |>
    filter(
      !.data$operation %in% c(point_to_point_calls, silent_calls), .data$communicator >= 0
    ) |>
    # MPI_COMM_SELF, number -1, has no members here.
    filter(members[.data$communicator + 1] > 1) |>
    mutate(ranks = members[.data$communicator + 1]) |>
    collective_operations() |>
    left_join(placed_communicators(about$communicators, unlist(about$nodes)), "communicator")
}

#' Where the ranks of communicators are
#'
#' @param members Ranks of the program, from 0, in each communicator.
#' @param node_of Number of the node of each rank of the program; NULL if unknown.
#' @param communicator Numbers of the communicators.
#' @return Tibble, a row per communicator: communicator, nodes (their number), shape (nodes x ranks on each of them),
#'   and node_of_rank (of each rank the number of its node, in the order in which the communicator has them, as
#'   repetitions: `0*24 1*24`). NA where the nodes are unknown.
#' @noRd
placed_communicators <- function(members, node_of, communicator = seq_along(members) - 1) {
  if (is.null(node_of)) {
    return(tibble(communicator, nodes = NA_integer_, shape = NA_character_, node_of_rank = NA_character_))
  }
  at <- map(members, function(ranks) {
    at <- node_of[as.numeric(unlist(ranks)) + 1]
    match(at, unique(at)) - 1L
  })
  nodes <- lengths(map(at, unique))
  on_each <- map_chr(at, function(at) paste(unique(range(tabulate(at + 1))), collapse = "-"))
  repeated <- map_chr(map(at, rle), function(runs) paste0(runs$values, "*", runs$lengths, collapse = " "))
  tibble(communicator, nodes, shape = sprintf("%d x %s", nodes, on_each), node_of_rank = repeated)
}

#' Collective operations from calls
#'
#' @param calls Tibble, one row per collective call of each rank on communicators of several ranks: rank, operation,
#'   communicator, ranks (of the communicator), size_bytes, start_us, end_us.
#' @return Tibble as [read_operations()]; site, datatypes and reduction only if the calls have them.
#' @noRd
collective_operations <- function(calls) {
  # Without a loop over the operations, of which a program may have millions.
  in_order <- order(calls$rank, calls$start_us)
  before <- c(0, head(calls$end_us[in_order], -1))
  before[!duplicated(calls$rank[in_order])] <- 0
  calls$since_us <- numeric(nrow(calls))
  calls$since_us[in_order] <- calls$start_us[in_order] - before
  own <- vctrs::vec_group_id(calls[c("rank", "communicator")])
  calls$number <- integer(nrow(calls))
  calls$number[order(own)] <- sequence(tabulate(own))
  # Non-blocking collectives move their data after the call.
  calls <- calls[!startsWith(calls$operation, "i"), ]
  id <- vctrs::vec_group_id(calls[c("communicator", "number")])
  first <- !duplicated(id)
  largest <- function(values) {
    order <- order(id, values)
    values[order][!duplicated(id[order], fromLast = TRUE)]
  }
  total <- function(values) unname(rowsum(values, id)[, 1])
  last_us <- largest(calls$start_us)
  operations <- tibble(
    communicator = calls$communicator[first], ranks = calls$ranks[first], operation = calls$operation[first],
    size_bytes = largest(calls$size_bytes), time_us = total(calls$end_us - calls$start_us),
    waiting_us = total(pmin(calls$end_us, last_us[id]) - calls$start_us),
    start_us = last_us, end_us = largest(calls$end_us),
    spread_us = largest(calls$since_us) + largest(-calls$since_us)
  )
  bind_cols(
    operations, select(calls, any_of("site"))[first, ], map(select(calls, any_of(text_columns)), all_of_group, id)
  )
}

#' Length of the union of intervals
#' @noRd
covered <- function(start, end) {
  order <- order(start)
  start <- start[order]
  before <- c(-Inf, utils::head(cummax(end[order]), -1))
  sum(pmax(0, end[order] - pmax(start, before)))
}

label_class <- function(size_bytes) {
  ifelse(size_bytes == 0, "no data", paste(label_bytes(size_bytes), "to", label_bytes(2 * size_bytes)))
}

run_us <- function(trace) trace$about$trace$seconds * 1e6

#' The account of an application: its collectives, and the run time that each could save at most
#'
#' @inheritParams read_operations
#' @return Tibble, a row per number of ranks of the communicator, operation and class of message sizes, largest gain
#'   first: ranks, operation, size_bytes (lower end of the class: 0, 1, 2, 4, ...), operations, time_pct, waiting_pct,
#'   transfer_pct (of the run time, mean over all ranks), gain_pct (of the run time: the time in which at least one such
#'   operation transfers), communicators (their number), placements (shapes of [placed_communicators()], that with most
#'   transfer first), datatypes and reduction (most bytes first; see [most_first()]), spread_us and transfer_us (medians
#'   over operations: of [read_operations()], and from the last arrival to the last return), typical_bytes (half of the
#'   transfer time is spent on messages up to this size), node_of_rank (of the communicators of so many ranks that
#'   transfer longest, in all operations), spreads (of the operations of each call site, most operations first: their
#'   number and the median of spread_us, as `120*3.2 40*250`). No rows for a partial trace.
#' @noRd
account_of <- function(trace) {
  if (!isTRUE(trace$about$trace$complete)) return(tibble())
  account_rows(read_operations(trace), trace$about$trace$ranks, run_us(trace))
}

#' The lower end of the class of a message size: 0, 1, 2, 4, ...
#' @noRd
class_start <- function(size_bytes) ifelse(size_bytes < 1, 0, 2^floor(log2(pmax(size_bytes, 1))))

#' Weighted median: the smallest value at or below which half of the weight lies
#' @noRd
weighted_median <- function(values, weights) {
  order <- order(values)
  values[order][which(cumsum(weights[order]) >= sum(weights) / 2)[1]]
}

#' The values that are not NA, that with the largest sum of weights first
#' @noRd
by_weight <- function(values, weights) {
  sums <- tapply(weights, values, sum)
  as.character(names(sums)[order(-sums)])
}

#' The operations and the median spread of each call site, most operations first: `120*3.2 40*250`
#' @noRd
spreads_of_sites <- function(site, spread_us) {
  of <- split(spread_us, match(site, unique(site)))
  of <- of[order(-lengths(of))]
  paste0(lengths(of), "*", signif(map_dbl(of, median), 3), collapse = " ")
}

#' The rows of an account
#'
#' @param operations Tibble from [collective_operations()], with the columns of [placed_communicators()].
#' @param ranks,run_us Number of ranks, and how long they ran.
#' @noRd
account_rows <- function(operations, ranks, run_us) {
  all <- ranks * run_us
  operations |>
    mutate(
      bytes = .data$size_bytes, size_bytes = class_start(.data$size_bytes), took_us = .data$end_us - .data$start_us
    ) |>
    # Not .by, which dplyr ignores before 1.1 (Debian 12 has 1.0.10).
    group_by(.data$ranks) |>
    mutate(node_of_rank = by_weight(.data$node_of_rank, .data$took_us)[1]) |>
    group_by(.data$ranks, .data$operation, .data$size_bytes) |>
    summarise(
      communicators = n_distinct(.data$communicator),
      placements = paste(by_weight(.data$shape, .data$took_us), collapse = ", "), operations = n(),
      time_pct = 100 * sum(.data$time_us) / all,
      waiting_pct = 100 * sum(.data$waiting_us) / all, transfer_pct = .data$time_pct - .data$waiting_pct,
      gain_pct = 100 * covered(.data$start_us, .data$end_us) / .env$run_us,
      spreads = spreads_of_sites(.data$site, .data$spread_us),
      spread_us = median(.data$spread_us), transfer_us = median(.data$took_us),
      typical_bytes = weighted_median(.data$bytes, .data$took_us), node_of_rank = .data$node_of_rank[1],
      across(any_of(text_columns), function(x) most_first(x, .data$bytes)), .groups = "drop"
    ) |>
    relocate("communicators", "placements", any_of(text_columns), .after = "gain_pct") |>
    relocate("spreads", .after = last_col()) |>
    arrange(desc(.data$gain_pct))
}

#' The run time (%) that all collectives together could save at most
#' @noRd
most_gain_pct <- function(trace) {
  found <- read_operations(trace)
  100 * covered(found$start_us, found$end_us) / run_us(trace)
}

#' Accounts of all applications; NULL where ranks shared cores, because the times then include waiting for a core
#' @noRd
accounts <- function(results) {
  if (isTRUE(results$study$provenance$oversubscribed)) return(NULL)
  found <- map_dfr(results$applications, function(application) {
    rows <- if (!is.null(application$trace)) account_of(application$trace)
    if (NROW(rows) > 0) bind_cols(application = application$label, select(rows, !"node_of_rank"))
  })
  if (nrow(found) > 0) found
}

#' Write the cells that a program uses: `sampling/cells.csv`
#'
#' @param folder Folder `results/<study>` with `program.json` (docs/files.md).
#' @return The path. The file has the rows of [account_of()] and a column `trace`, the digest of the trace. It has no
#'   rows where all collectives together could save less than `worth_pct` of program.json, or without a complete trace.
#' @examples
#' folder <- file.path(tempdir(), "program", "study")
#' dir.create(folder, recursive = TRUE)
#' jsonlite::write_json(
#'   list(trace = "traces/none", digest = "0", worth_pct = 1), file.path(folder, "program.json"), auto_unbox = TRUE
#' )
#' read.csv(write_account(folder))
#' @export
write_account <- function(folder) {
  program <- jsonlite::read_json(file.path(folder, "program.json"))
  trace <- read_trace(file.path(dirname(normalizePath(folder)), program$trace))
  none <- tibble(
    trace = character(), ranks = integer(), operation = character(), size_bytes = numeric(), operations = integer(),
    time_pct = numeric(), waiting_pct = numeric(), transfer_pct = numeric(), gain_pct = numeric(),
    communicators = integer(), placements = character(), datatypes = character(), reduction = character(),
    spread_us = numeric(), transfer_us = numeric(), typical_bytes = numeric(), node_of_rank = character(),
    spreads = character()
  )
  rows <- if (!is.null(trace)) account_of(trace)
  worth <- NROW(rows) > 0 && most_gain_pct(trace) >= program$worth_pct
  found <- if (worth) bind_cols(trace = program$digest, rows) else none
  write_table(found, file.path(folder, "sampling", "cells.csv"))
}

account_times <- paste(
  "Blocking collectives on communicators of several ranks. Waiting: until the last rank arrives; transfer: the rest of",
  "the time in the call; both in percent of the run time, mean over the ranks."
)

account_columns <- paste(
  account_times, "Gain: upper bound, the time in which at least one rank is still in the call after the last one has",
  "arrived; an ideal (zero-cost) algorithm would save it if waiting stayed the same (an estimate for rooted",
  "collectives, whose data also move before the last rank arrives).",
  "Message size: the lower end of its class (0, 1, 2, 4, ... B).",
  "Placements: nodes x ranks on each of them, that with most transfer first.",
  "Spread: how much the times of the ranks from their previous collective to this one differ; transfer (\u00b5s): from",
  "the last arrival to the last return (medians over operations). Typical size: half of the transfer time is spent on",
  "messages up to this size."
)

tables_of_accounts <- function(results) {
  found <- accounts(results)
  if (is.null(found)) return(list())
  c(
    list(listed("account", "cells", found, paste(
      "Collectives by communicator size and message size.", account_columns, datatypes_column
    ))),
    tables_of_sites(results)
  )
}

#' The call sites with most time in collectives
#'
#' @inheritParams read_operations
#' @return Tibble, at most `most` rows, most time first: called_in (see call_sites.py), operation, ranks,
#'   communicators and operations (their numbers), size_bytes (median), time_pct, waiting_pct, transfer_pct (of the run
#'   time, mean over all ranks), spread_us, transfer_us (medians). No rows without sites.
#' @noRd
account_sites <- function(trace, most = 20) {
  all <- trace$about$trace$ranks * run_us(trace)
  read_operations(trace) |>
    filter(!is.na(.data$site)) |>
    group_by(.data$site, .data$operation, .data$ranks) |>
    summarise(
      communicators = n_distinct(.data$communicator), operations = n(), size_bytes = median(.data$size_bytes),
      time_pct = 100 * sum(.data$time_us) / all, waiting_pct = 100 * sum(.data$waiting_us) / all,
      transfer_pct = .data$time_pct - .data$waiting_pct, spread_us = median(.data$spread_us),
      transfer_us = median(.data$end_us - .data$start_us), .groups = "drop"
    ) |>
    slice_max(.data$time_pct, n = most, with_ties = FALSE) |>
    mutate(called_in = unlist(trace$about$trace$sites)[.data$site + 1], .before = 1) |>
    select(!"site")
}

tables_of_sites <- function(results) {
  found <- map_dfr(results$applications, function(application) {
    rows <- if (isTRUE(application$trace$about$trace$complete)) account_sites(application$trace)
    if (NROW(rows) > 0) bind_cols(application = application$label, rows)
  })
  if (nrow(found) == 0) return(list())
  list(listed("account", "sites", found, paste(
    "Where the program calls its collectives: the 20 call sites of each program with most time in blocking",
    "collectives: the function, if its object names it, and the line of its source; without debug information (-g) the",
    "offset of the call in the object.",
    account_times, "Size, spread and transfer (\u00b5s): medians over the operations; see the table of collectives."
  )))
}

figures_of_accounts <- function(results) {
  found <- accounts(results)
  if (is.null(found)) return(list())
  list(figure("account", "cells", plot_account(found), paste(
    "The collectives with the largest possible gain.", account_times
  ), height = 2 + 1.8 * n_distinct(found$application)))
}

plot_account <- function(found) {
  rows <- found |>
    group_by(.data$application) |>
    slice_max(.data$gain_pct, n = 8, with_ties = FALSE) |>
    ungroup() |>
    mutate(
      application = factor(.data$application, unique(found$application)),
      cell = paste0(
        collective_title(.data$operation), ", ", label_class(.data$size_bytes), ", ",
        format_count(.data$ranks), " ranks"
      ),
      cell = factor(.data$cell, rev(unique(.data$cell)))
    ) |>
    pivot_longer(c("waiting_pct", "transfer_pct"), names_to = "kind", values_to = "pct") |>
    mutate(kind = factor(.data$kind, c("waiting_pct", "transfer_pct"), c("waiting for the last rank", "transfer")))
  ggplot(rows, aes(.data$pct, .data$cell, fill = .data$kind)) +
    geom_col(width = 0.75) +
    facet_wrap(vars(.data$application), scales = "free_y", ncol = 1) +
    scale_fill_manual(values = c("waiting for the last rank" = "#999999", transfer = "#0072B2")) +
    scale_x_continuous("Share of the run time (%)", expand = expansion(c(0, 0.05))) +
    scale_y_discrete(NULL) +
    labs(title = "Share of the run time spent in collectives") + theme_study()
}

#' A sentence, with a leading blank, on the non-blocking collectives of a trace; "" if there are none
#' @noRd
describe_left_out <- function(trace) {
  known <- c(point_to_point_calls, silent_calls)
  left <- filter(trace$calls, startsWith(.data$operation, "i"), !.data$operation %in% known, .data$communicator >= 0)
  if (nrow(left) == 0) return("")
  paste0(
    " Its non-blocking collectives (", paste(unique(left$operation), collapse = ", "),
    ") are not judged, because their data move outside the calls."
  )
}

#' A sentence, with a leading blank, on the collectives that a trace lacks; "" if there are none
#' @noRd
describe_not_recorded <- function(trace) {
  left <- unlist(trace$about$trace$unrecorded)
  if (length(left) == 0) return("")
  paste0(" Not judged, because they are not recorded: ", paste(left, collapse = ", "), ".")
}

#' A sentence, with a leading blank, on the calls of several threads of a rank; "" if one thread made all
#' @noRd
describe_threads <- function(trace) {
  if (!isTRUE(trace$about$trace$threads)) return("")
  paste(
    " Several threads of its ranks made these calls, also at the same time, so the shares of the time in them may add",
    "up to more than 100 %."
  )
}

#' Sentences on the run time that faster collectives could save
#'
#' @param results List from [read_results()].
#' @return Character vector, a sentence for each application with a complete trace; none where ranks shared cores.
#' @noRd
describe_accounts <- function(results) {
  if (isTRUE(results$study$provenance$oversubscribed)) return(character())
  unlist(map(unname(results$applications), function(application) {
    trace <- application$trace
    if (is.null(trace) || !isTRUE(trace$about$trace$complete)) return(NULL)
    rows <- account_of(trace)
    most <- if (nrow(rows)) most_gain_pct(trace) else 0
    worth <- results$study$program$worth_pct %||% little_pct
    if (nrow(rows) == 0 || most < worth) {
      return(paste0(
        application$label, " on ", format_count(application$ranks), " ranks spends ",
        if (sum(rows$time_pct) >= worth) paste0(
          format_pct(sum(rows$time_pct)), " of its run time in blocking collectives, ",
          format_pct(sum(rows$waiting_pct)), " waiting for the last rank to arrive"
        ) else "hardly any time in blocking collectives",
        ": ideal (zero-cost) ones would save at most ", format_pct(most),
        " of its run time, so tuning is not worthwhile.", describe_threads(trace), describe_left_out(trace),
        describe_not_recorded(trace)
      ))
    }
    first <- rows[1, ]
    paste0(
      application$label, " on ", format_count(application$ranks), " ranks spends ", format_pct(sum(rows$time_pct)),
      " of its run time in blocking collectives, ", format_pct(sum(rows$waiting_pct)),
      " waiting for the last rank to arrive and ", format_pct(sum(rows$transfer_pct)), " in the transfer. ",
      "Ideal (zero-cost) collectives would save at most ", format_pct(most), " of the run time, ",
      if (first$gain_pct > most / 2) "most" else "the largest part", " of it (",
      format_pct(first$gain_pct), ") in ", collective_word(first$operation), " of ",
      label_class(first$size_bytes), " on ", format_count(first$ranks), " ranks.", describe_threads(trace),
      describe_not_recorded(trace)
    )
  }))
}
