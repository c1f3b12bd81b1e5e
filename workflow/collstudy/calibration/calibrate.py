"""Fit a simulated machine to measurements: `./study calibrate MACHINE`, rule `calibrate` of the workflow.

The machine's `calibration` block names the data: a ladder (latency of pairs of cores by size: a study that measured or
imported it, or a list) and optionally a study with measured collectives, of which only the algorithms and process counts named
in the block, and two ranks, are used.

1. Closed form: the time of a message between two cores. Short messages come from the ladder (median over the pairs of a level;
   for a level missing in the ladder: two ranks across it), long ones from a broadcast to one rank across that level.
2. Search: the overheads of sending and receiving, and shared bandwidths (`SHORT`, `LONG`), by coordinate search from fixed
   starting values with fixed steps and no random numbers. Each step simulates the cells and keeps changes that lower the mean
   |log(simulated / measured)|; step 1 is repeated for each trial. If the block names no eager limit, the value of `LIMITS`
   that fits best with the starting values is used.

With a ladder but no study, there is no search. If the ladder's sizes reach from below to far above the eager limit at every
level, step 1 covers all of them, with the overheads of `alone_values`; steps due to protocol changes are part of the delays. A
ladder of short messages only determines each level's latency, for which the simulated ping-pong reproduces the smallest size;
all else is unchanged.

Without a ladder, collectives in which all ranks exchange messages (`exchanges`) determine the time of a message by level and size
(`exchanges.py`), and what remains is as with a ladder of all sizes.
"""

from __future__ import annotations

import datetime
import hashlib
import os
from pathlib import Path
from typing import Any

from collstudy.base.digests import file_digest
from collstudy.base.errors import StudyError, check_known
from collstudy.calibration.costs import LONG
from collstudy.calibration.exchanges import cells_of, fit_exchanges
from collstudy.calibration.fitting import FIXED, LIMITS, NOT_IN_A_LADDER, Simulator, first_long, fit_ladder, fit_study
from collstudy.calibration.measured import Data, check_data, existing, read_cells, read_ladder
from collstudy.calibration.writing import summary, write_fit, write_pairs
from collstudy.study.config import Configuration
from collstudy.study.document import Place, read_document, shown
from collstudy.study.machines import Machine
from collstudy.study.sweeps import check_mappings

#: Keys of a `calibration` block that only a fit to a ladder and a study uses.
OF_STUDIES = ("algorithms", "barriers", "shared", "search", "start")


def _calibrated_file(configuration: Configuration, name: str) -> tuple[dict[str, Any], Machine]:
    """Return a machine's own file, with its calibration block and the name of the fitted file, and the machine without fitted costs.

    Raises StudyError.
    """
    path = configuration.machine_path(name)
    document, where = read_document(path, "machine")
    if "calibration" not in document:
        raise StudyError(f"{shown(path)}: the key `calibration` (ladder and study) is missing; see config/README.md")
    machine = configuration.machine(name, fitting=True)
    if machine.kind != "simulated" or "fat_tree" in machine.simulation:
        raise StudyError(f"{shown(path)}: only simulated machines with levels can be calibrated")
    _check_block(document["calibration"], where / "calibration", configuration, machine)
    return document, machine


def _check_block(block: dict[str, Any], where: Place, configuration: Configuration, machine: Machine) -> None:
    """Check what the schema of the `calibration` block cannot: keys without effect, mappings, levels, and numbers that do not fit."""
    if "exchanges" in block:
        unused, why = ("ladder", *OF_STUDIES), "with exchanges"
    elif "study" not in block:
        unused, why = (*OF_STUDIES, "mappings", "processes", "largest_bytes"), "without a study"
    else:
        unused, why = ("allocations",), "without exchanges"
    if without_effect := [key for key in unused if key in block]:
        raise StudyError(f"{where / without_effect[0]} has no effect {why}; remove it")
    for index, mapping in enumerate(block.get("mappings", ())):
        at = where / "mappings" / index
        check_known(mapping, configuration.catalogue.mappings, f"{at}: unknown mapping {mapping!r}")
        if "exchanges" not in block:  # whose ranks are on the listed nodes
            check_mappings([mapping], machine, configuration.catalogue, at)
    shared = [level.name for level in machine.levels if f"shared_{level.name}" in LONG]
    for index, level in enumerate(block.get("shared", ())):
        check_known(level, shared, f"{where / 'shared' / index}: {level!r} has no bandwidth that can be fitted")
    cores = machine.nodes * machine.cores_per_node
    for index, count in enumerate(block.get("processes", ())):
        if count > cores:
            raise StudyError(f"{where / 'processes' / index}: {count} is more than the {cores} cores of the machine")
    least = first_long(block.get("eager_limit_bytes", max(LIMITS)))
    if "exchanges" not in block and block.get("largest_bytes", least) < least:
        raise StudyError(
            f"{where / 'largest_bytes'} is {block['largest_bytes']}; it must be at least {least}, the "
            + (
                "first power of two from the eager limit on"
                if "eager_limit_bytes" in block
                else "largest eager limit that is tried"
            )
        )


def studies_of_machine(configuration: Configuration, name: str) -> list[str]:
    """Return the studies with which a machine is calibrated. Raises StudyError."""
    block = _calibrated_file(configuration, name)[0]["calibration"]
    named = [data for data in (block.get("ladder"), block.get("study")) if isinstance(data, str)]
    return list(dict.fromkeys(named))


def calibrate(configuration: Configuration, name: str, results: Path) -> None:
    """Fit machine *name*; write `calibration/<name>.csv` (measured and simulated) to *results*, and the fit beside the machine's file.

    Raises StudyError.
    """
    path = configuration.machine_path(name)
    document, machine = _calibrated_file(configuration, name)
    block = document["calibration"]
    about: dict[str, Any] = {"date": datetime.datetime.now(datetime.UTC).date().isoformat()}
    if "study" in block:
        measured = existing(path, results / block["study"] / "measurements.csv")
        cells = read_cells(measured, block)
        check_data(path, configuration, block, cells)
        about["study_sha256"] = file_digest(measured)[:16]
    simulator = Simulator(configuration, len(os.sched_getaffinity(0)))
    if "ladder" in block:
        ladder, content = read_ladder(block["ladder"], machine, path, results)
        about["ladder_sha256"] = hashlib.sha256(content).hexdigest()[:16]
    if "exchanges" in block:
        data = Data({}, cells_of(block, cells))
        fitted, requests = fit_exchanges(machine, data, block, shown(path))
        known, not_fitted = data.cells, NOT_IN_A_LADDER
    elif "study" in block:
        data = Data(ladder, cells)
        fitted, requests, undetermined = fit_study(machine, data, block, simulator)
        known, not_fitted = data.cells, [*FIXED, *undetermined]
        if not block.get("search", True):
            about["search"] = "none: the starting values"
    else:
        fitted, requests, not_fitted = fit_ladder(machine, ladder, block.get("eager_limit_bytes"), simulator, path)
        known = {
            ("latency", "default", f"level-{level}", 2, s): us for level, of in ladder.items() for s, us in of.items()
        }
    both = {key: (known[key], us) for key, us in simulator.all(fitted, requests).items() if key in known}
    table, fit = results / "calibration" / f"{name}.csv", path.with_name(document["fitted"])
    write_pairs(table, both)
    about |= summary(both) | ({"not_fitted": not_fitted} if not_fitted else {})
    write_fit(fit, machine, fitted, about)
    print(f"machine: {fit}\n         {table} (measured and simulated)")
