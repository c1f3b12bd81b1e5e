# The front page of a report: what all of its studies say together. It reads tables that the studies' analyses wrote,
# so that a number on it is the number of a chapter.

#' What the front page of a report says
#'
#' @param folders Folders `results/<study>` of the studies with results.
#' @return List: `question` (one sentence), `answer` (sentences: measured machines first, then what was simulated),
#'   `table` (tibble, at most 12 rows: machine, study, collective, cells, slower_pct, geometric_mean_pct, best_other,
#'   best_other_geometric_mean_pct; those of few cells last), `left_out` (names of its rows that are not shown),
#'   `advice` (list: see
#'   [advise_front()]), `judged` (number of machines and collectives whose rules were judged), `trust`
#'   (sentences), `silent` (list by study: the sentence about one that can tell
#'   no algorithms apart), `findings` (list by study: one sentence about what it found),
#'   `order` (names of the studies, most informative first).
#' @examples
#' folder <- tempfile()
#' write_analysis(read_results(system.file("extdata", "example", package = "collanalysis")), folder)
#' file.copy(system.file("extdata", "example", "study.json", package = "collanalysis"), folder)
#' describe_front(folder)$answer
#' @export
describe_front <- function(folders) {
  studies <- map(folders, read_front_study)
  rows <- bind_rows(no_front_rows(), map_dfr(studies, front_rows))
  # The same measurements under two names, such as a publication's own view of them, count once.
  rows <- rows |>
    arrange(desc(.data$cells)) |>
    distinct(.data$machine, .data$simulated, .data$collective, .keep_all = TRUE) |>
    arrange(.data$simulated, .data$cells < few_cells, desc(.data$geometric_mean_pct))
  shown <- head(rows, 12)
  list(
    question = front_question(studies), answer = front_answer(rows, studies), table = front_table(shown),
    left_out = name_cells(rows[-seq_len(nrow(shown)), ]), advice = advise_front(studies, rows),
    judged = nrow(front_gains(studies, rows)), trust = front_trust(studies, rows),
    silent = purrr::compact(setNames(map(studies, describe_two_ranks), map_chr(studies, "name"))),
    findings = purrr::compact(setNames(map(studies, front_finding), map_chr(studies, "name"))),
    order = front_order(studies)
  )
}

#' What the front page needs of a study
#' @noRd
read_front_study <- function(folder) {
  about <- read_study(folder)
  read <- function(file) {
    path <- file.path(folder, file)
    if (!file.exists(path) || file.size(path) == 0) return(NULL)
    table <- readr::read_csv(path, show_col_types = FALSE, progress = FALSE)
    if (nrow(table) > 0) table
  }
  answers <- read("sentences.csv")
  tables <- c(
    by_collective = "answer-collectives", by_mapping = "answer", regret = "tuning-regret",
    verified = "tuning-verification",
    agreement = "agreement", accuracy = "accuracy", one_rule = "atlas-one-rule"
  )
  c(
    list(
      name = about$name, folder = folder, about = about, simulated = isTRUE(about$simulated), cells = read("cells.csv"),
      decisions = read("tuning/decisions.csv"), answers = answers$text[answers$section %in% "answer"]
    ),
    map(tables, function(table) read(file.path("tables", paste0(table, ".csv"))))
  )
}

#' Of fewer cells a mean says little of a machine
#' @noRd
few_cells <- 30

front_machine <- function(study) study$about$machine$label %||% study$about$machine$name %||% "an unnamed machine"

no_front_rows <- function() {
  tibble(
    machine = character(), study = character(), simulated = logical(), numbers = character(), collective = character(),
    cells = integer(), slower_pct = numeric(), geometric_mean_pct = numeric(), p90_pct = numeric(),
    best_other = character(), best_other_geometric_mean_pct = numeric()
  )
}

#' One row for each collective of a study in which algorithms can be told apart
#' @noRd
front_rows <- function(study) {
  found <- study$by_collective
  if (is.null(found) || !is.null(describe_two_ranks(study))) return(NULL)
  transmute(found,
    machine = front_machine(.env$study), study = .env$study$name, simulated = .env$study$simulated,
    numbers = front_numbers(.env$study), .data$collective, .data$cells, .data$slower_pct, .data$geometric_mean_pct,
    .data$p90_pct, best_other = as.character(.data$best_other), .data$best_other_geometric_mean_pct
  )
}

front_numbers <- function(study) {
  if (study$simulated) return("simulated")
  if (identical(study$about$machine$kind, "imported")) "measured, imported" else "measured here"
}

front_table <- function(rows) {
  rows |>
    # Whole percents: two authors of one machine differ by more than that.
    mutate(across(c("slower_pct", "geometric_mean_pct", "best_other_geometric_mean_pct"), round)) |>
    mutate(
      machine = machine_name(.data$machine, .data$simulated), collective = collective_word(.data$collective)
    ) |>
    select(
      "machine", "study", "collective", "cells", "slower_pct", "geometric_mean_pct", "best_other",
      "best_other_geometric_mean_pct"
    )
}

#' "reduce on ORFEO EPYC", for each row
#' @noRd
name_cells <- function(rows) {
  if (nrow(rows) == 0) return(character())
  paste(collective_word(rows$collective), "on", within_text(machine_name(rows$machine, rows$simulated)))
}

#' "barrier on ORFEO THIN, allgather and allreduce on Leonardo Booster": the same by machine
#' @noRd
name_by_machine <- function(rows) {
  machines <- machine_name(rows$machine, rows$simulated)
  and_list(map_chr(unique(machines), function(machine) {
    paste(and_list(collective_word(rows$collective[machines == machine])), "on", within_text(machine))
  }))
}

#' One study asks its own question; several ask one together
#' @noRd
front_question <- function(studies) {
  if (length(studies) == 1 && !is.null(studies[[1]]$about$question)) return(studies[[1]]$about$question)
  if (any(map_lgl(studies, function(study) !is.null(study$by_collective)))) {
    return(paste(
      "Does an MPI library select the fastest algorithm for each collective operation by default, how much time is",
      "lost where it does not, and what can a user do about it?"
    ))
  }
  studies[[1]]$about$question %||% ""
}

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
    if (nrow(measured) > 0) c(front_overall(measured, studies), front_extremes(measured, studies)),
    front_rules(studies, measured), front_transfer(studies),
    if (nrow(simulated) > 0) paste0(
      "Simulated, not measured: ", lower_first(front_overall(simulated, studies, define = nrow(measured) == 0)),
      front_measured_there(simulated, measured)
    )
  )
  # Studies of another question (an application, a ladder) have answers of their own.
  if (length(sentences) == 0) sentences <- head(unlist(map(studies, "answers")), 5)
  if (length(sentences) == 0) return("No study of this report compares the library's default with another algorithm.")
  sentences
}

front_overall <- function(rows, studies, define = TRUE) {
  rows$label <- plain_machine(rows$machine)
  machines <- split(rows, factor(rows$label, unique(rows$label)))
  pooled <- map_dfr(machines, pool_front)
  fastest <- paste("the fastest", if (all(rows$simulated)) "simulated" else "measured", "algorithm")
  on <- within_text(names(machines))
  about <- map_chr(machines, function(part) {
    cells <- paste(format_number(sum(part$cells), 6), "cells")
    paste(c(front_extent(studies[map_chr(studies, "name") %in% part$study]), cells), collapse = "; ")
  })
  order <- order(pooled$geometric_mean_pct, decreasing = TRUE)
  each <- paste0(format_pct(pooled$geometric_mean_pct), " on ", on, " (", about, ")")[order]
  slower <- range(pooled$slower_pct)
  share <- unique(sub(" %", "", format_pct(slower)))
  default <- front_default(studies[map_chr(studies, "name") %in% rows$study])
  paste0(
    if (define) paste0(front_verdict(slower), sub("^The ", "the ", default)) else default,
    " takes longer than ", fastest, " by ", and_list(each), " in the geometric mean; it is more than 5 % ",
    "slower in ", paste(share, collapse = " to "), " % of the cells.",
    if (define) paste(
      " A cell is one combination of collective, mapping of processes to cores, number of processes and message size."
    )
  )
}

#' The answer in a word, by the share of the cells in which the default is more than 5 % slower
#' @noRd
front_verdict <- function(slower_pct) {
  if (max(slower_pct) < 5) "Nearly always: " else if (min(slower_pct) < 30) "Not always: " else "Often not: "
}

#' "Open MPI's default", where all studies are of one installed library
#' @noRd
front_default <- function(studies) {
  libraries <- unique(unlist(map(studies, function(study) study$about$provenance$mpi)))
  one <- length(libraries) == 1 && !any(map_lgl(studies, "simulated"))
  if (one) paste0(mpi_label(libraries), "'s default") else "The default"
}

#' A machine's label without the word that the sentence has already
#' @noRd
plain_machine <- function(label) sub(",? [(]?simulated[)]?$", "", label)

#' "up to 2 nodes and 256 processes": how far the cells of studies of one machine reach
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

#' Cores of a node; NULL where the levels of the machine are not known
#' @noRd
front_cores <- function(study) {
  levels <- study$about$machine$levels
  node <- match("node", map_chr(levels, function(level) level$name))
  if (is.na(node) || node == length(levels)) return(NULL)
  prod(map_dbl(levels[-seq_len(node)], function(level) level$count %||% 1))
}

#' What was measured of the collectives that a simulation has of the same machine
#' @noRd
front_measured_there <- function(simulated, measured) {
  there <- measured[plain_machine(measured$machine) %in% plain_machine(simulated$machine), ]
  both <- intersect(there$collective, simulated$collective)
  if (length(both) == 0 || n_distinct(there$machine) > 1) return(NULL)
  paste0(
    " Measured there, for ", and_list(collective_word(both)), ": ",
    format_pct(pool_front(there[there$collective %in% both, ])$geometric_mean_pct), "."
  )
}

front_extremes <- function(rows, studies) {
  # A handful of cells is no extreme of a machine, where others have many.
  many <- rows$cells >= few_cells
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
    if (sum(many) > 1 && !all(many)) paste0("Among collectives with at least ", few_cells, " cells, the") else "The",
    " slow-down is largest for ", say(worst), " (", format_pct(worst$geometric_mean_pct),
    front_by_mapping(worst, studies), ") and smallest for ", say(best), " (", format_pct(best$geometric_mean_pct), ")."
  )
}

#' ": 5.6 % mapped by core, 452 % by node", where several mappings were measured
#' @noRd
front_by_mapping <- function(row, studies) {
  study <- studies[[match(row$study, map_chr(studies, "name"))]]
  found <- study$by_mapping[study$by_mapping$collective == row$collective, ]
  if (NROW(found) < 2) return(NULL)
  found <- arrange(found, .data$default_geometric_mean_pct)
  label <- label_mapping(found$mapping, study$about)
  paste0(": ", and_list(paste0(
    format_pct(found$default_geometric_mean_pct), c(" mapped ", rep(" ", nrow(found) - 1)), label
  )))
}

#' What rules are worth that were decided on other process counts
#' @noRd
front_rules <- function(studies, rows) {
  gains <- front_gains(studies, rows)
  if (nrow(gains) == 0) return(NULL)
  clear <- gains[gains$gain_low_pct > 0, ]
  if (nrow(clear) == 0) {
    return(paste(
      "Selecting algorithms by rules has no clear gain: rules decided on half of the process counts are not",
      "significantly faster than the default on the other half."
    ))
  }
  slower <- sum(gains$gain_high_pct < 0)
  clear <- arrange(clear, desc(.data$gain_low_pct))
  paste0(
    "Rules that select the algorithm by mapping, process count and message size are significantly faster than the ",
    "default, on process counts that were not used to decide them, for ",
    and_list(map_chr(seq_len(nrow(clear)), function(i) {
      paste0(name_cells(clear[i, ]), " (", sub("(", "less time, ", format_saving(clear[i, ]), fixed = TRUE))
    })), ".",
    if (slower > 0) paste0(" For ", slower, " the rules are slower.")
  )
}

#' The share of the default's time that rules save, of how much longer it takes: "52 % (95 % interval 42 to 54 %)"
#' @noRd
format_saving <- function(row) {
  saved <- function(gain_pct) format_pct(100 * (1 - 1 / (1 + gain_pct / 100)))
  if (is.na(row$gain_low_pct)) return(saved(row$gain_pct))
  paste0(
    saved(row$gain_pct), " (95 % interval ", sub(" %", "", saved(row$gain_low_pct)), " to ", saved(row$gain_high_pct),
    ")"
  )
}

#' The gain of tuned rules by machine and collective, both halves of the process counts together
#'
#' @param studies List from [read_front_study()].
#' @param rows The rows of the front page: only their studies count.
#' @return Tibble: study, machine, simulated, collective, cells, groups, gain_pct, gain_low_pct, gain_high_pct.
#' @noRd
front_gains <- function(studies, rows) {
  none <- tibble(
    study = character(), machine = character(), simulated = logical(), collective = character(), cells = integer(),
    groups = integer(), gain_pct = numeric(), gain_low_pct = numeric(), gain_high_pct = numeric()
  )
  bind_rows(none, map_dfr(studies, function(study) {
    regret <- study$regret
    if (is.null(regret) || !"gain_pct" %in% names(regret)) return(NULL)
    regret |>
      filter(.data$policy == "tuned", .data$mapping == "all", !is.na(.data$gain_low_pct)) |>
      group_by(.data$collective) |>
      group_modify(function(halves, key) pool_gains(halves)) |>
      ungroup() |>
      mutate(
        machine = front_machine(.env$study), simulated = .env$study$simulated, study = .env$study$name
      )
  })) |>
    semi_join(rows, by = c("study", "collective"))
}

#' Estimates from disjoint process counts in one; their standard errors follow from the intervals
#' @noRd
pool_gains <- function(halves) {
  log_gain <- log1p(halves$gain_pct / 100)
  error <- (log1p(halves$gain_high_pct / 100) - log_gain) / stats::qt(0.975, halves$groups - 1)
  weight <- halves$groups / sum(halves$groups)
  mean <- sum(weight * log_gain)
  half <- stats::qt(0.975, sum(halves$groups - 1)) * sqrt(sum((weight * error)^2))
  tibble(
    cells = sum(halves$cells), groups = sum(halves$groups), gain_pct = 100 * expm1(mean),
    gain_low_pct = 100 * expm1(mean - half), gain_high_pct = 100 * expm1(mean + half)
  )
}

#' Whether what one machine teaches helps on another (of the study that has all of them)
#' @noRd
front_transfer <- function(studies) {
  found <- bind_rows(map(studies, "one_rule"))
  if (nrow(found) == 0) return(NULL)
  names <- map_chr(studies, function(study) study$about$machine$name %||% "")
  labels <- setNames(map_chr(studies, front_machine), names)
  wide <- found |>
    filter(.data$policy %in% c("default", "rule of the other machines")) |>
    select("machine", "policy", "geometric_mean_pct", "cells") |>
    pivot_wider(names_from = "policy", values_from = "geometric_mean_pct")
  wide$rule <- wide[["rule of the other machines"]]
  wide$label <- within_text(coalesce(unname(labels[wide$machine]), wide$machine))
  changed <- found[found$policy == "rule of the other machines", ]
  changed <- changed$changed_pct[match(wide$machine, changed$machine)]
  better <- sum(wide$rule < wide$default - 0.5)
  order <- order(wide$default, decreasing = TRUE)
  paste0(
    if (better > nrow(wide) / 2) "Rules carry over between machines" else "Rules of other machines do not help",
    ": with them the slow-down, for the collectives that the machines share, is ", and_list(paste0(
      format_pct(wide$rule), " on ", wide$label, " (the default's: ", format_pct(wide$default), ")"
    )[order]),
    if (all(is.finite(changed)) && better <= nrow(wide) / 2) paste0(
      "; they change the algorithm in at most ", format_pct(max(changed)), " of the cells"
    ), "."
  )
}

#' How far to trust the page
#' @noRd
front_trust <- function(studies, rows) {
  agreement <- bind_rows(map(studies, function(study) {
    if (!is.null(study$agreement)) mutate(study$agreement, label = front_machine(study))
  }))
  accuracy <- map_dfr(studies, function(study) {
    found <- study$accuracy
    if (is.null(found)) return(NULL)
    filter(found, .data$algorithm == "all", .data$mapping == "all") |> mutate(label = front_machine(study))
  })
  by_machine <- function(table, value) {
    table <- table |> group_by(.data$label) |> summarise(value = median(.data[[value]]))
    and_list(paste0(format_pct(table$value), " on ", within_text(table$label)))
  }
  lacking <- map_dfr(studies, function(study) {
    tibble(
      machine = machine_name(front_machine(study), study$simulated), selected = NROW(study$cells),
      lacking = sum(study$cells$status != "measured")
    )
  }) |>
    group_by(machine = factor(.data$machine, unique(.data$machine))) |>
    summarise(across(everything(), sum)) |>
    filter(.data$lacking > 0)
  imported <- unique(rows$machine[rows$numbers == "measured, imported"])
  compared <- map_chr(studies, "name") %in% rows$study[!rows$simulated]
  c(
    if (NROW(agreement) > 0) paste0(
      "Latencies that two authors measured of the same cells differ by ",
      by_machine(agreement, "median_abs_difference_pct"),
      " in the median. A smaller difference in a single cell may be noise; means over many cells are more precise."
    ),
    if (length(imported) > 0) paste0(
      "The measurements on ", and_list(within_text(imported)), " were made by other authors, mostly with one launch ",
      "per cell: the variation between launches is unknown there. The minimum over several noisy latencies is ",
      "biased low, so slow-downs are somewhat overestimated."
    ),
    if (nrow(accuracy) > 0) paste0(
      "Simulated latencies differ from measured ones by ", by_machine(accuracy, "median_abs_error_pct"), " (medians)."
    ),
    if (nrow(lacking) > 0) paste0(
      "No usable number: ", and_list(paste0(
        format_number(lacking$lacking, 6), " of ", format_number(lacking$selected, 6), " configurations on ",
        within_text(lacking$machine)
      )), " (algorithm, mapping and number of processes); the appendix lists the reasons."
    ),
    paste0(
      "\u201cFastest\u201d means the fastest of the algorithms that were measured", front_libraries(studies[compared]),
      ". Other versions of the library may have other defaults."
    )
  )
}

#' ", with Open MPI 4.1.6 on Leonardo Booster", for the machines of studies; empty where no version is known
#' @noRd
front_libraries <- function(studies) {
  found <- map_dfr(studies, function(study) {
    how <- study$about$provenance
    if (length(how$mpi_version) != 1 || how$mpi_version %in% c("", "unknown")) return(NULL)
    tibble(library = paste(mpi_label(how$mpi), how$mpi_version), machine = within_text(front_machine(study)))
  })
  if (nrow(found) == 0) return("")
  on <- vapply(split(found$machine, found$library), function(machines) and_list(unique(machines)), "")
  paste0(", with ", and_list(paste(names(on), "on", on)))
}

#' A study of two ranks at most has nothing to choose between
#'
#' @param study List from [read_front_study()].
#' @return A sentence, or NULL where some collective has more ranks, or the study is about something else.
#' @noRd
describe_two_ranks <- function(study) {
  collectives <- study$about$collectives
  collectives <- collectives[setdiff(names(collectives), c(point_to_point, applications))]
  counts <- as.numeric(unlist(map(collectives, "processes")))
  if (length(counts) == 0 || max(counts) > 2 || !is.null(study$about$chapter)) return(NULL)
  paste0(
    study$about$title %||% study$name, ": two ranks cannot tell algorithms apart (between two ranks all of them send ",
    "the same messages), so this study decides nothing."
  )
}

#' What a study found, in one sentence: the default's loss by collective, or the first sentence of its own answer
#' @noRd
front_finding <- function(study) {
  found <- study$by_collective
  if (is.null(found)) return(head(study$answers, 1))
  paste0(
    "the default takes longer than the fastest algorithm by ",
    and_list(paste0(format_pct(found$geometric_mean_pct), " for ", collective_word(found$collective))),
    " (geometric means)."
  )
}

#' Studies in the order in which they tell most: all machines together, then measured before simulated ones, each by its
#' number of compared cells; last those that can tell nothing
#' @noRd
front_order <- function(studies) {
  if (length(studies) == 0) return(character())
  compared <- map_dbl(studies, function(study) sum(study$by_collective$cells))
  together <- map_lgl(studies, function(study) identical(study$about$chapter, "atlas"))
  silent <- map_lgl(studies, function(study) !is.null(describe_two_ranks(study)))
  simulated <- map_lgl(studies, "simulated")
  map_chr(studies, "name")[order(silent, !together, simulated, compared == 0, -compared)]
}
