"""Writes a store to a file, without Spark: the rows that a data frame of it would have.

Invariant: a file with the name that was given is whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path, PurePath
from types import TracebackType
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from pykstreams.bulk.application import Application
from pykstreams.bulk.state_rows.parts import part_batches, state_parts
from pykstreams.bulk.state_rows.views import StoreSelection
from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ConfigError
from pykstreams.core.ids import TaskId
from pykstreams.core.types import Timestamp, timestamp_ms
from pykstreams.state.directory.durable_files import publish_file
from pykstreams.topology.topology import Topology


@dataclass(frozen=True)
class ExportReport:
    """The file that was written.

    :param path: the file.
    :param tasks: of how many tasks.
    :param not_closed: those whose folders are not known to have been closed in good order: what was written last may
        be in their changelogs only.
    """

    path: Path
    rows: int
    tasks: int
    not_closed: tuple[TaskId, ...] = ()


def export_state(
    app: str | Topology,
    store: str,
    to: str,
    *,
    path: str | PurePath | None = None,
    topic: str | None = None,
    as_of: Timestamp | None = None,
    raw: bool = False,
    config: StreamsConfig | Mapping[str, object] | None = None,
) -> ExportReport:
    """Writes the rows of a store to a file that is not there yet.

    :param to: ``parquet:PATH``, ``csv:PATH`` or ``json:PATH`` (one object a line).
    :param path: a state directory, a copy of it or of a task's folder, or a bootstrap; left out: the state directory
        that the settings name.
    :param topic: the changelog, instead of a folder.
    :param as_of: only what a versioned store had at that time.
    :param raw: keys and values as the bytes that are stored.
    """
    kind, target = _target(to)
    settings = config.originals if isinstance(config, StreamsConfig) else dict(config or {})
    time = None if as_of is None else timestamp_ms(as_of, "as_of")
    view = StoreSelection(Application(app, settings), store, time, raw)
    parts = state_parts(view, None if path is None else str(path), topic)
    unfinished = target.with_name(f".{target.name}.unfinished")
    not_closed = tuple(part.task_id for part in parts if not part.is_complete)
    rows = 0
    try:
        with _WRITERS[kind](unfinished, view.schema) as writer:
            for part in parts:
                for batch in part_batches(view, part):
                    writer.write_batch(batch)
                    rows += batch.num_rows
        publish_file(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)
    return ExportReport(target, rows, len(parts), not_closed)


def _target(to: str) -> tuple[str, Path]:
    kind, _, name = to.partition(":")
    if kind not in _WRITERS or not name:
        raise ConfigError(f"{to!r} says not where to write; expected parquet:PATH, csv:PATH or json:PATH")
    target = Path(name)
    if target.exists():
        raise ConfigError(f"{name!r} is there already; name a new file, or delete that one")
    if not target.absolute().parent.is_dir():
        raise ConfigError(f"there is no folder {str(target.absolute().parent)!r} to write {target.name!r} into")
    return kind, target


class _JsonLines(AbstractContextManager["_JsonLines"]):
    """Writes batches as JSON, one object a line; bytes are written in hexadecimal."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._file = path.open("w", encoding="utf-8")

    def write_batch(self, batch: pa.RecordBatch) -> None:
        for row in batch.to_pylist():
            self._file.write(json.dumps(row, ensure_ascii=False, default=_as_text) + "\n")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


class _Csv(AbstractContextManager["_Csv"]):
    """Writes batches as CSV with a header; bytes are written in hexadecimal, headers as JSON."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._schema = pa.schema(
            [(field.name, field.type if _as_csv(field.type) is None else pa.string()) for field in schema]
        )
        self._writer = pc.CSVWriter(str(path), self._schema)

    def write_batch(self, batch: pa.RecordBatch) -> None:
        arrays = [
            column
            if (show := _as_csv(column.type)) is None
            else pa.array([None if one is None else show(one) for one in column.to_pylist()], pa.string())
            for column in batch.columns
        ]
        self._writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=self._schema))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()


def _as_csv(type_: pa.DataType) -> Callable[[Any], str] | None:
    """Returns the function that makes text of values that CSV has no form of; ``None`` where it has one."""
    if pa.types.is_binary(type_):
        return bytes.hex
    return partial(json.dumps, default=_as_text) if pa.types.is_nested(type_) else None


_WRITERS: Final[Mapping[str, Callable[[Path, pa.Schema], Any]]] = {
    "parquet": lambda path, schema: pq.ParquetWriter(str(path), schema),
    "csv": _Csv,
    "json": _JsonLines,
}


def _as_text(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value.hex() if isinstance(value, bytes) else str(value)
