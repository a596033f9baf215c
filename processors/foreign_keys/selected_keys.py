"""Results of a non-key join under the keys that a selector gives them: sent there, and kept there.

Several rows may select one key. Each result is therefore kept apart, as ``CombinedKey(selected key, CombinedKey(mapped
key, key))``; the one written last is the row of the selected key. When it goes, the one written before it comes back.

Invariant: a result is added and deleted under its own combined key, so it does not matter in which order tasks of
different mapped keys are heard; which of two results is the last is decided here, by a number that is kept with each.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from pykstreams.core.metrics import Counter
from pykstreams.core.processor import OperatorContext
from pykstreams.core.types import Change, Decoder, Headers, KeyValueMapper
from pykstreams.processors.process import Process
from pykstreams.processors.same_key import is_same_key
from pykstreams.processors.stores import key_value_rows
from pykstreams.processors.tables.table_view import ReadRow
from pykstreams.serdes.base import (
    CompiledSerde,
    EncoderOf,
    Serde,
    bind_deserializer,
    bind_serializer,
    refused_bytes,
    refused_value,
)
from pykstreams.serdes.combined_key import CombinedKey
from pykstreams.state.interfaces.operator_stores import KeyValueRows

K = TypeVar("K")
KM = TypeVar("KM")
R = TypeVar("R")

COLLISIONS: Final = "selected-key-collisions-total"
"""The metric: results that found their key taken by the result of another row."""

_NUMBER = struct.Struct(">q")

_ResultKey: TypeAlias = CombinedKey[object, CombinedKey[object, object]]
"""The selected key; mapped key and key of the row"""

_Row: TypeAlias = "tuple[_ResultKey, Numbered, int]"
"""(key, Numbered, timestamp in ms)"""


class Matched(NamedTuple):
    """The result of a join before its key is selected, and whether both rows were there."""

    both: bool
    result: object


class Numbered(NamedTuple):
    """A result, and a number that is higher than those of all results that were written under its key before."""

    number: int
    result: object


@dataclass(frozen=True)
class NumberedSerde(CompiledSerde[Numbered], Generic[R]):
    """Numbered results: ``{number: 8, big-endian}{result}``."""

    inner: Serde[R]

    def encoder(self, topic: str) -> EncoderOf[Numbered]:
        inner, pack = bind_serializer(self.inner.serializer, topic), _NUMBER.pack

        def encode(data: Numbered | None, headers: Headers) -> bytes | None:
            if data is None:
                return None
            raw = inner(data[1], headers)
            if raw is None:
                raise refused_value(repr(self), topic, data[1], "the inner serde gives no bytes")
            return pack(data[0]) + raw

        return encode

    def decoder(self, topic: str) -> Decoder:
        inner, unpack = bind_deserializer(self.inner.deserializer, topic), _NUMBER.unpack

        def decode(data: bytes | None, headers: Headers) -> Numbered | None:
            if data is None:
                return None
            if len(data) < _NUMBER.size:
                raise refused_bytes(repr(self), topic, data, "expected a number of 8 bytes and a result")
            return Numbered(unpack(data[: _NUMBER.size])[0], inner(data[_NUMBER.size :], headers))

        return decode


@dataclass(frozen=True, slots=True)
class SelectKeys(Generic[K, KM]):
    """Sends the results of a join on under ``CombinedKey(selected key, key of the join)``.

    ``selector(key, mapped key)`` gets ``None`` for the row that is missing. When a result gets another key it is
    deleted under the former one first. A result whose selected key is null is dropped and counted; one for which the
    selector raises, while the processing exception handler goes on, is gone, too.

    A replayed one is deleted under the other key that it may have had: which one it had before may be forgotten.
    """

    selector: KeyValueMapper[K | None, KM | None, object]

    def build(self, context: OperatorContext) -> Process:
        selector = self.selector
        forward, fail, drop, current = context.forward, context.fail, context.drop, context.current

        def select(key: CombinedKey[KM | None, K | None], both: bool) -> object:
            mapped, own = key
            if both:
                return selector(own, mapped)
            return selector(None, mapped) if own is None else selector(own, None)

        def process(
            key: CombinedKey[KM | None, K | None], change: Change[Matched], timestamp: int, headers: Headers
        ) -> None:
            new, old, _ = change
            selected = None
            if new is not None:
                try:
                    selected = select(key, new.both)
                except Exception as error:
                    fail(error, key, change, timestamp, headers)
                else:
                    if selected is None:
                        drop("the selected key of a join is null")
            if current.replayed:
                both_before: tuple[bool, ...] = (False,) if key[0] is None or key[1] is None else (False, True)
            else:
                both_before = () if old is None else (old.both,)
            for both in both_before:
                try:
                    former = select(key, both)
                except Exception:  # reported when the result was new, and then it was not sent
                    continue
                if former is not None and not is_same_key(former, selected):
                    forward(CombinedKey(former, key), None, timestamp, headers)
            if new is not None and selected is not None:
                forward(CombinedKey(selected, key), new.result, timestamp, headers)

        return process


@dataclass(frozen=True, slots=True)
class SelectedKeys:
    """Keeps all results of each selected key, and forwards the changes of the one that was written last.

    A result that finds the key taken by another row counts as a collision (``selected-key-collisions-total``). Two
    results of one row of the left table are none: it moves between two mapped keys, and the other is about to go.
    """

    store: str
    prefix_serializer: object

    def build(self, context: OperatorContext) -> Process:
        store: KeyValueRows[_ResultKey, Numbered] = key_value_rows(context, self.store)
        put_row, scan = store.put_row, store.rows_by_prefix(self.prefix_serializer)
        current = context.current
        forward, fail = current.following(context.forward), context.fail
        collisions = _collisions(context)

        def process(key: _ResultKey, value: object, timestamp: int, headers: Headers) -> None:
            selected = key[0]
            try:
                rows = list(scan(selected))
                before = _last(rows)
                others = [row for row in rows if row[0] != key]
                if value is None:
                    if len(others) < len(rows):
                        put_row(key, None, timestamp)
                    after = _last(others)
                else:
                    number = 0 if before is None else before[1].number + (before[0] != key)
                    put_row(key, Numbered(number, value), timestamp)
                    after = (key, Numbered(number, value), timestamp)
                    if len(others) == len(rows) and _collides(key, others):
                        collisions.add()
            except Exception as error:
                fail(error, key, value, timestamp, headers)
                return
            if after is before and not current.replayed:  # if it is, what was sent before may be another one
                return
            time = timestamp if after is None else max(timestamp, after[2])
            forward(selected, (_result(after), _result(before), True), time, headers)

        return process


@dataclass(frozen=True, slots=True)
class SelectedView:
    """The results as they are read by their selected keys."""

    store: str
    prefix_serializer: object

    @property
    def stores(self) -> tuple[str, ...]:
        return (self.store,)

    def as_forwarded(self) -> SelectedView:
        return self

    def build(self, context: OperatorContext) -> ReadRow[object, object]:
        store: KeyValueRows[_ResultKey, Numbered] = key_value_rows(context, self.store)
        scan = store.rows_by_prefix(self.prefix_serializer)

        def read(key: object) -> tuple[object, int] | None:
            row = _last(scan(key))
            return None if row is None else (row[1].result, row[2])

        return read


def _last(rows: Iterable[_Row]) -> _Row | None:
    return max(rows, key=_number, default=None)


def _number(row: _Row) -> int:
    return row[1].number


def _result(row: _Row | None) -> object:
    return None if row is None else row[1].result


def _collides(key: _ResultKey, others: Iterable[_Row]) -> bool:
    own = key[1][1]
    return any(own is None or other[0][1][1] != own for other in others)


def _collisions(context: OperatorContext) -> Counter:
    processing = context.processing
    return processing.metrics.counter(
        COLLISIONS, "stream-processor-node-metrics", task_id=str(processing.task_id), processor_node_id=context.node
    )
