"""Sliding windows: which there are, what they hold, late records, emission on close."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pykstreams.core.settings.keys import EMIT_INTERVAL_OF_WINDOWS
from pykstreams.core.types import VR, K, V
from pykstreams.core.windows import EmitStrategy, SlidingWindows
from pykstreams.processors import COUNT, Aggregation, SlidingAggregate, reducing
from tests.unit.processors.fakes import FakeOperatorContext
from tests.unit.processors.store_fakes import FakeWindowStore

HEADERS = (("trace", b"1"),)
JOIN = reducing(lambda a, b: a + b)


def run(
    operator: SlidingAggregate[K, V, VR], *records: tuple[Any, Any, int], context: FakeOperatorContext | None = None
) -> FakeOperatorContext:
    context = context or FakeOperatorContext(s=FakeWindowStore(operator.windows.time_difference_ms))
    context.processing.app_configs[EMIT_INTERVAL_OF_WINDOWS] = 0
    process = context.start(operator)
    for record in records:
        process(*record, HEADERS)
    return context


def results(context: FakeOperatorContext, child: str = "child") -> list[tuple[int, int, Any, int]]:
    return [
        (windowed.window.start, windowed.window.end, value[0], timestamp)
        for windowed, value, timestamp, _ in context.received[child]
    ]


def test_a_first_record_makes_its_left_window_only() -> None:
    got = run(SlidingAggregate("s", SlidingWindows(10), JOIN), ("k", "a", 20))

    assert [(10, 20, "a", 20)] == results(got)


def test_a_second_record_makes_the_right_window_of_the_first_and_its_own_left_window() -> None:
    got = run(SlidingAggregate("s", SlidingWindows(10), JOIN), ("k", "a", 20), ("k", "b", 25))

    assert [(10, 20, "a", 20), (21, 31, "b", 25), (15, 25, "ab", 25)] == results(got)


def test_an_earlier_record_makes_its_right_window_from_what_comes_after_it() -> None:
    got = run(SlidingAggregate("s", SlidingWindows(10, grace=50), JOIN), ("k", "b", 25), ("k", "a", 20))

    assert [(15, 25, "b", 25), (15, 25, "ba", 25), (10, 20, "a", 20), (21, 31, "b", 25)] == results(got)


def test_records_before_the_time_difference_share_the_window_from_zero() -> None:
    got = run(SlidingAggregate("s", SlidingWindows(10), JOIN), ("k", "a", 2), ("k", "b", 6))

    assert [(0, 10, "a", 2), (3, 13, "b", 6), (0, 10, "ab", 6)] == results(got)


def test_a_window_is_updated_before_the_next_one_is_read() -> None:
    """Kafka Streams' cache drops what was used longest ago, so the order matters."""
    steps: list[tuple[str, int]] = []

    class Store(FakeWindowStore):
        def rows(self, *arguments: Any) -> Any:
            for row in super().rows(*arguments):
                steps.append(("read", row[0]))
                yield row

        def put_row(self, key: Any, start: int, *rest: Any) -> None:
            steps.append(("put", start))
            super().put_row(key, start, *rest)

    context = FakeOperatorContext(s=Store(10))
    operator = SlidingAggregate("s", SlidingWindows(10), JOIN)
    run(operator, ("k", "a", 20), ("k", "b", 22), ("k", "c", 29), context=context)
    steps.clear()
    run(operator, ("k", "d", 31), context=context)

    read_and_put = [step for start in (23, 21) for step in (("read", start), ("put", start))]
    assert [*read_and_put, ("read", 19), ("put", 30)] == steps


def test_null_keys_and_null_values_are_dropped_and_do_not_advance_time() -> None:
    got = run(SlidingAggregate("s", SlidingWindows(10), JOIN), (None, "a", 90), ("k", None, 90), ("k", "b", 12))

    assert [(2, 12, "b", 12)] == results(got)
    assert ["the key or the value of a record to aggregate is null"] * 2 == got.dropped


def test_a_record_that_no_window_takes_is_dropped_and_forwarded_as_late() -> None:
    context = FakeOperatorContext(children=("child", "n-late"), s=FakeWindowStore(10))
    operator = SlidingAggregate("s", SlidingWindows(10, grace=5), JOIN, late_child="n-late")
    run(operator, ("k", "a", 50), ("k", "gone", 34), ("k", "edge", 45), context=context)

    assert [("k", "gone", 34, HEADERS)] == context.received["n-late"]
    assert [(40, 50, "a", 50), (40, 50, "aedge", 50), (35, 45, "edge", 45), (46, 56, "a", 50)] == results(context)
    assert 1 == len(context.dropped)


def test_a_record_whose_only_window_is_closed_is_late_though_its_right_window_would_be_open() -> None:
    context = FakeOperatorContext(children=("child", "n-late"), s=FakeWindowStore(10))
    operator = SlidingAggregate("s", SlidingWindows(10, grace=5), JOIN, late_child="n-late")
    run(operator, ("other", "a", 50), ("k", "lonely", 40), context=context)

    assert [("k", "lonely", 40, HEADERS)] == context.received["n-late"]
    assert 1 == len(context.dropped)


def test_without_a_child_for_late_records_they_are_only_dropped() -> None:
    got = run(SlidingAggregate("s", SlidingWindows(10), JOIN), ("k", "a", 50), ("k", "b", 20))

    assert [(40, 50, "a", 50)] == results(got)
    assert ["it is late: a window that it belongs to ended longer than the grace period ago"] == got.dropped


def test_old_values_are_what_the_window_held_before() -> None:
    got = run(SlidingAggregate("s", SlidingWindows(10), COUNT, True), ("k", "a", 20), ("k", "b", 20))

    assert [(1, 0, True), (2, 1, True)] == [record[1] for record in got.forwarded]


def test_an_error_of_the_aggregator_is_one_of_the_node() -> None:
    def broken(key: str, value: str, aggregate: int) -> int:
        raise ValueError("broken")

    got = run(SlidingAggregate("s", SlidingWindows(10), Aggregation(lambda: 0, broken)), ("k", "a", 20))

    assert [("broken", "k", "a", 20, HEADERS)] == [(str(error), *record) for error, *record in got.failed]


def test_on_close_a_window_is_emitted_when_time_has_passed_its_end_which_belongs_to_it() -> None:
    context = FakeOperatorContext(s=FakeWindowStore(10))
    operator = SlidingAggregate("s", SlidingWindows(10), JOIN, emit_strategy=EmitStrategy.ON_WINDOW_CLOSE)
    run(operator, ("k", "a", 20), ("k", "b", 20), context=context)
    assert [] == context.forwarded

    run(operator, ("other", "c", 21), ("other", "d", 21), ("other", "e", 22), context=context)

    assert [(10, 20, "ab", 20), (11, 21, "cd", 21)] == results(context)
    assert 22 == context.metadata.get("s")


def test_records_before_the_time_difference_close_no_windows() -> None:
    context = FakeOperatorContext(s=FakeWindowStore(10))
    operator = SlidingAggregate("s", SlidingWindows(10), JOIN, emit_strategy=EmitStrategy.ON_WINDOW_CLOSE)
    run(operator, ("k", "a", 1), ("k", "b", 9), context=context)
    assert context.metadata.get("s") is None

    run(operator, ("k", "c", 11), context=context)

    assert [(0, 10, "ab", 9)] == results(context)


@given(difference=st.integers(1, 12), times=st.lists(st.integers(0, 50), max_size=14))
def test_windows_hold_what_lies_between_their_bounds_in_whatever_order_it_comes(
    difference: int, times: Sequence[int]
) -> None:
    tally: Aggregation[str, int, Counter[int]] = Aggregation(Counter, lambda key, value, seen: seen + Counter([value]))
    got = run(
        SlidingAggregate("s", SlidingWindows(difference, grace=1000), tally),
        *(("k", time, time) for time in times),
    )
    starts = {time - difference for time in times if time >= difference}
    starts |= {0} if any(time < difference for time in times) else set()
    starts |= {t + 1 for t in times if any(t < other <= t + 1 + difference for other in times)}
    expected = {start: Counter(time for time in times if start <= time <= start + difference) for start in starts}

    assert expected == {start: row[0] for (_, start), row in got.store("s").contents.items()}
    assert all(max(row[0]) == row[1] for row in got.store("s").contents.values())
