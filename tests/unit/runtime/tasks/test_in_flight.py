"""A task with records in flight: when it takes records, what it commits, and that no crash loses anything."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykstreams.core.errors import StreamsError
from pykstreams.core.ids import TopicPartition
from pykstreams.core.processor import OperatorContext, PunctuationType
from pykstreams.core.types import Forward
from pykstreams.processors import MapValuesAsync
from pykstreams.processors.event_loop import EventLoopThread
from pykstreams.runtime.tasks.offset_metadata import encode
from tests.unit.runtime.tasks.fakes import Gates, Operator, TaskBench, message, node, sink, source

IN = TopicPartition("in", 0)
OTHER = TopicPartition("other", 0)
LOOP = EventLoopThread("test")


def enriching(gates: Gates, **options: Any) -> TaskBench:
    limit = options.pop("max_in_flight", 100)
    return TaskBench(
        source("SOURCE", "in", children=("ASYNC",)),
        node("ASYNC", MapValuesAsync(gates, max_in_flight=limit, event_loop=LOOP), "SINK"),
        sink("SINK", "out"),
        **options,
    )


def records(*values: str, first: int = 0) -> list[Any]:
    return [message("in", first + i, value, first + i, key=value[:1].encode()) for i, value in enumerate(values)]


def test_task_without_such_operators_is_always_settled() -> None:
    bench = TaskBench(source("SOURCE", "in", children=("SINK",)), sink("SINK", "out"))
    bench.feed(*records("a"))

    assert bench.task.settle()
    assert bench.task.unfinished == 0


def test_a_limit_of_an_operator_has_the_task_take_no_more_and_delays_no_commit() -> None:
    room = [2]

    def build(context: OperatorContext) -> Forward:
        context.limit_intake(lambda: room[0])
        return context.forward

    bench = TaskBench(
        source("SOURCE", "in", children=("LIMIT",)), node("LIMIT", Operator(build), "SINK"), sink("SINK", "out")
    )
    bench.task.add(IN, records("a", "b", "c"))

    assert (bench.task.process(10), bench.task.room) == (2, 2)
    room[0] = -1
    assert (bench.task.is_ready(), bench.task.process(10), bench.task.room) == (False, 0, 0)
    assert bench.task.settle()
    room[0] = 1
    assert bench.task.process(10) == 1


def test_commit_has_to_wait_for_records_in_flight() -> None:
    gates = Gates()
    bench = enriching(gates)
    bench.feed(*records("a", "b"))
    settled = bench.task.settle()

    with pytest.raises(StreamsError, match="task 0_0 has 2 records in flight; before a commit call settle until it is"):
        bench.task.prepare_commit()
    for value in "ab":
        gates[value].set_result(value)
    bench.wait_for(running=0)

    assert not settled
    assert bench.commit() == {IN: (2, encode(1, {}))}
    assert bench.values() == ["a", "b"]
    bench.task.close()


def test_no_record_is_taken_between_the_call_for_a_commit_and_the_commit() -> None:
    gates = Gates()
    bench = enriching(gates)
    bench.feed(*records("a"))
    bench.task.settle()
    bench.feed(*records("b", first=1))
    while_held = bench.task.is_ready(), bench.task.unfinished
    gates["a"].set_result("a")
    bench.wait_for(running=0)
    offsets = bench.commit()

    assert while_held == (False, 1)
    assert offsets == {IN: (1, encode(0, {}))}
    assert bench.task.is_ready()
    bench.task.close()


def test_handing_on_alone_is_work_that_needs_a_commit() -> None:
    gates = Gates()
    bench = enriching(gates)
    bench.feed(*records("a"))
    gates["a"].set_result("a")
    bench.wait_for(running=0)
    bench.task.process(10)

    assert bench.task.commit_needed
    bench.task.close()


def test_wall_clock_punctuators_run_while_records_wait() -> None:
    gates = Gates()
    times: list[int] = []

    def build(context: Any) -> Any:
        context.on_init(lambda: context.processing.schedule(10, PunctuationType.WALL_CLOCK_TIME, times.append))
        return context.forward

    bench = TaskBench(
        source("SOURCE", "in", children=("TIMER",)),
        node("TIMER", Operator(build), "ASYNC"),
        node("ASYNC", MapValuesAsync(gates, max_in_flight=1, event_loop=LOOP), "SINK"),
        sink("SINK", "out"),
    )
    bench.feed(*records("a", "b"))
    bench.clock.advance(10)
    bench.task.punctuate(bench.clock.now_ms())

    assert (times, bench.task.unfinished) == ([1010], 1)
    bench.task.close()


def test_punctuator_that_sends_records_all_the_time_cannot_keep_a_commit_waiting() -> None:
    gates = Gates()

    def build(context: Any) -> Any:
        def send(time: int) -> None:
            context.forward("k", f"at {time}", time, ())

        context.on_init(lambda: context.processing.schedule(10, PunctuationType.WALL_CLOCK_TIME, send))
        return context.forward

    bench = TaskBench(
        source("SOURCE", "in", children=("TIMER",)),
        node("TIMER", Operator(build), "ASYNC"),
        node("ASYNC", MapValuesAsync(gates, event_loop=LOOP), "SINK"),
        sink("SINK", "out"),
    )
    bench.feed(*records("a"))
    bench.task.settle()
    bench.clock.advance(10)
    while_waiting = bench.task.punctuate(bench.clock.now_ms())
    gates["a"].set_result("a")
    bench.wait_for(running=0)
    bench.commit()
    afterwards = bench.task.punctuate(bench.clock.now_ms())

    assert (while_waiting, afterwards, bench.task.unfinished) == (False, True, 1)
    bench.task.close()


def test_records_that_a_cache_sends_at_the_commit_are_waited_for_and_committed_with_it() -> None:
    """A cache above the operator is flushed by ``settle``; what it sends is in flight then."""
    gates = Gates()
    flushed: list[bool] = []
    accepts: list[Forward] = []

    class Cached:
        def flush_cache(self) -> None:
            if not flushed:
                flushed.append(True)
                bench.task._state.current.raw = (message("in", 0, "c", 0), 0, ())
                accepts[0]("k", "c", 0, ())

    def build(context: OperatorContext) -> Forward:
        accepts.append(context.forward)
        return lambda *record: None

    bench = TaskBench(
        source("SOURCE", "in", children=("CACHE",)),
        node("CACHE", Operator(build), "ASYNC"),
        node("ASYNC", MapValuesAsync(gates, event_loop=LOOP), "SINK"),
        sink("SINK", "out"),
    )
    bench.task._state.stores["cached"] = Cached()
    bench.feed(*records("a"))
    first = bench.task.settle()
    gates["c"].set_result("C")
    bench.wait_for(running=0)
    again = bench.task.settle()

    assert (first, again, bench.values()) == (False, True, ["C"])
    bench.task._state.stores.clear()
    bench.task.close()


def test_two_operators_one_below_the_other_are_both_waited_for() -> None:
    first, second = Gates(), Gates()
    bench = TaskBench(
        source("SOURCE", "in", children=("ONE",)),
        node("ONE", MapValuesAsync(first, event_loop=LOOP), "TWO"),
        node("TWO", MapValuesAsync(second, event_loop=LOOP), "SINK"),
        sink("SINK", "out"),
    )
    bench.feed(*records("a"))
    first["a"].set_result("b")
    bench.wait_for(running=0)
    between = bench.task.settle(), bench.task.unfinished
    second["b"].set_result("c")
    bench.wait_for(running=0)

    assert between == (False, 1)
    assert bench.task.settle()
    assert bench.values() == ["c"]
    bench.task.close()


def test_task_with_several_inputs_stops_taking_records_too() -> None:
    gates = Gates()
    bench = TaskBench(
        source("LEFT", "in", children=("ASYNC",)),
        source("RIGHT", "other", children=("ASYNC",)),
        node("ASYNC", MapValuesAsync(gates, max_in_flight=2, event_loop=LOOP), "SINK"),
        sink("SINK", "out"),
        topics=("in", "other"),
    )
    bench.feed(*records("a", "b"), message("other", 0, "c", 0))
    ready, unfinished = bench.task.is_ready(), bench.task.unfinished
    gates["a"].set_result("a")
    bench.wait_for(running=1)

    assert (ready, unfinished) == (False, 2)
    assert bench.task.process(10) == 1
    bench.task.close()


# --- any order, any crash ---


@settings(max_examples=60, deadline=None)
@given(keys=st.lists(st.sampled_from("abc"), max_size=12), limit=st.integers(1, 6), data=st.data())
def test_whatever_the_order_of_completion_each_key_keeps_its_order_and_nothing_is_lost_or_doubled(
    keys: list[str], limit: int, data: st.DataObject
) -> None:
    gates = Gates()
    bench = enriching(gates, max_in_flight=limit)
    given_values = [f"{key}{i}" for i, key in enumerate(keys)]
    bench.feed(*records(*given_values))
    out: list[str | None] = bench.values()
    open_calls: list[str] = given_values[: bench.task.unfinished]
    taken = len(open_calls)
    while open_calls:
        value = data.draw(st.sampled_from(open_calls))
        open_calls.remove(value)
        gates[value].set_result(value)
        bench.wait_for(running=len(open_calls))
        now = bench.task.process(limit)
        open_calls += given_values[taken : taken + now]
        taken += now
        assert bench.task.unfinished <= limit
        out += bench.values()
    bench.task.close()

    assert sorted(map(str, out)) == sorted(given_values)
    assert by_key(out) == by_key(given_values)


def by_key(values: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for value in values:
        found[value[0]].append(value)
    return found


class RestartedTask:
    """A task that is fed from a log, commits and dies; ``out`` is what a reader of its topic sees."""

    def __init__(self, log: list[str], *, transactional: bool) -> None:
        self.log = log
        self.transactional = transactional
        self.committed: dict[TopicPartition, tuple[int, str]] = {}
        self.out: list[Any] = []
        self.start()

    def start(self) -> None:
        self.gates = Gates()
        self.bench = enriching(self.gates, max_in_flight=3, committed=self.committed)
        self.position = self.taken = self.committed.get(IN, (0, ""))[0]
        self.open: list[str] = []
        self.pending: list[Any] = []

    def read(self) -> None:
        if self.position < len(self.log):
            self.bench.task.add(IN, records(self.log[self.position], first=self.position))
            self.position += 1
        self.process()

    def process(self) -> None:
        count = self.bench.task.process(10)
        self.open += self.log[self.taken : self.taken + count]
        self.taken += count
        self.sent()

    def sent(self) -> None:
        (self.pending if self.transactional else self.out).extend(self.bench.values())

    def finish(self, choice: int) -> None:
        if self.open:
            value = self.open.pop(choice % len(self.open))
            self.gates[value].set_result(value)
            self.bench.wait_for(running=len(self.open))

    def commit(self) -> bool:
        if not self.bench.task.settle():
            self.sent()
            return False
        self.sent()
        self.committed |= self.bench.task.prepare_commit()
        self.bench.task.post_commit({})
        self.out += self.pending
        self.pending = []
        return True

    def crash(self) -> None:
        self.bench.task.close()
        self.start()

    def run_out(self) -> None:
        while self.committed.get(IN, (0, ""))[0] < len(self.log):
            self.read()
            while self.open:
                self.finish(0)
                self.process()
            self.commit()
        self.bench.task.close()


@settings(max_examples=60, deadline=None)
@given(
    keys=st.lists(st.sampled_from("abc"), min_size=1, max_size=8),
    steps=st.lists(
        st.tuples(st.sampled_from(["read", "process", "finish", "commit", "crash"]), st.integers(0, 5)), max_size=40
    ),
    transactional=st.booleans(),
)
def test_application_that_dies_at_any_moment_loses_nothing(
    keys: list[str], steps: list[tuple[str, int]], transactional: bool
) -> None:
    log = [f"{key}{i}" for i, key in enumerate(keys)]
    app = RestartedTask(log, transactional=transactional)
    for step, choice in steps:
        if step == "finish":
            app.finish(choice)
        else:
            getattr(app, step)()
    app.run_out()

    if transactional:
        assert by_key(app.out) == by_key(log)
    else:
        assert set(app.out) == set(log)
