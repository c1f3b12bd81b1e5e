# Datatypes and operations of a program's collectives, and how they differ from those of the benchmark.

# What the benchmark measures with (workflow/native/bench): contiguous data, and in reductions sums of this type.
benchmark_datatype <- "char"
benchmark_reduction <- "sum"

#' Distinct values of each group
#'
#' @param values Character; several values of an element are separated by `;`. "" and NA count as none.
#' @param group Number of each element's group, from 1.
#' @return Character, one element per group: its values, separated by `;`; NA without any.
#' @noRd
all_of_group <- function(values, group) {
  pairs <- vctrs::vec_unique(tibble(group, values))
  pairs <- pairs[!is.na(pairs$values) & nzchar(pairs$values), ]
  several <- unique(pairs$group[duplicated(pairs$group)])
  found <- rep(NA_character_, max(group, 0))
  found[pairs$group] <- pairs$values
  of_several <- pairs[pairs$group %in% several, ]
  joined <- tapply(of_several$values, of_several$group, function(x) {
    paste(unique(unlist(strsplit(x, ";", fixed = TRUE))), collapse = ";")
  })
  found[as.integer(names(joined))] <- joined
  found
}

#' The values with most bytes
#'
#' @param values Character, as of [all_of_group()].
#' @param bytes Of each element; they count for each of its values.
#' @return The values, separated by commas, most bytes first; of more than four, three and the number of the others; NA
#'   without any.
#' @noRd
most_first <- function(values, bytes) {
  total <- tapply(bytes, values, sum)
  if (length(total) == 0) return(NA_character_)
  parts <- strsplit(names(total), ";", fixed = TRUE)
  total <- tapply(rep(total, lengths(parts)), unlist(parts), sum)
  names <- names(total)[order(-total)]
  if (length(names) > 4) names <- c(names[1:3], paste(length(names) - 3, "others"))
  paste(names, collapse = ", ")
}

datatypes_column <- paste(
  "Data types: of the data, as the MPI standard names them, most bytes first; derived: made by the program, with the",
  "bytes of data in each; with gaps: these are not contiguous in memory. Reduction: the operation; user: made by the",
  "program. Traces of earlier versions have neither."
)

#' Sentences on how the data of a program differ from those that its collectives are measured with
#'
#' @param application A traced application, as of [read_applications()].
#' @param measured Names of the collectives that are measured.
#' @return Character vector; empty if nothing differs.
#' @noRd
describe_datatypes <- function(application, measured) {
  rows <- filter(read_operations(application$trace), .data$operation %in% measured)
  others <- rows |>
    filter(.data$reduction != benchmark_reduction | .data$datatypes != benchmark_datatype, !is.na(.data$reduction)) |>
    mutate(
      datatypes = gsub(";", " and ", .data$datatypes, fixed = TRUE),
      kind = ifelse(
        startsWith(.data$reduction, "user"),
        paste("a", sub("user", "user-defined operation", .data$reduction), "on", .data$datatypes),
        paste("the", .data$reduction, "of", .data$datatypes)
      )
    ) |>
    count(.data$operation, .data$kind, wt = .data$size_bytes, sort = TRUE)
  kinds <- tapply(others$kind, others$operation, function(x) {
    and_list(if (length(x) > 4) c(x[1:3], paste(length(x) - 3, "others")) else x)
  })
  gaps <- unique(rows$operation[grepl("with gaps", rows$datatypes)])
  c(
    if (length(kinds) > 0) paste0(
      "Reductions were measured with the ", benchmark_reduction, " of ", benchmark_datatype, "; ", application$label,
      " uses ", and_list(paste(kinds, "in", collective_word(names(kinds)))), ", whose arithmetic takes another time."
    ),
    if (length(gaps) > 0) paste0(
      "Data were measured as contiguous; ", application$label, " has derived types with gaps in ",
      and_list(collective_word(gaps)), ", which also takes the time to copy them."
    )
  )
}
