"""Backfills over a broker: a topology that was run over history is where one is that has read it as a stream.

Two applications run one topology over the same topics: a word count, a windowed count, a table-table join and a
foreign-key join, with four tasks each. One reads all records as they come. The other one is backfilled with the first
half, starts from that, and reads the rest. ``BACKFILL_RECORDS=1000000`` makes it as many records; that takes some
minutes. ``BACKFILL_ENGINE=spark`` has Spark do it.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pykstreams.spark import KafkaTopic, backfill
from tests.integration.twins import Record, Twins, subscriptions

pytestmark = pytest.mark.slow

RECORDS = int(os.environ.get("BACKFILL_RECORDS", "20000"))
ENGINE: Any = os.environ.get("BACKFILL_ENGINE", "local")
INPUTS = ("lines", "left", "right", "orders", "customers")
OUTPUTS = ("counts", "windows", "pairs", "priced")
SHOWN = {"FK-subscription-store": subscriptions}
PATIENCE_S = max(240.0, RECORDS / 500)
SEED = 20_261_121

SCRIPT = '''
    """Counts words and lines, and joins tables."""

    from pykstreams import Consumed, Grouped, Materialized, Produced, Serdes, StreamsBuilder, TableJoined, TimeWindows

    text, number = Serdes.string(), Serdes.long()

    def kept(name, value=text):
        return Materialized(name, key_serde=text, value_serde=value)

    def pair(one, other):
        return f"{one}+{other}"

    def build(config):
        prefix, inputs = config["app.prefix"], config["app.inputs"]
        as_text, as_number = Produced(key_serde=text, value_serde=text), Produced(key_serde=text, value_serde=number)
        builder = StreamsBuilder()

        def table(name):
            consumed = Consumed(key_serde=text, value_serde=text)
            return builder.table(f"{inputs}-{name}", consumed, materialized=kept(name))

        lines = builder.stream(f"{inputs}-lines", Consumed(key_serde=text, value_serde=text))
        words = lines.flat_map_values(str.split).group_by(
            lambda key, word: word, Grouped(name="words", key_serde=text, value_serde=text))
        words.count(materialized=kept("counts", number)).to_stream().to(f"{prefix}-counts", as_number)
        by_key = lines.group_by_key(Grouped(key_serde=text, value_serde=text))
        windows = by_key.windowed_by(TimeWindows(5_000, grace=86_400_000)).count(materialized=kept("windows", number))
        windows.to_stream(lambda key, value: f"{key.key}@{key.window.start}").to(f"{prefix}-windows", as_number)
        table("left").left_join(table("right"), pair, materialized=kept("pairs")).to_stream().to(
            f"{prefix}-pairs", as_text)
        priced = table("orders").join(
            table("customers"), pair, foreign_key_extractor=lambda order: order.partition("|")[0],
            table_joined=TableJoined(name="FK"), materialized=kept("priced"))
        priced.to_stream().to(f"{prefix}-priced", as_text)
        return builder.build()
'''


def drawn() -> Iterator[Record]:
    """Records with timestamps of their own each, in their order."""
    chance = random.Random(SEED)
    keys = max(RECORDS // 20, 10)
    now = int(time.time() * 1000) - 3 * RECORDS
    for at in range(RECORDS):
        topic = chance.choices(INPUTS, (40, 20, 15, 20, 5))[0]
        key = str(chance.randrange(keys if topic != "customers" else keys // 10 + 1))
        value: str | None = f"{topic[0]}{at}"
        if topic == "lines":
            value = " ".join(f"w{min(int(chance.expovariate(0.01)), 999)}" for _ in range(3))
        elif topic == "orders":
            value = f"{chance.randrange(keys // 10 + 1)}|{at}"
        if topic != "lines" and chance.random() < 0.1:
            value = None
        yield topic, key, value, now + at


@pytest.fixture
def twins(bootstrap_servers: str, make_name: Callable[[str], str], tmp_path: Path) -> Iterator[Twins]:
    made = Twins(bootstrap_servers, tmp_path, make_name, SCRIPT, INPUTS, OUTPUTS, PATIENCE_S)
    yield made
    made.end()


@pytest.mark.nightly
def test_backfilled_application_goes_on_as_one_that_has_read_all(twins: Twins) -> None:
    streaming = twins.make("streaming")
    backfilled = twins.make("backfilled")
    records = list(drawn())
    streaming.write(records[: RECORDS // 2])

    began = time.monotonic()
    backfill(
        str(backfilled.folder / "application.py"),
        {streaming.topic(name): KafkaTopic(streaming.topic(name)) for name in INPUTS},
        out=backfilled.folder / "bootstrap",
        engine=ENGINE,
        outputs="topics",
        config=backfilled.settings_of(),
        processes=2,
    )
    took = time.monotonic() - began
    began = time.monotonic()
    streaming.start_all(("one",), streaming.tasks)
    streaming.read_all()
    streaming.stop("one")
    streamed = time.monotonic() - began
    print(f"{RECORDS // 2} records: backfilled in {took:.1f} s by {ENGINE}, streamed in {streamed:.1f} s")

    assert streaming.stores(shown=SHOWN) == backfilled.stores_of_bootstrap(backfilled.folder / "bootstrap", SHOWN)
    assert streaming.outputs(OUTPUTS) == backfilled.outputs(OUTPUTS)

    backfilled.options = ("--bootstrap", str(backfilled.folder / "bootstrap"))
    streaming.write(records[RECORDS // 2 :])
    for app in (streaming, backfilled):
        app.start_all(("one",), app.tasks)
    for app in (streaming, backfilled):
        app.read_all()
        app.stop("one")

    assert streaming.stores(shown=SHOWN) == backfilled.stores(shown=SHOWN)
    assert streaming.outputs(OUTPUTS) == backfilled.outputs(OUTPUTS)
