"""Retention below window and session stores: what is hidden, what is refused, and what is dropped."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykstreams.state.encoding.composed_keys import WindowKeySchema
from pykstreams.state.engines.live_times import NO_TIME
from pykstreams.state.engines.memory import MemoryEngine
from pykstreams.state.engines.segments import Expiry, SegmentedEngine
from pykstreams.state.interfaces.engine import Row
from tests.unit.state.support import Context

RETENTION, INTERVAL = 100, 50
SCHEMA = WindowKeySchema(INTERVAL)


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return Context(tmp_path)


def opened(context: Context, below: MemoryEngine, expiry: Expiry = Expiry.BY_SEGMENT) -> SegmentedEngine:
    engine = SegmentedEngine(below, SCHEMA, RETENTION, INTERVAL, "rows", expiry)
    engine.open(context)
    return engine


def key(time: int) -> bytes:
    return SCHEMA.pack(b"k", time)


def put(engine: SegmentedEngine, *times: int) -> None:
    for time in times:
        engine.put(key(time), b"%d" % time)


def seen(engine: SegmentedEngine | MemoryEngine) -> list[int]:
    return [SCHEMA.time_of(found) for found, _ in engine.scan(None, None, False)]


def refused(context: Context) -> int:
    return context.metrics.counter("dropped-records-total", "stream-task-metrics", task_id="0_1").total


def test_an_old_row_is_hidden_from_each_read_while_its_segment_is_still_there(context: Context) -> None:
    below = MemoryEngine()
    engine = opened(context, below)
    put(engine, 60, 80, 170)

    assert engine.get(key(60)) is None
    assert engine.get(key(80)) == b"80"
    assert seen(engine) == [80, 170]
    assert seen(below) == [60, 80, 170]


def test_a_late_row_is_taken_as_long_as_its_segment_is_there(
    context: Context, caplog: pytest.LogCaptureFixture
) -> None:
    below = MemoryEngine()
    engine = opened(context, below)
    put(engine, 170, 50)
    taken = refused(context)

    with caplog.at_level(logging.WARNING):
        put(engine, 49, 48)

    assert (taken, refused(context)) == (0, 2)
    assert seen(below) == [50, 170]
    assert len(caplog.records) == 1
    assert "the first has the time 49, when the newest has 170" in caplog.text


def test_segments_are_dropped_as_a_whole_when_stream_time_has_passed_them(context: Context) -> None:
    below = MemoryEngine()
    engine = opened(context, below)
    put(engine, 99, 100, 120, 249)
    before = seen(below)
    put(engine, 250)

    assert before == [100, 120, 249]
    assert seen(below) == [249, 250]


def test_an_exact_engine_refuses_what_it_would_hide(context: Context) -> None:
    engine = opened(context, MemoryEngine(), Expiry.AT_ONCE)
    put(engine, 170, 70, 71)

    assert seen(engine) == [71, 170]
    assert refused(context) == 1


@pytest.mark.parametrize(("expiry", "expected"), [(Expiry.BY_SEGMENT, [71, 170]), (Expiry.AFTER_CLOSE, [70, 71, 170])])
def test_a_row_as_old_as_the_retention_is_shown_where_windows_are_emitted_on_close(
    context: Context, expiry: Expiry, expected: list[int]
) -> None:
    engine = opened(context, MemoryEngine(), expiry)
    put(engine, 70, 71, 170)

    assert seen(engine) == expected


def test_the_newest_of_the_restored_rows_decides_which_are_too_old(context: Context) -> None:
    below = MemoryEngine()
    engine = opened(context, below)
    engine.write([(key(time), b"%d" % time) for time in (10, 60, 170)])

    assert engine.observed_time == 170
    assert seen(below) == [60, 170]
    assert seen(engine) == [170]
    assert refused(context) == 0


def test_a_time_that_was_put_elsewhere_makes_rows_old_too(context: Context) -> None:
    engine = opened(context, MemoryEngine())
    put(engine, 80)
    engine.advance(180)
    put(engine, 30)

    assert seen(engine) == []
    assert refused(context) == 1


class KeptEngine(MemoryEngine):
    """Keeps its rows while it is closed, as one on disk does."""

    persistent = True


def test_kept_rows_are_there_after_reopening_and_stream_time_begins_anew(context: Context) -> None:
    below = KeptEngine()
    put(opened(context, below), 60, 80, 170)
    reopened = opened(context, below)

    assert reopened.observed_time == NO_TIME
    assert seen(reopened) == [60, 80, 170]
    assert reopened.get(key(60)) == b"60"
    assert (reopened.first_number, reopened.last_number) == (1, 3)


def test_an_engine_that_refuses_at_once_drops_ranges_and_not_row_by_row(context: Context) -> None:
    schema, below = WindowKeySchema(1), MemoryEngine()
    engine = SegmentedEngine(below, schema, RETENTION, INTERVAL, "rows", Expiry.AT_ONCE)
    engine.open(context)

    def put_at(*times: int) -> list[list[int]]:
        for time in times:
            engine.put(schema.pack(b"k", time), b"")
        return [[schema.time_of(found) for found, _ in of.scan(None, None, False)] for of in (engine, below)]

    assert put_at(72, 170) == [[72, 170], [72, 170]]
    assert put_at(175) == [[170, 175], [72, 170, 175]]
    assert put_at(184) == [[170, 175, 184], [170, 175, 184]]


class FindsKeys(MemoryEngine):
    """Looks rows up by key, and notes between which times."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[bytes, int, int, bool]] = []

    def scan_key(self, key: bytes, time_from: int, time_to: int, reverse: bool) -> Iterator[Row]:
        self.asked.append((key, time_from, time_to, reverse))
        return iter([])


def test_rows_of_a_key_are_looked_for_only_where_rows_can_be(context: Context) -> None:
    below = FindsKeys()
    engine = opened(context, below)
    put(engine, 80, 160)
    for time_from, time_to in ((0, 1000), (90, 100), (161, 1000), (0, 79)):
        assert list(engine.scan_key(b"k", time_from, time_to, True)) == []
    put(engine, 200)
    engine.scan_key(b"k", 0, 1000, False)

    assert engine.finds_keys
    assert below.asked == [(b"k", 80, 160, True), (b"k", 90, 100, True), (b"k", 101, 200, False)]


def test_an_engine_without_that_finds_no_keys(context: Context) -> None:
    engine = opened(context, MemoryEngine())
    put(engine, 80)

    assert not engine.finds_keys
    assert list(engine.scan_key(b"k", 0, 100, False)) == []
