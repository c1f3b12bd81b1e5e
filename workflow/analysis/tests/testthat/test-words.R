test_that("neighbouring classes do not seem to share a size", {
  classes <- tibble::tibble(label = c("Small", "Large"), from = c(1, 2049), to = c(2048, 2^29))
  expect_equal(class_with_range("Small", classes, label_bytes), "Small, 1 B to 2 KiB")
  expect_equal(class_with_range("Large", classes, label_bytes), "Large, more than 2 KiB to 512 MiB")
})

test_that("sizes are told in binary units", {
  expect_equal(label_bytes(c(1, 1024, 1536, 1048576, NA)), c("1 B", "1 KiB", "1.5 KiB", "1 MiB", NA))
  # Sizes of applications may be close to each other.
  close <- c(100010, 1024, 100000, 100010)
  expect_equal(label_bytes(close), c("100,010 B", "1 KiB", "100,000 B", "100,010 B"))
  expect_equal(levels(size_factor(close)), c("1 KiB", "100,000 B", "100,010 B"))
})

test_that("long times are told in ms and s, with three digits", {
  expect_equal(
    format_us(c(0.25, 9990, 9999, 55900, 999900, 3030000, -3030000)),
    c("0.25 \u00b5s", "9,990 \u00b5s", "10 ms", "55.9 ms", "1 s", "3.03 s", "-3.03 s")
  )
  expect_equal(format_us(NA_real_), "NA \u00b5s")
  expect_equal(format_us(numeric()), character())
})

test_that("what was added to the name of a mapping is told in words", {
  ran <- tibble::tibble(mapping = c("core", "other"), nodes = 2, processes = 8, mpi = c("mpich", "openmpi"))
  study <- with_labels(list(mappings = list(core = list(label = "by core"))), ran)
  expect_equal(
    label_mapping(c("core", "core on 2 nodes, mpich", "other, openmpi", "core, 4 a node", "all"), study),
    c("by core", "by core on 2 nodes, MPICH", "other, Open MPI", "by core, 4 a node", "all")
  )
})

test_that("each of several libraries has its own version", {
  expect_equal(with_version("openmpi, mpich", "5.0.1, 5.0.2"), "Open MPI 5.0.1 and MPICH 5.0.2")
  expect_equal(with_version("collbench", "1.0"), "collbench 1.0 (the embedded benchmark)")
  expect_equal(with_version("osu", "unknown"), "OSU Micro-Benchmarks of unknown version")
  expect_equal(with_version(NULL, NULL), "")
  expect_equal(with_version("", ""), "")
})

test_that("counts and their ranges", {
  expect_equal(count_range(list(1, 1), "launch", "launches"), "1 launch")
  expect_equal(count_range(c(0, 1), "warm-up iteration"), "0 to 1 warm-up iterations")
  expect_equal(count_range(c(1000, 1), "launch", "launches"), "1 to 1,000 launches")
})

test_that("counts before nouns are written in full", {
  expect_equal(count_of(c(1, 2, 1e5), "call"), c("1 call", "2 calls", "100,000 calls"))
})

test_that("a percentage that rounds to 0 has no sign", {
  expect_equal(format_pct(c(-0.04, 0.04, -0.06, -12.4)), c("0.0 %", "0.0 %", "\u22120.1 %", "\u221212 %"))
})
