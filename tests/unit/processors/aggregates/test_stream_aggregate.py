"""Count, reduce and aggregate of a stream: results, timestamps, nulls, old values, caches."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykstreams.core.errors import ProcessingError
from pykstreams.processors import StreamAggregate, StreamCount, StreamReduce
from tests.unit.processors.fakes import FakeOperatorContext, FakeStore

HEADERS = (("trace", b"1"),)


def concat(key: str, value: str, aggregate: str) -> str | None:
    return None if value == "clear" else f"{aggregate}{value}"


def aggregate(send_old_values: bool = False) -> StreamAggregate[str, str, str]:
    return StreamAggregate("s", lambda: ">", concat, send_old_values)


def reduce(send_old_values: bool = False) -> StreamReduce[str]:
    return StreamReduce("s", lambda a, b: None if b == "clear" else a + b, send_old_values)


def count(send_old_values: bool = False) -> StreamCount:
    return StreamCount("s", send_old_values)


OPERATORS = pytest.mark.parametrize("make", [aggregate, reduce, count], ids=["aggregate", "reduce", "count"])


def run(operator: Any, *records: tuple[Any, Any, int], store: FakeStore | None = None) -> FakeOperatorContext:
    context = FakeOperatorContext(s=store or FakeStore())
    process = context.start(operator)
    for key, value, timestamp in records:
        process(key, value, timestamp, HEADERS)
    return context


def test_aggregate_starts_from_the_initializer() -> None:
    context = run(aggregate(), ("a", "x", 5), ("a", "y", 6), ("b", "z", 7))

    assert context.forwarded == [
        ("a", (">x", None, True), 5, HEADERS),
        ("a", (">xy", None, True), 6, HEADERS),
        ("b", (">z", None, True), 7, HEADERS),
    ]


def test_aggregate_with_old_values_sends_the_initial_one_for_a_new_key() -> None:
    context = run(aggregate(True), ("a", "x", 5), ("a", "y", 6))

    assert [change for _, change, *_ in context.forwarded] == [(">x", ">", True), (">xy", ">x", True)]


def test_reduce_starts_from_the_first_value() -> None:
    context = run(reduce(), ("a", "x", 5), ("a", "y", 6))

    assert context.forwarded == [
        ("a", ("x", None, True), 5, HEADERS),
        ("a", ("xy", None, True), 6, HEADERS),
    ]


def test_reduce_with_old_values_sends_none_for_a_new_key() -> None:
    context = run(reduce(True), ("a", "x", 5), ("a", "y", 6))

    assert [change for _, change, *_ in context.forwarded] == [("x", None, True), ("xy", "x", True)]


def test_count_counts_from_one() -> None:
    context = run(count(), ("a", "x", 5), ("a", "y", 6), ("b", "x", 7))

    assert [(key, change) for key, change, *_ in context.forwarded] == [
        ("a", (1, None, True)),
        ("a", (2, None, True)),
        ("b", (1, None, True)),
    ]


@OPERATORS
def test_result_carries_the_larger_of_record_and_stored_timestamp(make: Any) -> None:
    store = FakeStore()
    context = run(make(), ("a", "x", 9), ("a", "y", 3), ("a", "z", 12), store=store)

    assert [timestamp for _, _, timestamp, _ in context.forwarded] == [9, 9, 12]
    assert store.rows["a"][1] == 12


@OPERATORS
@pytest.mark.parametrize(("key", "value"), [(None, "x"), ("a", None), (None, None)])
def test_record_without_key_or_value_is_dropped(make: Any, key: Any, value: Any) -> None:
    store = FakeStore()
    context = run(make(), (key, value, 5), store=store)

    assert context.dropped == ["the key or the value of a record to aggregate is null"]
    assert (context.forwarded, store.rows) == ([], {})


@pytest.mark.parametrize(("make", "restarted"), [(aggregate, ">z"), (reduce, "z")])
def test_result_of_none_deletes_the_key_and_the_next_record_starts_afresh(make: Any, restarted: str) -> None:
    context = run(make(True), ("a", "x", 9), ("a", "clear", 5), ("a", "z", 6))

    (_, first, _, _), (_, second, deleted_at, _), (_, third, restarted_at, _) = context.forwarded
    assert second == (None, first[0], True)
    assert third[0] == restarted
    assert (deleted_at, restarted_at) == (9, 6), "the deleted key has no timestamp any more"


@OPERATORS
def test_change_tells_when_it_is_not_the_newest_of_its_key(make: Any) -> None:
    store = FakeStore()
    store.newest = False

    assert run(make(), ("a", "x", 5), store=store).forwarded[0][1][2] is False


@OPERATORS
@pytest.mark.parametrize("send_old_values", [False, True])
def test_with_a_cache_only_the_flush_forwards_and_keeps_the_last_change(make: Any, send_old_values: bool) -> None:
    store = FakeStore(cached=True)
    store.rows["a"] = {aggregate: (">", 1), reduce: (">", 1), count: (0, 1)}[make]
    context = run(make(send_old_values), ("a", "x", 5), ("a", "y", 6), store=store)

    assert context.forwarded == []
    assert store.sends_old_values is send_old_values
    store.flush(HEADERS)
    new = {aggregate: ">xy", reduce: ">xy", count: 2}[make]
    old = {aggregate: ">", reduce: ">", count: 0}[make] if send_old_values else None
    assert context.forwarded == [("a", (new, old, True), 6, HEADERS)]


@OPERATORS
def test_store_that_fails_is_reported_with_the_record(make: Any) -> None:
    store = FakeStore()
    store.broken = OSError("disk")
    context = run(make(), ("a", "x", 5), store=store)

    assert context.failed == [(store.broken, "a", "x", 5, HEADERS)]
    assert context.forwarded == []


@OPERATORS
def test_error_of_a_node_below_a_flush_within_a_write_passes_unchanged(make: Any) -> None:
    """A full cache evicts while the operator writes: the node below has reported its error already."""
    store = FakeStore()
    store.broken = ProcessingError("reported below", node="OTHER")

    with pytest.raises(ProcessingError, match="reported below"):
        run(make(), ("a", "x", 5), store=store)


def test_function_that_raises_leaves_the_store_alone() -> None:
    store = FakeStore()
    store.rows["a"] = (">x", 9)
    operator: StreamAggregate[str, str, Any] = StreamAggregate(
        "s", lambda: ">", lambda key, value, so_far: so_far.missing
    )
    context = run(operator, ("a", "y", 5), store=store)

    ((error, *record),) = context.failed
    assert isinstance(error, AttributeError)
    assert record == ["a", "y", 5, HEADERS], "the record as it came, not the result's timestamp"
    assert store.rows == {"a": (">x", 9)}
    assert context.forwarded == []


RECORDS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", None]),
        st.sampled_from(["x", "y", None]),
        st.integers(min_value=0, max_value=50),
    ),
    max_size=30,
)


@given(records=RECORDS, send_old_values=st.booleans(), cached=st.booleans())
def test_count_equals_an_aggregate_from_zero_by_one(
    records: list[tuple[Any, Any, int]], send_old_values: bool, cached: bool
) -> None:
    by_one: StreamAggregate[str, object, int] = StreamAggregate(
        "s", lambda: 0, lambda key, value, so_far: so_far + 1, send_old_values
    )
    stores = FakeStore(cached=cached), FakeStore(cached=cached)
    expected = run(by_one, *records, store=stores[0])
    counted = run(StreamCount("s", send_old_values), *records, store=stores[1])
    for store in stores:
        store.flush()

    assert counted.forwarded == expected.forwarded
    assert counted.dropped == expected.dropped
    assert stores[1].rows == stores[0].rows
