"""The queries of interactive queries, version 2; their names, and what they can ask, are those of Kafka Streams.

All are frozen values. Times may be given as aware datetimes and are ms since the epoch afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic

from typing_extensions import TypeVar

from pykstreams.core.record import ValueAndTimestamp
from pykstreams.core.types import Timestamp, Untold, timestamp_ms
from pykstreams.core.windows import Windowed
from pykstreams.state.interfaces.query import Query
from pykstreams.state.interfaces.store import KeyValueIterator
from pykstreams.state.interfaces.versioned_store import ResultOrder, VersionedRecord, VersionedRecordIterator
from pykstreams.state.interfaces.window_store import WindowStoreIterator

# a query does not know its store: KeyQuery[str, int]("tea") tells
K = TypeVar("K", default=Untold)
V = TypeVar("V", default=Untold)
R = TypeVar("R", default=Untold)


@dataclass(frozen=True)
class KeyQuery(Query[V | None], Generic[K, V]):
    """The value of a key, ``None`` without one; of stores with timestamps the value alone.

    :param skip_cache: whether to read what was last written through, which is what was last forwarded to other
        operators.
    """

    key: K
    skip_cache: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        _key(self, self.key)


@dataclass(frozen=True)
class TimestampedKeyQuery(Query[ValueAndTimestamp[V] | None], Generic[K, V]):
    """The value of a key with its timestamp; for stores that keep timestamps. ``skip_cache`` as in ``KeyQuery``."""

    key: K
    skip_cache: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        _key(self, self.key)


@dataclass(frozen=True)
class RangeQuery(Query[KeyValueIterator[K, V]], Generic[K, V]):
    """The rows between two keys, both inclusive and ``None`` for no bound; of stores with timestamps the values alone.

    The order is that of the serialized keys, ascending unless ``order`` says otherwise, and holds within a partition.
    """

    lower: K | None = None
    upper: K | None = None
    order: ResultOrder = field(default=ResultOrder.ANY, kw_only=True)


@dataclass(frozen=True)
class TimestampedRangeQuery(Query[KeyValueIterator[K, ValueAndTimestamp[V]]], Generic[K, V]):
    """The same with timestamps, for stores that keep them."""

    lower: K | None = None
    upper: K | None = None
    order: ResultOrder = field(default=ResultOrder.ANY, kw_only=True)


@dataclass(frozen=True)
class WindowKeyQuery(Query[WindowStoreIterator[V]], Generic[K, V]):
    """The windows of a key that start between two times, both inclusive, in order of their starts.

    Values are ``ValueAndTimestamp`` where the store keeps timestamps, as those of every windowed aggregation do.
    """

    key: K
    time_from: int
    time_to: int

    def __init__(self, key: K, time_from: Timestamp, time_to: Timestamp) -> None:
        first, last = timestamp_ms(time_from, "time_from"), timestamp_ms(time_to, "time_to")
        _set(self, key=_key(self, key), time_from=first, time_to=last)


@dataclass(frozen=True)
class WindowRangeQuery(Query[KeyValueIterator[Windowed[K], V]], Generic[K, V]):
    """Either the sessions of a key, or the windows of all keys that start between two times, both inclusive."""

    key: K | None = None
    time_from: int | None = None
    time_to: int | None = None

    def __init__(
        self, *, key: K | None = None, time_from: Timestamp | None = None, time_to: Timestamp | None = None
    ) -> None:
        times = time_from is not None and time_to is not None
        if (key is not None) == times or (time_from is None) != (time_to is None):
            raise ValueError(
                f"WindowRangeQuery has key {key!r}, time_from {time_from!r} and time_to {time_to!r}; give either a "
                "key, for sessions, or both times, for windows"
            )
        first = None if time_from is None else timestamp_ms(time_from, "time_from")
        last = None if time_to is None else timestamp_ms(time_to, "time_to")
        _set(self, key=key, time_from=first, time_to=last)


@dataclass(frozen=True)
class VersionedKeyQuery(Query[VersionedRecord[V] | None], Generic[K, V]):
    """The newest version of a key, or the one that was valid at a time; for versioned stores.

    :param as_of: as of a time older than the history retention, only a version is found that is still the newest.
    """

    key: K
    as_of: int | None = None

    def __init__(self, key: K, *, as_of: Timestamp | None = None) -> None:
        _set(self, key=_key(self, key), as_of=None if as_of is None else timestamp_ms(as_of, "as_of"))


@dataclass(frozen=True)
class MultiVersionedKeyQuery(Query[VersionedRecordIterator[V]], Generic[K, V]):
    """The versions of a key that were valid at some time between two, both inclusive; for versioned stores.

    :param order: by time; the newest first by default.
    """

    key: K
    from_time: int | None = None
    to_time: int | None = None
    order: ResultOrder = ResultOrder.ANY

    def __init__(
        self,
        key: K,
        *,
        from_time: Timestamp | None = None,
        to_time: Timestamp | None = None,
        order: ResultOrder = ResultOrder.ANY,
    ) -> None:
        first = None if from_time is None else timestamp_ms(from_time, "from_time")
        last = None if to_time is None else timestamp_ms(to_time, "to_time")
        if first is not None and last is not None and first > last:
            raise ValueError(f"the versions of {key!r} are asked for from {first} to {last}; swap them")
        _set(self, key=_key(self, key), from_time=first, to_time=last, order=order)


def _set(query: Any, **fields: Any) -> None:
    for name, value in fields.items():
        object.__setattr__(query, name, value)


def _key(query: Any, key: K) -> K:
    if key is None:
        raise TypeError(f"the key of a {type(query).__name__} is None; a key must not be None")
    return key
