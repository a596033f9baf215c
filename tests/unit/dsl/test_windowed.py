"""Windowed aggregation in the fluent layer: what is refused, names, serdes, late records, restarts."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pykstreams import (
    BuiltInDslStoreSuppliers,
    Consumed,
    EmitStrategy,
    Grouped,
    KGroupedStream,
    KStream,
    Materialized,
    Produced,
    Serdes,
    SlidingWindows,
    Stores,
    StreamsBuilder,
    StreamsConfig,
    TimeWindows,
    UnlimitedWindows,
    Window,
    Windowed,
    Windows,
)
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.core.settings.keys import EMIT_INTERVAL_OF_WINDOWS
from pykstreams.errors import ProcessingError
from pykstreams.runtime.tasks.collector import RecordCollector
from pykstreams.runtime.tasks.raw_message import RawMessage
from pykstreams.runtime.tasks.stores.initial_state import InitialState
from pykstreams.runtime.tasks.task import Task, TaskParts
from pykstreams.serdes import TimeWindowedSerde
from pykstreams.state.interfaces.record_cache import RecordCache
from pykstreams.testing import TopologyTestDriver
from pykstreams.testing.capture import CapturingProducer
from pykstreams.testing.clock import MockClock

TEXT = Serdes.string()
MINUTE = TimeWindows(timedelta(minutes=1))
CONFIG = StreamsConfig(
    {
        "application.id": "app",
        "default.key.serde": TEXT,
        "default.value.serde": TEXT,
        "statestore.cache.max.bytes": 0,
        EMIT_INTERVAL_OF_WINDOWS: 0,
    }
)


class Days(Windows[Window]):
    size_ms = 86_400_000
    grace_period_ms = 0

    def windows_for(self, timestamp: int) -> dict[int, Window]:
        start = timestamp - timestamp % self.size_ms
        return {start: Window(start, start + self.size_ms)}


def grouped(builder: StreamsBuilder | None = None) -> KGroupedStream[str, str]:
    stream: KStream[str, str] = (builder or StreamsBuilder()).stream("in", Consumed(key_serde=TEXT, value_serde=TEXT))
    return stream.group_by_key(Grouped(key_serde=TEXT, value_serde=TEXT))


def drive(builder: StreamsBuilder, *records: tuple[Any, ...], **settings: Any) -> TopologyTestDriver:
    """Pipes (key, value, timestamp[, headers]) into the topic ``in``."""
    driver = TopologyTestDriver(builder.build(), CONFIG.replace(settings))
    topic = driver.create_input_topic("in", TEXT, TEXT)
    for record in records:
        topic.pipe_input(*record)
    return driver


def read(driver: TopologyTestDriver, topic: str, key: Any = TEXT, value: Any = TEXT) -> list[tuple[Any, ...]]:
    records = driver.create_output_topic(topic, key, value).read_records()
    return [(record.key, record.value, record.timestamp, tuple(record.headers)) for record in records]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: grouped().windowed_by(60_000),  # type: ignore[call-overload]  # a number is no windows
            TypeError,
            "windows are 60000; expected TimeWindows, SlidingWindows",
        ),
        (
            lambda: grouped().windowed_by(SlidingWindows(0)),
            ValueError,
            "give them a time difference of at least 1 ms",
        ),
        (
            lambda: grouped().windowed_by(MINUTE).emit_strategy("on_window_close"),  # type: ignore[arg-type]  # a name
            TypeError,
            "emit strategy is 'on_window_close'; expected a member of EmitStrategy",
        ),
        (
            lambda: grouped().windowed_by(UnlimitedWindows()).emit_strategy(EmitStrategy.ON_WINDOW_CLOSE),
            ValueError,
            "unlimited windows never close; use EmitStrategy.ON_WINDOW_UPDATE or other windows",
        ),
        (
            lambda: (
                grouped()
                .windowed_by(TimeWindows(10, grace=5))
                .count(materialized=Materialized("win", retention=timedelta(milliseconds=14)))
            ),
            ValueError,
            "retention of window store 'win' is 14 ms, less than window size 10 ms + grace 5 ms, which its windows "
            "need; give Materialized a retention of at least 15 ms or none",
        ),
        (
            lambda: (
                grouped().windowed_by(SlidingWindows(10, grace=5)).count(materialized=Materialized("win", retention=24))
            ),
            ValueError,
            "retention of window store 'win' is 24 ms, less than 2 * time difference 10 ms + grace 5 ms",
        ),
        (
            lambda: grouped().windowed_by(MINUTE).count(materialized=Materialized("win", retention=-1)),
            ValueError,
            "retention is -1; it must not be negative",
        ),
        (
            lambda: (
                grouped().windowed_by(MINUTE).count(materialized=Materialized(Stores.in_memory_key_value_store("win")))
            ),
            TypeError,
            "expected a name or a supplier of a window store, such as Stores.persistent_timestamped_window_store",
        ),
        (
            lambda: grouped().windowed_by(MINUTE).count(late_records_to=5),  # type: ignore[arg-type]  # a number
            TypeError,
            "late_records_to is 5; expected the name of a topic, or a function that takes the stream of late records",
        ),
    ],
)
def test_windows_that_cannot_be_aggregated_are_refused(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        make()

    assert message in str(caught.value)


def test_a_retention_that_just_suffices_is_taken() -> None:
    just_enough: list[tuple[TimeWindows | SlidingWindows, int]] = [
        (TimeWindows(10, grace=5), 15),
        (SlidingWindows(10, grace=5), 25),
    ]
    for windows, retention in just_enough:
        builder = StreamsBuilder()
        grouped(builder).windowed_by(windows).count(materialized=Materialized("win", retention=retention))

        assert builder.build().plan(CONFIG).whole.stores["win"].retention_ms == retention


@pytest.mark.parametrize(
    ("windows", "strategy", "caching"),
    [
        (MINUTE, EmitStrategy.ON_WINDOW_UPDATE, True),
        (MINUTE, EmitStrategy.ON_WINDOW_CLOSE, True),
        (SlidingWindows(10), EmitStrategy.ON_WINDOW_UPDATE, True),
        (SlidingWindows(10), EmitStrategy.ON_WINDOW_CLOSE, False),
    ],
)
def test_only_sliding_windows_that_are_emitted_on_close_have_no_cache(
    windows: Any, strategy: EmitStrategy, caching: bool
) -> None:
    builder = StreamsBuilder()
    grouped(builder).windowed_by(windows).emit_strategy(strategy).count(materialized="win")
    config = StreamsConfig({"application.id": "app"})

    assert builder.build().plan(config).whole.stores["win"].caching is caching


def test_windowed_keys_are_written_with_the_serde_of_the_group_and_read_with_the_size() -> None:
    builder = StreamsBuilder()
    grouped(builder).windowed_by(TimeWindows(10)).count().to_stream().to("out")
    with drive(builder, ("a", "x", 12)) as driver:
        assert read(driver, "out", TimeWindowedSerde(TEXT, 10), Serdes.long()) == [
            (Windowed("a", Window(10, 20)), 1, 12, ())
        ]


def test_a_users_own_windows_aggregate() -> None:
    builder = StreamsBuilder()
    counts = grouped(builder).windowed_by(Days()).count()
    counts.to_stream(lambda windowed, _: f"{windowed.key}@{windowed.window.start}").to(
        "out", Produced(key_serde=TEXT, value_serde=Serdes.long())
    )
    with drive(builder, ("a", "x", 5), ("a", "y", 86_400_001)) as driver:
        assert read(driver, "out", TEXT, Serdes.long()) == [("a@0", 1, 5, ()), ("a@86400000", 1, 86_400_001, ())]


class Shifts(Windows[Window]):
    """Windows of eight, one every six from six on; with ``longer`` not as long as they say."""

    size_ms = 8
    grace_period_ms = 2

    def __init__(self, longer: int = 0) -> None:
        self._longer = longer

    def windows_for(self, timestamp: int) -> dict[int, Window]:
        starts = [start for start in range(6, timestamp + 1, 6) if timestamp < start + 8]
        return {start: Window(start, start + 8 + self._longer) for start in starts}


def shifts_on_close(windows: Shifts) -> StreamsBuilder:
    builder = StreamsBuilder()
    kept: Materialized[str, int] = Materialized("win", retention=1000)
    closing = grouped(builder).windowed_by(windows).emit_strategy(EmitStrategy.ON_WINDOW_CLOSE)
    closing.count(materialized=kept).to_stream(lambda windowed, _: str(windowed)).to(
        "out", Produced(key_serde=TEXT, value_serde=Serdes.long())
    )
    return builder


def test_windows_of_ones_own_are_emitted_on_close_each_once() -> None:
    records = [("a", "x", time) for time in (5, 6, 13, 15, 16, 21, 22, 40)]
    with drive(shifts_on_close(Shifts()), *records) as driver:
        assert [(key, count) for key, count, *_ in read(driver, "out", TEXT, Serdes.long())] == [
            ("[a@6/14]", 2),
            ("[a@12/20]", 3),
            ("[a@18/26]", 2),
        ]


def test_windows_of_ones_own_that_are_emitted_on_close_are_all_of_one_size() -> None:
    with (
        TopologyTestDriver(shifts_on_close(Shifts(1)).build(), CONFIG) as driver,
        pytest.raises(ProcessingError, match=r"Window\(start=6, end=15\) is not of the 8 ms that size_ms"),
    ):
        driver.create_input_topic("in", TEXT, TEXT).pipe_input("a", "x", 7)


@pytest.mark.parametrize("windows", [TimeWindows(10), TimeWindows(10, advance_by=5), SlidingWindows(10)], ids=repr)
def test_late_records_go_to_a_topic_as_they_are(windows: Any) -> None:
    builder = StreamsBuilder()
    counts = grouped(builder).windowed_by(windows).count(late_records_to="late")
    counts.to_stream(lambda windowed, _: windowed.key).to("out", Produced(key_serde=TEXT, value_serde=Serdes.long()))
    with drive(builder, ("a", "x", 100), ("b", "late", 3, (("h", b"1"),)), ("a", "y", 100)) as driver:
        assert read(driver, "late") == [("b", "late", 3, (("h", b"1"),))]
        assert {key for key, *_ in read(driver, "out", TEXT, Serdes.long())} == {"a"}
        dropped = [metric.value for name, metric in driver.metrics().items() if name.name == "dropped-records-total"]
        assert sum(dropped) >= 1


def test_late_records_go_to_a_stream_of_the_same_serdes() -> None:
    builder = StreamsBuilder()
    seen: list[KStream[str, str]] = []

    def keep(late: KStream[str, str]) -> None:
        seen.append(late)
        late.map_values(lambda value: f"late {value}").to("late")

    grouped(builder).windowed_by(TimeWindows(10)).reduce(lambda a, b: a + b, late_records_to=keep).to_stream().to("out")
    with drive(builder, ("a", "x", 100), ("b", "y", 3)) as driver:
        assert read(driver, "late") == [("b", "late y", 3, ())]
        assert len(read(driver, "out", TimeWindowedSerde(TEXT, 10))) == 1
    assert len(seen) == 1


def test_late_records_come_from_behind_the_repartition_topic() -> None:
    builder = StreamsBuilder()
    stream: KStream[str, str] = builder.stream("in")
    by_letter = stream.group_by(lambda _, value: value[0], Grouped(key_serde=TEXT, value_serde=TEXT))
    by_letter.windowed_by(TimeWindows(10)).count(late_records_to="late")
    with drive(builder, ("a", "x1", 100), ("a", "y2", 3)) as driver:
        assert read(driver, "late") == [("y", "y2", 3, ())]


def test_asking_for_late_records_renames_nothing() -> None:
    def described(late_records_to: str | None) -> list[str]:
        builder = StreamsBuilder()
        table = grouped(builder).windowed_by(TimeWindows(10)).count(late_records_to=late_records_to)
        table.to_stream().to("out")
        return str(builder.build().describe()).splitlines()

    late = "KSTREAM-AGGREGATE-0000000002-late"
    with_late = described("late")
    at = with_late.index(f"    Sink: {late} (topic: late)")
    del with_late[at : at + 2]

    assert described(None) == [line.replace(f", {late}", "") for line in with_late]


class Runs:
    """One task after the other over the same input, each from what was committed last."""

    def __init__(self, builder: StreamsBuilder) -> None:
        self._part = builder.build().plan(CONFIG).whole
        self._place = TopicPartition("in", 0)
        self._committed: dict[TopicPartition, tuple[int, str]] = {}
        self._changelog: dict[bytes, Any] = {}
        self._offset = 0
        self.task: Task | None = None

    def run(self, *records: tuple[str, int]) -> list[bytes | None]:
        """Starts a task, processes the records, commits, and stops; gives the keys that were written to ``out``."""
        producer = CapturingProducer()
        collector = RecordCollector(producer, config=CONFIG, partition_count=lambda topic: 1)
        task = Task(
            TaskId(0, 0),
            self._part,
            (self._place,),
            TaskParts(
                config=CONFIG,
                clock=MockClock(0),
                collector=collector,
                cache=RecordCache(0),
                metrics=StreamsMetrics(),
            ),
            InitialState(Path("unused")),
        )
        for store in task.open_stores().values():
            store.restore([(key, *rest) for key, rest in self._changelog.items()])
            store.end_restore()
        task.start(self._committed)
        messages = [
            RawMessage("in", 0, self._offset + i, time, key.encode(), b"v", ()) for i, (key, time) in enumerate(records)
        ]
        self._offset += len(messages)
        task.add(self._place, messages)
        task.process(len(messages) + 1)
        self._committed = task.prepare_commit() or self._committed
        task.post_commit({})
        task.close()
        produced = producer.take()
        for record in produced:
            if record.topic != "out":
                self._changelog[record.key or b""] = (record.value, record.timestamp or 0, record.headers)
        return [record.key for record in produced if record.topic == "out"]


@pytest.mark.parametrize("windows", [TimeWindows(10), SlidingWindows(9)], ids=repr)
def test_what_was_emitted_on_close_is_not_emitted_again_after_a_restart(windows: Any) -> None:
    builder = StreamsBuilder()
    stored: Materialized[str, int] = Materialized("win", store_type=BuiltInDslStoreSuppliers.IN_MEMORY, retention=1000)
    closing = grouped(builder).windowed_by(windows).emit_strategy(EmitStrategy.ON_WINDOW_CLOSE)
    closing.count(materialized=stored).to_stream(lambda windowed, _: windowed.key).to(
        "out", Produced(key_serde=TEXT, value_serde=Serdes.long())
    )
    runs = Runs(builder)

    first = runs.run(("a", 9), ("b", 19), ("c", 25))
    second = runs.run(("d", 26), ("e", 60))

    assert (first, second) == ([b"a", b"b"], [b"c", b"d"])
