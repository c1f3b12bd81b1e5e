# How good a study's tuning is: regret on cells that were not used to decide, and speed-up in fresh launches.

#' Summarise the fresh launches that verify a study's rules file
#'
#' Regret is relative to the fastest known latency of the cell: the fresh default, the fresh tuned launch or the study's
#' own best. The last is the minimum of several and thus too low on average (the winner's curse); the speed-up has no
#' such bias.
#'
#' @param folder Folder `results/<study>` with `tables/tuning-verification.csv`.
#' @return Tibble, one row per mapping and kind of cell (of the grid, others): mapping, cells, changed (cells whose
#'   rule is not the default), faster, tie, slower (of these), speedup (geometric mean over the changed cells),
#'   default_geometric_mean_pct, default_mean_pct, tuned_geometric_mean_pct, tuned_mean_pct (regret over the cells
#'   with a best known). NULL where nothing was verified.
#' @noRd
summarise_verification <- function(folder) {
  rows <- read_tuning(folder, "tables/tuning-verification.csv")
  if (NROW(rows) == 0) return(NULL)
  best <- pmin(rows$default_us, rows$tuned_us, rows$best_known_us, na.rm = TRUE)
  rows |>
    mutate(
      where = ifelse(.data$on_grid, "sizes and processes of the grid", "others"), changed = .data$rule != "default",
      default_slowdown = .data$default_us / best, tuned_slowdown = .data$tuned_us / best
    ) |>
    group_by(.data$mapping, .data$where) |>
    summarise(
      cells = n(), faster = sum(.data$changed & .data$verdict == "faster"),
      tie = sum(.data$changed & .data$verdict == "tie"), slower = sum(.data$changed & .data$verdict == "slower"),
      speedup = geometric_mean(.data$speedup[.data$changed]),
      default_geometric_mean_pct = summarise_slowdown(.data$default_slowdown)$geometric_mean_pct,
      default_mean_pct = summarise_slowdown(.data$default_slowdown)$mean_pct,
      tuned_geometric_mean_pct = summarise_slowdown(.data$tuned_slowdown)$geometric_mean_pct,
      tuned_mean_pct = summarise_slowdown(.data$tuned_slowdown)$mean_pct, changed = sum(.data$changed), .groups = "drop"
    ) |>
    relocate("changed", .after = "cells")
}

#' Write the results of a study's tuning: `tuning/sentences.csv`, `tables/tuning-verified.csv` and `tuning/index.csv`
#'
#' @param folder Folder `results/<study>`; the sentences cover those of `tables/tuning-regret.csv`,
#'   `tables/sampling.csv`, `tables/tuning-verification.csv`, `tables/tuning-withdrawn.csv` and `tuning/check.csv` that
#'   exist, the index all tables and figures of the tuning.
#' @return The paths.
#' @examples
#' folder <- file.path(tempdir(), "study")
#' dir.create(folder)
#' write_tuning_sentences(folder)
#' @export
write_tuning_sentences <- function(folder) {
  trial <- describe_trial(folder)
  shown <- function(section, text, files) mutate(said(section, text), shown_in = files)
  draw_pairs(folder)
  sentences <- bind_rows(
    shown("tuning", describe_regret(folder), "tables/tuning-regret.csv"),
    shown("tuning", describe_sampling(folder), "tuning/sampling.svg;tables/sampling.csv"),
    if (is.null(trial)) {
      shown("tuning", describe_verification(folder), "tables/tuning-verified.csv")
    } else {
      # What the study was made for: also an answer, after those on the cells.
      map_dfr(c("answer", "tuning"), shown, trial, "tables/tuning-judged.csv")
    },
    shown("check", describe_check(folder), "tuning/check.csv"),
    shown("withdrawn", describe_withdrawn(folder), "tables/tuning-withdrawn.csv")
  )
  c(
    write_table(in_order(sentences), file.path(folder, "tuning", "sentences.csv")),
    write_table(
      summarise_verification(folder) %||% no_verification(), file.path(folder, "tables", "tuning-verified.csv")
    ),
    write_table(index_tuning(folder), file.path(folder, "tuning", "index.csv"))
  )
}

#' Tables and figures of a study's tuning that have content, with titles and captions
#' @noRd
index_tuning <- function(folder) {
  table <- function(id, ...) {
    tibble(id = id, file = paste0("tables/", id, ".csv"), caption = paste(c(...), collapse = " "))
  }
  figure <- function(id, title, ...) {
    tibble(
      id = id, file = paste0("tuning/", id, ".svg"), title = title, caption = paste(...), width_in = 7,
      height_in = 4
    )
  }
  has_rows <- function(file) NROW(read_tuning(folder, file)) > 0
  simulated <- file.exists(file.path(folder, "study.json")) && read_study(folder)$simulated
  bind_rows(
    table(
      "tuning-regret",
      "Regret of each policy against the best algorithm of the cell, on process counts not used to decide.",
      "Policies: the library's default, the tuned rules, and the best single algorithm (other than the default) of",
      "the deciding process counts. Cells in which the algorithm of one of them has no latency are left out."
    ),
    table(
      "tuning-shared",
      "Additional time if one decision serves all placements (mapping and number of nodes) with the same number of",
      "processes, relative to the fastest algorithm of each placement, among the algorithms that all of them have: the",
      "cost of a tuning file that does not distinguish placements. Shapes: number of placements.",
      if (!simulated) "The values are upper bounds, because the minimum over noisy latencies is biased low."
    ),
    figure(
      "sampling", "Regret against the share of measurement time",
      "Regret over the whole grid (geometric mean) of the model's choice from a sample, against the share of the",
      "grid's measurement time that the sample takes. Unlike the tuned rules, this choice does not keep the default",
      "where a gain is within its noise. Line and band: mean and standard deviation over",
      read_tuning(folder, "tables/sampling.csv")$seeds[1], "random samples.",
      "Dashed: the library's default. Dotted: a regret of 2.5 %."
    ),
    table(
      "tuning-verified",
      "Interleaved fresh launches of the default and of the rules file. Regret is relative to the fastest known",
      "algorithm of the cell; speed-up is the geometric mean over the cells whose rule is not the default. The table",
      "shows the state before slower rules were withdrawn.",
      if (simulated) "Simulations are deterministic, so only cells not used to decide add information."
    ),
    table(
      "tuning-withdrawn", "Cells of fresh launches in which a rule was slower than the default. The rule was withdrawn",
      "there, or completely if it was slower on average over its cells, and the files were written again. Without",
      "speed-ups: the rules of a program that keeps no tuning file."
    ),
    table(
      "tuning-failed", "Cells whose launches failed, so that the tuning files are not verified there. Algorithm: the",
      "library's default, or what the files select (tuned). The next run launches them again."
    ),
    figure(
      "pairs", "Time of the program with and without the tuning file",
      "Runs without and with the tuning file. A line joins the two runs of a pair, which are of one round; the runs of",
      "a round were launched in random order."
    ),
    table(
      "tuning-judged",
      "Speed-up with the tuning file: median over the pairs of runs, with the interval from order statistics.",
      "Collectives: time in collective calls, mean over ranks, in runs with the trace library."
    ),
    table(
      "tuning-ran",
      "Algorithms that ran in the program without (default) and with the tuning file (tuned), by communicator and",
      "collective, as printed by ./study what-ran."
    )
  ) |>
    filter(map_lgl(.data$file, function(file) {
      if (grepl("[.]svg$", file)) file.exists(file.path(folder, file)) else has_rows(file)
    }))
}

#' Read a table of the tuning; NULL where there is none
#' @noRd
read_tuning <- function(folder, file) {
  path <- file.path(folder, file)
  if (file.exists(path)) readr::read_csv(path, show_col_types = FALSE, progress = FALSE)
}

no_verification <- function() {
  tibble(
    mapping = character(), where = character(), cells = integer(), changed = integer(), faster = integer(),
    tie = integer(), slower = integer(), speedup = numeric(), default_geometric_mean_pct = numeric(),
    default_mean_pct = numeric(), tuned_geometric_mean_pct = numeric(), tuned_mean_pct = numeric()
  )
}

describe_regret <- function(folder) {
  regret <- read_tuning(folder, "tables/tuning-regret.csv")
  if (is.null(regret)) return(character())
  rows <- regret[regret$mapping == "all" & regret$split != both_halves, ]
  first <- distinct(rows, .data$collective, .data$split)
  study <- read_labelled(folder)
  decided <- map_chr(seq_len(nrow(first)), function(i) {
    here <- rows[rows$collective == first$collective[i] & rows$split == first$split[i], ]
    single <- unlist(strsplit(as.character(here$algorithm[here$policy == "best-single"]), ";", fixed = TRUE))
    mean <- setNames(format_pct(here$geometric_mean_pct), here$policy)
    tuned <- here[here$policy == "tuned", ]
    # A hundredth of fewer cells is less than one.
    worst <- if (tuned$cells >= 100) {
      paste("at least", format_pct(tuned$p99_pct), "in 1 % of the cells")
    } else {
      paste("at most", format_pct(tuned$max_pct))
    }
    paste0(
      collective_title(first$collective[i]), ", rules ", first$split[i], " processes and tested on ",
      format_number(here$cells[1], 6), " cells of the other process counts: the tuned rules are ", mean[["tuned"]],
      " slower than the best algorithm of the cell (geometric mean; ", worst, "), the default ", mean[["default"]],
      if (length(single) > 0) paste0(
        ", the best single algorithm other than the default (",
        paste(label_algorithm(single, study, first$collective[i]), collapse = ", "), ") ", mean[["best-single"]]
      ), "."
    )
  })
  c(decided, describe_better_single(regret[regret$split == both_halves & regret$mapping != "all", ], study))
}

#' Sentences on the mappings in which a single algorithm has less regret than the rules, by more than 1 %
#'
#' @param rows Rows of `tables/tuning-regret.csv`: of both halves, by mapping.
#' @param study Study with labels.
#' @noRd
describe_better_single <- function(rows, study) {
  wide <- rows |>
    group_by(.data$collective, .data$mapping) |>
    mutate(single = .data$algorithm[.data$policy == "best-single"][1]) |>
    ungroup() |>
    select("collective", "mapping", "single", "policy", "geometric_mean_pct") |>
    pivot_wider(names_from = "policy", values_from = "geometric_mean_pct")
  if (!"best-single" %in% names(wide)) return(character())
  wide <- add_count(wide, .data$collective, name = "mappings") |>
    filter((100 + .data$tuned) / (100 + .data[["best-single"]]) > 1.01)
  map_chr(unname(split(wide, factor(wide$collective, unique(wide$collective)))), function(own) {
    name <- map_chr(strsplit(own$single, ";", fixed = TRUE), function(single) {
      paste(label_algorithm(single, study, own$collective[1]), collapse = " or ")
    })
    paste0(
      collective_title(own$collective[1]), ": on process counts that did not decide, a single algorithm is better ",
      "than the tuned rules: ", and_list(paste0(
        name, ifelse(own$mappings > 1, paste0(" ", label_mapping(own$mapping, study)), ""), " (slow-down ",
        format_pct(own[["best-single"]]), ", of the rules ", format_pct(own$tuned), ", of the default ",
        format_pct(own$default), ")"
      )), "; geometric means."
    )
  })
}

describe_sampling <- function(folder) {
  rows <- read_tuning(folder, "tables/sampling.csv")
  if (is.null(rows)) return(character())
  last <- rows |> group_by(.data$startup_s) |> slice_tail(n = 1) |> ungroup()
  paste0(
    collective_title(last$collective), ifelse(
      last$startup_s == 0, ", if only the time of the calls counts",
      paste0(", if each launch costs ", last$startup_s, " s to start")
    ),
    ": the model's choices from a sample that takes ", format_pct(last$share_of_time_pct), " of the measurement time ",
    "of the whole grid are ", format_pct(last$geometric_mean_regret_pct),
    " slower than the fastest algorithm (geometric mean over the ",
    "cells; standard deviation over ", last$seeds, " random samples ", format_pct(last$sd_over_seeds), ")."
  )
}

describe_verification <- function(folder) {
  rows <- summarise_verification(folder)
  if (is.null(rows)) return(character())
  changed <- sum(rows$changed)
  if (changed == 0) return("The rules select the default in every cell of the fresh launches.")
  paste0(
    "In fresh launches of ", count_of(changed, "cell"), " with a rule other than the default, the rule is faster than ",
    "the default in ", sum(rows$faster), ", tied with it in ", sum(rows$tie), " and slower in ", sum(rows$slower),
    ". Over all ", count_of(sum(rows$cells), "cell"), " of these launches, the default is ",
    format_pct(pooled_regret(rows$default_geometric_mean_pct, rows$cells)),
    " slower than the fastest known algorithm, the rules ",
    format_pct(pooled_regret(rows$tuned_geometric_mean_pct, rows$cells)), " (geometric means",
    if (sum(rows$slower) > 0) "; before the slower rules were withdrawn", ")."
  )
}

#' Sentences on the check of the tuning files by the library
#' @noRd
describe_check <- function(folder) {
  rows <- read_tuning(folder, "tuning/check.csv")
  if (is.null(rows)) return(character())
  if (nrow(rows) == 0) {
    # Files that were checked and not kept.
    if (NROW(read_tuning(folder, "tuning/check-emitted.csv")) > 0) return(character())
    return("Nothing was checked: no rule differs from the default, or no installed library tells what it selects.")
  }
  # A row comes from asking the library or, as all rows of earlier versions, from counting its messages.
  asked <- rows$asked %||% FALSE
  describe <- function(rows, how, what) {
    if (nrow(rows) == 0) return(NULL)
    of_them <- function(holds) {
      if (all(holds)) return(if (length(holds) == 1) "there" else "at all of them")
      paste("at", if (any(holds)) format_count(sum(holds)) else "none", "of them")
    }
    paste0(
      rows$mpi[1], " was ", how, " at ", count_of(nrow(rows), "size"), " around the boundaries of the rules: ",
      of_them(rows$agrees), " it ", what, " the algorithm that the file names. ",
      if (!any(rows$tells_apart)) {
        "Another algorithm of the same entry might have given the same result, so agreement is not conclusive."
      } else {
        paste0(
          "Every other algorithm of the same entry would have given another result ", of_them(rows$tells_apart),
          ", so agreement is conclusive", if (all(rows$tells_apart)) "." else " there."
        )
      }
    )
  }
  c(
    describe(rows[asked, ], "asked", "selected"),
    describe(
      rows[!asked, ], "started with the files",
      if (startsWith(rows$mpi[1], "Intel MPI")) "ran the functions of" else "sent the messages of"
    )
  )
}

#' Sentence on the rules that were withdrawn because they were slower in fresh launches
#' @noRd
describe_withdrawn <- function(folder) {
  rows <- read_tuning(folder, "tables/tuning-withdrawn.csv")
  if (is.null(rows)) return(character())
  if (nrow(rows) == 0) {
    # Files of imported studies are not verified: the machine is not here.
    if (NROW(read_tuning(folder, "tables/tuning-verification.csv")) == 0) return(character())
    return("No rule was slower in fresh launches; none was withdrawn.")
  }
  # Files of a program are judged as a whole, by its runs (collstudy/project/trial.py).
  if (all(is.na(rows$speedup))) {
    return(paste0(
      "The program keeps no tuning file; the table lists the ", count_of(nrow(rows), "rule"), " that it would have had."
    ))
  }
  paste(
    "In", count_of(nrow(rows), "cell"), "of the fresh launches a rule was slower than the default; there, or",
    "completely if it was slower on average over its cells, it was withdrawn."
  )
}

#' Geometric mean over all cells from those of groups of cells
#' @noRd
pooled_regret <- function(pct, cells) 100 * (exp(stats::weighted.mean(log(1 + pct / 100), cells)) - 1)
