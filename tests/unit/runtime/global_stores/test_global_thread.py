"""The thread of global stores: all is read before ``start`` returns, and on from there; restarts and failures."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pykstreams import StreamsBuilder
from pykstreams.core.errors import (
    ClusterUnavailableError,
    DamagedStoreError,
    DiskFullError,
    StateStoreMigratedError,
    StreamsError,
)
from pykstreams.core.ids import TopicPartition
from pykstreams.core.record import Record
from pykstreams.runtime.clients.consumers.restore_consumer import RestoreBatch
from pykstreams.runtime.global_stores import global_thread
from pykstreams.runtime.restore.restore import StateRestoreListener
from pykstreams.state.layers.engine_store import EngineStore
from pykstreams.testing.clock import MockClock
from tests.unit.runtime.global_stores.global_fakes import (
    PATIENCE_S,
    Bench,
    FakeGlobalTopics,
    PutUpper,
    table,
    user_store,
)

TABLE = TopicPartition("table", 0)
FEED = TopicPartition("feed", 0)
EXACTLY_ONCE = {"processing.guarantee": "exactly_once_v2"}


@pytest.fixture
def topics() -> FakeGlobalTopics:
    return FakeGlobalTopics()


@pytest.fixture
def make(topics: FakeGlobalTopics, tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def build(builder: StreamsBuilder | None = None, **options: Any) -> Bench:
        made.append(Bench(builder or table(), topics, tmp_path / "global-0", **options))
        return made[-1]

    yield build
    for bench in made:
        bench.thread.stop()


def test_start_returns_when_every_partition_is_read_to_its_end(
    topics: FakeGlobalTopics, make: Callable[..., Bench]
) -> None:
    for number in range(5):
        topics.add("table", f"k{number}", f"v{number}", partition=number % 2)
    bench = make(partitions=2)

    assert bench.thread.start()
    assert bench.rows() == {f"k{number}": f"v{number}" for number in range(5)}


def test_topics_without_a_record_are_ready_at_once(make: Callable[..., Bench]) -> None:
    bench = make()

    assert bench.thread.start()
    assert bench.rows() == {}


def test_stores_that_turn_out_to_be_damaged_while_they_are_read_are_read_once_more(
    topics: FakeGlobalTopics, make: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    topics.add("table", "a", "1")
    bench = make()
    restore = bench.state.restore
    damages = [DamagedStoreError("store 'rows' cannot be written", store="rows")]

    def restore_later(messages: Sequence[Any]) -> None:
        if damages:
            raise damages.pop()
        restore(messages)

    monkeypatch.setattr(bench.state, "restore", restore_later)

    assert bench.thread.start()
    assert bench.rows() == {"a": "1"}


@pytest.mark.parametrize("method", ["restore", "end_restore"])
def test_a_store_whose_database_turns_out_to_be_damaged_while_it_is_read_is_set_aside(
    topics: FakeGlobalTopics, make: Callable[..., Bench], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """Else it would be as damaged as before when it is opened again, and at every start of the worker."""
    topics.add("table", "a", "1")
    first = make()
    first.thread.start()
    first.thread.stop()
    topics.add("table", "b", "2")
    unharmed = getattr(EngineStore, method)

    def works_unless_damaged(store: EngineStore, *arguments: Any) -> None:
        if not [*(tmp_path / "global-0").glob("rows.damaged-*")]:
            raise DamagedStoreError("store 'rows' cannot be written", store="rows")
        unharmed(store, *arguments)

    monkeypatch.setattr(EngineStore, method, works_unless_damaged)
    second = make()

    assert second.thread.start()
    assert second.rows() == {"a": "1", "b": "2"}


def test_records_that_come_later_change_the_store(topics: FakeGlobalTopics, make: Callable[..., Bench]) -> None:
    topics.add("table", "a", "1")
    bench = make()
    bench.thread.start()
    topics.add("table", "a", "2")
    topics.add("table", "b", "3")
    topics.wait_until_read()

    assert bench.rows() == {"a": "2", "b": "3"}


def test_restart_goes_on_where_it_was(topics: FakeGlobalTopics, make: Callable[..., Bench]) -> None:
    topics.add("table", "a", "1")
    first = make()
    first.thread.start()
    topics.add("table", "b", "2")
    topics.wait_until_read()
    first.thread.stop()
    topics.add("table", "c", "3")
    second = make()
    second.thread.start()

    assert topics.assigned == {TABLE: 2}
    assert second.rows() == {"a": "1", "b": "2", "c": "3"}


def test_stores_in_memory_are_read_anew_at_each_start(topics: FakeGlobalTopics, make: Callable[..., Bench]) -> None:
    topics.add("feed", "a", "x")
    first = make(user_store(in_memory=True))
    first.thread.start()
    first.thread.stop()
    second = make(user_store(in_memory=True))
    second.thread.start()

    assert topics.assigned == {FEED: 0}
    assert second.rows("caps") == {"a": "X"}


def test_user_processor_sees_what_was_there_before_the_start_but_no_null_keys(
    topics: FakeGlobalTopics, make: Callable[..., Bench]
) -> None:
    PutUpper.seen.clear()
    topics.add("feed", "a", "x")
    topics.add("feed", None, "y")
    bench = make(user_store())
    bench.thread.start()

    assert PutUpper.seen == [("a", "x")]
    assert bench.rows("caps") == {"a": "X"}
    assert bench.state.offsets == {FEED: 2}


def test_state_is_read_anew_when_its_offset_is_gone(topics: FakeGlobalTopics, make: Callable[..., Bench]) -> None:
    topics.add("table", "gone", "1")
    topics.add("table", "kept", "2")
    first = make()
    first.thread.start()
    first.thread.stop()
    topics.logs[TABLE].clear()  # the topic was made anew
    topics.add("table", "new", "3")
    second = make()
    second.thread.start()

    assert topics.assigned == {TABLE: 0}
    assert second.rows() == {"new": "3"}


def test_open_transaction_at_the_end_is_not_waited_for(topics: FakeGlobalTopics, make: Callable[..., Bench]) -> None:
    topics.add("table", "a", "1")
    topics.hidden[TABLE] = 3
    bench = make(**EXACTLY_ONCE)

    assert bench.thread.start()
    assert bench.rows() == {"a": "1"}


def test_end_that_a_broker_says_which_leads_no_more_is_not_taken_for_that_of_the_topic(
    topics: FakeGlobalTopics, make: Callable[..., Bench]
) -> None:
    """One that was stopped knows of no later records, and tasks would not find them."""
    topics.add("table", "a", "1")
    topics.add("table", "b", "2")
    topics.lacking[TABLE] = 1
    reads = iter(range(1000))

    def another_one_leads_after_a_while() -> None:
        if next(reads) == 5:
            topics.lacking.clear()

    topics.when_read = another_one_leads_after_a_while
    bench = make()

    assert bench.thread.start()
    assert bench.rows() == {"a": "1", "b": "2"}


def test_listener_hears_of_each_partition(topics: FakeGlobalTopics, make: Callable[..., Bench]) -> None:
    heard: list[Any] = []

    class Listener(StateRestoreListener):
        def on_restore_start(self, *told: Any) -> None:
            heard.append(("start", *told))

        def on_batch_restored(self, *told: Any) -> None:
            heard.append(("batch", *told))

        def on_restore_end(self, *told: Any) -> None:
            heard.append(("end", *told))

    topics.add("table", "a", "1")
    topics.add("table", "b", "2")
    make(listener=Listener()).thread.start()

    assert heard == [("start", TABLE, "rows", 0, 2), ("batch", TABLE, "rows", 1, 2), ("end", TABLE, "rows", 2)]


def test_brokers_that_fall_silent_while_it_starts_are_an_error(
    topics: FakeGlobalTopics, make: Callable[..., Bench]
) -> None:
    topics.add("table", "a", "1")
    topics.silent = True
    clock = MockClock(0)
    topics.when_read = lambda: clock.advance(10_000)
    bench = make(clock=clock)

    with pytest.raises(StreamsError, match=r"^global stores made no progress in 340 s .* waiting for table-0: look at"):
        bench.thread.start()


def test_brokers_that_do_not_say_where_topics_end_are_asked_again(
    topics: FakeGlobalTopics, make: Callable[..., Bench]
) -> None:
    topics.add("table", "a", "1")
    topics.refusals = [ClusterUnavailableError("asking for the beginning offset of table-0 timed out")] * 2
    bench = make()

    assert bench.thread.start()
    assert bench.rows() == {"a": "1"}
    assert topics.refusals == []


def test_processor_that_fails_on_what_was_there_is_an_error_of_start(
    topics: FakeGlobalTopics, make: Callable[..., Bench]
) -> None:
    topics.add("feed", "a", "bad")
    bench = make(user_store())

    with pytest.raises(StreamsError, match=r"raised RuntimeError\('a bad value'\); .* at record feed-0 offset 0; "):
        bench.thread.start()
    assert bench.failures == []


def test_processor_that_fails_later_is_told_once_and_the_stores_stay_open(
    topics: FakeGlobalTopics, make: Callable[..., Bench]
) -> None:
    topics.add("feed", "a", "x")
    bench = make(user_store())
    bench.thread.start()
    topics.add("feed", "b", "bad")

    assert bench.failed.wait(PATIENCE_S)
    assert isinstance(bench.failures[0].__cause__, RuntimeError)
    assert "processing.exception.handler.global.enabled" in str(bench.failures[0])
    assert bench.rows("caps") == {"a": "X"}
    bench.thread.stop()
    assert topics.closed


class Exits(PutUpper):
    """Ends the thread at ``exit`` by what is no ``Exception``, as foreign extensions do, too."""

    def process(self, record: Record[str, str]) -> None:
        if record.value == "exit":
            sys.exit("enough")
        super().process(record)


def test_processor_that_ends_the_thread_on_what_was_there_is_an_error_of_start(
    topics: FakeGlobalTopics, make: Callable[..., Bench]
) -> None:
    """Else tasks would join with stores that were not read."""
    topics.add("feed", "a", "exit")
    bench = make(user_store(Exits))

    with pytest.raises(StreamsError, match=r"raised SystemExit\('enough'\); .* at record feed-0 offset 0; correct it"):
        bench.thread.start()


def test_processor_that_ends_the_thread_later_is_told(topics: FakeGlobalTopics, make: Callable[..., Bench]) -> None:
    bench = make(user_store(Exits))
    bench.thread.start()
    topics.add("feed", "a", "exit")

    assert bench.failed.wait(PATIENCE_S)
    assert isinstance(bench.failures[0].__cause__, SystemExit)


def test_record_that_failed_is_read_again_after_a_restart(topics: FakeGlobalTopics, make: Callable[..., Bench]) -> None:
    topics.add("feed", "a", "x")
    first = make(user_store())
    first.thread.start()
    topics.add("feed", "b", "y")
    topics.wait_until_read()
    topics.add("feed", "c", "bad")
    assert first.failed.wait(PATIENCE_S)
    first.thread.stop()
    second = make(user_store())

    with pytest.raises(StreamsError, match="feed-0 offset 2"):
        second.thread.start()
    assert topics.assigned == {FEED: 2}


def test_lost_position_ends_the_thread_and_deletes_the_state(
    topics: FakeGlobalTopics, make: Callable[..., Bench]
) -> None:
    topics.add("table", "a", "1")
    first = make()
    first.thread.start()
    topics.begins[TABLE] = 2
    topics.lost.append(TABLE)
    assert first.failed.wait(PATIENCE_S)
    first.thread.stop()
    del topics.begins[TABLE]

    assert str(first.failures[0]).startswith("table-0 has no record any more at offset 1, up to which its global store")
    make().thread.start()
    assert topics.assigned == {TABLE: 0}


def test_position_that_a_broker_refuses_although_the_leader_has_it_is_read_on(
    topics: FakeGlobalTopics, make: Callable[..., Bench]
) -> None:
    topics.add("table", "a", "1")
    bench = make()
    bench.thread.start()
    topics.lost.append(TABLE)
    topics.wait_until_read()
    topics.add("table", "b", "2")
    topics.wait_until_read()

    assert topics.assigned == {TABLE: 1}
    assert bench.rows() == {"a": "1", "b": "2"}
    assert bench.failures == []


def test_start_gives_up_when_it_is_told_to(topics: FakeGlobalTopics, make: Callable[..., Bench]) -> None:
    topics.add("table", "a", "1")
    topics.silent = True
    bench = make()

    assert not bench.thread.start(lambda: True)


def test_stop_before_the_start_makes_it_give_up(make: Callable[..., Bench]) -> None:
    bench = make()
    bench.thread.stop()

    assert not bench.thread.start()


def test_commits_when_enough_was_read_and_the_interval_has_passed(
    topics: FakeGlobalTopics, make: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(global_thread, "_WORTH_COMMITTING", 2)
    clock = MockClock(0)
    bench = make(clock=clock)
    bench.thread.start()
    topics.add("table", "a", "1")
    topics.add("table", "b", "2")
    topics.wait_until_read()
    before = bench.state.uncommitted
    clock.advance(30_000)
    topics.wait_until_read()

    assert (before, bench.state.uncommitted) == (2, 0)


def test_global_stores_on_a_full_disk_wait_for_room_and_can_be_read_meanwhile(
    topics: FakeGlobalTopics,
    make: Callable[..., Bench],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(global_thread, "_FIRST_RETRY_S", 0.001)
    monkeypatch.setattr(global_thread, "_LAST_RETRY_S", 0.001)
    topics.add("table", "a", "1")
    bench = make()
    commit, tries = bench.state.commit, []

    def full() -> None:
        tries.append(1)
        if len(tries) < 5:
            raise DiskFullError("store 'rows' cannot be written", folder="/state/global-0/rocksdb/rows")
        commit()

    monkeypatch.setattr(bench.state, "commit", full)
    bench.thread.start()

    assert (len(tries), bench.state.uncommitted) == (5, 0)
    said = r"disk of global stores in '/state/global-0/rocksdb/rows' is full: \d+ bytes are free\. They are not read on"
    assert len(re.findall(said, caplog.text)) == 1


def test_waiting_for_room_while_it_starts_is_not_taken_for_brokers_that_are_silent(
    topics: FakeGlobalTopics, make: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(global_thread, "_FIRST_RETRY_S", 0.001)
    topics.add("table", "a", "1")
    topics.hidden[TABLE] = 1
    clock = MockClock(0)
    bench = make(clock=clock, **EXACTLY_ONCE)
    restore, fetch, tries, fetches = bench.state.restore, topics.fetch, [], []

    def full(messages: Sequence[Any]) -> None:
        tries.append(1)
        if len(tries) == 1:
            clock.advance(1_000_000)
            raise DiskFullError("store 'rows' cannot be written", folder="/state")
        restore(messages)

    def nothing_the_second_time(timeout: float) -> RestoreBatch:
        fetches.append(1)
        return RestoreBatch() if len(fetches) == 2 else fetch(timeout)

    monkeypatch.setattr(bench.state, "restore", full)
    monkeypatch.setattr(topics, "fetch", nothing_the_second_time)

    assert bench.thread.start()
    assert bench.rows() == {"a": "1"}


def test_record_that_met_a_full_disk_is_taken_once_there_is_room(
    topics: FakeGlobalTopics, make: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(global_thread, "_FIRST_RETRY_S", 0.001)
    bench = make()
    bench.thread.start()
    update, seen = bench.state.update, []

    def full(messages: Sequence[Any]) -> None:
        seen.append([message.offset() for message in messages])
        if len(seen) == 1:
            update(messages[:1])  # the rest of them comes again
            raise DiskFullError("store 'rows' cannot be written", folder="/state")
        update(messages)

    monkeypatch.setattr(bench.state, "update", full)
    topics.add("table", "a", "1")
    topics.add("table", "b", "2")
    topics.wait_until_read()

    assert seen[1] == seen[0][1:] or seen[0] == [0]
    assert bench.rows() == {"a": "1", "b": "2"}


def test_long_starts_keep_how_far_they_are(
    topics: FakeGlobalTopics, make: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(global_thread, "COMMIT_EVERY", 1)
    topics.add("table", "a", "1")
    topics.add("table", "b", "2", partition=1)
    topics.hidden[TopicPartition("table", 1)] = 5
    bench = make(partitions=2, **EXACTLY_ONCE)
    bench.thread.start()

    assert bench.state._number >= 2


def test_global_store_is_read_by_others_from_the_start_to_the_end(
    topics: FakeGlobalTopics, make: Callable[..., Bench]
) -> None:
    topics.add("table", "a", "1")
    bench = make()
    early = bench.thread.readable("table-store")
    bench.thread.start()
    store = bench.thread.readable(next(iter(bench.state.stores)))
    assert store is not None
    found = store.read(lambda one: one.get("a"))
    bench.thread.stop()

    assert early is None
    assert found is not None
    assert found.value == "1"
    with pytest.raises(StateStoreMigratedError, match=r"^global store '.*' is not open"):
        store.read(lambda one: one.get("a"))
