new_folder <- function() {
  path <- tempfile()
  dir.create(path)
  path
}

# A machine whose default is 10 % slower than linear in every cell.
front_study <- function(name, simulated = FALSE, counts = seq(4, 24, 2), label = name) {
  rows <- lawful(counts = counts, sizes = c(1, 4, 16))
  folder <- make_study(rows, simulated = simulated, folder = file.path(new_folder(), name))
  change_study(folder, name = name, machine = list(label = label))
  readr::write_csv(tibble::tibble(
    study = name, collective = "bcast", algorithm = "default", mapping = "core", nodes = 1, processes = max(counts),
    status = c("measured", "failed")
  ), file.path(folder, "cells.csv"))
  results <- read_results(folder)
  # Of the analysis only what the front page reads: models take long.
  tables <- list(
    `answer-collectives` = summarise_by_collective(results), `answer-mappings` = summarise_by_mapping(results),
    `tuning-regret` = summarise_regret(results, "bcast")
  )
  purrr::iwalk(tables, function(data, name) write_table(data, file.path(folder, "tables", paste0(name, ".csv"))))
  folder
}

# shapes.json of mpirun-tuned for mappings, by the `cycle` of each.
write_shapes <- function(folder, cycles) {
  shapes <- purrr::imap(unname(cycles), function(cycle, i) list(mapping = names(cycles)[i], cycle = cycle))
  dir.create(file.path(folder, "tuning"), showWarnings = FALSE)
  jsonlite::write_json(shapes, file.path(folder, "tuning", "shapes.json"), auto_unbox = TRUE)
}

# So many process counts that the gain of rules is significant, although they keep the default for the outermost one.
many_counts <- 2^(2:13)

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
      "default takes 10 % longer than the fastest measured algorithm on real \\(medians of the collectives 10 %\\), in",
      "the geometric mean. It is more than 5 % slower in 100 % of the cells"
    )
  )
  expect_equal(front$answer[2], "Measured machine: real (1 node, up to 24 processes, 44 cells).")
  expect_match(front$studies$finding, "by 10 % for barrier and 10 % for broadcast")
  expect_match(front$trust, "^Grid cells .* without a usable number at some or all sizes: 1 of 2 on real;", all = FALSE)
})

test_that("slow-downs by mapping are of the cells of the slow-down over all mappings, without two ranks", {
  rows <- lawful(c(default = 1.5, linear = 1), counts = c(4, 8), sizes = c(1, 4))
  # Between two ranks all algorithms take the same time.
  rows <- dplyr::bind_rows(lawful(c(default = 1, linear = 1), counts = 2, sizes = c(1, 4)), rows)
  by_node <- dplyr::mutate(rows, mapping = "node", latency_us = ifelse(
    algorithm == "default" & processes > 2, 2 * latency_us, latency_us
  ))
  folder <- make_study(dplyr::bind_rows(rows, by_node), folder = file.path(new_folder(), "s"))
  write_analysis(read_results(folder), folder)
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

test_that("two ranks are a sentence and no row", {
  front <- describe_front(c(front_study("pair", counts = 2), front_study("real")))
  expect_equal(unique(front$table$study), "real")
  expect_equal(front$studies$study, c("real", "pair"))
  expect_equal(front$studies$silent, c(FALSE, TRUE))
  expect_match(front$studies$finding[2], "with two ranks, most algorithms send the same messages")
  alone <- describe_front(front_study("pair", counts = 2))
  expect_equal(nrow(alone$table), 0)
  expect_null(alone$advice)
  expect_match(alone$steps[[1]]$text, "^No rule of this report was judged")
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

test_that("advice has the gain with its interval, and a command for a cell that was measured", {
  folder <- front_study("real", counts = many_counts)
  decided <- tibble::tibble(
    collective = "bcast", mapping = "core", nodes = 2, processes = c(8, 24, 24), size_bytes = c(4, 4, 16),
    algorithm = c("linear", "linear", "default"), basis = "measured", gain_pct = c(20, 10, 0)
  )
  write_table(decided, file.path(folder, "tuning", "decisions.csv"))
  front <- describe_front(folder)
  expect_match(front$advice$sentence, "they save [0-9.]+ % \\(95 % interval [0-9.]+ to [0-9.]+ %\\) of the default's")
  expect_match(front$advice$ask, "--collective bcast --nodes 2 --ppn 4 --mapping core --size 4$")
  expect_null(front$advice$launcher)
  write_shapes(folder, list(core = list()))
  front <- describe_front(folder, "some/results")
  expect_equal(front$advice$launcher, "mpirun-tuned -n 8 --map-by core ./program")
  expect_equal(front$steps[[1]]$command, "some/results/real/tuning/mpirun-tuned -n 8 --map-by core ./program")
  # Of the process counts that are usual the largest, and of the sizes the one nearest to 64 KiB.
  decided <- dplyr::mutate(decided, processes = c(64, 64, 100), size_bytes = c(2048, 32768, 65536))
  write_table(decided, file.path(folder, "tuning", "decisions.csv"))
  expect_match(describe_front(folder)$advice$ask, "--ppn 32 --mapping core --size 32KiB$")
  # Between two ranks all algorithms send the same messages.
  decided <- dplyr::mutate(decided, processes = c(2, 2, 100), algorithm = "linear")
  write_table(decided, file.path(folder, "tuning", "decisions.csv"))
  expect_match(describe_front(folder)$advice$ask, "--ppn 50 --mapping core --size 64KiB$")
})

test_that("the example of mpirun-tuned names a mapping that it recognises", {
  folder <- front_study("real", counts = many_counts)
  launcher <- function(cycles) {
    decided <- tibble::tibble(
      collective = "bcast", mapping = names(cycles), nodes = 2, processes = 8, size_bytes = 4, algorithm = "linear",
      basis = "measured", gain_pct = 30 - seq_along(cycles)
    )
    write_table(decided, file.path(folder, "tuning", "decisions.csv"))
    # Those with an order of hosts are not in shapes.json.
    write_shapes(folder, cycles[names(cycles) != "random"])
    describe_front(folder)$advice$launcher
  }
  by <- function(name) paste("mpirun-tuned -n 8 --map-by", name, "./program")
  expect_equal(launcher(list(DFSF = list("socket"))), by("socket"))
  expect_equal(launcher(list(BFNF = list("node"), core = list())), by("node"))
  expect_equal(launcher(list(random = list(), core = list())), by("core"))
  # By groups of nodes: no value of --map-by.
  expect_equal(launcher(list(group = list("group"), core = list())), by("core"))
  expect_null(launcher(list(group = list("group"))))
  expect_null(launcher(list(random = list())))
  # Two mappings with the same value are not told apart.
  expect_equal(launcher(list(core = list(), DFNF = list(), socket = list("socket"))), by("socket"))
})

test_that("only replays with decisions are said to judge them", {
  steps <- function(labels) {
    replays <- lapply(labels, function(label) list(label = label))
    about <- list(replay = list(decisions = "cells-x"), applications = list(list(replays = replays)))
    front_steps(list(list(name = "gain-x", about = about, tried = FALSE)), NULL, NULL, "results")
  }
  expect_match(steps(c("default", "decided"))[[1]]$text, "judges the decisions of study `cells-x` by simulation")
  waiting <- steps("default")[[1]]
  expect_match(waiting$text, "^Nothing is decided yet for the collectives of @sec-gain-x")
  expect_equal(waiting$command, "./study run cells-x && ./study run gain-x")
})

test_that("an interval covers the gain of clusters of process counts", {
  cells <- expand.grid(processes = 4:13, size_bytes = 1:5, mapping = "core", policy = c("default", "tuned"))
  cells$slowdown <- ifelse(cells$policy == "default", 1.2 * 1.05^((cells$processes - 8.5) / 3), 1)
  gain <- summarise_gains(cells)[1, ]
  expect_equal(gain$gain_pct, 20)
  # Three clusters: 4 and 5, 6 to 11, and 12 and 13.
  # With shares of 0.2, 0.6 and 0.2 they count as 1 / 0.44. The jackknife leaves out one after the other.
  degrees <- 1 / 0.44 - 1
  expect_equal(c(gain$groups, gain$degrees), c(10, degrees))
  gains <- log(1.2) + log(1.05) * (4:13 - 8.5) / 3
  without <- c(mean(gains[-(1:2)]), mean(gains[-(3:8)]), mean(gains[-(9:10)]))
  error <- sqrt(2 / 3 * sum((without - log(1.2))^2))
  expect_equal(
    c(gain$gain_low_pct, gain$gain_high_pct), 100 * expm1(log(1.2) + c(-1, 1) * stats::qt(0.975, degrees) * error)
  )
  expect_equal(gain_p(gain$gain_pct, gain$gain_high_pct, gain$degrees), 2 * stats::pt(-log(1.2) / error, degrees))
  expect_equal(gain_p(0, 0, 2), 1)
})

test_that("process counts far apart have the standard error of independent values", {
  values <- c(1, 4, 2, 7)
  apart <- clustered_error(values, "core", 2^(1:4))
  expect_equal(c(apart$error, apart$degrees), c(stats::sd(values) / 2, 3))
  # Two pairs of equal values are two values.
  expect_equal(clustered_error(c(1, 1, 4, 4), "core", c(8, 9, 16, 17))$error, stats::sd(c(1, 4)) / sqrt(2))
  expect_true(is.na(clustered_error(values, "core", 12:15)$error))
  # Differences between mappings are no variation of their mean.
  both <- clustered_error(c(values, values + 10), rep(c("core", "node"), each = 4), rep(2^(1:4), 2))
  expect_equal(c(both$error, both$degrees), c(stats::sd(values) / sqrt(8), 6))
  # A mapping with one cluster is assumed to vary like the others.
  one <- clustered_error(c(values, 5), c(rep("core", 4), "node"), 2^c(1:4, 4))
  expect_equal(c(one$error, one$degrees), c(sqrt(5) * stats::sd(values) / 5, 3))
})

test_that("intervals over clusters of very different sizes cover the mean in 95 of 100 cases", {
  set.seed(1)
  counts <- rep(seq(4, 48, 2), 2)
  mapping <- rep(c("core", "node"), each = length(counts) / 2)
  octave <- paste(mapping, round(log2(counts)))
  covered <- replicate(600, {
    gain <- stats::rnorm(10, 0, 0.05)[match(octave, unique(octave))] + stats::rnorm(length(counts), 0, 0.02)
    found <- clustered_error(gain, mapping, counts)
    abs(mean(gain)) <= stats::qt(0.975, found$degrees) * found$error
  })
  expect_gt(mean(covered), 0.93)
})

test_that("significance is corrected for the number of pairs", {
  study <- function(name, low, high) {
    regret <- tibble::tibble(
      collective = "bcast", policy = "tuned", mapping = "all", split = both_halves, cells = 10, groups = 10,
      degrees = 9, gain_pct = 100 * expm1(mean(log1p(c(low, high) / 100))), gain_low_pct = low, gain_high_pct = high
    )
    list(name = name, simulated = FALSE, about = list(machine = list(label = name)), regret = regret)
  }
  names <- c("a", "b", "c", "d")
  rows <- tibble::tibble(study = names, collective = "bcast", machine = names, simulated = FALSE)
  studies <- list(study("a", 0.5, 20), study("b", 10, 20), study("c", -20, -10), study("d", -5, 20))
  # The interval of a does not include 0, but with four tests this is not significant.
  gains <- front_gains(studies, rows)
  expect_equal(gains$clear, c(FALSE, TRUE, FALSE, FALSE))
  expect_equal(gains$slower, c(FALSE, FALSE, TRUE, FALSE))
  expect_true(front_gains(studies[1], rows[1, ])$clear)
  expect_match(
    front_rules(studies, rows), "in 1 of 4 pairs .* \\(5 % level, corrected for 4 tests\\). .* In 1 pair they are"
  )
  expect_match(front_intervals(studies, rows), "Holm's correction for the 4 pairs.$")
  expect_match(advise_default(gains[1, ]), "^Keep the default for broadcast on a: no rule is significantly faster")
})

test_that("the collective and mapping that makes up most of a mean is named", {
  studies <- list(list(name = "s", about = list(labels = c(core = "core")), by_mapping = tibble::tibble(
    collective = c("bcast", "bcast", "reduce"), mapping = c("core", "node", "core"), cells = c(40, 10, 50),
    geometric_mean_pct = c(2, 300, 5)
  )))
  rows <- tibble::tibble(machine = "M", study = "s", collective = c("bcast", "reduce"))
  expect_equal(front_dominant(rows, studies), paste0(
    " On M, broadcast mapped node (10 % of the cells) makes up most of the mean: there the default takes 300 % ",
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
    "on one \\(medians of the collectives 10 %\\) and 10 % longer on other \\(10 %\\), in geometric means\\."
  )
  expect_match(
    front$answer[2],
    "one \\(1 node, up to 24 processes, 44 cells\\) and other \\(1 node, up to 12 processes, 20 cells\\)"
  )
})

test_that("every clear gain is named with what it saves", {
  front <- describe_front(c(front_study("one", counts = many_counts), front_study("other", counts = many_counts)))
  expect_match(front$answer, "^Tuned rules .* the default in 2 of 2 pairs .* they save", all = FALSE)
  expect_match(front$advice$sentence, "broadcast on one: they save [0-9.]+ % \\(95 % interval ")
  expect_match(front$advice$others, "also save [0-9.]+ % \\([0-9.]+ to .*\\) for broadcast on other", all = FALSE)
})

test_that("a gain that is not significant is not called none", {
  kept <- tibble::tibble(
    machine = "A", simulated = FALSE, collective = c("bcast", "barrier"), gain_pct = c(20, 0),
    gain_low_pct = c(-20, -1), gain_high_pct = c(60, 1)
  )
  expect_equal(advise_default(kept), paste(
    "Keep the default for broadcast and barrier on A: no rule is significantly faster there. More process counts could",
    "show whether the rules save time for broadcast on A (estimate 17 %, 95 % interval \u221225 to 38 %)."
  ))
  expect_equal(
    advise_default(kept[2, ]), "Keep the default for barrier on A: no rule is significantly faster there."
  )
})

test_that("what rules save is said as a share of the default's time", {
  gain <- tibble::tibble(gain_pct = 100, gain_low_pct = 25, gain_high_pct = 300)
  expect_equal(format_saving(gain), "50 % (95 % interval 20 to 75 %)")
  expect_equal(format_saving(gain, interval = ""), "50 % (20 to 75 %)")
})

test_that("mappings of the worst collective, and what rules were not tested for, are named", {
  folder <- front_study("real", counts = many_counts)
  write_table(tibble::tibble(
    collective = "bcast", mapping = c("core", "node"), cells = 50, geometric_mean_pct = c(3, 30)
  ), file.path(folder, "tables", "answer-mappings.csv"))
  write_table(tibble::tibble(
    collective = c("bcast", "barrier"), slower_pct = c(90, 10), geometric_mean_pct = c(15, 2), p90_pct = 20,
    median_pct = 1, cells = c(100, 50), best_other = "Linear", best_other_geometric_mean_pct = 5
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

test_that("rules of other machines are advised against unless they save time", {
  rules <- function(theirs) {
    machines <- rep(c("a", "b"), 2)
    list(list(one_rule = tibble::tibble(
      machine = machines, policy = rep(c("default", "rule of the other machines"), each = 2),
      geometric_mean_pct = c(20, 50, theirs)
    )))
  }
  expect_match(front_transfer(rules(c(21, 50))), "^Decide the rules on each machine: .* save nothing of ")
  expect_match(front_transfer(rules(c(20, 47))), "save at most 2.0 % of the default's time")
  expect_match(front_transfer(rules(c(8, 20))), "^Rules carry over .* save up to 20 % .* on 2 of 2 machines")
})

test_that("simulated means of other cells are not to be compared with measured ones", {
  rows <- tibble::tibble(
    machine = c("a", "b"), collective = "bcast", cells = 10, slower_pct = 5, geometric_mean_pct = 2
  )
  model <- dplyr::mutate(rows, machine = paste0(machine, ", simulated"))
  expect_null(front_measured_there(model, rows))
  expect_match(front_measured_there(dplyr::mutate(model, cells = 5), rows), "cannot be compared with the measured ones")
})

test_that("new runs with tuning files are a sentence for each measured study, and one for all simulated ones", {
  study <- function(simulated, speedups, label) {
    list(simulated = simulated, about = list(machine = list(label = label)), verified = tibble::tibble(
      rule = "linear", mapping = "core", processes = seq_along(speedups), speedup = speedups
    ))
  }
  found <- front_verified(list(study(FALSE, 0.8, "a"), study(TRUE, 2, "b"), study(TRUE, c(1, 1.3), "b")))
  expect_equal(
    found[1], "In new runs on a the tuning file makes the calls 25 % slower, over the 1 cell that it changes."
  )
  expect_match(found[2], "simulated runs on b, 2 tuning files save 12 to 50 % of the default's time, over the 3 cells")
  expect_match(found[2], "For 1 of them the 95 % interval includes 0.$")
  expect_length(found, 2)
  expect_match(front_verified(list(study(TRUE, 2, "b"))), "on b the tuning file saves 50 % of the default's time")
  # The runs were those of the files before slower rules were withdrawn.
  withdrawn <- c(study(FALSE, c(2, 0.5), "a"), list(withdrawn = tibble::tibble(speedup = 0.5)))
  expect_match(
    front_verified(list(withdrawn)),
    "the 2 cells that it changed. Rules that were slower in 1 of the cells were then withdrawn.", fixed = TRUE
  )
})

test_that("the table names the measured rows that it leaves out, and counts the simulated ones", {
  rows <- tibble::tibble(machine = "a", simulated = c(FALSE, TRUE, TRUE), collective = c("bcast", "reduce", "bcast"))
  expect_equal(front_left_out(rows), c("broadcast on a", "2 simulated collectives"))
  expect_null(front_left_out(rows[0, ]))
})

test_that("rules count although another study of the machine has more cells", {
  judged <- front_study("judged", counts = many_counts, label = "m")
  larger <- front_study("larger", counts = c(3, many_counts), label = "m")
  unlink(file.path(larger, "tables", "tuning-regret.csv"))
  front <- describe_front(c(judged, larger))
  expect_equal(unique(front$table$study), "larger")
  expect_match(front$advice$sentence, "^Use tuned rules for broadcast on m: they save")
  expect_no_match(unlist(front$advice$others), "Too few process counts were measured to test rules for broadcast")
})

test_that("the default of two libraries is not that of one", {
  folder <- front_study("two")
  change_study(folder, provenance = list(mpi = "openmpi, mpich", mpi_version = "5.0.1, 5.0.2"))
  front <- describe_front(folder)
  expect_match(front$answer[1], "the default takes 10 % longer")
  expect_match(front$trust, "measured, with Open MPI 5.0.1 and MPICH 5.0.2 on two", all = FALSE)
})
