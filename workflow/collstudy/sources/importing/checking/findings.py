"""Findings of import checks, and the names of series in their texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from collstudy.base.lazy import lazy
from collstudy.sources.importing.series import Series

np = lazy("numpy")


@dataclass(frozen=True)
class Finding:
    """One row of import-checks.csv. `confidence` is certain, likely or possible.

    `about` is the series concerned, the series of two sources that disagree, or a text.
    """

    check: str
    about: str | tuple[Series, ...]
    found: str
    confidence: str
    action: str = "kept unchanged"

    @property
    def where(self) -> str:
        """Return `about` in words."""
        if isinstance(self.about, str):
            return self.about
        name = self.about[0][1:]
        if len(self.about) == 1 or any(series[1:] != name for series in self.about):
            return " and ".join(map(series_name, self.about))
        return f"{series_name(('', *name))}: {' and '.join(series[0] for series in self.about)}"


def rows_of(findings: list[Finding]) -> list[dict[str, Any]]:
    """Convert findings to rows of the table."""
    columns = ("check", "where", "found", "confidence", "action")
    return [{column: getattr(finding, column) for column in columns} for finding in findings]


def series_name(series: Series) -> str:
    """Return the name of a series for the text of a finding."""
    *whole, parameters, mapping = series
    return whole_series(*whole) + (f" [{parameters}]" if parameters else "") + f", by {mapping}"


def whole_series(source: str, collective: str, algorithm: str) -> str:
    """Return the name that stands for all mappings and parameters of an algorithm in the text of a finding."""
    return (f"{source}: " if source else "") + f"{collective} {algorithm}"


def named(series: Series, study: str) -> str:
    """Return the words for the source of a series in another study."""
    return f"study {study}" + f" ({series[0]})" * bool(series[0])


def percent(value: float) -> str:
    """Format a fraction in percent."""
    return f"{100 * value:.1f} %"


def common(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of the cells that both series have."""
    known = ~(np.isnan(a) | np.isnan(b))
    return a[known], b[known]


def difference_between(a: np.ndarray, b: np.ndarray) -> tuple[int, float, float]:
    """Return the number of common cells, and the median and 90th percentile of |a / b - 1|."""
    a, b = common(a, b)
    if not len(a):
        return 0, np.nan, np.nan
    difference = np.abs(a / b - 1)
    return len(a), float(np.median(difference)), float(np.quantile(difference, 0.9))
