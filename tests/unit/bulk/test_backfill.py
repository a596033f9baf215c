"""Backfills by the local engine: what histories may look like, what is published, and what is refused."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from pykstreams import (
    Consumed,
    GlobalKTable,
    Grouped,
    KStream,
    Materialized,
    Produced,
    Retry,
    Serdes,
    Stores,
    StreamsBuilder,
    StreamsConfig,
    Topology,
)
from pykstreams.bulk.backfills.order import in_order
from pykstreams.cli.app import cli
from pykstreams.core.errors import BootstrapError, ConfigError, StreamsError
from pykstreams.serdes import JsonSerde
from pykstreams.spark import BackfillReport, KafkaTopic, TopicHistory, backfill
from pykstreams.state.bulk.folder import MANIFEST
from pykstreams.state.bulk.job_lock import LOCK, held_by_job
from pykstreams.state.bulk.manifest import read, verify
from pykstreams.topology.plan import SubtopologyPlan
from tests.unit.bulk.synced import Synced

TEXT, NUMBER, JSON = Serdes.string(), Serdes.long(), JsonSerde()
CONFIG = {"application.id": "shop", "bootstrap.servers": "nowhere:9"}


def built(build: Callable[[StreamsBuilder], None]) -> Topology:
    builder = StreamsBuilder()
    build(builder)
    return builder.build(StreamsConfig(CONFIG))


def totals(builder: StreamsBuilder) -> None:
    """Adds up the numbers of orders by customer."""
    orders: KStream[str, Any] = builder.stream("orders", Consumed(key_serde=TEXT, value_serde=JSON))
    by_customer = orders.map(lambda key, order: (order["customer"], order["n"]))
    summed = by_customer.group_by_key(Grouped(key_serde=TEXT, value_serde=NUMBER)).reduce(
        lambda total, n: total + n, materialized=Materialized("totals", key_serde=TEXT, value_serde=NUMBER)
    )
    summed.to_stream().to("out", Produced(key_serde=TEXT, value_serde=NUMBER))


ORDERS: list[dict[str, Any]] = [
    {"id": f"o{number}", "customer": f"c{number % 5}", "n": number, "at": 1000 + number} for number in range(100)
]
COLUMNS: Any = {"key": "id", "value": ["customer", "n"], "timestamp": "at"}
TOTALS = {f"c{at}": sum(order["n"] for order in ORDERS if order["customer"] == f"c{at}") for at in range(5)}


def parquet(path: Path, rows: list[dict[str, Any]], schema: Any = None) -> str:
    pq.write_table(pa.Table.from_pylist(rows, schema), path, row_group_size=30)
    return str(path)


def made(folder: Path, sources: dict[str, Any], build: Callable[[StreamsBuilder], None] = totals, **said: Any) -> Any:
    options: Any = {
        "out": folder / "out",
        "engine": "local",
        "changelog": "base-only",
        "source_offsets": None,
        "config": CONFIG,
        "partitions": 3,
        **said,
    }
    return backfill(built(build), sources, **options)


def last_of(report: BackfillReport, topic: str = "out") -> dict[str, int]:
    """The last number of each key of a topic."""
    rows = [row for file in report.files[topic] for row in pq.read_table(file).to_pylist()]
    ordered = sorted(rows, key=lambda row: (row["time"], row["task"], row["number"]))
    return {row["key"].decode(): int.from_bytes(row["value"]) for row in ordered}


def test_columns_become_records_by_the_serdes_of_the_topic(tmp_path: Path) -> None:
    report = made(tmp_path, {"orders": TopicHistory(parquet(tmp_path / "orders.parquet", ORDERS), **COLUMNS)})

    assert TOTALS == last_of(report)
    assert {"out": 100} == report.records
    assert {"totals": 5} == {name: sum(t.rows for t in s.tasks.values()) for name, s in report.manifest.stores.items()}
    assert [] == verify(tmp_path / "out", read(tmp_path / "out"))


def test_bytes_are_taken_as_they_are_with_their_partitions_and_headers(tmp_path: Path) -> None:
    headers = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    columns = [("key", pa.binary()), ("value", pa.binary()), ("timestamp", pa.timestamp("ms", "UTC"))]
    schema = pa.schema([*columns, ("partition", pa.int32()), ("headers", headers)])
    row = {
        "key": b"k",
        "value": b"v",
        "timestamp": datetime.fromtimestamp(5, UTC),
        "partition": 2,
        "headers": [{"key": "h", "value": b"1"}],
    }

    def copy(builder: StreamsBuilder) -> None:
        text = Consumed(key_serde=TEXT, value_serde=TEXT)
        stream: KStream[str, str] = builder.stream("in", text)
        stream.to("out", Produced(key_serde=TEXT, value_serde=TEXT))

    report = made(tmp_path, {"in": parquet(tmp_path / "in.parquet", [row], schema)}, _with_a_store(copy))
    found = [row for file in report.files["out"] for row in pq.read_table(file).to_pylist()]

    assert [(b"k", b"v", 5000, row["headers"], "0_2")] == [
        (one["key"], one["value"], one["timestamp"], one["headers"], one["task"]) for one in found
    ]


def _with_a_store(build: Callable[[StreamsBuilder], None]) -> Callable[[StreamsBuilder], None]:
    """A bootstrap has at least one store."""

    def with_a_store(builder: StreamsBuilder) -> None:
        build(builder)
        stream: KStream[str, str] = builder.stream("in", Consumed(key_serde=TEXT, value_serde=TEXT))
        stream.group_by_key(Grouped(key_serde=TEXT, value_serde=TEXT)).count(materialized=Materialized("counts"))

    return with_a_store


def test_records_are_in_the_partitions_that_the_partitioner_of_the_source_chooses(tmp_path: Path) -> None:
    def copy(builder: StreamsBuilder) -> None:
        consumed = Consumed(key_serde=TEXT, value_serde=JSON, partitioner="consistent_random")
        stream: KStream[str, Any] = builder.stream("orders", consumed)
        kept = stream.to_table(materialized=Materialized("orders", key_serde=TEXT, value_serde=JSON))
        kept.to_stream().to("out", Produced(key_serde=TEXT, value_serde=JSON))

    history = TopicHistory(parquet(tmp_path / "orders.parquet", ORDERS), **COLUMNS)
    report = made(tmp_path, {"orders": history}, copy)
    found = [row for file in report.files["out"] for row in pq.read_table(file).to_pylist()]

    assert {row["key"]: row["task"] for row in found} == {
        order["id"].encode(): f"0_{zlib.crc32(order['id'].encode()) % 3}" for order in ORDERS
    }


def test_times_that_the_topology_extracts_are_the_order_of_records(tmp_path: Path) -> None:
    def by_number(builder: StreamsBuilder) -> None:
        consumed = Consumed(
            key_serde=TEXT, value_serde=JSON, timestamp_extractor=lambda record, before: record.value["n"]
        )
        orders: KStream[str, Any] = builder.stream("orders", consumed)
        numbers = orders.map(lambda key, order: (order["customer"], order["n"]))
        kept = numbers.group_by_key(Grouped(key_serde=TEXT, value_serde=NUMBER)).reduce(
            lambda old, new: new, materialized=Materialized("last", key_serde=TEXT, value_serde=NUMBER)
        )
        kept.to_stream().to("out", Produced(key_serde=TEXT, value_serde=NUMBER))

    backwards = [{**order, "at": 5000 - order["at"]} for order in ORDERS]
    source = TopicHistory(parquet(tmp_path / "orders.parquet", backwards), **COLUMNS)

    assert {f"c{at}": 95 + at for at in range(5)} == last_of(made(tmp_path, {"orders": source}, by_number))


@pytest.mark.parametrize("given", [5.5, None])
def test_a_record_whose_extracted_time_is_none_is_in_the_order_of_the_time_it_carries(
    tmp_path: Path, given: Any
) -> None:
    """The task meets the same, and tells of the extractor."""

    def timed(builder: StreamsBuilder) -> None:
        consumed = Consumed(key_serde=TEXT, value_serde=JSON, timestamp_extractor=lambda record, before: given)
        builder.stream("orders", consumed).to("out", Produced(key_serde=TEXT, value_serde=JSON))

    source = TopicHistory(parquet(tmp_path / "orders.parquet", ORDERS), **COLUMNS)

    with pytest.raises(StreamsError, match=r"timestamp extractor .* of KSTREAM-SOURCE-0000000000 gave"):
        made(tmp_path, {"orders": source}, timed)


def test_every_task_sees_the_whole_of_a_global_table(tmp_path: Path) -> None:
    def with_rates(builder: StreamsBuilder) -> None:
        rates: GlobalKTable[str, int] = builder.global_table("rates", Consumed(key_serde=TEXT, value_serde=NUMBER))
        orders: KStream[str, Any] = builder.stream("orders", Consumed(key_serde=TEXT, value_serde=JSON))
        priced = orders.join(
            rates, lambda order, rate: order["n"] * rate, key_selector=lambda key, order: order["customer"]
        )
        priced.group_by_key(Grouped(key_serde=TEXT, value_serde=NUMBER)).reduce(
            lambda old, new: new, materialized=Materialized("prices", key_serde=TEXT, value_serde=NUMBER)
        ).to_stream().to("out", Produced(key_serde=TEXT, value_serde=NUMBER))

    rates = [{"key": f"c{at}", "value": 10 + at, "timestamp": at} for at in range(5)]
    sources = {
        "orders": TopicHistory(parquet(tmp_path / "orders.parquet", ORDERS), **COLUMNS),
        "rates": parquet(tmp_path / "rates.parquet", rates),
    }
    expected = {order["id"]: order["n"] * (10 + int(order["customer"][1:])) for order in ORDERS}

    assert expected == last_of(made(tmp_path, sources, with_rates))


def test_records_in_flight_are_waited_for(tmp_path: Path) -> None:
    async def doubled(order: Any) -> Any:
        return {**order, "n": 2 * order["n"]}

    def looked_up(builder: StreamsBuilder) -> None:
        orders: KStream[str, Any] = builder.stream("orders", Consumed(key_serde=TEXT, value_serde=JSON))
        values = orders.map_values_async(doubled).map_values(lambda order: order["n"])
        values.group_by_key(Grouped(key_serde=TEXT, value_serde=NUMBER)).reduce(
            lambda old, new: new, materialized=Materialized("doubled", key_serde=TEXT, value_serde=NUMBER)
        ).to_stream().to("out", Produced(key_serde=TEXT, value_serde=NUMBER))

    source = TopicHistory(parquet(tmp_path / "orders.parquet", ORDERS), **COLUMNS)

    assert {order["id"]: 2 * order["n"] for order in ORDERS} == last_of(made(tmp_path, {"orders": source}, looked_up))


def asking(refused: frozenset[int], max_waiting: int) -> Callable[[StreamsBuilder], None]:
    def ask(order: Any) -> Any:
        if order["n"] in refused:
            raise ConnectionError(order["n"])
        return order["n"]

    def build(builder: StreamsBuilder) -> None:
        orders: KStream[str, Any] = builder.stream("orders", Consumed(key_serde=TEXT, value_serde=JSON))
        orders.map_values(ask, retry=Retry(max_waiting=max_waiting, retry_on=ConnectionError), name="ask").group_by_key(
            Grouped(key_serde=TEXT, value_serde=NUMBER)
        ).reduce(
            lambda old, new: new, materialized=Materialized("asked", key_serde=TEXT, value_serde=NUMBER)
        ).to_stream().to("out", Produced(key_serde=TEXT, value_serde=NUMBER))

    return build


def test_records_that_would_be_tried_again_wait_in_the_state_that_is_made(tmp_path: Path) -> None:
    source = TopicHistory(parquet(tmp_path / "orders.parquet", ORDERS), **COLUMNS)
    report = made(tmp_path, {"orders": source}, asking(frozenset({3, 4}), 10_000))

    assert {order["id"]: order["n"] for order in ORDERS if order["n"] not in {3, 4}} == last_of(report)
    assert sum(task.rows for task in report.manifest.stores["ask-retries"].tasks.values()) == 2


def test_more_records_that_wait_than_may_end_a_backfill(tmp_path: Path) -> None:
    source = TopicHistory(parquet(tmp_path / "orders.parquet", ORDERS), **COLUMNS)

    with pytest.raises(
        StreamsError, match=r"wait to be tried again, as many as Retry\(max_waiting=...\) allows; a backf"
    ):
        made(tmp_path, {"orders": source}, asking(frozenset(range(100)), 3))


def test_offsets_and_stream_times_are_where_the_application_goes_on(tmp_path: Path) -> None:
    source = TopicHistory(parquet(tmp_path / "orders.parquet", ORDERS), **COLUMNS)
    offsets = {"orders": {0: 5, 1: 6, 2: 7}}
    manifest = made(tmp_path, {"orders": source}, source_offsets=offsets).manifest

    assert offsets == manifest.source_offsets
    assert {"orders", "shop-totals-repartition"} == set(manifest.source_times)
    assert 1099 == max(manifest.source_times["orders"].values())


def test_an_empty_history_makes_empty_stores(tmp_path: Path) -> None:
    schema = pa.schema([("key", pa.string()), ("value", pa.string()), ("timestamp", pa.int64())])
    report = made(tmp_path, {"orders": parquet(tmp_path / "orders.parquet", [], schema)})

    assert [0, 0, 0] == [task.rows for task in report.manifest.stores["totals"].tasks.values()]
    assert {} == report.records


def test_nothing_is_left_beside_stores_records_and_the_manifest(tmp_path: Path) -> None:
    source = TopicHistory(parquet(tmp_path / "orders.parquet", ORDERS), **COLUMNS)
    made(tmp_path, {"orders": source})

    assert ["manifest.json", "records", "stores"] == sorted(path.name for path in (tmp_path / "out").iterdir())


def test_records_are_on_the_disk_before_the_bootstrap_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = Synced(monkeypatch, lambda: not (tmp_path / "out" / MANIFEST).exists())
    report = made(tmp_path, {"orders": TopicHistory(parquet(tmp_path / "orders.parquet", ORDERS), **COLUMNS)})
    files = [Path(name) for name in report.files["out"]]

    assert len(files) == 3
    assert all(synced.is_whole(file) and synced.has_name(file) for file in files)
    assert synced.has_name(tmp_path / "out" / "records" / "out")
    assert synced.has_name(tmp_path / "out" / "records")


def test_a_failure_publishes_nothing_and_the_folder_can_be_used_again(tmp_path: Path) -> None:
    bad = [*ORDERS, {"id": "o", "customer": None, "n": 1, "at": None}]
    with pytest.raises(StreamsError, match="a row of the history of topic 'orders' cannot be taken: it has no timest"):
        made(tmp_path, {"orders": TopicHistory(parquet(tmp_path / "bad.parquet", bad), **COLUMNS)})
    assert [LOCK] == [path.name for path in (tmp_path / "out").iterdir()]  # by which it is known that a job has failed

    source = TopicHistory(parquet(tmp_path / "orders.parquet", ORDERS), **COLUMNS)
    assert TOTALS == last_of(made(tmp_path, {"orders": source}))
    with pytest.raises(BootstrapError, match="holds a bootstrap already"):
        made(tmp_path, {"orders": source})


def test_records_of_a_failed_job_are_not_beside_a_later_bootstrap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def counts(builder: StreamsBuilder) -> None:
        orders: KStream[str, Any] = builder.stream("orders", Consumed(key_serde=TEXT, value_serde=JSON))
        counted = orders.group_by_key(Grouped(key_serde=TEXT, value_serde=JSON)).count(
            materialized=Materialized("counts", key_serde=TEXT, value_serde=NUMBER)
        )
        counted.to_stream().to("counts", Produced(key_serde=TEXT, value_serde=NUMBER))

    def fails(*_: object) -> None:
        raise OSError("No space left on device")

    source = TopicHistory(parquet(tmp_path / "orders.parquet", ORDERS), **COLUMNS)
    with monkeypatch.context() as patched, pytest.raises(OSError, match="No space left"):
        patched.setattr("pykstreams.bulk.backfill.publish", fails)
        made(tmp_path, {"orders": source})

    assert ["out"] == [path.name for path in (tmp_path / "out" / "records").iterdir()]

    made(tmp_path, {"orders": source}, counts)
    assert ["counts"] == [path.name for path in (tmp_path / "out" / "records").iterdir()]


def test_a_bootstrap_that_was_published_while_a_job_began_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = TopicHistory(parquet(tmp_path / "orders.parquet", ORDERS), **COLUMNS)
    fewer = TopicHistory(parquet(tmp_path / "fewer.parquet", ORDERS[:50]), **COLUMNS)
    before: list[BackfillReport] = []

    def held_by_the_second(root: Path) -> AbstractContextManager[None]:
        with monkeypatch.context() as patched:
            patched.setattr("pykstreams.bulk.backfill.held_by_job", held_by_job)
            before.append(made(tmp_path, {"orders": source}))
        return held_by_job(root)

    monkeypatch.setattr("pykstreams.bulk.backfill.held_by_job", held_by_the_second)
    with pytest.raises(BootstrapError, match="a bootstrap is never changed"):
        made(tmp_path, {"orders": fewer})

    assert TOTALS == last_of(before[0])
    assert before[0].manifest == read(tmp_path / "out")
    assert ["manifest.json", "records", "stores"] == sorted(path.name for path in (tmp_path / "out").iterdir())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sources": {}}, r"the history of .'orders'. is missing, which the topology reads"),
        ({"sources": {"nothing": "x"}}, r"no part of the topology reads .'nothing'.; it reads .'orders'."),
        ({"changelog": "no"}, "changelog is 'no'; expected 'write' or 'base-only'"),
        ({"outputs": "no"}, "outputs is 'no'; expected 'files' or 'topics'"),
        ({"engine": "Spark"}, "engine is 'Spark'; expected 'spark' or 'local'"),
        ({"source_offsets": "then"}, "source_offsets is 'then'; expected 'now', a mapping or None"),
        ({"changelog": "write", "config": {"application.id": "shop"}}, "no brokers are named .bootstrap.servers."),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_read(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    options = {"sources": {"orders": parquet(tmp_path / "orders.parquet", ORDERS)}, **change}

    with pytest.raises(ConfigError, match=said):
        made(tmp_path, options.pop("sources"), **options)


def test_a_history_without_a_column_that_is_named_or_usual_says_whose_it_is(tmp_path: Path) -> None:
    path = parquet(tmp_path / "orders.parquet", ORDERS)

    with pytest.raises(
        ConfigError, match=r"key= of the history of topic 'orders' names column 'key', and .*; say which .*: key="
    ):
        made(tmp_path, {"orders": path})
    with pytest.raises(ConfigError, match=r"value='no.such:thing' of the history of topic 'orders' cannot be imported"):
        made(tmp_path, {"orders": TopicHistory(path, **{**COLUMNS, "value": "no.such:thing"})})


def test_stores_that_live_in_their_changelogs_need_these(tmp_path: Path) -> None:
    def in_memory(builder: StreamsBuilder) -> None:
        store = Stores.in_memory_key_value_store("kept")
        builder.table("orders", Consumed(key_serde=TEXT, value_serde=JSON), materialized=Materialized(store))

    with pytest.raises(ConfigError, match="store 'kept' is not kept on disk, and is read from its changelog"):
        made(tmp_path, {"orders": "x"}, in_memory)


def test_objects_for_a_topic_whose_serde_cannot_write_need_a_serde(tmp_path: Path) -> None:
    def reads_only(builder: StreamsBuilder) -> None:
        class Reader:
            serializer = None
            deserializer = staticmethod(json.loads)

        reader: Any = Reader()
        orders: KStream[str, Any] = builder.stream("orders", Consumed(key_serde=TEXT, value_serde=reader))
        orders.group_by_key(Grouped(key_serde=TEXT, value_serde=JSON)).count(materialized=Materialized("counts"))

    source = parquet(tmp_path / "orders.parquet", ORDERS)
    with pytest.raises(ConfigError, match="cannot write them; name the serde: TopicHistory"):
        made(tmp_path, {"orders": TopicHistory(source, **COLUMNS)}, reads_only)
    report = made(tmp_path, {"orders": TopicHistory(source, **COLUMNS, value_serde=JSON)}, reads_only)

    assert 100 == sum(task.rows for task in report.manifest.stores["counts"].tasks.values())


def test_a_partition_that_the_topic_has_not_is_refused(tmp_path: Path) -> None:
    source = parquet(tmp_path / "orders.parquet", [{**ORDERS[0], "partition": 3}])

    with pytest.raises(StreamsError, match="its partition is 3, and the topic has 3"):
        made(tmp_path, {"orders": TopicHistory(source, **COLUMNS)})


def test_sub_topologies_run_after_all_that_send_to_them_and_circles_together() -> None:
    def joined(builder: StreamsBuilder) -> None:
        consumed = Consumed(key_serde=TEXT, value_serde=TEXT)
        stream: KStream[str, str] = builder.stream("last", consumed)
        stream.to("end", Produced(key_serde=TEXT, value_serde=TEXT))
        left = builder.table("left", consumed)
        right = builder.table("right", consumed)
        both = left.join(right, lambda one, other: one, foreign_key_extractor=lambda value: value)
        both.to_stream().to("last", Produced(key_serde=TEXT, value_serde=TEXT))

    plan = built(joined).plan(StreamsConfig(CONFIG))

    def read(group: tuple[SubtopologyPlan, ...]) -> set[str]:
        return {topic for part in group for topic in part.source_topics if not topic.startswith("shop-")}

    assert [{"left", "right"}, {"last"}] == [read(group) for group in in_order(plan)]


SCRIPT = """
from pykstreams import Consumed, Grouped, Materialized, Produced, Serdes, StreamsBuilder

application_id = "lines"

def build():
    builder = StreamsBuilder()
    text, number = Serdes.string(), Serdes.long()
    words = builder.stream("lines", Consumed(key_serde=text, value_serde=text)).flat_map_values(str.split)
    counts = words.group_by(lambda key, word: word, Grouped(key_serde=text, value_serde=text)).count(
        materialized=Materialized("counts", key_serde=text, value_serde=number))
    counts.to_stream().to("out", Produced(key_serde=text, value_serde=number))
    return builder
"""


def test_the_command_line_says_what_it_has_made(tmp_path: Path) -> None:
    script = tmp_path / "lines_of_tests.py"
    script.write_text(SCRIPT)
    source = parquet(tmp_path / "lines.parquet", [{"key": "k", "value": "a b a", "timestamp": 1}])
    (tmp_path / "offsets.json").write_text('{"lines": {"0": 1}}')
    command = ["backfill", str(script), "--from", f"lines={source}", "--out", str(tmp_path / "out")]
    command += ["--engine", "local", "--processes", "1", "--changelog", "base-only", "--partitions", "1"]
    command += ["--source-offsets", str(tmp_path / "offsets.json"), "--set", "statestore.cache.max.bytes=0"]
    result = CliRunner().invoke(cli, command, catch_exceptions=False)

    assert 0 == result.exit_code, result.output
    assert ["store counts: 2 rows", "topic out: 3 records in 1 files"] == result.stdout.splitlines()[:2]
    assert {"lines": {0: 1}} == read(tmp_path / "out").source_offsets


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (["--from", "=x"], "--from is '=x'; expected TOPIC=PATH"),
        (["--from", "lines", "--partitions", "many"], "--partitions is 'many'; expected one number, or TOPIC=NUMBER"),
        (["--from", "lines", "--source-offsets", "nowhere.json"], "'nowhere.json' cannot be read"),
    ],
)
def test_options_that_cannot_be_read_are_refused(option: list[str], said: str, tmp_path: Path) -> None:
    script = tmp_path / "lines_of_tests.py"
    script.write_text(SCRIPT)
    result = CliRunner().invoke(cli, ["backfill", str(script), "--out", str(tmp_path / "out"), *option])

    assert 2 == result.exit_code
    assert said in " ".join(result.stderr.split())


def test_a_topic_that_is_its_own_source_needs_brokers(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers"):
        made(tmp_path, {"orders": KafkaTopic("orders")}, config={"application.id": "shop"})


def test_results_of_a_foreign_key_join_have_the_later_time_of_both_rows_under_default_settings(tmp_path: Path) -> None:
    """A cache would hand on the right table's rows when all left ones have been joined, in one more round of results
    that have the times of the right rows.
    """

    def joined(builder: StreamsBuilder) -> None:
        orders = builder.table("orders", Consumed(key_serde=TEXT, value_serde=JSON))
        names = builder.table("names", Consumed(key_serde=TEXT, value_serde=TEXT))
        both = orders.join(
            names,
            lambda order, name: order["n"],
            foreign_key_extractor=lambda order: order["customer"],
            materialized=Materialized("joined", key_serde=TEXT, value_serde=NUMBER),
        )
        both.to_stream().to("out", Produced(key_serde=TEXT, value_serde=NUMBER))

    names = [{"key": f"c{at}", "value": f"name {at}", "timestamp": at} for at in range(5)]
    sources = {
        "orders": TopicHistory(parquet(tmp_path / "orders.parquet", ORDERS), **COLUMNS),
        "names": parquet(tmp_path / "names.parquet", names),
    }
    report = made(tmp_path, sources, joined)
    found = [row for file in report.files["out"] for row in pq.read_table(file).to_pylist()]

    assert {(row["id"].encode(), row["at"]) for row in ORDERS} == {(row["key"], row["timestamp"]) for row in found}
    assert len(ORDERS) == len(found)
