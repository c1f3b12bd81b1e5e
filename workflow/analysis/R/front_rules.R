# The gain of rules that replace the default, on the front page.

#' Sentence on the gain of rules on process counts that were not used to decide; [advise_front()] names each gain
#' @noRd
front_rules <- function(studies, rows) {
  gains <- front_gains(studies, rows)
  if (nrow(gains) == 0) return(NULL)
  clear <- gains[gains$gain_low_pct > 0, ]
  if (nrow(clear) == 0) {
    return(paste(
      "Selecting algorithms by rules brings no clear gain: rules decided on half of the process counts are not",
      "significantly faster than the default on the other half."
    ))
  }
  slower <- sum(gains$gain_high_pct < 0)
  saved <- unique(c(sub(" %", "", format_saved(min(clear$gain_pct))), format_saved(max(clear$gain_pct))))
  paste0(
    "Tuned rules select the algorithm by mapping, processes and message size. On process counts that were not used ",
    "to decide them, they are significantly faster than the default in ", nrow(clear), " of ", nrow(gains),
    " pairs of machine and collective. In ", if (nrow(clear) == 1) "this pair" else "these pairs", " they save ",
    if (nrow(clear) == 1) format_saved(clear$gain_pct) else paste(saved, collapse = " to "),
    " of its time.",
    if (slower > 0) paste0(" In ", slower, if (slower == 1) " pair" else " pairs", " they are slower.")
  )
}

#' Format a gain over the default as the share of the default's time that it saves
#' @noRd
format_saved <- function(gain_pct) format_pct(100 * (1 - 1 / (1 + gain_pct / 100)))

#' Format the gain of rules as the share of the default's time that they save: "52 % (95 % interval 42 to 54 %)"
#'
#' @param row A row of gains.
#' @param interval Name of the interval; empty where the preceding sentence has it.
#' @noRd
format_saving <- function(row, interval = "95 % interval ") {
  if (is.na(row$gain_low_pct)) return(format_saved(row$gain_pct))
  paste0(
    format_saved(row$gain_pct), " (", interval, sub(" %", "", format_saved(row$gain_low_pct)), " to ",
    format_saved(row$gain_high_pct), ")"
  )
}

#' The gain of tuned rules by machine and collective, both halves of the process counts together
#'
#' @param studies List from [read_front_study()].
#' @param rows The rows of the front page; only their studies and collectives are used.
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

#' Pool the estimates from disjoint process counts; their standard errors follow from the intervals
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

#' Sentence on the share of the default's time that rules decided on other machines save
#' @noRd
front_transfer <- function(studies) {
  found <- bind_rows(map(studies, "one_rule"))
  if (nrow(found) == 0) return(NULL)
  wide <- found |>
    filter(.data$policy %in% c("default", "rule of the other machines")) |>
    select("machine", "policy", "geometric_mean_pct") |>
    pivot_wider(names_from = "policy", values_from = "geometric_mean_pct")
  gain_pct <- 100 * ((1 + wide$default / 100) / (1 + wide[["rule of the other machines"]] / 100) - 1)
  helped <- sum(gain_pct > 0.5)
  if (helped > nrow(wide) / 2) {
    return(paste0(
      "Rules carry over between machines: those decided on the other machines save up to ", format_saved(max(gain_pct)),
      " of the default's time, on ", helped, " of ", nrow(wide), " machines."
    ))
  }
  paste0(
    "Decide the rules on each machine: rules from other machines ",
    if (max(gain_pct) > 0.05) paste("save at most", format_saved(max(gain_pct)), "of") else "save nothing of",
    " the default's time."
  )
}
