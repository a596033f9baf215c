"""The one-to-many join of the first KIP-213: one row for each row of the many that refers to a row of the one.

The four styles of result keys differ in the keys of repartitioned rows, how these are written, and what becomes of them
where results leave the join:

- combined keys, length-encoded;
- combined keys, written by a user's serde with ``partial_key_serializer()``;
- combined keys inside, mapped to the user's keys and back at the boundaries;
- the user's keys throughout: a *faked* key, of which only the first part is written, is the prefix of a scan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import methodcaller
from typing import Generic, TypeVar, cast

from pykstreams.core.errors import StreamsError
from pykstreams.core.types import KR, V1, V2, VR, K, ValueJoiner
from pykstreams.dsl.annotations.inference import key_serde, value_serde
from pykstreams.dsl.joins.foreign_key_types import check_foreign_key
from pykstreams.dsl.joins.optional_sides import over_missing_rows
from pykstreams.dsl.joins.repartitioned_join import (
    RepartitionedJoin,
    add_repartitioned_join,
    combined_serde,
)
from pykstreams.dsl.options import Materialized
from pykstreams.dsl.stores.materialization import options_of
from pykstreams.dsl.table import Table
from pykstreams.processors.foreign_keys.repartitioned_rows import RepartitionedKeys, RepartitionRows
from pykstreams.processors.user_functions import describe_function
from pykstreams.serdes.base import AnySerde, Serializer
from pykstreams.serdes.combined_key import CombinedKey, CombinedKeySerde
from pykstreams.serdes.composed_keys import AvroCombinedKeySerde, FakedPrefixes, JsonCombinedKeySerde, PrefixChecked
from pykstreams.serdes.defaults import SerdeOrDefault, over_default

KO = TypeVar("KO")

_PREFIX = "KTABLE-ONETOMANY-"
_TRUSTED = CombinedKeySerde, JsonCombinedKeySerde, AvroCombinedKeySerde


@dataclass(frozen=True, slots=True)
class ResultKeys(Generic[K, KO, KR]):
    """The keys of the result as the user wants them."""

    combined_key_serde: SerdeOrDefault = None
    output_key_combiner: Callable[[CombinedKey[K, KO]], KR] | None = None
    output_key_splitter: Callable[[KR], CombinedKey[K, KO]] | None = None
    join_prefix_faker: Callable[[K], KR] | None = None
    left_key_extractor: Callable[[KR], K] | None = None

    def __post_init__(self) -> None:
        faked = self.join_prefix_faker is not None or self.left_key_extractor is not None
        if faked and (self.join_prefix_faker is None or self.left_key_extractor is None):
            raise TypeError("join_prefix_faker and left_key_extractor belong together; give both or neither")
        if faked and self.output_key_splitter is not None:
            raise TypeError(
                "output_key_splitter was given beside join_prefix_faker; leave it out, left_key_extractor replaces it"
            )
        if not faked and (self.output_key_combiner is None) is not (self.output_key_splitter is None):
            raise TypeError("output_key_combiner and output_key_splitter belong together; give both or neither")
        serde = self.combined_key_serde
        if serde is not None and not faked and not callable(getattr(serde, "partial_key_serializer", None)):
            raise TypeError(
                f"combined_key_serde is {serde!r}; expected a serde with partial_key_serializer(), such as "
                "JsonCombinedKeySerde()"
            )


def join_one_to_many(
    one: Table,
    many: Table,
    joiner: ValueJoiner[V1, V2, VR],
    key_extractor: Callable[[V2], K | None],
    result: ResultKeys[K, KO, KR],
    materialized: Materialized[KR, VR] | str | None,
    name: str | None,
) -> Table:
    """Adds the join and returns the joined table."""

    def foreign_keys(key: object, value: V2) -> tuple[K | None]:
        return (key_extractor(value),)

    if result.join_prefix_faker is not None and result.left_key_extractor is not None:
        serde = result.combined_key_serde or options_of(materialized).key_serde
        if serde is None and result.output_key_combiner is None:
            serde = many.place.key_serde
        partial_of = _faking(result.join_prefix_faker)
        make = _made_by(result.output_key_combiner, result.left_key_extractor)
        keys = RepartitionedKeys(
            over_default(serde, partial_of),
            make=make,
            foreign_key=result.left_key_extractor,
            checked=True,
        )
    else:
        if result.combined_key_serde is None:
            check_foreign_key(key_extractor, one.place, one.place.key_serde)
        serde = result.combined_key_serde or combined_serde(one.place.key_serde, many.place.key_serde)
        partial_of = methodcaller("partial_key_serializer")
        keys = RepartitionedKeys(
            over_default(serde, partial_of),
            result=result.output_key_combiner,
            repartitioned=result.output_key_splitter,
            checked=result.combined_key_serde is not None and type(serde) not in _TRUSTED,
        )
    written = serde
    if keys.checked:
        written = over_default(serde, lambda given: PrefixChecked(given, partial_of(given), keys.foreign_key))
    join = RepartitionedJoin(
        _PREFIX,
        RepartitionRows(foreign_keys, keys.make),
        over_missing_rows(joiner),
        keys,
        kept_serde=serde,
        topic_serde=written,
        result_serde=serde if keys.result is None else key_serde(keys.result),
        value_serde=value_serde(joiner),
    )
    return add_repartitioned_join(many, one, join, materialized, name)


def _faking(faker: Callable[[K], KR]) -> Callable[[AnySerde], Serializer[K]]:
    return lambda serde: FakedPrefixes(serde, faker)


def _made_by(
    combiner: Callable[[CombinedKey[K, KO]], KR] | None, extractor: Callable[[KR], K]
) -> Callable[[K, KO], KR]:
    """Makes the user's key of a foreign key and a row's own key; without a combiner the row's key is one already."""

    def make(foreign_key: K, key: KO) -> KR:
        made = cast("KR", key) if combiner is None else combiner(CombinedKey(foreign_key, key))
        found = extractor(made)
        if found != foreign_key:
            cure = "" if combiner is not None else "; give output_key_combiner to make a key of both"
            raise StreamsError(
                f"{describe_function(extractor)} gave {found!r} for the key {made!r} of a row that refers to "
                f"{foreign_key!r}; the key of a result must have the key of the referred row in it{cure}"
            )
        return made

    return make
