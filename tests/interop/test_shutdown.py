"""A worker of one language asks all of the application to shut down; those of the other do."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from pykstreams import KafkaStreams, StreamsConfig
from pykstreams.core.handlers import StreamThreadExceptionResponse
from pykstreams.runtime.life_cycle import State
from tests.interop import applications
from tests.interop.conftest import MakeTurns
from tests.interop.fleet import JAVA, PYTHON, Fleet
from tests.interop.java_host import PATIENCE_S, JavaHost
from tests.interop.modes import MODES
from tests.interop.programs import Row

PROGRAM = "counts_of_three_partitions"
PARTITIONS = 3
POISON_OF_JAVA = "poison-for-java"


@pytest.fixture
def make_fleet(make_turns: MakeTurns, java: JavaHost) -> Iterator[Callable[[str], Fleet]]:
    made: list[Fleet] = []

    def make(mode: str) -> Fleet:
        made.append(Fleet(make_turns(PROGRAM, MODES[mode]), java))
        return made[-1]

    yield make
    for fleet in made:
        fleet.end()


def poison(fleet: Fleet, word: str) -> None:
    fleet.turns.send(Row("in", number, "k", word, 0, []) for number in range(PARTITIONS))


@pytest.mark.parametrize("mode", ["kept", pytest.param("streams", marks=pytest.mark.nightly)])
def test_a_worker_of_python_has_java_shut_down_too(make_fleet: Callable[[str], Fleet], mode: str) -> None:
    fleet = make_fleet(mode)
    turns = fleet.turns
    fleet.start(JAVA, "j1")
    own = {"application.id": turns.name, "bootstrap.servers": turns.brokers, "state.dir": str(turns.folder / "p1")}
    config = StreamsConfig({**turns.settings, **own})
    with KafkaStreams(
        applications.counts_of_three_partitions(config),
        config,
        uncaught_exception_handler=lambda _: StreamThreadExceptionResponse.SHUTDOWN_APPLICATION,
    ) as streams:
        turns.wait("Python works on tasks", lambda: any(one.running for one in streams.health().tasks.values()))
        poison(fleet, applications.POISON)

        assert fleet.java.wait_for(fleet.name("j1"), "STATE", "ERROR") == []
        turns.wait("Python has stopped", lambda: streams.state is State.ERROR)
        assert applications.POISON in str(streams.error)


@pytest.mark.parametrize("mode", [pytest.param("kept", marks=pytest.mark.nightly), "streams"])
def test_an_instance_of_java_has_python_shut_down_too(make_fleet: Callable[[str], Fleet], mode: str) -> None:
    fleet = make_fleet(mode)
    fleet.start(JAVA, "j1")
    fleet.start(PYTHON, "p1")
    poison(fleet, POISON_OF_JAVA)
    worker = fleet.processes.pop("p1")

    assert worker.wait(PATIENCE_S) != 0
    assert "has asked all of them to shut down" in fleet.said("p1")
