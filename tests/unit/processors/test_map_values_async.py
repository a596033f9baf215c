"""Coroutines in the path: order, limits, failures, cancellation. Each test decides when its calls end."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import re
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from pykstreams.core.errors import ProcessingError
from pykstreams.core.handlers import ErrorHandlerResponse, LogAndContinueProcessingExceptionHandler
from pykstreams.processors import MapValuesAsync, event_loop, map_values_async
from pykstreams.processors.event_loop import EventLoopThread
from tests.unit.runtime.tasks.fakes import Gates, TaskBench, each, message, node, sink, source


@pytest.fixture
def make_bench() -> Iterator[Any]:
    benches: list[TaskBench] = []

    def make(function: Any, *, config: dict[str, Any] | None = None, **options: Any) -> TaskBench:
        operator = MapValuesAsync(function, **{"event_loop": EventLoopThread("test"), **options})
        bench = TaskBench(
            source("SOURCE", "in", children=("ASYNC",)),
            node("ASYNC", operator, "SINK"),
            sink("SINK", "out"),
            config={"retry.backoff.ms": 1, **(config or {})},
        )
        benches.append(bench)
        return bench

    yield make
    for bench in benches:
        with contextlib.suppress(ProcessingError):
            bench.task.close()


def feed(bench: TaskBench, *pairs: tuple[str, str], first: int = 0) -> int:
    found = [message("in", first + i, value, first + i, key=key.encode()) for i, (key, value) in enumerate(pairs)]
    return bench.feed(*found)


def text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


def pairs_sent(bench: TaskBench) -> list[tuple[str | None, str | None]]:
    return [(text(record.key), text(record.value)) for record in bench.sent()]


async def shout(value: str) -> str:
    return value.upper()


def goes_on(context: Any, record: Any, error: Exception) -> ErrorHandlerResponse:
    return ErrorHandlerResponse.resume()


# --- order ---


def test_calls_overlap_also_those_for_one_key(make_bench: Any) -> None:
    gates = Gates()
    bench = make_bench(gates)
    feed(bench, ("a", "1"), ("a", "2"), ("b", "3"))
    for value in "123":
        gates[value].set_result(value)
    bench.wait_for(running=0)

    assert sorted(gates.called) == ["1", "2", "3"]


def test_records_of_one_key_leave_in_the_order_in_which_they_came(make_bench: Any) -> None:
    gates = Gates()
    bench = make_bench(gates)
    feed(bench, ("a", "1"), ("a", "2"), ("b", "3"))

    gates["2"].set_result("two")
    gates["3"].set_result("three")
    bench.wait_for(running=1)
    bench.task.process(10)
    assert pairs_sent(bench) == [("b", "three")]

    gates["1"].set_result("one")
    bench.wait_for(running=0)
    bench.task.process(10)
    assert pairs_sent(bench) == [("a", "one"), ("a", "two")]


def test_keys_that_cannot_be_looked_up_keep_one_order_together(make_bench: Any) -> None:
    gates = Gates()
    bench = TaskBench(
        source("SOURCE", "in", children=("ASYNC",), key_deserializer=lambda data: [data]),
        node("ASYNC", MapValuesAsync(gates), "SINK"),
        sink("SINK", "out", key_serializer=lambda key: key[0]),
    )
    feed(bench, ("a", "1"), ("b", "2"))
    gates["2"].set_result("two")
    bench.wait_for(running=1)
    bench.task.process(10)
    before = bench.values()
    gates["1"].set_result("one")
    bench.wait_for(running=0)
    bench.task.process(10)
    bench.task.close()

    assert (before, bench.values()) == ([], ["one", "two"])


def test_function_may_want_the_key_too(make_bench: Any) -> None:
    async def label(key: str, value: str) -> str:
        return f"{key}={value}"

    bench = make_bench(label, with_key=True)
    feed(bench, ("a", "1"))
    bench.wait_for(running=0)
    bench.task.process(10)

    assert pairs_sent(bench) == [("a", "a=1")]


def test_result_leaves_with_time_headers_and_position_of_its_own_record() -> None:
    gates, seen = Gates(), []

    def build(context: Any) -> Any:
        def look(key: Any, value: Any, timestamp: int, headers: Any) -> None:
            found = context.current.context
            seen.append((value, timestamp, headers, found.offset, found.timestamp, found.source_raw_value))

        return look

    look = type("Look", (), {"build": staticmethod(build)})()
    bench = TaskBench(
        source("SOURCE", "in", children=("ASYNC",)), node("ASYNC", MapValuesAsync(gates), "LOOK"), node("LOOK", look)
    )
    bench.feed(
        message("in", 5, "a", 50, key=b"x", headers=[("h", b"5")]),
        message("in", 6, "b", 40, key=b"y", headers=[("h", b"6")]),
    )
    gates["b"].set_result("B")
    gates["a"].set_result("A")
    bench.wait_for(running=0)
    bench.task.process(10)
    bench.task.close()

    assert seen == [("A", 50, [("h", b"5")], 5, 50, b"a"), ("B", 40, [("h", b"6")], 6, 40, b"b")]


# --- limits ---


def test_no_more_records_are_taken_than_may_be_in_flight(make_bench: Any) -> None:
    gates = Gates()
    bench = make_bench(gates, max_in_flight=2)
    taken = feed(bench, *[("k", str(i)) for i in range(5)])
    full = bench.task.is_ready(), bench.task.process(10), bench.task.unfinished

    gates["0"].set_result("zero")
    bench.wait_for(running=1)

    assert (taken, full) == (2, (False, 0, 2))
    assert bench.task.is_ready()
    assert bench.task.process(10) == 1
    assert bench.values() == ["zero"]
    assert bench.task.buffered == 2


def test_result_that_waits_for_one_before_it_still_takes_its_place(make_bench: Any) -> None:
    gates = Gates()
    bench = make_bench(gates, max_in_flight=2)
    feed(bench, *[("k", str(i)) for i in range(3)])
    gates["1"].set_result("one")
    bench.wait_for(running=1)

    assert bench.task.process(10) == 0
    assert bench.task.unfinished == 2


def test_one_record_that_becomes_many_makes_no_more_calls_at_a_time_than_allowed() -> None:
    gates = Gates()
    at_once: list[int] = []
    running = 0

    async def counted(value: str) -> str:
        nonlocal running
        running += 1
        at_once.append(running)
        try:
            return str(await gates(value))
        finally:
            running -= 1

    def build(context: Any) -> Any:
        def split(key: Any, value: Any, timestamp: int, headers: Any) -> None:
            for part in value.split():
                context.forward(key, part, timestamp, headers)

        return split

    split = type("Split", (), {"build": staticmethod(build)})()
    bench = TaskBench(
        source("SOURCE", "in", children=("SPLIT",)),
        node("SPLIT", split, "ASYNC"),
        node("ASYNC", MapValuesAsync(counted, max_in_flight=2), "SINK"),
        sink("SINK", "out"),
    )
    bench.feed(message("in", 0, "a b c d e", 0))
    for value in "abcde":
        gates[value].set_result(value)
    bench.wait_for(running=0)
    bench.task.process(10)
    bench.task.close()

    assert bench.values() == list("abcde")
    assert max(at_once) <= 2


# --- failures ---


def test_exception_of_a_coroutine_stops_the_task_and_names_record_and_function(make_bench: Any) -> None:
    async def refuse(value: str) -> str:
        raise LookupError(f"nobody knows {value}")

    bench = make_bench(refuse)
    feed(bench, ("a", "1"))
    bench.wait_for(running=0)

    with pytest.raises(
        ProcessingError, match=r"refuse .*nobody knows 1.*ASYNC failed at record in-0 offset 0"
    ) as found:
        bench.task.process(10)
    assert isinstance(found.value.__cause__, LookupError)


def test_failed_record_is_dropped_when_the_handler_goes_on_and_those_behind_it_leave(make_bench: Any) -> None:
    gates, asked = Gates(), []

    def handler(context: Any, record: Any, error: Exception) -> ErrorHandlerResponse:
        asked.append((context.processor_node_id, context.offset, context.source_raw_value, record.value, repr(error)))
        return ErrorHandlerResponse.resume()

    bench = make_bench(gates, config={"processing.exception.handler": handler})
    feed(bench, ("a", "1"), ("a", "2"))
    gates["2"].set_result("two")
    gates["1"].set_exception(LookupError("no 1"))
    bench.wait_for(running=0)
    bench.task.process(10)

    assert asked == [("ASYNC", 0, b"1", "1", "LookupError('no 1')")]
    assert pairs_sent(bench) == [("a", "two")]
    assert bench.dropped == 1


def test_failed_record_can_go_to_a_dead_letter_topic(make_bench: Any) -> None:
    gates = Gates()
    bench = make_bench(
        gates,
        config={
            "processing.exception.handler": LogAndContinueProcessingExceptionHandler,
            "errors.dead.letter.queue.topic.name": "dead",
        },
    )
    feed(bench, ("a", "1"), ("b", "2"))
    gates["2"].set_result("two")
    gates["1"].set_exception(LookupError("no 1"))
    bench.wait_for(running=0)
    bench.task.process(10)
    dead, alive = bench.sent()

    assert (dead.topic, dead.key, dead.value) == ("dead", b"a", b"1")
    assert dict(dead.headers)["__streams.errors.offset"] == b"0"
    assert (alive.topic, alive.value) == ("out", b"two")


def test_error_below_is_an_error_of_that_node_and_not_of_the_coroutine() -> None:
    def refuse(key: str, value: str) -> str:
        raise LookupError("refused")

    bench = TaskBench(
        source("SOURCE", "in", children=("ASYNC",)),
        node("ASYNC", MapValuesAsync(shout), "BELOW"),
        node("BELOW", each(refuse), "SINK"),
        sink("SINK", "out"),
    )
    bench.feed(message("in", 0, "1", 0))
    bench.wait_for(running=0)

    with pytest.raises(ProcessingError, match="BELOW failed at record in-0 offset 0"):
        bench.task.process(10)
    bench.task.close()


def test_call_is_repeated_until_it_succeeds(make_bench: Any) -> None:
    tries: list[str] = []

    async def second_time(value: str) -> str:
        tries.append(value)
        if len(tries) < 3:
            raise ConnectionError("busy")
        return value.upper()

    bench = make_bench(second_time, retries=2)
    feed(bench, ("a", "x"))
    bench.wait_for(running=0)
    bench.task.process(10)

    assert tries == ["x", "x", "x"]
    assert pairs_sent(bench) == [("a", "X")]


def test_error_of_the_last_call_counts_when_none_succeeds(make_bench: Any) -> None:
    tries: list[str] = []

    async def never(value: str) -> str:
        tries.append(value)
        raise ConnectionError(f"busy {len(tries)}")

    bench = make_bench(never, retries=2)
    feed(bench, ("a", "x"))
    bench.wait_for(running=0)

    with pytest.raises(ProcessingError, match="busy 3"):
        bench.task.process(10)


def test_call_that_takes_too_long_is_cancelled_and_fails(make_bench: Any) -> None:
    cancelled: list[str] = []

    async def never(value: str) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(value)
            raise
        return value

    bench = make_bench(never, timeout_ms=1, retries=1)
    feed(bench, ("a", "x"))
    bench.wait_for(running=0)

    with pytest.raises(ProcessingError, match=r"never \(line \d+\) took longer than 1 ms in call 2"):
        bench.task.process(10)
    assert cancelled == ["x", "x"]


def test_timeout_of_the_functions_own_is_told_from_ours(make_bench: Any) -> None:
    async def impatient(value: str) -> str:
        raise TimeoutError("the service said so")

    bench = make_bench(impatient, timeout_ms=60_000)
    feed(bench, ("a", "x"))
    bench.wait_for(running=0)

    with pytest.raises(ProcessingError, match="the service said so"):
        bench.task.process(10)


def test_coroutine_that_is_cancelled_from_within_fails_like_any_other(make_bench: Any) -> None:
    async def gives_up(value: str) -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)
        return value

    bench = make_bench(gives_up, config={"processing.exception.handler": goes_on})
    feed(bench, ("a", "x"))
    bench.wait_for(running=0)
    bench.task.process(10)

    assert (pairs_sent(bench), bench.dropped, bench.task.unfinished) == ([], 1, 0)


def test_exit_asked_for_in_a_coroutine_ends_the_worker_and_not_the_event_loop(make_bench: Any) -> None:
    async def leave(value: str) -> str:
        raise SystemExit(3)

    loop = EventLoopThread("test")
    bench = make_bench(leave, event_loop=loop, config={"processing.exception.handler": goes_on})
    feed(bench, ("a", "x"))
    bench.wait_for(running=0)

    with pytest.raises(SystemExit):
        bench.task.process(10)
    assert loop.is_running


# --- what may be given ---


class Lookup:
    async def fetch(self, value: str) -> str:
        return value

    async def __call__(self, value: str) -> str:
        return value


@pytest.mark.parametrize("function", [shout, Lookup().fetch, Lookup(), functools.partial(shout)])
def test_anything_that_is_defined_with_async_def_is_taken(function: Any) -> None:
    assert MapValuesAsync(function).function is function


@pytest.mark.parametrize("function", [str.upper, lambda value: shout(value), Lookup])
def test_what_is_no_coroutine_function_is_refused_when_the_topology_is_built(function: Any) -> None:
    with pytest.raises(TypeError, match="is not a coroutine function; define it with 'async def'"):
        MapValuesAsync(function)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_in_flight": 0}, "max_in_flight is 0; at least one record must be in flight"),
        ({"retries": -1}, "retries is -1; it must not be negative"),
        ({"timeout_ms": 0}, "timeout is 0 ms; give at least 1 ms, or None for no limit"),
    ],
)
def test_limits_that_make_no_sense_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        MapValuesAsync(shout, **options)


# --- life and death ---


def test_closing_cancels_what_runs(make_bench: Any) -> None:
    ended: list[str] = []
    started = threading.Event()

    async def waits(value: str) -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(value)
        return value

    bench = make_bench(waits, max_in_flight=1)
    feed(bench, ("a", "1"))
    assert started.wait(60)
    bench.task.close()

    assert ended == ["1"]
    assert pairs_sent(bench) == []


def test_coroutine_that_will_not_be_cancelled_is_left_behind_with_a_warning(
    make_bench: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(map_values_async, "_CANCEL_S", 0.01)
    started, thread = threading.Event(), EventLoopThread("test")
    let_go = asyncio.Event()

    async def stubborn(value: str) -> str:
        started.set()
        while not let_go.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await let_go.wait()
        return value

    bench = make_bench(stubborn, event_loop=thread)
    feed(bench, ("a", "1"))
    assert started.wait(60)
    bench.task.close()
    loop = thread.acquire()
    loop.call_soon_threadsafe(let_go.set)
    asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result(20)
    thread.release()

    assert re.search(r"stubborn \(line \d+\) of ASYNC did not end within 0.01 s of being cancelled", caplog.text)
    assert pairs_sent(bench) == []


def test_event_loop_that_a_coroutine_blocks_is_left_behind_with_a_warning_and_the_next_task_has_another(
    make_bench: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(map_values_async, "_CANCEL_S", 0.01)
    monkeypatch.setattr(event_loop, "_END_S", 0.01)
    blocked, let_go = threading.Event(), threading.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def blocks(value: str) -> str:
        loops.append(asyncio.get_running_loop())
        if value == "1":
            blocked.set()
            let_go.wait(60)
        return value

    thread = EventLoopThread("blocked")
    bench = make_bench(blocks, event_loop=thread)
    feed(bench, ("a", "1"))
    assert blocked.wait(60)
    (left_thread,) = (one for one in threading.enumerate() if one.name == "blocked")
    bench.task.close()
    assert not thread.is_running
    assert "the thread of coroutines, blocked, did not end within 0.01 s and is left behind" in caplog.text

    other = make_bench(blocks, event_loop=thread)
    feed(other, ("a", "2"))
    other.wait_for(running=0)
    other.task.process(10)
    assert pairs_sent(other) == [("a", "2")]
    other.task.close()
    assert not thread.is_running
    left, following = loops
    assert left is not following

    let_go.set()
    left_thread.join(60)
    left.run_until_complete(asyncio.sleep(0))  # what closing has asked of it
    left.close()


def test_thread_of_the_event_loop_lives_as_long_as_a_task_needs_it(make_bench: Any) -> None:
    loop = EventLoopThread("test")
    before = loop.is_running
    one, other = make_bench(shout, event_loop=loop), make_bench(shout, event_loop=loop)
    one.task.close()
    between = loop.is_running
    other.task.close()

    assert (before, between, loop.is_running) == (False, True, False)


def test_what_a_coroutine_keeps_stays_usable_when_tasks_come_and_go(make_bench: Any) -> None:
    """A client is bound to the loop in which it was made; so the loop must be the same one ever after."""
    loop = EventLoopThread("test")
    kept: list[asyncio.AbstractEventLoop] = []

    async def note(value: str) -> str:
        kept.append(asyncio.get_running_loop())
        return value

    for _ in range(2):
        bench = make_bench(note, event_loop=loop)
        feed(bench, ("a", "x"))
        bench.wait_for(running=0)
        bench.task.close()

    assert kept[0] is kept[1]
    assert not kept[0].is_closed()


def test_nothing_of_a_record_is_kept_once_it_has_left(make_bench: Any) -> None:
    class Value(str):
        pass

    made: list[weakref.ref[Value]] = []

    async def give(value: str) -> Value:
        result = Value(value)
        made.append(weakref.ref(result))
        return result

    thread = EventLoopThread("test")
    bench = make_bench(give, event_loop=thread)
    feed(bench, ("a", "1"), ("b", "2"))
    bench.wait_for(running=0)
    bench.task.process(10)
    asyncio.run_coroutine_threadsafe(asyncio.sleep(0), thread.acquire()).result(20)  # the loop has let go of them, too
    thread.release()

    assert [bench.task.unfinished, *(ref() for ref in made)] == [0, None, None]
