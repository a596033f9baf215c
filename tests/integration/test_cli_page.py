"""The commands of ``docs/reference/cli.md``, in the order of the page, as a user types them: on a real broker."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.brokers import offsets
from tests.brokers.brokers import Brokers, create_topic
from tests.brokers.producers import producer_in_order
from tests.brokers.reaper import Process

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
PATIENCE_S = 90.0

SHOP = """
    from pykstreams import Consumed, Grouped, Materialized, Serdes, StreamsBuilder
    from pykstreams.serdes import JsonSerde

    application_id = "shop"
    text, json = Serdes.string(), JsonSerde()

    def build():
        builder = StreamsBuilder()
        builder.table("customers", Consumed(key_serde=text, value_serde=json), materialized=Materialized("customers"))
        orders = builder.stream("orders", Consumed(key_serde=text, value_serde=json))
        orders.group_by_key(Grouped(key_serde=text, value_serde=json)).count(materialized=Materialized("orders-of"))
        return builder
"""

PRICES = """
    from pykstreams import Consumed, Materialized, Serdes, Stores, StreamsBuilder

    application_id = "prices"
    builder = StreamsBuilder()
    kept = Materialized(Stores.persistent_versioned_key_value_store("prices", 10**12))
    builder.table("prices", Consumed(key_serde=Serdes.string(), value_serde=Serdes.string()), materialized=kept)
"""

TEA_CAME_AT = 1_767_200_000_000  # some hours before 2026-01-01


def commands() -> list[str]:
    """The lines of the page that start the program, without what is said of them."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE.split("\n## ", 1)[1], re.DOTALL | re.MULTILINE)
    lines = [line for _, block in blocks for line in block.splitlines() if line.startswith("pykstreams ")]
    return [line.partition(" #")[0].strip() for line in lines]


class CommandLine:
    """A folder with what the page speaks of, and a broker."""

    def __init__(self, folder: Path, brokers: str) -> None:
        self.folder = folder
        self.brokers = brokers
        self._places = {
            "localhost:9092": brokers,
            "/data/": f"{folder}/data/",
            "/lake/": f"{folder}/lake/",
            "/var/lib/": f"{folder}/lib/",
        }
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYKSTREAMS_BOOTSTRAP_SERVERS": brokers,
            "PYKSTREAMS_STATE_DIR": f"{folder}/lib/prices",
        }

    def here(self, command: str) -> str:
        """A command with the places of this shell, in which each needs a new folder for what it makes."""
        for there, here in self._places.items():
            command = command.replace(there, here)
        if command.startswith("pykstreams backfill"):
            command = command.replace("/data/shop", "/data/backfilled-shop")
        if command.startswith(("pykstreams backfill", "pykstreams bootstrap shop.py")):
            command += " --engine local --processes 1"  # of the two engines the one that starts at once
        if "--embedded" in command:
            command = f"env -u PYKSTREAMS_STATE_DIR -u PYKSTREAMS_BOOTSTRAP_SERVERS {command}"
        return command

    def run(self, command: str) -> str:
        """Runs a command to its end; gives what it has printed."""
        done = subprocess.run(
            ["bash", "-c", self.here(command)],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Has the word count run, with answers at the port that the page names."""
        self.send("lines", ("k", "tea and more tea", 1_000))
        log = self.folder / "served.log"
        command = ["pykstreams", "run", "word_count.py", "--state-dir", str(self.folder / "served"), "--http", ":0"]
        with log.open("wb") as out:
            process = Process(command, cwd=self.folder, env=self.environment, stdout=out, stderr=out)
        try:
            deadline = time.monotonic() + PATIENCE_S
            while True:
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                if port := re.search(r"HTTP at port (\d+)", log.read_text()):
                    self._places["localhost:8080"] = f"127.0.0.1:{port[1]}"
                    counts = self.here("pykstreams state show counts --url http://localhost:8080")
                    if (
                        "tea"
                        in subprocess.run(
                            ["bash", "-c", counts],
                            env=self.environment,
                            capture_output=True,
                            text=True,
                            timeout=PATIENCE_S,
                        ).stdout
                    ):
                        break
                time.sleep(0.1)
            yield
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_S) == 0, log.read_text()
        finally:
            process.kill()
            process.wait()

    def run_for_a_while(self, command: str, done: Callable[[str], bool]) -> None:
        """Starts workers, waits until something is done, by what they log for instance, and stops them."""
        log = self.folder / "run.log"
        with log.open("wb") as out:
            process = Process(
                shlex.split(self.here(command)), cwd=self.folder, env=self.environment, stdout=out, stderr=out
            )
        try:
            deadline = time.monotonic() + PATIENCE_S
            while not done(log.read_text()):
                assert process.poll() is None, f"{command}: {log.read_text()}"
                assert time.monotonic() < deadline, f"{command}: {log.read_text()}"
                time.sleep(0.1)
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_S) == 0, f"{command}: {log.read_text()}"
        finally:
            process.kill()
            process.wait()

    def send(self, topic: str, *rows: tuple[str, str, int]) -> None:
        producer = producer_in_order(self.brokers)
        for key, value, timestamp in rows:
            producer.produce(topic, value, key, timestamp=timestamp)
        assert producer.flush(30) == 0

    def send_dead_letter(self) -> None:
        """An order whose key is a number, and for which somebody did not answer in time."""
        why = {"exception": "builtins.TimeoutError", "topic": "orders", "partition": "0", "offset": "0"}
        headers: list[tuple[str, str | bytes | None]] = [
            (f"__streams.errors.{name}", text) for name, text in why.items()
        ]
        producer = producer_in_order(self.brokers)
        producer.produce("orders-dead", '{"n": 3}', (7).to_bytes(8, "big"), headers=headers)
        assert producer.flush(30) == 0

    def committed(self, group: str, topic: str) -> int:
        """How many records of a topic of two partitions a group has behind it."""
        consumer = Consumer({"bootstrap.servers": self.brokers, "group.id": group})
        try:
            found = offsets.committed(consumer, [TopicPartition(topic, number) for number in (0, 1)])
        finally:
            consumer.close()
        return sum(max(place.offset, 0) for place in found)


@pytest.fixture
def shell(start_broker: Callable[..., Brokers], tmp_path: Path) -> CommandLine:
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = CommandLine(tmp_path, start_broker().bootstrap_servers)
    for topic in ("lines", "word-counts", "customers", "orders", "orders-dead", "prices"):
        create_topic(found.brokers, topic, partitions=2)
    shutil.copy(ROOT / "examples" / "word_count" / "word_count.py", tmp_path)
    for path in ("shop.py", "shop/topology.py", "shop/__init__.py"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("" if path.endswith("__init__.py") else textwrap.dedent(SHOP))
    (tmp_path / "prices.py").write_text(textwrap.dedent(PRICES))
    (tmp_path / "shop.toml").write_text('application.id = "shop-with-workers"\n[consumer]\nfetch.min.bytes = 5\n')
    pq.write_table(pa.table({"id": ["ann", "bob"], "city": ["Rome", "Oslo"]}), tmp_path / "customers.parquet")
    (tmp_path / "lake" / "orders").mkdir(parents=True)
    orders = {"key": ["ann", "ann"], "value": ['{"n": 1}', '{"n": 2}'], "timestamp": [1_000, 2_000]}
    pq.write_table(pa.table(orders), tmp_path / "lake" / "orders" / "part.parquet")
    return found


def runs_by_now(log: str, *, workers: int) -> bool:
    return log.count("-> running") >= workers


def test_every_command_of_the_page_runs(shell: CommandLine) -> None:
    shell.send("prices", ("tea", "3.20", TEA_CAME_AT), ("tea", "3.40", TEA_CAME_AT + 10**9))
    shell.run_for_a_while(
        "pykstreams run prices.py --state-dir /var/lib/prices --set commit.interval.ms=100",
        lambda _: shell.committed("prices", "prices") == 2,
    )
    shell.send_dead_letter()
    said: dict[str, str] = {}

    for command in commands():
        if command.startswith("pykstreams run"):
            workers = re.search(r"--workers (\d+)", command)
            count = int(workers[1]) if workers else 1
            shell.run_for_a_while(command, partial(runs_by_now, workers=count))
        elif "--url " in command:
            with shell.serving():
                said[command] = shell.run(command)
        elif command.startswith("pykstreams backfill"):
            shell.environment["PYKSTREAMS_APPLICATION_ID"] = "shop-with-history"
            said[command] = shell.run(command)
        else:
            said[command] = shell.run(command)

    assert "3.40" in said["pykstreams state get prices.py prices tea"]
    assert "3.20" in said["pykstreams state get prices.py prices tea --as-of 2026-01-01T00:00Z"]
    assert (shell.folder / "shop.mmd").read_text().startswith("flowchart")
    assert (shell.folder / "word_count.html").read_text().startswith("<!DOCTYPE html>")
    assert (shell.folder / "prices.parquet").exists()
    assert "tea" in (shell.folder / "counts.json").read_text()
    letters = [text for command, text in said.items() if command.startswith("pykstreams dlq")]
    assert len(letters) == 4
    assert all("TimeoutError" in text for text in letters[:2]), letters
    assert len(said) >= 14


def test_script_of_the_page_names_the_application_and_its_settings(shell: CommandLine) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    script = shell.folder / "word_count.py"
    script.write_text(script.read_text() + block.replace("word-count", "named-by-the-page"))

    shell.run("pykstreams topics word_count.py > topics.txt")

    assert "named-by-the-page-words-repartition" in (shell.folder / "topics.txt").read_text()
