"""Joins of a stream with a table: what ``KStream.join`` and ``left_join`` put into the graph for a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pykstreams.core.types import KeyValueMapper
from pykstreams.dsl.options import Joined
from pykstreams.dsl.repartitioning import repartitioned_for_join
from pykstreams.dsl.stream import Place
from pykstreams.dsl.tables import TableLogic
from pykstreams.processors import StreamTableJoin, TableView
from pykstreams.topology.graph import OperatorNode


def join_stream_with_table(
    stream: Place,
    table: tuple[Place, TableLogic],
    joiner: Callable[..., Any],
    joined: Joined[Any, Any, Any] | None,
    *,
    left: bool,
    with_key: bool,
) -> Place:
    """Adds the join, behind a repartition topic where keys may have changed, and gives the place of its results.

    The topics of both must have equal partition counts (``KStreamImpl.doStreamTableJoin``, 4.3.1).
    """
    options = joined or Joined()
    table_place, table_logic = table
    stream = repartitioned_for_join(stream, options.name, options.key_serde, options.value_serde)
    graph = stream.graph
    sources = stream.sources | table_place.sources
    graph.copartitioned.append(set(sources))
    name = graph.namer.named(options.name, "KSTREAM-LEFTJOIN-" if left else "KSTREAM-JOIN-")
    if options.grace_period is not None:
        raise ValueError(
            f"{name} has a grace period of {options.grace_period!r} and joins {table_place.name}, which is not "
            "versioned; leave grace_period away, or keep the table in a versioned store"
        )
    view = table_logic.view()
    operator = StreamTableJoin(view, joiner, left, with_key)
    node = _added(stream, name, operator, view.stores)
    return Place(graph, node, name, options.key_serde or stream.key_serde, None, sources)


def join_stream_with_global_table(
    stream: Place,
    view: TableView,
    key_selector: KeyValueMapper[Any, Any, Any],
    joiner: Callable[..., Any],
    name: str | None,
    *,
    left: bool,
    with_key: bool,
) -> Place:
    """Adds the join, which needs no repartitioning, and gives the place of its results.

    Without a name both kinds are called LEFTJOIN (``KStreamImpl.doGlobalTableJoin``, 4.3.1).
    """
    name = stream.graph.namer.named(name, "KSTREAM-LEFTJOIN-")
    node = _added(stream, name, StreamTableJoin(view, joiner, left, with_key, key_selector), ())
    return Place(stream.graph, node, name, stream.key_serde, None, stream.sources, stream.rekeyed)


def _added(stream: Place, name: str, operator: StreamTableJoin, stores: tuple[str, ...]) -> OperatorNode:
    node = OperatorNode(name, lambda: operator, connect=stores, joins_null_keys=operator.left)
    stream.graph.add(node, stream.node)
    return node
