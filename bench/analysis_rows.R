# How long tables and summary of a study with 1 000 000 measurement rows take: Rscript bench/analysis_rows.R [rows]
# Needs the installed package collanalysis (R_LIBS). Prints the wall time of reading, tables and summary in seconds.
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

rows <- as.integer(c(commandArgs(trailingOnly = TRUE), 1e6)[1])
folder <- make_big_study(rows, file.path(tempfile("bench"), "big"))
started <- proc.time()[["elapsed"]]
results <- read_results(folder)
read <- proc.time()[["elapsed"]]
invisible(write_tables(results))
invisible(summarise_answer(results))
ended <- proc.time()[["elapsed"]]
cat(
  sprintf(
    "rows=%d\nread_s=%.1f\ntables_and_summary_s=%.1f\ntotal_s=%.1f\n", rows, read - started, ended - read,
    ended - started
  )
)
unlink(dirname(folder), recursive = TRUE)
