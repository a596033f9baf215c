"""An input topic of a test driver: values become bytes and go in one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, Generic, TypeAlias, TypeVar

from pykstreams.core.types import Duration, Encoder, Headers, Timestamp, duration_ms, timestamp_ms
from pykstreams.testing.records import TestRecord

K = TypeVar("K")
V = TypeVar("V")

Pipe: TypeAlias = Callable[[str, bytes | None, bytes | None, int, Headers], None]
"""(topic, key, value, timestamp in ms, headers)"""


class TestInputTopic(Generic[K, V]):
    """Pipes records into a topology; made by ``TopologyTestDriver.create_input_topic``.

    A record without a timestamp gets the time of the topic, which then moves on by ``auto_advance``.
    """

    __test__: ClassVar[bool] = False

    def __init__(
        self,
        topic: str,
        encode_key: Encoder,
        encode_value: Encoder,
        pipe: Pipe,
        start_timestamp: Timestamp,
        auto_advance: Duration,
    ) -> None:
        self._topic = topic
        self._encode_key = encode_key
        self._encode_value = encode_value
        self._pipe = pipe
        self._time = timestamp_ms(start_timestamp, "start timestamp")
        self._step = duration_ms(auto_advance, "auto_advance")

    def __repr__(self) -> str:
        return f"TestInputTopic({self._topic!r})"

    def advance_time(self, advance: Duration) -> None:
        """Moves the time of the topic forward."""
        self._time += duration_ms(advance, "advance")

    def pipe_input(
        self, key: K | None, value: V | None, timestamp: Timestamp | None = None, headers: Headers = ()
    ) -> None:
        """Pipes in one record; everything that follows from it has happened when this returns."""
        if timestamp is None:
            time = self._time
            self._time += self._step
        else:
            time = timestamp_ms(timestamp, "timestamp of a record")
            if time < 0:
                raise ValueError(f"timestamp of a record is {timestamp!r}; it must not be negative")
        self._pipe(self._topic, self._encode_key(key, headers), self._encode_value(value, headers), time, headers)

    def pipe_value(self, value: V | None, timestamp: Timestamp | None = None) -> None:
        """Pipes in a record without a key."""
        self.pipe_input(None, value, timestamp)

    def pipe_record(self, record: TestRecord[K, V]) -> None:
        """Pipes in a record."""
        self.pipe_input(record.key, record.value, record.timestamp, record.headers)

    def pipe_records(self, records: Iterable[TestRecord[K, V]]) -> None:
        """Pipes in records, one after the other."""
        for record in records:
            self.pipe_record(record)

    def pipe_key_values(
        self,
        items: Iterable[tuple[K | None, V | None]],
        *,
        start_timestamp: Timestamp | None = None,
        advance: Duration | None = None,
    ) -> None:
        """Pipes in pairs; with a start, at that time and then ``advance`` (0) apart, else at the topic's time."""
        step = 0 if advance is None else duration_ms(advance, "advance")
        time = None if start_timestamp is None else timestamp_ms(start_timestamp, "start timestamp")
        for key, value in items:
            self.pipe_input(key, value, time)
            if time is not None:
                time += step

    def pipe_values(
        self,
        values: Iterable[V | None],
        *,
        start_timestamp: Timestamp | None = None,
        advance: Duration | None = None,
    ) -> None:
        """Pipes in values without keys, like ``pipe_key_values``."""
        self.pipe_key_values(((None, value) for value in values), start_timestamp=start_timestamp, advance=advance)
