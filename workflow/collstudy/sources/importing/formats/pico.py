"""Read PICO's result archives [pico-leonardo]: a folder or .tar.gz per run with `<test>/<count>_<algorithm>_<type>.csv`, a row per call.

`highest` is the time of the slowest rank in ns. The count is that of the whole buffer (pico_core/pico_core_utils.c): a rank of an
allgather, alltoall, gather or scatter has count / ranks elements. The first fifth of the calls is warm-up. Tests are described
in `<system>_metadata.csv`, beside the archives. Algorithms whose name ends in `_ompi` are Open MPI's; all others are PICO's own
and are not imported. The number of ranks of a test is in the output of the run (`slurm_*.out`), otherwise in the metadata.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collstudy.base.digests import file_digest
from collstudy.base.errors import StudyError
from collstudy.base.lazy import lazy
from collstudy.sources.importing import kept
from collstudy.sources.importing.strict import Problems, Refused, listed, positive, read_text, whole
from collstudy.study.catalogue import Catalogue
from collstudy.study.openmpi_numbers import algorithm_of

np = lazy("numpy")

#: Increase it when the content of a cached summary changes.
VERSION = 3
#: Fraction of calls at the start that are warm-up, as in the authors' own analysis (plot/summarize_data.py).
WARM_UP = 0.2
#: PICO's names of Open MPI's algorithms, in the order of coll/tuned's numbers (config/algorithms/MPI/Open-MPI/*.json).
WORDS = {
    "allgather": "linear k_bruck recursive_doubling ring neighbor two_proc sparbit",
    "allreduce": "linear non_overlapping recursive_doubling ring ring_segmented rabenseifner",
    "alltoall": "linear pairwise modified_bruck linear_sync two_proc",
    "bcast": "linear chain pipeline split_binary binary binomial knomial scatter_allgather scatter_allgather_ring",
    "gather": "linear binomial linear_synch",
    "reduce": "linear chain pipeline binary binomial in_order rabenseifner",
    "reduce_scatter": "non_overlapping recursive_halving ring butterfly",
    "scatter": "linear binomial linear_nb",
}
TYPE_BYTES = {"int8": 1, "char": 1, "int16": 2, "int32": 4, "int": 4, "float": 4, "int64": 8, "double": 8}
#: Collectives in which each rank has a part of the buffer.
DIVIDED = ("allgather", "alltoall", "gather", "scatter")
#: Output of a run about a test: the folder of its results, then its ranks and nodes.
_PRINTED = re.compile(
    r"Results Directory: .*/(?P<test>\w+)\s*$|BENCH: \w+ -> (?P<ranks>\d+) processes \((?P<nodes>\d+) nodes\)", re.M
)
_RUN = re.compile(r"\d{4}(_\d\d){2}_.*", re.ASCII)
_RESULT = re.compile(r"(?P<count>\d+)_(?P<algorithm>.+)_(?P<type>[a-z]+\d*)\.csv", re.ASCII)


@dataclass(frozen=True)
class Result:
    """Summary of one file: count, algorithm and type from its name; number, median and quartiles (ns) of its calls."""

    test: str
    count: int
    algorithm: str
    type: str
    calls: int
    median_ns: float
    q1_ns: float
    q3_ns: float
    refused: tuple[tuple[str, int], ...] = ()


def runs_of(folder: Path) -> list[Path]:
    """Return the runs in a folder: folders and archives named by date; [] without metadata beside them."""
    runs = [path for path in sorted(folder.iterdir()) if _RUN.fullmatch(path.name.removesuffix(".tar.gz"))]
    return runs if any(folder.glob("*_metadata.csv")) else []


def rows(
    path: Path,
    entry: dict[str, Any],
    problems: Problems,
    catalogue: Catalogue,
    metadata: Path,
    version: str,
    cache: Path | None,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the fields of each file that the study selects from a run, with times in us.

    *metadata* is the CSV that describes the tests; the study's `where` selects tests by it. *version* is that of Open MPI if the
    metadata lacks it. *cache* is a folder that stores summaries by the archive's content.
    """
    run = path.name.removesuffix(".tar.gz")
    results, allocations, shapes = _summary(path, cache)
    tests = {row["test_id"]: row for row in read_metadata(metadata) if row["timestamp"] == run}
    if not tests:
        raise StudyError(f"{metadata}: no row with the timestamp {run}, of {path}")
    chosen = {}
    for test in sorted({result.test for result in results}):
        if _selected(path, test, tests.get(test), entry.get("where", {}), problems):
            believed = entry.get("ranks", "metadata")
            chosen[test] = _shape(path, test, tests[test], shapes.get(test), allocations, believed, problems)
    for result in results:
        if chosen.get(result.test) is None:
            continue
        about, (nodes, ranks, mapping) = tests[result.test], chosen[result.test]
        place = f"{path.name}, {result.test}/{result.count}_{result.algorithm}_{result.type}.csv"
        collective = about["collective_type"].lower()
        named, parameters = _algorithm(result.algorithm, collective, about["mpi_lib_version"] or version, catalogue)
        if named is None:
            problems.note("files of algorithms that are not Open MPI's", place)
            continue
        for reason, count in result.refused:
            problems.note(f"calls whose {reason}", place, count)
        if result.type not in TYPE_BYTES:
            raise StudyError(f"{place}: the type {result.type!r} has no known size")
        if not result.calls:
            problems.note("files without a time", place)
            continue
        size = (result.count // ranks if collective in DIVIDED else result.count) * TYPE_BYTES[result.type]
        yield 0, {
            "collective": collective, "algorithm": named, "parameters": parameters, "mapping": mapping, "nodes": nodes,
            "processes": ranks, "size_bytes": size, "latency_us": result.median_ns / 1e3, "q1_us": result.q1_ns / 1e3,
            "q3_us": result.q3_ns / 1e3, "iterations": result.calls, "run": f"{run}/{result.test}",
        }  # fmt: skip


def read_metadata(path: Path) -> list[dict[str, str]]:
    """Return the rows of PICO's metadata. Raises StudyError if the file is invalid."""
    if not path.exists():
        raise StudyError(f"{path}: no such file; `metadata` names PICO's <system>_metadata.csv")
    found = list(csv.DictReader(io.StringIO(read_text(path))))
    wanted = {"timestamp", "test_id", "nnodes", "tasks_per_node", "collective_type", "mpi_lib_version"}
    if not found or not wanted <= set(found[0]):
        raise StudyError(f"{path}: line 1: not PICO's metadata; it needs the columns {', '.join(sorted(wanted))}")
    return found


def _selected(path: Path, test: str, about: dict[str, str] | None, where: dict[str, Any], problems: Problems) -> bool:
    """Return whether a test is in the metadata and selected by the study's `where`; if not, record a problem."""
    if about is None:
        problems.note("tests that are not in the metadata", f"{path.name}, {test}/")
    elif not _matches_where(about, where):
        problems.note("tests that the study does not select (where)", f"{path.name}, {test}/")
    else:
        return True
    return False


def _matches_where(about: dict[str, str], where: dict[str, Any]) -> bool:
    for key, values in where.items():
        if key not in about:
            raise StudyError(f"where: PICO's metadata have no column {key!r}; they have {', '.join(about)}")
        if about[key] not in map(str, listed(values)):
            return False
    return True


def _shape(
    path: Path,
    test: str,
    about: dict[str, str],
    printed: list[int] | None,
    allocations: dict[str, list[str]],
    believed: str,
    problems: Problems,
) -> tuple[int, int, str] | None:
    """Return nodes, ranks and mapping of a test; None if metadata and allocation contradict each other and neither the run's output
    nor the study resolves this.
    """
    try:
        nodes = whole(about["nnodes"] or "", "nnodes")
        ranks = nodes * whole(about["tasks_per_node"] or "", "tasks_per_node")
    except Refused as reason:
        problems.note(f"tests whose {reason}", f"{path.name}, {test}/")
        return None
    if printed:
        nodes, ranks = printed
    fitting = [hosts for hosts in allocations.values() if len(hosts) == ranks]
    only = next(iter(allocations.values())) if len(allocations) == 1 else None
    if not printed and not fitting and only and len(set(only)) == nodes:
        if believed != "allocation":
            problems.note(
                "tests whose allocation and metadata disagree on the number of ranks (add `ranks: allocation` to use the allocation's)",
                f"{path.name}, {test}/: {len(only)} instead of {ranks}",
            )
            return None
        fitting, ranks = [only], len(only)
    hosts = fitting[0] if fitting else []
    cyclic = ranks == nodes or (len(hosts) > 1 and hosts[0] != hosts[1])
    return nodes, ranks, "node" if cyclic else "core"


def _algorithm(name: str, collective: str, version: str, catalogue: Catalogue) -> tuple[str | None, str]:
    """Return the catalogue's name and the parameters of PICO's algorithm; None as name if this Open MPI does not have it."""
    found = re.fullmatch(r"(?P<word>.+)_ompi(_(?P<segment>\d+))?", name)
    if not found:
        return None, ""
    parameters = f"segment_bytes={found['segment']}" if found["segment"] else ""
    if found["word"] == "default":
        return "default", parameters
    words = WORDS.get(collective, "").split()
    if found["word"] not in words:
        return None, ""
    try:
        return algorithm_of(catalogue, collective, words.index(found["word"]) + 1, version), parameters
    except StudyError:
        return None, ""


def _summary(path: Path, cache: Path | None) -> tuple[list[Result], dict[str, list[str]], dict[str, list[int]]]:
    """Return a run's summaries, its hosts by allocation file, and the nodes and ranks it printed per test; cached by content."""
    digest = digest_of(path)
    stored = cache / f"pico-{digest[:32]}.json" if cache else None
    found = kept.read(stored, f"{digest} {VERSION}") if stored else None
    if found is not None:
        results = [Result(*values[:-1], tuple((reason, n) for reason, n in values[-1])) for values in found[0]]
        return results, found[1], found[2]
    results, allocations, shapes = [], {}, {}
    for name, content in _files(path):
        folder, _, file = name.rpartition("/")
        parts = _RESULT.fullmatch(file)
        if file.startswith("alloc") and file.endswith(".csv"):
            # MPI-IO wrote these files in records of fixed width, padded with zero bytes.
            lines = read_text(path / name, content.replace(b"\0", b"")).split("\n")[1:]
            allocations[file] = [line.split(",")[1] for line in lines if "," in line]
        elif file.endswith(".out"):
            shapes |= _printed(content.decode("utf-8", "replace"))
        elif parts and folder and "/" not in folder:
            results.append(_result(path, name, folder, parts, content))
    results.sort(key=lambda result: (result.test, result.algorithm, result.count))
    if not results:
        raise StudyError(f"{path}: contains no results of PICO (<test>/<count>_<algorithm>_<type>.csv)")
    if stored:
        kept.write(
            stored, f"{digest} {VERSION}", [[list(vars(result).values()) for result in results], allocations, shapes]
        )
    return results, allocations, shapes


def _printed(text: str) -> dict[str, list[int]]:
    """Return nodes and ranks of each test that a run's output names."""
    found, test = {}, ""
    for said in _PRINTED.finditer(text):
        test = said["test"] or test
        if said["ranks"] and test:
            found[test] = [int(said["nodes"]), int(said["ranks"])]
    return found


def digest_of(path: Path) -> str:
    """Return the digest of an archive's content, or of the names and contents of a folder's files."""
    total = hashlib.sha256()
    if path.is_dir():
        for file in _read(path):
            total.update(f"{file.relative_to(path)} {file_digest(file)}\n".encode())
        return total.hexdigest()
    return file_digest(path)


def allocations(path: Path) -> Iterator[tuple[str, int, list[int]]]:
    """Yield, for each allocation of a run, the run, its rank count, and the node of each rank (the number in its name, from 0)."""
    for hosts in _summary(path, None)[1].values():
        numbers = [int(re.sub(r"\D", "", host.split(".")[0])) - 1 for host in hosts]
        yield path.name.removesuffix(".tar.gz"), len(hosts), numbers


def _read(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in (".csv", ".out"))


def _files(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield name (within the run's folder) and content of all CSV files and of the run's output."""
    if path.is_dir():
        for file in _read(path):
            yield str(file.relative_to(path)), file.read_bytes()
        return
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                if member.isfile() and member.name.endswith((".csv", ".out")):
                    stream = archive.extractfile(member)
                    yield member.name.removeprefix("./").partition("/")[2], stream.read() if stream else b""
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise StudyError(f"{path}: the archive cannot be read: {error}") from None


def _result(path: Path, name: str, test: str, parts: re.Match, content: bytes) -> Result:
    """Return the summary of one file: median, quartiles and number of its calls."""
    header, _, body = content.partition(b"\n")
    columns = header.decode("ascii", "replace").strip().split(",")
    if content and columns[0] != "highest":
        raise StudyError(f"{path}: {name}: line 1: the first column is {columns[0]!r}, not 'highest'")
    refused: dict[str, int] = {}
    if body and not body.endswith(b"\n"):
        body = body[: body.rfind(b"\n") + 1]
        refused["line is truncated"] = 1
    if len(columns) == 1 and not body.translate(None, b"0123456789\r\n"):
        values = np.fromstring(body, dtype=np.int64, sep="\n") if body.strip() else np.empty(0)
        values = values[int(len(values) * WARM_UP) :].astype(float)
        for reason, wrong in (("time is zero", values <= 0), ("time is too large", values > 1e12)):
            if wrong.any():
                refused[reason] = int(wrong.sum())
                values = values[~wrong]
    else:
        times = []
        lines = [line for line in read_text(path / name, body).splitlines() if line.strip()]
        for line in lines[int(len(lines) * WARM_UP) :]:
            try:
                fields = line.split(",")
                if len(fields) != len(columns):
                    raise Refused("line has another number of fields than the header")
                times.append(positive(fields[0], "time", 1e12))
            except Refused as reason:
                refused[str(reason)] = refused.get(str(reason), 0) + 1
        values = np.array(times)
    low, middle, high = np.percentile(values, [25, 50, 75]) if len(values) else (0.0, 0.0, 0.0)
    return Result(
        test, int(parts["count"]), parts["algorithm"], parts["type"], len(values), float(middle), float(low), float(high),
        tuple(sorted(refused.items())),
    )  # fmt: skip
