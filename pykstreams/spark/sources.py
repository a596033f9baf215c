"""Where rows come from: files, topics, and whatever Spark reads.

A source is divided into *parts* that can be read apart, in any process; each part gives Arrow batches.
``engine="local"`` reads ``Files`` and ``KafkaTopic`` itself; Spark reads ``Files`` and ``SparkRead`` by its own
readers and file systems, takes DataFrames as they are, and reads the parts of a ``KafkaTopic`` in its tasks, by the
same code.

Invariant: a part that is read again gives the same rows, as long as nobody changes what is behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Final, Literal, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.dataset as ds

from pykstreams.core.errors import ConfigError
from pykstreams.core.types import Decoder
from pykstreams.spark.application import Application
from pykstreams.spark.located import Located, located

BATCH_ROWS: Final = 32_768

FileFormat: TypeAlias = Literal["parquet", "csv", "json", "avro"]

_FORMATS: Final[Mapping[str, FileFormat]] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".avro": "avro",
}


class Part(Protocol):
    """A part of a source; it can be pickled."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Reads it."""
        ...


@dataclass(frozen=True)
class Files:
    """Files, or folders of them, with columns: Parquet, CSV, JSON (one object a line) or Avro.

    :param path: one path, or several; ``engine="local"`` finds those with a scheme (``s3://...``) by fsspec.
    :param format: told by the ends of the names if left out.
    :param options: for Spark, those of its reader.
    """

    path: str | PurePath | Sequence[str | PurePath]
    format: FileFormat | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def paths(self) -> list[str]:
        """The paths as text."""
        given = [self.path] if isinstance(self.path, str | PurePath) else list(self.path)
        return [str(path) for path in given]

    @property
    def format_name(self) -> FileFormat:
        """The format, as given or told by the names; ``ConfigError`` where neither tells it."""
        if self.format is not None:
            return self.format
        for name in self._names():
            if (suffix := PurePath(name).suffix) in _FORMATS:
                return _FORMATS[suffix]
        raise ConfigError(
            f"the format of {self.paths} is not told by the names; say format='parquet' (or csv, json, avro)"
        )

    def _names(self) -> Iterator[str]:
        """The paths, and then what is in them: a name that tells the format spares the search."""
        yield from self.paths
        for path in self.paths:
            yield from located(path).files()

    def parts(self) -> list[Part]:
        """Row groups of Parquet files, other files as a whole."""
        places = [located(path) for path in self.paths]
        for place in places:
            place.check()
        if self.format_name == "avro":
            return [_AvroFile(place, name) for place in places for name in place.files(".avro")]
        parts: list[Part] = []
        for place in places:
            found = ds.dataset(place.path, format=self.format_name, partitioning="hive", filesystem=place.system)
            for fragment in found.get_fragments():
                pieces = fragment.split_by_row_group() if self.format_name == "parquet" else [fragment]
                parts += [_Fragment(piece, found.schema) for piece in pieces]
        return parts


@dataclass(frozen=True)
class KafkaTopic:
    """A topic, or a changelog, as it is now: of a key the latest row, or all records where the store folds them.

    Its rows have the columns ``key``, ``value``, ``timestamp``, ``partition`` and ``offset``; key and value are read by
    the serdes of the source node of the topology that reads the topic, unless others are given, and are bytes where
    the rows are records of a changelog.

    :param key_serde, value_serde: how to read keys and values.
    """

    topic: str
    key_serde: Any = None
    value_serde: Any = None

    def decoders(self, application: Application) -> tuple[Decoder, Decoder]:
        """What reads keys and values."""
        from pykstreams.serdes.base import bind_deserializer
        from pykstreams.serdes.defaults import or_default

        config = application.config
        nodes = (node for part in application.plan.subtopologies for node in part.sources)
        node = next((node for node in nodes if self.topic in node.topics), None)
        key = self.key_serde or (node and node.key_deserializer)
        value = self.value_serde or (node and node.value_deserializer)
        return (
            bind_deserializer(or_default(key, lambda: config.default_key_serde), self.topic),
            bind_deserializer(or_default(value, lambda: config.default_value_serde), self.topic),
        )


@dataclass(frozen=True)
class SparkRead:
    """Anything that ``spark.read`` can: a format with its options, such as jdbc, delta or orc; needs
    ``engine="spark"``.

    :param path: what to load, where the format wants a path or a table.
    """

    format: str
    path: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)


def as_source(given: Any) -> Any:
    """The source that a user means: a path is that of files.

    >>> as_source("/data/customers.parquet")
    Files(path='/data/customers.parquet', format=None, options={})
    """
    if isinstance(given, str | PurePath):
        return Files(str(given))
    if isinstance(given, Files | KafkaTopic | SparkRead) or hasattr(given, "mapInArrow"):
        return given
    raise ConfigError(
        f"{given!r} is no source of rows; expected a path, Files, KafkaTopic, SparkRead or a Spark DataFrame"
    )


Reader: TypeAlias = Callable[[], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class _Fragment:
    fragment: Any
    schema: Any

    def batches(self) -> Iterator[pa.RecordBatch]:
        yield from self.fragment.to_batches(schema=self.schema, batch_size=BATCH_ROWS)


@dataclass(frozen=True)
class _AvroFile:
    place: Located
    name: str

    def batches(self) -> Iterator[pa.RecordBatch]:
        from fastavro import reader

        with self.place.system.open_input_stream(self.name) as file:
            rows: list[Any] = []
            for row in reader(file):
                rows.append(row)
                if len(rows) == BATCH_ROWS:
                    yield pa.RecordBatch.from_pylist(rows)
                    rows = []
            if rows:
                yield pa.RecordBatch.from_pylist(rows)
