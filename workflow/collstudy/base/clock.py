"""Format durations for people, and time stamps for storage."""

from __future__ import annotations

from datetime import UTC, datetime


def clock(seconds: float) -> str:
    """Format a duration with its units: 4 s, 1 min 54 s, 2 h 5 min."""
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def now() -> str:
    """Return the current UTC time in ISO 8601 format, to the second, as it is stored."""
    return datetime.now(UTC).isoformat(timespec="seconds")
