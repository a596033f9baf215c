"""Tumbling, hopping, unlimited and users' own windows: results, times, nulls, late records, emission on close."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykstreams.core.errors import ProcessingError
from pykstreams.core.settings.keys import EMIT_INTERVAL_OF_WINDOWS
from pykstreams.core.types import VR, K, V
from pykstreams.core.windows import EmitStrategy, TimeWindows, UnlimitedWindows, Window, Windowed, Windows
from pykstreams.processors import COUNT, Aggregation, WindowAggregate, WindowedView, reducing
from pykstreams.processors.tables.table_view import ReadRow
from tests.unit.processors.fakes import FakeOperatorContext
from tests.unit.processors.store_fakes import FakeWindowStore

HEADERS = (("trace", b"1"),)
CONCAT: Aggregation[str, str, str] = Aggregation(
    lambda: ">", lambda key, value, aggregate: None if value == "clear" else f"{aggregate}{value}"
)
CLOSE = EmitStrategy.ON_WINDOW_CLOSE


class Halves(Windows[Window]):
    """A short and a long window from each multiple of 10; ``broken`` makes it raise."""

    size_ms = 10
    grace_period_ms = 0
    broken = False

    def windows_for(self, timestamp: int) -> dict[int, Window]:
        if self.broken:
            raise ZeroDivisionError("windows")
        start = timestamp - timestamp % 10
        return {start: Window(start, start + 10), start + 1: Window(start + 1, start + 6)}


def run(
    operator: WindowAggregate[K, V, VR],
    *records: tuple[Any, Any, int],
    context: FakeOperatorContext | None = None,
    **options: Any,
) -> FakeOperatorContext:
    context = context or FakeOperatorContext(s=FakeWindowStore(operator.windows.size_ms, **options))
    process = context.start(operator)
    for record in records:
        process(*record, HEADERS)
    return context


def results(context: FakeOperatorContext, child: str = "child") -> list[tuple[Any, ...]]:
    return [
        (windowed.key, windowed.window.start, windowed.window.end, value[0], timestamp)
        for windowed, value, timestamp, _ in context.received[child]
    ]


def test_a_record_is_added_to_its_tumbling_window_and_the_result_has_the_largest_time() -> None:
    got = run(
        WindowAggregate("s", TimeWindows(10), CONCAT), ("a", "x", 5), ("a", "y", 3), ("b", "z", 9), ("a", "w", 10)
    )

    assert [
        ("a", 0, 10, ">x", 5),
        ("a", 0, 10, ">xy", 5),
        ("b", 0, 10, ">z", 9),
        ("a", 10, 20, ">w", 10),
    ] == results(got)
    assert HEADERS == got.forwarded[0][3]


def test_a_record_is_added_to_all_its_hopping_windows_in_order() -> None:
    got = run(WindowAggregate("s", TimeWindows(10, advance_by=4), COUNT), ("a", "x", 2), ("a", "y", 9))

    assert [("a", 0, 10, 1, 2), ("a", 0, 10, 2, 9), ("a", 4, 14, 1, 9), ("a", 8, 18, 1, 9)] == results(got)


def test_an_unlimited_window_takes_what_comes_from_its_start_on_and_passes_over_the_rest() -> None:
    got = run(WindowAggregate("s", UnlimitedWindows(5), COUNT), ("a", "x", 4), ("a", "y", 5), ("a", "z", 90))

    assert [("a", 5, 2**63 - 1, 1, 5), ("a", 5, 2**63 - 1, 2, 90)] == results(got)
    assert [] == got.dropped


def test_windows_of_a_users_own_are_asked_for_each_record() -> None:
    got = run(WindowAggregate("s", Halves(), COUNT), ("a", "x", 12), ("a", "y", 18))

    assert [("a", 10, 20, 1, 12), ("a", 11, 16, 1, 12), ("a", 10, 20, 2, 18)] == results(got)
    assert 1 == len(got.dropped)


def test_an_error_of_a_users_windows_is_one_of_the_node() -> None:
    windows = Halves()
    windows.broken = True

    got = run(WindowAggregate("s", windows, COUNT), ("a", "x", 12))

    assert ["windows"] == [str(error) for error, *_ in got.failed]


def test_reducing_starts_with_the_first_value() -> None:
    got = run(WindowAggregate("s", TimeWindows(10), reducing(lambda a, b: a + b)), ("a", 3, 1), ("a", 4, 2))

    assert [("a", 0, 10, 3, 1), ("a", 0, 10, 7, 2)] == results(got)


def test_a_null_key_is_dropped_and_a_null_value_is_not() -> None:
    got = run(WindowAggregate("s", TimeWindows(10), COUNT), (None, "x", 1), ("a", None, 2))

    assert [("a", 0, 10, 1, 2)] == results(got)
    assert ["the key of a record to aggregate is null"] == got.dropped


def test_a_dropped_null_key_does_not_advance_the_observed_time() -> None:
    got = run(WindowAggregate("s", TimeWindows(10), COUNT), (None, "x", 50), ("a", "x", 1))

    assert [("a", 0, 10, 1, 1)] == results(got)


def test_none_as_the_result_deletes_the_window_and_the_next_record_starts_afresh() -> None:
    got = run(WindowAggregate("s", TimeWindows(10), CONCAT, True), ("a", "x", 5), ("a", "clear", 3), ("a", "y", 1))

    assert [(">x", ">", True), (None, ">x", True), (">y", ">", True)] == [record[1] for record in got.forwarded]
    assert [5, 5, 1] == [record[2] for record in got.forwarded]


def test_old_values_are_left_out_unless_asked_for() -> None:
    got = run(WindowAggregate("s", TimeWindows(10), COUNT), ("a", "x", 1), ("a", "x", 1))

    assert [(1, None, True), (2, None, True)] == [record[1] for record in got.forwarded]


def test_with_a_cache_the_flush_forwards_and_the_operator_does_not() -> None:
    store = FakeWindowStore(10, cached=True)
    got = run(
        WindowAggregate("s", TimeWindows(10), COUNT), ("a", "x", 1), ("a", "x", 2), context=FakeOperatorContext(s=store)
    )

    assert [] == got.forwarded
    store.flush()
    assert [("a", 0, 10, 2, 2)] == results(got)


@pytest.mark.parametrize(("late", "taken"), [(9, True), (15, True), (16, False)])
def test_a_window_takes_records_until_the_observed_time_has_passed_its_end_by_the_grace(late: int, taken: bool) -> None:
    got = run(WindowAggregate("s", TimeWindows(10, grace=6), COUNT), ("a", "x", 1), ("b", "x", late), ("a", "y", 2))

    assert taken is (("a", 0, 10, 2, 2) in results(got))
    assert [] == got.dropped if taken else len(got.dropped) == 1


def test_each_closed_hopping_window_counts_as_a_dropped_record() -> None:
    got = run(WindowAggregate("s", TimeWindows(10, advance_by=4), COUNT), ("a", "x", 18), ("a", "y", 8))

    assert [("a", 12, 22, 1, 18), ("a", 16, 26, 1, 18)] == results(got)
    assert ["it is late: a window that it belongs to ended longer than the grace period ago"] * 3 == got.dropped


def test_late_records_reach_their_child_as_they_are_and_no_other() -> None:
    context = FakeOperatorContext(children=("first", "n-late", "second"), s=FakeWindowStore(10))
    operator = WindowAggregate("s", TimeWindows(10), COUNT, late_child="n-late")
    run(operator, ("a", "x", 20), ("b", "late", 3), context=context)

    assert [("b", "late", 3, HEADERS)] == context.received["n-late"]
    assert [("a", 20, 30, 1, 20)] == results(context, "first") == results(context, "second")
    assert 1 == len(context.dropped)


@pytest.mark.parametrize("windows", [TimeWindows(10, advance_by=5), Halves()], ids=["hopping", "own"])
def test_a_record_that_one_window_still_takes_is_not_late(windows: Windows[Any]) -> None:
    context = FakeOperatorContext(children=("child", "n-late"), s=FakeWindowStore(10))
    operator = WindowAggregate("s", windows, COUNT, late_child="n-late")
    run(operator, ("a", "x", 17), ("a", "y", 13), ("a", "z", 3), context=context)

    assert [("a", "z", 3, HEADERS)] == context.received["n-late"]


def test_late_records_reach_their_child_also_where_errors_end_the_task() -> None:
    context = FakeOperatorContext(children=("n-late", "child"), failing=True, s=FakeWindowStore(10))
    operator = WindowAggregate("s", TimeWindows(10), COUNT, late_child="n-late")
    run(operator, ("a", "x", 20), ("b", "late", 3), context=context)

    assert [("b", "late", 3, HEADERS)] == context.received["n-late"]
    assert [("a", 20, 30, 1, 20)] == results(context)


def test_an_error_of_the_aggregator_ends_the_record_after_the_windows_that_took_it() -> None:
    def fail_in_used_windows(key: str, value: str, count: int) -> int:
        if count:
            raise ValueError("used")
        return 1

    operator = WindowAggregate("s", TimeWindows(10, advance_by=5), Aggregation(lambda: 0, fail_in_used_windows))
    got = run(operator, ("a", "x", 7), ("a", "y", 12))

    assert [("a", 0, 10, 1, 7), ("a", 5, 15, 1, 7)] == results(got)
    assert [("used", "a", "y", 12, HEADERS)] == [(str(error), *record) for error, *record in got.failed]


def test_an_error_of_a_child_passes_through() -> None:
    context = FakeOperatorContext(failing=True, s=FakeWindowStore(10))
    context.child_error = ProcessingError("child failed", node="child")

    with pytest.raises(ProcessingError, match="child failed"):
        run(WindowAggregate("s", TimeWindows(10), COUNT), ("a", "x", 1), context=context)
    assert [] == context.failed


def close_context(size: int, **numbers: int) -> FakeOperatorContext:
    context = FakeOperatorContext(s=FakeWindowStore(size))
    context.processing.app_configs[EMIT_INTERVAL_OF_WINDOWS] = 0
    context.metadata.update(numbers)
    return context


def on_close(windows: Windows[Any]) -> WindowAggregate[object, object, int]:
    return WindowAggregate("s", windows, COUNT, emit_strategy=CLOSE)


def test_on_close_a_window_is_emitted_once_when_time_has_passed_its_end_by_the_grace() -> None:
    context = close_context(10)
    run(on_close(TimeWindows(10, grace=5)), ("a", "x", 1), ("b", "x", 8), ("a", "x", 14), context=context)
    assert [] == context.forwarded

    run(on_close(TimeWindows(10, grace=5)), ("c", "x", 15), ("c", "x", 16), ("c", "x", 18), context=context)

    assert [("a", 0, 10, 1, 1), ("b", 0, 10, 1, 8)] == results(context)
    assert 10 == context.metadata.get("s")


def test_results_of_closed_windows_have_no_old_value_and_the_headers_of_the_record_that_closed_them() -> None:
    context = close_context(10)
    operator = WindowAggregate("s", TimeWindows(10), COUNT, True, CLOSE)
    process = context.start(operator)
    process("a", "x", 1, (("first", b""),))
    process("a", "x", 10, HEADERS)

    assert [(Windowed("a", Window(0, 10)), (1, None, True), 1, HEADERS)] == context.forwarded


def test_a_late_record_may_close_no_window_and_hopping_windows_close_one_by_one() -> None:
    context = close_context(10)
    process = context.start(on_close(TimeWindows(10, advance_by=5)))
    closed = []
    for timestamp in (1, 6, 9, 10, 12, 15, 16, 40):
        process("a", "x", timestamp, HEADERS)
        closed.append([start for _, start, *_ in results(context)])
        context.forwarded.clear()

    assert [[], [], [], [0], [], [5], [], [10, 15]] == closed


def test_closed_windows_are_looked_for_at_most_once_in_an_interval_of_wall_clock_time() -> None:
    context = close_context(10)
    context.processing.app_configs[EMIT_INTERVAL_OF_WINDOWS] = 1000
    process = context.start(on_close(TimeWindows(10)))
    process("a", "x", 1, HEADERS)
    process("a", "x", 10, HEADERS)
    assert [] == context.forwarded

    context.processing.now_ms += 1000
    process("a", "x", 11, HEADERS)

    assert [("a", 0, 10, 1, 1)] == results(context)


def test_closed_windows_are_looked_for_when_the_clock_is_set_back() -> None:
    context = close_context(10)
    context.processing.app_configs[EMIT_INTERVAL_OF_WINDOWS] = 1000
    context.processing.now_ms = 5000
    process = context.start(on_close(TimeWindows(10)))
    process("a", "x", 1, HEADERS)
    context.processing.now_ms = 100
    process("a", "x", 10, HEADERS)

    assert [("a", 0, 10, 1, 1)] == results(context)


def test_the_interval_is_a_second_unless_set() -> None:
    context = close_context(10)
    del context.processing.app_configs[EMIT_INTERVAL_OF_WINDOWS]
    process = context.start(on_close(TimeWindows(10)))
    process("a", "x", 1, HEADERS)
    context.processing.now_ms += 999
    process("a", "x", 10, HEADERS)
    assert [] == context.forwarded

    context.processing.now_ms += 1
    process("a", "x", 10, HEADERS)

    assert [("a", 0, 10, 1, 1)] == results(context)


def test_what_was_emitted_before_a_restart_is_not_emitted_again() -> None:
    context = close_context(10, s=10)
    store = context.store("s")
    store.contents[("a", 0)] = (4, 7)
    store.contents[("a", 10)] = (5, 17)
    run(on_close(TimeWindows(10)), ("b", "x", 12), ("b", "x", 20), context=context)

    assert [("a", 10, 20, 5, 17), ("b", 10, 20, 1, 12)] == results(context)


def test_a_store_that_cannot_be_read_for_closed_windows_is_an_error_of_the_record() -> None:
    context = close_context(10)
    process = context.start(on_close(TimeWindows(10)))
    process("a", "x", 1, HEADERS)
    context.store("s").broken = OSError("disk")
    context.store("s").get_row = lambda key, start: None
    process("b", "x", 15, HEADERS)

    assert [("disk", "b", "x", 15, HEADERS)] == [(str(error), *record) for error, *record in context.failed]
    assert context.metadata.get("s") is None


def test_a_windowed_table_is_read_by_windowed_keys() -> None:
    view = WindowedView("s")
    context = FakeOperatorContext(s=FakeWindowStore(10))
    context.store("s").put_row("a", 10, 5, 12)
    read: ReadRow[Windowed[str], int] = view.build(context)

    assert ("s",) == view.stores
    assert (5, 12) == read(Windowed("a", Window(10, 20)))
    assert read(Windowed("a", Window(0, 10))) is None


@given(
    size=st.integers(1, 12),
    advance=st.integers(1, 12),
    grace=st.integers(0, 10),
    times=st.lists(st.integers(0, 60), max_size=25),
)
def test_counts_are_those_of_a_plain_model(size: int, advance: int, grace: int, times: Sequence[int]) -> None:
    windows = TimeWindows(size, advance_by=min(advance, size), grace=grace)
    expected: dict[int, int] = {}
    observed = dropped = 0
    for time in times:
        observed = max(observed, time)
        for start, window in windows.windows_for(time).items():
            if window.end > observed - grace:
                expected[start] = expected.get(start, 0) + 1
            else:
                dropped += 1

    updates = run(WindowAggregate("s", windows, COUNT), *(("k", "v", time) for time in times))
    closes = close_context(size)
    run(on_close(windows), *(("k", "v", time) for time in times), context=closes)
    finals = {start: value for _, start, _, value, _ in results(closes)}

    assert expected == {start: value for _, start, _, value, _ in results(updates)}
    assert dropped == len(updates.dropped) == len(closes.dropped)
    assert len(finals) == len(results(closes))
    assert {start: n for start, n in expected.items() if start + size <= observed - grace} == finals
