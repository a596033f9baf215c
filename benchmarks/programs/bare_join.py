"""w6 in the bare loop: a foreign-key join by subscription and answer, with the topics that Kafka Streams has.

State is read and written per record, as in ``w2-uncached``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Any

from orjson import dumps, loads
from rocksdict import Rdict

from benchmarks.programs.job import Job
from benchmarks.topics.fill import Topics

_HASH_BYTES = 16
_PARTITION = struct.Struct(">i")


class JoinForeignKey:
    """w6: reads both tables and both topics between them in one loop, as one worker does."""

    def __init__(self, job: Job, send: Callable[..., None], open_store: Callable[[Job, str], Rdict]) -> None:
        # The topics that are read come first: the consumer must know them when it subscribes.
        names = ("orders", "products", "subscriptions", "priced-orders")
        topics = Topics(job.brokers)
        self._asked = f"{job.application_id}-priced-subscription-registration-topic"
        self._answered = f"{job.application_id}-priced-subscription-response-topic"
        for name in (self._asked, self._answered):
            topics.create(name)
        self._changelogs = {name: f"{job.application_id}-{name}-changelog" for name in names}
        for name in self._changelogs.values():
            topics.create(name, compacted=True)
        self._orders, self._products, self._subscriptions, self._results = (open_store(job, name) for name in names)
        self._sink, self._send = job.sink, send
        self._work: dict[str, Callable[[Any], None]] = {
            job.source: self._order,
            f"{job.source}-table": self._product,
            self._asked: self._subscription,
            self._answered: self._answer,
        }
        self.topics = list(self._work)

    def process(self, messages: Iterable[Any]) -> None:
        work = self._work
        for message in messages:
            work[message.topic()](message)

    def flush(self) -> None:
        """Keeps nothing back."""

    def _order(self, message: Any) -> None:
        key, value, timestamp = message.key(), message.value(), message.timestamp()[1]
        self._keep(self._orders, "orders", key, value, timestamp, message.partition())
        asked = _hash(value) + _PARTITION.pack(message.partition()) + key
        self._send(self._asked, loads(value)["product"].encode(), asked, timestamp)

    def _product(self, message: Any) -> None:
        key, value, timestamp = message.key(), message.value(), message.timestamp()[1]
        self._keep(self._products, "products", key, value, timestamp, message.partition())
        prefix = _PARTITION.pack(len(key)) + key
        found: Any = self._subscriptions.items(from_key=prefix)
        for subscription, asked in found:
            if not subscription.startswith(prefix):
                return
            self._respond(subscription[len(prefix) :], asked, value, timestamp)

    def _subscription(self, message: Any) -> None:
        product, asked, timestamp = message.key(), message.value(), message.timestamp()[1]
        order = asked[_HASH_BYTES + 4 :]
        key = _PARTITION.pack(len(product)) + product + order
        kept = asked[: _HASH_BYTES + 4]
        self._keep(self._subscriptions, "subscriptions", key, kept, timestamp, message.partition())
        value = self._products.get(product)
        if value is not None:
            self._respond(order, kept, value, timestamp)

    def _respond(self, order: bytes, asked: bytes, value: bytes, timestamp: int) -> None:
        partition = _PARTITION.unpack_from(asked, _HASH_BYTES)[0]
        self._send(self._answered, order, asked[:_HASH_BYTES] + value, timestamp, partition)

    def _answer(self, message: Any) -> None:
        key, answer, timestamp = message.key(), message.value(), message.timestamp()[1]
        stored = self._orders.get(key)
        if stored is None or _hash(stored) != answer[:_HASH_BYTES]:
            return
        order, product = loads(stored), loads(answer[_HASH_BYTES:])
        priced = {
            "id": order["id"],
            "name": product["name"],
            "quantity": order["quantity"],
            "version": product["version"],
        }
        value = dumps(priced)
        self._keep(self._results, "priced-orders", key, value, timestamp, message.partition())
        self._send(self._sink, key, value, timestamp)

    def _keep(self, store: Rdict, name: str, key: bytes, value: bytes, timestamp: int, partition: int) -> None:
        store.put(key, value)
        self._send(self._changelogs[name], key, value, timestamp, partition)


def _hash(value: bytes) -> bytes:
    return blake2b(value, digest_size=_HASH_BYTES).digest()
