"""Write the results of a calibration: the fitted file, and the table of fitted points."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from collstudy.base.files import to_csv, write_atomically
from collstudy.base.lazy import lazy
from collstudy.calibration.measured import Key
from collstudy.study.machines import Machine
from collstudy.study.names import POINT_TO_POINT

yaml = lazy("yaml")

#: Keys of a machine's `simulation` that a fit to a ladder of all sizes determines.
FITTED = (
    "eager_limit_bytes", "waited_limit_bytes", "send_us", "receive_us", "poll_us", "gap_us", "busy", "busy_buffered", "turn", "share",
    "share_forward", "share_first", "between_gb_s", "forward_gb_s", "waited_gb_s", "eager_gb_s", "reduce_gb_s", "delay_us", "waited_us",
)  # fmt: skip


def summary(both: dict[Key, tuple[float, float]]) -> dict[str, Any]:
    """Return entries of `about` in the fitted file: number of points, and errors from measured and simulated times (us).

    As in the fit, a measured time counts as at least 0.01 us.
    """
    errors: dict[str, list[float]] = {}
    for key, (measured, simulated) in sorted(both.items(), key=str):
        what = key[2].removeprefix("level-") if key[0] in POINT_TO_POINT else f"{key[0]} {key[1]}"
        if key[0] not in POINT_TO_POINT and key[3] == 2:
            what += " of 2 ranks"  # step 1 reproduces these
        errors.setdefault(what, []).append(abs(simulated / max(measured, 0.01) - 1) * 100)
    return {
        "points": len(both),
        "median_abs_error_pct": {what: round(statistics.median(of), 1) for what, of in errors.items()},
    }


def write_pairs(path: Path, both: dict[Key, tuple[float, float]]) -> None:
    """Write the fitted points, measured and simulated, as a table."""
    columns = ["collective", "algorithm", "mapping", "processes", "size_bytes", "measured_us", "simulated_us"]
    values = ((*key, measured, round(simulated, 4)) for key, (measured, simulated) in both.items())
    write_atomically(path, to_csv(columns, [dict(zip(columns, row, strict=True)) for row in values]))


def _flow(value: Any) -> str:
    return yaml.safe_dump(value, default_flow_style=True, width=10**9, sort_keys=False).removesuffix("...\n").strip()


def _wrapped(name: str, points: list, indent: str) -> str:
    """Format a list of pairs within 120 columns."""
    lines, current = [], f"{indent}{name}: ["
    for index, point in enumerate(points):
        text = f"[{point[0]}, {point[1]:g}]" + ("]" if index == len(points) - 1 else ", ")
        if len(current) + len(text) > 119:
            lines.append(current.rstrip())
            current = indent + "  "
        current += text
    return "\n".join([*lines, current])


def write_fit(path: Path, plain: Machine, fitted: Machine, about: dict[str, Any]) -> None:
    """Write the file with the costs of *fitted* that differ from the machine's own file (*plain*)."""
    lines = [
        f"# Written by `./study calibrate {fitted.name}`, for {fitted.name}.yaml, which names this file; the next calibration replaces it.",
        "# workflow/collstudy/launch/platforms.py explains the costs.",
        "about:",
        *(f"  {key}: {_flow(value)}" for key, value in about.items()),
        "levels:",
    ]
    for before, after in zip(plain.levels, fitted.levels, strict=True):
        costs = {key: getattr(after, key) for key in ("latency_us", "bandwidth_gb_s", "shared_gb_s")}
        changed = {key: value for key, value in costs.items() if value != getattr(before, key)}
        lines.append(f"  {after.name}: {_flow(changed)}")
    if fitted.simulation != plain.simulation:
        lines.append("simulation:")
        for key in [key for key in FITTED if key in fitted.simulation]:
            value = fitted.simulation[key]
            if key in ("send_us", "receive_us"):
                lines.append(_wrapped(key, value, "  "))
            elif key in ("delay_us", "waited_us"):
                lines += [f"  {key}:", *(_wrapped(level, points, "    ") for level, points in value.items())]
            else:
                lines.append(f"  {key}: {_flow(value)}")
    write_atomically(path, ("\n".join(lines) + "\n").encode())
