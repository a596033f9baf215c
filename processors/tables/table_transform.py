"""Tables whose values a user's ``ValueTransformerWithKey`` makes, with access to stores.

Unlike mappers, a transformer is shown null values, too: those of deletions, and of rows that are not there
(``KTableTransformValues``, 4.3.1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, Never, TypeVar

from pykstreams.core.errors import StreamsError
from pykstreams.core.processor import OperatorContext
from pykstreams.core.record import Record
from pykstreams.core.shown_values import shown
from pykstreams.core.types import Change, Headers
from pykstreams.core.value_transformer import ValueTransformerContext, ValueTransformerWithKeySupplier
from pykstreams.processors.process import Process
from pykstreams.processors.tables.table_forwarding import kept_rows
from pykstreams.processors.tables.table_view import (
    Compute,
    HistoryView,
    ReadRow,
    ReadRowAsOf,
    RowHistory,
    TableView,
    reader_as_of,
)
from pykstreams.processors.user import DelegatingContext

K = TypeVar("K")
V = TypeVar("V")
VR = TypeVar("VR")

_UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class TableTransformValues(Generic[K, V, VR]):
    """Transforms the value of each row; without a store an old value is the transformer's for the parent's old value.

    ``supplier`` gives each task a transformer, and each operator that reads the table another one.
    """

    supplier: ValueTransformerWithKeySupplier[K, V, VR]
    store: str | None = None
    send_old_values: bool = False

    def build(self, context: OperatorContext) -> Process:
        transform = _transformer(self.supplier, context)
        if self.store is not None:
            return kept_rows(transform, self.store, self.send_old_values, context)
        send_old_values = self.send_old_values
        forward, fail = context.forward, context.fail

        def process(key: K, change: Change[V], timestamp: int, headers: Headers) -> None:
            try:
                new = transform(key, change[0])
                old = transform(key, change[1]) if send_old_values else None
            except Exception as error:
                fail(error, key, change, timestamp, headers)
                return
            forward(key, (new, old, change[2]), timestamp, headers)

        return process

    def view(self, parent: TableView[K, V]) -> TableView[K, VR]:
        """The transformed table as it is read where it has no store."""
        return TransformedView(parent, self.supplier)


@dataclass(frozen=True, slots=True)
class TransformedView(Generic[K, V, VR]):
    """A transformed table without a store, which each read transforms anew.

    Meanwhile the current record is the row that is read: it has the row's time, no headers and no position. The
    transformer may use the stores of the operator that reads (``KTableTransformValuesGetter``, 4.3.1).
    """

    parent: TableView[K, V]
    supplier: ValueTransformerWithKeySupplier[K, V, VR]

    @property
    def stores(self) -> tuple[str, ...]:
        return self.parent.stores

    def as_forwarded(self) -> TransformedView[K, V, VR]:
        return replace(self, parent=self.parent.as_forwarded())

    def build(self, context: OperatorContext) -> ReadRow[K, VR]:
        read_parent, transformed = self.parent.build(context), self._transformed(context)

        def read(key: K) -> tuple[VR, int] | None:
            return transformed(key, read_parent(key))

        return read

    def build_as_of(self, context: OperatorContext) -> ReadRowAsOf[K, VR] | None:
        read_parent = reader_as_of(self.parent, context)
        if read_parent is None:
            return None
        transformed = self._transformed(context)

        def read(key: K, time: int) -> tuple[VR, int] | None:
            return transformed(key, read_parent(key, time))

        return read

    def build_history(self, context: OperatorContext) -> RowHistory[K, VR] | None:
        parent = self.parent
        history = parent.build_history(context) if isinstance(parent, HistoryView) else None
        if history is None:
            return None
        read_parent, transformed = history.between, self._transformed(context)

        def at(key: K, since: int, value: V | None) -> VR | None:
            row = transformed(key, None if value is None else (value, since))
            return None if row is None else row[0]

        def between(key: K, time_from: int, time_to: int) -> list[tuple[int, VR | None]]:
            return [(since, at(key, since, value)) for since, value in read_parent(key, time_from, time_to)]

        return RowHistory(between, history.end)

    def _transformed(self, context: OperatorContext) -> Callable[[K, tuple[V, int] | None], tuple[VR, int] | None]:
        transform, current = _transformer(self.supplier, context), context.current

        def transformed(key: K, row: tuple[V, int] | None) -> tuple[VR, int] | None:
            value, timestamp = row or (None, _UNKNOWN)
            raw = current.raw
            current.raw = (None, timestamp, ())
            try:
                new = transform(key, value)
            finally:
                current.raw = raw
            return None if new is None else (new, timestamp)

        return transformed


def _transformer(supplier: ValueTransformerWithKeySupplier[K, V, VR], context: OperatorContext) -> Compute[K, V, VR]:
    transformer = supplier()
    facade = _Context(context)
    context.on_init(lambda: transformer.init(facade))
    context.on_close(transformer.close)
    return transformer.transform


class _Context(DelegatingContext, ValueTransformerContext):
    __slots__ = ("_current",)

    def __init__(self, context: OperatorContext) -> None:
        super().__init__(context)
        self._current = context.current

    @property
    def timestamp(self) -> int:
        raw = self._current.raw
        return _UNKNOWN if raw is None else raw[1]

    @property
    def headers(self) -> Headers:
        raw = self._current.raw
        return () if raw is None else raw[2]

    def forward(self, record: Record[Never, Never], child_name: str | None = None) -> None:
        raise StreamsError(
            f"{self._node} forwards {shown(record)}, but a ValueTransformerWithKey cannot forward; return the value, "
            "or use to_stream().process()"
        )
