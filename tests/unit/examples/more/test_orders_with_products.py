"""The example ``orders_with_products.py`` in the test driver."""

from __future__ import annotations

from examples.more.orders_with_products import Order, PricedOrder, Product, build
from pykstreams import Serdes
from pykstreams.serdes import JsonSerde
from pykstreams.testing import TopologyTestDriver


def test_orders_get_the_prices_of_their_products() -> None:
    with TopologyTestDriver(build()) as driver:
        products = driver.create_input_topic("products", Serdes.string(), JsonSerde(Product))
        orders = driver.create_input_topic("orders", Serdes.string(), JsonSerde(Order))
        priced = driver.create_output_topic("priced-orders", Serdes.string(), JsonSerde(PricedOrder))
        products.pipe_input("pen", Product(120))
        orders.pipe_input("1", Order("pen", 3))
        orders.pipe_input("2", Order("unknown", 1))

        assert priced.read_key_values() == [("1", PricedOrder("pen", 360))]
