"""Partition counts are asked for once, again for unknown topics, and again when they have grown old."""

import pytest

from pykstreams.core.errors import ClusterUnavailableError
from pykstreams.runtime.topics.partition_counts import PartitionCounts
from pykstreams.testing.clock import MockClock


class CountingCluster:
    def __init__(self) -> None:
        self.counts = {"out": 3}
        self.asked = 0

    def ask(self) -> dict[str, int]:
        self.asked += 1
        return dict(self.counts)


def test_a_known_topic_is_asked_for_once() -> None:
    cluster = CountingCluster()
    counts = PartitionCounts(cluster.ask, MockClock(0), 1000)

    assert [counts.of("out") for _ in range(5)] == [3] * 5
    assert cluster.asked == 1


def test_a_topic_that_is_created_later_is_found() -> None:
    cluster = CountingCluster()
    counts = PartitionCounts(cluster.ask, MockClock(0), 1000)
    before = counts.of("new")
    cluster.counts["new"] = 2

    assert (before, counts.of("new")) == (0, 2)


def test_a_topic_that_grew_is_noticed_after_the_maximal_age() -> None:
    cluster, clock = CountingCluster(), MockClock(0)
    counts = PartitionCounts(cluster.ask, clock, 1000)
    counts.of("out")
    cluster.counts["out"] = 6
    clock.advance(1000)
    counts.poll()
    young = counts.of("out")
    clock.advance(1)
    counts.poll()

    assert (young, counts.of("out")) == (3, 6)


def test_topic_that_a_broker_which_has_just_started_leaves_out_keeps_its_count() -> None:
    cluster, clock = CountingCluster(), MockClock(0)
    cluster.counts["other"] = 2
    counts = PartitionCounts(cluster.ask, clock, 1000)
    counts.of("out")
    cluster.counts = {}
    clock.advance(1001)
    counts.poll()

    assert [counts.of("out"), counts.of("other"), counts.of("new")] == [3, 2, 0]


def test_what_was_known_is_believed_while_the_cluster_does_not_answer() -> None:
    cluster, clock = CountingCluster(), MockClock(0)
    away: list[bool] = []

    def ask() -> dict[str, int]:
        if away:
            raise ClusterUnavailableError("listing the topics failed")
        return cluster.ask()

    counts = PartitionCounts(ask, clock, 1000)
    counts.of("out")
    cluster.counts["out"] = 6
    away.append(True)
    clock.advance(1001)
    counts.poll()
    meanwhile = counts.of("out")
    away.clear()
    clock.advance(1001)
    counts.poll()

    assert (meanwhile, counts.of("out")) == (3, 6)


def test_topic_of_which_nothing_is_known_has_no_count_while_the_cluster_does_not_answer() -> None:
    def ask() -> dict[str, int]:
        raise ClusterUnavailableError("listing the topics failed")

    with pytest.raises(ClusterUnavailableError):
        PartitionCounts(ask, MockClock(0), 1000).of("out")
