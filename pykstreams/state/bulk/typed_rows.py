"""The rows of a store with their objects, alike for every kind of store: for exports, data frames and tools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from pykstreams.core.errors import SerdeError, StreamsError
from pykstreams.core.ids import TaskId
from pykstreams.core.shown_values import shown
from pykstreams.core.types import Headers
from pykstreams.state.encoding.composed_keys import LAST_TIME
from pykstreams.state.encoding.layout import PLAIN
from pykstreams.state.interfaces.session_store import RawSession
from pykstreams.state.interfaces.store import StoreContext
from pykstreams.state.interfaces.window_store import RawWindowRow
from pykstreams.state.layers.rows import RowCodec
from pykstreams.state.layers.store_serdes import bound_codec
from pykstreams.state.spec import StoreBuilder
from pykstreams.state.versions.history import RawVersion


class StateRow(NamedTuple):
    """A row of a store.

    ``timestamp`` is the time of the record that set the value, ``None`` where the store keeps none. ``start`` and
    ``end`` are those of its window (``end`` exclusive), of its session (inclusive), or of the time in which a version
    is valid (``end`` exclusive, ``None`` for the newest one); ``None`` where there is nothing of the kind.
    """

    key: Any
    value: Any
    timestamp: int | None
    headers: Headers
    start: int | None
    end: int | None


def typed_rows(store: Any, builder: StoreBuilder[Any], context: StoreContext) -> Iterator[StateRow]:
    """Every row of an open store that can be read; ``StreamsError`` for a store that keeps no rows by key."""
    layout = getattr(store, "layout", PLAIN)
    found = getattr(store, "raw_rows", None)
    if found is None or not hasattr(store, "get_row"):
        raise StreamsError(
            f"store {builder.name!r} is a {type(store).__name__}, which has no rows by key; name a key-value, window, "
            "session or versioned store"
        )
    codec = bound_codec(builder.name, builder.key_serde, builder.value_serde, layout, context)
    size_ms = getattr(builder.supplier, "window_size_ms", 0)
    for row in found():
        match row:
            case RawWindowRow(key, start, value, timestamp, headers):
                raw = StateRow(key, value, timestamp, headers, start, min(start + size_ms, LAST_TIME))
            case RawSession(key, start, end, value, headers):
                raw = StateRow(key, value, None, headers, start, end)
            case RawVersion(key, value, timestamp, valid_to):
                raw = StateRow(key, value, timestamp, (), timestamp, valid_to)
            case (key, value, timestamp, headers):
                raw = StateRow(key, value, timestamp, headers, None, None)
        yield _read(raw, codec, builder.name, context.task_id)


def _read(raw: StateRow, codec: RowCodec, store: str, task_id: TaskId) -> StateRow:
    """Reads a row of bytes; ``SerdeError`` with store and partition, and for a value with its key and times."""
    try:
        key = codec.decode_key(raw.key, ())
    except SerdeError as error:
        raise _unread("a key", _place(store, task_id), error) from error
    try:
        return raw._replace(key=key, value=codec.decode_value(raw.value, raw.headers))
    except SerdeError as error:
        where = _place(store, task_id)
        if raw.start is not None:
            where.append(f"from {raw.start} ms on" if raw.end is None else f"from {raw.start} to {raw.end} ms")
        told = _unread(f"the value of key {shown(key)}", where, error)
        told.row_key = key
        raise told from error


def _place(store: str, task_id: TaskId) -> list[str]:
    return [f"in store {store!r}", *([] if task_id.partition < 0 else [f"partition {task_id.partition}"])]


def _unread(what: str, where: list[str], error: SerdeError) -> SerdeError:
    told = f"{what} {', '.join(where)}{',' if where[1:] else ''} cannot be read: {error}"
    return SerdeError(told, topic=error.topic, serde=error.serde)
