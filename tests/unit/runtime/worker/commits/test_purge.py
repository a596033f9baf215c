"""Consumed repartition records are deleted up to what was committed, and no request waits for another."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.worker.commits.purge import RepartitionPurge
from tests.unit.runtime.cluster_fakes import FakeClock

REPARTITION = TopicPartition("shop-by-item-repartition", 1)


@dataclass
class FakeDeletions:
    asked: list[Mapping[TopicPartition, int]] = field(default_factory=list)
    over: bool = True
    fault: str | None = None

    def __call__(self, before: Mapping[TopicPartition, int]) -> FakeDeletions:
        self.asked.append(before)
        return self

    def done(self) -> bool:
        return self.over

    def problem(self) -> str | None:
        return self.fault


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def deletions() -> FakeDeletions:
    return FakeDeletions()


@pytest.fixture
def purge(clock: FakeClock, deletions: FakeDeletions) -> RepartitionPurge:
    return RepartitionPurge(deletions, topics=[REPARTITION.topic], interval_ms=30_000, clock=clock)


def test_deletes_what_was_committed_when_the_interval_is_over(
    purge: RepartitionPurge, clock: FakeClock, deletions: FakeDeletions
) -> None:
    purge.committed({REPARTITION: (5, "")})
    purge.poll()
    before = list(deletions.asked)
    clock.advance(31)

    purge.poll()

    assert before == []
    assert deletions.asked == [{REPARTITION: 5}]


def test_source_topics_are_never_touched(purge: RepartitionPurge, clock: FakeClock, deletions: FakeDeletions) -> None:
    purge.committed({TopicPartition("orders", 0): (5, "")})
    clock.advance(31)
    purge.poll()

    assert deletions.asked == []


def test_nothing_is_asked_twice(purge: RepartitionPurge, clock: FakeClock, deletions: FakeDeletions) -> None:
    purge.committed({REPARTITION: (5, "")})
    clock.advance(31)
    purge.poll()
    clock.advance(31)
    purge.poll()

    assert deletions.asked == [{REPARTITION: 5}]


def test_waits_for_the_last_deletion(purge: RepartitionPurge, clock: FakeClock, deletions: FakeDeletions) -> None:
    purge.committed({REPARTITION: (5, "")})
    clock.advance(31)
    purge.poll()
    deletions.over = False
    purge.committed({REPARTITION: (9, "")})
    clock.advance(31)
    purge.poll()
    while_under_way = len(deletions.asked)
    deletions.over = True
    purge.poll()

    assert while_under_way == 1
    assert deletions.asked[1:] == [{REPARTITION: 9}]


def test_partition_that_left_is_not_purged(purge: RepartitionPurge, clock: FakeClock, deletions: FakeDeletions) -> None:
    purge.committed({REPARTITION: (5, "")})
    purge.forget([REPARTITION])
    clock.advance(31)
    purge.poll()

    assert deletions.asked == []


def test_records_that_were_not_deleted_are_deleted_later(
    purge: RepartitionPurge, clock: FakeClock, deletions: FakeDeletions
) -> None:
    """Nothing more may come to a partition, and what it holds is never deleted then."""
    purge.committed({REPARTITION: (5, "")})
    deletions.fault = "request timed out"
    clock.advance(31)
    purge.poll()
    purge.poll()
    clock.advance(31)
    purge.poll()
    deletions.fault = None
    for _ in range(2):
        clock.advance(31)
        purge.poll()

    assert deletions.asked == [{REPARTITION: 5}, {REPARTITION: 5}]


def test_partition_that_left_while_its_records_were_not_deleted_is_not_purged(
    purge: RepartitionPurge, clock: FakeClock, deletions: FakeDeletions
) -> None:
    purge.committed({REPARTITION: (5, "")})
    deletions.fault = "request timed out"
    clock.advance(31)
    purge.poll()
    purge.forget([REPARTITION])
    clock.advance(31)
    purge.poll()

    assert deletions.asked == [{REPARTITION: 5}]


def test_failed_deletion_is_said_and_does_no_harm(
    purge: RepartitionPurge, clock: FakeClock, deletions: FakeDeletions, caplog: pytest.LogCaptureFixture
) -> None:
    deletions.fault = "not authorized"
    for offset in (5, 9):
        purge.committed({REPARTITION: (offset, "")})
        clock.advance(31)
        with caplog.at_level(logging.INFO):
            purge.poll()

    assert "were not deleted, and will be later: not authorized" in caplog.text
    assert deletions.asked == [{REPARTITION: 5}, {REPARTITION: 9}]
