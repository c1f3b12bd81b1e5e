# The section "How far to trust it" of the front page.

#' Sentences on the accuracy and the limits of the results
#' @noRd
front_trust <- function(studies, rows) {
  compared <- map_chr(studies, "name") %in% rows$study[!rows$simulated]
  c(
    front_agreement(studies), front_imported(studies, rows), front_intervals(studies, rows), front_accuracy(studies),
    front_lacking(studies),
    if (any(map_lgl(studies, function(study) length(study$about$program) > 0))) {
      "A program's time in collectives is that of a traced run; its chapter states the overhead of tracing."
    },
    if (nrow(rows) > 0) paste0(
      "\u201cFastest\u201d means the fastest of the algorithms that were ",
      if (any(compared)) "measured" else "simulated", front_libraries(studies[compared]),
      ". Other versions of the library may have other defaults."
    ),
    front_simulated(studies)
  )
}

#' Sentences that name the chapters with simulated numbers
#' @noRd
front_simulated <- function(studies) {
  studies <- in_chapter_order(studies)
  chapters <- function(chosen) and_list(paste0("@sec-", chapter_id(map_chr(studies[chosen], "name"))))
  simulated <- map_lgl(studies, "simulated")
  replayed <- map_lgl(studies, function(study) length(study$about$replay) > 0)
  c(
    if (any(simulated)) paste0(
      "The numbers of ", chapters(simulated), " come from a simulator and are labelled as simulated everywhere."
    ),
    if (any(replayed)) paste0(
      "The traces of ", chapters(replayed), " were measured; their replays come from a simulator and are labelled as ",
      "simulated everywhere."
    )
  )
}

#' "2.1 % on ORFEO THIN": the median of a column for each machine
#' @noRd
front_medians <- function(table, column) {
  table <- table |> group_by(.data$label) |> summarise(value = median(.data[[column]]))
  and_list(paste0(format_pct(table$value), " on ", within_text(plain_machine(table$label))))
}

front_agreement <- function(studies) {
  found <- map_dfr(studies, function(study) {
    if (!is.null(study$agreement)) mutate(study$agreement, label = paste0(
      front_machine(study), front_agreement_reach(study)
    ))
  })
  if (nrow(found) == 0) return(NULL)
  paste0(
    "Latencies of the same cells measured by two authors differ by ",
    front_medians(found, "median_abs_difference_pct"),
    " (the median of the medians for each algorithm and mapping). A smaller difference in a single cell may be noise; ",
    "means over many cells are more precise."
  )
}

#' " (only mapped by core)" where no two authors measured the other mappings
#' @noRd
front_agreement_reach <- function(study) {
  mappings <- unique(unlist(map(study$about$collectives, "mappings")))
  both <- intersect(mappings, study$agreement$mapping)
  if (length(both) == length(mappings)) return("")
  paste0(" (only mapped ", and_list(label_mapping(both, study$about)), ")")
}

front_imported <- function(studies, rows) {
  rows <- rows[rows$numbers == "measured, imported", ]
  if (nrow(rows) == 0) return(NULL)
  cells <- map_dfr(studies[map_chr(studies, "name") %in% rows$study], "cells")
  single <- isTRUE(mean(cells$launches[cells$status == "measured"] < 2) > 0.5)
  paste0(
    "The measurements on ", and_list(within_text(unique(rows$machine))), " were imported",
    if (single) ", mostly with one launch per cell: the variation between launches is unknown there",
    ". The minimum over several noisy latencies is biased low, so slow-downs are overestimated."
  )
}

#' Sentences on what the intervals of the rules' gains assume, and what "significantly" means
#' @noRd
front_intervals <- function(studies, rows) {
  pairs <- nrow(front_gains(studies, rows))
  if (pairs == 0) return(NULL)
  c(
    paste(
      "What tuned rules save is a geometric mean over mappings, process counts and message sizes. What a program",
      "saves depends on its calls."
    ),
    paste0(
      "The 95 % intervals of the gains of tuned rules are for the measured mappings. Neighbouring process counts ",
      "(with the same nearest power of two) do not count as independent; others do.",
      if (pairs > 1) paste0(
        " Each interval is that of one pair of machine and collective; \u201csignificantly\u201d refers to the ",
        "5 % level after Holm's correction for the ", pairs, " pairs (that of single mappings for the mappings of ",
        "their pair)."
      )
    )
  )
}

front_accuracy <- function(studies) {
  found <- map_dfr(studies, function(study) {
    if (is.null(study$accuracy)) return(NULL)
    filter(study$accuracy, .data$algorithm == "all", .data$mapping == "all") |> mutate(label = front_machine(study))
  })
  if (nrow(found) == 0) return(NULL)
  paste0(
    "Simulated latencies differ from measured ones by ", front_medians(found, "median_abs_error_pct"),
    " in the median", if (anyDuplicated(found$label)) " (for several collectives, the median of their medians)", "."
  )
}

front_lacking <- function(studies) {
  found <- map_dfr(studies, function(study) {
    # A ladder's grid cells have no algorithms.
    cells <- study$cells[!study$cells$collective %in% point_to_point, ]
    tibble(
      machine = machine_name(front_machine(study), study$simulated), selected = NROW(cells),
      lacking = sum(cells$status != "measured")
    )
  }) |>
    group_by(machine = factor(.data$machine, unique(.data$machine))) |>
    summarise(across(everything(), sum)) |>
    filter(.data$lacking > 0)
  if (nrow(found) == 0) return(NULL)
  paste0(
    "Grid cells (algorithm, mapping and number of processes) without a usable number at some or all sizes: ",
    and_list(paste0(
      format_number(found$lacking, 6), " of ", format_number(found$selected, 6), " on ", within_text(found$machine)
    )), "; the appendix lists the reasons."
  )
}

#' ", with Open MPI 4.1.6 on Leonardo Booster" for the machines of the studies; empty where no version is known
#' @noRd
front_libraries <- function(studies) {
  found <- map_dfr(studies, function(study) {
    how <- study$about$provenance
    if (length(how$mpi_version) != 1 || how$mpi_version %in% c("", "unknown")) return(NULL)
    tibble(library = with_version(how$mpi, how$mpi_version), machine = within_text(front_machine(study)))
  })
  if (nrow(found) == 0) return("")
  on <- vapply(split(found$machine, found$library), function(machines) and_list(unique(machines)), "")
  paste0(", with ", and_list(paste(names(on), "on", on)))
}
