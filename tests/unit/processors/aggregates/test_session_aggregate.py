"""Session windows: what merges, what is taken back and when, times, nulls, late records, emission on close."""

from __future__ import annotations

from typing import Any

import pytest

from pykstreams.core.errors import ProcessingError
from pykstreams.core.settings.keys import EMIT_INTERVAL_OF_WINDOWS
from pykstreams.core.types import VR, K, V
from pykstreams.core.windows import EmitStrategy, SessionWindows, Window, Windowed
from pykstreams.processors import COUNT_OF_SESSION, SessionAggregate, SessionAggregation, reducing_sessions
from tests.unit.processors.fakes import FakeOperatorContext
from tests.unit.processors.store_fakes import FakeSessionStore

HEADERS = (("trace", b"1"),)
TEXT: SessionAggregation[str, str, str] = SessionAggregation(
    lambda: ">",
    lambda key, value, aggregate: None if value == "clear" else f"{aggregate}{value}",
    lambda key, aggregate, other: f"{aggregate}({other})",
)
CLOSE = EmitStrategy.ON_WINDOW_CLOSE
TEN = SessionWindows(10)


def run(
    operator: SessionAggregate[K, V, VR], *records: tuple[Any, Any, int], context: FakeOperatorContext | None = None
) -> FakeOperatorContext:
    context = context or FakeOperatorContext(s=FakeSessionStore())
    context.processing.app_configs = {EMIT_INTERVAL_OF_WINDOWS: 0}
    process = context.start(operator)
    for record in records:
        process(*record, HEADERS)
    return context


def results(context: FakeOperatorContext, child: str = "child") -> list[tuple[Any, ...]]:
    """(key, start, end, new value, timestamp) of what a child got."""
    return [
        (windowed.key, windowed.window.start, windowed.window.end, value[0], timestamp)
        for windowed, value, timestamp, _ in context.received[child]
    ]


def test_a_first_record_is_a_session_of_its_own() -> None:
    got = run(SessionAggregate("s", TEN, TEXT), ("a", "x", 5))

    assert [("a", 5, 5, ">x", 5)] == results(got)


def test_a_session_that_grows_is_taken_back_before_the_longer_one_is_forwarded() -> None:
    got = run(SessionAggregate("s", TEN, TEXT), ("a", "x", 5), ("a", "y", 15))

    assert [("a", 5, 5, ">x", 5), ("a", 5, 5, None, 5), ("a", 5, 15, ">(>x)y", 15)] == results(got)


def test_a_record_inside_a_session_takes_it_back_and_hands_it_on_again() -> None:
    got = run(SessionAggregate("s", TEN, COUNT_OF_SESSION), ("a", "x", 5), ("a", "x", 12), ("a", "x", 7))

    assert [("a", 5, 12, None, 12), ("a", 5, 12, 3, 12)] == results(got)[-2:]


def test_a_record_at_the_time_of_a_session_of_one_record_takes_nothing_back() -> None:
    got = run(SessionAggregate("s", TEN, COUNT_OF_SESSION), ("a", "x", 5), ("a", "x", 5))

    assert [("a", 5, 5, 1, 5), ("a", 5, 5, 2, 5)] == results(got)


def test_a_record_between_sessions_merges_them_in_order_of_time() -> None:
    windows = SessionWindows(10, grace=20)
    got = run(SessionAggregate("s", windows, TEXT), ("a", "x", 20), ("a", "z", 0), ("a", "y", 10))

    assert [
        ("a", 20, 20, ">x", 20),
        ("a", 0, 0, ">z", 0),
        ("a", 0, 0, None, 0),
        ("a", 20, 20, None, 20),
        ("a", 0, 20, ">(>z)(>x)y", 20),
    ] == results(got)


@pytest.mark.parametrize(("time", "merges"), [(15, True), (16, False)])
def test_the_gap_is_inclusive(time: int, merges: bool) -> None:
    got = run(SessionAggregate("s", TEN, COUNT_OF_SESSION), ("a", "x", 5), ("a", "x", time))

    assert merges is (("a", 5, time, 2, time) in results(got))


def test_sessions_of_other_keys_are_left_alone() -> None:
    got = run(SessionAggregate("s", TEN, COUNT_OF_SESSION), ("a", "x", 5), ("b", "x", 6))

    assert [("a", 5, 5, 1, 5), ("b", 6, 6, 1, 6)] == results(got)


def test_reducing_starts_with_the_first_value_and_merges_as_it_reduces() -> None:
    windows = SessionWindows(10, grace=20)
    operator = SessionAggregate("s", windows, reducing_sessions(lambda aggregate, value: f"{aggregate}-{value}"))
    got = run(operator, ("a", "x", 20), ("a", "z", 0), ("a", "y", 10))

    assert ("a", 0, 20, "z-x-y", 20) == results(got)[-1]


def test_a_null_key_is_dropped_and_a_null_value_is_not() -> None:
    got = run(SessionAggregate("s", TEN, COUNT_OF_SESSION), (None, "x", 90), ("a", None, 2))

    assert [("a", 2, 2, 1, 2)] == results(got)
    assert ["the key of a record to aggregate is null"] == got.dropped


def test_results_have_no_headers() -> None:
    got = run(SessionAggregate("s", TEN, TEXT), ("a", "x", 5), ("a", "y", 6))

    assert {()} == {headers for *_, headers in got.forwarded}


def test_old_values_are_those_of_sessions_taken_back_and_never_of_the_merged_one() -> None:
    got = run(SessionAggregate("s", TEN, COUNT_OF_SESSION, True), ("a", "x", 5), ("a", "y", 6))

    assert [(1, None, True), (None, 1, True), (2, None, True)] == [value for _, value, *_ in got.forwarded]


def test_old_values_are_left_out_unless_asked_for() -> None:
    got = run(SessionAggregate("s", TEN, COUNT_OF_SESSION), ("a", "x", 5), ("a", "y", 6))

    assert [(1, None, True), (None, None, True), (2, None, True)] == [value for _, value, *_ in got.forwarded]


def test_none_as_the_result_removes_the_session_and_is_forwarded() -> None:
    got = run(SessionAggregate("s", TEN, TEXT), ("a", "x", 5), ("a", "clear", 6), ("a", "y", 7))

    assert [("a", 5, 5, None, 5), ("a", 5, 6, None, 6), ("a", 7, 7, ">y", 7)] == results(got)[1:]


def test_with_a_cache_the_flush_forwards_and_the_operator_does_not() -> None:
    store = FakeSessionStore(cached=True)
    got = run(SessionAggregate("s", TEN, COUNT_OF_SESSION, True), ("a", "x", 1), context=FakeOperatorContext(s=store))

    assert [] == got.forwarded
    assert store.sends_old_values is True
    assert store.listener is not None
    store.listener(Windowed("a", Window(1, 1)), (1, None, True), 1, HEADERS)
    assert [("a", 1, 1, 1, 1)] == results(got)


@pytest.mark.parametrize(("late", "taken"), [(14, True), (21, True), (22, False)])
def test_a_record_is_late_when_its_session_ended_more_than_gap_and_grace_ago(late: int, taken: bool) -> None:
    got = run(SessionAggregate("s", SessionWindows(10, grace=6), COUNT_OF_SESSION), ("b", "x", late), ("a", "x", 5))

    assert taken is (("a", 5, 5, 1, 5) in results(got))
    assert [] == got.dropped if taken else len(got.dropped) == 1


def test_a_late_record_that_joins_an_open_session_is_taken() -> None:
    windows = SessionWindows(10)
    got = run(SessionAggregate("s", windows, COUNT_OF_SESSION), ("a", "x", 15), ("b", "x", 25), ("a", "y", 5))

    assert ("a", 5, 15, 2, 15) == results(got)[-1]
    assert [] == got.dropped


def test_late_records_leave_by_their_child_as_they_came_and_by_no_other() -> None:
    context = FakeOperatorContext(children=("table", "late"), s=FakeSessionStore())
    run(SessionAggregate("s", TEN, TEXT, late_child="late"), ("a", "x", 50), ("b", "y", 5), context=context)

    assert [("a", 50, 50, ">x", 50)] == results(context, "table")
    assert [("b", "y", 5, HEADERS)] == context.received["late"]
    assert 1 == len(context.dropped)


def test_an_error_of_the_store_is_one_of_this_node_with_its_record() -> None:
    store = FakeSessionStore()
    store.broken = OSError("disk")
    got = run(SessionAggregate("s", TEN, TEXT), ("a", "x", 5), context=FakeOperatorContext(s=store))

    assert [("disk", "a", "x", 5, HEADERS)] == [(str(error), *rest) for error, *rest in got.failed]
    assert [] == got.forwarded


def test_when_the_aggregator_fails_the_sessions_to_merge_are_already_taken_back() -> None:
    def fails_on_bad(key: Any, value: Any, count: int) -> int:
        if value == "bad":
            raise ZeroDivisionError("aggregator")
        return count + 1

    aggregation = SessionAggregation(lambda: 0, fails_on_bad, lambda key, count, other: count + other)
    got = run(SessionAggregate("s", TEN, aggregation), ("a", "x", 5), ("a", "bad", 6), ("a", "y", 7))

    assert ["aggregator"] == [str(error) for error, *_ in got.failed]
    assert [("a", 5, 5, 1, 5), ("a", 5, 5, None, 5), ("a", 7, 7, 1, 7)] == results(got)


def test_an_error_of_a_child_passes_through() -> None:
    context = FakeOperatorContext(failing=True, s=FakeSessionStore())
    context.child_error = ProcessingError("below", node="CHILD")

    with pytest.raises(ProcessingError, match="below"):
        run(SessionAggregate("s", TEN, TEXT), ("a", "x", 5), context=context)

    assert [] == context.failed


def test_on_close_a_session_is_forwarded_once_with_the_headers_of_the_record_that_closed_it() -> None:
    operator = SessionAggregate("s", SessionWindows(10, grace=5), COUNT_OF_SESSION, emit_strategy=CLOSE)
    got = run(operator, ("a", "x", 5), ("a", "x", 8), ("b", "y", 23), ("b", "y", 24), ("b", "y", 60))

    assert [("a", 5, 8, 2, 8), ("b", 23, 24, 2, 24)] == results(got)
    assert HEADERS == got.forwarded[0][3]
    assert got.metadata.get("s") == 45


def test_on_close_the_session_that_ends_at_the_close_time_stays_open() -> None:
    operator = SessionAggregate("s", TEN, COUNT_OF_SESSION, emit_strategy=CLOSE)

    assert [] == results(run(operator, ("a", "x", 5), ("b", "y", 15)))
    assert [("a", 5, 5, 1, 5)] == results(run(operator, ("a", "x", 5), ("b", "y", 16)))


def test_on_close_a_late_record_still_moves_nothing_and_closes_nothing_twice() -> None:
    operator = SessionAggregate("s", TEN, COUNT_OF_SESSION, emit_strategy=CLOSE)
    got = run(operator, ("a", "x", 5), ("b", "y", 40), ("a", "late", 6))

    assert [("a", 5, 5, 1, 5)] == results(got)
    assert 1 == len(got.dropped)


def test_on_close_a_restarted_operator_goes_on_from_the_last_emission() -> None:
    store = FakeSessionStore()
    store.contents = {("a", 5, 5): 1, ("b", 30, 30): 1}
    context = FakeOperatorContext(s=store)
    context.metadata.put("s", 30)
    run(SessionAggregate("s", TEN, COUNT_OF_SESSION, emit_strategy=CLOSE), ("c", "x", 50), context=context)

    assert [("b", 30, 30, 1, 30)] == results(context)
