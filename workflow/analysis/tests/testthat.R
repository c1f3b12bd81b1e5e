library(testthat)
library(collanalysis)

test_check("collanalysis")
