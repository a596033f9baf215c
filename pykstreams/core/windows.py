"""Windows of time as values: a window, a key inside one, and the definitions by which records fall into windows.

Definitions are frozen and checked when they are made; lengths given as ``timedelta`` or int of milliseconds are kept
in milliseconds, so that two definitions of the same windows are equal.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Generic, NamedTuple, TypeVar

from pykstreams.core.types import END_OF_TIME, Duration, Timestamp, duration_ms, timestamp_ms

K = TypeVar("K")
K_co = TypeVar("K_co", covariant=True)
VA = TypeVar("VA")
W_co = TypeVar("W_co", bound="Window", covariant=True)
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
        if self.end > END_OF_TIME:
            raise ends_too_late(self.start)

    @property
    def start_time(self) -> datetime:
        """``start`` as a time in UTC."""
        return _EPOCH + timedelta(milliseconds=self.start)

    @property
    def end_time(self) -> datetime:
        """``end`` as a time in UTC."""
        return _EPOCH + timedelta(milliseconds=self.end)

    def overlap(self, other: Window) -> bool:
        """Returns whether the two share a point in time."""
        return self.start < other.end and other.start < self.end


def ends_too_late(time: int) -> ValueError:
    """The error for a window of that time whose end would be no timestamp any more."""
    return ValueError(f"a window of time {time} would end after the largest timestamp, {END_OF_TIME}")


@dataclass(frozen=True, slots=True)
class Windowed(Generic[K_co]):
    """A key inside a window; written ``[key@start/end]``."""

    key: K_co
    window: Window

    def __str__(self) -> str:
        return f"[{self.key}@{self.window.start}/{self.window.end}]"

    def shift_left(self, by: Duration) -> Windowed[K_co]:
        """The key in the window that lies earlier by so much: what a later window is compared with.

        Raises ``ValueError`` where that window would begin before the epoch.

        >>> str(Windowed("a", Window(60_000, 120_000)).shift_left(timedelta(minutes=1)))
        '[a@0/60000]'
        """
        return self._shifted(-duration_ms(by, "shift of a window"))

    def shift_right(self, by: Duration) -> Windowed[K_co]:
        """The key in the window that lies later by so much; the way back from ``shift_left``."""
        return self._shifted(duration_ms(by, "shift of a window"))

    def _shifted(self, ms: int) -> Windowed[K_co]:
        start, end = self.window.start + ms, self.window.end + ms
        if start < 0:
            raise ValueError(
                f"{self} cannot be shifted by {ms} ms: the window would start at {start}, before the epoch"
            )
        return Windowed(self.key, replace(self.window, start=start, end=end))


_new = object.__new__
_set_start, _set_end = (Window.__dict__[slot].__set__ for slot in ("start", "end"))
_set_key, _set_window = (Windowed.__dict__[slot].__set__ for slot in ("key", "window"))


def in_window(key: K, start: int, end: int) -> Windowed[K]:
    """Makes a key inside a window whose times are known to be right, at about half the cost of the constructors.

    >>> in_window("a", 0, 10) == Windowed("a", Window(0, 10))
    True
    """
    window = _new(Window)
    _set_start(window, start)
    _set_end(window, end)
    return in_this_window(key, window)


def in_this_window(key: K, window: Window) -> Windowed[K]:
    """Makes a key inside a window that is there already."""
    windowed: Windowed[K] = _new(Windowed)
    _set_key(windowed, key)
    _set_window(windowed, window)
    return windowed


class EmitStrategy(Enum):
    """When a windowed aggregation forwards its results: at each update, or once, when the window is closed.

    A window is closed when the operator has seen a record later than its end by the grace period.
    """

    ON_WINDOW_UPDATE = "on_window_update"
    ON_WINDOW_CLOSE = "on_window_close"


class Windows(ABC, Generic[W_co]):
    """Windows of a fixed size; subclasses may define their own."""

    __slots__ = ()

    @abstractmethod
    def windows_for(self, timestamp: int) -> Mapping[int, W_co]:
        """Returns the windows that a record of that time falls into, by their start, in order."""

    @property
    @abstractmethod
    def size_ms(self) -> int:
        """The length of a window."""

    @property
    @abstractmethod
    def grace_period_ms(self) -> int:
        """How long after its end a window takes late records."""


@dataclass(frozen=True, slots=True, init=False)
class TimeWindows(Windows[Window]):
    """Windows of one size, aligned to the epoch: tumbling, or hopping by ``advance_by`` when that is given.

    A window holds its start and does not hold its end. ``grace`` is how long after the end of a window late records
    are still taken (``TimeWindows``, 4.3.1).

    >>> list(TimeWindows(timedelta(minutes=1)).windows_for(90_000).values())
    [Window(start=60000, end=120000)]
    >>> list(TimeWindows(10, advance_by=5).windows_for(12))
    [5, 10]
    """

    size_ms: int
    advance_ms: int
    grace_period_ms: int

    def __init__(self, size: Duration, *, advance_by: Duration | None = None, grace: Duration = 0) -> None:
        size_ms = duration_ms(size, "window size")
        if size_ms == 0:
            raise ValueError(f"window size is {size!r}; it must be at least 1 ms")
        advance_ms = size_ms if advance_by is None else duration_ms(advance_by, "advance of windows")
        if advance_ms == 0:
            raise ValueError(f"advance of windows is {advance_by!r}; it must be at least 1 ms")
        if advance_ms > size_ms:
            raise ValueError(
                f"advance of windows is {advance_by!r}, larger than the window size {size!r}: "
                "records between two windows would be lost"
            )
        object.__setattr__(self, "size_ms", size_ms)
        object.__setattr__(self, "advance_ms", advance_ms)
        object.__setattr__(self, "grace_period_ms", duration_ms(grace, "grace"))

    @property
    def last_timestamp(self) -> int:
        """The largest timestamp whose windows all end at ``END_OF_TIME`` or before."""
        last_start = END_OF_TIME - self.size_ms
        return last_start - last_start % self.advance_ms + self.advance_ms - 1

    def windows_for(self, timestamp: int) -> dict[int, Window]:
        size, advance = self.size_ms, self.advance_ms
        first = max(0, timestamp - size + advance) // advance * advance
        return {start: Window(start, start + size) for start in range(first, timestamp + 1, advance)}


@dataclass(frozen=True, slots=True, init=False)
class UnlimitedWindows(Windows[Window]):
    """One window without end that begins at ``start``; earlier records fall into none (``UnlimitedWindows``, 4.3.1).

    >>> UnlimitedWindows(5).windows_for(4)
    {}
    """

    start_ms: int

    def __init__(self, start: Timestamp = 0) -> None:
        start_ms = timestamp_ms(start, "start of unlimited windows")
        if start_ms < 0:
            raise ValueError(f"start of unlimited windows is {start!r}; it must not lie before the epoch")
        object.__setattr__(self, "start_ms", start_ms)

    def windows_for(self, timestamp: int) -> dict[int, Window]:
        start = self.start_ms
        return {start: Window(start, END_OF_TIME)} if timestamp >= start else {}

    @property
    def size_ms(self) -> int:
        return END_OF_TIME

    @property
    def grace_period_ms(self) -> int:
        return 0


@dataclass(frozen=True, slots=True, init=False)
class SlidingWindows:
    """Windows that end, or begin right after, at a record; two records share one if their times differ by at most
    ``time_difference``. Both bounds are inclusive (``SlidingWindows``, 4.3.1).
    """

    time_difference_ms: int
    grace_period_ms: int

    def __init__(self, time_difference: Duration, *, grace: Duration = 0) -> None:
        object.__setattr__(self, "time_difference_ms", duration_ms(time_difference, "time difference"))
        object.__setattr__(self, "grace_period_ms", duration_ms(grace, "grace"))


@dataclass(frozen=True, slots=True, init=False)
class SessionWindows:
    """Windows of activity: records of a key with gaps of at most ``inactivity_gap`` are one session
    (``SessionWindows``, 4.3.1).
    """

    inactivity_gap_ms: int
    grace_period_ms: int

    def __init__(self, inactivity_gap: Duration, *, grace: Duration = 0) -> None:
        object.__setattr__(self, "inactivity_gap_ms", duration_ms(inactivity_gap, "inactivity gap"))
        object.__setattr__(self, "grace_period_ms", duration_ms(grace, "grace"))


@dataclass(frozen=True, slots=True)
class CountWindows:
    """Windows of so many records of a key, one after the other, in the order in which they come. Beyond Kafka Streams.

    >>> CountWindows(100)
    CountWindows(size=100)
    """

    size: int

    def __post_init__(self) -> None:
        if isinstance(self.size, bool) or not isinstance(self.size, int):
            raise TypeError(f"size of count windows is {self.size!r}; expected a number of records")
        if self.size < 1:
            raise ValueError(f"size of count windows is {self.size}; a window has at least one record")


class PartialWindow(NamedTuple, Generic[VA]):
    """A count window that is not full: how many records it has, and what they give so far."""

    size: int
    value: VA


@dataclass(frozen=True, slots=True, init=False)
class JoinWindows:
    """How far apart two records may be that a stream-stream join joins: the other side's record is at most ``before``
    earlier and at most ``after`` later than this side's (``JoinWindows``, 4.3.1).

    ``time_difference`` stands for both, and a bound that is given takes its place; when there is no
    ``time_difference``, the other bound is zero. A bound may be negative as long as the window is not empty.

    >>> JoinWindows(10, before=0)
    JoinWindows(before_ms=0, after_ms=10, grace_period_ms=0)
    """

    before_ms: int
    after_ms: int
    grace_period_ms: int

    def __init__(
        self,
        time_difference: Duration | None = None,
        *,
        before: Duration | None = None,
        after: Duration | None = None,
        grace: Duration = 0,
    ) -> None:
        if time_difference is None and before is None and after is None:
            raise TypeError("JoinWindows has no bounds; give time_difference, before or after")
        both = 0 if time_difference is None else duration_ms(time_difference, "time difference")
        before_ms = both if before is None else duration_ms(before, "before", negative=True)
        after_ms = both if after is None else duration_ms(after, "after", negative=True)
        if before_ms + after_ms < 0:
            raise ValueError(
                f"join window is empty: before is {before_ms} ms and after is {after_ms} ms; "
                "their sum must not be negative"
            )
        if before_ms + after_ms > END_OF_TIME:
            raise ValueError(
                f"join window is too long: before is {before_ms} ms and after is {after_ms} ms; their sum must be at "
                f"most {END_OF_TIME} ms"
            )
        object.__setattr__(self, "before_ms", before_ms)
        object.__setattr__(self, "after_ms", after_ms)
        object.__setattr__(self, "grace_period_ms", duration_ms(grace, "grace"))

    @property
    def size_ms(self) -> int:
        """``before`` and ``after`` together, in ms."""
        return self.before_ms + self.after_ms
