"""The outermost layer of a versioned store: what users and operators call, with values instead of bytes.

Each put also goes to the changelog, as a record with its timestamp and without headers, whether it was put or came too
late (``ChangeLoggingVersionedKeyValueBytesStore``, 4.3.1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from pykstreams.core.types import Timestamp, timestamp_ms
from pykstreams.state.engines.engine import Engine
from pykstreams.state.layout import PLAIN
from pykstreams.state.metered_store import Layers, MeteredStore
from pykstreams.state.rows import RowCodec, null_key
from pykstreams.state.store import ChangelogRow, ChangelogWriter, StoreContext
from pykstreams.state.versions.history import RawVersion, VersionHistory
from pykstreams.state.versions.store import (
    PUT_RETURN_CODE_NOT_PUT,
    PUT_RETURN_CODE_VALID_TO_UNDEFINED,
    ResultOrder,
    VersionedKeyValueStore,
    VersionedRecord,
    VersionedRecordIterator,
)

K = TypeVar("K")
V = TypeVar("V")

_FIRST_TIME = 0
_LAST_TIME = 2**63 - 1

PutBytes = Callable[[bytes, bytes | None, int], int]
"""(key, value, timestamp) -> until when it is valid."""


class MeteredVersionedStore(MeteredStore, VersionedKeyValueStore[K, V]):
    """A versioned store as it is handed out.

    :param logging: whether it writes to a changelog.
    """

    layout = PLAIN

    def __init__(
        self, name: str, key_serde: Any, value_serde: Any, engine: Engine, history: VersionHistory, *, logging: bool
    ) -> None:
        def open_layers(context: StoreContext, codec: RowCodec) -> Layers:
            history.open(context)
            log = context.changelog(name) if logging else None
            self._put_bytes = _logged(history.put, log)
            return Layers(engine, None)

        super().__init__(name, key_serde, value_serde, engine, open_layers)
        self._history = history

    def restore(self, rows: Sequence[ChangelogRow]) -> None:
        self._history.restore(rows)

    def commit(self, changelog_offset: int | None) -> None:
        self._history.commit(changelog_offset)

    def _make_closures(self) -> None:
        codec, history, name = self._codec, self._history, self._name
        encode_key, encode, decode = codec.encode_key, codec.encode_value, codec.decode_value
        newest, as_of = history.newest, history.as_of
        put = self._put_bytes
        latest, not_put = PUT_RETURN_CODE_VALID_TO_UNDEFINED, PUT_RETURN_CODE_NOT_PUT

        def get_row(key: Any) -> tuple[Any, int] | None:
            if key is None:
                raise null_key(name)
            found = newest(encode_key(key, ()))
            return None if found is None else (decode(found[0], ()), found[1])

        def get_row_as_of(key: Any, time: int) -> tuple[Any, int] | None:
            if key is None:
                raise null_key(name)
            found = as_of(encode_key(key, ()), time)
            return None if found is None else (decode(found[0], ()), found[1])

        def put_row(key: Any, value: Any, timestamp: int) -> bool | None:
            if key is None:
                raise null_key(name)
            until = put(encode_key(key, ()), None if value is None else encode(value, ()), timestamp)
            if until == latest:
                return True
            return None if until == not_put else False

        self.get_row = self.take_row = get_row
        self.get_row_as_of = get_row_as_of
        self.put_row = self.keep_row = put_row

    def reader_below_cache(self) -> Callable[[Any], tuple[Any, int] | None]:
        """Gives what reads a row; there is no cache."""
        return self.get_row

    def _close_closures(self) -> None:
        closed: Any = self._closed
        self.get_row = self.take_row = self.get_row_as_of = self.put_row = self.keep_row = closed

    def _flushed_key(self) -> Callable[[bytes], Any]:
        decode = self._codec.decode_key
        return lambda key: decode(key, ())

    def raw_rows(self) -> Iterator[RawVersion]:
        """Every version that can be read, as it is kept, by key and then by time."""
        self._check_open()
        return self._history.rows()

    def put(self, key: K, value: V | None, timestamp: Timestamp) -> int:
        raw, time = self._raw_key(key), self._time(timestamp)
        return self._put_bytes(raw, None if value is None else self._codec.encode_value(value, ()), time)

    def delete(self, key: K, timestamp: Timestamp) -> VersionedRecord[V] | None:
        raw, time = self._raw_key(key), self._time(timestamp)
        valid = None if self._history.is_expired(time) else self._history.as_of(raw, time)
        self._put_bytes(raw, None, time)
        return self._record(valid)

    def get(self, key: K, as_of: Timestamp | None = None) -> VersionedRecord[V] | None:
        raw = self._raw_key(key)
        if as_of is None:
            return self._record(self._history.newest(raw))
        return self._record(self._history.as_of(raw, timestamp_ms(as_of, "as_of")))

    def history(
        self,
        key: K,
        time_from: Timestamp | None = None,
        time_to: Timestamp | None = None,
        *,
        order: ResultOrder = ResultOrder.ANY,
    ) -> VersionedRecordIterator[V]:
        raw = self._raw_key(key)
        first = _FIRST_TIME if time_from is None else timestamp_ms(time_from, "time_from")
        last = _LAST_TIME if time_to is None else timestamp_ms(time_to, "time_to")
        if first > last:
            raise ValueError(f"the history of store {self._name!r} is read from {first} to {last}; swap them")
        found = self._history.between(raw, first, last)
        if order is not ResultOrder.ASCENDING:
            found.reverse()
        decode = self._codec.decode_value
        return VersionedRecordIterator(
            (VersionedRecord(decode(value, ()), since, until) for value, since, until in found), self._name
        )

    def _record(self, found: tuple[bytes, int] | None) -> VersionedRecord[V] | None:
        return None if found is None else VersionedRecord(self._codec.decode_value(found[0], ()), found[1])

    def _time(self, timestamp: Timestamp) -> int:
        time = timestamp_ms(timestamp, "timestamp")
        if time < 0:
            raise ValueError(f"the timestamp for store {self._name!r} is {time}; it must not be negative")
        return time


def _logged(put: PutBytes, log: ChangelogWriter | None) -> PutBytes:
    if log is None:
        return put

    def put_and_log(key: bytes, value: bytes | None, timestamp: int) -> int:
        until = put(key, value, timestamp)
        log(key, value, timestamp, ())
        return until

    return put_and_log
