"""Tables of streams: ``KStream.to_table``."""

from __future__ import annotations

from typing import TypeVar

from pykstreams.core.types import Duration
from pykstreams.dsl.annotations.inference import passed_on
from pykstreams.dsl.options import Materialized
from pykstreams.dsl.place import Place
from pykstreams.dsl.repartitioning import repartition_node
from pykstreams.dsl.stores.materialization import options_of, table_store
from pykstreams.dsl.stores.reordering import reordering_of
from pykstreams.dsl.stores.table_logic import SourceTable
from pykstreams.dsl.table import Table
from pykstreams.topology.graph import GraphNode, OperatorNode

K = TypeVar("K")
V = TypeVar("V")

_PREFIX = "KSTREAM-TOTABLE-"


def table_of_stream(
    place: Place, materialized: Materialized[K, V] | str | None, reorder_grace: Duration | None, name: str | None
) -> Table:
    """Adds the nodes of a table whose rows are the records of a stream, and returns it.

    A repartition topic comes before them where equal keys may lie in different partitions, and records are put in the
    order of their timestamps where there is a ``reorder_grace``.
    """
    node_name = place.graph.namer.named(name, _PREFIX)
    options = options_of(materialized)
    keys, values = options.key_serde or place.key_serde, options.value_serde or place.value_serde
    inherited = (keys, values) if materialized is None else (passed_on(keys), passed_on(values))
    store = table_store(place.graph, options, _PREFIX, *inherited, of_records=True)
    parent: GraphNode = place.node
    sources = place.sources
    if place.is_scattered:
        parent = repartition_node(
            place.graph, node_name, keys, values, named=name is not None, optimizable=place.rekeyed
        )
        place.graph.add(parent, place.node)
        sources = frozenset({parent.name})
    reordering = reordering_of(place.graph, node_name, reorder_grace, keys, values, named=name is not None)
    if reordering is not None:
        reorder, stores = reordering.operator, reordering.stores
        above, parent = parent, OperatorNode(reordering.name, lambda: reorder, stores=lambda: stores)
        place.graph.add(parent, above)
    logic = SourceTable(store)
    node = OperatorNode(node_name, logic.operator, stores=logic.stores, versioned=store.history_ms is not None)
    place.graph.add(node, parent)
    return Table(Place(place.graph, node, node_name, keys, values, sources), logic, store)
