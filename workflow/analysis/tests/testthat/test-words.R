test_that("sizes are told in binary units", {
  expect_equal(label_bytes(c(1, 1024, 1536, 1048576, NA)), c("1 B", "1 KiB", "1.5 KiB", "1 MiB", NA))
})
