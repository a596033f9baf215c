"""Windows that close while no records come, on a real broker, and a worker that takes them over."""

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
    """Counts in windows, whose results leave after half a second without input."""

    from pykstreams import BufferConfig, Consumed, Grouped, Produced, Serdes, StreamsBuilder, Suppressed, TimeWindows

    text, long = Serdes.string(), Serdes.long()

    def build(config):
        prefix = config["app.prefix"]
        builder = StreamsBuilder()
        (
            builder.stream(f"{prefix}-in", Consumed(key_serde=text, value_serde=text))
            .group_by_key(Grouped(key_serde=text, value_serde=text))
            .windowed_by(TimeWindows(1000))
            .count()
            .suppress(Suppressed.until_window_closes(BufferConfig(), idle=500))
            .to_stream(lambda windowed, _: windowed.key)
            .to(f"{prefix}-out", Produced(key_serde=text, value_serde=long))
        )
        return builder.build()
'''


@pytest.fixture
def app(bootstrap_servers: str, make_name: Callable[[str], str], tmp_path: Path) -> Iterator[Workers]:
    name = make_name("idle")
    for suffix in ("in", "out"):
        create_topic(bootstrap_servers, f"{name}-{suffix}", partitions=PARTITIONS)
    settings = ("processing.guarantee=exactly_once_v2", "num.standby.replicas=0")
    made = Workers(bootstrap_servers, name, tmp_path, SCRIPT, PARTITIONS, settings)
    yield made
    made.end()


@pytest.mark.nightly
def test_last_windows_close_without_records_and_once_although_a_worker_is_killed(app: Workers) -> None:
    def counts() -> dict[str, int]:
        found: dict[str, int] = {}
        for record in records_of(app.brokers, [app.topic("out")]):
            key = key_of(record).decode()
            found[key] = found.get(key, 0) + int.from_bytes(record.value() or b"", "big")
        return found

    app.start_all(["one"], PARTITIONS)
    app.send(("in", key, "x") for key in KEYS)
    app.wait("the last windows are closed", lambda: sum(counts().values()) >= len(KEYS))

    app.kill("one")
    app.delete_state("one")
    app.start_all(["one"], PARTITIONS)
    later = [f"later{number}" for number in range(10)]
    app.send(("in", key, "x") for key in later)
    app.wait("the last windows of its successor are closed", lambda: sum(counts().values()) >= 2 * len(KEYS))

    assert counts() == dict.fromkeys([*KEYS, *later], 1)
    app.stop("one")
