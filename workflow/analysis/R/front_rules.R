# What rules that replace the default are worth, on the front page.

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
