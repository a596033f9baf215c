"""A position that a broker refuses is left only when the records there are gone."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

import pytest

from pykstreams.core.errors import ClusterUnavailableError
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.clients.consumers.lost_positions import LOOK_S, LostPositions
from pykstreams.runtime.clients.positions import CONFIRM_S
from pykstreams.runtime.worker.start_offsets import StartOffsets
from tests.unit.runtime.cluster_fakes import FakeBounds, FakeClock
from tests.unit.runtime.plans import part, plan, source

ORDERS = TopicPartition("orders", 0)
MOVED = TopicPartition("shop-moved-repartition", 2)


class SlowBounds(FakeBounds):
    """Leaders whose answer, or failure, takes some time."""

    def __init__(self, bounds: Mapping[TopicPartition, tuple[int, int]], clock: FakeClock) -> None:
        super().__init__(bounds)
        self._clock = clock
        self.takes_s = 0.0

    def beginning_offsets(
        self, partitions: Collection[TopicPartition], *, timeout_s: float | None = None
    ) -> dict[TopicPartition, int]:
        self._clock.advance(self.takes_s)
        return super().beginning_offsets(partitions, timeout_s=timeout_s)


class Bench:
    """Two partitions whose leaders say that they have the offsets 10 to 90, and a consumer of them."""

    def __init__(self) -> None:
        self.at: dict[TopicPartition, int | None] = {}
        """Where the consumer is."""
        self.sought: dict[TopicPartition, int] = {}
        self.clock = FakeClock()
        self.bounds = SlowBounds({ORDERS: (10, 90), MOVED: (10, 90)}, self.clock)
        topology = plan(part(0, source("A", "orders"), source("B", MOVED.topic), repartition=[(MOVED.topic, None)]))
        start = StartOffsets(topology, "earliest", lambda places, timestamp: {}, self.clock)
        self.positions = LostPositions(self.bounds, start, self.clock)

    def settle(self) -> dict[TopicPartition, int]:
        """Where partitions go on after one more look."""
        self.sought = {}
        self.clock.advance(LOOK_S)
        self.positions.settle(self)
        return self.sought

    def position(self, partition: TopicPartition) -> int | None:
        return self.at[partition]

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self.sought[partition] = offset

    def refused(self, partition: TopicPartition, position: int | None) -> None:
        """The broker refuses the position of the consumer."""
        self.at[partition] = position
        self.positions.note(partition)


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.mark.parametrize("partition", [ORDERS, MOVED])
@pytest.mark.parametrize("position", [10, 50, 90])
def test_position_that_the_leader_has_is_read_on(bench: Bench, partition: TopicPartition, position: int) -> None:
    bench.refused(partition, position)

    assert bench.settle() == {partition: position}
    assert bench.settle() == {}


@pytest.mark.parametrize("partition", [ORDERS, MOVED])
def test_records_that_were_deleted_are_passed_over_by_policy_at_once(
    bench: Bench, partition: TopicPartition, caplog: pytest.LogCaptureFixture
) -> None:
    bench.refused(partition, 9)

    assert bench.settle() == {partition: 10}
    assert f"the records of {partition} from offset 9 to 9 were deleted before they were read" in caplog.text


def test_leader_that_is_behind_for_a_moment_makes_nobody_begin_anew(bench: Bench) -> None:
    bench.refused(MOVED, 95)
    while_it_is_behind = [bench.settle() for _ in range(5)]
    bench.bounds.bounds = {MOVED: (10, 95)}

    assert while_it_is_behind == [{}] * 5
    assert bench.settle() == {MOVED: 95}


def test_topic_that_stays_shorter_begins_by_policy(bench: Bench) -> None:
    bench.refused(ORDERS, 95)
    bench.settle()
    bench.clock.advance(CONFIRM_S)

    assert bench.settle() == {ORDERS: 10}


def test_repartition_topic_that_stays_shorter_goes_on_at_its_end_since_all_of_it_was_processed(bench: Bench) -> None:
    bench.refused(MOVED, 95)
    bench.settle()
    bench.clock.advance(CONFIRM_S)

    assert bench.settle() == {MOVED: 90}


def test_leaders_that_do_not_answer_are_asked_again_aloud(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.refused(MOVED, 50)
    bench.bounds.failure = ClusterUnavailableError("asking for the beginning offset took longer than 2 s")
    with caplog.at_level(logging.WARNING):
        silent = bench.settle()
    bench.bounds.failure = None

    assert silent == {}
    assert "the positions of shop-moved-repartition-2 were refused, and are asked for again" in caplog.text
    assert bench.settle() == {MOVED: 50}


def test_leaders_are_asked_once_a_second_and_not_without_need(bench: Bench) -> None:
    bench.settle()
    bench.refused(MOVED, 95)
    for _ in range(4):
        bench.clock.advance(LOOK_S / 4)
        bench.positions.settle(bench)

    assert bench.bounds.asked == 1


def test_worker_has_time_for_other_partitions_between_questions_that_take_long(bench: Bench) -> None:
    bench.refused(MOVED, 50)
    bench.bounds.takes_s, bench.bounds.failure = 2.0, ClusterUnavailableError("not now")
    bench.settle()
    bench.clock.advance(LOOK_S / 10)
    bench.positions.settle(bench)
    asked_at_once = bench.bounds.asked
    bench.settle()

    assert (asked_at_once, bench.bounds.asked) == (1, 2)


def test_partition_that_leaves_is_not_asked_for(bench: Bench) -> None:
    bench.refused(MOVED, 50)
    bench.positions.forget([MOVED])

    assert bench.settle() == {}
    assert bench.bounds.asked == 0


def test_partition_of_which_nothing_was_read_starts_by_policy(bench: Bench) -> None:
    bench.refused(ORDERS, None)

    assert bench.settle() == {ORDERS: 10}


@pytest.mark.parametrize("begin", [10, 60])
def test_partition_of_which_records_come_was_not_refused(bench: Bench, begin: int) -> None:
    """The client reports the refusal of a position from an assignment that is over, when the next one has begun: going
    back would process all records again that came since, and what is committed of them may be deleted already."""
    bench.refused(MOVED, 50)
    bench.positions.read([MOVED])
    bench.at[MOVED] = 70
    bench.bounds.bounds = {MOVED: (begin, 90)}

    assert bench.settle() == {}
    assert bench.bounds.asked == 0


def test_partition_goes_on_where_it_is_when_the_leaders_have_answered(bench: Bench) -> None:
    """Behind the last record there may be markers of transactions, which no record shows."""
    bench.refused(MOVED, 50)
    bench.at[MOVED] = 53

    assert bench.settle() == {MOVED: 53}
