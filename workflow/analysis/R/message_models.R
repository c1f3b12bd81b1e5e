# Message models: the latency of an algorithm from the messages that it sends and the costs of a message at each level
# of the machine.

#' Costs of messages: parameters of the Hockney and LogGP models
#'
#' They come from the study's ladder if it has one ([summarise_ladder()]), else from the machine's file of a simulated
#' machine, else they are typical values for the level's name, which only the fitted model uses.
#'
#' @param results List from [read_results()].
#' @param mpi The MPI library whose ladder is used, if the study has the ladders of several; by default the first.
#' @return List: `source` (ladder, machine, none), `latency` (us, small message, named by level), `gap_byte` (us per
#'   byte, named by level), `overhead` (processor time of a message, us), `eager` (largest message, in bytes, that is
#'   sent eagerly, that is without waiting for the receiver), `full_duplex` (levels whose links have their bandwidth in
#'   each direction), and `pairs` (core x core matrix of latencies, if the study measured all pairs).
#' @noRd
message_costs <- function(results, mpi = NULL) {
  remember(results, paste(c("message costs", mpi), collapse = "\r"), function() find_message_costs(results, mpi))
}

find_message_costs <- function(results, mpi) {
  levels <- results$study$machine$levels
  names <- map_chr(levels, "name")
  declared <- function(key) setNames(map_dbl(levels, function(level) as.numeric(level[[key]] %||% NA)), names)
  # SimGrid sends messages below its limit eagerly, Open MPI those up to it.
  eager <- if (results$study$simulated) 65535 else 4096
  ladder <- read_ladder(results)
  if (nrow(ladder) > 0) {
    known <- list(source = "ladder", eager = eager, full_duplex = duplex_levels(levels))
    mpi <- mpi %||% ladder[["mpi"]][1]
    check_ladder(of_library(ladder, mpi))
    return(c(known, ladder_costs(results, mpi)))
  }
  if (length(levels) > 0 && !anyNA(declared("latency_us")) && !anyNA(declared("bandwidth_gb_s"))) {
    return(list(
      source = "machine", latency = declared("latency_us"), gap_byte = 1e-3 / declared("bandwidth_gb_s"), overhead = 0,
      eager = eager, full_duplex = duplex_levels(levels)
    ))
  }
  if (length(levels) == 0) names <- "core"
  list(
    source = "none", latency = setNames(coalesce(typical_latency[names], 0.4), names),
    gap_byte = setNames(rep(1e-3 / 8, length(names)), names), overhead = 0.1, eager = eager
  )
}

duplex_levels <- function(levels) map_chr(Filter(function(level) isTRUE(level$full_duplex), levels), "name")

#' Costs of messages from the study's own ladder of an MPI library; NA for levels that it lacks
#' @noRd
ladder_costs <- function(results, mpi) {
  names <- map_chr(results$study$machine$levels, "name")
  fitted <- filter(summarise_ladder(of_library(read_ladder(results), mpi)), .data$pairs == 1)
  of <- function(column) setNames(fitted[[column]][match(names, fitted$level)], names)
  overhead <- min(fitted$gap_us, Inf, na.rm = TRUE)
  cores <- prod(map_dbl(results$study$machine$levels, function(level) level$count))
  list(
    latency = of("latency_us"), gap_byte = 1e-3 / of("bandwidth_gb_s"),
    overhead = if (is.finite(overhead)) overhead else 0,
    pairs = pair_matrix(of_library(read_pairs(results), mpi), cores)
  )
}

typical_latency <- c(group = 2, node = 1.5, socket = 0.45, numa = 0.4, ccd = 0.35, ccx = 0.3, core = 0.2)

#' The algorithm that the library's default selects for each size, if the study has the library's decision table
#' @return Tibble with a row for each size: algorithm, parameters. NULL without a table.
#' @noRd
decide_default <- function(study, collective, processes, size) {
  table <- study$decisions[[collective]]
  if (NROW(table) == 0) return(NULL)
  table <- table[table$ranks > processes, ]
  table[vapply(size, function(bytes) which(table$bytes > bytes)[1], 1L), c("algorithm", "parameters")]
}

#' Model the time of a call (mean over the ranks) from the messages that it sends
#'
#' Hockney (1994): a message takes alpha + m beta of its level, and its sender sends nothing else meanwhile. LogGP
#' (Alexandrov et al. 1995): the sender spends `overhead` on a message, its bytes leave one after another (m G), and the
#' receiver has them after L + m G. A send of up to `eager` bytes returns after the overhead, a longer one (rendezvous)
#' when the message has arrived. LogGP, shared: in addition, all messages that enter or leave a unit (core, socket,
#' node, ...) share the bandwidth of a single message at that level. A broadcast is not faster than the busiest unit; in
#' a reduce, from which most ranks return early, the messages of subtrees of the same height share, one for each
#' receiver. In an allreduce, steps are consecutive; the messages of one step share, and each rank waits for its own.
#' The result is comparable with OSU benchmarks: the mean over ranks of the time in the call.
#'
#' @param study List from [read_study()].
#' @param collective,algorithm,mapping Names.
#' @param processes One number of ranks.
#' @param size Vector of message sizes (B).
#' @param costs List from [message_costs()].
#' @param form "hockney", "loggp" or "shared".
#' @param seen Function that reduces the times of the ranks (us, one row per size, one column per rank) to the result.
#' @return Latency in us for each size; NULL if the messages of the algorithm are not known. The default is modelled as
#'   the algorithm that the library's table selects (`decisions` in study.json); NA if that has no model.
#' @noRd
model_messages <- function(study, collective, algorithm, mapping, processes, size, costs,
                           form = c("loggp", "hockney", "shared"), seen = rowMeans) {
  form <- match.arg(form)
  if (!collective %in% modelled_collectives) return(NULL)
  place <- place_ranks(study, collective, mapping, processes)
  if (is.null(place)) return(NULL)
  launch <- list(
    study = study, mpi = mpi_of(study, collective, mapping), place = place,
    where = paste(collective, mapping, processes, sep = "\r")
  )
  time_call(launch, collective, variant_of(study, collective, algorithm), size, costs, form, seen)
}

#' The time of a call of one algorithm
#' @param launch List of `study`, `mpi`, `place` (matrix from [place_ranks()]) and `where` (text that identifies that
#'   placement in the study).
#' @param variant List of `name` and `parameters`.
#' @noRd
time_call <- function(launch, collective, variant, size, costs, form, seen) {
  if (variant$name == "default") return(time_default(launch, collective, size, costs, form, seen))
  costs <- costs_of_form(costs, form)
  processes <- nrow(launch$place)
  # Broadcasts are modelled along trees only.
  steps <- if (collective != "bcast") exchange_of(launch$study, launch$mpi, collective, variant, processes)
  if (!is.null(steps)) return(time_exchange(launch, steps, size, costs, form, seen))
  parent <- sending_tree(launch$study, launch$mpi, collective, variant, processes)
  if (is.null(parent)) return(NULL)
  key <- paste("forest", launch$where, tree_key(launch$mpi, collective, variant$name, variant$parameters), sep = "\r")
  forest <- remember(launch$study, key, function() forest_of(list(launch$place), list(parent)))
  time_tree(launch$place, collective, variant, parent, size, costs, form, seen, forest)
}

costs_of_form <- function(costs, form) {
  if (form == "hockney") utils::modifyList(costs, list(overhead = 0, eager = -1)) else costs
}

#' An algorithm without parameters
#' @noRd
plain <- function(name) list(name = name, parameters = "")

modelled_collectives <- c("bcast", "reduce", "allreduce")

#' Time of the default: that of the algorithm that it selects; NA if that has no model, NULL without a decision table
#' @noRd
time_default <- function(launch, collective, size, costs, form, seen) {
  # The tables are Open MPI's.
  if (!launch$mpi %in% c("openmpi", "smpi-openmpi")) return(NULL)
  chosen <- decide_default(launch$study, collective, nrow(launch$place), size)
  if (is.null(chosen)) return(NULL)
  time <- rep(NA_real_, length(size))
  for (at in split(seq_along(size), paste(chosen$algorithm, chosen$parameters))) {
    variant <- list(name = chosen$algorithm[at[1]], parameters = chosen$parameters[at[1]])
    found <- time_call(launch, collective, variant, size[at], costs, form, seen)
    if (!is.null(found)) time[at] <- found
  }
  time
}

#' Time per byte that the busiest unit on the path of each message needs for all messages that cross it (us)
#'
#' Both directions share the bandwidth, unless `costs$full_duplex` names the level. Levels without costs, such as the
#' only socket of each node, limit nothing.
#' @noRd
busy_units <- function(place, from, to, costs) {
  busiest <- numeric(length(from))
  for (l in seq_len(ncol(place))) {
    a <- place[from + 1, l]
    b <- place[to + 1, l]
    crossing <- a != b
    if (!any(crossing) || is.na(costs$gap_byte[l])) next
    units <- unique(c(a, b))
    leaving <- tabulate(match(a[crossing], units), length(units))
    entering <- tabulate(match(b[crossing], units), length(units))
    count <- if (colnames(place)[l] %in% costs$full_duplex) pmax(leaving, entering) else leaving + entering
    load <- costs$gap_byte[l] * pmax(count[match(a, units)], count[match(b, units)])
    busiest[crossing] <- pmax(busiest[crossing], load[crossing])
  }
  busiest
}

#' Lower bound on the latency of any algorithm, mean over ranks
#'
#' Broadcast: on any path, all bytes cross the outermost level between the root and a rank. Reduce: only the root must
#' wait, for the farthest rank. Allreduce: all bytes of the result must cross the outermost level that is used.
#'
#' @inheritParams model_messages
#' @return Latency in us for each size.
#' @noRd
bound_latency <- function(study, collective, mapping, processes, size, costs) {
  place <- place_ranks(study, collective, mapping, processes)
  if (is.null(place)) return(rep(NA_real_, length(size)))
  if (collective == "allreduce") {
    outermost <- which(map_lgl(seq_len(ncol(place)), function(l) any(place[, l] != place[1, l])))[1]
    return(costs$latency[[outermost]] + size * costs$gap_byte[[outermost]])
  }
  level <- level_matrix(place)[1, -1]
  each <- outer(size, costs$gap_byte[level]) + rep(costs$latency[level], each = length(size))
  if (collective == "reduce") return(apply(each, 1, max) / processes)
  rowSums(each) / processes
}

# Message models as predictors (see predict.R); their context also has the collective, algorithm, mapping and costs of
# messages.

predict_messages <- function(form) {
  function(train, test, context) {
    if (context$costs$source == "none") return(NULL)
    messages_of(test, context, context$costs, form)
  }
}

#' Prediction for rows with processes and size_bytes
#' @noRd
messages_of <- function(rows, context, costs, form) {
  counts <- unique(rows$processes)
  forest <- trees_at(context, counts)
  if (!is.null(forest)) {
    sizes <- unique(rows$size_bytes)
    time <- time_forest(
      forest, context$collective, variant_of(context$study, context$collective, context$algorithm), sizes,
      costs_of_form(costs, form), form, rowMeans
    )
    return(pmax(time[cbind(match(rows$size_bytes, sizes), match(rows$processes, counts))], 1e-3))
  }
  predicted <- rep(NA_real_, nrow(rows))
  for (at in split(seq_len(nrow(rows)), rows$processes)) {
    found <- model_messages(
      context$study, context$collective, context$algorithm, context$mapping, rows$processes[at[1]], rows$size_bytes[at],
      costs, form
    )
    if (is.null(found)) return(NULL)
    predicted[at] <- found
  }
  pmax(predicted, 1e-3)
}

#' The trees of an algorithm for several numbers of processes; NULL if it is not always a tree, or not known
#' @noRd
trees_at <- function(context, counts) {
  study <- context$study
  collective <- context$collective
  variant <- variant_of(study, collective, context$algorithm)
  if (!collective %in% c("bcast", "reduce") || variant$name == "default") return(NULL)
  mpi <- mpi_of(study, collective, context$mapping)
  key <- paste(
    c("trees", tree_key(mpi, collective, variant$name, variant$parameters), context$mapping, counts), collapse = "\r"
  )
  remember(study, key, function() {
    places <- map(counts, function(count) place_ranks(study, collective, context$mapping, count))
    parents <- map(counts, function(count) sending_tree(study, mpi, collective, variant, count))
    if (any(map_lgl(c(places, parents), is.null))) NULL else forest_of(places, parents)
  })
}

#' The shared LogGP model with factors fitted for one algorithm: on latency, time per byte, overhead and, for
#' reductions, the time to combine a byte, which no ladder measures (zero in the simulator: computing takes no time)
#' @noRd
predict_messages_fitted <- function(train, test, context) {
  fitted <- fit_messages(train, context)
  if (is.null(fitted)) return(NULL)
  messages_of(test, context, fitted, "shared")
}

fit_messages <- function(train, context) {
  counts <- spread_out(sort(unique(train$processes)), 4)
  rows <- train[train$processes %in% counts, ]
  # Where the places of some process count are unknown, there is no model.
  if (is.null(messages_of(rows, context, context$costs, "shared"))) return(NULL)
  start <- utils::modifyList(context$costs, list(overhead = max(context$costs$overhead, 0.02)))
  miss <- function(factors) {
    predicted <- messages_of(rows, context, scale_costs(start, factors), "shared")
    mean((log(predicted) - log(rows$latency_us))^2, na.rm = TRUE)
  }
  if (is.nan(miss(c(0, 0, 0)))) return(NULL)
  # From a far smaller time to combine a byte, the search ends in a local minimum.
  first <- c(0, 0, 0, if (context$collective != "bcast") log(min(start$gap_byte, na.rm = TRUE)))
  fit <- function() stats::optim(first, miss, control = list(maxit = 500, reltol = 1e-5))$par
  forest <- trees_at(context, unique(rows$processes))
  # Results are stored for trees only: the inputs of other models are not listed completely.
  if (is.null(forest)) return(scale_costs(start, fit()))
  variant <- variant_of(context$study, context$collective, context$algorithm)
  told <- list(
    "messages", context$collective, variant[c("name", "parameters")], start, forest$places, forest$parents,
    rows[c("processes", "size_bytes", "latency_us")]
  )
  scale_costs(start, recall(context$study, told, fit))
}

scale_costs <- function(costs, factors) {
  factors <- exp(factors)
  if (length(factors) == 4) costs$combine_byte <- factors[4]
  costs$latency <- costs$latency * factors[1]
  costs$gap_byte <- costs$gap_byte * factors[2]
  costs$overhead <- costs$overhead * factors[3]
  costs
}

#' Derin (2025)'s latency model as a predictor
#' @noRd
predict_latency_only <- function(train, test, context) {
  if (context$costs$source == "none" || context$collective == "allreduce") return(NULL)
  counts <- unique(test$processes)
  found <- map_dbl(counts, function(count) {
    known <- context$costs$pairs %||% context$costs$latency
    predict_latency_only_once(context$study, context$collective, context$algorithm, context$mapping, count, known)
  })
  if (anyNA(found)) return(NULL)
  found[match(test$processes, counts)]
}

predict_latency_only_once <- function(study, collective, algorithm, mapping, processes, latencies) {
  place <- place_ranks(study, collective, mapping, processes)
  if (is.null(place)) return(NA_real_)
  variant <- variant_of(study, collective, algorithm)
  chain <- if (variant$name == "chain") {
    sending_tree(study, mpi_of(study, collective, mapping), collective, variant, processes)
  }
  model_latency_only(variant$name, pair_latencies(latencies, place), chain, processes)
}

models_of_messages <- list(
  latency_only = predict_latency_only, hockney = predict_messages("hockney"), loggp = predict_messages("loggp"),
  loggp_shared = predict_messages("shared"), loggp_fitted = predict_messages_fitted
)

#' Labels of the message models
#' @noRd
message_model_words <- c(
  latency_only = "Latency only (Derin 2025)", hockney = "Hockney", loggp = "LogGP",
  loggp_shared = "LogGP, shared links",
  loggp_fitted = "LogGP, fitted", flops_only = "Flops only", flops_ladder = "Flops and ladder",
  flops_counted = "Counted flops and ladder",
  library_default = "The library's default", measured_best = "Measured best"
)

#' Labels of the models
#'
#' @return Character vector, named by the names of the models in tables.
#' @examples
#' model_labels()[["loggp"]]
#' @export
model_labels <- function() c(model_words, message_model_words)
