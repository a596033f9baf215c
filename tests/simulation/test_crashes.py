"""Joins give the relational join although workers die, whatever is left of their state and of their messages."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from pykstreams import KTable, StreamsBuilder
from pykstreams.core.processor import CurrentRecord
from pykstreams.processors.foreign_keys.repartitioned_rows import RepartitionRows
from pykstreams.serdes import CombinedKey
from tests.simulation import test_foreign_key_join as foreign_key
from tests.simulation import test_non_key_joins as non_key
from tests.simulation import test_outer_foreign_key_joins as outer
from tests.simulation import test_repartitioned_row_joins as joins
from tests.simulation.crashes import CrashingCluster
from tests.simulation.schedules import Join, check, schedules

pytestmark = pytest.mark.slow

Define = Callable[[StreamsBuilder, Any], KTable[Any, str]]


def one_to_many(builder: StreamsBuilder, store: Any) -> KTable[Any, str]:
    one, many = joins.tables(builder)
    return one.one_to_many_join(many, joins.both, key_extractor=joins.reference, materialized=store)


def rows_of_rows(builder: StreamsBuilder, store: Any) -> KTable[Any, str]:
    """Items refer to rows of a one-to-many join, so a task both keeps repartitioned rows and is referred to."""
    one, many = joins.tables(builder)
    items: KTable[str, str] = builder.table(joins.ITEMS)
    orders = one.one_to_many_join(many, joins.both, key_extractor=joins.reference)
    return orders.one_to_many_join(
        items, lambda order, item: f"{item}|{order}", key_extractor=order_of, materialized=store
    )


def order_of(item: str) -> CombinedKey[str, str]:
    return CombinedKey(item[0], item[1])


def items_with_orders(rows: joins.Tables) -> dict[Any, str]:
    orders, items = joins.pairs(rows), rows.get(joins.ITEMS, {})
    return {
        CombinedKey(order_of(item), key): f"{item}|{orders[order_of(item)]}"
        for key, item in items.items()
        if order_of(item) in orders
    }


def many_keys(kind: str, builder: StreamsBuilder, store: Any) -> Any:
    one, many = joins.tables(builder)
    return getattr(many, kind)(
        one, lambda row, other: joins.both(other, row), foreign_keys_extractor=joins.references, materialized=store
    )


def foreign(keeps_left: bool, builder: StreamsBuilder, store: Any) -> Any:
    return outer.joined(builder, keeps_left, store)


def by_pairs(kind: str, builder: StreamsBuilder, store: Any) -> Any:
    return non_key.joined(builder, kind, non_key.pair, store)


def written(define: Define, draw: Any, expected: Callable[[Any], dict[Any, Any]], store: str | None) -> Join:
    """A join whose result is also written, with its keys as text."""

    def add(builder: StreamsBuilder) -> None:
        define(builder, store).to_stream(lambda key, value: str(key)).to("out")

    return Join(add, {**outer.PARTITIONS, joins.ITEMS: 4, "out": 2}, draw, expected)


JOINS: dict[str, Callable[[str | None], Join]] = {
    **{
        f"foreign key, {kind}": lambda store, kind=kind, rows=rows: Join(  # type: ignore[misc]
            foreign_key.define(kind, store), foreign_key.PARTITIONS, foreign_key.draw, rows
        )
        for kind, rows in (("join", foreign_key.inner), ("left_join", foreign_key.left))
    },
    "one-to-many": partial(written, one_to_many, joins.draw, joins.pairs),
    "one-to-many, of another": partial(written, rows_of_rows, joins.draw_three, items_with_orders),
    **{
        f"many foreign keys, {kind}": partial(
            written, partial(many_keys, kind), joins.draw, partial(joins.all_pairs, left=kind == "left_join")
        )
        for kind in ("join", "left_join")
    },
    **{
        f"foreign key, {kind}": partial(
            written, partial(foreign, keeps_left), outer.draw, partial(outer.outer, keeps_left=keeps_left)
        )
        for kind, keeps_left in (("right_join", False), ("outer_join", True))
    },
    **{
        f"non-key, {kind}": partial(
            written, partial(by_pairs, kind), outer.draw, partial(non_key.expected, kind=kind, selector=non_key.pair)
        )
        for kind in non_key.KINDS
    },
}


@pytest.mark.parametrize("store", ["result", None], ids=["stored", "not stored"])
@pytest.mark.parametrize("kind", JOINS)
def test_final_table_is_the_relational_join_although_workers_die(kind: str, store: str | None) -> None:
    check(JOINS[kind](store), schedules(37), stored=store is not None, make_cluster=CrashingCluster)


def test_a_row_that_loses_its_foreign_key_and_is_deleted_leaves_no_result_where_its_task_is_handed_over() -> None:
    """The answer to the loss finds another worker, and no row any more, so that its hash is that of none."""
    define, partitions = foreign_key.define("join", None), foreign_key.PARTITIONS
    withdrawals = Join(define, partitions, foreign_key.draw_withdrawals, foreign_key.inner)

    check(withdrawals, schedules(300), stored=False, make_cluster=CrashingCluster)


def test_where_changelogs_do_not_stay_behind_a_row_is_left_where_it_does_not_belong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The table has the new reference of a row already, and the deletion under the old one is lost."""
    monkeypatch.setattr(RepartitionRows, "takes_back", False)

    with pytest.raises(AssertionError, match="seed"):
        check(JOINS["one-to-many"](None), make_cluster=CrashingCluster)


@pytest.mark.parametrize("kind", ["one-to-many", "foreign key, outer_join", "non-key, join"])
def test_where_repeated_records_are_taken_for_new_ones_wrong_rows_are_left(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inputs may be read in another order than before, and what was sent before is not in the state."""
    monkeypatch.setattr(CurrentRecord, "replayed", property(lambda record: False, lambda record, value: None))

    with pytest.raises(AssertionError, match="seed"):
        check(JOINS[kind](None), schedules(450), make_cluster=CrashingCluster)
