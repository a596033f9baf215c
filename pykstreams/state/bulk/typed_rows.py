"""The rows of a store with their objects, alike for every kind of store: for exports, data frames and tools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from pykstreams.core.errors import StreamsError
from pykstreams.core.types import Headers
from pykstreams.state.encoding.composed_keys import LAST_TIME
from pykstreams.state.encoding.layout import PLAIN
from pykstreams.state.interfaces.session_store import RawSession
from pykstreams.state.interfaces.store import StoreContext
from pykstreams.state.interfaces.window_store import RawWindowRow
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
    decode_key, decode = codec.decode_key, codec.decode_value
    size_ms = getattr(builder.supplier, "window_size_ms", 0)
    for row in found():
        match row:
            case RawWindowRow(key, start, value, timestamp, headers):
                end = min(start + size_ms, LAST_TIME)
                yield StateRow(decode_key(key, ()), decode(value, headers), timestamp, headers, start, end)
            case RawSession(key, start, end, value, headers):
                yield StateRow(decode_key(key, ()), decode(value, headers), None, headers, start, end)
            case RawVersion(key, value, timestamp, valid_to):
                yield StateRow(decode_key(key, ()), decode(value, ()), timestamp, (), timestamp, valid_to)
            case (key, value, timestamp, headers):
                yield StateRow(decode_key(key, ()), decode(value, headers), timestamp, headers, None, None)
