"""Types of sources that read the same topics: a topic is read once, with one serde of its keys and one of its values.

Kafka Streams takes those of the first source, and forgets what the others say. So it is here where both say serdes, and
a warning tells of it; a type is what a type checker believes, so unlike ones are refused.

Invariant: serdes are unlike where their types or classes differ, or what they say of themselves; two objects that are
the same in these are taken for equal, as nothing else is known of them.
"""

from __future__ import annotations

import re
from typing import Final

from pykstreams.core.errors import TopologyError
from pykstreams.serdes.by_type import TYPES
from pykstreams.serdes.defaults import OverDefault, SerdeOrDefault
from pykstreams.serdes.json.json_keys import JsonKeySerde
from pykstreams.serdes.json.json_serde import JsonSerde
from pykstreams.topology.contradiction import Contradiction
from pykstreams.topology.graph import Graph, StreamSourceNode

_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")


def check_same_types(graph: Graph, first: StreamSourceNode, second: StreamSourceNode) -> None:
    """Raises ``TopologyError`` where two sources of the same topics say unlike types of what they read.

    Unlike serdes, none of which stands for a type, are noted in the graph.
    """
    nothing = None, None
    ones, others = graph.serdes.get(first.name, nothing), graph.serdes.get(second.name, nothing)
    for part, one, other in zip(("keys", "values"), ones, others, strict=True):
        if not _are_unlike(one, other):
            continue
        said = Contradiction(
            f"topic {second.read!r} of source {second.name!r}",
            f"it is to be read with {part} of {TYPES.name_of(other)}, and is read with {TYPES.name_of(one)} by source "
            f"{first.name!r} already",
            "a topic is read once, so give both the same type or serde, or use the stream of that source for both",
        )
        if TYPES.is_made_of_types(one) or TYPES.is_made_of_types(other):
            raise TopologyError(str(said))
        graph.contradictions.append(said)


def _are_unlike(one: SerdeOrDefault, other: SerdeOrDefault) -> bool:
    if one is None or other is None or isinstance(one, OverDefault) or isinstance(other, OverDefault):
        return False  # one says nothing
    return one is not other and _facts(one) != _facts(other)


def _facts(serde: object) -> tuple[object, ...]:
    """All that is known of a serde; those of JSON read the same, whether they are for keys or for values."""
    if type(serde) in (JsonSerde, JsonKeySerde):
        return TYPES.type_of(serde), JsonSerde
    return TYPES.type_of(serde), type(serde), _ADDRESS.sub("", repr(serde))
