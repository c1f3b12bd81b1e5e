# The analysis of one study: Rscript analyse.R results/<study>
# Reads study.json, cells.csv, measurements.csv, ranks.csv, edges.csv and exchanges.csv there (of a study that is
# compared with another one also that one's study.json and measurements.csv); writes tables/, models/, figures/ and
# sentences.csv.
suppressPackageStartupMessages(library(collanalysis))

arguments <- commandArgs(trailingOnly = TRUE)
if (length(arguments) != 1) {
  message("usage: Rscript analyse.R results/<study>")
  quit(status = 2)
}
invisible(write_analysis(read_results(arguments[1])))
