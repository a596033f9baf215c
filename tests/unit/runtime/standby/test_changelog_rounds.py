"""Rounds of reading changelogs: when one begins, up to where it goes, and what cannot be followed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from pykstreams.core.errors import ClusterUnavailableError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.consumers.restore_consumer import RestoreBatch
from pykstreams.runtime.clients.positions import OffsetReader
from pykstreams.runtime.restore.restore import Remade, Restorer, StateRestoreListener, Truncated
from pykstreams.runtime.standby.changelog_rounds import ROUND_S, ChangelogRounds
from tests.unit.runtime.cluster_fakes import FakeChangelogs, FakeClock, FakeRestoredStore

TASK = TaskId(0, 0)
LOG = TopicPartition("shop-counts-changelog", 0)
ORDERS = TopicPartition("orders", 0)


class Followed:
    """Rounds over changelogs that a test fills."""

    def __init__(self) -> None:
        self.clock, self.logs = FakeClock(), FakeChangelogs()
        self.limits: dict[TopicPartition, int] = {}
        self.readers: list[str] = []
        self.reached: list[Mapping[TopicPartition, int]] = []
        self.rounds = ChangelogRounds(self._restorer, self.logs, self._limits, self.clock)

    def _restorer(self, offsets: OffsetReader) -> tuple[Restorer, Callable[[], None]]:
        self.readers.append("opened")
        restorer = Restorer(self.logs, offsets, StateRestoreListener(), log_level=logging.DEBUG)
        return restorer, lambda: self.readers.append("closed")

    def _limits(self, task_id: TaskId) -> Mapping[TopicPartition, int]:
        return self.limits

    def turn(self) -> list[Any]:
        return list(self.rounds.turn(self.clock.monotonic()))


@pytest.fixture
def followed() -> Followed:
    return Followed()


def test_no_reader_is_opened_while_there_is_nothing_to_follow(followed: Followed) -> None:
    followed.turn()

    assert (followed.readers, followed.rounds.due_at, followed.rounds.is_busy) == ([], None, False)


def test_a_round_begins_at_once_and_goes_to_the_end_of_that_moment(
    followed: Followed, caplog: pytest.LogCaptureFixture
) -> None:
    store: Any = FakeRestoredStore()
    followed.logs.ends[LOG] = 4
    followed.rounds.add(TASK, {LOG: store}, followed.reached.append)
    with caplog.at_level(logging.INFO):
        followed.turn()
        behind = followed.rounds.is_busy
        followed.logs.put(LOG, 0, 3)
        while followed.rounds.is_busy:
            followed.turn()

    assert behind
    assert store.commits == [4]
    assert caplog.messages == ["standby task 0_0 is up to date"]


def test_the_next_round_goes_on_from_there_after_a_second(followed: Followed) -> None:
    store: Any = FakeRestoredStore()
    followed.rounds.add(TASK, {LOG: store}, followed.reached.append)
    followed.turn()
    followed.logs.ends[LOG] = 1
    followed.turn()
    early = followed.rounds.is_busy
    followed.clock.advance(ROUND_S)
    followed.turn()

    assert (early, followed.rounds.is_busy) == (False, True)
    assert followed.logs.assigned == {LOG: 0}


def test_a_changelog_that_is_an_input_is_read_up_to_its_limit(followed: Followed) -> None:
    store: Any = FakeRestoredStore()
    followed.limits[LOG] = 2
    followed.logs.ends[LOG] = 100
    followed.logs.put(LOG, 0, 1, 2)
    followed.rounds.add(TASK, {LOG: store}, followed.reached.append)
    followed.turn()
    while followed.rounds.is_busy:
        followed.turn()

    assert store.commits == [2]


def test_a_task_that_cannot_be_followed_is_yielded(followed: Followed) -> None:
    store: Any = FakeRestoredStore(offset=3)
    followed.logs.begins[LOG], followed.logs.ends[LOG] = 7, 9
    followed.rounds.add(TASK, {LOG: store}, followed.reached.append)
    (setback,) = followed.turn()
    followed.rounds.remove(TASK)

    assert isinstance(setback, Truncated)
    assert followed.turn() == []


def test_a_task_that_is_removed_keeps_the_offset_it_has_come_to(followed: Followed) -> None:
    store: Any = FakeRestoredStore()
    followed.logs.ends[LOG] = 10
    followed.logs.put(LOG, 0, 1)
    followed.rounds.add(TASK, {LOG: store}, followed.reached.append)
    followed.turn()
    followed.rounds.remove(TASK)

    assert (store.commits, followed.logs.assigned, followed.rounds.due_at) == ([2], {}, None)


def test_a_reader_that_was_closed_is_opened_again(followed: Followed) -> None:
    store: Any = FakeRestoredStore()
    followed.rounds.add(TASK, {LOG: store}, followed.reached.append)
    followed.turn()
    followed.rounds.close()
    followed.rounds.close()
    followed.turn()

    assert followed.readers == ["opened", "closed", "opened"]


def test_at_the_end_of_a_round_the_stores_stand_for_what_was_committed_when_it_began(followed: Followed) -> None:
    store: Any = FakeRestoredStore()
    followed.limits = {ORDERS: 7}
    followed.logs.ends[LOG] = 2
    followed.rounds.add(TASK, {LOG: store}, followed.reached.append)
    followed.turn()
    followed.limits = {ORDERS: 9}
    followed.turn()
    before = list(followed.reached)
    followed.logs.put(LOG, 0, 1)
    followed.turn()
    while followed.rounds.is_busy:
        followed.turn()
    first = list(followed.reached)
    followed.clock.advance(ROUND_S)
    followed.turn()

    assert (before, first, followed.reached) == ([], [{ORDERS: 7}], [{ORDERS: 7}, {ORDERS: 9}])


def test_a_task_that_goes_before_the_end_of_a_round_stands_for_nothing_more(followed: Followed) -> None:
    store: Any = FakeRestoredStore()
    followed.limits = {ORDERS: 7}
    followed.logs.ends[LOG] = 2
    followed.rounds.add(TASK, {LOG: store}, followed.reached.append)
    followed.turn()
    followed.rounds.remove(TASK)
    followed.turn()

    assert followed.reached == []


def test_a_round_whose_ends_nobody_tells_is_left_out_and_nothing_is_given_up(
    followed: Followed, caplog: pytest.LogCaptureFixture
) -> None:
    store: Any = FakeRestoredStore()
    followed.limits = {ORDERS: 7}
    followed.rounds.add(TASK, {LOG: store}, followed.reached.append)
    followed.logs.silent = ClusterUnavailableError("no answer within 5 s")
    for _ in range(2):
        assert followed.turn() == []
        followed.clock.advance(ROUND_S)
    before = list(followed.reached)
    followed.logs.silent = None
    followed.turn()

    assert (before, followed.reached, followed.readers) == ([], [{ORDERS: 7}], ["opened"])
    assert caplog.messages == ["the ends of changelogs of standby tasks are asked for again: no answer within 5 s"]


@pytest.mark.parametrize("end", [9, 4])
def test_what_became_of_an_offset_that_is_refused_is_asked_for_anew(followed: Followed, end: int) -> None:
    other = TaskId(0, 1)
    followed.logs.ends[LOG] = 9
    followed.rounds.add(TASK, {LOG: FakeRestoredStore(offset=5)}, followed.reached.append)
    followed.turn()
    followed.rounds.add(other, {TopicPartition(LOG.topic, 1): FakeRestoredStore()}, followed.reached.append)
    followed.turn()
    followed.logs.ends[LOG] = end
    followed.logs.batches.append(RestoreBatch(out_of_range=[LOG]))
    found = followed.turn()

    assert [type(one) for one in found] == ([] if end == 9 else [Remade])
