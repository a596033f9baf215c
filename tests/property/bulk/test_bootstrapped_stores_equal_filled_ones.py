"""A store that was bootstrapped from a table of its input reads as one that a stream of the same records has filled.

The model is the test driver, with several partitions; records come in the order of time, as no record of a snapshot is
late.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pykstreams import (
    Consumed,
    Grouped,
    JoinWindows,
    Materialized,
    Serdes,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamJoined,
    StreamsBuilder,
    StreamsConfig,
    TimeWindows,
    Topology,
)
from pykstreams.bulk.application import Application
from pykstreams.bulk.engines.local import LocalEngine
from pykstreams.bulk.publication import built_store
from pykstreams.bulk.stages.store_job import StoreJob
from pykstreams.bulk.targets.left_table_rows import way_of
from pykstreams.core.ids import TaskId
from pykstreams.serdes import JsonSerde
from pykstreams.spark import Files, StoreBootstrap, bootstrap
from pykstreams.state.bulk.manifest import TaskFiles
from pykstreams.state.bulk.offline import OfflineStore
from pykstreams.state.bulk.take_over import StoreToMake, take_over
from pykstreams.testing import TopologyTestDriver

TEXT, NUMBER, JSON = Serdes.string(), Serdes.long(), JsonSerde()
PARTITIONS = 3
CONFIG = StreamsConfig(
    {
        "application.id": "shop",
        "bootstrap.servers": "nowhere:9",
        "default.key.serde": TEXT,
        "default.value.serde": JSON,
    }
)
GRACE = 10**9


def grouped(builder: StreamsBuilder) -> Any:
    records = builder.stream("records", Consumed(key_serde=TEXT, value_serde=JSON))
    return records.group_by_key(Grouped(key_serde=TEXT, value_serde=JSON))


def kept(serde: Any = JSON, **options: Any) -> Any:
    return Materialized("store", key_serde=TEXT, value_serde=serde, **options)


def table(builder: StreamsBuilder) -> None:
    builder.table("records", Consumed(key_serde=TEXT, value_serde=JSON), materialized=kept())


def versioned(builder: StreamsBuilder) -> None:
    supplier = Stores.persistent_versioned_key_value_store("store", history_retention=10**7)
    consumed = Consumed(key_serde=TEXT, value_serde=JSON)
    builder.table("records", consumed, materialized=Materialized(supplier, key_serde=TEXT, value_serde=JSON))


def short_versioned(builder: StreamsBuilder) -> None:
    supplier = Stores.persistent_versioned_key_value_store("store", history_retention=50, segment_interval=20)
    consumed = Consumed(key_serde=TEXT, value_serde=JSON)
    builder.table("records", consumed, materialized=Materialized(supplier, key_serde=TEXT, value_serde=JSON))


def counted(builder: StreamsBuilder) -> None:
    grouped(builder).count(materialized=kept(NUMBER))


def collected(builder: StreamsBuilder) -> None:
    grouped(builder).aggregate(list, lambda key, value, found: [*found, value["n"]], materialized=kept())


def counted_by_windows(builder: StreamsBuilder) -> None:
    windows = TimeWindows(100, advance_by=40, grace=GRACE)
    grouped(builder).windowed_by(windows).count(materialized=kept(NUMBER))


def reduced_by_sliding_windows(builder: StreamsBuilder) -> None:
    windows = SlidingWindows(time_difference=60, grace=GRACE)
    grouped(builder).windowed_by(windows).reduce(lambda old, new: {"n": old["n"] * 3 + new["n"]}, materialized=kept())


def collected_by_sessions(builder: StreamsBuilder) -> None:
    windows = SessionWindows(30, grace=GRACE)
    grouped(builder).windowed_by(windows).aggregate(
        list, lambda key, value, found: [*found, value["n"]], lambda key, one, other: one + other, materialized=kept()
    )


def added_up_by_group(builder: StreamsBuilder) -> None:
    rows = builder.table("records", Consumed(key_serde=TEXT, value_serde=JSON))
    groups = rows.group_by(lambda key, value: (value["ref"], value), Grouped(key_serde=TEXT, value_serde=JSON))
    groups.aggregate(
        lambda: 0,
        lambda key, value, total: total + value["n"],
        lambda key, value, total: total - value["n"],
        materialized=kept(NUMBER),
    )


def joined_by_foreign_key(builder: StreamsBuilder) -> None:
    rows = builder.table("records", Consumed(key_serde=TEXT, value_serde=JSON))
    others = builder.table("others", Consumed(key_serde=TEXT, value_serde=JSON))
    rows.join(others, lambda row, other: row, foreign_key_extractor=lambda row: row["ref"])


def left_joined_by_foreign_key(builder: StreamsBuilder) -> None:
    rows = builder.table("records", Consumed(key_serde=TEXT, value_serde=JSON))
    others = builder.table("others", Consumed(key_serde=TEXT, value_serde=JSON))
    rows.left_join(others, lambda row, other: row, foreign_key_extractor=lambda row: row["ref"])


def joined_by_many_foreign_keys(builder: StreamsBuilder) -> None:
    rows = builder.table("records", Consumed(key_serde=TEXT, value_serde=JSON))
    others = builder.table("others", Consumed(key_serde=TEXT, value_serde=JSON))
    rows.join(others, lambda row, other: row, foreign_keys_extractor=lambda row: [row["ref"], row["key"], None])


def joined_one_to_many(builder: StreamsBuilder) -> None:
    rows = builder.table("records", Consumed(key_serde=TEXT, value_serde=JSON))
    others = builder.table("others", Consumed(key_serde=TEXT, value_serde=JSON))
    others.one_to_many_join(rows, lambda other, row: row, key_extractor=lambda row: row["ref"])


def joined_by_mapped_key(builder: StreamsBuilder) -> None:
    rows = builder.table("records", Consumed(key_serde=TEXT, value_serde=JSON))
    others = builder.table("others", Consumed(key_serde=TEXT, value_serde=JSON))
    rows.join(others, lambda row, other: row, mapper=lambda key, row: row["ref"], selector=lambda key, other: key)


def joined_streams(builder: StreamsBuilder) -> None:
    consumed = Consumed(key_serde=TEXT, value_serde=JSON)
    records, others = builder.stream("records", consumed), builder.stream("others", consumed)
    joined = StreamJoined(key_serde=TEXT, value_serde=JSON, other_value_serde=JSON, store_name="store")
    records.join(others, lambda one, other: [one, other], windows=JoinWindows(10**6, grace=GRACE), stream_joined=joined)


@dataclass(frozen=True)
class Case:
    """A store, and how it is bootstrapped.

    :param numbered: whether its rows are numbered by its changelog.
    :param keys_once: whether a key has one row in the table, the latest, as in a snapshot of a table.
    """

    build: Callable[[StreamsBuilder], None]
    content: Any = None
    store: str = "store"
    key: str = "key"
    keys_once: bool = False
    numbered: bool = False

    @property
    def latest(self) -> bool:
        """Whether the snapshot may have older rows of a key, too."""
        return self.keys_once and self.key == "key"

    def topology(self) -> Topology:
        builder = StreamsBuilder()
        self.build(builder)
        return builder.build(CONFIG)


CASES = {
    "table": Case(table, keys_once=True),
    "versioned": Case(versioned),
    "versions expire": Case(short_versioned),
    "count": Case(counted, "records"),
    "aggregate": Case(collected, "records"),
    "windows": Case(counted_by_windows, "records"),
    "sliding windows": Case(reduced_by_sliding_windows, "records"),
    "sessions": Case(collected_by_sessions, "records"),
    "table aggregate": Case(added_up_by_group, "records", key="ref", keys_once=True),
    "foreign-key join": Case(joined_by_foreign_key, keys_once=True, store=""),
    "left foreign-key join": Case(left_joined_by_foreign_key, keys_once=True, store=""),
    "join by many foreign keys": Case(joined_by_many_foreign_keys, keys_once=True, store=""),
    "one-to-many join": Case(joined_one_to_many, keys_once=True, store=""),
    "non-key join": Case(joined_by_mapped_key, keys_once=True, store=""),
    "stream join": Case(joined_streams, store="store-this-join-store", numbered=True),
}

records = st.lists(
    st.tuples(st.sampled_from("abcdefg"), st.sampled_from("xyz"), st.integers(0, 50), st.integers(1, 40)), max_size=25
)


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(records)
def test_a_bootstrapped_store_equals_one_that_records_have_filled(name: str, found: list[Any]) -> None:
    case, time = CASES[name], 0
    rows = []
    for key, reference, number, later in found:
        time += later
        rows.append({"key": key, "ref": reference, "n": number, "at": time})
    topology = case.topology()
    store = case.store or store_of_references(topology)
    newest = list({row["key"]: row for row in rows}.values()) if case.keys_once else rows

    expected = filled(topology, store, newest)
    rows = rows if case.latest else newest
    with tempfile.TemporaryDirectory() as folder:
        assert expected == bootstrapped(topology, case, store, rows, Path(folder))


def store_of_references(topology: Topology) -> str:
    application = Application(topology, CONFIG.originals)
    names = (name for part in application.plan.subtopologies for name in part.stores)
    return next(name for name in names if way_of(application.store(name)) is not None)


def filled(topology: Topology, store: str, rows: list[dict[str, Any]]) -> list[Any]:
    with TopologyTestDriver(topology, CONFIG, partitions=PARTITIONS) as driver:
        topic = driver.create_input_topic("records", TEXT.serializer, JSON.serializer)
        for row in rows:
            topic.pipe_input(row["key"], row, timestamp=row["at"])
        return sorted(map(tuple, driver.raw_store(store)), key=repr)


def bootstrapped(topology: Topology, case: Case, store: str, rows: list[dict[str, Any]], folder: Path) -> list[Any]:
    schema = pa.schema([("key", pa.string()), ("ref", pa.string()), ("n", pa.int64()), ("at", pa.int64())])
    pq.write_table(pa.Table.from_pylist(rows, schema), folder / "rows.parquet")
    source = str(folder / "rows.parquet")
    application, out = Application(topology, CONFIG.originals), folder / "out"
    spec = StoreBootstrap(store, source, key=case.key, timestamp="at", content=case.content, latest=case.latest)
    if case.numbered:  # a bootstrap would need brokers for its changelog
        job = StoreJob(application, spec, application.layout(PARTITIONS), 0, str(out), logs=False)
        _, told = LocalEngine(1).build(job, list(Files(source).parts()), lambda what, done, total: None)
        tasks = built_store(job, told, {}).manifest.tasks
    else:
        report = bootstrap(
            topology,
            [spec],
            out=out,
            engine="local",
            changelog="base-only",
            source_offsets=None,
            config=CONFIG,
            partitions=PARTITIONS,
        )
        tasks = report.manifest.stores[store].tasks
    return sorted(taken_over(application, tasks, store, folder), key=repr)


def taken_over(application: Application, tasks: Mapping[int, TaskFiles], store: str, folder: Path) -> Iterator[Any]:
    """The rows of all tasks, after workers have taken over the files."""
    place = application.store(store)
    for partition, files in tasks.items():
        task, directory = TaskId(place.part.id, partition), folder / f"task-{partition}"
        directory.mkdir()
        made = [StoreToMake(place.builder, files, 0, place.changelog)]
        take_over(directory, task, folder / "out", made, CONFIG, "mark")
        with OfflineStore.in_folder(place.builder, task, CONFIG, directory, topic=place.changelog) as opened:
            yield from map(tuple, opened.store.raw_rows())
