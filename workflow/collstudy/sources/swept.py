"""Source for a swept study: every point of its grid is measured or simulated."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError
from collstudy.base.files import read_json
from collstudy.base.paths import ROOT
from collstudy.launch.toolchain import simulator_version
from collstudy.sources.decisions import decisions
from collstudy.sources.edges import Launched, of_cells
from collstudy.sources.source import Context, Rows, Source
from collstudy.store.described import read_study, versions_of
from collstudy.store.records import Record
from collstudy.study.catalogue import Catalogue
from collstudy.study.cells import Cell, expand, swept
from collstudy.study.description import Study, Swept
from collstudy.study.names import APPLICATIONS
from collstudy.study.sweeps import Choice, component_of, spreads_of
from collstudy.study.words import parameter_text, parameter_words
from collstudy.study.work import Work, content_digest

#: Columns of cells.csv that tell cells apart for the user.
_SHOWN = ("collective", "algorithm", "parameters", "mapping", "nodes", "processes")
#: Environment variables that select or tune transports.
_TRANSPORT = re.compile(r"(UCX|UCC|HCOLL|FI|PSM2|PSM3)_|OMPI_MCA_(btl|mtl|pml)|I_MPI_(FABRICS|OFI)")


class SweptSource(Source):
    """The cells of the sweeps."""

    described_by = Swept

    def __init__(self, study: Study, context: Context):
        study, self.lacking = _without_lacking(study, context)
        super().__init__(study, context)
        assert isinstance(study.source, Swept)
        self.policy = study.source.policy

    def remarks(self) -> list[str]:
        """Return lines about components that the installed Open MPI lacks, and about software whose version has changed."""
        found = []
        if self.lacking:
            version = self.context.versions.mpi.get("openmpi", {}).get("version", "")
            found += [
                f"study {self.study.name}: Open MPI {version} has no component {', '.join(self.lacking)}: left out"
            ]
        try:
            before = dict(versions_of(read_study(self.folder)["provenance"], "suite", "mpi"))
        except StudyError:
            return found
        updated = [
            f"study {self.study.name}: {name} is {version} now and was {before[name]}: its cells are measured again; the earlier "
            f"ones stay in {self.context.results / 'cells'}"
            for name, version in versions_of(self._how(self.grid), "suite", "mpi")
            if before.get(name, version) != version
        ]
        return found + (updated or self._other_settings())

    def _other_settings(self) -> list[str]:
        """Return a line about the cells that the last run collected with other settings, and which these are."""
        before: dict[tuple[str, ...], set[str]] = {}
        for row in self.last_made("cells.csv"):
            if row.get("status") == "measured":
                before.setdefault(tuple(row.get(name, "") for name in _SHOWN), set()).add(row.get("cell", ""))
        cells = self.cells() if before else []
        present = {cell.digest[:16] for cell in cells}
        names: set[str] = set()
        count = 0
        for cell in cells:
            texts = (
                cell.collective,
                cell.algorithm,
                parameter_text(cell.parameters),
                cell.mapping,
                cell.nodes,
                cell.processes,
            )
            earlier = before.get(tuple(map(str, texts)), set())
            # A cell beside one that the study still has is a further one.
            if not earlier or earlier & present:
                continue
            count += 1
            if not names:
                path = self.context.results / cell.path_text.replace(cell.digest[:16], min(earlier))
                stored = read_json(path).get("cell", {})
                identity = json.loads(json.dumps(cell.identity()))
                names = {name for name, value in identity.items() if stored.get(name, value) != value}
        if not count:
            return []
        return [
            f"study {self.study.name}: {count} cell{'s' * (count != 1)} of the last run had other settings"
            + f" ({', '.join(sorted(names))})" * bool(names)
            + f"; what is not stored with the present ones is measured, and the earlier cells stay in {self.context.results / 'cells'}"
        ]

    @property
    def gridded(self) -> Study:
        """Return the study with its sweeps."""
        return self.study

    @functools.cached_property
    def grid(self) -> list[Cell]:
        """Return all cells of the sweeps. Raises StudyError for a cell that cannot run, for example if its ranks do not fit."""
        try:
            cells = expand(self.gridded, self.context.catalogue, self.context.versions)
            shapes = {(cell.mapping, cell.cycle, cell.nodes, cell.processes, cell.per_node): cell for cell in cells}
            for cell in shapes.values():
                cell.place(self.study.machine)
        except StudyError as error:
            raise StudyError(f"study {self.study.name}: {error}") from None
        return cells

    def inputs(self) -> list[Path]:
        """Return the tables of real runs on whose nodes ranks are placed."""
        tables = [sweep.allocations.path for sweep in self.study.sweeps if sweep.allocations]
        return [ROOT / path for path in dict.fromkeys(tables)]

    def folders(self) -> list[str]:
        """Return these tables, which may be outside the checkout."""
        return [str(path) for path in self.inputs()]

    def cells(self) -> list[Cell]:
        """Return the cells to measure."""
        return self.grid

    def work(self) -> list[Work]:
        """Return the cells to measure."""
        return list(self.cells())

    def needs(self) -> set[str]:
        """Return the required parts: a compiler, and MPI libraries or the simulator."""
        if self.study.machine.kind == "simulated":
            return {"compiler", "simulator"}
        return {"compiler", *(mpi for sweep in self.study.sweeps for mpi in sweep.mpis)}

    def programs(self) -> set[str]:
        """Return the parts for applications, a fat tree, and the trace library, if the study needs them."""
        applications = any(sweep.collective in APPLICATIONS for sweep in self.study.sweeps)
        tree = "fat_tree" in self.study.machine.simulation
        arms = bool(_components(self.study, self.context.catalogue)) or bool(self.lacking)
        # Only the library's own calls show the limit of requests that a rules file sets.
        arms |= any("max_requests" in dict(c.parameters) for sweep in self.study.sweeps for c in sweep.algorithms)
        # Only the library's own functions show which of Intel MPI's algorithms ran.
        algorithms = self.context.catalogue.algorithms
        arms |= any(
            "impi" in sweep.mpis and "function" in algorithms[sweep.collective][c.name].get("impi", {})
            for sweep in self.study.sweeps
            for c in sweep.algorithms
        )
        asked = {"apps": applications, "fattree": tree, "trace": arms}
        return {part for part, needed in asked.items() if needed}

    def describe(self) -> dict[str, Any]:
        """Return the description of the grid and its settings."""
        return {
            "collectives": _collectives(self.gridded, self.context.catalogue),
            "decisions": _decisions(self.gridded, self.context.catalogue),
            "provenance": self._how(self.grid),
            **({"lacking": list(self.lacking)} if self.lacking else {}),
            "cells": content_digest([cell.digest for cell in self.grid]),
        }

    def _how(self, cells: list[Cell]) -> dict[str, Any]:
        policy, sweeps, simulated = self.policy, self.gridded.sweeps, cells[0].deterministic
        suites = dict.fromkeys(
            ("collbench" if cell.by_collbench else cell.suite["name"], cell.suite["version"]) for cell in cells
        )
        libraries = dict.fromkeys((cell.mpi["name"], cell.mpi["version"]) for cell in cells)
        barriers = sorted({sweep.barrier for sweep in sweeps})
        spreads = sorted({us for sweep in sweeps for us in spreads_of(sweep.spread_us) or (0,)})
        return {
            "suite": ", ".join(name for name, _ in suites),
            "suite_version": ", ".join(version for _, version in suites),
            "mpi": ", ".join(name for name, _ in libraries),
            "mpi_version": ", ".join(version for _, version in libraries),
            "simulator": "SimGrid SMPI" if simulated else "",
            "simulator_version": (simulator_version() or "") if simulated else "",
            "iterations": sorted({cell.iterations for cell in cells if cell.collective not in APPLICATIONS}),
            "warmup": sorted({cell.warmup for cell in cells if cell.collective not in APPLICATIONS}),
            # Where all sweeps have the library's default barrier, and ranks that enter together, these keys say nothing.
            "barriers": [] if barriers == ["default"] else barriers,
            **({} if spreads == [0] else {"spreads_us": spreads}),
            "launches": {"min": 1, "max": 1} if simulated else {"min": policy.minimum, "max": policy.maximum},
            "ci_width_pct": None if simulated else policy.ci_width_pct,
        }

    def launched(self) -> list[Launched]:
        """Return the launches of all cells of the grid."""
        return of_cells(self.grid)

    def rows(self) -> Rows:
        """Return the stored measurements of each cell."""
        return self.rows_of(self.cells())

    def rows_of(self, cells: list[Cell], timed: bool = False) -> Rows:
        """Return the stored measurements of *cells*; *timed*: with the duration of each launch on a real machine."""
        rows = Rows()
        for cell in cells:
            record = self.context.read(cell)
            proved = record.proved()
            status, reason = record.status()
            common = {
                "study": self.study.name, "machine": self.study.machine.name, "simulated": cell.deterministic,
                "suite": cell.suite["name"], "mpi": cell.mpi["name"], "collective": cell.collective, "algorithm": cell.algorithm,
                "parameters": parameter_text(cell.parameters), "mapping": cell.mapping,
                "nodes": cell.nodes, "processes": cell.processes, "cell": cell.digest[:16],
            }  # fmt: skip
            rows.cells.append(
                {
                    **common,
                    "status": status,
                    "reason": reason,
                    "component": (record.proof or {}).get("component"),
                    "bound": record.proof["placed"] is not None if record.proof else None,
                    "launches": len(record.launches),
                    "stop": record.stop(cell, self.policy),
                    "seconds": _largest(record, "seconds"),
                    "peak_memory_mb": _largest(record, "peak_memory_mb"),
                    **({"differing": " ".join(names)} if (names := _differing(record)) else {}),
                }
            )
            for launch in record.launches:
                whole = {**launch.get("library", {}), "launch": launch["launch"], "proved": proved}
                if timed and not cell.deterministic:
                    whole["seconds"] = launch["provenance"].get("seconds")
                if not cell.deterministic and (order := launch["provenance"].get("order")):
                    whole["round"] = order["seed"]
                rows.measurements += [{**common, **sample, **whole} for sample in launch["samples"]]
        return rows


def _differing(record: Record) -> list[str]:
    """Return the environment variables for transports whose values differ between the launches of a cell."""
    launched = [launch["provenance"].get("environment", {}) for launch in record.launches]
    names = sorted({name for environment in launched for name in environment if _TRANSPORT.match(name)})
    return [name for name in names if len({environment.get(name) for environment in launched}) > 1]


def _components(study: Study, catalogue: Catalogue) -> set[str]:
    """Return the components of Open MPI that the study compares as algorithms."""
    found = {component_of(sweep, choice, catalogue) for sweep in study.sweeps for choice in sweep.algorithms}
    return found - {""}


def _without_lacking(study: Study, context: Context) -> tuple[Study, tuple[str, ...]]:
    """Return the study without the components that the installed Open MPI lacks, and their names in alphabetical order."""
    catalogue = context.catalogue
    asked = _components(study, catalogue)
    lacking = asked - context.versions.components() if asked and "openmpi" in context.versions.mpi else set()
    if not lacking:
        return study, ()
    assert isinstance(study.source, Swept)
    kept = [
        replace(
            sweep, algorithms=tuple(c for c in sweep.algorithms if component_of(sweep, c, catalogue) not in lacking)
        )
        for sweep in study.sweeps
    ]
    kept = [sweep for sweep in kept if sweep.algorithms]
    if not kept:
        raise StudyError(f"study {study.name}: the installed Open MPI has none of {', '.join(sorted(lacking))}")
    return replace(study, source=replace(study.source, sweeps=tuple(kept))), tuple(sorted(lacking))


def label_of(choice: Choice, catalogue: Catalogue, collective: str) -> str:
    """Return the display name: the catalogue's label with any parameters: `Chain (fan-out 4, segments of 8 KiB)`."""
    label = catalogue.algorithms[collective][choice.name]["label"]
    return f"{label} ({parameter_words(sorted(choice.parameters))})" if choice.parameters else label


def inside_of(choice: Choice, catalogue: Catalogue, collective: str) -> str:
    """Return the display name of the non-blocking algorithm inside a pipelined one; "" for other algorithms."""
    entry = catalogue.algorithms[collective][choice.name]
    if entry.get("library", {}).get("algorithm") != "pipelined":
        return ""
    return catalogue.algorithms[f"i{collective}"][entry["inside"]]["label"] if "inside" in entry else "Library's choice"


def _collectives(study: Study, catalogue: Catalogue) -> dict[str, Any]:
    """Return, for each collective, algorithms with labels, mappings, processes and sizes, in the order of the study."""
    found: dict[str, Any] = {}
    for sweep in study.sweeps:
        entry = found.setdefault(sweep.collective, {"algorithms": [], "mappings": [], "processes": [], "sizes": []})
        for choice in sweep.algorithms:
            shown = {
                "name": choice.name,
                "parameters": choice.parameter_text,
                "label": label_of(choice, catalogue, sweep.collective),
            }
            if component := component_of(sweep, choice, catalogue):
                shown["component"] = component
            if inside := inside_of(choice, catalogue, sweep.collective):
                shown["inside"] = inside
            _extend(entry["algorithms"], [shown])
        _extend(entry["mappings"], list(sweep.mappings))
        counts = [p * n for p in sweep.processes for n in sweep.nodes] if sweep.per_node else list(sweep.processes)
        _extend(entry["processes"], counts)
        if sweep.sizes:
            _extend(entry["sizes"], list(swept(sweep.sizes)))
        entry["processes"].sort()
        entry["sizes"].sort()
    return found


def _decisions(study: Study, catalogue: Catalogue) -> dict[str, list[dict[str, Any]]]:
    """Return decisions() of each collective in a study of simulated Open MPI, and of the parts of an allreduce."""
    names = [sweep.collective for sweep in study.sweeps if sweep.mpis == ("smpi-openmpi",)]
    names += ["reduce", "bcast"] * ("allreduce" in names)
    default = {name: catalogue.algorithms[name]["default"].get("simulated", {}) for name in names}
    return {name: decisions(name) for name, entry in default.items() if entry.get("algorithm") == "ompi_default"}


def _extend(target: list, values: list) -> None:
    target.extend(value for value in values if value not in target)


def _largest(record: Record, key: str) -> float | None:
    """Return the largest value in the launches' provenance; launches of earlier versions may lack it."""
    return max(
        (value for launch in record.launches if (value := launch["provenance"].get(key)) is not None), default=None
    )
