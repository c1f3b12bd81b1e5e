new_folder <- function() {
  path <- tempfile()
  dir.create(path)
  path
}

# Write, of the analysis of a study, only the tables that the front page reads: models take long.
write_front_tables <- function(folder) {
  results <- read_results(folder)
  tables <- list(
    `answer-collectives` = summarise_by_collective(results), `answer-mappings` = summarise_by_mapping(results),
    `tuning-regret` = summarise_regret(results, "bcast")
  )
  purrr::iwalk(tables, function(data, name) write_table(data, file.path(folder, "tables", paste0(name, ".csv"))))
  folder
}

# Tables of front_study() by its process counts, because regret takes long.
front_tables <- new.env()

# A machine whose default is 10 % slower than linear in every cell.
front_study <- function(name, simulated = FALSE, counts = seq(4, 24, 2), label = name) {
  rows <- lawful(counts = counts, sizes = c(1, 4, 16))
  folder <- make_study(rows, simulated = simulated, folder = file.path(new_folder(), name))
  change_study(folder, name = name, machine = list(label = label))
  readr::write_csv(tibble::tibble(
    study = name, collective = "bcast", algorithm = "default", mapping = "core", nodes = 1, processes = max(counts),
    status = c("measured", "failed")
  ), file.path(folder, "cells.csv"))
  key <- paste(counts, collapse = " ")
  if (is.null(front_tables[[key]])) front_tables[[key]] <- file.path(write_front_tables(folder), "tables")
  if (!dir.exists(file.path(folder, "tables"))) file.copy(front_tables[[key]], folder, recursive = TRUE)
  folder
}

# shapes.json of mpirun-tuned for mappings, by the `cycle` of each.
write_shapes <- function(folder, cycles) {
  shapes <- purrr::imap(unname(cycles), function(cycle, i) list(mapping = names(cycles)[i], cycle = cycle))
  dir.create(file.path(folder, "tuning"), showWarnings = FALSE)
  jsonlite::write_json(shapes, file.path(folder, "tuning", "shapes.json"), auto_unbox = TRUE)
}

# So many process counts that the gain of rules is significant, although they keep the default for the outermost one.
many_counts <- 2^(2:13)
