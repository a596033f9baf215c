"""The contents of files of rows, by format: their columns, and the pieces that can be read apart.

Parquet and Avro files say what their columns are. CSV and JSON files do not: all of them are looked through once,
before anything is read, so that the type of a column depends neither on the order of files nor on where a reader cuts
them.
"""

from __future__ import annotations

import csv
import io
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import PurePosixPath
from typing import Any, Final, Literal, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from pykstreams.bulk.sources.avro_types import MANY_DIGITS, columns_of
from pykstreams.bulk.sources.csv_quotes import CheckedQuotes
from pykstreams.bulk.sources.large_integers import JsonIntegers, numbers_hold
from pykstreams.bulk.sources.plain_types import plain_schema, with_types
from pykstreams.core.errors import ConfigError

FileFormat: TypeAlias = Literal["parquet", "csv", "json", "avro"]

BATCH_ROWS: Final = 8_192
"""As objects of Python, rows take ten to twenty times the bytes that they have in a file."""
_BLOCK_BYTES: Final = 8 << 20
_BLOCKS_OF_A_PIECE: Final = 8
_PACKED: Final[Mapping[str, str]] = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
_SUFFIXES: Final[Mapping[str, FileFormat]] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".avro": "avro",
}
_SHOWN: Final = 300
_BEFORE_ROWS: Final = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*")

_UNREADABLE: Final = (
    pa.ArrowException,
    OSError,
    ValueError,
    EOFError,
    LookupError,
    OverflowError,
    csv.Error,
    zlib.error,
)

NULLS: Final = ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null")
"""Fields of CSV files that stand for nothing, unless they are in quotes."""


class FileReader(Protocol):
    """Reads one piece of a file; it can be pickled."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Its rows, as the file has them."""
        ...


@dataclass(frozen=True)
class File:
    """A file in some file system.

    :param folder_columns: columns that the names of its folders have (``year=2013/``).
    """

    name: str
    system: Any
    folder_columns: Mapping[str, Any]

    def stream(self) -> Any:
        """Opens it to be read from its beginning; what is packed is unpacked."""
        return self.system.open_input_stream(self.name, compression=self._packed_by)

    @property
    def packed(self) -> bool:
        """Whether it can only be read from its beginning."""
        return self._packed_by is not None

    @property
    def _packed_by(self) -> str | None:
        return _PACKED.get(PurePosixPath(self.name).suffix.lower())


@dataclass(frozen=True)
class Found:
    """The contents of one file.

    :param schema: its columns with their types.
    :param rows: how many rows each of its pieces has, as far as that is known.
    """

    file: File
    schema: pa.Schema
    readers: Sequence[FileReader]
    rows: Sequence[int | None]


def format_of(name: str) -> FileFormat | None:
    """The format that the end of a name tells.

    >>> format_of("flights/part-0.csv.gz"), format_of("README.txt")
    ('csv', None)
    """
    path = PurePosixPath(name.lower())
    return _SUFFIXES.get((PurePosixPath(path.stem) if path.suffix in _PACKED else path).suffix)


@contextmanager
def naming(file: File, kind: FileFormat) -> Iterator[None]:
    """Makes of an error in reading a file one that names the file."""
    try:
        yield
    except _UNREADABLE as error:
        why = str(error).partition("\n")[0][:_SHOWN] or type(error).__name__
        raise ConfigError(
            f"file {file.name!r} cannot be read as {kind}: {why}. Correct it, leave it out, or say format= where it is "
            "of another one"
        ) from error


def merged_columns(
    schemas: Iterable[tuple[str, pa.Schema]], decided: Mapping[str, pa.DataType] | None = None
) -> pa.Schema:
    """The columns that any of these have, in the order in which they are met, with the type that holds all of theirs.

    :param schemas: with what has them.
    :param decided: types that are decided already.
    """
    merged: dict[str, tuple[str, pa.DataType]] = {}
    for where, schema in schemas:
        for field in schema:
            kind = (decided or {}).get(field.name, field.type)
            first = where
            if field.name in merged:
                first, known = merged[field.name]
                try:
                    kind = _widest(known, kind)
                except (pa.ArrowException, ValueError) as error:  # ValueError: more digits than decimals have
                    raise ConfigError(
                        f"column {field.name!r} is {known} in {first!r} and {kind} in {where!r}; make them alike (or, "
                        f"in Parquet and CSV, say what it is: types={{{field.name!r}: 'string'}})"
                    ) from error
            merged[field.name] = first, kind
    return pa.schema([(name, kind) for name, (_, kind) in merged.items()])


def _widest(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    schemas = [pa.schema([("", kind)]) for kind in (one, other)]
    found = pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    if _alters(one, found) or _alters(other, found):
        raise pa.ArrowTypeError(f"{found} does not hold what {one} and {other} are")
    return _with_room(other, _with_room(one, found))


def _with_room(kind: Any, wider: Any) -> pa.DataType:
    """The wider type, whose decimals have as many digits as Arrow wants for integers of the other one: it widens them
    by one digit too few.
    """
    types = pa.types
    if types.is_struct(kind):
        inner = {field.name: field.type for field in kind}
        return pa.struct(
            [
                (field.name, _with_room(inner[field.name], field.type) if field.name in inner else field.type)
                for field in wider
            ]
        )
    if types.is_map(kind):
        return pa.map_(wider.key_type, _with_room(kind.item_type, wider.item_type))
    if types.is_list(kind):
        return pa.list_(_with_room(kind.value_type, wider.value_type))
    if not (types.is_decimal(wider) and types.is_integer(kind)):
        return wider
    digits = wider.scale + len(str(2 ** (kind.bit_width - types.is_signed_integer(kind))))
    if digits <= wider.precision:
        return wider
    return pa.decimal128(digits, wider.scale) if digits <= MANY_DIGITS else pa.decimal256(digits, wider.scale)


def _alters(kind: Any, wider: Any) -> bool:
    """Whether values become others in a type that Arrow takes for a wider one: digits are lost, or a text is bytes."""
    types = pa.types
    if types.is_struct(kind):
        return any(_alters(field.type, wider.field(field.name).type) for field in kind)
    if types.is_map(kind):
        return _alters(kind.item_type, wider.item_type)
    if types.is_list(kind):
        return _alters(kind.value_type, wider.value_type)
    if types.is_decimal(kind):
        return bool(types.is_floating(wider))
    return bool(types.is_string(kind) and types.is_binary(wider))


def parquet_files(files: Iterable[File]) -> list[Found]:
    """Parquet files: a piece is a row group."""
    found = []
    for file in files:
        with naming(file, "parquet"), _open_parquet(file) as opened:
            rows = [opened.metadata.row_group(at).num_rows for at in range(opened.num_row_groups)]
            pieces = [_RowGroup(file, at) for at in range(opened.num_row_groups)]
            found.append(Found(file, plain_schema(opened.schema_arrow), pieces, rows))
    return found


def _open_parquet(file: File) -> pq.ParquetFile:
    """Opens a file; nanoseconds, as which times of 96 bits are read else, do not reach beyond the year 2262."""
    return pq.ParquetFile(file.system.open_input_file(file.name), coerce_int96_timestamp_unit="us")


@dataclass(frozen=True)
class _RowGroup:
    file: File
    number: int

    def batches(self) -> Iterator[pa.RecordBatch]:
        with _open_parquet(self.file) as opened:
            yield from opened.iter_batches(BATCH_ROWS, [self.number])


def csv_files(
    files: Iterable[File], delimiter: str, nulls: Sequence[str], decided: Mapping[str, pa.DataType]
) -> list[Found]:
    """CSV files: a file is a piece, and all files together tell the types."""
    possible: dict[str, tuple[pa.DataType, ...]] = {}
    found: list[tuple[File, tuple[str, ...], list[_Csv], list[int | None]]] = []
    for file in files:
        with naming(file, "csv"):
            columns, has_rows = _header(file, delimiter)
            pieces = [_Csv(file, columns, delimiter, tuple(nulls))] if has_rows else []
            for name in columns:
                possible.setdefault(name, _GUESSES)
            if decided.keys() >= set(columns):
                found.append((file, columns, pieces, [None] * len(pieces)))
                continue
            rows = 0
            for batch in (batch for piece in pieces for batch in piece.batches()):
                rows += batch.num_rows
                for name in columns:
                    possible[name] = _still_possible(batch.column(name), possible[name])
            found.append((file, columns, pieces, [rows] * len(pieces)))
    types = {name: left[0] if left else pa.string() for name, left in possible.items()}
    return [
        Found(file, pa.schema([(name, types[name]) for name in columns]), pieces, rows)
        for file, columns, pieces, rows in found
    ]


_GUESSES: Final[tuple[pa.DataType, ...]] = (pa.null(), pa.int64(), pa.float64(), pa.bool_())


def _still_possible(texts: pa.Array, types: tuple[pa.DataType, ...]) -> tuple[pa.DataType, ...]:
    """Which of these types hold the texts as well, the narrowest first."""
    if not types or texts.null_count == len(texts):
        return types
    fitting: set[pa.DataType] = set()
    if _are(texts, pa.float64()):
        if numbers_hold(texts):
            fitting.add(pa.float64())
        if _are(texts, pa.int64()):  # only of what is a number: by itself 0x1F is an integer, too
            fitting.add(pa.int64())
    elif _are(texts, pa.bool_()) and not pc.any(pc.is_in(texts, pa.array(["0", "1"]))).as_py():
        fitting.add(pa.bool_())
    return tuple(kind for kind in types if kind in fitting)


def _are(texts: pa.Array, kind: pa.DataType) -> bool:
    try:
        pc.cast(texts, kind)
    except pa.ArrowInvalid:
        return False
    return True


def _header(file: File, delimiter: str) -> tuple[tuple[str, ...], bool]:
    """The columns that the first line names, and whether there is more; of an empty file there are none."""
    with file.stream() as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as text:
        columns = next(csv.reader(text, delimiter=delimiter), None)
        has_rows = next(text, None) is not None
    if columns is None:
        return (), False
    if not columns or len(set(columns)) < len(columns):
        raise ValueError(f"its first line is {columns}; expected the names of columns, all of them different")
    return tuple(columns), has_rows


@dataclass(frozen=True)
class _Csv:
    """All columns are read as text; a row with a field too many, or too few, is an error."""

    file: File
    columns: tuple[str, ...]
    delimiter: str
    nulls: tuple[str, ...]

    def batches(self) -> Iterator[pa.RecordBatch]:
        converting = pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(self.columns, pa.string()),
            null_values=list(self.nulls),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        parsing = pyarrow.csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)
        reading = pyarrow.csv.ReadOptions(block_size=_BLOCK_BYTES)
        with (
            self.file.stream() as stream,
            pyarrow.csv.open_csv(
                CheckedQuotes(stream, self.delimiter, _BLOCK_BYTES), reading, parsing, converting
            ) as batches,
        ):
            yield from batches


def json_files(files: Iterable[File], decided: Mapping[str, pa.DataType]) -> list[Found]:
    """Files of JSON, one object a line: a piece is some blocks of lines, and all files together tell the types."""
    found: list[tuple[File, pa.Schema, list[int], list[int]]] = []
    numbers = {name for name, kind in decided.items() if pa.types.is_floating(kind)}
    integers = {}
    for file in files:
        schema, cuts, rows = pa.schema([]), [0], []
        integers[file.name] = JsonIntegers(numbers)
        with naming(file, "json"):
            blocks = _blocks(file, 0, None)
            while piece := list(islice(blocks, _BLOCKS_OF_A_PIECE)):
                if len(cuts) == 1 and _BEFORE_ROWS.sub(b"", piece[0][:_SHOWN]).startswith(b"["):
                    raise ValueError("it is a list; expected an object a line, as jq -c '.[]' writes those of a list")
                for block in piece:
                    block.decode()  # Arrow takes texts as they are, and an error would name no file later
                tables = [pyarrow.json.read_json(pa.BufferReader(block), _at_once(block)) for block in piece]
                for block, table in zip(piece, tables, strict=True):
                    integers[file.name].look_through(block, table)
                schemas = (schema, *(_texts_stay(one.schema) for one in tables))
                schema = merged_columns((file.name, one) for one in schemas)
                cuts.append(cuts[-1] + sum(map(len, piece)))
                rows.append(sum(one.num_rows for one in tables))
        found.append((file, schema, cuts, rows))
    whole = merged_columns((file.name, schema) for file, schema, _, _ in found)
    for file, _, _, _ in found:
        with naming(file, "json"):
            integers[file.name].check(whole)
    return [
        Found(file, schema, [_JsonLines(file, whole, 0, None)], [sum(rows)])
        if file.packed
        else Found(file, schema, [_JsonLines(file, whole, *ends) for ends in pairwise(cuts)], rows)
        for file, schema, cuts, rows in found
    ]


def _texts_stay(schema: pa.Schema) -> pa.Schema:
    """Arrow takes texts for times if they look like it."""

    def untimed(kind: pa.DataType) -> pa.DataType:
        return pa.string() if pa.types.is_timestamp(kind) else kind

    return pa.schema([(field.name, with_types(field.type, untimed)) for field in schema])


def _at_once(block: bytes) -> pyarrow.json.ReadOptions:
    return pyarrow.json.ReadOptions(block_size=len(block))


def _blocks(file: File, begin: int, end: int | None) -> Iterator[bytes]:
    """The bytes of a file between two places, in blocks that end where lines do."""
    with file.stream() if file.packed else file.system.open_input_file(file.name) as stream:
        if begin:
            stream.seek(begin)
        left = None if end is None else end - begin
        rest = b""
        while chunk := stream.read(_BLOCK_BYTES if left is None else min(_BLOCK_BYTES, left)):
            left = None if left is None else left - len(chunk)
            lines, newline, more = chunk.rpartition(b"\n")
            if newline:
                yield rest + lines + newline
                rest = more
            else:
                rest += more
        if rest:
            yield rest


@dataclass(frozen=True)
class _JsonLines:
    file: File
    schema: pa.Schema
    begin: int
    end: int | None

    def batches(self) -> Iterator[pa.RecordBatch]:
        parsing = pyarrow.json.ParseOptions(explicit_schema=self.schema, unexpected_field_behavior="error")
        for block in _blocks(self.file, self.begin, self.end):
            yield from pyarrow.json.read_json(pa.BufferReader(block), _at_once(block), parsing).to_batches()


def avro_files(files: Iterable[File]) -> list[Found]:
    """Avro files: a file is a piece, and its schema tells the types."""
    from fastavro import reader

    found = []
    for file in files:
        with naming(file, "avro"), io.BufferedReader(file.stream()) as stream:
            written: Any = reader(stream).writer_schema
            schema = columns_of(written)
            found.append(Found(file, schema, [_Avro(file, schema)], [None]))
    return found


@dataclass(frozen=True)
class _Avro:
    file: File
    schema: pa.Schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        from fastavro import reader

        with io.BufferedReader(self.file.stream()) as stream:
            rows: Iterator[Any] = iter(reader(stream))
            while some := list(islice(rows, BATCH_ROWS)):
                yield pa.RecordBatch.from_pylist(some, schema=self.schema)
