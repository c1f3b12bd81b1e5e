# How long tables and summary of a study with 1 000 000 measurement rows take: Rscript bench/analysis_rows.R [rows]
# Needs the installed package collanalysis (R_LIBS). Prints processor time (s) of reading, of tables, and of plain readr
# with one group_by on the same file; and the most memory (MB).
suppressPackageStartupMessages(library(collanalysis))

make_big_study <- function(rows, folder) {
  dir.create(folder, recursive = TRUE)
  algorithms <- c("default", "linear", "chain", "binary_tree", "binomial")
  mappings <- c("core", "socket", "node")
  sizes <- 2^(0:20)
  launches <- 10
  counts <- seq_len(ceiling(rows / (length(algorithms) * length(mappings) * length(sizes) * launches))) + 1
  grid <- expand.grid(
    launch = seq_len(launches), size_bytes = sizes, processes = counts, mapping = mappings, algorithm = algorithms,
    stringsAsFactors = FALSE
  )[seq_len(rows), ]
  set.seed(1)
  latency <- (1 + grid$processes / 8) * (1 + grid$size_bytes / 4096) * exp(rnorm(rows, sd = 0.05))
  table <- data.frame(
    study = "big", machine = "big", simulated = FALSE, suite = "generated", mpi = "none", collective = "bcast",
    algorithm = grid$algorithm, parameters = "", mapping = grid$mapping, nodes = 2, processes = grid$processes,
    size_bytes = grid$size_bytes, launch = grid$launch, latency_us = round(latency, 3),
    min_latency_us = round(latency * 0.9, 3),
    max_latency_us = round(latency * 1.1, 3), iterations = 1000, proved = TRUE, cell = "0123456789abcdef"
  )
  readr::write_csv(table, file.path(folder, "measurements.csv"))
  study <- list(
    name = "big", title = "Generated", question = "How long does it take?", simulated = FALSE,
    machine = list(name = "big", kind = "local", label = "generated"),
    collectives = list(bcast = list(
      algorithms = lapply(algorithms, function(name) list(name = name, label = name)), mappings = mappings,
      processes = counts,
      sizes = sizes
    ))
  )
  jsonlite::write_json(study, file.path(folder, "study.json"), auto_unbox = TRUE)
  folder
}

cpu <- function(expression) {
  before <- proc.time()
  force(expression)
  sum((proc.time() - before)[c("user.self", "sys.self")])
}

analyse <- function(folder) {
  analysis <- asNamespace("collanalysis")
  read <- cpu(results <- analysis$read_measured(folder))
  tables <- cpu({
    # As write_analysis() does it; a study that was generated has no placements, and models are another question.
    results$cells <- analysis$read_cells(folder)
    results <- analysis$remembering(results)
    analysis$write_listed(analysis$tables_of(results), folder, "tables", results$study)
  })
  peak <- as.numeric(gsub("[^0-9]", "", grep("^VmHWM", readLines("/proc/self/status"), value = TRUE))) / 1024
  cat(sprintf(
    "read_cpu_s=%.1f\ntables_cpu_s=%.1f\ntotal_cpu_s=%.1f\npeak_mb=%.0f\n", read, tables, read + tables, peak
  ))
}

# The baseline: what anybody would write.
read_plainly <- function(folder) {
  cat(sprintf("plain_cpu_s=%.1f\n", cpu(dplyr::summarise(
    dplyr::group_by(
      readr::read_csv(file.path(folder, "measurements.csv"), show_col_types = FALSE, progress = FALSE),
      collective, algorithm, mapping, processes, size_bytes
    ), median(latency_us), .groups = "drop"
  ))))
}

# Each in a process of its own: the most memory is that of the analysis alone.
arguments <- commandArgs(trailingOnly = TRUE)
if (length(arguments) == 2) {
  switch(arguments[1], analyse = analyse(arguments[2]), plain = read_plainly(arguments[2]))
} else {
  rows <- as.integer(c(arguments, 1e6)[1])
  folder <- make_big_study(rows, file.path(tempfile("bench"), "big"))
  cat(sprintf("rows=%d\n", rows))
  script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
  for (part in c("plain", "analyse")) {
    if (system2("Rscript", c(shQuote(script), part, shQuote(folder))) != 0) stop(part, " failed")
  }
  unlink(dirname(folder), recursive = TRUE)
}
