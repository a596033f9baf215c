"""A backfill leaves what a stream of the same records leaves: the same rows in stores and changelogs, the same output.

Where records go in a circle, as between the two sides of a foreign-key join, what is between the first and the last
value of a key depends on who is faster, there as here, and so the last values are compared. The same is true of the
instruction of a subscription, and of the time of a deletion: a left row asks once more where an answer without value
comes too late for it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from pykstreams import (
    BufferConfig,
    Grouped,
    JoinWindows,
    KStream,
    KTable,
    Materialized,
    Produced,
    Serdes,
    SessionWindows,
    Stores,
    StreamJoined,
    StreamsBuilder,
    StreamsConfig,
    Suppressed,
    TimeWindows,
    Topology,
)
from pykstreams.bulk.application import Application
from pykstreams.bulk.backfills.engines import LocalSteps
from pykstreams.bulk.backfills.history import TopicHistory
from pykstreams.bulk.backfills.job import BackfillJob, History
from pykstreams.bulk.backfills.logged_rows import logged_rows
from pykstreams.bulk.backfills.records import AS_SENT
from pykstreams.bulk.backfills.step import BackfillStep, keeps_all
from pykstreams.bulk.progress import shown_progress
from pykstreams.bulk.sources.sources import Files
from pykstreams.core.hashing import partition_for_key
from pykstreams.core.ids import TaskId
from pykstreams.state.bulk.offline import OfflineStore
from pykstreams.state.bulk.take_over import StoreToMake, take_over
from pykstreams.testing import TopologyTestDriver
from pykstreams.testing.records import ProducedRecord

TEXT, NUMBER = Serdes.string(), Serdes.long()
CONFIG = StreamsConfig(
    {
        "application.id": "app",
        "bootstrap.servers": "nowhere:9",
        "default.key.serde": TEXT,
        "default.value.serde": TEXT,
        "statestore.cache.max.bytes": 0,
    }
)
PARTITIONS = 3
SUBSCRIPTIONS = "SUBSCRIPTION-STATE-STORE"
STEP_MS = 7

RECORDS = st.lists(
    st.tuples(
        st.sampled_from(["left", "right", "left", "other"]),
        st.sampled_from("abcdefg"),
        st.sampled_from(["a x", "b y", "c", "d x y", "a", None]),
        st.sampled_from([1, 1, 1, 30]),
    ),
    min_size=1,
    max_size=40,
)
"""(topic, key, value, steps since the record before): all timestamps are different."""


def _stream(builder: StreamsBuilder, topic: str) -> KStream[str, str]:
    return builder.stream(topic)


def word_count(builder: StreamsBuilder) -> None:
    words = _stream(builder, "left").flat_map_values(lambda value: (value or "").split())
    counts = words.group_by(lambda key, word: word).count(materialized=Materialized("counts", value_serde=NUMBER))
    counts.to_stream().to("out", Produced(value_serde=NUMBER))


def windows(builder: StreamsBuilder) -> None:
    """Counts windows, of which it tells the last result; what is not closed yet waits in memory."""
    by_key = _stream(builder, "left").filter(lambda key, value: value is not None).group_by_key()
    counts = by_key.windowed_by(TimeWindows(50, grace=20)).count(
        materialized=Materialized("counts", key_serde=TEXT, value_serde=NUMBER)
    )
    closed = counts.suppress(Suppressed.until_window_closes(BufferConfig()))
    closed.to_stream(lambda key, value: f"{key.key}@{key.window.start}").to("out", Produced(value_serde=NUMBER))


def sessions_in_memory(builder: StreamsBuilder) -> None:
    by_word = _stream(builder, "left").filter(lambda key, value: value is not None).group_by(lambda key, value: value)
    store = Stores.in_memory_session_store("sessions", 10_000)
    counts = by_word.windowed_by(SessionWindows(20, grace=10)).count(materialized=Materialized(store))
    counts.to_stream(lambda key, value: key.key).to("out", Produced(value_serde=NUMBER))


def tables(builder: StreamsBuilder) -> None:
    left: KTable[str, str] = builder.table("left", materialized=Materialized("left"))
    right: KTable[str, str] = builder.table("right", materialized=Materialized("right"))
    joined = left.left_join(right, lambda one, other: f"{one}+{other}", materialized=Materialized("joined"))
    joined.to_stream().to("out")
    by_value = joined.group_by(lambda key, value: (value, key), Grouped(name="values"))
    by_value.count(materialized=Materialized("of-value")).to_stream().to("sizes", Produced(value_serde=NUMBER))


def foreign_keys(builder: StreamsBuilder) -> None:
    left: KTable[str, str] = builder.table("left", materialized=Materialized("left"))
    right: KTable[str, str] = builder.table("right", materialized=Materialized("right"))
    joined = left.left_join(
        right,
        lambda one, other: f"{one}+{other}",
        foreign_key_extractor=lambda value: value[0],
        materialized=Materialized("joined"),
    )
    joined.to_stream().to("out")


def foreign_keys_in_memory(builder: StreamsBuilder) -> None:
    """State in memory has to get from one round to the next, too."""
    left: KTable[str, str] = builder.table("left", materialized=Materialized(Stores.in_memory_key_value_store("left")))
    right: KTable[str, str] = builder.table(
        "right", materialized=Materialized(Stores.in_memory_key_value_store("right"))
    )
    joined = left.join(right, lambda one, other: f"{one}+{other}", foreign_key_extractor=lambda value: value[0])
    joined.to_stream().to("out")


def streams(builder: StreamsBuilder) -> None:
    left, right = (_stream(builder, name).filter(lambda key, value: value is not None) for name in ("left", "right"))
    window = JoinWindows(20, grace=10)
    stores = StreamJoined(key_serde=TEXT, value_serde=TEXT, other_value_serde=TEXT, name="join")
    left.left_join(right, lambda one, other: f"{one}+{other}", windows=window, stream_joined=stores).to("out")


def through_a_topic(builder: StreamsBuilder) -> None:
    """A record that goes through a topic of a user is output, and input as well; versions are kept."""
    _stream(builder, "left").map(lambda key, value: (value, key)).filter(lambda key, value: key is not None).to(
        "middle"
    )
    prices = Stores.persistent_versioned_key_value_store("prices", history_retention=500)
    table: KTable[str, str] = builder.table("right", materialized=Materialized(prices))
    joined = _stream(builder, "middle").left_join(table, lambda one, other: f"{one}+{other}")
    joined.to("out")


FAMILIES: list[tuple[Callable[[StreamsBuilder], None], bool]] = [
    (word_count, True),
    (windows, True),
    (sessions_in_memory, True),
    (tables, True),
    (streams, True),
    (through_a_topic, True),
    (foreign_keys, False),
    (foreign_keys_in_memory, False),
]

Row = tuple[str, str, str | None, int]


@dataclass
class Backfilled:
    """A job that has run."""

    job: BackfillJob
    folder: Path

    def steps(self) -> Iterator[BackfillStep]:
        for part in self.job.application.plan.subtopologies:
            yield self.job.step(part)

    def rows(self, step: BackfillStep, store: str) -> list[Any]:
        """The serialized rows of a store on disk, task by task."""
        found: list[Any] = []
        place, config = step.place(store), self.job.application.config
        for partition, told in sorted(step.states.items()):
            task, folder = TaskId(step.subtopology, partition), self.folder / f"{store}-{partition}"
            folder.mkdir()
            to_make = StoreToMake(place.builder, told.stores[store], 0, place.changelog)
            take_over(folder, task, self.job.root, [to_make], config, "mark")
            with OfflineStore.in_folder(place.builder, task, config, folder, topic=place.changelog) as offline:
                offline.store.advance(told.stores[store].observed_time)
                found += offline.store.raw_rows()
        return found

    def changelog(self, step: BackfillStep, store: str) -> dict[int, list[Any]]:
        return {
            partition: list(logged_rows(step, store, told.logged[store].files, self.folder))
            for partition, told in step.states.items()
        }

    def records(self, topic: str) -> dict[bytes | None, list[Any]]:
        """The records that were sent to a topic, for each key in its order."""
        found: dict[bytes | None, list[Any]] = {}
        rows = [row for name in self.job.sent.get(topic, ()) for row in pq.read_table(name).to_pylist()]
        for row in sorted(rows, key=lambda row: tuple(row[name] for name in AS_SENT)):
            headers = tuple((one["key"], one["value"]) for one in row["headers"] or ())
            found.setdefault(row["key"], []).append((row["partition"], row["value"], row["timestamp"], headers))
        return found


@contextmanager
def backfilled(topology: Topology, rows: list[Row], topics: list[str]) -> Iterator[Backfilled]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        histories = {}
        for topic in topics:
            mine = [(key, value, time) for where, key, value, time in rows if where == topic]
            path = folder / f"{topic}.parquet"
            schema = pa.schema([("key", pa.string()), ("value", pa.string()), ("timestamp", pa.int64())])
            pq.write_table(
                pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in mine], schema), path
            )
            histories[topic] = History(TopicHistory(str(path)), Files(str(path)))
        application = Application(topology, dict(CONFIG.originals))
        counts = dict.fromkeys([*topics, "middle", "out", "sizes"], PARTITIONS)
        work = folder / "work"
        work.mkdir()
        job = BackfillJob(
            application,
            application.layout(counts),
            histories,
            counts,
            folder,
            work,
            True,
            LocalSteps(1),
            lambda name: shown_progress(name, False),
        )
        job.run()
        yield Backfilled(job, folder)


def streamed(driver: TopologyTestDriver, rows: list[Row]) -> list[ProducedRecord]:
    inputs = {
        topic: driver.create_input_topic(topic, TEXT.serializer, TEXT.serializer) for topic in {row[0] for row in rows}
    }
    for topic, key, value, time in rows:
        inputs[topic].pipe_input(key, value, timestamp=time)
    return driver.take_produced()


def test_an_answer_that_comes_too_late_changes_neither_rows_nor_results() -> None:
    builder = StreamsBuilder()
    foreign_keys_in_memory(builder)
    rows: list[Row] = [("left", "b", "a x", 21), ("right", "a", None, 42), ("left", "b", "a", 63)]

    check(builder.build(CONFIG), rows, ["left", "right"], in_order=False)


@pytest.mark.parametrize(("family", "in_order"), FAMILIES, ids=lambda given: getattr(given, "__name__", ""))
@settings(max_examples=3, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(drawn=RECORDS)
def test_backfill_equals_streaming(family: Any, in_order: bool, drawn: list[tuple[str, str, str | None, int]]) -> None:
    builder = StreamsBuilder()
    family(builder)
    topology = builder.build(CONFIG)
    read = set(topology.plan(CONFIG).whole.source_topics) & {"left", "right"}
    rows: list[Row] = []
    time = 0
    for topic, key, value, steps in drawn:
        time += steps * STEP_MS
        if topic in read:
            rows.append((topic, key, value, time))

    check(topology, rows, sorted(read), in_order)


def check(topology: Topology, rows: list[Row], read: list[str], in_order: bool) -> None:
    with (
        TopologyTestDriver(topology, CONFIG, partitions=PARTITIONS) as driver,
        backfilled(topology, rows, read) as found,
    ):
        sent = streamed(driver, rows)
        for step in found.steps():
            for name, store in step.stores.items():
                settled = without_instructions if not in_order and SUBSCRIPTIONS in name else list
                if store.in_files:
                    assert settled(driver.raw_store(name)) == settled(found.rows(step, name)), name
                if name in step.logged_stores:
                    expected = changelog(sent, step.part.changelogs[name], whole=keeps_all(store))
                    told = {partition: rows for partition, rows in found.changelog(step, name).items() if rows}
                    for kept in expected, told:
                        kept.update({partition: settled(rows) for partition, rows in kept.items()})
                    assert comparable(expected, store.kind) == comparable(told, store.kind), name
        for topic in ("middle", "out", "sizes"):
            expected_records = by_key(sent, topic)
            records = found.records(topic)
            if not in_order:
                expected_records, records = last(expected_records), last(records)
            assert expected_records == records


def without_instructions(rows: Iterable[Any]) -> list[Any]:
    """The rows of a store of subscriptions, each without the byte of its instruction, the second of its value."""
    return [(key, value and value[:1] + value[2:], timestamp, headers) for key, value, timestamp, headers in rows]


def changelog(sent: list[ProducedRecord], topic: str, *, whole: bool) -> dict[int, list[Any]]:
    """The rows in the partitions of a changelog: all of it, or of each key the last row, in the order of keys."""
    found: dict[int, list[Any]] = {}
    for record in sent:
        if record.topic == topic and record.partition is not None:
            row = record.key, record.value, record.timestamp, record.headers
            found.setdefault(record.partition, []).append(row)
    if whole:
        return found
    latest = {partition: sorted({row[0]: row for row in rows}.values()) for partition, rows in found.items()}
    kept = {partition: [row for row in rows if row[1] is not None] for partition, rows in latest.items()}
    return {partition: rows for partition, rows in kept.items() if rows}


def comparable(rows: dict[int, list[Any]], kind: str) -> Any:
    """Rows of a buffer of one operator carry the time of day."""
    if kind != "other":
        return rows
    return {partition: [(key, value, headers) for key, value, _, headers in found] for partition, found in rows.items()}


def by_key(sent: list[ProducedRecord], topic: str) -> dict[bytes | None, list[Any]]:
    found: dict[bytes | None, list[Any]] = {}
    for record in sent:
        if record.topic == topic:
            place = partition_for_key(record.key, PARTITIONS) if record.key is not None else None
            found.setdefault(record.key, []).append((place, record.value, record.timestamp, record.headers))
    return found


def last(records: dict[bytes | None, list[Any]]) -> dict[bytes | None, Any]:
    """The last record of each key; a deletion without its time, which is that of the first answer that deletes."""
    latest = {key: found[-1] for key, found in records.items()}
    return {
        key: (place, value, None if value is None else timestamp, headers)
        for key, (place, value, timestamp, headers) in latest.items()
    }
