#' Read what a study asks for
#'
#' @param folder Folder `results/<study>` with `study.json` (see docs/architecture.md).
#' @return A list: the content of `study.json` (`name`, `title`, `simulated`, `machine`, `collectives`, ...), plus
#'   `algorithms` (tibble: collective, algorithm, label, in reading order) and `analysis` with every default filled in.
#' @export
read_study <- function(folder) {
  study <- jsonlite::read_json(file.path(folder, "study.json"))
  study$folder <- folder
  study$simulated <- isTRUE(study$simulated)
  study$collectives <- map(study$collectives, read_collective)
  study$decisions <- map(study$decisions, read_decisions)
  study$algorithms <- bind_rows(no_algorithms(), map_dfr(study$collectives, "algorithms", .id = "collective"))
  study$analysis <- complete_analysis(study$analysis, study)
  study
}

no_algorithms <- function() tibble(collective = character(), algorithm = character(), label = character())

read_collective <- function(collective) {
  algorithms <- map_dfr(collective$algorithms, function(a) {
    tibble(algorithm = a$name, parameters = a$parameters %||% "", label = a$label %||% a$name)
  })
  varied <- several(distinct(algorithms, .data$algorithm, .data$parameters), "algorithm") & algorithms$parameters != ""
  algorithms$algorithm[varied] <- variant_name(algorithms$algorithm, algorithms$parameters)[varied]
  list(
    algorithms = algorithms[c("algorithm", "label")],
    mappings = as.character(unlist(collective$mappings)),
    processes = sort(as.numeric(unlist(collective$processes))),
    sizes = sort(as.numeric(unlist(collective$sizes)))
  )
}

read_decisions <- function(rows) {
  map_dfr(rows, function(row) {
    tibble(ranks = as.numeric(row$ranks %||% Inf), bytes = as.numeric(row$bytes %||% Inf), algorithm = row$algorithm)
  })
}

#' The analysis section of a study with defaults computed from its own grid
#' @noRd
complete_analysis <- function(analysis, study) {
  sizes <- sort(unique(unlist(map(study$collectives, "sizes"))))
  processes <- sort(unique(unlist(map(study$collectives, "processes"))))
  analysis <- analysis %||% list()
  list(
    size_classes = classes_of(analysis$size_classes, sizes, c("Small", "Medium", "Large")),
    process_classes = classes_of(analysis$process_classes, processes, c("Few", "Medium", "Many")),
    barrier_tree_knots = as.numeric(unlist(analysis$barrier_tree_knots %||% default_knots(study, processes))),
    best_excludes = as.character(unlist(analysis$best_excludes)),
    tie_pct = as.numeric(analysis$tie_pct %||% 2),
    compare = analysis$compare,
    figure_sizes = as.numeric(unlist(analysis$figure_sizes %||% spread_out(sizes, 4))),
    fit_up_to = as.numeric(analysis$extrapolation$fit_up_to %||% default_fit_up_to(processes))
  )
}

classes_of <- function(classes, values, labels) {
  if (length(classes) > 0) {
    return(tibble(
      label = map_chr(classes, "label"), from = as.numeric(map(classes, "from")), to = as.numeric(map(classes, "to"))
    ))
  }
  if (length(values) == 0) return(tibble(label = character(), from = numeric(), to = numeric()))
  groups <- split(values, ceiling(seq_along(values) * length(labels) / length(values)))
  tibble(
    label = labels[as.integer(names(groups))], from = unname(map_dbl(groups, min)), to = unname(map_dbl(groups, max))
  )
}

spread_out <- function(values, count) {
  if (length(values) <= count) return(values)
  values[round(seq(1, length(values), length.out = count))]
}

default_fit_up_to <- function(processes) {
  if (length(processes) == 0) return(NA_real_)
  processes[ceiling(2 / 3 * length(processes))]
}

#' Process counts that fill one more innermost group of cores (a socket, say), in core order
#' @noRd
default_knots <- function(study, processes) {
  per_group <- group_sizes(study)
  if (nrow(per_group) == 0 || length(processes) == 0) return(numeric())
  inner <- utils::tail(per_group$ranks, 1)
  knots <- seq(inner, max(processes, inner), by = inner)
  knots[knots > min(processes) & knots < max(processes)]
}

#' How many processes one unit of each level holds
#'
#' @param study A study from [read_study()].
#' @return Tibble: `level` (node, socket, ...), `ranks`: processes that fill one unit of that level. Outermost first;
#'   the
#'   innermost level (a core) is left out. Empty where the machine has no levels.
#' @export
group_sizes <- function(study) {
  levels <- study$machine$levels
  if (length(levels) < 2) return(tibble(level = character(), ranks = numeric()))
  counts <- as.numeric(map(levels, function(level) level$count %||% 1))
  ranks <- rev(cumprod(rev(counts)))[-1]
  tibble(level = map_chr(levels, "name")[seq_along(ranks)], ranks = ranks)
}

measurement_columns <- list(
  collective = "c", algorithm = "c", parameters = "c", mpi = "c", mapping = "c", nodes = "d", processes = "d",
  size_bytes = "d",
  launch = "i", latency_us = "d", min_latency_us = "d", max_latency_us = "d", proved = "l"
)

#' Read the measurements of a study
#'
#' Rows without a latency (bandwidth tests) and rows whose forced algorithm was not used (`proved` FALSE) are left out.
#' An algorithm that was measured with several parameters becomes several algorithms, named `algorithm [parameters]`; a
#' mapping measured on several numbers of nodes for the same number of processes becomes `mapping on N nodes`, and
#' with several
#' MPI libraries `mapping, library`: only what ran in the same place is compared.
#'
#' @param folder Folder `results/<study>` with `measurements.csv`.
#' @return Tibble, one row per cell x message size x launch: collective, algorithm, mapping, processes, size_bytes (NA
#'   where the collective has no message), launch, latency_us, min_latency_us, max_latency_us.
#' @export
read_measurements <- function(folder) split_variants(read_rows(file.path(folder, "measurements.csv")))

#' Rows with a latency whose forced algorithm was used, as a file has them, with `further` columns (name and type)
#' @noRd
read_rows <- function(path, further = list()) {
  header <- trimws(strsplit(readLines(path, n = 1), ",", fixed = TRUE)[[1]])
  columns <- c(measurement_columns, further)
  wanted <- columns[names(columns) %in% header]
  lacking <- setdiff(c("collective", "algorithm", "mapping", "processes", "latency_us"), header)
  if (length(lacking) > 0) stop(path, ": no column ", paste(lacking, collapse = ", "), call. = FALSE)
  types <- do.call(readr::cols_only, wanted)
  rows <- readr::read_csv(path, col_types = types, lazy = FALSE, progress = FALSE)
  for (name in setdiff(names(columns), names(rows))) rows[[name]] <- NA
  filter(rows, !is.na(.data$latency_us), is.na(.data$proved) | .data$proved)
}

split_variants <- function(rows) {
  varied <- varies(rows, c("collective", "algorithm"), "parameters") & !is.na(rows$parameters)
  spread <- varies(rows, c("collective", "mapping", "processes"), "nodes")
  spread <- paste(rows$collective, rows$mapping) %in% unique(paste(rows$collective, rows$mapping)[spread])
  mixed <- varies(rows, "collective", "mpi")
  rows$algorithm[varied] <- variant_name(rows$algorithm, rows$parameters)[varied]
  rows$mapping[spread] <- paste0(rows$mapping[spread], " on ", rows$nodes[spread], " nodes")
  rows$mapping[mixed] <- paste0(rows$mapping[mixed], ", ", rows$mpi[mixed])
  select(rows, -"parameters", -"nodes", -"proved", -"mpi")
}

variant_name <- function(algorithm, parameters) paste0(algorithm, " [", parameters, "]")

#' For each row: does `column` take several values among the rows with the same keys?
#' @noRd
varies <- function(rows, keys, column) {
  values <- distinct(rows[c(keys, column)])
  more <- distinct(values[several(values, keys), keys])
  vctrs::vec_in(rows[keys], more)
}

several <- function(data, keys) {
  id <- vctrs::vec_group_id(data[keys])
  tabulate(id, max(0L, attr(id, "n")))[id] > 1
}

#' Read which cells a study asked for and what became of them
#'
#' @param folder Folder `results/<study>`; `cells.csv` may be missing.
#' @return Tibble: collective, algorithm, mapping, nodes, processes, status, reason, ... Empty where there is no file.
#' @export
read_cells <- function(folder) {
  path <- file.path(folder, "cells.csv")
  if (!file.exists(path)) return(tibble(collective = character(), algorithm = character(), status = character()))
  readr::read_csv(path, col_types = readr::cols(.default = "c", processes = "d"), progress = FALSE)
}

#' Read a study with its medians
#'
#' @param folder Folder `results/<study>`.
#' @return A list: `study` ([read_study()]), `medians` ([summarise_launches()]), `cells` ([read_cells()]).
#' @export
read_results <- function(folder) {
  key <- paste(
    normalizePath(folder), paste(file.mtime(file.path(folder, c("study.json", "measurements.csv"))), collapse = " ")
  )
  if (!identical(memory$key, key)) {
    study <- read_study(folder)
    rows <- read_measurements(folder)
    # Times of whole applications are no latencies of collectives.
    if (length(study$applications)) rows <- rows[0, ]
    memory$results <- list(study = study, medians = summarise_launches(rows), cells = read_cells(folder))
    memory$key <- key
  }
  memory$results
}

# The study read last: a report asks for the same one many times.
memory <- new.env(parent = emptyenv())

`%||%` <- function(x, y) if (is.null(x)) y else x
