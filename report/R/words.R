# How a reader sees the names of collectives and products.

collective_titles <- c(
  bcast = "Broadcast", barrier = "Barrier", reduce = "Reduce", allreduce = "Allreduce", gather = "Gather",
  scatter = "Scatter", allgather = "Allgather", alltoall = "All-to-all", alltoallv = "All-to-all (v)",
  ibcast = "Non-blocking broadcast", iallreduce = "Non-blocking allreduce", reduce_scatter = "Reduce-scatter",
  ireduce_scatter = "Non-blocking reduce-scatter", latency = "Point-to-point latency",
  bandwidth = "Point-to-point bandwidth", bw = "Point-to-point bandwidth", multi_lat = "Ping-pong in pairs",
  pairs = "Ping-pong of every pair", svd = "SVD"
)

collective_title <- function(name) {
  if (name %in% names(collective_titles)) return(collective_titles[[name]])
  paste0(toupper(substr(name, 1, 1)), substring(name, 2))
}

# Names that the machine and suite files use, as people write them.
product_names <- c(
  openmpi = "Open MPI", mpich = "MPICH", impi = "Intel MPI", osu = "OSU Micro-Benchmarks",
  "smpi-openmpi" = "SMPI"
)
product_notes <- c(collbench = "the embedded benchmark", "smpi-openmpi" = "algorithms selected as Open MPI does")

product <- function(name) {
  words <- trimws(strsplit(name %||% "", ",", fixed = TRUE)[[1]])
  known <- words %in% names(product_names)
  words[known] <- product_names[words[known]]
  paste(words, collapse = ", ")
}

collectives_of <- function(study) names(study$about$collectives)

#' "collbench 1.0 (the embedded benchmark)"
with_version <- function(name, version) {
  known <- if (identical(version, "unknown")) "of unknown version" else version
  text <- trimws(paste(product(name), known %||% ""))
  note <- product_notes[name %||% ""]
  if (is.na(note)) text else paste0(text, " (", note, ")")
}

#' The status of a cell in words: what did not run as it was forced, or where, is stored as `unproved`.
status_word <- function(status) sub("^unproved$", "not verified", status)
