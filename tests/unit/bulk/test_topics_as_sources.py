"""Topics as sources of a bootstrap: which record of a key counts, and what of it is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pykstreams import (
    Consumed,
    Grouped,
    Materialized,
    Serdes,
    SessionWindows,
    Stores,
    StreamsBuilder,
    StreamsConfig,
    TableJoined,
    Topology,
)
from pykstreams.bulk.application import Application
from pykstreams.bulk.sources import topic_parts
from pykstreams.core.ids import TaskId
from pykstreams.spark import KafkaTopic, StoreBootstrap, bootstrap
from pykstreams.state.bulk.manifest import read
from pykstreams.state.bulk.offline import OfflineStore
from pykstreams.state.bulk.take_over import StoreToMake, take_over
from pykstreams.state.encoding.layout import WITH_HEADERS
from pykstreams.testing import TopologyTestDriver

TEXT, NUMBER, BYTES = Serdes.string(), Serdes.long(), Serdes.bytes()
CONFIG = {"application.id": "shop", "bootstrap.servers": "nowhere:9", "statestore.cache.max.bytes": 0}


@dataclass(frozen=True)
class Record:
    key: bytes | None
    value: bytes | None
    timestamp: int | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True)
class Records:
    """One partition of a topic; its first record has the given offset."""

    partition: int
    records: Sequence[Record]
    begin: int = 0
    headers: bool = False

    @property
    def schema(self) -> pa.Schema:
        return topic_parts.WITH_HEADERS if self.headers else topic_parts.COLUMNS

    @property
    def rows(self) -> int:
        return len(self.records)

    def batches(self) -> Iterator[pa.RecordBatch]:
        for at, record in enumerate(self.records):
            row = {"key": record.key, "value": record.value, "timestamp": record.timestamp}
            places = {"partition": self.partition, "offset": self.begin + at}
            headers = {"headers": [{"key": key, "value": value} for key, value in record.headers]}
            yield pa.RecordBatch.from_pylist([row | places | headers], schema=self.schema)


def topology() -> Topology:
    builder = StreamsBuilder()
    consumed = Consumed(key_serde=TEXT, value_serde=TEXT)
    names = builder.table("names", consumed, materialized=Materialized("kept", key_serde=TEXT, value_serde=TEXT))
    supplier = Stores.persistent_timestamped_key_value_store_with_headers("labelled")
    labelled = Materialized[str, str](supplier, key_serde=TEXT, value_serde=TEXT)
    others = builder.table("others", consumed, materialized=labelled)
    names.join(others, lambda one, other: one, foreign_key_extractor=str, table_joined=TableJoined(name="by"))
    views = builder.stream("views", consumed).group_by_key(Grouped(key_serde=TEXT, value_serde=TEXT))
    sessions = Materialized[str, int]("sessions", key_serde=TEXT, value_serde=NUMBER)
    views.windowed_by(SessionWindows(50, grace=10**9)).count(materialized=sessions)
    return builder.build(StreamsConfig(CONFIG))


def made(
    out: Path, monkeypatch: pytest.MonkeyPatch, parts: Sequence[Records], spec: StoreBootstrap, partitions: int = 1
) -> list[tuple[bytes, bytes]]:
    """The rows of the database of a store that was made of a topic, of all tasks."""

    def parts_of(*_: Any, headers: bool = False) -> list[Records]:
        return [replace(part, headers=headers) for part in parts]

    monkeypatch.setattr(topic_parts, "topic_parts", parts_of)
    options: Any = {"engine": "local", "changelog": "base-only", "source_offsets": None, "partitions": partitions}
    bootstrap(topology(), [spec], out=out, config=CONFIG, **options)
    application = Application(topology(), CONFIG)
    place, rows = application.store(spec.store), []
    for partition, files in read(out).stores[spec.store].tasks.items():
        task, folder = TaskId(place.part.id, partition), out / f"task-{partition}"
        folder.mkdir()
        take_over(folder, task, out, [StoreToMake(place.builder, files, 0, place.changelog)], application.config, "m")
        with OfflineStore.in_folder(place.builder, task, application.config, folder, topic=place.changelog) as opened:
            rows += list(opened.engine_rows())
    return rows


def row(name: str, timestamp: int) -> tuple[bytes, bytes]:
    """A row of the table of names, as its database has it."""
    return b"a", timestamp.to_bytes(8) + name.encode()


def test_a_session_that_was_merged_into_an_older_one_is_not_there_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its changelog deletes it at the time of the older record."""
    with TopologyTestDriver(topology(), {**CONFIG, "state.dir": str(tmp_path / "state")}) as driver:
        views = driver.create_input_topic("views", TEXT.serializer, TEXT.serializer)
        views.pipe_input("a", "page", timestamp=100)
        views.pipe_input("a", "page", timestamp=70)
        logged = driver.create_output_topic("shop-sessions-changelog", BYTES.deserializer, BYTES.deserializer)
        records = [Record(one.key, one.value, one.timestamp) for one in logged.read_records()]
        store = driver.get_session_store("sessions")
        assert store is not None
        live = [(found.key.window.start, found.value) for found in store.fetch("a")]

    spec = StoreBootstrap("sessions", KafkaTopic("shop-sessions-changelog"), content="changelog")
    found = made(tmp_path / "out", monkeypatch, [Records(0, records)], spec)

    assert live == [(int.from_bytes(key[-8:]), int.from_bytes(value)) for key, value in found]


@pytest.mark.parametrize(("topic", "content"), [("names", None), ("shop-kept-changelog", "changelog")])
def test_the_last_record_of_a_key_counts_although_an_earlier_one_has_a_later_time(
    topic: str, content: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = [Record(b"a", b"x", 100), Record(b"a", b"y", 90)]
    spec = StoreBootstrap("kept", KafkaTopic(topic), content=content)

    assert [row("y", 90)] == made(tmp_path / "out", monkeypatch, [Records(0, records)], spec)


def test_what_a_row_refers_to_last_counts_although_it_has_an_earlier_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = [Record(b"a", b"x", 100), Record(b"a", b"y", 90)]
    spec = StoreBootstrap("by-subscription-store", KafkaTopic("names"))
    [(key, _)] = made(tmp_path / "out", monkeypatch, [Records(0, records)], spec)

    assert (b"y", b"a") == (key[4:5], key[5:])


@pytest.mark.parametrize("begin", [0, 1000])
def test_records_of_a_key_in_two_partitions_are_merged_by_time_as_workers_do(
    begin: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Offsets of two partitions say nothing of each other: a topic was given more partitions once."""
    before = [Record(b"a", b"w", 20), Record(b"a", b"x", 10)]
    after = [Record(b"a", b"y", 40), Record(b"a", b"z", 30)]
    parts = [Records(0, before, begin), Records(1, after, 1000 - begin)]
    spec = StoreBootstrap("kept", KafkaTopic("names"))

    assert [row("z", 30)] == made(tmp_path / "out", monkeypatch, parts, spec, partitions=2)


def test_records_of_a_changelog_keep_their_headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [Record(b"a", b"x", 100, (("from", b"web"), ("none", None))), Record(b"b", b"y", 90)]
    spec = StoreBootstrap("labelled", KafkaTopic("shop-labelled-changelog"), content="changelog")
    found = made(tmp_path / "out", monkeypatch, [Records(0, records)], spec)

    assert [(b"x", 100, records[0].headers), (b"y", 90, ())] == [WITH_HEADERS.unpack(packed) for _, packed in found]


@dataclass(frozen=True)
class Message:
    """What a client of Kafka makes of a record."""

    record: Record

    def key(self) -> bytes | None:
        return self.record.key

    def value(self) -> bytes | None:
        return self.record.value

    def timestamp(self) -> tuple[int, int | None]:
        return 1, self.record.timestamp

    def partition(self) -> int:
        return 2

    def offset(self) -> int:
        return 7

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        return list(self.record.headers) or None


@pytest.mark.parametrize("headers", [True, False])
def test_records_are_read_with_their_headers_where_these_are_wanted(
    headers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = [Message(Record(b"a", b"x", 5, (("from", b"web"),))), Message(Record(b"b", None, 6))]
    monkeypatch.setattr(topic_parts, "read_partition", lambda *_: [messages])
    part = topic_parts.TopicPart("names", 2, 0, 8, dict(CONFIG), headers)
    [batch] = part.batches()
    plain = [
        {"key": b"a", "value": b"x", "timestamp": 5, "partition": 2, "offset": 7},
        {"key": b"b", "value": None, "timestamp": 6, "partition": 2, "offset": 7},
    ]

    assert part.schema == batch.schema
    if headers:
        assert [[{"key": "from", "value": b"web"}], None] == batch.column("headers").to_pylist()
    assert plain == batch.select(topic_parts.COLUMNS.names).to_pylist()
