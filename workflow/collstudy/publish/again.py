"""Use a data package: analyse it again, or measure again and compare."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from collstudy.base.errors import StudyError
from collstudy.base.files import read_json
from collstudy.base.paths import ROOT
from collstudy.store.described import read_study, with_versions
from collstudy.store.measurements import read_measurements


def check(folder: Path) -> None:
    """Raise StudyError if a study cannot be analysed again."""
    if not (folder / "measurements.csv").exists():
        raise StudyError(f"{folder / 'measurements.csv'}: no such file; data packages of ./study publish contain it")
    read_study(folder)


def analyse(folder: Path) -> None:
    """Create tables, models and figures of a study from its existing measurements.csv; nothing is measured or collected."""
    _call(["Rscript", ROOT / "workflow" / "scripts" / "analyse.R", "study", folder])
    print(f"{folder.name}: tables, models and figures", flush=True)


def render(results: Path, studies: list[str], options: Sequence[str] = (), folder: Path | None = None) -> None:
    """Create the report of analysed studies. With *folder*, *results* are in it, and the configuration is that of *folder*."""
    command = [sys.executable, "-m", "collstudy", "--results", results]
    _call([*command, "front", *studies], folder)
    _call([*command, "render", "--studies", *studies, "--output", results / "report", *options], folder)


def _call(command: list[str | Path], folder: Path | None = None) -> None:
    # Sorting in R must not depend on the locale.
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    if folder:
        environment["COLLSTUDY_CONFIG"] = str(folder.absolute() / "config")
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=folder)
    except FileNotFoundError:
        raise StudyError(f"{command[0]} is not on PATH") from None
    if done.returncode != 0:
        *_, last = ["", *done.stderr.splitlines()]
        if last.startswith("error: "):
            raise StudyError(last.removeprefix("error: "))
        raise StudyError(f"{' '.join(map(str, command))} failed:\n{(done.stdout + done.stderr)[-3000:]}")


def medians(path: Path) -> dict[tuple, float]:
    """Return the median over launches of each point in a measurements.csv: of the latency or, if there is none, of the bandwidth."""
    values: dict[tuple, list[float]] = {}
    for row in read_measurements(path):
        values.setdefault(row.point, []).append(row.value)
    return {key: statistics.median(found) for key, found in values.items()}


def compare(published: Path, again: Path) -> list[str]:
    """Compare repeated measurements with the published ones; return one line per study that both folders have.

    If their software differs, the line names both.
    """
    for folder in (published, again):
        if not any(folder.glob("*/measurements.csv")):
            raise StudyError(f"{folder}: no folder of a study with measurements.csv")
    lines = []
    for path in sorted(published.glob("*/measurements.csv")):
        name = path.parent.name
        other = again / name / "measurements.csv"
        if not other.exists():
            lines.append(f"{name}: no repeated measurements")
            continue
        first, second = medians(path), medians(other)
        common = [key for key in first if key in second and first[key] > 0]
        if not common:
            lines.append(f"{name}: no common points")
            continue
        ratios = sorted(second[key] / first[key] for key in common)
        same = sum(second[key] == first[key] for key in common)
        near = sum(0.9 <= ratio <= 1.1 for ratio in ratios)
        hows = [read_json(folder / name / "study.json").get("provenance", {}) for folder in (published, again)]
        used = [with_versions(how, "suite", "mpi") for how in hows]
        lines.append(
            f"{name}: {len(common)} of {len(first)} points measured again; {same} identical, {100 * near / len(ratios):.0f} % within "
            f"10 %; median ratio {statistics.median(ratios):.3f}, from {ratios[0]:.3f} to {ratios[-1]:.3f}"
            + (f"; of {used[0]}, then {used[1]}" if all(used) and used[0] != used[1] else "")
        )
    return lines
