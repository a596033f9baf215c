"""Types of columns as all sources have them, whoever reads: so a value is the same object with Spark and without.

- Times and durations have microseconds; finer digits are cut off.
- Times with a zone are in UTC: the same instants, whatever zone the files, the session or the machine is in. Times
  without a zone stay without one.
- Texts, also those that are JSON, and bytes have one type each, however long they may become.
- Columns that are kept as codes of a dictionary have the values themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

_JSON: Final = pa.JsonType if hasattr(pa, "JsonType") else ()


def plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows, with plain types; ``pa.ArrowInvalid`` for a time that microseconds do not hold."""
    schema = plain_schema(batch.schema)
    if schema.equals(batch.schema):
        return batch
    columns = [column.cast(options=_cut_off(field.type)) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cut_off(kind: pa.DataType) -> pc.CastOptions:
    return pc.CastOptions(kind, allow_time_truncate=True)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The columns with plain types, and without what else was said of them."""
    return pa.schema([(field.name, with_types(field.type, _plain)) for field in schema])


def with_types(kind: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """A type with all types inside of it changed, and then itself."""
    types = pa.types
    if types.is_struct(kind):
        kind = pa.struct([(field.name, with_types(field.type, change)) for field in kind])
    elif types.is_map(kind):
        kind = pa.map_(with_types(kind.key_type, change), with_types(kind.item_type, change))
    elif types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        kind = pa.list_(with_types(kind.value_type, change))
    elif types.is_dictionary(kind):
        kind = with_types(kind.value_type, change)
    return change(kind)


def _plain(kind: Any) -> pa.DataType:
    types = pa.types
    if types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if types.is_duration(kind):
        return pa.duration("us")
    if types.is_time(kind):
        return pa.time64("us")
    if types.is_large_string(kind) or types.is_string_view(kind) or isinstance(kind, _JSON):
        return pa.string()
    if types.is_large_binary(kind) or types.is_binary_view(kind):
        return pa.binary()
    return kind
