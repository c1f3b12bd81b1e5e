# Rscript bench/rules_by_chance.R [REPEATS]: how often noise alone makes a rule, and how often a real gain does, on
# simulated launches of a default and four algorithms: six process counts, 14 message sizes, a noise of 3 % of each
# latency, and a noise that all sizes of a launch share. With 60 REPEATS (default 20) it prints the table of
# docs/methodology.md, section 14.
suppressPackageStartupMessages(library(collanalysis))

given <- commandArgs(trailingOnly = TRUE)
repeats <- if (length(given) > 0) as.integer(given[1]) else 20L
inside <- asNamespace("collanalysis")
names <- c("default", "linear", "chain", "binomial", "binary_tree")

# Share (%) of the cells in which the rules choose an algorithm other than the default.
ruled <- function(launches, series, gain) {
  grid <- tidyr::expand_grid(
    collective = "bcast", algorithm = names, parameters = "", mapping = "core", processes = seq(4, 24, 4),
    launch = seq_len(launches), size_bytes = 2^(0:13)
  )
  grid$algorithm_name <- grid$algorithm
  of_series <- rnorm(nrow(grid) / 14, 0, series)[rep(seq_len(nrow(grid) / 14), each = 14)]
  faster <- ifelse(grid$algorithm == "linear", log1p(gain), 0)
  grid$latency_us <- exp(of_series + rnorm(nrow(grid), 0, 0.03) - faster)
  grid$min_latency_us <- grid$max_latency_us <- NA_real_
  study <- list(simulated = FALSE, analysis = list(tie_pct = 2))
  results <- list(study = study, judged = list(medians = inside$summarise_launches(grid)))
  100 * mean(inside$decide_tuning(results, "bcast")$algorithm != "default")
}

set.seed(1)
cases <- expand.grid(launches = c(1, 3, 5, 10), shared_noise_pct = c(0, 1, 3))
for (gain in c(0, 0.05, 0.1)) {
  cases[[paste0("gain of ", 100 * gain, " %")]] <- apply(cases[1:2], 1, function(case) {
    mean(replicate(repeats, ruled(case[1], case[2] / 100, gain)))
  })
}
cat(knitr::kable(cases, digits = 1, format = "pipe"), sep = "\n")
