"""The example ``flight_delays.py``: what a stream makes of flights, and that a backfill makes the same of them."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.flight_delays.flight_delays import Delays, Flight, build, flight, main, results
from pykstreams.testing import TopologyTestDriver


@pytest.fixture
def driver() -> Iterator[TopologyTestDriver]:
    with TopologyTestDriver(build()) as driver:
        yield driver


def test_delays_of_an_airport_and_hour_are_averaged(driver: TopologyTestDriver) -> None:
    flights = driver.create_input_topic("flights", str, Flight)
    delays = driver.create_output_topic("delays", str, Delays)
    for airline, delay in (("UA", 10.0), ("DL", -3.0)):
        flights.pipe_input(airline, Flight("JFK", 6, delay))
    flights.pipe_input("UA", Flight("LGA", 6, 1.0))

    assert delays.read_key_values_to_dict() == {"JFK 06h": Delays(2, 7.0, 3.5), "LGA 06h": Delays(1, 1.0, 1.0)}


def test_cancelled_flights_are_left_out(driver: TopologyTestDriver) -> None:
    driver.create_input_topic("flights", str, Flight).pipe_input("UA", Flight("JFK", 6, None))

    assert driver.create_output_topic("delays", str, Delays).is_empty


@pytest.mark.slow
def test_backfill_of_a_day_ends_where_a_stream_of_its_flights_does(
    driver: TopologyTestDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["flight_delays.py", str(tmp_path), "--days", "1"])
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    main()

    assert capsys.readouterr().out.startswith("store delays: 54 rows\ntopic delays: 838 records\n")
    flights = driver.create_input_topic("flights", str, Flight)
    for row in rows(tmp_path / "flights.csv"):
        delay = None if row["dep_delay"] == "NA" else float(row["dep_delay"])
        flights.pipe_input(row["carrier"], flight({**row, "hour": int(row["hour"]), "dep_delay": delay}))
    assert driver.create_output_topic("delays", str, Delays).read_key_values_to_dict() == results(tmp_path / "backfill")


def rows(file: Path) -> list[dict[str, str]]:
    with file.open() as lines:
        return list(csv.DictReader(lines))
