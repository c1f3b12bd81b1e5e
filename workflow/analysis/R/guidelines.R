# Performance guidelines [@traff2010; @hunold2018]: a collective should not be slower than a composition of other
# collectives with the same result, nor than itself with a larger message.

#' Compositions of collectives that have the result of one collective
#'
#' Sizes are those of the benchmark: of one rank for allgather, alltoall, gather and scatter, otherwise of the whole
#' vector. `power`: the size of a part is that of the collective times the number of ranks to this power.
#' @noRd
compositions <- tribble(
  ~guideline,                                ~collective,      ~part,            ~power,
  "allreduce <= reduce + bcast",             "allreduce",      "reduce",         0,
  "allreduce <= reduce + bcast",             "allreduce",      "bcast",          0,
  "allreduce <= reduce_scatter + allgather", "allreduce",      "reduce_scatter", 0,
  "allreduce <= reduce_scatter + allgather", "allreduce",      "allgather",      -1,
  "allgather <= gather + bcast",             "allgather",      "gather",         0,
  "allgather <= gather + bcast",             "allgather",      "bcast",          1,
  "allgather <= alltoall",                   "allgather",      "alltoall",       0,
  "bcast <= scatter + allgather",            "bcast",          "scatter",        -1,
  "bcast <= scatter + allgather",            "bcast",          "allgather",      -1,
  "reduce_scatter <= reduce + scatter",      "reduce_scatter", "reduce",         0,
  "reduce_scatter <= reduce + scatter",      "reduce_scatter", "scatter",        -1,
  "gather <= allgather",                     "gather",         "allgather",      0,
  "reduce <= allreduce",                     "reduce",         "allreduce",      0,
  "scatter <= bcast",                        "scatter",        "bcast",          1
)

#' What a guideline is, for texts
#' @noRd
guideline_note <- paste(
  "A performance guideline [@traff2010; @hunold2018] says that a collective should not be slower than a composition of",
  "other collectives with the same result, nor than itself with a larger message."
)

#' A violation is a ratio above this: two authors of one machine differ by as much
#' @noRd
guideline_tolerance <- 1.05

#' Columns in which a collective and the parts of its composition must agree
#' @noRd
guideline_place <- c("machine", "simulated", "study", "source", "mpi", "mapping", "nodes", "processes")

#' The default's cells by place, with the time of the slowest rank where it is known
#'
#' @param results List from [read_results()] of a study that gathers others.
#' @return Tibble: columns of `guideline_place`, collective, size_bytes, latency_us (median over launches, as the study
#'   has it) and slowest_us (NA where only the mean over ranks is known).
#' @noRd
default_cells <- function(results) {
  rows <- label_machines(results$rows, results$study$machine_labels)
  rows <- rows[rows$algorithm == "default" & !rows$collective %in% c(point_to_point, applications), ]
  rows <- bind_rows(rows[0, ], map(unname(split(rows, rows$machine)), rows_in_place))
  rows |>
    filter(!is.na(.data$size_bytes), .data$processes > 1) |>
    mutate(slowest_us = ifelse(
      startsWith(coalesce(.data$statistic, ""), "slowest_rank"), .data$latency_us, .data$max_latency_us
    )) |>
    group_by(across(all_of(c(guideline_place, "collective", "size_bytes")))) |>
    summarise(latency_us = median(.data$latency_us), slowest_us = median(.data$slowest_us), .groups = "drop")
}

#' Compare every cell with the guidelines that apply to it
#'
#' A part is taken at its size or, since padding is allowed, at the next larger measured size up to twice of it. A
#' composition is judged only where all parts were measured in the same study, by the same author, with the same
#' mapping, nodes and ranks, and where the time of the slowest rank is known: the mean over the ranks of a rooted
#' collective hides the ranks that wait longest. A message size is compared with all larger ones.
#'
#' @param results List from [read_results()] of a study that gathers others.
#' @return Tibble: columns of `guideline_place`, guideline, collective, size_bytes, latency_us, bound_us (of the
#'   composition, or the fastest larger message) and ratio, above 1 where the guideline is violated.
#' @noRd
judge_guidelines <- function(results) {
  cells <- default_cells(results)
  names <- unique(compositions$guideline)
  composed <- map(names, function(name) judge_composition(cells, filter(compositions, .data$guideline == name)))
  bind_rows(composed, judge_monotony(cells)) |> mutate(ratio = .data$latency_us / .data$bound_us)
}

# In base R, because the cost per call of dplyr's verbs would dominate the run time.
judge_composition <- function(cells, parts) {
  known <- cells[!is.na(cells$slowest_us), ]
  whole <- known[known$collective == parts$collective[1], c(guideline_place, "collective", "size_bytes", "slowest_us")]
  names(whole)[names(whole) == "slowest_us"] <- "latency_us"
  whole$guideline <- rep(parts$guideline[1], nrow(whole))
  whole$bound_us <- rep(0, nrow(whole))
  for (i in seq_len(nrow(parts))) {
    part <- known[known$collective == parts$part[i], c(guideline_place, "size_bytes", "slowest_us")]
    names(part) <- c(guideline_place, "part_bytes", "part_us")
    found <- inner_join(whole, part, by = guideline_place, relationship = "many-to-many")
    power <- parts$power[i]
    # Dividing is exact where the size is a multiple; multiplying by the reciprocal is not.
    whole_part <- if (power < 0) found$size_bytes / found$processes^-power else found$size_bytes * found$processes^power
    needed <- pmax(ceiling(whole_part), 1)
    found <- found[found$part_bytes >= needed & found$part_bytes <= 2 * needed, ]
    found <- found[order(found$part_bytes), ]
    found <- found[!duplicated(found[c(guideline_place, "size_bytes")]), ]
    found$bound_us <- found$bound_us + found$part_us
    whole <- found[order(found$size_bytes), names(whole)]
  }
  whole
}

judge_monotony <- function(cells) {
  cells |>
    group_by(across(all_of(c(guideline_place, "collective")))) |>
    arrange(.data$size_bytes, .by_group = TRUE) |>
    # The fastest of all larger messages; none for the largest.
    mutate(bound_us = lead(rev(cummin(rev(.data$latency_us)))), guideline = "no larger message is faster") |>
    ungroup() |>
    filter(!is.na(.data$bound_us)) |>
    select(all_of(c(guideline_place, "guideline", "collective", "size_bytes", "latency_us", "bound_us")))
}

#' Violations by machine and guideline
#'
#' @param judged Tibble from [judge_guidelines()].
#' @return Tibble: machine, simulated, collective, guideline, cells, violated_pct (more than 5 % slower), slowdown_pct
#'   (geometric mean over the violated cells; NA without one), worst_pct and where: worst_mapping, worst_processes,
#'   worst_size_bytes.
#' @noRd
summarise_guidelines <- function(judged) {
  judged |>
    group_by(.data$machine, .data$simulated, .data$collective, .data$guideline) |>
    summarise(
      cells = n(), violated_pct = 100 * mean(.data$ratio > guideline_tolerance),
      slowdown_pct = geometric_regret(100 * (.data$ratio[.data$ratio > guideline_tolerance] - 1)),
      worst = which.max(.data$ratio), worst_pct = 100 * (.data$ratio[.data$worst] - 1),
      worst_mapping = .data$mapping[.data$worst], worst_processes = .data$processes[.data$worst],
      worst_size_bytes = .data$size_bytes[.data$worst], .groups = "drop"
    ) |>
    mutate(
      across(c("worst_pct", "worst_processes", "worst_size_bytes"), ~ ifelse(.data$violated_pct > 0, .x, NA)),
      worst_mapping = ifelse(.data$violated_pct > 0, .data$worst_mapping, NA)
    ) |>
    select(-"worst") |>
    arrange(.data$simulated, .data$machine, desc(.data$violated_pct))
}

tables_guidelines <- function(results) {
  list(listed("guidelines", "violations", summarise_guidelines(judge_guidelines(results)), paste(
    "Performance guidelines [@traff2010; @hunold2018] that the library's default violates, by machine: the share of",
    "the cells in which it is more than 5 % slower than the composition (or than a larger message), its slow-down in",
    "these cells (geometric mean), and the worst cell. Only cells whose parts were all measured in the same study, by",
    "the same author, with the same mapping and ranks, are compared. Compositions are judged by the slowest rank's",
    "time, message sizes by the latency of the study. With few launches of a cell, some violations are noise. A",
    "guideline without a row could not be judged on the machine."
  )))
}

#' Sentences on the guidelines that are violated, and on those that could not be judged
#' @noRd
describe_guidelines <- function(results) {
  found <- summarise_guidelines(judge_guidelines(results))
  unjudged <- setdiff(unique(compositions$guideline), found$guideline)
  violated <- filter(found, .data$violated_pct > 0)
  c(
    if (nrow(violated) > 0) paste0(
      capitalised(machine_name(violated$machine, violated$simulated)), ", ",
      collective_word(violated$collective), ": the default violates the guideline \u201c", violated$guideline,
      "\u201d in ", format_number(round(violated$violated_pct * violated$cells / 100), 6), " of ",
      format_number(violated$cells, 6), " cells (", format_pct(violated$violated_pct), "); there it is ",
      format_pct(violated$slowdown_pct), " slower than allowed", ifelse(
        round(violated$violated_pct * violated$cells / 100) == 1, "",
        paste0(" (geometric mean; at most ", format_pct(violated$worst_pct), ")")
      ), "."
    ),
    if (nrow(violated) > 0) {
      "With few launches of a cell, some violations are noise, the worst ones before all others."
    } else if (nrow(found) > 0) {
      "No guideline that could be judged is violated by more than 5 %."
    },
    if (length(unjudged) > 0) paste0(
      "These guidelines could not be judged on any machine, because no study measured all parts with the same mapping ",
      "and ranks, including the time of the slowest rank: ", and_list(paste0("\u201c", unjudged, "\u201d")), "."
    )
  )
}
