"""The one-to-many join of the first KIP-213: one row for each row of the many that refers to a row of the one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pykstreams.core.types import ValueJoiner
from pykstreams.dsl.options import Materialized
from pykstreams.dsl.shipped_joins import ShippedJoin, add_shipped_join, combined_serde, partial_serializer
from pykstreams.dsl.stream import Place
from pykstreams.dsl.tables import TableLogic
from pykstreams.processors.shipped_rows import ReferenceKeys, ShipRows

_PREFIX = "KTABLE-ONETOMANY-"


def join_one_to_many(
    one: tuple[Place, TableLogic],
    many: tuple[Place, TableLogic],
    joiner: ValueJoiner[Any, Any, Any],
    key_extractor: Callable[[Any], Any],
    materialized: Materialized[Any, Any] | str | None,
    name: str | None,
) -> tuple[Place, TableLogic, str | None]:
    """Adds the join and gives what the joined ``KTable`` consists of."""
    serde = combined_serde(one[0].key_serde, many[0].key_serde)

    def references(key: Any, value: Any) -> tuple[Any]:
        return (key_extractor(value),)

    join = ShippedJoin(_PREFIX, ShipRows(references), joiner, ReferenceKeys(partial_serializer(serde)), serde, serde)
    return add_shipped_join(many, one, join, materialized, name)
