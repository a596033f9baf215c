"""Where rows come from: files, topics, and whatever Spark reads.

A source is divided into *parts* that can be read apart, in any process; each part gives Arrow batches.
Files and topics are divided by the driver and read by the same code in processes of this machine and in tasks of Spark.
``SparkRead`` is read by Spark's own readers and file systems, and DataFrames are taken as they are.

Invariant: a part that is read again gives the same rows, as long as nobody changes what is behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Protocol

import pyarrow as pa

from pykstreams.bulk.application import Application
from pykstreams.bulk.sources.file_formats import NULLS, FileFormat
from pykstreams.bulk.sources.file_parts import FilePart, file_parts
from pykstreams.bulk.sources.located import located
from pykstreams.core.errors import ConfigError
from pykstreams.core.types import Decoder


class Part(Protocol):
    """A part of a source; it can be pickled."""

    @property
    def schema(self) -> pa.Schema | None:
        """Its columns, which are those of all parts of a source; ``None`` where each batch tells its own."""
        ...

    @property
    def rows(self) -> int | None:
        """About how many rows it has, if that is known."""
        ...

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Reads it."""
        ...


@dataclass(frozen=True)
class Files:
    """Files, or folders of them, with columns: Parquet, CSV, JSON (one object a line) or Avro.

    Both engines read them by the same code, so rows are the same objects in the same order.

    :param path: one path, or several; those with a scheme (``s3://...``) are found by fsspec.
    :param format: found by the ends of the names if left out.
    :param types: by column, what its values are, as Arrow names it (``"string"``, ``"int64"``): where the type that
        files have, or that fields of CSV look like, is not meant.
    :param nulls: of CSV: the fields that stand for nothing where they are not in quotes.
    :param delimiter: of CSV: what is between two fields.
    """

    path: str | PurePath | Sequence[str | PurePath]
    format: FileFormat | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    nulls: Sequence[str] = NULLS
    delimiter: str = ","

    def parts(self) -> list[FilePart]:
        """The parts that are read apart, in the order of the rows; ``ConfigError`` where a file cannot be read."""
        given = [self.path] if isinstance(self.path, str | PurePath) else self.path
        places = [located(str(path)) for path in given]
        return file_parts(places, self.format, self.types, self.nulls, self.delimiter)


@dataclass(frozen=True)
class KafkaTopic:
    """A topic, or a changelog, as it is now: of a key the last record, or all records where the store folds them.

    Its rows have the columns ``key``, ``value``, ``timestamp``, ``partition`` and ``offset``; key and value are read by
    the serdes of the source node of the topology that reads the topic, unless others are given, and are bytes where
    the rows are records of a changelog.

    :param key_serde, value_serde: how to read keys and values.
    """

    topic: str
    key_serde: object = None
    value_serde: object = None

    def decoders(self, application: Application) -> tuple[Decoder, Decoder]:
        """The deserializers of keys and values."""
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


def as_source(given: object) -> object:
    """The source that a user means: a path is that of files.

    >>> as_source("/data/customers.parquet").path
    '/data/customers.parquet'
    """
    if isinstance(given, str | PurePath):
        return Files(str(given))
    if isinstance(given, Files | KafkaTopic | SparkRead) or hasattr(given, "mapInArrow"):
        return given
    raise ConfigError(
        f"{given!r} is no source of rows; expected a path, Files, KafkaTopic, SparkRead or a Spark DataFrame"
    )
