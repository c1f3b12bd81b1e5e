bcasts <- function(...) {
  rows <- lawful(...)
  rows[rows$collective == "bcast", ]
}

test_that("the split alternates over the sorted counts", {
  expect_equal(split_tuning(c(8, 2, 6, 4))$decide, c(2, 6))
  expect_equal(split_tuning(c(8, 2, 6, 4), 2)$judge, c(2, 6))
})

test_that("no row of the judged counts reaches the decision", {
  results <- with_rows(lawful(c(default = 1.3, linear = 1, chain = 1.1)))
  split <- split_tuning(tuning_counts(results$medians, "bcast"))
  before <- decide_tuning(results, "bcast", split$decide, split$judge)
  judged <- results$medians$processes %in% split$judge
  scrambled <- results
  set.seed(1)
  medians <- results$judged$medians
  scrambled$judged$medians$latency_us[judged] <- sample(medians$latency_us[judged]) * 100
  scrambled$judged$medians$algorithm[judged] <- sample(medians$algorithm[judged])
  expect_identical(decide_tuning(scrambled, "bcast", split$decide, split$judge), before)
  removed <- results
  removed$judged$medians <- medians[!judged, ]
  expect_identical(decide_tuning(removed, "bcast", split$decide, split$judge), before)
  expect_true(all(before$basis %in% c("interpolated", "extrapolated")))
  expect_equal(unique(before$basis[before$processes == max(split$judge)]), "extrapolated")
})

test_that("a better algorithm is taken, its gain and latency are told", {
  results <- with_rows(lawful(c(default = 1.3, linear = 1, chain = 1.1)))
  found <- decide_tuning(results, "bcast")
  expect_equal(unique(found$algorithm), "linear")
  expect_equal(found$gain_pct, rep(30, nrow(found)))
  at <- found$processes == 8 & found$size_bytes == 1024
  expect_equal(found$expected_us[at], 4)
  barrier <- decide_tuning(results, "barrier")
  expect_equal(unique(barrier$algorithm), "linear")
  expect_true(all(is.na(barrier$size_bytes)))
})

test_that("a choice is faster than the previous one from where their interpolated latencies cross", {
  relative <- array(log(c(1, 2, 9, 4, 2, 9, 4, 2, 1)), c(3, 1, 3))
  from <- function(choice, sizes = c(16, 64, 256)) {
    decided <- list(choice = array(as.integer(choice), c(1, 3)), relative = relative)
    as.vector(first_faster(decided, sizes))
  }
  # Equal at 32 bytes, and at the size at which 9 / 2 became 1 / 2.
  expect_equal(from(c(1, 2, 3)), c(NA, 33, floor(64 * 4^(log(4.5) / log(9))) + 1))
  expect_equal(from(c(1, 1, 3)), c(NA, NA, floor(64 * 4^(log(9 / 4) / log(9))) + 1))
  # The first one was not faster, the second one is not, empty messages.
  expect_equal(from(c(2, 1, 1)), rep(NA_real_, 3))
  expect_equal(from(c(1, 2, 3), c(0, 64, 256))[2], NA_real_)
  relative[2, 1, 2] <- NA
  expect_equal(from(c(1, 2, 3)), rep(NA_real_, 3))
})

test_that("the default stays within the tie width", {
  found <- decide_tuning(with_rows(lawful(c(default = 1.01, linear = 1, chain = 1.1))), "bcast")
  expect_equal(unique(found$algorithm), "default")
})

test_that("the default stays within noise, from the launches", {
  set.seed(3)
  rows <- lawful(c(default = 1.03, linear = 1))
  rows <- dplyr::bind_rows(lapply(1:6, function(n) {
    dplyr::mutate(rows, launch = n, latency_us = .data$latency_us * exp(rnorm(dplyr::n(), 0, 0.4)))
  }))
  found <- decide_tuning(with_rows(rows), "bcast")
  expect_equal(unique(found$noise_from), "launches")
  expect_gt(mean(found$algorithm == "default"), 0.8)
})

test_that("launches that are slower at all sizes make no rule", {
  rows <- lawful(c(default = 1, linear = 1), sizes = 2^(0:13))
  launched <- function(default, linear) {
    purrr::map_dfr(1:3, function(n) {
      dplyr::mutate(rows, launch = n, latency_us = latency_us * ifelse(algorithm == "default", default[n], linear[n]))
    })
  }
  # The medians of all sizes differ by 3 %, those of the launches by up to 8 %.
  found <- decide_tuning(with_rows(launched(c(0.96, 1, 1.04), c(0.95, 0.97, 1.02))), "bcast")
  expect_equal(unique(found$algorithm), "default")
  expect_equal(unique(found$noise_from), "launches")
  expect_gt(min(found$series_noise_pct), 0.9 * min(found$noise_pct))
  # Launches that differ by 0.2 % are clear.
  found <- decide_tuning(with_rows(launched(c(0.998, 1, 1.002), c(0.968, 0.97, 0.972))), "bcast")
  expect_equal(unique(found$algorithm[found$processes > 2]), "linear")
  # Differences between single sizes cancel in the mean over all sizes.
  sizes <- exp(0.04 * (-1)^log2(pmax(rows$size_bytes, 1)))
  found <- decide_tuning(with_rows(purrr::map_dfr(1:3, function(n) {
    dplyr::mutate(rows, launch = n, latency_us = latency_us * sizes^(n - 2) * ifelse(algorithm == "linear", 0.97, 1))
  })), "bcast")
  expect_lt(max(found$series_noise_pct), 0.1)
  expect_equal(unique(found$algorithm[found$processes > 2]), "linear")
})

test_that("small gains that may be noise do not hide a large one at other sizes", {
  rows <- lawful(c(default = 1, linear = 1), sizes = 2^(0:13))
  chosen <- function(small) {
    gain <- ifelse(rows$algorithm == "default", 1, ifelse(rows$size_bytes %in% 4096, 1.5, small))
    launched <- purrr::map_dfr(1:3, function(n) {
      dplyr::mutate(rows, launch = n, latency_us = latency_us / gain * c(0.92, 1, 1.08)[n])
    })
    found <- decide_tuning(with_rows(launched), "bcast")
    unique(found$algorithm[found$size_bytes == 4096 & found$processes > 2])
  }
  expect_equal(chosen(1), "linear")
  expect_equal(chosen(1.03), "linear")
})

test_that("a gain at one small size alone makes no rule, because the first size has the first calls", {
  rows <- lawful(c(default = 1, linear = 1), sizes = 2^(0:13))
  chosen <- function(sizes) {
    gain <- ifelse(rows$algorithm != "default" & rows$size_bytes %in% sizes, 3, 1)
    found <- decide_tuning(with_rows(dplyr::mutate(rows, latency_us = latency_us / gain)), "bcast")
    sort(unique(found$size_bytes[found$algorithm == "linear" & found$processes > 2]))
  }
  expect_length(chosen(1), 0)
  expect_length(chosen(64), 0)
  expect_equal(chosen(c(1, 2)), c(1, 2))
  expect_equal(chosen(128), 128)
})

test_that("cells whose launches differ far more than those of others make no rule", {
  rows <- lawful(c(default = 1, linear = 1), sizes = 2^(0:13))
  # The default is half as fast at two sizes; there its launches are wide apart, or as close as those of other cells.
  chosen <- function(apart) {
    slow <- rows$algorithm == "default" & rows$size_bytes %in% c(1024, 2048)
    found <- decide_tuning(with_rows(purrr::map_dfr(1:5, function(n) {
      width <- ifelse(slow, apart, 1.02)
      dplyr::mutate(rows, launch = n, latency_us = latency_us * ifelse(slow, 2, 1) * width^(n - 3))
    })), "bcast")
    sort(unique(found$size_bytes[found$algorithm == "linear" & found$processes > 2]))
  }
  expect_equal(chosen(1.02), c(1024, 2048))
  expect_length(chosen(3), 0)
})

test_that("an algorithm that only a slow source measured is compared within that source", {
  rows <- lawful(c(default = 1, linear = 0.9, chain = 0.8), sizes = 2^(0:13))
  of <- function(source, algorithms, factor, launches) {
    here <- dplyr::mutate(rows[rows$algorithm %in% algorithms, ], source = .env$source)
    purrr::map_dfr(seq_len(launches), function(n) {
      dplyr::mutate(here, launch = n, latency_us = latency_us * factor * c(0.999, 1, 1.001)[n])
    })
  }
  both <- rbind(of("fast", c("default", "linear"), 1, 3), of("slow", c("default", "chain"), 3, 3))
  results <- with_rows(both)
  found <- decide_tuning(results, "bcast")
  found <- found[found$processes > 2, ]
  expect_equal(unique(found$algorithm), "chain")
  expect_equal(found$gain_pct, rep(25, nrow(found)), tolerance = 1e-3)
  # The tables of latencies show what was measured.
  at <- function(medians) {
    here <- medians$algorithm == "chain" & medians$processes == 8 & medians$size_bytes %in% 64
    medians$latency_us[here]
  }
  expect_equal(at(results$medians), 3 * unique(rows$latency_us[rows$algorithm == "chain" & rows$processes == 8 &
    rows$size_bytes %in% 64]), tolerance = 1e-3)
  expect_equal(at(results$judged$medians), at(results$medians) / sqrt(3), tolerance = 1e-3)
  # Sources without a common algorithm stay as they are.
  apart <- with_rows(rbind(of("fast", c("default", "linear"), 1, 1), of("slow", "chain", 3, 1)))
  expect_equal(at(apart$judged$medians), at(apart$medians))
})

test_that("barriers whose launches differ by more than a factor of 3 are not decided", {
  rows <- lawful(c(default = 1.3, linear = 1))
  chosen <- function(apart) {
    found <- decide_tuning(with_rows(purrr::map_dfr(1:5, function(n) {
      width <- ifelse(rows$algorithm == "default" & rows$processes == 2, apart, 1.01)
      dplyr::mutate(rows, launch = n, latency_us = latency_us * width^(n - 3))
    })), "barrier")
    list(algorithms = unique(found$algorithm[found$processes > 4]), reasons = unique(found$reason))
  }
  expect_equal(chosen(1.01)$algorithms, "linear")
  expect_equal(chosen(4)$algorithms, "default")
  expect_match(chosen(4)$reasons, "its launches differ by more than a factor of 3")
})

test_that("the noise of a mean over some sizes contains what all sizes share", {
  set.seed(7)
  grid <- expand.grid(algorithm = c("default", "linear"), processes = seq(4, 48, 4), size_bytes = 2^(0:13))
  rows <- toy_rows("bcast", as.character(grid$algorithm), grid$processes, grid$size_bytes, 1)
  launches <- purrr::map_dfr(1:5, function(n) {
    of_series <- rnorm(24, 0, 0.01)[rep(1:24, 14)]
    dplyr::mutate(rows, launch = n, latency_us = exp(of_series + rnorm(nrow(rows), 0, 0.03)))
  })
  noise <- tuning_noise(tuning_grid(with_rows(launches)$judged$medians), FALSE)
  found <- purrr::map_dbl(c(1, 3, 6, 14), function(sizes) {
    medians <- replicate(2000, mean(apply(matrix(rnorm(5 * sizes, 0, 0.03), 5) + rnorm(5, 0, 0.01), 2, median)))
    noise_of_mean(noise, sizes) / sd(medians)
  })
  # Estimates from five launches are a little too large, for few sizes as for all.
  expect_lt(max(found) / min(found), 1.1)
})

test_that("latencies of 0 are no noise of the other sizes", {
  rows <- bcasts(c(default = 1.3, linear = 1), sizes = 2^(0:6))
  chosen <- function(zero) {
    launched <- purrr::map_dfr(c(0.99, 1, 1.01), function(slow) {
      dplyr::mutate(rows, launch = 100 * slow, latency_us = ifelse(zero(rows, slow), 0, latency_us * slow))
    })
    found <- decide_tuning(with_rows(launched), "bcast")
    expect_lt(max(found$series_noise_pct), 1)
    unique(found$algorithm[found$processes > 2])
  }
  expect_equal(chosen(function(rows, slow) rows$size_bytes == 1), "linear")
  expect_equal(chosen(function(rows, slow) rows$size_bytes == 1 & slow < 1), "linear")
})

test_that("the noise of decisions for a count that is left out is that of the other counts", {
  set.seed(8)
  rows <- bcasts(c(default = 1.1, linear = 1, chain = 1.2), counts = c(4, 8, 16, 24))
  rows <- purrr::map_dfr(1:3, function(n) {
    dplyr::mutate(rows, launch = n, latency_us = latency_us * exp(rnorm(nrow(rows), 0, 0.01 * processes / 4)))
  })
  rows$runs <- ifelse(rows$algorithm == "default", "linear", NA)
  medians <- with_rows(rows)$judged$medians
  left_out <- tuning_noise(grid_without(tuning_grid(medians), 16), FALSE)
  expect_equal(left_out, tuning_noise(tuning_grid(dplyr::filter(medians, .data$processes != 16)), FALSE))
})

test_that("launches of one number in cells of two rounds are two launches", {
  rows <- lawful(c(default = 1.1, linear = 1), sizes = 2^(0:6))
  rows$cell <- "a"
  again <- dplyr::mutate(rows, latency_us = .data$latency_us * 1.04, launch = 2)
  found <- decide_tuning(with_rows(dplyr::bind_rows(rows, again)), "bcast")
  expect_gt(min(found$series_noise_pct), 1)
  in_rounds <- decide_tuning(with_rows(dplyr::bind_rows(rows, dplyr::mutate(again, cell = "b", launch = 1))), "bcast")
  expect_equal(in_rounds$series_noise_pct, found$series_noise_pct)
})

test_that("the noise of a cell is that of its median, also of few launches", {
  set.seed(5)
  for (launches in c(2, 3, 5, 10)) {
    rows <- purrr::map_dfr(seq_len(launches), function(n) {
      rows <- lawful(c(default = 1.1, linear = 1), sizes = 2^(0:11))
      dplyr::mutate(rows, launch = n, latency_us = .data$latency_us * exp(rnorm(dplyr::n(), 0, 0.03)))
    })
    found <- decide_tuning(with_rows(rows), "bcast")
    median <- sd(replicate(5000, median(rnorm(launches, 0, 3))))
    expect_equal(unique(found$noise_pct) / median, 1, tolerance = 0.25)
  }
})

test_that("jumps between sizes that are far apart are not taken for noise where process counts are close", {
  set.seed(4)
  rows <- lawful(c(default = 1, linear = 1.3, chain = 1.1), sizes = 4^(0:9))
  # Protocols change: each algorithm is rough over sizes, alike at all process counts.
  rough <- exp(matrix(rnorm(30, 0, 0.15), 3, dimnames = list(c("default", "linear", "chain"), NULL)))
  rough["chain", ] <- rough["default", ] * 1.1
  rough["chain", 6] <- rough["default", 6] * 0.85
  sized <- rows$collective == "bcast"
  rows$latency_us[sized] <- rows$latency_us[sized] * exp(rnorm(sum(sized), 0, 0.01)) *
    (rough / c(1, 1.3, 1.1))[cbind(match(rows$algorithm, rownames(rough)), log(rows$size_bytes, 4) + 1)[sized, ]]
  found <- decide_tuning(with_rows(rows), "bcast")
  expect_lt(max(found$noise_pct), 2)
  expect_true(all(found$algorithm[found$size_bytes == 4^5] == "chain"))
})

test_that("no rule is made where the default differs much from the algorithm that it runs", {
  set.seed(6)
  chosen <- function(wide) {
    rows <- bcasts(c(default = 1.4, linear = 1.4, chain = 1), sizes = 2^(0:10))
    rows$latency_us <- rows$latency_us * exp(rnorm(nrow(rows), 0, 0.02)) * ifelse(runif(nrow(rows)) < wide, 6, 1)
    rows$runs <- ifelse(rows$algorithm == "default", "linear", NA)
    decide_tuning(with_rows(rows), "bcast")
  }
  expect_true("chain" %in% chosen(0.01)$algorithm)
  found <- chosen(0.08)
  expect_equal(unique(found$algorithm), "default")
  expect_match(unique(found$reason), "in 5 % of the cells it differs from the algorithm that it runs", all = TRUE)
})

test_that("outliers among barriers hardly make a rule", {
  set.seed(9)
  barriers <- function(wide) {
    rows <- lawful(c(default = 1.05, linear = 1, chain = 1.1), counts = seq(2, 128, 2))
    rows <- rows[rows$collective == "barrier", ]
    rows$latency_us <- rows$latency_us * exp(rnorm(nrow(rows), 0, 0.01)) * ifelse(runif(nrow(rows)) < wide, 3, 1)
    mean(decide_tuning(with_rows(rows), "barrier")$algorithm != "default")
  }
  expect_gt(barriers(0), 0.5)
  expect_lt(barriers(0.06), 0.1)
})

test_that("one odd cell does not make a rule", {
  rows <- lawful(c(default = 1, linear = 1.2, chain = 1.3), sizes = 2^(0:12))
  odd <- rows$algorithm == "linear" & rows$processes == 8 & rows$size_bytes %in% 64
  rows$latency_us[odd] <- rows$latency_us[odd] * 0.82
  found <- decide_tuning(with_rows(rows), "bcast")
  expect_equal(unique(found$algorithm), "default")
})

test_that("a rule for a range of sizes does not say that it is better in each of them", {
  rows <- lawful(c(default = 1.3, linear = 1), sizes = 2^(0:12))
  odd <- rows$algorithm == "linear" & rows$processes == 8 & rows$size_bytes %in% 64
  rows$latency_us[odd] <- rows$latency_us[odd] * 1.31
  found <- decide_tuning(with_rows(rows), "bcast")
  found <- found[found$processes == 8 & found$size_bytes == 64, ]
  expect_equal(found$algorithm, "linear")
  expect_lt(found$gain_pct, 0)
  expect_equal(found$reason, "better than the default by more than the noise, over a range of sizes")
})

test_that("what cannot be decided says so and stays with the default", {
  none <- decide_tuning(with_rows(lawful(c(linear = 1, chain = 1.3))), "bcast")
  expect_equal(unique(none$algorithm), "default")
  expect_match(none$reason, "no measurements of the default", all = TRUE)
  expect_true(all(is.na(none[c("basis", "expected_us", "default_us", "gain_pct")])))
  alone <- decide_tuning(with_rows(lawful(c(default = 1))), "bcast")
  expect_match(alone$reason, "only the default", all = TRUE)
  few <- with_rows(toy_rows("bcast", rep(c("default", "linear"), each = 2), 4, c(1, 2, 1, 2), c(2, 4, 1, 2)))
  few <- decide_tuning(few, "bcast")
  expect_match(few$reason, "one launch per cell", all = TRUE)
  expect_equal(unique(few$algorithm), "default")
})

test_that("missing cells are no candidates and no error", {
  rows <- lawful(c(default = 1.3, linear = 1, chain = 1.1))
  rows <- rows[!(rows$algorithm == "linear" & rows$processes > 12), ]
  rows <- rows[!(rows$algorithm == "chain" & rows$processes == 8 & rows$size_bytes %in% 1), ]
  found <- decide_tuning(with_rows(rows), "bcast")
  expect_true(all(found$algorithm[found$processes > 12] == "chain"))
  expect_true(all(found$algorithm[found$processes <= 12] == "linear"))
})

test_that("what the default does beyond the measured counts, in another range of its table, is not guessed", {
  # Chains win at 8, 32 and 128; Open MPI's default may change at 256.
  rows <- lawful(c(default = 1.3, linear = 1, chain = 1.1), counts = c(8, 32, 128))
  rows <- rows[rows$collective == "bcast", ]
  found <- decide_tuning(with_rows(rows), "bcast", at = c(4, 16, 64, 200, 256))
  chosen <- tapply(found$algorithm, found$processes, unique)
  expect_equal(as.character(chosen[c("4", "256")]), rep("default", 2))
  expect_equal(as.character(chosen[c("16", "64", "200")]), rep("linear", 3))
})

chosen_at <- function(rows, at) {
  found <- decide_tuning(with_rows(rows), "bcast", at = at)
  tapply(found$algorithm, found$processes, function(x) paste(unique(x), collapse = " "))
}

test_that("the neighbours of a count are those at which the algorithm was measured", {
  rows <- bcasts(c(default = 1.3, linear = 1, chain = 1.4), counts = c(4, 8, 32))
  rows <- rows[!(rows$algorithm == "linear" & rows$processes == 8), ]
  expect_equal(chosen_at(rows, 16)[["16"]], "linear")
})

test_that("an algorithm that was not measured beside does not hide one that was", {
  rows <- bcasts(c(default = 1.3, linear = 1, chain = 0.9), counts = c(4, 8, 32, 64))
  rows <- rows[!(rows$algorithm == "chain" & rows$processes < 32), ]
  expect_equal(as.character(chosen_at(rows, c(16, 32))), c("linear", "chain"))
})

test_that("nothing is decided far below the counts at which an algorithm or a size was measured, if others were", {
  rows <- bcasts(c(default = 1.3, linear = 1, chain = 0.8), counts = c(2, 4, 8, 32), sizes = 2^(0:5))
  rows <- rows[!(rows$algorithm == "chain" & rows$processes < 32), ]
  rows <- rows[!(rows$size_bytes > 4 & rows$processes <= 4), ]
  found <- decide_tuning(with_rows(rows), "bcast")
  chosen <- split(found$algorithm, found$processes)
  expect_equal(chosen[["2"]], rep(c("linear", "default"), each = 3))
  expect_equal(chosen[["4"]], rep("linear", 6))
  expect_equal(unique(chosen[["8"]]), "chain")
  # Only cells in which the choice and the default were measured are.
  basis <- split(found$basis, found$processes)
  expect_equal(basis[["4"]], rep(c("measured", "interpolated"), each = 3))
  expect_equal(unique(basis[["8"]]), "interpolated")
  expect_equal(unique(basis[["32"]]), "measured")
})

# The nodes of the decisions by number of ranks, as text: "<nodes> of <allocated>".
nodes_of <- function(results) {
  found <- dplyr::distinct(decide_all(results), .data$processes, .data$nodes, .data$allocated, .data$mapping)
  split(paste(found$nodes, "of", found$allocated), paste(found$mapping, found$processes))
}

test_that("the nodes of a decision are those that its ranks use", {
  rows <- bcasts(c(default = 1.3, linear = 1), counts = c(12, 20, 36, 48))
  both <- dplyr::bind_rows(rows, dplyr::mutate(rows, mapping = "node"))
  # By core, 24 ranks fill the first of the two allocated nodes, though only 20 and 36 were measured.
  found <- nodes_of(with_rows(both, levels = thin_levels))
  expect_equal(unlist(found[c("core 12", "core 24", "core 25", "core 48", "node 12", "node 48")]), c(
    "core 12" = "1 of 2", "core 24" = "1 of 2", "core 25" = "2 of 2", "core 48" = "2 of 2", "node 12" = "2 of 2",
    "node 48" = "2 of 2"
  ))
  # In a random order of slots, no number of ranks has the first ranks of a larger one.
  folder <- make_study(dplyr::mutate(rows, mapping = "random"), levels = thin_levels)
  random <- list(label = "random", cycle = list(), hosts = list(shuffle = "core", seed = 1))
  change_study(folder, mappings = list(random = random))
  write_launched(folder)
  found <- nodes_of(read_results(folder))
  expect_equal(unlist(found[c("random 12", "random 16")]), c("random 12" = "1 of 2", "random 16" = "1 of 2"))
  # Ranks between those measured on one node and on two use two.
  apart <- dplyr::mutate(rows, nodes = ifelse(.data$processes <= 20, 1, 2))
  found <- nodes_of(with_rows(apart, levels = thin_levels))
  expect_equal(unlist(found[c("core 20", "core 30")]), c("core 20" = "1 of 1", "core 30" = "2 of 2"))
})

test_that("the same ranks on one node and on two have a decision each, unless they use the same nodes", {
  rows <- bcasts(c(default = 1.3, linear = 1), counts = c(12, 20))
  both <- dplyr::bind_rows(dplyr::mutate(rows, nodes = 1), dplyr::mutate(rows, nodes = 2))
  found <- nodes_of(with_rows(dplyr::bind_rows(both, dplyr::mutate(both, mapping = "node")), levels = thin_levels))
  expect_equal(found[c("core 12", "node 12")], list("core 12" = "1 of 1", "node 12" = c("1 of 1", "2 of 2")))
  # Nothing is decided beyond the ranks measured on so many nodes.
  rows <- bcasts(c(default = 1.3, linear = 1), counts = c(12, 20, 48)) |> dplyr::mutate(mapping = "node")
  both <- dplyr::bind_rows(dplyr::mutate(rows, nodes = 1), dplyr::mutate(rows, nodes = 2))
  both <- both[!(both$nodes == 1 & both$processes == 48) & !(both$nodes == 2 & both$processes == 12), ]
  found <- nodes_of(with_rows(both, levels = thin_levels))
  expect_equal(found[paste("node", c(12, 19:21))], list(
    "node 12" = "1 of 1", "node 19" = "1 of 1", "node 20" = c("1 of 1", "2 of 2"), "node 21" = "2 of 2"
  ))
})

test_that("imported rows that state their nodes are decided for these", {
  rows <- dplyr::mutate(bcasts(c(default = 1.3, linear = 1), counts = c(12, 20)), nodes = 2)
  imported <- function(rows) {
    folder <- make_study(rows, levels = thin_levels)
    change_study(folder, import = list(rows = 1))
    nodes_of(read_results(folder))[["core 12"]]
  }
  # All on the whole machine: mapped over it.
  expect_equal(imported(rows), "1 of 2")
  expect_equal(imported(dplyr::bind_rows(rows, dplyr::mutate(rows, nodes = 1, mapping = "node"))), "2 of 2")
})

test_that("slow algorithms that one count alone has do not move the comparison at it", {
  rows <- bcasts(
    c(default = 1.3, linear = 1, ring = 20, segmented_ring = 20), counts = c(128, 512, 1024), sizes = 2^(0:10)
  )
  rows <- rows[!(grepl("ring", rows$algorithm) & rows$processes > 128), ]
  # No algorithm has all cells.
  rows <- rows[!(rows$algorithm == "default" & rows$processes == 128 & rows$size_bytes == 1024), ]
  rows <- rows[!(rows$algorithm == "linear" & rows$processes == 512 & rows$size_bytes == 1), ]
  found <- decide_tuning(with_rows(rows), "bcast", at = 200)
  inner <- found[found$size_bytes > 1 & found$size_bytes < 1024, ]
  expect_equal(unique(inner$algorithm), "linear")
  expect_equal(inner$gain_pct, rep(30, nrow(inner)))
})

test_that("an algorithm that others leave to powers of two is none for other counts", {
  rows <- bcasts(c(default = 1.3, linear = 1, chain = 1.4), counts = c(4, 8, 12, 16, 24, 32))
  rows <- rows[!(rows$algorithm == "linear" & rows$processes %in% c(12, 24)), ]
  chosen <- chosen_at(rows, c(8, 16, 20, 24, 28, 32))
  expect_equal(as.character(chosen), c("linear", "linear", "default", "default", "default", "linear"))
})

test_that("a barrier that is better at one process count alone is no rule", {
  rows <- lawful(c(default = 1, linear = 1.05, chain = 1.3))
  rows <- rows[rows$collective == "barrier", ]
  set.seed(5)
  rows$latency_us <- rows$latency_us * exp(rnorm(nrow(rows), 0, 0.01))
  odd <- rows$algorithm == "linear" & rows$processes == 12
  rows$latency_us[odd] <- rows$latency_us[odd] * 0.85
  expect_equal(unique(decide_tuning(with_rows(rows), "barrier")$algorithm), "default")
})

test_that("process counts that were measured at other sizes are compared between them", {
  rows <- lawful(c(default = 1.3, linear = 1), counts = c(8, 16, 24), sizes = 2^(0:10))
  rows <- rows[rows$collective == "bcast" & !(rows$processes == 16 & log2(rows$size_bytes) %% 2 == 1), ]
  found <- decide_tuning(with_rows(rows), "bcast")
  expect_equal(unique(found$algorithm), "linear")
  expect_equal(sum(found$processes == 16), 11)
})

test_that("decisions of a whole study cover every count of the range and both collectives", {
  found <- decide_all(with_rows(lawful(c(default = 1.3, linear = 1, chain = 1.1), counts = c(2, 4, 8))))
  expect_setequal(unique(found$collective), c("bcast", "barrier"))
  expect_equal(sort(unique(found$processes)), 2:8)
  expect_equal(unique(found$basis[found$processes == 5]), "interpolated")
})

test_that("a barrier is decided between counts at which the gain is clear, but not at powers of two", {
  counts <- seq(9, 31, 2)
  decided <- function(...) {
    rows <- lawful(c(default = 1.5, linear = 1), counts = counts)
    barrier <- rows[rows$size_bytes == 1 & rows$collective == "bcast", ]
    found <- decide_tuning(with_rows(dplyr::mutate(barrier, collective = "barrier", size_bytes = NA, ...)), "barrier",
      at = 8:32
    )
    found$processes[found$algorithm == "linear"]
  }
  # Neither at 16, nor beyond the measured counts.
  expect_equal(decided(), setdiff(9:31, 16))
  # At 17 linear is slower, so that nothing is known of 18.
  slower_at_17 <- decided(latency_us = latency_us * ifelse(algorithm == "linear" & processes == 17, 1.6, 1))
  expect_equal(slower_at_17, setdiff(9:31, 16:18))
})

test_that("a message of 0 B is another size than one of 1 B", {
  rows <- toy_rows("bcast", rep(c("default", "linear"), each = 4), 4, rep(c(0, 1, 2, 4), 2), c(1, 5, 9, 9, 1, 5, 9, 9))
  grid <- tuning_grid(read_results(make_study(rows[-6, ]))$medians)
  expect_silent(filled <- fill_sizes(grid$raw, grid$sizes))
  # Half way between 0 B and 2 B.
  expect_equal(exp(filled["linear", 1, 2]), 3)
  expect_silent(decide_all(read_results(make_study(toy_rows("latency", "default", 2, 1, 1)))))
})
