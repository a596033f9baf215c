"""Backfills by Spark and by several processes make what one process makes, whatever happens to their tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pykstreams.core.errors import BootstrapError
from pykstreams.spark import BackfillReport, TopicHistory, backfill

SCRIPT = """
import os
import signal
from pathlib import Path

from pykstreams import Consumed, Grouped, Materialized, Produced, Serdes, StreamsBuilder, TimeWindows

application_id = "shop"
config = {"bootstrap.servers": "nowhere:9", "statestore.cache.max.bytes": 0}

def joined(order, customer):
    # where a file names a fault, it happens once
    fault = Path(__file__).parent / "fault"
    if order.endswith("50") and fault.exists():
        how = fault.read_text()
        fault.unlink()
        if how == "exit":
            os._exit(1)
        os.kill(os.getpid(), signal.SIGKILL)
    return f"{order}+{customer}"

def build():
    builder = StreamsBuilder()
    text, number = Serdes.string(), Serdes.long()
    as_text = Consumed(key_serde=text, value_serde=text)
    orders = builder.table("orders", as_text, materialized=Materialized("orders", key_serde=text, value_serde=text))
    customers = builder.table("customers", as_text,
                              materialized=Materialized("customers", key_serde=text, value_serde=text))
    both = orders.join(customers, joined, foreign_key_extractor=lambda order: order.partition("|")[0],
                       materialized=Materialized("joined", key_serde=text, value_serde=text))
    both.to_stream().to("out", Produced(key_serde=text, value_serde=text))
    names = both.to_stream().group_by(lambda key, value: value.rpartition("+")[2],
                                      Grouped(key_serde=text, value_serde=text))
    names.windowed_by(TimeWindows(100, grace=10**6)).count(
        materialized=Materialized("names", key_serde=text, value_serde=number))
    return builder
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "shop_of_backfills.py"
    path.write_text(SCRIPT)
    return str(path)


@pytest.fixture
def sources(tmp_path: Path) -> dict[str, str]:
    rows = {
        "orders": [(f"o{at % 300}", f"c{at % 37}|{at}", 2 * at) for at in range(1000)],
        "customers": [(f"c{at % 40}", f"name {at % 7}", 2 * at + 1) for at in range(100)],
    }
    schema = pa.schema([("key", pa.string()), ("value", pa.string()), ("timestamp", pa.int64())])
    paths = {}
    for topic, found in rows.items():
        paths[topic] = str(tmp_path / f"{topic}.parquet")
        table = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in found], schema)
        pq.write_table(table, paths[topic], row_group_size=200)
    return paths


def made(script: str, sources: dict[str, Any], out: Path, **said: Any) -> BackfillReport:
    options: Any = {"changelog": "base-only", "source_offsets": None, "partitions": 3, **said}
    return backfill(script, sources, out=out, **options)


def content(report: BackfillReport) -> Any:
    """The outcome that is equal however it came about: hashes of the stores, records, stream times."""
    stores = {
        (name, partition): (task.rows, task.content)
        for name, store in report.manifest.stores.items()
        for partition, task in store.tasks.items()
    }
    names = ("key", "value", "timestamp", "partition", "task", "number")
    rows = [row for file in report.files.get("out", ()) for row in pq.read_table(file).to_pylist()]
    records = sorted(tuple(row[name] for name in names) for row in rows)
    return stores, records, report.manifest.source_times


@pytest.mark.nightly
def test_spark_makes_what_one_process_makes_although_a_task_is_killed_and_tried_again(
    spark: Any, script: str, sources: dict[str, str], tmp_path: Path
) -> None:
    expected = content(made(script, sources, tmp_path / "local", engine="local", processes=1))
    (tmp_path / "fault").write_text("SIGKILL")
    given: dict[str, Any] = {**sources, "orders": TopicHistory(spark.read.parquet(sources["orders"]))}
    report = made(script, given, tmp_path / "spark", engine="spark", spark=spark)

    assert not (tmp_path / "fault").exists()
    assert expected == content(report)
    assert ["manifest.json", "records", "stores"] == sorted(path.name for path in (tmp_path / "spark").iterdir())
    assert len(report.files["out"]) == len(list((tmp_path / "spark" / "records" / "out").iterdir()))


def test_a_process_that_dies_ends_the_job_and_the_next_one_makes_all(
    script: str, sources: dict[str, str], tmp_path: Path
) -> None:
    expected = content(made(script, sources, tmp_path / "one", engine="local", processes=1))
    (tmp_path / "fault").write_text("exit")
    with pytest.raises(BootstrapError, match="a process of the job died"):
        made(script, sources, tmp_path / "two", engine="local", processes=2)

    assert not (tmp_path / "two" / "manifest.json").exists()
    assert not (tmp_path / "two" / "records").exists()
    assert expected == content(made(script, sources, tmp_path / "two", engine="local", processes=2))


def test_a_history_without_records_makes_empty_stores(spark: Any, script: str, tmp_path: Path) -> None:
    path = tmp_path / "nothing.parquet"
    pq.write_table(pa.table({"key": ["o"], "value": ["c|1"], "timestamp": [1]}).slice(1), path)
    sources = {"orders": str(path), "customers": str(path)}
    expected = content(made(script, sources, tmp_path / "local", engine="local", processes=1))

    assert {0} == {rows for rows, _ in expected[0].values()}
    assert expected == content(made(script, sources, tmp_path / "spark", engine="spark", spark=spark))
