# Numbers, headers and tables.

#' Message sizes as words; nothing for a collective without one.
size_words <- function(bytes) {
  words <- collanalysis::label_bytes(bytes)
  ifelse(is.na(words), "", words)
}

#' Decimals that keep about three digits of a typical value of the column, the same for the whole column.
decimals_of <- function(x, name) {
  x <- abs(x[is.finite(x) & x != 0])
  if (length(x) == 0 || all(x == round(x))) return(0)
  if (grepl("(mape|regret|best|optimal|accuracy)_pct$", name)) return(1)
  if (grepl("(slower|slowdown|changed|mean|median|p90|p99|max|costs|winner|violated|worst|difference|bias|saved|low|high)_pct$", name)) {
    return(if (max(x) >= 1000) 0 else 1)
  }
  if (grepl("_pct$", name)) return(2)
  if (grepl("^(coef|slope|r_squared|intercept)", name)) return(if (max(x) < 0.1) 4 else 3)
  if (max(x) >= 1e4) return(0)
  if (max(x) < 1) max(3, 1 - floor(log10(max(x)))) else if (grepl("_us$", name) || max(x) >= 10) 2 else 3
}

#' Larger errors are shown as "> 100,000": they only show that the model does not hold.
most_pct <- 1e5

format_column <- function(x, name) {
  beyond <- grepl("(mape|error)_pct$", name) & !is.na(x) & x > most_pct
  decimals <- decimals_of(x[!beyond], name)
  text <- formatC(x, format = "f", digits = decimals, big.mark = ",")
  # Beside values of 10,000 and more, three digits of the small ones, as in sentences.
  small <- decimals == 0 & !is.na(x) & abs(x) < 100 & abs(x) >= 0.01 & x != round(x)
  text[small] <- formatC(x[small], format = "fg", digits = 3)
  text <- sub("^-(0(\\.0+)?)$", "\\1", text)
  text[beyond] <- paste(">", format(most_pct, big.mark = ",", scientific = FALSE))
  ifelse(is.na(x), "\u2013", sub("^-", "\u2212", text))
}

units <- c(us = "\u00b5s", pct = "%", bytes = "bytes", mb_s = "MB/s", gb_s = "GB/s", s = "s")

special_headers <- c(
  datatypes = "Data types", r_squared = "R\u00b2",
  coef_log_size = "Coefficient of log size", coef_processes = "Coefficient of processes",
  size_bytes = "Message size", worst_size_bytes = "Worst message size", n = "Matrix order",
  size_class = "Message size", process_class = "Processes",
  from_processes = "From (processes)", to_processes = "To (processes)", from_seconds = "Fewest processes (s)",
  to_seconds = "Most processes (s)", median_seconds = "Median (s)", max_seconds = "Largest (s)",
  max_seconds_per_size = "Largest per message size (s)", peak_memory_mb = "Peak memory (MB)",
  default_best_pct = "Default fastest or tied (%)", slower = "Cells in which it is slower",
  source = "Author", sources = "Authors", slower_pct = "More than 5 % slower (% of cells)", slowdown_pct = "Slow-down (%)",
  default_geometric_mean_pct = "Regret of the default, geometric mean (%)", default_mean_pct = "Arithmetic mean (%)",
  default_median_pct = "Median (%)", default_p90_pct = "90th percentile (%)", default_p99_pct = "99th percentile (%)",
  default_max_pct = "Largest (%)", best_single = "Best single algorithm",
  best_single_geometric_mean_pct = "Regret of that algorithm, geometric mean (%)",
  best_single_mean_pct = "Regret of that algorithm, arithmetic mean (%)", geometric_mean_pct = "Geometric mean (%)",
  mean_pct = "Arithmetic mean (%)", median_pct = "Median (%)", p90_pct = "90th percentile (%)",
  p99_pct = "99th percentile (%)", max_pct = "Largest (%)", unproved = "Not verified",
  sd_difference_us = "Standard deviation (\u00b5s)", runner_up_us = "Runner-up (\u00b5s)", runner_up = "Runner-up",
  median_abs_difference_pct = "Median difference (%)", p90_abs_difference_pct = "90th percentile (%)",
  pick_accuracy_pct = "Fastest algorithm found (% of cells)", geometric_mean_regret_pct = "Regret, geometric mean (%)",
  mean_regret_pct = "Regret, arithmetic mean (%)", max_regret_pct = "Largest regret (%)"
)

policy_words <- c(default = "default", tuned = "tuned rules", "best-single" = "best single algorithm")

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
    paste0(collanalysis::capitalised(n), unit)
  }
  vapply(name, one, "", USE.NAMES = FALSE)
}

#' The labels of the algorithms of a study, by name and by name with parameters.
algorithm_labels <- function(study) {
  labels <- character()
  for (collective in study$about$collectives) {
    for (algorithm in collective$algorithms) {
      parameters <- algorithm$parameters %or% ""
      label <- algorithm$label %or% algorithm$name
      if (!nzchar(parameters)) labels[[algorithm$name]] <- label
      if (nzchar(parameters)) labels[[collanalysis::variant_name(algorithm$name, parameters)]] <- label
    }
  }
  labels
}

#' Join algorithms and their parameters, which files have in two columns, in one column of labels.
join_variants <- function(table, labels) {
  columns <- c(parameters = "algorithm", winner_parameters = "winner", runner_up_parameters = "runner_up")
  for (column in intersect(names(columns), names(table))) {
    names <- columns[[column]]
    given <- !is.na(table[[column]]) & nzchar(table[[column]])
    key <- collanalysis::variant_name(table[[names]], table[[column]])
    shown <- ifelse(key %in% names(labels), labels[key], paste0(table[[names]], " (", table[[column]], ")"))
    table[[names]] <- ifelse(given, shown, ifelse(table[[names]] %in% names(labels), labels[table[[names]]], table[[names]]))
    table[[column]] <- NULL
  }
  table
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
      table[[name]] <- if (grepl("(^|_)size_bytes$", name)) size_words(column) else format_column(column, name)
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
  if (name == "model") column[known] <- relabel(column[known], collanalysis::model_labels())
  if (name == "level") column[known] <- collanalysis::level_word(column[known])
  if (name == "mpi") column[known] <- relabel(column[known], collanalysis::mpi_labels())
  if (name == "policy" && all(column[known] %in% names(policy_words))) column[known] <- policy_words[column[known]]
  if (name == "collective") column[known] <- relabel(column[known], c(shown_titles, all = "All"))
  if (name %in% c("model", "term", "held_out", "datatypes")) column <- gsub("_", " ", column, fixed = TRUE)
  if (!name %in% c("mapping", "collective", "study")) column[known] <- relabel(column[known], labels)
  column
}

#' Drop columns without information: empty ones, the study, the collective and the rule for ties (which is in the caption)
#' if they are the same in every row, also the application if there are several rows, and `simulated` if nothing is simulated.
#' And `spreads`, which programs read (docs/files.md): the table of call sites shows them.
drop_columns <- function(table) {
  empty <- vapply(table, function(column) all(is.na(column)), TRUE)
  one <- c("study", "collective", "tested", if (nrow(table) > 1) "application")
  same <- vapply(table, function(column) length(unique(column)) <= 1, TRUE) & names(table) %in% one
  measured <- names(table) == "simulated" & vapply(table, function(column) !any(column %in% c(TRUE, "TRUE")), TRUE)
  table[!(empty | same | measured | names(table) == "spreads")]
}

#' Headers as markdown. In a table that is wider than a printed line, each header is broken so that it is no wider than the
#' cells below it, because typst gives all columns the same share of a line that is too short.
break_headers <- function(headers, shown) {
  width <- vapply(shown, function(column) max(0L, nchar(column), na.rm = TRUE), 1L)
  if (sum(pmax(width, nchar(headers)) + 3) <= 110) return(md(headers))
  one <- function(header, width) {
    header <- gsub("([0-9]) %", "\\1\u00a0%", header)
    words <- strsplit(header, " ", fixed = TRUE)[[1]]
    paste(md(strwrap(header, max(nchar(words), width, 10) + 1)), collapse = " `#linebreak();`{=typst}")
  }
  mapply(one, headers, width, USE.NAMES = FALSE)
}

#' A data frame as a pipe table: numbers are right-aligned, and the number of dashes gives the width of the column (for
#' renderers that use it). `raw` names columns that already are markdown.
pipe_table <- function(table, labels = character(), raw = character(), headers = header_of(names(table))) {
  right <- vapply(table, is.numeric, TRUE)
  shown <- format_cells(table, headers, labels)
  for (name in raw) shown[[name]] <- as.character(table[[name]])
  width <- vapply(seq_along(shown), function(i) min(60L, max(3L, nchar(c(headers[i], shown[[i]])), na.rm = TRUE)), 1L)
  dashes <- ifelse(right, paste0(strrep("-", width), ":"), paste0(":", strrep("-", width)))
  rows <- if (nrow(shown)) do.call(paste, c(unname(shown), sep = " | ")) else character()
  c(
    paste0("| ", paste(break_headers(headers, shown), collapse = " | "), " |"),
    paste0("|", paste(dashes, collapse = "|"), "|"),
    paste0("| ", rows, " |")[seq_along(rows)]
  )
}

#' A numbered table. Wide tables scroll in HTML and are set smaller in the PDF. Tables with more than `whole` rows are cut
#' (in the PDF sooner); the caption then tells where the rest is.
emit_table <- function(id, table, caption, labels = character(), raw = character(), headers = header_of(names(table)),
                       whole = 60, file = NULL) {
  emit("::: {#", id, "}")
  if (nrow(table) <= whole) {
    emit_rows(table, labels, raw, headers)
    emit(caption)
  } else {
    emit("::: {.content-visible when-format=\"html\"}")
    emit_rows(utils::head(table, rows_shown[["html"]]), labels, raw, headers)
    emit(":::")
    emit("::: {.content-hidden when-format=\"html\"}")
    emit_rows(utils::head(table, rows_shown[["pdf"]]), labels, raw, headers)
    emit(":::")
    emit(caption, " ", cut_note(nrow(table), file))
  }
  emit(":::")
}

#' Rows that are shown of a table that is cut.
rows_shown <- c(html = 300, pdf = 10)

#' "The first 20 of 400 rows; all of them are in ...", for the formats that cut the table.
cut_note <- function(rows, file) {
  where <- if (is.null(file)) "" else paste0("; all of them are in ", code(file))
  one <- function(limit, visible) {
    if (rows <= limit) return("")
    text <- paste0("The first ", limit, " of ", format(rows, big.mark = ","), " rows", where, ".")
    paste0("[", text, "]{.content-", visible, " when-format=\"html\"}")
  }
  paste0(one(rows_shown[["html"]], "visible"), one(rows_shown[["pdf"]], "hidden"))
}

emit_rows <- function(table, labels, raw, headers) {
  wide <- ncol(table) > 7 || sum(nchar(headers)) > 80
  emit("::: {.table-scroll", if (nrow(table) > 30) " .long", "}")
  small <- if (wide) "#set text(size: 8.8pt); #set table(inset: (x: 3.5pt, y: 3pt))"
  emit(typst_only(paste0("#table-block[", small)))
  emit(paste(pipe_table(table, labels, raw, headers), collapse = "\n"))
  emit(typst_only("]"))
  emit(":::")
}

typst_only <- function(text) paste0("```{=typst}\n", text, "\n```")

#' A table of the study's index, read from its file.
show_table <- function(study, row) {
  if (label_of("tbl", study, row$id) %in% study$own$labels) return(invisible(NULL))
  path <- file.path(study$folder, row$file)
  table <- read_table(path)
  label <- paste0(study$name, "/", row$file)
  if (is.null(table)) {
    callout("warning", "Missing table", c(md(row$caption), paste0("The file ", code(label), " is missing or empty.")))
    return(invisible(NULL))
  }
  labels <- algorithm_labels(study)
  table <- drop_columns(join_variants(table, labels))
  caption <- caption_of(study, row$caption)
  emit_table(label_of("tbl", study, row$id), table, caption, labels, file = label)
}
