"""How many rows a second a job turns into stores, from Parquet to published files, by kind of store and engine.

python -m benchmarks.bootstrap_job [--rows 1000000] [--tasks 4] [--engines local,spark] [--runs 3] [--many 20000000]
    [--plain 0] [--small 0]

Rows have a key of 9 bytes and a value of five fields. ``entries`` are rows of a table; ``records`` are summed up by
key, ten to a key; ``references`` are rows of the left table of a foreign-key join, which become subscriptions. Reported
are rows a second, medians of the runs, and the largest Python process beside the driver. The session of Spark is
started before; its driver has 2 GB.

``--many`` rows then go through Spark once, as entries: no process of Python may take more than 400 MB. If one does, or
the job fails for want of memory, the exit code is 1. ``--many 0`` leaves it out.

``--plain`` rows go through Spark as entries and through plain PySpark that does the same (``benchmarks.plain_spark``),
in turns; reported are the ratios of seconds and of processor time. ``--small`` stores of 27,000 rows are made in one
job, by each engine.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from tempfile import mkdtemp
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from benchmarks.cpu import cpu_seconds
from benchmarks.memory import JAVA, PYTHON, ProcessesBelow
from benchmarks.plain_spark import plain_job
from pykstreams import Consumed, Grouped, Materialized, Serdes, StreamsBuilder, Topology
from pykstreams.bulk.application import Application
from pykstreams.bulk.targets.left_table_rows import way_of
from pykstreams.serdes import JsonSerde
from pykstreams.spark import StoreBootstrap, bootstrap

application_id = "bootstrap-job-bench"

TEXT, NUMBER, JSON = Serdes.string(), Serdes.long(), JsonSerde[Any]()
ROWS_A_KEY: Final = 10
CHUNK: Final = 250_000
SMALL_STORES: Final = tuple(f"small-{number}" for number in range(12))
SMALL_ROWS: Final = 27_000
DRIVER_MEMORY: Final = "2g"
MOST_OF_A_PYTHON_PROCESS_MB: Final = 400


def build() -> Topology:
    """A table, a sum, the left side of a foreign-key join, and some small tables."""
    builder = StreamsBuilder()
    for name in SMALL_STORES:
        builder.table(name, Consumed(key_serde=TEXT, value_serde=JSON), materialized=Materialized(name))
    rows = builder.table("rows", Consumed(key_serde=TEXT, value_serde=JSON), materialized=Materialized("entries"))
    others = builder.table("others", Consumed(key_serde=TEXT, value_serde=JSON))
    rows.join(others, lambda row, other: row, foreign_key_extractor=lambda row: row["ref"])
    stream = builder.stream("records", Consumed(key_serde=TEXT, value_serde=NUMBER))
    stream.group_by_key(Grouped(key_serde=TEXT, value_serde=NUMBER)).reduce(
        lambda total, number: total + number, materialized=Materialized("records", key_serde=TEXT, value_serde=NUMBER)
    )
    return builder.build()


def write_rows(path: Path, rows: int) -> None:
    """Writes the snapshot, in no order of keys."""
    schema = pa.schema(
        [("id", pa.string()), ("group", pa.string()), ("ref", pa.string()), ("n", pa.int64()), ("at", pa.int64())]
    )
    with pq.ParquetWriter(path, schema) as writer:
        for first in range(0, rows, CHUNK):
            numbers = range(first, min(first + CHUNK, rows))
            mixed = [number * 7_919 % rows for number in numbers]
            columns = (
                [f"c{number:08}" for number in mixed],
                [f"g{number // ROWS_A_KEY:08}" for number in mixed],
                [f"r{number % 1000:04}" for number in mixed],
                list(numbers),
                [1_700_000_000_000 + number for number in numbers],
            )
            arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema), row_group_size=CHUNK)


def stores(source: Path) -> Iterator[tuple[str, StoreBootstrap]]:
    """What is made, by the name of the kind."""
    application = Application(__file__)
    names = (name for part in application.plan.subtopologies for name in part.stores)
    subscriptions = next(name for name in names if way_of(application.store(name)) is not None)
    yield "entries", StoreBootstrap("entries", source, key="id", timestamp="at")
    yield "records", StoreBootstrap("records", source, key="group", value="n", timestamp="at", content="records")
    yield "references", StoreBootstrap(subscriptions, source, key="id", timestamp="at")


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bootstrap_job", description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the snapshot (default: %(default)s)")
    parser.add_argument("--tasks", type=int, default=4, help="of the stores (default: %(default)s)")
    parser.add_argument("--engines", default="local,spark", help="which (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="of each kind and engine (default: %(default)s)")
    parser.add_argument(
        "--many", type=int, default=20_000_000, help="rows that go through at last (default: %(default)s)"
    )
    parser.add_argument("--plain", type=int, default=0, help="rows to hold against plain PySpark (default: none)")
    parser.add_argument("--small", type=int, default=0, help="small stores, at most 12 (default: none)")
    parser.add_argument("--folder", type=Path, help="where files are made (default: for temporary files)")
    given = parser.parse_args()
    engines, console = given.engines.split(","), Console()
    if given.many or given.plain:
        engines += [] if "spark" in engines else ["spark"]
    folder = Path(mkdtemp(prefix="pykstreams-bootstrap-job-", dir=given.folder))
    try:
        spark = _session(folder) if "spark" in engines else None
        for engine in given.engines.split(","):
            if given.rows:
                console.print(_rates(given, folder, engine, spark))
            if given.small:
                console.print(_small(given, folder, engine, spark), highlight=False)
        if given.plain:
            console.print(_against_plain(given, folder, spark))
        bounded = _many(given, folder, spark, console) if given.many else True
        if spark is not None:
            spark.stop()
    finally:
        shutil.rmtree(folder)
    return 0 if bounded else 1


def _rates(given: argparse.Namespace, folder: Path, engine: str, spark: Any) -> Table:
    """Builds each kind of store some times."""
    source = folder / f"{given.rows}.parquet"
    if not source.exists():
        write_rows(source, given.rows)
    title = f"engine {engine}: {given.rows:,} rows, {given.tasks} tasks, {os.cpu_count()} cores"
    table = Table(title=title, title_justify="left")
    for column in ("rows are", "rows/s", "of the runs", "largest Python process"):
        table.add_column(column, justify="left" if column == "rows are" else "right")
    for kind, spec in stores(source):
        with ProcessesBelow() as processes:
            rates = [given.rows / _build([spec], folder, engine, given.tasks, spark) for _ in range(given.runs)]
        runs = " ".join(f"{rate:,.0f}" for rate in rates)
        table.add_row(kind, f"{median(rates):,.0f}", runs, f"{processes.largest(PYTHON) or 0} MB")
    return table


def _many(given: argparse.Namespace, folder: Path, spark: Any, console: Console) -> bool:
    """Builds one large store by Spark; says whether memory stayed within its bounds."""
    source = folder / f"{given.many}.parquet"
    write_rows(source, given.many)
    spec = next(spec for kind, spec in stores(source) if kind == "entries")
    with ProcessesBelow() as processes:
        seconds = _build([spec], folder, "spark", given.tasks, spark)
    largest = processes.largest(PYTHON)
    console.print(
        f"{given.many:,} rows by Spark with {DRIVER_MEMORY} of driver memory: {seconds:.0f} s, "
        f"{given.many / seconds:,.0f} rows/s; the largest Python process had {largest} MB (at most "
        f"{MOST_OF_A_PYTHON_PROCESS_MB} wanted), the JVM {processes.largest(JAVA)} MB with all that is not heap",
        highlight=False,
    )
    return largest is not None and largest <= MOST_OF_A_PYTHON_PROCESS_MB


def _small(given: argparse.Namespace, folder: Path, engine: str, spark: Any) -> str:
    """Builds some small stores in one job."""
    source = folder / "small.parquet"
    if not source.exists():
        write_rows(source, SMALL_ROWS)
    specs = [StoreBootstrap(name, source, key="id", timestamp="at") for name in SMALL_STORES[: given.small]]
    before = cpu_seconds()
    seconds = [_build(specs, folder, engine, given.tasks, spark) for _ in range(given.runs)]
    cpu = (cpu_seconds() - before) / given.runs
    return f"engine {engine}: {len(specs)} stores of {SMALL_ROWS:,} rows: {median(seconds):.1f} s, {cpu:.1f} s of CPU"


def _against_plain(given: argparse.Namespace, folder: Path, spark: Any) -> Table:
    """Builds a table by the job and by plain PySpark, in turns."""
    source = folder / f"{given.plain}.parquet"
    if not source.exists():
        write_rows(source, given.plain)
    spec = StoreBootstrap("entries", source, key="id", timestamp="at")

    def plain() -> None:
        plain_job(spark, source, folder / "plain", given.tasks)
        shutil.rmtree(folder / "plain")

    ways: dict[str, Callable[[], object]] = {
        "plain PySpark": plain,
        "bootstrap": lambda: _build([spec], folder, "spark", given.tasks, spark),
    }
    took: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    for _ in range(given.runs):
        for way, run in ways.items():
            before, began = cpu_seconds(), time.perf_counter()
            run()
            took[way].append((time.perf_counter() - began, cpu_seconds() - before))
    table = Table(title=f"{given.plain:,} rows by Spark, {given.tasks} tasks, {os.cpu_count()} cores")
    for column in ("", "s", "s of CPU", "times plain, s", "times plain, CPU"):
        table.add_column(column, justify="right" if column else "left")
    medians = {way: [median(one) for one in zip(*found, strict=True)] for way, found in took.items()}
    plain_took = medians["plain PySpark"]
    for way, found in medians.items():
        ratios = [mine / theirs for mine, theirs in zip(found, plain_took, strict=True)]
        table.add_row(way, *(f"{one:.1f}" for one in found), *(f"{ratio:.2f}" for ratio in ratios))
    return table


def _build(specs: Sequence[StoreBootstrap], folder: Path, engine: Any, tasks: int, spark: Any) -> float:
    """Builds stores in one job, and deletes them; gives the seconds that the job took."""
    out = folder / "out"
    began = time.perf_counter()
    bootstrap(
        __file__,
        specs,
        out=out,
        engine=engine,
        changelog="base-only",
        source_offsets=None,
        partitions=tasks,
        spark=spark,
    )
    seconds = time.perf_counter() - began
    shutil.rmtree(out)
    return seconds


def _session(folder: Path) -> Any:
    """A session that has run Python once before it is measured."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.appName("pykstreams benchmark")
        .config("spark.driver.memory", DRIVER_MEMORY)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.local.dir", str(folder))
        .getOrCreate()
    )
    spark.range(100).mapInArrow(lambda batches: batches, "id long").count()
    return spark


if __name__ == "__main__":
    sys.exit(main())
