"""Spark builds the same bootstrap as the local engine, whatever happens to its tasks.

There are few tests with a session, each for several things, since a job takes seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pykstreams.core.errors import BootstrapError
from pykstreams.spark import BootstrapReport, SparkRead, StoreBootstrap, bootstrap
from pykstreams.state.bulk.manifest import read, verify

SCRIPT = """
import os
import signal
from pathlib import Path

from pykstreams import Consumed, Grouped, Materialized, Serdes, Stores, StreamsBuilder, TableJoined, TimeWindows
from pykstreams.serdes import JsonSerde

application_id = "shop"

def add(total, number):
    # where a file names a fault, it happens once
    fault = Path(__file__).parent / "fault"
    if number == 900 and fault.exists():
        how = fault.read_text()
        fault.unlink()
        if how == "exception":
            raise RuntimeError("this attempt fails")
        if how == "exit":
            os._exit(1)
        os.kill(os.getpid(), signal.SIGKILL)
    return total + number

def build():
    builder = StreamsBuilder()
    text, number, json = Serdes.string(), Serdes.long(), JsonSerde()
    as_json = Consumed(key_serde=text, value_serde=json)
    customers = builder.table("customers", as_json,
                              materialized=Materialized("customers", key_serde=text, value_serde=json))
    customers.join(builder.table("places", as_json), lambda customer, place: customer,
                   foreign_key_extractor=lambda customer: str(customer["n"] % 7), table_joined=TableJoined(name="by"))
    prices = Stores.persistent_versioned_key_value_store("prices", history_retention=10**9)
    builder.table("prices", Consumed(key_serde=text, value_serde=json),
                  materialized=Materialized(prices, key_serde=text, value_serde=json))
    records = builder.stream("records", Consumed(key_serde=text, value_serde=number))
    records.group_by_key(Grouped(key_serde=text, value_serde=number)).reduce(
        add, materialized=Materialized("totals", key_serde=text, value_serde=number))
    views = builder.stream("views", Consumed(key_serde=text, value_serde=json))
    views.group_by_key(Grouped(key_serde=text, value_serde=json)).windowed_by(TimeWindows(100, grace=10**9)).count(
        materialized=Materialized("windows", key_serde=text, value_serde=number))
    return builder
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "shop_of_tests.py"
    path.write_text(SCRIPT)
    return str(path)


@pytest.fixture
def source(tmp_path: Path) -> str:
    rows = [{"id": f"c{number % 700}", "n": number, "at": number} for number in range(1000)]
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    return str(path)


def built(script: str, out: Path, *stores: StoreBootstrap, **said: Any) -> BootstrapReport:
    options: Any = {"changelog": "base-only", "source_offsets": None, "partitions": 3, **said}
    return bootstrap(script, stores, out=out, **options)


def contents(report: BootstrapReport) -> dict[str, list[tuple[int, int, int]]]:
    """The part of a manifest that does not depend on files and attempts."""
    return {
        name: [(task.rows, task.content, task.observed_time) for _, task in sorted(store.tasks.items())]
        for name, store in report.manifest.stores.items()
    }


@pytest.mark.nightly
def test_spark_makes_the_same_rows_as_the_local_engine(script: str, source: str, spark: Any, tmp_path: Path) -> None:
    def stores(rows: Any) -> Iterator[StoreBootstrap]:
        yield StoreBootstrap("customers", rows, key="id", timestamp="at", latest=True)
        yield StoreBootstrap("by-subscription-store", rows, key="id", timestamp="at", latest=True)
        yield StoreBootstrap("prices", rows, key="id", timestamp="at")
        yield StoreBootstrap("windows", rows, key="id", timestamp="at", content="records")

    local = built(script, tmp_path / "local", *stores(source), engine="local", processes=2)
    with_spark = built(script, tmp_path / "spark", *stores(SparkRead("parquet", source)), spark=spark)

    assert contents(local) == contents(with_spark)
    assert [] == verify(tmp_path / "spark", read(tmp_path / "spark"))


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param("exception", marks=pytest.mark.nightly),
        pytest.param("exit", marks=pytest.mark.nightly),
        "kill",
    ],
)
def test_a_task_that_fails_in_the_middle_of_a_file_is_tried_again(
    fault: str, script: str, source: str, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one partition is divided among two tasks, of which one fails."""
    monkeypatch.setattr("pykstreams.bulk.engines.spark._SAMPLED_ROWS", 100)
    spec = StoreBootstrap("totals", source, key="id", value="n", timestamp="at", content="records")
    expected = contents(built(script, tmp_path / "local", spec, engine="local", partitions=1))
    (tmp_path / "fault").write_text(fault)

    report = built(script, tmp_path / "spark", spec, spark=spark, partitions=1)

    assert 2 == len(report.manifest.stores["totals"].tasks[0].files)
    assert not (tmp_path / "fault").exists()
    assert expected == contents(report)
    assert [] == verify(tmp_path / "spark", report.manifest)


def test_a_job_whose_rows_are_wrong_publishes_nothing(script: str, source: str, spark: Any, tmp_path: Path) -> None:
    with pytest.raises(BootstrapError, match=r"store .customers. was not built.*has another row that is as new"):
        built(script, tmp_path / "out", StoreBootstrap("customers", source, key="id"), spark=spark)

    assert not (tmp_path / "out" / "manifest.json").exists()
