"""Grouping a table: which changes reach which group, and what adder and subtractor make of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykstreams.core.errors import StreamsError
from pykstreams.processors import TableAggregate, TableReduce, TableRepartitionMap
from tests.unit.processors.fakes import FakeOperatorContext, FakeStore

HEADERS = (("trace", b"1"),)


def run(operator: Any, *records: tuple[Any, Any, int], store: FakeStore | None = None) -> FakeOperatorContext:
    context = FakeOperatorContext(s=store or FakeStore())
    process = context.start(operator)
    for key, value, timestamp in records:
        process(key, value, timestamp, HEADERS)
    return context


def changes(context: FakeOperatorContext) -> list[Any]:
    return [(key, change) for key, change, *_ in context.forwarded]


def by_pair(key: Any, value: Any) -> Any:
    return value


def adding(send_old_values: bool = False) -> TableAggregate[str, str, str]:
    return TableAggregate(
        "s",
        lambda: ">",
        lambda key, value, so_far: f"{so_far}+{value}",
        lambda key, value, so_far: None if value == "clear" else f"{so_far}-{value}",
        send_old_values,
    )


def reducing(send_old_values: bool = False) -> TableReduce[str]:
    return TableReduce(
        "s",
        lambda so_far, value: f"{so_far}+{value}",
        lambda so_far, value: None if value == "clear" else f"{so_far}-{value}",
        send_old_values,
    )


BOTH = pytest.mark.parametrize("make", [adding, reducing], ids=["aggregate", "reduce"])


def test_row_that_stays_in_its_group_is_one_change() -> None:
    context = run(TableRepartitionMap(by_pair), ("k", (("g", 2), ("g", 1), False), 5))

    assert context.forwarded == [("g", (2, 1, False), 5, HEADERS)]


def test_row_that_moves_leaves_its_old_group_first() -> None:
    context = run(TableRepartitionMap(by_pair), ("k", (("h", 2), ("g", 1), False), 5))

    assert context.forwarded == [
        ("g", (None, 1, False), 5, HEADERS),
        ("h", (2, None, False), 5, HEADERS),
    ]


def test_groups_of_equal_keys_of_different_types_are_different() -> None:
    context = run(TableRepartitionMap(by_pair), ("k", ((1, "new"), (True, "old"), True), 5))

    assert changes(context) == [(True, (None, "old", True)), (1, ("new", None, True))]


@pytest.mark.parametrize("nothing", [None, (None, 1), ("g", None), (None, None)])
def test_row_without_group_or_value_is_left_out(nothing: Any) -> None:
    """The selector gives nothing for the one side; the other side goes on alone."""
    selector: TableRepartitionMap[str, str] = TableRepartitionMap(
        lambda key, value: nothing if value == "out" else ("g", value)
    )
    context = run(
        selector,
        ("k", ("in", "out", True), 5),
        ("k", ("out", "in", True), 6),
        ("k", ("out",) * 2 + (True,), 7),
    )

    assert changes(context) == [("g", ("in", None, True)), ("g", (None, "in", True))]
    assert context.failed == []


def test_selector_does_not_see_null_values() -> None:
    seen: list[Any] = []

    def selector(key: Any, value: Any) -> tuple[Any, Any]:
        seen.append(value)
        return key, value

    context = run(
        TableRepartitionMap(selector),
        ("k", (1, None, True), 5),
        ("k", (None, 1, True), 6),
        ("k", (None, None, True), 7),
    )

    assert seen == [1, 1]
    assert changes(context) == [("k", (1, None, True)), ("k", (None, 1, True))]


def test_selector_sees_the_new_value_before_the_old_one() -> None:
    seen: list[Any] = []

    def selector(key: Any, value: Any) -> tuple[Any, Any]:
        seen.append(value)
        return key, value

    run(TableRepartitionMap(selector), ("k", ("new", "old", True), 5))

    assert seen == ["new", "old"]


def test_null_key_of_a_row_is_an_error_of_the_node() -> None:
    context = run(TableRepartitionMap(by_pair), (None, (("g", 1), None, True), 5))

    ((error, *record),) = context.failed
    assert isinstance(error, StreamsError)
    assert str(error) == "the key of a row to group is null; rows of a table must have a key"
    assert record == [None, (("g", 1), None, True), 5, HEADERS]
    assert context.forwarded == []


@pytest.mark.parametrize("result", [3, "ab"])
def test_selector_that_gives_no_pair_is_reported(result: Any) -> None:
    context = run(TableRepartitionMap(lambda key, value: result), ("k", (1, None, True), 5))

    ((error, *_),) = context.failed
    assert f"returned {result!r}; expected a pair (key, value)" in str(error)


def test_selector_that_raises_for_the_old_value_sends_nothing() -> None:
    operator: TableRepartitionMap[str, int] = TableRepartitionMap(lambda key, value: (key, 1 // value))
    context = run(operator, ("k", (1, 0, True), 5))

    assert [type(error) for error, *_ in context.failed] == [ZeroDivisionError]
    assert context.forwarded == []


def test_aggregate_subtracts_the_old_value_and_then_adds_the_new_one() -> None:
    context = run(adding(), ("g", ("a", None, True), 5), ("g", ("b", "a", True), 6), ("g", (None, "b", True), 7))

    assert [change[0] for _, change, *_ in context.forwarded] == [">+a", ">+a-a+b", ">+a-a+b-b"]


def test_reduce_subtracts_the_old_value_and_then_adds_the_new_one() -> None:
    context = run(reducing(), ("g", ("a", None, True), 5), ("g", ("b", "a", True), 6), ("g", (None, "b", True), 7))

    assert [change[0] for _, change, *_ in context.forwarded] == ["a", "a-a+b", "a-a+b-b"]


@BOTH
def test_nothing_is_subtracted_from_a_group_that_is_not_there(make: Any) -> None:
    store = FakeStore()
    context = run(make(True), ("g", (None, "a", True), 5), store=store)

    assert context.forwarded == [("g", (None, None, True), 5, HEADERS)]
    assert store.rows == {}


@pytest.mark.parametrize(("make", "restarted"), [(adding, ">+new"), (reducing, "new")])
def test_subtractor_that_returns_none_empties_the_group(make: Any, restarted: str) -> None:
    store = FakeStore()
    store.rows["g"] = ("x", 1)
    store.rows["h"] = ("x", 1)
    context = run(make(True), ("g", ("new", "clear", True), 5), ("h", (None, "clear", True), 6), store=store)

    assert changes(context) == [("g", (restarted, "x", True)), ("h", (None, "x", True))]
    assert store.rows == {"g": (restarted, 5)}


@BOTH
@pytest.mark.parametrize("change", [("a", None, True), (None, "a", True), ("a", "b", True)])
def test_result_carries_the_larger_of_record_and_stored_timestamp(make: Any, change: Any) -> None:
    for stored, expected in ((9, 9), (2, 5)):
        store = FakeStore()
        store.rows["g"] = ("x", stored)

        assert run(make(), ("g", change, 5), store=store).forwarded[0][2] == expected


@BOTH
def test_new_group_carries_the_timestamp_of_the_record(make: Any) -> None:
    assert run(make(), ("g", ("a", "b", True), 5)).forwarded[0][2] == 5


def test_emptied_group_that_starts_again_keeps_the_stored_timestamp() -> None:
    """Both halves of a change count as one step: what was subtracted decides the timestamp."""
    for make in (adding, reducing):
        store = FakeStore()
        store.rows["g"] = ("x", 9)

        assert run(make(), ("g", ("new", "clear", True), 5), store=store).forwarded[0][2] == 9


@BOTH
@pytest.mark.parametrize("send_old_values", [False, True])
def test_old_aggregate_is_sent_on_request(make: Any, send_old_values: bool) -> None:
    store = FakeStore()
    store.rows["g"] = ("x", 1)
    context = run(make(send_old_values), ("g", ("a", None, False), 5), store=store)

    assert changes(context) == [("g", ("x+a", "x" if send_old_values else None, True))]


@BOTH
def test_with_a_cache_only_the_flush_forwards(make: Any) -> None:
    store = FakeStore(cached=True)
    store.rows["g"] = ("x", 1)
    context = run(make(True), ("g", ("a", None, True), 5), ("g", ("b", "a", True), 6), store=store)

    assert context.forwarded == []
    store.flush(HEADERS)
    assert context.forwarded == [("g", ("x+a-a+b", "x", True), 6, HEADERS)]


@BOTH
def test_null_group_is_an_error_of_the_node(make: Any) -> None:
    context = run(make(), (None, ("a", None, True), 5))

    ((error, *record),) = context.failed
    assert isinstance(error, StreamsError)
    assert str(error) == "the key of a group is null (store 's'); a selector must give every row a key"
    assert record == [None, ("a", None, True), 5, HEADERS]


@BOTH
def test_store_that_fails_is_reported_with_the_change(make: Any) -> None:
    store = FakeStore()
    store.broken = OSError("disk")
    context = run(make(), ("g", ("a", None, True), 5), store=store)

    assert context.failed == [(store.broken, "g", ("a", None, True), 5, HEADERS)]


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["k1", "k2", "k3"]),
        st.none() | st.tuples(st.sampled_from(["g", "h", None]), st.integers(-9, 9)),
    ),
    max_size=30,
)


@given(rows=ROWS)
def test_sum_per_group_equals_the_sum_over_the_table(rows: list[tuple[str, Any]]) -> None:
    """After every row the groups hold what a plain sum over the table gives."""
    table: dict[str, Any] = {}
    store = FakeStore()
    grouped = FakeOperatorContext()
    group = grouped.start(TableRepartitionMap(by_pair))
    summed = FakeOperatorContext(s=store).start(
        TableAggregate("s", lambda: 0, lambda key, value, s: s + value, lambda key, value, s: s - value)
    )
    for timestamp, (key, value) in enumerate(rows):
        group(key, (value, table.get(key), True), timestamp, ())
        table[key] = value
        while grouped.forwarded:
            summed(*grouped.forwarded.pop(0))
        sums: dict[str, int] = {}
        for pair in table.values():
            if pair is not None and pair[0] is not None:
                sums[pair[0]] = sums.get(pair[0], 0) + pair[1]

        assert {group: total for group, (total, _) in store.rows.items() if total} == {
            group: total for group, total in sums.items() if total
        }
