# The front page: question, answer, figure, table, what to do, how far to trust it, studies (results/front/).

show_question <- function(report) {
  question <- text_of(report$front, "question") %or% "No study has results yet, so there is no question to answer."
  emit("::: {.opening}")
  paragraph(md(question))
  emit(":::")
}

show_answer <- function(report) {
  if (is.null(report$front)) return(paragraph("There are no results to summarise yet."))
  emit_list(report, "answer")
  show_front_figure(Filter(has_results, report$studies))
  show_front_table(report$front)
}

show_front_table <- function(front) {
  if (NROW(front$table) == 0) return(invisible(NULL))
  table <- front$table
  table$machine <- paste0(md(table$machine), ", @sec-", collanalysis::chapter_id(table$study))
  table$study <- NULL
  headers <- c(
    "Machine", "Collective", "Cells", "Default more than 5 % slower (% of cells)",
    "Slow-down of the default (%)", "Best other algorithm", "Its slow-down (%)"
  )
  emit_table("tbl-answer", table, md(text_of(front, "caption")), raw = "machine", headers = headers)
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
  # The gain of a program is shown by itself, because its own runs judged it.
  for (study in Filter(function(study) length(study$about$program) > 0, report$studies)) {
    found <- tail(said_in(study, "tuning"), 1)
    if (length(found)) paragraph("**", md(study$about$program$label), ".** ", found, " (@sec-", study$id, "_trial)")
  }
  emit_list(report, "advice")
  sentences <- report$front$sentences
  for (i in which(sentences$section %in% c("step", "command"))) {
    text <- sentences$text[i]
    if (sentences$section[i] == "command") emit("```\n", text, "\n```") else paragraph(prose(text))
  }
}

show_trust <- function(report) {
  if (length(said_in(report$front, "trust"))) emit("## How far to trust it {#sec-trust .unnumbered}")
  emit_list(report, "trust")
}

#' The sentences of a section of the front page as a list.
emit_list <- function(report, section) {
  found <- said_in(report$front, section)
  if (length(found)) emit(paste0("- ", found, collapse = "\n"))
}

show_studies <- function(report) {
  # In print, the findings of many studies would fill pages before the table of contents.
  many <- length(report$studies) > paper_rows
  screen_only(many, emit(paste(vapply(report$studies, study_line, "", report), collapse = "\n")))
  if (many) paper_only(paragraph("Each of the ", length(report$studies), " chapters begins with its study's question and answer."))
}

#' "- **Title** (Section 2; measured, imported; 1,234 grid cells): what it found."
study_line <- function(study, report) {
  row <- front_row(report, study)
  facts <- c(paste0("@sec-", study$id), row$facts %or% "no results yet")
  answer <- row$finding
  if (length(answer) == 1 && !is.na(answer)) answer <- without_title(study, answer, identity)
  paste0(
    "- **", md(study_title(study)), "** (", paste(facts, collapse = "; "), ")",
    if (length(answer) == 1 && !is.na(answer)) paste0(": ", prose(answer)) else "."
  )
}
