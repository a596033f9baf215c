r"""Customers and what they have spent: the application starts from files instead of years of records.

    python examples/bootstrap_from_snapshot/bootstrap_from_snapshot.py /tmp/shop --engine local
    pykstreams bootstrap inspect /tmp/shop/bootstrap
    pykstreams run examples/bootstrap_from_snapshot/bootstrap_from_snapshot.py --embedded \
        --bootstrap /tmp/shop/bootstrap

The first command writes a snapshot, as a lake may have it (Parquet files of customers, orders and prices), and makes
the state of the application of it: the table ``customers``, the sums per customer ``spent`` by the very aggregator of
the topology, and the history of ``prices``. With ``--engine spark`` Spark does the same work. ``--bootstrap-servers``
notes where the topics end now and writes the rows to the changelogs, too; without, the folder is needed from then on.
"""

import argparse
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pykstreams import Materialized, Stores, StreamsBuilder, Topology

application_id = "shop"


def build() -> Topology:
    builder = StreamsBuilder()
    builder.table("customers", str, dict[str, Any], materialized="customers")
    prices = Stores.persistent_versioned_key_value_store("prices", history_retention=timedelta(days=3650))
    builder.table("prices", str, int, materialized=Materialized(prices))
    (
        builder.stream("orders", str, dict[str, Any])
        .group_by_key()
        .aggregate(int, add_order, materialized="spent")
        .to_stream()
        .to("spent-by-customer")
    )
    return builder.build()


def add_order(customer: str, order: dict[str, Any], spent: int) -> int:
    return spent + int(order["cents"])


def write_snapshot(folder: Path, customers: int = 1000) -> None:
    """Writes what a lake may have: the customers, all their orders, and how prices have changed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    chance, noon = random.Random(7), datetime(2026, 1, 1, 12, tzinfo=UTC)
    ids = [f"customer-{number}" for number in range(customers)]
    tables = {
        "customers": [{"id": id, "name": f"Name {id}", "since": noon} for id in ids],
        "orders": [
            {"customer": chance.choice(ids), "cents": chance.randrange(10_000), "at": noon + timedelta(minutes=number)}
            for number in range(10 * customers)
        ],
        "prices": [
            {"product": f"product-{product}", "cents": 100 * product + day, "from": noon + timedelta(days=day)}
            for product in range(20)
            for day in range(30)
        ],
    }
    for name, rows in tables.items():
        pq.write_table(pa.Table.from_pylist(rows), folder / f"{name}.parquet")


def bootstrap_from(folder: Path, engine: Any, bootstrap_servers: str | None) -> None:
    from pykstreams.spark import StoreBootstrap, bootstrap

    online = bootstrap_servers is not None
    report = bootstrap(
        __file__,
        [
            StoreBootstrap("customers", folder / "customers.parquet", key="id", timestamp="since"),
            StoreBootstrap("spent", folder / "orders.parquet", key="customer", timestamp="at", content="records"),
            StoreBootstrap("prices", folder / "prices.parquet", key="product", value="cents", timestamp="from"),
        ],
        out=folder / "bootstrap",
        engine=engine,
        changelog="write" if online else "base-only",
        source_offsets="now" if online else None,
        partitions=None if online else 4,
        config={"bootstrap.servers": bootstrap_servers} if online else None,
        progress=True,
    )
    for name, store in report.stores.items():
        print(f"{name}: {store.rows} rows")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--engine", choices=["local", "spark"], default="spark")
    arguments.add_argument("--bootstrap-servers")
    given = arguments.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    write_snapshot(given.folder)
    bootstrap_from(given.folder, given.engine, given.bootstrap_servers)


if __name__ == "__main__":
    main()
