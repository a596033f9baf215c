"""Windows, suppressions and joins that go on by the wall clock while there is no input."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykstreams import (
    BufferConfig,
    BuiltInDslStoreSuppliers,
    EmitStrategy,
    Grouped,
    JoinWindows,
    KStream,
    KTable,
    Materialized,
    SessionWindows,
    SlidingWindows,
    StreamJoined,
    StreamsBuilder,
    StreamsConfig,
    Suppressed,
    TimeWindows,
)
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.errors import TopologyError
from pykstreams.runtime.tasks.collector import RecordCollector
from pykstreams.runtime.tasks.raw_message import RawMessage
from pykstreams.runtime.tasks.stores.initial_state import InitialState
from pykstreams.runtime.tasks.task import Task, TaskParts
from pykstreams.serdes import StringSerde
from pykstreams.state.interfaces.record_cache import RecordCache
from pykstreams.testing import TopologyTestDriver
from pykstreams.testing.capture import CapturingProducer
from pykstreams.testing.clock import MockClock

TEXT = StringSerde()
SECOND, MINUTE = 1000, 60_000
IDLE = timedelta(seconds=10)
CLOSE = EmitStrategy.ON_WINDOW_CLOSE
WAIT = Suppressed.until_window_closes(BufferConfig(), idle=IDLE)

Closing = Callable[[StreamsBuilder], KTable[Any, Any]]


def config(**settings: object) -> StreamsConfig:
    return StreamsConfig(
        {
            "application.id": "app",
            "default.key.serde": TEXT,
            "default.value.serde": TEXT,
            "dsl.store.suppliers.class": BuiltInDslStoreSuppliers.IN_MEMORY,
            "statestore.cache.max.bytes": 0,
            **settings,
        }
    )


def grouped(builder: StreamsBuilder) -> Any:
    stream: KStream[str, str] = builder.stream("in")
    return stream.filter(lambda key, _: key != "filtered").group_by_key(Grouped(key_serde=TEXT, value_serde=TEXT))


def kept() -> Materialized[str, int]:
    """A store that has every window of a test."""
    return Materialized("n", retention=timedelta(hours=1))


def on_close(windows: Any) -> Closing:
    return lambda builder: (
        grouped(builder).windowed_by(windows).emit_strategy(CLOSE, idle=IDLE).count(materialized=kept())
    )


def suppressed(windows: Any) -> Closing:
    return lambda builder: (
        grouped(builder).windowed_by(windows).count(materialized=kept(), late_records_to="late").suppress(WAIT)
    )


def to_out(builder: StreamsBuilder, table: KTable[Any, Any]) -> None:
    table.to_stream(lambda windowed, _: str(windowed)).map_values(str).to("out")


class Driven:
    def __init__(self, driver: TopologyTestDriver) -> None:
        self.driver = driver
        self._out = driver.create_output_topic("out", TEXT, TEXT)

    def pipe(self, key: str, time: int, topic: str = "in") -> None:
        self.driver.create_input_topic(topic, TEXT, TEXT).pipe_input(key, key, time)

    def after(self, seconds: float) -> list[tuple[str, str]]:
        """What has come when so much time has passed."""
        self.driver.advance_wall_clock_time(timedelta(seconds=seconds))
        return self.read()

    def read(self) -> list[tuple[str, str]]:
        return [(row.key, row.value) for row in self._out.read_key_values()]

    @property
    def dropped(self) -> float:
        (metric,) = (one for name, one in self.driver.metrics().items() if name.name == "dropped-records-total")
        return float(metric.value)


@contextmanager
def driven(closing: Closing, **options: object) -> Iterator[Driven]:
    builder = StreamsBuilder()
    to_out(builder, closing(builder))
    with TopologyTestDriver(builder.build(), config(**options), initial_wall_clock_time=5) as driver:
        yield Driven(driver)


TUMBLING = TimeWindows(MINUTE, grace=SECOND)
AT_ONCE: dict[str, Any] = {"__emit.interval.ms.kstreams.windowed.aggregation__": 0}
KINDS = [on_close, suppressed]


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_window_closes_when_the_wall_clock_has_passed_its_end_by_the_grace(kind: Any) -> None:
    with driven(kind(TUMBLING)) as app:
        app.pipe("a", 40 * SECOND)

        assert app.after(20.9) == []
        assert app.after(0.1) == [("[a@0/60000]", "1")]
        assert app.after(600) == []


@pytest.mark.parametrize("kind", KINDS)
def test_no_window_closes_before_input_has_been_idle_for_the_time(kind: Any) -> None:
    with driven(kind(TUMBLING)) as app:
        app.pipe("a", 60 * SECOND)
        app.pipe("a", 60 * SECOND - 1)

        assert app.after(9.9) == []
        assert app.after(0.1) == [("[a@0/60000]", "1")]


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_that_reaches_no_window_is_input_too(kind: Any) -> None:
    with driven(kind(TUMBLING)) as app:
        app.pipe("a", 59 * SECOND)
        for _ in range(4):
            assert app.after(9) == []
            app.pipe("filtered", 59 * SECOND)

        assert app.after(10) == [("[a@0/60000]", "1")]


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_of_a_window_that_was_closed_by_the_wall_clock_is_late_and_counted(kind: Any) -> None:
    with driven(kind(TUMBLING)) as app:
        app.pipe("a", 40 * SECOND)
        app.after(30)
        app.pipe("a", 50 * SECOND)
        app.pipe("b", 61 * SECOND)

        assert app.dropped == 1
        assert app.after(600) == [("[b@60000/120000]", "1")]


def test_late_records_go_where_they_are_wanted_also_when_a_suppression_has_closed_their_window() -> None:
    with driven(suppressed(TUMBLING)) as app:
        app.pipe("a", 40 * SECOND)
        app.after(30)
        app.pipe("b", 50 * SECOND)

        assert app.driver.create_output_topic("late", TEXT, TEXT).read_key_values() == [("b", "b")]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("key", ["filtered", "a"], ids=["of another operator", "late"])
def test_silences_behind_records_that_open_no_window_move_time_no_further(kind: Any, key: str) -> None:
    with driven(kind(TUMBLING)) as app:
        app.pipe("a", 40 * SECOND)
        app.after(600)
        app.pipe(key, 30 * SECOND)
        dropped = app.dropped
        app.after(600)
        app.pipe("b", 110 * SECOND)

        assert app.dropped == dropped
        assert app.after(600) == [("[b@60000/120000]", "1")]


@pytest.mark.parametrize("kind", KINDS)
def test_a_window_that_a_record_opens_behind_the_time_of_the_clock_closes_by_the_clock(kind: Any) -> None:
    with driven(kind(TUMBLING)) as app:
        app.pipe("a", 40 * SECOND)
        app.after(600)
        app.pipe("b", 90 * SECOND)

        assert app.after(600) == [("[b@60000/120000]", "1")]


@pytest.mark.parametrize("kind", KINDS)
def test_records_go_on_to_close_windows_as_ever(kind: Any) -> None:
    with driven(kind(TUMBLING), **AT_ONCE) as app:
        app.pipe("a", 40 * SECOND)
        app.pipe("a", 61 * SECOND)

        assert app.read() == [("[a@0/60000]", "1")]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("windows", "closes_after", "expected"),
    [
        (TimeWindows(20, advance_by=10, grace=5), 20, ["[a@10/30]", "[a@20/40]"]),
        (SessionWindows(30, grace=5), 36, ["[a@25/25]"]),
        (SlidingWindows(10, grace=5), 6, ["[a@15/25]"]),
    ],
    ids=repr,
)
def test_windows_of_each_kind_close(kind: Any, windows: Any, closes_after: int, expected: list[str]) -> None:
    with driven(kind(windows)) as app:
        app.pipe("a", 25)
        assert app.after(10 + closes_after / 1000) == [(one, "1") for one in expected]

        app.pipe("a", 24)
        assert (app.after(600), app.dropped > 0) == ([], True)


def test_a_session_that_has_gone_on_may_grow_and_come_again_as_it_does_when_records_close_it() -> None:
    with driven(suppressed(SessionWindows(30 * SECOND))) as app:
        app.pipe("a", 0)
        assert app.after(31) == [("[a@0/0]", "1")]
        app.pipe("a", 20 * SECOND)
        by_the_wall_clock = app.after(600)
    with driven(suppressed(SessionWindows(30 * SECOND))) as app:
        app.pipe("a", 0)
        app.pipe("b", 31 * SECOND)
        assert app.read() == [("[a@0/0]", "1")]
        app.pipe("a", 20 * SECOND)

        assert by_the_wall_clock == [("[a@0/20000]", "2")] == app.after(600)[:1]


def test_what_a_cache_holds_back_is_part_of_the_final_result() -> None:
    clock, producer = MockClock(0), CapturingProducer()
    task = started(suppressed(TUMBLING), config(**{"statestore.cache.max.bytes": 1_000_000}), clock, producer)
    feed(task, ("a", 40 * SECOND))
    task.prepare_commit()
    task.post_commit({})
    feed(task, ("a", 41 * SECOND), ("b", 42 * SECOND))
    clock.advance(timedelta(seconds=30))
    task.punctuate(clock.now_ms())

    assert written(producer) == [(b"[a@0/60000]", b"2"), (b"[b@0/60000]", b"1")]
    task.close()


def test_time_limits_pass_by_the_wall_clock() -> None:
    limit = Suppressed.until_time_limit(timedelta(seconds=30), BufferConfig(), idle=IDLE)
    with driven(lambda builder: builder.table("in").suppress(limit)) as app:
        app.pipe("a", 5)

        assert app.after(29.9) == []
        assert app.after(0.1) == [("a", "a")]


@contextmanager
def joining() -> Iterator[Driven]:
    builder = StreamsBuilder()
    joined: Any = StreamJoined(idle=IDLE)
    windows = JoinWindows(20 * SECOND, grace=5 * SECOND)
    builder.stream("left").outer_join(
        builder.stream("right"), lambda one, other: f"{one}+{other}", windows=windows, stream_joined=joined
    ).to("out")
    with TopologyTestDriver(builder.build(), config(), initial_wall_clock_time=0) as driver:
        yield Driven(driver)


@pytest.mark.parametrize("left", [True, False])
def test_records_of_outer_joins_stay_without_partner_by_the_wall_clock(left: bool) -> None:
    with joining() as app:
        app.pipe("a", 1000, "left" if left else "right")

        assert app.after(25) == []
        assert app.after(1) == [("a", "a+None" if left else "None+a")]
        assert app.after(600) == []
        app.pipe("a", 1000, "right" if left else "left")
        assert app.read() == [("a", "a+a")]  # a pair is a result whenever it is found, as in any outer join


@pytest.mark.parametrize("left_first", [True, False])
def test_a_record_of_either_side_of_a_join_lets_the_time_of_both_go_on(left_first: bool) -> None:
    first, second = ("left", "right") if left_first else ("right", "left")
    with joining() as app:
        app.pipe("a", 1000, first)
        app.after(600)
        app.pipe("b", 20_000, second)

        assert app.after(600) == [("b", "None+b" if left_first else "b+None")]


def test_an_operator_that_has_seen_nothing_has_no_time_that_could_go_on() -> None:
    with driven(on_close(TUMBLING)) as app:
        assert app.after(600) == []
        app.pipe("a", 5)

        assert app.after(61) == [("[a@0/60000]", "1")]


def test_nothing_goes_on_while_records_wait_or_may_wait_on_the_brokers() -> None:
    clock, producer, lag = MockClock(0), CapturingProducer(), [None, 3, 0]
    task = started(on_close(TUMBLING), config(), clock, producer, lag=lambda place: lag[0])
    feed(task, ("a", 0))
    for _ in range(2):
        clock.advance(timedelta(seconds=70))
        task.punctuate(clock.now_ms())
        assert written(producer) == []
        lag.pop(0)
    clock.advance(timedelta(seconds=9))
    task.punctuate(clock.now_ms())
    assert written(producer) == []
    clock.advance(timedelta(seconds=60))
    task.punctuate(clock.now_ms())

    assert written(producer) == [(b"[a@0/60000]", b"1")]
    task.close()


@pytest.mark.parametrize("kind", KINDS)
def test_after_a_restart_time_goes_on_from_where_it_was_and_nothing_comes_twice(kind: Any) -> None:
    clock, producer = MockClock(0), CapturingProducer()
    task = started(kind(TUMBLING), config(), clock, producer)
    feed(task, ("a", 30 * SECOND))
    clock.advance(timedelta(seconds=20))
    task.punctuate(clock.now_ms())
    task, rows = restarted(kind(TUMBLING), task, clock, producer, {})
    clock.advance(timedelta(seconds=11))
    task.punctuate(clock.now_ms())
    first = [row for row in rows if row[0] == "out"]
    assert (first, written(producer, rows)) == ([], [(b"[a@0/60000]", b"1")])

    task, rows = restarted(kind(TUMBLING), task, clock, producer, rows)
    feed(task, ("a", 40 * SECOND), offset=1)
    clock.advance(timedelta(seconds=600))
    task.punctuate(clock.now_ms())

    assert written(producer) == []
    task.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("second", [None, 90, 110], ids=["none", "behind the clock", "ahead of it"])
def test_after_a_restart_time_goes_as_far_as_the_latest_record_lets_it(kind: Any, second: int | None) -> None:
    clock, producer = MockClock(0), CapturingProducer()
    task = started(kind(TUMBLING), config(), clock, producer)
    feed(task, ("a", 40 * SECOND))
    clock.advance(timedelta(seconds=600))
    task.punctuate(clock.now_ms())
    if second is not None:
        feed(task, ("b", second * SECOND), offset=1)
    rows: list[Any] = []
    assert written(producer, rows) == [(b"[a@0/60000]", b"1")]
    task, _ = restarted(kind(TUMBLING), task, clock, producer, rows)
    clock.advance(timedelta(seconds=600))
    task.punctuate(clock.now_ms())
    if second is None:
        feed(task, ("b", 110 * SECOND), offset=1)
        clock.advance(timedelta(seconds=600))
        task.punctuate(clock.now_ms())

    assert written(producer) == [(b"[b@60000/120000]", b"1")]
    task.close()


@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 30)), max_size=12),
    grace=st.integers(0, 10),
    suppress=st.booleans(),
)
def test_final_results_are_those_of_a_model(steps: Sequence[tuple[int, int]], grace: int, suppress: bool) -> None:
    """Each step is a record of that time in seconds, and then so many seconds without input."""
    size, idle = 10 * SECOND, 10 * SECOND
    observed, latest, dropped = -1, -1, 0
    counts: dict[int, int] = {}
    finals: list[tuple[str, str]] = []
    found: list[tuple[str, str]] = []
    windows = TimeWindows(size, grace=grace * SECOND)

    with driven((suppressed if suppress else on_close)(windows), **AT_ONCE) as app:
        for second, pause in [*steps, (500, 600)]:
            time = second * SECOND
            app.pipe("k", time)
            found += app.after(pause)
            observed, latest = max(observed, time), max(latest, time)
            start = time - time % size
            if start + size > observed - grace * SECOND:
                counts[start] = counts.get(start, 0) + 1
            else:
                dropped += 1
            if pause * SECOND >= idle:
                observed = max(observed, min(observed + pause * SECOND, latest + size + grace * SECOND))
            for closed in [one for one in sorted(counts) if one + size <= observed - grace * SECOND]:
                finals.append((f"[k@{closed}/{closed + size}]", str(counts.pop(closed))))

        assert (sorted(found), app.dropped) == (sorted(finals), dropped)


def test_a_topology_with_idle_looks_as_without() -> None:
    def described(idle: timedelta | None) -> str:
        builder = StreamsBuilder()
        count = grouped(builder).windowed_by(TUMBLING).emit_strategy(CLOSE, idle=idle).count()
        to_out(builder, count.suppress(Suppressed.until_window_closes(BufferConfig(), idle=idle)))
        return str(builder.build().describe())

    assert described(None) == described(IDLE)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            lambda b: grouped(b).windowed_by(TUMBLING).emit_strategy(EmitStrategy.ON_WINDOW_UPDATE, idle=IDLE),
            "held back",
        ),
        (
            lambda b: grouped(b).windowed_by(TUMBLING).emit_strategy(CLOSE, idle=0),
            "idle is 0; it must be at least 1 ms",
        ),
        (lambda b: StreamJoined(idle=0), "idle is 0; it must be at least 1 ms"),
        (lambda b: Suppressed.until_time_limit(1, BufferConfig(), idle=0), "idle is 0; it must be at least 1 ms"),
        (
            lambda b: b.stream("a").join(
                b.stream("b"), lambda x, y: x, windows=JoinWindows(1), stream_joined=StreamJoined(idle=IDLE)
            ),
            "idle is for left and outer joins",
        ),
    ],
)
def test_what_cannot_be_is_refused(wrong: Callable[[StreamsBuilder], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wrong(StreamsBuilder())


def test_cogrouped_streams_have_no_common_time_that_could_go_on() -> None:
    builder = StreamsBuilder()
    table: Any = grouped(builder).cogroup(lambda k, v, n: n).windowed_by(TUMBLING).aggregate(lambda: "")

    with pytest.raises(TopologyError, match="cogrouped streams, whose windows cannot close while input is idle"):
        table.suppress(WAIT)


def started(
    closing: Closing, settings: StreamsConfig, clock: MockClock, producer: CapturingProducer, **options: Any
) -> Task:
    task = made(closing, settings, clock, producer, **options)
    for store in task.open_stores().values():
        store.end_restore()
    task.start({})
    return task


def made(
    closing: Closing, settings: StreamsConfig, clock: MockClock, producer: CapturingProducer, **options: Any
) -> Task:
    builder = StreamsBuilder()
    to_out(builder, closing(builder))
    (part,) = builder.build().plan(settings).subtopologies
    return Task(
        TaskId(0, 0),
        part,
        (TopicPartition("in", 0),),
        TaskParts(
            config=settings,
            clock=clock,
            collector=RecordCollector(producer, config=settings, partition_count=lambda topic: 1),
            cache=RecordCache(settings.statestore_cache_max_bytes),
            metrics=StreamsMetrics(),
        ),
        InitialState(Path("unused")),
        **options,
    )


def restarted(
    closing: Closing, task: Task, clock: MockClock, producer: CapturingProducer, known: Any
) -> tuple[Task, list[Any]]:
    """Commits, stops, and starts a task from what was committed and what the changelogs hold."""
    committed = task.prepare_commit()
    task.post_commit({})
    task.close()
    rows = [*known, *((one.topic, one.key, one.value, one.timestamp, one.headers) for one in producer.take())]
    following = made(closing, config(), clock, producer)
    for place, store in following.open_stores().items():
        store.restore([row[1:] for row in rows if row[0] == place.topic])
        store.end_restore()
    following.start(committed)
    return following, rows


def feed(task: Task, *records: tuple[str, int], offset: int = 0) -> None:
    place = TopicPartition("in", 0)
    task.add(place, [RawMessage("in", 0, offset + i, t, k.encode(), b"v", ()) for i, (k, t) in enumerate(records)])
    while task.process(len(records)):
        pass


def written(producer: CapturingProducer, changelog: list[Any] | None = None) -> list[tuple[bytes | None, bytes | None]]:
    """What went to ``out``; the rest is added to the changelog."""
    produced = producer.take()
    if changelog is not None:
        changelog += [(one.topic, one.key, one.value, one.timestamp, one.headers) for one in produced]
    return [(one.key, one.value) for one in produced if one.topic == "out"]
