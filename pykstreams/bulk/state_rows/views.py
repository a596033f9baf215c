"""The rows of a store as Arrow batches: which columns there are, of which types, and how objects get into them.

Data frames and exports are made of these batches, so they show a store alike.

Invariant: every row of a store is one row of the batches, in the order in which the store gives them; with ``as_of``
one a key, that which ``get(key, as_of)`` of the store would find.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import Any, Final, NamedTuple

import pyarrow as pa

from pykstreams.bulk.application import Application
from pykstreams.core.errors import ConfigError, UnknownStateStoreError
from pykstreams.core.ids import TaskId
from pykstreams.core.types import timestamp_ms
from pykstreams.serdes import primitives
from pykstreams.serdes.defaults import default_part, or_default
from pykstreams.serdes.json import json_serde
from pykstreams.state.bulk.description import describe_store
from pykstreams.state.bulk.offline import OfflineStore
from pykstreams.state.bulk.typed_rows import StateRow
from pykstreams.state.interfaces.store import TaskStore
from pykstreams.state.spec import StoreBuilder

BATCH_ROWS: Final = 8_192

_TIME: Final = pa.timestamp("us", tz="UTC")
_LAST_MS: Final = 253_402_300_799_999  # the end of the year 9999; later times, such as LAST_TIME, are no dates
_TIMES: Final[Mapping[str, tuple[str, ...]]] = {
    "window": ("window_start", "window_end"),
    "session": ("session_start", "session_end"),
    "versioned": ("valid_from", "valid_to"),
}
_WITH_HEADERS: Final = frozenset({"with headers", "sessions with headers"})
_HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_TIMESTAMPED: Final = frozenset({"key-value", "window", "subscription"})
_SIMPLE: Final[tuple[tuple[type[object], pa.DataType], ...]] = (
    (primitives.StringSerde, pa.string()),
    (primitives.ShortSerde, pa.int16()),
    (primitives.IntegerSerde, pa.int32()),
    (primitives.LongSerde, pa.int64()),
    (primitives.FloatSerde, pa.float32()),
    (primitives.DoubleSerde, pa.float64()),
    (primitives.BooleanSerde, pa.bool_()),
    (primitives.BytesSerde, pa.binary()),
)
_UNITS: Final = {"s": 0.001, "ms": 1, "us": 1_000, "ns": 1_000_000}


class _Side(NamedTuple):
    """Keys, or values, as they are shown.

    :param serde: what reads them: the store's own, or another one for the same bytes.
    :param type: of the column, unless another one is wanted.
    :param load: makes an object of what the serde gives, for a column of another type.
    :param show: makes text of what the serde gives; ``None`` where it is what the column holds.
    """

    serde: object
    type: pa.DataType
    load: Callable[[Any], object] | None = None
    show: Callable[[Any], object] | None = None


@dataclass(frozen=True)
class StoreSelection:
    """A store of an application, as somebody wants to see it.

    :param as_of: only what a versioned store had at that time, in ms.
    :param raw: keys and values as the bytes that are stored.
    """

    application: Application
    store: str
    as_of: int | None = None
    raw: bool = False

    def __getstate__(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in ("application", "store", "as_of", "raw")}

    @cached_property
    def planned(self) -> StoreBuilder[TaskStore]:
        """The builder of the store, as the topology has it; ``UnknownStateStoreError`` if there is none."""
        plan = self.application.plan
        found = {one.store.name: one.store for one in plan.global_stores}
        found.update({name: builder for part in plan.subtopologies for name, builder in part.stores.items()})
        if self.store not in found:
            raise UnknownStateStoreError(
                f"no store of {self.application.config.application_id!r} is named {self.store!r}; there are "
                f"{sorted(found)}"
            )
        kind, _ = _kind_and_layout(found[self.store], self.application)
        if self.as_of is not None and kind != "versioned":
            raise ConfigError(f"store {self.store!r} keeps no history, it is a {kind} store; leave as_of out")
        return found[self.store]

    @property
    def builder(self) -> StoreBuilder[TaskStore]:
        """The builder to open the store with."""
        return replace(self.planned, key_serde=self._key.serde, value_serde=self._value.serde)

    @property
    def subtopologies(self) -> list[int]:
        """Those that have the store; none for a global one."""
        return [part.id for part in self.application.plan.subtopologies if self.store in part.stores]

    @property
    def serde_topic(self) -> str:
        """The topic that is passed to its serdes."""
        return self.application.plan.serde_topic(self.store)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns, with the types that the serdes tell."""
        kind, layout = _kind_and_layout(self.planned, self.application)
        columns = [("task", pa.string()), ("partition", pa.int32()), ("key", self._key.type)]
        columns += [(name, _TIME) for name in _TIMES.get(kind, ())]
        columns += [("value", self._value.type)]
        columns += [("timestamp", _TIME)] if kind in _TIMESTAMPED else []
        columns += [("headers", _HEADERS)] if layout in _WITH_HEADERS else []
        return pa.schema(columns)

    @cached_property
    def _key(self) -> _Side:
        return self._side(self.planned.key_serde, "key")

    @cached_property
    def _value(self) -> _Side:
        return self._side(self.planned.value_serde, "value")

    def _side(self, given: object, side: str) -> _Side:
        if self.raw:
            return _Side(primitives.BytesSerde(), pa.binary())
        config = self.application.config
        serde = or_default(given, lambda: getattr(config, f"default_{default_part(given, side)}_serde"))
        if isinstance(serde, json_serde.JsonSerde):  # the text is what is stored
            return _Side(primitives.StringSerde(), pa.string(), load=json.loads)
        for kind, type_ in _SIMPLE:
            if isinstance(serde, kind):
                return _Side(serde, type_)
        if isinstance(serde, primitives.UUIDSerde):
            return _Side(serde, pa.string(), load=str, show=str)
        return _Side(serde, pa.string(), load=plain, show=json_text)

    def batches(
        self, opened: OfflineStore, task_id: TaskId, schema: pa.Schema | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of an open store.

        :param schema: the columns that are wanted, with their types; a JSON object may be a struct.
        """
        wanted = self.schema if schema is None else schema
        missing = sorted(set(wanted.names) - set(self.schema.names))
        if missing:
            raise ConfigError(
                f"store {self.store!r} has no columns {missing}; there are {', '.join(self.schema.names)}"
            )
        rows = iter(opened.rows() if self.as_of is None else self._valid(opened, self.as_of))
        while chunk := list(islice(rows, BATCH_ROWS)):
            arrays = [self._array(field, chunk, task_id) for field in wanted]
            yield pa.RecordBatch.from_arrays(arrays, schema=wanted)

    def _valid(self, opened: OfflineStore, time: int) -> Iterator[StateRow]:
        """The rows of the versions that are valid at a time. What was replaced before the retention is gone."""
        gone = time < opened.observed_time - (self.planned.history_retention_ms or 0)
        for row in opened.rows():
            if row.start is not None and row.start <= time and (row.end is None or (time < row.end and not gone)):
                yield row

    def _array(self, field: pa.Field, rows: list[StateRow], task_id: TaskId) -> pa.Array:
        name, type_ = field.name, field.type
        match name:
            case "task":
                return pa.array([str(task_id) if task_id.subtopology >= 0 else None] * len(rows), type_)
            case "partition":
                return pa.array([task_id.partition if task_id.partition >= 0 else None] * len(rows), type_)
            case "key":
                return self._objects(field, self._key, [row.key for row in rows])
            case "value":
                return self._objects(field, self._value, [row.value for row in rows])
            case "timestamp":
                return _times([row.timestamp for row in rows], type_)
            case "headers":
                return pa.array([[{"key": name, "value": raw} for name, raw in row.headers] for row in rows], type_)
            case "window_start" | "session_start" | "valid_from":
                return _times([row.start for row in rows], type_)
        return _times([row.end for row in rows], type_)

    def _objects(self, field: pa.Field, side: _Side, found: list[object]) -> pa.Array:
        make = side.show if field.type == side.type else side.load
        try:
            if make is not None:
                found = [None if one is None else make(one) for one in found]
            if field.type != side.type and _has_maps(field.type):
                found = [_with_pairs(one, field.type) for one in found]
            return pa.array(found, field.type)
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
            raise ConfigError(
                f"column {field.name!r} of store {self.store!r} cannot be shown as {field.type}: {error}; give a "
                "schema that fits its objects, or none"
            ) from error


def time_of(text: str) -> int:
    """Reads a time that somebody has written.

    >>> time_of("2026-01-01T00:00Z"), time_of("5")
    (1767225600000, 5)
    """
    if text.isdecimal():
        return int(text)
    try:
        return timestamp_ms(datetime.fromisoformat(text), "as_of")
    except ValueError as error:
        raise ConfigError(
            f"as_of is {text!r}, which is no time ({error}); write 2026-01-01T00:00Z, or ms since the epoch"
        ) from error


def plain(value: object) -> object:
    """Makes dicts and lists of objects, so that they fit into JSON and into columns.

    >>> plain({"at": (1, 2)})
    {'at': [1, 2]}
    """
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if hasattr(value, "model_dump"):
        return plain(value.model_dump())
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Iterable):
        return [plain(one) for one in value]
    if hasattr(value, "DESCRIPTOR"):
        from google.protobuf.json_format import MessageToDict

        return MessageToDict(value, preserving_proto_field_name=True)
    return value


def json_text(value: object) -> str:
    """The JSON text of an object; bytes are in base64, and what JSON does not know is shown as text.

    >>> json_text({"a": b"1"})
    '{"a":"MQ=="}'
    """
    return json.dumps(plain(value), separators=(",", ":"), ensure_ascii=False, default=_as_text)


def _as_text(value: object) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _kind_and_layout(builder: StoreBuilder[TaskStore], application: Application) -> tuple[str, str]:
    found = describe_store(builder, application.config, 0, None)
    return found.kind, found.layout


def _times(found: list[int | None], type_: pa.DataType) -> pa.Array:
    """Times in ms as what a column wants: dates, or numbers. No time is null, and so is a date after all dates."""
    if not pa.types.is_timestamp(type_):
        return pa.array([None if ms is None or ms < 0 else ms for ms in found], type_)
    scale = _UNITS[type_.unit]
    return pa.array([None if ms is None or not 0 <= ms <= _LAST_MS else int(ms * scale) for ms in found], type_)


def _has_maps(type_: pa.DataType) -> bool:
    if pa.types.is_map(type_):
        return True
    return any(_has_maps(type_.field(at).type) for at in range(type_.num_fields))


def _with_pairs(value: Any, type_: pa.DataType) -> Any:
    """The same with pairs instead of dicts where the column has maps, as Arrow wants it."""
    if value is None:
        return None
    if pa.types.is_map(type_):
        return [(key, _with_pairs(one, type_.item_type)) for key, one in value.items()]
    if pa.types.is_struct(type_):
        return {field.name: _with_pairs(value.get(field.name), field.type) for field in type_}
    if pa.types.is_list(type_):
        return [_with_pairs(one, type_.value_type) for one in value]
    return value
