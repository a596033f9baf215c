"""Static members of the group (``group.instance.id``): a worker that comes back in time finds its tasks, and the others
keep theirs."""

from __future__ import annotations

import os
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from pykstreams import Consumed, KafkaStreams, Serdes, StreamsBuilder, StreamsConfig
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.life_cycle import State
from pykstreams.state.directory.state_directory import OWN_FOLDER
from tests.brokers.brokers import create_topic
from tests.integration.workers import Workers

pytestmark = pytest.mark.slow

PARTITIONS = 4
SESSION_MS = 30_000
WORDS = tuple(f"word-{number}" for number in range(40))

COUNT = """
    from pykstreams import Consumed, Materialized, Produced, Serdes, StreamsBuilder

    text = Serdes.string()

    def build(config):
        name = config.application_id
        builder = StreamsBuilder()
        (
            builder.stream(f"{name}-in", Consumed(key_serde=text, value_serde=text))
            .group_by_key()
            .count(materialized=Materialized("counts"))
            .to_stream()
            .to(f"{name}-out", Produced(key_serde=text, value_serde=Serdes.long()))
        )
        return builder.build()
"""

Make = Callable[..., Workers]


@pytest.fixture
def make_application(bootstrap_servers: str, make_name: Callable[[str], str], tmp_path: Path) -> Iterator[Make]:
    made: list[Workers] = []

    def make(guarantee: str, *options: str) -> Workers:
        name = make_name("static")
        for topic in ("in", "out"):
            create_topic(bootstrap_servers, f"{name}-{topic}", partitions=PARTITIONS)
        settings = (
            f"processing.guarantee={guarantee}",
            f"consumer.session.timeout.ms={SESSION_MS}",
            "commit.interval.ms=100",
        )
        made.append(Workers(bootstrap_servers, name, tmp_path, COUNT, PARTITIONS, settings, options))
        return made[-1]

    yield make
    for application in made:
        application.end()


def instances(application: Workers) -> dict[str, set[str]]:
    """The members of the group by the ids of their instances, with the partitions they have."""
    admin = AdminClient({"bootstrap.servers": application.brokers})
    group = admin.describe_consumer_groups([application.name])[application.name].result(30)
    return {
        member.group_instance_id: {
            str(TopicPartition(place.topic, place.partition)) for place in member.assignment.topic_partitions
        }
        for member in group.members
    }


def counted(application: Workers, times: int) -> bool:
    """Whether every word was counted so often, and no word more often."""
    counts = {
        word: int.from_bytes(count, "big") for word, count in application.last_values(["out"])["out"].items() if count
    }
    assert all(count <= times for count in counts.values()), counts
    return counts == dict.fromkeys(WORDS, times)


def send_words(application: Workers) -> None:
    application.send(("in", word, "x") for word in WORDS)


@pytest.mark.parametrize(
    ("guarantee", "end"),
    [
        pytest.param("at_least_once", signal.SIGTERM, marks=pytest.mark.nightly),
        pytest.param("at_least_once", signal.SIGKILL, marks=pytest.mark.nightly),
        pytest.param("exactly_once_v2", signal.SIGTERM, marks=pytest.mark.nightly),
        ("exactly_once_v2", signal.SIGKILL),
    ],
)
def test_a_worker_that_comes_back_in_time_has_its_tasks_and_no_other_task_moves(
    make_application: Make, guarantee: str, end: signal.Signals
) -> None:
    application = make_application(guarantee)
    for worker in ("one", "two"):
        application.start(worker, f"consumer.group.instance.id={worker}")
    application.wait("both have tasks", lambda: len(application.running()) == 2 and application.running_tasks() == 4)
    before, members, said = application.running(), instances(application), len(application.log("one"))
    send_words(application)
    application.wait("the words are counted once", lambda: counted(application, 1))

    application.processes["two"].send_signal(end)
    application.processes["two"].wait(60)
    send_words(application)
    application.start("two", "consumer.group.instance.id=two")
    application.wait("the words are counted twice", lambda: counted(application, 2))

    assert application.running() == before
    assert instances(application) == members
    assert set(members) == {"one-1", "two-1"}
    assert not moves(application.log("one")[said:])


@pytest.mark.parametrize("guarantee", [pytest.param("at_least_once", marks=pytest.mark.nightly), "exactly_once_v2"])
def test_a_worker_of_a_supervisor_that_was_killed_is_started_again_and_has_its_tasks(
    make_application: Make, guarantee: str
) -> None:
    application = make_application(guarantee, "--workers", "2")
    application.start("both", "group.instance.id=box")
    application.wait("there are two members", lambda: sorted(map(len, instances(application).values())) == [2, 2])
    # their lines are in one log, in an order that says nothing of which came first
    application.wait("each has two tasks", lambda: sorted(Counter(pids(application).values()).values()) == [2, 2])
    members, said = instances(application), len(application.log("both"))
    before = pids(application)
    send_words(application)
    application.wait("the words are counted once", lambda: counted(application, 1))

    os.kill(before["0"], signal.SIGKILL)
    send_words(application)
    application.wait("the words are counted twice", lambda: counted(application, 2))

    assert instances(application) == members
    assert set(members) == {"box-1-1", "box-2-1"}
    kept = {partition for partition, pid in before.items() if pid != before["0"]}
    assert {partition for partition, pid in pids(application).items() if pid == before[partition]} == kept
    assert "ended with signal 9; starting it again" in application.log("both")[said:]
    assert moves(application.log("both")[said:]) == ["were given to this worker"]


@pytest.mark.parametrize("guarantee", ["at_least_once", pytest.param("exactly_once_v2", marks=pytest.mark.nightly)])
def test_a_worker_whose_instance_id_another_has_taken_ends_and_says_so(make_application: Make, guarantee: str) -> None:
    application = make_application(guarantee)
    application.start("first", "consumer.group.instance.id=same")
    application.wait("the first has the tasks", lambda: application.running_tasks() == 4)
    first = application.processes.pop("first")

    application.start("second", "consumer.group.instance.id=same")

    assert first.wait(60) == 2
    said = (application.folder / "1-first.log").read_text()
    assert (
        "ConfigError: another worker has joined the group with the group.instance.id of this one; give each worker "
        "that runs at the same time an id of its own\n"
    ) in said
    send_words(application)
    application.wait("the second counts the words", lambda: counted(application, 1))


def test_threads_of_one_process_have_ids_of_their_own(make_application: Make, tmp_path: Path) -> None:
    application = make_application("at_least_once")
    builder, text = StreamsBuilder(), Serdes.string()
    builder.stream(application.topic("in"), Consumed(key_serde=text, value_serde=text)).foreach(lambda key, value: None)
    config = StreamsConfig(
        {
            "application.id": application.name,
            "bootstrap.servers": application.brokers,
            "state.dir": str(tmp_path / "state"),
            "num.stream.threads": 2,
            "group.instance.id": "process",
        }
    )

    with KafkaStreams(builder.build(config), config) as streams:
        assert streams.wait_for_state(State.RUNNING, 60_000)
        application.wait("both have tasks", lambda: sorted(map(len, instances(application).values())) == [2, 2])

        assert set(instances(application)) == {"process-1", "process-2"}


def moves(log: str) -> list[str]:
    """What workers say of tasks that come and go."""
    return re.findall(r"were given to this worker|leave this worker", log)


def pids(application: Workers) -> dict[str, int]:
    """The process of each partition's task, as far as it has one."""
    tasks = application.folder / "both" / OWN_FOLDER / application.name
    locks = {str(number): tasks / f"0_{number}" / ".lock" for number in range(PARTITIONS)}
    return {number: int(text) for number, lock in locks.items() if lock.exists() and (text := lock.read_text())}
