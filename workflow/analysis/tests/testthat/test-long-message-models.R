flat <- launched_study(
  list(list(name = "node", count = 2), list(name = "core", count = 8)),
  list(
    bcast = c("default", "linear", "pipeline", "pipeline:segment_bytes=10000", "binary_tree", "binomial", "chain"),
    reduce = c("linear", "binary", "binomial", "rabenseifner"),
    allreduce = c("default", "linear", "nonoverlapping", "recursive_doubling", "ring", "segmented_ring", "rabenseifner")
  ), c(2, 3, 4, 8, 9, 13, 16)
)
tree <- function(collective, name, processes) sending_tree(flat, "openmpi", collective, plain(name), processes)
costs <- list(
  source = "ladder", latency = c(node = 2, core = 0.5), gap_byte = c(node = 1e-3, core = 1e-4), overhead = 0.1,
  eager = 1024
)
of <- function(collective, algorithm, processes, size, form) {
  model_messages(flat, collective, algorithm, "core", processes, size, costs, form)
}

test_that("trees are those of Open MPI", {
  expect_equal(as.vector(tree("bcast", "binomial", 8)), c(0, 0, 1, 0, 1, 2, 3))
  expect_equal(as.vector(tree("reduce", "binomial", 8)), c(0, 0, 2, 0, 4, 4, 6))
  expect_equal(as.vector(tree("bcast", "binary_tree", 8)), c(0, 0, 1, 2, 1, 2, 3))
  expect_null(tree("bcast", "default", 8))
  # Radix 4: the farthest digit first, 4 before 1, 2 and 3.
  knomial <- tree("bcast", "knomial", 8)
  expect_equal(as.vector(knomial), c(0, 0, 0, 0, 4, 4, 4))
  expect_equal(attr(knomial, "order"), c(4, 1, 2, 3, 5, 6, 7))
})

test_that("Hockney by hand: a linear broadcast to two, a pipeline, and into the other node", {
  # 0.6 us a message of 1000 B; rank 1 has it after 0.6, rank 2 after 1.2, when the root is done too.
  expect_equal(of("bcast", "linear", 3, 1000, "hockney"), mean(c(1.2, 0.6, 1.2)))
  expect_equal(of("bcast", "pipeline", 3, 1000, "hockney"), mean(c(0.6, 1.2, 1.2)))
  # Ranks 1 to 7 after 0.6, 1.2, ..., 4.2; rank 8 is in the other node: 3 us more.
  expect_equal(of("bcast", "linear", 9, 1000, "hockney"), mean(c(7.2, 0.6 * 1:7, 7.2)))
})

test_that("LogGP by hand: small messages leave at the pace of the overhead", {
  # Messages of 0 bytes leave at 0.1 and 0.2 and arrive 0.4 later; the root is done at 0.2.
  expect_equal(of("bcast", "linear", 3, 0.001, "loggp"), mean(c(0.2, 0.5, 0.6)), tolerance = 1e-4)
})

test_that("shared links: no call is faster than the busiest unit", {
  # The root's core sends 7 messages of 1 MB at 1e-4 us a byte.
  expect_equal(of("bcast", "linear", 8, 1e6, "shared"), 700)
  # 8 of 15 messages of a binomial tree over 16 ranks leave the node.
  expect_equal(of("bcast", "binomial", 16, 1e6, "shared"), 8 * 1e3, tolerance = 0.05)
})

test_that("a reduce by hand: the root waits for what arrives, and one receiver's bytes follow each other", {
  # Two messages of 1000 B at 1e-4 us a byte: the first is there after 0.5 + 0.1, the second's bytes 0.1 later; the two
  # senders leave after their overhead.
  expect_equal(of("reduce", "linear", 3, 1000, "loggp"), mean(c(0.5 + 0.1 + 0.1, 0.1, 0.1)))
  expect_equal(of("reduce", "linear", 3, 1000, "shared"), of("reduce", "linear", 3, 1000, "loggp"))
  # Combining a byte costs the receiver.
  dear <- utils::modifyList(costs, list(combine_byte = 1e-3))
  slow <- model_messages(flat, "reduce", "linear", "core", 2, 1000, dear, "loggp")
  expect_equal(slow - of("reduce", "linear", 2, 1000, "loggp"), 1 / 2)
})

test_that("shared links of a reduce: subtrees of the same height share, one message for each receiver", {
  # Binary tree of 16 ranks over two nodes; the gap of a message is at least that of its level.
  place <- place_ranks(flat, "bcast", "core", 16)
  parent <- tree("reduce", "binary", 16)
  gap <- shared_gaps(place, parent, costs)
  crossing <- seq_along(parent) %/% 8 != parent %/% 8
  expect_true(all(gap[crossing] >= 1e-3) && all(gap[!crossing] >= 1e-4))
  # Ranks 8 to 15 are leaves; as many receivers in the other node as they have share the node's link.
  expect_equal(max(gap), 1e-3 * length(unique(parent[crossing & seq_along(parent) > 7 & parent > 2])))
})

test_that("a level with one unit in each enclosing one, which no ladder can measure, changes no model", {
  single <- launched_study(
    list(list(name = "node", count = 2), list(name = "socket", count = 1), list(name = "core", count = 8)),
    list(bcast = c("linear", "binomial"), reduce = "binomial", allreduce = c("ring", "recursive_doubling")), c(4, 16)
  )
  unmeasured <- utils::modifyList(costs, list(
    latency = c(node = 2, socket = NA, core = 0.5), gap_byte = c(node = 1e-3, socket = NA, core = 1e-4)
  ))
  for (form in c("hockney", "loggp", "shared")) {
    for (algorithm in list(c("bcast", "linear"), c("bcast", "binomial"), c("reduce", "binomial"),
                           c("allreduce", "ring"), c("allreduce", "recursive_doubling"))) {
      found <- model_messages(single, algorithm[1], algorithm[2], "core", 16, c(8, 1e6), unmeasured, form)
      expect_equal(found, of(algorithm[1], algorithm[2], 16, c(8, 1e6), form), info = paste(form, algorithm[2]))
    }
  }
})

test_that("links with a bandwidth in each direction carry an exchange in half the time", {
  place <- place_ranks(flat, "bcast", "core", 16)
  both <- list(gap_byte = costs$gap_byte)
  expect_equal(busy_units(place, c(0, 8), c(8, 0), both), rep(2e-3, 2))
  expect_equal(busy_units(place, c(0, 8), c(8, 0), c(both, full_duplex = "node")), rep(1e-3, 2))
})

test_that("the default is the model of what its table chooses, NA without one", {
  decided <- flat
  decided$decisions <- list(bcast = tibble::tibble(
    ranks = c(4, Inf, Inf), bytes = c(Inf, 64, Inf), algorithm = c("linear", "knomial", "scatter_allgather"),
    parameters = ""
  ))
  default <- function(processes, size) {
    model_messages(decided, "bcast", "default", "core", processes, size, costs, "loggp")
  }
  expect_equal(default(3, c(8, 1000)), of("bcast", "linear", 3, c(8, 1000), "loggp"))
  knomial <- time_tree(
    place_ranks(flat, "bcast", "core", 8), "bcast", plain("knomial"), tree("bcast", "knomial", 8), 8, costs, "loggp",
    rowMeans
  )
  expect_equal(default(8, c(8, 64)), c(knomial, NA))
  expect_null(of("bcast", "default", 8, 8, "loggp"))
})

test_that("the table of Open MPI's decisions is not that of another library in the study", {
  rows <- toy_rows("bcast", rep(c("default", "binomial"), 2), 8, 8, 1)
  rows$mpi <- rep(c("openmpi", "mpich"), each = 2)
  decided <- read_results(make_study(rows, levels = flat$machine$levels))$study
  decided$decisions <- list(bcast = tibble::tibble(ranks = Inf, bytes = Inf, algorithm = "binomial", parameters = ""))
  default <- function(mpi, algorithm = "default") {
    model_messages(decided, "bcast", algorithm, paste0("core, ", mpi), 8, 8, costs, "loggp")
  }
  expect_equal(default("openmpi"), default("openmpi", "binomial"))
  expect_gt(default("mpich", "binomial"), 0)
  expect_null(default("mpich"))
})

test_that("segments overlap in a pipeline", {
  whole <- of("bcast", "pipeline", 8, 1e6, "loggp")
  expect_lt(of("bcast", "pipeline:segment_bytes=10000", 8, 1e6, "loggp"), whole / 3)
})

test_that("Rabenseifner with fewer elements than processes is linear", {
  expect_equal(of("reduce", "rabenseifner", 8, 2, "loggp"), of("reduce", "linear", 8, 2, "loggp"))
  expect_true(all(is.finite(of("reduce", "rabenseifner", 13, c(16, 1e5), "shared"))))
})

test_that("no model is below the bound", {
  for (algorithm in c("linear", "pipeline", "binomial", "chain")) {
    expect_gte(of("bcast", algorithm, 16, 1e5, "shared"), bound_latency(flat, "bcast", "core", 16, 1e5, costs))
  }
})

test_that("a fit finds the costs with which the times were made", {
  rows <- tidyr::expand_grid(processes = c(3, 8, 13, 16), size_bytes = 2^(0:20))
  for (collective in c("bcast", "reduce")) {
    algorithm <- if (collective == "bcast") "binary_tree" else "binary"
    context <- list(study = flat, collective = collective, algorithm = algorithm, mapping = "core", costs = costs)
    factors <- c(log(c(1.7, 0.6, 2.2)), if (collective == "reduce") log(3e-4))
    rows$latency_us <- messages_of(rows, context, scale_costs(costs, factors), "shared")
    found <- messages_of(rows, context, fit_messages(rows, context), "shared")
    expect_lt(max(abs(found / rows$latency_us - 1)), 0.02)
  }
})

test_that("selection: a model's picks, and what they cost", {
  cell <- list(collective = "bcast", mapping = "core", processes = 4, size_bytes = c(1, 1, 2, 2))
  predictions <- tibble::tibble(
    !!!cell, model = "m", algorithm = c("a", "b", "a", "b"), latency_us = c(1, 2, 3, 2), predicted_us = c(1, 5, 1, 5)
  )
  medians <- tibble::tibble(
    collective = "bcast", mapping = "core", processes = 4, size_bytes = c(1, 2), algorithm = "default",
    latency_us = c(1, 4)
  )
  found <- summarise_selection(predictions, medians)
  expect_equal(found$model, c("m", "library_default"))
  expect_equal(found$pick_accuracy_pct, c(50, 50))
  expect_equal(found$geometric_mean_regret_pct, 100 * (sqrt(c(1.5, 2)) - 1))
  expect_equal(found$mean_regret_pct, c(25, 50))
})

test_that("every study has the two files, with and without a ladder", {
  results <- read_results(make_study(lawful(), levels = thin_levels))
  models <- models_of(results)
  names(models) <- vapply(models, function(entry) entry$id, "")
  expect_true(all(c("comparison", "selection") %in% names(models)))
  comparison <- models$comparison$data
  expect_named(comparison, c("collective", "algorithm", "mapping", "model", "held_out_cells", "held_out_mape_pct"))
  expect_true("loggp_fitted" %in% comparison$model)
  expect_false("hockney" %in% comparison$model)
})

test_that("allreduce by hand: doubling, a ring, and pairs that are left over", {
  # Two steps of 0.5 + 0.1 us each; with a rank more a message before and one after.
  expect_equal(of("allreduce", "recursive_doubling", 4, 1000, "loggp"), 2 * 0.6)
  expect_equal(of("allreduce", "recursive_doubling", 3, 2000, "hockney"), mean(c(3, 2, 3)) * 0.7)
  # 2 (P - 1) steps with a quarter of the bytes each; fewer bytes than ranks are doubled instead.
  expect_equal(of("allreduce", "ring", 4, 4000, "loggp"), 6 * 0.6)
  expect_equal(of("allreduce", "ring", 4, 2, "loggp"), of("allreduce", "recursive_doubling", 4, 2, "loggp"))
  expect_equal(of("allreduce", "segmented_ring", 4, 4000, "loggp"), of("allreduce", "ring", 4, 4000, "loggp"))
  # Halves, then quarters, and back.
  expect_equal(of("allreduce", "rabenseifner", 4, 4000, "loggp"), 4 * 0.5 + 2 * (0.2 + 0.1))
  # In a step of halving 8 messages leave each node and 8 enter: 16 times the gap.
  expect_equal(of("allreduce", "recursive_doubling", 16, 1e6, "shared"), 3 * (2 * 100 + 0.5) + 16e3 + 2)
})

test_that("an allreduce made of two: the root reduces, then broadcasts to ranks that wait", {
  reduced <- model_messages(flat, "reduce", "linear", "core", 4, 8, costs, "loggp", function(time) time[, 1])
  expect_equal(of("allreduce", "linear", 4, 8, "loggp"), reduced + of("bcast", "linear", 4, 8, "loggp"))
  expect_equal(of("allreduce", "rabenseifner", 4, 2, "loggp"), of("allreduce", "linear", 4, 2, "loggp"))
  expect_true(is.na(of("allreduce", "nonoverlapping", 4, 8, "loggp")))
  decided <- flat
  row <- function(algorithm) tibble::tibble(ranks = Inf, bytes = Inf, algorithm = algorithm, parameters = "")
  decided$decisions <- list(reduce = row("linear"), bcast = row("linear"), allreduce = row("nonoverlapping"))
  for (name in c("nonoverlapping", "default")) {
    found <- model_messages(decided, "allreduce", name, "core", 4, 8, costs, "loggp")
    expect_equal(found, of("allreduce", "linear", 4, 8, "loggp"))
  }
})

test_that("no model of an allreduce is below the bound", {
  for (algorithm in c("recursive_doubling", "ring", "rabenseifner", "linear")) {
    found <- of("allreduce", algorithm, 16, c(64, 1e5), "shared")
    expect_true(all(found >= bound_latency(flat, "allreduce", "core", 16, c(64, 1e5), costs)))
  }
})

test_that("models are compared on the cells that most of them cover", {
  comparison <- tibble::tibble(
    model = c("interpolation", "interpolation", "loggp", "hockney", "hockney"), held_out_cells = c(30, 10, 10, 30, 10),
    held_out_mape_pct = c(20, 60, 5, 40, 40)
  )
  expect_match(
    describe_held_out(comparison, "bcast", list(simulated = FALSE)),
    "is 30 % \\(log-interpolation\\); of the models that need only ping-pongs, 40 % \\(Hockney's model\\)"
  )
  expect_match(
    describe_held_out(comparison[1:3, ], "bcast", list(simulated = FALSE)),
    paste(
      "the smallest mean error of a model on the 40 latencies left out of the fit is 30 % (log-interpolation); of the",
      "models that need only ping-pongs, 5.0 % (LogGP, which covers 10 of the 40 latencies)"
    ), fixed = TRUE
  )
  selection <- tibble::tibble(
    collective = "bcast", model = c("interpolation", "interpolation", "loggp"), cells = c(30, 10, 10),
    pick_accuracy_pct = c(80, 40, 100), geometric_mean_regret_pct = c(10, 10, 0)
  )
  study <- list(simulated = FALSE, analysis = list(tie_pct = 2))
  expect_match(
    describe_picks(selection, study),
    "by log-interpolation is within 2 % .* in 70 % of the 40 held-out cells; .*, those selected by LogGP"
  )
})

test_that("selections are not compared with an algorithm that no model covers, and the sentence says so", {
  # Linear is the fastest, but has too few process counts for a model.
  predictions <- tibble::tibble(
    collective = "bcast", algorithm = c("chain", "binomial"), mapping = "core", model = "hops", processes = 8,
    size_bytes = 1, latency_us = c(4, 5), predicted_us = c(4, 5)
  )
  medians <- tibble::tibble(
    collective = "bcast", algorithm = c("default", "linear", "chain", "binomial"), mapping = "core", processes = 8,
    size_bytes = 1, latency_us = c(2, 1, 4, 5)
  )
  selection <- summarise_selection(predictions, medians)
  expect_equal(selection$geometric_mean_regret_pct[selection$model == "library_default"], -50)
  told <- describe_picks(selection, list(simulated = FALSE, analysis = list(tie_pct = 2)))
  expect_match(told, "^Broadcast, among the algorithms that the models cover \\(without the default\\)")
  expect_match(told, "The library's default is 50 % faster than the fastest of them.", fixed = TRUE)
})

test_that("an algorithm of the default is unrecorded only where the study does not know its decisions", {
  of_default <- tibble::tibble(collective = c("bcast", "reduce"), model = "interpolation")
  told <- describe_unrecorded(of_default, list(decisions = list(bcast = tibble::tibble())), "hockney")
  expect_match(told, "selected for reduce are not recorded, so Hockney's model and LogGP do not cover the default.")
  # Of collectives without models of messages, no algorithm has one.
  of_default$collective <- c("barrier", "scatter")
  expect_null(describe_unrecorded(of_default, list(), "hockney"))
})

test_that("only models that a study has are explained: without ping-pongs there is only the fitted LogGP", {
  results <- read_results(make_study(lawful(), levels = thin_levels))
  results$models <- list(
    comparison = tibble::tibble(
      collective = "bcast", algorithm = "default", mapping = "core", model = c("interpolation", "loggp_fitted"),
      held_out_cells = 10, held_out_mape_pct = c(5, 6)
    ),
    selection = tibble::tibble(
      collective = "bcast", mapping = "core", model = "interpolation", cells = 10, algorithms = 2,
      pick_accuracy_pct = 90, geometric_mean_regret_pct = 1
    )
  )
  told <- paste(sentences_of_models(results)$text, collapse = " ")
  expect_match(told, "LogGP follows the messages of the algorithm\\. The fitted LogGP has one factor for the latencies")
  expect_match(told, "fitted to at most four of the process counts")
  expect_no_match(told, "Hockney")
  results$models$comparison$model[2] <- "loggp"
  told <- paste(sentences_of_models(results)$text, collapse = " ")
  expect_match(told, "Hockney's model and LogGP compute a latency from the messages of the algorithm and the costs of")
  expect_no_match(told, "fitted LogGP")
  caption <- models_of_study(results, list())[[1]]$caption
  expect_match(caption, "assumed ratios between the levels\\. The fitted LogGP has one factor for the latencies of all")
})

test_that("process counts whose ranks may be in two places have no models of messages", {
  folder <- make_study(lawful(), levels = thin_levels)
  ranks <- readr::read_csv(file.path(folder, "ranks.csv"), show_col_types = FALSE)
  # Another collective placed 4 ranks two on a node.
  other <- dplyr::mutate(ranks[ranks$rank < 4, ], from_processes = 4, to_processes = 4, per_node = 2, node = rank %/% 2)
  readr::write_csv(dplyr::bind_rows(ranks, other), file.path(folder, "ranks.csv"), na = "")
  results <- read_results(folder)
  expect_null(place_ranks(results$study, "bcast", "core", 4))
  expect_gt(nrow(predict_held_out(results, "bcast")), 0)
})

test_that("models in sentences are named as in speech, not as in legends", {
  expect_equal(purrr::map_chr(names(models_of_messages), model_in_text), c(
    "the latency-only model (Derin 2025)", "Hockney's model", "LogGP", "LogGP with shared links", "the fitted LogGP"
  ))
  expect_equal(model_in_text("interpolation"), "log-interpolation")
  of_default <- tibble::tibble(model = "hockney", mapping = "core", held_out_mape_pct = 41, held_out_cells = 10)
  expect_match(describe_modelled_default(of_default), "(mean error of Hockney's model: 41 %)", fixed = TRUE)
})

test_that("the error of the modelled default is the mean over its mappings, and cells of all mappings are counted", {
  of_default <- tibble::tibble(
    model = rep(c("loggp", "interpolation"), each = 2), mapping = rep(c("core", "node"), 2),
    held_out_mape_pct = c(10, 30, 1, 1), held_out_cells = c(10, 10, 12, 12)
  )
  said <- describe_modelled_default(of_default)
  expect_match(said, "mean error of LogGP: 20 %", fixed = TRUE)
  expect_match(said, "in 4 of the 24 cells left out, no model covers", fixed = TRUE)
})

test_that("no two figures of models have the same title, which is their alternative text", {
  levels <- purrr::map(thin_levels, function(level) c(level, list(latency_us = 1, bandwidth_gb_s = 1)))
  titles <- purrr::map_chr(figures_of_messages(read_results(make_study(lawful(), levels = levels))), function(figure) {
    figure$plot$labels$title
  })
  expect_gt(length(titles), 1)
  expect_equal(anyDuplicated(titles), 0)
})

test_that("points below the bound are due to barrier exit skew only where ranks do not start together", {
  levels <- purrr::map(thin_levels, function(level) c(level, list(latency_us = 1, bandwidth_gb_s = 1)))
  captions <- function(barriers) {
    # Faster than any message.
    folder <- make_study(dplyr::mutate(lawful(), latency_us = 1e-3), levels = levels)
    change_study(folder, provenance = list(barriers = barriers))
    purrr::map_chr(figures_of_messages(read_results(folder)), "caption")
  }
  skew <- "points are below the bound because of barrier exit skew"
  expect_match(captions(list()), skew, all = TRUE)
  expect_match(captions(list("aligned", "default")), skew, all = TRUE)
  for (together in c("aligned", "window")) {
    found <- captions(list(together))
    expect_match(found, "points are below the bound\\.", all = TRUE)
    expect_false(any(grepl("skew", found)))
  }
})
