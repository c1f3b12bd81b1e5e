# A trace of two ranks with known calls.
write_trace <- function(rows, calls = nrow(rows), folder = tempfile("trace")) {
  dir.create(folder)
  readr::write_csv(rows, file.path(folder, "calls.csv.gz"), na = "")
  about <- list(failure = "", trace = list(
    ranks = 2, calls = calls, seconds = 1, complete = TRUE, communicators = list(list(0, 1))
  ))
  jsonlite::write_json(about, file.path(folder, "about.json"), auto_unbox = TRUE)
  folder
}

calls_of_two <- function() {
  tibble::tibble(
    rank = rep(0:1, each = 3), operation = c("bcast", "alltoall", "isend", "bcast", "alltoall", "irecv"),
    start_us = c(10, 20, 40, 0, 20, 40), end_us = c(12, 30, 50, 12, 30, 42), cpu_us = 1, compute_us = 5,
    communicator = 0,
    root = c(0, -1, -1, 0, -1, -1), to = c(-1, -1, 1, -1, -1, -1), from = c(-1, -1, -1, -1, -1, 0), send_tag = 0,
    receive_tag = 0, sent_bytes = c(100, 16, 7, 0, 16, 0), received_bytes = c(0, 16, 0, 100, 16, 7), request = 0,
    list = ""
  )
}

test_that("operations are counted once for all ranks, calls and bytes for each", {
  trace <- read_trace(write_trace(calls_of_two()))
  found <- summarise_operations(trace)
  alltoall <- found[found$operation == "alltoall", ]
  expect_equal(c(alltoall$calls, alltoall$operations, alltoall$sent_bytes, alltoall$largest_bytes), c(2, 1, 32, 8))
  expect_equal(found$sent_bytes[found$operation == "bcast"], 100)
  expect_equal(found$time_us[found$operation == "bcast"], 7)
  expect_equal(summarise_sizes(trace)$size_bytes, c(8, 64, 4))
})

test_that("a message to no rank sends no bytes", {
  # MPI_PROC_NULL is -2 in Open MPI and -1 in MPICH.
  calls <- dplyr::bind_rows(calls_of_two(), dplyr::mutate(calls_of_two()[c(3, 3), ], to = c(-2, -1)))
  found <- summarise_operations(read_trace(write_trace(calls)))
  sends <- found[found$operation == "isend", ]
  expect_equal(c(sends$calls, sends$sent_bytes, sends$largest_bytes), c(3, 7, 7))
})

test_that("operations of different communicators are different operations", {
  trace <- read_trace(write_trace(calls_of_two()))
  # Two rows of two ranks, and one collective of all four.
  row <- dplyr::filter(trace$calls, operation == "alltoall")
  other <- dplyr::mutate(row, rank = rank + 2L, communicator = 1L)
  all <- dplyr::mutate(dplyr::bind_rows(row, other), communicator = 2L)
  trace$calls <- dplyr::bind_rows(row, row, other, other, all)
  trace$about$trace$ranks <- 4
  found <- summarise_operations(trace)
  expect_equal(c(found$calls, found$operations), c(12, 5))
})

test_that("time is inside calls or between them", {
  time <- summarise_time(read_trace(write_trace(calls_of_two())))
  mine <- time[time$rank == 0, ]
  expect_equal(mine$wall_us[mine$kind == "compute"], 40 - 22)
  expect_equal(mine$wall_us[mine$kind == "collectives"], 12)
  expect_equal(sum(mine$wall_us), 40)
  expect_equal(mine$cpu_us[mine$kind == "compute"], 15)
})

test_that("a table with fewer calls than were recorded is an error", {
  expect_error(read_trace(write_trace(calls_of_two(), calls = 7)), "6 calls, of 7")
})

# A replay of two hosts on one switch: one link full with two messages for a quarter of the second interval.
toy_replay <- function() {
  list(
    about = list(interval_us = 10, makespan_us = 20),
    ports = tibble::tibble(
      link = 0:3, sender = c("host0", "host1", "S1.0", "S1.0"), port = c("up", "up", "down0", "down1"),
      stage = c(0, 0, 1, 1), gb_s = 1
    ),
    links = tibble::tibble(
      interval = c(0, 0, 1, 1), link = c(0, 3, 0, 3), bytes = c(1000, 1000, 5000, 5000), saturated_us = c(0, 0, 0, 2.5),
      held_us = c(0, 0, 0, 2.5)
    ),
    intervals = tibble::tibble(
      interval = 0:1, start_us = c(0, 10), width_us = 10, messages = c(1, 3), latency_us = c(2, 6), unloaded_us = 2,
      bytes = c(1000, 5000)
    ),
    operations = tibble::tibble(
      interval = c(0, 0, 1), operation = c("compute", "bcast", "isend"), rank_us = c(10, 10, 20),
      bytes = c(0, 1000, 5000), messages = c(0, 1, 3)
    ),
    pairs = tibble::tibble(from = 0L, to = 1L, collective_bytes = 1000, point_to_point_bytes = 5000)
  )
}

test_that("a replay is summed up", {
  one <- summarise_replay(toy_replay())
  expect_equal(one$peak_load_pct, 50)
  expect_equal(one$network_bytes, 6000)
  expect_equal(c(one$communication_us, one$latency_us, one$saturated_us, one$held_us), c(15, 5, 2.5, 2.5))
  expect_equal(summarise_saturation(toy_replay())$share, c(0, 0.25))
  expect_equal(summarise_traffic(toy_replay())$operation, c("point to point", "bcast", "compute"))
})

test_that("every figure of a replay can be drawn", {
  application <- list(name = "toy", label = "Toy", replays = list(list(
    label = "default", machine = "m", machine_label = "M", replay = toy_replay()
  )))
  figures <- collanalysis:::figures_of_replay(application)
  expect_true(all(sapply(figures, function(f) isTRUE(f$simulated))))
  for (figure in figures) expect_s3_class(ggplot2::ggplot_build(figure$plot), "ggplot_built")
})

test_that("intervals without traffic have no load of a link and no latency", {
  replay <- toy_replay()
  replay$intervals <- tibble::tibble(
    interval = 0:3, start_us = 10 * 0:3, width_us = 10, messages = c(1, 0, 0, 3), latency_us = c(2, 0, 0, 6),
    unloaded_us = c(2, 0, 0, 2), bytes = c(1000, 0, 0, 5000)
  )
  replay$links$interval <- c(0, 0, 3, 3)
  line <- Filter(function(layer) inherits(layer$geom, "GeomStep"), plot_throughput(replay, "Toy")$layers)[[1]]$data
  expect_equal(line$share[order(line$interval)], c(0.1, 0, 0, 0.5))
  # No message, no latency: the line of the empty network has gaps there.
  drawn <- ggplot2::ggplot_build(plot_message_latency(replay, "Toy"))$data[[2]]
  expect_equal(drawn[c("x", "xend", "y")], data.frame(x = c(0, 30), xend = c(10, 40), y = 2))
})

test_that("a panel of a kind of message that no rank sent says so", {
  replay <- toy_replay()
  replay$pairs$point_to_point_bytes <- 0
  layout <- ggplot2::ggplot_build(plot_traffic(replay, "Toy"))$layout$layout
  expect_equal(as.character(layout$kind), c("Collectives", "Point to point: none"))
})

test_that("an axis of ranks has whole numbers", {
  expect_equal(whole_breaks(c(-0.5, 1.5)), c(0, 1, 2))
})

test_that("the sentence on the collectives of an application fits one kind, and shares below a half", {
  said <- function(calls) {
    trace <- read_trace(write_trace(calls))
    describe_applications(list(applications = list(list(label = "Toy", ranks = 2, trace = trace))))
  }
  calls <- calls_of_two()
  expect_match(said(calls[calls$operation == "bcast", ]), "calls 1 kind of collective, .*, most of them by bcast\\.$")
  more <- dplyr::mutate(calls[calls$operation == "alltoall", ], sent_bytes = 20, start_us = 60, end_us = 70)
  more <- dplyr::bind_rows(dplyr::mutate(more, operation = "reduce"), dplyr::mutate(more, operation = "allreduce"))
  calls <- dplyr::bind_rows(calls, more)
  calls$sent_bytes[calls$operation == "bcast"] <- c(50, 0)
  expect_match(said(calls), "calls 4 kinds of collectives, .*, the largest part by bcast\\.$")
})

test_that("without a replay of the default, no change is against another replay", {
  entry <- function(label, machine, replay) list(label = label, machine = machine, mapping = "block", replay = replay)
  results <- function(default) {
    replays <- list(
      entry("default", "m", default), entry("ring", "m", toy_replay()), entry("chain", "m", toy_replay()),
      entry("default", "n", toy_replay())
    )
    list(applications = list(toy = list(name = "toy", label = "Toy", replays = replays)))
  }
  expect_equal(summarise_replays(results(toy_replay()))$makespan_change_pct, rep(0, 4))
  expect_match(describe_alternatives(results(toy_replay())), "the makespan changes by")
  expect_equal(summarise_replays(results(NULL))$makespan_change_pct, rep(NA_real_, 3))
  expect_length(describe_alternatives(results(NULL)), 0)
})

test_that("the first machine is the study's, also where its replay of the first application failed", {
  entry <- function(label, machine, replay, us = 20) {
    replay$about$makespan_us <- us
    list(label = label, machine = machine, machine_label = toupper(machine), mapping = "block", replay = if (us) replay)
  }
  application <- function(name, ...) list(name = name, label = toupper(name), ranks = 2, replays = list(...))
  results <- list(study = list(applications = list(list(name = "a", label = "A"), list(name = "b", label = "B"))))
  results$applications <- list(
    a = application("a", entry("default", "m", toy_replay(), 0), entry("default", "n", toy_replay()),
                    entry("default", "o", toy_replay(), 40)),
    b = application("b", entry("default", "m", toy_replay()), entry("ring", "m", toy_replay(), 10),
                    entry("default", "n", toy_replay()), entry("default", "o", toy_replay()))
  )
  found <- summarise_replays(results)
  expect_equal(found$makespan_change_pct, c(NA, NA, 0, -50, 0, 0))
  expect_match(describe_alternatives(results), "^B .* ring gains most")
  alternatives <- tables_of_applications(results)
  alternatives <- alternatives[[which(ids(alternatives) == "replays-alternatives")]]
  expect_equal(alternatives$data$replay, c("default", "ring"))
  expect_match(alternatives$caption, "on M (simulated)", fixed = TRUE)
  congestion <- describe_congestion(results)
  expect_match(congestion[1], "^A \\(simulated, on N\\): over")
  expect_match(congestion[2], "^B \\(simulated\\): over")
  shown <- plot_alternatives(results, found)$data
  expect_setequal(paste(shown$application, shown$what), c("B ring", "B On N", "B On O"))
})

test_that("a single replay has no figure of alternatives", {
  application <- list(
    name = "toy", label = "Toy", ranks = 2, trace = read_trace(write_trace(calls_of_two())),
    replays = list(list(label = "default", machine = "m", machine_label = "M", mapping = "core", replay = toy_replay()))
  )
  results <- list(study = list(applications = list(application[c("name", "label")])), applications = list(application))
  figures <- figures_of_applications(results)
  expect_true("toy-ports" %in% ids(figures))
  expect_false("replays-alternatives" %in% ids(figures))
})

test_that("applications that send no data, or call nothing, are shown", {
  barrier <- dplyr::filter(calls_of_two(), operation == "bcast") |>
    dplyr::mutate(operation = "barrier", sent_bytes = 0, received_bytes = 0)
  shown <- function(calls) {
    application <- list(name = "toy", label = "Toy", ranks = 2, trace = read_trace(write_trace(calls)))
    study <- list(applications = list(application[c("name", "label")]))
    results <- list(study = study, applications = list(application))
    expect_no_warning(figures <- figures_of_applications(results))
    for (figure in figures) expect_no_warning(ggplot2::ggplot_build(figure$plot))
    expect_no_warning(tables_of_applications(results))
    list(figures = ids(figures), said = describe_applications(results))
  }
  of_barrier <- shown(barrier)
  expect_equal(of_barrier$figures, c("applications-operations", "applications-time", "account-cells"))
  expect_match(of_barrier$said, "barrier \\(100 % of 1 operations\\); no data are sent\\.$")
  expect_equal(shown(dplyr::mutate(barrier, operation = "init"))$figures, "applications-time")
})

test_that("the cause of congestion sent the messages that arrive in the worst interval", {
  said <- function(latency_us) {
    replay <- toy_replay()
    replay$intervals$latency_us[2] <- latency_us
    replay$operations$bytes[3] <- 16
    application <- list(label = "Toy", replays = list(list(label = "default", machine = "m", replay = replay)))
    describe_congestion(list(applications = list(application)))
  }
  expect_match(said(4), "\\(most bytes belong to point to point\\)")
  # They were under way for an interval, in which the broadcast sent more.
  expect_match(said(12), "\\(most bytes belong to bcast\\)")
})

test_that("peak loads are compared over intervals of one length", {
  # The same traffic in a log with intervals twice as long, as of a replay that takes little longer.
  coarse <- toy_replay()
  coarse$about$interval_us <- 20
  coarse$links <- dplyr::summarise(dplyr::group_by(coarse$links, interval = interval %/% 2, link), dplyr::across(
    c(bytes, saturated_us, held_us), sum
  ), .groups = "drop")
  entry <- function(label, replay) list(label = label, machine = "m", mapping = "block", replay = replay)
  results <- list(applications = list(toy = list(
    name = "toy", label = "Toy", replays = list(entry("default", toy_replay()), entry("ring", coarse))
  )))
  found <- summarise_replays(results)
  expect_equal(found$peak_load_pct, c(30, 30))
  expect_equal(found$peak_change_pct, c(0, 0))
})

test_that("a replay without messages says so", {
  replay <- toy_replay()
  replay$links <- replay$links[0, ]
  replay$pairs <- replay$pairs[0, ]
  replay$intervals <- dplyr::mutate(replay$intervals, messages = 0, latency_us = NA, unloaded_us = NA, bytes = 0)
  replay$operations <- replay$operations[1, ]
  application <- list(name = "toy", label = "Toy", replays = list(list(
    label = "default", machine = "m", machine_label = "M", mapping = "block", replay = replay
  )))
  expect_equal(
    describe_congestion(list(applications = list(application))), "Toy (simulated): the replay sends no messages."
  )
  expect_no_warning(figures <- figures_of_replay(application))
  for (figure in figures) expect_s3_class(ggplot2::ggplotGrob(figure$plot), "gtable")
})
