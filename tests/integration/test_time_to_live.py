"""Rows with a time to live on a real broker, and a worker that takes their table over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.brokers.brokers import create_topic
from tests.brokers.records import key_of, records_of
from tests.integration.workers import Workers

pytestmark = pytest.mark.slow

PARTITIONS = 2
KEYS = [f"key{number}" for number in range(10)]

SCRIPT = '''
    """A table whose rows go three seconds after their timestamps, by the wall clock."""

    from pykstreams import Consumed, Materialized, Produced, PunctuationType, Serdes, StreamsBuilder

    text = Serdes.string()

    def build(config):
        prefix = config["app.prefix"]
        builder = StreamsBuilder()
        kept = Materialized("rows", time_to_live=3000, time_to_live_by=PunctuationType.WALL_CLOCK_TIME)
        table = builder.table(f"{prefix}-in", Consumed(key_serde=text, value_serde=text), materialized=kept)
        table.to_stream().to(f"{prefix}-out", Produced(key_serde=text, value_serde=text))
        return builder.build()
'''


@pytest.fixture
def app(bootstrap_servers: str, make_name: Callable[[str], str], tmp_path: Path) -> Iterator[Workers]:
    name = make_name("ttl")
    for suffix in ("in", "out"):
        create_topic(bootstrap_servers, f"{name}-{suffix}", partitions=PARTITIONS)
    settings = ("processing.guarantee=exactly_once_v2", "num.standby.replicas=0")
    made = Workers(bootstrap_servers, name, tmp_path, SCRIPT, PARTITIONS, settings)
    yield made
    made.end()


@pytest.mark.nightly
def test_rows_go_once_although_the_worker_is_killed_that_has_them_and_its_state_is_lost(app: Workers) -> None:
    def written(*, tombstones: bool) -> list[str]:
        records = records_of(app.brokers, [app.topic("out")])
        return sorted(key_of(record).decode() for record in records if (record.value() is None) is tombstones)

    app.start_all(["one"], PARTITIONS)
    app.send(("in", key, "x") for key in KEYS)
    app.wait("all rows are there", lambda: len(written(tombstones=False)) >= len(KEYS))
    app.kill("one")
    app.delete_state("one")
    app.start_all(["one"], PARTITIONS)
    app.wait("all rows have gone", lambda: len(written(tombstones=True)) >= len(KEYS))
    app.stop("one")

    assert (written(tombstones=False), written(tombstones=True)) == (KEYS, KEYS)
    assert app.last_values(["rows-changelog"]) == {"rows-changelog": dict.fromkeys(KEYS)}
