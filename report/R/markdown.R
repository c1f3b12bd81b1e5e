# Markdown that Quarto and plain pandoc both understand.

one_line <- function(x) trimws(gsub("[[:space:]]+", " ", enc2utf8(as.character(x))))

#' Text as markdown that means exactly that text: no character of a title can become markup, a reference or a shortcode.
#' Only citations of works in references.bib, such as `[@derin2025]` and `@derin2025`, keep their meaning.
md <- function(x) {
  x <- ifelse(is.na(x), "", one_line(x))
  # A number and its unit stay together.
  x <- gsub("([0-9]) (%|\u00b5s|ms|s|B|KiB|MiB|GiB)\\b|([0-9]) (%)", "\\1\\3\u00a0\\2\\4", x, perl = TRUE)
  cite(escape_markup(x))
}

escape_markup <- function(x) gsub("([][\\\\`*_{}()<>#+.!|~$@^&%=:-])", "\\\\\\1", x)

read_bibliography_keys <- function(path) {
  entries <- grep("^@[a-z]+\\{", readLines(path, warn = FALSE, encoding = "UTF-8"), value = TRUE)
  sub("^@[a-z]+\\{([^,]+),.*", "\\1", entries)
}

# Read now: chapters are knitted in a folder of their own.
bibliography_keys <- read_bibliography_keys("references.bib")

#' Give citations in escaped text their meaning back: `[@key]`, `[@key; @other]` and `@key`, where the key is known.
cite <- function(x) {
  if (!any(grepl("@", x, fixed = TRUE))) return(x)
  for (key in bibliography_keys) x <- gsub(escape_markup(paste0("@", key)), paste0("@", key), x, fixed = TRUE)
  gsub("\\\\\\[(@[^][\\\\]*)\\\\\\]", "[\\1]", x)
}

#' Sentences of the analysis as markdown: like md(), but text between backticks is code, and `@sec-...` is a reference.
prose <- function(x) {
  x <- ifelse(is.na(x), "", enc2utf8(as.character(x)))
  marks <- gregexpr("`[^`]+`|@sec-[a-z0-9_-]+", x)
  kept <- lapply(regmatches(x, marks), function(found) {
    ifelse(startsWith(found, "`"), code(gsub("`", "", found, fixed = TRUE)), found)
  })
  # A character without meaning holds their places.
  regmatches(x, marks) <- lapply(kept, function(found) rep("\uE000", length(found)))
  x <- md(x)
  regmatches(x, gregexpr("\uE000", x, fixed = TRUE)) <- kept
  x
}

code <- function(x) {
  x <- one_line(x)
  fence <- ifelse(grepl("`", x, fixed = TRUE), "``", "`")
  ifelse(nzchar(x), paste0(fence, gsub("|", "\\|", x, fixed = TRUE), fence), "")
}

emit <- function(...) cat(..., "\n\n", sep = "")

paragraph <- function(...) emit(paste0(..., collapse = ""))

callout <- function(kind, title, body) {
  emit("::: {.callout-", kind, " title=\"", title, "\"}")
  emit(paste(body, collapse = "\n\n"))
  emit(":::")
}
