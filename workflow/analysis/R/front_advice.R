# The advice on the front page: the rules with the clearest gain, and how to use them.

#' Advice: the rules with the clearest gain, their tuning file if one was written, and the commands to use it
#'
#' @inheritParams front_gains
#' @return List: `study`, `machine`, `sentence` and `others` (sentences: where the gain is clear, where it is not, what
#'   was not tested), `launcher` (the command that starts a program with the tuning file for its shape; NULL where none
#'   was written), `ask` (the command that recommends an algorithm for a single call), `unclear` (collectives for which
#'   the files have rules without a clear gain), `verified` (sentences on fresh launches). NULL where no rules have a
#'   clear gain.
#' @noRd
advise_front <- function(studies, rows) {
  gains <- front_gains(studies, rows)
  kept <- filter(gains, !.data$clear)
  untested <- anti_join(rows[!rows$simulated, ], gains, by = c("machine", "simulated", "collective"))
  gains <- filter(gains, .data$clear) |>
    arrange(.data$simulated, desc(.data$gain_low_pct))
  if (nrow(gains) == 0) return(NULL)
  best <- gains[1, ]
  study <- studies[[match(best$study, map_chr(studies, "name"))]]
  others <- gains[-1, ][seq_len(min(4, nrow(gains) - 1)), ]
  list(
    study = best$study, machine = within_text(best$machine),
    sentence = paste0(
      "Use tuned rules for ", name_cells(best), ": they save ", format_saving(best),
      " of the default's time.", front_mappings(study, best$collective)
    ),
    others = c(
      if (nrow(others) > 0) paste0(
        "They also save ", and_list(map_chr(seq_len(nrow(others)), function(i) {
          paste(format_saving(others[i, ], interval = ""), "for", name_cells(others[i, ]))
        })), "."
      ),
      if (nrow(kept) > 0) advise_default(kept),
      if (nrow(untested) > 0) paste0(
        "Too few process counts were measured to test rules for ", name_by_machine(untested), "; the chapters show ",
        "the fastest algorithm of each cell."
      ),
      front_transfer(studies)
    ),
    launcher = tuning_launcher(study, best$collective), ask = advise_command(study, best$collective),
    unclear = other_rules(study, kept),
    verified = front_verified(studies)
  )
}

#' Collectives without a clear gain for which the files of a study have rules
#' @noRd
other_rules <- function(study, kept) {
  decided <- study$decisions$collective[study$decisions$algorithm != "default"]
  intersect(kept$collective[kept$study == study$name], decided)
}

#' How to follow the decisions that the replays of a study judge, or to make them; NULL for other studies
#' @noRd
replay_step <- function(study, label) {
  decided <- study$about$replay$decisions %||% ""
  if (!nzchar(decided)) return(NULL)
  chapter <- paste0("@sec-", chapter_id(study$name))
  labels <- unlist(map(study$about$applications, function(one) map_chr(one$replays, "label")))
  if (!"decided" %in% labels) return(list(
    text = paste0("Nothing is decided yet for the collectives of ", chapter, ". To decide and judge:"),
    command = paste0("./study run ", decided, " && ./study run ", study$name)
  ))
  list(text = paste0(
    chapter, " judges the decisions of study `", decided, "` by simulation; their tuning files ",
    "are in `", file.path(label, decided, "tuning"), "`. Verify them on the machine itself."
  ))
}

#' How to follow the advice
#'
#' @inheritParams front_gains
#' @param advice From [advise_front()].
#' @param label The results folder as shown to readers.
#' @return List of `text` and `command`; either may be missing. Text between backticks is code.
#' @noRd
front_steps <- function(studies, rows, advice, label) {
  replays <- purrr::compact(map(studies, replay_step, label))
  if (is.null(advice)) {
    programs <- map_lgl(studies, function(study) length(study$about$program) > 0 && study$tried)
    if (any(programs)) return(list())
    if (length(replays) > 0) return(replays)
    judged <- nrow(front_gains(studies, rows)) > 0
    return(list(list(text = if (judged) paste(
      "Keep the library's default: no rule of this report has a clear gain on cells that were not used to decide it."
    ) else paste(
      "Keep the library's default: no rule of this report was tested on other cells than those that decided it."
    ))))
  }
  place <- file.path(label, advice$study, "tuning")
  c(
    replays,
    if (is.null(advice$launcher)) list(list(text = paste0(
      "The rules of each study are in `", file.path(label, "<study>", "tuning", "decisions.csv"), "`; with ",
      "`analysis: {tuning: {}}` a study also gets the files that the library reads."
    ))) else list(
      list(
        text = paste0(
          "The tuning files are in `", place, "`. On ", advice$machine, ", start programs with `mpirun-tuned` instead ",
          "of Open MPI's `mpirun`: it selects the file for the job's mapping and numbers of nodes and processes.",
          if (length(advice$unclear) > 0) paste0(
            " The files also have rules for ", and_list(collective_word(advice$unclear)),
            ", whose gain is not significant."
          )
        ), command = file.path(place, advice$launcher)
      ),
      list(text = paste0(
        "`", file.path(place, "README.md"), "` has the options for a plain `mpirun` and for other libraries."
      ))
    ),
    if (!is.null(advice$ask)) list(list(
      text = paste(
        "For a single call, this command prints the recommended algorithm, its expected latency and the underlying",
        "measurements:"
      ), command = advice$ask
    )),
    list(list(text = paste(
      "On another machine, `./study probe` drafts the description of the machine and `./study new` drafts a study that",
      "measures it and decides its rules."
    )))
  )
}

#' Sentence on the collectives without a significant gain; estimates of more than 2 % are given
#' @noRd
advise_default <- function(kept) {
  open <- filter(kept, .data$gain_pct > 2)
  paste0(
    "Keep the default for ", name_by_machine(kept), ": no rule is significantly faster there.",
    if (nrow(open) > 0) paste0(
      " More process counts could show whether the rules save time for ",
      and_list(map_chr(seq_len(nrow(open)), function(i) {
        interval <- paste0(
          "estimate ", format_saved(open$gain_pct[i]), if (i == 1) ", 95 % interval " else ", ",
          sub(" %", "", format_saved(open$gain_low_pct[i])), " to ", format_saved(open$gain_high_pct[i])
        )
        paste0(name_cells(open[i, ]), " (", interval, ")")
      })), "."
    )
  )
}

#' " Mapped by node they save 82 %, by core 4.1 % (not significant)." if several mappings were judged, else empty
#' @noRd
front_mappings <- function(study, collective) {
  found <- filter(
    study$regret, .data$policy == "tuned", .data$collective == .env$collective, .data$mapping != "all",
    .data$split == both_halves, !is.na(.data$gain_pct)
  ) |>
    arrange(desc(.data$gain_pct))
  if (nrow(found) < 2) return("")
  p_value <- stats::p.adjust(gain_p(found$gain_pct, found$gain_high_pct, found$degrees), "holm")
  unclear <- (p_value >= 0.05) %in% TRUE
  paste0(" Mapped ", and_list(paste0(
    label_mapping(found$mapping, study$about), c(" they save ", rep(" ", nrow(found) - 1)),
    format_saved(found$gain_pct), ifelse(unclear, " (not significant)", "")
  )), ".")
}

#' Example of the command that starts a program with the tuning file for its shape: with the mapping whose rules gain
#' most, of those that mpirun-tuned recognises by --map-by, and the largest usual number of processes; NULL where there
#' is none
#' @noRd
tuning_launcher <- function(study, collective) {
  path <- file.path(study$folder, "tuning", "shapes.json")
  if (!file.exists(path)) return(NULL)
  # As in collstudy/tuning/mpirun_tuned.py: --map-by names the level that varies fastest. From Open MPI 5 on, ranks by
  # socket are in turn on the sockets with --rank-by slot only, and those by node fill one socket of each node first.
  since_5 <- isTRUE(grepl("^([5-9]|[1-9][0-9])[.]", study$about$provenance$mpi_version))
  none <- tibble(mapping = character(), map_by = character(), inner = logical())
  shapes <- bind_rows(none, map_dfr(jsonlite::read_json(path), function(shape) {
    tibble(mapping = shape$mapping, map_by = c(unlist(shape$cycle), "core")[1], inner = length(shape$cycle) > 1)
  }))
  shapes <- filter(shapes, !(since_5 & .data$map_by == "node" & .data$inner))
  shapes <- filter(distinct(shapes), .data$map_by %in% c("core", "socket", "node", "numa"))
  shapes <- shapes[!shapes$map_by %in% shapes$map_by[duplicated(shapes$map_by)], ]
  found <- filter(
    study$decisions, .data$collective == .env$collective, .data$algorithm != "default",
    .data$mapping %in% shapes$mapping
  )
  if (nrow(found) == 0) return(NULL)
  gains <- tapply(found$gain_pct, as.character(found$mapping), median, na.rm = TRUE)
  mapping <- names(gains)[which.max(gains)]
  map_by <- shapes$map_by[shapes$mapping == mapping]
  paste0(
    "mpirun-tuned -n ", usual_processes(found[found$mapping == mapping, ], study), " --map-by ", map_by,
    if (since_5 && map_by %in% c("socket", "numa")) " --rank-by slot", " ./program"
  )
}

#' Gain of the tuning files, as they were before slower rules were withdrawn, in new runs: a sentence for each measured
#' study, one for all simulated ones
#' @noRd
front_verified <- function(studies) {
  found <- map_dfr(studies, function(study) {
    rows <- study$verified
    rows <- rows[rows$rule != "default" & !is.na(rows$speedup), ]
    if (NROW(rows) == 0) return(NULL)
    # Of each cell, because process counts have different numbers of cells that the files change.
    gain <- log(rows$speedup)
    clustered <- clustered_error(gain, rows$mapping, rows$processes)
    tibble(
      machine = front_machine(study), simulated = study$simulated, cells = nrow(rows),
      withdrawn = NROW(study$withdrawn),
      gain_interval(mean(gain), clustered$error, clustered$degrees)
    )
  })
  if (nrow(found) == 0) return(NULL)
  measured <- found[!found$simulated, ]
  c(
    map_chr(seq_len(nrow(measured)), function(i) front_new_runs(measured[i, ])),
    if (any(found$simulated)) front_new_runs(found[found$simulated, ])
  )
}

#' "In new runs on ORFEO THIN the tuning file saves 12 % of the default's time, over the 40 cells that it changes."
#'
#' @param found Rows of one measured study, or of all simulated ones; for several rows, the sentence gives their range.
#' @noRd
front_new_runs <- function(found) {
  several <- nrow(found) > 1
  on <- and_list(sort(unique(within_text(plain_machine(found$machine)))))
  # Beside machines with names, "this machine" would be unclear.
  on <- sub("^this machine$", "the machine that made this report", on)
  runs <- paste("In new", if (found$simulated[1]) "simulated runs" else "runs", "on", on)
  n <- sum(found$cells)
  gone <- sum(found$withdrawn)
  change <- paste(if (several) "they" else "it", if (gone > 0) "changed" else if (several) "change" else "changes")
  cells <- paste("over the", format_number(n, 6), if (n == 1) "cell that" else "cells that", change)
  after <- if (gone > 0) {
    paste0(" Rules that were slower in ", format_number(gone, 6), " of the cells were then withdrawn.")
  }
  if (!several && found$gain_pct < 0) {
    longer <- format_pct(100 * (1 / (1 + found$gain_pct / 100) - 1))
    return(paste0(runs, " the tuning file makes the calls ", longer, " slower, ", cells, ".", after))
  }
  if (!several) {
    return(paste0(runs, " the tuning file saves ", format_saving(found), " of the default's time, ", cells, ".", after))
  }
  unclear <- sum(found$gain_low_pct <= 0, na.rm = TRUE)
  paste0(
    runs, ", the tuning files of ", nrow(found), " studies save ",
    sub(" %", "", format_saved(min(found$gain_pct))), " to ", format_saved(max(found$gain_pct)),
    " of the default's time, ", cells, ".",
    if (unclear > 0) paste0(" For ", unclear, " of the studies the 95 % interval includes 0."), after
  )
}

#' A number of processes for examples: the largest that fills whole nodes or is a power of two, else the largest
#'
#' @param rows Decisions.
#' @param study List from [read_front_study()].
#' @noRd
usual_processes <- function(rows, study) {
  filled <- rows$processes == rows$nodes * (front_cores(study) %||% 0)
  # Between two ranks all algorithms send the same messages.
  usual <- (filled | log2(rows$processes) %% 1 == 0) & rows$processes > 2
  max(rows$processes[usual | !any(usual)])
}

#' Example of the command that recommends an algorithm: for a usual number of processes and the decided message size
#' nearest to 64 KiB
#' @noRd
advise_command <- function(study, collective) {
  found <- study$decisions
  if (is.null(found)) return(NULL)
  found <- filter(found,
    .data$collective == .env$collective, .data$algorithm != "default", .data$basis == "measured",
    .data$processes %% .data$nodes == 0
  )
  if (nrow(found) == 0) return(NULL)
  # The mapping whose rules gain most, as in the example of tuning_launcher().
  gains <- tapply(found$gain_pct, as.character(found$mapping), median, na.rm = TRUE)
  found <- found[as.character(found$mapping) %in% names(gains)[which.max(gains)], ]
  cell <- found[found$processes == usual_processes(found, study), ] |>
    arrange(abs(log2(.data$size_bytes / 65536))) |>
    utils::head(1)
  paste0(
    "./study advise --study ", study$name, " --collective ", collective, " --nodes ", cell$nodes, " --ppn ",
    cell$processes / cell$nodes, " --mapping ", cell$mapping,
    if (!is.na(cell$size_bytes)) paste0(" --size ", size_argument(cell$size_bytes))
  )
}

#' A message size as an argument: 512, 64KiB
#' @noRd
size_argument <- function(bytes) {
  label <- sub(" ", "", label_bytes(bytes))
  if (bytes >= 1024 && grepl("^[0-9]+[KMG]iB$", label)) label else format(bytes, scientific = FALSE)
}
