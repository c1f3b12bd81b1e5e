# What to do, on the front page: the rules with the clearest gain, and how to use them.

#' What to do: the rules with the clearest gain, their file where one was written, and the command
#'
#' @inheritParams front_gains
#' @return List with `study`, `sentence` and `others` (where the gain is clear, where not, what was not tested),
#'   `launcher` (the command that starts a program with the tuning file for its shape; NULL where none was written),
#'   `ask` (the command that answers for a single call), `verified` (what fresh launches gave); NULL where no rules have
#'   a clear gain.
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
  others <- gains[-1, ][seq_len(min(4, nrow(gains) - 1)), ]
  list(
    study = best$study,
    sentence = paste0(
      "Use tuned rules for ", name_cells(best), ": they save ", format_saving(best), " of its time",
      front_mappings(study, best$collective), "."
    ),
    others = c(
      if (nrow(others) > 0) paste0(
        "They also save ", and_list(map_chr(seq_len(nrow(others)), function(i) {
          paste(format_saving(others[i, ]), "for", name_cells(others[i, ]))
        })), "."
      ),
      if (nrow(kept) > 0) paste0(
        "Keep the default for ", name_by_machine(kept), ": no rule is significantly faster there."
      ),
      if (nrow(untested) > 0) paste0(
        "Too few process counts were measured to judge rules for ", name_by_machine(untested), "; the chapters show ",
        "the fastest algorithm of each cell."
      ),
      front_transfer(studies)
    ),
    launcher = tuning_launcher(study, best$collective), ask = advise_command(study, best$collective),
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

#' The command, in the folder of the tuning files, that starts a program with the file for its shape: for the mapping
#' whose rules gain most, at the most processes
#' @noRd
tuning_launcher <- function(study, collective) {
  if (!file.exists(file.path(study$folder, "tuning", "mpirun-tuned"))) return(NULL)
  found <- filter(study$decisions, .data$collective == .env$collective, .data$algorithm != "default")
  if (nrow(found) == 0) return(NULL)
  gains <- tapply(found$gain_pct, as.character(found$mapping), median, na.rm = TRUE)
  mapping <- names(gains)[which.max(gains)]
  paste0(
    "mpirun-tuned -n ", max(found$processes[found$mapping == mapping]),
    if (mapping %in% c("core", "socket", "node")) paste(" --map-by", mapping), " ./program"
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
