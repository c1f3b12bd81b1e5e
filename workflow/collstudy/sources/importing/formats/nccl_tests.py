"""Read standard output of nccl-tests (all_reduce_perf, ...), which includes NCCL's log lines if NCCL_DEBUG was set."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError, allowed
from collstudy.sources.importing.files import from_name
from collstudy.sources.importing.formats.omb import CRASHED, refuse_crashed
from collstudy.sources.importing.strict import Problems, read_text
from collstudy.tuning.nccl import ALGORITHMS, PROTOCOLS
from collstudy.tuning.rules import TOTAL_BYTES

SOFTWARE = {"suite": "nccl-tests", "mpi": "nccl"}
VERSION = re.compile(r"# nccl-tests version ([\d.]+)", re.ASCII)
#: Program name (without _perf, printed by recent versions) -> collective.
PROGRAMS = {
    "all_reduce": "allreduce", "all_gather": "allgather", "reduce_scatter": "reduce_scatter", "broadcast": "bcast",
    "reduce": "reduce", "alltoall": "alltoall", "gather": "gather", "scatter": "scatter",
}  # fmt: skip
_CRASHED = re.compile(CRASHED.pattern + r"|Test (?:NCCL|CUDA) failure")
#: HOST:PID:THREAD [GPU] NCCL INFO ...; it can start within a line of the table, which then continues on the next line.
_DEBUG = re.compile(r"[A-Za-z][\w.-]*:\d+:\d+ \[\d+\] NCCL [A-Z]+ ")
_SET = re.compile(r"(NCCL_ALGO|NCCL_PROTO) set by environment to (\S+)")
_RAN = re.compile(r"(\d+) Bytes -> Algo (\w+) proto (\w+)")
_RANK = re.compile(r"#\s+Rank\s+(\d+)\s+(?:Group\s+(\d+)\s+)?Pid\s+\d+ on\s+(\S+)\s+device")
_STARTING = re.compile(r"Collective test starting: (?:.*/)?(\w+?)_perf")
_ROW = re.compile(r"\s*\d+\s+\d+\s+[a-z]\w*\s")


def is_output(text: str) -> bool:
    """Return whether a text is output of nccl-tests."""
    return _STARTING.search(text) is not None or all(part in text for part in ("# nThread ", "# Using devices"))


def collectives_of(text: str) -> list[str] | None:
    """Return the collectives of the programs in an output; None if it has no program's name (before version 2.14)."""
    programs = _STARTING.findall(text)
    return list(dict.fromkeys(PROGRAMS[name] for name in programs if name in PROGRAMS)) if programs else None


def names_choice(text: str) -> bool:
    """Return whether an output has NCCL's lines with the algorithm or protocol that was set."""
    return _SET.search(text) is not None


def rows(path: Path, entry: dict[str, Any], problems: Problems) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line number and fields of each message size, for the out-of-place calls; programs of other collectives in the file are
    skipped.

    The printed size is the larger of the bytes that a rank sends and receives. Raises StudyError for incomplete and crashed runs,
    and if it is unclear what ran.
    """
    lines = read_text(path).splitlines()
    refuse_crashed(path, lines, _CRASHED)
    starts = [index for index, line in enumerate(lines) if _STARTING.search(line)]
    starts = starts or [index for index, line in enumerate(lines) if line.startswith("# nThread ")]
    several = entry["collective"] in (collectives_of("\n".join(lines)) or [])
    for start, end in zip([0, *starts[1:]], [*starts[1:], len(lines)], strict=True):
        program = _STARTING.search("\n".join(lines[start:end]))
        if several and program and PROGRAMS.get(program.group(1)) != entry["collective"]:
            continue
        # Empty lines keep the numbers of the others.
        yield from _run(path, [""] * start + lines[start:end], entry, problems)


def _run(
    path: Path, lines: list[str], entry: dict[str, Any], problems: Problems
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line number and fields of each message size of a program's output."""
    collective = entry["collective"]
    ranks, shape = _shape(path, lines)
    chosen = _chosen(path, entry, lines)
    ran: dict[int, set[tuple[str, str]]] = {}
    names: list[str] = []
    iterations, finished, types = "", False, set()
    for number, line in _printed(lines, ran):
        if line.startswith("#"):
            names = line[1:].split() if {"size", "count", "type"} <= set(line.split()) else names
            finished |= "Avg bus bandwidth" in line
            if program := _STARTING.search(line):
                _same(path, number, "collective", collective, PROGRAMS.get(program.group(1), program.group(1)))
            if count := re.search(r"warmup iters: \d+ iters: (\d+)", line):
                iterations = count.group(1)
        elif _ROW.match(line):
            if "time" not in names:
                raise StudyError(f"{path}: line {number}: no header above has the column time (-C prints CPU time)")
            row = dict(zip(names[: names.index("time") + 4], line.split(), strict=False))
            types.add((row["type"], row.get("redop")))
            if len(types) > 1:
                raise StudyError(f"{path}: line {number}: several types or operations; use one file for each")
            if fault := _fault(row, chosen, ran):
                problems.note(fault, f"{path.name}, line {number}")
                continue
            part = int(row["size"]) // (ranks if collective in TOTAL_BYTES else 1)
            yield number, {
                "algorithm": chosen["algorithm"], "parameters": f"protocol={chosen['protocol']}" if len(chosen) > 1 else "",
                "size_bytes": str(part), "latency_us": row.get("time", ""), "iterations": iterations, **shape,
            }  # fmt: skip
    if not finished:
        raise StudyError(
            f"{path}: line {len(lines)}: the run is incomplete: the line with the average bandwidth is missing"
        )


def _printed(lines: list[str], ran: dict[int, set[tuple[str, str]]]) -> Iterator[tuple[int, str]]:
    """Yield number and text of the lines, except NCCL's log lines; their algorithm and protocol go to *ran*, by size (bytes)."""
    begun = ""
    for number, line in enumerate(lines, 1):
        if debug := _DEBUG.search(line):
            begun += line[: debug.start()]
            for size, algorithm, protocol in _RAN.findall(line):
                ran.setdefault(int(size), set()).add((word(algorithm, ALGORITHMS), word(protocol, PROTOCOLS)))
        else:
            yield number, begun + line
            begun = ""


def _fault(row: dict[str, str], chosen: dict[str, str], ran: dict[int, set[tuple[str, str]]]) -> str:
    """Return why a row cannot be used; "" if it can."""
    if row.get("#wrong", "N/A") not in ("0", "N/A"):
        return "rows whose results were wrong"
    wanted = {tuple(chosen.values())}
    if chosen["algorithm"] != "default" and ran.get(int(row["size"]), wanted) != wanted:
        return "rows for which NCCL printed another algorithm or protocol than was set"
    return ""


def _shape(path: Path, lines: list[str]) -> tuple[int, dict[str, str]]:
    """Return the number of ranks and the fields of their placement; the mapping only if each host has consecutive ranks."""
    found = [match.groups() for line in lines if (match := _RANK.match(line))]
    if not found:
        raise StudyError(f"{path}: contains no output of nccl-tests: no line `# Rank`")
    numbers = [int(rank) for rank, _, _ in found]
    if numbers != list(range(len(numbers))):
        raise StudyError(
            f"{path}: the lines `# Rank` do not list each rank once"
            + (": several instances of a program that was built without MPI=1" if numbers.count(0) > 1 else "")
        )
    if len({group for _, group, _ in found}) > 1:
        raise StudyError(f"{path}: several groups of ranks ran at once (NCCL_TESTS_SPLIT)")
    hosts = [host for _, _, host in found]
    changes = sum(one != other for one, other in zip(hosts, hosts[1:], strict=False))
    shape = {"processes": str(len(hosts)), "nodes": str(len(set(hosts)))}
    return len(hosts), shape | ({"mapping": "core"} if changes == len(set(hosts)) - 1 else {})


def _chosen(path: Path, entry: dict[str, Any], lines: list[str]) -> dict[str, str]:
    """Return algorithm and protocol set by the file's name, constants or NCCL's log; `default` if NCCL chose them itself."""
    known = {**entry.get("constants", {}), **from_name(path, entry)}
    logged = {}
    for number, line in enumerate(lines, 1):
        for name, value in _SET.findall(line):
            logged["algorithm" if name == "NCCL_ALGO" else "protocol"] = (number, value.rstrip("."))
    chosen = {}
    for field, words in (("algorithm", ALGORITHMS), ("protocol", PROTOCOLS)):
        said = str(known.get(field, ""))
        said = word(entry.get("algorithms", {}).get(said, said) if field == "algorithm" else said, words)
        if field in logged:
            number, value = logged[field]
            if word(value, words) not in words:
                raise StudyError(f"{path}: line {number}: {value!r} is not a single {field} of NCCL{allowed(words)}")
            _same(path, number, field, said or word(value, words), word(value, words))
            said = word(value, words)
        if said and said != "default":
            chosen[field] = said
    if len(chosen) == 1:
        lacking = "protocol" if "algorithm" in chosen else "algorithm"
        raise StudyError(
            f"{path}: {next(iter(chosen))} is {next(iter(chosen.values()))}, but the {lacking} that NCCL chose is unknown; set "
            f"both (NCCL_ALGO and NCCL_PROTO, or `constants`) or neither"
        )
    return chosen or {"algorithm": "default"}


def _same(path: Path, line: int, field: str, said: str, printed: str) -> None:
    if said != printed:
        raise StudyError(f"{path}: line {line}: {field} is {printed}, but the study has {said}")


def word(text: str, words: tuple[str, ...]) -> str:
    """Convert NCCL's name or number of an algorithm or protocol to its tuner's word; other texts are returned unchanged."""
    if text.isdecimal() and int(text) < len(words):
        return words[int(text)]
    return {word.replace("_", ""): word for word in words}.get(text.lower().replace("_", ""), text)
