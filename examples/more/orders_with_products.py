"""Joins a stream of orders, keyed by order, with a table of products, keyed by product.

    pykstreams run examples/more/orders_with_products.py --embedded          (or: --bootstrap-servers localhost:9092)

``orders`` holds JSON such as ``{"product": "pen", "count": 3}``, and ``products`` ``{"cents": 120}``;
``priced-orders`` gets what an order costs, keyed by order as before. The orders go to their products through one
repartition topic, and come back to their own keys through another.
"""

from dataclasses import dataclass

from pykstreams import Joined, Repartitioned, StreamsBuilder, Topology

application_id = "orders-with-products"


@dataclass(frozen=True, slots=True)
class Order:
    product: str
    count: int


@dataclass(frozen=True, slots=True)
class Product:
    cents: int


@dataclass(frozen=True, slots=True)
class PricedOrder:
    product: str
    cents: int


def price(order: Order, product: Product) -> PricedOrder:
    return PricedOrder(order.product, order.count * product.cents)


def build() -> Topology:
    builder = StreamsBuilder()
    products = builder.table("products", str, Product)
    orders = builder.stream("orders", str, Order)
    orders.join(
        products,
        price,
        key_selector=lambda number, order: order.product,
        joined=Joined(name="product"),
        repartitioned=Repartitioned(name="priced"),
    ).to("priced-orders")
    return builder.build()
