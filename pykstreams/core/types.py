"""Type aliases of the public surface, and how times and durations given by users become milliseconds."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from numbers import Real
from typing import Any, Final, Protocol, SupportsIndex, TypeAlias, TypeVar, cast

from pykstreams.core.headers import Headers as Headers
from pykstreams.core.record import ConsumerRecord, RecordContext

K = TypeVar("K")
V = TypeVar("V")
V1 = TypeVar("V1")
V2 = TypeVar("V2")
KR = TypeVar("KR")
VR = TypeVar("VR")
VR_co = TypeVar("VR_co", covariant=True)

END_OF_TIME: Final = 2**63 - 1
"""The largest timestamp, which is the end of an unlimited window; nothing lasts longer, either."""

Duration: TypeAlias = timedelta | int
"""A length of time; an ``int`` counts milliseconds."""

Timestamp: TypeAlias = datetime | int
"""A point in time; an ``int`` counts milliseconds since the epoch, a ``datetime`` must be aware."""


class Initializer(Protocol[VR_co]):
    """A function without arguments, or a class, that makes what an aggregate begins with.

    A protocol, since type checkers then know what it makes before they look at an aggregator that is a lambda.
    """

    def __call__(self) -> VR_co: ...


Aggregator: TypeAlias = Callable[[K, V, VR], VR | None]
"""(key, value, aggregate so far) -> aggregate; ``None`` removes it, and the next value begins with a new one."""
ForeachAction: TypeAlias = Callable[[K, V], None]
KeyValueMapper: TypeAlias = Callable[[K, V], VR]
Merger: TypeAlias = Callable[[K, V, V], V]
Predicate: TypeAlias = Callable[[K, V], bool]
Reducer: TypeAlias = Callable[[V, V], V | None]
"""(what was reduced so far, value) -> what is kept; ``None`` removes it, and the next value takes its place."""
ValueJoiner: TypeAlias = Callable[[V1, V2], VR]
ValueJoinerWithKey: TypeAlias = Callable[[K, V1, V2], VR]
ValueMapper: TypeAlias = Callable[[V], VR]
ValueMapperWithKey: TypeAlias = Callable[[K, V], VR]
Punctuator: TypeAlias = Callable[[int], None]
CommitCallback: TypeAlias = Callable[[], None]
StateRestoreCallback: TypeAlias = Callable[[bytes, bytes | None], None]
StreamPartitioner: TypeAlias = Callable[[str, K, V, int], int | Collection[int] | None]
"""(topic, key, value, number of partitions) -> one partition, several, none (empty), or ``None`` for the default."""
TimestampExtractor: TypeAlias = "Callable[[ConsumerRecord, int], int]"
"""(record, partition time in ms, -1 at the start) -> event time in ms; a negative one drops the record."""
TopicNameExtractor: TypeAlias = "Callable[[K, V, RecordContext], str]"

Untold: TypeAlias = Any
"""The type of keys and values of which nothing tells it, as of options in a variable that has no annotation."""

AnyPartitioner: TypeAlias = StreamPartitioner[Untold, Untold]
"""A partitioner of which only the user knows the types, as a topology keeps many side by side."""

SinkTopic: TypeAlias = "str | TopicNameExtractor[Any, Any]"
"""The topic of a sink: one for all records, or chosen by key, value and context of each."""

Forward: TypeAlias = Callable[[object, object, int, Headers], None]
"""The compiled path: (key, value, timestamp in ms, headers), positional. See docs/internals/architecture.md."""

Sent: TypeAlias = tuple[str, bytes | None, bytes | None, int, None, None, int, Headers | None]
"""What ``produce`` of the client takes: topic, value, key, partition, no callbacks, timestamp in ms, headers."""

Produce: TypeAlias = Callable[[*Sent], None]
"""A way out of a sink, called as ``produce`` of the client, positional."""

Change: TypeAlias = tuple[V | None, V | None, bool]
"""The value of records below a table: (new value, old value, is the newest version of its key)."""

Encoder: TypeAlias = Callable[[object, Headers], bytes | None]
"""A serializer bound to its topic."""

Decoder: TypeAlias = Callable[[bytes | None, Headers], Any]
"""A deserializer bound to its topic."""

ColumnReader: TypeAlias = Callable[[Iterable[bytes]], Iterable[object]]
"""A deserializer of many values in order, none of them null, for whatever topic and headers."""

Pairs: TypeAlias = Iterable[tuple[KR, VR]]


def duration_ms(value: Duration, what: str, *, negative: bool = False) -> int:
    """Returns a duration in milliseconds; raises ``ValueError`` for fractions of one and, unless allowed, below zero.

    It is at most as long as the largest timestamp.

    >>> duration_ms(timedelta(seconds=2), "grace")
    2000
    """
    if isinstance(value, timedelta):
        microseconds = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
        ms, rest = divmod(microseconds, 1000)
        if rest:
            raise ValueError(f"{what} is {value!r}; durations count whole milliseconds")
    elif isinstance(value, int) and not isinstance(value, bool):
        ms = value
    else:
        raise TypeError(f"{what} is {value!r}; expected a timedelta or an int of milliseconds")
    if ms < 0 and not negative:
        raise ValueError(f"{what} is {value!r}; it must not be negative")
    if abs(ms) > END_OF_TIME:
        raise ValueError(f"{what} is {value!r}; it must be at most {END_OF_TIME} ms")
    return ms


def whole_number(value: object, what: str) -> int:
    """Returns a number that counts something, as an ``int``; ``TypeError`` for text, fractions and truth values.

    >>> whole_number(5, "num_partitions")
    5
    """
    if not isinstance(value, bool):
        with suppress(TypeError):
            return operator.index(cast("SupportsIndex", value))
    raise TypeError(f"{what} is {value!r}; expected a whole number")


def keep_whole_number(options: object, field: str, of: str = "") -> int:
    """Keeps a field of frozen options as the ``int`` that ``whole_number`` makes of it, and returns that.

    :param of: follows the name of the field in errors.
    """
    found = whole_number(getattr(options, field), f"{field}{of}")
    object.__setattr__(options, field, found)
    return found


def number(value: object, what: str) -> float:
    """Returns a number that measures something, as a ``float``; ``TypeError`` for text and truth values.

    >>> number(2, "factor")
    2.0
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{what} is {value!r}; expected a number")
    return float(value)


def flag(value: object, what: str) -> bool:
    """Returns what is on or off; ``TypeError`` for anything that is only taken for a truth value, such as text.

    >>> flag(False, "caching")
    False
    """
    if not isinstance(value, bool):
        raise TypeError(f"{what} is {value!r}; expected True or False")
    return value


def total_ms(ms: int, what: str) -> int:
    """Returns a sum of durations; ``ValueError`` for one that is longer than time lasts."""
    if ms > END_OF_TIME:
        raise ValueError(f"{what} is {ms} ms, more than the largest number of milliseconds, {END_OF_TIME}")
    return ms


def timestamp_ms(value: Timestamp, what: str) -> int:
    """Returns a point in time in milliseconds since the epoch; raises ``ValueError`` for a datetime without zone.

    >>> timestamp_ms(datetime(1970, 1, 2, tzinfo=UTC), "start")
    86400000
    """
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"{what} is {value!r}, which has no time zone; use datetime(..., tzinfo=UTC)")
        return (value - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise TypeError(f"{what} is {value!r}; expected an aware datetime or an int of milliseconds since the epoch")
