# A study of applications: their traces, and replays of the traces.

#' The traced applications, how they were traced and replayed, and what is left out.
show_applications <- function(study) {
  about <- study$about
  how <- about$provenance
  emit("## How it was measured {#sec-", study$id, "-how}")
  sentences <- c(
    paste0(
      "Each application ran once, unmodified, on ", md(about$machine$label), " with ",
      md(with_version(how$mpi, how$mpi_version)),
      ", with this project's trace library preloaded."
    ),
    if (isTRUE(how$oversubscribed)) paste(
      "The ranks shared its cores. This does not change their calls, but elapsed time includes waiting for a core, so",
      "the replays use the processor time between calls as computing time."
    ),
    if (nzchar(how$simulator)) paste0(
      "The replays are simulated by ", md(with_version(how$simulator, how$simulator_version)),
      ": the same calls in the same order, on a simulated machine. ",
      "All results of replays are labelled as simulated."
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

#' How the tuned program was run.
show_program <- function(study) {
  about <- study$about
  emit("## How it was measured {#sec-", study$id, "-how}")
  paragraph(
    "The program ran unmodified on ", md(machine_text(about$machine)), " with ",
    md(with_version(about$provenance$mpi, about$provenance$mpi_version)), ", as ", code(about$program$command), ": once with this ",
    "project's trace library to record its calls, and ", about$program$runs, " times each with and without the library to ",
    "measure its overhead. The cells that the program uses were then measured in rounds with ",
    md(with_version(about$provenance$suite %or% "no benchmark", about$provenance$suite_version)),
    ", weighted by their share of the run time."
  )
  show_status(study)
}

#' The results of the runs with the tuning file.
show_trial <- function(study) {
  emit("## The program with the tuning file {#sec-", study$id, "-trial}")
  if (nrow(study$tuned) > 0) paragraph(paste(md(study$tuned$text), collapse = " "))
  result <- readLines(file.path(study$folder, "tuning", "result.txt"), encoding = "UTF-8")
  if (length(result) > 1) {
    paragraph("In a job script:")
    emit("```\n", result[2], "\n```")
  }
  show_drawing(study, "pairs", "Time of the program with and without the tuning file", paste(
    "Runs without and with the tuning file. A line joins the two runs of a pair, which were launched one after the other",
    "in random order."
  ))
  judged <- read_table(file.path(study$folder, "tables", "tuning-judged.csv"))
  if (NROW(judged) > 0) emit_table(paste0("tbl-", study$id, "-judged"), judged, caption_of(study, paste(
    "Speed-up with the tuning file: median over the pairs of runs, with the interval from order statistics. Collectives:",
    "time in collective calls, mean over ranks, in runs with the trace library."
  )))
  ran <- read_table(file.path(study$folder, "tables", "tuning-ran.csv"))
  if (NROW(ran) > 0) emit_table(paste0("tbl-", study$id, "-ran"), ran[setdiff(names(ran), "known_by")], caption_of(study, paste(
    "Algorithms that ran in the program without (default) and with the tuning file (tuned), by communicator and",
    "collective, as printed by ./study what-ran."
  )))
}
