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
#' @return List: `text` (markdown), `files` (raw content by path), `shown` (labels of its figures and tables), and what
#'   show_chapter() returns.
recall_chapter <- function(study) {
  code <- c("R", "chapters", system.file("R", package = "collanalysis"))
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
  lines <- utils::capture.output(found <- show_chapter(study))
  files <- list.files(file.path("figures", study$id), full.names = TRUE)
  floats <- grep("^::: [{]#(fig|tbl)-", lines, value = TRUE)
  chapter <- c(found, list(
    text = paste(lines, collapse = "\n"), shown = sub("^::: [{]#(.*)[}]$", "\\1", floats),
    files = lapply(setNames(nm = files), function(file) readBin(file, "raw", file.size(file)))
  ))
  temporary <- paste0(kept, Sys.getpid())
  saveRDS(chapter, temporary, compress = FALSE)
  file.rename(temporary, kept)
  chapter
}

#' @return List: `bare` (TRUE: without a generated chapter), `problems` (what the study's own text refers to and is missing).
show_chapter <- function(study) {
  template <- if (!has_results(study)) "missing" else if (!is.null(study$silent)) "silent" else
    study$about$chapter %or% "collectives"
  path <- file.path("chapters", paste0(template, ".qmd"))
  if (!file.exists(path)) stop(sprintf("study %s asks for chapter template %s, which does not exist", study$name, path))
  # The functions that the study's own text calls note here what it shows and what is missing; knitr only returns text.
  study$own <- new.env()
  own <- if (template != "missing") read_own(own_file(study))
  if (!is.null(own)) {
    emit("# ", md(study_title(study)), " {#sec-", study$id, "}")
    study$headed <- TRUE
    if (study$simulated) show_simulated(study)
    show_own(study, own)
  }
  if (!isFALSE(own$generated)) {
    environment <- new.env(parent = globalenv())
    environment$study <- study
    cat(knitr::knit_child(path, envir = environment, quiet = TRUE), sep = "\n")
  }
  list(bare = template == "silent" || isFALSE(own$generated), problems = study$own$problems)
}

show_no_results <- function(study) {
  emit("# ", md(study_title(study)), " {#sec-", study$id, "}")
  lacking <- if (is.null(study$about)) "study.json" else "measurements.csv"
  callout("warning", "No results yet", c(
    paste0("The study ", code(study$name), " has no ", code(lacking), " in its results folder."),
    paste0("Run ", code(paste("./study run", study$name)), ".")
  ))
  if (is.null(study$about)) return(invisible(NULL))
  show_study_question(study)
  emit_table(paste0("tbl-", study$id, "-grid"), grid_table(study), "Algorithms, mappings, process counts and message sizes of the study.")
}

show_study_question <- function(study) {
  emit("::: {.question}")
  paragraph(md(study$about$question %or% ""))
  emit(":::")
}

show_simulated <- function(study) {
  how <- study$about$provenance
  callout("important", "Simulated numbers", paste0(
    "Every number of this study was computed by ", md(with_version(how$simulator, how$simulator_version)),
    " from a description of the machine; none was measured. Measurements shown for comparison are labelled as such."
  ))
}

#' The heading (unless the study's own text has it already), the question and the answer.
show_chapter_head <- function(study) {
  if (!isTRUE(study$headed)) {
    emit("# ", md(study_title(study)), " {#sec-", study$id, "}")
    if (study$simulated) show_simulated(study)
  }
  show_study_question(study)
  show_study_answer(study)
}

#' The answer of the study: its sentences, and the table with their numbers.
show_study_answer <- function(study) {
  if (!is.null(study$silent)) return(paragraph(md(study$silent)))
  found <- study$sentences$text[study$sentences$section %in% "answer"]
  found <- without_title(study, found)
  if (length(found) == 1) paragraph(md(found))
  if (length(found) > 1) emit(paste0("- ", md(found), collapse = "\n"))
  if (NROW(study$answer) == 0) return(invisible(NULL))
  table <- study$answer[c(
    "collective", "mapping", "cells", "default_best_pct", "slower", "default_geometric_mean_pct", "default_p90_pct",
    "best_single", "best_single_geometric_mean_pct"
  )]
  table$collective <- vapply(as.character(table$collective), collective_title, "")
  emit_table(label_of("tbl", study, "answer"), table, caption_of(study, paste(
    "How often the library's default is the fastest algorithm or tied with it, and its regret: slow-down against the fastest",
    "algorithm of the cell. Best single algorithm: the one with the smallest regret if it were used in every cell."
  )))
}

#' Sentences without the study's title at their beginning, for places that already show the title.
without_title <- function(study, text) {
  text <- as.character(text)
  titled <- startsWith(text, study_title(study))
  rest <- sub("^( [(]simulated[)])?[,:] *", "", substring(text, nchar(study_title(study)) + 1))
  ifelse(titled, collanalysis::capitalised(rest), text)
}

show_how_measured <- function(study) {
  emit("## How it was ", if (study$simulated) "simulated" else "measured", " {#sec-", study$id, "-how}")
  paragraph(measured_sentences(study))
  emit_table(paste0("tbl-", study$id, "-grid"), grid_table(study), "Algorithms, mappings, process counts and message sizes of the study.", algorithm_labels(study))
  show_status(study)
}

measured_sentences <- function(study) {
  how <- study$about$provenance
  suite <- md(with_version(how$suite, how$suite_version))
  mpi <- md(with_version(how$mpi, how$mpi_version))
  machine <- machine_text(study$about$machine)
  first <- if (study$simulated) {
    paste0("Simulated with ", md(with_version(how$simulator, how$simulator_version)), ", running ", suite, ".")
  } else if (identical(study$about$machine$kind, "imported")) {
    paste0("Existing measurements, read from files: ", suite, " with ", mpi, ".")
  } else {
    paste0("Measured with ", suite, " and ", mpi, ".")
  }
  sentences <- c(first, paste0("Machine: ", machine, "."), repeat_sentence(study), import_sentence(study$about$import))
  paste(sentences, collapse = " ")
}

#' "Two THIN nodes of ORFEO (2 nodes x 2 sockets x 12 cores)"
machine_text <- function(machine) {
  levels <- vapply(machine$levels %or% list(), function(l) count_of(l$count %or% 1, collanalysis::level_word(l$name)), "")
  label <- md(machine$label %or% machine$name %or% "not named")
  if (length(levels)) paste0(label, " (", md(paste(levels, collapse = " \u00d7 ")), ")") else label
}

repeat_sentence <- function(study) {
  how <- study$about$provenance
  if (is.null(how$iterations)) return(NULL)
  loop <- paste0(
    "the mean over the ranks of each rank's mean over ", range_words(how$iterations, "iteration"), ", after ",
    range_words(how$warmup %or% 0, "warm-up iteration")
  )
  if (study$simulated) {
    return(paste0(
      "A latency is ", loop, ". ", barrier_sentence(unlist(how$barriers)),
      "The simulation is deterministic, so each grid cell is launched once."
    ))
  }
  launches <- unlist(how$launches %or% 1)
  paste0("The result of a launch is ", loop, "; a latency is the median over ", range_words(launches, "launch", "launches"), ".",
         stop_sentence(study))
}

#' Sentence on the barrier between calls, if it is not the library's default, because its exit skew biases the latency.
barrier_sentence <- function(barriers) {
  if (length(barriers) == 0) return(NULL)
  paste0(
    "The barrier between the calls is ", paste(gsub("_", " ", barriers), collapse = " or "), ", not the library's default",
    if ("aligned" %in% barriers) ": all ranks start each call at the same instant", ". "
  )
}

#' "1 iteration", "100 to 1,000 iterations"
range_words <- function(values, ...) {
  values <- range(as.numeric(unlist(values)))
  last <- count_of(values[2], ...)
  if (values[1] == values[2]) last else paste(format(values[1], big.mark = ",", trim = TRUE), "to", last)
}

#' Sentence on the rules that ended the launches of the cells.
stop_sentence <- function(study) {
  stops <- table(study$cells$stop)
  width <- study$about$provenance$ci_width_pct
  if (length(stops) == 0 || is.null(width)) return("")
  words <- c(
    narrow = paste0("because the 95\\ % interval of the median was narrower than ", width, "\\ %"),
    limit = "at the maximum number of launches"
  )
  known <- intersect(names(words), names(stops))
  if (length(known) == 0) return("")
  paste0(" Launching stopped ", collanalysis::and_list(
    paste0(words[known], " in ", vapply(stops[known], count_of, "", "grid cell"))
  ), ".")
}

#' Sentences with the counts of the import, so that nothing is dropped silently.
import_sentence <- function(import) {
  if (length(import) == 0) return(NULL)
  counts <- Filter(function(x) is.numeric(x) && length(x) == 1, import)
  names(counts) <- gsub("_", " ", names(counts))
  counts <- c(counts, import$problems) # whose names are sentences with paths
  if (length(counts) == 0) return(NULL)
  counts <- counts[counts > 0]
  words <- paste(vapply(counts, format, "", big.mark = ","), md(names(counts)))
  left_out <- vapply(import$left_out %or% list(), function(entry) {
    paste0(" Left out by the study: ", format(entry$rows, big.mark = ","), " rows (", md(entry$reason), ").")
  }, "")
  sources <- unlist(import$sources)
  paste0(
    "Import: ", collanalysis::and_list(words), ".",
    if (length(sources) > 1) paste0(" Measured by ", collanalysis::and_list(md(sources)), "; the value of each author counts as one launch."),
    if (length(import$statistics)) paste0(" A latency is ", collanalysis::and_list(statistic_words[unlist(import$statistics)]), "."),
    paste(left_out, collapse = "")
  )
}

#' The values of the column `statistic` in words.
statistic_words <- c(
  mean_over_ranks = "the mean over the ranks of each rank's mean over iterations",
  mean_over_ranks_median = "the mean over the ranks, median over the calls of a launch",
  slowest_rank = "the time of the slowest rank, mean over iterations",
  slowest_rank_median = "the time of the slowest rank, median over the calls of a launch"
)

grid_table <- function(study) {
  rows <- lapply(collectives_shown(study), function(name) {
    c <- study$about$collectives[[name]]
    data.frame(
      collective = collective_title(name),
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
  cells <- study$cells
  if (is.null(cells)) {
    lost <- paste0("The file ", code("cells.csv"), " is missing, so grid cells without a number cannot be listed.")
    callout("warning", "No list of cells", lost)
    return(invisible(NULL))
  }
  bad <- cells[cells$status != "measured", ]
  traces <- sum(cells$algorithm %in% "traced")
  if (nrow(bad) == 0 && traces > 0) {
    replays <- nrow(cells) - traces
    done <- if (traces == 1) "The trace was measured" else paste("All", traces, "traces were measured")
    return(paragraph(done, if (replays) paste(" and", if (replays == 1) "its replay" else paste("all", replays, "replays"), "simulated"), "."))
  }
  if (nrow(bad) == 0) {
    done <- if (study$simulated) "simulated" else "measured"
    if (nrow(cells) == 1) return(paragraph("The study has one grid cell; it was ", done, "."))
    return(paragraph("All ", with_separators(nrow(cells)), " grid cells of the study were ", done, "."))
  }
  counts <- table(bad$status)
  if (identical(study$about$machine$kind, "imported") && identical(names(counts), "missing")) {
    return(callout("note", "Grid cells that the data lack", paste0(
      with_separators(nrow(bad)), " of ", with_separators(nrow(cells)), " grid cells ", if (nrow(bad) == 1) "is" else "are",
      " not in the imported data, or only at some sizes. @sec-cells lists them."
    )))
  }
  words <- status_word(names(counts))
  callout("warning", "Grid cells without a number", paste0(
    with_separators(nrow(bad)), " of ", with_separators(nrow(cells)), " grid cells ", if (nrow(bad) == 1) "has" else "have",
    " no usable number, or none at some sizes",
    if (length(counts) == 1) paste0(" (", words, ")") else paste0(": ", collanalysis::and_list(paste(with_separators(counts), words))),
    ". @sec-cells lists them with their reasons."
  ))
}
