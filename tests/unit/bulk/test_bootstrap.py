"""Bootstraps of snapshots by the local engine: what is read, what is refused, and what is published."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro
import fsspec
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from pykstreams import (
    Consumed,
    Grouped,
    Materialized,
    Serdes,
    SessionWindows,
    StreamsBuilder,
    StreamsConfig,
    TableJoined,
    TimeWindows,
    Topology,
)
from pykstreams.bulk.application import Application
from pykstreams.bulk.targets.target import RowError
from pykstreams.core.errors import BootstrapError, ConfigError, StreamsError, UnknownStateStoreError
from pykstreams.core.ids import TaskId
from pykstreams.serdes import JsonSerde
from pykstreams.spark import BootstrapReport, Files, StoreBootstrap, bootstrap
from pykstreams.state.bulk.folder import Folder
from pykstreams.state.bulk.job_lock import held_by_job
from pykstreams.state.bulk.manifest import read, verify
from pykstreams.state.bulk.offline import OfflineStore
from pykstreams.state.bulk.take_over import StoreToMake, take_over
from tests.unit.bulk.synced import Synced

TEXT, NUMBER, JSON = Serdes.string(), Serdes.long(), JsonSerde()
CONFIG = {"application.id": "shop", "bootstrap.servers": "nowhere:9"}
ROWS = [{"id": f"c{number}", "name": f"name {number}", "at": 1000 + number} for number in range(100)]


def topology() -> Topology:
    builder = StreamsBuilder()
    of_customers = Consumed(key_serde=TEXT, value_serde=JSON)
    builder.table("customers", of_customers, materialized=Materialized("customers", key_serde=TEXT, value_serde=JSON))
    views = builder.stream("views", Consumed(key_serde=TEXT, value_serde=NUMBER))
    by_key = views.group_by_key(Grouped(key_serde=TEXT, value_serde=NUMBER))
    by_key.windowed_by(TimeWindows(100, grace=10**9)).count(
        materialized=Materialized("windows", key_serde=TEXT, value_serde=NUMBER)
    )
    by_key.windowed_by(SessionWindows(50, grace=10**9)).count(
        materialized=Materialized("sessions", key_serde=TEXT, value_serde=NUMBER)
    )
    return builder.build(StreamsConfig(CONFIG))


def made(out: Path, source: Any, store: str = "customers", **said: Any) -> BootstrapReport:
    given = {"key": "id", "timestamp": "at", **said}
    return bootstrapped(out, StoreBootstrap(store, source, **given))


def bootstrapped(out: Path, *stores: StoreBootstrap, **said: Any) -> BootstrapReport:
    options: Any = {"engine": "local", "changelog": "base-only", "source_offsets": None, "partitions": 3, **said}
    return bootstrap(topology(), stores, out=out, config=CONFIG, **options)


def rows_of(out: Path, store: str = "customers") -> list[tuple[Any, ...]]:
    """The rows that workers get, of all tasks."""
    return sorted(_rows(out, store), key=repr)


def _rows(out: Path, store: str) -> Iterator[tuple[Any, ...]]:
    application = Application(topology(), CONFIG)
    place, config = application.store(store), application.config
    for partition, files in read(out).stores[store].tasks.items():
        task, folder = TaskId(place.part.id, partition), out.parent / f"task-{store}-{partition}"
        folder.mkdir()
        take_over(folder, task, out, [StoreToMake(place.builder, files, 0, place.changelog)], config, "mark")
        with OfflineStore.in_folder(place.builder, task, config, folder, topic=place.changelog) as opened:
            for row in opened.rows():
                yield row.key, row.value, row.timestamp, row.start


def parquet(folder: Path, rows: list[dict[str, Any]], schema: Any = None) -> Path:
    path = folder / "rows.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema), path, row_group_size=30)
    return path


@pytest.mark.parametrize("remote", [False, True])
@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl", "avro"])
def test_files_of_every_format_give_the_same_rows_wherever_they_are(kind: str, remote: bool, tmp_path: Path) -> None:
    path = tmp_path / f"rows.{kind}"
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(ROWS), path)
    elif kind == "csv":
        pa.csv.write_csv(pa.Table.from_pylist(ROWS), path)
    elif kind == "jsonl":
        path.write_text("\n".join(map(json.dumps, ROWS)))
    else:
        fields = [{"name": "id", "type": "string"}, {"name": "name", "type": "string"}, {"name": "at", "type": "long"}]
        with path.open("wb") as file:
            fastavro.writer(file, {"type": "record", "name": "Row", "fields": fields}, ROWS)
    source: Any = path
    if remote:  # a folder, which tells the format by the names of its files
        source = f"memory://{tmp_path.name}/rows"
        fsspec.filesystem("memory").put_file(path, f"{source}/part-0.{kind}")

    made(tmp_path / "out", source)

    assert sorted((row["id"], row, row["at"], None) for row in ROWS) == rows_of(tmp_path / "out")


def test_columns_functions_and_fixed_times_say_what_a_row_is(tmp_path: Path) -> None:
    source = parquet(tmp_path, ROWS[:2])
    made(tmp_path / "out", source, key=lambda row: row["id"].upper(), value=["name"], timestamp=7)

    assert [("C0", {"name": "name 0"}, 7, None), ("C1", {"name": "name 1"}, 7, None)] == rows_of(tmp_path / "out")


def test_one_function_says_all_of_a_row(tmp_path: Path) -> None:
    spec = StoreBootstrap("customers", parquet(tmp_path, ROWS[:1]), row=lambda row: (row["name"], 1, row["at"]))
    bootstrapped(tmp_path / "out", spec)

    assert [("name 0", 1, 1000, None)] == rows_of(tmp_path / "out")


def test_columns_of_times_are_milliseconds_of_records(tmp_path: Path) -> None:
    rows = [{"id": "a", "at": datetime(1970, 1, 1, 0, 0, 5, 250_000, tzinfo=UTC)}]
    made(tmp_path / "out", parquet(tmp_path, rows), value="id")

    assert [("a", "a", 5250, None)] == rows_of(tmp_path / "out")


def test_windows_can_be_given_as_they_are(tmp_path: Path) -> None:
    rows = [{"id": "a", "n": 3, "at": 120, "from": 100}, {"id": "a", "n": 5, "at": 260, "from": 200}]
    made(tmp_path / "out", parquet(tmp_path, rows), "windows", value="n", window_start="from")

    assert [("a", 3, 120, 100), ("a", 5, 260, 200)] == rows_of(tmp_path / "out", "windows")


def test_sessions_can_be_given_as_they_are(tmp_path: Path) -> None:
    rows = [{"id": "a", "n": 3, "from": 100, "to": 120}, {"id": "b", "n": 1, "from": 7, "to": 7}]
    said = {"value": "n", "timestamp": "to", "window_start": "from", "window_end": "to"}
    made(tmp_path / "out", parquet(tmp_path, rows), "sessions", **said)

    assert [("a", 3, None, 100), ("b", 1, None, 7)] == rows_of(tmp_path / "out", "sessions")


def test_a_session_that_ends_before_it_starts_is_refused(tmp_path: Path) -> None:
    rows = [{"id": "a", "n": 3, "from": 100, "to": 20}]
    said = {"value": "n", "timestamp": "to", "window_start": "from", "window_end": "to"}

    with pytest.raises(RowError, match=r"the session of key 'a' of store 'sessions' is from 100 to 20"):
        made(tmp_path / "out", parquet(tmp_path, rows), "sessions", **said)


@pytest.mark.parametrize(
    ("store", "key", "expected"),
    [
        ("customers", b"a", ("a", 5, 130, None)),
        ("windows", b"a" + (100).to_bytes(8) + bytes(4), ("a", 5, 130, 100)),
        ("sessions", b"a" + (130).to_bytes(8) + (120).to_bytes(8), ("a", 5, None, 120)),
    ],
)
def test_records_of_a_changelog_are_taken_as_they_are(store: str, key: bytes, expected: Any, tmp_path: Path) -> None:
    value = b"5" if store == "customers" else (5).to_bytes(8)
    rows = [{"id": key, "value": value, "at": 130}]
    made(tmp_path / "out", parquet(tmp_path, rows), store, value="value", content="changelog")

    assert [expected] == rows_of(tmp_path / "out", store)


def test_records_of_a_changelog_that_are_no_bytes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RowError, match=r"has key 'c0' and value 'name 0'; expected bytes"):
        made(tmp_path / "out", parquet(tmp_path, ROWS[:1]), value="name", content="changelog")


def test_windows_without_a_start_are_refused_with_the_ways_out(tmp_path: Path) -> None:
    with pytest.raises(StreamsError, match='name the columns window_start, or say content="records"'):
        made(tmp_path / "out", parquet(tmp_path, ROWS), "windows")


def test_several_stores_make_one_bootstrap_whose_files_are_whole(tmp_path: Path) -> None:
    source = parquet(tmp_path, ROWS)
    of_views = StoreBootstrap("windows", source, key="id", value="at", timestamp="at", content="records")
    report = bootstrapped(tmp_path / "out", StoreBootstrap("customers", source, key="id"), of_views)

    assert {"customers": 100, "windows": 100} == {name: store.rows for name, store in report.stores.items()}
    assert [] == verify(tmp_path / "out", read(tmp_path / "out"))
    assert [0, 1, 2] == sorted(report.manifest.stores["customers"].tasks)
    assert "shop" == report.manifest.application_id


def nameless(row: dict[str, Any]) -> str:
    raise LookupError(f"{row['id']} has no name")


def nothing(row: dict[str, Any]) -> None:
    """As a function of a row without its ``return``."""
    row["name"]


def test_a_function_that_fails_is_named(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(ROWS[:1]), tmp_path / "rows.parquet")

    with pytest.raises(RowError, match=r"test_bootstrap.nameless \(line \d+\) raised LookupError\('c0 has no name'\)"):
        made(tmp_path / "out", Files(tmp_path / "rows.parquet"), value=nameless)


def test_stores_of_the_same_tasks_that_are_left_out_are_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pq.write_table(pa.Table.from_pylist([{"id": "a", "at": 5}]), tmp_path / "rows.parquet")
    source = Files(tmp_path / "rows.parquet")

    made(tmp_path / "one", source, value="at")
    assert caplog.messages == []
    made(tmp_path / "two", source, "windows", value="at", window_start="at")
    assert caplog.messages == [
        "store 'sessions' of the same tasks is not made, and begins empty: what the snapshot stands for is in none of "
        "them. Make them, too, if they are to have it"
    ]


def test_an_empty_snapshot_makes_empty_tasks(tmp_path: Path) -> None:
    report = made(tmp_path / "out", parquet(tmp_path, [], pa.schema([("id", pa.string()), ("at", pa.int64())])))

    assert [0, 0, 0] == [task.rows for task in report.manifest.stores["customers"].tasks.values()]


def test_offsets_of_inputs_are_those_that_the_snapshot_stands_for(tmp_path: Path) -> None:
    spec = StoreBootstrap("customers", parquet(tmp_path, ROWS), key="id")
    bootstrapped(tmp_path / "out", spec, source_offsets={"customers": {0: 5, 1: 6, 2: 7}})

    assert {"customers": {0: 5, 1: 6, 2: 7}} == read(tmp_path / "out").source_offsets


def test_a_users_partitioner_chooses_the_tasks(tmp_path: Path) -> None:
    report = made(tmp_path / "out", parquet(tmp_path, ROWS), partitioner=lambda topic, key, value, partitions: 2)

    assert [0, 0, 100] == [task.rows for task in report.manifest.stores["customers"].tasks.values()]


def test_rows_go_to_the_tasks_that_the_partitioner_of_the_source_chooses(tmp_path: Path) -> None:
    builder = StreamsBuilder()
    consumed = Consumed(key_serde=TEXT, value_serde=JSON, partitioner="consistent_random")
    builder.table("customers", consumed, materialized=Materialized("customers", key_serde=TEXT, value_serde=JSON))
    spec = StoreBootstrap("customers", parquet(tmp_path, ROWS), key="id", timestamp="at")
    options: Any = {"engine": "local", "changelog": "base-only", "source_offsets": None, "partitions": 3}

    report = bootstrap(builder.build(), [spec], out=tmp_path / "out", config=CONFIG, **options)

    store = report.manifest.stores["customers"]
    chosen = Counter(zlib.crc32(str(row["id"]).encode()) % 3 for row in ROWS)
    assert {partition: task.rows for partition, task in store.tasks.items()} == chosen
    assert store.partitioner == "consistent_random"


BAD: list[dict[str, Any]] = [
    {"id": "a", "name": "x", "at": 1},
    {"id": None, "name": "no key", "at": 2},
    {"id": "b", "name": "y", "at": None},
    {"id": "a", "name": "z", "at": 4},
]


@pytest.mark.parametrize("on_error", ["count", "rejects"])
def test_rows_that_cannot_be_taken_are_counted_and_told(on_error: Any, tmp_path: Path) -> None:
    report = made(tmp_path / "out", parquet(tmp_path, BAD), value="name", on_error=on_error)
    found = report.stores["customers"]

    assert {"RowError": 2, "DuplicateKeyError": 1} == found.refused
    assert [("a", "z", 4, None)] == rows_of(tmp_path / "out")
    lines = [line for name in found.rejects for line in (tmp_path / "out" / name).read_text().splitlines()]
    assert (3 if on_error == "rejects" else 0) == len(lines)
    assert all("reason" in json.loads(line) for line in lines)
    files = [json.loads(line).get("file") for line in lines]  # second rows of a key are found when all rows have met
    assert files.count(str(tmp_path / "rows.parquet")) == (2 if on_error == "rejects" else 0)


def test_a_bootstrap_that_was_published_while_a_job_began_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before: list[BootstrapReport] = []

    def held_by_the_second(root: Folder) -> AbstractContextManager[None]:
        with monkeypatch.context() as patched:
            patched.setattr("pykstreams.bulk.bootstrap.held_by_job", held_by_job)
            before.append(made(tmp_path / "out", parquet(tmp_path, ROWS)))
        return held_by_job(root)

    monkeypatch.setattr("pykstreams.bulk.bootstrap.held_by_job", held_by_the_second)
    with pytest.raises(BootstrapError, match="a bootstrap is never changed"):
        made(tmp_path / "out", parquet(tmp_path, ROWS[:2]))

    assert before[0].manifest == read(tmp_path / "out")
    assert [] == verify(tmp_path / "out", before[0].manifest)


def test_refused_rows_are_on_the_disk_before_the_bootstrap_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = Synced(monkeypatch, lambda: not (tmp_path / "out" / "manifest.json").exists())
    report = made(tmp_path / "out", parquet(tmp_path, BAD), value="name", on_error="rejects")
    rejects = report.stores["customers"].rejects

    assert len(rejects) == 2
    assert all(synced.is_whole(tmp_path / "out" / name) for name in rejects)
    assert all(synced.has_name(tmp_path / "out" / name) for name in rejects)


def test_files_of_stores_have_their_names_on_the_disk_before_the_bootstrap_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = Synced(monkeypatch, lambda: not (tmp_path / "out" / "manifest.json").exists())
    made(tmp_path / "out", parquet(tmp_path, ROWS))
    files = [tmp_path / "out" / file.path for file in read(tmp_path / "out").files()]

    assert files
    assert all(synced.is_whole(file) and synced.has_name(file) for file in files)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (BAD[:2], "a row for store 'customers' has no key.*'name': 'no key'"),
        (BAD[2:3], "the row of key 'b' for store 'customers' has the timestamp None"),
        ([BAD[0], BAD[3]], "key b'a' .serialized. of store 'customers' has another row.*latest=True"),
        ([{"id": 5, "name": "x", "at": 1}], "a row for store 'customers' cannot be taken: .*expected"),
    ],
)
def test_a_row_that_cannot_be_taken_fails_the_job_unless_told_otherwise(rows: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(RowError, match=said):
        made(tmp_path / "out", parquet(tmp_path, rows), value="name")

    assert not (tmp_path / "out" / "manifest.json").exists()


def test_the_file_of_a_row_that_cannot_be_taken_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "days"
    for day, rows in (("monday", ROWS[:1]), ("tuesday", BAD[1:2])):
        (folder / day).mkdir(parents=True)
        parquet(folder / day, rows)

    with pytest.raises(RowError, match=r"the row of file '[^']+/days/tuesday/rows\.parquet': .*'no key'"):
        made(tmp_path / "out", folder, value="name")


def orders_of_customers() -> StreamsBuilder:
    """Orders that refer to customers."""
    builder = StreamsBuilder()
    consumed = Consumed(key_serde=Serdes.string(), value_serde=JsonSerde())
    orders, customers = builder.table("orders", consumed), builder.table("customers", consumed)
    orders.join(
        customers,
        lambda order, customer: order,
        foreign_key_extractor=lambda order: order["customer"],
        table_joined=TableJoined(name="by"),
    )
    return builder


def test_a_second_row_of_a_key_is_refused_although_it_refers_to_another_row(tmp_path: Path) -> None:
    builder = orders_of_customers()
    rows = [{"id": "o1", "customer": "a", "at": 1}, {"id": "o1", "customer": "b", "at": 2}, {"id": "o2", "at": 3}]
    source = parquet(tmp_path, [*rows, {"id": None, "at": 4}])
    spec = StoreBootstrap("by-subscription-store", source, key="id", timestamp="at", on_error="count")
    options: Any = {"engine": "local", "changelog": "base-only", "source_offsets": None, "partitions": 3}
    report = bootstrap(builder.build(StreamsConfig(CONFIG)), [spec], out=tmp_path / "out", config=CONFIG, **options)

    assert (1, {"DuplicateKeyError": 1, "RowError": 1}) == (
        report.stores["by-subscription-store"].rows,
        report.stores["by-subscription-store"].refused,
    )


def test_rows_that_meet_before_they_are_encoded_stay_what_they_are(tmp_path: Path) -> None:
    """The extractor finds maps as dicts, with the keys of their row alone."""
    builder = StreamsBuilder()
    consumed = Consumed(key_serde=Serdes.string(), value_serde=JsonSerde())
    orders, customers = builder.table("orders", consumed), builder.table("customers", consumed)
    orders.join(
        customers,
        lambda order, customer: order,
        foreign_key_extractor=lambda order: "a" if ["shop"] == list(order["refers"]) else None,
        table_joined=TableJoined(name="by"),
    )
    types = {"id": "string", "at": "long", "refers": {"type": "map", "values": "string"}}
    fields = [{"name": name, "type": kind} for name, kind in types.items()]
    rows = [
        {"id": "o1", "at": 1, "refers": {"customer": "a"}},
        {"id": "o1", "at": 2, "refers": {"customer": "b", "shop": "s"}},
        {"id": "o2", "at": 3, "refers": {"shop": "s"}},
    ]
    with (tmp_path / "rows.avro").open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "Row", "fields": fields}, rows)
    spec = StoreBootstrap("by-subscription-store", tmp_path / "rows.avro", key="id", timestamp="at", latest=True)
    options: Any = {"engine": "local", "changelog": "base-only", "source_offsets": None, "partitions": 3}
    report = bootstrap(builder.build(StreamsConfig(CONFIG)), [spec], out=tmp_path / "out", config=CONFIG, **options)

    assert (1, {}) == (report.stores["by-subscription-store"].rows, report.stores["by-subscription-store"].refused)


def test_of_several_rows_of_a_key_the_latest_counts_where_that_is_wanted(tmp_path: Path) -> None:
    report = made(tmp_path / "out", parquet(tmp_path, [BAD[3], BAD[0]]), value="name", latest=True)

    assert [("a", "z", 4, None)] == rows_of(tmp_path / "out")
    assert {} == report.stores["customers"].refused


def test_a_row_without_value_deletes(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": "a", "name": "x", "at": 1},
        {"id": "a", "name": None, "at": 2},
        {"id": "b", "name": "y", "at": 1},
    ]
    made(tmp_path / "out", parquet(tmp_path, rows), value="name", latest=True)

    assert [("b", "y", 1, None)] == rows_of(tmp_path / "out")


@pytest.mark.parametrize("store", ["windows", "sessions"])
def test_a_window_or_session_without_value_deletes(store: str, tmp_path: Path) -> None:
    window = {"from": 100, "to": 120}
    rows: list[dict[str, Any]] = [
        {"id": "a", "n": 3, "at": 130, **window},
        {"id": "a", "n": None, "at": 140, **window},
        {"id": "b", "n": 4, "at": 130, **window},
    ]
    said = {"value": "n", "window_start": "from", "window_end": "to", "latest": True}
    made(tmp_path / "out", parquet(tmp_path, rows), store, **said)

    assert [("b", 4, 130 if store == "windows" else None, 100)] == rows_of(tmp_path / "out", store)


def test_a_second_row_of_a_window_is_refused_although_it_has_no_value(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": "a", "n": 3, "at": 120, "from": 100},
        {"id": "a", "n": None, "at": 130, "from": 100},
    ]

    with pytest.raises(RowError, match="of store 'windows' has another row"):
        made(tmp_path / "out", parquet(tmp_path, rows), "windows", value="n", window_start="from")


def test_a_folder_with_a_bootstrap_is_left_alone(tmp_path: Path) -> None:
    source = parquet(tmp_path, ROWS)
    made(tmp_path / "out", source)

    with pytest.raises(BootstrapError, match=r"holds a bootstrap already.*name a new folder"):
        made(tmp_path / "out", source)


def test_a_folder_of_a_job_that_failed_can_be_used_again(tmp_path: Path) -> None:
    with pytest.raises(RowError):
        made(tmp_path / "out", parquet(tmp_path, BAD))
    made(tmp_path / "out", parquet(tmp_path, ROWS))

    assert 100 == len(rows_of(tmp_path / "out"))


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"store": "nothing"}, UnknownStateStoreError, "no store of 'shop' is named 'nothing'; there are .'customers'"),
        ({"source": "/nowhere.parquet"}, ConfigError, "there is no file or folder '/nowhere.parquet'"),
        ({"source": 5}, ConfigError, "5 is no source of rows; expected a path"),
        ({"key": "nope"}, ConfigError, "key= of store 'customers' names column 'nope', and the source has"),
        ({"key": "no.such:thing"}, ConfigError, "key='no.such:thing' of store 'customers' cannot be imported"),
        (
            {"value": nothing},
            ConfigError,
            r"value= of store 'customers' is .*nothing .line .*, which returns None whatever comes: each row would",
        ),
        ({"key": nothing}, ConfigError, "key= of store 'customers' is .*: no row would have a key; return the result"),
        ({"content": "records"}, StreamsError, "no operator makes store 'customers' of records"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_published(
    change: dict[str, Any], error: type[Exception], said: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=said):
        made(tmp_path / "out", **{"source": parquet(tmp_path, ROWS), **change})


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({}, "needs either key= or row="),
        ({"key": "a", "row": lambda row: row}, "needs either key= or row="),
        ({"row": lambda row: row, "value": "a"}, "leave value= and timestamp= out"),
        ({"key": "a", "on_error": "ignore"}, "expected fail, count or rejects"),
        ({"key": "a", "content": "rows"}, "expected entries, records or changelog"),
    ],
)
def test_a_store_bootstrap_refuses_what_does_not_go_together(said: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        StoreBootstrap("store", "rows.parquet", **said)


def test_a_changelog_needs_brokers(tmp_path: Path) -> None:
    spec = StoreBootstrap("customers", parquet(tmp_path, ROWS), key="id")

    with pytest.raises(ConfigError, match=r"no brokers are named .bootstrap.servers."):
        bootstrap(topology(), [spec], out=tmp_path / "out", engine="local", config={"application.id": "shop"})


def test_a_source_for_spark_is_refused_by_the_local_engine(tmp_path: Path) -> None:
    class Frame:
        def mapInArrow(self) -> None:  # noqa: N802 - that is its name
            """Makes it look like a DataFrame."""

    with pytest.raises(ConfigError, match="is read by Spark; use engine='spark'"):
        made(tmp_path / "out", Frame())


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("memory://nothing/rows.csv", r"there is no file or folder 'memory://nothing/rows.csv'"),
        ("lake://rows.csv", r"no file system is found for 'lake://rows.csv': Protocol not known: lake"),
    ],
)
def test_a_path_that_leads_nowhere_is_named(path: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Files(path).parts()


def test_a_format_that_names_do_not_tell_has_to_be_said(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_text("")

    with pytest.raises(ConfigError, match=r"the format of .* is not told by the names"):
        Files(path).parts()


def test_an_engine_that_there_is_not_is_refused(tmp_path: Path) -> None:
    spec = StoreBootstrap("customers", parquet(tmp_path, ROWS), key="id")

    with pytest.raises(ConfigError, match="engine is 'Spark'; expected 'spark' or 'local'"):
        bootstrapped(tmp_path / "out", spec, engine="Spark")


def test_times_may_be_texts_and_one_that_says_none_is_refused_by_itself(tmp_path: Path) -> None:
    texts = ["1970-01-01T01:00:05.25+01:00", "1970-01-01 00:00:06Z", "1970-01-01 00:00:07", "1970-01-01", "soon", None]
    rows = [{"id": f"c{at}", "at": text} for at, text in enumerate(texts)]
    report = made(tmp_path / "out", parquet(tmp_path, rows), value="id", on_error="rejects")

    times = [(key, time) for key, _, time, _ in rows_of(tmp_path / "out")]
    assert [("c0", 5250), ("c1", 6000), ("c2", 7000), ("c3", 0)] == times
    assert {"ValueError": 1, "RowError": 1} == report.stores["customers"].refused
    rejects = [(tmp_path / "out" / name).read_text() for name in report.stores["customers"].rejects]
    assert "column 'at' has 'soon'; expected a time such as 2013-01-31T05:15:00Z" in "".join(rejects)


def with_day(row: dict[str, Any]) -> str:
    return f"{row['id']} {row['day']}"


def all_of_row(row: dict[str, Any]) -> tuple[str, str, int]:
    return row["id"], with_day(row), row["at"]


@pytest.mark.parametrize(
    "said",
    [
        {"key": "id", "value": with_day, "timestamp": "at"},
        {"key": "id", "value": ["id", "day"], "timestamp": 5},
        {"row": all_of_row},
    ],
)
def test_a_row_with_a_day_that_python_does_not_have_is_refused_by_itself(said: dict[str, Any], tmp_path: Path) -> None:
    days = pa.array([1, 2**30, 2, None, -(2**30), 3], pa.int32()).cast(pa.date32())
    source = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"id": [f"c{at}" for at in range(6)], "day": days, "at": range(6)}), source)
    report = bootstrapped(tmp_path / "out", StoreBootstrap("customers", source, on_error="rejects", **said))

    assert {"ValueError": 2} == report.stores["customers"].refused
    assert ["c0", "c2", "c3", "c5"] == [key for key, _, _, _ in rows_of(tmp_path / "out")]
    rejects = "".join((tmp_path / "out" / name).read_text() for name in report.stores["customers"].rejects)
    assert "column 'day' has a value of type date32[day] that is no object of Python (" in rejects
    assert '"id": "c1"' in rejects


def test_a_row_that_cannot_meet_others_for_a_day_that_python_does_not_have_is_said(tmp_path: Path) -> None:
    builder = orders_of_customers()
    days = pa.array([1, 2**30], pa.int32()).cast(pa.date32())
    source = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"id": ["o1", "o2"], "customer": ["a", "b"], "day": days}), source)
    spec = StoreBootstrap("by-subscription-store", source, key="id", value=["customer"], on_error="count")
    options: Any = {"engine": "local", "changelog": "base-only", "source_offsets": None, "partitions": 3}

    with pytest.raises(RowError, match=r"'by-subscription-store' cannot be taken: column 'day' .* leave it out"):
        bootstrap(builder.build(StreamsConfig(CONFIG)), [spec], out=tmp_path / "out", config=CONFIG, **options)
