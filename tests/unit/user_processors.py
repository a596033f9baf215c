"""Processors as a user writes them, which many tests need."""

from __future__ import annotations

from typing import Any

from pykstreams import FixedKeyProcessor, FixedKeyRecord, Processor, Record


class Forward(Processor[Any, Any, Any, Any]):
    """Forwards each record."""

    def process(self, record: Record[Any, Any]) -> None:
        self.context.forward(record)


class ForwardValue(FixedKeyProcessor[Any, Any, Any]):
    """Forwards each record, whose key it cannot change."""

    def process(self, record: FixedKeyRecord[Any, Any]) -> None:
        self.context.forward(record)


class Put(Processor[Any, Any, Any, Any]):
    """Puts each record into the store ``kv``."""

    def process(self, record: Record[Any, Any]) -> None:
        self.context.get_state_store("kv").put(record.key, record.value)
