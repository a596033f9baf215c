"""Nodes of processors that users write, and the stores that come with them: suppliers may have a method ``stores``."""

from __future__ import annotations

from collections.abc import Callable

from pykstreams.core.names import valid_name
from pykstreams.core.processor import OperatorSupplier
from pykstreams.core.user_code.functions import stores_of
from pykstreams.dsl.place import Place
from pykstreams.topology.graph import OperatorNode
from pykstreams.topology.stores import GivenStore


def provided_stores(supplier: Callable[[], object]) -> tuple[GivenStore, ...]:
    """The stores that the supplier brings (``ConnectedStoreProvider.stores``, 4.3.1)."""
    return tuple(map(GivenStore, stores_of(supplier)))


def add_user_node(
    place: Place,
    prefix: str,
    name: str | None,
    supplier: Callable[[], object],
    operator: OperatorSupplier,
    stores: tuple[str, ...],
) -> OperatorNode:
    """Adds the node of a supplier behind a stream, connected with these stores and those that it brings."""
    if not callable(supplier):
        raise TypeError(f"supplier is {supplier!r}; expected a callable without arguments, such as a class")
    node_name = place.graph.namer.node(prefix) if name is None else valid_name(name)
    brought = provided_stores(supplier)
    node = OperatorNode(node_name, lambda: operator, stores=lambda: brought, connect=stores)
    place.graph.add(node, place.node)
    place.graph.makers |= {(node_name, part): "" for part in ("key", "value")}
    return node
