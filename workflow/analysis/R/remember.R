# Caches: in memory for a study or its results during an analysis, and on disk for the same values in later analyses.

#' The value cached under a key in memory, or else `make()`, which is then cached
#'
#' Only a study or results with a memory ([remembering()]) are cached, while they do not change.
#' @param known List from [read_study()] or [read_results()].
#' @noRd
remember <- function(known, key, make) {
  memory <- known$memory
  if (is.null(memory)) return(make())
  # In a list, because NULL (not known) is cached, too.
  if (is.null(memory[[key]])) assign(key, list(make()), memory)
  memory[[key]][[1]]
}

#' Add a memory (an environment) to a study or results, see [remember()]
#' @noRd
remembering <- function(known) {
  if (is.null(known$memory)) known$memory <- new.env(parent = emptyenv())
  known
}

#' The value cached on disk for the same inputs in this or an earlier analysis, or else `make()`, which is then stored
#'
#' The files in the folder `known$store` are named by a digest of the values, this package, R and mgcv; without a
#' folder, nothing is stored.
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
  # In a list, because NULL (not known) is stored, too.
  made <- list(make())
  temporary <- tempfile("new-", known$store$folder)
  saveRDS(made, temporary)
  file.rename(temporary, file)
  made[[1]]
}

#' Let a study [recall()] from a folder; files not used for 30 days are removed
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
