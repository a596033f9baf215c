"""How long partitions stand still when a worker joins an application with much state, and when one is killed.

These are times of a machine that has nothing else to do, so both tests run by night only; that nothing is restored but
what a copy lacks, and nothing is lost, is held by ``test_standby_tasks.py`` and ``tests/faults`` on any machine.

    FAILOVER_STATE_MB=2048 pytest -m nightly tests/integration/test_failover.py
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.brokers.brokers import Brokers, create_topic
from tests.brokers.reaper import Process
from tests.integration.flow import Flow, now_ms
from tests.integration.workers import Workers
from tests.interop.java_host import compiled

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

STATE_MB = int(os.environ.get("FAILOVER_STATE_MB", "2048"))
PARTITIONS = 4
ROW_BYTES = 1000
PATIENCE_S = 1800.0
SETTLED_MS = 5000
"""So long records flow on after everything has moved, and before."""

JOIN_GAP_S = 1.0
SESSION_S = 5.0
KILL_GAP_S = SESSION_S + 2.0

BROKER = {
    # brokers look for transactions that took too long every ten seconds; here they end when their time is over
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}
PYTHON, JAVA = "python", "java"
_JVM = ("-Xmx512m", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")

SCRIPT = '''
    """Keeps the last row of each key, and tells who has done so."""

    from pykstreams import Consumed, Grouped, Materialized, Produced, Serdes, StreamsBuilder

    text = Serdes.string()

    def build(config):
        prefix, worker = config["app.prefix"], config["app.worker"]
        rows = StreamsBuilder()
        grouped = rows.stream(f"{prefix}-in", Consumed(key_serde=text, value_serde=text)).group_by_key(
            Grouped(key_serde=text, value_serde=text)
        )
        kept = grouped.reduce(
            lambda old, row: row, materialized=Materialized("kept", key_serde=text, value_serde=text)
        )
        written = Produced(key_serde=text, value_serde=text)
        kept.to_stream().map_values(lambda row: worker).to(f"{prefix}-out", written)
        return rows.build(config)
'''


class Application(Workers):
    """The application, each worker in either language, with a flow of records through it."""

    flow: Flow

    def start_in(self, language: str, worker: str) -> None:
        """Starts a worker that signs its results."""
        if language == PYTHON:
            self.start(worker, f"app.worker={worker}")
            return
        settings = dict(setting.partition("=")[::2] for setting in self.settings)
        settings |= {"app.prefix": self.name, "app.worker": worker, "commit.interval.ms": "1000"}
        settings |= {"application.id": self.name, "bootstrap.servers": self.brokers}
        settings["state.dir"] = str(self.folder / worker)
        file = self.folder / f"{worker}.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        path = compiled(Path(__file__).parent / "java" / "FailoverWorker.java")
        self.starts += 1
        with (self.folder / f"{self.starts}-{worker}.log").open("wb") as log:
            command = ["java", *_JVM, "-cp", path, "FailoverWorker", str(file)]
            self.processes[worker] = Process(command, stdout=log, stderr=log)

    def wait_for_results(self, what: str, done: Callable[[], bool]) -> None:
        def looked() -> bool:
            self.flow.look()
            return done()

        self.wait(what, looked)

    def shares(self) -> dict[str, int]:
        """How many partitions each worker writes the results of."""
        return {worker: len(self.flow.partitions_of(worker)) for worker in self.processes}

    def flow_on(self) -> None:
        """Lets records flow until results of some seconds have come."""
        until = now_ms() + SETTLED_MS
        self.wait_for_results("records flow", lambda: min(self._last().values(), default=0) >= until)

    def _last(self) -> dict[int, int]:
        return {result.partition: result.at_ms for result in self.flow.results}


@pytest.fixture
def make_application(
    start_broker: Callable[..., Brokers], make_name: Callable[[str], str], tmp_path: Path
) -> Iterator[Callable[..., Application]]:
    made: list[Application] = []

    def make(*settings: str) -> Application:
        servers, name = start_broker(BROKER).bootstrap_servers, make_name("failover")
        create_topic(servers, f"{name}-in", partitions=PARTITIONS)
        create_topic(servers, f"{name}-out", partitions=PARTITIONS, message_timestamp_type="LogAppendTime")
        fixed = ("statestore.cache.max.bytes=0", *settings)
        app = Application(servers, name, tmp_path, SCRIPT, PARTITIONS, fixed, patience_s=PATIENCE_S)
        app.flow = Flow(servers, app.topic("in"), app.topic("out"), PARTITIONS)
        made.append(app)
        return app

    yield make
    for app in made:
        app.flow.close()
        app.end()


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("language", [PYTHON, JAVA])
def test_partitions_go_on_while_a_worker_that_joins_warms_up_much_state(
    make_application: Callable[..., Application], language: str, record_property: Callable[[str, object], None]
) -> None:
    """A task moves when the new worker has its state; Java's times are reported beside ours, and held to nothing."""
    if language == JAVA and not all(map(shutil.which, ("java", "javac", "mvn"))):
        pytest.skip("Java and Maven are not on this machine; install a JDK, 17 or newer, and Maven")
    app = make_application("probing.rebalance.interval.ms=60000", "acceptable.recovery.lag=1000")
    rows = STATE_MB * (1 << 20) // ROW_BYTES
    app.flow.preload(rows, random.Random(7).randbytes(ROW_BYTES // 2).hex())
    app.start_in(language, "one")
    app.wait_for_results("the state is there", lambda: len(app.flow.results) >= rows)
    with app.flow.flowing():
        app.flow_on()
        began = now_ms()
        quiet = app.flow.longest_gaps_s(began - SETTLED_MS // 2, began)
        app.start_in(language, "two")
        app.wait_for_results("tasks have moved", lambda: app.shares() == {"one": 2, "two": 2})
        app.flow_on()
        ended = now_ms()
        app.flow_on()
    gaps = app.flow.longest_gaps_s(began, ended)
    said = (
        f"{language}, {STATE_MB} MB: longest gaps {gaps} s, {quiet} s before; moved within {(ended - began) / 1000} s"
    )
    print(said)
    record_property("gaps", said)

    assert language == JAVA or max(gaps.values()) < JOIN_GAP_S, said


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_partitions_of_a_killed_worker_are_back_within_its_session_where_another_has_copies(
    make_application: Callable[..., Application], guarantee: str, record_property: Callable[[str, object], None]
) -> None:
    app = make_application(
        f"processing.guarantee={guarantee}",
        "num.standby.replicas=1",
        f"consumer.session.timeout.ms={SESSION_S * 1000:.0f}",
        "consumer.heartbeat.interval.ms=1000",
        f"producer.transaction.timeout.ms={SESSION_S * 1000:.0f}",
    )
    app.start_in(PYTHON, "one")
    app.start_in(PYTHON, "two")
    with app.flow.flowing():
        app.wait_for_results("both have tasks", lambda: app.shares() == {"one": 2, "two": 2})
        app.flow_on()
        killed = now_ms()
        app.kill("two")
        del app.processes["two"]
        app.wait_for_results("one has all tasks", lambda: app.shares() == {"one": PARTITIONS})
        app.flow_on()
        ended = now_ms()
        app.flow_on()
    gaps = app.flow.longest_gaps_s(killed, ended)
    said = f"{guarantee}: longest gaps {gaps} s after a kill, with sessions of {SESSION_S:g} s"
    print(said)
    record_property("gaps", said)

    assert max(gaps.values()) <= KILL_GAP_S, said
