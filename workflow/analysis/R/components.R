# Components of Open MPI: the best component for a collective, and the gain from forcing an algorithm.

#' The best component of each class of message sizes, and the best forced algorithm
#'
#' The choice is made for a whole class, because the fastest of each single cell would be biased by noise.
#'
#' @param results List from [read_results()]; algorithms that are a component have the key `component` in study.json.
#' @return Tibble, one row per collective, mapping, nodes, processes and class of message sizes (`message_sizes`, from
#'   and to): default_ran (the component that ran the default, or empty), component (the fastest in the geometric mean
#'   of those measured at every size), default_slower_pct (additional time of the default), algorithm (the fastest
#'   forced algorithm; NA without one), component_slower_pct (additional time of the component over that algorithm,
#'   negative where the component is faster).
#' @noRd
summarise_components <- function(results) {
  case <- c("collective", "mapping", "nodes", "processes", "class")
  times <- read_slowest(results) |>
    mutate(
      class = as.character(class_of(.data$size_bytes, results$study$analysis$size_classes)),
      kind = case_when(
        is_component(results$study, .data$collective, .data$algorithm) ~ "component",
        .data$algorithm == "default" ~ "default", TRUE ~ "algorithm"
      )
    ) |>
    group_by(across(all_of(case))) |>
    mutate(
      from = min(.data$size_bytes), to = max(.data$size_bytes), sizes = n_distinct(.data$size_bytes)
    ) |>
    group_by(across(all_of(c(case, "from", "to", "sizes", "kind", "algorithm")))) |>
    summarise(time = geometric_mean(.data$latency_us), measured = n(), .groups = "drop") |>
    filter(.data$measured == .data$sizes) |>
    arrange(.data$time) |>
    distinct(across(all_of(c(case, "kind"))), .keep_all = TRUE)
  of_kind <- function(kind) {
    found <- times[times$kind == kind, c(case, "algorithm", "time")]
    names(found) <- c(case, kind, paste0(kind, "_time"))
    found
  }
  of_kind("component") |>
    left_join(distinct(times, across(all_of(c(case, "from", "to")))), by = case) |>
    left_join(of_kind("default"), by = case) |>
    left_join(of_kind("algorithm"), by = case) |>
    left_join(ran_by_default(results), by = setdiff(case, "class")) |>
    arrange(.data$collective, .data$nodes, .data$processes, .data$mapping, .data$from) |>
    transmute(
      .data$collective, .data$mapping, .data$nodes, .data$processes, message_sizes = size_range(.data$from, .data$to),
      default_ran = coalesce(.data$default_ran, ""), .data$component,
      default_slower_pct = 100 * (.data$default_time / .data$component_time - 1), .data$algorithm,
      component_slower_pct = 100 * (.data$component_time / .data$algorithm_time - 1)
    )
}

size_range <- function(from, to) {
  if (length(from) == 0) return(character())
  case_when(
    is.na(from) ~ "none", from == to ~ label_bytes(from), TRUE ~ paste(label_bytes(from), "to", label_bytes(to))
  )
}

#' TRUE for each algorithm of a study that is a component
#' @noRd
is_component <- function(study, collective, algorithm) {
  known <- study$algorithms[study$algorithms$component != "", ]
  paste(collective, algorithm) %in% paste(known$collective, known$algorithm)
}

#' The component that ran the default at each place; where its cells differ, all of them
#' @noRd
ran_by_default <- function(results) {
  cells <- results$cells
  if (!"component" %in% names(cells)) cells$component <- rep(NA_character_, nrow(cells))
  cells |>
    filter(.data$algorithm == "default", !is.na(.data$component)) |>
    group_by(.data$collective, .data$mapping, .data$nodes, .data$processes) |>
    summarise(default_ran = paste(sort(unique(.data$component)), collapse = " or "), .groups = "drop")
}

tables_components <- function(results) {
  list(listed("components", "choice", summarise_components(results), paste0(
    "For each class of message sizes: the component that ran the default, the fastest component (geometric mean), the ",
    "slow-down of the default against it, the fastest forced algorithm, and the slow-down of the component against ",
    "that algorithm (negative where the component is faster). ", slowest_note
  )))
}

figures_components <- function(results) {
  rows <- read_slowest(results)
  rows <- filter(rows, !is.na(.data$size_bytes))
  map(unique(rows$collective), function(collective) {
    own <- rows[rows$collective == collective, ]
    figure(
      collective, "components", plot_components(results, own, collective), paste0(
        "Latency of each component, and of the fastest forced algorithm at each size (dotted). ", slowest_note
      ), 9, 2.2 + 2.3 * ceiling(n_distinct(own$nodes, own$processes) / 2)
    )
  })
}

#' Latency of each component by message size, and of the fastest forced algorithm
#'
#' @param results List from [read_results()].
#' @param rows Rows of [read_slowest()] of one collective.
#' @param collective Its name.
#' @return A ggplot.
#' @noRd
plot_components <- function(results, rows, collective) {
  is_arm <- is_component(results$study, rows$collective, rows$algorithm)
  forced <- rows[!is_arm & rows$algorithm != "default", ] |>
    arrange(.data$latency_us) |>
    distinct(.data$mapping, .data$nodes, .data$processes, .data$size_bytes, .keep_all = TRUE)
  rows <- rows[is_arm | rows$algorithm == "default", ]
  ggplot(name_places(rows, results), aes(.data$size_bytes, .data$latency_us)) +
    geom_line(data = name_places(forced, results), linetype = "dotted", linewidth = 0.7, colour = "grey30") +
    geom_line(aes(colour = .data$algorithm), linewidth = 0.4) +
    geom_point(aes(colour = .data$algorithm, shape = .data$algorithm), size = 1.8) +
    facet_wrap(vars(.data$place), ncol = 2, scales = "free_y") +
    scale_algorithm(results, collective, rows$algorithm) +
    scale_x_size() +
    scale_y_latency_log() +
    labs(title = paste0(collective_title(collective), ": latency of each component")) +
    tag_simulated(results$study) + theme_study()
}

#' Rows with the column `place`: number of ranks, nodes, and mapping in words
#' @noRd
name_places <- function(rows, results) {
  mutate(rows, place = paste0(
    count_of(.data$processes, "rank"), " on ", count_of(.data$nodes, "node"), ", ",
    label_mapping(.data$mapping, results$study)
  ))
}

#' Sentences on the best component and the best algorithm, of the whole study and of each collective
#'
#' @param results List from [read_results()].
#' @return Tibble as [said()].
#' @noRd
sentences_of_components <- function(results) {
  rows <- summarise_components(results)
  lacking <- unlist(results$study$lacking)
  bind_rows(
    said("components", if (emulated(results)) paste0(
      "The nodes are emulated on one computer: the same components run as on several nodes, but the latencies are not ",
      "those of several nodes."
    ) else paste0(
      "A component runs every collective that it implements, including the barriers between the timed calls, so the ",
      "comparison includes how evenly the ranks start."
    ), claim = FALSE),
    said("components", c(
      if (length(lacking)) paste0(
        "The installed Open MPI lacks ", and_list(paste0("coll/", lacking)), ", which the study requests."
      ),
      describe_unproved(results)
    )),
    map_dfr(unique(rows$collective), function(name) {
      said(name, describe_component(rows[rows$collective == name, ], name, results))
    })
  )
}

emulated <- function(results) !is.null(results$study$machine$emulated_nodes)

describe_component <- function(own, name, results) {
  if (emulated(results)) return(describe_default_ran(own))
  wins <- sort(table(own$component), decreasing = TRUE)
  ran <- setdiff(unique(own$default_ran), "")
  tie <- results$study$analysis$tie_pct
  compared <- own[!is.na(own$default_slower_pct), ]
  forced <- own[!is.na(own$algorithm), ]
  better <- forced[forced$component_slower_pct > tie, ]
  cases <- function(rows) count_of(nrow(rows), "case")
  c(
    paste0(
      "The fastest component is ", and_list(paste0(
        label_algorithm(names(wins), results$study, name), " in ", wins, " of ", cases(own)
      )), " (each number of ranks and class of message sizes is a case)."
    ),
    if (nrow(compared)) paste0(
      "The default", if (length(ran)) paste0(" (run by ", and_list(paste0("coll/", ran)), ")"), " is more than ",
      format_pct(tie), " slower than it in ", sum(compared$default_slower_pct > tie), " of ", cases(compared),
      ", and takes ", format_times(mean_ratio(compared$default_slower_pct)), " as long (geometric mean)."
    ),
    if (nrow(forced)) paste0(
      "A forced algorithm is more than ", format_pct(tie), " faster than the fastest component in ", nrow(better),
      " of ", cases(forced),
      if (nrow(better)) paste0(
        ": ", and_list(label_algorithm(unique(better$algorithm), results$study, name)), "; there the component takes ",
        format_times(mean_ratio(better$component_slower_pct)), " as long (geometric mean)"
      ), "."
    )
  )
}

#' Geometric mean of the ratios behind additional times in percent
#' @noRd
mean_ratio <- function(slower_pct) geometric_mean(1 + slower_pct / 100)

#' Sentence on whether the choice of the component gains more than that of the algorithm
#' @noRd
describe_component_matters <- function(rows, results) {
  both <- rows[!is.na(rows$component_slower_pct) & !is.na(rows$default_slower_pct), ]
  if (nrow(both) == 0) return(NULL)
  component <- mean_ratio(both$default_slower_pct)
  then <- mean_ratio(both$component_slower_pct)
  paste0(
    "In the geometric mean over ", count_of(nrow(both), "case"), " (collective, ranks, class of message sizes), ",
    "the default takes ", format_times(component), " as long as the fastest component, and that takes ",
    format_times(then), " as long as the fastest forced algorithm: ",
    if (max(component, then) <= 1 + results$study$analysis$tie_pct / 100) {
      "neither choice gains more than the tolerance."
    } else if (component >= then) {
      "the component matters more than the algorithm."
    } else {
      "the algorithm matters more than the component."
    }
  )
}

#' Sentence on the components that ran the default, for emulated nodes, whose latencies do not count
#' @noRd
describe_default_ran <- function(rows) {
  ran <- distinct(rows[rows$default_ran != "", ], .data$collective, .data$default_ran)
  if (nrow(ran) == 0) return(NULL)
  paste0("By default, ", and_list(paste0(
    "coll/", ran$default_ran, " runs ", map_chr(ran$collective, collective_word)
  )), ".")
}

describe_unproved <- function(results) {
  cells <- results$cells
  odd <- filter(cells, .data$status == "unproved", is_component(results$study, .data$collective, .data$algorithm))
  if (nrow(odd) == 0) return(NULL)
  paste0(
    "Left out of every comparison, because another component ran the collective: ",
    and_list(unique(paste0("coll/", odd$algorithm, " for ", collective_word(odd$collective)))), "."
  )
}

describe_components_answer <- function(results) {
  rows <- summarise_components(results)
  told <- if (emulated(results)) describe_default_ran(rows) else describe_component_matters(rows, results)
  if (!is.null(told)) paste0(study_name(results), ": ", told)
}
