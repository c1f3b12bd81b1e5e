# Labels of collectives and products.

shown_titles <- c(
  collanalysis::collective_titles(), latency = "Point-to-point latency",
  bandwidth = "Point-to-point bandwidth", bw = "Point-to-point bandwidth", multi_lat = "Ping-pong in pairs",
  pairs = "Ping-pong of every pair", svd = "SVD"
)

collective_title <- function(name) {
  if (name %in% names(shown_titles)) return(shown_titles[[name]])
  collanalysis::capitalised(name)
}

# Labels of the names in machine and suite files.
product_names <- c(
  openmpi = "Open MPI", mpich = "MPICH", impi = "Intel MPI", osu = "OSU Micro-Benchmarks",
  "smpi-openmpi" = "SMPI"
)
product_notes <- c(collbench = "the embedded benchmark", "smpi-openmpi" = "algorithms selected as Open MPI does")

product <- function(name) {
  words <- trimws(strsplit(name %or% "", ",", fixed = TRUE)[[1]])
  known <- words %in% names(product_names)
  words[known] <- product_names[words[known]]
  paste(words, collapse = ", ")
}

collectives_shown <- function(study) names(study$about$collectives)

#' "collbench 1.0 (the embedded benchmark)"
with_version <- function(name, version) {
  known <- if (identical(version, "unknown")) "of unknown version" else version
  text <- trimws(paste(product(name), known %or% ""))
  note <- product_notes[name %or% ""]
  if (is.na(note)) text else paste0(text, " (", note, ")")
}

#' The status of a cell in words; `unproved`: the forced algorithm or the placement could not be verified.
status_word <- function(status) sub("^unproved$", "not verified", status)
