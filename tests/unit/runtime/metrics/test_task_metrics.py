"""What tasks measure, at each level."""

from __future__ import annotations

import math
import traceback

import pytest

from pykstreams import (
    BufferConfig,
    Consumed,
    EmitStrategy,
    Produced,
    PunctuationType,
    Serdes,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
)
from pykstreams.core.metrics import RecordingLevel
from pykstreams.core.processor import Processor, ProcessorContext
from pykstreams.core.record import Record
from pykstreams.core.settings.keys import EMIT_INTERVAL_MS
from pykstreams.testing import TopologyTestDriver
from tests.unit.runtime.metrics.measured import (
    READ,
    SINK,
    SOURCE,
    START,
    all_named,
    counting,
    driver,
    named,
    pipeline,
    texts,
)


def test_info_counts_what_was_processed_and_consumed() -> None:
    with driver(pipeline()) as on:
        texts(on).pipe_values(["a", "b", "c"])

        assert named(on, "process-total", task_id="0_0") == 3
        assert named(on, "process-rate", task_id="0_0") == 3 / 30
        assert named(on, "records-consumed-total", topic="in", processor_node_id=SOURCE) == 3


def test_dropped_records_have_a_rate_and_a_total() -> None:
    builder = StreamsBuilder()
    builder.stream("in", READ).group_by_key().count()
    with driver(builder) as on:
        texts(on).pipe_input(None, "a")

        assert named(on, "dropped-records-total") == 1
        assert named(on, "dropped-records-rate") == 1 / 30


@pytest.mark.parametrize("level", ["INFO", "DEBUG"])
def test_a_source_tells_how_old_records_were_when_they_were_done(level: str) -> None:
    with driver(pipeline(), level) as on:
        for age in (10, 40):
            texts(on).pipe_input("k", "a", timestamp=START - age)

        ages = [named(on, f"record-e2e-latency-{what}", processor_node_id=SOURCE) for what in ("min", "avg", "max")]
        assert ages == [10, 25, 40]


def test_at_info_nothing_is_listed_that_would_have_to_see_each_record() -> None:
    with driver(counting()) as on:
        texts(on).pipe_input("k", "a")

        names = {name.name for name in on.metrics()}
        assert names.isdisjoint(
            ("records-produced-total", "bytes-consumed-total", "record-lateness-avg", "put-rate", "hit-ratio-avg")
        )


def test_nothing_measures_a_record_on_its_way_unless_the_level_asks_for_it() -> None:
    seen: list[str] = []

    def look(key: str, value: str) -> None:
        seen.extend(frame.filename for frame in traceback.extract_stack())

    for level, measured in (("INFO", False), ("DEBUG", True)):
        builder = StreamsBuilder()
        builder.stream("in", READ).foreach(look)
        seen.clear()
        with driver(builder, level) as on:
            texts(on).pipe_input("k", "a")

        assert any(name.endswith("record_metrics.py") for name in seen) is measured


def test_debug_tells_what_was_sent_to_which_topic_and_how_old_it_was() -> None:
    with driver(pipeline(), "DEBUG") as on:
        texts(on).pipe_input("key", "value", timestamp=START - 7)

        sink = {"processor_node_id": SINK, "topic": "out", "task_id": "0_0"}
        assert named(on, "records-produced-total", **sink) == 1
        assert named(on, "bytes-produced-total", **sink) == len("keyvalue")
        assert named(on, "bytes-consumed-total", topic="in") == len("keyvalue")
        assert named(on, "record-e2e-latency-max", processor_node_id=SINK) == 7


def test_what_a_sink_sends_is_counted_by_the_topic_that_it_chose() -> None:
    builder = StreamsBuilder()
    out = Produced(key_serde=Serdes.string(), value_serde=Serdes.string())
    builder.stream("in", READ).flat_map_values(str.split).to(lambda key, value, context: value, out)
    with driver(builder, "DEBUG") as on:
        texts(on).pipe_input("k", "ab cde ab")

        assert [named(on, "records-produced-total", topic=topic) for topic in ("ab", "cde")] == [2, 1]
        assert [named(on, "bytes-produced-total", topic=topic) for topic in ("ab", "cde")] == [2 * 3, 4]


def test_records_that_leave_a_cache_in_bytes_are_counted_at_their_sink() -> None:
    builder = StreamsBuilder()
    counts = builder.stream("in", READ).group_by_key().count()
    counts.to_stream().to("out", Produced(key_serde=Serdes.string(), value_serde=Serdes.long()))
    with driver(builder, "DEBUG") as on:
        texts(on).pipe_input("k", "a")
        texts(on).pipe_input("k", "b")

        assert named(on, "records-produced-total", topic="out") == 2
        assert named(on, "bytes-produced-total", topic="out") == 2 * (1 + 8)
        assert list(all_named(on, "record-e2e-latency-max").values()) == [0, 0]


def test_lateness_is_how_far_records_are_behind_stream_time() -> None:
    with driver(pipeline(), "DEBUG") as on:
        for timestamp in (100, 50, 110):
            texts(on).pipe_input("k", "a", timestamp=timestamp)

        assert named(on, "record-lateness-max") == 50
        assert named(on, "record-lateness-avg") == pytest.approx(50 / 3)


def test_a_node_without_children_tells_how_old_records_were() -> None:
    with driver(counting(), "DEBUG") as on:
        texts(on).pipe_input("k", "a", timestamp=START - 3)

        ages = all_named(on, "record-e2e-latency-max")
        assert len(ages) == 2
        assert set(ages.values()) == {3}


def test_process_latency_and_punctuations_are_told_at_debug() -> None:
    class Ticking(Processor[str, str, str, str]):
        def init(self, context: ProcessorContext[str, str]) -> None:
            super().init(context)
            context.schedule(100, PunctuationType.WALL_CLOCK_TIME, lambda now: None)

        def process(self, record: Record[str, str]) -> None:
            pass

    builder = StreamsBuilder()
    builder.stream("in", READ).process(Ticking)
    with driver(builder, "DEBUG") as on:
        texts(on).pipe_input("k", "a")
        on.advance_wall_clock_time(100)

        assert named(on, "punctuate-total", task_id="0_0") == 1
        assert named(on, "process-latency-max", task_id="0_0") >= 0


def test_a_sensor_of_a_users_own_is_listed_with_its_worker() -> None:
    class Measuring(Processor[str, str, str, str]):
        def init(self, context: ProcessorContext[str, str]) -> None:
            super().init(context)
            self.sensor = context.metrics.add_rate_total_sensor("shop", "till", "sale", RecordingLevel.INFO)

        def process(self, record: Record[str, str]) -> None:
            self.sensor.record()

    builder = StreamsBuilder()
    builder.stream("in", READ).process(Measuring)
    with driver(builder) as on:
        texts(on).pipe_values(["a", "b"])

        assert named(on, "sale-total", shop_id="till", thread_id="MainThread") == 2


def test_a_closed_task_leaves_no_metrics() -> None:
    on = driver(counting(), "TRACE")
    texts(on).pipe_input("k", "a")
    on.close()

    assert on.metrics() == {}


def test_a_suppression_tells_what_it_holds_and_emits() -> None:
    builder = StreamsBuilder()
    table = builder.table("in", Consumed(key_serde=Serdes.string(), value_serde=Serdes.string()))
    table.suppress(Suppressed.until_time_limit(10, BufferConfig())).to_stream().foreach(lambda k, v: None)
    with driver(builder, "DEBUG") as on:
        texts(on).pipe_input("a", "1", timestamp=0)
        texts(on).pipe_input("b", "1", timestamp=5)
        assert named(on, "suppression-buffer-count-max") == 2
        assert named(on, "suppression-buffer-size-max") > 0
        texts(on).pipe_input("c", "1", timestamp=20)

        assert named(on, "suppression-emit-total") == 2


@pytest.mark.parametrize("level", ["INFO", "DEBUG"])
def test_results_of_closed_windows_are_counted_at_debug(level: str) -> None:
    builder = StreamsBuilder()
    windows = builder.stream("in", READ).group_by_key().windowed_by(TimeWindows(10))
    windows.emit_strategy(EmitStrategy.ON_WINDOW_CLOSE).count(name="counted").to_stream().foreach(lambda k, v: None)
    with driver(builder, level) as on:
        for key in "ab":
            texts(on).pipe_input(key, "1", timestamp=0)
        on.advance_wall_clock_time(EMIT_INTERVAL_MS)
        texts(on).pipe_input("c", "1", timestamp=20)

        if level == "INFO":
            assert all_named(on, "window-aggregate-final-emit-total") == {}
            return
        assert named(on, "window-aggregate-final-emit-total", processor_node_id="counted") == 2
        assert named(on, "window-aggregate-final-emit-rate") == 2 / 30
        assert named(on, "window-aggregate-final-emit-latency-max") == 0


def test_several_workers_tasks_are_told_apart_by_their_ids() -> None:
    with TopologyTestDriver(pipeline().build(), partitions=2) as on:
        assert {dict(name.tags)["task-id"] for name in all_named(on, "process-total")} == {"0_0", "0_1"}
        assert all(math.isnan(value) for value in all_named(on, "active-process-ratio").values())
