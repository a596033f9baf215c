"""The example ``async_enrichment.py`` in the test driver."""

from __future__ import annotations

from examples.async_enrichment.async_enrichment import EnrichedOrder, Order, build
from pykstreams import Serdes
from pykstreams.serdes import JsonSerde
from pykstreams.testing import TopologyTestDriver


def test_orders_get_the_names_of_their_customers() -> None:
    async def look_up(customer: int) -> str:
        return f"customer {customer}"

    with TopologyTestDriver(build(look_up)) as driver:
        orders = driver.create_input_topic("orders", Serdes.string(), JsonSerde(Order))
        enriched = driver.create_output_topic("enriched-orders", Serdes.string(), JsonSerde(EnrichedOrder))
        orders.pipe_input("1", Order(17, 250))
        orders.pipe_input("2", Order(4, 10))

        assert enriched.read_key_values() == [
            ("1", EnrichedOrder(17, 250, "customer 17")),
            ("2", EnrichedOrder(4, 10, "customer 4")),
        ]


def test_service_that_answers_late_only_once_is_asked_again() -> None:
    asked: list[int] = []

    async def look_up(customer: int) -> str:
        asked.append(customer)
        if len(asked) == 1:
            raise ConnectionError("busy")
        return "Ada"

    with TopologyTestDriver(build(look_up), {"retry.backoff.ms": 1}) as driver:
        orders = driver.create_input_topic("orders", Serdes.string(), JsonSerde(Order))
        enriched = driver.create_output_topic("enriched-orders", Serdes.string(), JsonSerde(EnrichedOrder))
        orders.pipe_input("1", Order(0, 1))

        assert (asked, enriched.read_value().name) == ([0, 0], "Ada")
