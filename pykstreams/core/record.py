"""Records as users and operators see them.

Inside the DSL a record travels as four positional arguments (key, value, timestamp, headers); the classes here exist
where user code asks for an object. They are slotted and, by convention, never changed in place: ``replace`` gives a
changed copy (freezing them would cost three times as much per record).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar, overload

from pykstreams.core.headers import Headers

K = TypeVar("K")
V = TypeVar("V")
KR = TypeVar("KR")
VR = TypeVar("VR")


class KeyValue(NamedTuple, Generic[K, V]):
    """A key with its value; any pair does where one is expected."""

    key: K
    value: V


@dataclass(slots=True)
class Record(Generic[K, V]):
    """A record inside a topology; ``timestamp`` is in ms since the epoch and not negative (``ValueError``)."""

    key: K
    value: V
    timestamp: int
    headers: Headers = ()

    def __post_init__(self) -> None:
        try:
            is_negative = self.timestamp < 0
        except TypeError:
            raise _no_time(self.timestamp) from None
        if is_negative:
            raise ValueError(f"timestamp of a record is {self.timestamp}; it must not be negative")

    @overload
    def replace(self, *, timestamp: int = ..., headers: Headers = ...) -> Record[K, V]: ...
    @overload
    def replace(self, *, value: VR, timestamp: int = ..., headers: Headers = ...) -> Record[K, VR]: ...
    @overload
    def replace(self, *, key: KR, timestamp: int = ..., headers: Headers = ...) -> Record[KR, V]: ...
    @overload
    def replace(self, *, key: KR, value: VR, timestamp: int = ..., headers: Headers = ...) -> Record[KR, VR]: ...
    def replace(self, **changes: Any) -> AnyRecord:
        """Returns a copy with some fields changed.

        >>> Record("a", 1, 5).replace(value=2)
        Record(key='a', value=2, timestamp=5, headers=())
        """
        return Record(
            changes.pop("key", self.key),
            changes.pop("value", self.value),
            changes.pop("timestamp", self.timestamp),
            changes.pop("headers", self.headers),
            **changes,
        )


class FixedKeyRecord(Generic[K, V]):
    """A record whose key cannot be set; ``replace`` changes the rest.

    One that is made by hand is for tests: a ``FixedKeyProcessor`` forwards only those that it got.
    """

    __slots__ = ("_key", "headers", "timestamp", "value")

    def __init__(self, key: K, value: V, timestamp: int, headers: Headers = ()) -> None:
        self._key = key
        self.value = value
        self.timestamp = timestamp
        self.headers = headers

    @property
    def key(self) -> K:
        """The key, which cannot be changed."""
        return self._key

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FixedKeyRecord):
            return NotImplemented
        return (self.key, self.value, self.timestamp, self.headers) == (
            other.key,
            other.value,
            other.timestamp,
            other.headers,
        )

    def __repr__(self) -> str:
        return (
            f"FixedKeyRecord(key={self.key!r}, value={self.value!r}, timestamp={self.timestamp!r}, "
            f"headers={self.headers!r})"
        )

    @overload
    def replace(self, *, timestamp: int = ..., headers: Headers = ...) -> FixedKeyRecord[K, V]: ...
    @overload
    def replace(self, *, value: VR, timestamp: int = ..., headers: Headers = ...) -> FixedKeyRecord[K, VR]: ...
    def replace(self, **changes: Any) -> FixedKeyRecord[K, Any]:
        """Returns a copy with value, timestamp or headers changed; ``TypeError`` for the key."""
        if "key" in changes:
            raise TypeError("the key of a FixedKeyRecord cannot be changed; use KStream.process to change keys")
        value = changes.pop("value", self.value)
        timestamp = changes.pop("timestamp", self.timestamp)
        try:
            is_negative = timestamp < 0
        except TypeError:
            raise _no_time(timestamp) from None
        if is_negative:
            raise ValueError(f"timestamp of a record is {timestamp}; it must not be negative")
        return self.__class__(self._key, value, timestamp, changes.pop("headers", self.headers), **changes)


class ReceivedRecord(FixedKeyRecord[K, V]):
    """A record that a ``FixedKeyProcessor`` got, or made of one by ``replace``: its key is that of an input record."""

    __slots__ = ()


AnyRecord: TypeAlias = Record[Any, Any]
"""A record whose types only the user knows, such as one that an exception handler gets."""

AnyFixedKeyRecord: TypeAlias = FixedKeyRecord[Any, Any]
"""Such a record in a ``FixedKeyProcessor``."""


def _no_time(timestamp: object) -> TypeError:
    return TypeError(
        f"timestamp of a record is {timestamp!r}; expected an int of milliseconds since 1970, which is "
        "int(when.timestamp() * 1000) of a datetime"
    )


class RecordMetadata(NamedTuple):
    """Where the record being processed came from; in a punctuator nowhere: ``(None, -1, -1)``."""

    topic: str | None
    partition: int
    offset: int


class RecordContext(NamedTuple):
    """The input record that is being processed: where it came from, its time, headers and raw bytes.

    In a punctuator the topic is ``None``, partition and offset are -1, and the time is that of the punctuation.
    """

    topic: str | None
    partition: int
    offset: int
    timestamp: int
    headers: Headers
    source_raw_key: bytes | None = None
    source_raw_value: bytes | None = None


class ConsumerRecord(NamedTuple):
    """A record as it was read from a topic, as timestamp extractors and deserialization handlers get it."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: Any
    value: Any
    headers: Headers


class ProducerRecord(NamedTuple):
    """A record as it goes to a topic; ``partition`` ``None`` leaves the choice to the producer's partitioner."""

    topic: str
    key: Any
    value: Any
    partition: int | None = None
    timestamp: int | None = None
    headers: Headers = ()


class ValueAndTimestamp(NamedTuple, Generic[V]):
    """A value of a timestamped store and the time, in ms since the epoch, of the record that set it."""

    value: V
    timestamp: int


def get_header(headers: Headers, key: str) -> bytes | None:
    """Returns the value of the last header of that name, ``None`` without one.

    >>> get_header((("a", b"1"), ("a", b"2")), "a")
    b'2'
    """
    for name, value in reversed(headers):
        if name == key:
            return value
    return None


def set_header(headers: Headers, key: str, value: bytes | None) -> Headers:
    """Returns the headers with every header of that name replaced by one at the end.

    >>> set_header((("a", b"1"), ("b", b"2")), "a", b"3")
    (('b', b'2'), ('a', b'3'))
    """
    return (*(header for header in headers if header[0] != key), (key, value))
