"""Times and lengths of time near the largest timestamp: refused, or counted exactly, and never more than fits."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from pykstreams import (
    BufferConfig,
    JoinWindows,
    KStream,
    KTable,
    Materialized,
    Serdes,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    UnlimitedWindows,
    Window,
    Windowed,
)
from pykstreams.errors import LogAndContinueProcessingExceptionHandler, ProcessingError
from pykstreams.testing import TopologyTestDriver

LAST = 2**63 - 1
TEXT = Serdes.string()
CONFIG = {"application.id": "app", "default.key.serde": TEXT, "default.value.serde": TEXT}
CONTINUING = {**CONFIG, "processing.exception.handler": LogAndContinueProcessingExceptionHandler}


def windowed(builder: StreamsBuilder, windows: Any) -> KTable[Windowed[str], int]:
    grouped = builder.stream("in").group_by_key().windowed_by(windows)
    counts: KTable[Windowed[str], int] = grouped.count(materialized=Materialized("counts", key_serde=TEXT))
    return counts


def joined(builder: StreamsBuilder, windows: JoinWindows) -> None:
    left: KStream[str, str] = builder.stream("left")
    right: KStream[str, str] = builder.stream("right")
    left.join(right, lambda one, other: f"{one}{other}", windows=windows).to("out")


def stored_counts(driver: TopologyTestDriver) -> list[Any]:
    store = driver.get_timestamped_window_store("counts")
    assert store is not None
    return list(store.all())


# ------------------------------------------------------------ lengths of time


@pytest.mark.parametrize(
    "make",
    [
        lambda: windowed(StreamsBuilder(), TimeWindows(10, grace=LAST)),
        lambda: windowed(StreamsBuilder(), TimeWindows(LAST, grace=1)),
        lambda: windowed(StreamsBuilder(), SlidingWindows(10, grace=LAST)),
        lambda: windowed(StreamsBuilder(), SlidingWindows(LAST)),
        lambda: windowed(StreamsBuilder(), SessionWindows(10, grace=LAST)),
        lambda: joined(StreamsBuilder(), JoinWindows(5, grace=LAST)),
    ],
    ids=["grace", "size", "sliding grace", "difference", "gap and grace", "join and grace"],
)
def test_windows_that_would_be_kept_longer_than_time_lasts_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=f"more than the largest number of milliseconds, {LAST}"):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: TimeWindows(LAST + 1),
        lambda: SessionWindows(timedelta(days=1), grace=LAST + 1),
        lambda: JoinWindows(LAST),
        lambda: JoinWindows(before=-LAST - 2, after=LAST),
        lambda: Suppressed.until_time_limit(LAST + 1, BufferConfig.UNBOUNDED),
        lambda: Window(LAST - 1, LAST + 1),
    ],
    ids=["size", "grace", "both bounds", "one bound", "time limit", "window"],
)
def test_lengths_of_time_that_no_timestamp_can_count_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=str(LAST)):
        make()


@pytest.mark.parametrize(
    "windows",
    [
        TimeWindows(10, grace=LAST - 10),
        TimeWindows(LAST),
        UnlimitedWindows(),
        SlidingWindows(LAST // 2),
        SessionWindows(10, grace=LAST - 10),
        SessionWindows(LAST),
    ],
    ids=repr,
)
def test_the_longest_windows_count(windows: Any) -> None:
    builder = StreamsBuilder()
    windowed(builder, windows).to_stream(lambda key, count: key.key).map_values(str).to("out")
    with TopologyTestDriver(builder.build(), {**CONFIG, "statestore.cache.max.bytes": 0}) as driver:
        pipe = driver.create_input_topic("in", TEXT, TEXT)
        pipe.pipe_input("a", "x", timestamp=1)
        pipe.pipe_input("a", "x", timestamp=2)

        assert driver.create_output_topic("out", TEXT, TEXT).read_values()[-1] in ("1", "2")


# ------------------------------------------------------------ timestamps

WINDOWS = [TimeWindows(10), TimeWindows(10, advance_by=3), SlidingWindows(10)]


def final_counts(windows: Any) -> StreamsBuilder:
    builder = StreamsBuilder()
    suppressed = windowed(builder, windows).suppress(Suppressed.until_window_closes(BufferConfig.UNBOUNDED))
    suppressed.to_stream(lambda key, count: str(key)).map_values(str).to("out")
    return builder


@pytest.mark.parametrize("windows", WINDOWS, ids=repr)
def test_a_record_whose_window_would_end_after_the_largest_timestamp_is_an_error_of_this_record(windows: Any) -> None:
    with TopologyTestDriver(final_counts(windows).build(), CONFIG) as driver:
        pipe = driver.create_input_topic("in", TEXT, TEXT)

        with pytest.raises(ProcessingError, match=f"would end after the largest timestamp, {LAST}"):
            pipe.pipe_input("a", "x", timestamp=LAST - 1)


@pytest.mark.parametrize("windows", WINDOWS, ids=repr)
def test_such_a_record_can_be_left_out(windows: Any) -> None:
    with TopologyTestDriver(final_counts(windows).build(), CONTINUING) as driver:
        pipe = driver.create_input_topic("in", TEXT, TEXT)
        pipe.pipe_input("a", "x", timestamp=LAST)
        pipe.pipe_input("a", "y", timestamp=LAST)

        assert driver.create_output_topic("out", TEXT, TEXT).read_values() == []
        assert stored_counts(driver) == []


@pytest.mark.parametrize(("size", "advance"), [(10, 10), (10, 3), (10, 7), (7, 7), (1, 1)])
def test_the_last_windows_end_at_the_largest_timestamp_at_the_latest(size: int, advance: int) -> None:
    windows = TimeWindows(size, advance_by=advance)
    builder = StreamsBuilder()
    windowed(builder, windows)
    for timestamp in range(LAST - 3 * size, LAST + 1):
        fits = all(window.end <= LAST for window in _unchecked(windows, timestamp))
        with TopologyTestDriver(builder.build(), CONTINUING) as driver:
            driver.create_input_topic("in", TEXT, TEXT).pipe_input("a", "x", timestamp=timestamp)

            assert bool(stored_counts(driver)) is fits


class _Span:
    def __init__(self, end: int) -> None:
        self.end = end


def _unchecked(windows: TimeWindows, timestamp: int) -> list[_Span]:
    size, advance = windows.size_ms, windows.advance_ms
    first = max(0, timestamp - size + advance) // advance * advance
    return [_Span(start + size) for start in range(first, timestamp + 1, advance)]


def test_sessions_at_the_largest_timestamp_are_merged() -> None:
    builder = StreamsBuilder()
    windowed(builder, SessionWindows(10, grace=5)).to_stream(lambda key, count: str(key)).map_values(str).to("out")
    with TopologyTestDriver(builder.build(), CONFIG) as driver:
        pipe = driver.create_input_topic("in", TEXT, TEXT)
        for timestamp in (LAST - 9, LAST - 3, LAST, LAST - 9):
            pipe.pipe_input("a", "x", timestamp=timestamp)
        rows = driver.create_output_topic("out", TEXT, TEXT).read_key_values()

    assert tuple(rows[-1]) == (f"[a@{LAST - 9}/{LAST}]", "4")


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        (JoinWindows(5), ["bx", "by", "cx", "cy"]),
        (JoinWindows(before=0, after=LAST), ["ax", "ay", "by", "cx", "cy"]),
        (JoinWindows(before=-2, after=8), ["cy"]),
    ],
    ids=repr,
)
def test_records_at_the_largest_timestamp_are_joined(windows: JoinWindows, expected: list[str]) -> None:
    builder = StreamsBuilder()
    joined(builder, windows)
    with TopologyTestDriver(builder.build(), CONFIG) as driver:
        left, right = (driver.create_input_topic(topic, TEXT, TEXT) for topic in ("left", "right"))
        left.pipe_input("k", "a", timestamp=LAST - 9)
        left.pipe_input("k", "b", timestamp=LAST - 1)
        right.pipe_input("k", "x", timestamp=LAST - 3)
        right.pipe_input("k", "y", timestamp=LAST)
        left.pipe_input("k", "c", timestamp=LAST - 4)

        assert sorted(driver.create_output_topic("out", TEXT, TEXT).read_values()) == expected
