# A replay in a folder as docs/files.md describes it: two ranks, and allreduces of 8 bytes on both of them.
write_replay <- function(root, name, starts, ends) {
  folder <- file.path(root, "replays", name)
  dir.create(folder, recursive = TRUE)
  about <- list(failure = "", makespan_us = max(ends), calls = length(starts))
  jsonlite::write_json(about, file.path(folder, "about.json"), auto_unbox = TRUE)
  calls <- tibble::tibble(
    rank = rep(0:1, each = length(starts) / 2), operation = "allreduce", start_us = starts, end_us = ends,
    communicator = 0, ranks = 2, sent_bytes = 8, received_bytes = 8
  )
  readr::write_csv(calls, file.path(folder, "calls.csv.gz"))
  spent <- tapply(ends - starts, calls$rank, sum)
  ranks <- tibble::tibble(
    rank = 0:1, compute_us = 0, point_to_point_us = 5, collectives_us = as.numeric(spent), end_us = max(ends)
  )
  readr::write_csv(ranks, file.path(folder, "ranks.csv"))
}

# The second rank comes 100 us late to the first of two calls. The decisions save a quarter of 8 us.
gained <- function(decided_us = 6, cells = TRUE, nodes = c(0, 0)) {
  root <- withr::local_tempdir(.local_envir = parent.frame())
  starts <- c(0, 200, 100, 200)
  write_replay(root, "before", starts, c(108, 208, 108, 208))
  write_replay(root, "after", starts, c(100 + decided_us, 200 + decided_us, 100 + decided_us, 200 + decided_us))
  dir.create(file.path(root, "study"))
  dir.create(file.path(root, "cells", "tuning"), recursive = TRUE)
  if (cells) {
    readr::write_csv(
      tibble::tibble(
        collective = "allreduce", mapping = "core", nodes = rep(1:2, each = 2), allocated = .data$nodes + 1,
        processes = 2, size_bytes = c(8, 16, 8, 16), algorithm = rep(c("ring", "default"), each = 2), parameters = "",
        default_us = 4, expected_us = 3.9
      ),
      file.path(root, "cells", "tuning", "decisions.csv")
    )
    # The slowest rank counts, not the mean over the ranks, and only launches in which the algorithm ran.
    readr::write_csv(
      tidyr::expand_grid(
        collective = "allreduce", mapping = "core", nodes = 2:3, processes = 2, size_bytes = c(8, 16), parameters = "",
        algorithm = c("default", "ring"), launch = 1:2, proved = c(TRUE, FALSE)
      ) |> dplyr::mutate(
        latency_us = 4,
        max_latency_us = ifelse(.data$proved, ifelse(.data$algorithm == "ring" & .data$nodes == 2, 6, 8), 80)
      ),
      file.path(root, "cells", "measurements.csv")
    )
  }
  # The ring is decided for both sizes, on one node.
  rules <- lapply(if (cells) c("ring", "default"), function(algorithm) {
    list(
      operation = "allreduce", nodes = 2 - (algorithm == "ring"), per_node = 2 - (algorithm != "ring"), ranks = 2,
      from_bytes = 0, algorithm = algorithm, parameters = ""
    )
  })
  study <- list(
    folder = file.path(root, "study"), how = list(oversubscribed = TRUE),
    replay = list(
      decisions = "cells", mapping = "core", machines = list("small"), ranks = 2, nodes = as.list(nodes), rules = rules
    )
  )
  entries <- lapply(c(default = "before", decided = "after"), function(name) {
    list(timed = read_timed_replay(file.path(root, "replays", name), study$replay$nodes), machine = "small")
  })
  entries <- Map(function(entry, label) c(entry, label = label), entries, names(entries))
  list(study = study, applications = list(one = list(name = "one", label = "One", replays = unname(entries))))
}

test_that("a program without collectives has nothing to gain", {
  gained <- gained()
  for (name in c("before", "after")) {
    path <- file.path(dirname(gained$study$folder), "replays", name, "calls.csv.gz")
    calls <- readr::read_csv(path, show_col_types = FALSE)
    readr::write_csv(dplyr::mutate(calls, operation = "send", communicator = -1), path)
    # No communicator of several ranks.
    at <- match(name, c("before", "after"))
    gained$applications$one$replays[[at]]$timed <- read_timed_replay(dirname(path), gained$study$replay$nodes)
  }
  cells <- collanalysis:::gain_cells(gained$applications$one, collanalysis:::read_decided(gained$study))
  expect_equal(nrow(cells), 0)
})

test_that("waiting for a late rank is no gain, and what the cells say is predicted", {
  gain <- summarise_gain(gained())
  # Two calls of 8 us after the last arrival.
  expect_equal(gain$default_us, 16)
  expect_equal(gain$collectives_us, (108 + 8 + 8 + 8) / 2)
  expect_equal(gain$waiting_pct, 100 * 100 / 132)
  expect_equal(gain$replayed_pct, 25)
  expect_equal(gain$predicted_pct, 25)
  expect_equal(gain$off_pct, 0)
  # Of all time in MPI, 5 us of them point to point.
  expect_equal(gain$in_mpi_pct, 100 * 4 / (66 + 5))
  expect_equal(gain$makespan_pct, 100 * 2 / 208)
})

test_that("the sentences give both gains, and how many agree", {
  text <- describe_gain(gained())
  expect_match(text[1], "One on 2 ranks of small (simulated) spends 16", fixed = TRUE)
  expect_match(text[1], "it spends 25 % less (predicted from the cells: 25 % less)", fixed = TRUE)
  expect_match(text[2], "Prediction and replay agree within a third[.]")
  expect_match(describe_gain(gained(decided_us = 2))[2], "Prediction and replay do not agree within a third[.]")
  # Slower with the decisions.
  expect_match(describe_gain(gained(decided_us = 12))[1], "it spends 50 % more")
  # The largest saving comes first.
  both <- gained()
  slower <- gained(decided_us = 12)$applications$one
  both$applications <- list(slower = utils::modifyList(slower, list(label = "Slower")), one = both$applications$one)
  expect_match(describe_gain(both)[1:2], "^(One|Slower) on 2 ranks")
  expect_match(describe_gain(both)[1], "^One on 2 ranks")
})

test_that("of several traces the median and the range are given", {
  results <- gained()
  results$applications$one$further <- lapply(c(12, 7), function(decided_us) {
    list(replays = gained(decided_us = decided_us)$applications$one$replays)
  })
  gain <- summarise_gain(results)
  expect_equal(gain$traces, 3)
  expect_equal(c(gain$replayed_low_pct, gain$replayed_pct, gain$replayed_high_pct), c(-50, 12.5, 25))
  range <- "it spends 12 % less (median of 3 traces, 50 % more to 25 % less;"
  expect_match(describe_gain(results)[1], range, fixed = TRUE)
  expect_match(describe_gain(results)[2], "(medians over the traces) do not agree", fixed = TRUE)
  expect_match(describe_gain(results)[3], "The prediction for One is within the range of the replays.", fixed = TRUE)
  expect_equal(changed_between(1.2, 4.1), "1.2 to 4.1 % less")
  expect_equal(changed_between(-14, -3.21), "3.2 to 14 % more")
  expect_equal(changed_between(0.172, 0.241), "0.2 % less in each")
  shown <- plot_gain(gain)$data
  expect_equal(shown$low[shown$kind == "replayed"], -50)
  expect_equal(shown$low[shown$kind != "replayed"], NA_real_)
  caption <- tables_of_gain(results)[[1]]$caption
  expect_match(caption, "medians over the traces")
  expect_match(caption, "Waiting: share of the time in collectives.*In MPI and makespan: share .* save\\. Off: ")
})

test_that("cells are there before anything is decided", {
  results <- gained(cells = FALSE)
  results$applications$one$replays <- results$applications$one$replays[1]
  expect_match(describe_gain(results), "because there are no decisions yet for the cells of the applications")
  cells <- tables_of_gain(results)[[1]]$data
  expect_equal(cells[c("operation", "ranks", "size_bytes", "operations")], tibble::tibble(
    operation = "allreduce", ranks = 2L, size_bytes = 8, operations = 2L
  ))
  expect_true(is.na(cells$decided_us))
})

test_that("the decision is that for as many nodes as the communicator has", {
  # Two ranks on one node keep the time of the ring, and on two nodes that of the default.
  expect_equal(summarise_gain(gained(nodes = c(0, 1)))$predicted_pct, 0)
  expect_equal(summarise_gain(gained(nodes = c(1, 1)))$predicted_pct, 25)
})

test_that("operations without a measured cell keep their time", {
  results <- gained()
  results$study$replay$mapping <- "node"
  expect_equal(summarise_gain(results)$predicted_pct, 0)
})

# The rules of one collective on two nodes with two ranks each, and the latencies of their algorithms.
ruled <- function(from_bytes, slowest_us, default_us = 10, fastest_us = 0, operation = "alltoall") {
  cells <- tibble::tibble(size_bytes = c(8, 32), fastest_us, default_us)
  measured <- lapply(slowest_us, function(us) if (!anyNA(us)) dplyr::mutate(cells, slowest_us = us))
  tibble::tibble(operation, nodes = 2, per_node = 2, from_bytes, measured)
}

called <- function(ranks, nodes, size_bytes, operation = "alltoall", took_us = 1) {
  tibble::tibble(operation, ranks, nodes, size_bytes, start_us = 20, end_us = 20 + took_us)
}

test_that("the prediction is for the rules that the replay uses, at the size of each operation", {
  decided <- ruled(c(4, 24, 64), list(c(5, 2), c(4, 8), NA))
  kept <- function(ranks, nodes, size_bytes) {
    predict_operations(called(ranks, nodes, size_bytes), decided)$predicted_us
  }
  # Halfway between 8 and 32 on the logarithmic scale is 16; outside of them, the nearest size counts.
  sizes <- c(0, 4, 8, 16, 24, 32, 63, 64)
  expect_equal(kept(4, 2, sizes), c(1, 0.5, 0.5, sqrt(0.1), 0.4 * 2^(log2(3) / 2), 0.8, 0.8, 1))
  # Three ranks on two nodes have as many ranks per node as four.
  expect_equal(kept(c(3, 2, 5), 2, 8), c(0.5, 1, 1))
  # A barrier has no sizes.
  barrier <- ruled(0, 9, operation = "barrier")
  barrier$measured[[1]] <- dplyr::mutate(barrier$measured[[1]][1, ], size_bytes = 0)
  expect_equal(predict_operations(called(4, 2, 0, "barrier"), barrier)$predicted_us, 0.9)
})

test_that("a rooted operation saves the time of its cell, as far as it takes longer than the fastest rank", {
  predicted <- function(took_us, slowest_us) {
    decided <- ruled(0, slowest_us, fastest_us = 2, operation = "bcast")
    predict_operations(called(4, 2, 8, "bcast", took_us), decided)$predicted_us
  }
  expect_equal(predicted(c(10, 8, 5, 2, 1), 6), c(6, 4, 2, 2, 1))
  # Slower with the decision.
  expect_equal(predicted(c(10, 1), 12), c(12, 3))
})
