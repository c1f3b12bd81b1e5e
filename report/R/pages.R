# The parts of the report, one function each: read what a study has, say it, show it.

collective_titles <- c(
  bcast = "Broadcast", barrier = "Barrier", reduce = "Reduce", allreduce = "Allreduce", gather = "Gather",
  scatter = "Scatter", allgather = "Allgather", alltoall = "All-to-all", alltoallv = "All-to-all (v)",
  ibcast = "Non-blocking broadcast", iallreduce = "Non-blocking allreduce", reduce_scatter = "Reduce-scatter",
  ireduce_scatter = "Non-blocking reduce-scatter", latency = "Point-to-point latency",
  bandwidth = "Point-to-point bandwidth", bw = "Point-to-point bandwidth", multi_lat = "Ping-pong in pairs",
  pairs = "Ping-pong of every pair", svd = "SVD"
)

collective_title <- function(name) {
  if (name %in% names(collective_titles)) return(collective_titles[[name]])
  paste0(toupper(substr(name, 1, 1)), substring(name, 2))
}

# Names that the machine and suite files use, as people write them.
product_names <- c(
  openmpi = "Open MPI", mpich = "MPICH", impi = "Intel MPI", osu = "OSU Micro-Benchmarks",
  "smpi-openmpi" = "SMPI"
)
product_notes <- c(collbench = "the embedded benchmark", "smpi-openmpi" = "algorithms selected as Open MPI does")

product <- function(name) {
  words <- trimws(strsplit(name %||% "", ",", fixed = TRUE)[[1]])
  known <- words %in% names(product_names)
  words[known] <- product_names[words[known]]
  paste(words, collapse = ", ")
}

collectives_of <- function(study) names(study$about$collectives)

# Front page

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
    sentences <- describe("describe_answer", study)
    chapter <- paste0("sec-", study$id)
    remember_claims(study, sentences, c("tbl-answer", chapter))
    sprintf("- %s (@%s)", md(sentences), rep(chapter, length(sentences)))
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

#' summarise_answer() of one study, with the study's chapter in front.
answer_of <- function(study) {
  found <- as.data.frame(call_analysis("summarise_answer", study))
  if (nrow(found) == 0) return(NULL)
  found$study <- NULL
  if (!is.null(found$collective)) found$collective <- vapply(as.character(found$collective), collective_title, "")
  cbind(name = study$name, study = chapter_link(study), found)
}

#' "thin (Section 1, simulated)"
chapter_link <- function(study) paste0(md(study$name), " (@sec-", study$id, if (study$simulated) ", simulated", ")")

#' One decision map: of the measured study with the most cells, or of a simulated one where nothing was measured.
show_front_map <- function(studies) {
  has_map <- Filter(function(s) any(grepl("decision", s$figures$id)), studies)
  if (length(has_map) == 0) return(invisible(NULL))
  rank <- order(vapply(has_map, function(s) s$simulated, TRUE), -vapply(has_map, function(s) nrow(s$cells) %||% 0L, 1L))
  study <- has_map[[rank[1]]]
  row <- study$figures[grepl("decision", study$figures$id), ][1, ]
  caption <- paste0(caption_of(study, row$caption), " From @sec-", study$id, ".")
  show_figure(study, row, id = "fig-answer-map", caption = caption)
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

#' "collbench 1.0 (the embedded benchmark)"
with_version <- function(name, version) {
  text <- trimws(paste(product(name), version %||% ""))
  note <- product_notes[name %||% ""]
  if (is.na(note)) text else paste0(text, " (", note, ")")
}

# A study's chapter

show_chapter <- function(study) {
  template <- if (!has_results(study)) "missing" else study$about$chapter %||% "collectives"
  path <- file.path("chapters", paste0(template, ".qmd"))
  if (!file.exists(path)) stop(sprintf("study %s asks for chapter template %s, which is not there", study$name, path))
  environment <- new.env(parent = globalenv())
  environment$study <- study
  cat(knitr::knit_child(path, envir = environment, quiet = TRUE), sep = "\n")
}

show_no_results <- function(study) {
  emit("# ", md(study_title(study)), " {#sec-", study$id, "}")
  lacking <- if (is.null(study$about)) "study.json" else "measurements.csv"
  callout("warning", "No results yet", c(
    paste0("The study ", code(study$name), " has no ", code(lacking), " in its results folder."),
    paste0("Make it with ", code(paste("./study run", study$name)), ".")
  ))
  if (is.null(study$about)) return(invisible(NULL))
  show_study_question(study)
  emit_table(paste0("tbl-", study$id, "-grid"), grid_table(study), "What the study asks for.")
}

show_study_question <- function(study) {
  emit("::: {.question}")
  paragraph(md(study$about$question %||% ""))
  emit(":::")
}

show_chapter_head <- function(study) {
  emit("# ", md(study_title(study)), " {#sec-", study$id, "}")
  if (study$simulated) {
    how <- study$about$how
    callout("important", "Simulated numbers", paste0(
      "Every number of this study was computed by ", md(with_version(how$simulator, how$simulator_version)),
      " from a description of the machine; none was measured. Measurements that they are compared with are named as such."
    ))
  }
  show_study_question(study)
}

show_how_measured <- function(study) {
  emit("## How it was measured {#sec-", study$id, "-how}")
  paragraph(measured_sentences(study))
  emit_table(paste0("tbl-", study$id, "-grid"), grid_table(study), "What the study asks for.", algorithm_labels(study))
  show_status(study)
}

measured_sentences <- function(study) {
  how <- study$about$how
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
  levels <- vapply(machine$levels %||% list(), function(l) count_of(l$count %||% 1, l$name), "")
  label <- md(machine$label %||% machine$name %||% "not named")
  if (length(levels)) paste0(label, " (", md(paste(levels, collapse = " \u00d7 ")), ")") else label
}

repeat_sentence <- function(study) {
  how <- study$about$how
  if (is.null(how$iterations)) return(NULL)
  loop <- paste0(
    "the mean over the ranks of each rank's mean over ", range_words(how$iterations), " iterations, after ",
    range_words(how$warmup %||% 0), " for warm-up"
  )
  if (study$simulated) {
    return(paste0(
      "A latency is ", loop, ". ", barrier_sentence(unlist(how$barriers)),
      "The simulation is deterministic, so each cell is launched once."
    ))
  }
  launches <- unlist(how$launches %||% 1)
  paste0("A launch gives ", loop, "; a latency is the median over ", range_words(launches), " launches of its cell.",
         stop_sentence(study))
}

#' The barrier between calls, where it is not the library's default: it leaks into the number.
barrier_sentence <- function(barriers) {
  if (length(barriers) == 0) return(NULL)
  paste0(
    "The barrier between the calls is ", paste(gsub("_", " ", barriers), collapse = " or "), ", not the library's default",
    if ("aligned" %in% barriers) ": after it all ranks start at the same instant", ". "
  )
}

range_words <- function(values) {
  values <- range(as.numeric(unlist(values)))
  text <- format(values, big.mark = ",", trim = TRUE)
  if (values[1] == values[2]) text[1] else paste(text, collapse = " to ")
}

#' Which rule ended the launches of the cells.
stop_sentence <- function(study) {
  stops <- table(study$cells$stop)
  width <- study$about$how$ci_width_pct
  if (length(stops) == 0 || is.null(width)) return("")
  words <- c(
    narrow = paste0("because the 95\\ % interval of the median was narrower than ", width, "\\ %"),
    limit = "at the limit of launches"
  )
  known <- intersect(names(words), names(stops))
  if (length(known) == 0) return("")
  paste0(" Launching stopped ", and_list(paste0(words[known], " in ", vapply(stops[known], count_of, "", "cell"))), ".")
}

#' What the import found, counted: nothing is dropped in silence.
import_sentence <- function(import) {
  counts <- c(Filter(function(x) is.numeric(x) && length(x) == 1, import), import$problems)
  if (length(counts) == 0) return(NULL)
  words <- paste(vapply(counts, format, "", big.mark = ","), md(gsub("_", " ", names(counts))))
  left_out <- vapply(import$left_out %||% list(), function(entry) {
    paste0(" Left out by the study: ", format(entry$rows, big.mark = ","), " rows (", md(entry$reason), ").")
  }, "")
  sources <- unlist(import$sources)
  paste0(
    "Of the import: ", and_list(words), ".",
    if (length(sources) > 1) paste0(" Measured by ", and_list(md(sources)), "; each one's number of a cell is a launch."),
    if (length(import$statistics)) paste0(" A latency is ", and_list(statistic_words[unlist(import$statistics)]), "."),
    paste(left_out, collapse = "")
  )
}

#' What the words of the column `statistic` mean.
statistic_words <- c(
  mean_over_ranks = "the mean over the ranks of each rank's mean over iterations",
  mean_over_ranks_median = "the median over the calls of a launch of the mean over the ranks",
  slowest_rank = "the mean over iterations of the slowest rank's time",
  slowest_rank_median = "the median over the calls of a launch of the slowest rank's time"
)

grid_table <- function(study) {
  rows <- lapply(collectives_of(study), function(name) {
    c <- study$about$collectives[[name]]
    data.frame(
      collective = collective_title(name),
      algorithms = paste(vapply(c$algorithms, function(a) a$label %||% a$name, ""), collapse = ", "),
      mappings = paste(unlist(c$mappings), collapse = ", "), processes = range_text(unlist(c$processes)),
      message_sizes = range_text(unlist(c$sizes), human_size)
    )
  })
  do.call(rbind, rows)
}

range_text <- function(values, text = as.character) {
  values <- sort(unique(as.numeric(values)))
  if (length(values) == 0) return("none")
  if (length(values) <= 4) return(paste(text(values), collapse = ", "))
  paste0(text(values[1]), " to ", text(values[length(values)]), " (", length(values), " values)")
}

show_status <- function(study) {
  cells <- study$cells
  if (is.null(cells)) {
    lost <- paste0("The file ", code("cells.csv"), " is missing: what was not measured cannot be listed.")
    callout("warning", "No list of cells", lost)
    return(invisible(NULL))
  }
  bad <- cells[cells$status != "measured", ]
  if (nrow(bad) == 0) {
    done <- if (study$simulated) "simulated" else "measured"
    return(paragraph("All ", nrow(cells), " cells that the study asks for were ", done, "."))
  }
  counts <- table(bad$status)
  callout("warning", "Cells without a number", paste0(
    nrow(bad), " of ", nrow(cells), " cells have no number that can be used, or not at every size: ",
    and_list(paste(counts, names(counts))), ". @sec-cells lists them with their reasons."
  ))
}

# Sections of a collective: the first pattern that an identifier matches decides; what matches none still is shown.
section_patterns <- list(
  wins = c(
    title = "Which algorithm is fastest", pattern = "decision|default|best|winner|regret", describe = "describe_default"
  ),
  models = c(
    title = "Models", pattern = "model|fit|plane|slope|spline|loglinear|comparison|extrapol|predict|cost",
    describe = "describe_models"
  ),
  latency = c(title = "Latency", pattern = ".", describe = "describe_latency")
)
section_order <- c("latency", "wins", "models")

section_of <- function(ids) {
  vapply(ids, function(id) {
    for (key in names(section_patterns)) if (grepl(section_patterns[[key]][["pattern"]], id)) return(key)
    "latency"
  }, "", USE.NAMES = FALSE)
}

belongs_to <- function(ids, collective) startsWith(ids, paste0(collective, "-")) | ids == collective

show_collective <- function(study, collective) {
  emit("## ", md(collective_title(collective)), " {#sec-", study$id, "-", slug(collective), "}")
  figures <- study$figures[belongs_to(study$figures$id, collective), ]
  tables <- study$tables[belongs_to(study$tables$id, collective), ]
  if (nrow(figures) + nrow(tables) == 0) {
    return(paragraph("The analysis made no figure and no table for this collective."))
  }
  used <- intersect(section_order, section_of(c(figures$id, tables$id)))
  for (key in used) {
    in_section <- function(index) index[section_of(index$id) == key, ]
    show_section(study, collective, key, in_section(figures), in_section(tables), alone = length(used) == 1)
  }
}

show_section <- function(study, collective, key, figures, tables, alone) {
  section <- section_patterns[[key]]
  if (!alone) emit("### ", section[["title"]], " {#sec-", study$id, "-", slug(collective), "-", key, "}")
  shown <- c(if (nrow(figures)) label_of("fig", study, figures$id), if (nrow(tables)) label_of("tbl", study, tables$id))
  say_sentences(study, describe(section[["describe"]], study, collective), shown)
  for (i in seq_len(nrow(figures))) show_figure(study, figures[i, ])
  for (i in seq_len(nrow(tables))) show_table(study, tables[i, ])
}

#' Sections of a chapter that has its own: `parts` maps the beginning of its floats' identifiers to the section's title;
#' `words` (a function of collanalysis) says what a part shows.
show_parts <- function(study, words, parts) {
  for (part in names(parts)) {
    figures <- study$figures[belongs_to(study$figures$id, part), ]
    tables <- study$tables[belongs_to(study$tables$id, part), ]
    if (nrow(figures) + nrow(tables) == 0) next
    emit("## ", parts[[part]], " {#sec-", study$id, "-", part, "}")
    floats <- c(label_of("fig", study, figures$id), label_of("tbl", study, tables$id))
    say_sentences(study, describe(words, study, part), floats)
    for (i in seq_len(nrow(figures))) show_figure(study, figures[i, ])
    for (i in seq_len(nrow(tables))) show_table(study, tables[i, ])
  }
}

#' Figures and tables that belong to no collective of the study.
show_rest <- function(study) {
  others <- function(index) {
    for (collective in collectives_of(study)) index <- index[!belongs_to(index$id, collective), ]
    index
  }
  figures <- others(study$figures)
  tables <- others(study$tables)
  if (nrow(figures) + nrow(tables) == 0) return(invisible(NULL))
  emit("## Further results {#sec-", study$id, "-further}")
  say_sentences(study, describe("describe_simulation_cost", study), label_of("tbl", study, "simulation-cost"))
  for (i in seq_len(nrow(figures))) show_figure(study, figures[i, ])
  for (i in seq_len(nrow(tables))) show_table(study, tables[i, ])
}

#' Print sentences and remember them as claims that `references` support.
say_sentences <- function(study, sentences, references) {
  if (length(sentences) == 0) return(invisible(NULL))
  paragraph(paste(md(sentences), collapse = " "))
  remember_claims(study, sentences, references)
}

remember_claims <- function(study, sentences, references) {
  if (length(sentences) == 0) return(invisible(NULL))
  report$claims <- c(report$claims, list(list(study = study$name, text = sentences, references = references)))
}

# Appendix

show_provenance <- function(studies) {
  system <- Sys.info()
  tool <- report$renderer
  facts <- c(
    "Rendered on" = report$date, "Rendered by" = with_version(tool$name, tool$version), "pandoc" = tool$pandoc,
    "typst" = tool$typst, "R" = as.character(getRversion()), "knitr" = as.character(utils::packageVersion("knitr")),
    "collanalysis" = tryCatch(as.character(utils::packageVersion("collanalysis")), error = function(e) "not installed"),
    "Python" = report$python, "This project" = report$revision, "Operating system" = system_name(),
    "Kernel" = paste(system[["sysname"]], system[["release"]], system[["machine"]]), "Processor" = processor_name(),
    "Command" = report$command
  )
  facts <- facts[nzchar(facts)]
  made <- data.frame(part = names(facts), version = unname(facts))
  emit_table("tbl-provenance", made, "What made this report, and where.")
  rows <- do.call(rbind, lapply(Filter(has_results, studies), function(study) {
    how <- study$about$how
    data.frame(
      study = study$name, machine = study$about$machine$label %||% "", kind = study$about$machine$kind %||% "",
      suite = with_version(how$suite, how$suite_version), mpi = with_version(how$mpi, how$mpi_version),
      simulator = if (study$simulated) with_version(how$simulator, how$simulator_version) else "none",
      command = code(paste("./study run", study$name))
    )
  }))
  if (is.null(rows)) return(invisible(NULL))
  emit_table("tbl-provenance-studies", rows, "What made the numbers of each study.", raw = "command")
}

system_name <- function() {
  lines <- tryCatch(readLines("/etc/os-release", warn = FALSE), error = function(e) "")
  gsub("PRETTY_NAME=|\"", "", paste(grep("^PRETTY_NAME=", lines, value = TRUE), collapse = ""))
}

processor_name <- function() {
  lines <- tryCatch(readLines("/proc/cpuinfo", warn = FALSE), error = function(e) character())
  name <- sub(".*: *", "", grep("^model name", lines, value = TRUE))
  if (length(name)) paste0(name[1], " (", length(name), " logical)") else ""
}

show_claims <- function(studies) {
  if (length(report$claims) == 0) return(paragraph("This report makes no claims: no study has results."))
  rows <- do.call(rbind, lapply(report$claims, function(claim) {
    data.frame(
      claim = md(claim$text), shown_in = references_to(claim$references),
      command = code(paste("./study run", claim$study))
    )
  }))
  caption <- "Each sentence that states a result, where it can be seen, and the command that makes it again."
  emit_table("tbl-claims", rows, caption, raw = names(rows), whole = 300)
}

#' References to what the report does show: chapters always; a figure whose file was missing has no number.
references_to <- function(labels) {
  shown <- intersect(labels, c(report$labels, grep("^sec-", labels, value = TRUE)))
  if (length(shown)) paste0("@", shown, collapse = ", ") else "not shown"
}

show_cells <- function(studies) {
  cells <- do.call(rbind, lapply(studies, function(s) s$cells[cell_columns]))
  if (is.null(cells)) return(paragraph("No study has cells yet."))
  statuses <- c("measured", "failed", "unproved", "missing")
  counts <- as.data.frame.matrix(table(cells$study, factor(cells$status, union(statuses, unique(cells$status)))))
  emit_table("tbl-cells", cbind(study = rownames(counts), counts), "Cells by status.")
  bad <- cells[cells$status != "measured", ]
  if (nrow(bad) == 0) return(paragraph("Every cell has its number."))
  emit_table("tbl-cells-without", group_cells(bad), paste(
    "Every cell without a number that can be used, or without one at every size, and why. One row stands for all the",
    "process counts of the same reason; each study's", code("cells.csv"), "has a row for each."
  ), labels = do.call(c, lapply(studies, algorithm_labels)), whole = 300)
}

cell_columns <- c("study", "collective", "algorithm", "mapping", "processes", "status", "reason")

#' 2, 4, 5, 6 -> "2, 4 to 6"
runs <- function(numbers) {
  numbers <- sort(unique(numbers))
  groups <- split(numbers, cumsum(c(TRUE, diff(numbers) != 1)))
  words <- function(run) if (length(run) > 2) paste(run[1], "to", run[length(run)]) else toString(run)
  paste(vapply(groups, words, ""), collapse = ", ")
}

#' One row for the cells that differ in their number of processes alone.
group_cells <- function(cells) {
  cells$reason[is.na(cells$reason)] <- ""
  key <- do.call(paste, c(cells[setdiff(cell_columns, "processes")], sep = "\r"))
  rows <- lapply(split(cells, factor(key, unique(key))), function(same) {
    row <- same[1, cell_columns]
    row$processes <- runs(same$processes)
    cbind(row, cells = nrow(same))
  })
  do.call(rbind, unname(rows))
}

show_files <- function(studies) {
  rows <- do.call(rbind, lapply(studies, function(study) {
    files <- list.files(study$folder, recursive = TRUE)
    if (length(files) == 0) return(NULL)
    kilobytes <- file.size(file.path(study$folder, files)) / 1000
    data.frame(file = code(file.path(report$results_label, study$name, files)), size = kilobytes)
  }))
  if (is.null(rows)) return(paragraph("There are no files yet."))
  headers <- c("File", "Size (kB)")
  emit_table("tbl-files", rows, "Every file of the studies.", raw = "file", headers = headers, whole = 2000)
  stored <- length(list.files(file.path(report$results, "cells"), "[.]json$", recursive = TRUE))
  if (stored == 0) return(invisible(NULL))
  paragraph(
    "Beside them, ", code(file.path(report$results_label, "cells")), " has ", count_of(stored, "file"), ", one for ",
    "each cell that was launched: its question, and every launch with its command, environment, versions and numbers."
  )
}

#' What could not be shown anywhere above: the last word of the report.
show_problems <- function() {
  if (length(report$problems) == 0) return(paragraph("Everything that the results hold is in this report."))
  callout("warning", "Left out of this report", paste0("- ", md(unique(report$problems)), collapse = "\n"))
}

show_session <- function() {
  text <- utils::capture.output(print(utils::sessionInfo(), locale = FALSE))
  emit("```{.session}\n", paste(text, collapse = "\n"), "\n```")
}
