"""Files as parts of a source: the one reading of them, whichever engine runs the job.

The parts stand in the order of the rows: files as they were named, those of a folder by their names, pieces of a file
from its beginning.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import unquote

import pyarrow as pa

from pykstreams.bulk.sources.file_formats import (
    BATCH_ROWS,
    File,
    FileFormat,
    FileReader,
    Found,
    avro_files,
    csv_files,
    format_of,
    json_files,
    merged_columns,
    naming,
    parquet_files,
)
from pykstreams.bulk.sources.located import Located
from pykstreams.bulk.sources.plain_types import plain
from pykstreams.bulk.sources.row_files import with_file
from pykstreams.core.errors import ConfigError

log = logging.getLogger(__name__)

_SHOWN: Final = 5
_NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
_INTEGER: Final = re.compile(r"-?[0-9]{1,99}")


@dataclass(frozen=True)
class FilePart:
    """A piece of a file.

    :param schema: the columns of all parts.
    :param rows: how many rows it has, if that is known.
    """

    file: File
    format: FileFormat
    reader: FileReader
    schema: pa.Schema
    rows: int | None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Reads it."""
        with naming(self.file, self.format):
            for found in self.reader.batches():
                batch = self._in_columns(plain(found))
                for at in range(0, batch.num_rows, BATCH_ROWS):
                    yield batch.slice(at, BATCH_ROWS)

    def _in_columns(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [self._column(batch, field, batch.num_rows) for field in self.schema]
        return pa.RecordBatch.from_arrays(columns, schema=with_file(self.schema, self.file.name))

    def _column(self, batch: pa.RecordBatch, field: pa.Field, rows: int) -> pa.Array:
        if pa.types.is_null(field.type):
            return pa.nulls(rows)
        if field.name in batch.schema.names:
            column = batch.column(field.name)
            try:
                column = column if column.type.equals(field.type) else column.cast(field.type)
            except pa.ArrowException as error:
                raise ValueError(f"column {field.name!r} is not all {field.type}: {error}") from error
            if field.name in self.file.folder_columns:
                self._check_folder(column, field)
            return column
        return pa.repeat(self._of_folder(field), rows)

    def _of_folder(self, field: pa.Field) -> pa.Scalar:
        """The value that a name of a folder gives to a column, or null."""
        value = self.file.folder_columns.get(field.name)
        try:
            return pa.scalar(value).cast(field.type)
        except pa.ArrowException as error:
            raise ValueError(f"its folder says that {field.name!r} is {value!r}, which is no {field.type}") from error

    def _check_folder(self, column: pa.Array, field: pa.Field) -> None:
        """``ValueError`` where rows say something else."""
        expected = self._of_folder(field)
        others = [value.as_py() for value in column.unique() if not value.equals(expected)]
        if others:
            raise ValueError(
                f"its folder says that {field.name!r} is {expected.as_py()!r}, and its rows have {others[:_SHOWN]}"
            )


def file_parts(
    places: Sequence[Located],
    kind: FileFormat | None,
    types: Mapping[str, str],
    nulls: Sequence[str],
    delimiter: str,
) -> list[FilePart]:
    """The parts of files and folders.

    :param kind: their format; left out, the names tell it.
    """
    given = ", ".join(repr(place.given) for place in places)
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        raise ConfigError(f"delimiter= is {delimiter!r}; expected one character of ASCII, such as ';' or a tabulator")
    there = [place.files() for place in places]
    if not any(there):
        raise ConfigError(f"there are no files in {given} to read rows from")
    kind = kind or _format_by_names([name for found in there for name in found], given)
    decided = {name: _type(name, text) for name, text in types.items()}
    files = _files(list(zip(places, there, strict=True)), kind, decided)
    if not files:
        raise ConfigError(f"there are no {kind} files in {given}; name other files themselves, and say format=")
    if kind == "avro" and decided:
        raise ConfigError(f"types= says what the columns of {given} are, and Avro files say it themselves")
    found = _found(kind, files, decided, nulls, delimiter)
    schemas = [(one.file.name, one.schema) for one in found]
    schemas += [
        (str(PurePosixPath(file.name).parent), _schema_of(file.folder_columns)) for file in files if file.folder_columns
    ]
    schema = merged_columns(schemas, decided)
    if unknown := sorted(decided.keys() - set(schema.names)):
        raise ConfigError(f"types= names the columns {unknown}, and {given} has {schema.names}")
    return _parts(kind, found, schema)


def _found(
    kind: FileFormat, files: Sequence[File], decided: Mapping[str, pa.DataType], nulls: Sequence[str], delimiter: str
) -> list[Found]:
    if kind == "csv":
        return csv_files(files, delimiter, nulls, decided)
    if kind == "json":
        return json_files(files, decided)
    return avro_files(files) if kind == "avro" else parquet_files(files)


def _parts(kind: FileFormat, found: Sequence[Found], schema: pa.Schema) -> list[FilePart]:
    return [
        FilePart(one.file, kind, reader, schema, rows)
        for one in found
        for reader, rows in zip(one.readers, one.rows, strict=True)
    ]


def _type(column: str, text: str) -> pa.DataType:
    try:
        return pa.type_for_alias(text)
    except ValueError as error:
        raise ConfigError(
            f"types= says {text!r} of column {column!r}; expected a type of Arrow such as string, int64, double or bool"
        ) from error


def _format_by_names(names: Sequence[str], given: str) -> FileFormat:
    formats = sorted({kind for name in names if (kind := format_of(name)) is not None})
    if len(formats) == 1:
        return formats[0]
    if formats:
        raise ConfigError(f"there are files of several formats in {given} ({', '.join(formats)}); say which: format=")
    raise ConfigError(f"the format of {given} is not told by the names; say format='parquet' (or csv, json, avro)")


def _files(there: Sequence[tuple[Located, Sequence[str]]], kind: FileFormat, decided: Collection[str]) -> list[File]:
    """The files that are of a format, and those that were named themselves, whatever their names tell."""
    found: list[tuple[Located, str, dict[str, str]]] = []
    for place, names in there:
        foreign = [name for name in names if name != place.path and format_of(name) != kind]
        if foreign:
            log.warning("left out of %r, since they are no %s files: %s", place.given, kind, foreign[:5])
        left = set(foreign)
        found += [(place, name, _in_folders(place, name)) for name in names if name not in left]
    counted = Counter((place.system.type_name, name) for place, name, _ in found)
    if twice := [name for (_, name), count in counted.items() if count > 1]:
        raise ConfigError(
            f"files are named twice: {twice[:5]}; their rows would count twice, so name each of them once"
        )
    texts: dict[str, set[str]] = {}
    for _, _, columns in found:
        for column, text in columns.items():
            texts.setdefault(column, set()).add(text)
    numbers = {column for column, some in texts.items() if column not in decided and _are_integers(some - {_NO_VALUE})}
    return [
        File(name, place.system, {column: _value(text, column in numbers) for column, text in columns.items()})
        for place, name, columns in found
    ]


def _in_folders(place: Located, name: str) -> dict[str, str]:
    """The columns in the names of folders below a place, as Hive writes them."""
    parts = (part.partition("=") for part in PurePosixPath(name).relative_to(place.path).parts[:-1])
    return {unquote(column): unquote(text) for column, equals, text in parts if equals}


def _are_integers(texts: Iterable[str]) -> bool:
    return all(_INTEGER.fullmatch(text) and -(2**63) <= int(text) < 2**63 for text in texts)


def _value(text: str, number: bool) -> object:
    if text == _NO_VALUE:
        return None
    return int(text) if number else text


def _schema_of(columns: Mapping[str, object]) -> pa.Schema:
    return pa.schema([(column, pa.scalar(value).type) for column, value in columns.items()])
