"""Brokers that go away and come back, and workers that stand still: nobody ends, nobody stays silent, nothing is lost.

The faults happen at known places: a broker is killed while a transaction is open, a worker is stopped while it has
fetched what it has not processed. Only the length of an outage is a time; results are waited for, with a deadline.
"""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from pykstreams import StreamsConfig
from pykstreams.core.clock import SystemClock
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.clients.admin import ClusterAdmin
from pykstreams.runtime.clients.supplier import DefaultKafkaClientSupplier
from tests.brokers.brokers import Brokers, create_topic, wait_until_ready
from tests.brokers.producers import producer_in_order
from tests.brokers.records import counts_by_key, records_of
from tests.integration.workers import Workers

pytestmark = pytest.mark.slow

PARTITIONS = 2
PATIENCE_S = 60.0
RECOVERY_S = 30.0
"""So long after the end of an outage a worker may stay silent here: twice of what ``tests.faults`` allows, which has a
machine of its own."""

OUTAGE_S = 20.0
AT_LEAST_ONCE = "processing.guarantee=at_least_once"
EXACTLY_ONCE = "processing.guarantee=exactly_once_v2"
BY_NIGHT = pytest.mark.nightly
# A single broker that was away skips the markers of a transaction that ends while its partitions have no leader yet
# (Kafka 4.3.1, "likely deleted already"); it stays open for ever, and whoever restores state from it waits as long.
GUARANTEES = pytest.mark.parametrize("guarantee", [AT_LEAST_ONCE, pytest.param(EXACTLY_ONCE, marks=BY_NIGHT)])
LONG_SESSION = ("consumer.session.timeout.ms=45000",)
SHORT_SESSION = ("consumer.session.timeout.ms=2000", "consumer.heartbeat.interval.ms=300")
IMPATIENT = ("request.timeout.ms=5000",)

BROKER = {
    "broker.session.timeout.ms": "3000",  # a killed broker may register again after it
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}

SCRIPT = '''
    """Counts records by key, every count on its own; `hold...` waits for a file beside the state directory."""

    import time
    from pathlib import Path

    from pykstreams import Consumed, Grouped, Materialized, Produced, Serdes, StreamsBuilder

    text, number = Serdes.string(), Serdes.long()

    def build(config):
        prefix, state = config["app.prefix"], Path(config["state.dir"])

        def hold(value):
            if value.startswith("hold"):
                state.with_suffix(f".{value}").touch()
                while not any(state.with_suffix(f".{name}").exists() for name in ("go", f"{value}-go")):
                    time.sleep(0.01)
            return value

        builder = StreamsBuilder()
        lines = builder.stream(f"{prefix}-lines", Consumed(key_serde=text, value_serde=text)).map_values(hold)
        keys = lines.group_by_key(Grouped(key_serde=text, value_serde=text))
        counts = keys.count(materialized=Materialized("counts"))
        counts.to_stream().to(f"{prefix}-counts", Produced(key_serde=text, value_serde=number))
        return builder.build()
'''


@dataclass
class Counting(Workers):
    """An application that counts records by key, and what its topics hold."""

    sent: dict[str, int] = field(default_factory=dict)

    def send_keys(self, *keys: str, times: int = 1) -> None:
        """Sends records of keys; each must be counted."""
        self.send(("lines", key, "counted") for _ in range(times) for key in keys)
        for key in keys:
            self.sent[key] = self.sent.get(key, 0) + times

    def send_to(self, partition: int, *rows: tuple[str, str]) -> None:
        """Sends (key, value) rows to one partition, in order."""
        producer = producer_in_order(self.brokers)
        for key, value in rows:
            producer.produce(self.topic("lines"), value, key, partition)
            self.sent[key] = self.sent.get(key, 0) + 1
        assert producer.flush(60) == 0

    def counts(self, *, committed_only: bool = True) -> dict[str, list[int]]:
        """Every count that came out, in order, by key."""
        try:
            return counts_by_key(records_of(self.brokers, [self.topic("counts")], committed_only=committed_only))
        except (KafkaException, TimeoutError):  # not while the brokers are away
            return {}

    def wait_for_all_counts(self, patience_s: float = PATIENCE_S) -> None:
        """Waits until each key has come as far as it must."""

        def far_enough() -> bool:
            counts = self.counts()
            return all(max(counts.get(key, [-1])) >= count for key, count in self.sent.items())

        self.patience_s = patience_s
        self.wait(f"the counts {self.sent}", far_enough)

    def assert_counted_once(self) -> None:
        """Under exactly-once each count comes out once, in order; at-least-once may repeat some."""
        assert {key: list(range(1, count + 1)) for key, count in self.sent.items()} == self.counts()

    def assert_not_too_low(self) -> None:
        """The last count of each key is not lower than what was sent."""
        last = {key: found[-1] for key, found in self.counts().items()}

        assert {key: (last.get(key, 0), n) for key, n in self.sent.items() if last.get(key, 0) < n} == {}

    def signal(self, worker: str, number: signal.Signals) -> None:
        self.processes[worker].send_signal(number)

    def beside(self, worker: str, suffix: str) -> Path:
        """A file by which the script and the test speak to each other."""
        return (self.folder / worker).with_suffix(f".{suffix}")

    def members(self) -> int:
        """How many members the group has, once all of them share the work."""
        admin = AdminClient({"bootstrap.servers": self.brokers, "log_level": 0})
        return len(admin.describe_consumer_groups([self.name])[self.name].result(10).members)


@pytest.fixture
def broker(start_broker: Callable[..., Brokers]) -> Brokers:
    return start_broker(BROKER)


@pytest.fixture
def make_counting(make_name: Callable[[str], str], tmp_path: Path) -> Iterator[Callable[..., Counting]]:
    made: list[Counting] = []

    def make(brokers: Brokers, *settings: str) -> Counting:
        name = make_name("faults")
        for suffix in ("lines", "counts"):
            create_topic(brokers.bootstrap_servers, f"{name}-{suffix}", partitions=PARTITIONS)
        fixed = ("statestore.cache.max.bytes=0", *settings)
        made.append(Counting(brokers.bootstrap_servers, name, tmp_path, SCRIPT, PARTITIONS, fixed))
        return made[-1]

    yield make
    for app in made:
        app.end()


@contextmanager
def down(brokers: Brokers, node: str = "kafka", *, for_s: float = 0.0) -> Iterator[None]:
    """Kills a broker for the length of a block, and at least so long."""
    lasts = threading.Event()
    timer = threading.Timer(for_s, lasts.set)
    brokers.kill(node)
    timer.start()
    try:
        yield
        assert lasts.wait(for_s + 5)
    finally:
        timer.cancel()
        brokers.start(node)
    wait_until_ready(brokers)


# --- a leader's epoch changes (each restart of a broker does that) ---


@GUARANTEES
def test_lone_worker_commits_soon_after_its_broker_was_restarted(
    broker: Brokers, make_counting: Callable[..., Counting], guarantee: str
) -> None:
    app = make_counting(broker, guarantee, *LONG_SESSION)
    app.start_all(["one"], PARTITIONS)
    app.send_keys("a", "b", times=10)
    app.wait_for_all_counts()

    with down(broker):
        pass
    for _ in range(3):  # a commit after the restart may be the one that was under way
        app.send_keys("a", "b", times=10)
        app.wait_for_all_counts(RECOVERY_S)

    app.assert_not_too_low()
    if guarantee == EXACTLY_ONCE:
        app.assert_counted_once()


@pytest.mark.nightly
@pytest.mark.parametrize("guarantee", [AT_LEAST_ONCE, EXACTLY_ONCE])
def test_worker_takes_over_tasks_after_the_broker_was_restarted(
    broker: Brokers, make_counting: Callable[..., Counting], guarantee: str
) -> None:
    app = make_counting(broker, guarantee, *LONG_SESSION)
    app.start_all(["one", "two"], PARTITIONS)
    app.send_keys("a", "b", "c", "d", times=10)
    app.wait_for_all_counts()

    with down(broker):
        pass
    app.stop("two")
    del app.processes["two"]
    app.send_keys("a", "b", "c", "d", times=10)
    app.wait_for_all_counts(RECOVERY_S)

    app.assert_not_too_low()
    if guarantee == EXACTLY_ONCE:
        app.assert_counted_once()


def test_workers_survive_an_orderly_stop_of_one_broker_of_three(
    three_brokers: Brokers, make_counting: Callable[..., Counting]
) -> None:
    app = make_counting(three_brokers, EXACTLY_ONCE)
    app.start_all(["one", "two"], PARTITIONS)
    app.send_keys("a", "b", "c", "d", times=10)
    app.wait_for_all_counts()

    three_brokers.stop("kafka-1")
    three_brokers.start("kafka-1")
    wait_until_ready(three_brokers)
    app.stop("two")
    del app.processes["two"]
    app.send_keys("a", "b", "c", "d", times=10)
    app.wait_for_all_counts(RECOVERY_S)

    app.assert_counted_once()


def test_offset_that_a_frozen_leader_does_not_tell_is_never_made_up(
    three_brokers: Brokers, make_name: Callable[[str], str]
) -> None:
    """The client answers -1001, without an error, for the partitions of a leader that does not answer in time."""
    topic = make_name("ends")
    create_topic(three_brokers.bootstrap_servers, topic, partitions=6)
    config = StreamsConfig({"application.id": topic, "bootstrap.servers": three_brokers.bootstrap_servers})
    admin = ClusterAdmin.open(DefaultKafkaClientSupplier(), config, topic, SystemClock())
    ends = {TopicPartition(topic, number): 0 for number in range(6)}

    assert ends == admin.end_offsets([*ends])
    for node in three_brokers.nodes[:2]:
        with three_brokers.paused(node):
            assert ends == admin.end_offsets([*ends])
        wait_until_ready(three_brokers)


# --- a broker is away for long ---


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param((), id="default settings"),
        pytest.param(IMPATIENT, marks=BY_NIGHT, id="longer than request.timeout.ms"),
    ],
)
@GUARANTEES
def test_lone_worker_goes_on_after_an_outage(
    broker: Brokers, make_counting: Callable[..., Counting], guarantee: str, settings: tuple[str, ...]
) -> None:
    app = make_counting(broker, guarantee, *settings)
    app.start_all(["one"], PARTITIONS)
    app.send_keys("a", "b", times=10)
    app.wait_for_all_counts()

    app.send_keys("a", "b", times=200)  # a commit, or an open transaction, meets the outage
    with down(broker, for_s=OUTAGE_S):
        pass
    app.send_keys("a", "b", times=10)
    app.wait_for_all_counts(RECOVERY_S)

    app.assert_not_too_low()
    if guarantee == EXACTLY_ONCE:
        app.assert_counted_once()


@BY_NIGHT
@GUARANTEES
def test_worker_can_be_stopped_while_the_broker_is_away(
    broker: Brokers, make_counting: Callable[..., Counting], guarantee: str
) -> None:
    app = make_counting(broker, guarantee, *IMPATIENT)
    app.start_all(["one"], PARTITIONS)
    app.send_keys("a", "b", times=10)
    app.wait_for_all_counts()

    app.send_keys("a", "b", times=200)
    with down(broker, for_s=10):  # long enough for a commit to be tried
        pass
    with down(broker):
        assert app.processes["one"].poll() is None, app.log("one")[-6000:]
        app.signal("one", signal.SIGTERM)
        app.processes["one"].wait(45)
    app.start_all(["one"], PARTITIONS)
    app.wait_for_all_counts()

    app.assert_not_too_low()
    if guarantee == EXACTLY_ONCE:
        app.assert_counted_once()


def test_outage_is_logged_while_it_lasts_and_not_afterwards(
    broker: Brokers, make_counting: Callable[..., Counting]
) -> None:
    app = make_counting(broker, AT_LEAST_ONCE)
    app.start_all(["one"], PARTITIONS)
    app.send_keys("a", "b", times=10)
    app.wait_for_all_counts()
    before = len(app.log("one"))

    app.patience_s = OUTAGE_S
    with down(broker, for_s=OUTAGE_S):
        app.wait("a line about the outage", lambda: "WARNING" in app.log("one")[before:])
    app.send_keys("a", "b")
    app.wait_for_all_counts(RECOVERY_S)

    lines = app.log("one")[before:].splitlines()
    assert len([line for line in lines if "Connection refused" in line]) < 20


# --- a transaction that ended without its worker ---


@pytest.mark.parametrize(
    "stopped", [pytest.param(False, marks=BY_NIGHT, id="slow record"), pytest.param(True, id="stopped process")]
)
def test_transaction_that_timed_out_is_done_again(
    broker: Brokers, make_counting: Callable[..., Counting], stopped: bool
) -> None:
    """The worker stays inside a transaction until the broker has aborted it; a process that is stopped hears later."""
    app = make_counting(broker, EXACTLY_ONCE, *LONG_SESSION, "producer.transaction.timeout.ms=4000")
    app.start_all(["one"], PARTITIONS)
    app.send_to(0, *[("a", "counted")] * 10)
    app.wait_for_all_counts()

    app.send_to(0, *[("a", "counted")] * 10, ("a", "hold"), *[("a", "counted")] * 100)
    app.wait("the worker waits", app.beside("one", "hold").exists)
    app.wait("an open transaction", lambda: len(app.counts(committed_only=False)["a"]) > len(app.counts()["a"]))
    if stopped:
        app.signal("one", signal.SIGSTOP)
    wait_until_no_transaction_is_open(app)
    app.beside("one", "go").touch()
    app.signal("one", signal.SIGCONT)
    app.wait_for_all_counts(RECOVERY_S)

    app.assert_counted_once()


def wait_until_no_transaction_is_open(app: Counting) -> None:
    """Waits until a record that was written behind it can be read."""
    producer = producer_in_order(app.brokers)
    for partition in range(PARTITIONS):
        producer.produce(app.topic("counts"), (1).to_bytes(8, "big"), f"behind-{partition}", partition)
        app.sent[f"behind-{partition}"] = 1
    assert producer.flush(60) == 0
    app.wait("the transaction is aborted", lambda: app.counts().keys() >= {"behind-0", "behind-1"})


def test_worker_goes_on_after_another_producer_of_its_id_has_fenced_it(
    broker: Brokers, make_counting: Callable[..., Counting]
) -> None:
    app = make_counting(broker, EXACTLY_ONCE)
    app.start_all(["one"], PARTITIONS)
    app.send_keys("a", "b", times=10)
    app.wait_for_all_counts()
    [identity] = (app.folder / "one").rglob("worker-0.id")
    settings = {
        "bootstrap.servers": broker.bootstrap_servers,
        "transactional.id": f"{app.name}-{identity.read_text().strip()}-1",
    }

    for _ in range(3):
        Producer(settings).init_transactions(30)
        app.send_keys("a", "b", times=100)
        app.wait_for_all_counts(RECOVERY_S)

    app.assert_counted_once()
    assert not re.search(r"ERROR +pykstreams\.runtime|Traceback", app.log("one"))  # no record is to blame


# --- a worker that stood still for longer than its session ---


def test_worker_that_wakes_up_after_its_session_overwrites_nothing(
    broker: Brokers, make_counting: Callable[..., Counting]
) -> None:
    """It has fetched records and not processed them; another worker has counted them, and more, when it wakes up."""
    app = make_counting(broker, AT_LEAST_ONCE, *SHORT_SESSION, "commit.interval.ms=200")
    app.start_all(["one"], PARTITIONS)
    first, last = map(int, dict.fromkeys(re.findall(r"task 0_(\d) runs", app.log("one"))))
    app.send_to(last, *[("a", "counted")] * 10)
    app.wait_for_all_counts()

    stand_still_with_fetched_records(app, first, last)
    app.start("two")
    app.beside("two", "go").touch()
    app.wait_for_all_counts()
    app.send_to(last, *[("a", "counted")] * 10)
    app.wait_for_all_counts()
    app.beside("one", "go").touch()
    app.signal("one", signal.SIGCONT)
    app.wait("both are members", lambda: app.members() == 2)
    app.send_to(first, ("b", "counted"))
    app.wait_for_all_counts()
    app.stop("one")
    app.stop("two")

    app.assert_not_too_low()


def stand_still_with_fetched_records(app: Counting, first: int, last: int) -> None:
    """Stops worker one while its first task is at work, and its last one has records that it has yet to process.

    Both fetch at once; which records came with one fetch shows in what was counted before the first task waits.
    """
    for attempt in range(20):
        counted = app.sent["a"]
        before, after = f"hold-{attempt}-before", f"hold-{attempt}-after"
        app.send_to(first, (before, before))
        app.wait("the worker waits", app.beside("one", before).exists)
        app.send_to(last, *[("a", "counted")] * 20)
        app.send_to(first, (after, after))
        app.beside("one", f"{before}-go").touch()
        app.wait("the worker waits again", app.beside("one", after).exists)
        if max(app.counts(committed_only=False)["a"]) == counted:
            app.signal("one", signal.SIGSTOP)
            return
        app.beside("one", f"{after}-go").touch()
        app.wait_for_all_counts()
    raise AssertionError("records were never fetched together with those of the other task")
