# A ring at 1000 MB/s, non-blocking as fast, pipelined in 4 segments at 1500 MB/s; the slowest rank counts.
toy_pipelining <- function() {
  sizes <- 2^(16:20)
  rows <- dplyr::bind_rows(
    toy_rows("allreduce", "ring", 2, sizes, sizes / 1000 / 2),
    dplyr::mutate(toy_rows("iallreduce", "ring", 2, sizes, sizes / 1000 / 2)),
    dplyr::mutate(toy_rows("allreduce", "pipelined_ring", 2, sizes, sizes / 1500 / 2), parameters = "segments=4"),
    dplyr::mutate(
      toy_rows("allreduce", "pipelined_ring", 2, sizes, sizes / 900 / 2), parameters = "segment_bytes=65536"
    )
  )
  rows$max_latency_us <- 2 * rows$latency_us
  rows$mpi <- "mpich"
  folder <- make_study(rows)
  study <- jsonlite::read_json(file.path(folder, "study.json"))
  study$chapter <- "pipelining"
  variants <- list(
    list(name = "ring", label = "Ring"),
    list(name = "pipelined_ring", parameters = "segments=4", label = "In four segments", inside = "Ring"),
    list(name = "pipelined_ring", parameters = "segment_bytes=65536", label = "In segments of 64 KiB", inside = "Ring")
  )
  study$collectives$allreduce$algorithms <- variants
  study$collectives$iallreduce$algorithms <- variants[1]
  jsonlite::write_json(study, file.path(folder, "study.json"), auto_unbox = TRUE)
  read_results(folder)
}

test_that("bandwidth is size over time of the slowest rank, and each way has its kind", {
  rows <- summarise_bandwidth(toy_pipelining())
  expect_equal(unique(rows$operation), "allreduce")
  found <- unique(rows[c("kind", "way", "bandwidth_mb_s")])
  expect_setequal(
    paste(found$kind, "/", found$way, "/", round(found$bandwidth_mb_s)),
    c("one blocking call / Ring / 1000", "one non-blocking call / Ring / 1000",
      "segments: fixed number / Ring, 4 segments / 1500", "segments: fixed size / Ring, 64 KiB / 900")
  )
})

test_that("the gain is that of the best pipelined way over the best single call", {
  gains <- summarise_pipelining(summarise_bandwidth(toy_pipelining()))
  expect_equal(gains$gain_over_one_pct, rep(50, 5))
  expect_equal(unique(gains$pipelined), "Ring, 4 segments")
})

test_that("a message that fits into one segment is not pipelined", {
  rows <- dplyr::filter(summarise_bandwidth(toy_pipelining()), kind != "segments: fixed number")
  expect_equal(summarise_pipelining(rows)$pipelined_mb_s, c(NA, 900, 900, 900, 900))
  expect_equal(summarise_same_way(rows)$size_bytes, 2^(17:20))
})

test_that("segments are compared with the faster of two single non-blocking calls, in any order", {
  rows <- summarise_bandwidth(toy_pipelining())
  single <- dplyr::filter(rows, kind == "one non-blocking call")
  # Pipelined with one segment is one non-blocking call, too.
  for (factor in c(0.5, 1.2)) {
    other <- dplyr::mutate(single, collective = "allreduce", bandwidth_mb_s = bandwidth_mb_s * factor)
    gains <- summarise_same_way(dplyr::bind_rows(other, rows))$gain_pct
    expect_equal(gains, rep(100 * (1.5 / max(1, factor) - 1), 5))
    expect_equal(summarise_same_way(dplyr::bind_rows(rows, other))$gain_pct, gains)
  }
})

test_that("the chapter has its figures, tables and sentences", {
  results <- toy_pipelining()
  expect_equal(tables_of(results)[[1]]$id, "allreduce-gain")
  expect_equal(figures_of(results)[[1]]$id, "allreduce-bandwidth")
  said <- describe_pipelining(results, "allreduce")
  expect_match(said[1], "At 1 MiB .* 1,500 MB/s with MPICH \\(Ring, 4 segments\\), 50 % above")
  # The sentence stands alone where the first one is the answer of the chapter.
  expect_match(said[2], "^At 1 MiB, pipelined against .* 1,500 against 1,000 MB/s \\(\\+50 %\\)")
  expect_match(describe_answer(results), "Toy: At 1 MiB")
})

test_that("each mapping gets its best algorithm", {
  sizes <- c(1024, 4096)
  rows <- dplyr::bind_rows(
    toy_rows("allreduce", "ring", 8, sizes, c(10, 10), "DFNF"),
    toy_rows("allreduce", "default", 8, sizes, c(5, 20), "DFNF"),
    toy_rows("allreduce", "ring", 8, sizes, c(8, 12), "BFNF"),
    toy_rows("allreduce", "default", 8, sizes, c(9, 30), "BFNF")
  )
  # Measured for one mapping only: it does not compete.
  rows <- dplyr::bind_rows(rows, toy_rows("allreduce", "tree", 8, sizes, c(1, 1), "DFNF"))
  rows$mpi <- "smpi-openmpi"
  results <- read_results(make_study(rows, simulated = TRUE))
  best <- summarise_mappings(results)
  expect_equal(best$algorithm[best$mapping == "DFNF"], c("default", "ring"))
  expect_equal(best$best_pct[best$mapping == "BFNF"], c(60, 20))
  expect_match(describe_mapping_policies(results)[1], "DFNF is the best mapping or tied with it at 2 of 2 sizes")
  expect_match(
    describe_mapping_policies(results)[2], "this also holds here. DFNF reaches 205 MB/s at 1 KiB \\(DEFAULT\\)"
  )
})

test_that("placements are told apart", {
  results <- toy_pipelining()
  results$rows <- dplyr::bind_rows(
    results$rows, dplyr::mutate(results$rows, processes = 4, max_latency_us = 2 * .data$max_latency_us)
  )
  gains <- summarise_pipelining(summarise_bandwidth(results))
  expect_setequal(gains$mpi, c("MPICH, 2 ranks on 1 node, by core", "MPICH, 4 ranks on 1 node, by core"))
  expect_equal(gains$gain_over_one_pct, rep(50, 10))
  expect_match(describe_pipelining(results, "allreduce")[1], "MB/s with MPICH, 4 ranks on 1 node, by core \\(")
})

test_that("mappings are compared at each number of processes, if an algorithm has all of them", {
  grid <- expand.grid(mapping = c("core", "node"), processes = c(4, 8), size_bytes = c(8, 64), stringsAsFactors = FALSE)
  rows <- toy_rows("allreduce", "ring", grid$processes, grid$size_bytes, 1:8, grid$mapping)
  results <- read_results(make_study(rows))
  expect_match(describe_mapping_policies(results)[1], "core is .* at 4 of 4 cells \\(collective, processes and size\\)")
  panels <- ggplot2::ggplot_build(figures_mapping(results)[[1]]$plot)$layout$layout
  expect_equal(panels$panel, c("Allreduce, 4 processes", "Allreduce, 8 processes"))
  expect_false("panel" %in% names(tables_mapping(results)[[1]]$data))
  # The order of the rows is not that of the latencies.
  falling <- read_results(make_study(toy_rows(
    "allreduce", "ring", grid$processes, grid$size_bytes, 8:1, grid$mapping
  )))
  expect_equal(summarise_mappings(falling)$size_bytes, c(8, 8, 64, 64, 8, 8, 64, 64))
  expect_equal(summarise_mappings(falling)$mapping, rep(c("core", "node"), 4))
  alone <- read_results(make_study(dplyr::filter(rows, (.data$mapping == "core") == (.data$processes == 4))))
  expect_no_warning(summarise_mappings(alone))
  expect_equal(describe_mapping_policies(alone), "No algorithm was measured with all mappings.")
  expect_length(figures_mapping(alone), 0)
})

test_that("a study without a measurement is analysed", {
  results <- read_results(make_study(toy_rows("allreduce", "default", 4, 8, 1)))
  results$rows <- results$rows[0, ]
  expect_equal(nrow(summarise_bandwidth(results)), 0)
  expect_match(describe_pipelining_answer(results), "no allreduce was measured")
})

test_that("mappings are compared within one MPI library, number of nodes and collective", {
  grid <- expand.grid(
    mapping = c("core", "node"), algorithm = c("default", "ring"), size_bytes = c(1024, 4096), nodes = c(2, 4),
    mpi = c("openmpi", "mpich"), stringsAsFactors = FALSE
  )
  # By core is twice as fast on any number of nodes with any library, which differ by up to 100 times.
  us <- ifelse(grid$mapping == "core", 1, 2) * ifelse(grid$mpi == "mpich", 10, 1) * ifelse(grid$nodes == 4, 10, 1)
  rows <- toy_rows("allreduce", grid$algorithm, 16, grid$size_bytes, us, grid$mapping)
  rows[c("nodes", "mpi")] <- grid[c("nodes", "mpi")]
  said <- function(rows) describe_mapping_policies(read_results(make_study(rows)))[1]
  # One library and number of nodes: as in the other tests.
  expect_match(said(dplyr::filter(rows, nodes == 2, mpi == "mpich")), "tied with it at 2 of 2 sizes .* at most 100 %")
  expect_match(
    said(dplyr::filter(rows, nodes == 2 | mapping == "node", mpi == "mpich")), "at 2 of 2 sizes .* at most 100 %"
  )
  expect_match(
    said(rows), "core is .* at 8 of 8 cells \\(collective, processes, nodes, MPI library and size\\) .* at most 100 %"
  )
  best <- tables_mapping(read_results(make_study(rows)))[[1]]$data
  expect_equal(nrow(dplyr::distinct(best, mpi, nodes, mapping, size_bytes)), 16)
  expect_setequal(best$slower_than_best_mapping_pct, c(0, 100))
  # A broadcast, which one of three mappings lacks, is compared as well.
  results <- read_results(make_study(dplyr::bind_rows(
    toy_rows("allreduce", "ring", 16, 1024, 1:3, c("core", "node", "socket")),
    toy_rows("bcast", "chain", 16, 1024, 1:2, c("core", "node"))
  )))
  expect_setequal(summarise_mappings(results)$collective, c("allreduce", "bcast"))
})

test_that("more mappings than colours are drawn", {
  rows <- toy_rows("allreduce", "ring", 16, rep(c(1024, 4096), each = 9), 1:18, rep(paste0("m", 1:9), 2))
  for (figure in figures_mapping(read_results(make_study(rows)))) {
    drawn <- purrr::map(ggplot2::ggplot_build(figure$plot)$data, function(layer) {
      if (anyNA(layer$colour)) layer$fill else layer$colour
    })
    expect_false(anyNA(unlist(drawn)))
  }
})

test_that("bandwidths of several collectives are not given as those of one", {
  rows <- dplyr::bind_rows(
    toy_rows("allreduce", "ring", 8, rep(c(1024, 4096), 2), 1:4, rep(c("DFNF", "BFNF"), each = 2)),
    toy_rows("bcast", "ring", 8, rep(c(1024, 4096), 2), 1:4, rep(c("DFNF", "BFNF"), each = 2))
  )
  said <- function(rows) describe_mapping_policies(read_results(make_study(rows)))[2]
  expect_match(said(dplyr::filter(rows, collective == "bcast")), "holds here. DFNF reaches")
  expect_match(said(rows), "holds here.$")
})

test_that("mappings of a barrier, which has no sizes and no bandwidth, are compared", {
  mappings <- rep(c("DFNF", "BFNF"), each = 2)
  barrier <- toy_rows("barrier", rep(c("default", "linear"), 2), 16, NA, 1:4, mappings)
  both <- dplyr::bind_rows(barrier, toy_rows("bcast", "chain", 16, rep(c(8, 64), 2), 1:4, mappings))
  for (rows in list(barrier, both)) {
    results <- read_results(make_study(rows))
    expect_no_match(describe_mapping_policies(results), "NA")
    figures <- figures_mapping(results)
    expect_equal(ids(figures), if (nrow(rows) == 4) "mapping-loss" else paste0("mapping-", c("short", "long", "loss")))
    for (figure in figures) expect_no_warning(built <- ggplot2::ggplot_build(figure$plot))
    expect_true("no data" %in% unlist(purrr::map(built$layout$panel_params, function(panel) panel$x$get_labels())))
  }
})
