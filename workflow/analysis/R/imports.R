# What the checks of imported data found, and how far several sources of one machine agree.

#' Import checks and agreement of a study, as the import wrote them
#'
#' @param results List from [read_results()].
#' @return A list: `checks` (check, where, found, how_sure, done), `agreement` (machine, collective, algorithm, mapping,
#'   sources, cells, median_abs_difference_pct, p90_abs_difference_pct); NULL where the study imports nothing.
#' @noRd
read_import <- function(results) {
  files <- file.path(results$study$folder, c("import-checks.csv", "agreement.csv"))
  if (is.null(results$study$import) || !all(file.exists(files))) return(NULL)
  list(
    checks = readr::read_csv(files[1], col_types = readr::cols(.default = "c"), progress = FALSE),
    agreement = readr::read_csv(files[2], progress = FALSE, col_types = readr::cols(
      .default = "c", cells = "i", median_abs_difference_pct = "d", p90_abs_difference_pct = "d"
    ))
  )
}

tables_of_import <- function(results) {
  import <- read_import(results)
  if (is.null(import)) return(NULL)
  c(
    list(listed("import", "checks", import$checks, paste(
      "Findings of the import checks, with evidence, confidence and action. A finding",
      "is a warning: data are never repaired."
    ))),
    if (nrow(import$agreement) > 0) list(listed("agreement", NULL, import$agreement, paste(
      "Differences between two sources of the same machine in common cells: |a / b - 1| in percent,",
      "median and 90th percentile. This is the noise floor of every statement about the machine."
    )))
  )
}

#' What was found and how far sources agree, in sentences
#'
#' @inheritParams read_import
#' @return Character vector; empty where the study imports nothing.
#' @noRd
describe_import <- function(results) {
  import <- read_import(results)
  if (is.null(import)) return(character())
  checks <- import$checks
  by_check <- count(checks, .data$check)
  found <- if (nrow(checks) == 0) {
    "The import checks have no findings."
  } else {
    paste0(
      "The import checks have ",
      and_list(paste0(by_check$n, " of \u201c", by_check$check, "\u201d")), "; ",
      sum(checks$how_sure == "certain"), " of these findings are certain."
    )
  }
  agreement <- import$agreement
  sources <- if (nrow(agreement) > 0) {
    paste0(
      "Sources of the same cells differ by ", format_number(min(agreement$median_abs_difference_pct)), " to ",
      format_number(max(agreement$median_abs_difference_pct)), " % in the median, by algorithm and mapping (",
      format_number(median(agreement$median_abs_difference_pct)), " % in the middle)."
    )
  }
  c(found, sources)
}
