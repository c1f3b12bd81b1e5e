# The answer on the front page: how much slower than the fastest algorithm the default is, over all machines.

#' Pool groups of cells: the share that is slower, and the geometric mean of the slow-down
#' @noRd
pool_front <- function(rows) {
  tibble(
    cells = sum(rows$cells), slower_pct = stats::weighted.mean(rows$slower_pct, rows$cells),
    geometric_mean_pct = pooled_regret(rows$geometric_mean_pct, rows$cells)
  )
}

front_answer <- function(rows, studies) {
  measured <- rows[!rows$simulated, ]
  simulated <- rows[rows$simulated, ]
  sentences <- c(
    if (nrow(measured) > 0) c(
      front_overall(measured, studies), front_machines(measured, studies), front_extremes(measured, studies),
      front_dominant_parts(measured, studies), front_slowest(measured)
    ),
    front_rules(studies, rows),
    if (nrow(simulated) > 0) paste0(
      "Simulated, not measured: ", lower_first(front_overall(simulated, studies, alone = nrow(measured) == 0)),
      paste0(" ", front_dominant_parts(simulated, studies), recycle0 = TRUE, collapse = ""),
      front_measured_there(simulated, measured)
    )
  )
  # Studies with another question (an application, a ladder) have their own answers.
  silent <- map(studies, describe_two_ranks)
  if (length(sentences) == 0) sentences <- head(unlist(map(studies[map_lgl(silent, is.null)], "answers")), 5)
  if (length(sentences) == 0) sentences <- unlist(silent)
  if (length(sentences) == 0) return("No study of this report compares the library's default with another algorithm.")
  sentences
}

#' Sentence on the slow-down of the default on each machine, the worst first, and the share of slower cells
#'
#' @param rows Rows of the front page, all measured or all simulated.
#' @param studies List from [read_front_study()].
#' @param alone TRUE: add the verdict in front and the share of slower cells at the end.
#' @noRd
front_overall <- function(rows, studies, alone = TRUE) {
  pooled <- map_dfr(split_machines(rows), pool_front, .id = "label")
  order <- order(pooled$geometric_mean_pct, decreasing = TRUE)
  longer <- format_pct(pooled$geometric_mean_pct)[order]
  on <- paste0(" on ", within_text(pooled$label))[order]
  fastest <- paste(" longer than the fastest", if (all(rows$simulated)) "simulated" else "measured", "algorithm")
  medians <- map_chr(split_machines(rows), function(part) spell_range(part$median_pct))[order]
  each <- paste0(longer, c(fastest, rep("", length(on) - 1)), on)
  default <- front_default(studies[map_chr(studies, "name") %in% rows$study])
  paste0(
    if (alone) paste0(front_verdict(range(pooled$slower_pct)), sub("^The ", "the ", default)) else default,
    " takes ", and_list(each), if (length(on) > 1) " (geometric means)." else " (geometric mean).",
    if (length(medians) > 1) " Medians" else " Median", if (anyDuplicated(rows$machine)) " by collective", ": ",
    and_list(medians), if (length(medians) > 1) ", respectively", ".",
    if (alone) paste0(
      " The default is more than 5 % slower in ", spell_range(pooled$slower_pct), " of the cells",
      if (length(on) > 1) ", depending on the machine",
      ". A cell is one combination of collective, process mapping, process count and message size."
    )
  )
}

#' Sentences on the machines of which one part makes up most of the mean, from [front_dominant()]
#' @noRd
front_dominant_parts <- function(rows, studies) {
  parts <- map_chr(split_machines(rows), front_dominant, studies)
  unname(parts[parts != ""])
}

#' Sentences on the collectives whose slow-down is another one by the time of the slowest rank; NULL without any
#' @noRd
front_slowest <- function(rows) {
  rows <- rows[slowest_differs(rows), ]
  if (nrow(rows) == 0) return(NULL)
  paste0(
    capitalised(name_cells(rows)), ", judged by the slowest rank instead of the mean over the ranks: the default ",
    "takes ", format_pct(rows$slowest_pct), " instead of ", format_pct(rows$mean_there_pct), " longer than the ",
    "fastest algorithm (geometric means over the ", count_of(rows$slowest_cells, "cell"), " in which both are ",
    "known). Rules are decided and judged by the mean."
  )
}

#' "12 to 18 %", or "12 %" if both ends are the same
#' @noRd
spell_range <- function(pct) {
  ends <- unique(format_pct(range(pct)))
  if (length(ends) == 1) ends else paste(sub(" %", "", ends[1]), "to", ends[2])
}

#' Sentence on the collective and mapping that makes up most of the mean of a machine; empty if none does
#'
#' @param rows Rows of the front page of one machine.
#' @param studies List from [read_front_study()].
#' @noRd
front_dominant <- function(rows, studies) {
  parts <- map_dfr(seq_len(nrow(rows)), function(i) {
    study <- studies[[match(rows$study[i], map_chr(studies, "name"))]]
    found <- study$by_mapping
    if (is.null(found)) return(NULL)
    found <- found[found$collective == rows$collective[i], ]
    mapped <- if (nrow(found) > 1) paste0(" mapped ", label_mapping(found$mapping, study$about)) else ""
    what <- paste0(collective_word(found$collective), mapped)
    tibble(what, cells = found$cells, pct = found$geometric_mean_pct)
  })
  if (nrow(parts) < 2) return("")
  # The mean is that of the logarithms.
  part <- parts$cells * log1p(parts$pct / 100)
  most <- which.max(part)
  share <- 100 * parts$cells[most] / sum(parts$cells)
  if (part[most] <= sum(part) / 2 || share >= 50) return("")
  paste0(
    "On ", within_text(plain_machine(rows$machine[1])), ", ", parts$what[most], " (", format_pct(share),
    " of the cells) makes up most of the mean: there the default takes ", format_pct(parts$pct[most]),
    " longer, in the other cells ", format_pct(pooled_regret(parts$pct[-most], parts$cells[-most])), "."
  )
}

#' Split rows by machine, in the order of the rows
#' @noRd
split_machines <- function(rows) {
  label <- plain_machine(rows$machine)
  split(rows, factor(label, unique(label)))
}

#' Sentence on the range of the cells of each machine, in the order of [front_overall()]
#' @noRd
front_machines <- function(rows, studies) {
  machines <- split_machines(rows)
  machines <- machines[order(map_dfr(machines, pool_front)$geometric_mean_pct, decreasing = TRUE)]
  about <- map_chr(machines, function(part) {
    cells <- paste(format_number(sum(part$cells), 6), "cells")
    paste(c(front_extent(studies[map_chr(studies, "name") %in% part$study]), cells), collapse = ", ")
  })
  paste0(
    "Measured machine", if (length(machines) > 1) "s", ": ",
    and_list(paste0(within_text(names(machines)), " (", about, ")")), "."
  )
}

#' The answer in one or two words, from the share of cells in which the default is more than 5 % slower
#' @noRd
front_verdict <- function(slower_pct) {
  if (max(slower_pct) < 5) "Nearly always: " else if (min(slower_pct) < 30) "Not always: " else "Often not: "
}

#' "Open MPI's default", where all studies are of one installed library
#' @noRd
front_default <- function(studies) {
  libraries <- unique(unlist(map(studies, function(study) strsplit(study$about$provenance$mpi %||% "", ", "))))
  one <- length(libraries) == 1 && !any(map_lgl(studies, "simulated"))
  if (one) paste0(mpi_label(libraries), "'s default") else "The default"
}

#' A machine's label without "(simulated)", for sentences that already say so
#' @noRd
plain_machine <- function(label) sub(",? [(]?simulated[)]?$", "", label)

#' "up to 2 nodes of 128 cores and 256 processes": the range of the cells of one machine's studies
#' @noRd
front_extent <- function(studies) {
  most <- function(column) {
    values <- as.numeric(unlist(map(studies, function(study) study$cells[[column]])))
    if (all(is.na(values))) NA else max(values, na.rm = TRUE)
  }
  nodes <- most("nodes")
  # The list of cells may be missing.
  if (is.na(nodes)) return(NULL)
  processes <- paste(format_number(most("processes"), 6), "processes")
  cores <- unique(unlist(map(studies, front_cores)))
  of <- if (length(cores) == 1) paste0(" of ", cores, " cores")
  if (nodes == 1) return(paste0("1 node", of, ", up to ", processes))
  paste0("up to ", format_number(nodes, 6), " nodes", of, " and ", processes)
}

#' Number of cores of a node; NULL where the levels of the machine are not known
#' @noRd
front_cores <- function(study) {
  levels <- study$about$machine$levels
  node <- match("node", map_chr(levels, function(level) level$name))
  if (is.na(node) || node == length(levels)) return(NULL)
  prod(map_dbl(levels[-seq_len(node)], function(level) level$count %||% 1))
}

#' Sentence with the measured slow-down of the collectives that were simulated on the same machine; for several
#' machines, only that the means are not comparable
#' @noRd
front_measured_there <- function(simulated, measured) {
  there <- measured[plain_machine(measured$machine) %in% plain_machine(simulated$machine), ]
  both <- intersect(there$collective, simulated$collective)
  if (length(both) == 0) return(NULL)
  if (n_distinct(there$machine) > 1) {
    twice <- inner_join(
      mutate(there, machine = plain_machine(.data$machine)), mutate(simulated, machine = plain_machine(.data$machine)),
      by = c("machine", "collective")
    )
    if (all(twice$cells.x == twice$cells.y)) return(NULL)
    return(" These means cannot be compared with the measured ones, because the cells differ.")
  }
  paste0(
    " On the same machine, the measured value for ", and_list(collective_word(both)), " is ",
    format_pct(pool_front(there[there$collective %in% both, ])$geometric_mean_pct), "."
  )
}

front_extremes <- function(rows, studies) {
  # Collectives with few cells do not count as extremes where others have many.
  many <- rows$cells >= few_cells
  among <- paste0("Among collectives with at least ", few_cells, " cells, the")
  ranked <- if (sum(many) > 1 && !all(many)) among else "The"
  if (sum(many) > 1) rows <- rows[many, ]
  if (nrow(rows) < 2) return(NULL)
  say <- function(row) {
    paste0(collective_word(row$collective), if (n_distinct(rows$machine) > 1) {
      paste0(" on ", within_text(row$machine))
    })
  }
  worst <- rows[which.max(rows$geometric_mean_pct), ]
  best <- rows[which.min(rows$geometric_mean_pct), ]
  paste0(
    ranked, " default loses most for ", say(worst), ": it takes ", format_pct(worst$geometric_mean_pct), " longer",
    front_by_mapping(worst, studies), ". It loses least for ", say(best), ": ",
    format_pct(best$geometric_mean_pct), "."
  )
}

#' " (5.6 % mapped by core and 452 % by node)" if several mappings were measured, else NULL
#' @noRd
front_by_mapping <- function(row, studies) {
  study <- studies[[match(row$study, map_chr(studies, "name"))]]
  found <- study$by_mapping[study$by_mapping$collective == row$collective, ]
  if (NROW(found) < 2) return(NULL)
  found <- arrange(found, .data$geometric_mean_pct)
  label <- label_mapping(found$mapping, study$about)
  paste0(" (", and_list(paste0(
    format_pct(found$geometric_mean_pct), c(" mapped ", rep(" ", nrow(found) - 1)), label
  )), ")")
}
