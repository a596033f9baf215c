"""Streams groups as Kafka's own tools see them, and what they refuse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from pykstreams import StreamsConfig
from pykstreams.runtime.clients.coordinators.streams_coordinator import StreamsCoordinator
from tests.interop.conftest import MakeTurns
from tests.interop.fleet import JAVA, PYTHON, Fleet
from tests.interop.java_host import PATIENCE_S, JavaHost
from tests.interop.modes import MODES

TOOL = "org.apache.kafka.tools.streams.StreamsGroupCommand"


@pytest.fixture
def make_fleet(make_turns: MakeTurns, java: JavaHost) -> Iterator[Callable[[str], Fleet]]:
    made: list[Fleet] = []

    def make(program: str) -> Fleet:
        made.append(Fleet(make_turns(program, MODES["streams"]), java))
        return made[-1]

    yield make
    for fleet in made:
        fleet.end()


def described(fleet: Fleet, what: str) -> list[str]:
    turns = fleet.turns
    arguments = ["--bootstrap-server", turns.brokers, "--describe", "--group", turns.name, what]
    done = fleet.java.run_tool(TOOL, *arguments)
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines() if turns.name in line]


def test_the_tools_of_kafka_show_members_of_both_languages_and_their_tasks(
    make_fleet: Callable[[str], Fleet],
) -> None:
    fleet = make_fleet("counts_of_three_partitions")
    fleet.start(PYTHON, "p1")
    fleet.start(JAVA, "j1")

    def is_stable() -> bool:
        return "Stable" in " ".join(described(fleet, "--state"))

    fleet.turns.wait("the group is stable", is_stable)
    members = described(fleet, "--members")
    assert len(members) == 2
    assert all("ACTIVE" in line or "0:[" in line or "1:[" in line for line in members), members
    assert any("-membership" in line for line in members), members
    assert_each_task_is_assigned_once(fleet, [line.split()[1] for line in members])


def assert_each_task_is_assigned_once(fleet: Fleet, members: list[str]) -> None:
    config = StreamsConfig({"application.id": fleet.turns.name, "bootstrap.servers": fleet.turns.brokers})
    coordinator = StreamsCoordinator.open(config, "onlooker")
    active = Counter(task for member in members for task in coordinator.assigned(member).active)
    coordinator.close()
    assert set(active.values()) == {1}
    assert {task.partition for task in active} == {0, 1, 2}


def test_a_worker_with_another_topology_ends_and_says_what_to_do(make_fleet: Callable[[str], Fleet]) -> None:
    fleet = make_fleet("count")
    fleet.start(JAVA, "j1")
    fleet.turns.program = "sessions"
    worker = fleet.launch_python("p1")

    assert worker.wait(PATIENCE_S) == 2
    assert "the group does not take the topology of this worker" in fleet.said("p1")
    assert "group.protocol=classic" in fleet.said("p1")
