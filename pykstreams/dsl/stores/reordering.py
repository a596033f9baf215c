"""``reorder_grace=``: what stands before a table that takes its records in the order of their timestamps."""

from __future__ import annotations

from pykstreams.core.names import valid_name
from pykstreams.core.types import Duration, duration_ms
from pykstreams.processors import Reorder
from pykstreams.serdes.defaults import SerdeOrDefault
from pykstreams.state.buffers.reorder_buffer import reorder_buffer
from pykstreams.topology.graph import Graph, Step
from pykstreams.topology.stores import GivenStore


def reordering_of(
    graph: Graph,
    table: str,
    grace: Duration | None,
    key_serde: SerdeOrDefault,
    value_serde: SerdeOrDefault,
    *,
    named: bool,
) -> Step | None:
    """The step before the table of that name with its buffer, ``None`` where records are taken as they come.

    Its name takes no number from the counter, so that asking for it renames nothing. ``named`` says that the user named
    the table.
    """
    if grace is None:
        return None
    grace_ms = duration_ms(grace, f"reorder_grace of {table}")
    name = valid_name(f"{table}-reorder")
    buffer = reorder_buffer(f"{name}-Buffer", key_serde, value_serde, grace_ms=grace_ms)
    if not named:
        graph.implicit_names.add_store(buffer.name, logging=buffer.logging)
    return Step(name, Reorder(buffer.name), (GivenStore(buffer),))
