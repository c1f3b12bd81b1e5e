# What the .qmd files call: files of results/ (docs/files.md) to markdown. Numbers and sentences are the analysis's.
for (file in c("read", "markdown", "words", "tables", "figures", "front", "chapter", "parts", "tuning", "own", "appendix")) {
  source(file.path("R", paste0(file, ".R")))
}
