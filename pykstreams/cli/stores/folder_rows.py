"""The rows that a stopped application has for a key, in the form in which a running one answers over HTTP.

``from`` has the fields that it has there: no host, the role ``stopped``, and no position, which folders do not keep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import orjson

from pykstreams.cli.row_texts import cell_text, plain, time_text
from pykstreams.core.errors import ConfigError, SerdeError

if TYPE_CHECKING:
    from pykstreams.core.config import StreamsConfig
    from pykstreams.core.types import Headers
    from pykstreams.state.bulk.places import StoreFolder
    from pykstreams.state.interfaces.store import TaskStore
    from pykstreams.state.spec import StoreBuilder

STOPPED: Final = "stopped"
"""The role of a task that runs nowhere."""

ShownRow: TypeAlias = dict[str, object]
"""A row as an object of JSON."""


class Kept(NamedTuple):
    """A value of a store, as bytes, with the fields of its row.

    :param where: the fields that come before the value.
    :param after: those that come after it.
    """

    value: bytes | None
    headers: Headers
    where: ShownRow
    after: ShownRow


@dataclass(frozen=True, slots=True)
class AskedKey:
    """A key of a store, to be looked up in folders.

    :param topic: the topic that the serdes get.
    :param as_of: for a versioned store: the time in ms that is asked for; ``None`` for the newest version.
    """

    builder: StoreBuilder[TaskStore]
    config: StreamsConfig
    topic: str
    key: object
    as_of: int | None

    def rows(self, place: StoreFolder) -> Iterator[ShownRow]:
        """Reads what the folder of a task has; ``SerdeError`` with the value, for one that cannot be read."""
        from pykstreams.serdes import Serdes
        from pykstreams.serdes.base import bind_deserializer
        from pykstreams.serdes.defaults import or_default
        from pykstreams.state.bulk.offline import OfflineStore

        serde = or_default(self.builder.value_serde, lambda: self.config.default_value_serde)
        decode = bind_deserializer(serde.deserializer, self.topic)
        raw = replace(self.builder, value_serde=Serdes.bytes())
        with OfflineStore.in_folder(raw, place.task_id, self.config, place.folder, topic=self.topic) as opened:
            for kept in self._kept(opened.store):
                try:
                    value = None if kept.value is None else decode(kept.value, kept.headers)
                except SerdeError as error:
                    raise self._unread(place, kept, serde) from error
                yield {"key": json_value(self.key), **kept.where, "value": json_value(value), **kept.after}

    def _kept(self, store: object) -> Iterator[Kept]:
        from pykstreams.state.encoding.composed_keys import LAST_TIME
        from pykstreams.state.interfaces.session_store import SessionStore
        from pykstreams.state.interfaces.store import KeyValueStore
        from pykstreams.state.interfaces.versioned_store import VersionedKeyValueStore
        from pykstreams.state.interfaces.window_store import WindowStore
        from pykstreams.state.versions.answers import version_as_of

        read = _reader(store)
        match store:
            case VersionedKeyValueStore():
                found = store.get(self.key) if self.as_of is None else version_as_of(store, self.key, self.as_of)
                if found is not None:
                    times: ShownRow = {"timestamp": found.timestamp, "valid_to": found.valid_to}
                    yield Kept(found.value, (), {}, times)
            case KeyValueStore():
                kept = store.get(self.key)
                if kept is not None:
                    yield read(kept, {})
            case WindowStore():
                size_ms = getattr(self.builder.supplier, "window_size_ms", 0)
                with store.fetch(self.key, 0, LAST_TIME) as windows:
                    for start, kept in windows:
                        yield read(kept, _window(start, min(start + size_ms, LAST_TIME)))
            case SessionStore():
                with store.fetch(self.key) as sessions:
                    for windowed, kept in sessions:
                        yield read(kept, _window(windowed.window.start, windowed.window.end))
            case _:
                kind = type(store).__name__
                raise ConfigError(f"store {self.builder.name!r} is a {kind}, which has no values by key")

    def _unread(self, place: StoreFolder, kept: Kept, serde: object) -> SerdeError:
        partition = place.task_id.partition
        where = [f"the value of key {self.key!r} in store {self.builder.name!r}"]
        where += [] if partition < 0 else [f"partition {partition}"]
        where += [_span(window) for window in kept.where.values()]
        told = f"{', '.join(where)}{',' if where[1:] else ''} cannot be read by {serde!r}"
        return SerdeError(
            f"{told}: {plain(kept.value or b'')}",
            topic=self.topic,
            serde=repr(serde),
        )


def source_of(place: StoreFolder) -> ShownRow:
    """The field ``from`` of rows of key-value and versioned stores, which alone have it over HTTP, too."""
    return {"partition": place.task_id.partition, "host": None, "role": STOPPED, "position": {}}


def json_value(value: object) -> object:
    """Returns what the JSON of a value reads as; its ``repr`` where JSON has no form for it.

    >>> json_value(b"tea"), json_value({("a", 1): "x"})
    ('dGVh', "{('a', 1): 'x'}")
    """
    from pykstreams.serdes.json_forms import json_form

    try:
        return orjson.loads(json_form(value))
    except TypeError:
        return repr(value)


def text_of(row: ShownRow, place: StoreFolder) -> str:
    """A row to read, without its key."""
    parts = [cell_text(row["value"])]
    if "window" in row:
        parts.insert(0, _span(row["window"]))
    told = [f"of {time_text(time)}"] if isinstance(time := row.get("timestamp"), int) else []
    if place.task_id.partition >= 0:
        told.append(f"partition {place.task_id.partition}")
    return "  ".join(parts) + (f"  ({', '.join(told)})" if told else "")


def _reader(store: object) -> Callable[[object, ShownRow], Kept]:
    """Returns what takes apart the values of a store that is not versioned."""
    from pykstreams.state.encoding.layout import NO_TIMESTAMP
    from pykstreams.state.queries.values import alone, keeps_headers, keeps_time

    value_of, has_headers, has_time = alone(store), keeps_headers(store), keeps_time(store)

    def read(kept: object, where: ShownRow) -> Kept:
        headers = tuple(getattr(kept, "headers", ())) if has_headers else ()
        after: ShownRow = {}
        if has_time and (timestamp := getattr(kept, "timestamp", None)) != NO_TIMESTAMP:
            after["timestamp"] = timestamp
        if has_headers:
            after["headers"] = [json_value(header) for header in headers]
        return Kept(value_of(kept), headers, where, after)

    return read


def _window(start: int, end: int) -> ShownRow:
    return {"window": {"start": start, "end": end}}


def _span(window: object) -> str:
    return " to ".join(map(time_text, window.values())) if isinstance(window, dict) else ""
