# The chapters, and their common beginning: the question, the answer, and how it was measured.

#' Marks the beginning of a new HTML page (workflow/collstudy/publish/pages.py)
page_break <- "<!-- page -->"

#' The studies with their chapters added (`chapter`, see recall_chapter()); several are made in parallel.
knit_chapters <- function(studies) {
  made <- parallel::mclapply(studies, recall_chapter, mc.cores = parallel::detectCores(), mc.preschedule = FALSE)
  Map(function(study, chapter) {
    if (inherits(chapter, "try-error")) stop(attr(chapter, "condition"))
    if (is.null(chapter)) stop("a process that knitted a chapter was killed; is there enough memory?")
    for (file in names(chapter$files)) {
      dir.create(dirname(file), showWarnings = FALSE, recursive = TRUE)
      writeBin(chapter$files[[file]], file)
    }
    # Not message(): knitr keeps that from the log.
    cat(sprintf("report: %s\n", chapter$problems), sep = "", file = stderr())
    c(study, list(chapter = chapter))
  }, studies, made)
}

#' The markdown of all chapters, returned and not printed: knitr keeps printed output line by line, which takes seconds.
text_of_chapters <- function(studies) {
  text <- vapply(studies, function(study) study$chapter$text, "")
  knitr::asis_output(paste0("\n", page_break, "\n", text, "\n", collapse = ""))
}

#' The cached chapter made from the same files, or a new one
#' @return List: `text` (markdown), `files` (raw content by path), `shown` (labels of its figures and tables), and
#'   `problems` (from show_chapter()).
recall_chapter <- function(study) {
  code <- c("R", system.file("R", package = "collanalysis"))
  made_of <- c(
    list.files(code, full.names = TRUE), own_file(study), list.files(study$folder, full.names = TRUE, recursive = TRUE)
  )
  cache <- file.path(dirname(study$folder), ".pages")
  dir.create(cache, showWarnings = FALSE)
  kept <- file.path(cache, paste0(rlang::hash(list(study, tools::md5sum(made_of))), ".rds"))
  if (file.exists(kept)) {
    Sys.setFileTime(kept, Sys.time())
    return(readRDS(kept))
  }
  lines <- utils::capture.output(problems <- show_chapter(study))
  files <- list.files(file.path("figures", study$id), full.names = TRUE)
  floats <- grep("^::: [{]#(fig|tbl)-", lines, value = TRUE)
  chapter <- list(
    problems = problems, text = paste(lines, collapse = "\n"), shown = sub("^::: [{]#(.*)[}]$", "\\1", floats),
    files = lapply(setNames(nm = files), function(file) readBin(file, "raw", file.size(file)))
  )
  temporary <- paste0(kept, Sys.getpid())
  saveRDS(chapter, temporary, compress = FALSE)
  file.rename(temporary, kept)
  chapter
}

#' @return What the study's own text refers to and is missing.
show_chapter <- function(study) {
  # The functions that the study's own text calls note here what it shows and what is missing; knitr only returns text.
  study$own <- new.env()
  own <- if (has_results(study)) read_own(own_file(study))
  if (!is.null(own)) {
    show_title(study)
    study$headed <- TRUE
    show_own(study, own)
  }
  if (!isFALSE(own$generated)) show_generated(study)
  study$own$problems
}

#' The generated chapter: the question, the answer, how it was measured, the parts and the tuning.
show_generated <- function(study) {
  if (!has_results(study)) return(show_no_results(study))
  show_chapter_head(study)
  chapter <- study$about$chapter %or% "collectives"
  if (chapter != "atlas") show_how_measured(study)
  if (!is.null(study$silent)) {
    return(paragraph("The latencies are in ", code(file.path(study$name, "measurements.csv")), "."))
  }
  if (chapter == "tuning") return(show_tuning(study))
  show_parts(study)
  if (chapter == "program") return(show_trial(study))
  show_tuned(study)
}

#' The heading of a chapter, and the warning that its numbers are simulated.
show_title <- function(study) {
  emit("# ", md(study_title(study)), " {#sec-", study$id, "}")
  warning <- said_in(study, "simulated")
  if (length(warning)) callout("important", "Simulated numbers", warning)
}

show_no_results <- function(study) {
  show_title(study)
  lacking <- if (is.null(study$about)) "study.json" else "measurements.csv"
  callout("warning", "No results yet", c(
    paste0("The study ", code(study$name), " has no ", code(lacking), " in its results folder."),
    paste0("Run ", code(paste("./study run", study$name)), ".")
  ))
  if (is.null(study$about)) return(invisible(NULL))
  show_study_question(study)
  show_grid(study)
}

show_study_question <- function(study) {
  emit("::: {.question}")
  paragraph(md(study$about$question %or% ""))
  emit(":::")
}

#' The heading (unless the study's own text has it already), the question and the answer.
show_chapter_head <- function(study) {
  if (!isTRUE(study$headed)) show_title(study)
  show_study_question(study)
  show_study_answer(study)
}

#' The answer of the study: its sentences, and the table with their numbers.
show_study_answer <- function(study) {
  if (!is.null(study$silent)) return(paragraph(md(study$silent)))
  found <- prose(without_title(study, text_of(study, "answer")))
  if (length(found) == 1) paragraph(found)
  if (length(found) > 1) emit(paste0("- ", found, collapse = "\n"))
  row <- study$answer
  table <- if (nrow(row) > 0) read_table(file.path(study$folder, row$file))
  if (NROW(table) == 0) return(invisible(NULL))
  table <- table[c(
    "collective", "mapping", "cells", "default_best_pct", "slower", "default_geometric_mean_pct", "default_p90_pct",
    "best_single", "best_single_geometric_mean_pct"
  )]
  table$collective <- vapply(as.character(table$collective), heading_of, "")
  emit_table(label_of("tbl", study, "answer"), table, caption_of(study, row$caption))
}

#' Sentences without the study's title at their beginning, for places that already show the title; `begin` changes their
#' first letter.
without_title <- function(study, text, begin = collanalysis::capitalised) {
  text <- as.character(text)
  titled <- startsWith(text, study_title(study))
  rest <- sub("^( [(]simulated[)])?[,:] *", "", substring(text, nchar(study_title(study)) + 1))
  ifelse(titled, begin(rest), text)
}

show_how_measured <- function(study) {
  emit("## How it was ", if (study$simulated) "simulated" else "measured", " {#sec-", study$id, "_how}")
  paragraph(paste(said_in(study, "how"), collapse = " "))
  if (length(study$about$applications)) {
    emit_table(label_of("tbl", study, "applications"), application_table(study), "The applications.", raw = "command")
    for (lost in said_in(study, "left-out")) callout("warning", "An application is left out", lost)
  } else if (!length(study$about$program)) {
    show_grid(study)
  }
  show_status(study)
}

show_grid <- function(study) {
  emit_table(
    label_of("tbl", study, "grid"), grid_table(study), "Algorithms, mappings, process counts and message sizes of the study.",
    algorithm_labels(study)
  )
}

application_table <- function(study) {
  do.call(rbind, lapply(study$about$applications, function(application) {
    data.frame(
      application = application$label, ranks = application$ranks, description = application$description,
      command = code(gsub("{apps}/", "", application$command, fixed = TRUE))
    )
  }))
}

grid_table <- function(study) {
  rows <- lapply(collectives_shown(study), function(name) {
    c <- study$about$collectives[[name]]
    data.frame(
      collective = heading_of(name),
      algorithms = paste(vapply(c$algorithms, function(a) a$label %or% a$name, ""), collapse = ", "),
      mappings = paste(unlist(c$mappings), collapse = ", "), processes = values_text(unlist(c$processes)),
      message_sizes = values_text(unlist(c$sizes), size_words)
    )
  })
  do.call(rbind, rows)
}

values_text <- function(values, text = with_separators) {
  values <- sort(unique(as.numeric(values)))
  if (length(values) == 0) return("none")
  if (length(values) <= 4) return(paste(text(values), collapse = ", "))
  paste0(text(values[1]), " to ", text(values[length(values)]), " (", length(values), " values)")
}

#' Counts in full, such as "1,024".
with_separators <- function(counts) vapply(counts, format, "", big.mark = ",", scientific = FALSE)

show_status <- function(study) {
  if (is.null(study$cells)) {
    lost <- paste0("The file ", code("cells.csv"), " is missing, so grid cells without a number cannot be listed.")
    callout("warning", "No list of cells", lost)
  }
  lacking <- function(section, kind, title) {
    found <- said_in(study, section)
    if (length(found)) callout(kind, title, paste0(found, " @sec-cells lists them with their reasons."))
  }
  paragraph(said_in(study, "status"))
  lacking("not-imported", "note", "Grid cells that the data lack")
  lacking("lacking", "warning", "Grid cells without a number")
}
