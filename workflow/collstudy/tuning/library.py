"""Access to an installed library for checks of tuning files: ask what it selects, or start it and record its messages.

Release builds do not report the selected algorithm. Therefore one call of each size is made while its messages are counted,
by Open MPI's monitoring component or, for MPICH, by libmessages.so; with Intel MPI, while its functions are recorded.
"""

from __future__ import annotations

import functools
import itertools
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError
from collstudy.launch import hydra, mca, mpich, openmpi
from collstudy.launch.openmpi import OVERSUBSCRIBED, UNBOUND
from collstudy.launch.proof import messages
from collstudy.launch.rulesfile import exported, rules_arguments
from collstudy.launch.toolchain import Mpi, exporting, recording
from collstudy.launch.tracefile import rank_files
from collstudy.study.catalogue import Catalogue
from collstudy.tuning import trees
from collstudy.tuning.asking import Question, ask, can_ask, without_choices
from collstudy.tuning.rules import Placement, Rule, own_version
from collstudy.tuning.writers import intel_variables, openmpi_rules, settings_of

#: Arguments for the default of Open MPI's coll/tuned, to which the rules of a file refer.
ONLY_TUNED = mca.arguments_of({"coll": mca.MONITORED})
LAUNCH_LIMIT_S = 60

#: Number of messages per pair of ranks (sender, receiver); of Intel MPI, number of calls per function.
Messages = dict[Any, int]
#: Function that runs the probe: (selection, collective, processes, sizes in bytes) -> messages of a call of each size. The
#: selection is a rules file, a rule to be forced, or None for the library's own choice.
Probe = Callable[[Path | Rule | None, str, int, Sequence[int]], dict[int, Messages]]
#: Function that asks the library which algorithm it selects: (selection, collective, (processes, bytes)...) -> algorithm with
#: its parameters, for calls with an answer.
Ask = Callable[[Path | Rule | None, str, Iterable[Question]], dict[Question, str]]


@dataclass(frozen=True)
class Library:
    """An installed library to be checked: its label, name in the catalogue, probe, and writer for its files.

    *requests* returns the limit of requests that a file sets at each size, which messages do not show; it is None if the limit cannot
    be seen.
    """

    label: str
    mpi: str
    probe: Probe
    write: Callable[[Placement, Path], None]
    requests: Callable[[Path, str, int, Sequence[int]], list[int | None]] | None = None
    ask: Ask | None = None


def library_of(mpi: Mpi, catalogue: Catalogue, numbers: dict[str, dict[str, int]]) -> Library:
    """Return the installed MPI library, prepared for checks; *numbers* are Open MPI's algorithm numbers."""
    label = f"{mpi.label} {mpi.version}"
    if mpi.name == "impi":

        def write_variables(placement: Placement, path: Path) -> None:
            path.write_text(intel_variables(placement, catalogue, []), encoding="utf-8")

        return Library(label, "impi", functools.partial(_impi_probe, mpi, catalogue), write_variables)
    if mpi.name == "mpich":
        own = trees.own_trees(mpi.shared_library)

        def write(placement: Placement, path: Path) -> None:
            mpich.write_both(trees.trees(placement, catalogue, own), path)

        return Library(label, "mpich", functools.partial(_mpich_probe, mpi, catalogue), write)

    def write_classic(placement: Placement, path: Path) -> None:
        version = own_version(placement, mpi.version)
        path.write_text(openmpi_rules(placement, catalogue, [], numbers, version), encoding="utf-8")

    requests = functools.partial(_requests, mpi) if mpi.trace_library.exists() else None
    asks = functools.partial(_openmpi_ask, mpi, catalogue)
    return Library(label, "openmpi", functools.partial(_openmpi_probe, mpi, catalogue), write_classic, requests, asks)


def _requests(mpi: Mpi, path: Path, collective: str, processes: int, sizes: Sequence[int]) -> list[int | None]:
    """Return the limit of outstanding requests that Open MPI passed to its algorithm at each size, seen by the trace library."""
    with tempfile.TemporaryDirectory(prefix="rulescheck-") as name:
        folder = Path(name)
        environment = without_choices(mpi)
        command = [
            mpi.mpirun, "-n", processes, *OVERSUBSCRIBED, *rules_arguments(path),
            "env", *(f"{key}={value}" for key, value in recording(mpi, folder, environment).items()),
            mpi.build / "probe" / "collprobe", collective, *sizes,
        ]  # fmt: skip
        launch(command, environment, folder)
        calls = [call for call in rank_files(folder, processes)[0].calls() if call.operation == collective]
    found = [re.search(r"\[requests (\d+)\]", call.ran.algorithms if call.ran else "") for call in calls]
    return [int(one.group(1)) if one else None for one in found]


def _arguments(mpi: Mpi, catalogue: Catalogue, choice: Path | Rule | None, collective: str) -> list[str]:
    """Return the arguments of mpirun for the selection of a probe."""
    if isinstance(choice, Path):
        return rules_arguments(choice, monitored=True)
    return forcing(mpi, catalogue, collective, choice) if choice else ONLY_TUNED


def _openmpi_ask(
    mpi: Mpi, catalogue: Catalogue, choice: Path | Rule | None, collective: str, questions: Iterable[Question]
) -> dict[Question, str]:
    if not can_ask(mpi, collective):
        return {}
    return ask(mpi, _arguments(mpi, catalogue, choice, collective), collective, questions)


def _openmpi_probe(
    mpi: Mpi, catalogue: Catalogue, choice: Path | Rule | None, collective: str, processes: int, sizes: Sequence[int]
) -> dict[int, Messages]:
    arguments = _arguments(mpi, catalogue, choice, collective)
    return _monitored(mpi, ["--map-by", "core:OVERSUBSCRIBE", *arguments], collective, processes, sizes)


def forcing(mpi: Mpi, catalogue: Catalogue, collective: str, rule: Rule) -> list[str]:
    """Return the arguments of Open MPI's mpirun that force the algorithm and parameters of a rule."""
    chosen = settings_of(catalogue, collective, rule, "openmpi")
    return openmpi.forcing_arguments(collective, chosen, mpi, rule.text, monitored=True)


def _monitored(
    mpi: Mpi, arguments: list[Any], collective: str, processes: int, sizes: Sequence[int]
) -> dict[int, Messages]:
    """Return the messages of one call of each size, counted by Open MPI's monitoring component.

    All sizes share one launch, except with Open MPI 4, which cannot report the messages so far and writes them at the end.
    """
    if mpi.version.startswith("4.") and len(sizes) > 1:
        return {size: _monitored(mpi, arguments, collective, processes, [size])[size] for size in sizes}
    with tempfile.TemporaryDirectory(prefix="rulescheck-") as folder:
        parts = [] if mpi.version.startswith("4.") else ["-p", f"{folder}/messages"]
        command = [
            mpi.mpirun, "-n", processes, *arguments, *UNBOUND, *openmpi.monitoring(Path(folder)),
            mpi.build / "probe" / "collprobe", *parts, collective, *sizes,
        ]  # fmt: skip
        launch(command, without_choices(mpi), Path(folder))
        return {size: messages(Path(folder), f"messages-{size}" if parts else "messages") for size in sizes}


def _mpich_probe(
    mpi: Mpi, catalogue: Catalogue, choice: Path | Rule | None, collective: str, processes: int, sizes: Sequence[int]
) -> dict[int, Messages]:
    environment = without_choices(mpi)
    if isinstance(choice, Path):
        environment |= mpich.environment(choice)
    elif choice:
        environment |= mpich.forcing_environment(collective, settings_of(catalogue, collective, choice, "mpich"))
    watching = functools.partial(hydra.watching, mpi)
    return {size: _watched(mpi, environment, watching, messages, collective, processes, size) for size in sizes}


def _impi_probe(
    mpi: Mpi, catalogue: Catalogue, choice: Path | Rule | None, collective: str, processes: int, sizes: Sequence[int]
) -> dict[int, Messages]:
    environment = without_choices(mpi) | {"I_MPI_PIN": "0"}
    if isinstance(choice, Path):
        environment |= exported(choice.read_text(encoding="utf-8"))
    elif choice:
        number = settings_of(catalogue, collective, choice, "impi")["algorithm"]
        environment[f"I_MPI_ADJUST_{collective.upper()}"] = number
    tracing = functools.partial(hydra.tracing, mpi)

    def functions(folder: Path) -> Messages:
        return Counter(itertools.chain(*hydra.functions_ran(collective, processes, folder)))

    return {size: _watched(mpi, environment, tracing, functions, collective, processes, size) for size in sizes}


def _watched(
    mpi: Mpi, environment: dict[str, str], watching: Callable[[Path], dict[str, str]], seen: Callable[[Path], Messages],
    collective: str, processes: int, size: int,
) -> Messages:  # fmt: skip
    """Start a call with Hydra's mpirun and the variables that *watching* returns for a folder; return what was *seen* in the folder."""
    with tempfile.TemporaryDirectory(prefix="rulescheck-") as name:
        folder = Path(name)
        given = exporting(mpi.name, watching(folder))
        command = [mpi.mpirun, "-n", processes, *given, mpi.build / "probe" / "collprobe", collective, size]
        launch(command, environment, folder)
        return seen(folder)


def launch(command: list[Any], environment: dict[str, str], folder: Path) -> None:
    """Run a command in *folder*; repeat it once if it hangs. Raises StudyError with the end of its output."""
    words = [str(word) for word in command]
    # mpirun names its session folder by its process id, and fails if a killed mpirun with the same id left one behind.
    environment = environment | {"TMPDIR": str(folder)}
    for _ in range(2):  # a hanging launch (seen once in 600 on a busy computer) is no evidence against the file
        try:
            done = subprocess.run(
                words, capture_output=True, text=True, timeout=LAUNCH_LIMIT_S, env=environment, cwd=folder, check=False
            )
        except subprocess.TimeoutExpired:
            continue
        if done.returncode != 0:
            raise StudyError(f"{' '.join(words)} failed:\n{(done.stdout + done.stderr)[-1000:]}")
        return
    raise StudyError(f"{' '.join(words)}: not finished after {LAUNCH_LIMIT_S} s, twice")


def on_two_nodes(mpi: Mpi, arguments: list[Any], collective: str, processes: int, size: int) -> Messages:
    """Return the messages of a call with the ranks on two emulated nodes, in blocks; *arguments* may exclude components."""
    hosts = f"nodea:{(processes + 1) // 2},nodeb:{processes // 2}"
    with tempfile.TemporaryDirectory(prefix="rulescheck-") as folder:
        where = [*openmpi.emulating(Path(folder)), "--host", hosts, "--map-by", "slot"]
        # One size per launch: the first call creates the communicators of coll/han, which needs messages of its own.
        return _monitored(mpi, [*where, *arguments], collective, processes, [size])[size]
