"""Jobs on a cluster whose machines have no file of the driver's machine, and are given the code of the application;
the programs of ``docs/guides/spark-clusters.md`` are among them.

The executors see an empty folder where the driver has its scripts and its temporary files. What is shared is the lake,
as it must be: snapshots, histories and what is made of them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.docs.pages import Page
from tests.spark.standalone_cluster import environment_of_driver, standalone_cluster

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.xdist_group("spark")]

PAGE = Page("docs/guides/spark-clusters.md")
PATIENCE_S = 240.0
SHOP = """
from pykstreams import Consumed, Grouped, Materialized, Serdes, StreamsBuilder
from pykstreams.serdes import JsonSerde

import prices
from tests.docs.pages import Page

application_id = "shop"

def build():
    builder = StreamsBuilder()
    text, json, number = Serdes.string(), JsonSerde(), Serdes.long()
    orders = builder.stream("orders", Consumed(key_serde=text, value_serde=json))
    grouped = orders.group_by_key(Grouped(key_serde=text, value_serde=json))
    grouped.aggregate(
        lambda: 0, lambda key, order, sum: sum + prices.of(order),
        materialized=Materialized("spent", key_serde=text, value_serde=number))
    return builder
"""
PRICES = """
def of(order):
    return order["value"]["n"] if "value" in order else order["n"]

def customer(row):
    return row["key"]
"""
JOB = """
import json
import sys

from pyspark.sql import SparkSession

from pykstreams.spark import StoreBootstrap, backfill, bootstrap, register

master, lake, *applications = sys.argv[1:]
session = (
    SparkSession.builder.master(master)
    .config("spark.executor.memory", "512m")
    .config("spark.executor.cores", "1")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.sql.shuffle.partitions", "2")
    .getOrCreate()
)
options = dict(changelog="base-only", source_offsets=None, partitions=3, spark=session, modules=["prices.py"])
found = []
for number, application in enumerate(applications):
    spec = StoreBootstrap(
        "spent", f"{lake}/orders", key="prices:customer", value="value", timestamp="timestamp", content="records")
    bootstrap(application, [spec], out=f"{lake}/made-{number}", **options)
    backfill(application, {"orders": f"{lake}/orders"}, out=f"{lake}/filled-{number}", **options)
    register(session, app=application, modules=["prices.py"])
    for out in ("made", "filled"):
        rows = session.read.format("pykstreams").options(app=application, store="spent").load(f"{lake}/{out}-{number}")
        found.append(sorted([row.key, row.value] for row in rows.collect()))
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The driver's machine: what the executors do not have."""
    folder = tmp_path_factory.mktemp("driver")
    (folder / "tmp").mkdir()
    (folder / "shop.py").write_text(SHOP)
    (folder / "prices.py").write_text(PRICES)
    return folder


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """The folder that all machines have."""
    (tmp_path / "orders").mkdir()
    rows = [{"key": f"c{n % 7}", "value": {"n": n}, "timestamp": n} for n in range(200)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "orders" / "part.parquet")
    return tmp_path


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory, driver: Path) -> Iterator[str]:
    with standalone_cluster(tmp_path_factory.mktemp("cluster"), hidden=driver) as address:
        yield address


SPENT: list[tuple[str, int]] = [(f"c{c}", sum(n for n in range(200) if n % 7 == c)) for c in range(7)]


def run(command: list[str], driver: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command on the driver's machine."""
    environment = environment_of_driver(driver / "tmp")
    environment["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), environment["PATH"]))
    return subprocess.run(command, cwd=driver, env=environment, capture_output=True, text=True, timeout=PATIENCE_S)


@pytest.mark.nightly
def test_a_session_makes_and_reads_state_twice_where_executors_have_no_files_of_the_driver(
    master: str, driver: Path, lake: Path
) -> None:
    """The second time with another application, which has a script of the same name."""
    other = driver / "other"
    other.mkdir()
    (other / "shop.py").write_text(SHOP.replace("sum + prices", "sum - prices"))

    done = run([sys.executable, "-c", JOB, master, str(lake), "shop.py", str(other / "shop.py")], driver)

    assert 0 == done.returncode, done.stderr[-3000:]
    negative = [(key, -total) for key, total in SPENT]
    said = [[(key, total) for key, total in rows] for rows in json.loads(done.stdout)]
    assert [SPENT, SPENT, negative, negative] == said


@pytest.mark.nightly
def test_programs_of_the_page_make_and_show_state(master: str, driver: Path, lake: Path) -> None:
    def moved(text: str) -> str:
        return text.replace("/lake/", f"{lake}/").replace("spark://master:7077", master)

    [script] = PAGE.code
    (driver / "bootstrap_shop.py").write_text(moved(script.text))
    submit, command = PAGE.commands

    submitted, built = (run(["bash", "-c", moved(text)], driver) for text in (submit, command))

    assert (0, 0) == (submitted.returncode, built.returncode), submitted.stderr[-3000:] + built.stderr[-3000:]
    for key, total in SPENT:
        assert re.search(rf"\| *{key}\| *{total}\|", submitted.stdout), submitted.stdout
    assert "spent: 7 rows" in built.stdout
