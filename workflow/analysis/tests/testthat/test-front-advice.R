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
  expect_equal(launcher(list(node = list("node", "socket"), core = list())), by("node"))
  change_study(folder, provenance = list(mpi = "openmpi", mpi_version = "5.0.11"))
  expect_equal(launcher(list(node = list("node", "socket"), core = list())), by("core"))
  expect_equal(launcher(list(BFNF = list("node"), core = list())), by("node"))
  expect_equal(launcher(list(socket = list("socket"))), by("socket --rank-by slot"))
})

test_that("rules in the files that are not recommended are named", {
  decisions <- tibble::tibble(
    collective = c("reduce", "bcast", "bcast", "barrier"), algorithm = c("binary", "linear", "default", "default")
  )
  kept <- tibble::tibble(study = c("a", "a", "b"), collective = c("bcast", "barrier", "reduce"))
  expect_equal(other_rules(list(name = "a", decisions = decisions), kept), "bcast")
  told <- function(unclear) {
    advice <- list(study = "a", machine = "M", launcher = "mpirun-tuned -n 8 ./program", unclear = unclear)
    front_steps(list(), NULL, advice, "results")[[1]]$text
  }
  expect_match(told("bcast"), "The files also have rules for broadcast, whose gain is not significant\\.$")
  expect_match(told(character()), "nodes and processes\\.$")
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

test_that("gains by mapping say which are not significant", {
  regret <- tibble::tibble(
    collective = "reduce", policy = "tuned", split = both_halves, mapping = c("core", "node", "socket"),
    degrees = 3, gain_pct = c(5, 100, 25), gain_low_pct = c(-1, 50, NA), gain_high_pct = c(11, 168, NA)
  )
  study <- list(regret = regret, about = list(labels = c(core = "by core", node = "by node", socket = "by socket")))
  expect_equal(
    front_mappings(study, "reduce"),
    " Mapped by node they save 50 %, by socket 20 % and by core 4.8 % (not significant)."
  )
  study$regret <- regret[1, ]
  expect_equal(front_mappings(study, "reduce"), "")
})

test_that("the significance of gains by mapping is corrected for the number of mappings", {
  # The intervals of core and socket do not include 0, but with three tests the gain by core is not significant.
  regret <- tibble::tibble(
    collective = "reduce", policy = "tuned", split = both_halves, mapping = c("core", "node", "socket"), degrees = 3,
    gain_pct = 100 * expm1(c(0.1, 1, 0.5)), gain_low_pct = 100 * expm1(c(0.01, 0.8, 0.4)),
    gain_high_pct = 100 * expm1(c(0.19, 1.2, 0.6))
  )
  study <- function(rows) {
    list(regret = rows, about = list(labels = c(core = "by core", node = "by node", socket = "by socket")))
  }
  expect_match(front_mappings(study(regret), "reduce"), "by socket 39 % and by core 9.5 %.", fixed = TRUE)
  regret$gain_high_pct[1] <- 100 * expm1(0.199)
  regret$gain_low_pct[1] <- 100 * expm1(0.001)
  regret$gain_high_pct[3] <- 100 * expm1(0.95)
  regret$gain_low_pct[3] <- 100 * expm1(0.05)
  expect_match(
    front_mappings(study(regret), "reduce"), "by socket 39 % (not significant) and by core 9.5 % (not significant).",
    fixed = TRUE
  )
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
  expect_match(front_intervals(studies, rows), "Holm's correction for the 4 pairs \\(.*\\).$", all = FALSE)
  # The answer, the advice and what is said of the correction have the same tests, also with a simulated pair.
  simulated <- utils::modifyList(study("e", -5, 20), list(simulated = TRUE))
  all <- rbind(rows, tibble::tibble(study = "e", collective = "bcast", machine = "e", simulated = TRUE))
  studies <- c(studies, list(simulated))
  expect_match(
    front_rules(studies, all), "in 1 of 4 pairs .* \\(5 % level, corrected for 5 tests, simulated pairs included\\)"
  )
  expect_match(front_intervals(studies, all), "Holm's correction for the 5 pairs", all = FALSE)
  expect_null(front_rules(studies[5], all[5, ]))
  studies <- studies[1:4]
  expect_match(advise_default(gains[1, ]), "^Keep the default for broadcast on a: no rule is significantly faster")
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
  expect_match(found[2], "simulated runs on b, the tuning files of 2 studies save 12 to 50 % .* over the 3 cells")
  expect_match(found[2], "For 1 of the studies the 95 % interval includes 0.$")
  expect_length(found, 2)
  expect_match(front_verified(list(study(TRUE, 2, "b"))), "on b the tuning file saves 50 % of the default's time")
  # The mean is that of the cells, of which process counts have different numbers: 2^(1/3).
  several <- study(FALSE, c(1, 1, 2), "a")
  several$verified$processes <- c(4, 4, 8)
  expect_match(front_verified(list(several)), "saves 21 % .* over the 3 cells")
  # The runs were those of the files before slower rules were withdrawn.
  withdrawn <- c(study(FALSE, c(2, 0.5), "a"), list(withdrawn = tibble::tibble(speedup = 0.5)))
  expect_match(
    front_verified(list(withdrawn)),
    "the 2 cells that it changed. Rules that were slower in 1 of the cells were then withdrawn.", fixed = TRUE
  )
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
