"""Keeps what each product has brought in, all in all and by hour, for whoever asks over HTTP.

    pykstreams run examples/sales_over_http/sales_over_http.py --embedded --http 7070
    curl localhost:7070/stores/revenue/keys/tea

``sales`` holds cents (an 8-byte integer) under the product. Nothing is written to a topic: the stores ``revenue`` and
``revenue-by-hour`` are the result. Every instance answers for all products, also for those whose partitions others
have.
"""

from datetime import timedelta

from pykstreams import Materialized, StreamsBuilder, TimeWindows, Topology

application_id = "sales-over-http"

hours = TimeWindows(timedelta(hours=1), grace=timedelta(minutes=10))


def add(total: int, cents: int) -> int:
    return total + cents


def build() -> Topology:
    builder = StreamsBuilder()
    sales = builder.stream("sales", str, int).group_by_key()
    sales.reduce(add, materialized="revenue")
    sales.windowed_by(hours).reduce(add, materialized=Materialized("revenue-by-hour", retention=timedelta(days=7)))
    return builder.build()
