"""Findings of import checks, and how their texts name series."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from collstudy.base.lazy import lazy

np = lazy("numpy")


@dataclass(frozen=True)
class Finding:
    """One row of import-checks.csv. `how_sure` is certain, likely or possible."""

    check: str
    where: str
    found: str
    how_sure: str
    done: str = "kept as it is; a warning"


def rows_of(findings: list[Finding]) -> list[dict[str, Any]]:
    """Findings as rows of the table."""
    return [asdict(finding) for finding in findings]


def series_name(series: tuple) -> str:
    """A series in the text of a finding."""
    source, collective, algorithm, parameters, mapping = series
    text = f"{collective} {algorithm}" + (f" [{parameters}]" if parameters else "")
    return (f"{source}: " if source else "") + f"{text}, by {mapping}"


def whole_series(source: str, collective: str, algorithm: str) -> str:
    """All mappings and parameters of an algorithm in the text of a finding."""
    return (f"{source}: " if source else "") + f"{collective} {algorithm}"


def percent(value: float) -> str:
    """A part of 1 in percent."""
    return f"{100 * value:.1f} %"


def common(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The values of the cells that both have."""
    known = ~(np.isnan(a) | np.isnan(b))
    return a[known], b[known]
