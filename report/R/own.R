# Chapters written by hand: config/studies/<study>.qmd, knitted before the generated chapter or in its place. docs/adding.md
# documents the functions that such a text can call.

own_file <- function(study) {
  path <- file.path("own", paste0(study$name, ".qmd"))
  if (file.exists(path)) path
}

#' The text without its header, and what the header says; NULL without a text.
read_own <- function(path) {
  if (is.null(path)) return(NULL)
  lines <- readLines(path, warn = FALSE, encoding = "UTF-8")
  ends <- grep("^---[[:space:]]*$", lines)
  header <- list()
  if (length(ends) > 1 && ends[1] == 1) {
    header <- yaml::yaml.load(paste(lines[seq(2, ends[2] - 1)], collapse = "\n")) %or% list()
    lines <- lines[-seq_len(ends[2])]
  }
  below <- header$generated %or% "below"
  unknown <- setdiff(names(header), "generated")
  if (length(unknown) || !below %in% c("below", "none")) {
    stop(sprintf(
      "config/studies/%s: the header has %s; allowed is `generated: below` (the generated chapter follows) or `generated: none`",
      basename(path), if (length(unknown)) paste("the key", unknown[1]) else paste("generated:", below)
    ), call. = FALSE)
  }
  list(lines = lines, generated = below == "below")
}

show_own <- function(study, own) {
  environment <- new.env(parent = globalenv())
  environment$study <- study
  environment$number <- function(...) own_number(study, ...)
  environment$figure <- function(...) own_figure(study, ...)
  environment$data_table <- function(...) own_table(study, ...)
  environment$see <- function(id) own_reference(study, id)
  environment$has_table <- function(id) id %in% study$tables$id
  cat(knitr::knit_child(text = own$lines, envir = environment, quiet = TRUE), sep = "\n")
  emit("")
}

#' Note something that a text refers to and the study lacks; the report shows the message in its place and in the appendix.
own_lack <- function(study, ...) {
  message <- paste0("config/studies/", study$name, ".qmd: ", ...)
  study$own$problems <- c(study$own$problems, message)
  message
}

#' A table by its name, as in tables/index.csv and models/index.csv, or a file of the study without .csv.
own_data <- function(study, table) {
  listed <- study$tables$file[study$tables$id %in% table]
  files <- c(listed, file.path(c("tables", "models", "tuning", "."), paste0(table, ".csv")))
  for (file in files) {
    found <- read_table(file.path(study$folder, file))
    if (!is.null(found)) return(found)
  }
  NULL
}

#' A number with its unit. `...`: values of columns that select one row, such as collective = "bcast".
own_number <- function(study, table, column, ..., digits = 3) {
  data <- own_data(study, table)
  lack <- function(...) paste0("**", md(own_lack(study, ...)), "**")
  if (is.null(data)) return(lack("no table ", table, "; ", or_none(study$tables$id)))
  where <- list(...)
  unknown <- setdiff(c(column, names(where)), names(data))
  if (length(unknown)) return(lack("table ", table, " has no column ", unknown[1], "; it has ", collanalysis::and_list(names(data))))
  for (name in names(where)) data <- data[data[[name]] %in% where[[name]], ]
  if (nrow(data) != 1) {
    return(lack("table ", table, " has ", collanalysis::count_of(nrow(data), "row"), " with ", paste(
      names(where), unlist(where), sep = " = ", collapse = ", "
    ), " instead of one"))
  }
  value <- data[[column]]
  if (is.na(value)) return(lack("table ", table, " has no value of ", column, " there"))
  if (!is.numeric(value)) return(md(value))
  md(with_unit(value, column, digits))
}

#' 12.3 and "geometric_mean_pct" -> "12.3 %"
with_unit <- function(value, column, digits = 3) {
  if (grepl("_bytes$", column)) return(size_words(value))
  text <- format(signif(value, digits), big.mark = ",", scientific = FALSE, trim = TRUE)
  unit <- unlist(lapply(names(units), function(u) if (grepl(paste0("._", u, "$"), column)) units[[u]]))
  paste(c(text, utils::head(unit, 1)), collapse = " ")
}

own_figure <- function(study, id, caption = NULL) {
  row <- study$figures[study$figures$id %in% id, ]
  if (nrow(row) == 0) {
    lost <- own_lack(study, "no figure ", id, "; ", or_none(study$figures$id))
    return(callout("warning", "Missing figure", md(lost)))
  }
  show_figure(study, row[1, ], caption = if (is.null(caption)) caption_of(study, row$caption[1]) else caption_of(study, caption))
  study$own$labels <- c(study$own$labels, label_of("fig", study, id))
}

#' A table: all of it, or some `columns`, and the rows in which columns have the values of `...`.
own_table <- function(study, id, ..., columns = NULL, caption = NULL) {
  row <- study$tables[study$tables$id %in% id, ]
  data <- if (nrow(row) > 0) own_data(study, id)
  lack <- function(...) callout("warning", "Missing table", md(own_lack(study, ...)))
  if (is.null(data)) return(lack("no table ", id, "; ", or_none(study$tables$id)))
  where <- list(...)
  unknown <- setdiff(c(columns, names(where)), names(data))
  if (length(unknown)) return(lack("table ", id, " has no column ", unknown[1], "; it has ", collanalysis::and_list(names(data))))
  for (name in names(where)) data <- data[data[[name]] %in% where[[name]], ]
  if (nrow(data) == 0) return(lack("table ", id, " has no such rows"))
  labels <- algorithm_labels(study)
  data <- join_variants(data, labels)
  data <- if (is.null(columns)) drop_columns(data) else data[intersect(columns, names(data))]
  caption <- caption_of(study, if (is.null(caption)) row$caption[1] else caption)
  emit_table(label_of("tbl", study, id), data, caption, labels, file = paste0(study$name, "/", row$file[1]))
  study$own$labels <- c(study$own$labels, label_of("tbl", study, id))
}

#' "there are a, b and c", or "there are none".
or_none <- function(names) if (length(names) == 0) "there are none" else paste("there are", collanalysis::and_list(sort(names)))

#' "@fig-..." or "@tbl-...", for a reference in the text.
own_reference <- function(study, id) {
  if (id %in% study$figures$id) return(paste0("@", label_of("fig", study, id)))
  if (id %in% study$tables$id) return(paste0("@", label_of("tbl", study, id)))
  paste0("**", md(own_lack(study, "no figure or table ", id)), "**")
}
