"""The records of the benchmarks: the same ones at every call, whatever the program.

Keys have 20 bytes, values about 100; event times spread over ten minutes that end ten minutes before the topic is
filled.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import TypeAlias

from benchmarks.settings import KEYS

Payload: TypeAlias = tuple[bytes, bytes, int]
"""(key, value, timestamp in ms)"""

SPAN_MS = 600_000

MANY_KEYS = 10_000_000

VERSIONS_EACH = 10
"""How many versions there are of each customer."""

ORDERS_EACH = 10
"""How many orders there are of each product."""


def json_events(count: int, seed: int = 7) -> Iterator[Payload]:
    """Events of random customers, as JSON objects of six fields."""
    return _events(count, _json_value, seed)


def events_beside_versions(count: int) -> Iterator[Payload]:
    """The events of ``json_events``, for a topic of their own beside the versioned table."""
    return json_events(count)


def events_of_many(count: int) -> Iterator[Payload]:
    """Events of random customers, most of which have one event."""
    return _events(count, _json_value, 7, MANY_KEYS)


def sized_events(count: int, keys: int, value_bytes: int) -> Iterator[Payload]:
    """The events of ``json_events`` with so many keys, and values of so many bytes, or of 100 when that is more."""
    for key, value, timestamp in _events(count, _json_value, 7, keys):
        yield key, value[:-2] + b"." * (value_bytes - len(value)) + value[-2:], timestamp


def string_events(count: int) -> Iterator[Payload]:
    """Events of random customers, as plain text; the tenth character is a digit of the event's number."""
    return _events(count, _string_value, 7)


def totals(count: int) -> Iterator[Payload]:
    """Rows of the changelog of a table of totals: each key once."""
    now = int(time.time() * 1000)
    for key in range(count):
        yield customer(key), b'{"count":%d,"sum":%d}' % (key % 50 + 1, key % 10_007), now


def customers() -> Iterator[Payload]:
    """Rows of the table of customers: each key of the events once, earlier than all of them."""
    before = int(time.time() * 1000) - 3 * SPAN_MS
    for key in range(KEYS):
        yield customer(key), b'{"name":"name-%08d","tier":%d}' % (key, key % 7), before


def customer_versions() -> Iterator[Payload]:
    """Rows of the versioned table of customers: each customer ten times, the first time earlier than all events."""
    before = int(time.time() * 1000) - 3 * SPAN_MS
    for version in range(VERSIONS_EACH):
        for key in range(KEYS):
            value = b'{"name":"name-%08d-%d","tier":%d}' % (key, version, key % 7)
            yield customer(key), value, before + version * 2 * SPAN_MS // VERSIONS_EACH


def orders(count: int) -> Iterator[Payload]:
    """Rows of the table of orders, ten for each product: each of another product than the one before."""
    first = int(time.time() * 1000) - 2 * SPAN_MS
    products = max(count // ORDERS_EACH, 1)
    for number in range(count):
        value = b'{"id":%d,"product":"product-%06d","quantity":%d}' % (number, number * 7919 % products, number % 9)
        yield b"order-%09d" % number, value, first + number * SPAN_MS // count


def products(orders: int, version: int) -> Iterator[Payload]:
    """Rows of the table of products for so many orders; the first version is earlier than all orders."""
    now = int(time.time() * 1000)
    for number in range(max(orders // ORDERS_EACH, 1)):
        value = b'{"name":"name-%08d","version":%d}' % (number, version)
        yield b"product-%06d" % number, value, now - 3 * SPAN_MS if version == 1 else now


def customer(number: int) -> bytes:
    """The key of a customer."""
    return b"customer-%011d" % number


def _events(count: int, value: Callable[[int, int, int], bytes], seed: int, keys: int = KEYS) -> Iterator[Payload]:
    chance = random.Random(seed)
    first = int(time.time() * 1000) - 2 * SPAN_MS
    for number in range(count):
        key = chance.randrange(keys)
        yield customer(key), value(number, key, chance.randrange(1000)), first + number * SPAN_MS // count


def _json_value(number: int, key: int, amount: int) -> bytes:
    return b'{"id":%d,"user":"u%08d","region":"r%02d","amount":%d,"price":%d.25,"note":"abcdefghijklmnopqrst"}' % (
        number,
        key * 7919 % KEYS,
        key % 50,
        amount,
        amount % 97,
    )


def _string_value(number: int, key: int, amount: int) -> bytes:
    letters = b"abcdefghijklmnopqrstuvwxyz"
    return b"%010d|u%08d|r%02d|%03d|%b" % (number, key * 7919 % KEYS, key % 50, amount, letters * 2 + letters[:20])
