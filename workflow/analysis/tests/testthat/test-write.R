test_that("a table can be written while R collects garbage", {
  script <- "
    table <- tibble::tibble(name = rep(c('a', 'b'), 500), value = seq_along(name))
    path <- tempfile()
    write <- collanalysis:::write_table
    invisible(write(table, path))
    invisible(gctorture2(30))
    for (i in 1:10) write(table, path)
    invisible(gctorture2(0))
    stopifnot(identical(read.csv(path), as.data.frame(table)))
  "
  file <- withr::local_tempfile(lines = script)
  expect_equal(system2(file.path(R.home("bin"), "Rscript"), file, timeout = 300), 0)
})
