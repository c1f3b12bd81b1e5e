collective_words <- c(
  bcast = "broadcast", barrier = "barrier", reduce = "reduce", allreduce = "allreduce", gather = "gather",
  scatter = "scatter", allgather = "allgather", allgatherv = "allgather (v)", alltoall = "all-to-all",
  alltoallv = "all-to-all (v)", reduce_scatter_block = "reduce-scatter (block)", scan = "scan",
  exscan = "exclusive scan",
  ibcast = "non-blocking broadcast", iallreduce = "non-blocking allreduce",
  reduce_scatter = "reduce-scatter",
  ireduce_scatter = "non-blocking reduce-scatter"
)

collective_word <- function(collective) {
  word <- unname(collective_words[collective])
  ifelse(is.na(word), collective, word)
}

#' The name of a collective at the start of a heading or a sentence
#' @noRd
collective_title <- function(collective) capitalised(collective_word(collective))

#' Names of collectives for headings
#'
#' @return Character vector, named by the names of collectives.
#' @examples
#' collective_titles()[["bcast"]]
#' @export
collective_titles <- function() setNames(capitalised(collective_words), names(collective_words))

#' A text with its first letter as a capital
#'
#' @param text Character vector.
#' @return The same.
#' @examples
#' capitalised("a sentence.")
#' @export
capitalised <- function(text) paste0(toupper(substr(text, 1, 1)), substring(text, 2))

#' The label of an algorithm in figures, tables and sentences
#' @noRd
label_algorithm <- function(algorithm, study, collective) {
  known <- study$algorithms[study$algorithms$collective == collective, ]
  label <- known$label[match(algorithm, known$algorithm)]
  coalesce(label, capitalised(gsub("_", " ", algorithm)))
}

#' The name of a mapping with what tells its cells apart: nodes, processes per node or library; NA where these do not
#' @noRd
name_mapping <- function(mapping, nodes = NA, ppn = NA, mpi = NA) {
  nodes <- ifelse(is.na(nodes), "", paste(" on", count_of(nodes, "node")))
  ppn <- ifelse(is.na(ppn), "", paste0(", ", format_number(ppn), " a node"))
  paste0(mapping, nodes, ppn, ifelse(is.na(mpi), "", paste0(", ", mpi)), recycle0 = TRUE)
}

#' Add the labels of all names that [name_mapping()] can give cells to a study
#' @noRd
with_labels <- function(study, cells) {
  cells <- transmute(cells, .data$mapping, .data$nodes, ppn = .data$processes / .data$nodes, .data$mpi)
  parts <- map(list("nodes", "ppn", NULL), function(part) cells[c("mapping", part, "mpi")])
  cells <- bind_rows(parts, tibble(mapping = names(study$mappings)))
  cells <- distinct(bind_rows(cells, mutate(cells, mpi = NA)))
  label <- map_chr(cells$mapping, function(name) study$mappings[[name]]$label %||% name)
  labels <- name_mapping(label, cells$nodes, cells$ppn, mpi_label(cells$mpi))
  study$labels <- setNames(labels, do.call(name_mapping, cells))
  study
}

#' [read_study()] with the labels of its mappings, from its cells instead of its measurements
#' @noRd
read_labelled <- function(folder) {
  study <- read_study(folder)
  libraries <- c(NA, strsplit(study$provenance$mpi %||% "", ", ")[[1]])
  with_labels(study, tidyr::expand_grid(read_cells(folder), mpi = libraries))
}

label_mapping <- function(mapping, study) coalesce(unname(study$labels[as.character(mapping)]), as.character(mapping))

mapping_labels <- function(study) function(mapping) label_mapping(mapping, study)

#' Sizes in B, KiB, MiB
#'
#' @param bytes Numbers of bytes.
#' @return Character vector such as "256 B", "16 KiB": whole numbers in full, others with three digits, or in bytes
#'   where different sizes would look the same; NA stays NA.
#' @examples
#' label_bytes(c(256, 16384, 48000))
#' @export
label_bytes <- function(bytes) {
  size <- unique(bytes)
  power <- pmin(pmax(floor(log2(pmax(size, 1)) / 10), 0), 3)
  value <- size / 1024^power
  number <- ifelse(value == round(value), format_number(value, 15), format_number(value))
  text <- paste(number, c("B", "KiB", "MiB", "GiB")[power + 1])
  text <- ifelse(text %in% text[duplicated(text)], paste(format_number(size, 15), "B"), text)
  ifelse(is.na(bytes), NA_character_, text[match(bytes, size)])
}

format_number <- function(x, digits = 3) {
  several <- unique(x)
  text <- vapply(
    several, function(one) format(signif(one, digits), trim = TRUE, scientific = FALSE, big.mark = ","), "",
    USE.NAMES = FALSE
  )
  text[match(x, several)]
}

#' Counts in full, such as "1,024"
#' @noRd
format_count <- function(x) format_number(as.numeric(as.character(x)), 15)

#' "1 launch", "1,024 launches"
#'
#' @param n Counts.
#' @param singular,plural What is counted.
#' @return A text.
#' @examples
#' count_of(1024, "grid cell")
#' @export
count_of <- function(n, singular, plural = paste0(singular, "s")) {
  paste(format_count(n), ifelse(n == 1, singular, plural))
}

#' "1 iteration", "100 to 1,000 iterations"
#' @noRd
count_range <- function(values, singular, plural = paste0(singular, "s")) {
  values <- range(as.numeric(unlist(values)))
  if (values[1] == values[2]) return(count_of(values[1], singular, plural))
  paste(format_count(values[1]), "to", format_count(values[2]), plural)
}

#' Labels of MPI libraries, as LIBRARIES in collstudy/study/names.py
#'
#' @return Character vector, named by the names of the libraries in studies.
#' @examples
#' mpi_labels()[["mpich"]]
#' @export
mpi_labels <- function() {
  c(openmpi = "Open MPI", mpich = "MPICH", impi = "Intel MPI", "smpi-openmpi" = "Open MPI, simulated")
}

# Labels of the names in machine and suite files.
product_names <- c("smpi-openmpi" = "SMPI", osu = "OSU Micro-Benchmarks", mpi_labels())
product_notes <- c(collbench = "the embedded benchmark", "smpi-openmpi" = "algorithms selected as Open MPI does")

#' Name and version of a benchmark suite, an MPI library or a simulator
#'
#' @param name The name in study.json; several are separated by commas.
#' @param version Its version, or "unknown".
#' @return A text; empty without a name.
#' @examples
#' with_version("collbench", "1.0")
#' @export
with_version <- function(name, version) {
  if (is.null(name) || name == "") return("")
  parts <- function(text) trimws(strsplit(text %||% "", ",", fixed = TRUE)[[1]])
  names <- parts(name)
  known <- if (identical(version, "unknown")) "of unknown version" else version %||% ""
  if (length(parts(version)) == length(names)) known <- parts(known)
  text <- and_list(trimws(paste(coalesce(unname(product_names[names]), names), known)))
  note <- product_notes[name]
  if (is.na(note)) text else paste0(text, " (", note, ")")
}

#' Times in sentences and captions: \u00b5s up to 10 ms, ms up to 1 s, then s; tables and axes are in \u00b5s
#' @noRd
format_us <- function(x) {
  size <- abs(signif(x, 3))
  unit <- ifelse(size < 1e4 | is.na(x), 1, ifelse(size < 1e6, 2, 3))
  # No names: R spells one with a micro sign differently if the package is installed in the C locale.
  paste(format_number(x / c(1, 1e3, 1e6)[unit]), c("\u00b5s", "ms", "s")[unit])
}

format_pct <- function(x) {
  number <- ifelse(abs(x) < 10, formatC(x, 1, format = "f"), formatC(x, 0, format = "f", big.mark = ","))
  # A negative number that rounds to 0 has no sign.
  paste0(sub("^-", "\u2212", sub("^-(0\\.0)$", "\\1", number)), " %")
}

#' Names of a machine's levels in texts
#'
#' @param level Names of levels: node, socket, numa, ccd, ccx, core, ...
#' @return Character vector.
#' @examples
#' level_word(c("node", "numa", "ccx"))
#' @export
level_word <- function(level) coalesce(unname(c(numa = "NUMA domain", ccd = "CCD", ccx = "CCX")[level]), level)

#' Make part of a file name from a text
#'
#' @param text Character vector.
#' @return The letters in lower case and the digits of `text`; a hyphen replaces everything between them.
#' @examples
#' slug("Node + group (4 segments)")
#' @export
slug <- function(text) gsub("(^-|-$)", "", gsub("[^a-z0-9]+", "-", tolower(text)))

#' The identifier of a study's chapter in the report, after `sec-`
#'
#' Sections, figures and tables of the chapter append `_` and a name of their own.
#'
#' @param study Names of studies.
#' @return The names as `slug()` makes them, with a digest where another study or a section of the report could have
#'   the same.
#' @examples
#' chapter_id(c("orfeo-thin", "orfeo.thin", "appendix"))
#' @export
chapter_id <- function(study) {
  own <- c(
    "advice", "answer", "appendix", "cells", "claims", "files", "problems", "provenance", "references", "session",
    "studies", "trust"
  )
  digest <- map_chr(study, function(name) substr(rlang::hash(name), 1, 6))
  paste0(slug(study), if_else(slug(study) != study | study %in% own, paste0("_", digest), ""))
}

#' An enumeration in words
#'
#' @param words Character vector.
#' @return "a, b and c".
#' @examples
#' and_list(c("ring", "chain", "tree"))
#' @export
and_list <- function(words) {
  if (length(words) < 2) return(paste(words))
  paste(paste(utils::head(words, -1), collapse = ", "), "and", utils::tail(words, 1))
}

#' A machine's label, marked where its numbers are simulated
#' @noRd
machine_name <- function(label, simulated) {
  ifelse(simulated %in% TRUE & !grepl("simulated", label, ignore.case = TRUE), paste0(label, " (simulated)"), label)
}

#' A label within a sentence: "Two THIN nodes" -> "two THIN nodes"
#' @noRd
within_text <- function(label) {
  sub("^(One|Two|Three|Four|Five|Six|Seven|Eight|Nine|Ten) ", "\\L\\1 ", label, perl = TRUE)
}

#' " (simulated)" for captions of simulated studies, else empty
#' @noRd
simulated_note <- function(study) if (study$simulated) " (simulated)" else ""

#' Which algorithms compete ([competing()]), for captions; empty where all do
#' @noRd
competing_note <- function(results, collective) {
  here <- results$study$algorithms$algorithm[results$study$algorithms$collective == collective]
  left_out <- intersect(results$study$analysis$best_excludes, here)
  pooled <- pooling_note(results)
  paste0(
    if (length(left_out) > 0) paste0(
      " ", and_list(label_algorithm(left_out, results$study, collective)),
      if (length(left_out) == 1) " is" else " are", " excluded from the comparison."
    ),
    if (!is.null(pooled)) paste0(" ", pooled)
  )
}

#' " Messages of 0 B are left out.", for captions of figures and fits that need the logarithm of the size
#' @noRd
empty_note <- function(results, collective) {
  empty_among(results$medians$size_bytes[results$medians$collective == collective])
}

empty_among <- function(sizes) if (0 %in% sizes) " Messages of 0 B are left out." else ""

#' The caption of a table on one collective
#' @noRd
caption_in <- function(results, collective, ...) {
  paste0(collective_title(collective), simulated_note(results$study), ": ", ...)
}

caption_default_vs_best <- function(results, collective) {
  caption_in(
    results, collective, "the default against the best other algorithm, by class of message size and number of ",
    "processes. A cell is one mapping, number of processes and message size. Optimal: cells in which the default is ",
    "at least as fast as every other algorithm. Differences are default minus best (\u00b5s); positive: the default ",
    "is slower.", class_note("Message size", results$study$analysis$size_classes, label_bytes),
    class_note("Processes", results$study$analysis$process_classes, format_count), competing_note(results, collective)
  )
}

#' " Processes: Few is up to 16 and Many up to 48.": the ends of classes, for captions; empty where the labels are the
#' ranges
#' @noRd
class_note <- function(what, classes, label) {
  if (NROW(classes) == 0) return("")
  range <- ifelse(classes$from == classes$to, label(classes$from), paste(label(classes$from), "to", label(classes$to)))
  if (all(range == classes$label)) return("")
  verb <- rep(c(" is", ""), c(1, nrow(classes) - 1))
  paste0(" ", what, ": ", and_list(paste0(classes$label, verb, " up to ", label(classes$to))), ".")
}

#' "Small, 1 B to 4 KiB": a class with its range, for sentences; the label alone where it is the range
#' @noRd
class_with_range <- function(name, classes, label) {
  class <- classes[match(name, classes$label), ]
  if (NROW(class) == 0 || is.na(class$from)) return(name)
  # 2049 B is "2 KiB", too.
  from <- if (label(class$from) %in% label(classes$to[classes$to < class$from])) "more than "
  range <- if (class$from == class$to) label(class$from) else paste0(from, label(class$from), " to ", label(class$to))
  if (range == name) name else paste0(name, ", ", range)
}

caption_optimal <- function(results, collective) {
  caption_in(
    results, collective, "number of process counts at which the default is faster than the best other algorithm ",
    "(optimal), slower (not optimal) or exactly as fast (zero difference).", competing_note(results, collective)
  )
}

caption_winners <- function(results, collective) {
  caption_in(
    results, collective, "fastest algorithm of each cell and latencies (\u00b5s). ", tie_rule(results, collective),
    competing_note(results, collective)
  )
}

caption_loglinear <- function(results, collective) {
  caption_in(
    results, collective, "fit of the natural logarithm of latency (\u00b5s) as a linear function of the number of ",
    "processes and of the natural logarithm of message size (B); MAPE: mean absolute percentage error on the fitted ",
    "cells.",
    empty_note(results, collective)
  )
}

caption_slopes <- function(results, collective) {
  caption_in(results, collective, "slopes of the degree-1 spline fitted to the tree algorithm (\u00b5s per process).")
}

caption_fits <- function(results, collective) {
  caption_in(
    results, collective, "coefficients of the three fitted forms, with 95 % intervals (\u00b5s, or \u00b5s per ",
    "process). Chosen: the form that the figures show."
  )
}

caption_errors <- function(results, collective) {
  caption_in(
    results, collective, "mean absolute percentage error (MAPE) of models on cells that they were not fitted to. ",
    "Interpolation: every second number of processes",
    if (has_sizes(results, collective)) " and every fourth message size",
    " was left out of the fit. Extrapolation: the ",
    "models are fitted to at most ", format_count(results$study$analysis$fit_up_to), " processes and evaluated on ",
    "more. ",
    if (n_distinct(rows_to_fit(results, collective)$processes) > most_modelled) paste0(
      "At most ", most_modelled, " process counts of each algorithm and mapping are used. "
    ),
    if (size_step(rows_to_fit(results, collective)) > 1) paste(
      "Message sizes differ between process counts: where a count lacks a size, interpolation takes the latency of the",
      "nearest count that has it. "
    ),
    model_note, empty_note(results, collective)
  )
}

caption_costs <- function(results, collective) {
  caption_in(
    results, collective, "costs of the hop model (\u00b5s per unit of each term) for each message size. A message ",
    "counts for the outermost level that it crosses. Terms of a level: hops: messages on the path from the root, mean ",
    "over the ranks; messages: their number; crowd: most messages that cross the same link at once, summed over the ",
    "steps; sync: messages of the busiest rank in the barrier between two calls.", empty_note(results, collective)
  )
}

#' How the models work, for captions
#' @noRd
model_note <- paste(
  "The hop model counts the messages of the algorithm by the level of the machine that they cross (core, socket, node",
  "...) and fits a cost for each level and message size; the anchored hop model is scaled to the latencies at",
  "neighbouring process counts. Log-interpolation is linear in log latency between known cells; hop model \u00d7",
  "interpolation is the geometric mean of both. The smooth surface is a penalised regression spline of log latency",
  "over process count and log message size."
)
