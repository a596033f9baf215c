"""A task in the hands of a worker: records in, records out, offsets, times, life and death."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykstreams.core.errors import ProcessingError, ProcessorStateError, StreamsError, TaskMigratedError
from pykstreams.core.ids import TopicPartition
from pykstreams.core.processor import OperatorContext, PunctuationType
from pykstreams.core.record import ConsumerRecord
from pykstreams.core.timestamps import WallclockTimestampExtractor
from pykstreams.core.types import END_OF_TIME, Forward, Headers
from pykstreams.runtime.tasks.offset_metadata import decode, encode
from pykstreams.state import Stores
from pykstreams.topology.plan import InternalTopic
from tests.unit.runtime.tasks.fakes import Operator, TaskBench, each, message, node, sink, source

IN = TopicPartition("in", 0)
OTHER = TopicPartition("other", 0)


def straight(**options: Any) -> TaskBench:
    return TaskBench(source("SOURCE", "in", children=("SINK",)), sink("SINK", "out"), **options)


def two_inputs(**options: Any) -> TaskBench:
    return TaskBench(
        source("LEFT", "in", children=("SINK",)),
        source("RIGHT", "other", children=("SINK",)),
        sink("SINK", "out"),
        topics=("in", "other"),
        **options,
    )


def probing(probe: Callable[[OperatorContext], object], **options: Any) -> TaskBench:
    """A bench whose only node calls ``probe(context)`` for each record."""

    def build(context: OperatorContext) -> Forward:
        def run(key: object, value: object, timestamp: int, headers: Headers) -> None:
            probe(context)

        return run

    return TaskBench(source("SOURCE", "in", children=("NODE",)), node("NODE", Operator(build)), **options)


def repeating(end: int | None, committed: dict[TopicPartition, tuple[int, str]]) -> tuple[TaskBench, list[bool]]:
    """A bench with a store, and what its node is told of each record: whether it may be repeated.

    ``end`` is that of the input when the task is opened, and ``None`` if no worker has left it with work.
    """
    told = []
    bench = TaskBench(
        source("SOURCE", "in", children=("NODE",)),
        node("NODE", Operator(lambda context: lambda *record: told.append(context.current.replayed))),
        stores={"rows": Stores.key_value_store_builder(Stores.in_memory_key_value_store("rows"))},
        changelogs={"rows": InternalTopic("log", "changelog", None, {})},
        ends=None if end is None else {IN: end},
        committed=committed,
    )
    return bench, told


def test_records_that_a_dead_worker_may_have_worked_on_may_be_repeated_until_they_are_committed() -> None:
    bench, told = repeating(7, {IN: (5, "")})
    bench.feed(message("in", 5, "v", 1))
    bench.commit()
    bench.feed(message("in", 6, "v", 1), message("in", 7, "v", 1))
    bench.commit()
    bench.feed(message("in", 8, "v", 1))

    assert told == [True, True, True, False]


def test_records_may_be_repeated_where_a_worker_has_died_before_its_first_commit() -> None:
    bench, told = repeating(7, {})
    bench.feed(message("in", 0, "v", 1))

    assert told == [True]


def test_no_record_is_repeated_where_the_last_worker_has_ended_in_good_order() -> None:
    bench, told = repeating(None, {IN: (5, "")})
    bench.feed(message("in", 5, "v", 1))

    assert told == [False]


def test_no_record_is_repeated_where_all_is_committed() -> None:
    bench, told = repeating(7, {IN: (7, "")})
    bench.feed(message("in", 7, "v", 1))

    assert told == [False]


def test_a_record_goes_from_source_to_sink_with_time_and_headers() -> None:
    bench = straight()

    bench.feed(message("in", 0, "v", 7, headers=[("h", b"x")]))

    assert bench.sent() == [("out", None, b"k", b"v", 7, (("h", b"x"),))]


def test_children_get_a_record_in_their_order_depth_first() -> None:
    calls = []

    def noting(name: str) -> Operator:
        return each(lambda key, value: calls.append(name))

    note = {name: noting(name) for name in "abcd"}
    bench = TaskBench(
        source("SOURCE", "in", children=("A", "C", "D")),
        node("A", note["a"], "B"),
        node("B", note["b"]),
        node("C", note["c"]),
        node("D", note["d"]),
    )

    bench.feed(message("in", 0, "v", 0))

    assert calls == ["a", "b", "c", "d"]


def test_process_takes_no_more_records_than_it_was_asked_for() -> None:
    bench = straight()

    taken = bench.feed(*(message("in", offset, str(offset), 0) for offset in range(5)), limit=2)

    assert taken == 2
    assert bench.values() == ["0", "1"]
    assert bench.task.buffered == 3
    assert bench.task.process(10) == 3
    assert bench.task.process(10) == 0


def test_committed_offset_is_that_of_the_next_record_to_process() -> None:
    bench = straight()

    bench.feed(message("in", 3, "a", 5), message("in", 9, "b", 4), limit=1)
    assert bench.task.prepare_commit() == {IN: (9, encode(5, {}))}

    bench.task.process(1)
    assert bench.task.prepare_commit() == {IN: (10, encode(5, {}))}


@pytest.mark.parametrize("make", [straight, two_inputs])
def test_markers_behind_the_last_record_are_committed_with_it_and_afterwards(make: Callable[[], TaskBench]) -> None:
    bench = make()
    bench.task.add(IN, [message("in", 5, "a", 5), message("in", 6, "b", 5)])
    bench.task.reached_end(IN, 9)
    bench.task.process(1)
    with_one_waiting = bench.task.prepare_commit()[IN][0]
    bench.task.process(1)
    with_none = bench.task.prepare_commit()[IN][0]
    bench.task.post_commit({})
    quiet = bench.task.commit_needed
    bench.task.reached_end(IN, 12)

    assert (with_one_waiting, with_none, quiet) == (6, 9, False)
    assert bench.task.commit_needed
    assert bench.task.prepare_commit()[IN][0] == 12


def test_end_of_a_partition_of_which_nothing_was_processed_is_nothing_to_commit() -> None:
    bench = straight()
    bench.task.reached_end(IN, 12)

    assert not bench.task.commit_needed
    assert bench.task.prepare_commit() == {}


def test_nothing_is_committed_when_nothing_has_happened() -> None:
    bench = straight()
    assert bench.task.prepare_commit() == {}

    bench.feed(message("in", 0, "a", 5))
    bench.task.prepare_commit()
    bench.task.post_commit({})

    assert not bench.task.commit_needed
    assert bench.task.prepare_commit() == {}


def test_only_partitions_with_processed_records_are_committed() -> None:
    bench = two_inputs()

    bench.feed(message("other", 4, "a", 5))

    assert bench.task.prepare_commit() == {OTHER: (5, encode(5, {}))}


def test_processor_metadata_that_was_put_is_committed_with_every_partition() -> None:
    bench = two_inputs(committed={IN: (17, encode(3, {"emit": 1}))})

    bench.feed(message("other", 4, "a", 5))
    bench.task.metadata.put("emit", 9)

    assert bench.task.prepare_commit() == {
        IN: (17, encode(3, {"emit": 9})),
        OTHER: (5, encode(5, {"emit": 9})),
    }


def test_a_started_task_goes_on_with_the_times_of_its_last_commit() -> None:
    bench = two_inputs(committed={IN: (1, encode(50, {"emit": 7})), OTHER: (2, encode(40, {"emit": 9}))})

    assert bench.task.stream_time == 50
    assert bench.task.metadata.get("emit") == 9

    bench.feed(message("other", 2, "late", 10))
    (_, text) = bench.task.prepare_commit()[OTHER]
    assert decode(text) == (40, {"emit": 9})


def test_stream_time_is_seen_by_operators_while_the_record_that_moves_it_is_processed() -> None:
    seen = []
    bench = probing(lambda context: seen.append(context.stream_time()))

    bench.feed(*(message("in", i, "v", time) for i, time in enumerate((5, 3, 9, 9, 7))))

    assert seen == [5, 5, 9, 9, 9]


def test_operators_can_tell_where_the_current_record_came_from() -> None:
    seen = []
    bench = probing(lambda context: seen.append(context.current.context))

    bench.feed(message("in", 6, "v", 5, headers=[("h", b"x")]))

    assert seen == [("in", 0, 6, 5, [("h", b"x")], b"k", b"v")]


def test_wall_clock_extractor_follows_the_clock_of_the_task() -> None:
    bench = TaskBench(
        source("SOURCE", "in", children=("SINK",), timestamp_extractor=WallclockTimestampExtractor()),
        sink("SINK", "out"),
    )

    bench.feed(message("in", 0, "v", 5))

    assert [record.timestamp for record in bench.sent()] == [1000]


@pytest.mark.parametrize("timestamp", [0, END_OF_TIME])
def test_extractor_is_asked_whatever_the_time_of_the_record_is(timestamp: int) -> None:
    parts = source("SOURCE", "in", children=("SINK",), timestamp_extractor=lambda record, time: 7), sink("SINK", "out")
    bench = TaskBench(*parts)

    bench.feed(message("in", 0, "v", timestamp))

    assert [record.timestamp for record in bench.sent()] == [7]


def test_extractor_gets_the_partition_time_and_drops_records_by_a_negative_result(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asked = []

    def extractor(record: ConsumerRecord, partition_time: int) -> int:
        asked.append((record.value, partition_time))
        return int(record.value)

    bench = TaskBench(source("SOURCE", "in", children=("SINK",), timestamp_extractor=extractor), sink("SINK", "out"))

    with caplog.at_level(logging.WARNING):
        bench.feed(*(message("in", i, value, 0) for i, value in enumerate(("5", "-2", "3", "4"))))

    assert asked == [("5", -1), ("-2", 5), ("3", 5), ("4", 5)]
    assert bench.values() == ["5", "3", "4"]
    assert bench.dropped == 1
    assert "gave -2 for in-0@1" in caplog.text
    assert bench.task.prepare_commit() == {IN: (4, encode(5, {}))}


def test_an_extractor_that_is_wrong_for_every_record_is_told_of_once_an_interval(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = TaskBench(
        source("SOURCE", "in", children=("SINK",), timestamp_extractor=lambda record, time: -1), sink("SINK", "out")
    )

    with caplog.at_level(logging.WARNING):
        bench.feed(*(message("in", i, "v", 0) for i in range(50)))

    assert bench.dropped == 50
    assert len(caplog.messages) == 1


def test_extractor_that_raises_stops_the_task_and_is_named() -> None:
    def extractor(record: ConsumerRecord, partition_time: int) -> None:
        raise KeyError("time")

    bench = TaskBench(source("SOURCE", "in", timestamp_extractor=extractor))

    with pytest.raises(
        StreamsError, match=r"timestamp extractor .*extractor \(line \d+\) of SOURCE failed at record in-0 offset 4"
    ):
        bench.feed(message("in", 4, "v", 0))


WHEN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("inputs", [1, 2])
@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (5.5, "float 5.5"),
        (-0.5, "float -0.5"),
        (None, "NoneType None"),
        (WHEN, re.escape(f"datetime {WHEN!r}")),
        ("5", "str '5'"),
        (timedelta(seconds=5), "timedelta "),
        (1 << 63, f"int {1 << 63}"),
    ],
)
def test_extractor_that_gives_no_milliseconds_stops_the_task_and_is_named_with_what_to_return(
    returned: Any, said: str, inputs: int
) -> None:
    def at_of(record: ConsumerRecord, partition_time: int) -> Any:
        return returned

    sources = [source("SOURCE", "in", children=("SINK",), timestamp_extractor=at_of)]
    if inputs == 2:
        sources.append(source("OTHER", "other", children=("SINK",)))
    bench = TaskBench(*sources, sink("SINK", "out"), topics=("in", "other")[:inputs])

    with pytest.raises(
        StreamsError,
        match=rf"timestamp extractor .*at_of \(line \d+\) of SOURCE gave {said}.* for record in-0 offset 4; it must "
        r"give an int, in milliseconds since 1970: int\(when.timestamp\(\) \* 1000\) for a datetime, and -1 to drop a "
        "record",
    ):
        bench.feed(message("in", 4, "v", 0))

    assert bench.values() == []


def test_two_inputs_are_merged_by_timestamp() -> None:
    bench = two_inputs()
    bench.task.add(IN, [message("in", 0, "a5", 5), message("in", 1, "a2", 2)])
    bench.task.add(OTHER, [message("other", 0, "b4", 4), message("other", 1, "b6", 6)])

    bench.task.process(10)

    assert bench.values() == ["b4", "a5", "a2", "b6"]


def test_stream_time_punctuators_fire_between_records_when_stream_time_reaches_them() -> None:
    fired: list[int] = []

    def build(context: OperatorContext) -> Forward:
        def init() -> None:
            context.processing.schedule(10, PunctuationType.STREAM_TIME, fired.append)

        context.on_init(init)
        return context.forward

    bench = TaskBench(
        source("SOURCE", "in", children=("NODE",)), node("NODE", Operator(build), "SINK"), sink("SINK", "out")
    )

    bench.feed(*(message("in", i, "v", time) for i, time in enumerate((3, 9, 12, 35, 34))))

    assert fired == [3, 12, 35]
    assert bench.task.commit_needed
    assert (bench.task.punctuate(0), bench.task.punctuate(0)) == (3, 0)


def test_wall_clock_punctuators_fire_when_the_worker_says_the_time() -> None:
    fired: list[int] = []

    def build(context: OperatorContext) -> Forward:
        def init() -> None:
            context.processing.schedule(10, PunctuationType.WALL_CLOCK_TIME, fired.append)

        context.on_init(init)
        return context.forward

    bench = TaskBench(source("SOURCE", "in", children=("NODE",)), node("NODE", Operator(build)))

    assert bench.task.punctuate(1009) == 0
    assert bench.task.punctuate(1015) == 1
    assert fired == [1015]


def test_init_runs_from_the_sources_down_and_close_runs_everywhere_even_after_an_error() -> None:
    calls = []

    def build(name: str) -> Operator:
        def make(context: OperatorContext) -> Forward:
            context.on_init(lambda: calls.append(f"init {name}"))

            def close() -> None:
                calls.append(f"close {name}")
                raise ValueError(name)

            context.on_close(close)
            return context.forward

        return Operator(make)

    bench = TaskBench(source("SOURCE", "in", children=("A",)), node("A", build("a"), "B"), node("B", build("b")))

    with pytest.raises(StreamsError, match=r"close of A failed in task 0_0: ValueError\('a'\)"):
        bench.task.close()

    assert calls == ["init a", "init b", "close a", "close b"]


def with_store(close: Callable[[], None]) -> TaskBench:
    """A bench with a store in memory, and a node that calls this when it is closed."""

    def build(context: OperatorContext) -> Forward:
        context.on_close(close)
        return context.forward

    return TaskBench(
        source("SOURCE", "in", children=("NODE",)),
        node("NODE", Operator(build)),
        stores={"rows": Stores.key_value_store_builder(Stores.in_memory_key_value_store("rows"))},
        changelogs={"rows": InternalTopic("log", "changelog", None, {})},
    )


def test_store_in_memory_goes_on_after_the_changelog_offset_it_was_committed_with() -> None:
    bench = with_store(lambda: None)
    bench.task.close()
    (restorable,) = bench.task.open_stores().values()
    before = restorable.committed_offset()
    restorable.commit(2)

    assert (before, restorable.committed_offset()) == (None, 2)


def test_released_task_closes_its_nodes_and_leaves_its_stores_with_their_rows() -> None:
    closed = []
    bench = with_store(lambda: closed.append("node"))
    bench.feed(message("in", 0, "v", 1))
    store = bench.task.stores["rows"]
    store.put("a", "1")
    bench.commit()
    left = bench.task.hand_over()

    assert (closed, dict(bench.task.stores)) == (["node"], {})
    assert left is not None and left.stores == {"rows": store}
    assert not store.is_open
    assert len(list(store.engine_rows())) == 1
    left.close()
    assert list(store.engine_rows()) == []


def test_task_with_work_that_is_not_committed_is_not_released() -> None:
    closed = []
    bench = with_store(lambda: closed.append("node"))
    bench.feed(message("in", 0, "v", 1))

    assert bench.task.hand_over() is None
    assert closed == []
    assert bench.task.stores["rows"].is_open


def test_task_whose_nodes_cannot_be_closed_closes_its_stores_too() -> None:
    def fails() -> None:
        raise ValueError("no")

    bench = with_store(fails)
    store = bench.task.stores["rows"]
    with pytest.raises(StreamsError, match="close of NODE failed"):
        bench.task.hand_over()

    assert not store.is_open
    assert dict(bench.task.stores) == {}


def test_store_that_cannot_be_closed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise ValueError("no")

    bench = with_store(lambda: None)
    monkeypatch.setattr(bench.task.stores["rows"], "close", fails)
    with pytest.raises(StreamsError, match=r"close of store 'rows' failed in task 0_0: ValueError\('no'\)"):
        bench.task.close()

    assert dict(bench.task.stores) == {}


def test_init_that_raises_names_its_node() -> None:
    def build(context: OperatorContext) -> Forward:
        def init() -> None:
            raise ZeroDivisionError

        context.on_init(init)
        return context.forward

    with pytest.raises(StreamsError, match=r"init of NODE failed in task 0_0: ZeroDivisionError"):
        TaskBench(source("SOURCE", "in", children=("NODE",)), node("NODE", Operator(build)))


def committed_offset(bench: TaskBench) -> int:
    return bench.commit()[IN][0]


def test_topic_that_was_made_anew_is_committed_at_its_own_offsets() -> None:
    """At those of the one before, the records up to there would be lost when another worker goes on."""
    bench = straight()
    bench.feed(message("in", 998, "v", 1))
    bench.task.reached_end(IN, 1000)
    before = committed_offset(bench)
    bench.feed(message("in", 0, "v", 1), message("in", 1, "v", 1))

    assert (before, committed_offset(bench)) == (1000, 2)


def in_init(act: Callable[[OperatorContext], None]) -> TaskBench:
    """A bench with a store in memory and a sink, and a node that does this as the task starts."""

    def build(context: OperatorContext) -> Forward:
        context.on_init(lambda: act(context))
        return context.forward

    return TaskBench(
        source("SOURCE", "in", children=("NODE",)),
        node("NODE", Operator(build), "SINK"),
        sink("SINK", "out"),
        stores={"rows": Stores.key_value_store_builder(Stores.in_memory_key_value_store("rows"))},
        changelogs={"rows": InternalTopic("log", "changelog", None, {})},
    )


def test_what_is_sent_in_init_is_committed_though_no_record_comes() -> None:
    """Otherwise brokers roll its transaction back after a while, and nobody knows that it is lost."""
    bench = in_init(lambda context: context.forward("k", "v", 1, ()))

    assert bench.values() == ["v"]
    assert bench.task.commit_needed
    bench.commit()
    assert not bench.task.commit_needed


def test_task_whose_init_has_written_is_not_released_before_a_commit() -> None:
    bench = in_init(lambda context: None)
    bench.task.stores["rows"].put("a", "1")  # as init does

    assert bench.task.hand_over() is None


def interrupted(kind: PunctuationType | None, *topics: str) -> TaskBench:
    """A bench whose node writes a row and is interrupted then: at a record, or when a punctuator of a kind runs."""

    def write(*_: object) -> None:
        bench.task.stores["rows"].put("a", "1")
        raise TaskMigratedError("another producer has taken its place")

    def build(context: OperatorContext) -> Forward:
        def init() -> None:
            if kind is not None:
                context.processing.schedule(10, kind, write)

        context.on_init(init)
        return write if kind is None else context.forward

    bench = TaskBench(
        *(source(topic.upper(), topic, children=("NODE",)) for topic in topics),
        node("NODE", Operator(build)),
        topics=topics,
        stores={"rows": Stores.key_value_store_builder(Stores.in_memory_key_value_store("rows"))},
        changelogs={"rows": InternalTopic("log", "changelog", None, {})},
    )
    bench.commit()
    return bench


@pytest.mark.parametrize("topics", [("in",), ("in", "other")])
@pytest.mark.parametrize("kind", [None, PunctuationType.STREAM_TIME])
def test_task_whose_first_records_since_a_commit_were_interrupted_is_not_released(
    kind: PunctuationType | None, topics: tuple[str, ...]
) -> None:
    """The rows that were not committed would go over to a standby."""
    bench = interrupted(kind, *topics)

    with pytest.raises(TaskMigratedError):
        bench.feed(*(message(topic, 0, "v", 20) for topic in topics))

    assert bench.task.hand_over() is None


def test_task_whose_punctuator_was_interrupted_is_not_released() -> None:
    bench = interrupted(PunctuationType.WALL_CLOCK_TIME, "in")

    with pytest.raises(TaskMigratedError):
        bench.task.punctuate(2000)

    assert bench.task.hand_over() is None


def test_a_failing_record_leaves_the_later_ones_queued_and_commits_the_earlier_ones() -> None:
    def fail_at_b(key: str, value: str) -> str:
        if value == "b":
            raise ValueError(value)
        return value

    bench = TaskBench(
        source("SOURCE", "in", children=("NODE",)), node("NODE", each(fail_at_b), "SINK"), sink("SINK", "out")
    )

    with pytest.raises(ProcessingError):
        bench.feed(*(message("in", i, value, i) for i, value in enumerate("abcd")))

    assert bench.values() == ["a"]
    assert bench.task.buffered == 2


def test_topic_that_no_source_reads_is_refused() -> None:
    with pytest.raises(StreamsError, match="no source of sub-topology 0 reads topic 'elsewhere'"):
        TaskBench(source("SOURCE", "in"), topics=("elsewhere",))


def test_missing_default_serde_names_the_node_and_the_setting() -> None:
    named = r"^SOURCE \(topic 'in'\): a step needs a value serde .*default\.value\.serde"
    with pytest.raises(StreamsError, match=named):
        TaskBench(source("SOURCE", "in"), config={"default.value.serde": None})


records = st.lists(st.tuples(st.integers(0, 20), st.sampled_from(["a", "b", "bad"])), max_size=30)


@given(records, st.integers(1, 7))
def test_the_loop_for_one_partition_does_what_the_partition_group_does(
    found: list[tuple[int, str]], limit: int
) -> None:
    """The fast loop and the general one are two implementations of one thing."""
    messages = [message("in", i, value, time) for i, (time, value) in enumerate(found)]
    outcomes = []
    for topics in (("in",), ("in", "other")):
        seen: list[str] = []

        def probe(key: str, value: str, seen: list[str] = seen) -> str:
            if value == "bad":
                raise ValueError(value)
            seen.append(value)
            return value

        bench = TaskBench(
            source("SOURCE", "in", "other", children=("NODE",)),
            node("NODE", each(probe), "SINK"),
            sink("SINK", "out"),
            topics=topics,
            config={
                "processing.exception.handler": "pykstreams.core.handlers:LogAndContinueProcessingExceptionHandler"
            },
        )
        bench.task.add(IN, messages)
        while bench.task.process(limit):
            pass
        outcomes.append((seen, bench.sent(), bench.task.stream_time, bench.task.prepare_commit(), bench.dropped))

    assert outcomes[0] == outcomes[1]


def test_an_error_while_a_cache_is_flushed_names_the_store_and_leaves_no_other_cache_full() -> None:
    """The record is long gone by then; the store is what tells where it came from."""
    flushed = []

    class Cached:
        def __init__(self, name: str) -> None:
            self.name = name

        def flush_cache(self) -> None:
            flushed.append(self.name)
            if self.name == "first":
                raise ProcessingError("NODE failed", node="NODE")

    bench = straight()
    assert isinstance(bench.task.stores, dict)
    bench.task.stores.update(first=Cached("first"), second=Cached("second"))
    bench.feed(message("in", 0, "v", 5))

    with pytest.raises(ProcessorStateError, match="the cache of store 'first' was not flushed: NODE failed"):
        bench.task.prepare_commit()

    assert flushed == ["first", "second"]
