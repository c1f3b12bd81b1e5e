#' Write a tibble as CSV: to a temporary name, then renamed, so that a reader never sees half a file
#'
#' @param data A data frame.
#' @param path Where.
#' @return `path`.
#' @export
write_table <- function(data, path) {
  dir.create(dirname(path), showWarnings = FALSE, recursive = TRUE)
  temporary <- paste0(path, ".tmp")
  readr::write_csv(mutate(data, across(where(is.double), function(x) signif(x, 10))), temporary, na = "")
  file.rename(temporary, path)
  path
}

#' Make the tables of a study
#'
#' @param results List from [read_results()].
#' @param folder Folder `results/<study>`; files go to `tables/` in it, listed in `tables/index.csv`.
#' @return Tibble: id, file, caption, seed_table (the content of the index).
#' @export
write_tables <- function(results, folder = results$study$folder) {
  if (has_applications(results)) return(write_listed(tables_of_applications(results), folder, "tables"))
  tables <- if (!is.null(own_chapter(results))) own_chapter(results)$tables(results) else c(
    unlist(
      map(collectives_of(results, sized = TRUE), function(name) tables_with_sizes(results, name)), recursive = FALSE
    ),
    unlist(
      map(collectives_of(results, sized = FALSE), function(name) tables_without(results, name)),
      recursive = FALSE
    ),
    tables_accuracy(results),
    tables_of_ladder(results),
    tables_of_scaling(results),
    tables_of_simulation_cost(results)
  )
  write_listed(tables, folder, "tables")
}

tables_with_sizes <- function(results, collective) {
  c(
    list(
      listed(
        collective, "default-vs-best", summarise_default_vs_best(results, collective),
        caption_default_vs_best(results, collective), seed = 1
      ),
      listed(collective, "winners", decide_winners(results, collective), caption_winners(results, collective))
    ),
    tables_of_claims(results, collective)
  )
}

tables_without <- function(results, collective) {
  list(
    listed(
      collective, "default-vs-best", summarise_optimal(results, collective), caption_optimal(results, collective),
      seed = 3
    ),
    listed(collective, "winners", decide_winners(results, collective), caption_winners(results, collective))
  )
}

#' Make the model files of a study
#'
#' @inheritParams write_tables
#' @return Tibble: id, file, caption, seed_table; also written to `models/index.csv`.
#' @export
write_models <- function(results, folder = results$study$folder) {
  if (has_applications(results)) return(write_listed(list(), folder, "models"))
  models <- if (!is.null(own_chapter(results))) list() else c(
    unlist(
      map(collectives_of(results, sized = TRUE), function(name) models_with_sizes(results, name)), recursive = FALSE
    ),
    unlist(map(collectives_of(results, sized = FALSE), function(name) models_without(results, name)), recursive = FALSE)
  )
  write_listed(c(models, models_of_scaling(results), models_of_study(results, models)), folder, "models")
}

models_with_sizes <- function(results, collective) {
  c(
    list(
      listed(
        collective, "loglinear", fit_loglinear(results, collective), caption_loglinear(results, collective), seed = 2
      )
    ),
    models_compared(results, collective)
  )
}

models_without <- function(results, collective) {
  c(
    list(
      listed(
        collective, "tree-slopes", fit_tree_slopes(results, collective), caption_slopes(results, collective), seed = 4
      ),
      listed(collective, "fits", fit_barriers(results, collective), caption_fits(results, collective))
    ),
    models_compared(results, collective)
  )
}

models_compared <- function(results, collective) {
  detail <- summarise_model_detail(results, collective)
  list(
    listed(
      collective, "comparison", summarise_model_errors(results, collective, detail), caption_errors(results, collective)
    ),
    listed(collective, "comparison-detail", detail, paste(
      caption_errors(results, collective), "By the reason for which a cell was held out."
    )),
    listed(collective, "hop-costs", fit_hop_costs(results, collective), caption_costs(results, collective))
  )
}

listed <- function(collective, what, data, caption, seed = NA) {
  list(id = paste0(collective, "-", what), data = data, caption = caption, seed = seed)
}

write_listed <- function(entries, folder, kind) {
  index <- tibble(id = character(), file = character(), caption = character(), seed_table = integer())
  index <- bind_rows(index, map_dfr(entries, function(entry) {
    file <- file.path(kind, paste0(entry$id, ".csv"))
    write_table(entry$data, file.path(folder, file))
    tibble(id = entry$id, file = file, caption = entry$caption, seed_table = as.integer(entry$seed))
  }))
  write_table(index, file.path(folder, kind, "index.csv"))
  index
}
