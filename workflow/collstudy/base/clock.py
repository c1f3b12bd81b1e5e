"""Format durations for people, and time stamps for storage."""

from __future__ import annotations

from datetime import UTC, datetime


def clock(seconds: float) -> str:
    """Format a duration as minutes:seconds, or hours:minutes:seconds from one hour on."""
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def now() -> str:
    """Return the current UTC time in ISO 8601 format, to the second, as it is stored."""
    return datetime.now(UTC).isoformat(timespec="seconds")
