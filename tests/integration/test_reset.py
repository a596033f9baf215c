"""``pykstreams reset`` on a real broker: groups of both protocols, members that are in the way, topics that go."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from pykstreams import KafkaStreams
from pykstreams.cli.app import cli
from pykstreams.core.clock import SystemClock
from pykstreams.core.config import StreamsConfig
from pykstreams.core.ids import TopicPartition
from pykstreams.dsl.script import load_script
from pykstreams.runtime.clients.inspection.group_tools import GroupRequests, GroupTools
from tests.brokers.brokers import create_topic, wait_until_gone
from tests.brokers.producers import producer_in_order

pytestmark = [pytest.mark.integration, pytest.mark.slow]

PATIENCE_S = 60.0
SESSION_MS = 60_000
"""A member that has stopped is still in the group when the group is looked at."""


def script(name: str) -> str:
    return f"""
from pykstreams import Materialized, Serdes, StreamsBuilder
application_id = "{name}"
config = {{"default.key.serde": Serdes.string(), "default.value.serde": Serdes.string()}}
def build():
    builder = StreamsBuilder()
    builder.stream("{name}-in").group_by_key().count(materialized=Materialized("counts")).to_stream().foreach(print)
    return builder
"""


@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_reset_refuses_members_and_begins_anew_without_them(
    protocol: str, bootstrap_servers: str, make_name: Callable[[str], str], tmp_path: Path
) -> None:
    name = make_name("reset")
    create_topic(bootstrap_servers, f"{name}-in", partitions=1)
    file = tmp_path / "app.py"
    file.write_text(script(name), encoding="utf-8")
    settings = ["--bootstrap-servers", bootstrap_servers, "--state-dir", str(tmp_path), "--set"]
    settings.append(f"group.protocol={protocol}")

    def reset(*options: str) -> tuple[int, str]:
        done = CliRunner().invoke(cli, ["reset", str(file), *settings, *options])
        return done.exit_code, done.output

    producer = producer_in_order(bootstrap_servers)
    for number in range(3):
        producer.produce(f"{name}-in", b"tea", str(number).encode())
    assert producer.flush(30) == 0
    loaded = load_script(str(file))
    config = StreamsConfig(loaded.settings).replace(
        {
            "bootstrap.servers": bootstrap_servers,
            "state.dir": str(tmp_path),
            "group.protocol": protocol,
            "commit.interval.ms": 100,
            "consumer.session.timeout.ms": SESSION_MS,
        }
    )
    client = GroupRequests.open(config, "looks", thread=None)
    tools = GroupTools(client, SystemClock(), PATIENCE_S)

    def committed() -> int:
        place = TopicPartition(f"{name}-in", 0)
        return tools.committed([place]).get(place, (0, ""))[0]

    streams = KafkaStreams(loaded.build(config), config)
    streams.start()
    try:
        deadline = time.monotonic() + PATIENCE_S
        while committed() != 3:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        code, output = reset("--yes")
        assert code == 3
        assert f"group {name!r} ({protocol}) has 1 members" in output
    finally:
        streams.close()
        tools.close()

    # a classic member that has stopped stays in the group until its session times out, as in Kafka Streams
    code, output = reset("--yes", *(["--force"] if protocol == "classic" else []))

    assert code == 0, output
    assert ("remove member" in output) == (protocol == "classic")
    assert f"offset of {name}-in-0 in group {name}: 3 -> 0" in output
    assert f"delete topic {name}-counts-changelog" in output
    assert "(tasks 0_0)" in output
    wait_until_gone(bootstrap_servers, f"{name}-counts-changelog")
    code, output = reset("--to-current", "--dry-run")
    assert (code, output) == (0, "nothing to reset\n")
