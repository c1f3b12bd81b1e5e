"""The confidence interval of the median of a small number of launches."""

from __future__ import annotations

import math
from statistics import median


def median_interval(values: list[float]) -> tuple[float, float] | None:
    """Return the distribution-free 95 % confidence interval of the median from order statistics (Le Boudec 2010, Theorem 2.1).

    The interval [x(j), x(n+1-j)] covers the median with probability 1 - 2 P(B <= j - 1), B ~ Binomial(n, 1/2); the largest j
    that reaches 95 % is used. With fewer than 6 values no interval reaches 95 %: the whole range is returned, which covers
    the median with probability 1 - 2^(1-n). Returns None for fewer than two values.
    """
    ordered = sorted(values)
    n = len(ordered)
    if n < 2:
        return None
    j, tail = 1, 0.5**n
    while j + 1 <= n // 2:
        tail += math.comb(n, j) * 0.5**n
        if 1 - 2 * tail < 0.95:
            break
        j += 1
    return ordered[j - 1], ordered[n - j]


def interval_width_pct(values: list[float]) -> float | None:
    """Return the width of the median's confidence interval in percent of the median; None for fewer than two values."""
    interval = median_interval(values)
    centre = median(values) if values else 0
    if interval is None or centre <= 0:
        return None
    return 100 * (interval[1] - interval[0]) / centre
