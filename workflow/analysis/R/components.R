# Components of Open MPI: which one should run a collective, and which algorithm then?

#' The best component and the best algorithm of each cell
#'
#' @param results List from [read_results()]; algorithms that are a component have the key `component` in study.json.
#' @return Tibble, one row per cell: collective, mapping, nodes, processes, size_bytes, default_us, default_ran (the
#'   component that ran the default, or empty), component (the fastest), component_us, component_gain_pct (additional
#'   time of the default), algorithm (the fastest that is forced; NA where there is none), algorithm_us,
#'   algorithm_gain_pct (additional time of the fastest component, negative where that is faster), worst_pct (additional
#'   time of the slowest component over the fastest), worst (its name).
#' @noRd
summarise_components <- function(results) {
  rows <- mutate(read_slowest(results), is_component = is_component(results$study, .data$collective, .data$algorithm))
  cell <- c("collective", "mapping", "nodes", "processes", "size_bytes")
  fastest <- function(data, name) {
    data <- distinct(arrange(data, .data$latency_us, .data$algorithm), across(all_of(cell)), .keep_all = TRUE)
    rename(select(data, all_of(cell), "algorithm", "latency_us"), !!name := "algorithm", !!paste0(name, "_us") :=
             "latency_us")
  }
  arms <- filter(rows, .data$is_component)
  slowest <- distinct(arrange(arms, desc(.data$latency_us)), across(all_of(cell)), .keep_all = TRUE)
  fastest(arms, "component") |>
    left_join(select(slowest, all_of(cell), worst = "algorithm", worst_us = "latency_us"), by = cell) |>
    left_join(
      select(filter(rows, .data$algorithm == "default"), all_of(cell), default_us = "latency_us"), by = cell
    ) |>
    left_join(fastest(filter(rows, !.data$is_component, .data$algorithm != "default"), "algorithm"), by = cell) |>
    left_join(ran_by_default(results), by = setdiff(cell, "size_bytes")) |>
    transmute(
      .data$collective, .data$mapping, .data$nodes, .data$processes, .data$size_bytes, .data$default_us,
      default_ran = coalesce(.data$default_ran, ""), .data$component, .data$component_us,
      component_gain_pct = 100 * (.data$default_us / .data$component_us - 1), .data$algorithm, .data$algorithm_us,
      algorithm_gain_pct = 100 * (.data$component_us / .data$algorithm_us - 1), .data$worst,
      worst_pct = 100 * (.data$worst_us / .data$component_us - 1)
    ) |>
    arrange(.data$collective, .data$nodes, .data$processes, .data$size_bytes)
}

#' Which algorithms of a study are components?
#' @noRd
is_component <- function(study, collective, algorithm) {
  known <- study$algorithms[study$algorithms$component != "", ]
  paste(collective, algorithm) %in% paste(known$collective, known$algorithm)
}

ran_by_default <- function(results) {
  cells <- results$cells
  if (!"component" %in% names(cells)) cells$component <- rep(NA_character_, nrow(cells))
  cells |>
    filter(.data$algorithm == "default") |>
    distinct(
      .data$collective, .data$mapping, .data$nodes, .data$processes, default_ran = .data$component
    )
}

tables_components <- function(results) {
  list(listed("components", "best", summarise_components(results), paste0(
    "For each cell the component that ran the default, the fastest component, how much longer the default takes ",
    "(%), the fastest forced algorithm, how much longer than it the fastest component takes (%, negative where the ",
    "component is faster), and the slowest component with its additional time (%). Latencies in \u00b5s. ", slowest_note
  )))
}

figures_components <- function(results) {
  rows <- read_slowest(results)
  rows <- filter(rows, !is.na(.data$size_bytes))
  map(unique(rows$collective), function(collective) {
    own <- rows[rows$collective == collective, ]
    figure(
      "components", collective, plot_components(results, own, collective), paste0(
        "Latency of each component, and of the fastest forced algorithm of each size (dotted): ",
        collective_word(collective), ". ", slowest_note
      ), NA, 9, 2.2 + 2.3 * ceiling(n_distinct(own$nodes, own$processes) / 2)
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
  place <- function(data) {
    mutate(data, place = paste0(
      count_words(.data$processes, "rank"), " on ", count_words(.data$nodes, "node"), ", ",
      mapping_label(results$study, .data$mapping)
    ))
  }
  ggplot(place(rows), aes(.data$size_bytes, .data$latency_us)) +
    geom_line(data = place(forced), linetype = "dotted", linewidth = 0.7, colour = "grey30") +
    geom_line(aes(colour = .data$algorithm), linewidth = 0.4) +
    geom_point(aes(colour = .data$algorithm, shape = .data$algorithm), size = 1.8) +
    facet_wrap(vars(.data$place), ncol = 2, scales = "free_y") +
    scale_algorithm(results, collective, rows$algorithm) +
    scale_x_size() +
    scale_y_latency_log() +
    labs(title = paste0("Components: ", collective_word(collective))) +
    tag_simulated(results$study) + theme_study()
}

count_words <- function(number, noun) paste0(number, " ", noun, ifelse(number == 1, "", "s"))

#' Which component, and then which algorithm, in sentences
#'
#' @param results List from [read_results()].
#' @return Character vector.
#' @noRd
describe_components <- function(results) {
  rows <- summarise_components(results)
  tie <- 1 + results$study$analysis$tie_pct / 100
  c(
    map_chr(unique(rows$collective), function(name) {
      own <- rows[rows$collective == name, ]
      describe_component(results, own, name, tie)
    }),
    describe_component_matters(rows, tie),
    if (length(results$study$lacking)) paste0(
      "The installed Open MPI lacks the components ", and_list(unlist(results$study$lacking)), "."
    ),
    describe_unproved(results)
  )
}

describe_component <- function(results, own, name, tie) {
  wins <- sort(table(own$component), decreasing = TRUE)
  ran <- setdiff(unique(own$default_ran), "")
  slower <- own$component_gain_pct > 100 * (tie - 1)
  word <- capitalised(collective_word(name))
  further <- filter(own, !is.na(.data$algorithm_us))
  gains <- further$component_us / further$algorithm_us
  better <- gains > tie
  cells <- count_words(nrow(own), "cell")
  paste0(
    word, ": of the components, ", and_list(paste0(
      label_algorithm(names(wins), results$study, name), " is the fastest in ", wins, " of ", cells
    )), ". ",
    if (any(!is.na(own$default_us))) paste0(
      "The default", if (length(ran)) paste0(" (run by ", and_list(paste0("coll/", ran)), ")"), " is slower than the ",
      "fastest component by more than the tolerance of ", format_pct(100 * (tie - 1)), " in ", sum(slower, na.rm = TRUE),
      " of ", cells, "; in the geometric mean it takes ", format_times(
        geometric_mean(na.omit(own$default_us / own$component_us))
      ), " as long. "
    ),
    if (nrow(further)) paste0(
      "Then the algorithm: the fastest forced one beats the fastest component in ", sum(better), " of ",
      count_words(nrow(further), "cell"),
      if (any(better)) paste0(
        " (", and_list(label_algorithm(unique(further$algorithm[better]), results$study, name)), "), there by ",
        format_times(geometric_mean(gains[better])), " in the geometric mean"
      ), "."
    )
  )
}

#' Does the component matter more than the algorithm?
#' @noRd
describe_component_matters <- function(rows, tie) {
  both <- filter(rows, !is.na(.data$algorithm_us), !is.na(.data$default_us))
  if (nrow(both) == 0) return(NULL)
  component <- geometric_mean(both$default_us / pmin(both$component_us, both$default_us))
  then <- geometric_mean(pmin(both$component_us, both$default_us) /
                           pmin(both$component_us, both$default_us, both$algorithm_us))
  paste0(
    "Over all ", count_words(nrow(both), "cell"), " and in the geometric mean, the default takes ",
    format_times(component), " as long as the best component, and that takes ", format_times(then), " as long as the ",
    "best algorithm: ",
    if (max(component, then) <= tie) {
      "both are within the tolerance."
    } else if (component >= then) {
      "the component matters more than the algorithm."
    } else {
      "the algorithm matters more than the component."
    }
  )
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
  told <- describe_component_matters(rows, 1 + results$study$analysis$tie_pct / 100)
  paste0(study_name(results), ": ", told %||% describe_components(results)[1])
}
