"""The SVD application: accuracy against R's svd(), any number of processes, errors, the sweep limit, the simulator."""

import csv
import re
import struct

import pytest
from conftest import ROOT, finish, must, tool
from test_coll_library import launch, mpicc

__all__ = ["launch", "mpicc"]  # fixtures

SIMULATED = [1, 2, 3, 4, 5, 6, 7, 8, 16]  # the same program, started in a twentieth of mpirun's time
REAL = {"random": [1, 2, 3, 5, 8], "ill": [2, 7, 8], "wide": [2, 3]}  # [3] for the other cases
CASES = ["random", "wide", "tall", "ill", "rank", "diagonal", "zero", "tiny", "huge", "steep", "one", "row"]

MAKE_MATRICES = """
set.seed(4)
folder <- commandArgs(TRUE)[1]
normal <- function(m, n) matrix(rnorm(m * n), m, n)
basis <- function(m, n) qr.Q(qr(normal(m, n)))
with_values <- function(m, d) basis(m, length(d)) %*% (d * t(basis(length(d), length(d))))
cases <- list(
  random = normal(37, 37), wide = normal(19, 45), tall = normal(90, 21),
  ill = with_values(40, 10^seq(0, -14, length.out = 33)), rank = normal(40, 9) %*% normal(9, 31),
  diagonal = diag(c(3, -1e-3, 0, 7, 2, 2, 1e-120, -5, 1, 1)), zero = matrix(0, 6, 4),
  tiny = normal(12, 9) * 1e-300, huge = normal(9, 12) * 1e300, steep = 10^c(0, -80, -160, -161, -165, -300) * normal(6, 4),
  one = matrix(-2), row = normal(1, 9))
for (name in names(cases))
  write.table(format(cases[[name]], digits = 17), file.path(folder, paste0(name, ".csv")), sep = ",",
              quote = FALSE, row.names = FALSE, col.names = FALSE)
"""

# Singular values that R itself knows to 10 digits are compared by relative error, smaller ones to 1e-5 of the largest.
CHECK_RESULTS = """
read <- function(file) unname(as.matrix(read.csv(file, header = FALSE, colClasses = "numeric")))
errors <- function(folder) {
  a <- read(readLines(file.path(folder, "input")))
  s <- read(file.path(folder, "S.csv"))[, 1]; u <- read(file.path(folder, "U.csv")); v <- read(file.path(folder, "V.csv"))
  scale <- if (any(a != 0)) max(abs(a)) else 1
  a <- a / scale; s <- s / scale
  r <- svd(a)$d
  data.frame(folder = folder, values = max(abs(s - r) / pmax(r, 1e-5 * max(r), 1e-300)),
             u = max(abs(crossprod(u) - diag(ncol(u)))), v = max(abs(crossprod(v) - diag(ncol(v)))),
             product = max(abs(a - u %*% (s * t(v)))) / max(r, 1e-300), sorted = !is.unsorted(-s))
}
folders <- readLines(commandArgs(TRUE)[1])
write.csv(do.call(rbind, lapply(folders, errors)), row.names = FALSE)
"""


def run(*command, **options):
    return finish([str(part) for part in command], timeout=120, **options)


def fields(line):
    return dict(part.split("=", 1) for part in line.split())


def build(compiler, folder):
    must(run("make", "-C", ROOT / "workflow/native/apps", f"MPICC={compiler}", f"OUT={folder}"))
    return folder / "apps"


@pytest.fixture(scope="module")
def real(mpicc, tmp_path_factory):
    return build(mpicc, tmp_path_factory.mktemp("mpi"))


@pytest.fixture(scope="module")
def serial(real):
    return real / "svd_serial"


@pytest.fixture(scope="module")
def mpirun(launch, real):
    return lambda processes, *arguments: launch(processes, {}, real / "svd", *arguments, limit=120)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    tool("smpirun")
    folder = tmp_path_factory.mktemp("smpi")
    program = build(tool("smpicc"), folder) / "svd"
    (folder / "platform.xml").write_text(
        "<?xml version='1.0'?><!DOCTYPE platform SYSTEM 'https://simgrid.org/simgrid.dtd'><platform version='4.1'>"
        "<cluster id='lab' prefix='n' suffix='' radical='0-63' speed='1Gf' bw='125MBps' lat='30us'/></platform>"
    )
    (folder / "hosts").write_text("".join(f"n{i}\n" for i in range(64)))

    def launch(processes, *arguments, deterministic=True):
        off = ["--cfg=smpi/simulate-computation:no"] if deterministic else []
        return run("smpirun", "-np", processes, "-platform", folder / "platform.xml", "-hostfile", folder / "hosts",
                   "--log=root.thres:error", *off, program, *arguments)  # fmt: skip

    return launch


@pytest.fixture(scope="module")
def matrices(tmp_path_factory):
    folder = tmp_path_factory.mktemp("matrices")
    must(run(tool("Rscript"), "-e", MAKE_MATRICES, folder))
    return folder


@pytest.fixture(scope="module")
def launchers(serial, mpirun, simulated):
    def of(case):
        found = {"serial": lambda *a: run(serial, *a), "qr": lambda *a: run(serial, *a, "--qr")}
        found |= {("simulated", p): lambda *a, p=p: simulated(p, *a) for p in SIMULATED}
        found |= {("real", p): lambda *a, p=p: mpirun(p, *a) for p in REAL.get(case, [3])}
        return found

    return of


@pytest.fixture(scope="module")
def errors(matrices, launchers, tmp_path_factory):
    """Return {(case, launcher): errors found by R}."""
    results = tmp_path_factory.mktemp("results")
    folders = {}
    for case in CASES:
        for who, start in launchers(case).items():
            folder = results / str(len(folders))
            folder.mkdir()
            done = start("--matrix", matrices / f"{case}.csv", "--output", folder)
            assert done.returncode == 0, (case, who, done.stderr)
            assert fields(done.stdout)["converged"] == "1"
            (folder / "input").write_text(f"{matrices / case}.csv\n")
            folders[str(folder)] = (case, who)
    (results / "list").write_text("\n".join(folders) + "\n")
    rows = csv.DictReader(must(run("Rscript", "-e", CHECK_RESULTS, results / "list")).stdout.splitlines())
    return {folders[row["folder"]]: row for row in rows}


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_agrees_with_r_for_any_number_of_processes(errors, case):
    checked = {who: row for (name, who), row in errors.items() if name == case}
    assert len(checked) == 2 + len(SIMULATED) + len(REAL.get(case, [3]))
    for who, row in checked.items():
        for what in ("values", "u", "v", "product"):
            assert float(row[what]) < 1e-10, (who, what, row)
        assert row["sorted"] == "TRUE", who


def test_qr_works_on_many_processes(mpirun):
    line = fields(mpirun(3, "--random", 60, 20, "--kind", "ill", "--qr").stdout)
    assert line["qr"] == "1" and float(line["residual"]) < 1e-13


def test_generated_kinds_and_larger_blocks(mpirun, tmp_path):
    for kind in ("random", "ill", "rank", "diagonal"):
        line = fields(mpirun(4, "--random", 150, 131, "--kind", kind, "--seed", 7).stdout)
        assert (line["P"], line["m"], line["n"], line["simulated"]) == ("4", "150", "131", "0")
        assert float(line["residual"]) < 1e-12
        assert float(line["comm_max_seconds"]) <= float(line["seconds"])
    assert mpirun(2, "--random", 9, 4, "--output", tmp_path).returncode == 0
    assert {path.name for path in tmp_path.iterdir()} == {"A.csv", "S.csv", "U.csv", "V.csv"}


def write_binary(path, rows, cols, values):
    path.write_bytes(b"SVDMAT01" + struct.pack("<ii", rows, cols) + struct.pack(f"<{len(values)}d", *values))


def singular_values(serial, matrix, folder):
    must(run(serial, "--matrix", matrix, "--output", folder))
    return [float(line) for line in (folder / "S.csv").read_text().split()]


def test_file_formats_give_the_same_values(serial, tmp_path):
    (tmp_path / "a.csv").write_text("2, 1\n1 ,3\r\n\n")
    write_binary(tmp_path / "a.bin", 2, 2, [2, 1, 1, 3])
    (tmp_path / "a.mtx").write_text("%%MatrixMarket matrix array real general\n% hello\n2 2\n2\n1\n1\n3\n")
    (tmp_path / "s.mtx").write_text("%%MatrixMarket matrix array integer symmetric\n2 2\n2\n1\n3\n")
    (tmp_path / "c.mtx").write_text("%%MatrixMarket MATRIX Coordinate Real Symmetric\n2 2 3\n1 1 2\n2 1 1\n2 2 3\n")
    values = {singular_values(serial, tmp_path / f, tmp_path)[0] for f in ("a.csv", "a.bin", "a.mtx", "s.mtx", "c.mtx")}
    assert len(values) == 1 and abs(values.pop() - (5 + 5**0.5) / 2) < 1e-14


BAD_FILES = {
    "ragged.csv": ("1,2\n3\n", "line 2: wrong dimensions: 1 values, the lines before have 2"),
    "comma.csv": ("1,2\n3,\n4,5\n", "line 2: '' is not a number"),
    "nan.csv": ("1,2\n3,NaN\n", r"entry \(2, 2\) is NaN"),
    "inf.csv": ("1,-inf\n", r"entry \(1, 2\) is Inf"),
    "text.csv": ("a,b\n1,2\n", "line 1: 'a' is not a number"),
    "empty.csv": ("", "empty"),
    "short.mtx": ("%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n", "truncated: 3 of 4 entries"),
    "long.mtx": ("%%MatrixMarket matrix array real general\n1 2\n1\n2\n3\n", "wrong dimensions: more than 2 entries"),
    "outside.mtx": ("%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1\n", r"entry \(3, 1\) of a 2 x 2"),
    "complex.mtx": ("%%MatrixMarket matrix array complex general\n1 1\n1 0\n", "unsupported MatrixMarket header"),
    "other.bin": ("SVDMAT99????????", "not a matrix file, or truncated"),
    "a.txt": ("1", "must end in .csv, .mtx or .bin"),
}


def assert_one_message(done, pattern):
    assert done.returncode != 0
    ours = [line for line in done.stderr.splitlines() if line.startswith("svd: ")]
    assert len(ours) == 1 and re.search(pattern, ours[0]), done.stderr
    assert "seconds=" not in done.stdout


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_are_refused(serial, tmp_path, name):
    text, pattern = BAD_FILES[name]
    (tmp_path / name).write_text(text)
    assert_one_message(run(serial, "--matrix", tmp_path / name), pattern)


def test_truncated_binary_and_missing_file(serial, tmp_path):
    write_binary(tmp_path / "a.bin", 2, 3, [1, 2, 3, 4, 5])
    assert_one_message(run(serial, "--matrix", tmp_path / "a.bin"), "truncated: 2 x 3 needs 48 bytes .* has 40")
    assert_one_message(run(serial, "--matrix", tmp_path / "none.csv"), "No such file")


@pytest.mark.parametrize(
    "arguments, pattern",
    [
        ([], "either --matrix FILE or --random"),
        (["--random", "4", "0"], "'0' is not a whole number"),
        (["--random", "4"], "--random needs a value"),
        (["--random", "4", "4", "--kind", "odd"], "'odd' is not one of"),
        (["--random", "4", "4", "--frobnicate"], "unknown option"),
        (["--random", "4", "4", "--flops-rate", "2"], "built with smpicc"),
        (["--random", "4", "4", "--output", "/nonexistent"], "/nonexistent/A.csv: No such file"),
    ],
)
def test_bad_options_are_refused(mpirun, serial, arguments, pattern):
    if "smpicc" in pattern:
        assert_one_message(mpirun(2, *arguments), pattern)
        return
    done = run(serial, *arguments)
    done.stdout = "" if "output" in str(arguments) else done.stdout  # it fails after printing the line
    assert_one_message(done, pattern)


def test_errors_are_said_once_by_many_processes(mpirun, tmp_path):
    (tmp_path / "a.csv").write_text("1,2\n3,4\n")
    done = mpirun(3, "--matrix", tmp_path / "a.csv", "--dims", 2, 3)
    assert_one_message(done, "wrong dimensions: 2 x 2, --dims asks for 2 x 3")


def test_sweep_limit_is_said_and_fails(serial, mpirun, tmp_path):
    arguments = ["--random", 30, 20, "--sweeps", 2, "--output", tmp_path]
    for done in (run(serial, *arguments), mpirun(3, *arguments)):
        assert done.returncode == 2
        assert "not converged after 2 sweeps" in done.stderr and "residual" in done.stderr
        line = fields(done.stdout)
        assert line["converged"] == "0" and float(line["residual"]) < 1
    assert not list(tmp_path.iterdir())


def test_simulated_time_is_deterministic_and_charged(simulated):
    arguments = ["--random", 60, 50, "--flops-rate", 2]
    first, second = (simulated(5, *arguments) for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert first.stdout == second.stdout
    line = fields(first.stdout)
    assert (line["simulated"], line["modelled_compute"]) == ("1", "1")
    assert float(line["compute_mean_seconds"]) == pytest.approx(float(line["flops"]) / 2e9 / 5, rel=0.01)
    assert_one_message(simulated(1, *arguments, deterministic=False), "simulate-computation:no")


def test_model_only_takes_the_time_of_the_real_program(simulated):
    arguments = ["--random", 128, 96, "--flops-rate", 2]
    real = fields(simulated(4, *arguments).stdout)
    model = fields(
        simulated(4, *arguments, "--model-only", "--sweeps", real["sweeps"], "--rotated", real["rotated"]).stdout
    )
    assert float(model["flops"]) == pytest.approx(float(real["flops"]), rel=1e-3)
    assert float(model["seconds"]) == pytest.approx(float(real["seconds"]), rel=0.05)
    assert model["residual"] == "NA"


def test_model_only_at_64_processes(simulated):
    done = simulated(64, "--random", 512, 512, "--flops-rate", 2, "--model-only", "--sweeps", 2)
    assert done.returncode == 0 and fields(done.stdout)["P"] == "64"


def test_the_comparison_with_dgesvj_runs():
    """Check only that it prints a ratio; its value must be judged by people on a quiet machine."""
    done = run(ROOT / "bench/svd_vs_dgesvj.sh", 64, 1)
    assert done.returncode == 0, done.stderr
    ratios = [float(fields(line.split(" ", 1)[1])["ratio"]) for line in done.stdout.splitlines() if "ratio=" in line]
    assert ratios and min(ratios) > 0, done.stdout
