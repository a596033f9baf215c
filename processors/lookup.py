"""Look-ups elsewhere, with a cache: values are joined with what a coroutine function finds for a key. Beyond Kafka
Streams.

It is ``map_values_async`` around ``Answers``, which asks once for equal keys at a time and remembers what was found.
All tasks of a step in a process share one, on the event loop.

Invariant: everything of ``Answers`` happens on the loop's thread; an error is remembered by nobody.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Generic, TypeAlias, TypeVar

from pykstreams.core.processor import OperatorContext
from pykstreams.core.types import Duration, Forward, KeyValueMapper, duration_ms, keep_whole_number
from pykstreams.processors.event_loop import SHARED, EventLoopThread
from pykstreams.processors.map_values_async import MapValuesAsync
from pykstreams.processors.user_functions import describe_function

K = TypeVar("K")
V = TypeVar("V")
VR = TypeVar("VR")
Q = TypeVar("Q")
A = TypeVar("A")

_Place: TypeAlias = tuple[type[Q], Q]
"""A key with its class, since ``1``, ``True`` and ``1.0`` are equal, and their answers may not be."""

_NOTHING: Final = object()


@dataclass(frozen=True, slots=True)
class LookupCache:
    """How long answers are remembered, and how many of them.

    :param max_entries: of all tasks of the step in a process; beyond, the answer that was used least recently goes.
    :param ttl: for how long an answer is good, by the wall clock; ``None``: until there is no room.
    :param missing_ttl: for how long it is remembered that nothing was found; ``None``: not at all.
    """

    max_entries: int = 10_000
    ttl: Duration | None = None
    missing_ttl: Duration | None = None

    def __post_init__(self) -> None:
        if keep_whole_number(self, "max_entries") < 1:
            raise ValueError(f"max_entries is {self.max_entries!r}; at least one answer must have room")
        for name in ("ttl", "missing_ttl"):
            given: Duration | None = getattr(self, name)
            if given is not None and duration_ms(given, name) < 1:
                raise ValueError(f"{name} is {given!r}; give at least 1 ms, or None")


class Answers(Generic[Q, A]):
    """The answers that were found, and the questions that are under way; for the loop's thread only."""

    def __init__(
        self, function: Callable[[Q], Awaitable[A | None]], cache: LookupCache | None, timeout_ms: int | None
    ) -> None:
        self._function = function
        self._timeout_ms = timeout_ms
        self._max_entries = 0 if cache is None else cache.max_entries
        self._ttl_ms = None if cache is None or cache.ttl is None else duration_ms(cache.ttl, "ttl")
        missing = None if cache is None else cache.missing_ttl
        self._missing_ttl_ms = None if missing is None else duration_ms(missing, "missing_ttl")
        self._found: dict[_Place[Q], tuple[A | None, int | None]] = {}
        self._questions: dict[_Place[Q], _Question[A]] = {}

    async def get(self, wanted: Q, now_ms: Callable[[], int]) -> A | None:
        """The answer that is remembered, or that of the question which is under way, or of a new one."""
        place = type(wanted), wanted
        known = self._found.pop(place, None)
        if known is not None and (known[1] is None or now_ms() < known[1]):
            self._found[place] = known  # the last one is that which was used last
            return known[0]
        question = self._questions.get(place)
        if question is None:
            question = self._questions[place] = _Question(asyncio.ensure_future(self._ask(place, now_ms)))
            question.task.add_done_callback(partial(self._forget, place, question))
        question.waiting += 1
        try:
            answer, error = await asyncio.shield(question.task)
        finally:
            question.waiting -= 1
            if question.waiting == 0 and not question.task.done():
                self._forget(place, question)
                question.task.cancel()  # nobody wants to know any more
                await asyncio.wait([question.task])
        if error is not None:
            raise error
        return answer

    async def _ask(self, place: _Place[Q], now_ms: Callable[[], int]) -> tuple[A | None, BaseException | None]:
        """Returns the answer, or the error: one that is raised here might end the loop."""
        limit = asyncio.timeout(None if self._timeout_ms is None else self._timeout_ms / 1000)
        try:
            async with limit:
                answer = await self._function(place[1])
        except asyncio.CancelledError:
            raise
        except TimeoutError as error:
            if not limit.expired():
                return None, error
            late = TimeoutError(f"{describe_function(self._function)} took longer than {self._timeout_ms} ms")
            late.__cause__ = error
            return None, late
        except BaseException as error:
            return None, error
        self._remember(place, answer, now_ms())
        return answer, None

    def _forget(self, place: _Place[Q], question: _Question[A], _: object = None) -> None:
        if self._questions.get(place) is question:
            del self._questions[place]

    def _remember(self, place: _Place[Q], answer: A | None, now_ms: int) -> None:
        ttl_ms = self._ttl_ms
        if answer is None:
            if self._missing_ttl_ms is None:
                return
            ttl_ms = self._missing_ttl_ms
        if self._max_entries == 0:
            return
        while len(self._found) >= self._max_entries:
            del self._found[next(iter(self._found))]
        self._found[place] = answer, None if ttl_ms is None else now_ms + ttl_ms


@dataclass(slots=True)
class _Question(Generic[A]):
    """A call that is under way, and how many records wait for it."""

    task: asyncio.Future[tuple[A | None, BaseException | None]]
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class Lookup(Generic[K, V, Q, A, VR]):
    """Maps the value of every record by ``joiner(value, answer)``, with the answer of ``await function(key(...))``.

    Where ``key(key, value)`` is ``None`` nobody is asked, and the answer is ``None``. Order, limits and failures are
    those of ``MapValuesAsync``; ``timeout_ms`` is that of one question.
    """

    function: Callable[[Q], Awaitable[A | None]]
    joiner: Callable[[V, A | None], VR]
    key: KeyValueMapper[K, V, Q | None]
    cache: LookupCache | None = None
    max_in_flight: int = 100
    timeout_ms: int | None = None
    retries: int = 0
    event_loop: EventLoopThread = SHARED
    _answers: Answers[Q, A] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        function = self.function
        if not (inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)):
            told = describe_function(function) if callable(function) else repr(function)
            raise TypeError(
                f"{told} is not a coroutine function; define it with 'async def' (a blocking call goes through "
                "asyncio.to_thread), or use map_values"
            )
        if self.timeout_ms is not None and self.timeout_ms < 1:
            raise ValueError(f"timeout is {self.timeout_ms} ms; give at least 1 ms, or None for no limit")
        object.__setattr__(self, "_answers", Answers(function, self.cache, self.timeout_ms))
        self._mapping(lambda: 0)  # says what is wrong with the other options

    def build(self, context: OperatorContext) -> Forward:
        return self._mapping(context.processing.current_system_time_ms).build(context)

    def _mapping(self, now_ms: Callable[[], int]) -> MapValuesAsync:
        answers, key_of, joiner = self._answers, self.key, self.joiner

        async def look_up(key: K, value: V) -> VR:
            wanted = key_of(key, value)
            if wanted is None:
                return joiner(value, None)
            if not isinstance(wanted, Hashable):
                raise TypeError(f"{describe_function(key_of)} returned {wanted!r}, which cannot be looked up")
            return joiner(value, await answers.get(wanted, now_ms))

        return MapValuesAsync(look_up, True, self.max_in_flight, None, self.retries, self.event_loop)
