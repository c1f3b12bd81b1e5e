# How a study was measured, and which of its grid cells have no number.
status <- function(status, kind = "local", algorithm = "a", ...) {
  sentences_of_status(list(machine = list(kind = kind), simulated = FALSE, ...), tibble::tibble(status, algorithm))
}

test_that("grid cells are counted in words", {
  expect_equal(status("measured")$text, "The study has one grid cell; it was measured.")
  expect_equal(status(c("measured", "measured"))$text, "All 2 grid cells of the study were measured.")
  expect_equal(
    status(c("measured", "missing"))$text, "1 of 2 grid cells has no usable number, or none at some sizes (missing)."
  )
  lacking <- status(c("failed", "unproved"))
  expect_equal(
    lacking$text, "2 of 2 grid cells have no usable number, or none at some sizes: 1 failed and 1 not verified."
  )
  expect_equal(lacking$section, "lacking")
  imported <- status(c("measured", "missing"), kind = "imported")
  expect_equal(imported$text, "1 of 2 grid cells is not in the imported data, or only at some sizes.")
  expect_equal(imported$section, "not-imported")
  expect_equal(
    status(rep("measured", 3), algorithm = c("traced", "replay", "replay"))$text,
    "The trace was measured and all 2 replays simulated."
  )
  # Of a program: its trace, its runs without and with the trace library, its cells.
  runs <- c("trace", "plain", "traced")
  of_program <- function(algorithm) {
    status(rep("measured", length(algorithm)), algorithm = algorithm, program = list(label = "known"))$text
  }
  expect_equal(of_program(runs), "The program was traced, and run with and without the trace library.")
  expect_equal(
    of_program(c(runs, "default", "linear")),
    "The program was traced, and run with and without the trace library; all 2 grid cells of the study were measured."
  )
  expect_null(status(character()))
})

test_that("what was imported is counted in words, and paths are not changed", {
  expect_null(describe_imported(NULL))
  found <- describe_imported(list(
    rows_read = 1200, rows_used = 0, problems = list("patterns that match no file (first: ${A_B}/c_*.csv)" = 3),
    left_out = list(list(rows = 1500, reason = "no mapping"))
  ))
  expect_equal(found, c(
    "Import: 1,200 rows read and 3 patterns that match no file (first: ${A_B}/c_*.csv).",
    "Left out by the study: 1,500 rows (no mapping)."
  ))
})

test_that("rows that a study leaves out are named by what selects them", {
  entry <- list(source = "zappia", collective = "bcast", processes = list(4, 8), reason = "on one node", rows = 2)
  expect_equal(
    describe_imported(list(rows_read = 3, left_out = list(entry)))[2],
    "Left out by the study: 2 rows with source zappia, collective bcast and processes 4 or 8 (on one node)."
  )
})

test_that("one row is not called rows", {
  found <- describe_imported(list(
    rows_read = 2, rows_used = 1, problems = list("rows without a time (first: a.csv, line 1)" = 1),
    left_out = list(list(rows = 1, reason = "no mapping"))
  ))
  expect_equal(found, c(
    "Import: 2 rows read, 1 row used and 1 row without a time (first: a.csv, line 1).",
    "Left out by the study: 1 row (no mapping)."
  ))
})

test_that("the width of a grid cell's interval is that of its widest size", {
  rows <- dplyr::bind_rows(
    tibble::tibble(cell = "a", size_bytes = rep(c(1, 2), each = 3), latency_us = c(10, 11, 10, 10, 10, 10)),
    tibble::tibble(cell = "b", size_bytes = 1, bandwidth_mb_s = c(100, 150)),
    tibble::tibble(cell = "c", size_bytes = 1, latency_us = 3)
  )
  cells <- tibble::tibble(cell = c("c", "b", "a", "missing"))
  expect_equal(with_widths(cells, rows)$width_pct, c(NA, 40, 10, NA))
  expect_equal(with_widths(cells, rows[0, ]), cells)
})

test_that("iterations, launches and the barrier are stated", {
  study <- list(simulated = FALSE, provenance = list(
    suite = "collbench", suite_version = "1.0", mpi = "openmpi", mpi_version = "5.0.11", iterations = list(10, 1000),
    warmup = list(1), launches = list(min = 1, max = 5), ci_width_pct = 5
  ), machine = list(label = "M", levels = list(list(name = "node", count = 2), list(name = "numa"))))
  study$collectives <- list(bcast = list())
  cells <- tibble::tibble(stop = c("narrow", "limit", "limit"), bound = NA)
  expect_equal(describe_how(study, cells), c(
    "Measured with collbench 1.0 (the embedded benchmark) and Open MPI 5.0.11.",
    "Machine: M (2 nodes \u00d7 1 NUMA domain).",
    paste(
      "The result of a launch is the mean over the ranks of each rank's mean over 10 to 1,000 iterations, after 1",
      "warm-up iteration; a latency is the median over 1 to 5 launches."
    ),
    paste(
      "Launching stopped because the confidence interval of the median was narrower than 5 % in 1 grid cell and at",
      "the maximum number of launches in 2 grid cells."
    )
  ))
  cells$stop <- "limit"
  limit <- "^Launching stopped at the maximum number of launches in 3 grid cells"
  wider <- "of which the confidence interval of the median is wider than 5 %\\.$"
  expect_match(describe_how(study, cells), paste0(limit, "\\.$"), all = FALSE)
  # The last launch may have made the interval narrow.
  cells$width_pct <- c(3, 12, 5)
  expect_match(describe_how(study, cells), paste0(limit, ", in 1 ", wider), all = FALSE)
  cells$width_pct <- 6
  expect_match(describe_how(study, cells), paste0(limit, ", in all ", wider), all = FALSE)
  cells$stop <- c("narrow", "narrow", "limit")
  expect_match(describe_how(study, cells), "launches in 1 grid cell, in which it is wider\\.$", all = FALSE)
  unbound <- "the ranks were not bound to cores: the mapping did not determine these, and ranks may have shared one."
  cells$bound <- c("FALSE", "FALSE", NA)
  expect_match(describe_how(study, cells), paste("^In 2 of 3 grid cells,", unbound), all = FALSE)
  cells$bound <- "FALSE"
  expect_match(describe_how(study, cells), paste("^In all grid cells,", unbound), all = FALSE)
  cells$differing <- c("UCX_TLS", NA, "UCX_NET_DEVICES UCX_TLS")
  expect_match(
    describe_how(study, cells), "^The launches of 2 grid cells had different values of UCX_NET_DEVICES and UCX_TLS",
    all = FALSE
  )
  cells$differing <- NULL
  expect_no_match(describe_how(study, cells), "different values|Environment")
  study$machine$environment <- list(UCX_RNDV_THRESH = "8192", UCX_TLS = "rc,sm")
  expect_match(
    describe_how(study, cells),
    "^Environment of all launches, from the machine's file: `UCX_RNDV_THRESH=8192`, `UCX_TLS=rc,sm`\\.$", all = FALSE
  )
  study$simulated <- TRUE
  study$provenance <- c(study$provenance, simulator = "SimGrid SMPI", simulator_version = "3.32", barriers = "aligned")
  expect_match(describe_how(study, cells), "^The barrier .* all ranks start each call at the same", all = FALSE)
  study$sampling <- list(rounds = 3)
  expect_match(describe_how(study, cells), "that the rounds selected were simulated\\.$", all = FALSE)
  study$simulated <- FALSE
  expect_match(describe_how(study, cells), "that the rounds selected were measured\\.$", all = FALSE)
})

test_that("the runs of traced applications are counted", {
  study <- list(
    applications = list(list(name = "melt"), list(name = "svd")), machine = list(label = "this machine"),
    provenance = list(mpi = "openmpi", mpi_version = "5.0.11", oversubscribed = TRUE, simulator = "")
  )
  cells <- tibble::tibble(collective = c("melt", "melt", "svd"), algorithm = c("traced", "replay", "traced"))
  expect_match(describe_how(study, cells)[1], "^Each application ran once, unmodified, with Open MPI 5.0.11 and ")
  expect_match(describe_how(study, rbind(cells, cells, cells))[1], "ran 3 times, .* on this machine.$")
  expect_length(describe_how(study, cells), 2)
})

test_that("sweeps in which calls start in another way are not said to be all of them", {
  expect_match(describe_barriers(c("aligned", "default")), "^In some of the sweeps, the barrier .* is aligned,")
  expect_match(describe_barriers("window"), "^The ranks start each call at an instant of synchronised clocks")
  expect_match(describe_barriers(c("default", "window")), "^In some of the sweeps, the ranks start")
  expect_match(describe_spreads(c(2, 4, 8)), "drawn from a range of 2, 4 or 8 \u00b5s")
  expect_match(describe_spreads(50), "^Each rank enters a call at its own instant, drawn from a range of 50 \u00b5s")
  expect_match(describe_spreads(c(0, 50)), "^In some of the calls, each rank enters")
  study <- list(simulated = FALSE, provenance = list(iterations = 1, barriers = "window", spreads_us = 50))
  said <- paste(describe_repeats(study, tibble::tibble(stop = character(), bound = logical())), collapse = " ")
  expect_match(said, "synchronised clocks.*Each rank enters")
})

test_that("each claim names the figures and tables that show it", {
  shown <- tibble::tibble(
    section = c("bcast", "bcast/levels", "a/dynamic", "gain"), file = c("f.svg", "l.csv", "d.svg", "g.csv")
  )
  found <- add_shown(dplyr::bind_rows(
    said("answer", c("Title: much is gained.", "Something else.")), said("bcast", "It is slow."),
    said("dynamic", "Links are full."), said("gain", "Much is gained."),
    said("gain", "A note.", claim = FALSE)
  ), shown)
  expect_equal(found$shown_in, c("g.csv", "f.svg;l.csv;d.svg;g.csv", "f.svg;l.csv", "d.svg", "g.csv", ""))
})

test_that("a chapter that shows the slowest rank says so", {
  study <- list(simulated = TRUE, provenance = list(iterations = list(1), warmup = list(1)))
  for (chapter in c("topology", "pipelining", "components", "mapping")) {
    study$chapter <- chapter
    expect_match(describe_repeats(study)[1], "^A latency is the slowest rank's mean over 1 iteration, after")
  }
  study$chapter <- "collectives"
  expect_match(describe_repeats(study)[1], "^A latency is the mean over the ranks")
})

test_that("the latency of a ping-pong is half a round trip, not a mean over the ranks", {
  study <- list(simulated = TRUE, collectives = list(latency = list(), bw = list()), provenance = list(
    iterations = list(100), warmup = list(10)
  ))
  half <- "^A latency is half the time of a round trip, the mean over 100 iterations,"
  expect_match(describe_repeats(study)[1], half)
  # A run of an application has no iterations.
  study$collectives$svd <- list()
  expect_match(describe_repeats(study)[1], half)
  study$collectives$bcast <- list()
  expect_match(describe_repeats(study)[1], "^A latency is the mean over the ranks")
  import <- list(rows_read = 1, statistics = list("mean_over_ranks"))
  expect_match(describe_imported(import), "^A latency is the mean over the ranks", all = FALSE)
  expect_match(describe_imported(import, TRUE), "^A latency is half the time of a round trip", all = FALSE)
})

test_that("of a program only what was done is said", {
  said <- function(suite, failure = NULL) {
    machine <- list(label = "here", kind = "local", levels = list(list(name = "core", count = 2)))
    about <- list(mpi = "openmpi", mpi_version = "5.0.11", suite = suite, suite_version = "1.0")
    program <- list(command = "mpirun -n 2 a", runs = 5, failure = failure)
    describe_program_runs(list(machine = machine, provenance = about, program = program))
  }
  expect_match(said("collbench"), "to measure its overhead. The cells .* in rounds with collbench 1.0.*, weighted by")
  expect_match(said(""), "`mpirun -n 2 a`: once with .* 5 times each .* to measure its overhead[.]$")
  expect_match(said("", "time limit"), "as `mpirun -n 2 a`[.]$")
})
