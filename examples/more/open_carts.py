"""Says how many carts hold each product; a cart that nobody has touched for half an hour counts no more.

    pykstreams run examples/more/open_carts.py --bootstrap-servers localhost:9092

``carts`` holds the product that was put into a cart last, a text under the customer; null empties the cart.
``carts-by-product`` gets the count of carts (an 8-byte integer) under the product. Time is the wall clock, so that
carts are left behind also while nobody buys anything.
"""

from datetime import timedelta

from pykstreams import Materialized, PunctuationType, StreamsBuilder, Topology

application_id = "open-carts"

half_an_hour: Materialized[str, str] = Materialized(
    "carts-by-customer",
    time_to_live=timedelta(minutes=30),
    time_to_live_by=PunctuationType.WALL_CLOCK_TIME,
)


def by_product(customer: str, product: str) -> tuple[str, str]:
    return product, customer


def build() -> Topology:
    builder = StreamsBuilder()
    carts = builder.table("carts", str, str, materialized=half_an_hour)
    (carts.group_by(by_product).count(materialized="carts-by-product").to_stream().to("carts-by-product"))
    return builder.build()
