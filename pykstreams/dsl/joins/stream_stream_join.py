"""Joins of two streams: what ``KStream.join``, ``left_join`` and ``outer_join`` put into the graph for a stream.

Source: ``KStreamImpl.doJoin``, ``KStreamImplJoin``, ``StreamJoinedStoreFactory`` and ``OuterStreamJoinStoreFactory``,
4.3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, TypeVar

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import StreamsError
from pykstreams.core.names import NodeNamer, valid_name
from pykstreams.core.types import K, V, duration_ms, total_ms
from pykstreams.core.windows import EmitStrategy, JoinWindows
from pykstreams.dsl.annotations.inference import passed_on, value_serde
from pykstreams.dsl.joins.join_kind import JoinKind
from pykstreams.dsl.key_types import keys_of, note_unlike_keys, refuse_unlike_keys
from pykstreams.dsl.options import StreamJoined, expected
from pykstreams.dsl.place import Place, common_placement
from pykstreams.dsl.repartitioning import repartitioned_for_join
from pykstreams.processors import KeepForJoin, PassThrough, StreamSelfJoin, StreamStreamJoin
from pykstreams.serdes.base import AnySerde
from pykstreams.serdes.defaults import SerdeOrDefault
from pykstreams.state.buffers.waiting import waiting_records
from pykstreams.state.dsl_suppliers import DslKeyValueParams, DslStoreFormat, DslStoreSuppliers, DslWindowParams
from pykstreams.state.interfaces.store import TaskStore
from pykstreams.state.key_values.suppliers import KeyValueBytesStoreSupplier
from pykstreams.state.spec import StoreBuilder
from pykstreams.state.suppliers import Stores
from pykstreams.state.windows.suppliers import (
    InMemoryWindowSupplier,
    PersistentWindowSupplier,
    WindowBytesStoreSupplier,
)
from pykstreams.topology.graph import OperatorNode, Step, StreamStreamJoinNode

VO = TypeVar("VO")

_THIS, _OTHER = "KSTREAM-JOINTHIS-", "KSTREAM-JOINOTHER-"
_OUTER_THIS, _OUTER_OTHER = "KSTREAM-OUTERTHIS-", "KSTREAM-OUTEROTHER-"
_OUTER_SHARED = "KSTREAM-OUTERSHARED-"
_WINDOWED = "KSTREAM-WINDOWED-"


@dataclass(frozen=True, slots=True)
class _WindowStore(Generic[K, V, VO]):
    """The store of one side's records; made by the DSL, or by the supplier that the user gave."""

    name: str
    windows: JoinWindows
    options: StreamJoined[K, V, VO]
    value_serde: AnySerde | None
    supplier: WindowBytesStoreSupplier | None

    @property
    def logging(self) -> bool:
        return self.supplier is not None or self.options.logging

    def builder(self, config: StreamsConfig) -> StoreBuilder[TaskStore]:
        options = self.options
        if self.supplier is not None:
            return Stores.timestamped_window_store_with_headers_builder(
                self.supplier, options.key_serde, self.value_serde
            )
        size, retention = self.windows.size_ms, _retention_ms(self.windows)
        headers = config.dsl_store_format.upper() == DslStoreFormat.HEADERS
        suppliers: DslStoreSuppliers = options.dsl_store_suppliers or config.dsl_store_suppliers
        params = DslWindowParams(
            self.name,
            retention,
            size,
            retain_duplicates=True,
            emit_strategy=EmitStrategy.ON_WINDOW_UPDATE,
            is_sliding_window=False,
            store_format=DslStoreFormat.HEADERS if headers else DslStoreFormat.PLAIN,
        )
        # Every record is kept apart, so compaction would have nothing to do.
        topic_config = {**(options.topic_config or {}), "cleanup.policy": "delete"}
        return Stores.timestamped_window_store_with_headers_builder(
            suppliers.window_store(params),
            options.key_serde,
            self.value_serde,
            logging=options.logging,
            topic_config=topic_config if options.logging else None,
        )


@dataclass(frozen=True, slots=True)
class _WaitingStore(Generic[K, V, VO]):
    """The store of the records that wait for a partner."""

    name: str
    options: StreamJoined[K, V, VO]

    @property
    def logging(self) -> bool:
        return self.options.logging

    def builder(self, config: StreamsConfig) -> StoreBuilder[TaskStore]:
        options = self.options
        return StoreBuilder(
            self._supplier(config),
            waiting_records,
            options.key_serde,
            (options.value_serde, options.other_value_serde),
            logging=options.logging,
            topic_config=dict(options.topic_config or {}) if options.logging else {},
        )

    def _supplier(self, config: StreamsConfig) -> KeyValueBytesStoreSupplier:
        """Of the kind that was asked for, else of that of the left window store, else of the configuration."""
        options, given = self.options, self.options.this_store_supplier
        params = DslKeyValueParams(self.name, DslStoreFormat.PLAIN)
        if options.dsl_store_suppliers is None and given is not None:
            if isinstance(given, InMemoryWindowSupplier):
                return Stores.in_memory_key_value_store(self.name)
            if isinstance(given, PersistentWindowSupplier):
                return Stores.persistent_key_value_store(self.name)
        suppliers: DslStoreSuppliers = options.dsl_store_suppliers or config.dsl_store_suppliers
        return suppliers.key_value_store(params)


@dataclass(frozen=True, slots=True)
class _Names:
    """The names of the nodes, taken in the order of Kafka Streams, and what the names of joins and stores end with."""

    this_suffix: str
    other_suffix: str
    this_windowed: str
    other_windowed: str
    this_generated: str
    other_generated: str
    merge: str

    @classmethod
    def of(cls, namer: NodeNamer, name: str | None, kind: JoinKind) -> _Names:
        return cls(
            "-outer-this-join" if kind.keeps_right else "-this-join",
            "-outer-other-join" if kind.keeps_left else "-other-join",
            namer.suffixed(name, "-this-windowed", _WINDOWED),
            namer.suffixed(name, "-other-windowed", _WINDOWED),
            namer.node(_OUTER_THIS if kind.keeps_right else _THIS),
            namer.node(_OUTER_OTHER if kind.keeps_left else _OTHER),
            namer.suffixed(name, "-merge", "KSTREAM-MERGE-"),
        )


@dataclass(frozen=True, slots=True)
class _Stores(Generic[K, V, VO]):
    """The stores of both sides, and that of the records of outer sides, which both sides use."""

    this: _WindowStore[K, V, VO]
    other: _WindowStore[K, V, VO]
    waiting: _WaitingStore[K, V, VO] | None

    @classmethod
    def of(
        cls, names: _Names, options: StreamJoined[K, V, VO], windows: JoinWindows, kind: JoinKind
    ) -> _Stores[K, V, VO]:
        this_base = _suffixed(options.store_name, names.this_suffix) or names.this_generated
        other_base = _suffixed(options.store_name, names.other_suffix) or names.other_generated
        this_supplier, other_supplier = _suppliers(options, windows)
        return cls(
            _window_store(this_base, windows, options, options.value_serde, this_supplier),
            _window_store(other_base, windows, options, options.other_value_serde, other_supplier),
            _waiting_store(options, names.this_generated, kind) if kind.keeps_left else None,
        )

    @property
    def shared(self) -> tuple[_WaitingStore[K, V, VO], ...]:
        """The store of both sides, if there is one."""
        return () if self.waiting is None else (self.waiting,)

    def __iter__(self) -> Iterator[_WindowStore[K, V, VO] | _WaitingStore[K, V, VO]]:
        yield self.this
        yield self.other
        yield from self.shared


def join_streams(
    this: Place,
    other: Place,
    joiner: Callable[..., object],
    windows: JoinWindows,
    joined: StreamJoined[K, V, VO] | None,
    kind: JoinKind,
    *,
    with_key: bool,
) -> Place:
    """Adds the join, each side behind a repartition topic where its keys may have changed, or lie elsewhere than those
    of the other side; gives its results' place.

    The topics of both sides must have equal partition counts.
    """
    inside = repr(windows) if isinstance(windows, timedelta | int) else "timedelta(minutes=5)"
    expected("windows", windows, JoinWindows, f"JoinWindows({inside})")
    given = expected("stream_joined", joined, StreamJoined) or StreamJoined()
    options = _with_types(given, this, other)
    if options.idle is not None and not kind.keeps_left:
        raise ValueError("idle is for left and outer joins: an inner join holds no result back; leave it away")
    _check_keys(this, other, given.key_serde, options.key_serde)
    graph, name = this.graph, options.name
    keys, placement = options.key_serde, common_placement(this, other)
    this = repartitioned_for_join(this, _suffixed(name, "-left"), keys, options.value_serde, placement)
    other = repartitioned_for_join(other, _suffixed(name, "-right"), keys, options.other_value_serde, placement)
    sources = this.sources | other.sources
    graph.copartitioned.append(set(sources))

    names = _Names.of(graph.namer, name, kind)
    stores = _Stores.of(names, options, windows, kind)
    _add_windowed(this, names.this_windowed, stores.this)
    _add_windowed(other, names.other_windowed, stores.other)
    if options.store_name is None:
        for store in stores:
            graph.implicit_names.add_store(store.name, logging=store.logging)
    node = _join_node(names, stores, joiner, kind, with_key=with_key)
    graph.add(node, this.node, other.node)
    return Place(graph, node, names.merge, options.key_serde, value_serde(joiner), sources)


def _join_node(
    names: _Names, stores: _Stores[K, V, VO], joiner: Callable[..., object], kind: JoinKind, *, with_key: bool
) -> StreamStreamJoinNode:
    """Makes the node of the join of both sides, and of the join of a stream with itself, which may take its place."""
    windows, options = stores.this.windows, stores.this.options
    name = options.name

    def side(of: _WindowStore[K, V, VO], *, left: bool) -> StreamStreamJoin:
        return StreamStreamJoin(
            of.name,
            None if stores.waiting is None else stores.waiting.name,
            joiner,
            left=left,
            outer=kind.keeps_left if left else kind.keeps_right,
            before_ms=windows.before_ms,
            after_ms=windows.after_ms,
            grace_ms=windows.grace_period_ms,
            with_key=with_key,
            idle_ms=None if options.idle is None else duration_ms(options.idle, "idle"),
        )

    self_join = StreamSelfJoin(
        stores.this.name, joiner, windows.before_ms, windows.after_ms, _retention_ms(windows), with_key
    )
    return StreamStreamJoinNode(
        this_windowed=names.this_windowed,
        other_windowed=names.other_windowed,
        this_join=Step(
            _named(name, names.this_suffix, names.this_generated),
            side(stores.other, left=True),
            (stores.other, *stores.shared),
        ),
        other_join=Step(
            _named(name, names.other_suffix, names.other_generated),
            side(stores.this, left=False),
            (stores.this, *stores.shared),
        ),
        merge=Step(names.merge, PassThrough()),
        self_join=Step(names.merge, self_join, (stores.this,)),
        joins_null_keys=kind.keeps_left,
    )


def _check_keys(this: Place, other: Place, given: SerdeOrDefault, serde: SerdeOrDefault) -> None:
    """Refuses, or notes, keys that never meet; a serde that was given for both says what keys they have together."""
    ones, others = keys_of(this), keys_of(other)
    cure = "give one stream the keys of the other by select_key, or correct the type of either"
    refuse_unlike_keys("join", [(ones, others, serde), (others, ones, serde)], cure)
    if given is None:
        note_unlike_keys(this.graph, "join", ones, others, cure)


def _with_types(options: StreamJoined[K, V, VO], this: Place, other: Place) -> StreamJoined[K, V, VO]:
    """The options with the serdes of the types of both streams where they have none."""
    return options.replace(
        key_serde=options.key_serde or passed_on(this.key_serde) or passed_on(other.key_serde),
        value_serde=options.value_serde or passed_on(this.value_serde),
        other_value_serde=options.other_value_serde or passed_on(other.value_serde),
    )


def _add_windowed(place: Place, name: str, store: _WindowStore[K, V, VO]) -> None:
    operator, stores = KeepForJoin(store.name), (store,)
    place.graph.add(OperatorNode(name, lambda: operator, stores=lambda: stores), place.node)


def _window_store(
    base: str,
    windows: JoinWindows,
    options: StreamJoined[K, V, VO],
    value_serde: AnySerde | None,
    supplier: WindowBytesStoreSupplier | None,
) -> _WindowStore[K, V, VO]:
    name = f"{base}-store" if supplier is None else supplier.name
    return _WindowStore(name, windows, options, value_serde, supplier)


def _waiting_store(options: StreamJoined[K, V, VO], generated: str, kind: JoinKind) -> _WaitingStore[K, V, VO]:
    base = options.store_name if options.this_store_supplier is None else options.this_store_supplier.name
    if base is None:
        return _WaitingStore(f"{_OUTER_SHARED}{generated[-10:]}-store", options)
    return _WaitingStore(f"{base}{'-outer' if kind.keeps_right else '-left'}-shared-join-store", options)


def _suppliers(
    options: StreamJoined[K, V, VO], windows: JoinWindows
) -> tuple[WindowBytesStoreSupplier | None, WindowBytesStoreSupplier | None]:
    """The suppliers that the user gave, checked (``KStreamImplJoin.assertWindowSettings``, 4.3.1)."""
    this, other = options.this_store_supplier, options.other_store_supplier
    checked = _checked("this_store_supplier", this, windows), _checked("other_store_supplier", other, windows)
    if this is not None and other is not None and this.name == other.name:
        raise StreamsError(
            f"this_store_supplier and other_store_supplier are both named {this.name!r}; each side of a join keeps its "
            "own records, so give one of the two another name"
        )
    return checked


def _checked(what: str, supplier: object, windows: JoinWindows) -> WindowBytesStoreSupplier | None:
    if supplier is None:
        return None
    if not isinstance(supplier, WindowBytesStoreSupplier):
        raise TypeError(
            f"{what} is {supplier!r}; expected a supplier of a window store, such as "
            "Stores.persistent_window_store(name, retention, window_size, retain_duplicates=True)"
        )
    if not supplier.retain_duplicates:
        raise StreamsError(
            f"{what} {supplier.name!r} does not retain duplicates, so that records of one key and time would replace "
            "each other; make it with retain_duplicates=True"
        )
    size, retention = windows.size_ms, _retention_ms(windows)
    if supplier.window_size_ms != size or supplier.retention_ms != retention:
        raise StreamsError(
            f"{what} {supplier.name!r} has a window size of {supplier.window_size_ms} ms and a retention of "
            f"{supplier.retention_ms} ms, and {windows!r} needs {size} ms (before + after) and {retention} ms "
            "(before + after + grace); make the supplier with these"
        )
    return supplier


def _retention_ms(windows: JoinWindows) -> int:
    kept = windows.size_ms + windows.grace_period_ms
    return total_ms(kept, f"how long the stores of a join keep records ({windows!r}: before + after + grace)")


def _suffixed(name: str | None, suffix: str) -> str | None:
    return None if name is None else name + suffix


def _named(name: str | None, suffix: str, generated: str) -> str:
    return generated if name is None else valid_name(name + suffix)
