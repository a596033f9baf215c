"""Look-ups with a cache: equal keys ask once, answers are remembered as told, errors are not."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from pykstreams import LookupCache
from pykstreams.core.errors import ProcessingError
from pykstreams.core.handlers import LogAndContinueProcessingExceptionHandler
from pykstreams.processors import Lookup
from pykstreams.processors.event_loop import EventLoopThread
from tests.unit.runtime.tasks.fakes import PATIENCE_S, Gates, TaskBench, message, node, sink, source


class Directory:
    """A service that knows some names, and notes what it was asked."""

    def __init__(self, **names: str) -> None:
        self.names = names
        self.asked: list[str] = []
        self.errors: list[BaseException] = []

    async def __call__(self, wanted: str) -> str | None:
        self.asked.append(wanted)
        if self.errors:
            raise self.errors.pop(0)
        return self.names.get(wanted)


def first_letter(key: str, value: str) -> str | None:
    return value[0] if value[0] != "-" else None


def joined(value: str, name: str | None) -> str:
    return f"{value}={name}"


@pytest.fixture
def make_bench() -> Iterator[Any]:
    benches: list[TaskBench] = []

    def make(function: Any, *, config: dict[str, Any] | None = None, **options: Any) -> TaskBench:
        operator = Lookup(function, joined, **{"key": first_letter, "event_loop": EventLoopThread("test"), **options})
        bench = TaskBench(
            source("SOURCE", "in", children=("LOOKUP",)),
            node("LOOKUP", operator, "SINK"),
            sink("SINK", "out"),
            config={"retry.backoff.ms": 1, **(config or {})},
        )
        benches.append(bench)
        return bench

    yield make
    for bench in benches:
        with contextlib.suppress(ProcessingError):
            bench.task.close()


def feed(bench: TaskBench, *values: str) -> None:
    bench.feed(*(message("in", i, value, i) for i, value in enumerate(values)))


def look_up(bench: TaskBench, *values: str) -> list[str | None]:
    feed(bench, *values)
    bench.wait_for(running=0)
    bench.task.process(100)
    return bench.values()


def test_values_are_joined_with_the_answers(make_bench: Any) -> None:
    directory = Directory(a="Ada")

    assert look_up(make_bench(directory), "a1", "b1", "-1") == ["a1=Ada", "b1=None", "-1=None"]
    assert directory.asked == ["a", "b"]


def test_equal_keys_at_the_same_time_are_asked_for_once(make_bench: Any) -> None:
    gates = Gates()
    bench = make_bench(gates)
    feed(bench, "a1", "a2", "b1")
    gates["b"].set_result("Bob")
    gates["a"].set_result("Ada")
    bench.wait_for(running=0)
    bench.task.process(100)

    assert (sorted(gates.called), bench.values()) == (["a", "b"], ["a1=Ada", "a2=Ada", "b1=Bob"])


def test_equal_keys_of_two_types_are_two_questions(make_bench: Any) -> None:
    numbers: dict[str, object] = {"i": 1, "t": True, "f": 1.0}
    asked: list[object] = []

    async def name_of(number: object) -> str:
        asked.append(number)
        return repr(number)

    bench = make_bench(name_of, key=lambda key, value: numbers[value[0]], cache=LookupCache())

    assert look_up(bench, "i1", "t1", "f1") == ["i1=1", "t1=True", "f1=1.0"]
    assert look_up(bench, "f2", "t2", "i2") == ["f2=1.0", "t2=True", "i2=1"]
    assert list(map(repr, asked)) == ["1", "True", "1.0"]


def test_without_a_cache_later_records_ask_again(make_bench: Any) -> None:
    directory = Directory(a="Ada")
    bench = make_bench(directory)
    look_up(bench, "a1")
    look_up(bench, "a2")

    assert directory.asked == ["a", "a"]


def test_answers_are_remembered_for_their_time_to_live(make_bench: Any) -> None:
    directory = Directory(a="Ada")
    bench = make_bench(directory, cache=LookupCache(ttl=1000))
    look_up(bench, "a1")
    bench.clock.advance(999)
    directory.names["a"] = "Lovelace"
    before = look_up(bench, "a2")
    bench.clock.advance(1)

    assert (before, look_up(bench, "a3")) == (["a2=Ada"], ["a3=Lovelace"])


def test_what_was_not_found_is_asked_for_again(make_bench: Any) -> None:
    directory = Directory()
    bench = make_bench(directory, cache=LookupCache())
    look_up(bench, "a1")
    directory.names["a"] = "Ada"

    assert look_up(bench, "a2") == ["a2=Ada"]


def test_that_nothing_was_found_is_remembered_if_told(make_bench: Any) -> None:
    directory = Directory()
    bench = make_bench(directory, cache=LookupCache(missing_ttl=500))
    look_up(bench, "a1")
    directory.names["a"] = "Ada"
    before = look_up(bench, "a2")
    bench.clock.advance(500)

    assert (before, look_up(bench, "a3")) == (["a2=None"], ["a3=Ada"])


def test_the_answer_that_was_used_least_recently_makes_room(make_bench: Any) -> None:
    directory = Directory(a="Ada", b="Bob", c="Cy")
    bench = make_bench(directory, cache=LookupCache(max_entries=2))
    for value in ("a1", "b1", "a2", "c1", "a3", "b2"):
        look_up(bench, value)

    assert directory.asked == ["a", "b", "c", "b"]


def test_errors_are_not_remembered_and_asked_again_by_retries(make_bench: Any) -> None:
    directory = Directory(a="Ada")
    directory.errors = [ConnectionError("busy")]
    bench = make_bench(directory, cache=LookupCache(), retries=1)

    assert (look_up(bench, "a1", "a2"), directory.asked) == (["a1=Ada", "a2=Ada"], ["a", "a"])


def test_an_error_is_that_of_every_record_that_waited_for_it(make_bench: Any) -> None:
    gates = Gates()
    bench = make_bench(gates, config={"processing.exception.handler": LogAndContinueProcessingExceptionHandler()})
    feed(bench, "a1", "b1", "a2")
    gates["a"].set_exception(ConnectionError("down"))
    gates["b"].set_result("Bob")
    bench.wait_for(running=0)
    bench.task.process(100)

    assert (bench.values(), bench.dropped) == (["b1=Bob"], 2)


def test_what_would_end_the_loop_ends_the_task(make_bench: Any) -> None:
    directory = Directory()
    directory.errors = [SystemExit(3)]
    bench = make_bench(directory)
    with pytest.raises(SystemExit):
        look_up(bench, "a1")


def test_a_question_that_takes_too_long_is_an_error(make_bench: Any) -> None:
    with pytest.raises(ProcessingError, match="took longer than 1 ms"):
        look_up(make_bench(Gates(), timeout_ms=1), "a1")


def test_closing_ends_questions_that_nobody_waits_for(make_bench: Any) -> None:
    asked, ended = threading.Event(), threading.Event()

    async def never(wanted: str) -> str:
        asked.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.set()
        return wanted

    bench = make_bench(never)
    feed(bench, "a1", "a2")
    assert asked.wait(PATIENCE_S)
    bench.task.close()

    assert ended.is_set()


def test_keys_that_cannot_be_looked_up_are_an_error(make_bench: Any) -> None:
    with pytest.raises(ProcessingError, match="which cannot be looked up"):
        look_up(make_bench(Directory(), key=lambda key, value: [value]), "a1")


def test_options_without_sense_are_refused() -> None:
    with pytest.raises(TypeError, match="not a coroutine function"):
        Lookup(len, joined, first_letter)  # type: ignore[arg-type]  # a user without a type checker
    with pytest.raises(ValueError, match="max_in_flight is 0"):
        Lookup(Directory(), joined, first_letter, max_in_flight=0)
    with pytest.raises(ValueError, match="timeout is 0 ms"):
        Lookup(Directory(), joined, first_letter, timeout_ms=0)
    with pytest.raises(ValueError, match="max_entries is 0"):
        LookupCache(max_entries=0)
    with pytest.raises(ValueError, match="missing_ttl is 0"):
        LookupCache(missing_ttl=0)
