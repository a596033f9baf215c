"""How times of rows are written for users."""

from __future__ import annotations

from datetime import UTC, datetime


def time_text(ms: int) -> str:
    """Returns a time to read, or ms where there is no such date.

    >>> time_text(5), time_text(-(10**18))
    ('1970-01-01T00:00:00.005Z', '-1000000000000000000 ms')
    """
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (OverflowError, OSError, ValueError):
        return f"{ms} ms"
