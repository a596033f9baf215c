"""Right and full outer foreign-key joins: also the rows of the right table that nobody refers to have a row.

The result is keyed by ``CombinedKey(foreign key, left key)``: a right row that nobody refers to is ``(its key, None)``,
and in a full outer join a left row without a foreign key is ``(None, its key)``: as in SQL, null equals nothing, and an
outer join keeps the row.
"""

from __future__ import annotations

from operator import methodcaller
from typing import TypeVar

from pykstreams.core.types import KR, V1, V2, VR, K, KeyValueMapper, V, ValueJoiner
from pykstreams.dsl.annotations.inference import value_serde
from pykstreams.dsl.joins.optional_sides import over_missing_rows
from pykstreams.dsl.joins.repartitioned_join import (
    RepartitionedJoin,
    add_repartitioned_join,
    combined_serde,
)
from pykstreams.dsl.options import Materialized
from pykstreams.dsl.table import Table
from pykstreams.processors.foreign_keys.repartitioned_rows import RepartitionedKeys, RepartitionRows
from pykstreams.serdes.base import AnySerde
from pykstreams.serdes.defaults import OverDefault, SerdeOrDefault, over_default
from pykstreams.serdes.optional import OptionalSerde

KO = TypeVar("KO")

_PREFIX = "KTABLE-FOREIGNKEY-OUTER-"


def join_on_foreign_key_outer(
    left: Table,
    right: Table,
    joiner: ValueJoiner[V1, V2, VR | None],
    extractor: KeyValueMapper[K, V, KO],
    materialized: Materialized[KR, VR] | str | None,
    name: str | None,
    *,
    keeps_left: bool,
) -> Table:
    """Adds the join and returns the joined table.

    :param extractor: ``(key, value)`` of a left row -> foreign key.
    :param keeps_left: whether left rows without a right row are kept, too, which makes it a full outer join.
    """

    def foreign_keys(key: K, value: V) -> tuple[KO]:
        return (extractor(key, value),)

    join_rows = over_missing_rows(joiner)
    foreign_key = optional(right.place.key_serde) if keeps_left else right.place.key_serde
    serde = combined_serde(foreign_key, optional(left.place.key_serde))
    join: RepartitionedJoin[V1, V2] = RepartitionedJoin(
        _PREFIX,
        RepartitionRows(foreign_keys, keeps_null=keeps_left),
        lambda right_value, left_value: join_rows(left_value, right_value),
        RepartitionedKeys(over_default(serde, methodcaller("partial_key_serializer"))),
        kept_serde=serde,
        result_serde=serde,
        value_serde=value_serde(joiner),
        keeps_unmatched=keeps_left,
        keeps_unreferred=True,
    )
    return add_repartitioned_join(left, right, join, materialized, name)


def optional(serde: SerdeOrDefault) -> AnySerde | OverDefault:
    """The serde for keys that may be ``None``; without a serde, over the default one."""
    return over_default(serde, OptionalSerde)
