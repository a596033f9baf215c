"""What a user reads when something is wrong: the program as a user calls it, on a real broker.

Errors that are found before the cluster is asked (settings, scripts, names) are in ``tests/unit/cli``.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest
from confluent_kafka.admin import AdminClient

from pykstreams.state.directory.file_lock import FileLock
from tests.brokers.brokers import Brokers, create_topic
from tests.brokers.ports import free_ports
from tests.brokers.producers import producer_in_order
from tests.brokers.reaper import Process

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PATIENCE_S = 180.0

COUNT = """
    from pykstreams import Consumed, Grouped, Materialized, Produced, Serdes, StreamsBuilder

    text = Serdes.string()

    def build(config):
        name = config.application_id
        builder = StreamsBuilder()
        (
            builder.stream(f"{name}-in", Consumed(key_serde=text, value_serde=text))
            .group_by(lambda _, word: word, Grouped(name="words", key_serde=text, value_serde=text))
            .count(materialized=Materialized("counts"))
            .to_stream()
            .to(f"{name}-out", Produced(key_serde=text, value_serde=Serdes.long()))
        )
        return builder.build()
"""

MAP = """
    from pykstreams import Consumed, Produced, Serdes, StreamsBuilder

    def build(config):
        name = config.application_id
        builder = StreamsBuilder()
        (
            builder.stream(f"{{name}}-in", Consumed(key_serde=Serdes.string(), value_serde={value_serde}))
            .map_values({mapper})
            .to(f"{{name}}-out", Produced({produced}))
        )
        return builder.build()
"""


class Run(Protocol):
    """Runs a script as an application until it ends; gives exit code and what it wrote."""

    def __call__(self, script: str, name: str, *options: str) -> tuple[int, str]: ...


BOTH = "key_serde=Serdes.string(), value_serde=Serdes.string()"


def mapping(mapper: str, *, value_serde: str = "Serdes.string()", produced: str = BOTH) -> str:
    return MAP.format(mapper=mapper, value_serde=value_serde, produced=produced)


def topics_of(brokers: str) -> set[str]:
    return set(AdminClient({"bootstrap.servers": brokers}).list_topics(timeout=10).topics)


@pytest.fixture
def run(bootstrap_servers: str, tmp_path: Path) -> Run:
    def run(script: str, name: str, *options: str) -> tuple[int, str]:
        (tmp_path / "job.py").write_text(textwrap.dedent(script))
        command = [sys.executable, "-m", "pykstreams", "run", "job.py", "--application-id", name]
        command += ["--state-dir", "state", "--log-level", "warning", *options]
        if "--bootstrap-servers" not in options:
            command += ["--bootstrap-servers", bootstrap_servers]
        process = Process(
            command,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        try:
            _, said = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
        return process.returncode, said.decode()

    return run


@pytest.fixture
def make_application(bootstrap_servers: str, make_name: Callable[[str], str]) -> Callable[..., str]:
    """Makes input and output of an application, with one record."""

    def make(*, partitions: int = 1, value: bytes = b"hello") -> str:
        name = make_name("wrong")
        for suffix in ("in", "out"):
            create_topic(bootstrap_servers, f"{name}-{suffix}", partitions=partitions)
        producer = producer_in_order(bootstrap_servers)
        producer.produce(f"{name}-in", value, b"k")
        producer.flush()
        return name

    return make


def all_missing(bootstrap_servers: str) -> str:
    return (
        f"(pykstreams topics TOPOLOGY --create --bootstrap-servers {bootstrap_servers}, with the same "
        "--config and --set, creates every topic that is missing)\n"
    )


@pytest.mark.parametrize("workers", ["1", "2"])
def test_unknown_source_topic_is_named_with_its_reader_and_the_nearest_that_exists(
    run: Run, make_application: Callable[..., str], bootstrap_servers: str, workers: str
) -> None:
    name = make_application()

    code, said = run(COUNT.replace("-in", "-inn"), name, "--workers", workers)

    assert code == 2, said
    assert (
        f"MissingSourceTopicError: topic '{name}-inn', which KSTREAM-SOURCE-0000000000 reads, does not exist on "
        f"{bootstrap_servers} (did you mean '{name}-in'?); correct its name in the topology, or create it, for "
        f"instance with\nkafka-topics.sh --bootstrap-server {bootstrap_servers} --create --topic {name}-inn "
        "--partitions 4\n"
    ) in said


@pytest.mark.parametrize("workers", ["1", "2"])
def test_all_topics_that_are_missing_are_named_in_one_error(
    run: Run, bootstrap_servers: str, make_name: Callable[[str], str], workers: str
) -> None:
    name = make_name("wrong")
    script = f"""
        from pykstreams import Consumed, Produced, Serdes, StreamsBuilder

        serdes = dict(key_serde=Serdes.string(), value_serde=Serdes.string())
        builder = StreamsBuilder()
        for number in (1, 2, 3):
            builder.stream(f"{name}-in-{{number}}", Consumed(**serdes)).to(f"{name}-out", Produced(**serdes))
    """

    code, said = run(script, name, "--workers", workers, "--set", f"errors.dead.letter.queue.topic.name={name}-letters")

    assert code == 2, said
    assert re.sub(r" \(did you mean '.*?'\?\)", "", said) == (
        f"MissingSourceTopicError: 5 topics do not exist on {bootstrap_servers}; correct their names, or create them, "
        "for instance as below:\n"
        f"- '{name}-in-1', which KSTREAM-SOURCE-0000000000 reads\n"
        f"- '{name}-in-2', which KSTREAM-SOURCE-0000000002 reads\n"
        f"- '{name}-in-3', which KSTREAM-SOURCE-0000000004 reads\n"
        f"- '{name}-letters', which errors.dead.letter.queue.topic.name gives for dead letters\n"
        f"- '{name}-out', which KSTREAM-SINK-0000000001 writes\n"
    ) + "".join(
        f"kafka-topics.sh --bootstrap-server {bootstrap_servers} --create --topic {name}-{topic} --partitions 4\n"
        for topic in ("in-1", "in-2", "in-3", "letters", "out")
    ) + all_missing(bootstrap_servers)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_missing_sink_topic_is_an_error_of_topics_before_the_first_record(
    run: Run, make_application: Callable[..., str], bootstrap_servers: str, workers: str
) -> None:
    name = make_application()

    code, said = run(COUNT.replace("-out", "-outt"), name, "--workers", workers)

    assert code == 2, said
    assert said == (
        f"MissingSinkTopicError: topic '{name}-outt', which KSTREAM-SINK-0000000007 writes, does not exist on "
        f"{bootstrap_servers} (did you mean '{name}-out'?); correct its name in the topology, or create it, for "
        f"instance with\nkafka-topics.sh --bootstrap-server {bootstrap_servers} --create --topic {name}-outt "
        f"--partitions 4\n{all_missing(bootstrap_servers)}"
    )
    assert f"{name}-counts-changelog" not in topics_of(bootstrap_servers)


def test_missing_topic_of_dead_letters_is_named_before_the_first_record(
    run: Run, make_application: Callable[..., str], bootstrap_servers: str
) -> None:
    name = make_application(value=b"hello")

    code, said = run(
        mapping("lambda text: str(int(text))"),
        name,
        *("--set", f"errors.dead.letter.queue.topic.name={name}-letters"),
        *("--set", "processing.exception.handler=pykstreams.errors:LogAndContinueProcessingExceptionHandler"),
    )

    assert (code, said.partition(" (did")[0]) == (
        2,
        f"MissingSinkTopicError: topic '{name}-letters', which errors.dead.letter.queue.topic.name gives for dead "
        f"letters, does not exist on {bootstrap_servers}",
    )


def test_brokers_that_create_topics_by_themselves_make_those_of_sinks_and_dead_letters(
    start_broker: Callable[..., Brokers], run: Run
) -> None:
    brokers = start_broker({"auto.create.topics.enable": "true"}).bootstrap_servers
    create_topic(brokers, "made-in")
    producer = producer_in_order(brokers)
    producer.produce("made-in", b"hello", b"k")
    producer.flush()

    code, said = run(
        mapping("lambda text: str(int(text))"),
        "made",
        *("--bootstrap-servers", brokers, "--set", "errors.dead.letter.queue.topic.name=made-letters"),
    )

    assert code == 4, said
    assert {"made-out", "made-letters"} <= topics_of(brokers)


def test_internal_topic_with_the_wrong_partition_count_is_named_with_the_cure(
    run: Run, make_application: Callable[..., str], bootstrap_servers: str
) -> None:
    name = make_application(partitions=4)
    create_topic(bootstrap_servers, f"{name}-words-repartition", partitions=3)

    assert run(COUNT, name) == (
        2,
        f"MisconfiguredInternalTopicError: repartition topic '{name}-words-repartition' has 3 partitions and needs 4: "
        "the partitions of a source topic were changed, or somebody else created it. Kafka takes no partitions away; "
        "stop all workers and reset the application (pykstreams reset), so that the topic is made anew, or start with "
        "another application.id; or copy the source into a new topic with the number of partitions that it had, and "
        "read that one\n",
    )


def test_bytes_that_the_serde_cannot_read_are_shown_with_their_place(
    run: Run, make_application: Callable[..., str]
) -> None:
    name = make_application(value=b"hello")

    code, said = run(mapping("str", value_serde="Serdes.long()"), name)

    assert code == 4, said
    assert (
        "StreamsError: KSTREAM-SOURCE-0000000000 (task 0_0) cannot read the value of a record: LongSerde() cannot read "
        f"5 bytes (hex 68656c6c6f) of topic '{name}-in': expected 8 bytes (record {name}-in-0 at offset 0); give the "
        "source the right value_serde, or set deserialization.exception.handler to skip such records\n"
    ) in said


def test_value_that_the_serde_cannot_write_is_shown_with_its_sink(
    run: Run, make_application: Callable[..., str]
) -> None:
    name = make_application(value=b"hello")

    code, said = run(mapping("len"), name)

    assert code == 4, said
    assert (
        f"ProcessingError: KSTREAM-SINK-0000000002 cannot write the value of a record to topic '{name}-out': "
        f"StringSerde(encoding='utf-8') cannot write 5 of type int for topic '{name}-out': expected a str; give the "
        "sink the right serde, or correct the type that stands for one: in the annotation of the function that made "
        f"it, or where the topic is read (record {name}-in-0 offset 0, task 0_0)\n"
    ) in said


def test_step_without_a_serde_is_named_with_the_options_that_take_one(
    run: Run, make_application: Callable[..., str]
) -> None:
    name = make_application()

    code, said = run(mapping("lambda value: str(value)", produced="key_serde=Serdes.string()"), name)

    assert code == 2, said
    assert (
        f"ConfigError: KSTREAM-SINK-0000000002 (topic '{name}-out') needs a value serde and none is set (no annotation "
        "says what <lambda> (job.py:9) returns); give a type or a serde as value_serde in the options of the step "
        "(Consumed, Produced, Grouped, Materialized), annotate the function before it, or set 'default.value.serde'\n"
    ) in said


def test_lambda_that_raises_is_named_with_node_record_and_line(run: Run, make_application: Callable[..., str]) -> None:
    name = make_application(value=b"hello")

    code, said = run(mapping("lambda text: str(int(text))"), name)

    assert code == 4, said
    assert (
        "ProcessingError: job.build.<locals>.<lambda> (line 9) raised "
        """ValueError("invalid literal for int() with base 10: 'hello'"); KSTREAM-MAPVALUES-0000000001 failed at """
        f"record {name}-in-0 offset 0 of task 0_0; key='k', value='hello'; correct it, or set "
        "processing.exception.handler to go on without such records\n"
    ) in said


@pytest.mark.parametrize("workers", ["1", "2"])
def test_cluster_that_is_down_is_tried_again_and_given_up_after_a_set_time(run: Run, workers: str) -> None:
    nobody = f"127.0.0.1:{free_ports(1)[0]}"

    code, said = run(
        COUNT, "down", "--bootstrap-servers", nobody, "--set", "task.timeout.ms=2500", "--workers", workers
    )

    assert code == 3, said
    assert re.search(rf"no broker answers at {nobody}: .*; trying again for another \d s\n", said)
    assert re.search(
        rf"ClusterError: no broker answered at {nobody} within 2.5 s: .*; check bootstrap.servers and that the broker "
        r"runs, or raise task.timeout.ms\n",
        said,
    )


def test_state_that_another_process_holds_is_named_with_folder_and_process(
    run: Run, make_application: Callable[..., str], tmp_path: Path
) -> None:
    """Workers of one application share a state directory: only the folder of a task has one user at a time."""
    name = make_application()
    folder = tmp_path / "state" / "pykstreams" / name / "1_0"
    folder.mkdir(parents=True)
    lock = FileLock(folder / ".lock")
    assert lock.take("12345")

    code, said = run(COUNT, name, "--set", "task.timeout.ms=5000")

    lock.release()
    assert code == 5, said
    held = (
        f"folder 'state/pykstreams/{name}/1_0' of task 1_0 is in use by process 12345; wait until that process has "
        "stopped, or give this worker a state.dir of its own\n"
    )
    warned = re.compile(rf"WARNING .* task 1_0 waits for its state, for up to [0-2] s: {re.escape(held)}")
    assert warned.search(said), said
    assert f"LockError: task 1_0 has waited 5 s (task.timeout.ms) for its state: {held}" in said


def test_workers_that_share_a_state_directory_do_not_lock_each_other_out(
    make_application: Callable[..., str], bootstrap_servers: str, tmp_path: Path
) -> None:
    name = make_application(partitions=4)
    (tmp_path / "job.py").write_text(textwrap.dedent(COUNT))
    command = [sys.executable, "-m", "pykstreams", "run", "job.py", "--application-id", name, "--state-dir", "state"]
    command += ["--bootstrap-servers", bootstrap_servers]
    logs = [tmp_path / "one.log", tmp_path / "two.log"]
    workers = []
    for log in logs:
        with log.open("wb") as out:
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            workers.append(Process(command, cwd=tmp_path, env=environment, stdout=out, stderr=out))
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not all("-> running" in log.read_text() for log in logs):
            assert time.monotonic() < deadline, "".join(log.read_text() for log in logs)
            time.sleep(0.1)
        for worker in workers:
            worker.send_signal(signal.SIGTERM)
        assert [worker.wait(PATIENCE_S) for worker in workers] == [0, 0]
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    ids = {path.read_text() for path in (tmp_path / "state" / "pykstreams" / name).glob("worker-*.id")}
    assert len(ids) == 2
