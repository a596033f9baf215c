"""Headers of records as a column of rows: lists of structs of ``key`` and ``value``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, cast

import pyarrow as pa

from pykstreams.core.types import Headers

HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
"""The type of the column."""


def headers_of(column: pa.Array | None, rows: int) -> Sequence[Headers]:
    """The headers in a column of lists of structs, or of nothing."""
    if column is None or column.null_count == rows:
        return [()] * rows
    found = cast("list[list[dict[str, Any]] | None]", column.to_pylist())
    return [() if each is None else tuple((one["key"], one["value"]) for one in each) for each in found]


def structs_of(headers: Iterable[tuple[str, bytes | None]] | None) -> list[dict[str, object]] | None:
    """The headers of one record, as the column has them."""
    return [{"key": name, "value": value} for name, value in headers] if headers else None
