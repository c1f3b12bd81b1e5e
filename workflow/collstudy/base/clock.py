"""Spans of time for people to read, and the time as it is stored."""

from __future__ import annotations

from datetime import UTC, datetime


def clock(seconds: float) -> str:
    """Minutes and seconds, with hours where there are any."""
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def now() -> str:
    """The time as it is stored."""
    return datetime.now(UTC).isoformat(timespec="seconds")
