"""Joins by repartitioned rows give the relational join and right totals in any order of tasks and of flushes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from pykstreams import Grouped, KTable, Materialized, Serdes, StreamsBuilder
from pykstreams.errors import StreamsError
from pykstreams.processors import StoredView
from pykstreams.serdes import CombinedKey, CombinedKeySerde
from tests.simulation.cluster import Sent
from tests.simulation.schedules import Join, check

ONE, MANY, ITEMS = "customers", "orders", "items"
PARTITIONS = {ONE: 3, MANY: 2}
COMBINED = CombinedKeySerde(Serdes.string(), Serdes.string())
Tables = Mapping[str, Mapping[str, str]]


def reference(value: str) -> str | None:
    return value.partition("|")[0] or None


def references(value: str) -> list[str]:
    return list(value.partition("|")[0])


def both(one: Any, many: Any) -> str:
    return f"{one}+{many}"


def draw(random: Random) -> list[Sent]:
    """Quick changes of few rows: references change, vanish and come back, and so do rows of both sides."""
    sent = []
    for number in range(random.randint(10, 40)):
        if random.random() < 0.35:
            value = None if random.random() < 0.4 else f"C{number}"
            sent.append(Sent(ONE, random.choice("xyz"), value, number))
        else:
            text = f"{random.choice(['x', 'y', 'z', 'xy', 'yz', 'xyzx', ''])}|{random.randint(0, 2)}"
            value = None if random.random() < 0.15 else text
            sent.append(Sent(MANY, random.choice("abcd"), value, number))
    return sent


def tables(builder: StreamsBuilder) -> tuple[KTable[str, str], KTable[str, str]]:
    return builder.table(ONE), builder.table(MANY)


def pairs(rows: Tables) -> dict[CombinedKey[str, str], str]:
    """The relational one-to-many join."""
    one = rows.get(ONE, {})
    return {
        CombinedKey(found, key): both(one[found], row)
        for key, row in rows.get(MANY, {}).items()
        if (found := reference(row) or "") in one
    }


def all_pairs(rows: Tables, *, left: bool) -> dict[CombinedKey[str, str], str]:
    """The relational join by many-valued foreign keys."""
    one = rows.get(ONE, {})
    return {
        CombinedKey(found, key): both(one.get(found), row)
        for key, row in rows.get(MANY, {}).items()
        for found in references(row)
        if left or found in one
    }


def totals(rows: Mapping[CombinedKey[str, str], str]) -> dict[str, int]:
    """How many rows of a join have each value of the many."""
    return dict(Counter(value.rpartition("|")[2] for value in rows.values()))


def checked(define: Any, expected: Any) -> None:
    check(Join(define, PARTITIONS, draw, expected))


def test_one_to_many_join_equals_the_relational_join() -> None:
    def define(builder: StreamsBuilder) -> None:
        one, many = tables(builder)
        one.one_to_many_join(many, both, key_extractor=reference, materialized="result")

    checked(define, pairs)


def test_result_without_a_store_can_be_read_and_stored_further_down() -> None:
    def define(builder: StreamsBuilder) -> None:
        one, many = tables(builder)
        joined = one.one_to_many_join(many, both, key_extractor=reference)
        joined.map_values(str.upper, materialized=Materialized("result", key_serde=COMBINED))

    checked(define, lambda rows: {key: value.upper() for key, value in pairs(rows).items()})


def counted(joined: KTable[Any, str]) -> None:
    grouped = joined.group_by(lambda key, value: (value.rpartition("|")[2], value), Grouped(key_serde=Serdes.string()))
    grouped.count(materialized="counts").filter(
        lambda key, count: count > 0, materialized=Materialized("result", value_serde=Serdes.long())
    )


def test_aggregation_of_a_result_without_a_store_has_right_totals() -> None:
    def define(builder: StreamsBuilder) -> None:
        one, many = tables(builder)
        counted(one.one_to_many_join(many, both, key_extractor=reference))

    checked(define, lambda rows: totals(pairs(rows)))


def test_retraction_takes_exactly_what_was_added() -> None:
    """Each group keeps its values; taking away one that was never added would raise."""

    def define(builder: StreamsBuilder) -> None:
        one, many = tables(builder)
        joined = one.one_to_many_join(many, both, key_extractor=reference)
        grouped = joined.group_by(
            lambda key, value: (value.rpartition("|")[2], value), Grouped(key_serde=Serdes.string())
        )
        added = grouped.aggregate(
            str, lambda key, value, kept: f"{kept}{value};", lambda key, value, kept: without(kept, value)
        )
        added.filter(lambda key, kept: kept != "").map_values(
            lambda kept: "".join(sorted(kept.split(";"))), materialized="result"
        )

    def without(kept: str, value: str) -> str:
        assert f"{value};" in kept, f"{value!r} is taken from {kept!r}, where it is not"
        return kept.replace(f"{value};", "", 1)

    def expected(rows: Tables) -> dict[str, str]:
        groups: dict[str, list[str]] = {}
        for value in pairs(rows).values():
            groups.setdefault(value.rpartition("|")[2], []).append(value)
        return {group: "".join(sorted(values)) for group, values in groups.items()}

    checked(define, expected)


def test_join_by_many_foreign_keys_equals_the_relational_join() -> None:
    def define(builder: StreamsBuilder) -> None:
        one, many = tables(builder)
        many.join(one, lambda row, other: both(other, row), foreign_keys_extractor=references, materialized="result")

    checked(define, lambda rows: all_pairs(rows, left=False))


def test_left_join_by_many_foreign_keys_equals_the_relational_join() -> None:
    def define(builder: StreamsBuilder) -> None:
        one, many = tables(builder)
        many.left_join(
            one, lambda row, other: both(other, row), foreign_keys_extractor=references, materialized="result"
        )

    checked(define, lambda rows: all_pairs(rows, left=True))


def test_aggregation_of_a_left_join_by_many_foreign_keys_has_right_totals() -> None:
    def define(builder: StreamsBuilder) -> None:
        one, many = tables(builder)
        counted(many.left_join(one, lambda row, other: both(other, row), foreign_keys_extractor=references))

    checked(define, lambda rows: totals(all_pairs(rows, left=True)))


def draw_three(random: Random) -> list[Sent]:
    """Rows of a third table, which refer to rows of the join by both of their keys."""
    sent = draw(random)
    for number in range(random.randint(5, 20)):
        value = None if random.random() < 0.2 else f"{random.choice('xyz')}{random.choice('abcd')}|i{number}"
        sent.insert(random.randint(0, len(sent)), Sent(ITEMS, random.choice("pq"), value, number))
    return sent


def test_rows_that_refer_to_rows_of_such_a_join() -> None:
    def define(builder: StreamsBuilder) -> None:
        one, many = tables(builder)
        items: KTable[str, str] = builder.table(ITEMS)
        orders = one.one_to_many_join(many, both, key_extractor=reference)
        lines = orders.one_to_many_join(
            items, lambda order, item: f"{item}|{order}", key_extractor=lambda item: CombinedKey(item[0], item[1])
        )
        counted(lines)

    def expected(rows: Tables) -> dict[str, int]:
        orders = pairs(rows)
        found = (orders.get(CombinedKey(item[0], item[1])) for item in rows.get(ITEMS, {}).values())
        return dict(Counter(order.rpartition("|")[2] for order in found if order is not None))

    check(Join(define, {**PARTITIONS, ITEMS: 4}, draw_three, expected))


def test_reading_what_a_cache_holds_back_takes_away_what_was_never_added(monkeypatch: pytest.MonkeyPatch) -> None:
    """Why the referred table is read as it was last handed on."""
    monkeypatch.setattr(StoredView, "as_forwarded", lambda view: view)

    with pytest.raises(StreamsError, match="where it is not"):
        test_retraction_takes_exactly_what_was_added()
