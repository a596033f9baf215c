"""Workers on a real broker: restarts, crashes, lost state, several workers, idle inputs, late records, purging."""

from __future__ import annotations

import os
import signal
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from confluent_kafka import OFFSET_INVALID, Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from pykstreams import Consumed, Grouped, Materialized, Produced, Serdes, StreamsBuilder
from pykstreams.core.errors import MissingSourceTopicError
from pykstreams.core.handlers import StreamThreadExceptionResponse
from pykstreams.core.processor import Processor
from pykstreams.core.record import Record
from pykstreams.runtime.life_cycle import State
from pykstreams.runtime.restore.restore import StateRestoreListener
from pykstreams.runtime.streams import GroupMembershipOperation, KafkaStreams
from tests.brokers import offsets
from tests.brokers.brokers import Brokers, create_topic
from tests.brokers.producers import producer_in_order
from tests.brokers.reaper import Process
from tests.brokers.records import key_of, value_of

pytestmark = pytest.mark.slow

T = TypeVar("T")
TEXT = Serdes.string()
KEPT = {"retention_ms": -1}
"""For topics whose records have times of long ago, which brokers would delete within minutes."""

ROOT = Path(__file__).parents[2]
PATIENCE_S = 180.0
CRASH = "crash"
"""The line that kills the worker that reads it first."""

SCRIPT = """
    import logging, sys
    from pathlib import Path
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    from pykstreams import Consumed, Grouped, Materialized, Produced, Serdes, StreamsBuilder
    from pykstreams.runtime.streams import KafkaStreams
    from tests.integration.crashes import crash_once

    def words(line):
        if line == "crash":
            crash_once(Path(__file__).parent / "crashed")
            return []
        return line.split()

    brokers, application, state_dir, source, sink, *settings = sys.argv[1:]
    text = Serdes.string()
    builder = StreamsBuilder()
    (
        builder.stream(source, Consumed(key_serde=text, value_serde=text))
        .flat_map_values(words)
        .group_by(lambda _, word: word, Grouped(key_serde=text, value_serde=text, name="words"))
        .count(materialized=Materialized("counts"))
        .to_stream()
        .to(sink, Produced(key_serde=text, value_serde=Serdes.long()))
    )
    config = {
        "application.id": application,
        "bootstrap.servers": brokers,
        "state.dir": state_dir,
        "commit.interval.ms": "200",
        **dict(pair.split("=") for pair in settings),
    }
    KafkaStreams(builder.build(), config).run()
    print("stopped in good order")
"""


@dataclass
class WordCount:
    """An application with its topics and as many worker processes as a test wants."""

    brokers: str
    name: str
    source: str
    sink: str
    folder: Path
    settings: tuple[str, ...] = ()
    expected: Counter[str] = field(default_factory=Counter)
    processes: list[Process] = field(default_factory=list)

    def start(self, state: str = "state") -> Process:
        script = self.folder / "word_count.py"
        script.write_text(textwrap.dedent(SCRIPT))
        log = (self.folder / f"{state}-{len(self.processes)}.log").open("wb")
        process = Process(
            [
                sys.executable,
                str(script),
                self.brokers,
                self.name,
                str(self.folder / state),
                self.source,
                self.sink,
                *self.settings,
            ],
            stdout=log,
            stderr=log,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        log.close()
        self.processes.append(process)
        return process

    def log(self) -> str:
        return "".join(path.read_text() for path in sorted(self.folder.glob("*.log")))

    def send(self, *lines: str, times: int = 1) -> None:
        producer = producer_in_order(self.brokers, {"linger.ms": 5})
        for number in range(times):
            for line in lines:
                while True:
                    try:
                        producer.produce(self.source, line.encode(), key=str(number).encode())
                        break
                    except BufferError:
                        producer.poll(0.1)
        producer.flush()
        for line in lines:
            for word in line.split() if line != CRASH else ():
                self.expected[word] += times

    def counts(self) -> dict[str, int]:
        return {
            key.decode(): int.from_bytes(value, "big") for key, value in last_values(self.brokers, self.sink).items()
        }

    def wait_for_counts(self, *, at_least: bool = False) -> dict[str, int]:
        """Waits until the results say what was sent; more than that counts as wrong, unless it is ``at_least``."""

        def right() -> dict[str, int] | None:
            assert any(process.poll() is None for process in self.processes), self.log()
            found = self.counts()
            if at_least:
                return found if all(found.get(word, 0) >= n for word, n in self.expected.items()) else None
            return found if found == self.expected else None

        return eventually(right, lambda: f"{self.counts()} is not {dict(self.expected)}\n{self.log()[-6000:]}")

    def stop_all(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()


def eventually(ask: Callable[[], T | None], otherwise: Callable[[], str], patience_s: float = PATIENCE_S) -> T:
    """Asks until the answer is not ``None``."""
    deadline = time.monotonic() + patience_s
    while True:
        found = ask()
        if found is not None:
            return found
        assert time.monotonic() < deadline, otherwise()
        time.sleep(0.1)


def records(brokers: str, topic: str) -> list[tuple[bytes, bytes]]:
    """Every record of a topic that is there now."""
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "test", "enable.partition.eof": True})
    try:
        partitions = [
            TopicPartition(topic, number, 0) for number in consumer.list_topics(timeout=60).topics[topic].partitions
        ]
        consumer.assign(partitions)
        found: list[tuple[bytes, bytes]] = []
        ended = 0
        while ended < len(partitions):
            message = consumer.poll(60)
            assert message is not None
            if message.error():
                ended += 1
            else:
                found.append((key_of(message), value_of(message)))
        return found
    finally:
        consumer.close()


def last_values(brokers: str, topic: str) -> dict[bytes, bytes]:
    return dict(records(brokers, topic))


def end_offsets(brokers: str, topic: str, spec: OffsetSpec | None = None) -> dict[int, int]:
    admin = AdminClient({"bootstrap.servers": brokers})
    partitions = admin.list_topics(timeout=60).topics[topic].partitions
    wanted = {TopicPartition(topic, number): spec or OffsetSpec.latest() for number in partitions}
    return {place.partition: future.result(60).offset for place, future in admin.list_offsets(wanted).items()}


def commit(brokers: str, group: str, place: TopicPartition) -> None:
    """Commits an offset of a group without members."""
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": group})
    try:
        consumer.commit(offsets=[place], asynchronous=False)
    finally:
        consumer.close()


def committed(brokers: str, group: str, topic: str, partitions: int = 1) -> list[int]:
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": group})
    try:
        found = offsets.committed(consumer, [TopicPartition(topic, number) for number in range(partitions)])
        return [place.offset for place in found]
    finally:
        consumer.close()


@pytest.fixture
def make_word_count(
    bootstrap_servers: str, make_name: Callable[[str], str], tmp_path: Path
) -> Iterator[Callable[..., WordCount]]:
    made: list[WordCount] = []

    def make(*settings: str, partitions: int = 4) -> WordCount:
        name = make_name("count")
        create_topic(bootstrap_servers, f"{name}-lines", partitions=partitions, **KEPT)
        create_topic(bootstrap_servers, f"{name}-counts", partitions=partitions, **KEPT)
        app = WordCount(bootstrap_servers, name, f"{name}-lines", f"{name}-counts", tmp_path, settings)
        made.append(app)
        return app

    yield make
    for app in made:
        app.stop_all()


def test_worker_goes_on_where_it_was_after_sigterm(make_word_count: Callable[..., WordCount]) -> None:
    app = make_word_count()
    app.send("to be or not to be", times=50)
    first = app.start()
    app.wait_for_counts()

    first.send_signal(signal.SIGTERM)

    assert first.wait(PATIENCE_S) == 0
    assert "stopped in good order" in app.log()
    app.send("to be", times=10)
    app.start()
    app.wait_for_counts()
    assert "restoring" not in app.log()


@pytest.mark.nightly  # under exactly-once it is killed each time
def test_killed_worker_loses_nothing(make_word_count: Callable[..., WordCount]) -> None:
    app = make_word_count()
    app.send("to be or not to be", times=50)
    first = app.start()
    app.wait_for_counts()

    first.kill()
    first.wait()
    app.send("to be", times=10)
    app.start()

    app.wait_for_counts(at_least=True)


def test_killed_worker_counts_nothing_twice_under_exactly_once(make_word_count: Callable[..., WordCount]) -> None:
    app = make_word_count("processing.guarantee=exactly_once_v2")
    app.send("to be or not to be", times=1000)
    app.send(CRASH)
    app.send("to be or not to be", times=1000)
    first = app.start()
    assert first.wait(PATIENCE_S) == -signal.SIGKILL, app.log()

    app.send("to be", times=10)
    app.start()

    app.wait_for_counts()


def test_state_is_rebuilt_from_the_changelog_when_its_directory_is_gone(
    make_word_count: Callable[..., WordCount],
) -> None:
    app = make_word_count()
    app.send("to be or not to be", times=50)
    first = app.start("lost")
    app.wait_for_counts()
    first.send_signal(signal.SIGTERM)
    first.wait(PATIENCE_S)

    app.send("to be", times=10)
    app.start("fresh")

    app.wait_for_counts()
    assert "restored" in app.log()


def test_survivor_takes_over_the_tasks_of_a_killed_worker(make_word_count: Callable[..., WordCount]) -> None:
    app = make_word_count()
    app.send("to be or not to be", times=50)
    app.start("one")
    app.wait_for_counts()
    second = app.start("two")
    eventually(lambda: "leave this worker" in app.log() or None, app.log)
    app.send("or not", times=20)
    app.wait_for_counts()

    second.kill()
    second.wait()
    app.send("to be", times=10)

    app.wait_for_counts(at_least=True)


def test_worker_that_leaves_hands_its_tasks_over_at_once(make_word_count: Callable[..., WordCount]) -> None:
    app = make_word_count()
    app.send("to be or not to be", times=50)
    app.start("one")
    app.wait_for_counts()
    second = app.start("two")
    eventually(lambda: "leave this worker" in app.log() or None, app.log)
    app.send("or not", times=20)
    app.wait_for_counts()

    second.send_signal(signal.SIGTERM)
    assert second.wait(PATIENCE_S) == 0
    app.send("to be", times=10)

    app.wait_for_counts()


# --- in this process ---


@pytest.fixture
def run_streams(
    bootstrap_servers: str, make_name: Callable[[str], str], tmp_path: Path
) -> Iterator[Callable[..., KafkaStreams]]:
    started: list[KafkaStreams] = []

    def run(builder: StreamsBuilder, name: str, *, brokers: str = bootstrap_servers, **more: Any) -> KafkaStreams:
        settings = more.pop("settings", {})
        streams = KafkaStreams(
            builder.build(),
            {
                "application.id": name,
                "bootstrap.servers": brokers,
                "state.dir": str(tmp_path / "state"),
                "commit.interval.ms": 100,
                **settings,
            },
            **more,
        )
        started.append(streams)
        streams.start()
        assert streams.wait_for_state(State.RUNNING, 60_000), streams.error
        return streams

    yield run
    for streams in started:
        stop(streams)


def stop(streams: KafkaStreams) -> None:
    assert streams.close(60_000, group_membership=GroupMembershipOperation.LEAVE_GROUP)


def produce(brokers: str, topic: str, *rows: tuple[str, str, int], partition: int = 0) -> None:
    producer = producer_in_order(brokers)
    for key, value, timestamp in rows:
        producer.produce(topic, value.encode(), key=key.encode(), partition=partition, timestamp=timestamp)
    producer.flush()


class StreamTime(Processor[str, str, str, str]):
    """Forwards the stream time at each record."""

    def process(self, record: Record[str, str]) -> None:
        self.context.forward(record.replace(value=str(self.context.current_stream_time_ms())))


def test_stream_time_is_restored_from_committed_metadata(
    run_streams: Callable[..., KafkaStreams], make_topic: Callable[..., str], bootstrap_servers: str
) -> None:
    """A record that was late before a restart is late after it."""
    source, sink = make_topic("in", **KEPT), make_topic("out", **KEPT)
    builder = StreamsBuilder()
    stream = builder.stream(source, Consumed(key_serde=TEXT, value_serde=TEXT))
    stream.process(StreamTime).to(sink, Produced(key_serde=TEXT, value_serde=TEXT))
    produce(bootstrap_servers, source, ("k", "v", 1_000_000))
    first = run_streams(builder, source)
    eventually(lambda: len(records(bootstrap_servers, sink)) == 1 or None, lambda: "no output")
    stop(first)

    produce(bootstrap_servers, source, ("k", "late", 5_000))
    run_streams(builder, source)

    found = eventually(
        lambda: rows if len(rows := records(bootstrap_servers, sink)) == 2 else None, lambda: "no second output"
    )
    assert [value for _, value in found] == [b"1000000", b"1000000"]


def test_consumed_repartition_records_are_deleted_up_to_the_committed_offset(
    run_streams: Callable[..., KafkaStreams], make_topic: Callable[..., str], bootstrap_servers: str
) -> None:
    source = make_topic("in", **KEPT)
    builder = StreamsBuilder()
    (
        builder.stream(source, Consumed(key_serde=TEXT, value_serde=TEXT))
        .group_by(lambda _, value: value, Grouped(key_serde=TEXT, value_serde=TEXT, name="by"))
        .count(materialized=Materialized("counts"))
    )
    produce(bootstrap_servers, source, *(("k", str(number % 7), 1000 + number) for number in range(500)))
    run_streams(builder, source, settings={"repartition.purge.interval.ms": 200})
    topic = f"{source}-by-repartition"

    def purged() -> bool | None:
        begin = end_offsets(bootstrap_servers, topic, OffsetSpec.earliest())[0]
        done = committed(bootstrap_servers, source, topic)[0]
        assert begin <= max(done, 0)
        return True if begin == 500 else None

    eventually(purged, lambda: f"{end_offsets(bootstrap_servers, topic, OffsetSpec.earliest())}")


def test_source_topic_that_serves_as_changelog_is_restored_up_to_what_was_read(
    run_streams: Callable[..., KafkaStreams], make_topic: Callable[..., str], bootstrap_servers: str, tmp_path: Path
) -> None:
    source, sink = make_topic("table", cleanup_policy="compact"), make_topic("out", **KEPT)
    config = {"topology.optimization": "all"}
    builder = StreamsBuilder()
    table = builder.table(source, Consumed(key_serde=TEXT, value_serde=TEXT), materialized=Materialized("rows"))
    table.to_stream().to(sink, Produced(key_serde=TEXT, value_serde=TEXT))
    produce(bootstrap_servers, source, ("a", "1", 1000), ("b", "1", 1001))

    class Restored(StateRestoreListener):
        totals: list[int] = []  # noqa: RUF012 - one per test

        def on_restore_end(self, topic_partition: Any, store_name: str, total_restored: int) -> None:
            self.totals.append(total_restored)

    def run(state: str) -> KafkaStreams:
        return KafkaStreams(
            builder.build(config),
            {
                "application.id": source,
                "bootstrap.servers": bootstrap_servers,
                "state.dir": str(tmp_path / state),
                "commit.interval.ms": 100,
                **config,
            },
            state_restore_listener=Restored(),
        )

    with run("first") as first:
        eventually(lambda: len(records(bootstrap_servers, sink)) == 2 or None, lambda: "no output")
        stop(first)
    produce(bootstrap_servers, source, ("a", "2", 1002))
    with run("second") as second:
        found = eventually(
            lambda: rows if len(rows := records(bootstrap_servers, sink)) == 3 else None, lambda: "no output"
        )
        stop(second)

    assert Restored.totals == [0, 2]
    assert found == [(b"a", b"1"), (b"b", b"1"), (b"a", b"2")]


def test_topic_that_matches_a_pattern_later_is_read(
    run_streams: Callable[..., KafkaStreams],
    make_topic: Callable[..., str],
    make_name: Callable[[str], str],
    bootstrap_servers: str,
) -> None:
    import re

    sink, prefix = make_topic("out", **KEPT), make_name("many")
    create_topic(bootstrap_servers, f"{prefix}-a", partitions=1, **KEPT)
    builder = StreamsBuilder()
    stream = builder.stream(re.compile(f"{prefix}-.*"), Consumed(key_serde=TEXT, value_serde=TEXT))
    stream.to(sink, Produced(key_serde=TEXT, value_serde=TEXT))
    produce(bootstrap_servers, f"{prefix}-a", ("k", "a", 1000))
    run_streams(builder, make_name("pattern"), settings={"metadata.max.age.ms": 1000})
    eventually(lambda: len(records(bootstrap_servers, sink)) == 1 or None, lambda: "no output")

    create_topic(bootstrap_servers, f"{prefix}-b", partitions=2, **KEPT)
    produce(bootstrap_servers, f"{prefix}-b", ("k", "b", 1000))
    produce(bootstrap_servers, f"{prefix}-b", ("k", "of a new task", 1000), partition=1)

    found = eventually(
        lambda: rows if len(rows := records(bootstrap_servers, sink)) == 3 else None, lambda: "no second output"
    )
    assert {value for _, value in found} == {b"a", b"b", b"of a new task"}


def test_missing_source_topic_is_an_error_of_start(
    run_streams: Callable[..., KafkaStreams], make_name: Callable[[str], str]
) -> None:
    name = make_name("nowhere")
    builder = StreamsBuilder()
    builder.stream(name, Consumed(key_serde=TEXT, value_serde=TEXT)).foreach(lambda k, v: None)

    with pytest.raises(MissingSourceTopicError, match=f"topic '{name}', which KSTREAM-SOURCE-0000000000 reads"):
        run_streams(builder, name)


def test_topics_are_created_with_one_partition_per_task(
    run_streams: Callable[..., KafkaStreams], make_topic: Callable[..., str], bootstrap_servers: str
) -> None:
    source = make_topic("in", partitions=3, **KEPT)
    builder = StreamsBuilder()
    builder.stream(source, Consumed(key_serde=TEXT, value_serde=TEXT)).group_by_key().count(
        materialized=Materialized("counts", key_serde=TEXT)
    )

    run_streams(builder, source)

    topics = AdminClient({"bootstrap.servers": bootstrap_servers}).list_topics(timeout=60).topics
    assert len(topics[f"{source}-counts-changelog"].partitions) == 3
    assert [name for name in topics if name.startswith(f"{source}-tasks-")] == []


def test_error_of_user_code_ends_the_application_and_is_kept(
    run_streams: Callable[..., KafkaStreams], make_topic: Callable[..., str], bootstrap_servers: str
) -> None:
    source = make_topic("in", **KEPT)
    builder = StreamsBuilder()
    builder.stream(source, Consumed(key_serde=TEXT, value_serde=TEXT)).map_values(int).foreach(lambda k, v: None)
    streams = run_streams(builder, source)

    produce(bootstrap_servers, source, ("k", "no number", 1000))

    assert streams.wait(60_000) is State.ERROR
    assert f"record {source}-0 offset 0" in str(streams.error)
    assert committed(bootstrap_servers, source, source) == [-1001]


def test_one_worker_has_all_instances_of_the_application_shut_down(
    run_streams: Callable[..., KafkaStreams], make_topic: Callable[..., str], bootstrap_servers: str, tmp_path: Path
) -> None:
    source = make_topic("in", partitions=2, **KEPT)
    builder = StreamsBuilder()
    builder.stream(source, Consumed(key_serde=TEXT, value_serde=TEXT)).map_values(int).foreach(lambda k, v: None)
    instances = [run_streams(builder, source, settings={"state.dir": str(tmp_path / name)}) for name in ("one", "two")]
    for one in instances:
        one.uncaught_exception_handler = lambda _: StreamThreadExceptionResponse.SHUTDOWN_APPLICATION
    eventually(
        lambda: [len(one.health().tasks) for one in instances] == [1, 1] or None,
        lambda: "the tasks are not shared out",
    )

    produce(bootstrap_servers, source, ("k", "no number", 1000))

    assert [one.wait(60_000) for one in instances] == [State.ERROR, State.ERROR]
    assert sorted(type(one.error).__name__ for one in instances) == ["ProcessingError", "ShutdownRequestedError"]


@pytest.mark.nightly
def test_offsets_of_an_idle_input_outlive_the_retention_of_the_broker(
    start_broker: Callable[..., Brokers], run_streams: Callable[..., KafkaStreams], make_name: Callable[[str], str]
) -> None:
    """A group that does not repeat its commit shows when the retention has passed; a restart reads nothing twice."""
    brokers = start_broker(
        {"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "5000"}
    ).bootstrap_servers
    create_topic(brokers, "in", **KEPT)
    create_topic(brokers, "out", **KEPT)
    builder = StreamsBuilder()
    builder.stream("in", Consumed(key_serde=TEXT, value_serde=TEXT)).to(
        "out", Produced(key_serde=TEXT, value_serde=TEXT)
    )
    produce(brokers, "in", ("k", "v", 1000))
    name = make_name("idle")
    first = run_streams(builder, name, brokers=brokers, recommit_interval=20_000)
    eventually(lambda: len(records(brokers, "out")) == 1 or None, lambda: "no output")

    eventually(lambda: committed(brokers, name, "in") == [1] or None, lambda: "not committed")
    commit(brokers, "forgetful", TopicPartition("in", 0, 1))

    def is_forgotten() -> bool | None:
        left = committed(brokers, "forgetful", "in")
        assert committed(brokers, name, "in") == [1]
        return True if left == [OFFSET_INVALID] else None

    eventually(is_forgotten, lambda: "the broker keeps offsets for longer than it was told to", 240)
    stop(first)
    run_streams(builder, name, brokers=brokers)
    produce(brokers, "in", ("k", "w", 1001))

    found = eventually(lambda: rows if len(rows := records(brokers, "out")) >= 2 else None, lambda: "no output")
    assert [value for _, value in found] == [b"v", b"w"]
