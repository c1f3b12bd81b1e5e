test_that("the front page counts what the tables say", {
  front <- describe_front(front_study("real"))
  expect_equal(front$question, "?")
  expect_equal(front$table$collective, c("broadcast", "barrier"))
  expect_equal(front$table$cells, c(33, 11))
  # Linear is always the fastest, the default 10 % slower.
  expect_equal(front$table$geometric_mean_pct, c(10, 10))
  expect_equal(front$table$slower_pct, c(100, 100))
  expect_equal(front$table$best_other, c("LINEAR", "LINEAR"))
  expect_match(
    front$answer[1],
    paste(
      "default takes 10 % longer than the fastest measured algorithm on real \\(geometric mean\\)\\. Median by",
      "collective: 10 %\\. The default is more than 5 % slower in 100 % of the cells"
    )
  )
  expect_equal(front$answer[2], "Measured machine: real (1 node, up to 24 processes, 44 cells).")
  expect_match(front$studies$finding, "by 10 % for barrier and 10 % for broadcast")
  expect_match(front$trust, "^Grid cells .* without a usable number at some or all sizes: 1 of 2 on real;", all = FALSE)
})

test_that("the front page says that imported cells have one launch only where they do", {
  folder <- front_study("theirs")
  change_study(folder, machine = list(label = "theirs", kind = "imported"))
  trusted <- function(launches) {
    cells <- readr::read_csv(file.path(folder, "cells.csv"), show_col_types = FALSE)
    readr::write_csv(dplyr::mutate(cells, launches = .env$launches), file.path(folder, "cells.csv"))
    describe_front(folder)$trust
  }
  said <- "^The measurements on theirs were imported"
  expect_match(trusted(1), paste0(said, ", mostly with one launch per cell: the variation"), all = FALSE)
  expect_match(trusted(10), paste0(said, "\\. The minimum over several noisy"), all = FALSE)
})

test_that("the front page says what the slowest rank changes", {
  rows <- lawful(c(default = 2, linear = 1), counts = c(4, 8), sizes = c(1, 4))
  rows$max_latency_us <- ifelse(rows$algorithm == "default" & rows$collective == "bcast", 1, 2) * rows$latency_us
  folder <- make_study(rows, folder = file.path(new_folder(), "s"))
  write_front_tables(folder)
  expect_match(describe_front(folder)$answer, all = FALSE, paste(
    "^Broadcast on M, judged by the slowest rank instead of the mean over the ranks: the default takes 0.0 % instead",
    "of 100 % longer than the fastest algorithm \\(geometric means over the 4 cells in which both are known\\)\\.",
    "Rules are decided and judged by the mean\\.$"
  ))
  rows$max_latency_us <- NA
  folder <- make_study(rows, folder = file.path(new_folder(), "s"))
  write_front_tables(folder)
  expect_no_match(describe_front(folder)$answer, "slowest rank")
})

test_that("slow-downs by mapping are of the cells of the slow-down over all mappings, without two ranks", {
  rows <- lawful(c(default = 1.5, linear = 1), counts = c(4, 8), sizes = c(1, 4))
  # Between two ranks all algorithms take the same time.
  rows <- dplyr::bind_rows(lawful(c(default = 1, linear = 1), counts = 2, sizes = c(1, 4)), rows)
  by_node <- dplyr::mutate(rows, mapping = "node", latency_us = ifelse(
    algorithm == "default" & processes > 2, 2 * latency_us, latency_us
  ))
  folder <- make_study(dplyr::bind_rows(rows, by_node), folder = file.path(new_folder(), "s"))
  write_front_tables(folder)
  answer <- describe_front(folder)$answer
  expect_match(answer, "broadcast: it takes 112 % longer \\(50 % mapped by core and 200 % by node\\)", all = FALSE)
})

test_that("the front page is written as tables, without studies that have no results", {
  folder <- front_study("real", counts = many_counts)
  decided <- tibble::tibble(
    collective = "bcast", mapping = "core", nodes = 2, processes = 8, size_bytes = 4, algorithm = "linear",
    basis = "measured", gain_pct = 20
  )
  write_table(decided, file.path(folder, "tuning", "decisions.csv"))
  write_shapes(folder, list(core = list()))
  results <- dirname(folder)
  written <- write_front(results, c("waiting", "real"))
  expect_equal(basename(written), c("text.csv", "table.csv", "studies.csv"))
  found <- lapply(written, readr::read_csv, show_col_types = FALSE)
  front <- describe_front(folder, results)
  text <- function(section) found[[1]]$text[found[[1]]$section == section]
  expect_equal(text("answer"), front$answer)
  expect_equal(text("advice"), unlist(front$advice[c("sentence", "others", "verified")], use.names = FALSE))
  # Each command is in the row after its step.
  steps <- found[[1]][found[[1]]$section %in% c("step", "command"), ]
  expect_equal(steps$text, unlist(front$steps, use.names = FALSE))
  expect_equal(steps$section, c("step", "command", "step", "step", "command", "step"))
  expect_equal(found[[2]]$geometric_mean_pct, front$table$geometric_mean_pct)
  expect_equal(found[[3]]$study, "real")
  expect_equal(found[[3]]$facts, "measured here; 1 of 2 grid cells")
  unlink(dirname(written[1]), recursive = TRUE)
  expect_length(write_front(results, "waiting"), 0)
  expect_false(file.exists(dirname(written[1])))
})

test_that("measured machines come first, simulated ones are labelled", {
  front <- describe_front(c(front_study("model", simulated = TRUE), front_study("real")))
  expect_equal(unique(front$table$machine), c("real", "model (simulated)"))
  expect_equal(front$studies$study, c("real", "model"))
  expect_match(front$answer[1], "default takes 10 % longer .* on real ")
  expect_match(
    utils::tail(front$answer, 1),
    "^Simulated, not measured: the default takes 10 % longer than the fastest simulated algorithm on model "
  )
  expect_match(front$question, "^Does an MPI library select")
  alone <- describe_front(front_study("model", simulated = TRUE))
  expect_match(alone$trust, "means the fastest of the algorithms that were simulated", all = FALSE)
  expect_match(front$trust, "means the fastest of the algorithms that were measured", all = FALSE)
})

test_that("the answer begins with a verdict, and says what the nodes are", {
  expect_equal(
    purrr::map_chr(list(c(1, 4), c(4, 40), c(30, 40)), front_verdict),
    c("Nearly always: ", "Not always: ", "Often not: ")
  )
  expect_match(describe_front(front_study("real"))$answer[1], "^Often not: the default takes 10 % longer")
  levels <- list(list(name = "node", count = 2), list(name = "socket", count = 2), list(name = "core", count = 12))
  study <- list(cells = tibble::tibble(nodes = 2, processes = 48), about = list(machine = list(levels = levels)))
  expect_equal(front_extent(list(study)), "up to 2 nodes of 24 cores and 48 processes")
  study$about$machine$levels <- NULL
  expect_equal(front_extent(list(study)), "up to 2 nodes and 48 processes")
})

test_that("the caption names studies of which another one has the rows", {
  few <- front_study("few", counts = c(4, 8))
  change_study(few, machine = list(label = "real"))
  front <- describe_front(c(few, front_study("real")))
  expect_equal(unique(front$table$study), "real")
  expect_match(front$caption, "the one with most cells is shown; for few, see the chapter\\.$")
  expect_no_match(describe_front(front_study("real"))$caption, "several studies")
})

test_that("two ranks are a sentence and no row", {
  front <- describe_front(c(front_study("pair", counts = 2), front_study("real")))
  expect_equal(unique(front$table$study), "real")
  expect_equal(front$studies$study, c("real", "pair"))
  expect_equal(front$studies$silent, c(FALSE, TRUE))
  expect_match(front$studies$finding[2], "with two ranks, most algorithms send the same messages")
  alone <- describe_front(front_study("pair", counts = 2))
  expect_match(alone$answer, "with two ranks, most algorithms send the same messages")
  expect_equal(nrow(alone$table), 0)
  expect_null(alone$advice)
  expect_match(alone$steps[[1]]$text, "^Keep the library.s default: no rule of this report was tested")
  # A study that decides all the same shows what it found.
  decided <- front_study("decided", counts = 2)
  write_table(tibble::tibble(collective = "bcast", algorithm = "linear"), file.path(decided, "tuning", "decisions.csv"))
  front <- describe_front(c(decided, front_study("real")))
  expect_equal(unique(front$table$study), "real")
  expect_equal(front$studies$study, c("real", "decided"))
  expect_equal(front$studies$silent, c(FALSE, FALSE))
})

test_that("a study whose cells all failed does not blame its two ranks", {
  folder <- front_study("pair", counts = 2)
  cells <- file.path(folder, "cells.csv")
  readr::write_csv(dplyr::mutate(readr::read_csv(cells, show_col_types = FALSE), status = "failed"), cells)
  expect_false(describe_front(folder)$studies$silent)
})

test_that("the pairs of a ladder are not counted as grid cells of algorithms", {
  folder <- front_study("laddered")
  cells <- file.path(folder, "cells.csv")
  rows <- readr::read_csv(cells, show_col_types = FALSE)
  readr::write_csv(dplyr::bind_rows(rows, dplyr::mutate(rows[1, ], collective = "pairs")), cells)
  study <- list(
    name = "laddered", simulated = FALSE, about = list(machine = list(label = "X")),
    cells = readr::read_csv(cells, show_col_types = FALSE)
  )
  expect_match(front_lacking(list(study)), "at some or all sizes: 1 of 2 on X;", fixed = TRUE)
})

test_that("traces are not called grid cells", {
  folder <- front_study("traced")
  cells <- file.path(folder, "cells.csv")
  readr::write_csv(dplyr::mutate(readr::read_csv(cells, show_col_types = FALSE), algorithm = "traced"), cells)
  expect_equal(describe_front(folder)$studies$facts, "measured here; 1 of 2 traces")
})

test_that("simulated chapters are named in their order", {
  few <- front_study("few", simulated = TRUE, counts = c(4, 8))
  front <- describe_front(c(few, front_study("many", simulated = TRUE)))
  expect_equal(front$studies$study, c("many", "few"))
  expect_match(front$trust, "The numbers of @sec-many and @sec-few come from a simulator", all = FALSE)
})

test_that("the collective and mapping that makes up most of a mean is named", {
  studies <- list(list(name = "s", about = list(labels = c(core = "core")), by_mapping = tibble::tibble(
    collective = c("bcast", "bcast", "reduce"), mapping = c("core", "node", "core"), cells = c(40, 10, 50),
    geometric_mean_pct = c(2, 300, 5)
  )))
  rows <- tibble::tibble(machine = "M", study = "s", collective = c("bcast", "reduce"))
  expect_equal(front_dominant(rows, studies), paste0(
    "On M, broadcast mapped node (10 % of the cells) makes up most of the mean: there the default takes 300 % ",
    "longer, in the other cells ", format_pct(pooled_regret(c(2, 5), c(40, 50))), "."
  ))
  studies[[1]]$by_mapping$geometric_mean_pct <- c(2, 20, 5)
  expect_equal(front_dominant(rows, studies), "")
  # Most cells make up most of the mean.
  studies[[1]]$by_mapping$cells <- c(40, 10, 500)
  expect_equal(front_dominant(rows, studies), "")
  expect_equal(front_dominant(rows[1, ], list(list(name = "s"))), "")
})

test_that("several machines are named one by one, with their cells", {
  front <- describe_front(c(front_study("one"), front_study("other", counts = seq(4, 12, 2))))
  expect_match(
    front$answer[1],
    "on one and 10 % on other \\(geometric means\\)\\. Medians by collective: 10 % and 10 %, respectively\\."
  )
  expect_match(
    front$answer[2],
    "one \\(1 node, up to 24 processes, 44 cells\\) and other \\(1 node, up to 12 processes, 20 cells\\)"
  )
})

test_that("mappings of the worst collective, and what rules were not tested for, are named", {
  folder <- front_study("real", counts = many_counts)
  write_table(tibble::tibble(
    collective = "bcast", mapping = c("core", "node"), cells = 50, geometric_mean_pct = c(3, 30)
  ), file.path(folder, "tables", "answer-mappings.csv"))
  write_table(tibble::tibble(
    collective = c("bcast", "barrier"), slower_pct = c(90, 10), geometric_mean_pct = c(15, 2), p90_pct = 20,
    median_pct = 1, cells = c(100, 50), best_other = "Linear", best_other_geometric_mean_pct = 5, slowest_cells = 10,
    mean_there_pct = 6, slowest_pct = 7
  ), file.path(folder, "tables", "answer-collectives.csv"))
  front <- describe_front(folder)
  expect_match(
    front$answer[3],
    "for broadcast: it takes 15 % longer \\(3.0 % mapped by core and 30 % by node\\). It loses least for barrier"
  )
  expect_match(front$answer[1], "slower in 10 to 90 %|slower in 63 %")
  expect_match(front$advice$others, "^Too few process counts .* to test rules for barrier on real", all = FALSE)
})

test_that("a simulation is put beside what was measured on the same machine", {
  front <- describe_front(c(
    front_study("model", simulated = TRUE, label = "THIN, simulated"), front_study("real", label = "THIN")
  ))
  expect_match(
    utils::tail(front$answer, 1),
    "on THIN .* On the same machine, the measured value for broadcast and barrier is 10 %."
  )
})

test_that("simulated means of other cells are not to be compared with measured ones", {
  rows <- tibble::tibble(
    machine = c("a", "b"), collective = "bcast", cells = 10, slower_pct = 5, geometric_mean_pct = 2
  )
  model <- dplyr::mutate(rows, machine = paste0(machine, ", simulated"))
  expect_null(front_measured_there(model, rows))
  expect_match(front_measured_there(dplyr::mutate(model, cells = 5), rows), "cannot be compared with the measured ones")
})

test_that("the table names the measured rows that it leaves out, and counts the simulated ones", {
  rows <- tibble::tibble(machine = "a", simulated = c(FALSE, TRUE, TRUE), collective = c("bcast", "reduce", "bcast"))
  expect_equal(front_left_out(rows), c("broadcast on a", "2 simulated collectives"))
  expect_null(front_left_out(rows[0, ]))
})

test_that("the default of two libraries is not that of one", {
  folder <- front_study("two")
  change_study(folder, provenance = list(mpi = "openmpi, mpich", mpi_version = "5.0.1, 5.0.2"))
  front <- describe_front(folder)
  expect_match(front$answer[1], "the default takes 10 % longer")
  expect_match(front$trust, "measured, with Open MPI 5.0.1 and MPICH 5.0.2 on two", all = FALSE)
})

test_that("the error of a simulation over several collectives is said to be a median of medians", {
  told <- function(collectives) {
    front_accuracy(list(list(
      about = list(machine = list(label = "M")),
      accuracy = tibble::tibble(
        collective = collectives, algorithm = "all", mapping = "all", median_abs_error_pct = 20 * seq_along(collectives)
      )
    )))
  }
  expect_equal(told("bcast"), "Simulated latencies differ from measured ones by 20 % on M in the median.")
  expect_equal(told(c("bcast", "barrier")), paste(
    "Simulated latencies differ from measured ones by 30 % on M in the median (for several collectives, the median of",
    "their medians)."
  ))
})
