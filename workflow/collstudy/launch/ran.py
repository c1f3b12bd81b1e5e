"""Find what ran in a program: the MPI library's component and algorithm for each communicator and collective.

The program runs once with the trace library preloaded, which records both (workflow/native/trace/ran.c).
"""

from __future__ import annotations

import os
import re
import select
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from collstudy.base.commands import ask
from collstudy.base.errors import StudyError
from collstudy.base.paths import ROOT, SETUP
from collstudy.launch.build import build
from collstudy.launch.execute import LaunchFailed, execute
from collstudy.launch.toolchain import Mpi, exporting, installed, library_of, mpi_environment, mpis, preloaded
from collstudy.launch.tracefile import Call, Communicators, Ran, RankFile, is_collective, rank_files, unrecorded
from collstudy.study.names import LAUNCHERS

COLUMNS = ["communicator", "collective", "calls", "min_bytes", "max_bytes", "component", "algorithm", "known_by"]
#: Values of `known_by` (how the algorithm was identified) and their meaning.
KNOWN_BY = {
    "call": "the trace library recorded the algorithm's function when it was called; parameters in brackets",
    "table": "the component has one function for this collective, the one in the communicator's table",
    "component": "only the component is known, from the communicator's table; it selects its algorithm internally",
    "nothing ran": "the call returned without calling an algorithm, for example because there was no data",
    "-": "this library does not show what ran, or not if several threads of a rank call it",
}
#: Components that implement each collective by one function, without using the shared algorithms.
ONE_FUNCTION = ("basic", "sm", "self", "inter")


@dataclass(frozen=True)
class Launcher:
    """The launcher in a command: its position, its file, and name and version of its MPI library (version unknown for srun)."""

    position: int
    path: Path
    mpi: str
    version: str | None = None


@dataclass
class Outcome:
    """What ran: rows of COLUMNS, the version of the library, the collectives that are not recorded, and why the run was incomplete
    ("" if it was complete).
    """

    rows: list[dict[str, Any]]
    version: str
    unrecorded: list[str]
    problem: str


def launcher_of(words: list[str], folder: Path = Path()) -> Launcher:
    """Return the launcher in a command to be run in *folder*. Raises StudyError if there is none."""
    position = next((at for at, word in enumerate(words) if Path(word).name in LAUNCHERS), None)
    if position is None:
        raise StudyError(
            f"{' '.join(words) or 'no command'}: no MPI launcher in the command; known: {', '.join(LAUNCHERS)}"
        )
    if re.match(r"\w+=", words[0]):
        raise StudyError(f"{words[0]}: not found; variables need env: env {shlex.join(words)}")
    word = words[position]
    found = shutil.which(folder / word if "/" in word else word)
    if not found:
        own = next((mpi.bin / word for mpi in mpis().values() if "/" not in word and (mpi.bin / word).exists()), None)
        advice = (
            f" on PATH: load the module of the program's MPI library, or give a path (this project's: {own})"
            if own
            else ""
        )
        raise StudyError(f"{word}: not found{advice}")
    if Path(found).name == "srun":
        return Launcher(position, Path(found), _linked_library(words[position + 1 :], folder))
    if library := library_of(Path(found)):
        return Launcher(position, Path(found), *library)
    raise StudyError(f"{found}: not the launcher of Open MPI, MPICH or Intel MPI")


#: What the Python of a script is asked for the MPI library of its mpi4py.
ASK_MPI4PY = "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; print(MPI.Get_library_version())"


def _linked_library(words: list[str], folder: Path) -> str:
    """Return the MPI library with which a program of a command, or mpi4py, is linked; Open MPI if none tells.

    MPICH and Intel MPI have the same file name, but Intel's file contains the library's name.
    """
    for program in programs_in(words, folder):
        if re.fullmatch(r"python[\d.]*", program.name):
            version = ask([program, "-c", ASK_MPI4PY], 30, users_own(os.environ), folder).stdout
            if "MPICH" in version or "Intel(R) MPI" in version:
                return "mpich" if "MPICH" in version else "impi"
        if found := re.search(r"\blibmpi(?:ch)?\.so\.12 => (/.*) \(0x", ask(["ldd", program], 30).stdout):
            return "impi" if b"Intel(R) MPI Library" in Path(found.group(1)).read_bytes() else "mpich"
    return "openmpi"


def with_benchmarks_launcher(command: str) -> str:
    """Adapt the command of a study to this computer: a launcher without a folder becomes that of the benchmark's MPI library if
    PATH has none, or has one of another version.
    """
    words = shlex.split(command)
    position = next((at for at, word in enumerate(words) if word in LAUNCHERS and word != "srun"), None)
    if position is None:
        return command
    there = shutil.which(words[position])
    found = library_of(Path(there)) if there else None
    mpi = mpis().get(found[0] if found else "openmpi")
    if mpi is None or not mpi.has_mpirun or found == (mpi.name, mpi.version):
        return command
    return shlex.join([*words[:position], str(mpi.mpirun), *words[position + 1 :]])


def library_folder(launcher: Launcher, mpi: Mpi) -> Path | None:
    """Return the `lib` folder of the MPI library that a launcher belongs to; None if the system finds the library itself."""
    for folder in (launcher.path.resolve().parent.parent / "lib", launcher.path.parent.parent / "lib"):
        if list(folder.glob("libmpi.so*")):
            return folder
    if launcher.path.name == "srun":
        return mpi.bin.parent / "lib"
    about = launcher.path.parent / "ompi_info"
    if not about.exists():
        return None
    found = re.search(r"^\s*libmpi\.so\S* => (/.*)/libmpi", ask(["ldd", about], 30).stdout, re.MULTILINE)
    return Path(found.group(1)) if found else None


def with_variables(
    words: list[str], launcher: Launcher, mpi: Mpi, variables: Mapping[str, str], folder: Path | None, ran: bool = True
) -> tuple[list[str | Path], dict[str, str]]:
    """Return a user's command whose ranks get *variables*, and the variables that its launcher itself needs.

    With a *folder*, the trace library is preloaded into the ranks and writes there; with *ran*, it also records what ran.
    """
    words, users = _libraries_of_user(words, launcher.position)
    # Ranks must use the MPI library of the program, not the one that the trace library was linked with.
    settings = {**users, **preloading(mpi, library_folder(launcher, mpi), folder, users), **variables}
    if folder and ran:
        settings["COLLTRACE_RAN"] = "1"
        # MPICH's own counters, which it prints from 5.1 on.
        settings |= {"MPIR_CVAR_DUMP_COLL_ALGO_COUNTERS": "1"} if launcher.mpi == "mpich" else {}
    at = launcher.position + 1
    if launcher.path.name == "srun":
        # What `env` before srun sets is in the settings.
        return [word for word in words[: at - 1] if word.partition("=")[0] not in settings] + words[at - 1 :], settings
    given = exporting(launcher.mpi, settings)
    if launcher.mpi == "openmpi":
        # Open MPI 4.1 sets variables for one program of several (:), and ranks without the trace library would be awaited for ever.
        words = [part for word in words for part in ([word, *given] if word == ":" else [word])]
        # Open MPI 5 passes the end of an empty standard input to no rank: one that reads it would wait for ever.
        given = ["--stdin", "none", *given]
    # Intel's launcher needs these variables to find its other programs.
    beside = launcher.path.resolve().parent == mpi.bin.resolve()
    needed = mpi.environment() if launcher.mpi == "impi" and beside else {}
    own = {name: needed[name] for name in ("I_MPI_ROOT", "FI_PROVIDER_PATH", "PATH") if name in needed}
    return [*words[: at - 1], launcher.path, *given, *words[at:]], own


def _libraries_of_user(words: list[str], position: int) -> tuple[list[str], dict[str, str]]:
    """Return a command without the options of its launcher that set LD_LIBRARY_PATH or LD_PRELOAD, and the values of these variables
    that the command sets, by such options or by `env` before the launcher.

    Options are removed because libraries differ in which one applies if two set the same variable.
    """
    own = ("LD_LIBRARY_PATH", "LD_PRELOAD")
    before = (word.partition("=") for word in words[:position])
    given = {name: value for name, is_set, value in before if is_set and name in own}
    kept, rest = words[: position + 1], words[position + 1 :]
    while rest:
        word = rest.pop(0)
        name, is_set, value = rest[0].partition("=") if rest else ("", "", "")
        if word not in ("-x", "-genv", "-env") or name not in own:
            kept.append(word)
            continue
        del rest[0]
        if is_set:
            given[name] = value
        elif word != "-x" and rest:
            given[name] = rest.pop(0)
    return kept, given


def preloading(mpi: Mpi, own: Path | None, folder: Path | None, given: Mapping[str, str] = {}) -> dict[str, str]:
    """Return the variables for ranks that use the MPI library in *own*; with a *folder*, the trace library writes there. They extend
    those in *given*, by default those of the environment.
    """
    given = os.environ | given
    path = os.pathsep.join(map(str, filter(None, [own, given.get("LD_LIBRARY_PATH")])))
    libraries = {"LD_LIBRARY_PATH": path} if path else {}
    if not folder:
        return libraries
    traced = preloaded(mpi.trace_library, given | libraries)
    return libraries | traced | {"COLLTRACE_FOLDER": str(folder)}


def users_own(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a user's program, without the Python of this project's set-up. ./study has moved the user's PYTHONPATH
    to COLLSTUDY_PYTHONPATH.
    """
    folders = environment.get("PATH", os.defpath).split(os.pathsep)
    kept = [folder for folder in folders if not Path(folder).is_relative_to(SETUP / "venv")]
    found = {**environment, "PATH": os.pathsep.join(kept)}
    modules = [*found.pop("PYTHONPATH", "").split(os.pathsep), *found.pop("COLLSTUDY_PYTHONPATH", "").split(os.pathsep)]
    own = os.pathsep.join(folder for folder in modules if folder and folder != str(ROOT / "workflow"))
    return found | ({"PYTHONPATH": own} if own else {})


def refuse_input() -> None:
    """Raise StudyError if standard input has data, because the program's ranks would not receive it."""
    try:
        waiting = not sys.stdin.isatty() and select.select([sys.stdin], [], [], 0)[0] and os.read(sys.stdin.fileno(), 1)
    except (OSError, ValueError):
        return
    if waiting:
        raise StudyError("standard input is not passed to the program; let the program read its input from a file")


def what_ran(words: list[str], folder: Path, limit_s: float, log: TextIO) -> Outcome:
    """Run a command in *folder* and find what ran. Raises StudyError if it is not an MPI program that can be traced.

    If the program dies or exceeds *limit_s*, the result covers what it did until then.
    """
    launcher = launcher_of(words, folder)
    mpi = installed(launcher.mpi)
    refuse_input()
    build([mpi.name], ["trace"])
    problem = ""
    # All nodes must see the ranks' files: if the command uses several nodes, its folder is shared.
    with tempfile.TemporaryDirectory(prefix=".what-ran-", dir=folder) as name:
        command, variables = with_variables(words, launcher, mpi, {}, Path(name))
        try:
            execute(command, limit_s, log, users_own(mpi_environment() | variables), folder)
        except LaunchFailed as failed:
            problem = str(failed)
        files = ranks_in(Path(name), problem)
        rows = rows_of(files, launcher.mpi)
        if not problem:
            problem = next((f"rank {file.rank} did not reach MPI_Finalize" for file in files if not file.ended), "")
        return Outcome(rows, files[0].texts.get(1, ""), unrecorded(Path(name)), problem)


def ranks_in(folder: Path, problem: str) -> list[RankFile]:
    """Return the trace files of all ranks of a command. Raises StudyError if the program cannot be traced."""
    if (folder / "spawned").exists():
        raise StudyError("the program spawns ranks (MPI_Comm_spawn), which is not supported")
    first = next(iter(sorted(folder.glob("rank-*.trace"))), None)
    if first:
        return rank_files(folder, RankFile(first).size)
    if problem:
        raise StudyError(f"the program ended before MPI_Init returned: {problem}")
    raise StudyError(
        "the program does not use MPI, starts it by MPI_Session_init, or uses a different MPI library than its launcher"
    )


def programs_in(words: list[str], folder: Path) -> list[Path]:
    """Return the programs that a command names besides its launcher: executable files and Python scripts."""
    others = [word for word in words if Path(word).name not in LAUNCHERS and not word.startswith("-")]
    path = users_own(os.environ)["PATH"]
    found = [shutil.which(folder / word, path=path) or shutil.which(word, path=path) for word in others]
    scripts = [folder / word for word in others if word.endswith(".py") and (folder / word).is_file()]
    return [*map(Path, filter(None, found)), *scripts]


def bytes_of(call: Call, ranks: int) -> int:
    """Return the message size (bytes) of a collective as benchmarks count it: per rank for alltoall, the rank's own block for
    gather and allgather, all bytes that the rank sends for the variants with counts.
    """
    name = call.operation.removeprefix("i")
    if name == "alltoall":
        return call.sent // max(ranks, 1)
    if name in ("scatter", "scatterv", "reduce_scatter_block"):
        return call.received
    # In a broadcast the root only sends, and the other ranks receive.
    return max(call.sent, call.received) if name == "bcast" else call.sent


@dataclass
class _Seen:
    """Calls of one kind: their number on each rank, and the range of their sizes."""

    calls: dict[int, int] = field(default_factory=dict)
    smallest: int = sys.maxsize
    largest: int = 0


def rows_of(files: Iterable[RankFile], mpi: str) -> list[dict[str, Any]]:
    """Return one row per kind of communicator, collective, component and algorithm. Communicators with the same number of
    ranks are one kind, except MPI_COMM_WORLD.
    """
    files = list(files)
    communicators = Communicators(files[0].size)
    seen: dict[tuple[int, int, str, tuple[str, str, str]], _Seen] = {}
    for file in files:
        for call in file.calls():
            if call.operation == "communicator":
                communicators.created(call.communicator, call.numbers)
            if not is_collective(call.operation):
                continue
            ran = call.ran or Ran("", "", 0, "")
            verdict = judged(call.operation, ran, mpi)
            number = communicators.number(call.communicator, file.path)
            # Each rank has its own MPI_COMM_SELF.
            number = number if number >= 0 else -1 - file.rank
            one = seen.setdefault((number, ran.ranks, call.operation, verdict), _Seen())
            one.calls[file.rank] = one.calls.get(file.rank, 0) + 1
            size = bytes_of(call, ran.ranks)
            one.smallest, one.largest = min(one.smallest, size), max(one.largest, size)
    merged: dict[tuple[str, int, str, tuple[str, str, str]], list[tuple[int, _Seen]]] = {}
    for (number, ranks, operation, verdict), one in seen.items():
        label = "MPI_COMM_WORLD" if number == 0 else ""
        # Ranks may choose different algorithms: then state how many ranks chose this one.
        share = "" if len(one.calls) in (ranks, len(files)) or number < 0 else f" on {len(one.calls)} of {ranks} ranks"
        merged.setdefault((label, ranks, operation, (verdict[0], verdict[1] + share, verdict[2])), []).append(
            (number, one)
        )
    rows = []
    for (label, ranks, operation, (component, algorithm, how)), parts in merged.items():
        count = len({number for number, _ in parts})
        where = label or (f"{count} communicators" if count > 1 else "a communicator")
        rows.append(
            {
                "communicator": f"{where} of {ranks} rank{'s' if ranks != 1 else ''}",
                "collective": operation,
                "calls": sum(max(one.calls.values()) for _, one in parts),
                "min_bytes": min(one.smallest for _, one in parts),
                "max_bytes": max(one.largest for _, one in parts),
                "component": component, "algorithm": algorithm, "known_by": how,
            }
        )  # fmt: skip
    return rows


def ran_in_turns(files: Iterable[RankFile], collectives: list[str]) -> list[tuple[set[str], set[str]]]:
    """Return the components and algorithms of each turn's collective. Each turn has its own communicator; turns are matched to
    communicators (without MPI_COMM_WORLD) in the order of their first use. Raises StudyError if the numbers differ.
    """
    found: list[tuple[set[str], set[str]]] = [(set(), set()) for _ in collectives]
    for file in files:
        turns: dict[int, int] = {}
        for call in file.calls():
            if not call.ran or not call.communicator:
                continue
            turn = turns.setdefault(call.communicator, len(turns))
            if turn < len(collectives) and call.operation == collectives[turn]:
                component, algorithm, _ = judged(call.operation, call.ran, "openmpi")
                found[turn][0].add(component)
                found[turn][1].add(algorithm)
        if len(turns) != len(collectives):
            raise StudyError(f"verification: the launch ran {len(turns)} cells instead of {len(collectives)}")
    return found


def is_algorithm(ran: str, names: Iterable[str]) -> bool:
    """Return whether *ran* (as formatted by `readable`) is an algorithm that ompi_info calls one of *names*."""
    function = re.sub(r"\[.*", "", ran).replace("bintree", "binary_tree").replace("_", "")
    return function in {name.replace("_", "") for name in names}


def judged(operation: str, ran: Ran, mpi: str) -> tuple[str, str, str]:
    """Return component, algorithm, and how they were identified (a key of KNOWN_BY)."""
    component, function, _, algorithms = ran
    if mpi != "openmpi" and not component:
        return "?", "?", "-"
    if mpi != "openmpi":
        return ("-", " + ".join(functions(algorithms, operation)), "call") if algorithms else ("-", "-", "nothing ran")
    if algorithms:
        return component or "?", readable(algorithms, operation), "call"
    if component in ONE_FUNCTION and function:
        return component, function.removeprefix(f"mca_coll_{component}_"), "table"
    if component == "tuned":
        return component, "-", "nothing ran"
    return (component, "?", "component") if component else ("?", "?", "-")


def functions(algorithms: str, operation: str) -> list[str]:
    """Return the functions of MPICH or Intel MPI that ran, without what the row already shows; `MPIR_Bcast_intra_binomial` is
    `binomial` in a broadcast, and `bcast binomial` in another collective that consists of several.
    """
    found = []
    for name in algorithms.split("+"):
        text = re.sub(r"^MPI[A-Z]*_(POSIX_|OFI_|GPU_)?|_impl$", "", name).lower()
        text = re.sub(r"^(\w+?)_(intra|inter|allcomm)_", lambda m: "" if m[1] == operation else f"{m[1]} ", text)
        found += [text] if text and text not in found else []
    return found


def readable(algorithms: str, operation: str) -> str:
    """Return the functions that ran, without what the row already shows and without segment sizes of 0 (no segmentation)."""
    text = (
        algorithms.replace(f"{operation}_intra_", "").replace("_intra_", " ").replace(f"{operation}_basic_", "basic_")
    )
    text = text.replace("segment 0, ", "").replace("[segment 0]", "")
    return re.sub(r"(?<=[^ ])([+(])", lambda found: {"+": " + ", "(": " ("}[found.group()], text)


def table(outcome: Outcome) -> list[str]:
    """Return the lines to print: a table, and an explanation of its last column."""
    heads = ["communicator", "collective", "calls", "bytes", "component", "algorithm", "known by"]
    shown = [heads]
    for row in outcome.rows:
        low, high = row["min_bytes"], row["max_bytes"]
        size = "" if row["collective"].endswith("barrier") else str(low) if low == high else f"{low}-{high}"
        shown.append(
            [row["communicator"], row["collective"], str(row["calls"]), size, row["component"], row["algorithm"], row["known_by"]]
        )  # fmt: skip
    widths = [max(len(line[column]) for line in shown) for column in range(len(heads))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in shown]
    lines.append("")
    lines.append(f"library: {outcome.version or 'unknown'}")
    lines += [f"called, but not recorded: {', '.join(outcome.unrecorded)}"] if outcome.unrecorded else []
    lines += [f"known by {key}: {KNOWN_BY[key]}" for key in dict.fromkeys(row["known_by"] for row in outcome.rows)]
    if outcome.version.startswith("MPICH"):
        lines.append("MPICH: releases before 5.1 count no algorithms; later ones print their own counters above")
    return lines
