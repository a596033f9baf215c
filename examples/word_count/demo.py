"""The word count on a cluster that lives in this process: nothing but Python is needed.

    make demo                                       (or: python examples/word_count/demo.py --seconds 60)

Starts the embedded cluster, runs ``word_count.py`` as a worker process on it, writes a line of a poem every now and
then, and shows the counts as they arrive. Ends by itself, or with Ctrl-C.
"""

from __future__ import annotations

import argparse
import itertools
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, Producer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from pykstreams import Serdes
from pykstreams.testing import EmbeddedCluster

POEM = """\
Tyger Tyger, burning bright,
In the forests of the night;
What immortal hand or eye,
Could frame thy fearful symmetry?
In what distant deeps or skies.
Burnt the fire of thine eyes?
On what wings dare he aspire?
What the hand, dare seize the fire?""".splitlines()  # William Blake, 1794

HERE = Path(__file__).parent
SHOWN_WORDS = 12
LONGEST_BAR = 40


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=30, help="how long to run (default: 30)")
    seconds: float = parser.parse_args().seconds
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    console = Console()
    console.print("Starting an embedded cluster and a worker that runs [bold]examples/word_count/word_count.py[/] ...")
    with EmbeddedCluster() as cluster, tempfile.TemporaryDirectory(prefix="pykstreams-demo-") as state:
        cluster.create_topics("lines", "word-counts")
        with worker(cluster.bootstrap_servers, state) as process:
            threading.Thread(target=feed, args=(cluster.bootstrap_servers, stop), daemon=True).start()
            threading.Timer(seconds, stop.set).start()
            try:
                counts = show(cluster.bootstrap_servers, process, stop, console)
            except KeyboardInterrupt:
                counts = {}
            finally:
                stop.set()
            if process.poll() is not None:
                console.print(f"[red]The worker ended with code {process.returncode}; its log is above.[/]")
                return 1
    console.print(f"Done: {sum(counts.values())} words counted. The script is examples/word_count/word_count.py.")
    return 0


@contextmanager
def worker(brokers: str, state_dir: str) -> Iterator[subprocess.Popen[bytes]]:
    """Runs the topology script as a worker process; stops it in the end as an operator would, by SIGTERM."""
    command = [sys.executable, "-m", "pykstreams", "run", str(HERE / "word_count.py")]
    settings = {
        "application.id": "demo",
        "bootstrap.servers": brokers,
        "state.dir": state_dir,
        "commit.interval.ms": "500",
    }
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    process = subprocess.Popen([*command, "--log-level", "WARNING"], env=os.environ)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()


def feed(brokers: str, stop: threading.Event) -> None:
    """Writes the poem line by line, again and again."""
    producer = Producer({"bootstrap.servers": brokers})
    for number, line in enumerate(itertools.cycle(POEM)):
        producer.produce("lines", line.encode(), str(number % 4).encode())
        producer.poll(0)
        if stop.wait(0.2):
            break
    producer.flush(5)


def show(brokers: str, process: subprocess.Popen[bytes], stop: threading.Event, console: Console) -> dict[str, int]:
    """Reads the counts and draws the most frequent words until it is time to stop."""
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "demo-view", "auto.offset.reset": "earliest"})
    consumer.subscribe(["word-counts"])
    read_count = Serdes.long().deserializer.deserialize
    counts: dict[str, int] = {}
    try:
        with Live(table(counts), console=console, refresh_per_second=4) as live:
            while not stop.is_set() and process.poll() is None:
                for message in consumer.consume(500, 0.25):
                    if message.error() is None:
                        counts[(message.key() or b"").decode()] = read_count("word-counts", message.value()) or 0
                live.update(table(counts))
    finally:
        consumer.close()
    return counts


def table(counts: dict[str, int]) -> Table:
    """The most frequent words with a bar each: a block for each count, or less where the longest has no room."""
    result = Table("word", "count", "", title="word-counts (live)")
    ranked = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))[:SHOWN_WORDS]
    block = max(1.0, ranked[0][1] / LONGEST_BAR) if ranked else 1.0
    for word, count in ranked:
        result.add_row(word, str(count), "█" * round(count / block))
    if not ranked:
        result.add_row("...", "", "waiting for the worker")
    return result


if __name__ == "__main__":
    sys.exit(main())
