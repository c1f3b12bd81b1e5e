# Three ranks. World: rank 1 is 30 us late at an allreduce that ends 10 us after it; a barrier without a late rank. The
# communicator of ranks 0 and 1: a broadcast whose root leaves before the other rank arrives.
account_trace <- function(complete = TRUE, folder = tempfile("trace")) {
  row <- function(rank, operation, start_us, end_us, communicator = 0, bytes = 8) {
    tibble::tibble(rank, operation, start_us, end_us, communicator, bytes)
  }
  calls <- dplyr::bind_rows(
    row(0, "init", 0, 0), row(0, "allreduce", 0, 40), row(0, "ibcast", 41, 42), row(0, "barrier", 100, 105, bytes = 0),
    row(0, "bcast", 200, 205, 1, 4096), row(0, "allreduce", 300, 400, 2),
    row(0, "barrier", 401, 402, -1, bytes = 0),
    row(1, "init", 0, 0), row(1, "allreduce", 30, 40), row(1, "ibcast", 41, 42), row(1, "barrier", 100, 105, bytes = 0),
    row(1, "bcast", 220, 240, 1, 4096),
    row(2, "init", 0, 0), row(2, "allreduce", 10, 38), row(2, "ibcast", 41, 42), row(2, "barrier", 100, 105, bytes = 0)
  ) |> dplyr::mutate(
    cpu_us = 0, compute_us = 0, root = -1, to = -1, from = -1, sent_bytes = .data$bytes, received_bytes = .data$bytes
  )
  dir.create(folder)
  readr::write_csv(dplyr::select(calls, !"bytes"), file.path(folder, "calls.csv.gz"), na = "")
  about <- list(failure = "", trace = list(
    ranks = 3, calls = nrow(calls), seconds = 1e-3, complete = complete,
    communicators = list(list(0, 1, 2), list(0, 1), list(0))
  ))
  jsonlite::write_json(about, file.path(folder, "about.json"), auto_unbox = TRUE)
  read_trace(folder)
}

test_that("waiting ends when the last rank arrives, and transfer is what follows", {
  account <- account_of(account_trace())
  expect_equal(account$operation, c("bcast", "allreduce", "barrier"))
  # Communicators of one rank and non-blocking collectives are left out.
  expect_equal(account$ranks, c(2, 3, 3))
  expect_equal(account$size_bytes, c(4096, 8, 0))
  expect_equal(account$operations, c(1, 1, 1))
  expect_equal(account$gain_pct, c(2, 1, 0.5))
  # Sums over ranks of 3 x 1000 us: allreduce waits 30 and 20 us and then takes 10 + 10 + 8.
  expect_equal(account$waiting_pct, 100 * c(5, 50, 0) / 3000)
  expect_equal(account$transfer_pct, 100 * c(20, 28, 15) / 3000)
  expect_equal(most_gain_pct(account_trace()), 3.5)
  expect_equal(account$spread_us, c(20, 30, 0))
  expect_equal(account$transfer_us, c(20, 10, 5))
  expect_equal(account$typical_bytes, c(4096, 8, 0))
})

test_that("the nodes of communicators are told, and most of the time decides which of them are measured", {
  members <- list(list(0, 1, 2, 3), list(0, 2), list(1, 3), list(2, 3))
  placed <- placed_communicators(members, c(0, 0, 1, 1))
  expect_equal(placed$shape, c("2 x 2", "2 x 1", "2 x 1", "1 x 2"))
  expect_equal(placed$node_of_rank, c("0*2 1*2", "0*1 1*1", "0*1 1*1", "0*2"))
  uneven <- placed_communicators(list(list(2, 1, 0)), c(5, 5, 4))
  expect_equal(c(uneven$shape, uneven$node_of_rank), c("2 x 1-2", "0*1 1*2"))
  operations <- tibble::tibble(
    communicator = 1:3, ranks = 2, operation = "bcast", size_bytes = c(8, 8, 1024), start_us = 0, end_us = c(2, 3, 6),
    time_us = end_us, waiting_us = 0, spread_us = 0, site = NA
  )
  account <- function(node_of) {
    placed <- placed_communicators(members, node_of)
    account_rows(dplyr::left_join(operations, placed, "communicator"), 4, 100)
  }
  rows <- account(c(0, 0, 1, 1))
  expect_equal(rows$placements, c("1 x 2", "2 x 1"))
  expect_equal(rows$node_of_rank, c("0*2", "0*2"))
  unknown <- account(NULL)
  expect_equal(unknown$placements, c("", ""))
  expect_equal(unknown$node_of_rank, c(NA_character_, NA_character_))
})

test_that("communicators of each number of ranks have nodes of their own", {
  members <- list(list(0, 1, 2, 3), list(0, 1), list(2, 3))
  operations <- tibble::tibble(
    communicator = 0:2, ranks = c(4, 2, 2), operation = "bcast", size_bytes = 8, start_us = 0, end_us = c(9, 2, 2),
    time_us = end_us, waiting_us = 0, spread_us = 0, site = NA
  )
  placed <- placed_communicators(members, c(0, 0, 1, 1))
  rows <- account_rows(dplyr::left_join(operations, placed, "communicator"), 4, 100)
  expect_equal(rows$ranks, c(4, 2))
  expect_equal(rows$node_of_rank, c("0*2 1*2", "0*2"))
})

test_that("the spread of arrivals is that of the program, not that of the returns before", {
  calls <- tibble::tibble(
    rank = c(0, 0, 1, 1), operation = "alltoall", communicator = 0, ranks = 2, size_bytes = 8,
    start_us = c(0, 20, 0, 45), end_us = c(10, 50, 30, 50)
  )
  expect_equal(collective_operations(calls)$spread_us, c(0, 5))
})

test_that("the spreads are those of the call sites, most operations first", {
  calls <- tibble::tibble(
    rank = rep(0:1, each = 4), operation = "allreduce", communicator = 0, ranks = 2, size_bytes = 8,
    start_us = c(0, 100, 200, 300, 0, 101, 202, 343), end_us = c(10, 110, 210, 310, 10, 111, 212, 343),
    site = rep(c(1L, 0L, 1L, 2L), 2)
  )
  operations <- collective_operations(calls)
  expect_equal(operations$site, c(1, 0, 1, 2))
  placed <- dplyr::mutate(operations, shape = NA, node_of_rank = NA)
  expect_equal(account_rows(placed, 2, 400)$spreads, "2*0.5 1*1 1*41")
  expect_equal(account_rows(dplyr::mutate(placed, site = NA), 2, 400)$spreads, "4*1")
})

test_that("the call sites with most time are named", {
  trace <- account_trace()
  expect_equal(nrow(account_sites(trace)), 0)
  trace$calls$site <- ifelse(trace$calls$operation == "allreduce", 1L, 0L)
  trace$about$trace$sites <- list("solver+0x10", "step(int, double), step.cpp:12")
  found <- account_sites(trace)
  expect_equal(found$called_in[1:2], c("step(int, double), step.cpp:12", "solver+0x10"))
  account <- account_of(trace)
  expect_equal(sum(found$time_pct), sum(account$time_pct))
  expect_equal(found$spread_us[found$operation == "allreduce"], 30)
})

test_that("the collectives of a replay have the call sites of the traced rank, in its order", {
  calls <- tibble::tibble(
    rank = c(0, 0, 0, 1, 1), operation = c("barrier", "send", "bcast", "barrier", "bcast"), site = c(0L, NA, 1L, 0L, 2L)
  )
  trace <- list(about = list(trace = list(ranks = 2)), calls = calls)
  expect_equal(replayed_sites(c(0, 1, 2, 3, 0, 1, 2, 3), trace), c(0, 0, 0, 0, 1, 2, 1, 2))
  expect_equal(replayed_sites(c(0, 0, 1), trace), c(0, 1, NA))
  expect_equal(replayed_sites(c(0, 0, 1), NULL), rep(NA_integer_, 3))
})

test_that("the typical size is the smallest up to which half of the time is spent", {
  expect_equal(weighted_median(c(300, 100, 200), c(1, 1, 1)), 200)
  expect_equal(weighted_median(c(300, 100, 200), c(5, 1, 1)), 300)
  expect_equal(weighted_median(c(1, 2), c(1, 1)), 1)
})

test_that("the cells of a program are worth measuring from a gain on that the study sets", {
  worth <- function(percent) {
    root <- withr::local_tempdir()
    dir.create(file.path(root, "study", "sampling"), recursive = TRUE)
    account_trace(folder = file.path(root, "trace"))
    about <- list(trace = "trace", digest = "a", worth_pct = percent)
    jsonlite::write_json(about, file.path(root, "study", "program.json"), auto_unbox = TRUE)
    nrow(utils::read.csv(write_account(file.path(root, "study"))))
  }
  expect_equal(worth(3.4), 3)
  expect_equal(worth(3.6), 0)
})

test_that("operations at the same time are counted once", {
  expect_equal(covered(c(0, 5, 20), c(10, 12, 21)), 13)
  expect_equal(covered(c(0, 2), c(10, 4)), 10)
  expect_equal(covered(numeric(), numeric()), 0)
})

results_of <- function(trace, oversubscribed = FALSE) {
  list(
    study = list(provenance = list(oversubscribed = oversubscribed)),
    applications = list(one = list(name = "one", label = "One", ranks = 3, trace = trace))
  )
}

test_that("the account says what is to be gained, or that there is nothing", {
  said <- describe_accounts(results_of(account_trace()))
  expect_match(said, "One on 3 ranks spends 3.9 % of its run time in blocking collectives, 1.8 % waiting .* 2.1 % in")
  expect_match(said, "at most 3.5 % of the run time, most of it \\(2.0 %\\) in broadcast of 4 KiB to 8 KiB on 2")
  long <- account_trace()
  long$about$trace$seconds <- 1
  expect_match(describe_accounts(results_of(long)), "hardly any time in blocking collectives: .* at most 0.0 %")
  expect_match(describe_accounts(results_of(long)), "Its non-blocking collectives \\(ibcast\\) are not judged")
  listed <- tables_of_accounts(results_of(account_trace()))
  expect_length(listed, 1)
  expect_match(listed[[1]]$caption, "Message size: the lower end of its class (0, 1, 2, 4, ... B).", fixed = TRUE)
  expect_s3_class(ggplot2::ggplot_build(figures_of_accounts(results_of(account_trace()))[[1]]$plot), "ggplot_built")
})

test_that("a program's own limit decides whether tuning is worthwhile", {
  results <- results_of(account_trace())
  results$study$program <- list(worth_pct = 4)
  expect_match(describe_accounts(results), "would save at most 3.5 % of its run time, so tuning is not worthwhile")
  results$applications$one$trace$about$trace$seconds <- 1
  results$study$program$worth_pct <- 0
  expect_match(describe_accounts(results), "of its run time in blocking collectives")
})

test_that("there is no account of a partial trace or of ranks that shared cores", {
  expect_length(describe_accounts(results_of(account_trace(complete = FALSE))), 0)
  expect_length(tables_of_accounts(results_of(account_trace(complete = FALSE))), 0)
  expect_length(describe_accounts(results_of(account_trace(), oversubscribed = TRUE)), 0)
  expect_length(figures_of_accounts(results_of(account_trace(), oversubscribed = TRUE)), 0)
})

test_that("a study whose traces are not replayed has tables, figures and an answer", {
  results <- results_of(account_trace())
  results$study$applications <- list(list(name = "one", label = "One"))
  expect_equal(sapply(tables_of_applications(results), function(t) t$id), c(
    "applications-traces", "applications-operations", "account-cells"
  ))
  expect_true("account-cells" %in% sapply(figures_of_applications(results), function(f) f$id))
  expect_match(describe_answer(results), "One on 3 ranks spends")
  expect_true("account" %in% sentences_of_applications(results)$section)
})

test_that("a program whose ranks wait in collectives is not said to spend hardly any time there", {
  trace <- account_trace()
  trace$calls <- dplyr::filter(trace$calls, .data$operation == "allreduce", .data$communicator == 0)
  trace$calls$start_us <- c(0, 900, 0)
  trace$calls$end_us <- 905
  said <- describe_accounts(results_of(trace))
  expect_match(said, "spends 60 % of its run time in blocking collectives, 60 % waiting for the last rank to arrive: ")
  expect_match(said, "would save at most 0.5 % of its run time, so tuning is not worthwhile")
})

test_that("shares of calls that several threads made at the same time are not said to be of one", {
  trace <- account_trace()
  trace$about$trace$threads <- TRUE
  for (seconds in c(1e-3, 1)) {
    trace$about$trace$seconds <- seconds
    expect_match(describe_accounts(results_of(trace)), "Several threads .* made these calls, .* than 100 %\\.")
  }
})

test_that("collectives that a trace lacks are named", {
  trace <- account_trace()
  trace$about$trace$unrecorded <- list("MPI_Iscan", "MPI_Neighbor_alltoall")
  for (seconds in c(1e-3, 1)) {
    trace$about$trace$seconds <- seconds
    expect_match(
      describe_accounts(results_of(trace)),
      "Not judged, because they are not recorded: MPI_Iscan, MPI_Neighbor_alltoall[.]"
    )
  }
})

test_that("less than half of the gain is not most of it", {
  trace <- account_trace()
  trace$calls$end_us[trace$calls$operation == "barrier" & trace$calls$communicator == 0] <- 112
  expect_match(
    describe_accounts(results_of(trace)), "at most 4.2 % of the run time, the largest part of it \\(2.0 %\\) in"
  )
})
