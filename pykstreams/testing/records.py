"""Records as tests see them: what they hand in, and what comes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Generic, NamedTuple, TypeVar

from pykstreams.core.types import Headers, Timestamp, timestamp_ms
from pykstreams.runtime.clients.sent_records import sent_headers

K = TypeVar("K")
V = TypeVar("V")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, init=False)
class TestRecord(Generic[K, V]):
    """A record that is piped in, or read from an output topic; ``timestamp`` in ms since the epoch.

    Without a timestamp an input topic gives it its own time. Text as a value of a header becomes UTF-8, as the client
    sends it.

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
        object.__setattr__(self, "headers", sent_headers(headers))

    @property
    def record_time(self) -> datetime | None:
        """The timestamp as a point in time."""
        return None if self.timestamp is None else _EPOCH + timedelta(milliseconds=self.timestamp)


def put_row(table: dict[K, V], key: K, value: V, topic: str) -> None:
    """Puts the value of a key of a topic into a table; ``TypeError`` for a key that no dict has."""
    try:
        table[key] = value
    except TypeError as error:
        raise TypeError(
            f"key {key!r} of topic {topic!r} cannot be a key of a dict ({error}); give a dataclass frozen=True, take a "
            "tuple in place of a list, or read records or pairs"
        ) from None


def rows_of(table: Mapping[K, V | None]) -> dict[K, V]:
    """The rows of a table whose keys have their last values: a key whose last value is ``None`` has no row."""
    return {key: value for key, value in table.items() if value is not None}


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
