"""Tables from records, and filter, map_values and to_stream of tables."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from pykstreams.processors import TableFilter, TableMapValues, TableSource, TableToStream
from tests.unit.processors.fakes import FakeOperatorContext, FakeStore

HEADERS = (("trace", b"1"),)


def run(operator: Any, *records: tuple[Any, Any, int], store: FakeStore | None = None) -> FakeOperatorContext:
    context = FakeOperatorContext(s=store or FakeStore())
    process = context.start(operator)
    for key, value, timestamp in records:
        process(key, value, timestamp, HEADERS)
    return context


def changes(context: FakeOperatorContext) -> list[Any]:
    return [change for _, change, *_ in context.forwarded]


def is_x(key: Any, value: Any) -> bool:
    return bool(value.startswith("x"))


def test_source_without_store_forwards_changes_without_old_value() -> None:
    context = run(TableSource(), ("a", 1, 5), ("a", None, 6))

    assert context.forwarded == [
        ("a", (1, None, True), 5, HEADERS),
        ("a", (None, None, True), 6, HEADERS),
    ]


@pytest.mark.parametrize("send_old_values", [False, True])
def test_source_keeps_the_last_value_and_null_deletes(send_old_values: bool) -> None:
    store = FakeStore()
    context = run(TableSource("s", send_old_values), ("a", 1, 5), ("a", 2, 6), ("a", None, 7), store=store)

    old_values = (None, 1, 2) if send_old_values else (None, None, None)
    assert changes(context) == [
        (1, old_values[0], True),
        (2, old_values[1], True),
        (None, old_values[2], True),
    ]
    assert store.rows == {}


@pytest.mark.parametrize("operator", [TableSource(), TableSource("s"), TableSource("s", True)])
def test_source_drops_records_without_key(operator: TableSource) -> None:
    context = run(operator, (None, 1, 5))

    assert context.dropped == ["the key of a table's record is null"]
    assert context.forwarded == []


@pytest.mark.parametrize("send_old_values", [False, True])
def test_source_takes_an_older_record_in_place_of_the_stored_one(send_old_values: bool) -> None:
    store = FakeStore()
    context = run(TableSource("s", send_old_values), ("a", "late", 9), ("a", "early", 5), store=store)

    assert store.rows == {"a": ("early", 5)}
    assert context.forwarded[1][::2] == ("a", 5)


def test_source_warns_of_an_older_record_where_the_stored_one_is_known(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        run(TableSource("s", True), ("a", 1, 5), ("a", 2, 5), ("a", 3, 4))

    (record,) = caplog.records
    assert record.getMessage() == (
        "NODE: table store 's' takes a record of 4 ms over one of 5 ms "
        "(RecordMetadata(topic='orders', partition=1, offset=7)); "
        "let the records of a key be written in the order of their timestamps"
    )


@pytest.mark.parametrize("send_old_values", [False, True])
def test_source_tells_when_a_change_is_not_the_newest_of_its_key(send_old_values: bool) -> None:
    store = FakeStore()
    store.newest = False

    assert changes(run(TableSource("s", send_old_values), ("a", 1, 5), store=store)) == [(1, None, False)]


def test_filter_turns_rows_that_do_not_pass_into_deletions() -> None:
    context = run(TableFilter(is_x), ("a", ("x1", None, True), 5), ("a", ("y", None, False), 6))

    assert context.forwarded == [
        ("a", ("x1", None, True), 5, HEADERS),
        ("a", (None, None, False), 6, HEADERS),
    ]


def test_filter_with_old_values_filters_both_and_skips_changes_from_nothing_to_nothing() -> None:
    context = run(
        TableFilter(is_x, send_old_values=True),
        ("a", ("y1", None, True), 5),
        ("a", ("x1", "y1", True), 6),
        ("a", ("y2", "x1", False), 7),
        ("a", (None, "y2", True), 8),
    )

    assert [(change, timestamp) for _, change, timestamp, _ in context.forwarded] == [
        (("x1", None, True), 6),
        ((None, "x1", False), 7),
    ]


def test_filter_forwards_changes_from_nothing_to_nothing_while_records_may_be_repeated() -> None:
    context = FakeOperatorContext()
    context.current.replayed = True
    context.start(TableFilter(is_x, send_old_values=True))("a", (None, None, True), 5, HEADERS)

    assert changes(context) == [(None, None, True)]


def test_negated_filter_keeps_null_a_deletion() -> None:
    operator = TableFilter(is_x, negate=True, send_old_values=True)
    context = run(operator, ("a", ("y", None, True), 5), ("a", (None, "y", True), 6))

    assert changes(context) == [("y", None, True), (None, "y", True)]


def test_filter_with_store_writes_every_deletion_where_old_values_are_unknown() -> None:
    store = FakeStore()
    context = run(TableFilter(is_x, store="s"), ("a", ("y", None, True), 5), store=store)

    assert changes(context) == [(None, None, True)]


def test_filter_with_store_takes_the_old_value_from_the_store() -> None:
    store = FakeStore()
    store.rows["a"] = ("x0", 1)
    context = run(
        TableFilter(is_x, store="s", send_old_values=True),
        ("a", ("x1", None, True), 5),
        ("a", ("y", None, True), 6),
        ("a", ("y2", None, True), 7),
        store=store,
    )

    assert changes(context) == [("x1", "x0", True), (None, "x1", True)]
    assert store.rows == {}


def test_map_values_maps_new_values_only_unless_old_ones_are_sent() -> None:
    context = run(TableMapValues(str.upper), ("a", ("x", "w", False), 5), ("a", (None, "x", True), 6))

    assert context.forwarded == [
        ("a", ("X", None, False), 5, HEADERS),
        ("a", (None, None, True), 6, HEADERS),
    ]


def test_map_values_with_old_values_maps_both_and_forwards_changes_from_nothing_to_nothing() -> None:
    context = run(
        TableMapValues(str.upper, send_old_values=True),
        ("a", ("x", "w", False), 5),
        ("a", (None, None, True), 6),
    )

    assert changes(context) == [("X", "W", False), (None, None, True)]


def test_map_values_with_key_sees_the_key() -> None:
    operator: TableMapValues[str, str, str] = TableMapValues(
        lambda key, value: f"{key}{value}", with_key=True, send_old_values=True
    )

    assert changes(run(operator, ("a", ("x", None, True), 5))) == [("ax", None, True)]


@pytest.mark.parametrize("send_old_values", [False, True])
def test_map_values_with_store_keeps_what_it_computed(send_old_values: bool) -> None:
    store = FakeStore()
    operator: TableMapValues[str, str, str] = TableMapValues(str.upper, store="s", send_old_values=send_old_values)
    context = run(operator, ("a", ("x", "ignored", True), 5), ("a", ("y", "x", True), 4), store=store)

    assert changes(context) == [("X", None, True), ("Y", "X" if send_old_values else None, True)]
    assert store.rows == {"a": ("Y", 4)}


def test_stored_tables_tell_the_age_that_their_own_store_gives() -> None:
    store = FakeStore()
    store.newest = False
    context = run(TableMapValues(str.upper, store="s"), ("a", ("x", None, True), 5), store=store)

    assert changes(context) == [("X", None, False)]


@pytest.mark.parametrize("send_old_values", [False, True])
@pytest.mark.parametrize("kind", ["source", "filter", "map_values"])
def test_with_a_cache_only_the_flush_forwards(kind: str, send_old_values: bool) -> None:
    store = FakeStore(cached=True)
    store.rows["a"] = ("x0", 1)
    operator = {
        "source": TableSource("s", send_old_values),
        "filter": TableFilter(is_x, store="s", send_old_values=send_old_values),
        "map_values": TableMapValues(str.lower, store="s", send_old_values=send_old_values),
    }[kind]
    context = run(operator, ("a", "x1" if kind == "source" else ("x1", None, True), 5), store=store)

    assert context.forwarded == []
    store.flush(HEADERS)
    assert context.forwarded == [("a", ("x1", "x0" if send_old_values else None, True), 5, HEADERS)]
    assert store.sends_old_values is send_old_values


@pytest.mark.parametrize("send_old_values", [False, True])
@pytest.mark.parametrize("store", [None, "s"])
def test_function_that_raises_is_reported_with_the_change(store: str | None, send_old_values: bool) -> None:
    kept = FakeStore()
    operator: TableMapValues[str, str, str] = TableMapValues(
        lambda value: value.missing, store=store, send_old_values=send_old_values
    )
    context = run(operator, ("a", ("x", None, True), 5), store=kept)

    ((error, *record),) = context.failed
    assert isinstance(error, AttributeError)
    assert record == ["a", ("x", None, True), 5, HEADERS]
    assert (context.forwarded, kept.rows) == ([], {})


@pytest.mark.parametrize("send_old_values", [False, True])
def test_source_reports_a_store_that_fails(send_old_values: bool) -> None:
    store = FakeStore()
    store.broken = OSError("disk")
    context = run(TableSource("s", send_old_values), ("a", 1, 5), store=store)

    assert context.failed == [(store.broken, "a", 1, 5, HEADERS)]


def test_to_stream_forwards_new_values_and_nulls() -> None:
    context = run(TableToStream(), ("a", ("x", "w", True), 5), ("a", (None, "x", False), 6))

    assert context.forwarded == [("a", "x", 5, HEADERS), ("a", None, 6, HEADERS)]


@pytest.mark.parametrize("negate", [False, True])
def test_filter_reports_a_coroutine_which_is_always_true(negate: bool) -> None:
    async def check(key: object, value: object) -> bool:
        return False

    def unawaited(key: object, value: object) -> Any:
        return check(key, value)

    context = run(TableFilter(unawaited, negate), ("a", ("x", None, True), 5))

    ((error, *_),) = context.failed
    assert "returned <coroutine object" in str(error)
    assert "which is always true; await it in map_values_async" in str(error)
    assert context.forwarded == []
