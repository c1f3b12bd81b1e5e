# The parts of a chapter: each has a heading, sentences, figures and tables, selected by their section (sentences.csv, index.csv).

#' One part of a chapter.
#' @param key Last part of the heading's label; NULL: no heading.
#' @param sections Sections of the figures and tables.
#' @param said Sections of the sentences.
#' @param on_paper What is printed: "all", the "figure" and the text, the "text", or "nothing". The HTML pages have all.
part <- function(study, title, key, sections, said = sections, depth = 2, on_paper = "all") {
  figures <- study$figures[study$figures$section %in% sections, ]
  tables <- study$tables[study$tables$section %in% sections, ]
  sentences <- study$sentences[study$sentences$section %in% said, ]
  sentences <- sentences[order(match(sentences$section, said), sentences$order), ]
  files <- c(figures$file, tables$file)
  list(
    title = title, key = key, depth = depth, on_paper = on_paper, figures = figures, tables = tables, sentences = sentences,
    floats = float_of(study, files[is_there(study, files)])
  )
}

#' Labels of the figures and tables in files of the study.
float_of <- function(study, files) {
  kind <- ifelse(tools::file_ext(files) == "csv", "tbl", "fig")
  if (length(files)) label_of(kind, study, tools::file_path_sans_ext(basename(files)))
}

is_empty <- function(part) nrow(part$figures) + nrow(part$tables) == 0

has_content <- function(part) !is_empty(part) || nrow(part$sentences) > 0

#' All parts of a study's chapter, in order.
parts_of <- function(study) {
  named <- function(titles) {
    Filter(Negate(is_empty), lapply(names(titles), function(key) part(study, titles[[key]], key, key)))
  }
  switch(study$about$chapter %or% "collectives",
    topology = named(c(
      speedup = "Speed-up over the library's default", hosts = "Cost of the order of hosts",
      choice = "Which algorithm to choose", setup = "Cost of the communicators",
      placement = "Two host files, one tree"
    )),
    program = named(c(
      account = "What faster collectives could gain", sampling = "Cells that were measured", cells = "Cells of the program",
      decided = "What was decided"
    )),
    pipelining = named(c(allreduce = "Allreduce", bcast = "Broadcast", reduce_scatter = "Reduce-scatter")),
    atlas = named(c(
      atlas = "Regret of the default on all machines", guidelines = "Collectives that are slower than their compositions"
    )),
    mapping = named(c(mapping = "Best mapping")),
    extrapolation = named(c(extrapolation = "Extrapolation from few nodes to many")),
    starts = named(c(starts = "Barriers and windows")),
    accuracy = list(part(study, "Accuracy of the simulation", "accuracy", "accuracy")),
    ladder = list(part(
      study, "The ping-pong ladder", "ladder", unique(c(study$figures$section, study$tables$section)), "ladder"
    )),
    svd = parts_of_application(study, setdiff(collectives_shown(study), c("latency", "bw", "multi_lat"))[1]),
    congestion = parts_of_traces(study),
    components = c(named(c(components = "Best component and best algorithm")), parts_of_collectives(study)),
    tuning = c(
      named(c(sampling = "Sampled in rounds")), if (!length(study$about$sampling)) parts_of_collectives(study)
    ),
    parts_of_collectives(study)
  )
}

collective_parts <- c(latency = "Latency", wins = "Which algorithm is fastest", models = "Models")

parts_of_collectives <- function(study) {
  by_collective <- lapply(collectives_shown(study), function(collective) parts_of_collective(study, collective))
  sections <- c(study$figures$section, study$tables$section)
  mine <- unlist(lapply(collectives_shown(study), function(name) paste0(name, c("", "/wins", "/models", "/levels"))))
  believed <- part(study, "Accuracy of the models", "believe", character(), "believe")
  imported <- part(study, "Findings of the import checks", "import", c("import", "agreement"), "import")
  shown <- c(mine, own_sections(study), "import", "agreement")
  rest <- part(study, "Further results", "further", setdiff(sections, shown), "further")
  c(
    do.call(c, by_collective), if (nrow(believed$sentences) > 0) list(believed),
    if (!is_empty(imported)) list(imported), if (!is_empty(rest)) list(rest)
  )
}

#' Sections that a chapter shows in separate parts before the collectives.
own_sections <- function(study) switch(study$about$chapter %or% "", tuning = "sampling", components = "components", character())

parts_of_collective <- function(study, collective) {
  suffix <- list(latency = c("", "/levels"), wins = "/wins", models = "/models")
  # The part on the accuracy of the models summarises the models of each collective. With many collectives, only the
  # decision map of each is printed.
  on_paper <- c(
    latency = "text", wins = if (length(collectives_shown(study)) > most_tabled) "figure" else "all",
    models = if (any(study$sentences$section == "believe")) "nothing" else "text"
  )
  parts <- lapply(names(collective_parts), function(key) {
    at <- paste0(collective, suffix[[key]])
    key_of_heading <- paste0(collanalysis::slug(collective), "-", key)
    part(study, collective_parts[[key]], key_of_heading, at, depth = 3, on_paper = on_paper[[key]])
  })
  parts <- Filter(Negate(is_empty), parts)
  # One part needs no heading of its own.
  if (length(parts) == 1) parts[[1]][c("key", "on_paper")] <- list(NULL, "all")
  head <- part(study, heading_of(collective), collanalysis::slug(collective), character())
  head$none <- if (length(parts) == 0) "There are no figures and tables for this collective."
  shown <- c(list(head), parts)
  # For a study that decides for many collectives, only decisions and their verification are printed.
  if (identical(study$about$chapter, "tuning") && length(collectives_shown(study)) > most_tabled) {
    shown <- lapply(shown, function(part) replace(part, "on_paper", "nothing"))
  }
  shown
}

parts_of_application <- function(study, name) {
  list(
    part(study, "Time to solution and speed-up", "speedup", name, on_paper = "figure"),
    part(study, "A model of the time", "model", paste0(name, "/models")),
    part(study, "The ping-pong ladder of the model", "ladder", paste0(collectives_shown(study), "/levels"), "ladder")
  )
}

parts_of_traces <- function(study) {
  dynamic <- lapply(study$about$applications, function(application) {
    part(study, application$label, collanalysis::slug(application$name), paste0(application$name, "/dynamic"), depth = 3)
  })
  overview <- part(study, "The network over time", "dynamic", character(), "dynamic")
  c(
    Filter(has_content, list(
      part(
        study, "MPI calls of the applications", "static", "applications",
        on_paper = if ("gain" %in% study$sentences$section) "text" else "all"
      ),
      part(study, "What faster collectives could gain", "account", "account"),
      part(study, "Gain from the decisions", "gain", "gain"), part(study, "Traffic between ranks", "pairs", "pairs")
    )),
    if (!all(vapply(dynamic, is_empty, TRUE)) || nrow(overview$sentences) > 0) list(overview),
    Filter(Negate(is_empty), dynamic),
    Filter(has_content, list(part(study, "Effect of other algorithms, mappings and networks", "helps", "replays")))
  )
}

#' Show the parts and, in print, how many of their figures and tables are left out.
show_parts <- function(study, parts = parts_of(study)) {
  left <- vapply(parts, function(part) show_part(study, part), c(figure = 0L, table = 0L))
  left <- rowSums(matrix(left, 2, dimnames = list(c("figure", "table"), NULL)))
  left <- left[left > 0]
  words <- vapply(names(left), function(kind) collanalysis::count_of(left[[kind]], kind), "")
  if (length(left)) paper_only(paragraph(
    "The HTML page of this chapter and the data package also have ", collanalysis::and_list(words), "."
  ))
}

#' Show one part; returns the numbers of figures and tables that are not on paper.
show_part <- function(study, part) {
  # Sentences of the chapter's beginning are not repeated with the figures and tables that show them.
  answers <- without_title(study, text_of(study, "answer"))
  repeated <- !is_empty(part) & part$sentences$text %in% answers
  part$sentences <- part$sentences[!repeated, ]
  # In print, a collective has one figure, its decision map if there is one, and long tables are left to the data package.
  # The figure of all machines is on the front page.
  atlas <- identical(study$about$chapter, "atlas")
  long <- vapply(part$tables$file, function(file) NROW(read_table(file.path(study$folder, file))) > paper_rows, TRUE)
  on_paper <- seq_len(nrow(part$figures)) == 1 & part$on_paper %in% c("all", "figure") & !atlas
  tables_on_paper <- !long & part$on_paper == "all" & !(atlas & part$tables$id %in% "atlas-import-checks")
  nothing <- !any(on_paper, tables_on_paper) && nrow(part$sentences) == 0
  # A part without figures and tables is the heading of the parts that follow.
  screen_only(part$on_paper == "nothing" || (nothing && !is_empty(part)), {
    if (!is.null(part$key)) emit(strrep("#", part$depth), " ", md(part$title), " {#sec-", study$id, "_", part$key, "}")
    if (!is.null(part$none)) paragraph(part$none)
    notes <- !part$sentences$claim %in% TRUE
    show_sentences(part$sentences$text[notes])
    show_sentences(part$sentences$text[!notes])
    first <- first_float(study, part, on_paper, tables_on_paper)
    if (any(repeated)) {
      detailed <- if (length(first)) paste0("; @", first, " shows them in detail")
      these <- if (nrow(part$sentences)) "The other results of this section are" else "These results are"
      paragraph(these, " stated at the beginning of this chapter", detailed, ".")
    } else if (nrow(part$sentences) == 0 && any(on_paper) && !any(tables_on_paper) && length(first)) {
      # On paper the figure may be on another page.
      paper_only(paragraph("See @", first, "."))
    }
    for (i in seq_len(nrow(part$figures))) screen_only(!on_paper[i], show_figure(study, part$figures[i, ]))
    for (i in seq_len(nrow(part$tables))) screen_only(!tables_on_paper[i], show_table(study, part$tables[i, ]))
  })
  c(figure = sum(!on_paper), table = sum(!tables_on_paper))
}

#' Label of the first figure or table of a part; of a printed one if there is any.
first_float <- function(study, part, on_paper, tables_on_paper) {
  printed <- c(label_of("fig", study, part$figures$id[on_paper]), label_of("tbl", study, part$tables$id[tables_on_paper]))
  head(c(intersect(printed, part$floats), part$floats), 1)
}

#' A paragraph, or a list if there are many sentences.
show_sentences <- function(text) {
  if (length(text) > 3) emit(paste0("- ", prose(text), collapse = "\n")) else if (length(text)) paragraph(paste(prose(text), collapse = " "))
}

#' Largest number of rows of a table that is printed.
paper_rows <- 15

#' Largest number of collectives of a study with which the tables of each are printed.
most_tabled <- 2

#' Show something only on the HTML pages if `only` is TRUE.
screen_only <- function(only, shown) {
  if (only) emit("::: {.content-visible when-format=\"html\"}")
  force(shown)
  if (only) emit(":::")
}

paper_only <- function(shown) {
  emit("::: {.content-hidden when-format=\"html\"}")
  force(shown)
  emit(":::")
}
