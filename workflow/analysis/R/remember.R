# What is worked out once: of a study or its results while an analysis runs, and of the same values in later analyses.

#' What was worked out of a study before, or `make()`
#'
#' A study, or the results of one, remember while something that does not change them runs ([remembering()]); others
#' remember nothing.
#' @param known List from [read_study()] or [read_results()].
#' @noRd
remember <- function(known, key, make) {
  memory <- known$memory
  if (is.null(memory)) return(make())
  # A list, because what is not known (NULL) is remembered, too.
  if (is.null(memory[[key]])) assign(key, list(make()), memory)
  memory[[key]][[1]]
}

#' A study or results with a memory (an environment) of what is worked out of them, see [remember()]
#' @noRd
remembering <- function(known) {
  if (is.null(known$memory)) known$memory <- new.env(parent = emptyenv())
  known
}

#' What was worked out of the same values in this or an earlier analysis, or `make()`
#'
#' Files in the folder `known$store`, named by a digest of the values, of this package and of what it computes with;
#' without a folder, nothing is stored.
#' @param known List from [read_study()] or [read_results()], with a `store` from [storing()].
#' @param values List of all that the result depends on.
#' @noRd
recall <- function(known, values, make) {
  if (is.null(known$store)) return(make())
  file <- file.path(known$store$folder, paste0(rlang::hash(list(known$store$code, values)), ".rds"))
  found <- if (file.exists(file)) tryCatch(readRDS(file), error = function(error) NULL)
  if (!is.null(found)) {
    Sys.setFileTime(file, Sys.time())
    return(found[[1]])
  }
  # A list, because what is not known (NULL) is stored, too.
  made <- list(make())
  temporary <- tempfile("new-", known$store$folder)
  saveRDS(made, temporary)
  file.rename(temporary, file)
  made[[1]]
}

#' A study that [recall()]s from a folder; what nobody asked for in a month is removed
#' @noRd
storing <- function(known, folder) {
  dir.create(folder, showWarnings = FALSE, recursive = TRUE)
  files <- list.files(folder, full.names = TRUE)
  unlink(files[difftime(Sys.time(), file.mtime(files), units = "days") > 30])
  code <- system.file("R", package = "collanalysis")
  known$store <- list(folder = folder, code = list(
    R.version.string, utils::packageVersion("mgcv"), rlang::hash_file(list.files(code, "rd[bs]$", full.names = TRUE))
  ))
  known
}
