"""Each family of the DSL on a real broker, with a restart in the middle: results must be exactly those without one.

One worker runs all of ``families.py``. Records are sent in steps; a step is sent when everything before it has been
processed and committed, so that the order of records of different topics is certain. Between steps 2 and 3 the worker
is stopped and started again: with its state, without it, or, under exactly-once, with state that another worker has
outrun, or killed while it processes step 2.

Times are told from the full hour on: brokers delete what is older than the retention of a topic, so it cannot be 1970.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import pytest
from confluent_kafka import Consumer, IsolationLevel, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec, ResourceType

from tests.integration import families
from tests.integration.families import HOUR_MS
from tests.kafka.brokers import create_topic

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0
TWO_PARTITIONS = ("words", "by-word-repartition", "counts")
SINKS = (
    "counts",
    "late-words",
    "sessions",
    "closed",
    "ended",
    "finals",
    "left-joined",
    "outer-joined",
    "named",
    "profiles",
    "customers",
    "customers-by-window",
)
REPARTITION_TOPICS = ("by-word-repartition", "by-customer-repartition")

Sent: TypeAlias = tuple[str, str | None, int]
"""(key, value, time)"""

Steps: TypeAlias = dict[int, list[Sent]]

Results: TypeAlias = dict[str, list[tuple[str | None, int]]]
"""(value, time) of every record, by key."""

# --- what is sent ---

WORDS: Steps = {
    1: [("0", "a", 10), ("0", "b", 20), ("0", "a", 30), ("0", "a", 160), ("0", "b", 160), ("0", "a", 60)],
    2: [("1", "c", 140), ("1", "c", 150), ("0", "b", 165)],
    3: [("0", "a", 170), ("0", "a", 70), ("0", "b", 170), ("1", "c", 155)],
    4: [("0", "b", 199), ("1", "c", 199)],
}
"""The key is the partition. A window takes records until 50 ms after its end: ``a`` at 60 and 70 is late."""

VISITS: Steps = {
    1: [("a", "", 10), ("a", "", 40), ("b", "", 30)],
    2: [("b", "", 60)],
    3: [("a", "", 80)],
    4: [("a", "", 300), ("b", "", 100)],
}
AMOUNTS: Steps = {
    1: [("a", "", 10), ("b", "", 20), ("a", "", 110)],
    2: [("a", "", 120), ("b", "", 130)],
    3: [("a", "", 140)],
    4: [("c", "", 210)],
}
LEFT: Steps = {
    1: [("a", "l1", 10), ("e", "l2", 15), ("e", "l3", 15)],
    2: [("b", "l4", 30), ("c", "l5", 40)],
    3: [("e", "l6", 15)],
    5: [("t", "l7", 300), ("t", "l8", 310)],
}
RIGHT: Steps = {
    1: [("b", "r1", 20)],
    3: [("c", "r2", 50), ("d", "r3", 60)],
    4: [("e", "r4", 65)],
}
NAMES: Steps = {
    1: [("a", "Ann", 10), ("b", "Bob", 11)],
    4: [("a", None, 40), ("c", "Cid", 41)],
}
CITIES: Steps = {
    2: [("a", "Oslo", 20)],
    3: [("b", "Bonn", 32)],
    5: [("a", None, 52)],
}
ORDERS: Steps = {
    2: [("b", "tea", 25)],
    3: [("a", "milk", 30), ("c", "rum", 31)],
    5: [("a", "gin", 50), ("c", "ale", 51)],
}
SECONDS: Steps = {
    1: [("a", "1", 10)],
    3: [("a", "2", 30)],
    5: [("b", "3", 50)],
}
PAGES: Steps = {
    2: [("site", "a:x", 20), ("site", "b:y", 21)],
    4: [("site", "a:z", 110)],
}
INPUTS = {
    "words": WORDS,
    "visits": VISITS,
    "amounts": AMOUNTS,
    "left": LEFT,
    "right": RIGHT,
    "names": NAMES,
    "cities": CITIES,
    "orders": ORDERS,
    "seconds": SECONDS,
    "pages": PAGES,
    "crash": {},
}

# --- running it ---


@dataclass
class App:
    """The application, its topics and its worker."""

    brokers: str
    name: str
    folder: Path
    hour: int
    """The full hour from which times are told, in ms."""
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _reader: Consumer | None = None

    @functools.cached_property
    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.brokers})

    @functools.cached_property
    def _producer(self) -> Producer:
        return Producer({"bootstrap.servers": self.brokers})

    def topic(self, name: str) -> str:
        return f"{self.name}-{name}"

    def create_topics(self) -> None:
        for name in (*INPUTS, *SINKS):
            create_topic(self.brokers, self.topic(name), partitions=partitions_of(name))

    def start(self, settings: dict[str, str] | None = None, *, state: str = "state") -> None:
        command = [sys.executable, "-m", "pykstreams", "run", families.__file__, "--application-id", self.name]
        command += ["--bootstrap-servers", self.brokers, "--state-dir", str(self.folder / state)]
        own = {"app.prefix": self.name, "app.folder": str(self.folder), "commit.interval.ms": "100"}
        for key, value in {**own, **(settings or {})}.items():
            command += ["--set", f"{key}={value}"]
        with self._log_file(len(self.processes)).open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": str(ROOT)})
        self.processes.append(process)
        self._wait("internal topics are there", lambda: set(REPARTITION_TOPICS) <= self.partitions().keys())

    def stop(self) -> None:
        self.processes[-1].send_signal(signal.SIGTERM)
        assert self.processes[-1].wait(PATIENCE_S) == 0, self.log()

    def kill(self) -> None:
        """Makes the worker kill itself, in the middle of a transaction."""
        self.send("crash", [("k", "now", 1)])
        assert self.processes[-1].wait(PATIENCE_S) == -signal.SIGKILL, self.log()
        assert self.unread() > 0

    def stop_all(self) -> None:
        if self._reader is not None:
            self._reader.close()
        for process in self.processes:
            process.kill()
            process.wait()

    def delete_state(self) -> None:
        shutil.rmtree(self.folder / "state")

    def log(self) -> str:
        """What the last worker has said."""
        return self._log_file(len(self.processes) - 1).read_text()

    def restored(self) -> set[str]:
        """The changelogs that the last worker has read, whole or in part."""
        found: list[str] = re.findall(rf"restored {self.name}-(\S+)-changelog-\d+,", self.log())
        return set(found)

    def send(self, name: str, rows: list[Sent]) -> None:
        for key, value, at in rows:
            partition = int(key) if name in TWO_PARTITIONS else 0
            self._producer.produce(self.topic(name), value, key, partition=partition, timestamp=self.hour + at)
        assert self._producer.flush(PATIENCE_S) == 0

    def send_step(self, number: int) -> None:
        for name, steps in INPUTS.items():
            self.send(name, steps.get(number, []))

    def first_steps(self) -> None:
        """Steps 1 and 2; what was read of repartition topics by then is gone."""
        self.send_step(1)
        self.wait_until_read()
        self._wait("repartition topics are purged", self._is_purged)
        self.send_step(2)
        self.wait_until_read()

    def wait_until_read(self) -> None:
        self._wait("everything is read", lambda: self.unread() == 0)

    def _wait(self, what: str, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not done():
            assert self.processes[-1].poll() is None, self.log()[-6000:]
            assert time.monotonic() < deadline, f"{what}: not within {PATIENCE_S:g} s\n{self.log()[-6000:]}"
            time.sleep(0.02)

    def unread(self) -> int:
        """How many records there are beyond the committed offsets, in whatever transactions."""
        if self._reader is None:
            self._reader = self._consumer(self.name, "read_uncommitted")
        committed = self._reader.committed(self._inputs(), timeout=10)
        # where nothing is committed, -2: the first record there is, which a purge may have moved
        starts = [TopicPartition(at.topic, at.partition, at.offset if at.offset >= 0 else -2) for at in committed]
        return len(read_to_the_end(self._reader, starts))

    def results(self) -> dict[str, Results]:
        """All records of each sink, as texts, in the order of their partitions."""
        places = [
            TopicPartition(self.topic(name), number, 0) for name in SINKS for number in range(partitions_of(name))
        ]
        self._wait_for_transactions(places)
        consumer = self._consumer("results", "read_committed")
        try:
            found: dict[str, Results] = {name: {} for name in SINKS}
            for topic, key, value, at in read_to_the_end(consumer, places):
                rows = found[topic.removeprefix(f"{self.name}-")].setdefault(self._key_text(topic, key), [])
                rows.append((None if value is None else value.decode(), at - self.hour))
            return found
        finally:
            consumer.close()

    def settings(self) -> dict[str, dict[str, str]]:
        """What the broker says about every internal topic, by name without the name of the application."""
        own = [
            ConfigResource(ResourceType.TOPIC, name)
            for name in self._admin.list_topics(timeout=10).topics
            if name.startswith(f"{self.name}-") and name.endswith(("-changelog", "-repartition"))
        ]
        return {
            resource.name.removeprefix(f"{self.name}-"): {key: entry.value for key, entry in done.result(10).items()}
            for resource, done in self._admin.describe_configs(own).items()
        }

    def partitions(self) -> dict[str, int]:
        topics = self._admin.list_topics(timeout=10).topics
        return {
            name.removeprefix(f"{self.name}-"): len(topic.partitions)
            for name, topic in topics.items()
            if name.startswith(f"{self.name}-")
        }

    def _key_text(self, topic: str, key: bytes) -> str:
        """The key; windowed ones are a key and the eight bytes of the start."""
        if topic != self.topic("counts"):
            return key.decode()
        return f"{key[:-8].decode()}@{int.from_bytes(key[-8:], 'big') - self.hour}"

    def _wait_for_transactions(self, places: list[TopicPartition]) -> None:
        """Waits for the end of transactions that were committed just now, so that all of their records can be seen."""
        deadline = time.monotonic() + PATIENCE_S
        while self._offsets(places) != self._offsets(places, isolation=IsolationLevel.READ_COMMITTED):
            assert time.monotonic() < deadline, "a transaction does not end"
            time.sleep(0.02)

    def _is_purged(self) -> bool:
        """Whether the first records of the repartition topics are gone."""
        places = [at for at in self._inputs() if at.topic.endswith("-repartition")]
        return any(self._offsets(places, OffsetSpec.earliest()))

    def _offsets(
        self,
        places: list[TopicPartition],
        spec: OffsetSpec | None = None,
        isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> list[int]:
        """The ends of partitions, or what else ``spec`` asks for."""
        asked = {TopicPartition(at.topic, at.partition): spec or OffsetSpec.latest() for at in places}
        return [done.result(10).offset for done in self._admin.list_offsets(asked, isolation_level=isolation).values()]

    def _inputs(self) -> list[TopicPartition]:
        """The partitions that are read, in the order of the steps that a record takes."""
        names = {name: partitions_of(name) for name in (*INPUTS, *REPARTITION_TOPICS)}
        return [TopicPartition(self.topic(name), number) for name, count in names.items() for number in range(count)]

    def _log_file(self, number: int) -> Path:
        return self.folder / f"{number}.log"

    def _consumer(self, group: str, isolation: str) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.brokers,
                "group.id": group,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 10,
                "isolation.level": isolation,
            }
        )


def partitions_of(name: str) -> int:
    return 2 if name in TWO_PARTITIONS else 1


def read_to_the_end(consumer: Consumer, places: list[TopicPartition]) -> list[tuple[str, bytes, bytes | None, int]]:
    """(topic, key, value, time) of all records of some partitions."""
    consumer.assign(places)
    deadline = time.monotonic() + PATIENCE_S
    found: list[tuple[str, bytes, bytes | None, int]] = []
    ended = 0
    while ended < len(places):
        assert time.monotonic() < deadline, f"only {ended} of {len(places)} partitions were read to their end"
        for message in consumer.consume(1000, 0.05):
            error = message.error()
            if error is None:
                found.append((message.topic(), message.key(), message.value(), message.timestamp()[1]))
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ended += 1
    return found


@dataclass(frozen=True)
class Run:
    """What is left when the application has stopped."""

    app: App
    way: Callable[[App], None]
    """How it was restarted."""
    results: dict[str, Results]
    restored: set[str]


EXACTLY_ONCE = {"processing.guarantee": "exactly_once_v2"}


def restart_with_state(app: App) -> None:
    app.start()
    app.first_steps()
    app.stop()
    app.start()


def restart_without_state(app: App) -> None:
    app.start()
    app.first_steps()
    app.stop()
    app.delete_state()
    app.start()


def restart_with_old_state(app: App) -> None:
    """A worker on another machine has done step 2; what that changed is read into state that stands at step 1."""
    app.start(EXACTLY_ONCE)
    app.send_step(1)
    app.wait_until_read()
    app.stop()
    app.start(EXACTLY_ONCE, state="elsewhere")
    app.send_step(2)
    app.wait_until_read()
    app.stop()
    app.start(EXACTLY_ONCE)


def crash_under_exactly_once(app: App) -> None:
    app.start({**EXACTLY_ONCE, "commit.interval.ms": "1000"})
    app.send_step(1)
    app.wait_until_read()
    app.send_step(2)
    app.kill()
    app.start(EXACTLY_ONCE)
    app.wait_until_read()


WAYS = [restart_with_state, restart_without_state, restart_with_old_state, crash_under_exactly_once]


@pytest.fixture(scope="module", params=WAYS)
def run(
    request: pytest.FixtureRequest,
    bootstrap_servers: str,
    make_name: Callable[[str], str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Run]:
    """The application after all steps, once for each way to restart it."""
    hour = int(time.time()) // 3600 * HOUR_MS
    app = App(bootstrap_servers, make_name("families"), tmp_path_factory.mktemp("families"), hour)
    try:
        app.create_topics()
        request.param(app)
        for step in (3, 4, 5):
            app.send_step(step)
            app.wait_until_read()
        restored = app.restored()
        app.stop()
        yield Run(app, request.param, app.results(), restored)
    finally:
        app.stop_all()


# --- what must come out ---


def test_windowed_counts_behind_a_repartition_topic_are_exact(run: Run) -> None:
    assert run.results["counts"] == {
        "a@0": [("1", 10), ("2", 30)],
        "a@100": [("1", 160), ("2", 170)],
        "b@0": [("1", 20)],
        "b@100": [("1", 160), ("2", 165), ("3", 170), ("4", 199)],
        "c@100": [("1", 140), ("2", 150), ("3", 155), ("4", 199)],
    }


def test_records_behind_a_closed_window_are_late_before_and_after_the_restart(run: Run) -> None:
    """After it once the operator has seen the time again: as in Kafka Streams it does not keep what it observed."""
    assert run.results["late-words"] == {"a": [("a", 60), ("a", 70)]}


def test_session_goes_on_after_the_restart_and_late_records_stay_out(run: Run) -> None:
    assert run.results["sessions"] == {
        "a@10-10": [("1", 10), ("None", 10)],
        "a@10-40": [("2", 40), ("None", 40)],
        "a@10-80": [("3", 80)],
        "a@300-300": [("1", 300)],
        "b@30-30": [("1", 30), ("None", 30)],
        "b@30-60": [("2", 60)],
    }


def test_windows_emitted_on_close_before_the_restart_are_not_emitted_after_it(run: Run) -> None:
    assert run.results["closed"] == {
        "a@0": [("1", 10)],
        "b@0": [("1", 20)],
        "a@100": [("3", 140)],
        "b@100": [("1", 130)],
    }


def test_sessions_emitted_on_close_before_the_restart_are_not_emitted_after_it(run: Run) -> None:
    assert run.results["ended"] == {
        "a@10-10": [("1", 10)],
        "b@20-20": [("1", 20)],
        "a@110-140": [("3", 140)],
        "b@130-130": [("1", 130)],
    }


def test_suppressed_windows_leave_the_buffer_once(run: Run) -> None:
    assert run.results["finals"] == {
        "a@0": [("1", 10)],
        "b@0": [("1", 20)],
        "a@100": [("3", 140)],
        "b@100": [("1", 130)],
    }


def test_left_join_pairs_across_the_restart_and_pads_each_unmatched_record_once(run: Run) -> None:
    assert run.results["left-joined"] == {
        "a": [("l1+None", 10)],
        "b": [("l4+r1", 30)],
        "c": [("l5+r2", 50)],
        "e": [("l2+r4", 65), ("l3+r4", 65), ("l6+r4", 65)],
    }


def test_outer_join_in_memory_pairs_across_the_restart_and_pads_each_unmatched_record_once(run: Run) -> None:
    assert run.results["outer-joined"] == {
        "a": [("l1+None", 10)],
        "b": [("l4+r1", 30)],
        "c": [("l5+r2", 50)],
        "d": [("None+r3", 60)],
        "e": [("l2+r4", 65), ("l3+r4", 65), ("l6+r4", 65)],
    }


def test_stream_is_joined_with_the_rows_that_its_table_had_before_the_restart(run: Run) -> None:
    assert run.results["named"] == {
        "a": [("milk+Ann", 30), ("gin+None", 50)],
        "b": [("tea+Bob", 25)],
        "c": [("rum+None", 31), ("ale+Cid", 51)],
    }


def test_table_is_joined_with_the_rows_that_the_other_had_before_the_restart(run: Run) -> None:
    assert run.results["profiles"] == {
        "a": [("Ann+None", 10), ("Ann+Oslo", 20), ("None+Oslo", 40), (None, 52)],
        "b": [("Bob+None", 11), ("Bob+Bonn", 32)],
        "c": [("Cid+None", 41)],
    }


def test_cogrouped_streams_go_on_with_one_aggregate(run: Run) -> None:
    assert run.results["customers"] == {
        "a": [("s1", 10), ("s1 px", 20), ("s1 px s2", 30), ("s1 px s2 pz", 110)],
        "b": [("py", 21), ("py s3", 50)],
    }


def test_cogrouped_streams_go_on_with_one_aggregate_a_window(run: Run) -> None:
    assert run.results["customers-by-window"] == {
        "a@0": [("s1", 10), ("s1 px", 20), ("s1 px s2", 30)],
        "a@100": [("pz", 110)],
        "b@0": [("py", 21), ("py s3", 50)],
    }


def test_changelogs_are_read_only_where_state_is_not_on_disk_or_too_old(run: Run) -> None:
    in_memory = {"finals-store"} | {f"outer-join-outer-{name}-join-store" for name in ("this", "other", "shared")}
    if run.way is restart_with_state:
        assert run.restored == in_memory
    if run.way is restart_without_state:
        assert run.restored == {name.removesuffix("-changelog") for name in CHANGELOGS}
    if run.way is restart_with_old_state:
        unchanged = {"left-join-outer-other-join-store", "names"}
        assert run.restored == {name.removesuffix("-changelog") for name in CHANGELOGS} - unchanged


# --- what stands on the broker ---

DAY_MS = 86_400_000
COMPACTED = {"cleanup.policy": "compact"}


def windowed(retention_ms: int, policy: str = "compact,delete") -> dict[str, str]:
    """A changelog is kept a day longer than its store (``windowstore.changelog.additional.retention.ms``)."""
    return {"cleanup.policy": policy, "retention.ms": str(DAY_MS + retention_ms)}


CHANGELOGS = {
    "counts-changelog": windowed(100 + 50),
    "sessions-changelog": windowed(50 + 20),
    "closed-changelog": windowed(100),
    "ended-changelog": windowed(50),
    "amounts-changelog": windowed(100),
    "finals-store-changelog": COMPACTED,
    "left-join-this-join-store-changelog": windowed(200, "delete"),
    "left-join-outer-other-join-store-changelog": windowed(200, "delete"),
    "left-join-left-shared-join-store-changelog": COMPACTED,
    "outer-join-outer-this-join-store-changelog": windowed(200, "delete"),
    "outer-join-outer-other-join-store-changelog": windowed(200, "delete"),
    "outer-join-outer-shared-join-store-changelog": COMPACTED,
    "names-changelog": COMPACTED,
    "cities-changelog": COMPACTED,
    "profiles-changelog": COMPACTED,
    "customers-changelog": COMPACTED,
    "customers-by-window-changelog": windowed(100 + 100),
}
"""As the conformance cases have recorded them of Kafka Streams, for windows of other lengths."""


def test_changelogs_have_the_settings_of_kafka_streams(run: Run) -> None:
    found = {name: settings for name, settings in run.app.settings().items() if name.endswith("-changelog")}

    assert {name: settings["message.timestamp.type"] for name, settings in found.items()} == dict.fromkeys(
        CHANGELOGS, "CreateTime"
    )
    shown = {name: {key: found[name][key] for key in wanted} for name, wanted in CHANGELOGS.items()}
    assert shown == CHANGELOGS


def test_repartition_topics_have_the_settings_of_kafka_streams_and_the_partitions_of_their_inputs(run: Run) -> None:
    settings, partitions = run.app.settings(), run.app.partitions()
    wanted = {
        "cleanup.policy": "delete",
        "message.timestamp.type": "CreateTime",
        "retention.ms": "-1",
        "segment.bytes": "52428800",
    }

    found = {name: {key: settings[name][key] for key in wanted} for name in settings if name.endswith("-repartition")}
    assert found == dict.fromkeys(REPARTITION_TOPICS, wanted)
    assert {name: partitions[name] for name in (*REPARTITION_TOPICS, "counts-changelog")} == {
        "by-word-repartition": 2,
        "by-customer-repartition": 1,
        "counts-changelog": 2,
    }
