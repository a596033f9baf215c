"""Records as tests see them: what they hand in, what comes out, and the raw messages in between."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Generic, NamedTuple, TypeVar

from pykstreams.core.types import Headers, Timestamp, timestamp_ms

K = TypeVar("K")
V = TypeVar("V")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, init=False)
class TestRecord(Generic[K, V]):
    """A record that is piped in, or read from an output topic; ``timestamp`` in ms since the epoch.

    Without a timestamp an input topic gives it its own time.

    >>> TestRecord("a", 1, timestamp=5)
    TestRecord(key='a', value=1, timestamp=5, headers=())
    """

    __test__: ClassVar[bool] = False

    key: K | None
    value: V | None
    timestamp: int | None
    headers: Headers

    def __init__(
        self,
        key: K | None = None,
        value: V | None = None,
        *,
        timestamp: Timestamp | None = None,
        headers: Headers = (),
    ) -> None:
        time = None if timestamp is None else timestamp_ms(timestamp, "timestamp of a record")
        if time is not None and time < 0:
            raise ValueError(f"timestamp of a record is {timestamp!r}; it must not be negative")
        object.__setattr__(self, "key", key)
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "timestamp", time)
        object.__setattr__(self, "headers", tuple(headers))

    @property
    def record_time(self) -> datetime | None:
        """The timestamp as a point in time."""
        return None if self.timestamp is None else _EPOCH + timedelta(milliseconds=self.timestamp)


class ProducedRecord(NamedTuple):
    """A record that a topology sent, in bytes.

    ``partition`` is ``None`` when the choice was left to the producer, ``timestamp`` when the time was.
    """

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    timestamp: int | None
    headers: Headers


class RawMessage:
    """An input record with the methods of ``confluent_kafka.Message``."""

    __slots__ = ("_headers", "_key", "_offset", "_partition", "_timestamp", "_topic", "_value")

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
    ) -> None:
        self._topic = topic
        self._partition = partition
        self._offset = offset
        self._timestamp = timestamp
        self._key = key
        self._value = value
        self._headers = list(headers) or None

    def topic(self) -> str:
        return self._topic

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int:
        return self._offset

    def timestamp(self) -> tuple[int, int]:
        """Kind (1: set by the producer) and time in ms."""
        return 1, self._timestamp

    def key(self) -> bytes | None:
        return self._key

    def value(self) -> bytes | None:
        return self._value

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        return self._headers
