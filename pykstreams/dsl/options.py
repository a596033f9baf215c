"""Option objects: frozen, built with keywords; a changed copy is ``options.replace(name="x")``.

Wherever a serde is taken, a type will do (docs/guides/types.md). Serdes and names left away follow the rules of Kafka
Streams: passed on by steps that keep keys or values, else by the annotations of the step's function, else the default
of the configuration; names are generated.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Generic, Self

from typing_extensions import TypeVar

from pykstreams.core.names import valid_name
from pykstreams.core.processor import PunctuationType
from pykstreams.core.types import (
    Duration,
    StreamPartitioner,
    TimestampExtractor,
    Untold,
    duration_ms,
    flag,
    keep_whole_number,
)
from pykstreams.dsl.serde_fields import SerdeField, key_serde_field, value_serde_field
from pykstreams.dsl.user_calls import check_option
from pykstreams.serdes.by_type import SerdeOrType
from pykstreams.state.dsl_suppliers import DslStoreSuppliers
from pykstreams.state.spec import StoreSupplier
from pykstreams.topology.offset_reset import AutoOffsetReset
from pykstreams.topology.placement.key_placement import KeyPartitioner, placement_of

K = TypeVar("K", default=Untold)
V = TypeVar("V", default=Untold)
KO = TypeVar("KO", default=Untold)
VO = TypeVar("VO", default=Untold)

Given = TypeVar("Given")

_PARTITIONER = "topic, key, value, number of partitions"


def expected(option: str, given: Given | None, kind: type[object], write: str | None = None) -> Given | None:
    """Returns what was given for an option, or ``None``; ``TypeError`` for what is of another kind than expected.

    :param write: what the error says to write; without it, that follows from what was given.
    """
    if given is None or isinstance(given, kind):
        return given
    raise unexpected(option, given, kind, write)


def unexpected(option: str, given: object, kind: type[object], write: str | None = None) -> TypeError:
    """The error for an option of another kind, which says what to write."""
    if write is None:
        write = f"{kind.__name__}({_example(given, kind)})"
    return TypeError(f"{option} is {given!r}; expected a {kind.__name__}: {option}={write}")


def _example(given: object, kind: type[object]) -> str:
    fields = {field.name for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    if isinstance(given, str) and "name" in fields:
        return f"name={given!r}"
    if isinstance(given, int) and "num_partitions" in fields:
        return f"num_partitions={given!r}"
    return "key_serde=..., value_serde=..." if "value_serde" in fields else "..."


@dataclass(frozen=True)
class Options:
    """The base of all option objects."""

    def __new__(cls, *given: object, **_: object) -> Self:
        """Refuses what has no name, in words that say what to write."""
        in_order = [field.name for field in dataclasses.fields(cls) if not field.kw_only]
        if len(given) > len(in_order):
            names = [field.name for field in dataclasses.fields(cls)]
            write = ", ".join(
                f"{name}={value.__name__ if isinstance(value, type) else repr(value)}"
                for name, value in zip(names, given, strict=False)
            )
            raise TypeError(f"{cls.__name__} takes its options by their names: {cls.__name__}({write})")
        return super().__new__(cls)

    def replace(self, **changes: object) -> Self:
        """Returns a copy with some fields changed."""
        return dataclasses.replace(self, **changes)


@dataclass(frozen=True)
class _NamedOptions(Options):
    def __post_init__(self) -> None:
        name = getattr(self, "name", None)
        if name is not None:
            valid_name(name)


@dataclass(frozen=True, kw_only=True)
class Consumed(_NamedOptions, Generic[K, V]):
    """How a source reads its topics.

    ``partitioner`` says where those who write the topics put keys, if not where Kafka's murmur2 does: by a name of
    librdkafka's (``"consistent_random"`` is what confluent-kafka does by itself), or by a function (key in bytes,
    number of partitions) -> partition. Streams that are joined with others go through a repartition topic where the
    two sides differ; a global table has no use for it. Beyond Kafka Streams; see docs/guides/joins.md.
    """

    key_serde: SerdeField[K] = key_serde_field()
    value_serde: SerdeField[V] = value_serde_field()
    timestamp_extractor: TimestampExtractor | None = None
    offset_reset_policy: AutoOffsetReset | str | None = None
    name: str | None = None
    partitioner: KeyPartitioner | str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_option(self, "timestamp_extractor", "record, partition time")
        placement_of(self.partitioner)
        if not isinstance(self.partitioner, str):
            check_option(self, "partitioner", "serialized key, number of partitions")


def consumed_of(given: Consumed[K, V] | SerdeOrType[K] | None, value: SerdeOrType[V] | None) -> Consumed[K, V] | None:
    """Reads what a source was given: options, or the types (or serdes) of key and value.

    ``TypeError`` for one type without the other.
    """
    if given is None or isinstance(given, Consumed):
        if value is not None:
            raise TypeError(f"the type of values, {value!r}, is given beside {given!r}; expected that of keys")
        return given
    if value is None:
        raise TypeError(f"{given!r} is given as the type of keys, without that of values; give both, or a Consumed")
    return Consumed(key_serde=given, value_serde=value)


@dataclass(frozen=True, kw_only=True)
class Produced(_NamedOptions, Generic[K, V]):
    """How a sink writes; ``partitioner(topic, key, value, number of partitions)``."""

    key_serde: SerdeField[K] = key_serde_field()
    value_serde: SerdeField[V] = value_serde_field()
    partitioner: StreamPartitioner[K, V] | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_option(self, "partitioner", _PARTITIONER)


@dataclass(frozen=True, kw_only=True)
class Grouped(_NamedOptions, Generic[K, V]):
    """How records are grouped; ``name`` also names the repartition topic, if there is one."""

    key_serde: SerdeField[K] = key_serde_field()
    value_serde: SerdeField[V] = value_serde_field()
    name: str | None = None


@dataclass(frozen=True, kw_only=True)
class StreamJoined(_NamedOptions, Generic[K, V, VO]):
    """How two streams are joined; ``value_serde`` is that of the left side, ``other_value_serde`` of the right one.

    ``name`` names the steps and the repartition topics, ``store_name`` the stores and so their changelogs. The window
    stores can be given by ``this_store_supplier`` and ``other_store_supplier``, which must retain duplicates and have
    the window size and retention of the join; these have a changelog of default settings, whatever ``logging`` and
    ``topic_config`` say (``KStreamImplJoin.joinWindowStoreBuilderFromSupplier``, 4.3.1).

    With ``idle`` the windows of left and outer joins go on to close by the wall clock once the task has had no input
    for so long, and what found no partner has its result (docs/guides/idle-input.md; beyond Kafka Streams).
    """

    key_serde: SerdeField[K] = key_serde_field()
    value_serde: SerdeField[V] = value_serde_field()
    other_value_serde: SerdeField[VO] = value_serde_field()
    name: str | None = None
    store_name: str | None = None
    this_store_supplier: StoreSupplier[object] | None = None
    other_store_supplier: StoreSupplier[object] | None = None
    dsl_store_suppliers: DslStoreSuppliers | None = None
    logging: bool = True
    topic_config: Mapping[str, str] | None = None
    idle: Duration | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.store_name is not None:
            valid_name(self.store_name)
        flag(self.logging, "logging")
        if self.idle is not None and duration_ms(self.idle, "idle") < 1:
            raise ValueError(f"idle is {self.idle!r}; it must be at least 1 ms")


@dataclass(frozen=True, kw_only=True)
class Joined(_NamedOptions, Generic[K, V, VO]):
    """How a stream is joined with a table; ``name`` also names the repartition topic, if there is one.

    With ``grace_period`` a stream record waits that long for the table to catch up; the table must be versioned.
    """

    key_serde: SerdeField[K] = key_serde_field()
    value_serde: SerdeField[V] = value_serde_field()
    other_value_serde: SerdeField[VO] = value_serde_field()
    name: str | None = None
    grace_period: Duration | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.grace_period is not None:
            duration_ms(self.grace_period, "grace period of a join")


@dataclass(frozen=True, kw_only=True)
class TableJoined(_NamedOptions, Generic[K, KO]):
    """How a foreign-key join of tables sends its messages: partitioners of the left and the right table's topics.

    A partitioner is needed where the rows of a table are not partitioned by the default one.
    """

    partitioner: StreamPartitioner[K, None] | None = None
    other_partitioner: StreamPartitioner[KO, None] | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_option(self, "partitioner", _PARTITIONER)
        check_option(self, "other_partitioner", _PARTITIONER)


@dataclass(frozen=True, kw_only=True)
class Repartitioned(_NamedOptions, Generic[K, V]):
    """A repartition topic; without ``num_partitions`` it has as many as the inputs of its sub-topology."""

    name: str | None = None
    key_serde: SerdeField[K] = key_serde_field()
    value_serde: SerdeField[V] = value_serde_field()
    num_partitions: int | None = None
    partitioner: StreamPartitioner[K, V] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_partitions is not None and keep_whole_number(self, "num_partitions") < 1:
            raise ValueError(f"num_partitions is {self.num_partitions}; a topic has at least one partition")
        check_option(self, "partitioner", _PARTITIONER)


@dataclass(frozen=True)
class Materialized(Options, Generic[K, V]):
    """How a table keeps its rows.

    The one positional argument is the name of the store, or a supplier of it; a named store can be queried. ``caching``
    and ``logging`` are on unless switched off; ``topic_config`` goes to the changelog topic; ``retention`` is for
    window and session stores made by the DSL.

    A row goes by itself once ``time_to_live`` has passed since its timestamp, by the clock ``time_to_live_by``: stream
    time of its task, or the wall clock. That is a deletion, in the store, in its changelog and in all tables that are
    made of this one. For tables of records and aggregates without windows; others are a ``TopologyError``
    (docs/guides/time-to-live.md; beyond Kafka Streams).
    """

    store: str | StoreSupplier[object] | None = None
    _: KW_ONLY
    key_serde: SerdeField[K] = key_serde_field()
    value_serde: SerdeField[V] = value_serde_field()
    caching: bool = True
    logging: bool = True
    topic_config: Mapping[str, str] | None = None
    retention: Duration | None = None
    store_type: DslStoreSuppliers | None = None
    time_to_live: Duration | None = None
    time_to_live_by: PunctuationType = PunctuationType.STREAM_TIME

    def __post_init__(self) -> None:
        flag(self.caching, "caching")
        flag(self.logging, "logging")
        if self.time_to_live is not None and duration_ms(self.time_to_live, "time_to_live") < 1:
            raise ValueError(f"time_to_live is {self.time_to_live!r}; it must be at least 1 ms")
        if not isinstance(self.time_to_live_by, PunctuationType):
            raise TypeError(f"time_to_live_by is {self.time_to_live_by!r}; expected a PunctuationType")
        if self.time_to_live is None and self.time_to_live_by is not PunctuationType.STREAM_TIME:
            raise ValueError(
                "time_to_live_by is given without time_to_live, so that no row would go; give both, as "
                "time_to_live=timedelta(days=1), or leave it away"
            )
        if isinstance(self.store, str):
            valid_name(self.store)
        elif self.store is not None and not isinstance(self.store, StoreSupplier):
            raise TypeError(
                f"store of Materialized is {self.store!r}; expected a name, or the supplier of a store such as "
                "Stores.persistent_timestamped_key_value_store(name)"
            )
        elif self.store is not None and self.store_type is not None:
            raise ValueError("store_type chooses the store that the DSL makes; a supplier brings its own")

    @property
    def store_name(self) -> str | None:
        """The name of the store, if one was given."""
        return self.store if self.store is None or isinstance(self.store, str) else self.store.name
