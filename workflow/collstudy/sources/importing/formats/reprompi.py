"""Read output of ReproMPI's `mpibenchmark` [hunold2016]: a row per call, the times of every rank (-v), or a summary of the calls.

A time is that of the slowest rank: the longest local time of the ranks or, with global clocks, that from the first start to the last
end (runtimes_computation.c). Counts are those of the call's arguments, in elements (benchmark_job.c, mpi_collectives.c): one rank's
part, also of MPI_Reduce_scatter, whose size is that of the whole vector here. `--output-file` collects the outputs of several runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError
from collstudy.sources.importing.formats.omb import refuse_crashed
from collstudy.sources.importing.launches import summary
from collstudy.sources.importing.strict import LONGEST_US, Problems, Refused, positive, read_text
from collstudy.study.names import SIZED

SOFTWARE = {"suite": "ReproMPI"}
#: Of the suite: its commit.
VERSION = re.compile(r"#@reproMPIcommitSHA1=(\w+)", re.ASCII)
#: The first line that the settings of all versions have.
_BEGIN = "#@operation="
_SETTING = re.compile(r"#@(\w+)=(.*)")
#: A line of PGMPITuneLib: collective, size (bytes), and what it ran instead of the library's own call.
_RAN = re.compile(r"#@pgmpi alg MPI_(\w+) (\d+) (\w+)", re.ASCII)
#: A row; mock-ups of early versions have names such as GL_Allgather_as_Allreduce.
_ROW = re.compile(r"[ \t]*(?:\d+[ \t]+)?(?:MPI|GL)_((\w+?)(?:_as_\w+)?)[ \t]+\d.*", re.ASCII)
#: A number of a row: all versions print times with ten decimals; fewer are those of a truncated row.
_TIME, _COUNT = re.compile(r"-?\d+\.\d{10}", re.ASCII), re.compile(r"-?\d+", re.ASCII)
#: Columns of a table: those of the size, and those of the times.
_SIZES = ("msize_bytes", "count", "msize")
_TIMES = ("runtime_sec", "loc_tend_sec", "median_sec", "mean_sec")
#: The size of a type (bytes) where the settings do not have it, which is so in a table with msize.
_TYPE_BYTES = {"MPI_BYTE": "1", "MPI_CHAR": "1"}
#: Why calls of window synchronisation with an error code are not used.
_OUTSIDE = "error code says that they began or ended outside of their window"


def is_output(text: str) -> bool:
    """Return whether a text is output of ReproMPI."""
    return VERSION.search(text) is not None


def collectives_of(text: str) -> list[str]:
    """Return the collectives of the rows of an output, in their order."""
    return list(dict.fromkeys(found[2].lower() for found in map(_ROW.fullmatch, text.splitlines()) if found))


def ranks_said(text: str, collective: str) -> list[str]:
    """Return the number of ranks of each output in a text; it has all collectives."""
    return re.findall(r"^#@nprocs=(\d+)", text, re.MULTILINE | re.ASCII)


def mock_ups_of(text: str, collective: str) -> set[str]:
    """Return the mock-ups (allgather_as_allreduce) that ran in place of the library's call of a collective, as the output says."""
    tests = (found.groups() for found in map(_ROW.fullmatch, text.splitlines()) if found)
    named = [*tests, *((name, of) for of, _, name in _RAN.findall(text))]
    return {name.lower() for name, of in named if of.lower() == collective} - {collective, "default"}


def rows(path: Path, entry: dict[str, Any], problems: Problems) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line number and fields of each message size of the entry's collective, by output: the median, quartiles and number of the
    calls, or the values of a summary. Sizes of 0 bytes are skipped.

    Raises StudyError for crashed runs, tables with other columns, and a file without a row of the collective.
    """
    text = read_text(path)
    lines = text.splitlines()
    refuse_crashed(path, lines)
    if entry["collective"] not in collectives_of(text):
        raise StudyError(f"{path}: contains no times of {entry['collective']}; is it output of ReproMPI?")
    starts = [index for index, line in enumerate(lines) if line.startswith(_BEGIN)]
    for start, end in zip([0, *starts[1:]], [*starts[1:], len(lines)], strict=True):
        yield from _output(path, start, lines[start:end], entry["collective"], problems)


def _output(
    path: Path, start: int, lines: list[str], collective: str, problems: Problems
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line number and fields of each message size of the output that begins at line *start* (from 0)."""
    settings = {found[1]: found[2].strip() for found in map(_SETTING.match, lines) if found}
    ran = {(of.lower(), int(size)): name for line in lines for of, size, name in _RAN.findall(line)}
    cells: dict[tuple[str, int | None], list[tuple[int, dict[str, str]]]] = {}
    for number, row in _table(path, start, lines, collective, settings, problems):
        part = int(row["size"]) * _unit(path, number, row, settings)
        name = row["test"].split("_", 1)[1].lower()
        algorithm = name if name != collective else ran.get((collective, part), "default")
        size = part * int(settings["nprocs"]) if collective == "reduce_scatter" else part
        # The calls of a barrier, which ignores the sizes, are those of one cell.
        cells.setdefault((algorithm, size if collective in SIZED else None), []).append((number, row))
    if cells and not any(line.startswith("# Execution time") for line in lines):
        problems.note("ReproMPI outputs without their end, possibly of aborted runs", path.name)
    for (algorithm, size), found in cells.items():
        fields = {"processes": settings["nprocs"]} | ({} if size is None else {"size_bytes": str(size)})
        fields |= {} if algorithm == "default" else {"algorithm": algorithm}
        if size != 0:
            place = f"{path.name}, line {found[0][0]}"
            yield from ((line, fields | values) for line, values in _values(found, settings, place, problems))


def _table(
    path: Path, start: int, lines: list[str], collective: str, settings: dict[str, str], problems: Problems
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line number and columns of each row of a collective; `size` is that in elements or bytes."""
    names: list[str] = []
    for number, line in enumerate(lines, start + 1):
        values = line.split()
        if values[:1] == ["test"] or values[:2] == ["process", "test"]:
            names = values
        found = _ROW.fullmatch(line)
        if not found or found[2].lower() != collective:
            continue
        if not {*_SIZES} & {*names} or not {*_TIMES} & {*names} or "nprocs" not in settings:
            needed = f"settings (#@nprocs) and a header with {' or '.join(_SIZES)}, and {' or '.join(_TIMES)}"
            raise StudyError(f"{path}: line {number}: not all of what a row needs is above: {needed}")
        row = dict(zip(names, values, strict=False))
        numbers = ((_TIME if name.endswith("_sec") else _COUNT, text) for name, text in row.items() if name != "test")
        if len(values) == len(names) and all(number.fullmatch(text) for number, text in numbers):
            yield number, row | {"size": next(row[name] for name in _SIZES if name in names)}
        else:
            problems.note("rows with other columns than ReproMPI's", f"{path.name}, line {number}")


def _unit(path: Path, number: int, row: dict[str, str], settings: dict[str, str]) -> int:
    """Return the bytes of what a row counts: bytes, or elements of the type."""
    name = settings.get("datatype", "")
    unit = "1" if "msize_bytes" in row else settings.get("datatype_size_bytes", _TYPE_BYTES.get(name))
    if unit is None:
        raise StudyError(f"{path}: line {number}: the size of {name or 'the type'} is not in the settings above")
    return int(unit)


def _values(
    found: list[tuple[int, dict[str, str]]], settings: dict[str, str], place: str, problems: Problems
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line number and times (us) of the rows of a size: of each summary, or of all calls."""
    by_number: dict[str, list[dict[str, str]]] = {}
    for line, row in found:
        if "valid_nrep" not in row:
            by_number.setdefault(row["nrep"], []).append(row)
            continue
        if unused := int(row["total_nrep"]) - int(row["valid_nrep"]):
            problems.note(f"calls whose {_OUTSIDE}", place, unused)
        name = next(name for name in ("median_sec", "mean_sec") if name in row)
        statistic = "slowest_rank" + "_median" * (name == "median_sec")
        yield line, {"latency_us": float(row[name]) * 1e6, "iterations": row["valid_nrep"], "statistic": statistic}
    ranks = int(settings["nprocs"]) if "process" in found[0][1] else 1
    times = []
    # A list of jobs may have a size more than once.
    for call in (rows[at : at + ranks] for rows in by_number.values() for at in range(0, len(rows), ranks)):
        try:
            times.append(_time(call, ranks, settings))
        except Refused as reason:
            problems.note(f"calls whose {reason}", place)
    if times:
        yield found[0][0], summary(times) | {"statistic": "slowest_rank_median"}


def _time(call: list[dict[str, str]], ranks: int, settings: dict[str, str]) -> float:
    """Return the time of a call (us) from its rows, one for each rank with -v. Raises Refused."""
    if any(row.get("errorcode", "0") != "0" for row in call):
        raise Refused(_OUTSIDE)
    if len(call) < ranks:
        raise Refused("times of some ranks are missing")
    shared = settings.get("runtime_type", settings.get("clocktype")) == "global" and "gl_tend_sec" in call[0]
    clock = "gl" if shared else "loc"
    spans = [
        (0.0, float(row["runtime_sec"])) if "runtime_sec" in row
        else (float(row[f"{clock}_tstart_sec"]), float(row[f"{clock}_tend_sec"])) for row in call
    ]  # fmt: skip
    if shared:
        spans = [(min(start for start, _ in spans), max(end for _, end in spans))]
    return positive(repr(max(end - start for start, end in spans) * 1e6), "time", LONGEST_US)
