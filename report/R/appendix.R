# The appendix: how to check the report.

show_provenance <- function(report) {
  system <- Sys.info()
  tool <- report$renderer
  facts <- c(
    "Rendered on" = report$date, "Rendered by" = collanalysis::with_version(tool$name, tool$version), "pandoc" = tool$pandoc,
    "typst" = tool$typst, "R" = as.character(getRversion()), "knitr" = as.character(utils::packageVersion("knitr")),
    "collanalysis" = tryCatch(as.character(utils::packageVersion("collanalysis")), error = function(e) "not installed"),
    "Python" = report$python, "This project" = report$revision, "Operating system" = system_name(),
    "Kernel" = paste(system[["sysname"]], system[["release"]], system[["machine"]]), "Processor" = processor_name(),
    "Command" = report$command
  )
  facts <- facts[nzchar(facts)]
  made <- data.frame(part = names(facts), version = unname(facts))
  emit_table("tbl-provenance", made, "Software and machine that rendered this report.")
  rows <- do.call(rbind, lapply(Filter(has_results, report$studies), function(study) {
    how <- study$about$provenance
    data.frame(
      study = study$name, machine = study$about$machine$label %or% "", kind = study$about$machine$kind %or% "",
      suite = collanalysis::with_version(how$suite, how$suite_version), mpi = collanalysis::with_version(how$mpi, how$mpi_version),
      simulator = if (study$simulated) collanalysis::with_version(how$simulator, how$simulator_version) else "none",
      command = code(paste("./study run", study$name))
    )
  }))
  if (is.null(rows)) return(invisible(NULL))
  many <- nrow(rows) > paper_rows
  screen_only(many, emit_table(
    "tbl-provenance-studies", rows, "Benchmark suite, MPI library and command of each study.", raw = "command"
  ))
  if (many) paper_only(paragraph("Each chapter names its benchmark suite and MPI library; the HTML pages list them with the commands."))
}

system_name <- function() {
  lines <- tryCatch(readLines("/etc/os-release", warn = FALSE), error = function(e) "")
  gsub("PRETTY_NAME=|\"", "", paste(grep("^PRETTY_NAME=", lines, value = TRUE), collapse = ""))
}

processor_name <- function() {
  lines <- tryCatch(readLines("/proc/cpuinfo", warn = FALSE), error = function(e) character())
  name <- sub(".*: *", "", grep("^model name", lines, value = TRUE))
  if (length(name)) paste0(name[1], " (", length(name), " logical processor", if (length(name) > 1) "s", ")") else ""
}

show_claims <- function(studies) {
  rows <- do.call(rbind, lapply(Filter(has_results, studies), claims_of))
  if (NROW(rows) == 0) return(paragraph("This report makes no claims, because no study has results."))
  caption <- "Each sentence that states a result (claim), the figures and tables that show it, and the command that reproduces it."
  screen_only(TRUE, emit_table("tbl-claims", rows, caption, raw = names(rows), whole = 300))
  paper_only(paragraph(
    "The HTML pages of this report list ", collanalysis::count_of(nrow(rows), "claim"), ", each with the figure that shows it and the command that reproduces it."
  ))
}

#' The claims of a study, with references to the figures and tables that show them, or to the chapter where it shows none.
claims_of <- function(study) {
  said <- study$sentences[study$sentences$claim %in% TRUE, ]
  said <- said[!duplicated(said$text), ]
  if (nrow(said) == 0) return(NULL)
  shown <- vapply(strsplit(as.character(said$shown_in), ";", fixed = TRUE), function(files) {
    found <- intersect(float_of(study, files[!is.na(files)]), study$chapter$shown)
    paste0("@", if (length(found)) found else paste0("sec-", study$id), collapse = ", ")
  }, "")
  data.frame(claim = prose(said$text), shown_in = shown, command = code(paste("./study run", study$name)))
}

show_cells <- function(studies) {
  cells <- do.call(rbind, lapply(studies, function(s) s$cells[cell_columns]))
  if (is.null(cells)) return(paragraph("No study has grid cells yet."))
  statuses <- c("measured", "failed", "unproved", "missing")
  counts <- as.data.frame.matrix(table(cells$study, factor(cells$status, union(statuses, unique(cells$status)))))
  screen_only(nrow(counts) > paper_rows, emit_table("tbl-cells", cbind(study = rownames(counts), counts), paste(
    "Number of grid cells by status; simulated and imported ones count as measured. A grid cell is one algorithm, mapping",
    "and number of processes, with all message sizes."
  )))
  if (nrow(counts) > paper_rows) {
    totals <- colSums(counts)
    paper_only(paragraph("The studies have ", collanalysis::and_list(paste(
      format(totals, big.mark = ",", trim = TRUE), ifelse(names(totals) == "unproved", "not verified", names(totals))
    )), " grid cells (algorithm, mapping and number of processes; simulated and imported ones count as measured); the HTML ",
      "pages list them by study."))
  }
  bad <- cells[cells$status != "measured", ]
  if (nrow(bad) == 0) return(paragraph("Every grid cell was measured or simulated at every size."))
  groups <- group_cells(bad)
  if (nrow(groups) > paper_rows) {
    paper_only(paragraph(
      "Grid cells without a usable number at some or all sizes: ", format(nrow(bad), big.mark = ","), "; the HTML pages list them with their reasons."
    ))
  }
  screen_only(nrow(groups) > paper_rows, emit_table("tbl-cells-without", groups, paste(
    "Grid cells without a usable number at some or all sizes, and the reason. One row covers all process counts with the",
    "same reason; each study's", code("cells.csv"), "has a row for each."
  ), labels = do.call(c, lapply(studies, algorithm_labels)), whole = 300))
}

cell_columns <- c("study", "collective", "algorithm", "mapping", "processes", "status", "reason")

#' 2, 4, 5, 6 -> "2, 4 to 6"
runs <- function(numbers) {
  numbers <- sort(unique(numbers))
  groups <- split(numbers, cumsum(c(TRUE, diff(numbers) != 1)))
  words <- function(run) {
    text <- with_separators(run)
    if (length(run) > 2) paste(text[1], "to", text[length(text)]) else toString(text)
  }
  paste(vapply(groups, words, ""), collapse = ", ")
}

#' One row for all cells that differ only in their number of processes.
group_cells <- function(cells) {
  cells$reason[is.na(cells$reason)] <- ""
  key <- do.call(paste, c(cells[setdiff(cell_columns, "processes")], sep = "\r"))
  cells$status <- status_word(cells$status)
  rows <- lapply(split(cells, factor(key, unique(key))), function(same) {
    row <- same[1, cell_columns]
    row$processes <- runs(same$processes)
    cbind(row, cells = nrow(same))
  })
  do.call(rbind, unname(rows))
}

show_files <- function(report) {
  rows <- do.call(rbind, lapply(report$studies, function(study) {
    files <- list.files(study$folder, recursive = TRUE)
    if (length(files) == 0) return(NULL)
    kilobytes <- file.size(file.path(study$folder, files)) / 1000
    data.frame(file = code(file.path(report$results_label, study$name, files)), size = kilobytes)
  }))
  if (is.null(rows)) return(paragraph("There are no files yet."))
  headers <- c("File", "Size (kB)")
  screen_only(TRUE, emit_table("tbl-files", rows, "Every file of the studies.", raw = "file", headers = headers, whole = 2000))
  paper_only(paragraph("The studies have ", collanalysis::count_of(nrow(rows), "file"), " in ", code(report$results_label), "; the HTML pages list them."))
  stored <- length(list.files(file.path(report$results, "cells"), "[.]json$", recursive = TRUE))
  if (stored == 0) return(invisible(NULL))
  paragraph(
    "In addition, ", code(file.path(report$results_label, "cells")), " has ", collanalysis::count_of(stored, "file"), ", one for ",
    "each grid cell that was launched there, also of other studies: its definition, and every launch with its command, environment, ",
    "versions and numbers."
  )
}

#' The last section of the report: what it could not show.
show_problems <- function(studies) {
  problems <- unique(unlist(c(
    lapply(studies, function(study) study$problems), lapply(studies, function(study) study$chapter$problems)
  )))
  if (length(problems) == 0) {
    screen_only(TRUE, paragraph("Every figure, table and sentence of the results is in this report."))
    return(paper_only(paragraph("Every figure, table and sentence of the results is in the HTML pages of this report.")))
  }
  callout("warning", "Left out of this report", paste0("- ", md(problems), collapse = "\n"))
}

show_session <- function() {
  text <- utils::capture.output(print(utils::sessionInfo(), locale = FALSE))
  screen_only(TRUE, emit("```{.session}\n", paste(text, collapse = "\n"), "\n```"))
  paper_only(paragraph(md(text[1]), "; the HTML pages list the packages."))
}
