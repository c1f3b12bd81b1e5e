# Names of algorithms: an algorithm measured with several parameters counts as several algorithms in the analysis. Their
# names are looked up and never parsed; files have the algorithm and its parameters in two columns.

#' The name of an algorithm with parameters
#'
#' @param algorithm Names of algorithms.
#' @param parameters `key=value;...`.
#' @return `algorithm:key=value:...`, the name of an algorithm with these parameters in the analysis.
#' @examples
#' variant_name("chain", "fanout=2;segment_bytes=8192")
#' @export
variant_name <- function(algorithm, parameters) paste0(algorithm, ":", gsub(";", ":", parameters, fixed = TRUE))

#' The algorithm and the parameters of a name; a name without measurements is an algorithm without parameters
#' @return List: name, parameters.
#' @noRd
variant_of <- function(study, collective, algorithm) {
  remember(study, paste("variant", collective, algorithm, sep = "\r"), function() {
    at <- variant_at(study, collective, algorithm)
    if (is.na(at)) return(list(name = as.character(algorithm), parameters = ""))
    list(name = study$variants$algorithm_name[at], parameters = study$variants$parameters[at])
  })
}

variant_at <- function(study, collective, algorithm) {
  known <- study$variants
  if (is.null(known)) return(rep(NA_integer_, length(algorithm)))
  vctrs::vec_match(
    tibble(collective = rep_len(as.character(collective), length(algorithm)), algorithm = as.character(algorithm)),
    known[c("collective", "algorithm")]
  )
}

#' The algorithms' names without parameters
#' @noRd
name_of <- function(study, collective, algorithm) {
  at <- variant_at(study, collective, algorithm)
  ifelse(is.na(at), as.character(algorithm), study$variants$algorithm_name[at])
}

#' The numeric value of a key in `key=value;...`
#' @noRd
parameter_of <- function(parameters, name, default) {
  pairs <- strsplit(strsplit(parameters, ";", fixed = TRUE)[[1]], "=", fixed = TRUE)
  value <- unlist(map(pairs, function(pair) if (pair[1] == name) as.numeric(pair[2])))
  if (length(value) == 1) value else default
}

#' The form of a table in files: each column of algorithms is followed by one with their parameters
#'
#' @param data Tibble with a column collective, or of the collective `about`.
#' @noRd
split_variants <- function(data, study, about = NULL) {
  for (column in intersect(c("algorithm", "winner", "runner_up"), names(data))) {
    at <- variant_at(study, data[["collective"]] %||% about, data[[column]])
    parameters <- if (is.null(study$variants)) "" else coalesce(study$variants$parameters[at], "")
    name <- if (column == "algorithm") "parameters" else paste0(column, "_parameters")
    data[[column]] <- name_of(study, data[["collective"]] %||% about, data[[column]])
    data <- mutate(data, !!name := parameters, .after = all_of(column))
  }
  data
}
