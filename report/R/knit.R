# The fallback's first step: run the R code of index.qmd (and its chapters) once, for both formats.
options(knitr.duplicate.label = "deny", width = 100)
# kable & co. then write markdown, which suits HTML and typst alike.
knitr::opts_knit$set(rmarkdown.pandoc.to = "markdown", progress = FALSE, verbose = FALSE)
invisible(knitr::knit("index.qmd", "index.md", quiet = TRUE, encoding = "UTF-8"))
