"""The parser of OMB's standard output, tested with recorded outputs of OMB 7.4 and with faulty ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from collstudy.base.errors import StudyError
from collstudy.launch.output import parse

DATA = Path(__file__).parent / "data" / "omb-7.4"
SIZES = [1, 2, 4]
GOOD = """
# OSU MPI Broadcast Latency Test v7.4
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
1                       0.20              0.11              0.30        1000
2                       0.21              0.11              0.30        1000
4                       0.22              0.11              0.30         100
"""


def test_full_output() -> None:
    samples = parse(GOOD, SIZES)
    assert samples[2] == {
        "size_bytes": 4, "latency_us": 0.22, "min_latency_us": 0.11, "max_latency_us": 0.30, "iterations": 100,
    }  # fmt: skip


@pytest.mark.parametrize("path", sorted([*DATA.glob("smpi-*.txt"), *DATA.glob("openmpi-*.txt")]), ids=lambda p: p.stem)
def test_recorded_outputs_of_the_real_suite(path: Path) -> None:
    text = path.read_text()
    rows = [line.split() for line in text.splitlines() if line.strip()[:1].isdigit()]
    sizes = [None] if "barrier" in path.name else [int(row[0]) for row in rows]
    samples = parse(text, sizes)
    column = 0 if sizes == [None] else 1
    assert len(samples) == len(rows) > 0
    values = [sample.get("latency_us", sample.get("bandwidth_mb_s")) for sample in samples]
    assert values == [float(row[column]) for row in rows]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GOOD.rsplit("\n", 2)[0], "sizes \\[4\\] are missing"),
        (GOOD.replace("  0.30         100", ""), "3 fields, but the header has 5"),
        (GOOD.replace("0.22", "nan"), "not a number|not a finite number"),
        (GOOD.replace("# Size", "# Nothing"), "before the header"),
        ("", "sizes \\[1, 2, 4\\] are missing"),
        (GOOD.replace("\n2 ", "\n3 "), "missing"),
    ],
)
def test_broken_output(text: str, expected: str) -> None:
    with pytest.raises(StudyError, match=expected):
        parse(text, SIZES)


def test_non_blocking_output() -> None:
    """The latency of a non-blocking collective is that of its call and wait alone (OMB: Pure Comm.)."""
    text = """
# OSU MPI Non-blocking Allreduce Latency Test v7.4
# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait

# Size           Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)
1024                   11.84              6.02              5.90              1.35
"""
    assert parse(text, [1024]) == [
        {"size_bytes": 1024, "overall_us": 11.84, "compute_us": 6.02, "latency_us": 5.9, "overlap_pct": 1.35}
    ]


def test_failed_validation() -> None:
    text = "# Size       Avg Latency(us)        Validation\n1                       0.20              Fail\n"
    with pytest.raises(StudyError, match="validation failed"):
        parse(text, [1])
