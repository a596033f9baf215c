"""Retention below window and session stores: what is hidden, what is refused, and what is dropped."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from pykstreams.state.encoding.composed_keys import WindowKeySchema
from pykstreams.state.engines.memory import MemoryEngine
from pykstreams.state.engines.segments import Expiry, SegmentedEngine
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
