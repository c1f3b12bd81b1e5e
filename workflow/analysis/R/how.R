# How a study was measured or simulated, and which of its grid cells have no number.

#' Sentences on how the numbers of a study were obtained
#'
#' @param results List from [read_results()].
#' @return Tibble as of [said()]: sections `simulated` (a warning), `how`, `left-out` (one sentence for each application
#'   without a trace), and `status` where all grid cells have a number, otherwise `lacking`, or `not-imported` if only
#'   imported data lack them.
#' @noRd
sentences_of_how <- function(results) {
  study <- results$study
  bind_rows(
    said("simulated", if (study$simulated) paste0(
      "Every number of this study was computed by ", simulator_of(study), " from a description of the machine; none ",
      "was measured. Measurements shown for comparison are labelled as such."
    ), claim = FALSE),
    said("how", describe_how(study, with_widths(results$cells, results$rows)), claim = FALSE),
    said("left-out", map_chr(study$left_out, function(lost) paste0(lost$label, ": ", lost$reason, ".")), claim = FALSE),
    sentences_of_status(study, results$cells)
  )
}

simulator_of <- function(study) with_version(study$provenance$simulator, study$provenance$simulator_version)

describe_how <- function(study, cells) {
  # The studies that it gathers say so themselves.
  if (identical(study$chapter, "atlas")) return(NULL)
  environment <- describe_environment(study$machine)
  if (length(study$applications)) return(c(describe_tracing(study, cells), environment))
  if (length(study$program)) return(c(describe_program_runs(study), environment))
  how <- study$provenance
  suite <- with_version(how$suite, how$suite_version)
  mpi <- with_version(how$mpi, how$mpi_version)
  first <- if (study$simulated) {
    paste0("Simulated with ", simulator_of(study), ", running ", suite, ".")
  } else if (identical(study$machine$kind, "imported")) {
    paste0("Existing measurements, read from files: ", suite, " with ", mpi, ".")
  } else {
    paste0("Measured with ", suite, " and ", mpi, ".")
  }
  c(
    first, paste0("Machine: ", describe_machine(study$machine), "."), environment, describe_repeats(study, cells),
    describe_imported(study$import, has_only_pingpongs(study)),
    if (length(study$sampling)) paste0(
      "Only those points of the grid that the rounds selected were ", if (study$simulated) "simulated." else "measured."
    ),
    if (study$simulated && identical(study$chapter, "pipelining")) paste(
      "The simulator runs the messages of Open MPI's algorithms, blocking and non-blocking. It has neither the",
      "decision rules nor the non-blocking algorithms of MPICH and Intel MPI, so these libraries are not simulated.",
      "Reductions take the time given in the machine's file, and messages progress meanwhile; the gain from",
      "pipelining depends on this assumption."
    )
  )
}

#' How applications were traced and replayed
#' @noRd
describe_tracing <- function(study, cells) {
  how <- study$provenance
  traces <- max(0L, table(cells$collective[cells$algorithm %in% "traced"]))
  c(
    paste0(
      "Each application ran ", if (traces > 1) paste(traces, "times") else "once", ", unmodified, with ",
      with_version(how$mpi, how$mpi_version), " and this project's trace library preloaded, on ", study$machine$label,
      "."
    ),
    if (isTRUE(how$oversubscribed)) paste(
      "Shared cores do not change the calls, but elapsed time includes waiting for a core, so the replays use the",
      "processor time between calls as computing time."
    ),
    if (nzchar(how$simulator)) paste0(
      "The replays are simulated by ", simulator_of(study), ": the same calls in the same order, on a simulated ",
      "machine. All results of replays are labelled as simulated."
    )
  )
}

#' How a program whose collectives are tuned was run
#' @noRd
describe_program_runs <- function(study) {
  how <- study$provenance
  paste0(
    "The program ran unmodified on ", describe_machine(study$machine), " with ",
    with_version(how$mpi, how$mpi_version), ", as `", study$program$command, "`",
    if (is.null(study$program$failure)) paste0(
      ": once with this project's trace library to record its calls, and ", study$program$runs, " times each with and ",
      "without the library to measure its overhead"
    ),
    ".",
    if (nzchar(how$suite %||% "")) paste0(
      " The cells that the program uses were then measured in rounds with ", with_version(how$suite, how$suite_version),
      ", weighted by their share of the run time."
    )
  )
}

#' "Two THIN nodes of ORFEO (2 nodes x 2 sockets x 12 cores)"
#' @noRd
describe_machine <- function(machine) {
  levels <- map_chr(machine$levels, function(level) count_of(level$count %||% 1, level_word(level$name)))
  label <- machine$label %||% machine$name %||% "not named"
  if (length(levels)) paste0(label, " (", paste(levels, collapse = " \u00d7 "), ")") else label
}

#' The environment variables that the machine's file sets for all launches
#' @noRd
describe_environment <- function(machine) {
  set <- unlist(machine$environment)
  if (length(set) == 0) return(NULL)
  paste0(
    "Environment of all launches, from the machine's file: ", paste0("`", names(set), "=", set, "`", collapse = ", "),
    "."
  )
}

#' What a latency is: the mean over which iterations, the median over which launches
#' @noRd
describe_repeats <- function(study, cells) {
  how <- study$provenance
  if (is.null(how$iterations)) return(NULL)
  of_ranks <- if (isTRUE(study$chapter %in% slowest_chapters)) {
    "the slowest rank's mean over "
  } else {
    "the mean over the ranks of each rank's mean over "
  }
  loop <- paste0(
    if (has_only_pingpongs(study)) "half the time of a round trip, the mean over " else of_ranks,
    count_range(how$iterations, "iteration"), ", after ", count_range(how$warmup %||% 0, "warm-up iteration")
  )
  starts <- c(describe_barriers(unlist(how$barriers)), describe_spreads(unlist(how$spreads_us)))
  if (study$simulated) {
    return(c(
      paste0("A latency is ", loop, "."), starts,
      "The simulation is deterministic, so each grid cell is launched once."
    ))
  }
  c(
    paste0(
      "The result of a launch is ", loop, "; a latency is the median over ",
      count_range(unlist(how$launches) %||% 1, "launch", "launches"), "."
    ),
    starts, describe_unbound(cells$bound), describe_differing(cells[["differing"]]),
    describe_stops(cells, how$ci_width_pct)
  )
}

#' Whether all collectives of a study are point-to-point tests
#' @noRd
has_only_pingpongs <- function(study) {
  names <- setdiff(names(study$collectives), applications)
  length(names) > 0 && all(names %in% point_to_point)
}

#' Sentence on the barrier between calls, if it is not the library's default, because its exit skew biases the latency
#' @noRd
describe_barriers <- function(barriers) {
  set <- setdiff(barriers, "default")
  if (length(set) == 0) return(NULL)
  said <- if (identical(set, "window")) {
    "the ranks start each call at an instant of synchronised clocks instead of after a barrier."
  } else {
    paste0(
      "the barrier between the calls is ", paste(gsub("_", " ", set), collapse = " or "), ", not the library's ",
      "default", if ("aligned" %in% set) ": all ranks start each call at the same instant", "."
    )
  }
  if ("default" %in% barriers) paste("In some of the sweeps,", said) else capitalised(said)
}

#' Sentence on ranks that enter a call at different times
#' @noRd
describe_spreads <- function(spreads) {
  set <- setdiff(spreads, 0)
  if (length(set) == 0) return(NULL)
  said <- paste0(
    "each rank enters a call at its own instant, drawn from a range of ",
    sub(" and ([^,]*)$", " or \\1", and_list(format_number(set))),
    " \u00b5s, and the latency is counted from the last of these instants."
  )
  if (0 %in% spreads) paste("In some of the calls,", said) else capitalised(said)
}

#' Sentence on cells whose ranks were not bound to cores (more ranks than cores, emulated nodes)
#' @noRd
describe_unbound <- function(bound) {
  count <- sum(bound %in% "FALSE")
  if (count == 0) return(NULL)
  where <- if (count == length(bound)) "all" else paste(count, "of", length(bound))
  paste0(
    "In ", where, " grid cells, the ranks were not bound to cores: the mapping did not determine these, and ranks may ",
    "have shared one."
  )
}

#' Sentence on cells whose launches had different environment variables for transports
#' @noRd
describe_differing <- function(differing) {
  found <- differing[nzchar(differing) & !is.na(differing)]
  if (length(found) == 0) return(NULL)
  paste0(
    "The launches of ", count_of(length(found), "grid cell"), " had different values of ",
    and_list(sort(unique(unlist(strsplit(found, " "))))), ", which can change latencies: ",
    "their medians are over launches with different settings. The machine's file can set them (`environment`)."
  )
}

#' Add the width of the confidence interval of the median of each grid cell, the widest over its message sizes and
#' pairs of ranks (`width_pct`, in percent of the median; NA with one launch)
#' @noRd
with_widths <- function(cells, rows) {
  rows$value <- coalesce(rows$latency_us, rows[["bandwidth_mb_s"]])
  rows <- rows[!is.na(rows$value) & !is.na(rows$cell), ]
  if (nrow(rows) == 0) return(cells)
  id <- vctrs::vec_group_id(rows[intersect(c("cell", "size_bytes", "from_rank", "to_rank"), names(rows))])
  found <- median_interval(rows$value, id, attr(id, "n"))
  width <- ifelse(found$n > 1, 100 * (found$high - found$low) / found$median, NA)
  widest <- tapply(width, rows$cell[!duplicated(id)], max)
  mutate(cells, width_pct = as.vector(widest)[match(.data$cell, names(widest))])
}

#' Sentence on the rules that ended the launches of the cells; `width_pct` of the cells as of [with_widths()]
#' @noRd
describe_stops <- function(cells, width) {
  stops <- table(cells$stop)
  # Of fewer than six launches, no interval has 95 %.
  interval <- "the confidence interval of the median"
  words <- c(
    narrow = paste0("because ", interval, " was narrower than ", width, " %"),
    limit = "at the maximum number of launches"
  )
  known <- intersect(names(words), names(stops))
  if (length(known) == 0 || is.null(width)) return(NULL)
  # The last launch may have made the interval narrow.
  limit <- which(cells$stop == "limit")
  wide <- sum(cells[["width_pct"]][limit] > width, na.rm = TRUE)
  of_which <- if (wide == 1 && length(limit) == 1) {
    "in which"
  } else {
    paste("in", if (wide == length(limit)) "all" else format_count(wide), "of which")
  }
  paste0(
    "Launching stopped ", and_list(paste0(words[known], " in ", map_chr(stops[known], count_of, "grid cell"))),
    if (wide > 0) paste0(
      ", ", of_which, " ", if ("narrow" %in% known) "it is wider" else paste0(interval, " is wider than ", width, " %")
    ),
    "."
  )
}

#' Sentences with the counts of the import, so that nothing is dropped silently
#' @noRd
describe_imported <- function(import, pingpongs = FALSE) {
  if (length(import) == 0) return(NULL)
  counts <- purrr::keep(import, function(x) is.numeric(x) && length(x) == 1)
  names(counts) <- gsub("_", " ", names(counts))
  counts <- c(counts, import$problems) # whose names are sentences with paths
  if (length(counts) == 0) return(NULL)
  counts <- unlist(counts)
  counts <- counts[counts > 0]
  one <- counts == 1
  names(counts)[one] <- sub("\\b(row|file|output|call|test)s\\b(?! that)", "\\1", names(counts)[one], perl = TRUE)
  sources <- unlist(import$sources)
  c(
    paste0("Import: ", and_list(paste(format_count(counts), names(counts))), "."),
    if (length(sources) > 1) paste0(
      "Measured by ", and_list(sources), "; each of their values counts as a launch of its cell."
    ),
    if (pingpongs) {
      "A latency is half the time of a round trip, the mean over iterations."
    } else if (length(import$statistics)) {
      paste0("A latency is ", and_list(statistic_words[unlist(import$statistics)]), ".")
    },
    map_chr(import$left_out, function(entry) {
      chosen <- entry[setdiff(names(entry), c("rows", "reason"))]
      chosen <- map_chr(chosen, function(values) paste(unlist(values), collapse = " or "))
      which <- if (length(chosen)) paste(" with", and_list(paste(gsub("_", " ", names(chosen)), chosen)))
      paste0("Left out by the study: ", count_of(entry$rows, "row"), which, " (", entry$reason, ").")
    })
  )
}

#' The values of the column `statistic` in words
#' @noRd
statistic_words <- c(
  mean_over_ranks = "the mean over the ranks of each rank's mean over iterations",
  mean_over_ranks_median = "the mean over the ranks, median over the calls of a launch",
  slowest_rank = "the time of the slowest rank, mean over iterations",
  slowest_rank_median = "the time of the slowest rank, median over the calls of a launch"
)

#' The sentence on the grid cells that have a number, or on those that have none
#' @noRd
sentences_of_status <- function(study, cells) {
  count <- nrow(cells)
  bad <- cells[cells$status != "measured", ]
  if (count == 0) return(NULL)
  if (nrow(bad) == 0) return(said("status", describe_complete(study, cells), claim = FALSE))
  units <- if (length(study$program)) "runs and grid cells" else "grid cells"
  of <- paste(format_count(nrow(bad)), "of", format_count(count), units, "")
  statuses <- table(sub("^unproved$", "not verified", bad$status))
  one <- nrow(bad) == 1
  if (identical(study$machine$kind, "imported") && identical(names(statuses), "missing")) {
    return(said("not-imported", claim = FALSE, paste0(
      of, if (one) "is" else "are", " not in the imported data, or only at some sizes."
    )))
  }
  said("lacking", claim = FALSE, paste0(
    of, if (one) "has" else "have", " no usable number, or none at some sizes",
    if (length(statuses) == 1) paste0(" (", names(statuses), ")") else
      paste0(": ", and_list(paste(format_count(statuses), names(statuses)))), "."
  ))
}

describe_complete <- function(study, cells) {
  if (length(study$program)) {
    measured <- sum(!cells$algorithm %in% c("trace", "plain", "traced"))
    return(paste0(
      "The program was traced, and run with and without the trace library",
      if (measured > 0) paste0("; all ", format_count(measured), " grid cells of the study were measured"), "."
    ))
  }
  traces <- sum(cells$algorithm %in% "traced")
  replays <- nrow(cells) - traces
  if (traces > 0) {
    replayed <- if (replays == 1) "its replay" else paste("all", replays, "replays")
    return(paste0(
      if (traces == 1) "The trace was measured" else paste("All", traces, "traces were measured"),
      if (replays > 0) paste0(" and ", replayed, " simulated"), "."
    ))
  }
  done <- if (study$simulated) "simulated" else "measured"
  if (nrow(cells) == 1) return(paste0("The study has one grid cell; it was ", done, "."))
  paste0("All ", format_count(nrow(cells)), " grid cells of the study were ", done, ".")
}
