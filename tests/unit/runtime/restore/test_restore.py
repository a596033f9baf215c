"""Stores are restored from their changelogs: from their own offset, by position, up to the end at the start."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from pykstreams.core.errors import ClusterUnavailableError, StoreEngineError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.consumers.restore_consumer import RestoreBatch
from pykstreams.runtime.restore import restore
from pykstreams.runtime.restore.progress import ProgressBar, ProgressLog
from pykstreams.runtime.restore.restore import (
    Damaged,
    Listeners,
    Remade,
    Restorer,
    Setback,
    StateRestoreListener,
    Truncated,
)
from tests.unit.runtime.cluster_fakes import FakeChangelogs, FakeClock, FakeRestoredStore, Message, as_messages

_UNTIL_READY = 5  # seconds; it goes on as soon as a store is ready
TASK, NEIGHBOUR = TaskId(0, 1), TaskId(1, 1)
LOG = TopicPartition("shop-counts-changelog", 1)
OTHER = TopicPartition("shop-sums-changelog", 1)


class Heard(StateRestoreListener):
    def __init__(self) -> None:
        self.calls: list[Any] = []

    def on_restore_start(self, *arguments: Any) -> None:
        self.calls.append(("start", *arguments))

    def on_batch_restored(self, *arguments: Any) -> None:
        self.calls.append(("batch", *arguments))

    def on_restore_end(self, *arguments: Any) -> None:
        self.calls.append(("end", *arguments))

    def on_restore_suspended(self, *arguments: Any) -> None:
        self.calls.append(("suspended", *arguments))


@pytest.fixture
def logs() -> FakeChangelogs:
    return FakeChangelogs()


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def restorer(logs: FakeChangelogs, heard: Heard) -> Restorer:
    return Restorer(logs, logs, heard)


def test_store_without_offset_is_restored_from_the_beginning(restorer: Restorer, logs: FakeChangelogs) -> None:
    store = FakeRestoredStore()
    logs.begins[LOG], logs.ends[LOG] = 3, 6
    restorer.add(TASK, {LOG: store}, {})
    assigned = dict(logs.assigned)
    logs.put(LOG, 3, 4, 5)

    restorer.step(0)
    restorer.step(_UNTIL_READY)

    assert assigned == {LOG: 3}
    assert store.rows == [(b"k", b"v", 1003, ()), (b"k", b"v", 1004, ()), (b"k", b"v", 1005, ())]
    assert store.commits == [6]
    assert not restorer.is_restoring(TASK)
    assert logs.assigned == {}


def test_store_goes_on_from_its_own_offset(restorer: Restorer, logs: FakeChangelogs) -> None:
    logs.ends[LOG] = 6

    restorer.add(TASK, {LOG: FakeRestoredStore(offset=4)}, {})

    assert logs.assigned == {LOG: 4}
    assert restorer.remaining() == {TASK: 2}


def test_store_that_is_up_to_date_is_not_read(restorer: Restorer, logs: FakeChangelogs, heard: Heard) -> None:
    store = FakeRestoredStore(offset=6)
    logs.ends[LOG] = 6

    restorer.add(TASK, {LOG: store}, {})

    assert not restorer.is_restoring(TASK)
    assert store.commits == []
    assert [call[0] for call in heard.calls] == ["start", "end"]


def test_hole_at_the_end_of_a_changelog_counts_as_read(restorer: Restorer, logs: FakeChangelogs) -> None:
    """The last records were compacted away, or are transaction markers: only the position tells."""
    store = FakeRestoredStore()
    logs.ends[LOG] = 10
    restorer.add(TASK, {LOG: store}, {})
    logs.put(LOG, 0, 1)
    restorer.step(0)
    still = restorer.is_restoring(TASK)
    logs.put(LOG, position=10)

    restorer.step(0)
    restorer.step(_UNTIL_READY)

    assert still
    assert not restorer.is_restoring(TASK)
    assert store.commits == [10]


def test_store_that_has_only_holes_before_it_is_committed_behind_them(restorer: Restorer, logs: FakeChangelogs) -> None:
    """Else a standby task would find the last marker of a transaction again in each round, and lag behind for ever."""
    store = FakeRestoredStore(offset=4)
    logs.ends[LOG] = 5
    restorer.add(TASK, {LOG: store}, {})
    logs.put(LOG, position=5)
    restorer.step(0)

    assert not restorer.is_restoring(TASK)
    assert (store.rows, store.commits) == ([], [5])


def test_task_is_restored_when_its_last_store_is(restorer: Restorer, logs: FakeChangelogs) -> None:
    first, second = FakeRestoredStore(), FakeRestoredStore("sums")
    logs.ends = {LOG: 1, OTHER: 1}
    restorer.add(TASK, {LOG: first, OTHER: second}, {})
    logs.put(LOG, 0)
    restorer.step(0)
    half = restorer.is_restoring(TASK), second.ready
    logs.put(OTHER, 0)
    restorer.step(0)
    while restorer.is_restoring(TASK):
        restorer.step(_UNTIL_READY)

    assert half == (True, False)
    assert first.ready
    assert second.ready
    assert not restorer.is_restoring(TASK)


def test_source_topic_is_restored_up_to_what_was_read_of_it(restorer: Restorer, logs: FakeChangelogs) -> None:
    store = FakeRestoredStore()
    logs.ends[LOG] = 10
    restorer.add(TASK, {LOG: store}, {LOG: 2})
    logs.put(LOG, 0, 1, 2, 3)

    restorer.step(0)

    assert [timestamp for _, _, timestamp, _ in store.rows] == [1000, 1001]
    assert store.commits == [2]


def test_offset_whose_records_were_deleted_is_told(restorer: Restorer, logs: FakeChangelogs) -> None:
    logs.begins[LOG], logs.ends[LOG] = 5, 9

    assert restorer.add(TASK, {LOG: FakeRestoredStore(offset=4)}, {}) == Truncated(TASK, range_of(4, 5, 9))
    assert logs.assigned == {}


def test_changelog_that_was_made_anew_is_told_apart_from_one_whose_records_were_deleted(
    restorer: Restorer, logs: FakeChangelogs
) -> None:
    logs.begins[LOG], logs.ends[LOG] = 0, 3

    assert restorer.add(TASK, {LOG: FakeRestoredStore(offset=4)}, {}) == Remade(TASK, LOG, range_of(4, 0, 3))
    assert logs.assigned == {}


def test_source_topic_that_serves_as_changelog_and_is_read_anew_is_no_loss(
    restorer: Restorer, logs: FakeChangelogs
) -> None:
    """Its records are those of somebody else, and the store is made of them again."""
    logs.ends[LOG] = 9

    assert restorer.add(TASK, {LOG: FakeRestoredStore(offset=4)}, {LOG: 0}) == Truncated(TASK, range_of(4, 0, 0))


def range_of(offset: int, begin: int, end: int) -> str:
    place = "shop-counts-changelog-1"
    return f"store 'counts' of task 0_1 stands for offset {offset} of {place}, which goes from {begin} to {end}"


@pytest.mark.parametrize(
    ("begin", "end", "setback"),
    [(3, 9, Truncated(TASK, range_of(1, 3, 9))), (0, 0, Remade(TASK, LOG, range_of(1, 0, 0)))],
)
def test_offset_that_vanishes_while_restoring_is_told(
    restorer: Restorer, logs: FakeChangelogs, begin: int, end: int, setback: Setback
) -> None:
    logs.ends[LOG] = 9
    restorer.add(TASK, {LOG: FakeRestoredStore(offset=1)}, {})
    logs.begins[LOG], logs.ends[LOG] = begin, end
    logs.batches.append(RestoreBatch(out_of_range=[LOG]))

    assert restorer.step(0) == [setback]


def test_offset_that_a_broker_refuses_although_the_leader_has_it_is_read_on(
    restorer: Restorer, logs: FakeChangelogs
) -> None:
    store = FakeRestoredStore(offset=1)
    logs.ends[LOG] = 4
    restorer.add(TASK, {LOG: store}, {})
    logs.put(LOG, 1, 2)
    restorer.step(0)
    logs.batches.append(RestoreBatch(out_of_range=[LOG]))

    assert restorer.step(0) == []
    assert logs.assigned == {LOG: 3}
    logs.put(LOG, 3)
    restorer.step(0)
    assert len(store.rows) == 3


def test_offset_that_vanished_is_asked_for_again_while_no_broker_answers(
    restorer: Restorer, logs: FakeChangelogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(partitions: object, timeout_s: float) -> dict[TopicPartition, int]:
        raise ClusterUnavailableError("no broker answers")

    logs.ends[LOG] = 9
    restorer.add(TASK, {LOG: FakeRestoredStore(offset=1)}, {})
    logs.begins[LOG] = 3
    logs.batches.append(RestoreBatch(out_of_range=[LOG]))
    with monkeypatch.context() as patched:
        patched.setattr(logs, "end_offsets", away)
        first = restorer.step(0)

    assert (first, restorer.step(0), restorer.step(0)) == ([], [Truncated(TASK, range_of(1, 3, 9))], [])


class BrokenStore(FakeRestoredStore):
    """A store whose database fails in one of its steps."""

    fails_in = ""

    def _step(self, name: str) -> None:
        if name == self.fails_in:
            raise StoreEngineError(f"{name} failed")

    def committed_offset(self) -> int | None:
        self._step("committed_offset")
        return super().committed_offset()

    def restore(self, rows: Sequence[Any]) -> None:
        self._step("restore")
        super().restore(rows)

    def commit(self, offset: int | None) -> None:
        self._step("commit")
        super().commit(offset)

    def end_restore(self) -> None:
        self._step("end_restore")
        super().end_restore()


@pytest.mark.parametrize("fails_in", ["committed_offset", "restore", "commit", "end_restore"])
def test_store_whose_database_fails_is_told_and_others_of_the_same_batch_miss_no_record(
    restorer: Restorer, logs: FakeChangelogs, fails_in: str
) -> None:
    broken, sound = BrokenStore(), FakeRestoredStore()
    broken.fails_in = fails_in
    logs.ends.update({LOG: 2, OTHER: 2})
    setbacks = [restorer.add(TASK, {LOG: broken}, {}), restorer.add(NEIGHBOUR, {OTHER: sound}, {})]
    batch = RestoreBatch()
    for place in (LOG, OTHER):
        batch.runs[place] = as_messages([Message(0), Message(1)])
        batch.positions[place] = 2
    logs.batches.append(batch)

    while restorer.is_restoring(TASK) or restorer.is_restoring(NEIGHBOUR):
        setbacks += restorer.step(_UNTIL_READY)
    restorer.remove(TASK)

    (damaged,) = (setback for setback in setbacks if setback is not None)
    assert isinstance(damaged, Damaged)
    assert (damaged.task_id, str(damaged.error)) == (TASK, f"{fails_in} failed")
    assert [timestamp for _, _, timestamp, _ in sound.rows] == [1000, 1001]
    assert (sound.commits, sound.ready) == ([2], True)
    assert logs.assigned == {}


def test_removed_task_keeps_what_was_restored(restorer: Restorer, logs: FakeChangelogs, heard: Heard) -> None:
    store = FakeRestoredStore()
    logs.ends[LOG] = 9
    restorer.add(TASK, {LOG: store}, {})
    logs.put(LOG, 0, 1)
    restorer.step(0)

    restorer.remove(TASK)

    assert store.commits == [2]
    assert logs.assigned == {}
    assert heard.calls[-1] == ("suspended", LOG, "counts", 2)


@pytest.mark.parametrize("fails", ["unassign", "listener", "commit"])
def test_every_store_of_a_removed_task_is_let_go_of_whatever_one_of_them_raises(
    logs: FakeChangelogs, heard: Heard, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    """Its stores are closed next: none may be written any more, also not by a thread that makes one ready for reads."""

    def fail(*arguments: Any) -> None:
        failed.set()
        raise ValueError(f"{fails} fails")

    class Slow(FakeRestoredStore):
        def end_restore(self) -> None:
            assert failed.wait(_UNTIL_READY)
            super().end_restore()

    failed = threading.Event()
    restorer = Restorer(logs, logs, heard)
    first, second, ending = FakeRestoredStore("counts"), FakeRestoredStore("sums"), Slow("rates")
    third = TopicPartition("shop-rates-changelog", 1)
    logs.ends.update({LOG: 9, OTHER: 9, third: 1})
    restorer.add(TASK, {LOG: first, OTHER: second, third: ending}, {})
    logs.put(third, 0)
    restorer.step(0)
    match fails:
        case "unassign":
            monkeypatch.setattr(logs, "unassign", fail)
        case "listener":
            monkeypatch.setattr(heard, "on_restore_suspended", fail)
        case _:
            monkeypatch.setattr(first, "commit", fail)

    with pytest.raises(ValueError, match=f"{fails} fails"):
        restorer.remove(TASK)

    assert not restorer.is_restoring(TASK)
    assert ending.ready
    assert second.commits == [0]
    assert heard.calls[-1] == ("end", third, "rates", 1)


def test_long_restore_is_committed_on_the_way(
    restorer: Restorer, logs: FakeChangelogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restore, "COMMIT_EVERY", 20)
    store = FakeRestoredStore()
    logs.ends[LOG] = 41
    restorer.add(TASK, {LOG: store}, {})
    logs.put(LOG, *range(20))

    restorer.step(0)

    assert store.commits == [20]


def test_records_without_key_are_left_out(restorer: Restorer, logs: FakeChangelogs) -> None:
    store = FakeRestoredStore()
    logs.ends[LOG] = 2
    restorer.add(TASK, {LOG: store}, {})
    logs.put(LOG, 0, 1)
    logs.batches[0].runs[LOG] = as_messages([Message(0, None), Message(1, b"a", None)])

    restorer.step(0)

    assert store.rows == [(b"a", None, 1001, ())]


def test_headers_are_handed_to_the_store(restorer: Restorer, logs: FakeChangelogs) -> None:
    store = FakeRestoredStore()
    logs.ends[LOG] = 2
    restorer.add(TASK, {LOG: store}, {})
    logs.put(LOG, 0, 1)
    logs.batches[0].runs[LOG] = as_messages([Message(0), Message(1, raw_headers=[("h", b"1")])])

    restorer.step(0)

    assert [headers for *_, headers in store.rows] == [(), [("h", b"1")]]


def test_listeners_hear_everything(restorer: Restorer, logs: FakeChangelogs, heard: Heard) -> None:
    logs.ends[LOG] = 2
    restorer.add(TASK, {LOG: FakeRestoredStore()}, {})
    logs.put(LOG, 0, 1)
    restorer.step(0)
    restorer.step(_UNTIL_READY)

    assert heard.calls == [("start", LOG, "counts", 0, 2), ("batch", LOG, "counts", 1, 2), ("end", LOG, "counts", 2)]


def test_several_listeners_hear_the_same() -> None:
    first, second = Heard(), Heard()
    both = Listeners([first, second])
    both.on_restore_start(LOG, "counts", 0, 2)
    both.on_batch_restored(LOG, "counts", 1, 2)
    both.on_restore_end(LOG, "counts", 2)
    both.on_restore_suspended(LOG, "counts", 2)

    assert [call[0] for call in first.calls] == ["start", "batch", "end", "suspended"]
    assert first.calls == second.calls


def test_progress_is_logged_every_ten_seconds(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    progress = ProgressLog(clock)
    with caplog.at_level(logging.INFO):
        progress.on_restore_start(LOG, "counts", 0, 1000)
        progress.on_batch_restored(LOG, "counts", 99, 100)
        clock.advance(10)
        progress.on_batch_restored(LOG, "counts", 199, 100)
        progress.on_batch_restored(LOG, "counts", 299, 100)
        progress.on_restore_end(LOG, "counts", 300)

    assert caplog.messages == ["restoring 1 changelog partitions: 200 records so far, 20 a second, 800 offsets to go"]


def test_progress_bar_comes_and_goes_with_long_restores() -> None:
    bar = ProgressBar()
    bar.on_restore_start(LOG, "counts", 0, 10)
    short = bar._progress
    bar.on_restore_start(OTHER, "sums", 0, 20_000)
    bar.on_batch_restored(OTHER, "sums", 99, 100)
    shown = bar._progress
    bar.on_restore_end(LOG, "counts", 10)
    bar.on_restore_suspended(OTHER, "sums", 100)

    assert short is None
    assert shown is not None
    assert bar._progress is None
