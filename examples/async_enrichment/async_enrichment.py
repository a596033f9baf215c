"""Adds the customer's name to orders, by asking a service that takes its time.

    pykstreams run examples/async_enrichment/async_enrichment.py --bootstrap-servers localhost:9092

``orders`` holds JSON such as ``{"customer": 17, "amount": 250}``, keyed by order; ``enriched-orders`` gets the same
with a name. Up to 200 orders wait for their answers at a time, and results of one key leave in the order of their
orders. An answer that does not come within a second is asked for three times more; then the processing exception
handler decides.

The service is played by a function that sleeps. A real one would be asked with an asynchronous client, which must be
made inside of the coroutine: it belongs to the event loop on which that runs.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

from pykstreams import StreamsBuilder, Topology

application_id = "async-enrichment"

NAMES = ("Ada", "Grace", "Edsger", "Barbara", "Tony")


@dataclass(frozen=True, slots=True)
class Order:
    customer: int
    amount: int


@dataclass(frozen=True, slots=True)
class EnrichedOrder:
    customer: int
    amount: int
    name: str


async def name_of(customer: int) -> str:
    """Plays the service."""
    await asyncio.sleep(0.02)
    return NAMES[customer % len(NAMES)]


def build(look_up: Callable[[int], Awaitable[str]] = name_of) -> Topology:
    async def enrich(order: Order) -> EnrichedOrder:
        return EnrichedOrder(order.customer, order.amount, await look_up(order.customer))

    builder = StreamsBuilder()
    (
        builder.stream("orders", str, Order)
        .map_values_async(enrich, max_in_flight=200, timeout=timedelta(seconds=1), retries=3, name="ask-for-name")
        .to("enriched-orders")
    )
    return builder.build()
