"""Checks of how imported times are printed: limits that replaced other times, and the resolution of the timer."""

from __future__ import annotations

from collections.abc import Iterator

from collstudy.base.lazy import lazy
from collstudy.sources.importing.checking.findings import Finding
from collstudy.sources.importing.series import Launches

np = lazy("numpy")

#: Equal times are a limit if LIMITED or more, of at least LIMIT us, are the largest or smallest of a series (measured: at most 2 are
#: the largest, and 4 the smallest of such size), printed to a hundredth or better.
LIMITED, LIMIT = 6, 3.0
#: The resolution of the times is too coarse if COARSE_PART of a series are at most COARSE steps long. The shortest broadcasts of all
#: authors take 0.12 us, printed with two decimals: 12 steps.
COARSE, COARSE_PART, COARSE_CELLS = 5, 0.2, 20


def limits(timed: Launches) -> Iterator[Finding]:
    """Find series of which several times are exactly the largest, or the smallest: they were cut to a limit."""
    for series, mine in timed.by_series():
        for limit, words in ((mine.us.max(), "largest"), (mine.us.min(), "smallest")):
            equal = int((mine.us == limit).sum())
            if limit >= LIMIT and equal in range(LIMITED, len(mine)) and limit >= 100 * _step(mine.us):
                yield Finding(
                    "times clamped", (series,),
                    f"{equal:,} of {len(mine):,} times are exactly {limit:g} us, the {words}: a limit replaced the measured ones",
                    "certain",
                )  # fmt: skip


def resolution(timed: Launches) -> Iterator[Finding]:
    """Find series of which many times are only a few steps of their timer (or of their print-out) long."""
    for series, mine in timed.by_series():
        step = _step(mine.us)
        coarse = float((mine.us <= COARSE * step * 1.001).mean())
        if len(mine) >= COARSE_CELLS and coarse >= COARSE_PART:
            yield Finding(
                "timer resolution", (series,),
                f"all {len(mine):,} times are multiples of {step:g} us, and {100 * coarse:.0f} % of them are at most {COARSE} times as "
                "long: smaller differences cannot be seen", "certain",
            )  # fmt: skip


def _step(times: np.ndarray) -> float:
    """Return the largest power of ten of which all times are multiples."""
    return next(
        (
            10.0**-k
            for k in range(-3, 9)
            if times.min() * 10.0**k > 0.5
            and np.allclose(np.round(times * 10.0**k), times * 10.0**k, rtol=1e-9, atol=1e-6)
        ),
        0.0,
    )
