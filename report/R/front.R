# The front page: question, answer, studies.

show_question <- function(studies) {
  questions <- unique(unlist(lapply(studies, function(s) s$about$question)))
  if (length(questions) == 0) questions <- "No study has results yet, so there is no question to answer."
  emit("::: {.opening}")
  for (question in questions) paragraph(md(question))
  emit(":::")
  simulated <- Filter(function(s) s$simulated, studies)
  if (length(simulated)) {
    callout("note", "Measured and simulated numbers", paste0(
      "The numbers of ", and_list(vapply(simulated, function(s) paste0("@sec-", s$id), "")),
      " come from a simulator and are labelled as simulated everywhere",
      if (length(simulated) < length(studies)) "; all others were measured on real machines", "."
    ))
  }
}

show_answer <- function(studies) {
  ready <- Filter(has_results, studies)
  answer <- do.call(rbind, lapply(ready, answer_of))
  items <- unlist(lapply(ready, function(study) {
    sprintf("- %s (@sec-%s)", md(study$sentences$text[study$sentences$section %in% "answer"]), study$id)
  }))
  if (length(items)) emit(paste(items, collapse = "\n"))
  if (length(items) == 0) paragraph("There are no results to summarise yet.")
  if (NROW(answer) > 0) emit_table("tbl-answer", answer[-1], answer_caption(), raw = "study")
  show_front_map(ready)
}

answer_caption <- function() {
  paste(
    "How often the library's default is the fastest or tied with it, and its regret: how much slower than the fastest",
    "algorithm of the cell it is. Beside it the one algorithm that would do best if it were used for every cell."
  )
}

#' The study's own answer, with its chapter in front.
answer_of <- function(study) {
  found <- study$answer
  if (NROW(found) == 0) return(NULL)
  found$collective <- vapply(as.character(found$collective), collective_title, "")
  cbind(name = study$name, study = chapter_link(study), found)
}

#' "thin (Section 1, simulated)"
chapter_link <- function(study) paste0(md(study$name), " (@sec-", study$id, if (study$simulated) ", simulated", ")")

#' One decision map: of the measured study with the most cells, or of a simulated one where nothing was measured.
show_front_map <- function(studies) {
  has_map <- Filter(function(s) nrow(decision_maps(s)) > 0, studies)
  if (length(has_map) == 0) return(invisible(NULL))
  rank <- order(vapply(has_map, function(s) s$simulated, TRUE), -vapply(has_map, function(s) nrow(s$cells) %||% 0L, 1L))
  study <- has_map[[rank[1]]]
  row <- decision_maps(study)[1, ]
  caption <- paste0(caption_of(study, row$caption), " From @sec-", study$id, ".")
  show_figure(study, row, id = "fig-answer-map", caption = caption)
}

#' The maps of the fastest algorithm of each cell.
decision_maps <- function(study) {
  study$figures[study$figures$id %in% paste0(collectives_of(study), "-decision-map"), ]
}

show_studies <- function(studies) {
  table <- do.call(rbind, lapply(studies, study_row))
  emit_table("tbl-studies", table, "The studies of this report.", raw = c("chapter"))
}

study_row <- function(study) {
  how <- study$about$how
  data.frame(
    chapter = paste0("@sec-", study$id), study = study_title(study), machine = study$about$machine$label %||% "",
    numbers = kind_of_numbers(study),
    suite = with_version(how$suite, how$suite_version), mpi = with_version(how$mpi, how$mpi_version),
    measured = sum(study$cells$status == "measured"), asked = NROW(study$cells)
  )
}

kind_of_numbers <- function(study) {
  if (!has_results(study)) return("no results yet")
  if (study$simulated) "simulated" else if (identical(study$about$machine$kind, "imported")) "imported" else "measured"
}
