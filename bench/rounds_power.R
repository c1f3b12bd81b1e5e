# Rscript bench/rounds_power.R [REPEATS]: error of the first kind and power of the rule that compares launches within
# rounds, on simulated launches (compare_rounds.R). Writes docs/images/rounds-power.svg and prints the tables of
# docs/methodology.md.
suppressPackageStartupMessages(library(collanalysis))

given <- commandArgs(trailingOnly = TRUE)
repeats <- if (length(given) > 0) as.integer(given[1]) else 60L
inside <- asNamespace("collanalysis")
print_table <- function(table) cat(knitr::kable(table, digits = 1, format = "pipe"), sep = "\n")

error <- inside$simulate_power(0, c(3, 5, 8), inside$noise_families, repeats, seed = 1)
wide <- tidyr::pivot_wider(error[c("family", "rounds", "wrong_pct")], names_from = "rounds", values_from = "wrong_pct")
print_table(wide)
power <- inside$simulate_power(
  c(2, 5, 10, 20, 50), c(3, 5, 8, 12), c("normal", "heavy"), max(10L, repeats %/% 3L), seed = 2
)
found <- power[c("family", "rounds", "difference_pct", "detected_pct")]
print_table(tidyr::pivot_wider(found, names_from = "difference_pct", values_from = "detected_pct"))
ggplot2::ggsave("docs/images/rounds-power.svg", inside$plot_power(power), width = 8, height = 3.5)
