"""A topic of a real or embedded cluster as tests see it: typed records, written and read by a plain client."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import ClassVar, Generic, TypeVar, cast

from pykstreams.core.record import ConsumerRecord, KeyValue, ProducerRecord
from pykstreams.core.types import Duration, Headers, Timestamp, duration_ms, timestamp_ms
from pykstreams.runtime.clients.plain_records import PlainRecords
from pykstreams.serdes.base import bind_deserializer, bind_serializer
from pykstreams.serdes.by_type import SerdeOrType, given_serde
from pykstreams.testing.records import TestRecord, put_row, rows_of

K = TypeVar("K")
V = TypeVar("V")

_PATIENCE = timedelta(seconds=30)


class ClusterTopic(Generic[K, V]):
    """Produces records to a topic and reads what is in it; keys lie where murmur2 puts them, as with Kafka's clients.

    Reading begins at the start of the topic and goes on where the last call ended; only committed records are read.
    Types stand for their serdes. Made by the fixtures, ``embedded_cluster.topic("orders", str, Order)``, or for any
    cluster by its address.
    """

    __test__: ClassVar[bool] = False

    def __init__(self, bootstrap_servers: str, topic: str, key: SerdeOrType[K], value: SerdeOrType[V]) -> None:
        self.name = topic
        self._records = PlainRecords(bootstrap_servers)
        keys, values = given_serde(key, is_key=True), given_serde(value, is_key=False)
        self._encode_key = bind_serializer(getattr(keys, "serializer", keys), topic)
        self._encode_value = bind_serializer(getattr(values, "serializer", values), topic)
        self._decode_key = bind_deserializer(getattr(keys, "deserializer", keys), topic)
        self._decode_value = bind_deserializer(getattr(values, "deserializer", values), topic)
        self._positions: dict[int, int] = {}

    def __repr__(self) -> str:
        return f"ClusterTopic({self.name!r})"

    def close(self) -> None:
        """Ends the client that writes, which an embedded cluster does for its topics; the topic itself stays."""
        self._records.close()

    def produce(
        self,
        key: K | None,
        value: V | None,
        *,
        timestamp: Timestamp | None = None,
        headers: Headers = (),
        partition: int | None = None,
    ) -> None:
        """Writes one record, and returns when the cluster has it.

        :param timestamp: the time of the record, from 1 ms after the epoch on; now if not given.
        :param partition: where to write it, if not where its key belongs.
        """
        time = None if timestamp is None else timestamp_ms(timestamp, "timestamp of a record")
        if time is not None and time < 1:
            raise ValueError(f"timestamp of a record is {timestamp!r}; clients take none before 1 ms after the epoch")
        raw_key, raw_value = self._encode_key(key, headers), self._encode_value(value, headers)
        self._records.send(ProducerRecord(self.name, raw_key, raw_value, partition, time, headers))

    def produce_all(self, items: Iterable[tuple[K | None, V | None]]) -> None:
        """Writes keys and values, one after the other."""
        for key, value in items:
            self.produce(key, value)

    def read_records(self, count: int, *, timeout: Duration = _PATIENCE) -> list[TestRecord[K, V]]:
        """Reads the next ``count`` records; ``AssertionError`` with those that came when the time is over.

        Records of one partition are in order.
        """
        found: list[TestRecord[K, V]] = []
        if count < 1:
            return found

        def has_enough(record: ConsumerRecord) -> bool:
            found.append(self._decoded(record))
            self._positions[record.partition] = record.offset + 1
            return len(found) == count

        before = dict(self._positions)
        waited_s = duration_ms(timeout, "timeout") / 1000
        self._records.read(self.name, before, has_enough, waited_s)
        if len(found) < count:
            self._positions = before  # so that another call sees them, too
            shown = "".join(f"\n  {record}" for record in found) or " none"
            raise AssertionError(
                f"topic {self.name!r} has {len(found)} further records and not {count} after {waited_s:g} s:{shown}"
            )
        return found

    def read_key_values(self, count: int, *, timeout: Duration = _PATIENCE) -> list[KeyValue[K, V]]:
        """Reads keys and values of the next ``count`` records, as ``read_records`` does."""
        found = self.read_records(count, timeout=timeout)
        return [KeyValue(cast("K", record.key), cast("V", record.value)) for record in found]

    def read_until(self, wanted: Mapping[K, V | None], *, timeout: Duration = _PATIENCE) -> dict[K, V]:
        """Reads until the rows of the table are those that are wanted, and returns them: how a table is waited for.

        A key whose last value is ``None`` has no row, as one that is wanted to be ``None``. ``AssertionError`` with the
        rows that there were when the time is over; another call sees their records, too.
        """
        table: dict[K, V] = {}
        rows_wanted = rows_of(wanted)

        def has_enough(record: ConsumerRecord) -> bool:
            decoded = self._decoded(record)
            put_row(table, cast("K", decoded.key), cast("V", decoded.value), self.name)
            if decoded.value is None:
                del table[cast("K", decoded.key)]
            self._positions[record.partition] = record.offset + 1
            return table == rows_wanted

        before = dict(self._positions)
        waited_s = duration_ms(timeout, "timeout") / 1000
        self._records.read(self.name, before, has_enough, waited_s)
        if table != rows_wanted:
            self._positions = before
            raise AssertionError(f"topic {self.name!r} has {table!r} and not {rows_wanted!r} after {waited_s:g} s")
        return table

    def _decoded(self, record: ConsumerRecord) -> TestRecord[K, V]:
        key = cast("K | None", self._decode_key(record.key, record.headers))
        value = cast("V | None", self._decode_value(record.value, record.headers))
        return TestRecord(key, value, timestamp=record.timestamp, headers=record.headers)
