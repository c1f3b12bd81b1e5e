#' Write a tibble as CSV: first to a temporary file that is then renamed, so that no process reads an incomplete file
#'
#' @param data A data frame.
#' @param path Path of the CSV file.
#' @return `path`.
#' @noRd
write_table <- function(data, path) {
  dir.create(dirname(path), showWarnings = FALSE, recursive = TRUE)
  temporary <- paste0(path, ".tmp")
  readr::write_csv(mutate(data, across(where(is.double), function(x) signif(x, 10))), temporary, na = "")
  file.rename(temporary, path)
  path
}

#' Write the analysis of a study: its tables, models, figures and sentences
#'
#' One call writes all of them, because figures and sentences report the accuracy of the models.
#'
#' @param results List from [read_results()].
#' @param folder Folder `results/<study>`; files go to `tables/`, `models/` and `figures/` in it, each with an
#'   `index.csv`, and to `sentences.csv` (docs/files.md).
#' @return The paths of the indexes and of sentences.csv.
#' @examples
#' results <- read_results(system.file("extdata", "example", package = "collanalysis"))
#' write_analysis(results, tempfile())
#' @export
write_analysis <- function(results, folder = results$study$folder) {
  results <- remembering(results)
  # The store is outside the study's folder, because several studies have the same measurements.
  results$study <- storing(remembering(results$study), file.path(dirname(folder), ".analysis"))
  # Computed once for the figures, tables and sentences of the chapter on all machines.
  if (identical(results$study$chapter, "atlas")) results$atlas <- atlas_rows(results)
  models <- models_of(results)
  results$models <- setNames(map(models, "data"), map_chr(models, "id"))
  tables <- tables_of(results)
  results$tables <- setNames(map(tables, "data"), map_chr(tables, "id"))
  shown <- bind_rows(
    write_figures(figures_of(results), folder, results$study),
    write_listed(tables, folder, "tables", results$study), write_listed(models, folder, "models", results$study)
  )
  write_table(add_shown(sentences_of(results), shown), file.path(folder, "sentences.csv"))
  file.path(folder, c("tables/index.csv", "models/index.csv", "figures/index.csv", "sentences.csv"))
}

#' The tables of a study
#' @return List of [listed()] entries.
#' @noRd
tables_of <- function(results) {
  own <- own_chapter(results)
  if (has_applications(results)) return(tables_of_applications(results))
  if (!is.null(own)) return(own$tables(results))
  c(
    of_collectives(results, tables_with_sizes, tables_without),
    tables_accuracy(results),
    tables_of_ladder(results),
    tables_of_scaling(results),
    tables_of_simulation_cost(results),
    tables_of_import(results),
    tables_of_answer(results),
    tables_across(results)
  )
}

#' Apply `with_sizes` to each collective with message sizes and `without` to each one without; returns all entries
#' @noRd
of_collectives <- function(results, with_sizes, without) {
  of <- function(sized, make) map(collectives_of(results, sized = sized), function(name) make(results, name))
  unlist(c(of(TRUE, with_sizes), of(FALSE, without)), recursive = FALSE)
}

tables_with_sizes <- function(results, collective) {
  c(
    list(
      listed(
        collective, "default-vs-best", summarise_default_vs_best(results, collective),
        caption_default_vs_best(results, collective), part = "wins"
      ),
      listed_winners(results, collective)
    ),
    tables_of_claims(results, collective)
  )
}

listed_winners <- function(results, collective) {
  listed(
    collective, "winners", decide_winners(results, collective), caption_winners(results, collective), part = "wins"
  )
}

tables_without <- function(results, collective) {
  list(
    listed(
      collective, "default-vs-best", summarise_optimal(results, collective), caption_optimal(results, collective),
      part = "wins"
    ),
    listed_winners(results, collective)
  )
}

#' The models of a study
#' @return List of [listed()] entries.
#' @noRd
models_of <- function(results) {
  if (has_applications(results)) return(list())
  models <- if (is.null(own_chapter(results))) of_collectives(results, models_with_sizes, models_without)
  c(models, models_of_scaling(results), models_of_study(results, models))
}

models_with_sizes <- function(results, collective) {
  c(
    list(
      listed(
        collective, "loglinear", fit_loglinear(results, collective), caption_loglinear(results, collective),
        part = "models"
      )
    ),
    models_compared(results, collective)
  )
}

models_without <- function(results, collective) {
  c(
    list(
      listed(
        collective, "tree-slopes", fit_tree_slopes(results, collective), caption_slopes(results, collective),
        part = "models"
      ),
      listed(collective, "fits", fit_barriers(results, collective), caption_fits(results, collective), part = "models")
    ),
    models_compared(results, collective)
  )
}

models_compared <- function(results, collective) {
  detail <- summarise_model_detail(results, collective)
  list(
    listed(
      collective, "comparison", summarise_model_errors(results, collective, detail),
      caption_errors(results, collective), part = "models"
    ),
    listed(collective, "comparison-detail", detail, paste(
      caption_errors(results, collective), "One row for each reason for which cells were held out."
    ), part = "models"),
    listed(
      collective, "hop-costs", fit_hop_costs(results, collective), caption_costs(results, collective), part = "models"
    )
  )
}

#' An entry of tables/index.csv or models/index.csv
#'
#' @param about Subject: a collective, an application or a part of a chapter. It names the section of the report,
#'   together with `part` (`wins`, `models`, `levels`) where that is given.
#' @param what Second part of the identifier `about-what`; NULL: the identifier is `about`.
#' @noRd
listed <- function(about, what, data, caption, part = NULL) {
  list(id = paste(c(about, what), collapse = "-"), section = section_name(about, part), about = about, what = what,
       data = data, caption = caption)
}

section_name <- function(about, part = NULL) paste(c(about, part), collapse = "/")

#' Write tables or models and their index
#' @return Tibble: section and file of those with rows, because empty tables are not shown.
#' @noRd
write_listed <- function(entries, folder, kind, study) {
  index <- tibble(id = character(), section = character(), file = character(), caption = character())
  index <- bind_rows(index, map_dfr(entries, function(entry) {
    file <- file.path(kind, paste0(entry$id, ".csv"))
    write_table(split_variants(entry$data, study, entry$about), file.path(folder, file))
    unsaid <- study$simulated && !grepl("simulat", entry$caption, ignore.case = TRUE)
    caption <- paste0(if (unsaid) "Simulated. ", entry$caption)
    tibble(id = entry$id, section = entry$section, file = file, caption = caption)
  }))
  write_table(index, file.path(folder, kind, "index.csv"))
  index[map_dbl(entries, function(entry) nrow(entry$data)) > 0, c("section", "file")]
}
