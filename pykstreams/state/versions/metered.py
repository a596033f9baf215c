"""The outermost layer of a versioned store: what users and operators call, with values instead of bytes.

Each put also goes to the changelog, as a record with its timestamp and without headers, whether it was put or came too
late (``ChangeLoggingVersionedKeyValueBytesStore``, 4.3.1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar, overload

from pykstreams.core.types import Timestamp, timestamp_ms
from pykstreams.state.encoding.layout import PLAIN
from pykstreams.state.interfaces.engine import Engine
from pykstreams.state.interfaces.query import Query
from pykstreams.state.interfaces.store import ChangelogRow, ChangelogWriter, StoreContext
from pykstreams.state.interfaces.versioned_store import (
    LAST_TIME,
    NO_SPAN,
    PUT_RETURN_CODE_NOT_PUT,
    PUT_RETURN_CODE_VALID_TO_UNDEFINED,
    ResultOrder,
    VersionedKeyValueStore,
    VersionedRecord,
    VersionedRecordIterator,
    time_span,
)
from pykstreams.state.layers.metered_store import Layers, MeteredStore, StoreParts
from pykstreams.state.layers.rows import RowCodec, null_key
from pykstreams.state.versions.answers import answer
from pykstreams.state.versions.history import RawVersion

K = TypeVar("K")
V = TypeVar("V")

PutBytes: TypeAlias = Callable[[bytes, bytes | None, int], int]
"""(key, value, timestamp) -> until when it is valid."""

DeleteBytes: TypeAlias = Callable[[bytes, int], tuple[bytes, int] | None]
"""(key, timestamp) -> what was valid then: value and since when."""


class Versions(Protocol):
    """All versions of the keys of one store, as bytes; see ``VersionHistory``."""

    @property
    def observed_time(self) -> int: ...
    @property
    def oldest_time(self) -> int: ...
    @property
    def can_be_released(self) -> bool: ...
    def open(self, context: StoreContext) -> None: ...
    def newest(self, key: bytes, /) -> tuple[bytes, int] | None: ...
    def as_of(self, key: bytes, time: int, /) -> tuple[bytes, int] | None: ...
    def between(self, key: bytes, time_from: int, time_to: int, /) -> list[tuple[bytes, int, int | None]]: ...
    def timeline(self, key: bytes, time_from: int, time_to: int, /) -> list[tuple[int, bytes | None]]: ...
    def end_of(self, key: bytes, time: int, /) -> int | None: ...
    def rows(self) -> Iterator[RawVersion]: ...
    def put(self, key: bytes, value: bytes | None, timestamp: int, /) -> int: ...
    def delete(self, key: bytes, timestamp: int, /) -> tuple[bytes, int] | None: ...
    def restore(self, rows: Sequence[ChangelogRow], /) -> None: ...
    def restore_keys(self, rows: Sequence[ChangelogRow], /) -> None: ...
    def advance(self, time: int, /) -> None: ...
    def commit(self, offset: int | None, /) -> None: ...


class MeteredVersionedStore(MeteredStore, VersionedKeyValueStore[K, V]):
    """A versioned store as it is handed out.

    :param logging: whether it writes to a changelog.
    """

    layout = PLAIN
    operations: ClassVar[Mapping[str, str]] = {
        "get": "get",
        "get_row": "get",
        "take_row": "get",
        "get_row_as_of": "get",
        "put": "put",
        "put_row": "put",
        "keep_row": "put",
        "delete": "delete",
    }

    def __init__(
        self, name: str, key_serde: object, value_serde: object, engine: Engine, history: Versions, *, logging: bool
    ) -> None:
        def open_layers(context: StoreContext, codec: RowCodec) -> Layers:
            history.open(context)
            log = context.changelog(name) if logging else None
            self._put_bytes, self._delete_bytes = history.put, history.delete
            if log is not None:
                self._put_bytes = _put_and_logged(history.put, log)
                self._delete_bytes = _deleted_and_logged(history.delete, log)
            return Layers(engine, None)

        super().__init__(StoreParts(name, key_serde, value_serde, engine, open_layers))
        self._history = history
        self.can_be_released = history.can_be_released
        self._close_closures()

    def restore(self, rows: Sequence[ChangelogRow]) -> None:
        self._history.restore(rows)

    def restore_keys(self, rows: Sequence[ChangelogRow]) -> None:
        self._history.restore_keys(rows)

    @property
    def observed_time(self) -> int:
        return self._history.observed_time

    def advance(self, time: int) -> None:
        self._history.advance(time)

    def commit(self, changelog_offset: int | None) -> None:
        self._history.commit(changelog_offset)

    def _answer(self, query: Query[object]) -> object:
        return answer(self, query)

    def _make_closures(self) -> None:
        codec, history, name = self._codec, self._history, self._name
        encode_key, encode, decode = codec.encode_key, codec.encode_value, codec.decode_value
        newest, as_of = self._newest, self._as_of = history.newest, history.as_of
        self._encode_key, self._encode_value, self._decode_value = encode_key, encode, decode
        put = self._put_bytes
        latest, not_put = PUT_RETURN_CODE_VALID_TO_UNDEFINED, PUT_RETURN_CODE_NOT_PUT

        def get_row(key: object) -> tuple[object, int] | None:
            if key is None:
                raise null_key(name)
            found = newest(encode_key(key, ()))
            return None if found is None else (decode(found[0], ()), found[1])

        def get_row_as_of(key: object, time: int) -> tuple[object, int] | None:
            if key is None:
                raise null_key(name)
            found = as_of(encode_key(key, ()), time)
            return None if found is None else (decode(found[0], ()), found[1])

        def get_timeline(key: object, time_from: int, time_to: int) -> list[tuple[int, object]]:
            found = history.timeline(encode_key(key, ()), time_from, time_to)
            return [(since, None if value is None else decode(value, ())) for since, value in found]

        def get_end(key: object, time: int) -> int | None:
            return history.end_of(encode_key(key, ()), time)

        def put_row(key: object, value: object, timestamp: int) -> bool | None:
            if key is None:
                raise null_key(name)
            until = put(encode_key(key, ()), None if value is None else encode(value, ()), timestamp)
            if until == latest:
                return True
            return None if until == not_put else False

        self.get_row = self.take_row = get_row
        self.get_row_as_of = get_row_as_of
        self.get_timeline, self.get_end = get_timeline, get_end
        self.oldest_time = lambda: history.oldest_time
        self.put_row = self.keep_row = put_row

    def reader_below_cache(self) -> Callable[[object], tuple[object, int] | None]:
        """Returns the reader of rows; there is no cache."""
        return self.get_row

    def _close_closures(self) -> None:
        closed: Any = self._closed
        self.get_row = self.take_row = self.get_row_as_of = self.put_row = self.keep_row = closed
        self.get_timeline = self.get_end = self.oldest_time = closed
        self._encode_key = self._newest = self._as_of = closed

    def _flushed_key(self) -> Callable[[bytes], object]:
        decode = self._codec.decode_key
        return lambda key: decode(key, ())

    def raw_rows(self) -> Iterator[RawVersion]:
        """Every version that can be read, as it is kept, by key and then by time."""
        self._check_open()
        return self._history.rows()

    def put(self, key: K, value: V | None, timestamp: Timestamp) -> int:
        if key is None:
            raise null_key(self._name)
        time = timestamp if timestamp.__class__ is int else timestamp_ms(timestamp, "timestamp")
        if not 0 <= time <= LAST_TIME:
            raise _out_of_range(time, self._name)
        raw = self._encode_key(key, ())
        return self._put_bytes(raw, None if value is None else self._encode_value(value, ()), time)

    def delete(self, key: K, timestamp: Timestamp) -> VersionedRecord[V] | None:
        time = timestamp_ms(timestamp, "timestamp")
        if not 0 <= time <= LAST_TIME:
            raise _out_of_range(time, self._name)
        found = self._delete_bytes(self._raw_key(key), time)
        return None if found is None else VersionedRecord(self._decode_value(found[0], ()), found[1])

    @overload
    def get(self, key: K, as_of: Timestamp | None = None) -> VersionedRecord[V] | None: ...
    @overload
    def get(
        self, key: K, time_from: Timestamp | None, /, time_to: Timestamp | None, order: ResultOrder = ...
    ) -> VersionedRecordIterator[V]: ...
    @overload
    def get(
        self, key: K, *, time_from: Timestamp | None, time_to: Timestamp | None, order: ResultOrder = ...
    ) -> VersionedRecordIterator[V]: ...
    def get(
        self,
        key: K,
        as_of: Timestamp | None = None,
        time_to: Any = NO_SPAN,
        order: ResultOrder = ResultOrder.ANY,
        *,
        time_from: Any = NO_SPAN,
    ) -> Any:
        if key is None:
            raise null_key(self._name)
        if time_to is not NO_SPAN or time_from is not NO_SPAN:
            return self._of_span(key, time_span(self._name, as_of, time_from, time_to), order)
        if as_of is None:
            found = self._newest(self._encode_key(key, ()))
        else:
            time = as_of if as_of.__class__ is int else timestamp_ms(as_of, "as_of")
            found = self._as_of(self._encode_key(key, ()), time)
        return None if found is None else VersionedRecord(self._decode_value(found[0], ()), found[1])

    def _of_span(self, key: K, span: tuple[int, int], order: ResultOrder) -> VersionedRecordIterator[V]:
        found = self._history.between(self._raw_key(key), *span)
        if order is not ResultOrder.ASCENDING:
            found.reverse()
        decode = self._decode_value
        return VersionedRecordIterator(
            (VersionedRecord(decode(value, ()), since, until) for value, since, until in found), self._name
        )


def _out_of_range(time: int, store: str) -> ValueError:
    wanted = "it must not be negative" if time < 0 else f"the greatest one is {LAST_TIME}"
    return ValueError(f"the timestamp for store {store!r} is {time}; {wanted}")


def _put_and_logged(put: PutBytes, log: ChangelogWriter) -> PutBytes:
    def put_and_log(key: bytes, value: bytes | None, timestamp: int) -> int:
        until = put(key, value, timestamp)
        log(key, value, timestamp, ())
        return until

    return put_and_log


def _deleted_and_logged(delete: DeleteBytes, log: ChangelogWriter) -> DeleteBytes:
    def delete_and_log(key: bytes, timestamp: int) -> tuple[bytes, int] | None:
        valid = delete(key, timestamp)
        log(key, None, timestamp, ())
        return valid

    return delete_and_log
