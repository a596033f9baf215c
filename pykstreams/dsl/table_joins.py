"""What a table can be joined with, and by what: the part of ``KTable`` that has an overload for each kind of join.

Nothing is decided here but which module adds the join to the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from pykstreams.core.types import KeyValueMapper, ValueJoiner
from pykstreams.dsl.foreign_key_join import ForeignKey, join_on_foreign_key
from pykstreams.dsl.foreign_keys_join import join_by_foreign_keys
from pykstreams.dsl.non_key_join import MapperAndSelector, join_on_mapped_key
from pykstreams.dsl.one_to_many_join import ResultKeys, join_one_to_many
from pykstreams.dsl.options import Materialized, TableJoined
from pykstreams.dsl.outer_foreign_key_join import join_on_foreign_key_outer
from pykstreams.dsl.stream import Place
from pykstreams.dsl.table_table_join import join_tables
from pykstreams.dsl.tables import TableLogic
from pykstreams.serdes.base import Serde
from pykstreams.serdes.combined_key import CombinedKey
from pykstreams.serdes.composed_keys import ComposedKeySerde

if TYPE_CHECKING:
    from pykstreams.dsl.ktable import KTable

K = TypeVar("K")
V = TypeVar("V")
KF = TypeVar("KF")
KO = TypeVar("KO")
KR = TypeVar("KR")
VO = TypeVar("VO")
VR = TypeVar("VR")


@dataclass(frozen=True, slots=True)
class _JoinOptions:
    """What a user said of a join, beside the other table and the joiner; see ``TableJoins.join``."""

    materialized: Materialized[Any, Any] | str | None
    name: str | None
    foreign_key_extractor: Callable[..., Any] | None = None
    extractor_with_key: bool = False
    table_joined: TableJoined[Any, Any] | None = None
    foreign_keys_extractor: Callable[[Any], Iterable[Any]] | None = None
    mapper: KeyValueMapper[Any, Any, Any] | None = None
    selector: KeyValueMapper[Any, Any, Any] | None = None
    complete_history: bool = False

    def check_history(self) -> None:
        """``TypeError`` where the history of a join is to be complete that is not one by the keys of both tables."""
        others = self.foreign_key_extractor, self.foreign_keys_extractor, self.mapper, self.selector
        if self.complete_history and any(other is not None for other in others):
            raise TypeError(
                "complete_history was given beside foreign_key_extractor, foreign_keys_extractor, or mapper and "
                "selector; only a join by the keys of both tables can correct its older results, leave it out"
            )

    def mapper_and_selector(self) -> MapperAndSelector | None:
        """What makes it a non-key join; ``None`` for one that is none."""
        return MapperAndSelector.of(
            self.mapper,
            self.selector,
            foreign_key_extractor=self.foreign_key_extractor,
            foreign_keys_extractor=self.foreign_keys_extractor,
            table_joined=self.table_joined,
        )

    def foreign_keys(self) -> Callable[[Any], Iterable[Any]] | None:
        """What makes it a join by many foreign keys; ``TypeError`` beside what belongs to joins by one."""
        extractor = self.foreign_keys_extractor
        by_one = self.foreign_key_extractor is not None or self.extractor_with_key or self.table_joined is not None
        if extractor is not None and by_one:
            raise TypeError(
                "foreign_keys_extractor was given beside foreign_key_extractor, extractor_with_key or table_joined, "
                "which belong to joins by one foreign key; leave them out"
            )
        return extractor

    def foreign_key(self) -> ForeignKey | None:
        """What makes it a foreign-key join; ``None`` for a join by the keys of both tables."""
        return ForeignKey.of(self.foreign_key_extractor, self.extractor_with_key, self.table_joined, self.name)


class TableJoins(Generic[K, V]):
    """The joins of a ``KTable``."""

    _place: Place
    _logic: TableLogic

    @overload
    def join(
        self,
        other: KTable[K, VO],
        joiner: ValueJoiner[V, VO, VR],
        *,
        complete_history: bool = False,
        materialized: Materialized[K, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[K, VR]: ...
    @overload
    def join(
        self,
        other: KTable[KO, VO],
        joiner: ValueJoiner[V, VO, VR],
        *,
        foreign_key_extractor: Callable[[V], KO | None],
        extractor_with_key: Literal[False] = False,
        table_joined: TableJoined[K, KO] | None = None,
        materialized: Materialized[K, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[K, VR]: ...
    @overload
    def join(
        self,
        other: KTable[KO, VO],
        joiner: ValueJoiner[V, VO, VR],
        *,
        foreign_key_extractor: Callable[[K, V], KO | None],
        extractor_with_key: Literal[True],
        table_joined: TableJoined[K, KO] | None = None,
        materialized: Materialized[K, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[K, VR]: ...
    @overload
    def join(
        self,
        other: KTable[KO, VO],
        joiner: ValueJoiner[V, VO, VR],
        *,
        foreign_keys_extractor: Callable[[V], Iterable[KO | None]],
        materialized: Materialized[CombinedKey[KO, K], VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[CombinedKey[KO, K], VR]: ...
    @overload
    def join(
        self,
        other: KTable[KO, VO],
        joiner: ValueJoiner[V, VO, VR | None],
        *,
        mapper: KeyValueMapper[K, V, KO | None],
        selector: KeyValueMapper[K, KO, KR],
        materialized: Materialized[KR, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[KR, VR]: ...
    def join(
        self,
        other: KTable[Any, VO],
        joiner: ValueJoiner[V, VO, VR | None],
        *,
        foreign_key_extractor: Callable[..., Any] | None = None,
        foreign_keys_extractor: Callable[[V], Iterable[Any]] | None = None,
        extractor_with_key: bool = False,
        table_joined: TableJoined[Any, Any] | None = None,
        mapper: KeyValueMapper[K, V, Any] | None = None,
        selector: KeyValueMapper[K, Any, Any] | None = None,
        complete_history: bool = False,
        materialized: Materialized[Any, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[Any, VR]:
        """Joins the rows that both tables have by ``joiner(value, other value)``; ``None`` from it is no row.

        A change of either table gives a change of the join, with the larger timestamp of the two rows. Both tables get
        a store if they have none to be read from, and their topics must have equal partition counts.

        Where a table is versioned, changes that are older than the newest of their row give nothing, and so an older
        result may have become wrong. With ``complete_history`` each change gives a result for every version that the
        other table had while the change was valid, and deletions where there is none any more. Both tables must be
        versioned, and ``materialized`` name a versioned store: as of any time it then has what a relational join of
        both histories has, as far as all three stores go back (see their history retention in ms). A result has the
        larger timestamp of the two rows, or the time at which one of them was deleted; one that began before the oldest
        time that can be kept or told gets that time instead. Changes that are too late are dropped and counted. What is
        handed on may be older than the newest of its row, so that a topic of it must be read as a versioned table.

        With ``foreign_key_extractor(value)``, or ``(key, value)`` if ``extractor_with_key``, each row is joined with
        the other table's row of that key; ``None`` joins with nothing. The result has the keys of this table. The
        sides talk to each other through two topics, and who refers to what is kept in a store with a changelog;
        ``name``, or the one of ``table_joined``, names all of them. Partition counts may then differ.

        With ``foreign_keys_extractor(value)``, which gives any number of keys, each row is joined with all rows that it
        refers to. The result has a row for each pair, under ``CombinedKey(foreign key, key)``; null keys are dropped
        and counted. See ``one_to_many_join``, which goes the same way.

        With ``mapper(key, value)``, which gives a key of the other table, each row is joined with the row of that key,
        and the result has the key that ``selector(key, other key)`` gives. Keys may be windowed, and the other table
        may be this one. Rows go through two repartition topics: to the row that they are joined with, and to the
        partition of their selected key. Where several rows select one key, the one written last stays, and when it goes
        the one before comes back; such collisions are counted (``selected-key-collisions-total``). The serdes of the
        result are those of ``materialized``, or the defaults. Rows whose mapped or selected key is ``None`` are dropped
        and counted. See docs/guides/non-key-joins.md.
        """
        options = _JoinOptions(
            materialized,
            name,
            foreign_key_extractor,
            extractor_with_key,
            table_joined,
            foreign_keys_extractor,
            mapper,
            selector,
            complete_history,
        )
        return self._joined(other, joiner, options, left_is_optional=False, right_is_optional=False)

    @overload
    def left_join(
        self,
        other: KTable[K, VO],
        joiner: Callable[[V, VO | None], VR],
        *,
        complete_history: bool = False,
        materialized: Materialized[K, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[K, VR]: ...
    @overload
    def left_join(
        self,
        other: KTable[KO, VO],
        joiner: Callable[[V, VO | None], VR],
        *,
        foreign_key_extractor: Callable[[V], KO | None],
        extractor_with_key: Literal[False] = False,
        table_joined: TableJoined[K, KO] | None = None,
        materialized: Materialized[K, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[K, VR]: ...
    @overload
    def left_join(
        self,
        other: KTable[KO, VO],
        joiner: Callable[[V, VO | None], VR],
        *,
        foreign_key_extractor: Callable[[K, V], KO | None],
        extractor_with_key: Literal[True],
        table_joined: TableJoined[K, KO] | None = None,
        materialized: Materialized[K, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[K, VR]: ...
    @overload
    def left_join(
        self,
        other: KTable[KO, VO],
        joiner: Callable[[V, VO | None], VR],
        *,
        foreign_keys_extractor: Callable[[V], Iterable[KO | None]],
        materialized: Materialized[CombinedKey[KO, K], VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[CombinedKey[KO, K], VR]: ...
    @overload
    def left_join(
        self,
        other: KTable[KO, VO],
        joiner: Callable[[V, VO | None], VR | None],
        *,
        mapper: KeyValueMapper[K, V, KO | None],
        selector: KeyValueMapper[K, KO | None, KR],
        materialized: Materialized[KR, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[KR, VR]: ...
    def left_join(
        self,
        other: KTable[Any, VO],
        joiner: Callable[[V, VO | None], VR | None],
        *,
        foreign_key_extractor: Callable[..., Any] | None = None,
        foreign_keys_extractor: Callable[[V], Iterable[Any]] | None = None,
        extractor_with_key: bool = False,
        table_joined: TableJoined[Any, Any] | None = None,
        mapper: KeyValueMapper[K, V, Any] | None = None,
        selector: KeyValueMapper[K, Any, Any] | None = None,
        complete_history: bool = False,
        materialized: Materialized[Any, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[Any, VR]:
        """Joins each row of this table by ``joiner(value, other value or None)``; see ``join``.

        With ``foreign_keys_extractor`` a row is joined with ``None`` for each key that the other table does not have; a
        row that gives no keys has no rows in the result.

        With ``mapper`` and ``selector`` a row whose mapped key the other table does not have, or which has none, gets
        the key ``selector(key, None)``.
        """
        options = _JoinOptions(
            materialized,
            name,
            foreign_key_extractor,
            extractor_with_key,
            table_joined,
            foreign_keys_extractor,
            mapper,
            selector,
            complete_history,
        )
        return self._joined(other, joiner, options, left_is_optional=False, right_is_optional=True)

    @overload
    def right_join(
        self,
        other: KTable[KO, VO],
        joiner: Callable[[V | None, VO], VR | None],
        *,
        foreign_key_extractor: Callable[[V], KO | None],
        extractor_with_key: Literal[False] = False,
        materialized: Materialized[CombinedKey[KO, K | None], VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[CombinedKey[KO, K | None], VR]: ...
    @overload
    def right_join(
        self,
        other: KTable[KO, VO],
        joiner: Callable[[V | None, VO], VR | None],
        *,
        foreign_key_extractor: Callable[[K, V], KO | None],
        extractor_with_key: Literal[True],
        materialized: Materialized[CombinedKey[KO, K | None], VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[CombinedKey[KO, K | None], VR]: ...
    def right_join(
        self,
        other: KTable[Any, VO],
        joiner: Callable[[V | None, VO], VR | None],
        *,
        foreign_key_extractor: Callable[..., Any],
        extractor_with_key: bool = False,
        materialized: Materialized[Any, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[Any, VR]:
        """Joins each row of ``other`` with all rows of this table that refer to it by a foreign key.

        The result has a row ``joiner(value, other value)`` for each pair, under ``CombinedKey(foreign key, key)``, and
        one ``joiner(None, other value)`` for each row of ``other`` that nobody refers to, under ``CombinedKey(its key,
        None)``; that row goes before the first pair comes, and is back after the last has gone. Timestamps are the
        larger of both rows. Rows of this table whose foreign key is ``None`` are dropped and counted.

        ``CombinedKeySerde(serde of other keys, OptionalSerde(serde of keys))`` reads and writes the keys of the result.
        """
        if foreign_key_extractor is None:
            raise TypeError("foreign_key_extractor is None; expected a callable that gives the foreign key")
        options = _JoinOptions(materialized, name, foreign_key_extractor, extractor_with_key)
        return self._joined(other, joiner, options, left_is_optional=True, right_is_optional=False)

    @overload
    def outer_join(
        self,
        other: KTable[K, VO],
        joiner: Callable[[V | None, VO | None], VR],
        *,
        complete_history: bool = False,
        materialized: Materialized[K, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[K, VR]: ...
    @overload
    def outer_join(
        self,
        other: KTable[KO, VO],
        joiner: Callable[[V | None, VO | None], VR | None],
        *,
        foreign_key_extractor: Callable[[V], KF],
        extractor_with_key: Literal[False] = False,
        materialized: Materialized[CombinedKey[KF, K | None], VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[CombinedKey[KF, K | None], VR]: ...
    @overload
    def outer_join(
        self,
        other: KTable[KO, VO],
        joiner: Callable[[V | None, VO | None], VR | None],
        *,
        foreign_key_extractor: Callable[[K, V], KF],
        extractor_with_key: Literal[True],
        materialized: Materialized[CombinedKey[KF, K | None], VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[CombinedKey[KF, K | None], VR]: ...
    @overload
    def outer_join(
        self,
        other: KTable[KO, VO],
        joiner: Callable[[V | None, VO | None], VR | None],
        *,
        mapper: KeyValueMapper[K, V, KO | None],
        selector: KeyValueMapper[K | None, KO | None, KR],
        materialized: Materialized[KR, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[KR, VR]: ...
    def outer_join(
        self,
        other: KTable[Any, VO],
        joiner: Callable[[V | None, VO | None], VR | None],
        *,
        foreign_key_extractor: Callable[..., Any] | None = None,
        extractor_with_key: bool = False,
        mapper: KeyValueMapper[K, V, Any] | None = None,
        selector: KeyValueMapper[Any, Any, Any] | None = None,
        complete_history: bool = False,
        materialized: Materialized[Any, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[Any, VR]:
        """Joins the rows that either table has by ``joiner(value or None, other value or None)``; see ``join``.

        With ``foreign_key_extractor`` the result is that of ``right_join``, and besides has each row of this table that
        refers to a missing one, joined with ``None`` under the same ``CombinedKey(foreign key, key)``. A row whose
        foreign key is ``None`` refers to nothing and is kept, too, as ``CombinedKey(None, key)``. Both parts of the key
        are written by an ``OptionalSerde``.

        With ``mapper`` and ``selector``, rows of this table without partner have the key ``selector(key, None)``, and
        those of the other table ``selector(None, other key)``.
        """
        options = _JoinOptions(
            materialized,
            name,
            foreign_key_extractor,
            extractor_with_key,
            mapper=mapper,
            selector=selector,
            complete_history=complete_history,
        )
        return self._joined(other, joiner, options, left_is_optional=True, right_is_optional=True)

    @overload
    def one_to_many_join(
        self,
        other: KTable[KO, VO],
        joiner: ValueJoiner[V, VO, VR],
        *,
        key_extractor: Callable[[VO], K | None],
        combined_key_serde: ComposedKeySerde[K, KO] | None = None,
        materialized: Materialized[CombinedKey[K, KO], VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[CombinedKey[K, KO], VR]: ...
    @overload
    def one_to_many_join(
        self,
        other: KTable[KO, VO],
        joiner: ValueJoiner[V, VO, VR],
        *,
        key_extractor: Callable[[VO], K | None],
        combined_key_serde: ComposedKeySerde[K, KO] | None = None,
        output_key_combiner: Callable[[CombinedKey[K, KO]], KR],
        output_key_splitter: Callable[[KR], CombinedKey[K, KO]],
        materialized: Materialized[KR, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[KR, VR]: ...
    @overload
    def one_to_many_join(
        self,
        other: KTable[KO, VO],
        joiner: ValueJoiner[V, VO, VR],
        *,
        key_extractor: Callable[[VO], K | None],
        combined_key_serde: Serde[KR] | None = None,
        output_key_combiner: Callable[[CombinedKey[K, KO]], KR] | None = None,
        join_prefix_faker: Callable[[K], KR],
        left_key_extractor: Callable[[KR], K],
        materialized: Materialized[KR, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[KR, VR]: ...
    def one_to_many_join(
        self,
        other: KTable[KO, VO],
        joiner: ValueJoiner[V, VO, VR],
        *,
        key_extractor: Callable[[VO], K | None],
        combined_key_serde: Any = None,
        output_key_combiner: Callable[[CombinedKey[K, KO]], Any] | None = None,
        output_key_splitter: Callable[[Any], CombinedKey[K, KO]] | None = None,
        join_prefix_faker: Callable[[K], Any] | None = None,
        left_key_extractor: Callable[[Any], K] | None = None,
        materialized: Materialized[Any, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[Any, VR]:
        """Joins each row of ``other`` with the row of this table whose key ``key_extractor(other value)`` gives.

        The result has one row for each of ``other`` that finds its partner, by ``joiner(value, other value)``, with the
        larger timestamp of the two, under ``CombinedKey(key of this table, key of other)``. A change of this table
        changes all rows that refer to it. A row whose extracted key is ``None`` is dropped and counted.

        Rows of ``other`` go through a repartition topic with as many partitions as this table's topic, and are kept
        behind it; this table gets a store if it has none, and its topic must be partitioned by its keys, as producers
        do. The result needs no store to be read.

        The keys of the result are written length-encoded. There are three other styles:

        - ``combined_key_serde``: a serde with ``partial_key_serializer()``, such as ``JsonCombinedKeySerde``.
        - ``output_key_combiner`` and ``output_key_splitter`` map combined keys to keys of another type, and back.
        - ``join_prefix_faker`` and ``left_key_extractor``: the keys of ``other`` have the key of this table in them (or
          ``output_key_combiner`` makes such keys). The faker makes, of a key of this table, one whose bytes
          are what all keys that have it start with; the extractor takes the key of this table out.
          ``combined_key_serde`` is any serde of such keys then.
        """
        self._check_table(other)
        keys = ResultKeys(
            combined_key_serde, output_key_combiner, output_key_splitter, join_prefix_faker, left_key_extractor
        )
        joined = join_one_to_many(
            (self._place, self._logic), (other._place, other._logic), joiner, key_extractor, keys, materialized, name
        )
        return self._table(joined)

    def _joined(
        self,
        other: KTable[Any, VO],
        joiner: Callable[[Any, Any], VR | None],
        options: _JoinOptions,
        *,
        left_is_optional: bool,
        right_is_optional: bool,
    ) -> KTable[Any, VR]:
        """Adds a join of the kind that the options ask for."""
        self._check_table(other)
        this, that = (self._place, self._logic), (other._place, other._logic)
        options.check_history()
        materialized, name = options.materialized, options.name
        mapped = options.mapper_and_selector()
        if mapped is not None:
            joined = join_on_mapped_key(
                this,
                that,
                joiner,
                mapped,
                materialized,
                name,
                left_is_optional=left_is_optional,
                right_is_optional=right_is_optional,
            )
        elif (extractor := options.foreign_keys()) is not None:
            joined = join_by_foreign_keys(
                this, that, joiner, extractor, materialized, name, right_is_optional=right_is_optional
            )
        elif (foreign := options.foreign_key()) is None:
            joined = join_tables(
                this,
                that,
                joiner,
                materialized,
                name,
                left_is_optional=left_is_optional,
                right_is_optional=right_is_optional,
                complete_history=options.complete_history,
            )
        elif left_is_optional:
            joined = join_on_foreign_key_outer(
                this, that, joiner, foreign.extractor, materialized, name, keeps_left=right_is_optional
            )
        else:
            joined = join_on_foreign_key(this, that, foreign, joiner, materialized, right_is_optional=right_is_optional)
        return self._table(joined)

    def _check_table(self, other: object) -> None:
        if not isinstance(other, TableJoins):
            raise TypeError(f"a table is joined with {other!r}; expected a KTable (KStream.to_table makes one)")

    def _table(self, joined: tuple[Place, TableLogic, str | None]) -> KTable[Any, Any]:
        from pykstreams.dsl.ktable import KTable

        return KTable(*joined)
