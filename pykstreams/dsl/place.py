"""``Place``: where a stream, a table or a grouped stream is in the graph, with its serdes and the sources above it."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Final

from pykstreams.dsl.record_serdes import RecordSerdes
from pykstreams.serdes.by_type import TYPES
from pykstreams.serdes.defaults import OverDefault, SerdeOrDefault
from pykstreams.topology.compiler import topology_above
from pykstreams.topology.graph import Graph, GraphNode
from pykstreams.topology.placement.key_placement import KeyPlacement
from pykstreams.topology.placement.reference_partitioner import ReferencePartitioner

_NEWLINE: Final = "\n"


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A position in the graph and what is known about the records there.

    ``name`` is the processor that records come from (behind a repartition topic its source), ``sources`` the sources
    of the sub-topology, for co-partitioning; ``rekeyed`` says that the key may have changed, so that grouping and
    joining need a repartition topic. ``partitioner`` says how the rows of a table are partitioned, where not by their
    whole keys.
    """

    graph: Graph
    node: GraphNode
    name: str
    key_serde: SerdeOrDefault
    value_serde: SerdeOrDefault
    sources: frozenset[str]
    rekeyed: bool = False
    partitioner: ReferencePartitioner | None = None

    def __post_init__(self) -> None:
        self.graph.note_serdes(self.name, self.key_serde, self.value_serde)

    def shown_as(self, face: str, windows: str | None = None) -> str:
        """Returns the text for a stream or table of the script: its processor, and types and windows where they are
        known.
        """
        parts = [name for serde in (self.key_serde, self.value_serde) if (name := _type_of(serde))]
        types = f"[{', '.join(parts)}]" if len(parts) == 2 else ""
        return f"<{face}{types} {self.name}{'' if windows is None else f', {windows}'}>"

    def drawn_as(self, face: str) -> str:
        """The same as a piece of HTML, with a picture of the steps that lead here."""
        picture = topology_above(self.graph, self.node).describe().to_svg()
        return f"<div><code>{escape(self.shown_as(face))}</code>{picture.partition(_NEWLINE)[2]}</div>"

    @property
    def is_scattered(self) -> bool:
        """Whether equal keys may lie in different partitions: keys may have changed, or sources differ in where they
        put them.
        """
        return self.rekeyed or len(self.graph.placements(self.sources)) > 1

    @property
    def placement(self) -> KeyPlacement | None:
        """Where keys lie, ``None`` where murmur2 puts them; for a place that is not scattered."""
        return next(iter(self.graph.placements(self.sources)), None)


def record_serdes_of(place: Place) -> RecordSerdes:
    """Returns the serdes of the records that the functions of a step get which follows a place."""
    return RecordSerdes(place.graph, place.key_serde, place.value_serde, place.name)


def _type_of(serde: SerdeOrDefault) -> str:
    return "" if serde is None or isinstance(serde, OverDefault) else TYPES.name_of(serde)


def common_placement(*places: Place) -> KeyPlacement | None:
    """Where places that meet by key are to have their keys: where all lie that need not be repartitioned anyway, or
    else where murmur2 puts them.
    """
    found = {place.placement for place in places if not place.is_scattered}
    return found.pop() if len(found) == 1 else None
