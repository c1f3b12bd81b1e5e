#' Read the description of a study
#'
#' @param folder Folder `results/<study>` with `study.json` (see docs/files.md).
#' @return A list: the content of `study.json` (`name`, `title`, `simulated`, `machine`, `collectives`, ...), plus
#'   `algorithms` (tibble: collective, algorithm, label, component or empty, inside (label of the algorithm inside a
#'   pipelined one, or empty), series (its name in the findings of the import checks), in reading order) and `analysis`
#'   with every default filled in.
#' @noRd
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

no_algorithms <- function() {
  tibble(
    collective = character(), algorithm = character(), label = character(), component = character(),
    inside = character(), series = character()
  )
}

read_collective <- function(collective) {
  algorithms <- map_dfr(collective$algorithms, function(a) {
    tibble(
      algorithm = a$name, parameters = a$parameters %||% "", label = a$label %||% a$name,
      component = a$component %||% "", inside = a$inside %||% ""
    )
  })
  algorithms$series <- paste0(
    algorithms$algorithm, ifelse(algorithms$parameters == "", "", paste0(" [", algorithms$parameters, "]"))
  )
  varied <- several(distinct(algorithms, .data$algorithm, .data$parameters), "algorithm") & algorithms$parameters != ""
  algorithms$algorithm[varied] <- variant_name(algorithms$algorithm, algorithms$parameters)[varied]
  list(
    algorithms = algorithms[c("algorithm", "label", "component", "inside", "series")],
    mappings = as.character(unlist(collective$mappings)),
    processes = sort(as.numeric(unlist(collective$processes))),
    sizes = sort(as.numeric(unlist(collective$sizes)))
  )
}

read_decisions <- function(rows) {
  map_dfr(rows, function(row) {
    tibble(
      ranks = as.numeric(row$ranks %||% Inf), bytes = as.numeric(row$bytes %||% Inf), algorithm = row$algorithm,
      parameters = row$parameters %||% ""
    )
  })
}

#' The analysis section of a study, with missing values filled in from its grid
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
  # One value is neither small nor large.
  if (length(values) < 3) labels <- if (length(values) == 1) "All" else labels[-2]
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

#' Process counts that fill one more innermost group of cores (such as a socket), in core order
#' @noRd
default_knots <- function(study, processes) {
  per_group <- group_sizes(study)
  if (nrow(per_group) == 0 || length(processes) == 0) return(numeric())
  inner <- utils::tail(per_group$ranks, 1)
  knots <- seq(inner, max(processes, inner), by = inner)
  knots[knots > min(processes) & knots < max(processes)]
}

#' Number of processes that fill one unit of each level
#'
#' @param study A study from [read_study()].
#' @return Tibble: `level` (node, socket, ...), `ranks` (processes that fill one unit of that level). Outermost first,
#'   without the innermost level (a core). Empty if the machine has no levels.
#' @noRd
group_sizes <- function(study) {
  levels <- study$machine$levels
  if (length(levels) < 2) return(tibble(level = character(), ranks = numeric()))
  counts <- as.numeric(map(levels, function(level) level$count %||% 1))
  ranks <- rev(cumprod(rev(counts)))[-1]
  tibble(level = map_chr(levels, "name")[seq_along(ranks)], ranks = ranks)
}

measurement_columns <- list(
  study = "c", machine = "c", simulated = "l", suite = "c", iterations = "d",
  collective = "c", algorithm = "c", parameters = "c", mpi = "c", mapping = "c", nodes = "d", processes = "d",
  size_bytes = "d", launch = "i", latency_us = "d", min_latency_us = "d", max_latency_us = "d", bandwidth_mb_s = "d",
  proved = "l", cell = "c", setup_us = "d", left_pct = "d", late = "d", from_rank = "d", to_rank = "d", comm_us = "d",
  sweeps = "d", flops = "d", residual = "d", seconds = "d", round = "c", statistic = "c", source = "c", flag = "c",
  runs = "c"
)

#' Read measurements.csv
#'
#' Rows whose forced algorithm was not used (`proved` FALSE) are left out.
#'
#' @param path The file.
#' @return Tibble with all of `measurement_columns`; columns that the file lacks are NA.
#' @noRd
read_rows <- function(path) {
  header <- trimws(strsplit(readLines(path, n = 1), ",", fixed = TRUE)[[1]])
  wanted <- measurement_columns[names(measurement_columns) %in% header]
  lacking <- setdiff(c("collective", "algorithm", "mapping", "processes", "latency_us"), header)
  if (length(lacking) > 0) stop(path, ": no column ", paste(lacking, collapse = ", "), call. = FALSE)
  types <- do.call(readr::cols_only, wanted)
  rows <- readr::read_csv(path, col_types = types, lazy = FALSE, progress = FALSE)
  # Columns that the file lacks share one vector of each type.
  empty <- map(list(c = NA_character_, d = NA_real_, i = NA_integer_, l = NA), rep, nrow(rows))
  for (name in setdiff(names(measurement_columns), names(rows))) rows[[name]] <- empty[[measurement_columns[[name]]]]
  keep_rows(rows, is.na(rows$proved) | rows$proved)
}

#' Select rows of a tibble, without a copy if all are kept
#' @noRd
keep_rows <- function(rows, keep) if (all(keep)) rows else rows[keep, ]

#' Rename algorithms and mappings so that cells with different parameters, nodes or libraries have different names
#'
#' An algorithm that was measured with several parameters becomes several ([variant_name()]); a mapping measured on
#' several numbers of nodes for the same number of processes becomes `mapping on N nodes`, and with several MPI
#' libraries `mapping, library`.
#'
#' @param rows Tibble with collective, algorithm, parameters, mapping, nodes, mpi, processes, latency_us.
#' @return `rows` with `algorithm` and `mapping` renamed; `algorithm_name` and `place` are the previous names; `mapped`
#'   is the new mapping without its number of nodes.
#' @noRd
name_rows <- function(rows) {
  rows <- name_variants(mutate(rows, place = .data$mapping))
  of_mapping <- rows[c("collective", "mapping")]
  spread <- distinct(of_mapping[varies(rows, c("collective", "mapping", "processes"), "nodes"), ])
  nodes <- ifelse(vctrs::vec_in(of_mapping, spread), rows$nodes, NA)
  mpi <- ifelse(varies(rows, "collective", "mpi"), rows$mpi, NA)
  rows$mapping <- name_mapping(rows$place, nodes, mpi = mpi)
  mutate(rows, mapped = name_mapping(.data$place, mpi = .env$mpi))
}

#' Rename the algorithms that were measured with several parameters; `algorithm_name` is the previous name
#' @noRd
name_variants <- function(rows) {
  rows <- mutate(rows, algorithm_name = .data$algorithm, parameters = coalesce(.data$parameters, ""))
  varied <- varies(rows, c("collective", "algorithm"), "parameters") & rows$parameters != ""
  rows$algorithm[varied] <- variant_name(rows$algorithm[varied], rows$parameters[varied])
  rows
}

#' TRUE for each row whose `column` takes several values among the rows with the same keys
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

#' Read the cells of a study and their status
#'
#' @param folder Folder `results/<study>`; `cells.csv` may be missing.
#' @return Tibble: collective, algorithm, mapping, nodes, processes, status, reason, ... Empty where there is no file.
#' @noRd
read_cells <- function(folder) {
  path <- file.path(folder, "cells.csv")
  if (!file.exists(path)) path <- I("collective,algorithm,mapping,nodes,processes,status\n")
  # Results of an earlier version lack the last columns.
  readr::read_csv(path, col_types = readr::cols(.default = "c"), progress = FALSE) |>
    mutate(across(any_of(c("nodes", "processes", "seconds", "peak_memory_mb")), as.numeric))
}

#' Read a study with its medians
#'
#' @param folder Folder `results/<study>` with study.json, measurements.csv, cells.csv, ranks.csv, edges.csv and
#'   exchanges.csv (docs/files.md).
#' @return A list: `study` ([read_study()], with `variants`, `places`, `ranks`, `trees` and `exchanges`: what ran and
#'   where), `rows` (the measurements), `medians` ([summarise_launches()]) and `launches` (of cells with several),
#'   `judged` (`medians` and `launches` by which algorithms are compared: [pool_same_messages()], [within_sources()]),
#'   `cells` ([read_cells()]) and, for a study of applications, `applications` (their traces and replays).
#' @examples
#' results <- read_results(system.file("extdata", "example", package = "collanalysis"))
#' results$medians
#' @export
read_results <- function(folder) {
  results <- read_measured(folder)
  results$study$ranks <- read_placements(folder)
  results$study$trees <- read_trees(folder)
  results$study$exchanges <- read_exchanges(folder)
  results$cells <- read_cells(folder)
  traced <- results$study$applications
  if (length(results$study$program)) traced <- list(results$study$program)
  if (length(traced)) results$applications <- read_applications(results$study, traced)
  results
}

#' Read a study with its measurements only
#' @noRd
read_measured <- function(folder) {
  study <- read_study(folder)
  rows <- read_rows(file.path(folder, "measurements.csv"))
  named <- name_rows(keep_rows(rows, !is.na(rows$latency_us)))
  study$variants <- distinct(named, .data$collective, .data$algorithm, .data$algorithm_name, .data$parameters)
  study$places <- distinct(
    named, .data$collective, .data$mapping, .data$place, .data$mapped, .data$nodes, .data$mpi, .data$processes
  )
  study <- with_labels(study, distinct(rows, .data$mapping, .data$nodes, .data$processes, .data$mpi))
  # Times of whole applications are not latencies of collectives.
  if (length(study$applications)) named <- named[0, ]
  # Rows that an import check flagged are kept, but excluded from all numbers.
  flagged <- !is.na(named$flag) & named$flag != ""
  sound <- keep_rows(named, !flagged)
  study$flagged <- count(named[flagged, ], .data$collective)
  pooled <- pool_same_messages(sound)
  judged <- list(medians = summarise_launches(within_sources(pooled)), launches = launches_of(pooled))
  list(
    study = study, rows = rows, medians = summarise_launches(sound), launches = launches_of(sound), judged = judged
  )
}

#' The launches of cells that have several, for [compare_rounds()]
#'
#' Each author of imported data measured all algorithms in one campaign, so the numbers of an author form a round unless
#' the importer gives rounds.
#' @noRd
launches_of <- function(rows) {
  columns <- c(cell_keys, "algorithm_name", "messages", "launch", "round", "source", "latency_us")
  columns <- intersect(columns, names(rows))
  rows <- keep_rows(rows[columns], several(rows, cell_keys))
  if (n_distinct(rows$source) > 1 && all(is.na(rows$round))) rows$round <- rows$source
  rows
}
