# All machines together (`chapter: atlas`): where the library's default is not the fastest algorithm, and whether a
# selection rule from one machine helps on another.

#' Latency of every algorithm over the best of its place
#'
#' A place is a machine, collective, mapping (with processes per node), number of processes (three or more) and message
#' size where the default and another algorithm have a latency. The launches of a machine's authors are pooled
#' ([within_sources()]).
#'
#' @param results List from [read_results()] of a study that gathers others.
#' @return Tibble: machine, simulated, collective, mapping, processes, size_bytes, algorithm, latency_us, slowdown,
#'   gain (log of the default's latency over this one's), rank_class and size_class (nearest power of two and of four:
#'   the resolution of a rule for all machines).
#' @noRd
atlas_rows <- function(results) {
  if (!is.null(results$atlas)) return(results$atlas)
  # Only the columns that are used, because the rows are copied several times.
  used <- c(
    "machine", "simulated", "collective", "algorithm", "parameters", "mpi", "mapping", "nodes", "processes",
    "size_bytes", "latency_us", "flag", "source", "launch", "round", "runs"
  )
  rows <- label_machines(results$rows[used], results$study$machine_labels)
  # Between two ranks all algorithms send the same message.
  rows <- rows[!rows$collective %in% c(point_to_point, applications) & rows$processes > 2, ]
  rows <- bind_rows(rows[0, ], map(unname(split(rows, rows$machine)), rows_in_place)) |>
    pool_same_messages() |>
    within_sources()
  if (nrow(rows) == 0) return(mutate(rows, slowdown = numeric(), gain = numeric()))
  place <- c("machine", "simulated", "collective", "mapping", "processes", "size_bytes")
  # Without a loop over groups: there are tens of thousands of them.
  id <- vctrs::vec_group_id(rows[c(place, "algorithm")])
  cells <- rows[!duplicated(id), c(place, "algorithm")]
  cells$latency_us <- group_median(rows$latency_us, id, max(0L, attr(id, "n")))
  at <- vctrs::vec_group_id(cells[place])
  best <- default <- rep(Inf, max(0L, attr(at, "n")))
  is_default <- cells$algorithm == "default"
  default[at[is_default]] <- cells$latency_us[is_default]
  slowest_first <- order(-cells$latency_us)
  best[at[slowest_first]] <- cells$latency_us[slowest_first]
  compared <- is.finite(default)[at] & tabulate(at, length(best))[at] > 1
  mutate(cells, slowdown = .data$latency_us / best[at], gain = log(default[at] / .data$latency_us)) |>
    filter(compared) |>
    mutate(
      rank_class = 2^round(log2(.data$processes)), size_class = 4^round(log2(pmax(.data$size_bytes, 1)) / 2)
    )
}

#' Replace the names of machines by their labels, except where two machines share a label
#' @noRd
label_machines <- function(rows, labels) {
  labels <- unlist(labels)
  labels <- labels[!labels %in% labels[duplicated(labels)]]
  if (length(labels) == 0) return(rows)
  mutate(rows, machine = coalesce(unname(labels[.data$machine]), .data$machine))
}

#' Slow-down of the default by machine and collective
#'
#' @param rows Tibble from [atlas_rows()].
#' @return Tibble: machine, simulated, collective, slower_pct (share of cells in which the default is more than 5 %
#'   slower than the best; two authors of one machine differ by as much), columns of [summarise_slowdown()].
#' @noRd
summarise_atlas <- function(rows) {
  filter(rows, .data$algorithm == "default") |>
    group_by(.data$machine, .data$simulated, .data$collective) |>
    summarise(
      slower_pct = 100 * mean(.data$slowdown > 1.05), regret = summarise_slowdown(.data$slowdown), .groups = "drop"
    ) |>
    tidyr::unpack("regret") |>
    arrange(.data$simulated, .data$machine, desc(.data$geometric_mean_pct))
}

#' Fit one selection rule to machines: for each collective, class of ranks and class of sizes the algorithm with the
#' largest mean gain over the default, all machines with equal weight; the default where that gain is not clear (two
#' standard errors over the cells) or where the algorithm is slower than the default on one of the machines
#' @noRd
learn_rule <- function(rows) {
  keys <- c("collective", "rank_class", "size_class")
  rows |>
    filter(.data$algorithm != "default") |>
    group_by(across(all_of(c(keys, "algorithm", "machine")))) |>
    summarise(mean = mean(.data$gain), variance = stats::var(.data$gain), cells = n(), .groups = "drop") |>
    # A class of one cell has no variance of its own.
    group_by(.data$collective, .data$algorithm) |>
    mutate(variance = coalesce(.data$variance, mean(.data$variance, na.rm = TRUE), Inf)) |>
    group_by(across(all_of(c(keys, "algorithm")))) |>
    summarise(
      gain = mean(.data$mean), worst = min(.data$mean),
      error = sqrt(sum(.data$variance / .data$cells)) / n(), .groups = "drop"
    ) |>
    filter(.data$worst > 0, .data$gain > 2 * .data$error, .data$gain > 0.02) |>
    group_by(across(all_of(keys))) |>
    slice_max(.data$gain, n = 1, with_ties = FALSE) |>
    ungroup() |>
    select(all_of(keys), "algorithm")
}

#' Rows of the algorithm that a rule selects in each cell; the default where the rule has no entry or names an algorithm
#' without a latency in the cell
#' @noRd
judge_rule <- function(rows, rule) {
  cell <- c("machine", "collective", "mapping", "processes", "size_bytes")
  chosen <- inner_join(rows, rule, by = c("collective", "rank_class", "size_class", "algorithm"))
  default <- anti_join(filter(rows, .data$algorithm == "default"), chosen, by = cell)
  bind_rows(chosen, default)
}

#' Slow-down of the default, of one rule for all machines and of a rule that was fitted to the other machines
#'
#' @param rows Tibble from [atlas_rows()].
#' @return Tibble: machine, simulated, policy (default; one rule for all machines; rule of the other machines), cells,
#'   geometric_mean_pct, mean_pct, median_pct, p90_pct, p99_pct, max_pct, changed_pct (cells that do not use the
#'   default). Only collectives that at least two machines have are included.
#' @noRd
summarise_one_rule <- function(rows) {
  shared <- distinct(rows, .data$machine, .data$collective) |> count(.data$collective) |> filter(.data$n > 1)
  rows <- filter(rows, .data$collective %in% shared$collective)
  none <- tibble(machine = character(), policy = character(), changed_pct = numeric())
  if (nrow(rows) == 0) return(none)
  all <- learn_rule(rows)
  found <- map(unique(rows$machine), function(machine) {
    here <- rows[rows$machine == machine, ]
    policies <- list(
      default = filter(here, .data$algorithm == "default"), `one rule for all machines` = judge_rule(here, all),
      `rule of the other machines` = judge_rule(here, learn_rule(rows[rows$machine != machine, ]))
    )
    bind_rows(imap(policies, function(chosen, policy) {
      bind_cols(
        tibble(
          machine = machine, simulated = chosen$simulated[1], policy = policy,
          changed_pct = 100 * mean(chosen$algorithm != "default")
        ),
        summarise_slowdown(chosen$slowdown)
      )
    }))
  })
  bind_rows(found)
}

#' Agreement between machines on the fastest algorithm, over cells of two machines with the same collective, mapping,
#' ranks and size, among the algorithms that both have there
#'
#' @param rows Tibble from [atlas_rows()].
#' @return Tibble: machine, other, collective, cells, same_winner_pct, winner_costs_pct (slow-down on this machine of
#'   the other machine's fastest algorithm, geometric mean), default_costs_pct (slow-down of the default).
#' @noRd
summarise_winner_agreement <- function(rows) {
  machines <- unique(rows$machine)
  pairs <- expand.grid(machine = machines, other = machines, stringsAsFactors = FALSE)
  pairs <- pairs[pairs$machine != pairs$other, ]
  keys <- c("collective", "mapping", "processes", "size_bytes")
  none <- tibble(
    machine = character(), other = character(), collective = character(), cells = integer(),
    same_winner_pct = numeric(), winner_costs_pct = numeric(), default_costs_pct = numeric()
  )
  bind_rows(none, pmap(pairs, function(machine, other) {
    there <- select(rows[rows$machine == other, ], all_of(keys), "algorithm", there_us = "latency_us")
    shared <- inner_join(rows[rows$machine == machine, ], there, by = c(keys, "algorithm")) |>
      group_by(across(all_of(keys))) |>
      filter("default" %in% .data$algorithm, n() > 1)
    if (nrow(shared) == 0) return(NULL)
    shared |>
      summarise(
        same = any(.data$latency_us == min(.data$latency_us) & .data$there_us == min(.data$there_us)),
        winner = geometric_mean(.data$latency_us[.data$there_us == min(.data$there_us)]) / min(.data$latency_us),
        default = .data$latency_us[.data$algorithm == "default"] / min(.data$latency_us), .groups = "drop"
      ) |>
      group_by(.data$collective) |>
      summarise(
        cells = n(), same_winner_pct = 100 * mean(.data$same),
        winner_costs_pct = 100 * (geometric_mean(.data$winner) - 1),
        default_costs_pct = 100 * (geometric_mean(.data$default) - 1)
      ) |>
      mutate(machine = machine, other = other, .before = 1)
  }))
}

tables_atlas <- function(results) {
  rows <- atlas_rows(results)
  made <- list(
    listed("atlas", "default", summarise_atlas(rows), paste(
      "Regret of the library's default by machine and collective, in cells of more than two processes.",
      pooling_note(results), slowdown_note
    )),
    listed("atlas", "one-rule", summarise_one_rule(rows), paste(
      "Regret of one selection rule for all machines (by collective, nearest power of two of the ranks and nearest",
      "power of four of the message size), fitted to all machines, also that of the row, or only to the others. The",
      "rule keeps the default unless another algorithm is faster on average over the machines (each with the same",
      "weight), by more than 2 % and two standard errors, and slower on none of the machines fitted to. A class with",
      "one cell has the mean variance of the algorithm's other classes. Changed: the share of the cells in which the",
      "policy does not use the default."
    )),
    listed("atlas", "agreement", summarise_winner_agreement(rows), paste(
      "Agreement between machines on the fastest algorithm (winner) in cells with the same collective, mapping, number",
      "of ranks and message size. Algorithms with the same lowest latency are all winners, and one in common suffices.",
      "Costs: slow-down on the machine (geometric mean) of the other machine's winner and",
      "of the default."
    ))
  )
  c(made, tables_guidelines(results), tables_of_gathered(results))
}

#' Figure of the default's regret on every machine, one line for each collective
#'
#' @param results List from [read_results()].
#' @return ggplot: point = geometric mean, thick line from the median to the 90th, thin line to the 99th percentile.
#' @noRd
plot_atlas <- function(results) {
  rows <- summarise_atlas(atlas_rows(results))
  rows <- mutate(rows,
    where = machine_name(.data$machine, .data$simulated),
    collective = collective_word(.data$collective)
  )
  # The machine with the largest regret is on top, as in the answer; so is the worst collective of each machine.
  by_machine <- map_dbl(split(rows, rows$where), function(part) pooled_regret(part$geometric_mean_pct, part$cells))
  rows$where <- factor(rows$where, names(sort(by_machine, decreasing = TRUE)))
  rows$line <- factor(seq_len(nrow(rows)), rev(seq_len(nrow(rows))))
  cells <- scales::label_comma(1)(rows$cells)
  words <- setNames(paste0(rows$collective, " (", cells, ")"), rows$line)
  times <- function(pct) 1 + pct / 100
  ggplot(rows, aes(y = .data$line)) +
    geom_vline(xintercept = 1, colour = "grey60", linewidth = 0.4) +
    geom_linerange(aes(xmin = times(.data$median_pct), xmax = times(.data$p99_pct)), linewidth = 0.4) +
    geom_linerange(
      aes(xmin = times(.data$median_pct), xmax = times(.data$p90_pct)), linewidth = 1.6, colour = "grey45"
    ) +
    geom_point(aes(times(.data$median_pct)), shape = "|", size = 4) +
    geom_point(aes(times(.data$geometric_mean_pct)), size = 2.6, colour = "#D55E00") +
    facet_grid(
      rows = vars(.data$where), scales = "free_y", space = "free_y", labeller = ggplot2::label_wrap_gen(16)
    ) +
    scale_y_discrete(labels = words) +
    scale_x_log10(
      breaks = c(1, 1.5, 2, 3, 5, 10, 20, 50, 100),
      labels = function(x) paste0(format(x, trim = TRUE, drop0trailing = TRUE), "\u00d7")
    ) +
    labs(
      title = atlas_title(rows),
      x = "Latency of the default / latency of the fastest measured algorithm of the cell (log scale)", y = NULL
    ) +
    theme_study() +
    theme(strip.text.y = element_text(angle = 0, hjust = 0))
}

#' Title of the figure: its largest slow-down
#' @noRd
atlas_title <- function(rows) {
  # As on the front page, collectives with few cells do not count as extremes.
  if (any(rows$cells >= few_cells)) rows <- rows[rows$cells >= few_cells, ]
  worst <- rows[which.max(rows$geometric_mean_pct), ]
  paste0(
    capitalised(worst$collective), " on ", worst$where, ": the default takes on average ",
    format_number(1 + worst$geometric_mean_pct / 100, 2), " times as long as the fastest"
  )
}

figures_atlas <- function(results) {
  found <- summarise_atlas(atlas_rows(results))
  if (nrow(found) == 0) return(list())
  list(figure("atlas", "default", plot_atlas(results), paste(
    "A cell is one collective, mapping, process count and message size; in parentheses: number of cells. Dot:",
    "geometric mean. Tick: median. Thick line: median to 90th percentile. Thin line: to the 99th percentile.",
    statistic_note(results)
  ), height = 1.5 + 0.32 * nrow(found) + 0.4 * n_distinct(found$machine)))
}

#' Which machines' latencies are those of the slowest rank, for captions; NULL where all are means over the ranks
#' @noRd
statistic_note <- function(results) {
  slowest <- filter(results$rows, startsWith(coalesce(.data$statistic, ""), "slowest_rank")) |>
    label_machines(results$study$machine_labels)
  slowest <- unique(slowest$machine)
  if (length(slowest) == 0) return(NULL)
  paste0("Latencies are means over the ranks, on ", and_list(within_text(slowest)), " those of the slowest rank.")
}

#' Sentences on the default's regret, one for each machine
#' @noRd
describe_atlas_answer <- function(results) {
  found <- summarise_atlas(atlas_rows(results))
  if (nrow(found) == 0) {
    return("No machine has cells of more than two ranks with both the default and another algorithm.")
  }
  # The front page shows the first sentence, so it is that of the machine with most cells.
  machines <- names(sort(tapply(found$cells, found$machine, sum), decreasing = TRUE))
  map_chr(split(found, factor(found$machine, machines)), function(rows) {
    worst <- rows[which.max(rows$geometric_mean_pct), ]
    if (worst$geometric_mean_pct == 0) {
      cells <- sum(rows$cells)
      return(paste0(
        machine_name(worst$machine, worst$simulated), ": the default is as fast as the best measured algorithm in ",
        if (cells == 1) "the only cell." else paste0("all ", format_count(cells), " cells.")
      ))
    }
    paste0(
      machine_name(worst$machine, worst$simulated), ": the default is slower than the best measured algorithm, most ",
      "for ", collective_word(worst$collective), ", by ", format_pct(worst$geometric_mean_pct),
      " (geometric mean over ", count_of(worst$cells, "cell"),
      if (worst$cells >= few_cells) paste0("; by at least ", format_pct(worst$p90_pct), " in a tenth of them"), ")",
      if (nrow(rows) > 1) paste0(
        ", and least for ", collective_word(rows$collective[which.min(rows$geometric_mean_pct)]), ", by ",
        format_pct(min(rows$geometric_mean_pct))
      ), "."
    )
  }) |> unname()
}

#' Sentences on one rule for all machines, and on the agreement between machines on the fastest algorithm
#' @noRd
describe_atlas <- function(results) {
  rows <- atlas_rows(results)
  rule <- summarise_one_rule(rows)
  agreement <- summarise_winner_agreement(rows)
  if (nrow(rule) == 0) return("No two machines share a collective, so no rule of one machine was tested on another.")
  wide <- pivot_wider(
    select(rule, "machine", "policy", "geometric_mean_pct"), names_from = "policy", values_from = "geometric_mean_pct"
  )
  c(
    paste0(
      wide$machine, ", collectives shared with other machines: the default is ", format_pct(wide$default),
      " slower than the best algorithm, one rule fitted to all machines (this one included) ",
      format_pct(wide[["one rule for all machines"]]), " and a rule fitted to the other machines ",
      format_pct(wide[["rule of the other machines"]]), " (geometric means)."
    ),
    if (nrow(agreement) > 0) paste0(
      collective_title(agreement$collective), ": the fastest algorithm on ", within_text(agreement$machine),
      " is also the fastest on ", within_text(agreement$other), " in ", format_pct(agreement$same_winner_pct), " of ",
      format_number(agreement$cells, 6), " common cells. Used on ", within_text(agreement$machine), ", the choice of ",
      within_text(agreement$other), " is ", format_pct(agreement$winner_costs_pct), " slower than the fastest, the ",
      "default ", format_pct(agreement$default_costs_pct), " (geometric means)."
    )
  )
}
