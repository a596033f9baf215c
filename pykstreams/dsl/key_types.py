"""Keys of records that are to meet by them, and have types that no value has both of.

Invariant: what is refused would be refused of every record, too, by a serde of this project that takes values of its
own type only. What else keeps them apart is noted in the graph, since a program may be right nevertheless: JSON of two
classes may be the same, and topics of one partition have equal keys of 4 and of 8 bytes together.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from pykstreams.core.errors import TopologyError
from pykstreams.dsl.annotations.argument_types import exclude
from pykstreams.dsl.place import Place
from pykstreams.serdes.by_type import TYPES
from pykstreams.serdes.defaults import OverDefault, SerdeOrDefault, default_for
from pykstreams.serdes.json.json_keys import JsonKeySerde
from pykstreams.serdes.json.json_serde import JsonSerde
from pykstreams.serdes.primitives import SIMPLE_SERDES
from pykstreams.serdes.text_values import TextSerde
from pykstreams.topology.contradiction import Contradiction
from pykstreams.topology.graph import Graph

_STRICT: Final = (*SIMPLE_SERDES, TextSerde)


class Side(NamedTuple):
    """The keys that come from a processor, or the values."""

    name: str
    serde: SerdeOrDefault
    part: str = "keys"

    def __str__(self) -> str:
        return f"{self.name} ({self.part} of {TYPES.name_of(self.serde)})"


def keys_of(place: Place) -> Side:
    """Returns the keys of a stream or a table."""
    return Side(place.name, place.key_serde)


def values_of(place: Place) -> Side:
    """Returns the values of a stream or a table."""
    return Side(place.name, place.value_serde, "values")


def stand_in(step: str, one: Side, other: Side) -> SerdeOrDefault:
    """Returns a stand-in for the default serde that says why two sides have none together; ``None``: nothing is known.

    That may be what a side says already, or that their types differ.
    """
    for side in (one, other):
        if isinstance(side.serde, OverDefault) and side.serde.is_the_default:
            return side.serde
    types = [TYPES.type_of(side.serde) for side in (one, other)]
    return None if object in types or types[0] == types[1] else default_for(f"{step} of {one} with {other}")


def refuse_unlike_keys(step: str, written: Iterable[tuple[Side, Side, SerdeOrDefault]], cure: str) -> None:
    """Raises ``TopologyError`` where keys are to be written with a serde that takes none of them.

    :param step: ``join`` or ``cogroup``.
    :param written: keys, those that they are to meet, and the serde that writes them.
    """
    for one, other, serde in written:
        if type(serde) in _STRICT and _are_apart(one.serde, serde):
            raise TopologyError(str(_never_meeting(step, one, other, serde, cure)))


def note_unlike_keys(graph: Graph, step: str, one: Side, other: Side, cure: str) -> None:
    """Notes in the graph that no key of the one is a key of the other, or that equal keys have other bytes."""
    if _are_apart(one.serde, other.serde) or _have_other_bytes(one.serde, other.serde):
        graph.contradictions.append(_never_meeting(step, one, other, other.serde, cure))


def _are_apart(one: SerdeOrDefault, other: SerdeOrDefault) -> bool:
    return exclude(TYPES.type_of(one), TYPES.type_of(other))


def _have_other_bytes(one: SerdeOrDefault, other: SerdeOrDefault) -> bool:
    """Whether equal keys are written by both as other bytes, which belong to other partitions."""
    if _is_json(one) or _is_json(other):
        return type(one) in _STRICT or type(other) in _STRICT  # JSON has text in quotes, and numbers as digits
    return type(one) in SIMPLE_SERDES and type(other) in SIMPLE_SERDES and type(one) is not type(other)


def _is_json(serde: SerdeOrDefault) -> bool:
    """Whether a serde of this project writes keys of a known type as JSON."""
    return isinstance(serde, JsonSerde | JsonKeySerde) and None not in (serde.type_, serde.json_type)


def _never_meeting(step: str, one: Side, other: Side, serde: SerdeOrDefault, cure: str) -> Contradiction:
    if _are_apart(one.serde, other.serde):
        why = "no key is of both types"
    elif _have_other_bytes(one.serde, other.serde):
        why = "equal keys have other bytes on each side, so that they lie in different partitions"
    else:
        why = f"the keys of the first are written as {TYPES.name_of(serde)}"
    return Contradiction(f"{step} of {one} with {other}", f"records meet by their keys, and {why}", cure)
