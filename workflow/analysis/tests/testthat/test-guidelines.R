# Made-up cells of four ranks: each collective takes the given time for 1, 4 and 16 bytes.
cells_of <- function(times, sizes = c(1, 4, 16), statistic = "slowest_rank_mean", machine = "a", study = "s", ...) {
  purrr::imap_dfr(times, function(us, collective) {
    toy_rows(collective, "default", 4, sizes, us, statistic = statistic, machine = machine, simulated = FALSE, ...) |>
      dplyr::mutate(study = study, nodes = 2)
  })
}

judged <- function(...) {
  file <- tempfile(fileext = ".csv")
  readr::write_csv(dplyr::bind_rows(...), file, na = "")
  judge_guidelines(list(rows = read_rows(file)))
}

of <- function(found, guideline) found[found$guideline == guideline, ]

test_that("an allreduce that is slower than reduce and broadcast is found, by how much", {
  found <- judged(cells_of(list(allreduce = c(5, 10, 30), reduce = c(2, 4, 10), bcast = c(3, 4, 10))))
  found <- of(found, "allreduce <= reduce + bcast")
  expect_equal(found$bound_us, c(5, 8, 20))
  expect_equal(found$ratio, c(1, 1.25, 1.5))
  line <- summarise_guidelines(found)
  expect_equal(line$cells, 3)
  expect_equal(line$violated_pct, 200 / 3)
  expect_equal(line$slowdown_pct, 100 * (sqrt(1.25 * 1.5) - 1))
  expect_equal(c(line$worst_pct, line$worst_processes, line$worst_size_bytes), c(50, 4, 16))
})

test_that("sizes of parts are those of the benchmark: of one rank, or of the whole vector", {
  found <- judged(cells_of(list(
    allgather = c(1, 2, 3), gather = c(10, 20, 30), bcast = c(100, 200, 300), scatter = c(1000, 2000, 3000)
  )))
  # 1 byte of each of four ranks is a broadcast of 4 bytes; of 16 bytes one of 64 would be needed.
  expect_equal(of(found, "allgather <= gather + bcast")$size_bytes, c(1, 4))
  expect_equal(of(found, "allgather <= gather + bcast")$bound_us, c(10 + 200, 20 + 300))
  # A broadcast of 16 bytes is a scatter and an allgather of 4 each; that of 1 byte has parts of 1 byte.
  expect_equal(of(found, "bcast <= scatter + allgather")$bound_us, c(1000 + 1, 1000 + 1, 2000 + 2))
  expect_equal(of(found, "scatter <= bcast")$bound_us, c(200, 300))
})

test_that("a size that the ranks divide evenly has a part of exactly that size", {
  # In floating point, 525 times 1 / 75 is above 7.
  rows <- dplyr::mutate(dplyr::bind_rows(
    cells_of(list(bcast = 9), sizes = 525), cells_of(list(scatter = 1, allgather = 2), sizes = 7)
  ), processes = 75)
  expect_equal(of(judged(rows), "bcast <= scatter + allgather")$bound_us, 3)
})

test_that("a part may be padded to the next measured size, up to twice", {
  rows <- dplyr::bind_rows(
    cells_of(list(gather = c(1, 1, 1)), sizes = c(3, 6, 40)),
    cells_of(list(allgather = c(5, 7, 9)), sizes = c(4, 8, 100))
  )
  found <- of(judged(rows), "gather <= allgather")
  expect_equal(found$size_bytes, c(3, 6))
  expect_equal(found$bound_us, c(5, 7))
})

test_that("nothing is claimed where parts were not measured in the same study, mapping, nodes, ranks or library", {
  whole <- cells_of(list(allreduce = c(100, 100, 100), reduce = c(1, 1, 1)))
  bcast <- cells_of(list(bcast = c(1, 1, 1)))
  name <- "allreduce <= reduce + bcast"
  expect_equal(nrow(of(judged(whole, bcast), name)), 3)
  expect_equal(nrow(of(judged(whole), name)), 0)
  expect_equal(nrow(of(judged(whole, dplyr::mutate(bcast, study = "other")), name)), 0)
  expect_equal(nrow(of(judged(whole, dplyr::mutate(bcast, machine = "b")), name)), 0)
  expect_equal(nrow(of(judged(whole, dplyr::mutate(bcast, mapping = "node")), name)), 0)
  expect_equal(nrow(of(judged(whole, dplyr::mutate(bcast, processes = 8)), name)), 0)
  expect_equal(nrow(of(judged(whole, dplyr::mutate(bcast, nodes = 1)), name)), 0)
  expect_equal(nrow(of(judged(whole, dplyr::mutate(bcast, mpi = "mpich")), name)), 0)
  # Another author of the same imported study.
  sourced <- function(rows, source) dplyr::mutate(rows, source = source)
  expect_equal(nrow(of(judged(sourced(whole, "x"), sourced(bcast, "y")), name)), 0)
  # An algorithm that was forced is not the library's.
  expect_equal(nrow(of(judged(whole, dplyr::mutate(bcast, algorithm = "linear")), name)), 0)
})

test_that("means over ranks are no time of a composition, but the slowest rank beside them is", {
  times <- list(allreduce = c(5, 10, 30), reduce = c(2, 4, 10), bcast = c(3, 4, 10))
  rows <- cells_of(times, statistic = "mean_over_ranks")
  expect_equal(nrow(of(judged(rows), "allreduce <= reduce + bcast")), 0)
  rows$max_latency_us <- 2 * rows$latency_us
  found <- of(judged(rows), "allreduce <= reduce + bcast")
  expect_equal(found$latency_us, c(10, 20, 60))
  expect_equal(found$ratio, c(1, 1.25, 1.5))
})

test_that("a smaller message that is slower than a larger one is found", {
  found <- of(judged(cells_of(list(bcast = c(2, 8, 4)))), "no larger message is faster")
  expect_equal(found$size_bytes, c(1, 4))
  expect_equal(found$ratio, c(0.5, 2))
  line <- summarise_guidelines(found)
  expect_equal(c(line$violated_pct, line$slowdown_pct, line$worst_size_bytes), c(50, 100, 4))
})

test_that("where nothing is violated there is no worst cell", {
  line <- summarise_guidelines(judged(cells_of(list(bcast = c(1, 2, 3)))))
  expect_equal(line$violated_pct, 0)
  expect_true(all(is.na(c(line$slowdown_pct, line$worst_pct, line$worst_size_bytes))))
})

test_that("sentences and the table name violations, and guidelines that no study could judge are named", {
  rows <- cells_of(list(allreduce = c(5, 10, 30), reduce = c(2, 4, 10), bcast = c(3, 4, 10)))
  told <- describe_guidelines(list(rows = dplyr::mutate(rows, source = NA, flag = NA)))
  violated <- "A, allreduce: the default violates the guideline .*reduce \\+ bcast. in 2 of 3 cells \\(67 %\\);"
  expect_match(told, violated, all = FALSE)
  expect_match(told, "could not be judged on any machine.*allgather <= gather \\+ bcast", all = FALSE)
  expect_no_match(told, "Not judged.*allreduce <= reduce \\+ bcast")
  table <- tables_guidelines(list(rows = dplyr::mutate(rows, source = NA, flag = NA)))[[1]]
  expect_equal(table$id, "guidelines-violations")
  expect_equal(table$data$violated_pct[table$data$guideline == "allreduce <= reduce + bcast"], 200 / 3)
})

test_that("of a single violation no mean is given", {
  rows <- dplyr::mutate(cells_of(list(bcast = c(2, 8, 4))), source = NA, flag = NA)
  expect_match(
    describe_guidelines(list(rows = rows)), "in 1 of 2 cells \\(50 %\\); there it is 100 % slower than allowed\\.$",
    all = FALSE
  )
})
