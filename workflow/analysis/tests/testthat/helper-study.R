# What study.json says of the mappings.
cycles <- list(
  core = list(label = "by core", cycle = list()), socket = list(label = "by socket", cycle = list("socket")),
  node = list(label = "by node", cycle = list("node", "socket"))
)

# A study folder made of rows; `analysis` and `levels` as in study.json.
make_study <- function(rows, analysis = list(), simulated = FALSE, levels = NULL, folder = tempfile("study")) {
  dir.create(folder)
  # Mapped over the whole machine, if the rows do not say otherwise.
  if (all(rows$nodes == 1)) rows$nodes <- prod(unlist(lapply(levels, function(l) if (l$name == "node") l$count)))
  readr::write_csv(rows, file.path(folder, "measurements.csv"), na = "")
  collectives <- lapply(split(rows, rows$collective), function(part) {
    list(
      algorithms = lapply(unique(part$algorithm), function(name) list(name = name, label = toupper(name))),
      mappings = as.list(unique(part$mapping)), processes = as.list(sort(unique(part$processes))),
      sizes = as.list(sort(unique(part$size_bytes[!is.na(part$size_bytes)])))
    )
  })
  document <- list(
    name = "toy", title = "Toy", question = "?", simulated = simulated,
    machine = list(name = "m", kind = "local", label = "M", levels = levels), collectives = collectives,
    mappings = cycles, analysis = analysis
  )
  jsonlite::write_json(document, file.path(folder, "study.json"), auto_unbox = TRUE)
  write_launched(folder)
  folder
}

# Change what study.json says.
change_study <- function(folder, ...) {
  path <- file.path(folder, "study.json")
  jsonlite::write_json(utils::modifyList(jsonlite::read_json(path), list(...)), path, auto_unbox = TRUE)
}

# ranks.csv, edges.csv and exchanges.csv, as Python writes them.
write_launched <- function(folder) {
  status <- system2("python3", c(testthat::test_path("launched.py"), folder))
  if (status != 0) stop("launched.py ended with status ", status)
}

# A study in which each algorithm (a list by collective) ran on each number of processes.
launched_study <- function(levels, algorithms, processes, mappings = "core", cycles = NULL) {
  grid <- purrr::map_dfr(names(algorithms), function(collective) {
    expand.grid(
      collective = collective, algorithm = algorithms[[collective]], processes = processes, mapping = mappings,
      stringsAsFactors = FALSE
    )
  })
  rows <- toy_rows(grid$collective, grid$algorithm, grid$processes, 8, 1, grid$mapping)
  # An algorithm may come with its parameters behind a colon.
  rows$parameters <- ifelse(grepl(":", grid$algorithm), sub("^[^:]*:", "", grid$algorithm), "")
  rows$algorithm <- sub(":.*", "", grid$algorithm)
  read_results(make_study(rows, levels = levels))$study
}

toy_rows <- function(collective, algorithm, processes, size_bytes, latency_us, mapping = "core", launch = 1, ...) {
  tibble::tibble(
    study = "toy", collective = collective, algorithm = algorithm, parameters = "", mapping = mapping, nodes = 1,
    processes = processes, size_bytes = size_bytes, launch = launch, latency_us = latency_us, min_latency_us = NA_real_,
    max_latency_us = NA_real_, proved = NA, mpi = "openmpi", ...
  )
}

thin_levels <- list(list(name = "node", count = 2), list(name = "socket", count = 2), list(name = "core", count = 12))

# A whole study with a known law: latency = (1 + P / 8) x (1 + size / 1024), times a factor for each algorithm.
lawful <- function(algorithms = c(default = 1.1, linear = 1, chain = 1.3), counts = seq(2, 24, 2), sizes = 4^(0:6)) {
  grid <- expand.grid(algorithm = names(algorithms), processes = counts, size_bytes = sizes, stringsAsFactors = FALSE)
  bcast <- toy_rows(
    "bcast", grid$algorithm, grid$processes, grid$size_bytes,
    algorithms[grid$algorithm] * (1 + grid$processes / 8) * (1 + grid$size_bytes / 1024)
  )
  grid <- expand.grid(algorithm = names(algorithms), processes = counts, stringsAsFactors = FALSE)
  dplyr::bind_rows(
    bcast,
    toy_rows("barrier", grid$algorithm, grid$processes, NA, algorithms[grid$algorithm] * (1 + grid$processes / 8))
  )
}

ids <- function(entries) vapply(entries, function(entry) entry$id, "")

with_rows <- function(rows, ...) read_results(make_study(rows, ...))

make_everything <- function(folder) {
  expect_no_warning(write_analysis(read_results(folder)))
  readr::read_csv(file.path(folder, "figures", "index.csv"), show_col_types = FALSE)
}

expect_complete <- function(folder) {
  for (kind in c("tables", "models", "figures")) {
    index <- readr::read_csv(file.path(folder, kind, "index.csv"), show_col_types = FALSE)
    expect_true(all(file.exists(file.path(folder, index$file))), info = kind)
    expect_equal(anyDuplicated(index$id), 0)
    expect_true(all(nzchar(index$section)))
  }
  expect_equal(list.files(folder, "tmp", recursive = TRUE), character())
}

all_sentences <- function(folder) {
  readr::read_csv(file.path(folder, "sentences.csv"), col_types = "cicl", progress = FALSE)$text
}
