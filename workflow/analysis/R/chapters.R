# Studies whose chapter has its own question: their tables, figures and sentences come from here and from
# topology_aware.R, pipelining.R, components.R, starts.R and mapping_policies.R instead of those of the general chapter.
# The same holds for sampled studies (rounds.R), because most of their cells lack algorithms to compare.

#' The functions that make the tables, figures, answer and sentences of a chapter with its own question; NULL for the
#' general chapters
#' @noRd
own_chapter <- function(results) {
  if (!is.null(results$study$program)) {
    return(list(
      tables = tables_program, figures = figures_program, answer = describe_program,
      sentences = function(results) {
        measured <- length(results$study$collectives) > 0
        bind_rows(
          said("account", c(describe_overhead(results), if (measured) describe_unlike(results))),
          said("sampling", if (measured) describe_rounds(results))
        )
      }
    ))
  }
  if (!is.null(results$study$sampling)) {
    return(list(
      tables = tables_of_rounds, figures = figures_of_rounds, answer = describe_rounds_answer,
      sentences = function(results) said("sampling", describe_rounds(results))
    ))
  }
  switch(results$study$chapter %||% "",
    atlas = list(
      tables = tables_atlas, figures = figures_atlas, answer = describe_atlas_answer,
      sentences = function(results) {
        bind_rows(
          said("atlas", describe_atlas(results)), said("guidelines", guideline_note, claim = FALSE),
          said("guidelines", describe_guidelines(results))
        )
      }
    ),
    extrapolation = list(
      tables = tables_extrapolation, figures = figures_extrapolation, answer = describe_extrapolation_answer,
      sentences = sentences_extrapolation
    ),
    topology = list(
      tables = tables_topology, figures = figures_topology, answer = describe_topology_answer,
      sentences = function(results) sentences_of_parts(results, topology_parts, describe_topology)
    ),
    pipelining = list(
      tables = tables_pipelining, figures = figures_pipelining, answer = describe_pipelining_answer,
      sentences = function(results) sentences_of_parts(results, pipelined_operations, describe_pipelining)
    ),
    components = list(
      tables = tables_components, figures = figures_components, answer = describe_components_answer,
      sentences = sentences_of_components
    ),
    starts = list(
      tables = tables_starts, figures = figures_starts, answer = describe_starts_answer,
      sentences = function(results) said("starts", describe_starts(results))
    ),
    mapping = list(
      tables = tables_mapping, figures = figures_mapping, answer = describe_mapping_answer,
      sentences = function(results) said("mapping", describe_mapping_policies(results))
    )
  )
}

#' The cells of a study with the latency of the slowest rank
#'
#' In rooted collectives most ranks return early, so the mean over ranks, which the benchmark reports first, says little
#' about the operation. Here a latency is that of the slowest rank: the maximum over ranks of each rank's mean over
#' iterations.
#'
#' @param results List from [read_results()].
#' @return Tibble, one row per cell and size: collective, algorithm (with its parameters where they vary), mpi, mapping,
#'   nodes, processes, ppn (processes per node), size_bytes, latency_us (median over launches), low_us and high_us
#'   (range), launches, setup_us (creation of communicators; NA where none was created) and left_pct (share of calls
#'   that were left to the MPI library).
#' @noRd
read_slowest <- function(results) {
  name_variants(filter(results$rows, !is.na(.data$latency_us))) |>
    mutate(slowest_us = coalesce(.data$max_latency_us, .data$latency_us), ppn = .data$processes / .data$nodes) |>
    group_by(
      .data$collective, .data$algorithm, .data$mpi, .data$mapping, .data$nodes, .data$processes, .data$ppn,
      .data$size_bytes
    ) |>
    # Inf: there may be no rows.
    summarise(
      latency_us = median(.data$slowest_us), low_us = min(.data$slowest_us, Inf),
      high_us = max(.data$slowest_us, -Inf),
      launches = n(), setup_us = median(.data$setup_us), left_pct = median(.data$left_pct), .groups = "drop"
    )
}

# The chapters whose latencies are those.
slowest_chapters <- c("topology", "pipelining", "components", "mapping")

slowest_note <- "Latency is that of the slowest rank."

#' Geometric mean
#' @noRd
geometric_mean <- function(x) exp(mean(log(x)))

format_times <- function(ratio) paste(format_number(ratio), "times")

mapping_label_factor <- function(study, mapping) {
  order <- unique(unlist(map(study$collectives, "mappings")))
  factor(label_mapping(mapping, study), unique(label_mapping(order, study)))
}
