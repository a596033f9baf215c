"""A foreign-key join that passes bytes on writes what one writes that serializes everything anew.

The reasons for the second way are serdes of users, which may look at the topic, and handlers that go on after errors.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

from pykstreams import KTable, LogAndContinueProcessingExceptionHandler, Materialized, StreamsBuilder
from pykstreams.runtime.tasks.raw_message import RawMessage
from pykstreams.serdes import JsonSerde
from pykstreams.testing.records import ProducedRecord
from tests.simulation.cluster import Cluster, simulated

ORDERS, PRODUCTS = "orders", "products"
PARTITIONS = {ORDERS: 2, PRODUCTS: 3, "out": 2}

Change: TypeAlias = tuple[str, str, bytes | None, int, bool]
"""(topic, key, value, timestamp, whether it has headers)"""

_times = st.integers(0, 50)
_orders = st.tuples(
    st.just(ORDERS),
    st.sampled_from("ab"),
    st.sampled_from([b'{"of":"x","n":1}', b'{"of":"y","n":1}', b'{ "n": 2, "of": "x" }', b'{"of":null}', None]),
    _times,
    st.booleans(),
)
_products = st.tuples(
    st.just(PRODUCTS),
    st.sampled_from("xy"),
    st.sampled_from([b'{"price":1}', b'{ "price": 2 }', b'"p"', None]),
    _times,
    st.booleans(),
)
CHANGES = st.lists(st.one_of(_orders, _products), min_size=5, max_size=40)


class UsersSerde(JsonSerde[Any]):
    """Nobody knows whether it writes the same bytes for all topics."""


def logs_of(changes: list[Change], seed: int, left: bool, **config: Any) -> dict[Any, list[Any]]:
    """All that is in all topics in the end, those between the two sides and the changelogs too."""
    settings = simulated(**config)
    builder = StreamsBuilder()
    orders: KTable[str, Any] = builder.table(ORDERS)
    products: KTable[str, Any] = builder.table(PRODUCTS)
    join: Any = orders.left_join if left else orders.join
    joined = join(
        products,
        lambda order, product: [order, product],
        foreign_key_extractor=lambda order: order["of"],
        materialized=Materialized("result"),
    )
    joined.to_stream().to("out")
    cluster = Cluster(builder.build().plan(settings), settings, PARTITIONS, seed)
    for topic, key, value, timestamp, has_headers in changes:
        headers = (("h", b"1"),) if has_headers else ()
        partition = ord(key) % 2 if topic == ORDERS else None  # "a" is not where its key alone would put it
        cluster.append(ProducedRecord(topic, partition, key.encode(), value, timestamp, headers))
    cluster.run()
    return {place: [_content(message) for message in log] for place, log in cluster.logs.items() if log}


def _content(message: RawMessage) -> tuple[Any, ...]:
    return message.key(), message.value(), message.timestamp(), message.headers()


@settings(deadline=None)
@given(CHANGES, st.integers(0, 1000), st.booleans(), st.sampled_from([0, 10_000]))
def test_all_topics_have_the_same_records(changes: list[Change], seed: int, left: bool, cache_bytes: int) -> None:
    cache = {"statestore.cache.max.bytes": cache_bytes}
    handler = {"processing.exception.handler": LogAndContinueProcessingExceptionHandler()}
    in_bytes = logs_of(changes, seed, left, **cache, **{"default.value.serde": JsonSerde()})
    as_values = logs_of(changes, seed, left, **cache, **handler, **{"default.value.serde": UsersSerde()})

    assert in_bytes == as_values
