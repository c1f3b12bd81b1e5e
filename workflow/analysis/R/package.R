#' collanalysis: from measurements.csv to tables, models, figures and sentences
#'
#' The verb of a function's name tells what it returns: `read_*` the content of a study's files, `summarise_*` a tibble,
#' `fit_*` a model or its coefficients, `decide_*` a choice between algorithms, `plot_*` a ggplot, `describe_*`
#' sentences, `write_*` the paths of the files that it wrote. All latencies are in microseconds, all sizes in bytes. The
#' replicate of the statistics is the launch: analyses start from medians over launches.
#'
#' @keywords internal
#' @import dplyr
#' @import ggplot2
#' @importFrom tibble tibble as_tibble
#' @importFrom tidyr pivot_wider pivot_longer complete
#' @importFrom purrr map map2 map2_chr map_dbl map_chr map_lgl map_dfr pmap imap
#' @importFrom stats coef lm predict median setNames qbinom quantile fitted approx
#' @importFrom rlang .data .env %||%
#' @importFrom utils head tail
"_PACKAGE"

# readr (vroom 1.6.1, vroom_write_out) writes a table in about 100 parts and copies the list of columns for each part. A
# thread of its own releases the copy of a written part while R makes the next one; both change R's list of protected
# objects, and a garbage collection at that moment ends in a segmentation fault. A table in one part is not affected.
.onLoad <- function(libname, pkgname) Sys.setenv(VROOM_WRITE_BUFFER_LINES = .Machine$integer.max)
