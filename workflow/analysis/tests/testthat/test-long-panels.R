# Figures of studies that are no full grid: sizes differ between process counts, counts between mappings.
of_mapping <- function(name, counts, sizes) dplyr::mutate(lawful(counts = counts, sizes = sizes), mapping = name)
ragged <- dplyr::bind_rows(
  of_mapping("core", 1024, 8^(1:6)),
  of_mapping("node", c(4, 32), 8^(1:6)), of_mapping("node", c(200, 254), 10 * 8^(0:5)), of_mapping("node", 512, 64)
)

test_that("a map has one row for sizes that differ between process counts only, and no column without cells", {
  results <- read_results(make_study(ragged))
  drawn <- ggplot2::ggplot_build(plot_decision(results, "bcast"))
  tiles <- drawn$data[[1]]
  expect_equal(length(unique(tiles$y)), 6)
  expect_equal(nrow(tiles), 6 * 5 + 1)
  columns <- purrr::map(drawn$layout$panel_scales_x, function(scale) scale$get_limits())
  expect_equal(columns, list("1024", c("4", "32", "200", "254", "512")))
  captions <- purrr::map_chr(figures_wins(results, "bcast"), "caption")
  expect_match(captions, "rounded to powers of 8", all = TRUE)
  expect_match(captions, "fewer than two algorithms", all = TRUE)
})

test_that("the map of the default tells cells without a difference from those not measured, and shows its ends", {
  results <- read_results(make_study(ragged))
  tiles <- ggplot2::ggplot_build(plot_default_map(results, "bcast"))
  rows <- summarise_differences(results, "bcast")
  expect_equal(nrow(tiles$data[[1]]), 6 * 6)
  expect_equal(sum(tiles$data[[1]]$fill == "grey75"), 6 * 6 - nrow(rows))
  captions <- purrr::map_chr(purrr::keep(figures_wins(results, "bcast"), function(f) grepl("map$", f$id)), "caption")
  expect_match(captions[1], "White: fewer than two algorithms")
  expect_match(captions[2], "Grey: fewer than two algorithms")
  scale <- tiles$plot$scales$get_scales("fill")
  expect_equal(range(scale$get_breaks()), scale$get_limits())
  expect_match(scale$get_labels()[5], "^\u2265 \\+")
})

test_that("a caption explains empty cells only where a panel has some", {
  apart <- dplyr::bind_rows(of_mapping("core", 1024, 8^(1:3)), of_mapping("node", 256, 8^(1:3)))
  expect_equal(map_note(apart[!is.na(apart$size_bytes), ]), "")
})

test_that("captions say what the bars are", {
  rows <- tibble::tibble(launches = c(1, 1))
  expect_match(interval_note(rows), "single launches")
  rows$launches <- c(1, 5)
  expect_match(interval_note(rows), "medians over 1 to 5 launches, bars their range;", fixed = TRUE)
  rows$launches <- c(6, 9)
  expect_match(interval_note(rows), "bars the 95 % intervals of the medians;", fixed = TRUE)
  rows$launches <- c(3, 9)
  few <- "bars the 95 % intervals of the medians (of fewer than six launches, their range);"
  expect_match(interval_note(rows), few, fixed = TRUE)
})

test_that("a map without the default has the height of its panels and a title without one", {
  rows <- lawful(c(linear = 1, chain = 1.1), c(4, 8), c(64, 1024))
  results <- read_results(make_study(dplyr::filter(rows, .data$algorithm %in% c("linear", "chain"))))
  figures <- figures_wins(results, "bcast")
  expect_equal(purrr::map_chr(figures, "id"), "bcast-decision-map")
  expect_equal(figures[[1]]$height, 1.9 + 3)
  expect_equal(figures[[1]]$plot$labels$title, "Broadcast: fastest algorithms")
})

test_that("sizes that would fall together keep their rows, and those of a full grid as well", {
  rows <- dplyr::bind_rows(
    of_mapping("node", 4, 2^(1:6)), of_mapping("node", 8, 3 * 2^(1:6)), of_mapping("node", 16, 5)
  )
  expect_equal(size_step(rows[!is.na(rows$size_bytes), ]), 2)
  full <- lawful(counts = c(4, 8), sizes = c(1, 3, 4))
  expect_equal(size_step(full[!is.na(full$size_bytes), ]), 1)
  note <- map_note(full[!is.na(full$size_bytes), ])
  expect_equal(note, "")
})

test_that("latency against processes is drawn for sizes with curves alone", {
  rows <- dplyr::bind_rows(of_mapping("core", c(4, 8, 16), c(64, 1024)), of_mapping("core", 32, c(64, 4096)))
  results <- read_results(make_study(rows, analysis = list(figure_sizes = list(64, 1024, 4096))))
  plot <- plot_processes(results, "bcast", "core")
  expect_setequal(plot$data$size_bytes, c(64, 1024))
  # A mapping with the other sizes alone has no such figure, and nothing is compared with it.
  results <- read_results(make_study(dplyr::bind_rows(rows, of_mapping("node", 64, 4096))))
  ids <- purrr::map_chr(figures_processes(results, "bcast", rows_to_fit(results, "bcast")), "id")
  expect_equal(ids, "bcast-processes-core")
})

test_that("mappings with different process counts have panels of what was measured", {
  rows <- dplyr::bind_rows(of_mapping("core", 1024, c(1, 64)), of_mapping("node", 256, c(1, 64)))
  built <- ggplot2::ggplot_build(plot_sizes(read_results(make_study(rows)), "bcast"))
  expect_equal(as.character(built$layout$layout$panel), c("256 processes, by node", "1,024 processes, by core"))
  rows <- dplyr::bind_rows(of_mapping("core", c(4, 8), c(1, 64)), of_mapping("node", c(4, 8), c(1, 64)))
  built <- ggplot2::ggplot_build(plot_sizes(read_results(make_study(rows)), "bcast"))
  expect_equal(nrow(built$layout$layout), 4)
  expect_true("mapping" %in% names(built$layout$layout))
})

test_that("bandwidth of large messages is size over latency, with the ends of the interval exchanged", {
  sizes <- c(1, 2^16, 2^18, 2^20)
  rows <- dplyr::filter(lawful(c(default = 1.1, linear = 1), 8, sizes), .data$collective == "bcast")
  rows <- dplyr::bind_rows(rows, dplyr::mutate(rows, launch = 2, latency_us = 2 * .data$latency_us))
  results <- read_results(make_study(rows))
  figures <- figures_sizes(results, "bcast")
  expect_equal(purrr::map_chr(figures, "id"), c("bcast-sizes", "bcast-bandwidth"))
  drawn <- figures[[2]]$plot$data
  expect_setequal(drawn$size_bytes, sizes[-1])
  one <- dplyr::filter(drawn, .data$algorithm_name == "linear", .data$size_bytes == 2^20)
  # (1 + 8 / 8) x (1 + 2^20 / 2^10) us, and twice of that in the second launch
  expect_equal(one$low_mb_s, 2^20 / (4 * 1025))
  expect_equal(one$high_mb_s, 2^20 / (2 * 1025))
  expect_equal(one$bandwidth_mb_s, 2^20 / (3 * 1025))
  # Two large sizes are no curve, and curves of others do not change that.
  results <- read_results(make_study(dplyr::filter(rows, .data$size_bytes < 2^20 | .data$algorithm == "linear")))
  expect_setequal(as.character(rows_of_bandwidth(results, "bcast")$algorithm), "linear")
  results <- read_results(make_study(dplyr::filter(rows, .data$size_bytes < 2^20)))
  expect_length(figures_sizes(results, "bcast"), 1)
})

test_that("the map of slow-downs has the geometric mean over the process counts that can be compared", {
  rows <- lawful(c(default = 1.1, linear = 1, chain = 4), c(8, 16), c(64, 128))
  slow <- rows$collective == "bcast" & rows$algorithm == "chain" & rows$processes == 16 & rows$size_bytes == 64
  rows$latency_us[slow] <- rows$latency_us[slow] * 4
  # At 32 processes the chain is alone: it cannot be slower than another algorithm there.
  alone <- toy_rows("bcast", "chain", 32, 64, 1000)
  results <- read_results(make_study(dplyr::bind_rows(rows, alone)))
  drawn <- figures_slowdown(results, "bcast")[[1]]$plot$data
  of <- function(name, size) drawn$slowdown[drawn$algorithm == name & drawn$size_bytes == size]
  expect_equal(c(of("chain", 64), of("chain", 128)), c(8, 4))
  expect_equal(c(of("linear", 64), of("default", 128)), c(1, 1.1))
  results <- read_results(make_study(lawful(sizes = 64)))
  expect_null(figures_slowdown(results, "bcast"))
  results <- read_results(make_study(lawful(c(default = 1))))
  expect_no_warning(expect_null(figures_slowdown(results, "bcast")))
})

test_that("few process counts over a wide range have a logarithmic axis", {
  axis <- function(counts) {
    plot <- plot_processes(read_results(make_study(lawful(counts = counts, sizes = c(1, 64)))), "bcast", "core")
    ggplot2::ggplot_build(plot)$layout$panel_scales_x[[1]]$trans$name
  }
  expect_equal(c(axis(c(4, 32, 200, 2048)), axis(seq(2, 48, 2))), c("log-2", "identity"))
})

test_that("errors beyond every scale are drawn at its end, and said to be", {
  results <- read_results(make_study(lawful()))
  errors <- summarise_model_errors(results, "bcast")
  errors$extrapolation_mape_pct[1] <- 1e7
  plot <- plot_model_errors(results, "bcast", errors)
  expect_equal(max(plot$data$mape), 1000)
  expect_match(plot$labels$subtitle, "above 1,000 %")
  expect_lte(length(error_breaks(c(0.1, 1000))), 7)
})

test_that("the legend of all models of a barrier is not wider than the panels, on which it is centred", {
  results <- read_results(make_study(lawful()))
  errors <- summarise_model_errors(results, "bcast")
  models <- setdiff(names(model_words), "plane")
  errors <- dplyr::bind_rows(lapply(models, function(model) dplyr::mutate(errors[1, ], model = .env$model)))
  legend <- ggplot2::ggplotGrob(plot_model_errors(results, "bcast", errors))
  legend <- legend$grobs[[which(legend$layout$name == "guide-box")]]$grobs[[1]]
  expect_lt(sum(grid::convertWidth(legend$widths, "inches", valueOnly = TRUE)), 8)
})

test_that("an algorithm has the same colour in every collective, and no other one of it has that", {
  path <- test_path("..", "..", "..", "..", "config", "algorithms.yaml")
  skip_if_not(file.exists(path), "the catalogue is not beside the package")
  lines <- readLines(path)
  top <- grepl("^[a-z_]+:", lines)
  collective <- c(NA, sub(":.*", "", lines[top]))[1 + cumsum(top)]
  is_algorithm <- grepl("^  [a-z0-9_]+:", lines)
  names <- sub("^  ([a-z0-9_]+):.*", "\\1", lines[is_algorithm])
  catalogue <- tibble::tibble(collective = collective[is_algorithm], algorithm = names)
  found <- purrr::imap(split(names, catalogue$collective), function(names, collective) {
    colours_of(list(algorithms = catalogue), collective, names)
  })
  expect_equal(sum(purrr::map_int(found, anyDuplicated)), 0)
  # Algorithms of the library itself; components and this project's come after them and may have to give way.
  of_library <- c(
    "default", "linear", "chain", "pipeline", "binomial", "recursive_doubling", "bruck", "rabenseifner", "two_proc",
    "neighbor_exchange", "linear_sync", "butterfly", "recursive_halving", "nonoverlapping"
  )
  for (name in of_library) {
    colours <- unique(unlist(purrr::map(found, function(colours) unname(colours[names(colours) == name]))))
    expect_equal(length(colours), 1, info = name)
  }
  # A tie of the blue algorithm looks like the sky one.
  both <- purrr::map_lgl(found, function(colours) {
    all(hues[c("blue", "sky")] %in% colours[names(colours) %in% c(of_library, "sparbit")])
  })
  expect_equal(names(found)[both], character())
})

test_that("a line joins the cells of one author, and a legend names the authors", {
  one <- dplyr::mutate(lawful(counts = seq(2, 16, 2), sizes = 64), source = "one")
  two <- dplyr::mutate(lawful(counts = c(3, 16), sizes = 64), source = "two", latency_us = .data$latency_us / 9)
  results <- read_results(make_study(dplyr::bind_rows(one, two)))
  # Both measured 16 processes: the cell is in the line of the author who measured more.
  expect_equal(as.character(unique(results$medians$source[results$medians$processes == 16])), "one")
  plot <- plot_processes(results, "bcast", "core")
  lines <- ggplot2::ggplot_build(plot)$data[[1]]
  expect_equal(length(unique(lines$group)), 2 * length(unique(one$algorithm)))
  expect_equal(sort(unique(lines$x[lines$linetype != "solid"])), 3)
  alone <- ggplot2::ggplot_build(plot_processes(read_results(make_study(one)), "bcast", "core"))$data[[1]]
  expect_equal(unique(alone$linetype), 1)
})

test_that("any number of authors has line types", {
  rows <- purrr::map_dfr(1:6, function(i) {
    dplyr::mutate(lawful(counts = 20 * i + seq(2, 16, 2), sizes = 64), source = paste("author", i))
  })
  expect_no_error(ggplot2::ggplotGrob(plot_processes(read_results(make_study(rows)), "bcast", "core")))
})

test_that("boundaries of units are drawn only where the ranks of a smaller count are the first ones", {
  folder <- make_study(lawful(counts = c(4, 8, 24, 48), sizes = 64), levels = thin_levels)
  drawn <- function() find_boundaries(read_results(folder), "bcast", "core", 48)
  expect_equal(drawn()$processes[drawn()$level == "node"], 24)
  # Four ranks on two nodes.
  path <- file.path(folder, "ranks.csv")
  ranks <- dplyr::mutate(readr::read_csv(path, show_col_types = FALSE), from_processes = 8)
  spread <- dplyr::mutate(ranks[ranks$rank < 4, ], from_processes = 4, to_processes = 4, node = .data$rank %/% 2)
  readr::write_csv(dplyr::bind_rows(ranks, spread), path, na = "")
  expect_equal(nrow(drawn()), 0)
})

test_that("cells that fill no grid have no surface", {
  full <- lawful(counts = 2 * 1:6, sizes = 2^(0:5))
  drawn <- function(rows) {
    results <- read_results(make_study(rows))
    purrr::map_chr(figures_surface(results, "bcast", rows_to_fit(results, "bcast")), "id")
  }
  expect_equal(drawn(full), c("bcast-surface-plane", "bcast-surface"))
  expect_length(drawn(dplyr::filter(full, processes == 2 * (log2(size_bytes) + 1) | processes == 2)), 0)
})

test_that("panels without rows say so, and grids without gaps have no words", {
  rows <- tibble::tibble(algorithm = c("a", "a", "b"), mapping = c("core", "node", "core"), size_bytes = c(1, 16, 4))
  layer <- layer_absent(rows, c("algorithm", "mapping"), "size_bytes")
  expect_equal(layer$data[c("algorithm", "mapping")], data.frame(algorithm = "b", mapping = "node"), ignore_attr = TRUE)
  expect_equal(layer$data$size_bytes, 4)
  expect_null(layer_absent(rows[1:2, ], c("algorithm", "mapping"), "size_bytes"))
})

test_that("legends of long labels have fewer columns", {
  expect_null(legend_columns(c("Default", "Chain", "Linear")))
  long <- paste("Split binary tree (segments of", 2^(1:9), "KiB)")
  expect_equal(legend_columns(long), 2)
})

test_that("the axis of message sizes has labels for few sizes, too", {
  expect_equal(size_breaks(c(1, 1024)), 4^(0:5))
  expect_equal(size_breaks(c(32, 128)), 2^(5:7))
  # Of a single size, ggplot2 makes an axis from 0.89 to 1.12 times that size.
  labels <- function(size) {
    plot <- ggplot(tibble::tibble(x = size, y = 1), aes(x, y)) + geom_point() + scale_x_size()
    ggplot2::ggplot_build(plot)$layout$panel_params[[1]]$x$get_labels()
  }
  expect_equal(labels(1024), "1 KiB")
  expect_equal(labels(36), "36 B")
  expect_equal(size_breaks(c(2100, 4100)), c(2100, 4100))
})

test_that("captions tell of authors and intervals only in figures that draw them", {
  rows <- dplyr::bind_rows(lawful(), dplyr::mutate(lawful(), mapping = "node"))
  rows$source <- "a"
  # Another author measured by core only, some cells of the first one and others.
  other <- dplyr::mutate(lawful(counts = c(3:7), sizes = 1), source = "b", launch = 2)
  results <- read_results(make_study(dplyr::bind_rows(rows, other), list(figure_sizes = c(1, 64))))
  figures <- c(
    figures_processes(results, "bcast", rows_to_fit(results, "bcast")),
    figures_sizes(results, "bcast")
  )
  found <- setNames(figures, purrr::map_chr(figures, "id"))
  drawn <- c("bcast-processes-core", "bcast-processes-node", "bcast-sizes")
  told <- purrr::map_chr(found[drawn], "caption")
  expect_equal(
    unname(grepl("Line type: the author", told)),
    unname(purrr::map_lgl(found[drawn], function(figure) dplyr::n_distinct(figure$plot$data$source) > 1))
  )
  expect_equal(
    unname(grepl("medians over", told)),
    unname(purrr::map_lgl(found[drawn], function(figure) any(figure$plot$data$launches > 1)))
  )
  expect_match(told[["bcast-processes-node"]], "Points are single launches; lines only guide the eye.", fixed = TRUE)
  expect_match(told[["bcast-processes-core"]], "Points are medians over [12]")
})
