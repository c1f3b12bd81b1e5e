# The first step of both renderers: run the R code of index.qmd (and its chapters) once, for all formats.
# Each function runs a few times: compiling them takes longer than it saves.
invisible(compiler::enableJIT(0))
options(knitr.duplicate.label = "deny", width = 100)
# kable & co. then write markdown, which suits HTML and typst alike.
knitr::opts_knit$set(rmarkdown.pandoc.to = "markdown", progress = FALSE, verbose = FALSE)
invisible(knitr::knit("index.qmd", "report.md", quiet = TRUE, encoding = "UTF-8"))
