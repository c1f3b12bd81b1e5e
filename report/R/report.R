# What the .qmd files call. Everything here turns files of results/ (see docs/architecture.md) into markdown that Quarto
# and plain pandoc understand alike. Numbers are computed in the package collanalysis, never here.

`%||%` <- function(x, y) if (is.null(x) || length(x) == 0) y else x

report <- new.env()
report$claims <- list()
report$problems <- character()
report$labels <- character()
report$read <- list()

# Reading

read_report_facts <- function() {
  facts <- jsonlite::fromJSON("report.json", simplifyVector = TRUE)
  list2env(facts, report)
  # knitr changes the folder while it knits a chapter; files that we make belong beside index.qmd.
  report$build <- getwd()
  invisible(facts)
}

#' A CSV file as a data frame of texts and numbers, or NULL when there is none or it cannot be read.
read_table <- function(path) {
  if (!file.exists(path) || file.size(path) == 0) return(NULL)
  table <- tryCatch(
    utils::read.csv(path, check.names = FALSE, stringsAsFactors = FALSE, na.strings = c("NA", ""), encoding = "UTF-8"),
    error = function(e) {
      note_problem(sprintf("%s cannot be read: %s", basename(path), conditionMessage(e)))
      NULL
    }
  )
  if (is.null(table) || ncol(table) == 0) NULL else table
}

#' What cannot be shown is collected and listed in the appendix, so that nothing disappears silently.
note_problem <- function(text) {
  report$problems <- c(report$problems, text)
  invisible(NULL)
}

slug <- function(x) gsub("(^-|-$)", "", gsub("[^a-z0-9]+", "-", tolower(x)))

#' One study: its study.json (NULL when there is none yet), cells and the indexes of its figures and tables.
read_study <- function(name) {
  folder <- file.path(report$results, name)
  json <- file.path(folder, "study.json")
  about <- if (file.exists(json)) {
    tryCatch(
      jsonlite::fromJSON(json, simplifyVector = FALSE),
      error = function(e) note_problem(sprintf("%s/study.json cannot be read: %s", name, conditionMessage(e)))
    )
  }
  list(
    name = name, id = slug(name), folder = folder, about = about, simulated = isTRUE(about$simulated),
    cells = read_table(file.path(folder, "cells.csv")),
    figures = read_index(folder, "figures", figure_columns),
    tables = rbind(read_tables_index(folder, "tables"), read_tables_index(folder, "models"))
  )
}

figure_columns <- c("id", "file", "title", "caption", "seed_figure", "width_in", "height_in")

read_tables_index <- function(folder, kind) {
  columns <- c("id", "file", "caption", "seed_table")
  read_index(folder, kind, columns)[columns]
}

read_index <- function(folder, kind, columns) {
  index <- read_table(file.path(folder, kind, "index.csv"))
  if (is.null(index)) index <- data.frame(id = character())
  for (column in setdiff(columns, names(index))) index[[column]] <- rep(NA, nrow(index))
  index$file <- as.character(index$file)
  index$id <- as.character(index$id)
  index
}

study_title <- function(study) one_line(study$about$title %||% study$name)

#' Whether there is anything to show: the description alone is written before anything is measured.
has_results <- function(study) !is.null(study$about) && file.exists(file.path(study$folder, "measurements.csv"))

# Markdown

one_line <- function(x) trimws(gsub("[[:space:]]+", " ", enc2utf8(as.character(x))))

#' Text as markdown that means exactly that text: no character of a title can become markup, a reference or a shortcode.
md <- function(x) {
  x <- ifelse(is.na(x), "", one_line(x))
  # A number and its unit stay together.
  x <- gsub("([0-9]) (%|\u00b5s|B|KiB|MiB|GiB)\\b|([0-9]) (%)", "\\1\\3\u00a0\\2\\4", x, perl = TRUE)
  gsub("([][\\\\`*_{}()<>#+.!|~$@^&%=:-])", "\\\\\\1", x)
}

#' Text for the body of a raw HTML block.
html_text <- function(x) {
  x <- gsub("&", "&amp;", one_line(x), fixed = TRUE)
  x <- gsub("<", "&lt;", x, fixed = TRUE)
  x <- gsub(">", "&gt;", x, fixed = TRUE)
  gsub("\"", "&quot;", x, fixed = TRUE)
}

code <- function(x) {
  x <- one_line(x)
  fence <- ifelse(grepl("`", x, fixed = TRUE), "``", "`")
  ifelse(nzchar(x), paste0(fence, gsub("|", "\\|", x, fixed = TRUE), fence), "")
}

emit <- function(...) cat(..., "\n\n", sep = "")

paragraph <- function(...) emit(paste0(..., collapse = ""))

callout <- function(kind, title, body, collapse = FALSE) {
  emit("::: {.callout-", kind, " title=\"", title, "\"", if (collapse) " collapse=\"true\"", "}")
  emit(paste(body, collapse = "\n\n"))
  emit(":::")
}

and_list <- function(x) {
  x <- as.character(x)
  if (length(x) < 2) return(paste(x))
  paste(paste(x[-length(x)], collapse = ", "), "and", x[length(x)])
}

count_of <- function(n, singular, plural = paste0(singular, "s")) {
  paste(format(n, big.mark = ",", trim = TRUE), if (n == 1) singular else plural)
}

# Numbers

human_size <- function(bytes) {
  one <- function(b) {
    if (is.na(b)) return("")
    unit <- if (b >= 2^20) 2^20 else if (b >= 1024) 1024 else 1
    paste(format(round(b / unit, 2), trim = TRUE), c("B", "KiB", "MiB")[match(unit, c(1, 1024, 2^20))])
  }
  vapply(suppressWarnings(as.numeric(bytes)), one, "")
}

#' Decimals that keep about three digits of a typical value of the column, the same for the whole column.
decimals_of <- function(x, name) {
  x <- abs(x[is.finite(x) & x != 0])
  if (length(x) == 0 || all(x == round(x))) return(0)
  if (grepl("(mape|regret|best)_pct$", name)) return(1)
  if (grepl("_pct$", name)) return(2)
  if (grepl("^(coef|slope|r_squared|intercept)", name)) return(if (max(x) < 0.1) 4 else 3)
  if (max(x) >= 1e4) return(0)
  if (max(x) < 1) 3 else if (grepl("_us$", name) || max(x) >= 10) 2 else 3
}

format_number <- function(x, name) {
  text <- formatC(x, format = "f", digits = decimals_of(x, name), big.mark = ",")
  text <- sub("^-(0(\\.0+)?)$", "\\1", text)
  ifelse(is.na(x), "\u2013", sub("^-", "\u2212", text))
}

units <- c(us = "\u00b5s", pct = "%", bytes = "bytes", mb_s = "MB/s", gb_s = "GB/s", s = "s")

special_headers <- c(
  r_squared = "R\u00b2", coef_log_size = "Coefficient of log size", coef_processes = "Coefficient of processes",
  size_bytes = "Message size", n = "Matrix order", size_class = "Message size", process_class = "Processes",
  from_processes = "From (processes)", to_processes = "To (processes)",
  default_best_pct = "Default fastest or tied (%)", default_mean_regret_pct = "Its mean regret (%)",
  default_max_regret_pct = "Its largest regret (%)", best_single = "Best single algorithm",
  best_single_regret_pct = "Mean regret of that (%)"
)

#' "mean_difference_us" -> "Mean difference (µs)"
header_of <- function(name) {
  one <- function(n) {
    if (n %in% names(special_headers)) return(special_headers[[n]])
    unit <- ""
    for (suffix in names(units)) {
      if (grepl(paste0("._", suffix, "$"), n)) {
        unit <- paste0(" (", units[[suffix]], ")")
        n <- sub(paste0("_", suffix, "$"), "", n)
        break
      }
    }
    n <- gsub("\\bmpi\\b", "MPI", gsub("mape", "MAPE", gsub("_", " ", n)))
    paste0(toupper(substr(n, 1, 1)), substring(n, 2), unit)
  }
  vapply(name, one, "", USE.NAMES = FALSE)
}

# Tables

#' The names that readers should see for the algorithms of a study; a variant is known by its name and parameters.
algorithm_labels <- function(study) {
  labels <- character()
  for (collective in study$about$collectives) {
    for (algorithm in collective$algorithms) {
      parameters <- algorithm$parameters %||% ""
      label <- algorithm$label %||% algorithm$name
      labels[[if (nzchar(parameters)) paste0(algorithm$name, " [", parameters, "]") else algorithm$name]] <- label
    }
  }
  labels
}

#' "binary_tree;chain" -> "Binary tree, Chain", in a column that holds nothing but names of algorithms.
relabel <- function(values, labels) {
  parts <- strsplit(values, ";", fixed = TRUE)
  if (length(labels) == 0 || !all(unlist(parts) %in% names(labels))) return(values)
  vapply(parts, function(names) paste(labels[names], collapse = ", "), "")
}

format_cells <- function(table, headers, labels = character()) {
  for (name in names(table)) {
    column <- table[[name]]
    if (is.numeric(column)) {
      table[[name]] <- if (name == "size_bytes") human_size(column) else format_number(column, name)
    } else {
      table[[name]] <- md(format_words(column, name, labels))
    }
  }
  # Where a line of a page (of 110 letters) has room, short words of a column stay on one line; where it has not, typst
  # would print them over the next column.
  width <- vapply(table, function(column) max(0L, nchar(column)), 1L)
  if (sum(pmax(width, nchar(headers)) + 3) > 110) return(table)
  short <- width <= 20 & !grepl("_bytes$", names(table))
  table[short] <- lapply(table[short], gsub, pattern = " ", replacement = "\u00a0", fixed = TRUE)
  table
}

#' Names of the analysis as words: algorithms by their labels, TRUE as yes, terms without underscores.
format_words <- function(column, name, labels) {
  if (is.logical(column)) return(ifelse(column, "yes", "no"))
  column <- as.character(column)
  known <- !is.na(column)
  if (name == "model") column[known] <- relabel(column[known], model_labels())
  if (name %in% c("model", "term", "held_out")) column <- gsub("_", " ", column, fixed = TRUE)
  if (!name %in% c("mapping", "collective", "study")) column[known] <- relabel(column[known], labels)
  column
}

model_labels <- function() {
  known <- function(name) tryCatch(get(name, asNamespace("collanalysis")), error = function(e) character())
  c(known("model_words"), known("message_model_words"))
}

#' Columns that say nothing: empty ones, and the study and collective where they are the same in every row.
drop_columns <- function(table) {
  empty <- vapply(table, function(column) all(is.na(column)), TRUE)
  same <- vapply(table, function(column) length(unique(column)) <= 1, TRUE) & names(table) %in% c("study", "collective")
  table[!(empty | same)]
}

#' A data frame as a pipe table: numbers to the right, the width of the dashes as the width of the column (where a
#' renderer uses that at all). `raw` names columns that already are markdown.
pipe_table <- function(table, labels = character(), raw = character(), headers = header_of(names(table))) {
  right <- vapply(table, is.numeric, TRUE)
  shown <- format_cells(table, headers, labels)
  for (name in raw) shown[[name]] <- as.character(table[[name]])
  width <- vapply(seq_along(shown), function(i) min(60L, max(3L, nchar(c(headers[i], shown[[i]])), na.rm = TRUE)), 1L)
  dashes <- ifelse(right, paste0(strrep("-", width), ":"), paste0(":", strrep("-", width)))
  rows <- if (nrow(shown)) do.call(paste, c(unname(shown), sep = " | ")) else character()
  c(
    paste0("| ", paste(md(headers), collapse = " | "), " |"),
    paste0("|", paste(dashes, collapse = "|"), "|"),
    paste0("| ", rows, " |")[seq_along(rows)]
  )
}

#' A numbered table. Wide ones scroll inside their box in HTML and are set smaller in the PDF; long ones are cut (in the
#' PDF sooner), and then say where the rest is. Up to `whole` rows are never cut.
emit_table <- function(id, table, caption, labels = character(), raw = character(), headers = header_of(names(table)),
                       most = c(html = 300, pdf = 10), whole = 60, file = NULL) {
  begin_float(id)
  if (nrow(table) <= whole) {
    emit_rows(table, labels, raw, headers)
    emit(caption)
  } else {
    emit("::: {.content-visible when-format=\"html\"}")
    emit_rows(utils::head(table, most[["html"]]), labels, raw, headers)
    emit(":::")
    emit("::: {.content-hidden when-format=\"html\"}")
    emit_rows(utils::head(table, most[["pdf"]]), labels, raw, headers)
    emit(":::")
    emit(caption, " ", cut_note(nrow(table), most, file))
  }
  emit(":::")
}

#' Open a numbered figure or table, and remember that it exists.
begin_float <- function(id) {
  report$labels <- c(report$labels, id)
  emit("::: {#", id, "}")
}

#' "The first 20 of 400 rows; all of them are in ...", for the format that shows fewer.
cut_note <- function(rows, most, file) {
  where <- if (is.null(file)) "" else paste0("; all of them are in ", code(file))
  one <- function(limit, visible) {
    if (rows <= limit) return("")
    text <- paste0("The first ", limit, " of ", format(rows, big.mark = ","), " rows", where, ".")
    paste0("[", text, "]{.content-", visible, " when-format=\"html\"}")
  }
  paste0(one(most[["html"]], "visible"), one(most[["pdf"]], "hidden"))
}

emit_rows <- function(table, labels, raw, headers) {
  wide <- ncol(table) > 7 || sum(nchar(headers)) > 80
  emit("::: {.table-scroll", if (nrow(table) > 30) " .long", "}")
  # A table that fits on a page stays in one piece; one that does not would be printed over itself.
  long <- nrow(table) > 30 || sum(nchar(unlist(table)), na.rm = TRUE) > 2500
  emit(typst_only(paste0(
    "#block(width: 100%, breakable: ", if (long) "true" else "false", ")[",
    if (wide) "#set text(size: 8.8pt); #set table(inset: (x: 3.5pt, y: 3pt))"
  )))
  emit(paste(pipe_table(table, labels, raw, headers), collapse = "\n"))
  emit(typst_only("]"))
  emit(":::")
}

typst_only <- function(text) paste0("```{=typst}\n", text, "\n```")

#' A table of the study's index, read from its file.
show_table <- function(study, row) {
  path <- file.path(study$folder, row$file)
  table <- read_table(path)
  label <- paste0(study$name, "/", row$file)
  if (is.null(table)) {
    note_problem(sprintf("table %s is missing or empty", label))
    callout("warning", "Missing table", c(md(row$caption), paste0("The file ", code(label), " is missing or empty.")))
    return(invisible(NULL))
  }
  table <- drop_columns(table)
  caption <- caption_of(study, row$caption)
  emit_table(label_of("tbl", study, row$id), table, caption, algorithm_labels(study), file = label)
}

# Figures

label_of <- function(kind, study, id) paste0(kind, "-", study$id, "-", slug(id))

caption_of <- function(study, caption) {
  caption <- one_line(caption)
  if (is.na(caption) || caption == "NA") caption <- ""
  if (study$simulated && !grepl("simulat", caption, ignore.case = TRUE)) caption <- paste(caption, "Simulated.")
  md(trimws(caption))
}

#' Copy a figure into the build folder (short names without blanks) and give its font a fallback: an SVG names the font
#' of the machine that drew it, which a reader's machine need not have.
stage_figure <- function(study, file) {
  from <- file.path(study$folder, file)
  if (!file.exists(from) || file.size(from) == 0) return(NULL)
  name <- paste0(slug(tools::file_path_sans_ext(basename(file))), ".", tools::file_ext(file))
  place <- file.path("figures", study$id, name)
  to <- file.path(report$build, place)
  dir.create(dirname(to), recursive = TRUE, showWarnings = FALSE)
  if (tools::file_ext(file) == "svg") {
    text <- readLines(from, warn = FALSE, encoding = "UTF-8")
    text <- gsub("font-family: *(\"[^\"]*\"|[^;\"', ]+);", "font-family: \\1, Arial, Helvetica, sans-serif;", text)
    writeLines(text, to, useBytes = TRUE)
  } else {
    file.copy(from, to, overwrite = TRUE)
  }
  place
}

#' The file for the page: a picture of dots where the drawing has so many shapes that browsers would be slow with it.
file_for_page <- function(study, file) {
  dots <- sub("[.]svg$", ".png", file)
  heavy <- isTRUE(file.size(file.path(study$folder, file)) > 5e5)
  if (heavy && file.exists(file.path(study$folder, dots))) dots else file
}

show_figure <- function(study, row, id = label_of("fig", study, row$id), caption = caption_of(study, row$caption)) {
  image <- stage_figure(study, row$file)
  if (is.null(image)) {
    note_problem(sprintf("figure %s/%s is missing", study$name, row$file))
    lost <- paste0("The file ", code(file.path(study$name, row$file)), " is missing.")
    callout("warning", "Missing figure", c(md(row$title), lost))
    return(invisible(NULL))
  }
  begin_float(id)
  # On paper, figures are small enough for two on a page where their text stays readable.
  emit("::: {.content-visible when-format=\"html\"}")
  emit("![](", stage_figure(study, file_for_page(study, row$file)), "){", figure_attributes(row, 1), "}")
  emit(":::")
  emit("::: {.content-hidden when-format=\"html\"}")
  emit("![](", image, "){", figure_attributes(row, paper_width(row)), "}")
  emit(":::")
  if (is_surface(row)) emit_surface(study, row)
  emit(caption)
  emit(":::")
}

figure_attributes <- function(row, width) {
  alt <- gsub("[\"{}<>&$`\\\\]", " ", one_line(paste0(row$title)))
  sprintf("width=%.0f%% fig-alt=\"%s\" alt=\"%s\"", 100 * width, alt, alt)
}

#' Share of the text's width (6.5 inches) that leaves a figure 3.7 inches high, or at most 8.3 inches where that would
#' make it narrower than four fifths.
paper_width <- function(row) {
  aspect <- suppressWarnings(as.numeric(row$height_in) / as.numeric(row$width_in))
  if (is.na(aspect) || aspect <= 0) return(1)
  two_on_a_page <- 3.7 / (6.5 * aspect)
  if (two_on_a_page >= 0.8) min(1, two_on_a_page) else min(1, 8.3 / (6.5 * aspect))
}

# Interactive surface

is_surface <- function(row) grepl("surface", row$id) && !grepl("log|plane|fit", row$id)

#' The widget goes beside its static picture, which stays for print, for the PDF and for browsers without WebGL.
#' One copy of plotly.js serves all of them (emit_surface_scripts(), at the end of the report).
emit_surface <- function(study, row) {
  collective <- Find(function(c) belongs_to(row$id, c), collectives_of(study))
  if (is.null(collective) || !requireNamespace("plotly", quietly = TRUE)) return(invisible(NULL))
  widget <- call_analysis("plot_surface_interactive", study, collective)
  if (is.null(widget)) return(invisible(NULL))
  built <- plotly::plotly_build(widget)$x[c("data", "layout", "config")]
  json <- jsonlite::toJSON(built, auto_unbox = TRUE, digits = I(5), null = "null", na = "null", force = TRUE)
  report$surfaces <- TRUE
  json <- gsub("</", "<\\/", json, fixed = TRUE)
  emit(html_only(paste0("<div class=\"surface\"><script type=\"application/json\">", json, "</script></div>")))
}

emit_surface_scripts <- function() {
  if (!isTRUE(report$surfaces)) return(invisible(NULL))
  folder <- system.file("htmlwidgets", "lib", "plotlyjs", package = "plotly")
  library <- list.files(folder, "^plotly.*[.]js$", full.names = TRUE)
  file.copy(library[1], file.path(report$build, "theme", "plotly.js"), overwrite = TRUE)
  emit(html_only("<script src=\"theme/plotly.js\"></script>\n<script src=\"theme/surface.js\"></script>"))
}

html_only <- function(text) paste0("```{=html}\n", text, "\n```")

# Sentences

#' Call a function of the package collanalysis with the study's results (read once) and what follows. NULL, and a note
#' in the appendix, when it fails: one sentence less must not cost the report.
call_analysis <- function(name, study, ...) {
  if (!name %in% known_functions()) return(note_problem(sprintf("the package collanalysis has no %s()", name)))
  tryCatch(
    getExportedValue("collanalysis", name)(results_of(study), ...),
    error = function(e) note_problem(sprintf("%s: %s() failed: %s", study$name, name, conditionMessage(e)))
  )
}

known_functions <- function() tryCatch(getNamespaceExports("collanalysis"), error = function(e) character())

results_of <- function(study) {
  if (is.null(report$read[[study$name]])) report$read[[study$name]] <- collanalysis::read_results(study$folder)
  report$read[[study$name]]
}

describe <- function(name, study, ...) as.character(unlist(call_analysis(name, study, ...)))
