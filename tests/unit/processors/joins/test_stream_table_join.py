"""Join of a stream with a table."""

from __future__ import annotations

from typing import Any

import pytest

from pykstreams.processors import StoredView, StreamTableJoin
from tests.unit.processors.fakes import FakeOperatorContext, FakeStore

HEADERS = (("trace", b"1"),)
DROPPED = "the value of a record, or the key to join it by, is null"


def join(value: Any, other: Any) -> str:
    return f"{value}+{other}"


def joined(key: Any, value: Any, **options: Any) -> FakeOperatorContext:
    """What one record of time 5 gives where the table has a row ``a``: ``x`` of time 9."""
    store = FakeStore()
    store.rows["a"] = ("x", 9)
    context = FakeOperatorContext(s=store)
    operator: StreamTableJoin[str, str, str, str] = StreamTableJoin(
        StoredView("s"), **{"joiner": join, "left": False, **options}
    )
    context.start(operator)(key, value, 5, HEADERS)
    return context


def first_letter(key: Any, value: Any) -> Any:
    return value[0] if value else None


def test_result_has_the_key_the_timestamp_and_the_headers_of_the_stream_record() -> None:
    assert joined("a", "v").forwarded == [("a", "v+x", 5, HEADERS)]


@pytest.mark.parametrize("selector", [None, lambda key, value: key])
def test_inner_join_gives_nothing_without_a_row(selector: Any) -> None:
    context = joined("b", "v", key_selector=selector)

    assert context.forwarded == []
    assert context.dropped == []


@pytest.mark.parametrize("selector", [None, lambda key, value: key])
def test_left_join_goes_on_without_a_row(selector: Any) -> None:
    assert joined("b", "v", left=True, key_selector=selector).forwarded == [("b", "v+None", 5, HEADERS)]


@pytest.mark.parametrize("selector", [None, lambda key, value: "a"])
def test_joiner_gets_the_key_of_the_record_if_it_wants_it(selector: Any) -> None:
    context = joined("a", "v", joiner=lambda *parts: parts, with_key=True, key_selector=selector)

    assert context.forwarded == [("a", ("a", "v", "x"), 5, HEADERS)]


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("selector", [None, lambda key, value: key])
def test_record_without_value_is_dropped(left: bool, selector: Any) -> None:
    context = joined("a", None, left=left, key_selector=selector)

    assert context.dropped == [DROPPED]
    assert context.forwarded == []


def test_inner_join_drops_a_record_without_key() -> None:
    context = joined(None, "v")

    assert context.dropped == [DROPPED]
    assert context.forwarded == []


def test_left_join_goes_on_without_key() -> None:
    assert joined(None, "v", left=True).forwarded == [(None, "v+None", 5, HEADERS)]


def test_selected_key_is_looked_up_and_the_records_own_is_kept() -> None:
    assert joined("k", "ab", key_selector=first_letter).forwarded == [("k", "ab+x", 5, HEADERS)]


def test_selected_key_serves_records_that_have_none() -> None:
    assert joined(None, "ab", key_selector=first_letter).forwarded == [(None, "ab+x", 5, HEADERS)]


def test_inner_join_drops_a_record_whose_selected_key_is_null() -> None:
    assert joined("a", "", key_selector=first_letter).dropped == [DROPPED]


def test_left_join_goes_on_where_the_selected_key_is_null() -> None:
    assert joined("a", "", left=True, key_selector=first_letter).forwarded == [("a", "+None", 5, HEADERS)]


def test_joiner_may_give_nothing_as_value() -> None:
    assert joined("a", "v", joiner=lambda value, other: None).forwarded == [("a", None, 5, HEADERS)]


@pytest.mark.parametrize("selector", [None, lambda key, value: key])
def test_error_of_the_joiner_is_handed_over_with_the_record(selector: Any) -> None:
    context = joined("a", "v", joiner=lambda value, other: value.missing, key_selector=selector)

    ((error, *record),) = context.failed
    assert isinstance(error, AttributeError)
    assert record == ["a", "v", 5, HEADERS]
    assert context.forwarded == []


def test_error_of_the_selector_is_handed_over_also_without_value() -> None:
    context = joined("a", None, key_selector=lambda key, value: value[0])

    assert isinstance(context.failed[0][0], TypeError)
    assert context.dropped == []
