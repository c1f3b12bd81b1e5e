#' Make the figures of a study
#' @inheritParams write_tables
#' @export
write_figures <- function(results, folder = results$study$folder) NULL
