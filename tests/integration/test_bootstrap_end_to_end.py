"""From a snapshot to a running application, on a real broker: in the end all is as if it had read everything itself.

Three applications run one topology over the same topics. One reads all records. For the other two a snapshot of the
topics is taken in the middle, into files as a lake has them; while records go on coming, one is backfilled from it, and
the stores of the other one are made of it one by one. Both start from what was made, read the rest, and then go on in a
fresh state directory, with no file of the bootstrap left.

``BOOTSTRAP_RECORDS=1000000`` makes it as many records, ``BOOTSTRAP_ENGINE=spark`` has Spark make the state.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Consumer, TopicPartition

from pykstreams.spark import KafkaTopic, StoreBootstrap, TopicHistory, backfill, bootstrap, export_state, register
from tests.integration.twins import PARTITIONS, Record, Twin, Twins, subscriptions, waiting

pytestmark = pytest.mark.slow

RECORDS = int(os.environ.get("BOOTSTRAP_RECORDS", "6000"))
ENGINE: Any = os.environ.get("BOOTSTRAP_ENGINE", "local")
INPUTS = ("sales", "clicks", "views", "customers", "orders", "prices")
OUTPUTS = ("sold", "spent", "windows", "visits", "matches", "priced", "bought", "valued")
SHOWN = {
    "FK-subscription-store": subscriptions,
    "matches-this-join-store": waiting,
    "matches-other-join-store": waiting,
}
PATIENCE_S = max(240.0, RECORDS / 500)
SEED = 20_261_122

SCRIPT = '''
    """Sums, windows, sessions, and joins of every kind."""

    from pykstreams import (
        Consumed, Grouped, JoinWindows, Materialized, Produced, Serdes, SessionWindows, Stores, StreamJoined,
        StreamsBuilder, TableJoined, TimeWindows,
    )

    text, number = Serdes.string(), Serdes.long()
    MINUTE = 60_000

    def kept(name, value=text):
        return Materialized(name, key_serde=text, value_serde=value)

    def pair(one, other):
        return f"{one}+{other}"

    def add(key, sale, total):
        return total + amount(sale)

    def customer(text):
        return text.partition("|")[0]

    def amount(text):
        return int(text.partition("|")[2])

    def build(config):
        prefix, inputs = config["app.prefix"], config["app.inputs"]
        read = Consumed(key_serde=text, value_serde=text)
        as_text, as_number = Produced(key_serde=text, value_serde=text), Produced(key_serde=text, value_serde=number)
        grouped = Grouped(key_serde=text, value_serde=text)
        builder = StreamsBuilder()

        def stream(name):
            return builder.stream(f"{inputs}-{name}", read)

        sales = stream("sales")
        by_product = sales.group_by_key(grouped)
        by_product.aggregate(lambda: 0, add, materialized=kept("sold", number)).to_stream().to(
            f"{prefix}-sold", as_number)
        by_customer = sales.group_by(lambda key, sale: customer(sale), grouped.replace(name="by-customer"))
        by_customer.aggregate(lambda: 0, add, materialized=kept("spent", number)).to_stream().to(
            f"{prefix}-spent", as_number)
        windows = by_product.windowed_by(TimeWindows(5_000, grace=MINUTE)).count(materialized=kept("windows", number))
        windows.to_stream(lambda key, value: f"{key.key}@{key.window.start}").to(f"{prefix}-windows", as_number)
        visits = by_product.windowed_by(SessionWindows(500, grace=MINUTE)).aggregate(
            lambda: 0, add, lambda key, one, other: one + other, materialized=kept("visits", number))
        visits.to_stream(lambda key, value: f"{key.key}@{key.window.start}-{key.window.end}").to(
            f"{prefix}-visits", as_number)

        prices = builder.table(f"{inputs}-prices", read, materialized=Materialized(
            Stores.persistent_versioned_key_value_store("prices", 10 * MINUTE), key_serde=text, value_serde=text))
        sales.left_join(prices, pair).to(f"{prefix}-valued", as_text)

        joined = StreamJoined(key_serde=text, value_serde=text, other_value_serde=text, store_name="matches")
        matches = stream("clicks").join(stream("views"), pair, windows=JoinWindows(1_000, grace=MINUTE),
                                        stream_joined=joined)
        matches.map(lambda key, both: (f"{key}:{both}", both)).to(f"{prefix}-matches", as_text)

        customers = builder.table(f"{inputs}-customers", read, materialized=kept("customers"))
        orders = builder.table(f"{inputs}-orders", read, materialized=kept("orders"))
        priced = orders.join(customers, pair, foreign_key_extractor=customer, table_joined=TableJoined(name="FK"),
                             materialized=kept("priced"))
        priced.to_stream().to(f"{prefix}-priced", as_text)
        bought = customers.one_to_many_join(orders, pair, key_extractor=customer, name="bought",
                                            materialized=Materialized("bought", value_serde=text))
        bought.to_stream().map(lambda key, both: (f"{key.prefix}/{key.suffix}", both)).to(
            f"{prefix}-bought", as_text)
        return builder.build()
'''


def drawn() -> Iterator[Record]:
    """Records with timestamps of their own each, in their order."""
    chance = random.Random(SEED)
    keys = max(RECORDS // 50, 10)
    now = int(time.time() * 1000) - 3 * RECORDS
    for at in range(RECORDS):
        topic = chance.choices(INPUTS, (35, 15, 15, 10, 20, 5))[0]
        key = str(chance.randrange(keys))
        value: str | None = f"{topic[0]}{at}"
        if topic in ("sales", "orders"):
            value = f"{chance.randrange(keys)}|{at}"
        if topic in ("customers", "orders", "prices") and chance.random() < 0.1:
            value = None
        yield topic, key, value, now + at


@pytest.fixture
def twins(bootstrap_servers: str, make_name: Callable[[str], str], tmp_path: Path) -> Iterator[Twins]:
    made = Twins(bootstrap_servers, tmp_path, make_name, SCRIPT, INPUTS, OUTPUTS, PATIENCE_S)
    yield made
    made.end()


@pytest.mark.nightly
def test_bootstrapped_applications_hold_and_send_what_one_does_that_has_read_all(twins: Twins, tmp_path: Path) -> None:
    streaming, backfilled, mapped = (twins.make(kind) for kind in ("streaming", "backfilled", "mapped"))
    records = list(drawn())
    streaming.write(records[: RECORDS // 2])
    lake, offsets = snapshot(records[: RECORDS // 2], tmp_path / "lake"), offsets_of(streaming)
    streaming.write(records[RECORDS // 2 : RECORDS * 3 // 4])

    began = time.monotonic()
    backfill(
        str(backfilled.folder / "application.py"),
        {
            backfilled.topic(name): TopicHistory(path, key=KEYS[name], value=VALUES[name], timestamp="at")
            for name, path in lake.items()
        },
        out=backfilled.folder / "bootstrap",
        engine=ENGINE,
        outputs="topics",
        source_offsets=offsets,
        config=backfilled.settings_of(),
        processes=2,
    )
    backfill_s, began = time.monotonic() - began, time.monotonic()
    bootstrap(
        str(mapped.folder / "application.py"),
        list(mappings(lake, backfilled)),
        out=mapped.folder / "bootstrap",
        engine=ENGINE,
        source_offsets=offsets,
        config=mapped.settings_of(),
        processes=2,
    )
    mapped_s = time.monotonic() - began
    print(f"{RECORDS // 2} records by {ENGINE}: backfilled in {backfill_s:.1f} s, mapped to stores in {mapped_s:.1f} s")

    for app in (backfilled, mapped):
        app.options = ("--bootstrap", str(app.folder / "bootstrap"))
    run("one", streaming, backfilled, mapped)
    assert_equal(streaming, "one", backfilled=backfilled, mapped=mapped)

    for app in (backfilled, mapped):
        shutil.rmtree(app.folder / "bootstrap")
        shutil.rmtree(app.folder / "one")
        app.options = ()
    streaming.write(records[RECORDS * 3 // 4 :])
    run("one", streaming)
    run("two", backfilled, mapped)
    assert_equal(streaming, "two", backfilled=backfilled, mapped=mapped)


KEYS = {"sales": "product", "clicks": "user", "views": "user", "customers": "id", "orders": "id", "prices": "product"}
VALUES = {name: "sale" if name == "sales" else "data" for name in INPUTS}


def snapshot(records: list[Record], folder: Path) -> dict[str, str]:
    """Writes the records of each topic to a file, with columns of its own."""
    folder.mkdir()
    paths = {}
    for name in INPUTS:
        rows = [(key, value, at) for topic, key, value, at in records if topic == name]
        columns = {
            KEYS[name]: pa.array([key for key, _, _ in rows], pa.string()),
            VALUES[name]: pa.array([value for _, value, _ in rows], pa.string()),
            "at": pa.array([at for _, _, at in rows], pa.timestamp("ms", "UTC")),
        }
        if name == "sales":
            columns["customer"] = pa.array([(value or "").partition("|")[0] for _, value, _ in rows], pa.string())
        paths[name] = str(folder / f"{name}.parquet")
        pq.write_table(pa.table(columns), paths[name], row_group_size=100_000)
    return paths


def offsets_of(app: Twin) -> dict[str, dict[int, int]]:
    """Where the input topics end now."""
    consumer = Consumer({"bootstrap.servers": app.brokers, "group.id": "offsets"})
    try:
        return {
            app.topic(name): {
                number: consumer.get_watermark_offsets(TopicPartition(app.topic(name), number), timeout=60)[1]
                for number in range(PARTITIONS)
            }
            for name in INPUTS
        }
    finally:
        consumer.close()


def mappings(lake: dict[str, str], other: Twin) -> Iterator[StoreBootstrap]:
    """Says for each store what it is made of: rows of the snapshot, or what joins gave, from the other's state."""
    for name in ("customers", "orders"):
        yield StoreBootstrap(name, lake[name], key="id", value="data", timestamp="at", latest=True)
    yield StoreBootstrap("prices", lake["prices"], key="product", value="data", timestamp="at")
    for name, key in (("sold", "product"), ("spent", "customer"), ("windows", "product"), ("visits", "product")):
        yield StoreBootstrap(name, lake["sales"], key=key, value="sale", timestamp="at", content="records")
    for name, side in (("clicks", "this"), ("views", "other")):
        yield StoreBootstrap(f"matches-{side}-join-store", lake[name], key="user", value="data", timestamp="at")
    for name in ("FK-subscription-store", "bought-shipped-store"):
        yield StoreBootstrap(name, lake["orders"], key="id", value="data", timestamp="at", latest=True)
    yield StoreBootstrap("priced", store_of(other, "priced"), key="key", value="value", timestamp="timestamp")
    yield StoreBootstrap("bought", KafkaTopic(f"{other.name}-bought-changelog"), content="changelog")


def store_of(app: Twin, name: str) -> Any:
    """A store of another application's bootstrap, as a source."""
    script, folder = str(app.folder / "application.py"), app.folder / "bootstrap"
    if ENGINE == "spark":
        from pykstreams.bulk.engines.spark import open_session

        spark = open_session()
        register(spark)
        settings = {key: str(value) for key, value in app.settings_of().items()}
        return spark.read.format("pykstreams").options(app=script, store=name, **settings).load(str(folder))
    path = app.folder / f"{name}.parquet"
    export_state(script, name, f"parquet:{path}", path=folder, config=app.settings_of())
    return path


def run(machine: str, *apps: Twin) -> None:
    """Has workers read all there is, and stops them."""
    for app in apps:
        app.start(machine)
    for app in apps:
        app.wait_for_tasks()
        app.read_all()
        app.stop(machine)


def assert_equal(streaming: Twin, machine: str, *, backfilled: Twin, mapped: Twin) -> None:
    """All have the same in their stores, and have sent the same; what was made of rows has sent nothing before."""
    stores, outputs = streaming.stores("one", SHOWN), streaming.outputs(OUTPUTS)
    assert stores == backfilled.stores(machine, SHOWN)
    assert stores == mapped.stores(machine, SHOWN)

    assert outputs == backfilled.outputs(OUTPUTS)
    for topic, values in mapped.outputs(OUTPUTS).items():
        assert values == {key: outputs[topic][key] for key in values}, topic
        new = {key for key, value in outputs[topic].items() if topic in PAIRS and newest(value) >= RECORDS // 2}
        assert new <= values.keys(), topic
        assert values, topic


PAIRS = ("matches", "priced", "bought", "valued")


def newest(value: bytes) -> int:
    """The number of the last record that has part in a pair."""
    return max(map(int, re.findall(rb"[|a-z](\d+)", value)))
