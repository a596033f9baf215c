"""The commands of all pages, in their order, as a user types them: on a real broker.

Each page has a folder of its own, in which is what pages speak of: two topologies, a word count, tables in files.
Commands of ``pykstreams`` that end are called in this process; those that go on are started, waited for, and stopped by
Ctrl-C.

What ``docs/guides/backfill.md`` and ``docs/guides/bootstrap-from-a-snapshot.md`` say in Python is run here, too.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from pykstreams.cli.app import cli
from pykstreams.cli.exit_codes import ExitCode
from tests.brokers import offsets
from tests.brokers.brokers import Brokers, create_topic
from tests.brokers.producers import producer_in_order
from tests.docs.elsewhere import NOT_RUN, NOT_RUN_CODE, RUN_BY
from tests.docs.pages import ROOT, Page, pages
from tests.docs.shell import Running, Shell, runs_by_now

pytestmark = pytest.mark.slow

SHOP = """
    from pykstreams import Consumed, Grouped, Materialized, Serdes, StreamsBuilder
    from pykstreams.serdes import JsonSerde

    application_id = "shop"
    text, json = Serdes.string(), JsonSerde()

    def build():
        builder = StreamsBuilder()
        builder.table("customers", Consumed(key_serde=text, value_serde=json), materialized=Materialized("customers"))
        orders = builder.stream("orders", Consumed(key_serde=text, value_serde=json))
        orders.group_by_key(Grouped(key_serde=text, value_serde=json)).count(materialized=Materialized("spent"))
        return builder
"""

PRICES = """
    from pykstreams import Consumed, Materialized, Serdes, Stores, StreamsBuilder

    application_id = "{id}"
    builder = StreamsBuilder()
    kept = Materialized(Stores.persistent_versioned_key_value_store("{store}", 10**12))
    builder.table("prices", Consumed(key_serde=Serdes.string(), value_serde=Serdes.string()), materialized=kept)
"""

ORDER_SERDE = """
    from pykstreams.serdes import JsonSerde

    class OrderSerde(JsonSerde):
        pass
"""

TOPICS = ("lines", "word-counts", "customers", "orders", "orders-dead", "bills-dead", "prices-dead", "prices")
SCRIPTS = ("shop", "prices", "billing", "word_count")
TEA_CAME_AT = 1_767_200_000_000  # some hours before 2026-01-01
HERE = f"tests/integration/{Path(__file__).name}"
PAGES = [page for page in pages() if page.commands and RUN_BY.get(page.path, HERE) == HERE]
ENDS_WITH = {"pykstreams state get billing.py plans ann --as-of 2026-01-01T00:00Z": ExitCode.NOTHING_THERE}
"""The commands that do not end with 0: nobody has sent a plan to that application here."""
MAKES_FOLDERS = ("pykstreams init", "pykstreams bootstrap", "pykstreams backfill")
IN_PYTHON = ("docs/guides/backfill.md", "docs/guides/bootstrap-from-a-snapshot.md")


def is_of_a_running_application(command: str) -> bool:
    return "--url " in command or command.startswith("curl ")


@dataclass
class World:
    """Everything that pages speak of, and a broker."""

    folder: Path
    brokers: str
    shell: Shell = field(init=False)

    def __post_init__(self) -> None:
        places = {
            "localhost:9092": self.brokers,
            "kafka:9092": self.brokers,
            "/data/": f"{self.folder}/data/",
            "/lake/": f"{self.folder}/lake/",
            "/var/lib/prices": f"{self.folder}/lib",
            "/var/lib/word-count": f"{self.folder}/lib",
        }
        environment = {
            "PYKSTREAMS_BOOTSTRAP_SERVERS": self.brokers,
            "PYKSTREAMS_STATE_DIR": f"{self.folder}/lib",
        }
        self.shell = Shell(self.folder, places, environment)
        for topic in TOPICS:  # with times of long ago: by default the broker deletes such records, 30 s after its start
            create_topic(self.brokers, topic, partitions=2, retention_ms=-1)
        self._write_tables()
        self.enter("")

    def enter(self, name: str) -> None:
        """Goes to a new folder with the scripts that pages speak of, each an application of its own on that page."""
        folder = self.shell.folder = self.folder / "pages" / name if name else self.folder
        files = {
            "shop.py": SHOP,
            "shop/topology.py": SHOP,
            "shop/serdes.py": ORDER_SERDE,
            "shop/__init__.py": "",
            "prices.py": PRICES.format(id="prices", store="prices"),
            "billing.py": PRICES.format(id="billing", store="plans"),
            "word_count.py": (ROOT / "examples/word_count/word_count.py").read_text(),
            "examples/word_count/word_count.py": (ROOT / "examples/word_count/word_count.py").read_text(),
            "shop.toml": 'application.id = "shop-with-workers"\n[consumer]\nfetch.min.bytes = 5\n',
            "settings.toml": '"commit.interval.ms" = 5000\n',
            "shop.properties": "commit.interval.ms=5000\n",
        }
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            suffix = f'"shop-{name.replace(".", "-")}"' if name else '"shop"'
            (folder / path).write_text(textwrap.dedent(text).replace('"shop"', suffix))
        for path in ("customers.parquet", "orders"):
            there = self.folder / "lake" / path.removesuffix(".parquet")
            if not (folder / path).exists():
                shutil.copytree(there, folder / path) if path == "orders" else shutil.copy(
                    there / "part.parquet", folder / path
                )

    def send(self, topic: str, *rows: tuple[str, str, int]) -> None:
        producer = producer_in_order(self.brokers)
        for key, value, timestamp in rows:
            producer.produce(topic, value, key, timestamp=timestamp)
        assert producer.flush(30) == 0

    def send_dead_letters(self) -> None:
        """Orders whose key is a number, and for which somebody did not answer in time."""
        why = {"exception": "builtins.TimeoutError", "topic": "orders", "partition": "0", "offset": "0"}
        headers: list[tuple[str, str | bytes | None]] = [
            (f"__streams.errors.{name}", text) for name, text in why.items()
        ]
        producer = producer_in_order(self.brokers)
        for topic in (topic for topic in TOPICS if topic.endswith("-dead")):
            producer.produce(topic, '{"n": 3}', (7).to_bytes(8, "big"), headers=headers)
        assert producer.flush(30) == 0

    def forget_changelogs(self) -> None:
        """Deletes the changelog topics of jobs: each job is to be the first of its application."""
        admin = AdminClient({"bootstrap.servers": self.brokers})
        made = [topic for topic in admin.list_topics(timeout=30).topics if topic.endswith("-changelog")]
        jobs = [topic for topic in made if topic.startswith("shop-")]
        for done in admin.delete_topics(jobs).values() if jobs else ():
            done.result(30)

    def committed(self, group: str, topic: str) -> int:
        """How many records of a topic of two partitions a group has behind it."""
        consumer = Consumer({"bootstrap.servers": self.brokers, "group.id": group})
        try:
            found = offsets.committed(consumer, [TopicPartition(topic, number) for number in (0, 1)])
        finally:
            consumer.close()
        return sum(max(place.offset, 0) for place in found)

    def _write_tables(self) -> None:
        times = pa.array([1_000, 2_000], pa.int64())
        values = ['{"n": 1}', '{"n": 2}']
        for name, more in {
            "customers": {"id": ["ann", "bob"], "name": ["Ann", "Bob"], "country": ["it", "no"], "updated_at": times},
            "orders": {"customer": ["ann", "ann"], "n": [1, 2], "at": times},
        }.items():
            (self.folder / "lake" / name).mkdir(parents=True)
            table = pa.table({"key": ["ann", "bob"], "value": values, "timestamp": times, **more})
            pq.write_table(table, self.folder / "lake" / name / "part.parquet")


class Reader:
    """Somebody who types commands, and looks at what they print."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world = world
        self.said: dict[str, str] = {}
        self.failures: dict[str, str] = {}
        self._monkeypatch = monkeypatch
        self._running: list[Running] = []

    def read(self, page: Page, *, running: bool) -> None:
        """Types the commands of a page: those about a running application, or all others; equal ones once for all."""
        shell, folder = self.world.shell, self.world.shell.folder
        for command in (command for line in page.commands for command in ["cd .", *line.split(" && ")]):
            if command.startswith("cd "):
                shell.folder = folder / command.removeprefix("cd ")
            elif command.startswith(tuple(NOT_RUN)) or is_of_a_running_application(command) != running:
                continue
            elif command not in self.said or command.startswith(MAKES_FOLDERS):
                try:
                    self.type(command)
                except AssertionError as error:
                    self.failures[f"{page}: {command}"] = str(error)
        shell.folder = folder

    def type(self, command: str) -> None:
        """Types a command, and keeps what it says."""
        self.said[command] = ""
        if command.startswith("pykstreams run"):
            workers = re.search(r"--workers (\d+)", command)
            self.run(command, partial(runs_by_now, workers=int(workers[1]) if workers else 1))
        elif command.startswith("pykstreams top ") and "--once" not in command:
            self.run(command, lambda screen: len(screen) > 100)
        elif command.startswith("pykstreams "):
            self.said[command] = self._call(self._quick(command))
        elif command == "python -m pytest":  # in the folder of a project, which is no package
            package = self.world.shell.folder / "__init__.py"
            package.unlink(missing_ok=True)
            self.said[command] = self.world.shell.run(command)
            package.touch()
        else:
            self.said[command] = self.world.shell.run(command)

    def run(self, command: str, done: Callable[[str], bool]) -> None:
        running = self.start(command)
        try:
            running.wait_until(done)
            running.stop()
        finally:
            running.kill()

    def start(self, command: str) -> Running:
        shell = self.world.shell
        if command.startswith("pykstreams top"):
            command = f"env FORCE_COLOR=1 TERM=xterm {command}"  # draws as in a terminal
        if "--embedded" in command:
            command = f"env -u PYKSTREAMS_STATE_DIR -u PYKSTREAMS_BOOTSTRAP_SERVERS {command}"
        running = shell.start(re.sub(r"--http :?\d+", "--http :0", command))
        self._running.append(running)
        return running

    def close(self) -> None:
        for running in self._running:
            running.kill()

    def _quick(self, command: str) -> str:
        """A job with the engine that starts at once; what it makes is a new folder."""
        if out := re.search(r"--out (\S+)", command):
            self.world.forget_changelogs()
            shutil.rmtree(self.world.shell.here(out[1]), ignore_errors=True)
            if "--engine" not in command and "init" not in command:
                command += " --engine local --processes 1"
        return command

    def _call(self, command: str) -> str:
        """Calls a command in this process, and does what the shell does with what it prints."""
        shell = self.world.shell
        typed, pipe, program = shell.here(command).partition(" | ")
        typed, _, file = typed.partition(" > ")
        with self._monkeypatch.context() as patched, contextlib.chdir(shell.folder):
            patched.setattr(sys, "path", list(sys.path))
            for name, value in shell.environment.items():
                patched.setenv(name, value)
            for name in [name for name in sys.modules if name.partition(".")[0] in SCRIPTS]:
                patched.delitem(sys.modules, name)  # of another test in this process
            before = set(sys.modules)
            result = CliRunner().invoke(cli, shlex.split(typed)[1:], prog_name="pykstreams")
            for name in set(sys.modules) - before:
                if str(self.world.folder) in str(getattr(sys.modules[name], "__file__", "")):
                    del sys.modules[name]
        assert result.exit_code == ENDS_WITH.get(command, 0), f"{command}: {result.output}{result.exception}"
        if file:
            (shell.folder / file).write_text(result.stdout)
        if pipe:
            return subprocess.run(
                program, shell=True, input=result.stdout, capture_output=True, text=True, check=True, timeout=60
            ).stdout
        return result.stdout


@pytest.fixture
def world(start_broker: Callable[..., Brokers], tmp_path: Path) -> World:
    return World(tmp_path, start_broker().bootstrap_servers)


@pytest.fixture
def reader(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    found = Reader(world, monkeypatch)
    yield found
    found.close()


def serve(world: World, reader: Reader) -> Running:
    """Has both applications run whose state pages look at: one that is stopped then, and one that goes on."""
    world.send("prices", ("tea", "3.20", TEA_CAME_AT), ("tea", "3.40", TEA_CAME_AT + 10**9))
    world.send("lines", ("k", "tea and more tea, hello", 1_000))
    counts = reader.start("pykstreams run word_count.py --http :0")
    reader.run(
        "pykstreams run prices.py --set commit.interval.ms=100", lambda _: world.committed("prices", "prices") == 2
    )
    reader.run(
        "pykstreams run billing.py --set commit.interval.ms=100", lambda _: world.committed("billing", "prices") == 2
    )
    counts.wait_until(lambda log: runs_by_now(log) and "HTTP at port" in log)
    [port] = re.findall(r"HTTP at port (\d+)", counts.text)
    world.shell.places["localhost:8080"] = f"127.0.0.1:{port}"
    world.shell.run_until("curl localhost:8080/stores/counts/keys/tea", lambda answer: '"value":' in answer)
    return counts


def test_every_command_of_every_page_runs(world: World, reader: Reader) -> None:
    counts = serve(world, reader)
    world.send_dead_letters()
    for page in PAGES:
        world.enter(page.file.name)
        reader.read(page, running=True)
    counts.stop()
    world.enter("released")
    reader.type("pykstreams describe shop.py --format json > released.json")
    released = (world.shell.folder / "released.json").read_text()

    for page in PAGES:
        world.enter(page.file.name)
        write_files(world, page)
        own = released.replace("shop-released", f"shop-{page.file.name.replace('.', '-')}")
        (world.shell.folder / "released.json").write_text(own)
        reader.read(page, running=False)
    for path in IN_PYTHON:
        world.enter(f"python-of-{Page(path).file.name}")
        run_python(world, Page(path))

    assert reader.failures == {}
    said, folder = reader.said, world.folder / "pages" / "cli.md"
    assert "3.40" in said["pykstreams state get prices.py prices tea"]
    assert "3.20" in said["pykstreams state get prices.py prices tea --as-of 2026-01-01T00:00Z"]
    assert (folder / "shop.mmd").read_text().startswith("flowchart")
    assert (folder / "word_count.html").read_text().startswith("<!DOCTYPE html>")
    assert (folder / "prices.parquet").exists()
    assert "tea" in (folder / "counts.json").read_text()
    letters = [text for command, text in said.items() if command.startswith("pykstreams dlq list orders-dead")]
    assert letters and all("TimeoutError" in text for text in letters), letters


def write_files(world: World, page: Page) -> None:
    """A block that begins with the name of a file is that file."""
    for block in page.of("toml", "json", "yaml"):
        if name := re.match(r"# ([\w-]+\.\w+)\n", block.text):
            (world.shell.folder / name[1]).write_text(world.shell.here(block.text))


def run_python(world: World, page: Page) -> None:
    """Runs what a page says in Python of the same jobs."""
    for number, block in enumerate(page.code):
        if (page.path, number) in NOT_RUN_CODE:
            continue
        code = world.shell.here(block.text).replace("out=", 'engine="local", processes=1, out=')
        shutil.rmtree(world.folder / "data", ignore_errors=True)
        with contextlib.chdir(world.shell.folder), contextlib.redirect_stdout(io.StringIO()):
            exec(compile(code, str(page.file), "exec"), {"__name__": "page"})
        assert [*(world.folder / "data").rglob("manifest.json")], page.path


def test_script_of_the_page_names_the_application_and_its_settings(world: World) -> None:
    [block] = Page("docs/reference/cli.md").code
    script = world.folder / "word_count.py"
    script.write_text(script.read_text() + block.text.replace("word-count", "named-by-the-page"))

    assert "named-by-the-page-words-repartition" in world.shell.run("pykstreams topics word_count.py")
