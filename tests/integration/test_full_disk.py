"""A full disk under the state of a worker: it waits for room, loses nothing, and goes on.

The disk is a small file system in memory, which only root can mount.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.brokers.brokers import create_topic
from tests.integration.workers import Workers

pytestmark = pytest.mark.slow

PARTITIONS = 2
KEYS = 60
VALUE_BYTES = 600_000
"""Together more than the write buffers of two stores hold, so that something must go to the disk."""
DISK_MB = 250
ROOT = 0

SCRIPT = '''
    """Counts records by key, and keeps the last value of each."""

    from pykstreams import Consumed, Grouped, Materialized, Produced, Serdes, StreamsBuilder

    text, number = Serdes.string(), Serdes.long()
    config = {"statestore.cache.max.bytes": 0}

    def build(config):
        prefix = config["app.prefix"]
        builder = StreamsBuilder()
        grouped = builder.stream(f"{prefix}-in", Consumed(key_serde=text, value_serde=text)).group_by_key(
            Grouped(key_serde=text, value_serde=text)
        )
        counts = grouped.count(materialized=Materialized("counts", key_serde=text, value_serde=number))
        counts.to_stream().to(f"{prefix}-counts", Produced(key_serde=text, value_serde=number))
        grouped.reduce(
            lambda old, new: new, materialized=Materialized("last", key_serde=text, value_serde=text)
        )
        return builder.build(config)
'''


class Application(Workers):
    """One worker whose state is on the small disk."""

    def send_large(self) -> None:
        values = random.Random(7)
        self.send(("in", f"k{number}", values.randbytes(VALUE_BYTES // 2).hex()) for number in range(KEYS))

    def send_small(self) -> None:
        self.send(("in", f"k{number}", "small") for number in range(KEYS))

    def counts(self) -> dict[str, int]:
        found = self.last_values(["counts"])["counts"]
        return {key: int.from_bytes(count or b"", "big") for key, count in found.items()}

    def least_count(self) -> int:
        found = self.counts()
        return min(found.values()) if len(found) == KEYS else 0

    def wait_for_counts(self, least: int) -> None:
        self.wait(f"every count is {least}", lambda: self.least_count() >= least)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if sys.platform != "linux" or os.geteuid() != ROOT:
        pytest.skip("a small disk is a tmpfs, which only root of Linux can mount; run this test as root")
    disk = tmp_path / "one"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", str(disk)], check=True)
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.fixture
def make_application(
    bootstrap_servers: str, make_name: Callable[[str], str], tmp_path: Path, small_disk: Path
) -> Iterator[Callable[..., Application]]:
    made: list[Application] = []

    def make(*settings: str) -> Application:
        name = make_name("full")
        for suffix in ("in", "counts"):
            create_topic(bootstrap_servers, f"{name}-{suffix}", partitions=PARTITIONS)
        made.append(Application(bootstrap_servers, name, tmp_path, SCRIPT, PARTITIONS, settings))
        return made[-1]

    yield make
    for one in made:
        one.end()


def fill(disk: Path) -> Path:
    """Writes a file that takes all the room there is."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(1 << 16))
        except OSError:
            return ballast


@pytest.mark.parametrize("guarantee", [pytest.param("at_least_once", marks=pytest.mark.nightly), "exactly_once_v2"])
def test_worker_waits_for_room_on_a_full_disk_and_goes_on_without_loss(
    make_application: Callable[..., Application], small_disk: Path, guarantee: str
) -> None:
    app = make_application(f"processing.guarantee={guarantee}")
    app.start("one")
    app.wait("both tasks run", lambda: app.running_tasks() == PARTITIONS)
    ballast = fill(small_disk)
    app.send_large()
    said, rounds = f"the disk of '{small_disk}", 1

    def told() -> bool:
        nonlocal rounds
        if said in app.log("one"):
            return True
        if app.least_count() == rounds:
            rounds += 1  # a write buffer that is full goes to the disk with the next write
            app.send_large()
        return False

    app.wait("the full disk is told", told)
    assert "bytes are free, and" in app.log("one")
    assert app.log("one").count("were given to this worker") == 1  # it was a member of the group all the time

    ballast.unlink()
    app.wait_for_counts(rounds)
    app.stop("one")
    app.start("one")
    app.send_small()
    app.wait_for_counts(rounds + 1)

    if guarantee == "exactly_once_v2":
        assert set(app.counts().values()) == {rounds + 1}
    app.stop("one")
