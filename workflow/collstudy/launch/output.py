"""Parse the standard output of OSU Micro-Benchmarks 5 to 7, and of collbench, which prints the same columns."""

from __future__ import annotations

import re
from typing import Any

from collstudy.base.errors import StudyError

#: Words of the header line (lower case, without units) -> field of the sample; the field name includes the unit.
COLUMNS = {
    "from": "from_rank",
    "to": "to_rank",
    "size": "size_bytes",
    "avg latency": "latency_us",
    "latency": "latency_us",
    "avg lat": "latency_us",
    "min latency": "min_latency_us",
    "min lat": "min_latency_us",
    "max latency": "max_latency_us",
    "max lat": "max_latency_us",
    "iterations": "iterations",
    "bandwidth": "bandwidth_mb_s",
    "validation": "validation",
    "late": "late",
    # Non-blocking collectives: "pure" is a call directly followed by its wait; the others have computation in between.
    "overall": "overall_us",
    "compute": "compute_us",
    "coll. init": "init_us",
    "mpi_test": "test_us",
    "mpi_wait": "wait_us",
    "pure comm.": "latency_us",
    "min comm.": "min_latency_us",
    "max comm.": "max_latency_us",
    "overlap": "overlap_pct",
}


def _columns(header: str) -> list[str] | None:
    """Return the field names of a header line such as `# Size   Avg Latency(us)   Min Latency(us)`; None for other comments.

    Columns are separated by two or more blanks; percentiles (`P99 Tail Lat(us)`, `P50(us)`) become p99_latency_us.
    """
    names = []
    for part in re.split(r"\s{2,}", header.lstrip("# ").strip()):
        bare = re.sub(r"\s*\(.*?\)", "", part).strip().lower()
        percentile = re.fullmatch(r"p(\d+)( tail)?( lat(?:ency)?| bw)?", bare)
        if percentile:
            unit = "bandwidth_mb_s" if percentile.group(3) == " bw" else "latency_us"
            names.append(f"p{percentile.group(1)}_{unit}")
        elif bare in COLUMNS:
            names.append(COLUMNS[bare])
        else:
            return None
    return names


def turns(text: str) -> list[str]:
    """Split the output of collbench with option -t into one part per turn."""
    return re.split(r"^# Turn \d+$", text, flags=re.MULTILINE)[1:]


def parse(text: str, sizes: list[int | None]) -> list[dict[str, Any]]:
    """Return one sample per message size, in the order of *sizes* ([None] for a benchmark without sizes).

    Raises StudyError if the header is missing, a row does not match it, a value is not a positive finite number, data
    validation failed, or a size is missing: truncated output is never accepted as a shorter measurement.
    """
    columns: list[str] | None = None
    samples: list[dict[str, Any]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("#"):
            columns = _columns(line) or columns
            continue
        fields = line.split()
        if not fields or not re.fullmatch(r"[\d.]+", fields[0]):
            continue  # a banner or warning of the launcher
        if columns is None:
            raise StudyError(f"line {number}: numbers before the header line '# Size ... Latency(us)'")
        if len(fields) != len(columns):
            raise StudyError(
                f"line {number}: {len(fields)} fields, but the header has {len(columns)}: {line.strip()!r}"
            )
        samples.append(_sample(dict(zip(columns, fields, strict=True)), number))
    found = [sample.get("size_bytes") for sample in samples]
    if found != sizes:
        missing = [size for size in sizes if size not in found]
        what = f"sizes {missing} are missing" if missing else f"rows {found} do not match the requested sizes, {sizes}"
        raise StudyError(f"the output is incomplete: {what}")
    return samples


def _sample(fields: dict[str, str], number: int) -> dict[str, Any]:
    sample: dict[str, Any] = {}
    for name, text in fields.items():
        if name == "validation":
            if text.lower() != "pass":
                raise StudyError(f"line {number}: data validation failed ({text})")
            continue
        try:
            value = int(text) if name in ("from_rank", "to_rank", "size_bytes", "iterations", "late") else float(text)
        except ValueError:
            raise StudyError(f"line {number}: {name} is not a number: {text!r}") from None
        if not 0 <= value < float("inf"):
            raise StudyError(f"line {number}: {name} is {text}, not a finite number")
        sample[name] = value
    if "latency_us" not in sample and "bandwidth_mb_s" not in sample:
        raise StudyError(f"line {number}: neither a latency nor a bandwidth column")
    return sample
