"""Count, reduce and aggregate of a grouped stream in windows of so many records. Beyond Kafka Streams.

A record without key or value is dropped. A window that is full is forwarded as a record, with the largest timestamp of
its records and the headers of the last one, and leaves the store. All times are equal here: records count in the order
in which they come.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar, cast

from pykstreams.core.processor import OperatorContext
from pykstreams.core.types import Headers
from pykstreams.core.windows import CountWindows, PartialWindow
from pykstreams.processors.aggregates.stream_aggregate import owned_rows
from pykstreams.processors.aggregates.window_aggregate import Aggregation
from pykstreams.processors.drop_reasons import NULL_TO_AGGREGATE
from pykstreams.processors.process import Process
from pykstreams.processors.stores import table_rows
from pykstreams.state.interfaces.operator_stores import TableRows

K = TypeVar("K")
V = TypeVar("V")
VA = TypeVar("VA")


@dataclass(frozen=True, slots=True)
class CountWindowAggregate(Generic[K, V, VA]):
    """Keeps the windows that are not full in the store, one for each key.

    Where the size has become smaller, a window that has more records is full with the next one.
    """

    store: str
    windows: CountWindows
    aggregation: Aggregation[K, V, VA]
    takes_back: ClassVar = True
    """Changelogs stay behind: a window that leaves the store is not forgotten before its result was delivered."""

    def build(self, context: OperatorContext) -> Process:
        store: TableRows[K, PartialWindow[VA]] = table_rows(context, self.store)
        get_row, put_row = owned_rows(store, context, False)
        initializer, size = self.aggregation.initializer, self.windows.size
        # null is a value like others here: the aggregator gets back what it gave
        aggregator = cast("Callable[[K, V, VA], VA]", self.aggregation.aggregator)
        forward = context.current.following(context.forward)
        fail, drop = context.fail, context.drop

        def process(key: K, value: V, timestamp: int, headers: Headers) -> None:
            if key is None or value is None:
                drop(NULL_TO_AGGREGATE)
                return
            try:
                row = get_row(key)
                if row is None:
                    before, time = PartialWindow(0, initializer()), timestamp
                else:
                    before, time = row[0], max(row[1], timestamp)
                aggregate = aggregator(key, value, before.value)
                full = before.size + 1 >= size
                if row is not None or not full:
                    put_row(key, None if full else PartialWindow(before.size + 1, aggregate), time)
            except Exception as error:
                fail(error, key, value, timestamp, headers)
                return
            if full:
                forward(key, aggregate, time, headers)

        return process
