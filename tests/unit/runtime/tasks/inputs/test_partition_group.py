"""Which record comes next, and how long an empty input is waited for (FORMAT.md, section 11, rules 2, 3, 4 and 9)."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykstreams.core.errors import StreamsError
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.tasks.inputs.partition_group import partition_order
from pykstreams.runtime.tasks.priority_queue import PriorityQueue
from tests.unit.runtime.tasks.fakes import TaskBench, message, sink, source

A, B = TopicPartition("a", 0), TopicPartition("b", 0)

ORDER_IN_JAVA = [
    "app-r1-repartition-0",
    "zz-1",
    "zz-0",
    "app-r1-repartition-2",
    "app-r1-repartition-1",
    "app-r1-repartition-3",
    "customers-0",
    "orders-0",
    "orders-1",
    "customers-2",
    "orders-2",
    "customers-1",
    "orders-3",
    "customers-3",
    "zz-3",
    "zz-2",
]
"""The keys of a HashMap of these partitions, recorded from Java 17."""


def bench(
    topics: tuple[str, ...] = ("a", "b"), deserializer: Callable[[bytes], object] | None = None, **options: Any
) -> TaskBench:
    return TaskBench(
        *(source(f"SOURCE-{topic}", topic, children=("SINK",), value_deserializer=deserializer) for topic in topics),
        sink("SINK", "out"),
        topics=topics,
        **options,
    )


def not_bad(data: bytes) -> str:
    """A deserializer that fails for one value."""
    if data == b"bad":
        raise ValueError(data)
    return data.decode()


def idling(ms: int, **options: Any) -> TaskBench:
    return bench(config={"max.task.idle.ms": ms}, **options)


def test_partitions_are_gone_through_in_javas_order() -> None:
    partitions = [
        TopicPartition(topic, n) for topic in ("orders", "app-r1-repartition", "customers", "zz") for n in range(4)
    ]

    assert [str(partition) for partition in partition_order(partitions)] == ORDER_IN_JAVA


def test_of_equal_heads_the_queue_that_was_filled_first_comes_first() -> None:
    found = bench()
    found.task.add(B, [message("b", 0, "b0", 5), message("b", 1, "b1", 5)])
    found.task.add(A, [message("a", 0, "a0", 5), message("a", 1, "a1", 5)])

    found.task.process(10)

    assert found.values() == ["b0", "a0", "b1", "a1"]


def test_a_queue_is_entered_again_before_its_record_is_processed() -> None:
    found = bench(("a", "b", "c"))
    found.task.add(A, [message("a", i, f"a{i}", 1) for i in range(3)])
    found.task.add(B, [message("b", 0, "b0", 1)])
    found.task.add(TopicPartition("c", 0), [message("c", 0, "c0", 1)])

    found.task.process(10)

    assert found.values() == ["a0", "c0", "a1", "b0", "a2"]


def test_records_that_come_later_take_their_turn_among_those_of_the_only_input_that_had_any() -> None:
    found = bench()
    found.task.add(A, [message("a", i, f"a{i}", 10 * i) for i in range(4)])
    assert found.task.process(2) == 2

    found.task.add(B, [message("b", 0, "b0", 25)])
    found.task.process(10)

    assert found.values() == ["a0", "a1", "a2", "b0", "a3"]


def test_input_that_ran_dry_is_waited_for_while_others_have_records() -> None:
    lags = {A: 0, B: 0}
    found = idling(0, lag=lags.get)
    found.feed(message("a", 0, "a0", 1), message("b", 0, "b0", 2), message("b", 1, "b1", 3))
    assert found.values() == ["a0", "b0", "b1"]

    lags[A] = 1
    found.task.add(B, [message("b", 2, "b2", 4)])

    assert found.task.process(10) == 0


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 4), st.integers(0, 6)), max_size=12), st.randoms())
def test_smallest_head_is_always_next_however_records_arrive(
    arrivals: list[tuple[bool, int, int]], chance: Random
) -> None:
    """Each arrival is (the input is ``a``, number of records, number of records to process then)."""
    found = bench()
    times = chance.sample(range(1000), sum(count for _, count, _ in arrivals))
    queues: dict[TopicPartition, list[int]] = {A: [], B: []}
    offsets, expected = {A: 0, B: 0}, []
    for first, count, limit in arrivals:
        partition = A if first else B
        batch = []
        for _ in range(count):
            time = times.pop()
            batch.append(message(partition.topic, offsets[partition], str(time), time))
            queues[partition].append(time)
            offsets[partition] += 1
        found.task.add(partition, batch)
        found.task.process(limit)
        for _ in range(limit):
            queue = min((queue for queue in queues.values() if queue), default=None)
            if queue is not None:
                expected.append(str(queue.pop(0)))

    assert found.values() == expected


TIMES = st.lists(st.integers(0, 3), min_size=1, max_size=4)


@given(
    st.permutations("abcd"),
    st.lists(TIMES, min_size=2, max_size=4),
    st.lists(st.tuples(st.sampled_from("abcd"), TIMES, st.integers(0, 7))),
)
def test_runs_from_one_queue_give_the_order_of_taking_each_record_from_the_heap(
    topics: list[str], first: list[list[int]], later: list[tuple[str, list[int], int]]
) -> None:
    """Each arrival is (input, times of its records, number of records to process then); many times are equal."""
    found = bench(tuple("abcd"), config={"max.task.idle.ms": -1})
    queues: dict[str, list[tuple[int, str]]] = {topic: [] for topic in "abcd"}
    heap: PriorityQueue[str] = PriorityQueue()
    offsets, expected = dict.fromkeys("abcd", 0), []
    for topic, times, limit in [(topic, times, 0) for topic, times in zip(topics, first, strict=False)] + later:
        batch = [
            message(topic, offsets[topic] + i, f"{topic}{offsets[topic] + i}", time) for i, time in enumerate(times)
        ]
        offsets[topic] += len(times)
        if not queues[topic]:
            heap.add(times[0], topic)
        queues[topic] += [(one.timestamp()[1], (one.value() or b"").decode()) for one in batch]
        found.task.add(TopicPartition(topic, 0), batch)
        found.task.process(limit)
        for _ in range(limit):
            if heap:
                next_up = heap.pop()
                expected.append(queues[next_up].pop(0)[1])
                if queues[next_up]:
                    heap.add(queues[next_up][0][0], next_up)

    assert expected == found.values()


def test_by_default_an_empty_input_is_not_waited_for_when_nothing_is_left_on_the_brokers() -> None:
    found = idling(0)

    assert found.feed(message("a", 0, "v", 5)) == 1


def test_an_input_with_records_on_the_brokers_is_waited_for() -> None:
    lags = {B: 3}
    found = idling(0, lag=lags.get)
    found.task.add(A, [message("a", 0, "v", 5)])
    assert not found.task.is_ready()

    lags[B] = 0

    assert found.task.is_ready()


@pytest.mark.parametrize("idle_ms", [0, 500])
def test_an_empty_input_is_not_waited_for_longer_when_the_clock_is_set_back(
    idle_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = idling(idle_ms, lag=lambda partition: 0)
    found.task.add(A, [message("a", 0, "v", 5)])
    assert found.task.is_ready() == (idle_ms == 0)

    monkeypatch.setattr(found.clock, "now_ms", lambda: 10)
    assert found.task.is_ready() == (idle_ms == 0)
    monkeypatch.setattr(found.clock, "now_ms", lambda: 10 + idle_ms)

    assert found.task.is_ready()


def test_an_input_whose_lag_is_not_known_yet_is_waited_for() -> None:
    found = idling(0, lag=lambda partition: None)
    found.task.add(A, [message("a", 0, "v", 5)])

    assert not found.task.is_ready()


def test_idling_can_be_switched_off() -> None:
    found = idling(-1, lag=lambda partition: 5)

    assert found.feed(message("a", 0, "v", 5)) == 1


def test_an_empty_input_is_waited_for_until_its_deadline() -> None:
    found = idling(100)
    assert found.feed(message("a", 0, "v", 5)) == 0

    found.clock.advance(99)
    assert found.task.process(1) == 0
    found.clock.advance(1)

    assert found.task.process(1) == 1


def test_the_deadline_starts_anew_after_the_input_had_records() -> None:
    found = idling(100)
    found.feed(message("a", 0, "a0", 5))
    found.clock.advance(60)
    found.feed(message("a", 1, "a1", 6), message("b", 0, "b0", 1))  # b0 goes, then b is empty again
    assert found.values() == ["b0"]

    found.clock.advance(60)

    assert found.task.process(10) == 0
    found.clock.advance(40)
    assert found.task.process(10) == 2


def test_a_record_becomes_the_head_before_the_one_taken_is_processed() -> None:
    """So a record that cannot be read stops the task before its predecessor is processed, as in Kafka Streams."""
    found = bench(deserializer=not_bad)
    found.task.add(A, [message("a", 0, "good", 5), message("a", 1, "bad", 6)])

    with pytest.raises(StreamsError, match="record a-0 at offset 1"):
        found.task.process(10)

    assert found.values() == []


def test_a_run_of_skipped_records_is_committed_by_its_last() -> None:
    found = bench(
        deserializer=not_bad,
        config={"deserialization.exception.handler": "pykstreams.core.handlers:LogAndContinueExceptionHandler"},
    )

    found.feed(message("a", 7, "bad", 5), message("a", 8, "bad", 6))

    assert found.values() == []
    assert found.dropped == 2
    assert found.task.prepare_commit()[A][0] == 9
    assert found.task.stream_time == -1


SKIPS_BAD: dict[str, Any] = {
    "deserialization.exception.handler": "pykstreams.core.handlers:LogAndContinueExceptionHandler",
    "errors.dead.letter.queue.topic.name": "dlq",
}


def test_a_skipped_record_is_committed_with_its_dead_letter_although_nothing_of_its_input_was_processed() -> None:
    found = bench(deserializer=not_bad, config=SKIPS_BAD)
    found.task.add(A, [message("a", 7, "bad", 5), message("a", 8, "good", 9)])
    assert [letter.value for letter in found.sent()] == [b"bad"]

    assert found.task.commit_needed
    assert found.commit()[A][0] == 8
    assert not found.task.commit_needed


def test_a_skipped_record_is_committed_with_its_dead_letter_while_another_input_is_waited_for() -> None:
    found = bench(deserializer=not_bad, config={**SKIPS_BAD, "max.task.idle.ms": 100})
    found.task.add(A, [message("a", 7, "bad", 5)])
    assert not found.task.is_ready()

    assert found.commit()[A][0] == 8


def test_a_skipped_record_does_not_take_the_offset_back_behind_those_that_were_processed_after_it() -> None:
    found = bench(deserializer=not_bad, config=SKIPS_BAD)

    found.feed(message("a", 7, "bad", 5), message("a", 8, "good", 6), message("a", 9, "good", 7))

    assert found.commit()[A][0] == 10
