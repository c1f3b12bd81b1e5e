# A study of applications: their traces, and the replays of these.

#' Labels of the figures and tables whose identifier matches.
ids_of <- function(study, pattern) {
  matching <- function(index) index$id[grepl(pattern, index$id)]
  figures <- matching(study$figures)
  tables <- matching(study$tables)
  c(if (length(figures)) label_of("fig", study, figures), if (length(tables)) label_of("tbl", study, tables))
}

show_floats <- function(study, pattern) {
  figures <- study$figures[grepl(pattern, study$figures$id), ]
  tables <- study$tables[grepl(pattern, study$tables$id), ]
  for (i in seq_len(nrow(figures))) show_figure(study, figures[i, ])
  for (i in seq_len(nrow(tables))) show_table(study, tables[i, ])
}

#' What was traced where, what each application is, and what is not here.
show_applications <- function(study) {
  about <- study$about
  how <- about$how
  emit("## How it was measured {#sec-", study$id, "-how}")
  sentences <- c(
    paste0(
      "Each application ran once, unmodified, on ", md(about$machine$label), " with ",
      md(with_version(how$mpi, how$mpi_version)),
      ", with this project's trace library in front of MPI."
    ),
    if (isTRUE(how$oversubscribed)) paste(
      "The ranks shared its cores. That does not change what they call; time on the clock includes waiting for a core, so",
      "the replays take the processor time between calls as the time that ranks compute."
    ),
    if (nzchar(how$simulator)) paste0(
      "The replays are simulated by ", md(with_version(how$simulator, how$simulator_version)),
      ": the same calls in the same order, on networks of switches; ",
      "everything that comes from them is labelled as simulated."
    )
  )
  paragraph(paste(sentences, collapse = " "))
  rows <- do.call(rbind, lapply(about$applications, function(application) {
    data.frame(
      application = application$label, ranks = application$ranks, description = application$description,
      command = code(application$command)
    )
  }))
  emit_table(paste0("tbl-", study$id, "-applications"), rows, "The applications.", raw = "command")
  for (lost in about$left_out) {
    callout("warning", "An application is left out", paste0(md(lost$label), ": ", md(lost$reason), "."))
  }
  show_status(study)
}

#' How a trace of few ranks becomes a replay of many.
replay_rule <- function(study) {
  plan <- study$about$replay
  if (is.null(plan)) return("The traces of this study are not replayed.")
  paste0(
    "The replays have ", plan$ranks, " ranks. Where a trace has fewer, the application is copied side by side: a rank does ",
    "what its traced rank did; collectives of all traced ranks become collectives of all ranks and keep their ",
    "arguments (bytes for each rank stay, so totals of all-to-all grow with the ranks); a message to a higher rank ",
    "stays in its copy, one to a lower rank goes to the next copy, as messages across the border of a periodic domain ",
    "do. What a collective sends is decided as Open MPI decides it, by the number of ranks and the size. Ranks are placed in the order of the hosts."
  )
}

#' The dynamic figures of one application.
show_replay_of <- function(study, application) {
  pattern <- paste0("^", application$name, "-(ports|switches|latency|saturation|saturation-map|throughput)$")
  if (!any(grepl(pattern, study$figures$id))) return(invisible(NULL))
  emit("### ", md(application$label), " {#sec-", study$id, "-", slug(application$name), "}")
  show_floats(study, pattern)
}
