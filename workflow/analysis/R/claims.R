# The published claims of [derin2025], checked with a study of the same machine.

# Each claim: the published wording, the criterion applied, the cells that it covers, and whether it holds in each of
# them. `d` has one row per number of processes and size, a column for each algorithm (us), and `model`, a list of the
# published models (us) by algorithm. "Similar", "agrees" and "higher" need a threshold, which the publication lacks.
claim <- function(words, counted, cells, holds) list(words = words, counted = counted, cells = cells, holds = holds)

least <- function(d, names) do.call(pmin, d[names])
most <- function(d, names) do.call(pmax, d[names])
near <- function(a, b, share) abs(a / b - 1) <= share
each_near <- function(a, b, share) pmax(a, b) <= (1 + share) * pmin(a, b)
every <- function(d) rep(TRUE, nrow(d))
tiny <- function(d) d$size_bytes == 2
small <- function(d) d$size_bytes <= 1024
large <- function(d) d$size_bytes >= 16384

published_claims <- list(
  bcast = list(
    claim(
      "Default consistently has the lowest latency, for larger messages", "no other is 2 % faster; 16 KiB and more",
      large, function(d) d$default <= 1.02 * least(d, c("linear", "pipeline", "chain", "binomial"))
    ),
    claim(
      "Chain and Binomial show similar performance", "within 25 % of each other; all cells", every,
      function(d) each_near(d$chain, d$binomial, 0.25)
    ),
    claim(
      "Basic linear and Pipeline have higher latency as the processes grow",
      "both are slower than Chain and Binomial; 32 processes and more", function(d) d$processes >= 32,
      function(d) least(d, c("linear", "pipeline")) > most(d, c("chain", "binomial"))
    ),
    claim(
      "From 32 processes on Pipeline has the highest latency", "no other is slower", function(d) d$processes >= 32,
      function(d) d$pipeline >= most(d, c("default", "linear", "chain", "binomial"))
    ),
    claim(
      "Binomial achieves the lowest latency of Pipeline, Binomial and Chain at 2 bytes", "neither of the two is faster",
      tiny, function(d) d$binomial <= least(d, c("pipeline", "chain"))
    ),
    claim(
      "Pipeline grows linearly with the processes at 2 bytes", "within 20 % of a straight line", tiny,
      function(d) near(d$pipeline, fitted(lm(d$pipeline ~ d$processes)), 0.2)
    ),
    claim(
      "Chain is better than Pipeline, particularly at larger scales, at 2 bytes", "Chain is faster; from 32 processes",
      function(d) tiny(d) & d$processes >= 32, function(d) d$chain < d$pipeline
    ),
    claim(
      "Model and measurement of Pipeline agree well at 2 bytes", "within 20 %", tiny,
      function(d) near(d$model$pipeline, d$pipeline, 0.2)
    ),
    claim(
      "The model of parallel chains captures the latency at 2 bytes", "within 20 %", tiny,
      function(d) near(d$model$chain, d$chain, 0.2)
    )
  ),
  reduce = list(
    claim(
      "For small messages Binomial and Default scale best", "no other is 2 % faster; up to 1 KiB, from 32 processes",
      function(d) small(d) & d$processes >= 32,
      function(d) least(d, c("binomial", "default")) <= 1.02 * least(d, c("linear", "binary", "rabenseifner"))
    ),
    claim(
      "As messages grow Linear and Binary have higher latency than Binomial and Default",
      "both are slower than both; 16 KiB and more, above 16 processes", function(d) large(d) & d$processes > 16,
      function(d) least(d, c("linear", "binary")) > most(d, c("binomial", "default"))
    ),
    claim(
      "Rabenseifner becomes one of the better for large data", "one of the two fastest of five; 1 MiB",
      function(d) d$size_bytes == 2^20,
      function(d) rowSums(d[c("default", "linear", "binary", "binomial")] < d$rabenseifner) < 2
    ),
    claim(
      "Rabenseifner tends to have the highest latency for small messages", "no other is slower; up to 1 KiB", small,
      function(d) d$rabenseifner >= most(d, c("default", "linear", "binary", "binomial"))
    ),
    claim(
      "Binomial has the lowest latency of Binary, Binomial and Rabenseifner at 2 bytes", "neither of the two is faster",
      tiny, function(d) d$binomial <= least(d, c("binary", "rabenseifner"))
    ),
    claim(
      "Binary has significantly higher latency than Binomial beyond 128 processes, at 2 bytes", "by 25 % at least",
      function(d) tiny(d) & d$processes > 128, function(d) d$binary >= 1.25 * d$binomial
    ),
    claim(
      "The model of Rabenseifner closely follows the measurement at 2 bytes", "within 20 %", tiny,
      function(d) near(d$model$rabenseifner, d$rabenseifner, 0.2)
    )
  )
)

#' Check the claims of Derin (2025) about a collective on the cells of a study of the same machine
#'
#' The publication has figures and sentences but no latencies of collectives as numbers, so no error can be computed:
#' only whether its claims about order and shape also hold here.
#'
#' @param results List from [read_results()].
#' @param collective bcast or reduce.
#' @return Tibble: statement (as published), counted (the criterion), cells (that it covers), holds_pct (of
#'   them), verdict (holds: in 80 % or more; in part: in half or more; not here). No rows for other machines, or where
#'   an algorithm is missing.
#' @noRd
judge_published_claims <- function(results, collective) {
  none <- tibble(
    statement = character(), counted = character(), cells = integer(), holds_pct = numeric(), verdict = character()
  )
  claims <- published_claims[[collective]]
  further <- if (collective == "bcast") c("pipeline", "chain") else c("binary", "rabenseifner")
  wanted <- c("default", "linear", "binomial", further)
  if (!identical(results$study$machine$name, "orfeo-epyc") || is.null(claims)) return(none)
  d <- rows_to_fit(results, collective) |>
    filter(.data$mapping == "core", .data$algorithm %in% wanted) |>
    select("processes", "size_bytes", "algorithm", "latency_us") |>
    pivot_wider(names_from = "algorithm", values_from = "latency_us")
  if (!all(wanted %in% names(d))) return(none)
  d <- d[stats::complete.cases(d), ]
  costs <- message_costs(results, mpi_of(results$study, collective, "core"))
  counts <- unique(d$processes)
  d$model <- as_tibble(map(setNames(wanted[-(1:2)], wanted[-(1:2)]), function(algorithm) {
    map_dbl(counts, function(count) {
      predict_latency_only_once(results$study, collective, algorithm, "core", count, costs$pairs %||% costs$latency)
    })[match(d$processes, counts)]
  }))
  found <- map_dfr(claims, function(claim) {
    covered <- d[claim$cells(d), ]
    if (nrow(covered) == 0) return(NULL)
    holds <- claim$holds(covered)
    # Where the ladder lacks a level, there is no model to judge.
    if (anyNA(holds)) return(NULL)
    tibble(statement = claim$words, counted = claim$counted, cells = length(holds), holds_pct = 100 * mean(holds))
  })
  if (nrow(found) == 0) return(none)
  found |>
    mutate(verdict = c("not here", "in part", "holds")[1 + (.data$holds_pct >= 50) + (.data$holds_pct >= 80)])
}

tables_of_claims <- function(results, collective) {
  judged <- judge_published_claims(results, collective)
  if (nrow(judged) == 0) return(NULL)
  list(listed(collective, "published-claims", judged, caption_in(
    results, collective, "the claims of @derin2025, and the share of the covered cells in which each holds here. ",
    "The claims are qualitative; the column Counted gives the criterion applied. No latency of a ",
    "collective on these nodes was published, so this is not an error of the simulation."
  )))
}

#' Sentence on the claims of Derin (2025)
#' @noRd
describe_claims <- function(results, collective) {
  judged <- judge_published_claims(results, collective)
  if (nrow(judged) == 0) return(NULL)
  of <- function(verdict) judged$statement[judged$verdict == verdict]
  quoted <- function(words) and_list(paste0("\u201c", words, "\u201d"))
  paste0(
    "Of the claims of @derin2025, ", nrow(judged), " can be checked: ", length(of("holds")), " hold in at least 80 % ",
    "of the cells that they cover, ", length(of("in part")), " in at least half of them",
    if (length(of("not here")) > 0) paste0(", and these in fewer: ", quoted(of("not here"))),
    ". The measurements themselves are not available, so the error of the latencies is unknown."
  )
}
