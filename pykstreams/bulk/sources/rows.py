"""Takes Arrow batches of a user apart into (key, value, timestamp, window start, window end), as a user has said.

Columns are turned into Python objects one by one; dicts of whole rows are made only where somebody asks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain, repeat
from typing import Any, Final, TypeAlias, cast

import pyarrow as pa
import pyarrow.compute as pc

from pykstreams.bulk.application import Application
from pykstreams.bulk.sources.plain_types import plain
from pykstreams.bulk.sources.python_objects import find_unreadable, objects_of, rows_of
from pykstreams.bulk.sources.sources import KafkaTopic
from pykstreams.bulk.sources.store_bootstrap import Row, StoreBootstrap
from pykstreams.core.errors import ConfigError
from pykstreams.core.references import is_reference, load_reference
from pykstreams.core.types import Decoder, timestamp_ms
from pykstreams.core.user_code.functions import describe_function
from pykstreams.core.user_code.returns import returns_nothing

RowParts: TypeAlias = tuple[Any, Any, int | None, int | None, int | None]
"""(key, value, timestamp, window start, window end); what the user has not named is ``None``. A plain tuple, as one is
made for each row.
"""

ReadParts: TypeAlias = Iterator[RowParts | Exception]

_LATEST_MS: Final = 253_402_300_799_999
"""The last millisecond of the year 9999; a larger number is no time in ms."""


_NOTHING: Final[Mapping[str, str]] = {
    "key": "no row would have a key",
    "value": "each row would delete its key",
    "row": "no row would have a key, a value and a timestamp",
}
"""What would come of functions that return nothing."""


class RowReader:
    """Reads the rows of one store, or of the history of a topic.

    :param started_ms: the time of rows for which the user names none.
    :param owner: whose rows they are, for messages; left out, the store.
    """

    def __init__(
        self,
        spec: StoreBootstrap,
        started_ms: int,
        application: Application,
        topic: KafkaTopic | None,
        owner: str | None = None,
    ) -> None:
        owner = owner or f"store {spec.store!r}"
        self._owner = owner
        self._decode: dict[str, Decoder] = {}
        if topic is not None and spec.content != "changelog":
            self._decode = dict(zip(("key", "value"), topic.decoders(application), strict=True))
        if topic is not None and spec.row is None:
            spec = replace(
                spec, key=spec.key or "key", value=spec.value or "value", timestamp=spec.timestamp or "timestamp"
            )
        self._row = _function(spec.row, "row", owner)
        wanted = {
            "key": spec.key,
            "value": spec.value,
            "timestamp": started_ms if spec.timestamp is None else spec.timestamp,
            "window_start": spec.window_start,
            "window_end": spec.window_end,
        }
        self._wanted: dict[str, Any] = wanted
        self._functions = {name: found for name, given in wanted.items() if (found := _function(given, name, owner))}

    def __call__(self, batch: pa.RecordBatch) -> ReadParts:
        """Returns for each row its parts, or the exception for which it has none."""
        batch = plain(batch)
        try:
            return self._read(batch)
        except (ValueError, OverflowError):
            wrong = find_unreadable(batch)
            if wrong is None:
                raise
        if batch.num_rows == 1:
            return iter((wrong,))
        middle = batch.num_rows // 2
        return chain(self(batch.slice(0, middle)), self(batch.slice(middle)))

    def _read(self, batch: pa.RecordBatch) -> ReadParts:
        if self._row is not None:
            return _each(self._whole, self._rows(batch))
        columns = {name: self._column(batch, name) for name in self._wanted if name not in self._functions}
        if not self._functions:
            found = cast("ReadParts", zip(*columns.values(), strict=False))
            return map(_readable, found) if self._decode or self._texts_of(batch) else found
        given = zip(*columns.values(), strict=False) if columns else repeat((), batch.num_rows)
        names = tuple(columns)
        return self._computed(names, given, self._rows(batch))

    def _texts_of(self, batch: pa.RecordBatch) -> bool:
        """Whether times are read from texts, each of which may be none."""
        columns = [self._wanted[name] for name in ("timestamp", "window_start", "window_end")]
        return any(isinstance(name, str) and pa.types.is_string(batch.schema.field(name).type) for name in columns)

    def _rows(self, batch: pa.RecordBatch) -> list[Row]:
        rows = rows_of(batch)
        for name, decode in self._decode.items():
            for row in rows:
                row[name] = _decoded(decode, row[name])
        return rows

    def _computed(self, names: tuple[str, ...], given: Iterable[tuple[Any, ...]], rows: list[Row]) -> ReadParts:
        functions = self._functions
        order = tuple(self._wanted)
        for found, row in zip(given, rows, strict=False):
            parts = dict(zip(names, found, strict=True))
            try:
                _check_readable(row)
                _check_readable(parts)
                for name, function in functions.items():
                    computed = function(row)
                    parts[name] = computed if name in ("key", "value") else _milliseconds(computed, name)
            except Exception as error:
                yield error
            else:
                key, value, timestamp, start, end = (parts[name] for name in order)
                yield key, value, timestamp, start, end

    def _whole(self, row: Row) -> RowParts:
        function = cast("Callable[[Row], Any]", self._row)
        _check_readable(row)
        found = function(row)
        try:
            key, value, timestamp = found
        except (TypeError, ValueError):
            raise TypeError(f"row= gave {found!r}; expected (key, value, timestamp in ms)") from None
        return key, value, _milliseconds(timestamp, "timestamp"), None, None

    def _column(self, batch: pa.RecordBatch, name: str) -> Iterable[Any]:
        given = self._wanted[name]
        if name == "value":
            if given is None:
                return rows_of(batch)
            if not isinstance(given, str):
                for column in given:
                    self._check(batch, column, name)
                return rows_of(batch.select(list(given)))
        if given is None:
            return repeat(None)
        if isinstance(given, int):
            return repeat(given)
        self._check(batch, given, name)
        column = batch.column(given)
        if name in ("key", "value"):
            found = cast("list[Any]", objects_of(column))
            decode = self._decode.get(given)
            return found if decode is None else [_decoded(decode, raw) for raw in found]
        return _milliseconds_of(column, given)

    def _check(self, batch: pa.RecordBatch, column: str, name: str) -> None:
        if column not in batch.schema.names:
            raise ConfigError(
                f"{name}= of {self._owner} names column {column!r}, and the source has {batch.schema.names}; say which "
                f"column or function it is: {name}=..."
            )


def _decoded(decode: Decoder, raw: bytes | None) -> object:
    """Reads bytes by a serde; what it raises is returned: an error of one record is that record's alone."""
    try:
        return decode(raw, ())
    except Exception as error:
        return error


def _readable(parts: RowParts | Exception) -> RowParts | Exception:
    if isinstance(parts, Exception):
        return parts
    return next((part for part in parts if isinstance(part, Exception)), parts)


def _check_readable(row: Mapping[str, object]) -> None:
    for value in row.values():
        if isinstance(value, Exception):
            raise value


def _each(read: Callable[[Row], RowParts], rows: Iterable[Row]) -> ReadParts:
    for row in rows:
        try:
            yield read(row)
        except Exception as error:
            yield error


def _function(given: object, name: str, owner: str) -> Callable[[Row], object] | None:
    """The function that a user has given, by itself or by name; ``ConfigError`` for one that returns nothing."""
    function = _given_function(given, name, owner)
    if function is not None and name in _NOTHING and returns_nothing(function):
        raise ConfigError(
            f"{name}= of {owner} is {describe_function(function)}, which returns None whatever comes: "
            f"{_NOTHING[name]}; return the result at each end of the function"
        )
    return function


def _given_function(given: object, name: str, owner: str) -> Callable[[Row], object] | None:
    if callable(given):
        return cast("Callable[[Row], object]", given)
    if not isinstance(given, str) or not is_reference(given):
        return None
    try:
        found = load_reference(given)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{name}={given!r} of {owner} cannot be imported: {error}") from error
    if not callable(found):
        raise ConfigError(f"{name}={given!r} of {owner} is {found!r}; expected a function of a row")
    return cast("Callable[[Row], object]", found)


def _milliseconds(given: Any, name: str) -> int | None:
    return None if given is None else timestamp_ms(given, name)


def _milliseconds_of(column: pa.Array, name: str) -> list[int | Exception | None]:
    """A column of times, or of milliseconds; what has no zone is in UTC."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("ms", kind.tz), safe=False).cast(pa.int64())
    elif pa.types.is_date(kind):
        column = column.cast(pa.timestamp("ms")).cast(pa.int64())
    elif pa.types.is_string(kind):
        return [None if text is None else _milliseconds_in(text, name) for text in column.to_pylist()]
    elif pa.types.is_integer(kind):
        latest = pc.max(column).as_py()
        if latest is not None and latest > _LATEST_MS:
            raise ConfigError(
                f"column {name!r} has the time {latest}, which in milliseconds is after the year 9999; if it counts "
                "microseconds or nanoseconds, make it times, or give a function: lambda row: row[...] // 1_000_000"
            )
    elif not pa.types.is_null(kind):
        raise ConfigError(f"column {name!r} is of type {kind}; expected times, or integers of milliseconds")
    return cast("list[int | Exception | None]", column.to_pylist())


def _milliseconds_in(text: str, name: str) -> int | Exception:
    """The time that a text says, or the exception that it says none."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        return ValueError(
            f"column {name!r} has {text!r}; expected a time such as 2013-01-31T05:15:00Z, or integers of milliseconds "
            f"({error})"
        )
    return timestamp_ms(time if time.tzinfo is not None else time.replace(tzinfo=UTC), name)
