# Two machines of one kind, where chain is the fastest from 64 ranks on, and one where the default always is.
machines <- function() {
  grid <- expand.grid(
    algorithm = c("default", "chain", "linear"), processes = c(8, 64), size_bytes = c(1, 2, 4, 1024, 2048),
    machine = c("a", "b", "c"), stringsAsFactors = FALSE
  )
  factor <- with(grid, ifelse(algorithm == "linear", 2, ifelse(
    algorithm == "chain" & machine != "c" & processes == 64, 0.5, ifelse(algorithm == "chain", 1.25, 1)
  )))
  toy_rows("bcast", grid$algorithm, grid$processes, grid$size_bytes, factor * grid$processes) |>
    dplyr::mutate(machine = grid$machine, simulated = FALSE, nodes = 2)
}

atlas_of <- function(rows) {
  results <- read_results(make_study(rows))
  results$study$chapter <- "atlas"
  results
}

test_that("the default's regret by machine and collective, by hand", {
  rows <- atlas_rows(atlas_of(machines()))
  found <- summarise_atlas(rows)
  expect_equal(found$machine, c("a", "b", "c"))
  expect_equal(found$geometric_mean_pct, c(100 * (sqrt(2) - 1), 100 * (sqrt(2) - 1), 0))
  expect_equal(found$slower_pct, c(50, 50, 0))
  expect_equal(found$cells, c(10, 10, 10))
})

test_that("a rule is learned only where every machine that teaches it gains", {
  rows <- atlas_rows(atlas_of(machines()))
  expect_equal(nrow(learn_rule(rows)), 0)
  two <- learn_rule(rows[rows$machine != "c", ])
  expect_equal(unique(two[c("rank_class", "algorithm")]), tibble::tibble(rank_class = 64, algorithm = "chain"))
})

test_that("leave one machine out: nothing of the machine reaches its rule", {
  found <- summarise_one_rule(atlas_rows(atlas_of(machines())))
  of <- function(policy) found$geometric_mean_pct[found$policy == policy]
  expect_equal(of("one rule for all machines"), of("default"))
  # On c the rule of a and b is wrong: 1.25 in half of the cells.
  expect_equal(of("rule of the other machines"), c(100 * (sqrt(2) - 1), 100 * (sqrt(2) - 1), 100 * (sqrt(1.25) - 1)))
})

test_that("winners agree between machines of one kind", {
  found <- summarise_winner_agreement(atlas_rows(atlas_of(machines())))
  pair <- function(one, two) found[found$machine == one & found$other == two, ]
  expect_equal(pair("a", "b")$same_winner_pct, 100)
  expect_equal(pair("a", "c")$same_winner_pct, 50)
  expect_equal(pair("c", "a")$winner_costs_pct, 100 * (sqrt(1.25) - 1))
})

test_that("authors of one machine are compared within each, those of two machines are not", {
  rows <- dplyr::filter(machines(), .data$machine != "b")
  # The slow author of a has no linear algorithm: pooled, linear would be the fastest.
  slow <- dplyr::mutate(dplyr::filter(rows, .data$machine == "a", .data$algorithm != "linear"),
    latency_us = 9 * latency_us, launch = 2
  )
  both <- dplyr::bind_rows(dplyr::mutate(rows, source = paste("of", machine)), dplyr::mutate(slow, source = "slow"))
  results <- atlas_of(both)
  found <- atlas_rows(results)
  alone <- atlas_rows(atlas_of(rows))
  keys <- c("machine", "algorithm", "processes", "size_bytes")
  together <- dplyr::inner_join(found, alone, keys)
  expect_equal(nrow(together), nrow(alone))
  expect_equal(together$slowdown.x, together$slowdown.y, tolerance = 1e-3)
  expect_equal(together$latency_us.x / together$latency_us.y, ifelse(together$machine == "a", 3, 1), tolerance = 1e-3)
  expect_match(pooling_note(results), "compared within the data of each author")
  expect_null(pooling_note(atlas_of(rows)))
})

test_that("machines without a common cell have no agreement, and no warning", {
  rows <- dplyr::filter(machines(), .data$machine != "b")
  rows$collective[rows$machine == "c"] <- "reduce"
  apart <- atlas_rows(atlas_of(rows))
  expect_setequal(apart$machine, c("a", "c"))
  expect_no_warning(expect_equal(nrow(summarise_winner_agreement(apart)), 0))
})

test_that("of equally fast algorithms each is a winner, in whatever order they were measured", {
  rows <- toy_rows("bcast", c("default", "chain", "linear"), 4, 1, c(2, 2, 3))
  rows <- dplyr::bind_rows(
    dplyr::mutate(rows, machine = "a"),
    dplyr::mutate(rows[c(2, 1, 3), ], latency_us = c(5, 8, 5)[c(1, 2, 3)], machine = "b")
  )
  found <- summarise_winner_agreement(atlas_rows(atlas_of(dplyr::mutate(rows, simulated = FALSE))))
  expect_equal(found$same_winner_pct, c(100, 100))
  # The winners of b take 2 and 3 on a; those of a take 8 and 5 on b.
  expect_equal(found$winner_costs_pct[found$machine == "a"], 100 * (sqrt(2 * 3) / 2 - 1))
  expect_equal(found$winner_costs_pct[found$machine == "b"], 100 * (sqrt(8 * 5) / 5 - 1))
})

test_that("the chapter has tables, a figure and sentences that name the machines", {
  results <- atlas_of(machines())
  folder <- tempfile()
  write_analysis(results, folder)
  expect_true(all(file.exists(file.path(folder, c(
    "tables/atlas-default.csv", "tables/atlas-one-rule.csv", "tables/atlas-agreement.csv",
    "tables/guidelines-violations.csv", "figures/atlas-default.svg"
  )))))
  # What a column shows is in its name or in the caption.
  captions <- readr::read_csv(file.path(folder, "tables/index.csv"), show_col_types = FALSE)
  expect_match(captions$caption[captions$id == "atlas-one-rule"], "Changed: the share of the cells", fixed = TRUE)
  told <- readr::read_csv(file.path(folder, "sentences.csv"), show_col_types = FALSE)
  expect_match(told$text[told$section == "answer"], "^a: the default is slower", all = FALSE)
  expect_false("how" %in% told$section)
  drawn <- readr::read_csv(file.path(folder, "figures", "index.csv"), show_col_types = FALSE)
  expect_match(drawn$title, "^Broadcast on a: the default takes on average 1.4 times as long as the fastest")
})

test_that("the caption says which latencies are those of the slowest rank", {
  results <- atlas_of(machines())
  results$rows$statistic <- ifelse(results$rows$machine == "b", "slowest_rank_median", NA)
  expect_match(figures_atlas(results)[[1]]$caption, "means over the ranks, on b those of the slowest rank\\.$")
  results$rows$statistic <- NA_character_
  expect_null(statistic_note(results))
})

test_that("tables, figure and sentences have the labels of the machines, unless two share one", {
  results <- atlas_of(machines())
  results$study$machine_labels <- list(a = "Machine A", b = "Twin", c = "Twin")
  expect_equal(unique(atlas_rows(results)$machine), c("Machine A", "b", "c"))
  expect_match(describe_atlas_answer(results)[1], "^Machine A: ")
  expect_equal(sort(as.character(unique(plot_atlas(results)$data$where))), c("Machine A", "b", "c"))
})

test_that("a machine on which the default is always the fastest is not said to be slower by 0", {
  said <- describe_atlas_answer(atlas_of(machines()))
  expect_match(said[3], "^c: the default is as fast as the best measured algorithm in all 10 cells\\.$")
})

test_that("an atlas of two ranks says that it needs more", {
  said <- describe_atlas_answer(atlas_of(dplyr::mutate(machines(), processes = 2)))
  expect_match(said, "^No machine has cells of more than two ranks with both the default and another algorithm\\.$")
})
