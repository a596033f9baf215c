"""The example ``cogroup.py``: the customers of KIP-150, as a cache leaves them."""

from __future__ import annotations

from examples.cogroup.cogroup import Customer, Item, build
from examples.cogroup.test_cogroup import FIRST, INPUT, SECOND
from pykstreams import BuiltInDslStoreSuppliers, Serdes, StreamsConfig
from pykstreams.serdes import JsonSerde
from tests.unit.dsl.one_commit import run_in_one_commit


def test_with_a_cache_the_two_final_customers_are_emitted() -> None:
    number, item, customer = Serdes.long(), JsonSerde(Item), JsonSerde(Customer)
    records = [
        (topic, number.serializer.serialize(topic, key) or b"", item.serializer.serialize(topic, value) or b"")
        for topic, key, value in INPUT
    ]
    config = StreamsConfig({"application.id": "test", "dsl.store.suppliers.class": BuiltInDslStoreSuppliers.IN_MEMORY})

    produced = run_in_one_commit(build(), config, records)

    found = [
        (number.deserializer.deserialize(r.topic, r.key), customer.deserializer.deserialize(r.topic, r.value))
        for r in produced
        if r.topic == "customers"
    ]
    assert found == [(1, FIRST), (2, SECOND)]
