"""Read raw standard output of the OSU Micro-Benchmarks."""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError
from collstudy.launch.output import parse
from collstudy.sources.importing.files import given_by
from collstudy.sources.importing.strict import Problems, read_text
from collstudy.study.names import POINT_TO_POINT, SIZED, UNSIZED

SOFTWARE = {"suite": "OSU Micro-Benchmarks"}
VERSION = re.compile(r"# OSU MPI.* Test v([\d.]+)", re.ASCII)
#: The benchmarks that can be imported.
KNOWN = {*SIZED, *UNSIZED}

#: Output of launchers and libraries when a run ends prematurely.
CRASHED = re.compile(
    r"MPI_ABORT|Primary job\s+terminated|mpirun (noticed|has exited)|exited on signal|Segmentation fault|CANCELLED AT"
    r"|DUE TO TIME LIMIT|srun: error|prterun noticed|BAD TERMINATION|Killed"
)
#: The first line of an output, such as `# OSU MPI Non-blocking Broadcast Latency Test v7.4`.
_TITLE = re.compile(r"# OSU MPI(?:-\S+)? (Non-blocking )?(.+?)(?: Latency| Bandwidth)? Test\b", re.IGNORECASE)
#: Of outputs whose buffers are in GPU memory, such as `# OSU MPI-CUDA Allreduce Latency Test v5.7`.
_ON_GPU = re.compile(r"^# OSU MPI-(?:CUDA|ROCM|SYCL|OPENACC)\b", re.MULTILINE)
_TITLES = {
    "broadcast": "bcast", "all-to-all personalized exchange": "alltoall", "all-to-allv personalized exchange": "alltoallv",
    "bandwidth": "bw", "multi": "multi_lat",
}  # fmt: skip
#: The number of ranks in a command that starts a benchmark, as scripts print it.
_RANKS = re.compile(r"\s(?:-np|--np|-n|--n|--ntasks)[ =](\d+)\b", re.ASCII)
#: Numbers of nodes and of ranks per node in such a command.
_NODES = re.compile(r"\s(?:-N|--nodes)[ =]?(\d+)\b.*\s--n?tasks-per-node[ =](\d+)\b", re.ASCII)
#: The number of ranks in a line that a script prints before an output: `Processes: 4`, `running with 4 MPI ranks`.
_SAID = re.compile(
    r"\b(?:processes|procs|nprocs|np|ranks|tasks)\s*[:=]?\s*(\d+)\b(?!\.)"
    r"|(?<![-.\w])(\d+)\s+(?:mpi[ -])?(?:processes|procs|ranks|tasks)\b(?! per)",
    re.IGNORECASE | re.ASCII,
)
_VALUES = re.compile(r"\s*\d[\d.]*(\s+[\d.]+)*\s*", re.ASCII)
_ROW = re.compile(r"^\s*(\d+)\s+[\d.]+", re.ASCII)


def refuse_crashed(path: Path, lines: list[str], crashed: re.Pattern = CRASHED) -> None:
    """Raise StudyError if a line of a run's output says that it ended prematurely."""
    for number, line in enumerate(lines, 1):
        if found := crashed.search(line):
            raise StudyError(
                f"{path}: line {number}: the run ended abnormally ({found.group(0)!r}); its last sizes may be missing"
            )


def titled(line: str) -> str | None:
    """Return the collective that the title of an output names, as far as possible in this project's words; None for other lines."""
    found = _TITLE.match(line)
    if not found:
        return None
    word = found.group(2).lower()
    return "i" * bool(found.group(1)) + _TITLES.get(word, word)


def is_output(text: str) -> bool:
    """Return whether a text has an output of OSU Micro-Benchmarks."""
    return "# OSU MPI" in text


def collectives_of(text: str) -> list[str]:
    """Return the collectives of the outputs in a text; [] for a text without a title."""
    return list(dict.fromkeys(name for line in text.splitlines() if (name := titled(line))))


def on_gpu(text: str) -> bool:
    """Return whether a text has an output of buffers in GPU memory."""
    return _ON_GPU.search(text) is not None


def ranks_said(text: str, collective: str) -> list[str]:
    """Return the number of ranks of each output of a collective in a text, as the nearest line before it says (`Processes: 4`, or the
    command); [] unless a line says it of each, and for messages between two ranks.
    """
    said, found = "", []
    if collective in POINT_TO_POINT:
        return []
    for line in text.splitlines():
        numbers = {number for of in _SAID.findall(line) for number in of if number}
        if re.search(rf"\bosu_{collective}\b", line):
            numbers |= {*_RANKS.findall(line)} or {str(int(n) * int(ppn)) for n, ppn in _NODES.findall(line)}
        if titled(line) == collective:
            found.append(said)
        elif len(numbers) == 1:
            said = numbers.pop()
    return found if all(found) else []


def commanded(text: str, collective: str) -> tuple[set[int], set[int]]:
    """Return the numbers of ranks, and Open MPI's numbers of forced algorithms, in the commands for a benchmark in a text."""
    commands = re.findall(rf"\b(?:mpirun|mpiexec|prun|srun)\b.*\bosu_{collective}\b", text)
    forced = re.compile(rf"\bcoll_tuned_{collective}_algorithm[ =](\d+)\b", re.ASCII)
    ranks, algorithms = (
        {int(number) for command in commands for number in of.findall(command)} for of in (_RANKS, forced)
    )
    return ranks, algorithms


def rows(path: Path, entry: dict[str, Any], problems: Problems) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line number and fields of each message size; outputs of other collectives in the file are skipped.

    The number of ranks is that of ranks_said(), unless the entry gives it. Raises StudyError for truncated output, crashed runs
    and other files.
    """
    text = read_text(path)
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines, 1) if titled(line) == entry["collective"]]
    said = [] if "processes" in given_by(entry, path) else ranks_said(text, entry["collective"])
    refuse_crashed(path, lines)
    if on_gpu(text):
        problems.note("raw outputs with buffers in GPU memory", path.name)
    titles = collectives_of(text)
    if {*titles} & KNOWN and entry["collective"] not in titles:
        raise StudyError(f"{path}: output of {' and '.join(titles)}, not of {entry['collective']}")
    if len(titles) > 1:
        name: str | None = None
        for index, line in enumerate(lines):
            name = titled(line) or name
            lines[index] = line if name == entry["collective"] else ""
    numbered = [(number, found.group(1)) for number, line in enumerate(lines, 1) if (found := _ROW.match(line))]
    sized = entry["collective"] in SIZED
    # Without sizes, each line of numbers is an output.
    single = [] if sized else [number for number, line in enumerate(lines, 1) if _VALUES.fullmatch(line)]
    sizes: list[int | None] = [int(size) for _, size in numbered] if sized else [None] * len(single)
    if not sizes:
        raise StudyError(f"{path}: contains no measurement; is it the standard output of an OSU micro-benchmark?")
    if not text.endswith("\n"):
        raise StudyError(f"{path}: line {len(lines)}: the output ends in the middle of a line")
    try:
        samples = parse("\n".join(lines), sizes)
    except StudyError as problem:
        raise StudyError(f"{path}: {problem}") from None
    # The first size begins a further output.
    if any(size not in (2 * before, sizes[0]) for before, size in itertools.pairwise(sizes) if before and size):
        problems.note("raw outputs whose sizes do not double", path.name)
    places = [number for number, _ in numbered] if sized else single
    for line, size, sample in zip(places, sizes, samples, strict=True):
        # Latencies begin with an empty message.
        if size != 0:
            ranks = {"processes": said[bisect.bisect(starts, line) - 1]} if said else {}
            yield line, ranks | {key: str(value) for key, value in sample.items()}
