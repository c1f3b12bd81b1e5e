# Rscript missing.R DESCRIPTION: the packages that the analysis and the report need and this R lacks; status 1 where there are some.
imports <- read.dcf(commandArgs(trailingOnly = TRUE)[1], "Imports")[1]
needed <- c(sub("\\s*\\(.*", "", trimws(strsplit(imports, ",")[[1]])), "knitr")
missing <- needed[!vapply(needed, function(name) nzchar(system.file(package = name)), NA)]
if (length(missing) > 0) cat("packages ", paste(missing, collapse = ", "), "\n", sep = "")
quit(status = length(missing) > 0)
