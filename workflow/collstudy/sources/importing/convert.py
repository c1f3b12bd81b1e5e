"""Convert the fields of a row in an imported file to checked names and numbers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from collstudy.base.errors import StudyError, allowed
from collstudy.base.lazy import lazy
from collstudy.sources.importing.strict import LARGEST, LONGEST_US, SIZE_UNITS, UNITS, Refused, decimal, positive, whole
from collstudy.study.catalogue import Catalogue
from collstudy.study.description import Study
from collstudy.study.machines import Machine
from collstudy.study.names import POINT_TO_POINT, SIZED
from collstudy.study.openmpi_numbers import USES, algorithm_of, parameters_of
from collstudy.study.words import parameter_text

np = lazy("numpy")

#: The two cores of a ladder's pair, numbered within their nodes, and these nodes.
PLACES = ("from_core", "to_core", "from_node", "to_node")
TIMES = ("latency_us", "min_latency_us", "max_latency_us")
#: Formats whose rows include collective and statistic, with times in us.
OWN = ("pico", "compact")


def convert(
    raw: dict[str, Any],
    entry: dict[str, Any],
    path: Path,
    study: Study,
    catalogue: Catalogue,
    names: dict[tuple, dict[str, Any]],
) -> dict[str, Any]:
    """Convert one row to checked names and numbers; *names* caches the converted names of the file. `ignored` has the parameters that the
    row gives, but its algorithm does not take.

    Raises Refused for a row that cannot be used, StudyError for an unknown name.
    """
    own = entry.get("format") in OWN
    collective = raw["collective"] if own else entry["collective"]
    where = f"{path}: imported by {study.file}"
    key = (collective, raw.get("algorithm"), raw.get("mapping"), raw.get("parameters"), *map(raw.get, USES))
    if key not in names:
        names[key] = _named(raw, entry, collective, study, catalogue, where)
    row: dict[str, Any] = {"collective": collective, **names[key]}
    if "source" in entry:
        row["source"] = entry["source"]
    machine = study.machine
    if collective == "pairs":
        raw = {"processes": machine.nodes * machine.cores_per_node, **raw}
        row["mapping"] = "core"
    elif collective in POINT_TO_POINT:
        raw = {"processes": 2, **raw}
    if row["mapping"] not in catalogue.mappings:
        if "mapping" not in raw:
            raise StudyError(
                f"{where}: no column, constant or part of the file's name gives mapping{allowed(catalogue.mappings)}"
            )
        raise StudyError(f"{where}: mapping {row['mapping']!r} is unknown{allowed(catalogue.mappings)}")
    row |= _counts(raw, machine)
    row["size_bytes"] = size_of(str(raw["size_bytes"]), entry.get("size_unit", "B")) if collective in SIZED else None
    row |= _values(raw, entry)
    if collective == "pairs":
        row |= _ranks_of(raw, machine, where)
        if row["from_rank"] == row["to_rank"]:
            raise Refused("core is paired with itself")
    statistic = entry.get("statistic", "mean_over_ranks") + "_median" * (entry.get("rows") == "iterations")
    row["statistic"] = raw.get("statistic", "slowest_rank_median" if own else statistic)
    return row | ({"run": raw["run"]} if own and _given(raw, "run") else {})


def size_of(text: str, unit: str | int = "B", what: str = "size_bytes") -> int:
    """Convert a size with or without a unit to bytes: 4096, 4 KiB, 4KB, 4K (always powers of 1024). A *unit* may be a number of bytes.
    Raises Refused.
    """
    found = re.fullmatch(r"\s*([\d.]+)\s*([KMG])?(i?B)?\s*", text, re.IGNORECASE | re.ASCII)
    if found and (found.group(2) or found.group(3)):
        text, unit = found.group(1), f"{(found.group(2) or '').upper()}iB" if found.group(2) else "B"
    if unit == "B":
        return whole(text, what)
    if isinstance(unit, int):
        return unit * whole(text, what)
    return whole(repr(decimal(text, what) * SIZE_UNITS[unit]), what)


def _counts(raw: dict[str, Any], machine: Machine) -> dict[str, Any]:
    """Return nodes, launch, iterations and processes of a row. Raises Refused for more processes than cores."""
    row: dict[str, Any] = {}
    if product := re.fullmatch(r"\s*(\d+)\s*[x*\u00d7]\s*(\d+)\s*", str(raw.get("processes", "")), re.IGNORECASE):
        raw = {**raw, "nodes": product.group(1), "processes_per_node": product.group(2)}
    if "processes_per_node" in raw:
        nodes = whole(str(raw["nodes"]), "nodes", machine.nodes)
        raw = {**raw, "processes": nodes * whole(str(raw["processes_per_node"]), "processes_per_node")}
    for name, largest in (("nodes", machine.nodes), ("launch", 10**6), ("iterations", 10**9)):
        # Launches are also numbered from 0; see number_launches().
        row[name] = whole(str(raw[name]), name, largest, name != "launch") if _given(raw, name) else None
    row["nodes"] = row["nodes"] or machine.nodes
    row["processes"] = whole(str(raw["processes"]), "processes")
    cores = row["nodes"] * machine.cores_per_node
    if row["processes"] > cores and not machine.oversubscribe:
        raise Refused(f"processes are more than the {cores} cores of {row['nodes']} nodes")
    return row


def _values(raw: dict[str, Any], entry: dict[str, Any]) -> dict[str, Any]:
    """Return times (us) and bandwidth of a row. Raises Refused for impossible values."""
    factor = UNITS[entry.get("unit", "us")]
    row: dict[str, Any] = dict.fromkeys(TIMES)
    for name in (*TIMES, "q1_us", "q3_us"):
        if _given(raw, name):
            value = positive(str(raw[name]), name, LONGEST_US / factor)
            row[name] = value if entry.get("format") in OWN else value * factor
    name = "bandwidth_mb_s"
    row[name] = positive(str(raw[name]), name, LARGEST) if _given(raw, name) else None
    if row["latency_us"] is None and row["bandwidth_mb_s"] is None:
        raise Refused("latency_us is empty")
    low, high = row["min_latency_us"], row["max_latency_us"]
    if low is not None and high is not None and low > high:
        raise Refused("minimum is above the maximum")
    return row


def _given(raw: dict[str, Any], name: str) -> bool:
    return raw.get(name) not in (None, "")


def _named(
    raw: dict[str, Any], entry: dict[str, Any], collective: str, study: Study, catalogue: Catalogue, where: str
) -> dict[str, Any]:
    """Return algorithm, parameters and mapping of a row, as names of the catalogue. Raises StudyError for unknown ones."""
    algorithm, mapping = str(raw.get("algorithm", "default")), str(raw.get("mapping", ""))
    names = entry.get("algorithms", {})
    for name, text, ours in (("algorithm", algorithm, names), ("mapping", mapping, entry.get("mappings", {}))):
        if name in raw and not text and "" not in ours:
            raise Refused(f"{name} is empty")
    if names == "numbers":
        try:
            number = whole(algorithm, "algorithm", 1000, smallest=0)
        except Refused as reason:
            raise StudyError(
                f"{where}: {reason}: {algorithm!r}; `algorithms: numbers` requires Open MPI's numbers"
            ) from None
        version = str(entry.get("mpi_version", study.source.mpi_version))
        if version == "unknown":
            raise StudyError(
                f"{where}: `algorithms: numbers` needs import.mpi_version: numbers differ between versions"
            )
        try:
            named = algorithm_of(catalogue, collective, number, version)
        except StudyError as problem:
            raise StudyError(f"{where}: {problem}") from None
    else:
        named = names.get(algorithm, algorithm)
        known = catalogue.algorithms.get(collective, {})
        if named not in known:
            raise StudyError(
                f"{where}: algorithm {algorithm!r} is not mapped to one in the catalogue{allowed({*names, *known})}"
            )
    found = {"algorithm": named, "mapping": entry.get("mappings", {}).get(mapping, mapping)}
    given = _parameters(raw)
    taken = _taken(collective, catalogue.algorithms.get(collective, {}).get(found["algorithm"], {}))
    text = raw.get("parameters") or parameter_text((name, of) for name, of in given.items() if name in taken)
    columns = entry.get("columns", {})
    used = [columns[name] for name in given.keys() & taken & columns.keys()]
    # A column of the fan-out of chains and the radix of trees is one of both.
    ignored = sorted(name for name in given.keys() - taken if columns.get(name) not in used)
    return found | ({"parameters": text} if text else {}) | ({"ignored": ignored} if ignored else {})


def _parameters(raw: dict[str, Any]) -> dict[str, int]:
    """Return the parameters of the algorithm that a row gives; 0 is none. Raises Refused."""
    texts = {name: str(raw[name]) for name in USES if _given(raw, name)}
    given = {name: text for name, text in texts.items() if text.strip() != "0"}
    return {
        name: size_of(text, what=name) if name == "segment_bytes" else whole(text, name) for name, text in given.items()
    }


def _taken(collective: str, entry: dict[str, Any]) -> set[str]:
    """Return the parameters that an algorithm takes in any MPI library, from its entry in the catalogue."""
    libraries = [settings for settings in entry.values() if isinstance(settings, dict)]
    return {*parameters_of(collective, entry.get("openmpi", {}))}.union(*libraries) & USES.keys()


def _ranks_of(raw: dict[str, Any], machine: Machine, where: str) -> dict[str, int]:
    """Return the ranks of a pair of cores, for ranks mapped by core: all cores of a node, then those of the next."""
    for name in ("from_core", "to_core"):
        if name not in raw:
            raise StudyError(f"{where}: pairs need a column for {name}")
    at = {name: whole(str(raw.get(name, 0)), name, smallest=0) for name in PLACES}
    for name, count in (("core", machine.cores_per_node), ("node", machine.nodes)):
        for end in ("from", "to"):
            number = at[f"{end}_{name}"]
            if not 0 <= number < count:
                raise StudyError(
                    f"{where}: {end}_{name} is {number}, machine {machine.name} has {name}s 0 to {count - 1}"
                )
    return {f"{end}_rank": at[f"{end}_node"] * machine.cores_per_node + at[f"{end}_core"] for end in ("from", "to")}
