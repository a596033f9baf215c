"""A position that a broker refuses is left only when the records there are gone."""

from __future__ import annotations

import logging

import pytest

from pykstreams.core.errors import ClusterUnavailableError
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.clients.positions import BEGINNING
from pykstreams.runtime.worker.lost_positions import CONFIRM_S, LOOK_S, LostPositions
from pykstreams.runtime.worker.start_offsets import StartOffsets
from tests.unit.runtime.cluster_fakes import FakeBounds, FakeClock
from tests.unit.runtime.plans import part, plan, source

ORDERS = TopicPartition("orders", 0)
MOVED = TopicPartition("shop-moved-repartition", 2)


class Bench:
    """Two partitions whose leaders say that they have the offsets 10 to 90."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.bounds = FakeBounds({ORDERS: (10, 90), MOVED: (10, 90)})
        topology = plan(part(0, source("A", "orders"), source("B", MOVED.topic), repartition=[(MOVED.topic, None)]))
        start = StartOffsets(topology, "earliest", lambda places, timestamp: {}, self.clock)
        self.positions = LostPositions(self.bounds, start, self.clock)

    def settle(self) -> dict[TopicPartition, int]:
        """Where partitions go on after one more look."""
        found: dict[TopicPartition, int] = {}
        self.clock.advance(LOOK_S)
        self.positions.settle(found.__setitem__)
        return found


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.mark.parametrize("partition", [ORDERS, MOVED])
@pytest.mark.parametrize("position", [10, 50, 90])
def test_position_that_the_leader_has_is_read_on(bench: Bench, partition: TopicPartition, position: int) -> None:
    bench.positions.note(partition, position)

    assert bench.settle() == {partition: position}
    assert bench.settle() == {}


@pytest.mark.parametrize("partition", [ORDERS, MOVED])
def test_records_that_were_deleted_are_passed_over_by_policy_at_once(
    bench: Bench, partition: TopicPartition, caplog: pytest.LogCaptureFixture
) -> None:
    bench.positions.note(partition, 9)

    assert bench.settle() == {partition: BEGINNING}
    assert f"the records of {partition} from offset 9 to 9 were deleted before they were read" in caplog.text


def test_leader_that_is_behind_for_a_moment_makes_nobody_begin_anew(bench: Bench) -> None:
    bench.positions.note(MOVED, 95)
    while_it_is_behind = [bench.settle() for _ in range(5)]
    bench.bounds.bounds = {MOVED: (10, 95)}

    assert while_it_is_behind == [{}] * 5
    assert bench.settle() == {MOVED: 95}


def test_topic_that_stays_shorter_begins_by_policy(bench: Bench) -> None:
    bench.positions.note(ORDERS, 95)
    bench.settle()
    bench.clock.advance(CONFIRM_S)

    assert bench.settle() == {ORDERS: BEGINNING}


def test_repartition_topic_that_stays_shorter_goes_on_at_its_end_since_all_of_it_was_processed(bench: Bench) -> None:
    bench.positions.note(MOVED, 95)
    bench.settle()
    bench.clock.advance(CONFIRM_S)

    assert bench.settle() == {MOVED: 90}


def test_leaders_that_do_not_answer_are_asked_again_aloud(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.positions.note(MOVED, 50)
    bench.bounds.failure = ClusterUnavailableError("asking for the beginning offset took longer than 2 s")
    with caplog.at_level(logging.WARNING):
        silent = bench.settle()
    bench.bounds.failure = None

    assert silent == {}
    assert "the positions of shop-moved-repartition-2 were refused, and are asked for again" in caplog.text
    assert bench.settle() == {MOVED: 50}


def test_leaders_are_asked_once_a_second_and_not_without_need(bench: Bench) -> None:
    bench.settle()
    bench.positions.note(MOVED, 95)
    for _ in range(4):
        bench.clock.advance(LOOK_S / 4)
        bench.positions.settle(lambda partition, offset: None)

    assert bench.bounds.asked == 1


def test_partition_that_leaves_is_not_asked_for(bench: Bench) -> None:
    bench.positions.note(MOVED, 50)
    bench.positions.forget([MOVED])

    assert bench.settle() == {}
    assert bench.bounds.asked == 0


def test_partition_of_which_nothing_was_read_starts_by_policy(bench: Bench) -> None:
    bench.positions.note(ORDERS, None)

    assert bench.settle() == {ORDERS: BEGINNING}
