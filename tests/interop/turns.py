"""One application on which Java and Python take turns: workers are started and stopped, and read all there is.

Nothing here sleeps for a result: what is waited for is what workers say, or the state of the broker, with a deadline.
"""

from __future__ import annotations

import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from tests.brokers.brokers import create_topics
from tests.brokers.offsets import committed
from tests.brokers.producers import producer_in_order
from tests.brokers.reaper import Process
from tests.interop.java_host import PATIENCE_S, JavaHost
from tests.interop.modes import Mode
from tests.interop.outcome import Outcome, outcome_of
from tests.interop.programs import PROGRAMS, T0, Program, Row, rows_of

ROOT = Path(__file__).parents[2]
APPLICATIONS = Path(__file__).parent / "applications.py"
QUIET_S = 0.25
"""For so long nothing may change: longer than two commits, since operators commit numbers without a record."""

_NOT_THERE_YET = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_LEADER_EPOCH,
)

BETWEEN_TASKS = ("-repartition", "-topic")
"""How topics between tasks end; the latter are those of foreign-key joins."""

Places: TypeAlias = dict[tuple[str, int], int]

_SETTINGS = {
    "commit.interval.ms": "100",
    "statestore.cache.max.bytes": "0",
    "repartition.purge.interval.ms": "3600000",  # what was repartitioned is compared, too
    "poll.ms": "20",
    "producer.linger.ms": "0",
    # when windows are looked through would otherwise depend on the wall clock
    "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__": "0",
    "__emit.interval.ms.kstreams.windowed.aggregation__": "0",
}

_CLASSIC = {"consumer.session.timeout.ms": "6000", "consumer.heartbeat.interval.ms": "500"}
"""Those of a streams group are settings of the brokers."""


class Turns:
    """An application of its own on the brokers, with its topics and state directories.

    :param name: the application's id.
    :param make_host: makes a JVM, for workers that are to be killed.
    :param spec: what to agree on, if not what ``PROGRAMS`` says.
    """

    def __init__(
        self,
        name: str,
        program: str,
        mode: Mode,
        *,
        brokers: str,
        folder: Path,
        java: JavaHost,
        make_host: Callable[[Path], JavaHost],
        one_state_directory: bool = False,
        spec: Program | None = None,
    ) -> None:
        self.name, self.program, self.mode, self.brokers = name, program, mode, brokers
        self.spec = spec or PROGRAMS[program]
        self.prefix = f"{name}."
        self.folder = folder
        folder.mkdir()
        self.settings = {**_SETTINGS, "app.prefix": self.prefix, **self.spec.settings, **mode.settings}
        if self.settings.get("group.protocol") != "streams":
            self.settings.update(_CLASSIC)
        self.java = java
        self._make_host = make_host
        self._one_state_directory = one_state_directory
        self._admin = AdminClient({"bootstrap.servers": brokers, "log_level": 0})
        self._producer = producer_in_order(brokers, {"partitioner": "murmur2_random", "linger.ms": 0, "log_level": 0})
        self._group = self._consumer(name)
        self.starts = 0
        self._who = ""
        self._host = java
        self._python: Process | None = None
        self._create_topics()

    @property
    def exactly_once(self) -> bool:
        return self.settings.get("processing.guarantee") == "exactly_once_v2"

    # --- workers

    def play(self, pattern: str) -> Outcome:
        """Goes through all phases, and gives what they have left behind."""
        offsets = []
        for who, rows in zip(pattern, rows_of(self.program), strict=False):
            self.take_turn(who, rows)
            offsets.append(self.java.committed(self.brokers, self.name))
        return outcome_of(self, offsets)

    def take_turn(self, who: str, rows: list[Row]) -> None:
        """One phase: the first record, or all of them, are there before the worker starts."""
        first = rows[:1] if self.spec.steps else rows
        self.send(first)
        self.start(who)
        self.settle()
        for row in rows[len(first) :]:
            self.send([row])
            self.settle()
        self.stop(kill=self.mode.kill)

    def start(self, who: str) -> None:
        self._who = who
        self.starts += 1
        state = self.folder / ("state" if self._one_state_directory else f"state-{who}")
        if self.mode.fresh:
            shutil.rmtree(state, ignore_errors=True)
        if who == "P":
            self._start_python(state)
        else:
            self._host = self._make_host(self.folder / f"{self.starts}-J.log") if self.mode.kill else self.java
            own = {"application.id": self.name, "bootstrap.servers": self.brokers, "state.dir": str(state)}
            own["client.id"] = self._worker
            self._host.start(self._worker, self.program, {**self.settings, **own})

    def _start_python(self, state: Path) -> None:
        command = [sys.executable, "-m", "pykstreams", "run", f"{APPLICATIONS}:{self.program}"]
        command += ["--application-id", self.name, "--bootstrap-servers", self.brokers, "--state-dir", str(state)]
        for key, value in self.settings.items():
            command += ["--set", f"{key}={value}"]
        with self.python_log.open("wb") as log:
            self._python = Process(command, stdout=log, stderr=log, cwd=ROOT)

    def stop(self, *, kill: bool = False, leave: bool = True) -> None:
        """Ends the worker; whoever was killed is then waited for until the group has forgotten it."""
        if self._who == "P":
            assert self._python is not None
            self._python.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
            code = self._python.wait(PATIENCE_S)
            assert kill or code == 0, f"the worker stopped with {code}: {self.log_tail()}"
        elif kill:
            self._host.kill()
        else:
            self._host.stop(self._worker, leave=leave)
        self._who = ""
        if kill:  # Java does not join a group that has a dead member of Python's
            self.wait("the group is empty", self._group_is_empty)

    def end(self) -> None:
        """Ends what is still there, in whatever state."""
        if self._python is not None:
            self._python.kill()
            self._python.wait()
        if self._host is not self.java:
            self._host.kill()
        elif self._who in ("J", "K"):
            self._host.stop(self._worker, leave=True)
        self._group.close()

    @property
    def python_log(self) -> Path:
        return self.folder / f"{self.starts}-P.log"

    def log_tail(self) -> str:
        log = self.python_log
        return log.read_text(errors="replace")[-4000:] if log.exists() else self._host.log_tail()

    @property
    def _worker(self) -> str:
        return f"{self.name}_{self.starts}"

    def check(self) -> None:
        """Fails when the worker has failed."""
        if self._who == "P":
            assert self._python is not None
            assert self._python.poll() is None, f"the worker ended with {self._python.returncode}: {self.log_tail()}"
        elif self._who:
            self._host.check(self._worker)

    def wait(self, what: str, done: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
        deadline = time.monotonic() + patience_s
        while not done():
            self.check()
            assert time.monotonic() < deadline, f"{what}: not within {patience_s:g} s; {self.log_tail()}"
            time.sleep(0.05)

    def settle(self) -> None:
        """Waits until everything is read and committed, and stays so."""
        seen: list[tuple[float, Places, Places]] = []

        def settled() -> bool:
            ends, offsets = self.ends(), self._committed()
            if not seen or seen[0][1:] != (ends, offsets) or self._unread(ends, offsets):
                seen[:] = [(time.monotonic(), ends, offsets)]
            return time.monotonic() - seen[0][0] >= QUIET_S

        self.wait("everything is read and committed", settled)

    # --- the cluster

    def send(self, rows: Iterable[Row]) -> None:
        for row in rows:
            place: dict[str, Any] = {} if row.partition is None else {"partition": row.partition}
            self._producer.produce(
                self.prefix + row.topic, row.value, row.key, timestamp=T0 + row.time, headers=list(row.headers), **place
            )
        assert self._producer.flush(30) == 0

    def topics(self) -> dict[str, int]:
        """The application's topics, and how many partitions they have."""
        found = self._admin.list_topics(timeout=20).topics
        return {
            name: len(topic.partitions)
            for name, topic in found.items()
            if name.startswith((self.prefix, f"{self.name}-"))
        }

    def ends(self) -> Places:
        places = [TopicPartition(name, number) for name, count in self.topics().items() for number in range(count)]
        deadline = time.monotonic() + PATIENCE_S
        while True:
            asked = self._admin.list_offsets({place: OffsetSpec.latest() for place in places})
            try:
                return {(place.topic, place.partition): told.result(20).offset for place, told in asked.items()}
            except KafkaException as error:
                # topics that were made a moment ago
                if error.args[0].code() not in _NOT_THERE_YET or time.monotonic() > deadline:
                    raise

    def records(self, places: Iterable[TopicPartition], *, uncommitted: bool = False) -> list[Message]:
        """All records from these places on."""
        consumer = self._consumer("reader", uncommitted=uncommitted)
        wanted = list(places)
        consumer.assign(wanted)
        found: list[Message] = []
        ended = 0
        deadline = time.monotonic() + PATIENCE_S
        try:
            while ended < len(wanted):
                assert time.monotonic() < deadline, f"{wanted} cannot be read to the end"
                for message in consumer.consume(1000, 0.2):
                    error = message.error()
                    if error is None:
                        found.append(message)
                        continue
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    ended += 1
            return found
        finally:
            consumer.close()

    def _consumer(self, group: str, *, uncommitted: bool = False) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.brokers,
                "group.id": group,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_uncommitted" if uncommitted else "read_committed",
                "fetch.wait.max.ms": 20,
                "log_level": 0,
            }
        )

    def _create_topics(self) -> None:
        settings: dict[str, dict[str, str]] = {name: {} for name in (*self.spec.inputs, *self.spec.outputs)}
        if self.settings.get("topology.optimization") == "all" and not self.mode.deletes:
            for name in self.spec.tables:
                settings[name]["cleanup.policy"] = "compact"
        if self.spec.times_of_results:
            for name in self.spec.outputs:
                settings[name]["message.timestamp.type"] = "LogAppendTime"
        wanted = [
            NewTopic(self.prefix + name, self.spec.partitions, config=config) for name, config in settings.items()
        ]
        create_topics(self._admin, wanted)

    def _committed(self) -> Places:
        inputs = {self.prefix + name for name in self.spec.inputs}
        places = [
            TopicPartition(name, number)
            for name, count in self.topics().items()
            if name in inputs or name.endswith(BETWEEN_TASKS)
            for number in range(count)
        ]
        return {(place.topic, place.partition): max(0, place.offset) for place in committed(self._group, places)}

    def _unread(self, ends: Places, offsets: Places) -> bool:
        """Whether there are records beyond the committed offsets; the last offsets may be markers of transactions."""
        behind = [place for place, offset in offsets.items() if offset < ends.get(place, 0)]
        if not behind or not self.exactly_once:
            return bool(behind)
        return bool(self.records([TopicPartition(*place, offsets[place]) for place in behind], uncommitted=True))

    def _group_is_empty(self) -> bool:
        [description] = self._admin.describe_consumer_groups([self.name]).values()
        return description.result(30).state.name in ("EMPTY", "DEAD")
