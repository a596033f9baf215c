"""The types of columns that the schema of an Avro file says, so that they do not depend on the values beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import pyarrow as pa

_Schema: TypeAlias = Any
"""A text, a dict or a list of schemas, as fastavro parses them: with full names."""

_PLAIN: Final[Mapping[str, pa.DataType]] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int64(),
    "long": pa.int64(),
    "float": pa.float64(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "fixed": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}
_LOGICAL: Final[Mapping[tuple[str, str], pa.DataType]] = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time64("us"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("us", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("us"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}
"""Logical types that fastavro reads; of all others it gives what they are made of."""

_UUID: Final = pa.uuid() if hasattr(pa, "uuid") else pa.string()
_MOST_DIGITS: Final = 76
MANY_DIGITS: Final = 38
"""Digits that decimals of 128 bits have at most."""


def columns_of(schema: _Schema) -> pa.Schema:
    """The columns of the records of a schema; ``ValueError`` names a field that is none."""
    fields = _Types().fields_of(schema, "")
    for name, kind in fields:
        if pa.types.is_nested(kind) and str(_UUID) in str(kind) and _UUID != pa.string():
            raise ValueError(f"field {name!r} has UUIDs inside, which columns do not take; write them as texts")
    return pa.schema(fields)


class _Types:
    def __init__(self) -> None:
        self._named: dict[str, _Schema] = {}
        self._open: list[str] = []

    def fields_of(self, record: _Schema, path: str) -> list[tuple[str, pa.DataType]]:
        name = record["name"]
        self._named[name] = record
        self._open.append(name)
        found = [(field["name"], self._of(field["type"], f"{path}{field['name']}")) for field in record["fields"]]
        self._open.pop()
        return found

    def _of(self, schema: _Schema, path: str) -> pa.DataType:
        if isinstance(schema, list):
            return self._of_union(schema, path)
        if isinstance(schema, str):
            if schema in _PLAIN:
                return _PLAIN[schema]
            if schema in self._open:
                raise ValueError(f"field {path!r} has records of type {schema!r} inside of themselves; no column has")
            return self._of(self._named[schema], path)
        kind = schema["type"]
        if not isinstance(kind, str) or kind in self._named:
            return self._of(kind, path)
        if kind in ("record", "error"):
            return pa.struct(self.fields_of(schema, f"{path}."))
        if kind == "array":
            return pa.list_(self._of(schema["items"], path))
        if kind == "map":
            return pa.map_(pa.string(), self._of(schema["values"], path))
        if "name" in schema:
            self._named[schema["name"]] = schema
        return _simple(schema, kind, path)

    def _of_union(self, schema: list[_Schema], path: str) -> pa.DataType:
        branches = [branch for branch in schema if branch != "null"]
        types = [self._of(branch, path) for branch in branches] or [pa.null()]
        if any(not kind.equals(types[0]) for kind in types):
            names = tuple(
                branch if isinstance(branch, str) else branch.get("name", branch["type"]) for branch in branches
            )
            raise ValueError(f"field {path!r} is of one of several types {names}; a column has one type besides null")
        return types[0]


def _simple(schema: _Schema, kind: str, path: str) -> pa.DataType:
    logical = schema.get("logicalType")
    if logical == "decimal" and kind in ("bytes", "fixed"):
        digits, scale = schema["precision"], schema.get("scale", 0)
        if digits > _MOST_DIGITS:
            raise ValueError(f"field {path!r} has decimals of {digits} digits; expected {_MOST_DIGITS} at most")
        return pa.decimal256(digits, scale) if digits > MANY_DIGITS else pa.decimal128(digits, scale)
    if logical == "uuid" and kind == "string":
        return _UUID
    return _LOGICAL.get((kind, str(logical)), _PLAIN[kind])
