"""Lets stream time of an operator go on with the wall clock while its task has no input. Beyond Kafka Streams.

Once the task has had no input for a time, stream time of the operator is what it was, plus the wall-clock time since
then, up to where nothing that the operator holds can be open any more. It never goes back: a later record is measured
by it. It is committed beside the offsets, so that what was closed stays closed after a restart.

Invariant: while records come, or wait, stream time is that of the records. How far it may go on follows from the latest
record that the operator has processed, and from nothing else: a silence after records of others moves it no further.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pykstreams.core.processor import OperatorContext, PunctuationType
from pykstreams.core.types import END_OF_TIME, Headers
from pykstreams.processors.process import Process

_LOOK_MS: Final = 1000
"""The longest interval between two looks at the input."""
_LOOKS: Final = 4
"""How many looks there are at least in the time for which input must be idle."""


class _LatestRecord:
    """The timestamp of the latest record of an operator, or of two that share their time; -1 before the first."""

    __slots__ = ("time",)

    def __init__(self) -> None:
        self.time = -1


class IdleTime:
    """Stream time of one operator that goes on; one per node and task, made while the operator is built.

    :param idle_ms: for how long there must have been no input.
    :param last: from the time of the latest record to how far stream time may go on.
    :param emit: forwards what is closed by a time.
    :param looks: whether this operator lets it go on; false for the other one where two share their time.
    :param shared: the name under which these two share it.
    """

    __slots__ = (
        "_advance",
        "_base",
        "_emit",
        "_flush_caches",
        "_idle_ms",
        "_idle_since",
        "_is_ahead",
        "_last",
        "_latest",
        "_latest_name",
        "_limit",
        "_metadata",
        "_name",
        "_now",
        "_since",
    )

    def __init__(
        self,
        context: OperatorContext,
        idle_ms: int,
        last: Callable[[int], int],
        emit: Callable[[int], None],
        *,
        looks: bool,
        shared: str | None,
    ) -> None:
        self._idle_ms = idle_ms
        self._last = last
        self._emit = emit
        self._metadata = context.metadata
        self._name, self._latest_name = f"{context.node}-stream-time", f"{context.node}-latest-record"
        self._latest = _LatestRecord() if shared is None else context.shared(f"{shared}-latest-record", _LatestRecord)
        self._is_ahead = False
        self._flush_caches = context.flush_caches
        self._idle_since = context.watch_input()
        self._since: int | None = None
        self._base = self._limit = -1

        def start() -> None:
            self._take_up()
            if not looks:
                return
            interval = max(1, min(_LOOK_MS, idle_ms // _LOOKS))
            context.processing.schedule(interval, PunctuationType.WALL_CLOCK_TIME, self._look)

        context.on_init(start)

    def follow(self, process: Process, now: Callable[[], int], advance: Callable[[int], None]) -> Process:
        """Wraps the operator's function, so that its stream time is committed.

        ``now`` gives the stream time that the operator keeps, and ``advance`` sets a later one.
        """
        self._now, self._advance, latest = now, advance, self._latest

        def process_and_note(key: object, value: object, timestamp: int, headers: Headers) -> None:
            process(key, value, timestamp, headers)
            if timestamp > latest.time:
                self._note(timestamp)

        return process_and_note

    def _take_up(self) -> None:
        time, latest = self._metadata.get(self._name), self._metadata.get(self._latest_name)
        if time is not None:
            self._advance(time)
        self._is_ahead = latest is not None and latest < END_OF_TIME
        known = latest if self._is_ahead else time
        if known is not None:
            self._latest.time = max(self._latest.time, known)

    def _note(self, timestamp: int) -> None:
        """Notes a record that is later than those before."""
        time = self._now()
        if timestamp > time:  # it does not count, for want of a key perhaps
            return
        self._latest.time = timestamp
        if timestamp < time:
            self._note_ahead(timestamp)
            return
        self._metadata.put(self._name, time)
        if self._is_ahead:
            self._is_ahead = False
            self._metadata.put(self._latest_name, END_OF_TIME)  # stream time is that of the latest record again

    def _note_ahead(self, timestamp: int) -> None:
        """Notes the time of the latest record while the wall clock has moved stream time beyond it."""
        self._is_ahead = True
        self._metadata.put(self._latest_name, timestamp)

    def _look(self, now_ms: int) -> None:
        since = self._idle_since()
        if since is None or now_ms - since < self._idle_ms:
            return
        if since != self._since:
            self._flush_caches()  # what is held back there has come already, and may have to wait here
            self._since, self._base = since, self._now()
            self._limit = min(self._last(self._latest.time), END_OF_TIME)
        if self._base < 0:
            return
        time = min(self._base + now_ms - since, self._limit)
        if time <= self._now():
            return
        self._advance(time)
        self._metadata.put(self._name, time)
        self._note_ahead(self._latest.time)
        self._emit(time)


def idle_time(
    context: OperatorContext,
    idle_ms: int | None,
    last: Callable[[int], int],
    emit: Callable[[int], None],
    *,
    looks: bool = True,
    shared: str | None = None,
) -> IdleTime | None:
    """The time of an operator that goes on after ``idle_ms`` without input; ``None`` where it does not."""
    return None if idle_ms is None else IdleTime(context, idle_ms, last, emit, looks=looks, shared=shared)
