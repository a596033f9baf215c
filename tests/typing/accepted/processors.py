"""A processor with a store, connected by its name."""

from __future__ import annotations

from dataclasses import dataclass

from pykstreams import Processor, ProcessorContext, Record, Serdes, Stores, StreamsBuilder
from pykstreams.state import KeyValueStore


@dataclass(frozen=True)
class Order:
    customer: str
    cents: int


@dataclass
class Total:
    cents: int = 0

    def plus(self, cents: int) -> Total:
        return Total(self.cents + cents)


class Largest(Processor[str, Order, str, int]):
    def init(self, context: ProcessorContext[str, int]) -> None:
        super().init(context)
        self.store: KeyValueStore[str, int] = context.get_state_store("largest")

    def process(self, record: Record[str, Order]) -> None:
        before = self.store.get(record.key)
        if before is None or record.value.cents > before:
            self.store[record.key] = record.value.cents
            self.context.forward(Record(record.key, record.value.cents, record.timestamp))


builder = StreamsBuilder()
store = Stores.persistent_key_value_store("largest")
builder.add_state_store(Stores.key_value_store_builder(store, Serdes.string(), Serdes.long()))
builder.stream("orders", str, Order).process(Largest, "largest").to("largest-orders")
