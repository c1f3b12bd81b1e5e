"""The data with which a machine is calibrated: a ladder, and the measured cells of a study."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError
from collstudy.store.measurements import read_measurements
from collstudy.study.config import Configuration
from collstudy.study.document import shown
from collstudy.study.machines import Machine
from collstudy.study.placement import cores_in_order, first_difference

Key = tuple[str, str, str, int, int | None]  # collective, algorithm, mapping, processes, size


@dataclass(frozen=True)
class Data:
    """Measurements in microseconds: the ladder by level and size, and the collectives by cell and size."""

    ladder: dict[str, dict[int, float]]
    cells: dict[Key, float]


def ladder_of(rows: Iterable[Iterable[float]], machine: Machine) -> dict[str, dict[int, float]]:
    """Return the median over the pairs of cores of each level, by size. Cores are numbered over the whole machine."""
    cores = cores_in_order(machine.levels, [])
    samples: dict[str, dict[int, list[float]]] = {}
    for one, other, size, latency in rows:
        if one == other or max(one, other) >= len(cores):
            continue
        level = first_difference(machine.levels, cores[one], cores[other])
        samples.setdefault(str(level), {}).setdefault(size, []).append(latency)
    return {
        level: {size: statistics.median(values) for size, values in sorted(of.items())} for level, of in samples.items()
    }


def read_cells(path: Path, block: dict[str, Any]) -> dict[Key, float]:
    """Return the median of each cell and size in a study's measurements.csv. Raises StudyError if a cell that the `calibration` block
    names was measured in several ways, whose common median would be the time of none of them.
    """
    samples: dict[Key, list[float]] = {}
    ways: dict[Key, tuple] = {}
    named = _named(block)
    for row in read_measurements(path):
        key = (row.collective, row.algorithm, row.mapping, row.processes, row.size)
        samples.setdefault(key, []).append(row.value)
        way = (row.nodes, row.parameters, row.mpi)
        if ways.setdefault(key, way) != way and key[:2] in named and row.mapping in block["mappings"]:
            raise StudyError(
                f"{path}: {row.collective} {row.algorithm} mapped by {row.mapping} with {row.processes} processes was measured with "
                "several numbers of nodes, parameters or MPI libraries; calibration.study needs a study with one of them"
            )
    return {key: statistics.median(values) for key, values in samples.items()}


def _named(block: dict[str, Any]) -> list[tuple[str, str]]:
    """Return collective and algorithm of the cells that a `calibration` block names."""
    named = block.get("exchanges") or {"bcast": block["algorithms"], "barrier": block["barriers"]}
    return [(collective, name) for collective, names in named.items() for name in names]


def check_data(path: Path, configuration: Configuration, block: dict[str, Any], cells: Iterable[Key]) -> None:
    """Raise StudyError if the study lacks an algorithm that the `calibration` block names, because the fit needs all of them."""
    have = {key[:2] for key in cells if key[2] in block["mappings"] and key[3] in block["processes"]}
    lacking = [key for key in _named(block) if key not in have]
    if not lacking:
        return
    study = configuration.study(block["study"])
    collectives = {collective for collective, _ in lacking}
    files = [entry["path"] for entry in study.imported_files if entry.get("collective") in collectives]
    where = (
        f"; it reads {' and '.join(dict.fromkeys(files))} (set STUDY_REFERENCE_DATA, or ./study fetch)" if files else ""
    )
    raise StudyError(
        f"{shown(path)}: calibration.study: {study.name} has no {' and no '.join(map(' '.join, lacking))} "
        f"mapped by {' or '.join(block['mappings'])} with {', '.join(map(str, block['processes']))} processes{where}"
    )


def read_ladder(
    ladder: str | list, machine: Machine, path: Path, results: Path
) -> tuple[dict[str, dict[int, float]], bytes]:
    """Return the ladder of `calibration.ladder` by level and size, and the bytes from which it was read. Raises StudyError."""
    if isinstance(ladder, list):
        return ladder_of(ladder, machine), json.dumps(ladder).encode()
    file = existing(path, results / ladder / "measurements.csv")
    found = ladder_of_study(file, machine)
    if not found:
        raise StudyError(
            f"{shown(path)}: calibration.ladder: study {ladder} has no `latency` of 1 byte or more across levels"
        )
    return found, file.read_bytes()


def ladder_of_study(path: Path, machine: Machine) -> dict[str, dict[int, float]]:
    """Return the median latency (us) by level and size from a ladder's measurements.csv: of `levels`, of all pairs of cores, or both.

    Raises StudyError if several MPI libraries were measured.
    """
    across: dict[str, dict[int, list[float]]] = {}
    pairs, libraries = [], set()
    for row in read_measurements(path):
        if not row.size:
            continue  # an empty message, which no simulated benchmark sends
        if row.collective == "latency" or row.pair:
            libraries.add(row.mpi)
        if row.collective == "latency":
            of = across.setdefault(row.mapping.removeprefix("level-"), {})
            of.setdefault(row.size, []).append(row.value)
        elif row.pair:
            # There is a rank on every core: rank r is on core r.
            pairs.append([*row.pair, row.size, row.value])
    if len(libraries) > 1:
        raise StudyError(
            f"{path}: measured with {' and '.join(sorted(libraries))}; calibration.ladder needs a study with one of them"
        )
    found = ladder_of(pairs, machine)
    for level in machine.levels:
        for size, values in sorted(across.get(level.name, {}).items()):
            found.setdefault(level.name, {}).setdefault(size, statistics.median(values))
    return found


def existing(machine: Path, data: Path) -> Path:
    """Return the path *data*, which a machine's file names. Raises StudyError if it does not exist."""
    if not data.exists():
        raise StudyError(
            f"{shown(machine)}: calibration: {data} does not exist (./study run STUDY writes that of a study)"
        )
    return data
