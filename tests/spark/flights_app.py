"""An application over the flights from New York of 2013: what each plane is, what flew when, what came last."""

from __future__ import annotations

from typing import Any

from pykstreams import Consumed, Grouped, Materialized, Produced, Serdes, StreamsBuilder, TimeWindows
from pykstreams.serdes import JsonSerde

application_id = "flights"
config = {"bootstrap.servers": "nowhere:9"}

DAY_MS = 86_400_000
FLIGHT = ["year", "dep_time", "dep_delay", "air_time", "carrier", "flight", "tailnum", "origin"]
PLANE = ["year", "model", "seats", "speed"]


def flight_key(row: dict[str, Any]) -> str:
    """The columns that no two flights have in common."""
    return "{month}-{day} {carrier}{flight} {origin} {sched_dep_time}".format_map(row)


def in_service(row: dict[str, Any]) -> int:
    """Planes are there before all flights."""
    return 0


def build() -> StreamsBuilder:
    builder = StreamsBuilder()
    text, number, objects = Serdes.string(), Serdes.long(), JsonSerde()
    consumed = Consumed(key_serde=text, value_serde=objects)
    flights = builder.table("flights", consumed, materialized=Materialized("flights"))
    planes = builder.table("planes", consumed, materialized=Materialized("planes"))
    joined = flights.join(
        planes,
        lambda flight, plane: {**flight, "plane": plane},
        foreign_key_extractor=lambda flight: flight["tailnum"],
        materialized=Materialized("joined", key_serde=text, value_serde=objects),
    )
    joined.to_stream().to("joined", Produced(key_serde=text, value_serde=objects))

    departures = builder.stream("departures", consumed)
    by_carrier = departures.group_by_key(Grouped(key_serde=text, value_serde=objects))
    days = by_carrier.windowed_by(TimeWindows(DAY_MS, grace=0)).count(
        materialized=Materialized("days", key_serde=text, value_serde=number)
    )
    per_day = days.to_stream().map(lambda key, count: (f"{key.key} {key.window.start // DAY_MS}", count))
    per_day.to("days", Produced(key_serde=text, value_serde=number))
    last = by_carrier.reduce(
        lambda one, other: other, materialized=Materialized("last", key_serde=text, value_serde=objects)
    )
    last.to_stream().to("last", Produced(key_serde=text, value_serde=objects))
    return builder
