"""The history of a topic: where its records are, and how they become records for tasks.

Rows are bytes as the topic had them, or objects, which are then written by the serdes of the topic. Each goes to the
partition that its row names, or else to that of its key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias, cast

import pyarrow as pa
import pyarrow.compute as pc

from pykstreams.bulk.application import Application
from pykstreams.bulk.backfills.records import RECORDS, SENT, packed
from pykstreams.bulk.sources.header_columns import HEADERS, headers_of
from pykstreams.bulk.sources.python_objects import describe_row
from pykstreams.bulk.sources.row_files import in_file
from pykstreams.bulk.sources.rows import RowReader
from pykstreams.bulk.sources.store_bootstrap import Column, Row, StoreBootstrap
from pykstreams.bulk.sources.topic_parts import WITH_HEADERS, TopicPart
from pykstreams.core.errors import ConfigError, StreamsError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.record import ConsumerRecord
from pykstreams.core.timestamps import ExtractRecordMetadataTimestamp, WallclockTimestampExtractor
from pykstreams.core.types import Encoder, Headers
from pykstreams.runtime.clients.partitioner import partition_for_key
from pykstreams.runtime.tasks.compiled import source_of
from pykstreams.serdes.base import CompiledSerializer, bind_deserializer, bind_serializer
from pykstreams.serdes.defaults import or_default
from pykstreams.topology.plan import SourceNode

_TimeOf: TypeAlias = Callable[[TopicPartition, int, int, bytes | None, bytes | None, Headers], int]


@dataclass(frozen=True)
class TopicHistory:
    """The records that a topic had.

    Columns of bytes are taken as they are; others are written by the topic's serdes. Columns named ``partition`` and
    ``offset`` (whole numbers) and ``headers`` (a list of structs of ``key`` and ``value``, or a map) are heeded if
    there are any.

    :param source: a path, a source of ``pykstreams.spark``, or a Spark DataFrame; ``KafkaTopic`` for the topic itself.
    :param key: a column, or a function of the row (or its name, ``module:attribute``).
    :param value: a column, a list of columns (the value is a dict of these), or a function of the row.
    :param timestamp: a column of integers (ms) or of times, or a function.
    :param row: instead of these three, a function row -> ``(key, value, timestamp in ms)``.
    :param key_serde, value_serde: what writes objects, where that of the topology can only read.
    """

    source: object
    key: Column = "key"
    value: Column | Sequence[str] = "value"
    timestamp: Column = "timestamp"
    row: Callable[[Row], tuple[object, object, int]] | str | None = None
    key_serde: object = None
    value_serde: object = None

    def columns(self, topic: str) -> StoreBootstrap:
        """The same, as what reads rows takes it."""
        if self.row is not None:
            return StoreBootstrap(topic, None, row=self.row)
        return StoreBootstrap(topic, None, key=self.key, value=self.value, timestamp=self.timestamp)


@dataclass(frozen=True)
class HistoryReading:
    """How the records of one topic are read for the tasks of a sub-topology; every process of the job has it.

    :param history: what the user has said, without the source.
    :param number: that of the topic among those that are read.
    :param sent: whether they are records that the job itself has sent (``SENT``).
    :param in_order: whether the rows of each partition come in the order of their offsets, which they then keep.
    """

    application: Application
    topic: str
    number: int
    partitions: int
    history: TopicHistory
    sent: bool = False
    in_order: bool = False

    def records(self, batches: Iterable[pa.RecordBatch], origin: int) -> Iterator[pa.RecordBatch]:
        """Makes batches of ``RECORDS`` of batches of rows; ``origin`` is the part of the source they come from."""
        return self._sent_records(batches) if self.sent else self._users_records(batches, origin)

    def _users_records(self, batches: Iterable[pa.RecordBatch], origin: int) -> Iterator[pa.RecordBatch]:
        source = self._source()
        owner = f"the history of topic {self.topic!r}"
        read = RowReader(self.history.columns(self.topic), 0, self.application, None, owner)
        encode_key = self._encoder("key", source.key_deserializer, self.history.key_serde)
        encode_value = self._encoder("value", source.value_deserializer, self.history.value_serde)
        time_of, count, order = self._time_of(source), self.partitions, 0
        choose = source.placement or partition_for_key
        highest: dict[int, int] = {}
        for batch in batches:
            headers = headers_of(_headers(batch, self.topic), batch.num_rows)
            places = _whole_numbers(batch, "partition", self.topic)
            offsets = _whole_numbers(batch, "offset", self.topic)
            columns: tuple[list[object], ...] = tuple([] for _ in RECORDS)
            append = [column.append for column in columns]
            for at, parts in enumerate(read(batch)):
                if isinstance(parts, Exception):
                    raise self._refused(str(parts), batch, at) from parts
                own_key, own_value, timestamp, _, _ = parts
                if timestamp is None:
                    raise self._refused("it has no timestamp", batch, at)
                try:
                    key = encode_key(own_key, headers[at])
                    value = encode_value(own_value, headers[at])
                except ConfigError:
                    raise
                except Exception as error:
                    raise self._refused(str(error), batch, at) from error
                known = offsets[at]
                offset = -1 if known is None else known
                place = places[at]
                if place is None:
                    place = order % count if key is None else choose(key, count)
                elif not 0 <= place < count:
                    raise self._refused(f"its partition is {place}, and the topic has {count}", batch, at)
                time = timestamp
                if time_of is not None:
                    time = time_of(TopicPartition(self.topic, place), offset, timestamp, key, value, headers[at])
                if self.in_order:
                    time = highest[place] = max(time, highest.get(place, time))
                row = (
                    place,
                    time,
                    self.number,
                    place if offset >= 0 else origin,
                    offset if offset >= 0 else order,
                    offset,
                    timestamp,
                    key,
                    value,
                    packed(headers[at]),
                )
                for add, data in zip(append, row, strict=True):
                    add(data)
                order += 1
            yield _batch(columns)

    def _sent_records(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = batch.num_rows
            found: dict[str, list[Any]] = {
                name: batch.column(name).to_pylist() for name in SENT.names if name not in ("topic", "headers")
            }
            headers = headers_of(batch.column("headers"), rows)
            origins = {text: _origin(text) for text in set(found["task"])}
            yield _batch(
                (
                    found["partition"],
                    found["time"],
                    [self.number] * rows,
                    [origins[text] for text in found["task"]],
                    found["number"],
                    [-1] * rows,
                    found["timestamp"],
                    found["key"],
                    found["value"],
                    [packed(each) for each in headers],
                )
            )

    def _source(self) -> SourceNode:
        plan = self.application.plan
        for store in plan.global_stores:
            if store.topic == self.topic:
                return store.source
        return source_of(plan.whole, self.topic)

    def _encoder(self, part: str, deserializer: object, serde: object) -> Encoder:
        """Makes the function that serializes objects; its serde is looked for when there is one."""
        bound: list[Encoder] = []

        def encode(data: object, headers: Headers) -> bytes | None:
            if data is None or isinstance(data, bytes):
                return data
            if not bound:
                bound.append(self._serializer(part, deserializer, serde))
            return bound[0](data, headers)

        return encode

    def _serializer(self, part: str, deserializer: object, serde: object) -> Encoder:
        config = self.application.config
        default = (lambda: config.default_key_serde) if part == "key" else (lambda: config.default_value_serde)
        found = serde if serde is not None else or_default(deserializer, default)
        found = getattr(found, "serializer", found)
        if not isinstance(found, CompiledSerializer) and not hasattr(found, "serialize"):
            raise ConfigError(
                f"the {part}s of topic {self.topic!r} are objects, and what the topology reads them with, {found!r}, "
                f"cannot write them; name the serde: TopicHistory(..., {part}_serde=...), or give columns of bytes"
            )
        return bind_serializer(found, self.topic)

    def _time_of(self, source: SourceNode) -> _TimeOf | None:
        """The extractor of the time of a record; ``None`` where that is the timestamp it carries."""
        config = self.application.config
        extract = source.timestamp_extractor or config.default_timestamp_extractor
        if isinstance(extract, ExtractRecordMetadataTimestamp | WallclockTimestampExtractor):
            return None
        decode_key, decode_value = (
            bind_deserializer(or_default(given, default), self.topic)
            for given, default in (
                (source.key_deserializer, lambda: config.default_key_serde),
                (source.value_deserializer, lambda: config.default_value_serde),
            )
        )

        def time_of(
            place: TopicPartition, offset: int, carried: int, key: bytes | None, value: bytes | None, headers: Headers
        ) -> int:
            try:
                record = ConsumerRecord(
                    *place, offset, carried, decode_key(key, headers), decode_value(value, headers), headers
                )
                time = extract(record, -1)
                is_outside = time >> 63  # of the times that a record can have; fails for what is no int
            except Exception:  # the task meets the same, and asks the handlers of the application
                return carried
            return carried if is_outside else time

        return time_of

    def _refused(self, why: str, batch: pa.RecordBatch, at: int) -> StreamsError:
        row = repr(describe_row(batch, at))
        return StreamsError(
            f"a row of the history of topic {self.topic!r} cannot be taken: {why}; the row{in_file(batch)}: "
            f"{row[:500]}. Correct it, or say which columns are what: TopicHistory(source, key=..., value=..., "
            "timestamp=...)"
        )


@dataclass(frozen=True)
class TopicRecords:
    """One partition of a topic between two offsets, with headers; a ``Part`` of a source."""

    part: TopicPart
    schema: ClassVar[pa.Schema] = WITH_HEADERS

    @property
    def rows(self) -> int:
        """About how many records there are."""
        return self.part.rows

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Reads it."""
        return replace(self.part, headers=True).batches()


def as_history(given: object) -> TopicHistory:
    """Returns a bare source as a history with the usual columns."""
    return given if isinstance(given, TopicHistory) else TopicHistory(given)


def _origin(task: str) -> int:
    found = TaskId.parse(task)
    return found.subtopology << 32 | found.partition


def _column(batch: pa.RecordBatch, name: str) -> pa.Array | None:
    return batch.column(name) if name in batch.schema.names else None


def _headers(batch: pa.RecordBatch, topic: str) -> pa.Array | None:
    """The column of headers, if there is one; texts in it are UTF-8."""
    column = _column(batch, "headers")
    if column is None or column.null_count == batch.num_rows:
        return None
    try:
        found = column.cast(HEADERS)
        why = "has one without key" if pc.struct_field(found.flatten(), "key").null_count else ""
    except pa.ArrowException as error:
        why = f"is of type {column.type} ({error})"
    if not why:
        return found
    raise ConfigError(
        f"column 'headers' of the history of topic {topic!r} {why}; expected lists of structs of key and value. "
        "Correct it or, where it means something else, give it another name"
    )


def _whole_numbers(batch: pa.RecordBatch, name: str, topic: str) -> list[int | None]:
    """A column of whole numbers, of whatever type these are; what is not known is ``None``."""
    column = _column(batch, name)
    if column is None or pa.types.is_null(column.type):
        return [None] * batch.num_rows
    kind, why = column.type, ""
    if pa.types.is_floating(kind):  # pandas has no other null there
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, kind), column)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        try:
            return cast("list[int | None]", column.cast(pa.int64()).to_pylist())
        except pa.ArrowInvalid as error:
            why = f" ({error})"
    raise ConfigError(
        f"column {name!r} of the history of topic {topic!r} is of type {kind}; expected whole numbers{why}. Correct it "
        "or, where it means something else, give it another name"
    )


def _batch(columns: Sequence[Iterable[object]]) -> pa.RecordBatch:
    arrays = [pa.array(column, field.type) for column, field in zip(columns, RECORDS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=RECORDS)
