"""Puts the records of a table in the order of their timestamps, before the table takes them.

Each record waits until the stream time that this operator has seen, over all keys, has come to its time and the grace;
then it goes on as it came, with its time, headers and origin. Invariant: what goes on never goes back in time; records
of one time keep the order in which they came.
"""

from __future__ import annotations

from dataclasses import dataclass

from pykstreams.core.processor import OperatorContext
from pykstreams.core.types import Headers
from pykstreams.processors.drop_reasons import LATE_FOR_ORDER, NULL_TABLE_KEY
from pykstreams.processors.process import Process
from pykstreams.processors.stores import store_of_class
from pykstreams.state.buffers.reorder_buffer import ReorderBuffer
from pykstreams.state.layers.changelogging import record_being_processed


@dataclass(frozen=True, slots=True)
class Reorder:
    """Lets records wait in the buffer ``store``.

    A record without key is dropped, as every table drops it, and moves no time on; so is one that comes later than the
    grace. One without value waits like any other.
    """

    store: str

    def build(self, context: OperatorContext) -> Process:
        store = self.store
        buffer = store_of_class(ReorderBuffer, context, store)
        buffer.follow(context.metadata)
        put, take, record = buffer.put, buffer.take, buffer.record
        current, forward, fail, drop = context.current, context.forward, context.fail, context.drop

        def process(key: object, value: object, timestamp: int, headers: Headers) -> None:
            if key is None:
                drop(NULL_TABLE_KEY)
                return
            try:
                came = record_being_processed(current, store)
                on_time = put(key, value, (came[0], timestamp, headers))
            except Exception as error:
                fail(error, key, value, timestamp, headers)
                return
            if not on_time:
                drop(LATE_FOR_ORDER)
                return
            while (waited := take()) is not None:
                try:
                    key_before, value_before, raw = record(waited)
                except Exception as error:
                    fail(error, key, value, timestamp, headers)
                    continue
                current.raw = raw
                try:
                    forward(key_before, value_before, raw[1], raw[2])
                finally:
                    current.raw = came

        return process
