"""Convert imported rows to the grid that they span, and to the rows of cells.csv and measurements.csv."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from statistics import median
from typing import Any

from collstudy.sources.decisions import run_by_default
from collstudy.sources.importing.checking.of_default import other_defaults
from collstudy.sources.source import Rows
from collstudy.study.catalogue import Catalogue
from collstudy.study.description import Imported, Study
from collstudy.study.words import parameter_words

#: Broadcasts that are one message between two ranks.
ONE_MESSAGE = ("default", "linear", "chain", "pipeline", "binary_tree", "binomial", "knomial")
#: A default whose times differ by more than this factor (median) from those of the algorithms that Open MPI's decision tables name is
#: that of another library, such as HCOLL. Measured: at most 1.26.
ANOTHER_LIBRARY = 1.5


def rows_of_import(study: Study, rows: list[dict[str, Any]], account: dict[str, Any]) -> Rows:
    """Return the rows of both files, from the rows that the study uses; cells of the grid without data are `missing`."""
    assert isinstance(study.source, Imported)
    order = {name: index for index, name in enumerate(account["collectives"])}
    algorithms = {
        c: [(a["name"], a["parameters"]) for a in entry["algorithms"]] for c, entry in account["collectives"].items()
    }

    def position(row: dict[str, Any]) -> tuple:
        collective = row["collective"]
        algorithm = algorithms[collective].index((row["algorithm"], row.get("parameters", "")))
        size, pair = row["size_bytes"] or 0, (row.get("from_rank", 0), row.get("to_rank", 0))
        return (order[collective], algorithm, row["mapping"], row["processes"], size, *pair, row["launch"])

    rows = sorted((row for row in rows if "left_out" not in row), key=position)
    common = {
        "study": study.name, "machine": study.machine.name, "simulated": False, "suite": study.source.suite,
        "mpi": study.source.mpi, "parameters": "",
    }  # fmt: skip
    cells = [{**common, **row} for row in _imported_cells(rows, account)]
    measurements = [{**common, **row} for row in rows]
    add_what_ran(study.source, measurements)
    return Rows(cells, measurements)


def add_what_ran(said: Imported, rows: list[dict[str, Any]]) -> None:
    """Add `runs` to the rows of Open MPI 4.1 that sent the messages of another algorithm than the one they name: to the default, by the
    decision tables unless its times contradict them, and to broadcasts between two ranks.
    """
    # A publication's names are not what ran.
    open_mpi = "".join(said.mpi.lower().split()) == "openmpi"
    if said.printed or not open_mpi or not all(version.startswith("4.1") for version in said.versions):
        return
    times, defaults = {}, []
    for row in rows:
        if row["parameters"]:
            continue
        collective, name, processes = row["collective"], row["algorithm"], row["processes"]
        if name == "default":
            name = run_by_default(collective, processes, row["size_bytes"] or 0)
            defaults.append((row, name))
        else:
            times[_place(row, name)] = row.get("latency_us")
        if collective == "bcast" and processes == 2 and row["algorithm"] in ONE_MESSAGE:
            name = "linear"
        if name not in ("", row["algorithm"]):
            row["runs"] = name
    ratios = defaultdict(list)
    for row, name in defaults:
        same = times.get(_place(row, name))
        if same and row.get("latency_us"):
            ratios[row.get("source") or "", row["collective"]].append(math.log(row["latency_us"] / same))
    others = other_defaults(rows) if defaults else set()
    others |= {place for place, of in ratios.items() if abs(median(of)) > math.log(ANOTHER_LIBRARY)}
    for row, _ in defaults:
        if (row.get("source") or "", row["collective"]) in others:
            row.pop("runs", None)


def _place(row: dict[str, Any], algorithm: str) -> tuple:
    # Without the launch: those of one algorithm are numbered over all authors.
    return (
        algorithm,
        *(row.get(name) for name in ("collective", "mapping", "nodes", "processes", "size_bytes", "source")),
    )


def _imported_cells(rows: list[dict[str, Any]], account: dict[str, Any]) -> list[dict[str, Any]]:
    """Return one row, with its status, per cell of each algorithm's grid: all mappings and the process counts with data."""
    sizes: dict[tuple, set] = {}
    points: Counter = Counter()
    nodes: dict[tuple, set[int]] = {}
    for row in rows:
        named = (row["collective"], row["algorithm"], row.get("parameters", ""))
        key = (*named, row["mapping"], row["processes"], row["nodes"])
        sizes.setdefault(key, set()).add(row["size_bytes"])
        points[key, row["size_bytes"], row.get("from_rank"), row.get("to_rank")] += 1
        nodes.setdefault((row["collective"], row["mapping"], row["processes"]), set()).add(row["nodes"])
        nodes[row["collective"],] = {row["nodes"]}
    launches: Counter = Counter()
    for (key, *_), count in points.items():
        launches[key] = max(launches[key], count)
    cells = []
    for collective, entry in account["collectives"].items():
        wanted = set(entry["sizes"]) or {None}
        for algorithm in entry["algorithms"]:
            named = (collective, algorithm["name"], algorithm["parameters"])
            own = sorted({key[4] for key in sizes if key[:3] == named})
            for mapping, processes in itertools.product(entry["mappings"], own):
                for count in sorted(nodes.get((collective, mapping, processes), nodes[collective,])):
                    key = (*named, mapping, processes, count)
                    status, reason = _status(sizes.get(key, set()), wanted)
                    cells.append({
                        "collective": collective, "algorithm": algorithm["name"], "parameters": algorithm["parameters"],
                        "mapping": mapping, "nodes": count, "processes": processes, "status": status, "reason": reason,
                        "launches": launches[key],
                    })  # fmt: skip
    return cells


def _status(sizes: set, wanted: set) -> tuple[str, str]:
    """Return the status of a cell with data for *sizes*, and the reason if it lacks some that are wanted."""
    lacking = wanted - sizes
    if not lacking:
        return "measured", ""
    if lacking == wanted:
        return "missing", "not in the imported data"
    return "missing", f"{len(lacking)} of {len(wanted)} sizes are not in the imported data"


def grid_of(rows: list[dict[str, Any]], catalogue: Catalogue, study: Study) -> dict[str, Any]:
    """Return the grid that imported rows span, as in study.json's `collectives`, in the order of the catalogue.

    A label is the catalogue's, or the name printed in a publication (`import.printed`).
    """
    found: dict[str, Any] = {}
    for collective in dict.fromkeys(row["collective"] for row in rows):
        mine = [row for row in rows if row["collective"] == collective]
        present = {(row["algorithm"], row.get("parameters", "")) for row in mine}
        printed = study.source.printed.get(collective, {})
        mappings = {row["mapping"] for row in mine}
        found[collective] = {
            "algorithms": [
                {
                    "name": name,
                    "parameters": parameters,
                    "label": printed.get(name, entry["label"]) + (f" ({_words(parameters)})" if parameters else ""),
                }
                for name, entry in catalogue.algorithms[collective].items()
                for parameters in sorted((text for its, text in present if its == name), key=_values)
            ],
            "mappings": [name for name in catalogue.mappings if name in mappings],
            "processes": sorted({row["processes"] for row in mine}),
            "sizes": sorted({row["size_bytes"] for row in mine if row["size_bytes"] is not None}),
        }
    return found


def _values(parameters: str) -> list[tuple[str, int, str]]:
    """Return a sort key for `key=value;...` that orders 8192 before 65536."""
    pairs = (part.partition("=") for part in parameters.split(";"))
    return [(name, len(value), value) for name, _, value in pairs]


def _words(parameters: str) -> str:
    """Format `key=value;...` in words."""
    pairs = (part.partition("=") for part in parameters.split(";"))
    return parameter_words((name, value) for name, _, value in pairs)
