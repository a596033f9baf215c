"""Whatever is read on Spark becomes the same store: files, frames, a database, a topic, the state of an application."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer

from pykstreams.core.errors import BootstrapError
from pykstreams.runtime.clients.mock_cluster import PARTITIONS, EmbeddedCluster
from pykstreams.spark import KafkaTopic, SparkRead, StoreBootstrap, bootstrap, export_state, register

SCRIPT = """
from pykstreams import Consumed, Materialized, Serdes, StreamsBuilder

application_id = "shop"

def build():
    builder = StreamsBuilder()
    text = Serdes.string()
    kept = Materialized("customers", key_serde=text, value_serde=text)
    builder.table("customers", Consumed(key_serde=text, value_serde=text), materialized=kept)
    return builder
"""
COLUMNS: dict[str, Any] = {"key": "id", "value": "name", "timestamp": "at"}
OPTIONS: dict[str, Any] = {"changelog": "base-only", "source_offsets": None, "partitions": PARTITIONS}
ROWS: list[dict[str, Any]] = [
    {"id": f"c{number}", "name": f"name {number}", "at": 1000 + number} for number in range(200)
]
DATABASE = {
    "url": "jdbc:derby:memory:shop;create=true",
    "driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver",
    "dbtable": "customers",
}


def written(folder: Path) -> str:
    """The script in a folder."""
    path = folder / "shop_of_sources.py"
    path.write_text(SCRIPT)
    return str(path)


@pytest.mark.nightly
def test_every_source_gives_the_same_store(
    spark: Any, embedded_cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pykstreams.bulk.engines.spark._SAMPLED_ROWS", 100)  # partitions are divided
    script, path = written(tmp_path), tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pylist(ROWS), path)
    brokers = {"bootstrap.servers": embedded_cluster.bootstrap_servers}
    options = {**OPTIONS, "config": brokers}

    def made(name: str, source: Any, **said: Any) -> list[tuple[int, int]]:
        spec = StoreBootstrap("customers", source, **said)
        built = bootstrap(script, [spec], out=tmp_path / name, spark=spark, **options)
        return [(task.rows, task.content) for _, task in sorted(built.manifest.stores["customers"].tasks.items())]

    spark._jvm.java.lang.System.setProperty("derby.stream.error.file", str(tmp_path / "derby.log"))
    frame = spark.createDataFrame(ROWS)
    frame.write.format("jdbc").options(**DATABASE).save()
    embedded_cluster.create_topics("customers")
    producer = Producer(brokers)
    for row in ROWS:
        producer.produce("customers", row["name"], row["id"], timestamp=row["at"])
    assert producer.flush(20) == 0
    register(spark)

    expected = made("files", f"file://{path}", **COLUMNS)
    assert len(ROWS) == sum(rows for rows, _ in expected)
    assert expected == made("frame", frame.where("at < 1100").union(frame.where("at >= 1100")), **COLUMNS)
    assert expected == made("database", SparkRead("jdbc", options=DATABASE), **COLUMNS)
    assert expected == made("topic", KafkaTopic("customers"))
    state = spark.read.format("pykstreams").options(app=script, store="customers", **brokers)
    assert expected == made(
        "state", state.load(str(tmp_path / "files")), key="key", value="value", timestamp="timestamp"
    )


def test_files_make_the_same_store_by_both_engines(spark: Any, tmp_path: Path) -> None:
    script = written(tmp_path)
    folder, ties = tmp_path / "rows", [{"id": "c1", "name": "2013-01-01T05:00:00Z", "at": 2000}]
    folder.mkdir()
    (folder / "README.txt").write_text("customers, and when they were seen")
    (folder / "part-0.json").write_text("\n".join(map(json.dumps, ROWS + ties)))
    (folder / "part-1.json").write_text("\n".join(map(json.dumps, [{**ties[0], "name": "2013"}])))
    spec = StoreBootstrap("customers", folder, **COLUMNS, latest=True)
    made = [
        bootstrap(script, [spec], out=tmp_path / "local", engine="local", processes=1, **OPTIONS),
        bootstrap(script, [spec], out=tmp_path / "spark", engine="spark", spark=spark, **OPTIONS),
    ]
    contents = [[task.content for task in one.manifest.stores["customers"].tasks.values()] for one in made]

    assert contents[0] == contents[1]
    assert [{**ROWS[1], "name": "2013", "at": 2000}] == [
        {"id": row["key"], "name": row["value"], "at": round(row["timestamp"].timestamp() * 1000)}
        for row in state_of(script, tmp_path / "spark", tmp_path / "state.parquet")
        if row["key"] == "c1"
    ]


def state_of(script: str, folder: Path, target: Path) -> list[dict[str, Any]]:
    """The rows of a bootstrap."""
    export_state(script, "customers", f"parquet:{target}", path=folder)
    rows: list[dict[str, Any]] = pq.read_table(target).to_pylist()
    return rows


@pytest.mark.parametrize("kind", ["parquet", "csv", "frame"])
def test_no_rows_make_an_empty_store(kind: str, spark: Any, tmp_path: Path) -> None:
    path = tmp_path / f"rows.{kind}"
    source: Any = path
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(ROWS[:1]).slice(1), path)
    elif kind == "csv":
        path.write_text("id,name,at\n")
    else:
        source = spark.createDataFrame(ROWS).where("at < 0")
    spec = StoreBootstrap("customers", source, **COLUMNS)
    report = bootstrap(written(tmp_path), [spec], out=tmp_path / "out", spark=spark, **OPTIONS)

    tasks = report.manifest.stores["customers"].tasks
    assert [0] * PARTITIONS == [task.rows for task in tasks.values()]


def test_a_file_that_is_cut_off_is_named_without_a_traceback(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pylist(ROWS), path)
    damaged = bytearray(path.read_bytes())
    damaged[4:200] = bytes(196)
    path.write_bytes(damaged)
    spec = StoreBootstrap("customers", path, **COLUMNS)

    with pytest.raises(
        BootstrapError, match=rf"store 'customers' was not built.*file '{path}' cannot be read as"
    ) as said:
        bootstrap(written(tmp_path), [spec], out=tmp_path / "out", spark=spark, **OPTIONS)
    assert "\n" not in str(said.value)
