"""Sinks in databases: what ``KStream.to_sql`` puts into the graph, and which steps may lie above it.

The rows of an input record are written once because they carry its offset: they must arrive while it is processed, in
the order of offsets. Steps that keep records and forward them later are refused when the topology is built.
"""

from __future__ import annotations

from typing import Final

from pykstreams.core.errors import TopologyError
from pykstreams.core.types import K, V
from pykstreams.dsl.place import Place
from pykstreams.processors import (
    Branch,
    Filter,
    FlatMap,
    FlatMapValues,
    Map,
    MapValues,
    PassThrough,
    Peek,
    SelectKey,
    StreamTableJoin,
)
from pykstreams.processors.sinks.sql_sink import SqlSink
from pykstreams.topology.graph import (
    GraphNode,
    OperatorNode,
    PlainRepartitionNode,
    RepartitionNode,
    StreamSourceNode,
)

_SOURCES: Final = (StreamSourceNode, RepartitionNode, PlainRepartitionNode)
_AT_ONCE: Final = (Branch, Filter, FlatMap, FlatMapValues, Map, MapValues, PassThrough, Peek, SelectKey)


def add_sql_sink(place: Place, sink: SqlSink[K, V], name: str) -> None:
    """Adds the sink; ``TopologyError``, when the topology is built, for steps that forward records later."""
    if not isinstance(sink, SqlSink):
        raise TypeError(f"the sink {name!r} is {sink!r}; expected a SqlSink")

    def operator() -> SqlSink[K, V]:
        _check(place.node, name)
        return sink

    place.graph.add(OperatorNode(name, operator), place.node)


def _check(above: GraphNode, name: str) -> None:
    """Looks at all steps up to the topics that they read."""
    waiting, seen = [above], {above}
    while waiting:
        node = waiting.pop()
        if isinstance(node, _SOURCES):
            continue
        if not _forwards_at_once(node):
            raise TopologyError(
                f"{name} writes each record's rows once only if they arrive while the record is processed, and "
                f"{node.name} may forward records later, or from state that goes back after a crash; put "
                ".repartition() between it and .to_sql(), so that its results have offsets of their own"
            )
        waiting += [parent for parent in node.parents if parent not in seen]
        seen.update(node.parents)


def _forwards_at_once(node: GraphNode) -> bool:
    if not isinstance(node, OperatorNode):
        return False
    operator = node.operator()
    if isinstance(operator, StreamTableJoin):
        return operator.buffer is None
    return isinstance(operator, _AT_ONCE)
