"""Values from coroutines: many at a time, forwarded in the order of their keys. Beyond Kafka Streams.

A record's coroutine runs on the event loop (``event_loop``); its result is forwarded by the processing thread, when
the task asks for it. Records of one key wait for each other there, and only there: their coroutines overlap, too.

Invariant: a record stands in the lane of its key from the moment it came until it is forwarded or has failed for good,
and only the first of a lane may go.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from pykstreams.core.processor import OperatorContext
from pykstreams.core.types import Forward, Headers, keep_whole_number
from pykstreams.processors.event_loop import SHARED, EventLoopThread
from pykstreams.processors.user_functions import describe_function
from pykstreams.state.encoding.record_context import RawContext

log = logging.getLogger(__name__)

_CANCEL_S = 5.0
_UNHASHABLE = object()
"""The lane of all keys that cannot be looked up."""


@dataclass(frozen=True, slots=True)
class MapValuesAsync:
    """Maps the value of every record by ``await function(value)``, or ``function(key, value)`` with ``with_key``.

    A call that raises, or takes longer than ``timeout_ms``, is repeated up to ``retries`` times, ``retry.backoff.ms``
    apart; the error of the last one is an exception of this node. ``TypeError`` for what is no coroutine function.
    """

    function: Callable[..., Awaitable[object]]
    with_key: bool = False
    max_in_flight: int = 100
    timeout_ms: int | None = None
    retries: int = 0
    event_loop: EventLoopThread = SHARED

    def __post_init__(self) -> None:
        if not _gives_coroutines(self.function):
            raise TypeError(
                f"{_told(self.function)} is not a coroutine function; define it with 'async def' (a blocking call goes "
                "through asyncio.to_thread), or use map_values"
            )
        if keep_whole_number(self, "max_in_flight") < 1:
            raise ValueError(f"max_in_flight is {self.max_in_flight!r}; at least one record must be in flight")
        if keep_whole_number(self, "retries") < 0:
            raise ValueError(f"retries is {self.retries!r}; it must not be negative")
        if self.timeout_ms is not None and self.timeout_ms < 1:
            raise ValueError(f"timeout is {self.timeout_ms} ms; give at least 1 ms, or None for no limit")

    def build(self, context: OperatorContext) -> Forward:
        calls = _Calls(self, context)
        context.on_init(calls.start)
        context.on_close(calls.close)
        return calls.accept


class _Call:
    """One record in flight."""

    __slots__ = ("done", "error", "headers", "key", "lane", "number", "raw", "result", "timestamp", "value")

    def __init__(
        self,
        key: object,
        value: object,
        timestamp: int,
        headers: Headers,
        raw: RawContext | None,
        lane: deque[_Call],
        number: int,
    ) -> None:
        self.key = key
        self.value = value
        self.timestamp = timestamp
        self.headers = headers
        self.raw = raw
        self.lane = lane
        self.number = number
        self.done = False
        self.result: object = None
        self.error: BaseException | None = None


class _Calls:
    """The records that one task has in flight here.

    The processing thread owns the lanes, the loop's thread what waits and runs. They meet in ``_finished``, and in
    counters that only one of them writes.
    """

    def __init__(self, operator: MapValuesAsync, context: OperatorContext) -> None:
        self._operator = operator
        self._context = context
        self._current = context.current
        self._wake = context.finishes_later(self)
        self._backoff_s = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing = False
        self._lanes: dict[object, deque[_Call]] = {}
        self._accepted = 0
        self._forwarded = 0
        self._finished: deque[_Call] = deque()
        self._completed = 0
        self._waiting: deque[_Call] = deque()
        self._tasks: set[asyncio.Task[None]] = set()

    # What the task asks, on the processing thread.

    @property
    def unfinished(self) -> int:
        return self._accepted - self._forwarded

    @property
    def running(self) -> int:
        return self._accepted - self._completed

    @property
    def room(self) -> int:
        return self._operator.max_in_flight - self.unfinished

    @property
    def has_news(self) -> bool:
        return bool(self._finished)

    def start(self) -> None:
        self._backoff_s = self._context.config.retry_backoff_ms / 1000
        self._loop = self._operator.event_loop.acquire()

    def accept(self, key: object, value: object, timestamp: int, headers: Headers) -> None:
        """Takes a record; runs per record."""
        loop = self._loop
        assert loop is not None  # tasks run start before the first record
        lane = self._lane(key)
        call = _Call(key, value, timestamp, headers, self._current.raw, lane, self._accepted)
        lane.append(call)
        self._accepted += 1
        loop.call_soon_threadsafe(self._arrive, call)

    def forward_finished(self) -> None:
        """Forwards what has finished and has no unfinished record of its key before it, in the order of arrival."""
        finished, ready = self._finished, []
        lanes = {}
        while finished:
            call = finished.popleft()
            call.done = True
            lanes[id(call.lane)] = call
        for call in lanes.values():
            lane = call.lane
            while lane and lane[0].done:
                ready.append(lane.popleft())
            if not lane:
                self._forget_lane(call.key)
        ready.sort(key=lambda call: call.number)
        for call in ready:
            self._forwarded += 1
            self._conclude(call)

    def close(self) -> None:
        """Cancels what runs; those records were not committed, so whoever takes the task over does them again."""
        loop, self._loop = self._loop, None
        if loop is None:
            return
        self._closing = True
        try:
            asyncio.run_coroutine_threadsafe(self._cancel(), loop).result(_CANCEL_S)
        except concurrent.futures.TimeoutError:
            log.warning(
                "%s of %s did not end within %g s of being cancelled; it is left behind",
                describe_function(self._operator.function),
                self._context.node,
                _CANCEL_S,
            )
        finally:
            self._operator.event_loop.release()

    def _lane(self, key: object) -> deque[_Call]:
        try:
            return self._lanes.setdefault(key, deque())
        except TypeError:
            return self._lanes.setdefault(_UNHASHABLE, deque())

    def _forget_lane(self, key: object) -> None:
        try:
            self._lanes.pop(key, None)
        except TypeError:
            self._lanes.pop(_UNHASHABLE, None)

    def _conclude(self, call: _Call) -> None:
        context, error = self._context, call.error
        self._current.raw = call.raw
        if error is None:
            try:
                context.forward(call.key, call.result, call.timestamp, call.headers)
                return
            except Exception as below:
                if context.failures_are_final:
                    raise
                error = below
        if not isinstance(error, Exception):
            raise error
        context.fail(error, call.key, call.value, call.timestamp, call.headers)

    # What happens on the loop's thread.

    def _arrive(self, call: _Call) -> None:
        if self._closing:
            return
        if len(self._tasks) < self._operator.max_in_flight:
            self._begin(call)
        else:
            self._waiting.append(call)

    def _begin(self, call: _Call) -> None:
        task = asyncio.get_running_loop().create_task(self._run(call))
        self._tasks.add(task)
        task.add_done_callback(partial(self._end, call))

    def _end(self, call: _Call, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if self._closing:
            return
        if task.cancelled() and call.error is None:
            call.error = _cancelled(self._operator, None)
        if self._waiting:
            self._begin(self._waiting.popleft())
        self._finished.append(call)
        self._completed += 1
        self._wake()

    async def _run(self, call: _Call) -> None:
        """Calls the function until it succeeds or has been tried often enough; never raises, unless while closing."""
        operator = self._operator
        function, attempts = operator.function, operator.retries + 1
        timeout_s = None if operator.timeout_ms is None else operator.timeout_ms / 1000
        arguments = (call.key, call.value) if operator.with_key else (call.value,)
        for attempt in range(1, attempts + 1):
            if attempt > 1:
                await asyncio.sleep(self._backoff_s)
            try:
                async with asyncio.timeout(timeout_s) as limit:
                    call.result = await function(*arguments)
                call.error = None
                return
            except TimeoutError as error:
                call.error = _too_slow(operator, attempt, error) if limit.expired() else error
            except asyncio.CancelledError as error:
                if self._closing:
                    raise
                call.error = _cancelled(operator, error)
            except Exception as error:
                call.error = error
            except BaseException as error:  # such as SystemExit: it ends the worker, and must not end the loop
                call.error = error
                return

    async def _cancel(self) -> None:
        self._waiting.clear()
        if self._tasks:
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks)


def _gives_coroutines(function: object) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _told(function: object) -> str:
    return describe_function(function) if callable(function) else repr(function)


def _too_slow(operator: MapValuesAsync, attempt: int, cause: TimeoutError) -> TimeoutError:
    error = TimeoutError(f"{_told(operator.function)} took longer than {operator.timeout_ms} ms in call {attempt}")
    error.__cause__ = cause
    return error


def _cancelled(operator: MapValuesAsync, cause: asyncio.CancelledError | None) -> RuntimeError:
    error = RuntimeError(f"{_told(operator.function)} was cancelled by something that it called")
    error.__cause__ = cause
    return error
