"""Speculation for real: a cluster of two machines starts a slow task a second time, and the rows are there once.

The machines are workers of a standalone cluster at two addresses of this machine, since Spark starts no copy of a task
where it runs already, and none at all in local mode. It has a process, and a session, of its own.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pykstreams.spark import StoreBootstrap, bootstrap
from pykstreams.state.bulk.manifest import read, verify
from tests.spark.standalone_cluster import environment_of_driver, standalone_cluster

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.xdist_group("spark")]

PATIENCE_S = 90.0
SCRIPT = """
import os
import time
from pathlib import Path

from pykstreams import Consumed, Grouped, Materialized, Serdes, StreamsBuilder

application_id = "shop"
HERE = Path("@HERE@")  # executors have the script elsewhere

def add(total, number):
    # the first attempt that comes here waits for the other one, which has nobody to wait for
    if number == 900 and (HERE / "slow").exists():
        try:
            os.rename(HERE / "slow", HERE / "waiting")
        except FileNotFoundError:
            return total + number
        while not (HERE / "done").exists():
            time.sleep(0.05)
    return total + number

def build():
    builder = StreamsBuilder()
    text, number = Serdes.string(), Serdes.long()
    records = builder.stream("records", Consumed(key_serde=text, value_serde=number))
    records.group_by_key(Grouped(key_serde=text, value_serde=number)).reduce(
        add, materialized=Materialized("totals", key_serde=text, value_serde=number))
    return builder
"""
JOB = """
import sys
from pyspark.sql import SparkSession
from pykstreams.spark import StoreBootstrap, bootstrap

master, script, source, out = sys.argv[1:]
session = (
    SparkSession.builder.master(master)
    .config("spark.speculation", "true")
    .config("spark.speculation.interval", "100ms")
    .config("spark.speculation.multiplier", "1.1")
    .config("spark.speculation.quantile", "0.5")
    .config("spark.speculation.minTaskRuntime", "100ms")
    .config("spark.executor.memory", "512m")
    .config("spark.executor.cores", "1")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.sql.shuffle.partitions", "2")
    .getOrCreate()
)
spec = StoreBootstrap("totals", source, key="id", value="n", timestamp="at", content="records")
bootstrap(script, [spec], out=out, spark=session, changelog="base-only", source_offsets=None, partitions=3)
"""


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """The address of a cluster of two workers with a core each."""
    with standalone_cluster(tmp_path) as address:
        yield address


@pytest.mark.nightly
def test_a_task_that_runs_twice_at_once_makes_its_rows_once(master: str, tmp_path: Path) -> None:
    script, source, out = tmp_path / "shop_twice.py", tmp_path / "rows.parquet", tmp_path / "out"
    script.write_text(SCRIPT.replace("@HERE@", str(tmp_path)))
    pq.write_table(pa.Table.from_pylist([{"id": f"c{n % 70}", "n": n, "at": n} for n in range(1000)]), source)
    spec = StoreBootstrap("totals", source, key="id", value="n", timestamp="at", content="records")
    options: Any = {"changelog": "base-only", "source_offsets": None, "partitions": 3}
    expected = bootstrap(str(script), [spec], out=tmp_path / "local", engine="local", processes=1, **options).manifest
    (tmp_path / "slow").touch()

    done = subprocess.run(
        [sys.executable, "-c", JOB, master, str(script), str(source), str(out)],
        env=environment_of_driver(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    (tmp_path / "done").touch()  # lets the slow attempt go on, if Spark has not killed it

    assert 0 == done.returncode, done.stderr[-3000:]
    assert (tmp_path / "waiting").exists()
    found = read(out)
    assert [(task.rows, task.content) for task in expected.stores["totals"].tasks.values()] == [
        (task.rows, task.content) for task in found.stores["totals"].tasks.values()
    ]
    assert [] == verify(out, found)
