"""The history of versions as bytes: what is valid when, what is too late, and what is dropped."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from pykstreams.state.engines.memory import MemoryEngine
from pykstreams.state.interfaces.versioned_store import PUT_RETURN_CODE_NOT_PUT, PUT_RETURN_CODE_VALID_TO_UNDEFINED
from pykstreams.state.versions.history import NO_TIME, VersionHistory
from tests.unit.state.support import Context

RETENTION, INTERVAL = 100, 30
KEY = b"k"


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return Context(tmp_path)


@pytest.fixture
def engine() -> MemoryEngine:
    return MemoryEngine()


@pytest.fixture
def history(context: Context, engine: MemoryEngine) -> VersionHistory:
    found = VersionHistory(engine, RETENTION, INTERVAL, "prices")
    found.open(context)
    return found


def blocks(engine: MemoryEngine) -> int:
    """How many rows hold versions that were replaced."""
    return sum(key.startswith(b"\1") for key, _ in engine.scan(None, None, False))


def read(history: VersionHistory) -> list[tuple[bytes, int, int | None]]:
    return [(value, start, end) for _, value, start, end in history.rows()]


def test_a_version_is_valid_until_the_next_one_in_whatever_order_they_come(history: VersionHistory) -> None:
    ends = [history.put(KEY, value, time) for value, time in ((b"a", 10), (b"c", 90), (b"b", 40), (b"b2", 50))]

    assert ends == [PUT_RETURN_CODE_VALID_TO_UNDEFINED, PUT_RETURN_CODE_VALID_TO_UNDEFINED, 90, 90]
    assert read(history) == [(b"a", 10, 40), (b"b", 40, 50), (b"b2", 50, 90), (b"c", 90, None)]
    assert [history.as_of(KEY, time) for time in (9, 10, 45, 89, 90)] == [
        None,
        (b"a", 10),
        (b"b", 40),
        (b"b2", 50),
        (b"c", 90),
    ]


def test_a_deletion_ends_a_version_and_nothing_is_valid_after_it(history: VersionHistory) -> None:
    history.put(KEY, b"a", 10)

    assert history.delete(KEY, 40) == (b"a", 10)
    assert (history.as_of(KEY, 39), history.as_of(KEY, 40), history.newest(KEY)) == ((b"a", 10), None, None)
    assert (history.end_of(KEY, 10), history.end_of(KEY, 40)) == (40, None)


def test_deleting_the_newest_version_at_its_very_time_makes_no_other_one_longer(
    history: VersionHistory,
) -> None:
    history.put(KEY, b"a", 10)
    history.put(KEY, b"b", 40)
    history.put(KEY, None, 40)

    assert history.as_of(KEY, 39) == (b"a", 10)
    assert history.as_of(KEY, 40) is None


def test_a_record_that_is_older_than_the_retention_is_not_put_and_counted(
    history: VersionHistory, context: Context, caplog: pytest.LogCaptureFixture
) -> None:
    history.put(KEY, b"new", 200)
    on_time = history.put(KEY, b"on time", 100)

    with caplog.at_level(logging.WARNING):
        late = [history.put(KEY, b"late", time) for time in (99, 98)]

    assert on_time == 200
    assert late == [PUT_RETURN_CODE_NOT_PUT] * 2
    assert read(history) == [(b"on time", 100, 200), (b"new", 200, None)]
    assert context.metrics.counter("dropped-records-total", "stream-task-metrics", task_id="0_1").total == 2
    assert len(caplog.records) == 1


def test_versions_that_ended_too_long_ago_are_dropped_by_the_segment(
    history: VersionHistory, engine: MemoryEngine
) -> None:
    for time in (0, 20, 40, 70):  # they end at 20, 40 and 70: in three segments
        history.put(KEY, b"%d" % time, time)
    before = blocks(engine)
    history.put(b"other", b"x", 160)  # all before 60 has expired

    assert (before, blocks(engine)) == (3, 1)
    assert read(history) == [(b"40", 40, 70), (b"70", 70, None), (b"x", 160, None)]
    assert history.as_of(KEY, 60) == (b"40", 40)


def test_stream_time_and_history_are_there_again_after_a_restart(
    history: VersionHistory, context: Context, engine: MemoryEngine
) -> None:
    history.put(KEY, b"a", 150)
    history.put(KEY, b"b", 200)
    history.commit(7)
    again = VersionHistory(engine, RETENTION, INTERVAL, "prices")
    before = again.observed_time
    again.open(context)

    assert (before, again.observed_time) == (NO_TIME, 200)
    assert again.as_of(KEY, 160) == (b"a", 150)
    assert again.put(KEY, b"late", 99) == PUT_RETURN_CODE_NOT_PUT


def test_restoring_the_changelog_gives_the_same_versions_and_counts_nothing(
    history: VersionHistory, context: Context
) -> None:
    puts: list[tuple[bytes | None, int]] = [(b"a", 10), (b"c", 90), (b"b", 40), (None, 60), (b"z", 200), (b"late", 50)]
    for value, time in puts:
        history.put(KEY, value, time)
    counted = context.metrics.counter("dropped-records-total", "stream-task-metrics", task_id="0_1")
    before = counted.total
    again = VersionHistory(MemoryEngine(), RETENTION, INTERVAL, "prices")
    again.open(context)
    again.restore([(KEY, value, time, ()) for value, time in puts])

    assert read(again) == read(history)
    assert (before, counted.total) == (1, 1)


def test_restoring_takes_records_from_before_all_time(history: VersionHistory) -> None:
    """A table that is restored from its source topic meets those that its task has passed over."""
    rows = [(b"a", None, -1), (b"b", b"1", -9), (b"b", b"2", -1), (b"c", b"1", -1), (b"c", None, -1), (b"b", b"3", 5)]
    history.restore([(*row, ()) for row in rows])

    assert [(key, *row) for key, *row in history.rows()] == [(b"b", b"2", 0, 5), (b"b", b"3", 5, None)]


def test_a_version_that_is_cut_short_later_goes_where_it_ends_now_and_expires_there(
    history: VersionHistory, engine: MemoryEngine
) -> None:
    history.put(KEY, b"a", 10)
    history.put(KEY, b"c", 100)
    history.put(KEY, b"b", 40)
    before = blocks(engine)
    history.put(b"other", b"x", 170)

    assert (before, blocks(engine)) == (2, 1)
    assert read(history) == [(b"b", 40, 100), (b"c", 100, None), (b"x", 170, None)]


def test_a_deletion_that_comes_twice_changes_nothing(history: VersionHistory, engine: MemoryEngine) -> None:
    history.put(KEY, b"a", 10)
    history.put(KEY, None, 20)
    before = list(engine.scan(None, None, False))

    assert history.put(KEY, None, 20) == PUT_RETURN_CODE_VALID_TO_UNDEFINED
    assert list(engine.scan(None, None, False)) == before
    assert read(history) == [(b"a", 10, 20)]


def test_a_late_version_of_a_key_that_was_deleted_before_it_goes_behind_the_older_ones(history: VersionHistory) -> None:
    for value, time in ((b"a", 31), (None, 35), (b"c", 55), (b"b", 45)):
        history.put(KEY, value, time)

    assert read(history) == [(b"a", 31, 35), (b"b", 45, 55), (b"c", 55, None)]
    assert [history.as_of(KEY, time) for time in (34, 35, 44, 45)] == [(b"a", 31), None, None, (b"b", 45)]


def test_a_shorter_retention_drops_what_is_too_old_when_the_store_is_opened(
    context: Context, history: VersionHistory, engine: MemoryEngine
) -> None:
    for value, time in ((b"a", 10), (b"b", 20), (b"c", 90)):
        history.put(KEY, value, time)
    history.commit(7)
    kept = blocks(engine)
    shorter = VersionHistory(engine, 20, INTERVAL, "prices")
    shorter.open(context)

    assert (kept, blocks(engine)) == (2, 1)
    assert read(shorter) == [(b"b", 20, 90), (b"c", 90, None)]
