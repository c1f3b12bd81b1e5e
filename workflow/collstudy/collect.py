"""From the store, or from imported rows, to `study.json`, `cells.csv` and `measurements.csv` (docs/architecture.md)."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .cells import Cell, canonical, swept
from .config import APPLICATIONS, ROOT, Catalogue, Choice, Study
from .store import Damaged, Record, Store, write_atomically
from .toolchain import simulator_version

MEASUREMENT_COLUMNS = [
    "study", "machine", "simulated", "suite", "mpi", "collective", "algorithm", "parameters", "mapping", "nodes", "processes",
    "size_bytes", "launch", "latency_us", "min_latency_us", "max_latency_us", "bandwidth_mb_s", "iterations", "proved", "cell",
    "setup_us", "left_pct",
]  # fmt: skip
#: Columns that only some studies have: the ranks of a pair, what an application says of its run, and of a sampled study
#: how long the launch took (s), where that is time of the machine; of real launches the round of their block.
FURTHER_COLUMNS = ["from_rank", "to_rank", "comm_us", "sweeps", "flops", "residual", "seconds", "round"]
CELL_COLUMNS = [
    "study", "collective", "algorithm", "parameters", "mapping", "nodes", "processes", "status", "reason", "launches", "stop", "cell",
    "seconds", "peak_memory_mb",
]  # fmt: skip


def to_csv(columns: list[str], rows: list[dict[str, Any]]) -> bytes:
    """CSV text with a header; None becomes an empty field, floats keep all their digits."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_text(row.get(column)) for column in columns])
    return stream.getvalue().encode()


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return repr(value) if isinstance(value, float) else str(value)


def label_of(choice: Choice, catalogue: Catalogue, collective: str) -> str:
    """What a reader sees: the catalogue's label with the parameters, if any."""
    label = catalogue.algorithms[collective][choice.name]["label"]
    return f"{label} ({choice.parameter_text})" if choice.parameters else label


def describe(
    study: Study, catalogue: Catalogue, cells: list[Cell], account: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The content of study.json. It changes if and only if the question, the set of cells or the imported files change."""
    machine = study.machine
    document = {
        "name": study.name,
        "title": study.title,
        "question": study.question,
        "simulated": machine.kind == "simulated",
        "machine": {
            "name": machine.name,
            "kind": machine.kind,
            "label": machine.label,
            "description": machine.description,
            "levels": [{k: v for k, v in asdict(level).items() if v is not None} for level in machine.levels],
        },
        "collectives": _collectives(study, catalogue, account),
        "decisions": _decisions(study, catalogue),
        "mappings": {
            name: {key: value for key, value in {"label": name, **entry}.items() if key != "description"}
            for name, entry in catalogue.mappings.items()
        },
        "analysis": study.analysis,
        "how": _how(study, cells),
        "cells": hashlib.sha256(canonical([cell.digest for cell in cells])).hexdigest(),
    }
    if account is not None:
        document["import"] = account
    if study.chapter:
        document["chapter"] = study.chapter
    if study.sampling:
        document["sampling"] = {key: value for key, value in asdict(study.sampling).items() if value is not None}
    return document


def _collectives(study: Study, catalogue: Catalogue, account: dict[str, Any] | None) -> dict[str, Any]:
    """For each collective: algorithms with labels, mappings, processes and sizes, in the order of the study."""
    if account is not None:
        return account["collectives"]
    found: dict[str, Any] = {}
    for sweep in study.sweeps:
        entry = found.setdefault(sweep.collective, {"algorithms": [], "mappings": [], "processes": [], "sizes": []})
        for choice in sweep.algorithms:
            shown = {
                "name": choice.name,
                "parameters": choice.parameter_text,
                "label": label_of(choice, catalogue, sweep.collective),
            }
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
    """decisions() of each collective that a study of the simulated Open MPI has, and of those that it is made of."""
    names = [sweep.collective for sweep in study.sweeps if sweep.mpis == ("smpi-openmpi",)]
    names += ["reduce", "bcast"] * ("allreduce" in names)
    default = {name: catalogue.algorithms[name]["default"].get("simulated", {}) for name in names}
    return {name: decisions(name) for name, entry in default.items() if entry.get("algorithm") == "ompi_default"}


def decisions(collective: str) -> list[dict[str, Any]]:
    """What the simulated Open MPI's default runs, as its table says: {ranks, bytes, algorithm, parameters}; the first row with
    more ranks and more bytes than asked for decides. None stands for any number. A chain there is one (fan-out 1).
    """
    # osu_reduce adds elements, which commutes.
    table = collective + ("_commuting" if collective in ("reduce", "allreduce") else "")
    text = (ROOT / "workflow" / "native" / "coll" / "ompi_decide.c").read_text(encoding="utf-8")
    body = re.search(rf"struct row {table}\[\] = {{(.*?)\n}};", text, re.DOTALL)
    if body is None:
        return []
    rows = re.findall(rf"{{(\w+), (\w+), ompi_{collective}_(\w+)}}", body.group(1))

    def limit(text: str) -> int | None:
        return None if text == "ANY" else int(text)

    return [
        {
            "ranks": limit(ranks),
            "bytes": limit(size),
            "algorithm": name,
            "parameters": "fanout=1" if name == "chain" else "",
        }
        for ranks, size, name in rows
    ]


def _extend(target: list, values: list) -> None:
    target.extend(value for value in values if value not in target)


def _how(study: Study, cells: list[Cell]) -> dict[str, Any]:
    if study.imports:
        keys = ("suite", "suite_version", "mpi", "mpi_version")
        return {key: study.imports.get(key, "unknown") for key in keys} | {"simulator": "", "simulator_version": ""}
    if study.applications:
        return {}  # tracing.py says it
    first = cells[0]
    simulated = first.deterministic
    return {
        "suite": first.suite["name"],
        "suite_version": first.suite["version"],
        "mpi": ", ".join(dict.fromkeys(cell.mpi["name"] for cell in cells)),
        "mpi_version": ", ".join(dict.fromkeys(cell.mpi["version"] for cell in cells)),
        "simulator": "SimGrid SMPI" if simulated else "",
        "simulator_version": (simulator_version() or "") if simulated else "",
        "iterations": sorted({cell.iterations for cell in cells if cell.collective not in APPLICATIONS}),
        "warmup": sorted({cell.warmup for cell in cells if cell.collective not in APPLICATIONS}),
        # Those that a study chose instead of the library's default.
        "barriers": sorted({sweep.barrier for sweep in study.sweeps} - {"default"}),
        "launches": {"min": 1, "max": 1} if simulated else {"min": study.policy.minimum, "max": study.policy.maximum},
        "ci_width_pct": None if simulated else study.policy.ci_width_pct,
    }


def study_document(document: dict[str, Any]) -> bytes:
    """study.json as bytes."""
    return json.dumps(document, indent=1, ensure_ascii=False).encode() + b"\n"


def _proved(record: Record) -> bool | None:
    """Whether the forced algorithm ran and the ranks landed as asked; None where there was nothing to prove."""
    if record.proof is None:
        return None
    if record.proof["used"] is False or record.proof["placed"] is False:
        return False
    return record.proof["used"]


def collect_study(study: Study, cells: list[Cell], store: Store, folder: Path) -> None:
    """Write cells.csv and measurements.csv of a measured or simulated study from the store."""
    cell_rows, rows = [], []
    for cell in cells:
        try:
            record = store.read(cell)
        except Damaged:
            record = Record()
        proved = _proved(record)
        status, reason = _status(record, proved)
        common = {
            "study": study.name, "machine": study.machine.name, "simulated": cell.deterministic, "suite": cell.suite["name"],
            "mpi": cell.mpi["name"], "collective": cell.collective, "algorithm": cell.algorithm,
            "parameters": Choice(cell.algorithm, cell.parameters).parameter_text, "mapping": cell.mapping, "nodes": cell.nodes,
            "processes": cell.processes, "cell": cell.digest[:16],
        }  # fmt: skip
        cell_rows.append(
            {
                **common,
                "status": status,
                "reason": reason,
                "launches": len(record.launches),
                "stop": record.stop(cell, study.policy),
                "seconds": _largest(record, "seconds"),
                "peak_memory_mb": _largest(record, "peak_memory_mb"),
            }
        )
        for launch in record.launches:
            whole = {**launch.get("library", {}), "launch": launch["launch"], "proved": proved}
            if study.sampling and not cell.deterministic:
                whole["seconds"] = launch["provenance"]["seconds"]
            if not cell.deterministic and (order := launch["provenance"].get("order")):
                whole["round"] = order["seed"]
            rows += [{**common, **sample, **whole} for sample in launch["samples"]]
    # measurements.csv last: its presence says that both are there.
    write_atomically(folder / "cells.csv", to_csv(CELL_COLUMNS, cell_rows))
    write_atomically(folder / "measurements.csv", to_csv(_columns_of(rows), rows))


def _largest(record: Record, key: str) -> float | None:
    """The largest of what the launches' provenance says; launches of an earlier version may not say it."""
    return max(
        (value for launch in record.launches if (value := launch["provenance"].get(key)) is not None), default=None
    )


def _columns_of(rows: list[dict[str, Any]]) -> list[str]:
    return MEASUREMENT_COLUMNS + [name for name in FURTHER_COLUMNS if any(name in row for row in rows)]


def _status(record: Record, proved: bool | None) -> tuple[str, str]:
    if record.failure:
        return "failed", record.failure["reason"]
    if not record.launches:
        return "missing", "not measured yet"
    if proved is False:
        detail = record.proof["detail"] if record.proof else ""
        return "unproved", detail or "the ranks did not land on cores of their own"
    return "measured", ""


def collect_import(study: Study, rows: list[dict[str, Any]], account: dict[str, Any], folder: Path) -> None:
    """Write cells.csv and measurements.csv of an imported study; cells that the grid has and the data lack are `missing`."""
    order = {name: index for index, name in enumerate(account["collectives"])}
    algorithms = {c: [a["name"] for a in entry["algorithms"]] for c, entry in account["collectives"].items()}

    def position(row: dict[str, Any]) -> tuple:
        collective = row["collective"]
        algorithm = algorithms[collective].index(row["algorithm"])
        size, pair = row["size_bytes"] or 0, (row.get("from_rank", 0), row.get("to_rank", 0))
        return (order[collective], algorithm, row["mapping"], row["processes"], size, *pair, row["launch"])

    rows = sorted(rows, key=position)
    common = {
        "study": study.name, "machine": study.machine.name, "simulated": False, "suite": study.imports.get("suite", "unknown"),
        "mpi": study.imports.get("mpi", "unknown"), "parameters": "",
    }  # fmt: skip
    write_atomically(
        folder / "cells.csv", to_csv(CELL_COLUMNS, [{**common, **row} for row in _imported_cells(rows, account)])
    )
    write_atomically(folder / "measurements.csv", to_csv(_columns_of(rows), [{**common, **row} for row in rows]))


def _imported_cells(rows: list[dict[str, Any]], account: dict[str, Any]) -> list[dict[str, Any]]:
    """One row per cell of each algorithm's grid (all mappings x the processes it was measured with), with what is there."""
    sizes: dict[tuple, set] = {}
    launches: Counter = Counter()
    nodes: dict[str, int] = {}
    for row in rows:
        key = (row["collective"], row["algorithm"], row["mapping"], row["processes"])
        sizes.setdefault(key, set()).add(row["size_bytes"])
        launches[key] = max(launches[key], row["launch"])
        nodes[row["collective"]] = row["nodes"]
    cells = []
    for collective, entry in account["collectives"].items():
        wanted = set(entry["sizes"]) or {None}
        for algorithm in entry["algorithms"]:
            own = sorted({key[3] for key in sizes if key[:2] == (collective, algorithm["name"])})
            for mapping in entry["mappings"]:
                for processes in own:
                    key = (collective, algorithm["name"], mapping, processes)
                    lacking = sorted(wanted - sizes.get(key, set()), key=lambda size: size or 0)
                    if not lacking:
                        status, reason = "measured", ""
                    elif len(lacking) == len(wanted):
                        status, reason = "missing", "not in the imported data"
                    else:
                        status, reason = (
                            "missing",
                            f"{len(lacking)} of {len(wanted)} sizes are not in the imported data",
                        )
                    cells.append({
                        "collective": collective, "algorithm": algorithm["name"], "mapping": mapping, "nodes": nodes[collective],
                        "processes": processes, "status": status, "reason": reason, "launches": launches[key],
                    })  # fmt: skip
    return cells


def grid_of(rows: list[dict[str, Any]], catalogue: Catalogue) -> dict[str, Any]:
    """The grid that imported rows span, in the form of study.json's `collectives`; the catalogue gives the order."""
    found: dict[str, Any] = {}
    for collective in dict.fromkeys(row["collective"] for row in rows):
        mine = [row for row in rows if row["collective"] == collective]
        present = {row["algorithm"] for row in mine}
        mappings = {row["mapping"] for row in mine}
        found[collective] = {
            "algorithms": [
                {"name": name, "parameters": "", "label": entry["label"]}
                for name, entry in catalogue.algorithms[collective].items()
                if name in present
            ],
            "mappings": [name for name in catalogue.mappings if name in mappings],
            "processes": sorted({row["processes"] for row in mine}),
            "sizes": sorted({row["size_bytes"] for row in mine if row["size_bytes"] is not None}),
        }
    return found


def check_placement(study: Study, cells: list[Cell]) -> None:
    """Raise StudyError for a cell whose ranks do not fit, before anything runs."""
    shapes = {(cell.mapping, cell.cycle, cell.nodes, cell.processes, cell.per_node): cell for cell in cells}
    for cell in shapes.values():
        cell.place(study.machine)
