# What to do, on the front page: the rules with the clearest gain, and how to use them.

#' What to do: the rules with the clearest gain, their file where one was written, and the command
#'
#' @inheritParams front_gains
#' @return List with `study`, `sentence` and `others` (where the gain is clear, where not, what was not tested),
#'   `files` (names of tuning files; none
#'   where none was written) with `command` (how to use the first), `ask` (the command that answers for a single call),
#'   `verified` (what fresh launches gave); NULL where no rules have a clear gain.
#' @noRd
advise_front <- function(studies, rows) {
  gains <- front_gains(studies, rows)
  kept <- filter(gains, .data$gain_low_pct <= 0)
  untested <- anti_join(rows[!rows$simulated, ], gains, by = c("study", "collective"))
  gains <- filter(gains, .data$gain_low_pct > 0) |>
    arrange(.data$simulated, desc(.data$gain_low_pct))
  if (nrow(gains) == 0) return(NULL)
  best <- gains[1, ]
  study <- studies[[match(best$study, map_chr(studies, "name"))]]
  files <- list.files(file.path(study$folder, "tuning"), "[.](rules|json|sh)$")
  others <- gains[-1, ][seq_len(min(4, nrow(gains) - 1)), ]
  list(
    study = best$study,
    sentence = paste0(
      "Replace the default with tuned rules for ", name_cells(best), ": they save ", format_saving(best),
      " of its time in the geometric mean, judged on process counts that were not used to decide them",
      front_mappings(study, best$collective), "."
    ),
    others = c(
      if (nrow(others) > 0) paste0(
        "They also save ", and_list(map_chr(seq_len(nrow(others)), function(i) {
          paste(format_saving(others[i, ]), "for", name_cells(others[i, ]))
        })), "."
      ),
      if (nrow(kept) > 0) paste0(
        "Keep the default for ", name_by_machine(kept), ": no rule is clearly faster there."
      ),
      if (nrow(untested) > 0) paste0(
        "No rule was tested for ", name_by_machine(untested), ", measured at too few process counts to decide on ",
        "some and judge on others; the chapters show the fastest algorithm of each cell."
      )
    ),
    files = files, command = tuning_command(study, files), ask = advise_command(study, best$collective),
    verified = front_verified(studies)
  )
}

#' ": 82 % mapped by node, 4.1 % by core" where several mappings were judged
#' @noRd
front_mappings <- function(study, collective) {
  found <- filter(
    study$regret, .data$policy == "tuned", .data$collective == .env$collective, .data$mapping != "all",
    !is.na(.data$gain_pct)
  )
  if (n_distinct(found$mapping) < 2) return("")
  found <- found |>
    group_by(.data$mapping) |>
    summarise(saved = -100 * expm1(-stats::weighted.mean(log1p(.data$gain_pct / 100), .data$cells))) |>
    arrange(desc(.data$saved))
  paste0(": ", and_list(paste0(
    format_pct(found$saved), c(" mapped ", rep(" ", nrow(found) - 1)), label_mapping(found$mapping, study$about)
  )))
}

#' The command line by which Open MPI reads a rules file; NULL without one
#' @noRd
tuning_command <- function(study, files) {
  file <- grep("^openmpi-[^0-9].*[.]rules$", grep("^openmpi-han-", files, value = TRUE, invert = TRUE), value = TRUE)
  if (length(file) == 0) return(NULL)
  paste0(
    "mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename ",
    file.path("results", study$name, "tuning", file[1]), " ./program"
  )
}

#' What rules files gained on fresh launches, of the study with most verified cells
#' @noRd
front_verified <- function(studies) {
  found <- map_dfr(studies, function(study) {
    rows <- study$verified
    rows <- rows[rows$rule != "default" & !is.na(rows$speedup), ]
    if (NROW(rows) == 0) return(NULL)
    groups <- rows |>
      group_by(.data$mapping, .data$processes) |>
      summarise(gain = mean(log(.data$speedup)), .groups = "drop")
    n <- nrow(groups)
    half <- if (n > 1) stats::qt(0.975, n - 1) * stats::sd(groups$gain) / sqrt(n) else NA_real_
    tibble(
      machine = front_machine(study), simulated = study$simulated, cells = nrow(rows),
      gain_pct = 100 * expm1(mean(groups$gain)), gain_low_pct = 100 * expm1(mean(groups$gain) - half),
      gain_high_pct = 100 * expm1(mean(groups$gain) + half)
    )
  })
  if (nrow(found) == 0) return(NULL)
  paste0(
    "On fresh launches on ", within_text(machine_name(found$machine, found$simulated)), " the rules file saves ",
    map_chr(seq_len(nrow(found)), function(i) format_saving(found[i, ])), " of the default's time, over the ",
    format_number(found$cells, 6), " verified cells that it changes."
  )
}

#' The command that says which algorithm to use, for a usual decision at the most processes: that of the median gain,
#' because the largest gains are those of outliers
#' @noRd
advise_command <- function(study, collective) {
  found <- study$decisions
  if (is.null(found)) return(NULL)
  found <- filter(found,
    .data$collective == .env$collective, .data$algorithm != "default", .data$basis == "measured",
    .data$processes %% .data$nodes == 0
  )
  if (nrow(found) == 0) return(NULL)
  most <- arrange(found[found$processes == max(found$processes), ], .data$gain_pct)
  cell <- most[ceiling(nrow(most) / 2), ]
  paste0(
    "./study advise --study ", study$name, " --collective ", collective, " --nodes ", cell$nodes, " --ppn ",
    cell$processes / cell$nodes, " --mapping ", cell$mapping,
    if (!is.na(cell$size_bytes)) paste0(" --size ", cell$size_bytes)
  )
}
