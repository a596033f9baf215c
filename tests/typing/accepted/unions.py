"""Types that a checker does not know as arguments: their serde has them in its annotation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NewType, assert_type

from pykstreams import KStream, Produced, Serdes, StreamsBuilder
from pykstreams.serdes import Serde
from pykstreams.types import Int32


@dataclass(frozen=True)
class Created:
    id: int


@dataclass(frozen=True)
class Paid:
    id: int
    cents: int


OrderId = NewType("OrderId", str)
EVENT: Serde[Created | Paid] = Serdes.for_type(Created | Paid)
ID: Serde[OrderId] = Serdes.for_type(OrderId)
NUMBER: Serde[int] = Serdes.for_type(Annotated[int, Int32])


def cents_of(event: Created | Paid) -> int:
    return event.cents if isinstance(event, Paid) else 0


def event_of(text: str) -> Created | Paid:
    return Paid(1, int(text)) if text else Created(1)


builder = StreamsBuilder()
events = builder.stream("events", ID, EVENT)
assert_type(events, KStream[OrderId, Created | Paid])
events.map_values(cents_of).to("cents", Produced(key_serde=ID, value_serde=NUMBER))
assert_type(builder.stream("texts", str, str).map_values(event_of), KStream[str, Created | Paid])
assert_type(Serdes.for_type(Paid), Serde[Paid])
