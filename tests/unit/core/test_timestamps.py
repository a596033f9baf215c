"""Timestamp extractors and what they make of negative timestamps."""

import logging
from collections.abc import Callable

import pytest

from pykstreams.core.errors import StreamsError
from pykstreams.core.record import ConsumerRecord
from pykstreams.core.timestamps import (
    FailOnInvalidTimestamp,
    LogAndSkipOnInvalidTimestamp,
    UsePartitionTimeOnInvalidTimestamp,
    WallclockTimestampExtractor,
)


def record(timestamp: int) -> ConsumerRecord:
    return ConsumerRecord("orders", 2, 7, timestamp, "k", "v", ())


class FixedClock:
    def __init__(self, now: int) -> None:
        self.now = now

    def now_ms(self) -> int:
        return self.now

    def monotonic(self) -> float:
        return self.now / 1000


@pytest.mark.parametrize(
    "extractor",
    [FailOnInvalidTimestamp(), LogAndSkipOnInvalidTimestamp(), UsePartitionTimeOnInvalidTimestamp()],
)
def test_a_record_keeps_the_time_it_carries(extractor: Callable[[ConsumerRecord, int], int]) -> None:
    assert 0 == extractor(record(0), -1)


def test_fail_on_invalid_names_the_record_and_the_way_out() -> None:
    with pytest.raises(StreamsError, match=r"orders-2 offset 7 has the timestamp -1.*default\.timestamp\.extractor"):
        FailOnInvalidTimestamp()(record(-1), 5)


def test_log_and_skip_gives_the_negative_time_and_warns(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert -3 == LogAndSkipOnInvalidTimestamp()(record(-3), 5)

    assert "orders-2 offset 7 is dropped: its timestamp -3 is negative" in caplog.text


def test_partition_time_stands_in_for_a_negative_time() -> None:
    assert 5 == UsePartitionTimeOnInvalidTimestamp()(record(-1), 5)


def test_partition_time_that_is_not_known_yet_is_an_error() -> None:
    with pytest.raises(StreamsError, match="no partition time is known yet"):
        UsePartitionTimeOnInvalidTimestamp()(record(-1), -1)


def test_wallclock_follows_the_clock_of_its_task() -> None:
    extractor = WallclockTimestampExtractor().on_clock(FixedClock(99))

    assert 99 == extractor(record(5), -1)


def test_wallclock_keeps_a_clock_of_its_own() -> None:
    extractor = WallclockTimestampExtractor(FixedClock(11)).on_clock(FixedClock(99))

    assert 11 == extractor(record(5), -1)
