# The sentences of a study, each with the section of the report that it belongs to.

#' The sentences of a study
#'
#' @param results List from [read_results()], optionally with `models` and `tables` that are computed already.
#' @return Tibble: section (as in the indexes of tables and figures, or `answer`, `believe`, `further`, and those of
#'   [sentences_of_how()]), order (within the section), text, claim (TRUE: it states a result; FALSE: it explains how a
#'   result was obtained, or why there is none).
#' @noRd
sentences_of <- function(results) {
  found <- if (has_applications(results)) {
    sentences_of_applications(results)
  } else if (!is.null(own_chapter(results))) {
    own_chapter(results)$sentences(results)
  } else {
    sentences_of_collectives(results)
  }
  in_order(bind_rows(said("answer", describe_answer(results)), found, sentences_of_how(results)))
}

#' Number the sentences of each section
#' @noRd
in_order <- function(sentences) {
  sentences |>
    group_by(.data$section) |>
    mutate(order = row_number(), .after = "section") |>
    ungroup()
}

#' Add the files of the figures and tables that show each claim
#'
#' @param sentences Tibble from [sentences_of()].
#' @param shown Tibble: section and file of each figure and table.
#' @return `sentences` with the column shown_in: files in the folder of the study, separated by semicolons.
#' @noRd
add_shown <- function(sentences, shown) {
  of_section <- function(section) {
    paste(shown$file[shown$section %in% sections_showing(section, shown$section)], collapse = ";")
  }
  found <- map_chr(setNames(nm = unique(sentences$section)), of_section)
  shown_in <- unname(found[sentences$section])
  # An answer without a table of its own repeats sentences of other sections, or sums up all of them.
  parts <- sentences$claim & nzchar(shown_in) & sentences$section != "answer"
  for (i in which(sentences$section == "answer" & shown_in == "")) {
    repeated <- parts & map_lgl(substring(sentences$text, 2), grepl, sentences$text[i], fixed = TRUE)
    from <- if (any(repeated)) repeated else parts
    shown_in[i] <- paste(unique(unlist(strsplit(shown_in[from], ";", fixed = TRUE))), collapse = ";")
  }
  mutate(sentences, shown_in = ifelse(.data$claim, .env$shown_in, ""))
}

#' The sections of the figures and tables that show the sentences of a section
#' @noRd
sections_showing <- function(section, sections) {
  switch(section,
    believe = c("comparison", "selection"), further = c("regret-across", "simulation-cost"),
    ladder = grep("/levels$", sections, value = TRUE), dynamic = grep("/dynamic$", sections, value = TRUE),
    c(section, section_name(section, "levels"))
  )
}

#' Sentences of one section
#' @noRd
said <- function(section, text, claim = TRUE) {
  text <- as.character(unlist(text))
  tibble(section = rep(section, length(text)), text = text, claim = rep(claim, length(text)))
}

sentences_of_collectives <- function(results) {
  compared <- nrow(compare_studies(results)) > 0
  bind_rows(
    map_dfr(names(results$study$collectives), function(name) sentences_of_collective(results, name)),
    if (compared || identical(results$study$chapter, "accuracy")) {
      said("accuracy", describe_accuracy(results), claim = compared)
    },
    if (nrow(read_ladder(results)) > 0) said("ladder", describe_ladder(results)),
    sentences_of_scaling(results),
    sentences_of_models(results),
    said("import", describe_import(results)),
    said("further", describe_across(results)),
    said("further", describe_simulation_cost(results))
  )
}

#' What the models are, and how accurate
#' @noRd
sentences_of_models <- function(results) {
  accuracy <- describe_selection(results)
  if (length(accuracy) == 0) return(NULL)
  models <- results$models$comparison$model
  messages <- if (any(models %in% models_of_pingpongs())) {
    "Hockney's model and LogGP compute a latency from the messages of the algorithm and the costs of ping-pongs."
  } else if (any(models %in% names(models_of_messages))) {
    "LogGP follows the messages of the algorithm."
  }
  if ("loggp_fitted" %in% models) messages <- paste(messages, fitted_note)
  bind_rows(said("believe", paste(c(model_note, messages), collapse = " "), claim = FALSE), said("believe", accuracy))
}

sentences_of_collective <- function(results, collective) {
  if (collective %in% applications) return(NULL)
  latency <- said(collective, describe_latency(results, collective))
  if (collective %in% point_to_point) return(latency)
  bind_rows(
    latency,
    said(section_name(collective, "wins"), describe_default(results, collective)),
    said(
      section_name(collective, "models"), describe_models(results, collective),
      claim = nrow(model_errors(results, collective)) > 0
    )
  )
}

sentences_of_scaling <- function(results) {
  name <- unique(read_scaling(results)$application)
  if (length(name) == 0) return(NULL)
  bind_rows(
    said(name[1], describe_scaling(results)), said(section_name(name[1], "models"), describe_scaling_model(results))
  )
}

sentences_of_applications <- function(results) {
  bind_rows(
    said("applications", describe_applications(results)), said("account", describe_accounts(results)),
    said("gain", describe_gain(results)),
    said("pairs", replay_rule(results$study), claim = FALSE),
    said("pairs", describe_pairs(results)), said("dynamic", describe_congestion(results)),
    said("replays", describe_alternatives(results))
  )
}

#' Sentences on how a trace of few ranks becomes a replay of many
#' @noRd
replay_rule <- function(study) {
  plan <- study$replay
  if (is.null(plan)) return("The traces of this study are not replayed.")
  paste0(
    "The replays have ", format_count(plan$ranks), " ranks. If a trace has fewer, copies of the application run side ",
    "by side, and each rank replays a traced rank. Collectives of all traced ranks become collectives of all ranks ",
    "with the same arguments (bytes per rank are unchanged, so totals of all-to-all grow with the ranks). A message ",
    "to a higher rank stays in its copy; one to a lower rank goes to the next copy, as messages across the border of ",
    "a periodic domain do. Algorithms of collectives are selected as in Open MPI, by number of ranks and message ",
    "size. Ranks are placed in the order of the hosts."
  )
}

#' Sentences of the parts of a chapter with its own question
#' @noRd
sentences_of_parts <- function(results, parts, describe) {
  map_dfr(parts, function(part) said(part, describe(results, part)))
}
