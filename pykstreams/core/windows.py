"""Windows of time as values: a window, and a key inside one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Generic, TypeVar

K = TypeVar("K")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """A span of time in ms since the epoch.

    The end of a time window is exclusive, that of a session window inclusive; ``overlap`` takes both as exclusive
    for time windows, so session code compares by itself.
    """

    start: int
    end: int

    def __post_init__(self) -> None:
        if self.start < 0:
            raise ValueError(f"window start is {self.start}; it must not be negative")
        if self.end < self.start:
            raise ValueError(f"window end {self.end} lies before its start {self.start}")

    @property
    def start_time(self) -> datetime:
        return _EPOCH + timedelta(milliseconds=self.start)

    @property
    def end_time(self) -> datetime:
        return _EPOCH + timedelta(milliseconds=self.end)

    def overlap(self, other: Window) -> bool:
        """Tells whether the two share a point in time."""
        return self.start < other.end and other.start < self.end


@dataclass(frozen=True, slots=True)
class Windowed(Generic[K]):
    """A key inside a window; written ``[key@start/end]``."""

    key: K
    window: Window

    def __str__(self) -> str:
        return f"[{self.key}@{self.window.start}/{self.window.end}]"
