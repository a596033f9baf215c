"""Two instances over HTTP on a real broker, one of two processes: any answers for any key, also when one is killed."""

from __future__ import annotations

import http.client
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pykstreams.core.errors import ConfigError
from pykstreams.http import Address
from pykstreams.http.server import bound
from tests.brokers.producers import producer_in_order
from tests.brokers.reaper import Process

pytestmark = pytest.mark.slow

PARTITIONS, KEYS = 6, 60
PATIENCE_S = 180.0
ROOT = Path(__file__).parents[2]

SCRIPT = """
from pykstreams import Consumed, Grouped, Materialized, Serdes, StreamsBuilder
text = Serdes.string()
builder = StreamsBuilder()
orders = builder.stream({topic!r}, Consumed(key_serde=text, value_serde=text))
orders.group_by_key(Grouped(key_serde=text, value_serde=text)).count(materialized=Materialized("counts"))
"""


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def free_ports(count: int) -> int:
    """The first of some ports beside each other that nobody has."""
    for _ in range(100):
        with bound(Address.parse(":0")) as first:
            port = int(first.getsockname()[1])
        try:
            with ExitStack() as held:
                for number in range(port, port + count):
                    held.enter_context(bound(Address("127.0.0.1", number)))
            return port
        except ConfigError:
            continue
    raise AssertionError("no ports are free")


def get(port: int, target: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", target)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    except OSError:
        return 0, None
    finally:
        connection.close()


def end(process: Process) -> None:
    """Ends workers in order: those of a supervisor that is killed go on for a while, and miss their broker."""
    process.terminate()
    try:
        process.wait(PATIENCE_S)
    finally:
        process.kill()
        process.wait()


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def test_any_instance_answers_for_any_key_and_copies_when_its_owner_is_killed(
    bootstrap_servers: str,
    make_name: Callable[[str], str],
    make_topic: Callable[..., str],
    tmp_path: Path,
    stack: ExitStack,
) -> None:
    topic, name = make_topic("orders", partitions=PARTITIONS), make_name("shop")
    (tmp_path / "shop.py").write_text(SCRIPT.format(topic=topic))
    producer = producer_in_order(bootstrap_servers, {"partitioner": "murmur2_random"})
    for number in range(KEYS):
        producer.produce(topic, key=f"key-{number}", value="order")
    assert producer.flush(60) == 0

    def start(folder: str, port: int, workers: int) -> Process:
        settings = {
            "num.standby.replicas": 1,
            "commit.interval.ms": 200,
            "consumer.auto.offset.reset": "earliest",
        }
        process = Process(
            [
                *(sys.executable, "-m", "pykstreams", "run", str(tmp_path / "shop.py")),
                *("--bootstrap-servers", bootstrap_servers, "--application-id", name, "--http", f":{port}"),
                *("--state-dir", str(tmp_path / folder), "--workers", str(workers)),
                *(word for key, value in settings.items() for word in ("--set", f"{key}={value}")),
            ],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        stack.callback(end, process)
        return process

    port = free_ports(3)
    ports = [port, port + 1, port + 2]
    start("one", ports[0], 2)  # two processes, at two ports
    two = start("two", ports[2], 1)

    def hosts(role: str) -> list[set[str]]:
        """The hosts of all partitions, as each of the three processes says."""
        told = [get(one, "/stores/counts") for one in ports]
        if any(status != 200 for status, _ in told):
            return []
        parts = [body["partitions"] for _, body in told]
        if role == "active":
            return [{one["active"] for one in part} for part in parts]
        return [{",".join(one["standbys"]) for one in part} for part in parts]

    everybody = {f"127.0.0.1:{one}" for one in ports}
    wait_until(lambda: hosts("active") == [everybody] * 3, f"not all have tasks: {hosts('active')}")
    wait_until(
        lambda: bool(found := hosts("standbys")) and all("" not in one for one in found), "not all tasks have copies"
    )

    def owners(port: int, query: str = "") -> dict[str, Any]:
        found = {}
        for number in range(KEYS):
            status, body = get(port, f"/stores/counts/keys/key-{number}{query}")
            if status != 200 or body["value"] != 1:
                return {}
            found[f"key-{number}"] = body["from"]
        return found

    def answers_for_all(port: int) -> Callable[[], bool]:
        return lambda: len(owners(port)) == KEYS

    for one in ports:
        wait_until(answers_for_all(one), f"port {one} does not answer for every key")
        assert {source["host"] for source in owners(one).values()} == everybody
    rows = get(ports[0], f"/stores/counts/range?limit={KEYS}")[1]["rows"]
    assert sorted(row["key"] for row in rows) == sorted(f"key-{number}" for number in range(KEYS))

    away = f"127.0.0.1:{ports[2]}"
    lost = [key for key, source in owners(ports[0]).items() if source["host"] == away]
    wait_until(
        lambda: all(get(ports[2], f"/stores/counts/keys/{key}?scope=local&stale=0")[0] == 200 for key in lost),
        "the owner has not come to its state",
    )
    two.kill()
    two.wait()
    status, body = get(ports[0], f"/stores/counts/keys/{lost[0]}")
    assert status == 503
    assert body["type"] == "urn:pykstreams:problem:unavailable"
    for one in ports[:2]:  # long before the session of the killed one has ended
        for key in lost:
            status, body = get(one, f"/stores/counts/keys/{key}?stale=allow")
            assert (status, body["value"]) == (200, 1)
            assert body["from"]["role"] == "standby"
            assert body["from"]["host"] != away
            assert (body["from"]["offset_lag"], isinstance(body["from"]["stale_ms"], int)) == (0, True)
