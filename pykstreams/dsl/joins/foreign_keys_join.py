"""Joins by many-valued foreign keys: one row for each of the rows that a row refers to, under both keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import methodcaller
from typing import TypeVar

from pykstreams.core.types import KR, V1, V2, VR, K, KeyValueMapper, V, ValueJoiner
from pykstreams.dsl.annotations.inference import value_serde
from pykstreams.dsl.joins.foreign_key_types import check_foreign_keys
from pykstreams.dsl.joins.optional_sides import over_missing_rows
from pykstreams.dsl.joins.repartitioned_join import (
    RepartitionedJoin,
    add_repartitioned_join,
    combined_serde,
)
from pykstreams.dsl.options import Materialized
from pykstreams.dsl.table import Table
from pykstreams.processors.foreign_keys.repartitioned_rows import RepartitionedKeys, RepartitionRows
from pykstreams.processors.user_functions import describe_function, not_iterable
from pykstreams.serdes.defaults import over_default

KO = TypeVar("KO")

_PREFIX = "KTABLE-FOREIGNKEYS-"


def join_by_foreign_keys(
    left: Table,
    right: Table,
    joiner: ValueJoiner[V1, V2, VR | None],
    extractor: Callable[[V], Iterable[KO]],
    materialized: Materialized[KR, VR] | str | None,
    name: str | None,
    *,
    keeps_left: bool,
) -> Table:
    """Adds the join and returns the joined table."""
    check_foreign_keys(extractor, right.place, right.place.key_serde)
    join_rows = over_missing_rows(joiner)
    serde = combined_serde(right.place.key_serde, left.place.key_serde)
    join: RepartitionedJoin[V1, V2] = RepartitionedJoin(
        _PREFIX,
        RepartitionRows(_foreign_keys_of(extractor)),
        lambda right_value, left_value: join_rows(left_value, right_value),
        RepartitionedKeys(over_default(serde, methodcaller("partial_key_serializer"))),
        kept_serde=serde,
        result_serde=serde,
        value_serde=value_serde(joiner),
        keeps_unmatched=keeps_left,
    )
    return add_repartitioned_join(left, right, join, materialized, name)


def _foreign_keys_of(extractor: Callable[[V], Iterable[KO]]) -> KeyValueMapper[K, V, Iterable[KO]]:
    def foreign_keys(key: K, value: V) -> Iterable[KO]:
        found = extractor(value)
        if isinstance(found, str | bytes):
            raise TypeError(
                f"{describe_function(extractor)} returned {found!r}, one foreign key; expected several: give a list of "
                "them, or use foreign_key_extractor"
            )
        if not isinstance(found, Iterable):
            raise not_iterable(extractor, found, "foreign keys")
        return found

    return foreign_keys
