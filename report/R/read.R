# Reading of a study's results for the report (docs/files.md). Values are passed on; there are no globals.

# Missing values in JSON may be empty lists or texts.
`%or%` <- function(x, y) if (is.null(x) || length(x) == 0) y else x

#' The report: the content of report.json (from publish/building.py), the folder in which it is built, and its studies.
read_report <- function() {
  report <- jsonlite::fromJSON("report.json", simplifyVector = TRUE)
  # knitr changes the folder while it knits a chapter; files that we make belong beside index.qmd.
  report$build <- getwd()
  studies <- lapply(report$studies, function(name) read_shown(report, name))
  ready <- Filter(has_results, studies)
  if (length(ready) > 0) {
    report$front <- read_front(report$results)
    if (!setequal(report$front$studies$study, names_of(ready))) {
      first <- paste(c("python -m collstudy front", report$studies), collapse = " ")
      stop(report$results_label, "/front is not the front page of these studies; first: ", first)
    }
  }
  # Most informative first; those without results last, in the order in which they were selected.
  report$studies <- lapply(studies[order(match(names_of(studies), report$front$studies$study))], function(study) {
    row <- front_row(report, study)
    if (isTRUE(row$silent)) study$silent <- row$finding
    study
  })
  report
}

names_of <- function(studies) vapply(studies, function(study) study$name, "")

#' The front page: its `sentences`, its `table`, and what it says of each of the `studies`.
read_front <- function(results) {
  # Names of studies may look like numbers.
  read <- function(name) read_table(file.path(results, "front", paste0(name, ".csv")), colClasses = c(study = "character"))
  list(sentences = read_index(results, "front/text.csv", sentence_columns), table = read("table"), studies = read("studies"))
}

#' What the front page says of a study; no row where the study has no results.
front_row <- function(report, study) report$front$studies[report$front$studies$study %in% study$name, ]

#' A CSV file as a data frame of texts and numbers, or NULL when there is none or it cannot be read.
#' @param ... Further arguments of read.csv().
read_table <- function(path, ...) {
  if (!file.exists(path) || file.size(path) == 0) return(NULL)
  table <- tryCatch(
    utils::read.csv(path, check.names = FALSE, stringsAsFactors = FALSE, na.strings = c("NA", ""), encoding = "UTF-8", ...),
    error = function(e) NULL
  )
  if (is.null(table) || ncol(table) == 0) NULL else table
}

#' One study: its study.json (NULL when there is none yet), cells, sentences, the indexes of its figures and tables, and
#' those of them that cannot be shown (`problems`), so that nothing disappears silently.
read_shown <- function(report, name) {
  folder <- file.path(report$results, name)
  json <- file.path(folder, "study.json")
  about <- if (file.exists(json)) tryCatch(jsonlite::fromJSON(json, simplifyVector = FALSE), error = identity)
  broken <- if (inherits(about, "error")) sprintf("%s/study.json cannot be read: %s", name, conditionMessage(about))
  if (!is.null(broken)) about <- NULL
  tables <- rbind(
    read_index(folder, "tables/index.csv", table_columns), read_index(folder, "models/index.csv", table_columns)
  )
  # A table without rows is not shown; the sentences say why there is none.
  rows <- lapply(file.path(folder, tables$file), read_table)
  empty <- vapply(rows, function(table) !is.null(table) && nrow(table) == 0, TRUE)
  tables <- tables[!empty, ]
  answer <- tables$section %in% "answer"
  study <- list(
    name = name, id = collanalysis::chapter_id(name), folder = folder, build = report$build, about = about,
    simulated = isTRUE(about$simulated), cells = read_table(file.path(folder, "cells.csv")),
    figures = read_index(folder, "figures/index.csv", figure_columns), tables = tables[!answer, ],
    tuning = read_index(folder, "tuning/index.csv", figure_columns),
    answer = tables[tables$id %in% "answer", ],
    sentences = rbind(
      read_index(folder, "sentences.csv", sentence_columns), read_index(folder, "tuning/sentences.csv", sentence_columns)
    )
  )
  study$problems <- c(broken, problems_of(study))
  study
}

figure_columns <- c("id", "section", "file", "title", "caption", "width_in", "height_in", "interactive")
table_columns <- c("id", "section", "file", "caption")
sentence_columns <- c("section", "order", "text", "claim", "shown_in")

#' The sentences of a section, in order.
text_of <- function(study, section) study$sentences$text[study$sentences$section %in% section]

#' The sentences of a section as markdown.
said_in <- function(study, section) prose(text_of(study, section))

read_index <- function(folder, file, columns) {
  index <- read_table(file.path(folder, file))
  if (is.null(index)) index <- data.frame(section = character())
  for (column in setdiff(columns, names(index))) index[[column]] <- rep(NA, nrow(index))
  for (column in intersect(columns, c("id", "file"))) index[[column]] <- as.character(index[[column]])
  index[columns]
}

#' Files that an index names and that are missing, empty, or cannot be read.
problems_of <- function(study) {
  shown <- function(files) file.path(study$name, files)
  lost <- study$figures$file[!is_there(study, study$figures$file)]
  unread <- Filter(function(file) is.null(read_table(file.path(study$folder, file))), study$tables$file)
  c(sprintf("figure %s is missing", shown(lost)), sprintf("table %s is missing or empty", shown(unlist(unread))))
}

is_there <- function(study, files) {
  paths <- file.path(study$folder, files)
  file.exists(paths) & !is.na(file.size(paths)) & file.size(paths) > 0
}

study_title <- function(study) one_line(study$about$title %or% study$name)

#' TRUE if the study has measurements; its description is written before.
has_results <- function(study) !is.null(study$about) && file.exists(file.path(study$folder, "measurements.csv"))
