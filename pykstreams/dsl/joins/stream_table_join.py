"""Joins of a stream with a table: what ``KStream.join`` and ``left_join`` put into the graph for a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias, TypeVar, get_args

from pykstreams.core.errors import TopologyError
from pykstreams.core.processor import OperatorSupplier
from pykstreams.core.types import KR, Duration, K, KeyValueMapper, V, duration_ms
from pykstreams.dsl.annotations.inference import value_serde
from pykstreams.dsl.key_types import Side, keys_of, note_unlike_keys, refuse_unlike_keys
from pykstreams.dsl.options import Joined, expected
from pykstreams.dsl.place import Place
from pykstreams.dsl.repartitioning import repartitioned_for_join
from pykstreams.dsl.table import Table
from pykstreams.processors import AnyTableView, StreamTableJoin
from pykstreams.state.buffers.join_buffer import join_buffer
from pykstreams.topology.graph import OperatorNode
from pykstreams.topology.stores import GivenStore, StoreFactory

VO = TypeVar("VO")

AnyStreamTableJoin: TypeAlias = StreamTableJoin[object, object, object, object]
"""A join in a topology, which forgets the types of its records."""

OnExpiredHistory: TypeAlias = Literal["null", "drop"]
"""The fate of a record whose time is before the history of the table; see ``KStream.join``."""


def join_stream_with_table(
    stream: Place,
    table: Table,
    joiner: Callable[..., object],
    joined: Joined[K, V, VO] | None,
    *,
    keeps_left: bool,
    with_key: bool,
    on_expired_history: OnExpiredHistory = "null",
    around: Callable[[AnyStreamTableJoin], OperatorSupplier] = lambda join: join,
) -> Place:
    """Adds the join, behind a repartition topic where keys may have changed or lie elsewhere than those of the table,
    and returns the place of its results.

    The topics of both must have equal partition counts (``KStreamImpl.doStreamTableJoin``, 4.3.1). What runs is
    ``around`` the operator of the join.
    """
    options = expected("joined", joined, Joined) or Joined()
    joins = stream
    stream = repartitioned_for_join(stream, options.name, options.key_serde, options.value_serde, table.place.placement)
    _check_keys(Side(joins.name, stream.key_serde), table.place)
    graph = stream.graph
    sources = stream.sources | table.place.sources
    graph.copartitioned.append(set(sources))
    name = graph.namer.named(options.name, "KSTREAM-LEFTJOIN-" if keeps_left else "KSTREAM-JOIN-")
    drops_expired = _drops_expired(on_expired_history, name, table)
    buffer = None
    if options.grace_period is not None:
        grace_ms = _grace(options.grace_period, name, table)
        buffer = join_buffer(
            f"{name}-Buffer",
            options.key_serde or stream.key_serde,
            options.value_serde or stream.value_serde,
            grace_ms=grace_ms,
            topic=name,
        )
        if options.name is None:
            graph.implicit_names.add_store(buffer.name, logging=buffer.logging)
    view = table.logic.materialize_view()
    join: AnyStreamTableJoin = StreamTableJoin(
        view,
        joiner,
        keeps_left,
        with_key,
        buffer=None if buffer is None else buffer.name,
        drops_expired=drops_expired,
    )
    brought = () if buffer is None else (GivenStore(buffer),)
    node = _added(stream, name, around(join), view.stores, brought, keeps_left=keeps_left)
    return Place(graph, node, name, options.key_serde or stream.key_serde, value_serde(joiner), sources)


def _check_keys(stream: Side, table: Place) -> None:
    rows, cure = keys_of(table), "give the stream the keys of the table by select_key, or correct the type of either"
    refuse_unlike_keys("join", [(stream, rows, rows.serde)], cure)
    note_unlike_keys(table.graph, "join", stream, rows, cure)


def _grace(grace: Duration, name: str, table: Table) -> int:
    """The grace in ms; ``ValueError`` where the table has no history of that length."""
    grace_ms, history_ms = duration_ms(grace, f"grace period of {name}"), table.history_ms
    if history_ms is None:
        raise ValueError(
            f"{name} has a grace period of {grace!r} and joins {table.place.name}, which is not versioned; leave "
            "grace_period away, or keep the table in a versioned store"
        )
    if grace_ms > history_ms:
        raise ValueError(
            f"{name} has a grace period of {grace_ms} ms and joins {table.place.name}, whose store keeps its history "
            f"for {history_ms} ms only; records would find nothing any more when they have waited. Give the store a "
            "history retention that is at least the grace period"
        )
    return grace_ms


def _drops_expired(on_expired_history: OnExpiredHistory, name: str, table: Table) -> bool:
    """Whether records from before the history are dropped; ``TopologyError`` where the table has none."""
    if on_expired_history not in get_args(OnExpiredHistory):
        raise ValueError(f"on_expired_history of {name} is {on_expired_history!r}; expected 'null' or 'drop'")
    if on_expired_history == "null":
        return False
    if table.history_ms is None:
        raise TopologyError(
            f"{name} has on_expired_history='drop' and joins {table.place.name}, which is not versioned: it is asked "
            "for the row of the moment, and no history can expire. Leave on_expired_history away, or keep the table in "
            "a versioned store"
        )
    return True


def join_stream_with_global_table(
    stream: Place,
    view: AnyTableView,
    key_selector: KeyValueMapper[K, V, KR],
    joiner: Callable[..., object],
    name: str | None,
    *,
    keeps_left: bool,
    with_key: bool,
) -> Place:
    """Adds the join, which needs no repartitioning, and returns the place of its results.

    Without a name both kinds are called LEFTJOIN (``KStreamImpl.doGlobalTableJoin``, 4.3.1).
    """
    name = stream.graph.namer.named(name, "KSTREAM-LEFTJOIN-")
    operator = StreamTableJoin(view, joiner, keeps_left, with_key, key_selector)
    node = _added(stream, name, operator, (), keeps_left=keeps_left)
    return Place(stream.graph, node, name, stream.key_serde, value_serde(joiner), stream.sources, stream.rekeyed)


def _added(
    stream: Place,
    name: str,
    operator: OperatorSupplier,
    read: tuple[str, ...],
    brought: tuple[StoreFactory, ...] = (),
    *,
    keeps_left: bool,
) -> OperatorNode:
    node = OperatorNode(name, lambda: operator, stores=lambda: brought, connect=read, joins_null_keys=keeps_left)
    stream.graph.add(node, stream.node)
    return node
