"""Read standard output of the Intel MPI Benchmarks (IMB-MPI1): one block per benchmark and process count."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError
from collstudy.sources.importing.formats.omb import refuse_crashed
from collstudy.sources.importing.strict import Problems, read_text

SOFTWARE = {"suite": "Intel MPI Benchmarks"}
#: Earlier versions have a blank before (R).
VERSION = re.compile(r"Intel ?\(R\) MPI Benchmarks ([\d.]+)", re.ASCII)
_BENCHMARK = re.compile(r"# Benchmarking (\S+)")
_PROCESSES = re.compile(r"# #processes = (\d+)", re.ASCII)
#: Column of a block -> field. The benchmark's t_avg is the mean over ranks, as with OMB.
_FIELDS = {
    "#bytes": "size_bytes",
    "#repetitions": "iterations",
    "t_min[usec]": "min_latency_us",
    "t_max[usec]": "max_latency_us",
    "t_avg[usec]": "latency_us",
}


def is_output(text: str) -> bool:
    """Return whether a text is output of IMB."""
    return VERSION.search(text) is not None


def collectives_of(text: str) -> list[str]:
    """Return the benchmarks of an output, in their order and in lower case."""
    return list(dict.fromkeys(name.lower() for name in _BENCHMARK.findall(text)))


def ranks_said(text: str, collective: str) -> list[str]:
    """Return the number of ranks of each block of an output, also of those of other benchmarks."""
    return _PROCESSES.findall(text)


def rows(path: Path, entry: dict[str, Any], problems: Problems) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line number and fields of each message size of the entry's collective; other benchmarks and sizes of 0 bytes are skipped.

    Raises StudyError for crashed runs, and for a file without a block of the collective.
    """
    lines = read_text(path).splitlines()
    refuse_crashed(path, lines)
    benchmark, processes, names = "", "", []
    found = False
    for number, line in enumerate(lines, 1):
        if begun := _BENCHMARK.match(line):
            benchmark, processes, names = begun.group(1).lower(), "", []
        elif count := _PROCESSES.match(line):
            processes = count.group(1)
        elif "#repetitions" in line:
            names = line.split()
        elif benchmark == entry["collective"] and names and re.match(r"\s*\d", line):
            values = line.split()
            if len(values) != len(names) or "t_avg[usec]" not in names:
                problems.note("rows with other columns than IMB's", f"{path.name}, line {number}")
                continue
            found = True
            row = {_FIELDS[name]: value for name, value in zip(names, values, strict=True) if name in _FIELDS}
            if row.get("size_bytes") != "0":
                yield number, row | {"processes": processes}
    if not found:
        raise StudyError(f"{path}: contains no times of {entry['collective']}; is it the standard output of IMB-MPI1?")
    # A file may have several outputs, each with the lines of its job behind it.
    ended = sum("entering MPI_Finalize" in line for line in lines)
    if ended < max(1, sum(VERSION.search(line) is not None for line in lines)):
        problems.note("IMB outputs without their end, possibly of aborted runs", path.name)
