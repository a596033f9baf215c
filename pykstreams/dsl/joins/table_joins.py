"""Joins of tables: the options of ``KTable.join`` and its like, and which kind of join they ask for.

Nothing is decided here but which module adds the join to the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pykstreams.core.types import KR, V1, V2, VR, K, KeyValueMapper, V, ValueJoiner
from pykstreams.dsl.joins.foreign_key_join import ForeignKey, join_on_foreign_key
from pykstreams.dsl.joins.foreign_key_types import check_foreign_key
from pykstreams.dsl.joins.foreign_keys_join import join_by_foreign_keys
from pykstreams.dsl.joins.join_kind import JoinKind
from pykstreams.dsl.joins.non_key_join import MapperAndSelector, join_on_mapped_key
from pykstreams.dsl.joins.outer_foreign_key_join import join_on_foreign_key_outer
from pykstreams.dsl.joins.table_table_join import join_tables
from pykstreams.dsl.options import Materialized, TableJoined
from pykstreams.dsl.table import Table

KO = TypeVar("KO")


@dataclass(frozen=True, slots=True)
class TableJoinOptions(Generic[K, V, KO, KR, VR]):
    """The options of a join beside the other table and the joiner, as the user gave them; see ``KTable.join``."""

    materialized: Materialized[KR, VR] | str | None
    name: str | None
    foreign_key_extractor: Callable[..., KO | None] | None = None
    extractor_with_key: bool = False
    table_joined: TableJoined[K, KO] | None = None
    foreign_keys_extractor: Callable[[V], Iterable[KO | None]] | None = None
    mapper: KeyValueMapper[K, V, KO | None] | None = None
    selector: KeyValueMapper[K, KO, KR] | None = None
    complete_history: bool = False

    def check_history(self) -> None:
        """Raises ``TypeError`` for a complete history of a join that is not one by the keys of both tables."""
        others = self.foreign_key_extractor, self.foreign_keys_extractor, self.mapper, self.selector
        if self.complete_history and any(other is not None for other in others):
            raise TypeError(
                "complete_history was given beside foreign_key_extractor, foreign_keys_extractor, or mapper and "
                "selector; only a join by the keys of both tables can correct its older results, leave it out"
            )

    def mapper_and_selector(self) -> MapperAndSelector[K, V, KO, KR] | None:
        """The functions that make it a non-key join; ``None`` for one that is none."""
        return MapperAndSelector.of(
            self.mapper,
            self.selector,
            foreign_key_extractor=self.foreign_key_extractor,
            foreign_keys_extractor=self.foreign_keys_extractor,
            table_joined=self.table_joined,
        )

    def foreign_keys(self) -> Callable[[V], Iterable[KO | None]] | None:
        """The function that makes it a join by many foreign keys; ``TypeError`` beside what belongs to joins by one."""
        extractor = self.foreign_keys_extractor
        by_one = self.foreign_key_extractor is not None or self.extractor_with_key or self.table_joined is not None
        if extractor is not None and by_one:
            raise TypeError(
                "foreign_keys_extractor was given beside foreign_key_extractor, extractor_with_key or table_joined, "
                "which belong to joins by one foreign key; leave them out"
            )
        return extractor

    def foreign_key(self) -> ForeignKey[K, V, KO] | None:
        """The options that make it a foreign-key join; ``None`` for a join by the keys of both tables."""
        return ForeignKey.of(self.foreign_key_extractor, self.extractor_with_key, self.table_joined, self.name)


def add_table_join(
    this: Table,
    that: Table,
    joiner: ValueJoiner[V1, V2, VR | None],
    options: TableJoinOptions[K, V, KO, KR, VR],
    kind: JoinKind,
) -> Table:
    """Adds a join of the kind that the options ask for."""
    options.check_history()
    materialized, name = options.materialized, options.name
    mapped = options.mapper_and_selector()
    if mapped is not None:
        return join_on_mapped_key(this, that, joiner, mapped, materialized, name, kind)
    if (extractor := options.foreign_keys()) is not None:
        return join_by_foreign_keys(this, that, joiner, extractor, materialized, name, keeps_left=kind.keeps_left)
    if (foreign := options.foreign_key()) is None:
        return join_tables(
            this,
            that,
            joiner,
            materialized,
            name,
            kind,
            complete_history=options.complete_history,
        )
    if kind.keeps_right:
        check_foreign_key(foreign.given, that.place, that.place.key_serde)
        return join_on_foreign_key_outer(
            this, that, joiner, foreign.extractor, materialized, name, keeps_left=kind.keeps_left
        )
    return join_on_foreign_key(this, that, foreign, joiner, materialized, keeps_left=kind.keeps_left)
