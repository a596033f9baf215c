"""Windowed aggregations that must type-check, with the types that must come out."""

from datetime import timedelta
from typing import assert_type

from pykstreams import (
    CountWindowedKStream,
    CountWindows,
    EmitStrategy,
    KGroupedStream,
    KStream,
    KTable,
    SlidingWindows,
    TimeWindowedKStream,
    TimeWindows,
    UnlimitedWindows,
    Windowed,
)
from pykstreams.serdes import StringSerde, TimeWindowedSerializer


def windowed(amounts: KGroupedStream[str, int]) -> None:
    per_minute = amounts.windowed_by(TimeWindows(timedelta(minutes=1), advance_by=1000, grace=timedelta(seconds=5)))
    assert_type(per_minute, TimeWindowedKStream[str, int])
    assert_type(amounts.windowed_by(SlidingWindows(10)), TimeWindowedKStream[str, int])
    assert_type(amounts.windowed_by(UnlimitedWindows()), TimeWindowedKStream[str, int])
    assert_type(per_minute.emit_strategy(EmitStrategy.ON_WINDOW_CLOSE), TimeWindowedKStream[str, int])
    assert_type(per_minute.count(), KTable[Windowed[str], int])
    assert_type(per_minute.reduce(max), KTable[Windowed[str], int])
    assert_type(
        per_minute.aggregate(lambda: "", lambda key, amount, seen: f"{seen}{amount}"), KTable[Windowed[str], str]
    )
    starts = per_minute.count().to_stream(lambda windowed, count: windowed.window.start)
    assert_type(starts, KStream[int, int])


def late(amounts: KGroupedStream[str, int]) -> None:
    def keep(records: KStream[str, int]) -> None:
        assert_type(records.map_values(str), KStream[str, str])

    amounts.windowed_by(TimeWindows(10)).count(late_records_to=keep)
    amounts.windowed_by(TimeWindows(10)).count(late_records_to="late-amounts")
    amounts.windowed_by(TimeWindows(10)).reduce(max, late_records_to=lambda records: records.to("late-amounts"))


def written(key: Windowed[str]) -> Windowed[str | None]:
    assert_type(TimeWindowedSerializer(StringSerde()).serialize_base_key("topic", key), bytes)
    return key


def narrowed(key: Windowed[str | None]) -> Windowed[str]:
    return key  # type: ignore[return-value]  # its keys may be None


def wrong(amounts: KGroupedStream[str, int]) -> None:
    amounts.windowed_by(60_000)  # type: ignore[call-overload]
    amounts.windowed_by(TimeWindows(10)).emit_strategy("on_window_close")  # type: ignore[arg-type]
    amounts.windowed_by(TimeWindows(10)).count(late_records_to=5)  # type: ignore[arg-type]
    TimeWindows(10, 5)  # type: ignore[call-arg]


def counted(amounts: KGroupedStream[str, int]) -> None:
    hundreds = amounts.windowed_by(CountWindows(100))
    assert_type(hundreds, CountWindowedKStream[str, int])
    assert_type(hundreds.count(), KStream[str, int])
    assert_type(hundreds.reduce(max), KStream[str, int])
    assert_type(hundreds.aggregate(lambda: "", lambda key, amount, seen: f"{seen}{amount}"), KStream[str, str])
