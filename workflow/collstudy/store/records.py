"""A record of the store: the launches of a cell, trace, replay or run, with their summary and their validation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from collstudy.base.errors import StudyError
from collstudy.base.statistics import interval_width_pct
from collstudy.study.description import Policy
from collstudy.study.work import Work


class Damaged(StudyError):
    """A stored file was changed after it was written, or its content belongs to another cell than its name."""


@dataclass(frozen=True)
class Summary:
    """Summary of a cell for planning: number of launches, width of the widest confidence interval (percent), whether the newest
    attempt failed, mean duration of a launch (s; of a program's run without launches, that of its other variants), and whether
    verification found that something else was measured.
    """

    count: int = 0
    width: float | None = None
    failed: bool = False
    seconds: float | None = None
    unproved: bool = False

    @property
    def status(self) -> str:
        """Return `failed`, `missing`, `unproved` (verification failed) or `measured`."""
        if self.failed or not self.count:
            return "failed" if self.failed else "missing"
        return "unproved" if self.unproved else "measured"

    def stop(self, work: Work, policy: Policy) -> str | None:
        """Return why no further launch is needed (`deterministic`, `narrow` or `limit`), or None if one is needed."""
        if work.deterministic:
            return "deterministic" if self.count else None
        if self.count >= policy.maximum:
            return "limit"
        if self.count >= policy.minimum and self.width is not None and self.width <= policy.ci_width_pct:
            return "narrow"
        return None


@dataclass(frozen=True)
class Record:
    """The stored data of a cell, a trace, a replay or a run.

    `launches`: list of {launch, samples: [{size_bytes, latency_us, ...}], provenance}; `proof`: see proof.py, or None;
    `failure`: {reason, log, time} of the newest attempt, or None; `about`: the content of `about.json` of a trace or a replay.
    """

    launches: tuple[dict[str, Any], ...] = ()
    proof: dict[str, Any] | None = None
    failure: dict[str, Any] | None = None
    about: dict[str, Any] | None = None

    def interval_width_pct(self) -> float | None:
        """Return the widest confidence interval of the median over all message sizes (and pairs), in percent of the median."""
        by_row: dict[Any, list[float]] = {}
        for launch in self.launches:
            for sample in launch["samples"]:
                value = sample.get("latency_us", sample.get("bandwidth_mb_s"))
                row = (sample.get("size_bytes"), sample.get("from_rank"), sample.get("to_rank"))
                by_row.setdefault(row, []).append(value)
        widths = [interval_width_pct(values) for values in by_row.values()]
        return None if not widths or None in widths else max(widths)

    def stop(self, work: Work, policy: Policy) -> str | None:
        """Return why no further launch is needed (`deterministic`, `narrow` or `limit`), or None if one is needed."""
        count = len(self.launches)
        # The interval is expensive to compute and matters only between the minimum and the maximum number of launches.
        width = self.interval_width_pct() if policy.minimum <= count < policy.maximum else None
        return Summary(count, width).stop(work, policy)

    def proved(self) -> bool | None:
        """Return whether the forced algorithm ran and the ranks were placed as requested; None if there was nothing to verify."""
        if self.proof is None:
            return None
        return False if self.proof["placed"] is False else self.proof["used"]

    def status(self) -> tuple[str, str]:
        """Return the status (as Summary.status) and its reason."""
        if self.failure:
            return "failed", self.failure["reason"]
        if not self.launches:
            return "missing", "not measured yet"
        if self.proved() is False:
            detail = self.proof["detail"] if self.proof else ""
            return "unproved", detail or "the ranks were not placed on cores of their own"
        return "measured", ""

    def content(self) -> dict[str, Any]:
        """Return the measurements as plain JSON values: the part of the file that its digest covers."""
        return {"proof": self.proof, "failure": self.failure, "launches": list(self.launches)}

    def summary(self) -> Summary:
        """Return the summary of the record."""
        took = [s for launch in self.launches if (s := launch.get("provenance", {}).get("seconds")) is not None]
        mean = sum(took) / len(took) if took else None
        return Summary(
            len(self.launches), self.interval_width_pct(), self.failure is not None, mean, self.proved() is False
        )


def check_record(record: Record, row_sizes: Sequence[int | None]) -> None:
    """Raise ValueError, with the problem, if the launches cannot be those of a cell or run with these `row_sizes`."""
    numbers = [launch["launch"] for launch in record.launches]
    if numbers != list(range(1, len(numbers) + 1)):
        raise ValueError(f"its launches are numbered {numbers}, not from 1 on")
    for launch in record.launches:
        where = f"launch {launch['launch']}"
        sizes = [sample.get("size_bytes") for sample in launch["samples"]]
        if sizes != row_sizes:
            raise ValueError(f"{where} has the message sizes {_short(sizes)}, not {_short(row_sizes)}")
        for sample in launch["samples"]:
            if "latency_us" not in sample and "bandwidth_mb_s" not in sample:
                raise ValueError(f"{where} has neither a latency nor a bandwidth at size {sample.get('size_bytes')}")
            for name, value in sample.items():
                # A pipeline of operations may lack a size (None); every other value must be a number.
                if value is not None or name in ("latency_us", "bandwidth_mb_s"):
                    _check_number(value, f"{where}: {name}")
        for part in ("library", "provenance"):
            facts = launch.get(part, {} if part == "library" else None)
            if not isinstance(facts, dict):
                raise ValueError(f"{where} has no {part}")
            for name in ("seconds", "peak_memory_mb", "setup_us", "left_pct"):
                if facts.get(name) is not None:
                    _check_number(facts[name], f"{where}: {name}")
    if record.proof is not None:
        for key in ("used", "placed"):
            if record.proof[key] not in (True, False, None):
                raise ValueError(f"proof.{key} is {_short(record.proof[key])}")
        if not isinstance(record.proof["detail"], str):
            raise ValueError("proof.detail is not a text")
    if record.failure is not None and not isinstance(record.failure["reason"], str):
        raise ValueError("failure.reason is not a text")


def _check_number(value: Any, where: str) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value < 0:
        raise ValueError(f"{where} is {_short(value)}, not a finite number from 0 on")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:80]}..."
