"""Whatever Spark reads becomes the same store: files, frames, a database, a topic, the state of an application."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer

from pykstreams.runtime.clients.mock_cluster import PARTITIONS, EmbeddedCluster
from pykstreams.spark import KafkaTopic, SparkRead, StoreBootstrap, bootstrap, register

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
ROWS = [{"id": f"c{number}", "name": f"name {number}", "at": 1000 + number} for number in range(200)]
DATABASE = {
    "url": "jdbc:derby:memory:shop;create=true",
    "driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver",
    "dbtable": "customers",
}


def test_every_source_gives_the_same_store(
    spark: Any, embedded_cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pykstreams.spark.spark_engine._SAMPLED_ROWS", 100)  # partitions are divided
    script, path = tmp_path / "shop_of_sources.py", tmp_path / "rows.parquet"
    script.write_text(SCRIPT)
    pq.write_table(pa.Table.from_pylist(ROWS), path)
    brokers = {"bootstrap.servers": embedded_cluster.bootstrap_servers}
    columns = {"key": "id", "value": "name", "timestamp": "at"}
    options: dict[str, Any] = {
        "changelog": "base-only",
        "source_offsets": None,
        "partitions": PARTITIONS,
        "config": brokers,
    }

    def made(name: str, source: Any, **said: Any) -> list[tuple[int, int]]:
        spec = StoreBootstrap("customers", source, **said)
        built = bootstrap(str(script), [spec], out=tmp_path / name, spark=spark, **options)
        return [(task.rows, task.content) for _, task in sorted(built.manifest.stores["customers"].tasks.items())]

    spark._jvm.java.lang.System.setProperty("derby.stream.error.file", str(tmp_path / "derby.log"))
    frame = spark.createDataFrame(ROWS)
    frame.write.format("jdbc").options(**DATABASE).save()
    embedded_cluster.create_topics("customers")
    producer = Producer(brokers)
    for row in ROWS:
        producer.produce("customers", str(row["name"]), str(row["id"]), timestamp=int(str(row["at"])))
    assert producer.flush(20) == 0
    register(spark)

    expected = made("files", f"file://{path}", **columns)
    assert len(ROWS) == sum(rows for rows, _ in expected)
    assert expected == made("frame", frame.where("at < 1100").union(frame.where("at >= 1100")), **columns)
    assert expected == made("database", SparkRead("jdbc", options=DATABASE), **columns)
    assert expected == made("topic", KafkaTopic("customers"))
    state = spark.read.format("pykstreams").options(app=str(script), store="customers", **brokers)
    assert expected == made(
        "state", state.load(str(tmp_path / "files")), key="key", value="value", timestamp="timestamp"
    )
