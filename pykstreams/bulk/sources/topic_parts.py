"""Reads a topic as a snapshot: each partition from its beginning to the end that it had when the job was started, or to
the offset from which the application is to go on, so that no record is counted by both.

The end offsets are fixed before anything is read, and the position is checked at the end. A partition whose records
from the beginning on are gone meanwhile is an error, and not an empty one: the consumer does not reset itself. A
beginning that has moved on before the job was started is what is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from pykstreams.bulk.sources.header_columns import HEADERS, structs_of
from pykstreams.bulk.sources.sources import KafkaTopic
from pykstreams.core.clock import SystemClock
from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ConfigError, MissingSourceTopicError
from pykstreams.core.ids import TopicPartition
from pykstreams.core.shown_values import with_noun
from pykstreams.runtime.clients.admin import ClusterAdmin
from pykstreams.runtime.clients.consumers.snapshot import read_partition
from pykstreams.runtime.clients.supplier import DefaultKafkaClientSupplier

COLUMNS: Final = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("timestamp", pa.int64()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
    ]
)
WITH_HEADERS: Final = pa.schema([*COLUMNS, ("headers", HEADERS)])


@dataclass(frozen=True)
class TopicPart:
    """One partition, between two offsets.

    :param settings: of the application.
    :param headers: whether rows have the headers of their records, too.
    """

    topic: str
    partition: int
    begin: int
    end: int
    settings: dict[str, object]
    headers: bool = False

    @property
    def schema(self) -> pa.Schema:
        """Its columns."""
        return WITH_HEADERS if self.headers else COLUMNS

    @property
    def rows(self) -> int:
        """About how many records there are: compaction leaves out some."""
        return self.end - self.begin

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Reads it."""
        config = StreamsConfig(self.settings)
        place = TopicPartition(self.topic, self.partition)
        for messages in read_partition(DefaultKafkaClientSupplier(), config, place, self.begin, self.end):
            yield _batch(messages, self.schema)


def topic_parts(
    source: KafkaTopic,
    config: StreamsConfig,
    tasks: int | None = None,
    until: Mapping[int, int] | None = None,
    *,
    headers: bool = False,
) -> list[TopicPart]:
    """The partitions of a topic as they are now.

    :param tasks: how many there must be, where rows stay in their partitions.
    :param until: by partition, the offset to stop at; others end where they do now.
    :param headers: whether rows have the headers of their records, too.
    """
    client_id = f"{config.application_id}-snapshot-admin"
    admin = ClusterAdmin.open(DefaultKafkaClientSupplier(), config, client_id, SystemClock())
    admin.wait_until_reachable()
    count = admin.partition_counts().get(source.topic)
    if count is None:
        raise MissingSourceTopicError(
            f"topic {source.topic!r}, which is to be read as a snapshot, does not exist on {admin.bootstrap}; correct "
            "its name"
        )
    if tasks not in (None, count):
        raise ConfigError(
            f"topic {source.topic!r}, a changelog, has {with_noun(count, 'partition')}, and the store has "
            f"{with_noun(tasks, 'task')}: its rows cannot stay where they are. Give partitioner=, which "
            "chooses by the keys"
        )
    places = [TopicPartition(source.topic, partition) for partition in range(count)]
    ends = admin.end_offsets(places)
    begins = admin.beginning_offsets(places)
    settings = dict(config.originals)
    limits = {place: min(ends[place], (until or {}).get(place.partition, ends[place])) for place in places}
    return [TopicPart(*place, begins[place], limits[place], settings, headers) for place in places]


def _batch(messages: list[Any], schema: pa.Schema) -> pa.RecordBatch:
    columns: list[list[object]] = [
        [message.key() for message in messages],
        [message.value() for message in messages],
        [message.timestamp()[1] for message in messages],
        [message.partition() for message in messages],
        [message.offset() for message in messages],
    ]
    if "headers" in schema.names:
        columns.append([structs_of(message.headers()) for message in messages])
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
