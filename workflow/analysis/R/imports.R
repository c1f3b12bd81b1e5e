# What the checks of imported data found, and how far several sources of one machine agree.

#' Import checks and agreement of a study, as the import wrote them
#'
#' @param results List from [read_results()].
#' @return A list: `checks` (check, where, found, confidence, action), `agreement` (machine, collective, algorithm,
#'   mapping, sources, cells, median_abs_difference_pct, p90_abs_difference_pct); NULL where the study imports nothing.
#' @noRd
read_import <- function(results) {
  files <- file.path(results$study$folder, c("import-checks.csv", "agreement.csv"))
  if (is.null(results$study$import) || !all(file.exists(files))) return(NULL)
  list(
    checks = read_checks(files[1], results$study),
    agreement = readr::read_csv(files[2], progress = FALSE, col_types = readr::cols(
      .default = "c", cells = "i", median_abs_difference_pct = "d", p90_abs_difference_pct = "d"
    ))
  )
}

#' import-checks.csv with the labels of algorithms and \u00b5s instead of us; of a study that an older version imported,
#' with the names of its columns of today
#' @noRd
read_checks <- function(file, study) {
  checks <- readr::read_csv(file, col_types = readr::cols(.default = "c"), progress = FALSE)
  was <- c(how_sure = "confidence", done = "action")
  old <- names(checks) %in% names(was)
  names(checks)[old] <- was[names(checks)[old]]
  mutate(checks, across(c("where", "found"), function(text) {
    gsub("([0-9]) us\\b", "\\1 \u00b5s", label_series(text, study), perl = TRUE)
  }))
}

#' Texts of findings with collectives and algorithms in words: "bcast binary_tree" -> "broadcast, Binary tree"
#' @noRd
label_series <- function(text, study) {
  for (i in seq_len(nrow(study$algorithms))) {
    row <- study$algorithms[i, ]
    # The name must end here: `linear` is the beginning of `linear_nb`.
    name <- paste0("\\b\\Q", row$collective, " ", row$series, "\\E(?![\\w-])")
    text <- gsub(name, paste0(collective_word(row$collective), ", ", row$label), text, perl = TRUE)
  }
  text
}

#' The findings of the studies that an atlas gathers, each with its study's title; the caption names the studies
#' without any
#' @noRd
tables_of_gathered <- function(results) {
  studies <- unlist(results$study$gathered)
  files <- file.path(dirname(results$study$folder), studies, "import-checks.csv")
  files <- files[file.exists(files)]
  described <- map(dirname(files), read_study)
  # A study that measures itself has no imported data to check.
  imported <- !map_lgl(described, function(study) is.null(study$import))
  if (!any(imported)) return(list())
  files <- files[imported]
  described <- described[imported]
  found <- map2(files, described, read_checks)
  titles <- map_chr(described, function(study) study_name(list(study = study)))
  none <- tibble(study = character(), check = character(), where = character(), found = character())
  checks <- bind_rows(none, map2(found, titles, function(rows, title) mutate(rows, study = .env$title, .before = 1)))
  sound <- titles[map_lgl(found, function(rows) nrow(rows) == 0)]
  list(listed("atlas", "import-checks", checks, paste0(
    "Findings of the checks of the imported data, by study, with the evidence. A finding is a warning: the data are ",
    "never changed.", if (length(sound) > 0) paste0(
      " Nothing was found in ", and_list(paste0("\u201c", sound, "\u201d")), "."
    )
  )))
}

tables_of_import <- function(results) {
  import <- read_import(results)
  if (is.null(import)) return(NULL)
  c(
    list(listed("import", "checks", import$checks, paste(
      "Findings of the import checks, with evidence, confidence and action. A finding is a warning: the data are never",
      "changed."
    ))),
    if (nrow(import$agreement) > 0) list(listed("agreement", NULL, import$agreement, paste(
      "Difference (larger / smaller - 1) between the latencies that two authors measured in the same cells of one",
      "machine: median and 90th percentile.", agreement_reach(results, import$agreement)
    ))),
    tables_of_same_messages(results)
  )
}

#' For which mappings the agreement of sources is the noise floor
#' @noRd
agreement_reach <- function(results, agreement) {
  floor <- "This is the noise floor of results for these cells"
  rows <- results$rows
  alone <- setdiff(rows$mapping[!rows$collective %in% point_to_point], agreement$mapping)
  if (length(alone) == 0) return(paste0(floor, "."))
  label <- function(mapping) and_list(label_mapping(unique(mapping), results$study))
  paste0(
    floor, ", mapped ", label(agreement$mapping), ". ", capitalised(label(alone)), ", no cell has two authors."
  )
}

#' How far two sources are apart in each cell that both measured
#'
#' @param results List from [read_results()].
#' @return Tibble: collective, mapping, processes, size_bytes, difference_pct (largest larger / smaller - 1, median over
#'   algorithms, over pairs of sources), algorithms (that two sources have there). Flagged rows take no part.
#' @noRd
summarise_agreement_by_cell <- function(results) {
  rows <- results$rows
  none <- tibble(
    collective = character(), mapping = character(), processes = numeric(), size_bytes = numeric(),
    difference_pct = numeric(), algorithms = integer()
  )
  if (is.null(rows$source)) return(none)
  rows <- rows_in_place(rows[!is.na(rows$source) & !rows$collective %in% point_to_point, ])
  cells <- c("collective", "mapping", "processes", "size_bytes")
  # Without loops over groups: there are tens of thousands of them.
  medians <- with_median(rows, c(cells, "algorithm", "source"), "latency_us")
  pairs <- inner_join(
    medians, medians, by = c(cells, "algorithm"), suffix = c("", "_other"), relationship = "many-to-many"
  ) |>
    filter(.data$source < .data$source_other) |>
    mutate(
      ratio = .data$latency_us / .data$latency_us_other, difference_pct = 100 * (pmax(.data$ratio, 1 / .data$ratio) - 1)
    ) |>
    with_median(c(cells, "source", "source_other"), "difference_pct")
  id <- vctrs::vec_group_id(pairs[cells])
  most <- function(values) vctrs::vec_slice(values, order(id, -values)[!duplicated(sort(id))])
  found <- pairs[!duplicated(id), cells]
  found$difference_pct <- most(pairs$difference_pct)
  found$algorithms <- most(pairs$n)
  bind_rows(none, found) |> arrange(across(all_of(cells)))
}

#' The median of a column in each group, and its number of rows
#' @noRd
with_median <- function(rows, by, column) {
  id <- vctrs::vec_group_id(rows[by])
  groups <- max(0L, attr(id, "n"))
  found <- rows[!duplicated(id), by]
  found[[column]] <- group_median(rows[[column]], id, groups)
  mutate(found, n = tabulate(id, groups))
}

#' The noise floor between authors, cell by cell
#'
#' @param results List from [read_results()].
#' @param agreement Tibble from [summarise_agreement_by_cell()] with sizes.
#' @return A ggplot: a tile for each number of processes and size, coloured by the difference.
#' @noRd
plot_agreement <- function(results, agreement) {
  mapping <- function(name) label_mapping(name, results$study)
  agreement <- mutate(agreement,
    panel = paste0(collective_title(.data$collective), ", ", mapping(.data$mapping)),
    shown = cut(.data$difference_pct, c(-Inf, 2, 5, 10, 20, 50, Inf), c(
      "up to 2 %", "2 to 5 %", "5 to 10 %", "10 to 20 %", "20 to 50 %", "more"
    ))
  )
  ggplot(agreement, aes(factor(.data$processes), factor(.data$size_bytes), fill = .data$shown)) +
    geom_tile() +
    facet_wrap(vars(.data$panel), ncol = 3, scales = "free_x") +
    scale_fill_brewer(palette = "YlOrRd", drop = FALSE) +
    scale_x_discrete(breaks = function(x) x[seq(1, length(x), by = max(1, length(x) %/% 6))]) +
    scale_y_discrete(
      breaks = function(x) x[seq(1, length(x), by = 4)], labels = function(x) label_bytes(as.numeric(x))
    ) +
    labs(
      title = "Difference between two authors' latencies of the same cell", x = "Processes", y = "Message size",
      fill = "difference"
    ) +
    theme_study()
}

figures_of_import <- function(results) {
  if (is.null(read_import(results))) return(list())
  all <- filter(summarise_agreement_by_cell(results), !is.na(.data$size_bytes))
  # One process count would be a panel of one column.
  agreement <- group_by(all, .data$collective, .data$mapping) |>
    filter(n_distinct(.data$processes) > 1) |>
    ungroup()
  left_out <- distinct(all, .data$collective, .data$mapping) |>
    anti_join(agreement, by = c("collective", "mapping"))
  if (nrow(agreement) == 0) return(list())
  panels <- nrow(distinct(agreement, .data$collective, .data$mapping))
  list(figure("import", "agreement", plot_agreement(results, agreement), paste(
    "Colour: difference (larger / smaller - 1) between the latencies of two authors, median over the algorithms that",
    "both measured (with more than two authors, the largest value). A difference between algorithms below this noise",
    "floor is not confirmed by a second author.",
    if (nrow(left_out) > 0) paste0("Not drawn, because only one process count has two authors: ", and_list(paste(
      collective_word(left_out$collective), label_mapping(left_out$mapping, results$study)
    )), ".")
  ), width = 9.5, height = 1.5 + 2.6 * ceiling(panels / 3)))
}

how_many_certain <- function(confidence) {
  certain <- sum(confidence == "certain")
  all <- length(confidence)
  if (all == 1) return(if (certain == 1) "the finding is certain" else "the finding is not certain")
  if (certain == all) return("all of these findings are certain")
  if (certain == 0) return("none of these findings is certain")
  paste(certain, "of these", all, "findings", if (certain == 1) "is certain" else "are certain")
}

#' What was found and how far sources agree, in sentences
#'
#' @inheritParams read_import
#' @return Character vector; empty where the study imports nothing.
#' @noRd
describe_import <- function(results) {
  import <- read_import(results)
  if (is.null(import)) return(character())
  checks <- import$checks
  by_check <- count(checks, .data$check)
  found <- if (nrow(checks) == 0) {
    "The checks of the imported data found no problems."
  } else {
    paste0(
      "The checks of the imported data found ",
      and_list(paste0("\u201c", by_check$check, "\u201d in ", count_of(by_check$n, "place"))),
      "; ", how_many_certain(checks$confidence), "."
    )
  }
  agreement <- import$agreement
  sources <- if (nrow(agreement) > 0) {
    paste0(
      "Where two authors measured the same cells, their latencies differ by ",
      range_pct(agreement$median_abs_difference_pct), " (medians for each algorithm and mapping; median of these ",
      format_pct(median(agreement$median_abs_difference_pct)), ")."
    )
  }
  c(found, sources, describe_same_messages(summarise_same_messages(results)))
}
