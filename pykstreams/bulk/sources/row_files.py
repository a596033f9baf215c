"""The file that rows come from, which goes with each batch of them, so that a row that is refused can be found."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

_FILE: Final = b"pykstreams.file"


def with_file(schema: pa.Schema, name: str) -> pa.Schema:
    """Returns a schema for batches of the rows of a file."""
    return schema.with_metadata({**(schema.metadata or {}), _FILE: name.encode()})


def in_file(batch: pa.RecordBatch) -> str:
    """Returns where a row of a batch is, for messages: ``" of file '/a.csv'"``, or nothing where that is not known."""
    found = file_of(batch)
    return "" if found is None else f" of file {found!r}"


def file_of(batch: pa.RecordBatch) -> str | None:
    """Returns the name of the file that a batch comes from; ``None`` where it comes from no file, or from several.

    >>> batch = pa.RecordBatch.from_pylist([{"id": 1}], schema=with_file(pa.schema([("id", pa.int64())]), "/a.csv"))
    >>> file_of(batch.slice(0, 1))
    '/a.csv'
    """
    found = (batch.schema.metadata or {}).get(_FILE)
    return None if found is None else str(found, "utf-8")
