"""``pykstreams lag`` and ``status`` on a real broker: groups of both protocols, while they run and afterwards."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pykstreams import KafkaStreams
from pykstreams.cli.app import cli
from pykstreams.core.config import StreamsConfig
from pykstreams.dsl.script import load_script
from tests.brokers.brokers import create_topic
from tests.brokers.producers import producer_in_order

pytestmark = [pytest.mark.integration, pytest.mark.slow]

PATIENCE_S = 60.0


def script(name: str) -> str:
    return f"""
from pykstreams import Serdes, StreamsBuilder
application_id = "{name}"
config = {{"default.key.serde": Serdes.string(), "default.value.serde": Serdes.string()}}
def build():
    builder = StreamsBuilder()
    builder.stream("{name}-in").group_by(lambda key, value: value).count().to_stream().foreach(lambda key, value: None)
    return builder
"""


@pytest.mark.parametrize(
    ("protocol", "guarantee"),
    [("classic", "exactly_once_v2"), ("streams", "at_least_once")],
    ids=["classic", "streams"],
)
def test_lag_and_status_tell_of_a_group_before_while_and_after_it_runs(
    protocol: str, guarantee: str, bootstrap_servers: str, make_name: Callable[[str], str], tmp_path: Path
) -> None:
    name = make_name("lag")
    create_topic(bootstrap_servers, f"{name}-in", partitions=2)
    file = tmp_path / "app.py"
    file.write_text(script(name), encoding="utf-8")
    settings = {
        "bootstrap.servers": bootstrap_servers,
        "state.dir": str(tmp_path),
        "group.protocol": protocol,
        "processing.guarantee": guarantee,
        "commit.interval.ms": 100,
    }

    def asked(command: str) -> dict[str, Any]:
        pairs = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
        done = CliRunner().invoke(cli, [command, str(file), *pairs, "--format", "json"])
        assert done.exit_code == 0, done.output
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def wait_for(wanted: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not wanted():
            assert time.monotonic() < deadline
            time.sleep(0.2)

    def send(count: int) -> None:
        producer = producer_in_order(bootstrap_servers)
        for number in range(count):
            producer.produce(f"{name}-in", b"tea", str(number).encode(), partition=1)
        assert producer.flush(30) == 0

    send(3)
    before, nobody = asked("lag"), asked("status")
    assert (before["total"], before["input"], before["repartition"]) == (3, 3, 0)
    assert {one["task"]: one["lag"] for one in before["tasks"]} == {"0_0": 0, "0_1": 3, "1_0": 0, "1_1": 0}
    assert (nobody["members"], nobody["unassigned"]) == ([], ["0_0", "0_1", "1_0", "1_1"])

    loaded = load_script(str(file))
    config = StreamsConfig(loaded.settings).replace(settings)
    streams = KafkaStreams(loaded.build(config), config)
    streams.start()
    try:
        wait_for(lambda: asked("lag")["total"] == 0 and asked("status")["unassigned"] == [])
        running, who = asked("lag"), asked("status")
    finally:
        streams.close()
    send(2)
    after = asked("lag")

    assert running["protocol"] == who["protocol"] == protocol
    assert running["isolation_level"] == ("read_committed" if protocol == "classic" else "read_uncommitted")
    [partition] = [
        one for task in running["tasks"] for one in task["partitions"] if one["committed"] and one["kind"] == "input"
    ]
    assert partition == {"topic": f"{name}-in", "partition": 1, "kind": "input", "committed": 3, "end": 3, "lag": 0}
    assert who["state"] == "Stable"
    [member] = who["members"]
    assert (member["active"], member["standby"]) == (["0_0", "0_1", "1_0", "1_1"], [])
    assert member["process_id"]
    assert after["total"] == 2
