# A study of applications: their traces, and the replays of these.

#' What was traced where, what each application is, and what is not here.
show_applications <- function(study) {
  about <- study$about
  how <- about$how
  emit("## How it was measured {#sec-", study$id, "-how}")
  sentences <- c(
    paste0(
      "Each application ran once, unmodified, on ", md(about$machine$label), " with ",
      md(with_version(how$mpi, how$mpi_version)),
      ", with this project's trace library preloaded."
    ),
    if (isTRUE(how$oversubscribed)) paste(
      "The ranks shared its cores. This does not change their calls; elapsed time includes waiting for a core, so",
      "the replays use the processor time between calls as computing time."
    ),
    if (nzchar(how$simulator)) paste0(
      "The replays are simulated by ", md(with_version(how$simulator, how$simulator_version)),
      ": the same calls in the same order, on networks of switches; ",
      "all of their results are labelled as simulated."
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
