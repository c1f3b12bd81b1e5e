test_that("the values of a group are those of its elements, each once", {
  expect_equal(all_of_group(c("int", "int;double", "", NA, "byte"), c(1, 1, 2, 3, 4)), c("int;double", NA, NA, "byte"))
  expect_equal(all_of_group(character(), integer()), character())
})

test_that("values have their bytes as order, and many are counted", {
  expect_equal(most_first(c("int", "int;double", "double", NA), c(1, 1, 5, 9)), "double, int")
  expect_equal(most_first(letters[1:4], 4:1), "a, b, c, d")
  expect_equal(most_first(letters[1:6], 6:1), "a, b, c, 3 others")
  expect_equal(most_first(c(NA_character_, NA), 1:2), NA_character_)
})

# Two ranks: each call at a time of its own, on MPI_COMM_WORLD.
typed_application <- function(calls, folder = tempfile("trace")) {
  calls <- dplyr::mutate(calls, start_us = 10 * dplyr::row_number(), end_us = .data$start_us + 5)
  calls <- dplyr::bind_rows(dplyr::mutate(calls, rank = 0), dplyr::mutate(calls, rank = 1))
  calls <- dplyr::mutate(
    calls, cpu_us = 0, compute_us = 0, communicator = 0, root = -1, to = -1, from = -1,
    received_bytes = .data$sent_bytes
  )
  dir.create(folder)
  readr::write_csv(calls, file.path(folder, "calls.csv.gz"), na = "")
  about <- list(trace = list(
    ranks = 2, calls = nrow(calls), seconds = 1e-3, complete = TRUE, communicators = list(list(0, 1))
  ))
  jsonlite::write_json(about, file.path(folder, "about.json"), auto_unbox = TRUE)
  list(label = "One", trace = read_trace(folder))
}

test_that("what the benchmark does not measure with is said, of measured collectives only", {
  calls <- tibble::tribble(
    ~operation, ~sent_bytes, ~datatypes, ~reduction,
    "allreduce", 8, "int", "max",
    "allreduce", 64, "double", "sum",
    "allreduce", 99, "char", "sum",
    "reduce", 8, "derived (16 B)", "user (not commutative)",
    "bcast", 8, "derived with gaps (32 B);double", NA,
    "gather", 8, "derived with gaps (32 B)", NA,
    "barrier", 0, NA, NA
  )
  said <- describe_datatypes(typed_application(calls), c("allreduce", "bcast", "barrier"))
  expect_equal(said, c(
    paste(
      "Reductions were measured with the sum of char; One uses the sum of double and the max of int in allreduce,",
      "whose arithmetic takes another time."
    ),
    paste(
      "Data were measured as contiguous; One has derived types with gaps in broadcast, which also takes the time to",
      "copy them."
    )
  ))
  expect_match(
    describe_datatypes(typed_application(calls), "reduce"),
    "uses a user-defined operation \\(not commutative\\) on derived \\(16 B\\) in reduce,"
  )
  expect_length(describe_datatypes(typed_application(calls[3, ]), "allreduce"), 0)
  # A trace of an earlier version does not tell.
  expect_length(describe_datatypes(typed_application(dplyr::select(calls, 1:2)), c("allreduce", "bcast")), 0)
})

test_that("the account has the datatypes of its collectives", {
  calls <- tibble::tribble(
    ~operation, ~sent_bytes, ~datatypes, ~reduction,
    "allreduce", 64, "double", "sum",
    "allreduce", 80, "int", "max",
    "barrier", 0, NA, NA
  )
  account <- account_of(typed_application(calls)$trace)
  expect_equal(account$datatypes[account$operation == "allreduce"], "int, double")
  expect_equal(account$reduction[account$operation == "allreduce"], "max, sum")
  earlier <- account_of(typed_application(dplyr::select(calls, 1:2))$trace)
  expect_equal(dplyr::select(earlier, !all_of(text_columns)), dplyr::select(account, !all_of(text_columns)))
  expect_true(all(is.na(earlier$datatypes)))
})
