"""Rates, ratios, averages and maxima of the text in which RocksDB tells its statistics."""

from __future__ import annotations

import math

import pytest

from pykstreams.state.metrics.rocksdb_statistics import FRESH_S, KEPT_S, RocksDbStatistics
from pykstreams.testing.clock import MockClock


class Database:
    """Counts as it is told."""

    def __init__(self) -> None:
        self.clock = MockClock(0)
        self.counts = {"bytes.written": 0, "memtable.hit": 0, "memtable.miss": 0, "stall.micros": 0}
        self.flushes: list[int] = []
        self.is_open = True
        self.asked = 0
        self.statistics = RocksDbStatistics(self.text, self.clock)

    def text(self) -> str | None:
        self.asked += 1
        if not self.is_open:
            return None
        most, total = max(self.flushes, default=0), sum(self.flushes)
        lines = [f"rocksdb.{name} COUNT : {count}" for name, count in self.counts.items()]
        lines.append(
            f"rocksdb.db.flush.micros P50 : 1.0 P95 : 2.0 P99 : 3.0 P100 : {most:.6f} COUNT : {len(self.flushes)} "
            f"SUM : {total}"
        )
        return "\n".join(lines) + "\n"

    def after(self, seconds: float) -> None:
        self.clock.advance(round(seconds * 1000))

    def value(self, name: str) -> float:
        return self.statistics.value(name)


def test_a_rate_is_that_of_the_last_minute() -> None:
    database = Database()
    assert math.isnan(database.value("bytes-written-rate"))

    database.counts["bytes.written"] = 1000
    database.after(10)
    assert database.value("bytes-written-rate") == 100

    database.after(KEPT_S)
    assert database.value("bytes-written-rate") == 0
    assert database.value("bytes-written-total") == 1000


def test_a_ratio_is_told_while_there_are_reads() -> None:
    database = Database()
    assert math.isnan(database.value("memtable-hit-ratio"))

    database.counts.update({"memtable.hit": 3, "memtable.miss": 1})
    database.after(2)

    assert database.value("memtable-hit-ratio") == 0.75


def test_times_are_in_ms() -> None:
    database = Database()
    assert math.isnan(database.value("memtable-flush-time-max"))

    database.flushes = [1000, 3000]
    database.counts["stall.micros"] = 2500
    database.after(2)

    assert database.value("memtable-flush-time-avg") == 2
    assert database.value("memtable-flush-time-max") == 3
    assert database.value("write-stall-duration-total") == 2.5


def test_one_reading_serves_all_metrics_for_a_while() -> None:
    database = Database()
    database.value("bytes-written-total")
    database.value("memtable-hit-ratio")
    assert database.asked == 1

    database.after(FRESH_S)
    database.value("bytes-written-total")
    assert database.asked == 2


@pytest.mark.parametrize("name", ["bytes-written-rate", "bytes-written-total"])
def test_a_store_that_was_never_open_has_nothing_to_tell(name: str) -> None:
    database = Database()
    database.is_open = False

    assert math.isnan(database.value(name))


def test_a_store_that_is_opened_anew_has_no_negative_rate() -> None:
    database = Database()
    database.counts["bytes.written"] = 1000
    database.value("bytes-written-rate")

    database.counts["bytes.written"] = 5
    database.after(2)
    assert math.isnan(database.value("bytes-written-rate"))

    database.counts["bytes.written"] = 25
    database.after(2)
    assert database.value("bytes-written-rate") == 10
