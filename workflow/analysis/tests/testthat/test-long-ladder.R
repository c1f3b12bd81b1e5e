# The EPYC node of [derin2025] and the ladder that it prints (section 3.3).
epyc <- launched_study(list(
  list(name = "node", count = 2), list(name = "socket", count = 2), list(name = "numa", count = 4),
  list(name = "ccd", count = 2), list(name = "ccx", count = 2), list(name = "core", count = 4)
), list(bcast = c("chain", "chain:fanout=1", "pipeline", "binomial", "linear"), reduce = c("binary", "rabenseifner")),
c(1, 2, 3, 4, 5, 8, 16, 256))
epyc_place <- function(processes) place_ranks(epyc, "bcast", "core", processes)
printed <- c(core = 0.15, ccx = 0.32, ccd = 0.35, numa = 0.43, socket = 0.69, node = 1.82)
model <- function(algorithm, processes) {
  predict_latency_only_once(epyc, "bcast", algorithm, "core", processes, printed)
}

test_that("latencies between ranks have the published values", {
  latency <- pair_latencies(printed, epyc_place(256))
  expect_equal(latency(0, c(1, 4, 8, 32, 64, 128)), c(0.15, 0.32, 0.35, 0.43, 0.69, 1.82))
  expect_equal(latency(c(1, 4, 8, 32, 64, 128), 0), latency(0, c(1, 4, 8, 32, 64, 128)))
})

test_that("the published latency-only models by hand, 8 processes on one CCD", {
  # 6 steps inside a CCX and one (3 -> 4) to the other.
  expect_equal(model("pipeline", 8), 6 * 0.15 + 0.32)
  # 0 -> 1, 0 -> 2, 0 -> 4.
  expect_equal(model("binomial", 8), 0.15 + 0.15 + 0.32)
  # Chains 1-2, 3-4, 5-6 and 7: the second is 0.15 + 0.32, the third 0.32 + 0.15.
  expect_equal(model("chain", 8), 0.47)
  # Distances 1, 2 and 4: each has a pair in different CCXs.
  expect_equal(model("binary", 8), 3 * 0.32)
  expect_equal(model("rabenseifner", 8), 6 * 0.32)
})

test_that("the published latency-only models by hand, all 256 processes", {
  # Of 255 steps 1 leaves the node, 2 a socket, 12 a NUMA domain, 16 a CCD, 32 a CCX, 192 none of them.
  expect_equal(model("pipeline", 256), 1.82 + 2 * 0.69 + 12 * 0.43 + 16 * 0.35 + 32 * 0.32 + 192 * 0.15)
  # 0 -> 1, 2 | 4 | 8 | 16, 32 | 64 | 128.
  expect_equal(model("binomial", 256), 2 * 0.15 + 0.32 + 0.35 + 2 * 0.43 + 0.69 + 1.82)
  # At each of the 8 distances some pair leaves the node.
  expect_equal(model("binary", 256), 8 * 1.82)
  expect_equal(model("rabenseifner", 256), 16 * 1.82)
  # Four chains: 64, 64, 64, 63 ranks; the second (65..128): 0 -> 65, over the two CCX .. and into the second node.
  expect_equal(model("chain:fanout=1", 256), model("pipeline", 256))
})

test_that("processes that are no power of two, and one", {
  expect_equal(model("binomial", 5), 0.15 + 0.15 + 0.32)
  expect_equal(model("binary", 3), 2 * 0.15)
  expect_equal(model("chain", 2), 0.15)
  expect_equal(model("pipeline", 1), 0)
  expect_true(is.na(model("linear", 4)))
})

test_that("a latency is unknown only between ranks at a level that the ladder lacks", {
  known <- printed[c("core", "ccx")]
  expect_equal(pair_latencies(known, epyc_place(16))(0, c(1, 4, 8)), unname(c(known, NA)))
})

ladder_rows <- function(latency) {
  grid <- expand.grid(level = names(latency), size_bytes = 2^(0:20), stringsAsFactors = FALSE)
  tibble::tibble(
    level = factor(grid$level, rev(names(printed))), pairs = 1, size_bytes = grid$size_bytes,
    latency_us = latency[grid$level] + grid$size_bytes / 8000, bandwidth_mb_s = NA_real_
  )
}

test_that("latency and bandwidth come back from a straight line", {
  found <- summarise_ladder(ladder_rows(printed))
  expect_equal(setNames(found$latency_us, found$level)[names(printed)], printed, tolerance = 1e-6)
  expect_equal(found$bandwidth_gb_s, rep(8, 6), tolerance = 1e-6)
})

test_that("empty messages have no place on the axes of a ladder", {
  sizes <- rep(c(0, 2^(0:20)), 2)
  rows <- toy_rows(
    "multi_lat", "default", rep(c(2, 4), each = 22), sizes, 0.2 + sizes / 5000, mapping = "level-core",
    bandwidth_mb_s = NA_real_
  )
  figures <- function(rows) figures_of_ladder(read_results(make_study(rows, levels = thin_levels)))
  for (figure in figures(rows)) {
    expect_no_warning(built <- ggplot2::ggplot_build(figure$plot))
    expect_true(all(purrr::map_lgl(built$data, function(layer) all(is.finite(c(layer$x, layer$y))))))
    expect_match(figure$caption, "Messages of 0 B are left out.", fixed = TRUE)
  }
  expect_no_match(figures(dplyr::filter(rows, size_bytes > 0))[[1]]$caption, "0 B")
})

test_that("a ladder whose cells are all missing has no levels", {
  expect_equal(summarise_ladder(ladder_rows(printed)[0, ]), summarise_ladder(ladder_rows(printed))[0, ])
})

test_that("a ladder whose nodes are one node is refused, one with missing levels or small messages is not", {
  wrong <- replace(printed, "node", 0.69)
  for (levels in list(names(printed), c("core", "socket", "node"))) {
    expect_silent(check_ladder(ladder_rows(printed[levels])))
    expect_error(check_ladder(ladder_rows(wrong[levels])), "did not leave one node")
  }
  expect_silent(check_ladder(dplyr::filter(ladder_rows(wrong), size_bytes > 64)))
})

test_that("ladders without single pairs, some levels or some sizes have tables and sentences", {
  told <- function(levels, pairs, sizes) {
    grid <- expand.grid(mapping = paste0("level-", levels), processes = 2 * pairs, size_bytes = sizes,
                        stringsAsFactors = FALSE)
    us <- c("level-node" = 2, "level-socket" = 0.5, "level-core" = 0.2)[grid$mapping] + grid$size_bytes / 8000
    rows <- dplyr::bind_rows(
      toy_rows("multi_lat", "default", grid$processes, grid$size_bytes, unname(us), grid$mapping, bandwidth_mb_s = NA),
      toy_rows("bcast", rep(c("default", "linear"), each = 4), rep(seq(6, 24, 6), 2), 8, 1:8)
    )
    results <- read_results(make_study(rows, levels = thin_levels))
    found <- describe_ladder(results)
    expect_false(any(grepl("NA|: \\.", found)))
    expect_no_error(list(tables_of_ladder(results), models_of(results)))
    paste(found, collapse = " ")
  }
  sizes <- 2^(0:20)
  expect_match(told("node", 1, sizes), "of up to 64 B, .*: 2 .s \\(node\\)\\. Bandwidth of large messages: 8 GB/s")
  expect_no_match(told(c("node", "socket"), 1, 2^(0:10)), "Bandwidth")
  expect_no_match(told(c("node", "socket"), 1, 2^(8:20)), "Latency")
  expect_match(told("node", 1, 1024), "Too few message sizes")
  expect_match(told(c("node", "socket"), c(2, 4), sizes), "of 2 concurrent pairs .* GB/s .*, 100 % of that of 2 pairs")
})

test_that("the published ladder of the THIN nodes between two nodes did not leave the node", {
  # tests/run says where the data are; without them the test is skipped by name, and fails in CI.
  folder <- Sys.getenv("STUDY_REFERENCE_DATA")
  files <- file.path(folder, "orfeo-thin", c("latency_data_single_node.csv", "latency_data_two_nodes.csv"))
  if (Sys.getenv("CI") == "true") expect_true(all(file.exists(files)))
  skip_if_not(all(file.exists(files)), "no reference data: set STUDY_REFERENCE_DATA")
  rows <- lapply(files, function(file) {
    data <- readr::read_csv(file, col_types = "dddd", progress = FALSE)
    tibble::tibble(one = data[[1]], two = data[[2]], size_bytes = data[[3]], latency_us = data[[4]])
  })
  inside <- dplyr::filter(rows[[1]], one < 12, two < 12)
  across <- dplyr::filter(rows[[1]], one < 12, two >= 12)
  expect_true(check_crossing(across, inside, "socket", "core"))
  expect_error(check_crossing(rows[[2]], across), "did not leave one node")
  expect_error(check_crossing(dplyr::filter(rows[[2]], one != two), across), "did not leave one node")
})

# Every two of 8 cores: 0.2 us on a socket, 0.4 us across sockets, `node` us between the nodes.
every_pair <- function(node = c(1, 1)) {
  grid <- subset(expand.grid(from_rank = 0:7, to_rank = 0:7), from_rank < to_rank)
  socket <- function(core) core %/% 2
  inside <- grid$from_rank %/% 4 == grid$to_rank %/% 4
  like <- socket(grid$from_rank) %% 2 == socket(grid$to_rank) %% 2
  us <- ifelse(inside, ifelse(socket(grid$from_rank) == socket(grid$to_rank), 0.2, 0.4), ifelse(like, node[1], node[2]))
  toy_rows("pairs", "default", 8, 1, us, from_rank = grid$from_rank, to_rank = grid$to_rank, bandwidth_mb_s = NA_real_)
}
small_levels <- list(
  list(name = "node", count = 2), list(name = "socket", count = 2), list(name = "core", count = 2)
)

test_that("L(i, j) from every pair, under any mapping", {
  study <- launched_study(small_levels, list(bcast = "linear"), c(4, 8), c("core", "node"))
  of <- function(latencies, mapping, processes) {
    pair_latencies(latencies, place_ranks(study, "bcast", mapping, processes))(0, seq_len(processes - 1))
  }
  results <- read_results(make_study(every_pair(), levels = small_levels))
  ladder <- read_ladder(results)
  expect_equal(setNames(ladder$latency_us, ladder$level), c(node = 1, socket = 0.4, core = 0.2))
  matrix <- pair_matrix(read_pairs(results), 8)
  expect_equal(of(matrix, "core", 8), c(0.2, 0.4, 0.4, 1, 1, 1, 1))
  # Ranks 0, 1, 2 and 3 are on node 0 socket 0, node 1 socket 0, node 0 socket 1, node 1 socket 1.
  expect_equal(of(matrix, "node", 4), c(1, 0.4, 1))
  by_level <- of(c(node = 1, socket = 0.4, core = 0.2), "node", 4)
  expect_equal(of(matrix, "node", 4), by_level)
  expect_null(pair_matrix(head(read_pairs(results), -1), 8))
})

test_that("pairs between nodes that stayed on one are refused, with and without pairs inside a node", {
  judge <- function(rows) {
    results <- read_results(make_study(rows, levels = small_levels))
    check_pairs(results$study, read_pairs(results))
  }
  expect_silent(judge(every_pair(c(1, 1.2))))
  expect_error(judge(every_pair(c(0.2, 0.4))), "100 % of them are as fast as pairs within a node")
  across <- dplyr::filter(every_pair(c(0.2, 0.4)), from_rank %/% 4 != to_rank %/% 4)
  expect_error(judge(across), "same socket of their nodes are 2 times as fast")
})

test_that("a ladder from one core says how many pairs each level has, and which cores are missing", {
  levels <- list(list(name = "node", count = 2), list(name = "core", count = 4))
  rows <- toy_rows(
    "pairs", "default", 8, rep(c(1, 2, 4, 64), each = 6), rep(c(0.2, 0.2, 0.2, 2, 2, 2), 4), from_rank = 0,
    to_rank = rep(1:6, 4), bandwidth_mb_s = NA_real_
  )
  results <- read_results(make_study(rows, levels = levels))
  expect_match(
    tables_of_ladder(results)[[1]]$caption, "separates: 3 pairs of level node and 3 pairs of level core.", fixed = TRUE
  )
  expect_match(figures_of_pairs(results)[[1]]$caption, "Not measured: 1 core.", fixed = TRUE)
  expect_match(describe_ladder(results)[1], "; core 0 was not paired with 1 of the 7 other cores.", fixed = TRUE)
})

test_that("a single pair of a level is not in the plural", {
  levels <- list(list(name = "node", count = 2), list(name = "core", count = 4))
  rows <- toy_rows(
    "pairs", "default", 8, rep(c(1, 2, 4, 64), each = 4), rep(c(0.2, 0.2, 0.2, 2), 4), from_rank = 0,
    to_rank = rep(1:4, 4), bandwidth_mb_s = NA_real_
  )
  # The column of that name is 1 in all rows.
  caption <- tables_of_ladder(read_results(make_study(rows, levels = levels)))[[1]]$caption
  expect_match(caption, "Pairs: number of pairs that send at the same time. Latencies are medians over", fixed = TRUE)
  expect_match(pairs_note(read_results(make_study(rows, levels = levels))), "1 pair of level node and 3 pairs of level")
})

# Both levels of 8 cores with Open MPI, and three times as slow with MPICH.
two_libraries <- function(rows) {
  dplyr::bind_rows(rows, dplyr::mutate(rows, mpi = "mpich", dplyr::across(
    c("latency_us", "bandwidth_mb_s"), function(x) x * c(latency_us = 3, bandwidth_mb_s = 1 / 3)[dplyr::cur_column()]
  )))
}
ladder_of_levels <- function() {
  grid <- expand.grid(mapping = c("level-node", "level-core"), size_bytes = 2^(0:20), stringsAsFactors = FALSE)
  us <- c("level-node" = 2, "level-core" = 0.2)[grid$mapping] + grid$size_bytes / 8000
  rows <- toy_rows("latency", "default", 2, grid$size_bytes, unname(us), grid$mapping, bandwidth_mb_s = NA_real_)
  bw <- dplyr::mutate(rows, collective = "bw", bandwidth_mb_s = size_bytes / latency_us, latency_us = NA)
  dplyr::bind_rows(rows, bw)
}

test_that("the ladders of two MPI libraries are two, in tables, sentences, figures and models", {
  rows <- two_libraries(ladder_of_levels())
  bcast <- lawful(c(default = 1.1, binomial = 1), sizes = 4^(0:3))
  rows <- dplyr::bind_rows(rows, bcast, dplyr::mutate(bcast, mpi = "mpich"))
  results <- read_results(make_study(rows, levels = thin_levels))
  levels <- tables_of_ladder(results)[[1]]$data
  expect_equal(levels$mpi, c("mpich", "mpich", "openmpi", "openmpi"))
  expect_equal(levels$latency_us, c(6, 0.6, 2, 0.2), tolerance = 1e-6)
  expect_equal(levels$bandwidth_gb_s, c(8, 8, 24, 24) / 3, tolerance = 1e-6)
  said <- describe_ladder(results)
  expect_match(said[1], "^Open MPI: latency .*: 0.2 .s \\(core\\) and 2 .s \\(node\\); .* 10 times as long")
  expect_match(said[3], "^MPICH: latency .*: 0.6 .s \\(core\\) and 6 .s \\(node\\); .* 10 times as long")
  expect_match(answer_otherwise(results), "^Open MPI: .*\\. MPICH: latency")
  expect_match(describe_ladder_of(results, "bw"), "^(Open MPI|MPICH): a window")
  for (figure in figures_of_ladder(results)) {
    expect_equal(nrow(ggplot2::ggplot_build(figure$plot)$layout$layout), 2)
  }
  expect_equal(message_costs(results, "mpich")$latency[["node"]], 6, tolerance = 1e-6)
  predicted <- predict_held_out(results, "bcast")
  hockney <- dplyr::filter(predicted, model == "hockney", algorithm == "binomial", size_bytes == 16)
  hockney <- tapply(hockney$predicted_us, hockney$mapping, max)
  # The trees of the libraries differ, too.
  expect_gt(hockney[["core, mpich"]] / hockney[["core, openmpi"]], 2)
})

test_that("every pair measured with two MPI libraries", {
  slow <- two_libraries(every_pair())
  results <- read_results(make_study(slow, levels = small_levels))
  ladder <- read_ladder(results)
  expect_equal(setNames(ladder$latency_us, paste(ladder$mpi, ladder$level)), c(
    "mpich node" = 3, "mpich socket" = 1.2, "mpich core" = 0.6, "openmpi node" = 1, "openmpi socket" = 0.4,
    "openmpi core" = 0.2
  ))
  expect_equal(max(message_costs(results, "mpich")$pairs), 3)
  expect_match(pairs_note(results), "16 pairs of level node")
  expect_equal(nrow(ggplot2::ggplot_build(figures_of_pairs(results)[[1]]$plot)$layout$layout), 2)
  of_one <- figures_of_pairs(read_results(make_study(dplyr::filter(slow, from_rank == 0), levels = small_levels)))[[1]]
  expect_equal(nrow(ggplot2::ggplot_build(of_one$plot)$layout$layout), 2)
  expect_no_match(of_one$caption, "Not measured")
  expect_error(
    tables_of_ladder(read_results(make_study(dplyr::bind_rows(
      every_pair(), dplyr::mutate(every_pair(c(0.2, 0.4)), mpi = "mpich")
    ), levels = small_levels))), "share a node"
  )
})

test_that("pairs that the import checks flagged are in no level and no figure", {
  rows <- dplyr::mutate(every_pair(), flag = ifelse(from_rank == 0 & to_rank == 1, "outlier", NA))
  rows$latency_us[1] <- 5000
  expect_equal(c(rows$from_rank[1], rows$to_rank[1]), c(0, 1))
  expect_lt(max(read_pairs(read_results(make_study(rows, levels = small_levels)))$latency_us), 2)
})

test_that("the caption names the sizes of which all pairs were measured", {
  rows <- dplyr::bind_rows(ladder_of_levels(), dplyr::mutate(every_pair(), latency_us = latency_us * 2))
  note <- pairs_note(read_results(make_study(rows, levels = small_levels)))
  expect_match(note, "Latencies of messages of 1 B are medians over the pairs", fixed = TRUE)
})

test_that("pairs of cores of one unit have a figure, whose caption names no boundaries", {
  for (rows in list(every_pair(), dplyr::filter(every_pair(), from_rank == 0))) {
    few <- dplyr::filter(rows, from_rank < 3, to_rank < 3)
    figure <- figures_of_pairs(read_results(make_study(few, levels = small_levels)))[[1]]
    expect_no_match(figure$caption, "ines: boundaries")
    whole <- figures_of_pairs(read_results(make_study(rows, levels = small_levels)))[[1]]
    expect_match(whole$caption, "ines: boundaries between units of the outermost level \\(node\\)")
    drawn <- ggplot2::ggplot_build(whole$plot)$data
    expect_equal(unique(unlist(purrr::map(drawn, "xintercept"))), 3.5)
  }
})

test_that("a bandwidth test alone is answered with its bandwidth, and has one figure", {
  results <- read_results(make_study(dplyr::filter(ladder_of_levels(), collective == "bw"), levels = thin_levels))
  expect_equal(ids(figures_of_ladder(results)), "bw-ladder")
  expect_match(figures_of_ladder(results)[[1]]$caption, "^Bandwidth")
  expect_match(describe_ladder(results), "^A window of messages reaches up to 7.88 GB/s \\(node, 1 MiB\\)")
  expect_match(answer_otherwise(results), "^a window of messages reaches")
})

test_that("ping-pongs under a mapping of the catalogue are of the level that separates their pairs", {
  sizes <- rep(2^(0:20), 2)
  rows <- toy_rows(
    "latency", "default", 2, sizes, rep(c(0.2, 2), each = 21) + sizes / 8000, rep(c("core", "node"), each = 21),
    bandwidth_mb_s = NA_real_
  )
  of <- function(rows, levels = thin_levels) read_results(make_study(rows, levels = levels))
  said <- describe_ladder(of(rows))
  expect_match(said[1], "0.2 .s \\(core\\) and 2 .s \\(node\\)")
  # With sockets of four cores, all pairs of 8 ranks by core are on two sockets, of three pairs of 6 ranks only two.
  several <- toy_rows("multi_lat", "default", 8, 2^(0:20), 1, bandwidth_mb_s = NA_real_)
  found <- read_ladder(of(several, list(
    list(name = "node", count = 2), list(name = "socket", count = 2), list(name = "core", count = 4)
  )))
  expect_equal(unique(paste(found$level, found$pairs)), "socket 4")
  mixed <- of(dplyr::mutate(several, processes = 6), list(
    list(name = "node", count = 2), list(name = "socket", count = 2), list(name = "core", count = 4)
  ))
  expect_equal(nrow(read_ladder(mixed)), 0)
  expect_match(describe_ladder(mixed), "The levels of the machine that the point-to-point measurements cross")
  expect_match(describe_ladder(of(rows, list())), "are not known.$")
})
