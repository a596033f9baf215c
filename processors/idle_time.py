"""Lets stream time of an operator go on with the wall clock while its task has no input. Beyond Kafka Streams.

Once the task has had no input for a time, stream time of the operator is what it was, plus the wall-clock time since
then, up to where nothing that the operator holds can be open any more. It never goes back: a later record is measured
by it. It is committed beside the offsets, so that what was closed stays closed after a restart.

Invariant: while records come, or wait, stream time is that of the records.
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


class IdleTime:
    """Stream time of one operator that goes on; one per node and task, made while the operator is built.

    :param idle_ms: for how long there must have been no input.
    :param last: from stream time to how far it may go on.
    :param emit: forwards what is closed by a time.
    :param looks: whether this operator lets it go on; false for the other one where two share their time.
    """

    __slots__ = (
        "_advance",
        "_base",
        "_emit",
        "_flush_caches",
        "_idle_ms",
        "_idle_since",
        "_last",
        "_limit",
        "_metadata",
        "_name",
        "_noted",
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
    ) -> None:
        self._idle_ms = idle_ms
        self._last = last
        self._emit = emit
        self._metadata = context.metadata
        self._name = f"{context.node}-stream-time"
        self._flush_caches = context.flush_caches
        self._idle_since = context.watch_input()
        self._since: int | None = None
        self._base = self._limit = self._noted = -1

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
        self._now, self._advance = now, advance

        def process_and_note(key: object, value: object, timestamp: int, headers: Headers) -> None:
            process(key, value, timestamp, headers)
            time = now()
            if time > self._noted:
                self._note(time)

        return process_and_note

    def _take_up(self) -> None:
        time = self._metadata.get(self._name)
        if time is not None:
            self._noted = time
            self._advance(time)

    def _note(self, time: int) -> None:
        self._noted = time
        self._metadata.put(self._name, time)

    def _look(self, now_ms: int) -> None:
        since = self._idle_since()
        if since is None or now_ms - since < self._idle_ms:
            return
        if since != self._since:
            self._flush_caches()  # what is held back there has come already, and may have to wait here
            self._since, self._base = since, self._now()
            self._limit = min(self._last(self._base), END_OF_TIME)
        if self._base < 0:
            return
        time = min(self._base + now_ms - since, self._limit)
        if time <= self._now():
            return
        self._advance(time)
        self._note(time)
        self._emit(time)


def idle_time(
    context: OperatorContext,
    idle_ms: int | None,
    last: Callable[[int], int],
    emit: Callable[[int], None],
    *,
    looks: bool = True,
) -> IdleTime | None:
    """The time of an operator that goes on after ``idle_ms`` without input; ``None`` where it does not."""
    return None if idle_ms is None else IdleTime(context, idle_ms, last, emit, looks=looks)
