"""An output topic of a test driver: what was sent to it, as values, each to be read once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import ClassVar, Generic, TypeVar, cast

from pykstreams.core.record import KeyValue
from pykstreams.core.types import Decoder
from pykstreams.testing.records import ProducedRecord, TestRecord, put_row

K = TypeVar("K")
V = TypeVar("V")


class TestOutputTopic(Generic[K, V]):
    """Reads what a topology sent to a topic; made by ``TopologyTestDriver.create_output_topic``.

    Reading takes: two output topics of the same name share their records. ``ValueError`` for a topic that the topology
    does not write, unless something was sent there, to a topic chosen per record (``getRecordsQueue`` of
    ``TopologyTestDriver``, 4.3.1).
    """

    __test__: ClassVar[bool] = False

    def __init__(
        self, topic: str, decode_key: Decoder, decode_value: Decoder, sent: Callable[[str], deque[ProducedRecord]]
    ) -> None:
        self._topic = topic
        self._decode_key = decode_key
        self._decode_value = decode_value
        self._sent = sent

    def __repr__(self) -> str:
        try:
            return f"TestOutputTopic({self._topic!r}, {len(self)} records)"
        except ValueError:  # nothing is sent there
            return f"TestOutputTopic({self._topic!r})"

    @property
    def _queue(self) -> deque[ProducedRecord]:
        return self._sent(self._topic)

    def __len__(self) -> int:
        return len(self._queue)

    def __bool__(self) -> bool:
        return True

    @property
    def queue_size(self) -> int:
        """The number of records that can be read."""
        return len(self._queue)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to read."""
        return not self._queue

    def read_record(self) -> TestRecord[K, V]:
        """Reads the next record; ``LookupError`` when there is none."""
        if not self._queue:
            raise LookupError(f"topic {self._topic!r} is empty")
        found = self._queue.popleft()
        return TestRecord(
            self._decode_key(found.key, found.headers),
            self._decode_value(found.value, found.headers),
            timestamp=found.timestamp,
            headers=found.headers,
        )

    def read_key_value(self) -> KeyValue[K, V]:
        """Reads key and value of the next record."""
        record = self.read_record()
        return KeyValue(
            cast("K", record.key), cast("V", record.value)
        )  # ``None`` where there is none, whatever the type

    def read_value(self) -> V:
        """Reads the value of the next record; ``None`` for a tombstone."""
        return self.read_key_value().value

    def read_records(self) -> list[TestRecord[K, V]]:
        """Reads everything there is."""
        return [self.read_record() for _ in range(len(self._queue))]

    def read_key_values(self) -> list[KeyValue[K, V]]:
        """Reads keys and values of everything there is."""
        return [self.read_key_value() for _ in range(len(self._queue))]

    def read_key_values_to_dict(self) -> dict[K, V]:
        """Reads everything there is; returns the last value of each key."""
        table: dict[K, V] = {}
        for key, value in self.read_key_values():
            put_row(table, key, value, self._topic)
        return table

    def read_values(self) -> list[V]:
        """Reads the values of everything there is."""
        return [self.read_value() for _ in range(len(self._queue))]
