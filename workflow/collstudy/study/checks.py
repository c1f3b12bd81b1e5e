"""Checks of the configuration beyond its schema: across keys, files and installed software. All raise StudyError."""

from __future__ import annotations

import functools
import itertools
import math
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError, allowed, check_known
from collstudy.base.files import read_csv
from collstudy.base.paths import ROOT, SETUP
from collstudy.study.document import Place
from collstudy.study.names import APPLICATIONS, LEVELS, MPIS, POINT_TO_POINT, SELECTS, SIZED, UNSIZED
from collstudy.study.patterns import PATTERNS

#: Maximum number of cores of a machine; placements list them one by one.
MOST_CORES = 2**20
#: Keys that only some kinds of machines may have.
KEYS_OF_KINDS = {
    "simulation": ("simulated",), "calibration": ("simulated",), "slurm": ("slurm",), "emulated_nodes": ("local",),
    "environment": ("local", "slurm"),
}  # fmt: skip
#: Environment variables of launches that the workflow itself sets.
SET_BY_WORKFLOW = re.compile(r"COLL(PROBE|TRACE)?_\w+|LD_(PRELOAD|LIBRARY_PATH)|PATH|PYTHONPATH|TMPDIR|SLURM_\w+")
#: Options of sbatch that `slurm.extra` must not have: those of other keys, and (without a key) those that the workflow sets.
OPTIONS_OF_KEYS = {
    "--partition": "slurm.partition", "-p": "slurm.partition", "--account": "slurm.account", "-A": "slurm.account",
    "--constraint": "slurm.constraint", "-C": "slurm.constraint", "--qos": "slurm.qos", "-q": "slurm.qos",
    "--time": "block_minutes", "-t": "block_minutes", "--nodes": "levels", "-N": "levels", "--ntasks": "levels", "-n": "levels",
    "--ntasks-per-node": "levels", "--cpus-per-task": "levels", "-c": "levels",
    **dict.fromkeys(
        ("--job-name", "-J", "--output", "-o", "--error", "-e", "--parsable", "--export", "--comment", "--chdir", "-D", "--array", "-a",
         "--wrap", "--wait", "-W", "--clusters", "-M", "--requeue"), ""
    ),
}  # fmt: skip


def check_slurm(slurm: dict[str, Any], where: Place) -> None:
    """Check that the other options of sbatch are words of a shell, and not those of other keys or of the workflow."""
    try:
        words = shlex.split(slurm.get("extra", ""))
    except ValueError as error:
        raise StudyError(f"{where / 'extra'}: {error}") from None
    for word in words:
        option = word.partition("=")[0] if word.startswith("--") else word[:2]
        if (key := OPTIONS_OF_KEYS.get(option)) is not None:
            instead = f"use the key {key}" if key else "the workflow sets it"
            raise StudyError(f"{where / 'extra'}: option {option} is not allowed here: {instead}")


def check_environment(environment: dict[str, Any], where: Place) -> None:
    """Check that no variable selects algorithms, as studies do, or is set by the workflow."""
    for name in environment:
        if any(re.fullmatch(pattern, name) for pattern in SELECTS.values()):
            raise StudyError(
                f"{where / name}: it selects components or algorithms, which a study does by `algorithms`; to measure another "
                f"default, export {name} before ./study run"
            )
        if SET_BY_WORKFLOW.fullmatch(name):
            raise StudyError(f"{where / name}: the workflow sets this variable itself")


def check_kind(raw: dict[str, Any], at: Callable[[str], Place]) -> None:
    """Check that a machine's keys and MPI library are allowed for its kind."""
    kind = raw["kind"]
    for key, kinds in KEYS_OF_KINDS.items():
        if key in raw and kind not in kinds:
            raise StudyError(
                f"{at(key)}: {key} is only for machines of kind {' or '.join(kinds)}; this one is of kind {kind}"
            )
    mpi = raw.get("mpi", MPIS[kind][0])
    check_known(mpi, MPIS[kind], f"{at('mpi')}: {mpi!r} does not run on a machine of kind {kind}")


def check_levels(names: Sequence[str], counts: Sequence[int], where: Place) -> None:
    """Check that levels are unique and ordered from the outermost to core, and that there are not too many cores."""
    if names[-1] != "core":
        raise StudyError(f"{where}: the last (innermost) of the levels must be core, not {names[-1]}")
    for index, name in enumerate(names):
        if name in names[:index]:
            raise StudyError(f"{where / index}: level {name} is used twice; levels must be unique")
    for index, (outer, inner) in enumerate(itertools.pairwise(names)):
        if LEVELS.index(outer) > LEVELS.index(inner):
            raise StudyError(
                f"{where / (index + 1)}: {inner} cannot be inside {outer}; the order is " + ", ".join(LEVELS)
            )
    if math.prod(counts) > MOST_CORES:
        raise StudyError(f"{where}: {math.prod(counts)} cores in total; at most {MOST_CORES} are allowed")


def check_simulation(simulation: dict[str, Any], levels: Sequence[str], where: Place) -> None:
    """Check that cost tables are ascending and name existing levels, and that SimGrid accepts its options."""
    tables = {(key,): simulation[key] for key in ("send_us", "receive_us") if key in simulation}
    by_level = {
        key: costs for key, costs in simulation.items() if isinstance(costs, dict) and key not in ("fat_tree", "smpi")
    }
    tables |= {
        (key, name): points for key in ("delay_us", "waited_us") for name, points in by_level.get(key, {}).items()
    }
    for keys, points in tables.items():
        place = functools.reduce(Place.__truediv__, keys, where)
        for index, (before, after) in enumerate(itertools.pairwise(points)):
            if before[0] >= after[0]:
                raise StudyError(
                    f"{place / (index + 1)}: size {after[0]} follows {before[0]}; sizes must be strictly ascending"
                )
    for key, costs in by_level.items():
        for name in costs:
            check_known(name, levels, f"{where / key / name}: the machine has no level {name!r}")
    for key in ("delay_us", "waited_us"):
        if levels[-1] not in simulation.get(key, levels):
            raise StudyError(
                f"{where / key} lacks the innermost level {levels[-1]!r}, from which other levels are derived"
            )
    if simulation.get("smpi"):
        problem = refused_by_simgrid(tuple(simulation["smpi"].items()))
        if problem:
            raise StudyError(f"{where / 'smpi'}: SimGrid rejects it: {problem}")


@functools.cache
def refused_by_simgrid(options: tuple[tuple[str, Any], ...]) -> str:
    """Return why the installed SimGrid rejects these options; "" if it accepts them or is not installed.

    Simulates a broadcast between two ranks, because SimGrid reads some options only when it uses them.
    """
    program = SETUP / "build" / "simulated" / "bench" / "collbench_bcast"
    if not shutil.which("smpirun") or not program.exists():
        return ""
    with tempfile.TemporaryDirectory(prefix="collstudy-") as folder:
        described, hosts = Path(folder, "platform.xml"), Path(folder, "hosts")
        described.write_text(
            "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
            '<platform version="4.1"><cluster id="c" prefix="c" suffix="" radical="0-1" speed="1Gf" bw="1GBps" lat="1us"/>'
            "</platform>\n"
        )
        hosts.write_text("c0\nc1\n")
        command = ["smpirun", "-np", "2", "-platform", described, "-hostfile", hosts]
        sweep = [program, "-i", "1", "-x", "0", "-m", "1:1"]

        def run(settings: list[str]) -> subprocess.CompletedProcess[str] | None:
            try:
                return subprocess.run(
                    [*command, *settings, *sweep], capture_output=True, text=True, timeout=60, check=False, cwd=folder
                )
            except (OSError, subprocess.TimeoutExpired):
                return None  # not caused by the options

        done, plain = run([f"--cfg={key}:{value}" for key, value in options]), None
        if done is not None and done.returncode:
            plain = run([])
    if done is None or done.returncode == 0 or plain is None or plain.returncode:
        return ""
    printed = done.stdout + done.stderr
    said = re.search(r"/CRITICAL\] (?:Uncaught exception \S+: )?(.*)", printed)
    problem = said.group(1).strip() if said else f"exit status {done.returncode}"
    key = re.search(r"Bad config key: (\S+)", problem)
    if not key:
        problem += " (" + ", ".join(f"{name}: {value}" for name, value in options) + ")"
    else:
        known = re.findall(r"^  ([\w/-]+): \(", printed, re.MULTILINE)
        near = [name for name in known if name.partition("/")[0] == key.group(1).partition("/")[0]]
        problem += allowed(near or known)
    return problem


def check_catalogue(catalogue: dict[str, dict[str, dict[str, Any]]], where: Place) -> None:
    """Check that the collectives, patterns and collectives-library algorithms that the catalogue names exist."""
    known = (*SIZED, *UNSIZED, *APPLICATIONS)
    own = library_algorithms()
    for collective, entries in catalogue.items():
        check_known(collective, known, f"{where / collective}: unknown collective {collective!r}")
        for name, entry in entries.items():
            at = where / collective / name
            pattern = entry.get("pattern", {})
            for text in [pattern] if isinstance(pattern, str) else pattern.values():
                check_known(text, PATTERNS, f"{at / 'pattern'}: unknown pattern {text!r}")
            for key in ("simulated", "library"):
                algorithm = entry.get(key, {}).get("algorithm", "default")
                if own and algorithm != "default":
                    said = f"the collectives library has no {collective} algorithm {algorithm!r}"
                    check_known(algorithm, own.get(collective, ()), f"{at / key / 'algorithm'}: {said}")
            if (inside := entry.get("inside")) is not None:
                said = f"{at / 'inside'}: no i{collective} algorithm {inside!r}"
                check_known(inside, catalogue.get(f"i{collective}", {}), said)


@functools.cache
def library_algorithms() -> dict[str, tuple[str, ...]]:
    """Return the algorithms of the collectives library by collective; {} in a data package without its sources."""
    found: dict[str, tuple[str, ...]] = {}
    for row in read_csv(ROOT / "workflow" / "native" / "coll" / "algorithms" / "algorithms.csv"):
        found[row["collective"]] = (*found.get(row["collective"], ()), row["algorithm"])
    return found


def check_analysis(analysis: dict[str, Any], catalogue: dict[str, dict[str, Any]], where: Place) -> None:
    """Check that classes do not overlap, and that the catalogue has every named algorithm."""
    for key in ("size_classes", "process_classes"):
        _check_classes(analysis.get(key, []), where / key)
    knots = analysis.get("barrier_tree_knots", [])
    if any(before >= after for before, after in itertools.pairwise(knots)):
        raise StudyError(f"{where / 'barrier_tree_knots'} is {knots}; the numbers must be strictly ascending")
    known = {name for entries in catalogue.values() for name in entries}
    for index, name in enumerate(analysis.get("best_excludes", ())):
        if name == "default":
            raise StudyError(
                f"{where / 'best_excludes' / index}: the default is compared with the other algorithms; name one of these"
            )
        check_known(name, known, f"{where / 'best_excludes' / index}: no algorithm {name!r}")
    for collective, names in analysis.get("compare", {}).get("fitted", {}).items():
        at = where / "compare" / "fitted" / collective
        check_known(collective, catalogue, f"{at}: unknown collective {collective!r}")
        for name in names:
            check_known(name, catalogue[collective], f"{at}: no {collective} algorithm {name!r}")


def _check_classes(classes: list[dict[str, Any]], where: Place) -> None:
    for index, entry in enumerate(classes):
        at = where / index
        if entry["from"] > entry["to"]:
            raise StudyError(f"{at}: the class {entry['label']!r} is empty: from {entry['from']} to {entry['to']}")
        for other in classes[:index]:
            if other["label"] == entry["label"]:
                raise StudyError(f"{at / 'label'}: {entry['label']!r} is used twice; labels must be unique")
            if entry["from"] <= other["to"] and other["from"] <= entry["to"]:
                raise StudyError(
                    f"{at}: {entry['label']!r} ({entry['from']} to {entry['to']}) overlaps {other['label']!r} "
                    f"({other['from']} to {other['to']}); classes must be disjoint"
                )


def check_grid(analysis: dict[str, Any], collectives: dict[str, Any], where: Place) -> None:
    """Check the analysis against the measured grid: *collectives* = {algorithms: [{name}], processes, sizes} by collective."""
    mine = {name: entry for name, entry in collectives.items() if name not in POINT_TO_POINT}
    processes = sorted({count for entry in mine.values() for count in entry["processes"]})
    fit = analysis.get("extrapolation", {}).get("fit_up_to")
    if fit is not None and not (processes and processes[0] <= fit < processes[-1]):
        measured = f"{processes[0]} to {processes[-1]}" if processes else "none of a collective"
        raise StudyError(
            f"{where / 'extrapolation' / 'fit_up_to'} is {fit}, so nothing is left to fit or to predict; the study's "
            f"numbers of processes are {measured}"
        )
    sizes = {size for entry in mine.values() for size in entry["sizes"]}
    for index, size in enumerate(analysis.get("figure_sizes", ())):
        if size not in sizes:
            shown = ", ".join(map(str, sorted(sizes))) or "none"
            raise StudyError(f"{where / 'figure_sizes' / index}: size {size} is not measured; measured sizes: {shown}")
    excluded = set(analysis.get("best_excludes", ()))
    for name, entry in mine.items():
        here = {algorithm["name"] for algorithm in entry["algorithms"]} - {"default"}
        if here & excluded and here <= excluded:
            raise StudyError(
                f"{where / 'best_excludes'}: no {name} algorithm is left to compete with the default; all are excluded: "
                + ", ".join(sorted(here))
            )
