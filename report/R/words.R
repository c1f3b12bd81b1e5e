# Labels of collectives and of the status of cells.

shown_titles <- c(
  collanalysis::collective_titles(), latency = "Point-to-point latency", bw = "Point-to-point bandwidth",
  multi_lat = "Ping-pong in pairs", pairs = "Ping-pong between pairs of cores", svd = "SVD"
)

heading_of <- function(name) {
  if (name %in% names(shown_titles)) return(shown_titles[[name]])
  collanalysis::capitalised(name)
}

collectives_shown <- function(study) names(study$about$collectives)

#' The status of a cell in words; `unproved`: the forced algorithm or the placement could not be verified.
status_word <- function(status) sub("^unproved$", "not verified", status)
