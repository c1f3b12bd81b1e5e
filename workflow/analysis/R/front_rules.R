# The gain of rules that replace the default, on the front page.

#' Sentence on the gain of rules on process counts that were not used to decide, of measured pairs of machine and
#' collective; [advise_front()] names each gain
#' @noRd
front_rules <- function(studies, rows) {
  # Corrected for all pairs, as everywhere on the page.
  gains <- front_gains(studies, rows)
  tests <- nrow(gains)
  gains <- gains[!gains$simulated, ]
  if (nrow(gains) == 0) return(NULL)
  clear <- gains[gains$clear, ]
  if (nrow(clear) == 0) {
    return(paste(
      "Selecting algorithms by rules brings no clear gain: rules decided on half of the process counts are not",
      "significantly faster than the default on the other half."
    ))
  }
  slower <- sum(gains$slower)
  saved <- unique(c(sub(" %", "", format_saved(min(clear$gain_pct))), format_saved(max(clear$gain_pct))))
  paste0(
    "Tuned rules select the algorithm by mapping, processes and message size. On process counts that were not used ",
    "to decide them, they are significantly faster than the default in ", nrow(clear), " of ", nrow(gains),
    " pairs of machine and collective",
    if (tests > 1) paste0(
      " (5 % level, corrected for ", tests, " tests", if (tests > nrow(gains)) ", simulated pairs included", ")"
    ),
    ". In ", if (nrow(clear) == 1) "this pair" else "these pairs", " they save ",
    if (nrow(clear) == 1) format_saved(clear$gain_pct) else paste(saved, collapse = " to "),
    " of the default's time.",
    if (slower > 0) paste0(" In ", count_of(slower, "pair"), " they are slower.")
  )
}

#' Format a gain over the default as the share of the default's time that it saves
#' @noRd
format_saved <- function(gain_pct) format_pct(share_saved(gain_pct))

#' The share of the default's time that faster algorithms save
#'
#' @param gain_pct Additional time of the default over them, in percent.
#' @return Percent of the default's time.
#' @examples
#' share_saved(100)
#' @export
share_saved <- function(gain_pct) 100 * (1 - 1 / (1 + gain_pct / 100))

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

#' The gain of tuned rules by machine and collective, over both halves of the process counts
#'
#' @param studies List from [read_front_study()].
#' @param rows The rows of the front page; only their machines and collectives are used. Of several studies of a pair,
#'   the one in `rows` counts or, if its rules are not judged, the one with most judged cells.
#' @return Tibble: study, machine, simulated, collective, cells, groups, degrees, gain_pct, gain_low_pct, gain_high_pct
#'   (95 % interval of the pair by itself), p_value (Holm's correction over all pairs), clear and slower (the rules are
#'   significantly faster or slower than the default, at the 5 % level).
#' @noRd
front_gains <- function(studies, rows) {
  none <- tibble(
    study = character(), machine = character(), simulated = logical(), collective = character(), cells = integer(),
    groups = integer(), degrees = numeric(), gain_pct = numeric(), gain_low_pct = numeric(),
    gain_high_pct = numeric(), p_value = numeric()
  )
  bind_rows(none, map_dfr(studies, function(study) {
    regret <- study$regret
    if (is.null(regret) || !"degrees" %in% names(regret)) return(NULL)
    regret |>
      filter(
        .data$policy == "tuned", .data$mapping == "all", .data$split == both_halves, !is.na(.data$gain_low_pct)
      ) |>
      transmute(
        study = .env$study$name, machine = front_machine(.env$study), simulated = .env$study$simulated,
        .data$collective, .data$cells, .data$groups, .data$degrees, .data$gain_pct, .data$gain_low_pct,
        .data$gain_high_pct, p_value = gain_p(.data$gain_pct, .data$gain_high_pct, .data$degrees)
      )
  })) |>
    semi_join(rows, by = c("machine", "simulated", "collective")) |>
    arrange(!paste(.data$study, .data$collective) %in% paste(rows$study, rows$collective), desc(.data$cells)) |>
    distinct(.data$machine, .data$simulated, .data$collective, .keep_all = TRUE) |>
    mutate(
      p_value = stats::p.adjust(.data$p_value, "holm"), clear = .data$p_value < 0.05 & .data$gain_pct > 0,
      slower = .data$p_value < 0.05 & .data$gain_pct < 0
    )
}

#' P-value of a gain, from its 95 % interval; 1 where it is exactly 0 (the rules are the default everywhere)
#' @noRd
gain_p <- function(gain_pct, gain_high_pct, degrees) {
  gain <- log1p(gain_pct / 100)
  error <- (log1p(gain_high_pct / 100) - gain) / stats::qt(0.975, degrees)
  ifelse(gain == 0, 1, 2 * stats::pt(-abs(gain) / error, degrees))
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
    "Decide the rules on each machine: those decided on the other machines ",
    if (max(gain_pct) > 0.05) paste("save at most", format_saved(max(gain_pct)), "of") else "save nothing of",
    " the default's time."
  )
}
