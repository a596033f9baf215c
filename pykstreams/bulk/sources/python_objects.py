"""Columns as objects of Python: as Arrow makes them, and maps as dicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, cast

import pyarrow as pa

from pykstreams.bulk.sources.store_bootstrap import Row

_Change: TypeAlias = Callable[[object], object]

_NO_OBJECT: Final = (ValueError, OverflowError)


def objects_of(column: pa.Array) -> list[object]:
    """Returns the values of a column.

    >>> objects_of(pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())))
    [{'a': 1}]
    """
    found: list[object] = column.to_pylist()
    change = _change_of(column.type)
    return found if change is None else [change(value) for value in found]


def rows_of(batch: pa.RecordBatch) -> list[Row]:
    """Returns the rows of a batch, by the names of its columns."""
    rows: list[Row] = batch.to_pylist()
    for field in batch.schema:
        change = _change_of(field.type)
        if change is not None:
            for row in rows:
                row[field.name] = change(row[field.name])
    return rows


def describe_row(batch: pa.RecordBatch, at: int) -> Row:
    """Describes one row for a message: of a value that is no object of Python, its type."""
    return {name: _shown(column.slice(at, 1)) for name, column in zip(batch.schema.names, batch.columns, strict=True)}


def _shown(value: pa.Array) -> object:
    try:
        return value.to_pylist()[0]
    except _NO_OBJECT:
        return f"<{value.type}>"


def find_unreadable(batch: pa.RecordBatch) -> ValueError | None:
    """Finds the column with a value that is no object of Python: a day after the year 9999, or no text."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            column.to_pylist()
        except _NO_OBJECT as error:
            return ValueError(
                f"column {name!r} has a value of type {column.type} that is no object of Python ({error})"
            )
    return None


def _change_of(kind: pa.DataType) -> _Change | None:
    """Makes the function that makes dicts of the maps in a value; ``None`` for values without maps."""
    types = pa.types
    if types.is_struct(kind):
        inner = {field.name: change for field in kind if (change := _change_of(field.type)) is not None}
        return _of_struct(inner) if inner else None
    if types.is_map(kind) and not types.is_nested(kind.key_type):  # of other keys there are no dicts
        return _of_map(_change_of(kind.item_type))
    if types.is_list(kind):
        of_items = _change_of(kind.value_type)
        return None if of_items is None else _of_list(of_items)
    return None


def _of_struct(inner: Mapping[str, _Change]) -> _Change:
    def change(value: object) -> object:
        if value is None:
            return None
        fields = cast("Mapping[str, object]", value)
        return {name: inner[name](data) if name in inner else data for name, data in fields.items()}

    return change


def _of_map(of_items: _Change | None) -> _Change:
    def change(value: object) -> object:
        if value is None:
            return None
        entries = dict(cast("list[tuple[object, object]]", value))
        return entries if of_items is None else {key: of_items(data) for key, data in entries.items()}

    return change


def _of_list(of_items: _Change) -> _Change:
    def change(value: object) -> object:
        return None if value is None else [of_items(data) for data in cast("list[object]", value)]

    return change
