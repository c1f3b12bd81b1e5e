"""Plausible rows of imported measurements, modifications of them, and the findings of the checks."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from typing import Any

from collstudy.base.paths import ROOT
from collstudy.sources.importing.checking import checks
from collstudy.sources.importing.checking.findings import Finding
from collstudy.sources.importing.series import Launches, Values
from collstudy.study.config import Configuration

MACHINE = Configuration(ROOT / "config").machine("orfeo-thin")
RANKS = (2, 4, 8, 12, 16, 24, 32, 48)
SIZES = [2**k for k in range(21)]
ALGORITHMS = ("linear", "chain", "binomial", "binary_tree")
Rows = list[dict[str, Any]]


def depth(algorithm: str, ranks: int) -> float:
    """Return the approximate number of successive messages in a broadcast."""
    if ranks == 2:
        return 1
    return {
        "linear": ranks - 1, "chain": ranks / 4 + 3, "binomial": math.log2(ranks), "binary_tree": 1.4 * math.log2(ranks + 1),
    }[algorithm]  # fmt: skip


def sound(source: str = "", seed: int = 1, algorithms: tuple[str, ...] = ALGORITHMS) -> Rows:
    """Return broadcasts by core and by node on two nodes of 24 cores, with 1.5 % noise, printed with two decimals."""
    rng = random.Random(seed)
    rows = []
    for algorithm in algorithms:
        for mapping in ("core", "node"):
            for ranks in range(2, 49, 2):
                network = mapping == "node" or ranks > 24
                for size in SIZES:
                    message = (
                        (0.9 if network else 0.2) + size / (12000 if network else 20000) + 0.02 * math.sqrt(size) / 8
                    )
                    us = message * depth(algorithm, ranks) * rng.gauss(1, 0.015)
                    rows.append({
                        "collective": "bcast", "algorithm": algorithm, "mapping": mapping, "nodes": 2, "processes": ranks,
                        "size_bytes": size, "launch": 1, "latency_us": round(us, 2), "min_latency_us": round(0.8 * us, 2),
                        "max_latency_us": round(1.2 * us, 2), "statistic": "mean_over_ranks", "file": f"{source}.csv",
                        "line": len(rows) + 2, "path": f"/{source}.csv", **({"source": source} if source else {}),
                    })  # fmt: skip
    return rows


def made(
    algorithm: str, us: Callable[[int, Any], float], ranks: Iterable[int] = RANKS, sizes: Iterable[int | None] = SIZES,
    mapping: str = "core", source: str = "", noise: float = 0.015, seed: int = 1, collective: str = "bcast",
) -> Rows:  # fmt: skip
    """Return rows that take *us* (ranks, size), printed with two decimals."""
    rng = random.Random(f"{algorithm} {mapping} {seed}")
    return [
        {"collective": collective, "algorithm": algorithm, "mapping": mapping, "nodes": 2, "processes": count, "size_bytes": size,
         "launch": 1, "latency_us": round(us(count, size) * rng.gauss(1, noise), 2), "file": f"{source}.csv", "line": 2,
         "path": f"/{source}.csv", **({"source": source} if source else {})}
        for count in ranks for size in sizes
    ]  # fmt: skip


def found(
    rows: Rows,
    others: dict[str, Rows] | None = None,
    problems: dict[str, int] | None = None,
    same_machine: tuple[str, ...] = (),
    mpi: str = "unknown",
    version: str = "unknown",
) -> dict[str, list[Finding]]:
    """Return the findings by check."""
    by_check: dict[str, list[Finding]] = {}
    compared = {name: Values.of(Launches(of).timed()) for name, of in (others or {}).items()}
    for finding in checks.check(rows, problems or {}, MACHINE, compared, same_machine, mpi, (version,)):
        by_check.setdefault(finding.check, []).append(finding)
    return by_check


def accused(rows: Rows, check: str, others: dict[str, Rows] | None = None) -> dict[str, str]:
    """Return the findings of a check: what is said about each series."""
    return {finding.where: finding.found for finding in found(rows, others).get(check, [])}


def series(*algorithms: str, mappings: tuple[str, ...] = ("core", "node")) -> set[str]:
    """Return how findings name series."""
    return {f"bcast {algorithm}, by {mapping}" for algorithm in algorithms for mapping in mappings}


def only(**values: Any) -> Callable[[dict[str, Any]], bool]:
    """Return a function that selects the rows with these values."""
    return lambda row: all(row[name] == value for name, value in values.items())


def given(rows: Rows, **values: Any) -> Rows:
    """Return copies of the rows with these values."""
    return [row | values for row in rows]


def changed(
    rows: Rows, wanted: Callable[[dict[str, Any]], bool], change: Callable[[dict[str, Any]], dict[str, Any]]
) -> Rows:
    return [row | change(row) if wanted(row) else row for row in rows]


def scaled(factor: float) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda row: {name: row[name] * factor for name in ("latency_us", "min_latency_us", "max_latency_us")}
