test_that("studies with sizes outside the classes, many mappings or the default alone are compared", {
  compared <- function(rows, classes = NULL) {
    base <- tempfile("results")
    dir.create(base)
    make_study(rows, folder = file.path(base, "real"))
    analysis <- list(compare = list(study = "real"), size_classes = classes)
    read_results(make_study(rows, analysis = analysis, simulated = TRUE, folder = file.path(base, "toy")))
  }
  draw <- function(results) {
    suppressMessages(purrr::walk(figures_accuracy(results), function(figure) ggplot2::ggplotGrob(figure$plot)))
    describe_accuracy(results)
  }
  rows <- dplyr::filter(lawful(counts = 4, sizes = c(1, 100, 1024)), .data$collective == "bcast")
  results <- compared(rows, list(list(label = "medium", from = 64, to = 512)))
  expect_match(draw(results)[2], "(messages up to 64 B) and LINEAR (messages above 64 B up to 8 KiB)", fixed = TRUE)
  # With one process count there is a point, not an invisible line.
  points <- Filter(function(layer) inherits(layer$geom, "GeomPoint"), figures_accuracy(results)[[2]]$plot$layers)
  expect_length(points, 1)
  expect_setequal(as.character(figures_accuracy(results)[[2]]$plot$data$class), c("medium", "other"))
  many <- purrr::map_dfr(paste0("m", 1:9), function(name) dplyr::mutate(rows, mapping = name))
  expect_no_error(draw(compared(many)))
  alone <- compared(dplyr::filter(rows, .data$algorithm == "default"))
  expect_no_warning(only <- draw(alone))
  expect_no_match(only, "nothing")
  # Three algorithms have an order.
  third <- dplyr::mutate(dplyr::filter(rows, .data$algorithm == "linear"), algorithm = "binomial")
  third$latency_us <- 3 * third$latency_us
  ids <- function(results) purrr::map_chr(figures_accuracy(results), "id")
  expect_equal(setdiff(ids(compared(dplyr::bind_rows(rows, third))), ids(alone)), "accuracy-ranks-bcast")
})
