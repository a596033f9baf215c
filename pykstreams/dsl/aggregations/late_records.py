"""``late_records_to=``: forwards records that come too late for their windows to a topic or a stream of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

from pykstreams.dsl.place import Place
from pykstreams.processors import PassThrough
from pykstreams.topology.graph import OperatorNode, StreamSinkNode

S = TypeVar("S")

LateRecordsTo: TypeAlias = str | Callable[[S], object]
"""A topic, or a function that is called once, while the topology is built, with the stream of late records (``S``)."""


def late_child_of(aggregation: str, late_records_to: LateRecordsTo[S] | None) -> str | None:
    """The name of the child of an aggregation that takes its late records, ``None`` where nobody wants them."""
    if late_records_to is None:
        return None
    if not isinstance(late_records_to, str) and not callable(late_records_to):
        raise TypeError(
            f"late_records_to is {late_records_to!r}; expected the name of a topic, or a function that takes the "
            "stream of late records"
        )
    return f"{aggregation}-late"


def add_late_child(
    place: Place, name: str, late_records_to: LateRecordsTo[S], make_stream: Callable[[Place], S]
) -> None:
    """Adds that child below an aggregation; ``place`` is the aggregation with the serdes of its input.

    Its name takes no number from the counter, so that asking for late records renames nothing.
    """
    if isinstance(late_records_to, str):
        key, value = place.key_serde, place.value_serde
        sink = StreamSinkNode(
            name,
            late_records_to,
            None if key is None else key.serializer,
            None if value is None else value.serializer,
            None,
        )
        place.graph.add(sink, place.node)
        return
    node = OperatorNode(name, PassThrough)
    place.graph.add(node, place.node)
    late_records_to(make_stream(Place(place.graph, node, name, place.key_serde, place.value_serde, place.sources)))
