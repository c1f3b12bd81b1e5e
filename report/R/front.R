# The front page: question, answer, figure, table, what to do, how far to trust it, studies. Its content is computed in
# collanalysis (describe_front()) and formatted here.

show_question <- function(report) {
  question <- report$front$question %or% "No study has results yet, so there is no question to answer."
  emit("::: {.opening}")
  paragraph(md(question))
  emit(":::")
}

show_answer <- function(report) {
  front <- report$front
  if (is.null(front)) return(paragraph("There are no results to summarise yet."))
  emit(paste0("- ", md(front$answer), collapse = "\n"))
  show_front_figure(Filter(has_results, report$studies))
  show_front_table(front)
}

show_front_table <- function(front) {
  if (NROW(front$table) == 0) return(invisible(NULL))
  table <- as.data.frame(front$table)
  table$machine <- paste0(md(table$machine), ", @sec-", collanalysis::slug(table$study))
  table$study <- NULL
  headers <- c(
    "Machine", "Collective", "Cells", "Default more than 5 % slower (% of cells)",
    "Slow-down of the default (%)", "Best single algorithm", "Its slow-down (%)"
  )
  emit_table("tbl-answer", table, paste0(
    "Slow-down (geometric mean) against the fastest algorithm of each cell. Best single algorithm: the one that loses ",
    "least if it replaces the default in every cell. Collectives with few cells come last. Cells of two processes are ",
    "excluded: between two ranks all algorithms send the same messages.",
    if (length(front$left_out) > 0) paste0(" Not in this table: ", collanalysis::and_list(front$left_out), ".")
  ), raw = "machine", headers = headers)
}

#' The figure of the study of all machines; without one, the decision map of the most informative study.
show_front_figure <- function(studies) {
  atlas <- Filter(function(s) identical(s$about$chapter, "atlas") && nrow(s$figures) > 0, studies)
  if (length(atlas) > 0) {
    row <- atlas[[1]]$figures[1, ]
    caption <- paste0(caption_of(atlas[[1]], row$caption), " From @sec-", atlas[[1]]$id, ".")
    # So wide that it stays on the first page of the PDF, below the answer.
    return(show_figure(atlas[[1]], row, id = "fig-answer", caption = caption, widest = 0.8))
  }
  has_map <- Filter(function(s) nrow(decision_maps(s)) > 0, studies)
  if (length(has_map) == 0) return(invisible(NULL))
  study <- has_map[[1]]
  row <- decision_maps(study)[1, ]
  show_figure(study, row, id = "fig-answer", caption = paste0(caption_of(study, row$caption), " From @sec-", study$id, "."))
}

#' The maps of the fastest algorithm of each cell.
decision_maps <- function(study) {
  maps <- study$figures[study$figures$id %in% paste0(collectives_shown(study), "-decision-map"), ]
  maps[is_there(study, maps$file), ]
}

show_advice <- function(report) {
  advice <- report$front$advice
  # The gain of a program is shown by itself, because its own runs judged it.
  programs <- Filter(function(study) length(study$about$program) > 0 && nrow(study$tuned) > 0, report$studies)
  for (study in programs) {
    paragraph("**", md(study$about$program$label), ".** ", md(tail(study$tuned$text, 1)), " (@sec-", study$id, "-trial)")
  }
  if (is.null(advice) && length(programs) > 0) return(invisible(NULL))
  replayed <- Filter(function(study) any(nzchar(study$about$replay$decisions)), report$studies)
  for (study in replayed) {
    decided <- study$about$replay$decisions
    paragraph("@sec-", study$id, " judges the decisions of study ", code(decided), " by simulation; their tuning files are in ",
      code(file.path(report$results_label, decided, "tuning")), ". Verify them on the machine itself.")
  }
  if (is.null(advice) && length(replayed) > 0) return(invisible(NULL))
  if (is.null(advice)) {
    return(paragraph(if (isTRUE(report$front$judged > 0)) {
      "Keep the library's default: no rule of this report has a clear gain on cells that were not used to decide it."
    } else {
      "No rule of this report was judged on cells that were not used to decide it, so there is no reason to replace the default."
    }))
  }
  emit(paste0("- ", md(c(advice$sentence, advice$others, advice$verified)), collapse = "\n"))
  place <- file.path(report$results_label, advice$study, "tuning")
  if (is.null(advice$launcher)) {
    paragraph("The rules of each study are in ", code(file.path(report$results_label, "<study>", "tuning", "decisions.csv")),
      "; with ", code("analysis: {tuning: {}}"), " a study also gets the files that the library reads.")
  } else {
    paragraph("The tuning files are in ", code(place), ". On ", md(advice$machine), ", start programs with ", code("mpirun-tuned"),
      " instead of Open MPI's ", code("mpirun"), ": it selects the file for the job's mapping and numbers of nodes and processes.")
    emit(paste0("```\n", file.path(place, advice$launcher), "\n```"))
    paragraph(code(file.path(place, "README.md")), " has the options for a plain ", code("mpirun"), " and for other libraries.")
  }
  if (!is.null(advice$ask)) {
    paragraph("For a single call, this command prints the recommended algorithm, its expected latency and the underlying measurements ",
      "(", code("--size"), " in bytes):")
    emit(paste0("```\n", advice$ask, "\n```"))
  }
  paragraph("On another machine, ", code("./study probe"), " drafts the description of the machine and ", code("./study new"),
    " drafts a study that measures it and decides its rules.")
}

show_trust <- function(report) {
  if (length(report$front$trust)) emit(paste0("- ", md(report$front$trust), collapse = "\n"))
  simulated <- Filter(function(s) s$simulated, report$studies)
  if (length(simulated)) {
    emit("- The numbers of ", collanalysis::and_list(vapply(simulated, function(s) paste0("@sec-", s$id), "")),
         " come from a simulator and are labelled as simulated everywhere.")
  }
  replayed <- Filter(function(study) length(study$about$replay) > 0, report$studies)
  if (length(replayed)) {
    emit("- The traces of ", collanalysis::and_list(vapply(replayed, function(s) paste0("@sec-", s$id), "")),
         " were measured; their replays come from a simulator and are labelled as simulated everywhere.")
  }
}

show_studies <- function(report) {
  # In print, the findings of many studies would fill pages before the table of contents.
  many <- length(report$studies) > paper_rows
  screen_only(many, emit(paste(vapply(report$studies, study_line, "", report), collapse = "\n")))
  if (many) paper_only(paragraph("Each of the ", length(report$studies), " chapters begins with its study's question and answer."))
}

#' "- **Title** (Section 2; measured, imported; 1,234 grid cells): what it found."
study_line <- function(study, report) {
  facts <- c(paste0("@sec-", study$id), kind_of_numbers(study), if (NROW(study$cells) > 0) cells_words(study))
  answer <- study$silent %or% report$front$findings[[study$name]]
  if (length(answer) == 1 && !is.na(answer)) answer <- without_title(study, answer)
  paste0(
    "- **", md(study_title(study)), "** (", paste(facts, collapse = "; "), ")",
    if (length(answer) == 1 && !is.na(answer)) paste0(": ", md(answer)) else "."
  )
}

cells_words <- function(study) {
  if (length(study$about$replay) > 0) {
    traces <- sum(study$cells$algorithm %in% "traced")
    return(paste(count_of(traces, "trace"), "and", count_of(nrow(study$cells) - traces, "replay")))
  }
  measured <- sum(study$cells$status == "measured")
  if (measured == nrow(study$cells)) return(count_of(measured, "grid cell"))
  paste(format(measured, big.mark = ",", trim = TRUE), "of", count_of(nrow(study$cells), "grid cell"))
}

kind_of_numbers <- function(study) {
  if (!has_results(study)) return("no results yet")
  if (length(study$about$replay) > 0) return("measured here and simulated")
  if (study$simulated) "simulated" else if (identical(study$about$machine$kind, "imported")) "measured, imported" else "measured here"
}
