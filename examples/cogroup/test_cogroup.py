"""The example ``cogroup.py``: the customers of KIP-150, record by record."""

from __future__ import annotations

from examples.cogroup.cogroup import Customer, Item, build
from pykstreams import Serdes
from pykstreams.serdes import JsonSerde
from pykstreams.testing import TopologyTestDriver

CART = [(1, "01"), (2, "02"), (1, "03"), (1, "04"), (2, "05")]
PURCHASES = [(2, "06"), (1, "07"), (1, "08"), (2, "09"), (2, "10")]
WISH_LIST = [(1, "11"), (2, "12"), (2, "13"), (2, "14"), (2, "15")]
INPUT = [
    (topic, number, Item(no))
    for topic, items in (("cart", CART), ("purchases", PURCHASES), ("wish-list", WISH_LIST))
    for number, no in items
]


def items(numbers: str) -> list[Item]:
    return [Item(no) for no in numbers.split()]


def customer(cart: str, purchases: str, wish_list: str) -> Customer:
    return Customer(items(cart), items(purchases), items(wish_list))


FIRST = customer("01 03 04", "07 08", "11")
SECOND = customer("02 05", "06 09 10", "12 13 14 15")
EVERY = [
    (1, customer("01", "", "")),
    (2, customer("02", "", "")),
    (1, customer("01 03", "", "")),
    (1, customer("01 03 04", "", "")),
    (2, customer("02 05", "", "")),
    (2, customer("02 05", "06", "")),
    (1, customer("01 03 04", "07", "")),
    (1, customer("01 03 04", "07 08", "")),
    (2, customer("02 05", "06 09", "")),
    (2, customer("02 05", "06 09 10", "")),
    (1, FIRST),
    (2, customer("02 05", "06 09 10", "12")),
    (2, customer("02 05", "06 09 10", "12 13")),
    (2, customer("02 05", "06 09 10", "12 13 14")),
    (2, SECOND),
]


def test_without_a_cache_every_customer_on_the_way_is_emitted() -> None:
    with TopologyTestDriver(build(), {"application.id": "test", "statestore.cache.max.bytes": 0}) as driver:
        for topic, number, item in INPUT:
            driver.create_input_topic(topic, Serdes.long(), JsonSerde(Item)).pipe_input(number, item)

        customers = driver.create_output_topic("customers", Serdes.long(), JsonSerde(Customer))
        assert customers.read_key_values() == EVERY


def test_all_items_of_a_customer_are_in_one_store() -> None:
    with TopologyTestDriver(build(), {"application.id": "test"}) as driver:
        for topic, number, item in INPUT:
            driver.create_input_topic(topic, Serdes.long(), JsonSerde(Item)).pipe_input(number, item)

        assert list(driver.get_all_state_stores()) == ["customers"]
        store = driver.get_key_value_store("customers")
        assert store is not None
        assert (store.get(1), store.get(2)) == (FIRST, SECOND)
