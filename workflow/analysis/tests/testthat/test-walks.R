# What is worked out for many trees, counts or ranks at once is what each alone gives.
flat <- launched_study(
  list(list(name = "node", count = 2), list(name = "core", count = 8)),
  list(bcast = c("linear", "binomial", "chain", "pipeline:segment_bytes=10000"), reduce = c("linear", "binary")),
  c(2, 3, 4, 8, 9, 13, 16)
)
counts <- c(2, 3, 4, 8, 9, 13, 16)
costs <- list(
  source = "ladder", latency = c(node = 2, core = 0.5), gap_byte = c(node = 1e-3, core = 1e-4), overhead = 0.1,
  eager = 1024, combine_byte = 1e-5
)
sizes <- c(1, 1000, 1025, 1e5)

test_that("trees that are walked together take what each of them takes alone", {
  for (form in c("hockney", "loggp", "shared")) {
    for (case in list(
      c("bcast", "linear"), c("bcast", "binomial"), c("bcast", "chain"), c("bcast", "pipeline:segment_bytes=10000"),
      c("reduce", "linear"), c("reduce", "binary")
    )) {
      context <- list(study = flat, collective = case[1], algorithm = case[2], mapping = "core")
      rows <- expand.grid(size_bytes = sizes, processes = counts)
      together <- messages_of(rows, context, costs, form)
      alone <- unlist(lapply(counts, function(count) {
        model_messages(flat, case[1], case[2], "core", count, sizes, costs, form)
      }))
      expect_equal(together, alone, tolerance = 1e-12, info = paste(form, paste(case, collapse = " ")))
    }
  }
})

test_that("a study that remembers gives what one gives that does not", {
  for (algorithm in c("linear", "binomial", "chain")) {
    expect_equal(
      count_hops(remembering(flat), "bcast", algorithm, "core", counts),
      count_hops(flat, "bcast", algorithm, "core", counts)
    )
  }
  memory <- remembering(flat)
  expect_null(place_ranks(memory, "bcast", "core", 1000))
  expect_null(place_ranks(memory, "bcast", "core", 1000))
})

test_that("hops of many process counts are those of each alone", {
  for (algorithm in c("linear", "binomial", "chain")) {
    together <- count_hops(flat, "bcast", algorithm, "core", counts)
    for (count in counts) {
      expect_equal(together[as.character(count), ], count_hops(flat, "bcast", algorithm, "core", count)[1, ])
    }
  }
})

test_that("the line between known counts is that of approx()", {
  known <- c(2, 3, 7, 20)
  values <- c(1, 5, -2, 0.5)
  at <- c(1, 2, 2.5, 3, 6, 7, 19.9, 20, 30)
  for (method in c("linear", "constant")) {
    expect_equal(along_processes(known, values, at, method), approx(known, values, at, method = method, rule = 2)$y)
  }
  expect_equal(along_processes(3, 7, c(1, 5)), c(7, 7))
})

test_that("of many process counts those that can be seen are drawn, the first and the last among them", {
  rows <- tibble::tibble(algorithm = rep(c("a", "b"), c(200, 3)), mapping = "core", processes = c(1:200, 5, 6, 200))
  drawn <- drawn_counts(rows, 30)
  expect_equal(sum(drawn$algorithm == "a"), 30)
  expect_equal(range(drawn$processes[drawn$algorithm == "a"]), c(1, 200))
  expect_equal(drawn$processes[drawn$algorithm == "b"], c(5, 6, 200))
  expect_match(drawn_note(rows, 30), "At most 30 process counts .* are drawn")
  expect_equal(drawn_note(drawn, 30), "")
})
