"""Adds the name of a country to visits, by asking a service once a minute at most for each country.

    pykstreams run examples/more/cached_lookups.py --embedded          (or: --bootstrap-servers localhost:9092)

``visits`` holds JSON such as ``{"country": "NL"}``, keyed by visitor; ``named-visits`` gets the same with the name.
Equal countries are asked for once at a time, answers are remembered for a minute, and for ten seconds that there was
none.

The service is played by a function that sleeps. A real one would be asked with an asynchronous client, which must be
made inside of the coroutine.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

from pykstreams import LookupCache, StreamsBuilder, Topology

application_id = "cached-lookups"

NAMES = {"NL": "Netherlands", "PT": "Portugal"}


@dataclass(frozen=True, slots=True)
class Visit:
    country: str


@dataclass(frozen=True, slots=True)
class NamedVisit:
    country: str
    name: str | None


def named(visit: Visit, name: str | None) -> NamedVisit:
    return NamedVisit(visit.country, name)


async def name_of(country: str) -> str | None:
    """Plays the service."""
    await asyncio.sleep(0.02)
    return NAMES.get(country)


def build(look_up: Callable[[str], Awaitable[str | None]] = name_of) -> Topology:
    cache = LookupCache(max_entries=500, ttl=timedelta(minutes=1), missing_ttl=timedelta(seconds=10))
    builder = StreamsBuilder()
    (
        builder.stream("visits", str, Visit)
        .lookup(
            look_up,
            named,
            key=lambda visitor, visit: visit.country,
            cache=cache,
            timeout=timedelta(seconds=1),
            retries=3,
            name="ask-for-country",
        )
        .to("named-visits")
    )
    return builder.build()
