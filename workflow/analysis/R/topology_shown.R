# Topology-aware collectives: tables, figures and sentences.

tables_topology <- function(results) {
  rows <- topology_rows(results)
  if (nrow(rows) == 0) return(list())
  dir.create(file.path(results$study$folder, "tables"), showWarnings = FALSE, recursive = TRUE)
  readr::write_lines(write_decision_rules(results), file.path(results$study$folder, "tables", "decision-rules.txt"))
  note <- simulated_note(results$study)
  c(
    list(
      listed("speedup", "by-hosts", speedup_table(results, rows), paste0(
        "Speed-up over the default", note, ", by order of hosts and message size: geometric mean, minimum and maximum ",
        "over nodes and processes per node. Baseline: the library's default with the same hosts, nodes, processes ",
        "and message size. ", slowest_note
      )),
      listed("choice", "policies", label_policies(summarise_policies(results), results$study), paste0(
        "Regret of selection policies", note, ": slow-down (%) against the fastest measured algorithm of the cell, ",
        "over all orders of hosts. The learned tree is fitted to all cells; for unseen nodes, it is fitted without ",
        "the number of nodes that it is judged on. The hand-made rules come from another cluster."
      )),
      listed("choice", "tree", summarise_tree(results), paste0(
        "Rules of the learned decision trees", note, ". The file tables/decision-rules.txt has the same decisions for ",
        "the collectives library (COLL_RULES)."
      )),
      listed("setup", "cost", setup_table(rows), paste0(
        "Time to create the communicators", note, ", once per communicator and root and not part of a call: that of ",
        "the slowest rank, including waiting. Calls: number of calls with the largest message that amortise it, if ",
        "the algorithm is faster than the default. Hosts: ", label_mapping(usual_hosts(rows), results$study), "."
      ))
    ),
    if (nrow(placement_table(results)) > 0) list(listed("placement", "example", placement_table(results), paste0(
      "A binomial broadcast to eight ranks on two nodes with two host files", note, ", as in section 1.3 of ",
      "@bijlani2021, who report a ratio of about 3."
    )))
  )
}

policy_labels <- c(
  seed001 = "Hand-made rules", tree_fitted = "Learned tree", tree_held_out = "Learned tree, unseen nodes"
)

label_policies <- function(table, study) {
  labels <- study$algorithms$label[match(table$policy, study$algorithms$algorithm)]
  mutate(table, policy = coalesce(unname(policy_labels[.data$policy]), paste("Always", .env$labels)))
}

speedup_table <- function(results, rows) {
  summarise_speedup(rows) |>
    mutate(
      size_class = class_of(.data$size_bytes, results$study$analysis$size_classes),
      hosts = mapping_label_factor(results$study, .data$mapping),
      collective = factor(.data$collective, topology_collectives),
      algorithm = factor(.data$algorithm, unique(results$study$algorithms$algorithm))
    ) |>
    group_by(.data$collective, .data$mpi, .data$hosts, .data$algorithm, .data$size_class) |>
    summarise(
      cells = n(), mean_speedup = geometric_mean(.data$speedup), min_speedup = min(.data$speedup),
      max_speedup = max(.data$speedup), .groups = "drop"
    ) |>
    mutate(across(where(is.factor), as.character)) |>
    several_libraries()
}

#' The order of hosts to show where there is room for one
#' @noRd
usual_hosts <- function(rows) if ("shuffled" %in% rows$mapping) "shuffled" else rows$mapping[1]

setup_table <- function(rows) {
  summarise_speedup(filter(rows, .data$mapping == usual_hosts(rows))) |>
    filter(!is.na(.data$setup_us), .data$algorithm != "seed001") |>
    group_by(.data$collective, .data$mpi, .data$algorithm, .data$nodes, .data$ppn) |>
    filter(.data$size_bytes == max(.data$size_bytes)) |>
    ungroup() |>
    transmute(
      collective = factor(.data$collective, topology_collectives), .data$mpi, .data$algorithm, .data$nodes,
      processes_a_node = .data$ppn,
      .data$setup_us, .data$size_bytes, call_us = .data$latency_us, .data$default_us,
      calls_to_pay = ifelse(.data$speedup > 1, ceiling(.data$setup_us / (.data$default_us - .data$latency_us)), NA)
    ) |>
    arrange(.data$collective, .data$mpi, .data$algorithm, .data$nodes, .data$processes_a_node) |>
    mutate(collective = as.character(.data$collective)) |>
    several_libraries()
}

placement_table <- function(results) {
  rows <- filter(
    read_slowest(results), .data$algorithm == "binomial", .data$collective == "bcast",
    .data$mapping %in% placement_examples
  )
  if (!all(placement_examples %in% rows$mapping)) return(tibble())
  rows |>
    select("mpi", "mapping", "size_bytes", "latency_us") |>
    pivot_wider(names_from = "mapping", values_from = "latency_us") |>
    transmute(
      .data$mpi, .data$size_bytes, placement_1_us = .data[[placement_examples[1]]],
      placement_2_us = .data[[placement_examples[2]]], ratio = .data$placement_2_us / .data$placement_1_us
    ) |>
    several_libraries()
}

figures_topology <- function(results) {
  rows <- topology_rows(results)
  if (nrow(rows) == 0) return(list())
  found <- intersect(topology_collectives, rows$collective)
  by_collective <- map(found, function(collective) {
    figure(
      "speedup", collective, plot_topology_speedup(results, collective), paste0(
        "Speed-up over the library's default with the same hosts (baseline; above 1: the algorithm is faster). ",
        slowest_note, library_note(rows)
      ), 9.5, 7
    )
  })
  c(
    by_collective,
    list(
      figure("hosts", "orders", plot_host_orders(results), paste0(
        "Latency relative to the library's default ", hosts_words(results, rows), " (below 1: faster), for the ",
        "largest number of nodes and processes of each collective. ", slowest_note, library_note(rows)
      ), 9.5, 1.6 + 2.1 * length(found)),
      figure("choice", "regret", plot_policies(results), paste0(
        "Regret (geometric mean) of selection policies, over all cells and orders of hosts."
      ), 9, 1.8 + 1.6 * ceiling(length(found) / 2))
    ),
    if (nrow(placement_table(results)) > 0) list(figure(
      "placement", "ratio", plot_placement(results), paste0(
        "A binomial broadcast to eight ranks on two nodes: latency with ranks 0, 3, 5, 6 on one node over ",
        "latency with ranks 0 to 3 there. Dashed: the measured ratio of @bijlani2021, 3."
      ), 8, 3.4
    ))
  )
}

#' What distinguishes MPI libraries in figures, if there are several
#' @noRd
library_note <- function(rows) if (n_distinct(rows$mpi) > 1) " Line type: the MPI library."

#' Thin lines, of a type for each MPI library if there are several
#' @noRd
lines_of_libraries <- function(rows) {
  if (n_distinct(rows$mpi) < 2) return(geom_line(linewidth = 0.35, alpha = 0.7))
  geom_line(aes(linetype = mpi_label(.data$mpi)), linewidth = 0.35, alpha = 0.7)
}

#' Speed-up against message size for one collective; rows: processes per node, columns: nodes
#'
#' @param results List from [read_results()].
#' @param collective Name of a collective.
#' @return A ggplot.
#' @noRd
plot_topology_speedup <- function(results, collective) {
  rows <- filter(topology_rows(results), .data$collective == .env$collective)
  hosts <- usual_hosts(rows)
  rows <- summarise_speedup(filter(rows, .data$mapping == hosts)) |>
    mutate(algorithm = algorithm_factor(.data$algorithm, results$study, .env$collective))
  ggplot(rows, aes(.data$size_bytes, .data$speedup, colour = .data$algorithm, shape = .data$algorithm)) +
    geom_hline(yintercept = 1, linewidth = 0.4) +
    lines_of_libraries(rows) +
    geom_point(size = 1.5) +
    layer_absent(rows, c("ppn", "nodes"), "size_bytes", "not run") +
    facet_grid(
      vars(.data$ppn), vars(.data$nodes),
      labeller = labeller(.rows = function(x) paste(x, "per node"), .cols = function(x) paste(x, "nodes"))
    ) +
    scale_algorithms_of_all(results, rows$algorithm) +
    scale_x_size() +
    scale_y_log10("Speed-up over the default", labels = format_number, breaks = scales::breaks_log(6)) +
    labs(title = paste0(
      collective_title(collective), ": speed-up over the default, ", label_mapping(hosts, results$study)
    )) +
    tag_simulated(results$study) + theme_study() + theme(axis.text.x = element_text(angle = 45, hjust = 1))
}

#' The order of hosts with which the others are compared
#' @noRd
base_hosts <- function(rows) if ("block" %in% rows$mapping) "block" else rows$mapping[1]

hosts_words <- function(results, rows) {
  hosts <- base_hosts(rows)
  if (hosts == "block") "in block order" else paste("with host file", label_mapping(hosts, results$study))
}

#' Latency of each algorithm for each order of hosts, relative to the default with [base_hosts()]
#'
#' @inheritParams plot_topology_speedup
#' @return A ggplot; rows: collectives, columns: orders of hosts.
#' @noRd
plot_host_orders <- function(results) {
  rows <- topology_rows(results) |>
    filter(.data$algorithm != "seed001") |>
    group_by(.data$collective) |>
    filter(.data$nodes == max(.data$nodes)) |>
    filter(.data$ppn == max(.data$ppn)) |>
    ungroup()
  words <- hosts_words(results, rows)
  base <- filter(rows, .data$mapping == base_hosts(.env$rows), .data$algorithm == "default")
  base <- select(base, "collective", "mpi", "size_bytes", base_us = "latency_us")
  rows <- inner_join(rows, base, by = c("collective", "mpi", "size_bytes")) |>
    mutate(
      hosts = mapping_label_factor(results$study, .data$mapping), relative = .data$latency_us / .data$base_us,
      panel = factor(.data$collective, topology_collectives, collective_title(topology_collectives)),
      algorithm = factor(.data$algorithm, unique(results$study$algorithms$algorithm))
    )
  ggplot(rows, aes(.data$size_bytes, .data$relative, colour = .data$algorithm, shape = .data$algorithm)) +
    geom_hline(yintercept = 1, linewidth = 0.4) +
    lines_of_libraries(rows) +
    geom_point(size = 1.4) +
    facet_wrap(vars(.data$panel, .data$hosts), scales = "free", ncol = n_distinct(rows$hosts), labeller = single_line) +
    scale_algorithms_of_all(results, rows$algorithm) +
    scale_x_size() +
    scale_y_log10(paste("Latency / default", words), labels = format_number, breaks = scales::breaks_log(5)) +
    labs(title = paste("Latency by order of hosts, against the default", words)) +
    tag_simulated(results$study) + theme_study()
}

#' Scales of colours and shapes that are the same for all collectives
#' @noRd
scale_algorithms_of_all <- function(results, algorithms) {
  names <- levels(droplevels(algorithms))
  known <- results$study$algorithms
  labels <- known$label[match(names, known$algorithm)]
  all <- unique(known$algorithm)
  colours <- assign_colours(all)
  shapes <- setNames(rep_len(point_shapes, length(all)), all)
  list(
    scale_colour_manual(values = colours[names], breaks = names, labels = labels),
    scale_shape_manual(values = shapes[names], breaks = names, labels = labels)
  )
}

plot_policies <- function(results) {
  rows <- summarise_policies(results) |>
    label_policies(results$study) |>
    mutate(
      panel = factor(.data$collective, topology_collectives, collective_title(topology_collectives)),
      policy = factor(.data$policy, rev(unique(c(unname(policy_labels), sort(.data$policy)))))
    )
  ggplot(rows, aes(.data$geometric_mean_regret_pct, .data$policy, colour = !.data$policy %in% policy_labels)) +
    geom_segment(aes(xend = 0, yend = .data$policy), linewidth = 0.4) +
    geom_point(size = 2) +
    facet_wrap(vars(.data$panel), scales = "free_x", ncol = 2) +
    scale_colour_manual(values = c(`TRUE` = "grey55", `FALSE` = "#0072B2"), guide = "none") +
    scale_x_continuous("Regret, geometric mean (%)", limits = c(0, NA)) +
    scale_y_discrete(NULL) +
    labs(title = "Regret of hand-made rules, a learned tree and single algorithms") +
    tag_simulated(results$study) + theme_study()
}

plot_placement <- function(results) {
  ggplot(placement_table(results), aes(.data$size_bytes, .data$ratio)) +
    geom_hline(yintercept = 1, linewidth = 0.4) +
    geom_hline(yintercept = 3, linetype = "dashed", colour = "grey45") +
    geom_line(linewidth = 0.35, colour = "#0072B2") +
    geom_point(size = 1.6, colour = "#0072B2") +
    panel_of_library(placement_table(results)) +
    scale_x_size() +
    scale_y_continuous("Placement 2 / placement 1", limits = c(0, NA)) +
    labs(title = "Binomial broadcast: latency of placement 2 over placement 1") +
    tag_simulated(results$study) + theme_study()
}

#' Sentences that answer the questions of Bijlani and Raol (2021)
#'
#' @param results List from [read_results()].
#' @param part "speedup", "hosts", "choice", "setup" or "placement".
#' @return Character vector.
#' @noRd
describe_topology <- function(results, part) {
  switch(part,
    speedup = describe_large(results), hosts = describe_hosts(results), choice = describe_choice(results),
    setup = describe_setup(results), placement = describe_placement(results)
  )
}

describe_topology_answer <- function(results) {
  found <- c(head(describe_large(results, c("bcast", "reduce")), 1), head(describe_choice(results), 1))
  if (length(found) == 0) found <- "no topology-aware algorithm was compared with the default."
  c(paste0(study_name(results), ": ", found[1]), found[-1])
}

#' Sentences on the speed-up of node + group for large messages, for each order of hosts
#' @noRd
describe_large <- function(results, collectives = topology_collectives) {
  labels <- c(node_group = "Node + group", node_group_chain = "Node + group (in chains)")
  found <- summarise_speedup(topology_rows(results)) |>
    filter(.data$algorithm %in% names(labels), .data$collective %in% collectives) |>
    group_by(.data$collective) |>
    filter(.data$size_bytes >= min(large_message, max(c(.data$size_bytes, 0))))
  selected <- distinct(results$study$algorithms, .data$collective, .data$algorithm)
  selected <- semi_join(selected, found, by = c("collective", "algorithm"))
  map2_chr(selected$collective, selected$algorithm, function(collective, algorithm) {
    rows <- filter(found, .data$collective == .env$collective, .data$algorithm == .env$algorithm)
    by_hosts <- group_by(rows, .data$mapping) |>
      summarise(mean = geometric_mean(.data$speedup), least = min(.data$speedup), most = max(.data$speedup)) |>
      arrange(mapping_label_factor(results$study, .data$mapping))
    paste0(
      labels[algorithm], ", ", collective_word(collective), " of ", label_bytes(min(rows$size_bytes)), " and more: ",
      and_list(paste0(
        format_times(by_hosts$mean), " as fast as the default with host file ",
        label_mapping(by_hosts$mapping, results$study), " (", format_number(by_hosts$least), " to ",
        format_number(by_hosts$most), ")"
      )), "; geometric mean and range over nodes", if (n_distinct(rows$mpi) > 1) ", MPI libraries",
      " and processes per node."
    )
  })
}

#' Sentences on the slow-down by the order of hosts, of the default and of the best algorithm
#' @noRd
describe_hosts <- function(results) {
  rows <- topology_rows(results)
  if (!"block" %in% rows$mapping) return(character())
  keys <- c("collective", "mpi", "nodes", "ppn", "size_bytes")
  best <- rows |>
    filter(!.data$algorithm %in% topology_policies) |>
    group_by(across(all_of(c(keys, "mapping")))) |>
    summarise(default = latency_of(.data$latency_us, .data$algorithm == "default"), best = min(.data$latency_us),
              .groups = "drop")
  base <- select(filter(best, .data$mapping == "block"), all_of(keys), base = "default")
  lost <- inner_join(filter(best, .data$mapping != "block"), base, by = keys) |>
    filter(!is.na(.data$default), !is.na(.data$base)) |>
    group_by(.data$mapping, .data$collective) |>
    summarise(default = geometric_mean(.data$default / .data$base), best = geometric_mean(.data$best / .data$base),
              .groups = "drop")
  map_chr(unique(lost$mapping), function(mapping) {
    here <- filter(lost, .data$mapping == .env$mapping)
    here <- here[order(match(here$collective, topology_collectives)), ]
    words <- c(shuffled = "shuffled lines", random = "all slots in random order")
    host_order <- coalesce(unname(words[mapping]), label_mapping(mapping, results$study))
    paste0(
      "Host file with ", host_order, ": the default takes ",
      and_list(paste0(format_times(here$default), " (", collective_word(here$collective), ")")),
      " its latency in block order (geometric mean over nodes, processes",
      if (n_distinct(rows$mpi) > 1) ", MPI libraries", " and sizes); the best algorithm of each cell takes ",
      and_list(format_number(here$best)), " times that latency."
    )
  })
}

latency_of <- function(latency, which) if (any(which)) latency[which][1] else NA_real_

describe_choice <- function(results) {
  table <- summarise_policies(results)
  of <- function(collective, policy) {
    format_pct(table$geometric_mean_regret_pct[table$collective == collective & table$policy == policy])
  }
  found <- unique(table$collective)
  complete <- found[map_lgl(found, function(x) {
    all(c("default", "seed001", "tree_held_out") %in% table$policy[table$collective == x])
  })]
  if (length(complete) == 0) return(character())
  paste0(
    "Regret (geometric mean) of the default, of the hand-made rules of @bijlani2021, and of a learned tree on unseen ",
    "numbers of nodes: ", paste(map_chr(complete, function(x) {
      paste0(collective_word(x), " ", of(x, "default"), ", ", of(x, "seed001"), " and ", of(x, "tree_held_out"))
    }), collapse = "; "), "."
  )
}

describe_setup <- function(results) {
  table <- filter(setup_table(topology_rows(results)), .data$collective %in% c("bcast", "reduce"))
  table <- filter(table, .data$nodes == max(c(.data$nodes, 0)))
  table <- filter(table, .data$processes_a_node == max(c(.data$processes_a_node, 0)))
  paid <- table[!is.na(table$calls_to_pay), ]
  if (nrow(table) == 0) return(character())
  paste0(
    "On ", table$nodes[1], " nodes with ", table$processes_a_node[1], " processes each, creating the communicators ",
    "of a broadcast or a reduce takes ", format_us(min(table$setup_us)), " to ",
    format_us(max(table$setup_us)), ", once",
    if (nrow(paid) > 0) paste0(
      "; if the algorithm is faster for the largest message, this time is amortised after at most ",
      count_of(max(paid$calls_to_pay), "call")
    ), "."
  )
}

describe_placement <- function(results) {
  table <- placement_table(results)
  if (nrow(table) == 0) return(character())
  large <- table[table$size_bytes == max(table$size_bytes), ]
  paste0(
    "In a binomial broadcast to eight ranks on two nodes with ranks 0, 3, 5 and 6 on one node, every message crosses ",
    "the network. It takes ", format_number(min(table$ratio)), " to ", format_number(max(table$ratio)),
    " times as long as with ranks 0 to 3 on one node, and ", and_list(format_number(unique(large$ratio))), " times at ",
    label_bytes(large$size_bytes[1]), " (@bijlani2021: about 3 times)."
  )
}
