"""Traces of applications: read the files of the trace library, one per rank, and combine them to one table.

The trace library (workflow/native/trace) writes a file of fixed-size records for each rank; trace.h defines the format. The
stored table is `calls.csv.gz`, one row per call, ordered by rank, with these columns:

rank, operation; start_us, end_us (since the ranks left MPI_Init together), cpu_us (processor time inside the call), compute_us
(processor time between the previous call and this one); communicator (index in trace.json; 0 is MPI_COMM_WORLD, -1
MPI_COMM_SELF), root (rank in the communicator); to, from (ranks in MPI_COMM_WORLD; for MPI_ANY_SOURCE the actual
source), send_tag, receive_tag; sent_bytes, received_bytes (in the call's buffers, all blocks together); request (number of the
request that the call starts); list (bytes of each block, if blocks differ; for all-to-all sent blocks, then received ones;
for wait and test the completed requests: number, source, tag of each, where the source of a receive that the program cancelled is
-2; for communicator its members); datatypes (of a collective's data on this rank, at most six: `double`; of a type that the
program made `derived (8 B)`, with the bytes of its data, or `derived with gaps (8 B)`), reduction (operation: `sum`, `user`,
`user (not commutative)`), site (where the program calls a collective: index in trace.json's `sites`; empty: unknown). Tables of
earlier versions lack the last column, or the last three.
"""

from __future__ import annotations

import csv
import functools
import gzip
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from collstudy.base.errors import StudyError
from collstudy.base.paths import ROOT
from collstudy.launch.call_sites import CallSites

#: Must equal TRACE_VERSION of trace.h.
VERSION = 3
#: Part of the identity of traces. It is not the version of the files of ranks, which no run outlives: stored tables without the
#: columns that were added last are valid.
TABLE_VERSION = 1
HEADER = struct.Struct("=8sIIiiq64s512s")
HEADER_BYTES = 4096
RECORD = struct.Struct("=HHIQiiiiiIQQqqqq")
NUMBERS_PER_SLOT = (RECORD.size - 8) // 8
#: A collective has, where other records have ranks and tags, the numbers of the texts of its datatypes, its call site and its
#: reduction.
TYPES = struct.Struct("=6HHH")
TYPES_AT = struct.calcsize("=HHIQi")

COLUMNS = (
    "rank", "operation", "start_us", "end_us", "cpu_us", "compute_us", "communicator", "root", "to", "from", "send_tag",
    "receive_tag", "sent_bytes", "received_bytes", "request", "list", "datatypes", "reduction", "site",
)  # fmt: skip
#: The columns of all tables, those of earlier versions included.
KNOWN_COLUMNS = (COLUMNS, COLUMNS[:-1], COLUMNS[:-3])


@functools.cache
def _operations() -> dict[str, bool]:
    """Return the names of operations in the order of their numbers, which start at 1, and whether each is collective."""
    path = ROOT / "workflow" / "native" / "trace" / "operations.csv"
    with open(path, newline="", encoding="utf-8") as stream:
        return {row["operation"]: row["collective"] == "yes" for row in csv.DictReader(stream)}


def operation_names() -> tuple[str, ...]:
    """Return the names of operations; the number of an operation is its position, from 1."""
    return tuple(_operations())


def is_collective(operation: str) -> bool:
    """Return whether all ranks of a communicator participate in an operation."""
    return _operations()[operation]


class Ran(NamedTuple):
    """What ran a collective (ran.c): its component and the function in the communicator's table ("" if unknown), the communicator's
    number of ranks, and the functions of algorithms that were called ("" if none was seen).
    """

    component: str
    function: str
    ranks: int
    algorithms: str


@dataclass(frozen=True)
class Call:
    """One call as the trace library recorded it; times in nanoseconds."""

    operation: str
    communicator: int
    root: int
    to: int
    source: int
    send_tag: int
    receive_tag: int
    request: int
    sent: int
    received: int
    start: int
    end: int
    cpu_start: int
    cpu_end: int
    numbers: tuple[int, ...]
    #: What ran a collective; None if it was not recorded.
    ran: Ran | None = None
    #: The datatypes of a collective, separated by `;`, and the operation of a reduction (types.c).
    datatypes: str = ""
    reduction: str = ""
    #: Where the program calls a collective (site.c); empty if it is unknown.
    site: str = ""


class RankFile:
    """The trace file of one rank. Raises StudyError if it is not a trace, or has another version."""

    def __init__(self, path: Path):
        self.path = path
        with open(path, "rb") as stream:
            header = stream.read(HEADER.size)
        if len(header) < HEADER.size:
            raise StudyError(f"{path}: {len(header)} bytes are too short for a trace")
        magic, version, size, self.rank, self.size, self.started, host, names = HEADER.unpack(header)
        if magic != b"COLTRACE":
            raise StudyError(f"{path}: not a trace (it begins with {magic!r}, a trace with b'COLTRACE')")
        if version != VERSION or size != RECORD.size:
            raise StudyError(
                f"{path}: a trace of version {version} with records of {size} bytes; this program reads version {VERSION} "
                f"with {RECORD.size} bytes: trace again with the library of this checkout"
            )
        self.host = host.rstrip(b"\0").decode(errors="replace")
        self.names = ("", *names.rstrip(b"\0").decode().split())
        #: Texts by number; with those of ran.c, the first is the version of the library. Available after calls().
        self.texts: dict[int, str] = {}
        #: Whether the rank reached MPI_Finalize, and whether the file ends inside a record. Available after calls().
        self.ended = False
        self.cut = False

    def calls(self) -> Iterator[Call]:
        """Yield the calls in order, up to the last complete one."""
        # Read here, and not kept: the traces of all ranks together may be larger than the memory.
        content, offset, size = self.path.read_bytes(), HEADER_BYTES, RECORD.size
        unpack, last = RECORD.unpack_from, len(content) - RECORD.size
        names = self.names
        described: dict[bytes, tuple[str, str, str]] = {}
        while offset <= last:
            operation, ran, listed, *fields = unpack(content, offset)
            if operation == 0:
                return
            if operation >= len(names):
                raise StudyError(f"{self.path}: byte {offset}: unknown operation {operation}: the file is damaged")
            kinds = content[offset + TYPES_AT : offset + TYPES_AT + TYPES.size]
            offset += size
            numbers: tuple[int, ...] = ()
            if listed:
                slots = -(-listed // NUMBERS_PER_SLOT)
                if offset + (slots - 1) * size > last or any(
                    content[offset + i * size : offset + i * size + 2] != b"\xff\xff" for i in range(slots)
                ):
                    self.cut = True
                    return
                for i in range(slots):
                    count = min(NUMBERS_PER_SLOT, listed - i * NUMBERS_PER_SLOT)
                    numbers += struct.unpack_from(f"={count}q", content, offset + i * size + 8)
                offset += slots * size
            name = names[operation]
            if name == "text":
                self.texts[ran] = struct.pack(f"={listed}q", *numbers).rstrip(b"\0").decode(errors="replace")
                continue
            self.ended = name == "finalize"
            communicator, root, to, source, send_tag, receive_tag, request, sent, received, *times = fields
            datatypes = reduction = site = ""
            if is_collective(name):
                to, source, send_tag, receive_tag = -1, -1, 0, 0
                if kinds not in described:
                    described[kinds] = self._described(kinds)
                datatypes, reduction, site = described[kinds]
            yield Call(
                name, communicator, root, to, source, send_tag, receive_tag, request, sent, received, *times, numbers,
                self._ran(ran) if ran else None, datatypes, reduction, site,
            )  # fmt: skip
        self.cut = offset < len(content)

    def _ran(self, number: int) -> Ran:
        """Return what ran a collective, from the text with this number."""
        parts = self.texts.get(number, "").split("|")
        if len(parts) != 4 or not parts[2].isdecimal():
            raise StudyError(f"{self.path}: text {number} does not say what ran a collective: the file is damaged")
        return Ran(parts[0], parts[1], int(parts[2]), parts[3])

    def _described(self, kinds: bytes) -> tuple[str, str, str]:
        """Return the datatypes, the reduction and the call site of a collective."""
        *types, site, reduction = TYPES.unpack(kinds)
        datatypes = ";".join(self.texts[number] for number in types if number in self.texts)
        return datatypes, self.texts.get(reduction, ""), self.texts.get(site, "")


class Communicators:
    """Communicators numbered in the order in which they are first seen, with their members."""

    def __init__(self, ranks: int):
        self.index = {0: 0, 1: -1}
        self.members: list[list[int]] = [list(range(ranks))]

    def created(self, identity: int, members: tuple[int, ...]) -> None:
        """Record a communicator; it gets its number when it is first recorded."""
        if identity not in self.index:
            self.index[identity] = len(self.members)
            self.members.append(list(members))

    def number(self, identity: int, path: Path) -> int:
        """Return the number of a communicator; 0 is MPI_COMM_WORLD, -1 MPI_COMM_SELF. Raises StudyError if it was never created."""
        if identity not in self.index:
            raise StudyError(f"{path}: a call on an unknown communicator: the trace is damaged or mixed with another")
        return self.index[identity]


def rank_files(folder: Path, ranks: int) -> list[RankFile]:
    """Return the trace files of all ranks. Raises StudyError if one is missing, or belongs to another run or program."""
    if (folder / "several").exists():
        raise StudyError(
            "the command runs several MPI programs, one after the other or each rank on its own (srun without the option --mpi of the "
            "program's library, or the launcher of another library): trace a command that runs one program"
        )
    files = []
    for rank in range(ranks):
        path = folder / f"rank-{rank:06d}.trace"
        if not path.exists():
            found = len(list(folder.glob("rank-*.trace")))
            hint = " does the program call MPI, and through the library that the trace library was built with?"
            raise StudyError(
                f"rank {rank} of {ranks} left no trace in {folder} ({found} ranks did){'' if found else hint}"
            )
        file = RankFile(path)
        if file.size != ranks or file.rank != rank:
            raise StudyError(
                f"{path}: the trace of rank {file.rank} of {file.size}, not of rank {rank} of {ranks}: files of different runs are mixed up"
            )
        files.append(file)
    if len({file.started // 60 for file in files}) > 2:
        raise StudyError(f"{folder}: the ranks started minutes apart: files of different runs are mixed up")
    return files


def unrecorded(folder: Path) -> list[str]:
    """Return the collectives that a program called but the trace library does not record, such as `MPI_Iscan`."""
    return sorted(path.name.removeprefix("unrecorded-") for path in folder.glob("unrecorded-*"))


def collect(folder: Path, ranks: int, target: Path) -> dict[str, Any]:
    """Write the table of all calls to *target* and return the content of trace.json.

    This is {ranks, calls, communicators: members of each, sites: where the program calls collectives, hosts, nodes: number of the host
    of each rank, seconds, unrecorded, complete, problems}. A trace is complete if all ranks reached MPI_Finalize; otherwise `problems`
    names the other ranks, whose calls until then are in the table.
    Raises StudyError for an invalid trace: a rank is missing, another version, files of several runs.
    """
    files = rank_files(folder, ranks)
    hosts = sorted({file.host for file in files})
    communicators = Communicators(ranks)
    order: dict[int, dict[int, int]] = {}
    sites = CallSites()
    calls, longest, problems = 0, 0, []
    # Compression level 4: half a second per million calls slower than the fastest level, but a third smaller.
    with gzip.open(target, "wt", encoding="ascii", compresslevel=4, newline="") as stream:
        stream.write(",".join(COLUMNS) + "\n")
        for file in files:
            lines, end = _lines(file, communicators, sites, order)
            stream.writelines(lines)
            calls += len(lines)
            longest = max(longest, end)
            if not file.ended:
                problems.append(
                    f"rank {file.rank} ended without MPI_Finalize after {len(lines)} calls"
                    + (", in the middle of a record" if file.cut else "")
                )
    if not problems:
        _check_order(order, folder)
    return {
        "ranks": ranks,
        "calls": calls,
        "seconds": round(longest / 1e9, 6),
        "communicators": communicators.members,
        "sites": sites.described(),
        "hosts": hosts,
        "nodes": [hosts.index(file.host) for file in files],
        "unrecorded": unrecorded(folder),
        "complete": not problems,
        "problems": problems,
    }


def _lines(
    file: RankFile, communicators: Communicators, sites: CallSites, order: dict[int, dict[int, int]]
) -> tuple[list[str], int]:
    """Return the rows of a rank's calls, and the end of the last call (ns). Numbers the call sites in *sites*, and adds a checksum of
    its collective calls to *order*.
    """
    before: int | None = None
    lines, longest = [], 0
    for call in file.calls():
        if call.operation == "communicator":
            communicators.created(call.communicator, call.numbers)
        at = communicators.number(call.communicator, file.path)
        if at >= 0 and is_collective(call.operation):
            seen = order.setdefault(at, {})
            seen[file.rank] = zlib.crc32(call.operation.encode(), seen.get(file.rank, 0))
        compute = 0 if before is None else max(0, call.cpu_start - before)
        before = call.cpu_end
        longest = max(longest, call.end)
        site = sites.number(call.site) if call.site else ""
        lines.append(
            f"{file.rank},{call.operation},{call.start / 1000:.3f},{call.end / 1000:.3f},"
            f"{(call.cpu_end - call.cpu_start) / 1000:.3f},{compute / 1000:.3f},{at},{call.root},{call.to},{call.source},"
            f"{call.send_tag},{call.receive_tag},{call.sent},{call.received},{call.request},"
            f"{';'.join(map(str, call.numbers))},{call.datatypes},{call.reduction},{site}\n"
        )
    return lines, longest


def _check_order(order: dict[int, dict[int, int]], folder: Path) -> None:
    """Raise StudyError if ranks of a communicator made different collective calls: the files then belong to different runs."""
    for at, seen in order.items():
        if len(set(seen.values())) > 1:
            first = next(iter(seen))
            other = next(rank for rank, value in seen.items() if value != seen[first])
            raise StudyError(
                f"{folder}: ranks {first} and {other} made different collective calls on communicator {at}: the files are of different runs"
            )
