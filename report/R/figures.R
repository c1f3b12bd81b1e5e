# Figures, copied into the build folder, with interactive widgets for some of them.

label_of <- function(kind, study, id) paste0(kind, "-", study$id, "_", collanalysis::slug(id))

caption_of <- function(study, caption) {
  caption <- one_line(caption)
  if (is.na(caption) || caption == "NA") caption <- ""
  if (study$simulated && !grepl("simulat", caption, ignore.case = TRUE)) caption <- paste(caption, "Simulated.")
  md(trimws(caption))
}

#' Copy a figure into the build folder (short names without blanks) and add fallback fonts: an SVG names the font of the
#' machine that drew it, which a reader's machine may lack.
stage_figure <- function(study, file) {
  from <- file.path(study$folder, file)
  if (!file.exists(from) || file.size(from) == 0) return(NULL)
  name <- paste0(collanalysis::slug(tools::file_path_sans_ext(basename(file))), ".", tools::file_ext(file))
  place <- file.path("figures", study$id, name)
  to <- file.path(study$build, place)
  dir.create(dirname(to), recursive = TRUE, showWarnings = FALSE)
  if (tools::file_ext(file) == "svg") {
    text <- readLines(from, warn = FALSE, encoding = "UTF-8")
    text <- gsub("font-family: *(\"[^\"]*\"|[^;\"', ]+);", "font-family: \\1, Arial, Helvetica, sans-serif;", text)
    writeLines(text, to, useBytes = TRUE)
  } else {
    file.copy(from, to, overwrite = TRUE)
  }
  place
}

#' The file for the HTML page: the PNG where the analysis found the SVG too large for browsers.
file_for_page <- function(study, file) {
  dots <- sub("[.]svg$", ".png", file)
  if (file.exists(file.path(study$folder, dots))) dots else file
}

#' @param widest Largest share of the text's width on paper.
show_figure <- function(study, row, id = label_of("fig", study, row$id), caption = caption_of(study, row$caption),
                        widest = 1) {
  # The study's own text shows it already.
  if (id %in% study$own$labels) return(invisible(NULL))
  image <- stage_figure(study, row$file)
  if (is.null(image)) {
    lost <- paste0("The file ", code(file.path(study$name, row$file)), " is missing.")
    callout("warning", "Missing figure", c(md(row$title), lost))
    return(invisible(NULL))
  }
  emit("::: {#", id, "}")
  # On paper, figures are small enough for two on a page where their text stays readable.
  emit("::: {.content-visible when-format=\"html\"}")
  emit("![](", stage_figure(study, file_for_page(study, row$file)), "){", figure_attributes(row, 1), "}")
  emit(":::")
  emit("::: {.content-hidden when-format=\"html\"}")
  emit("![](", image, "){", figure_attributes(row, min(widest, paper_width(row))), "}")
  emit(":::")
  if (!is.na(row$interactive)) emit_widget(study, row$interactive)
  emit(caption)
  emit(":::")
}

figure_attributes <- function(row, width) {
  alt <- gsub("[\"{}<>&$`\\\\]", " ", one_line(paste0(row$title)))
  sprintf("width=%.0f%% fig-alt=\"%s\" alt=\"%s\"", 100 * width, alt, alt)
}

#' Share of the text's width (6.5 inches) with which a figure is 3.2 inches high or, if that were narrower than four fifths,
#' at most 7.2 inches high.
paper_width <- function(row) {
  # A damaged index has texts here.
  if (!is.numeric(row$height_in) || !is.numeric(row$width_in)) return(1)
  aspect <- row$height_in / row$width_in
  if (is.na(aspect) || aspect <= 0) return(1)
  two_on_a_page <- 3.2 / (6.5 * aspect)
  if (two_on_a_page >= 0.8) min(1, two_on_a_page) else min(1, 7.2 / (6.5 * aspect))
}

#' Emit the widget of a figure. Its static picture stays for print, for the PDF and for browsers without WebGL.
#' One copy of plotly.js serves all of them (stage_widget_library(); workflow/collstudy/publish/pages.py loads it where needed).
emit_widget <- function(study, file) {
  path <- file.path(study$folder, file)
  if (!file.exists(path)) return(invisible(NULL))
  json <- gsub("</", "<\\/", paste(readLines(path, warn = FALSE, encoding = "UTF-8"), collapse = "\n"), fixed = TRUE)
  emit(html_only(paste0("<div class=\"surface\"><script type=\"application/json\">", json, "</script></div>")))
}

stage_widget_library <- function(report) {
  widgets <- unlist(lapply(report$studies, function(study) study$figures$interactive))
  if (all(is.na(widgets)) || !requireNamespace("plotly", quietly = TRUE)) return(invisible(NULL))
  folder <- system.file("htmlwidgets", "lib", "plotlyjs", package = "plotly")
  library <- list.files(folder, "^plotly.*[.]js$", full.names = TRUE)
  invisible(file.copy(library[1], file.path(report$build, "theme", "plotly.js"), overwrite = TRUE))
}

html_only <- function(text) paste0("```{=html}\n", text, "\n```")
