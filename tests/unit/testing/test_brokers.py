"""Where the fixture ``kafka`` has its broker from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager

import pytest

from pykstreams.core.errors import ClusterError
from pykstreams.testing.brokers import NoKafkaError, ThisMachine, broker


class FakeMachine:
    """A machine with or without Docker, and a broker of its own."""

    def __init__(self, *, docker: bool = False, local: bool = False, image: bool = True, starts: bool = True) -> None:
        self._docker = docker
        self._local = local
        self._image = image
        self._starts = starts
        self.commands: list[tuple[str, ...]] = []

    def run(self, command: Sequence[str], timeout_s: float) -> str | None:
        self.commands.append(tuple(command))
        if command[1] == "logs":
            return "out of memory"
        return "" if self._docker and (self._image or command[1] != "run") else None

    def listens(self, address: str) -> bool:
        return self._local and address == "localhost:9092"

    def free_port(self) -> int:
        return 40123

    def wait_until_ready(self, bootstrap_servers: str) -> None:
        if not self._starts:
            raise ClusterError("nobody answers")


def given(machine: FakeMachine, environment: Mapping[str, str] | None = None) -> AbstractContextManager[str]:
    return broker(environment or {}, machine)


def test_a_broker_that_is_named_comes_first() -> None:
    machine = FakeMachine(docker=True, local=True)

    with given(machine, {"KAFKA_BOOTSTRAP_SERVERS": "kafka:9092"}) as address:
        assert address == "kafka:9092"
    assert machine.commands == []


def test_docker_comes_before_the_broker_of_the_machine_and_its_container_goes() -> None:
    machine = FakeMachine(docker=True, local=True)

    with given(machine) as address:
        assert address == "127.0.0.1:40123"
        start = machine.commands[-1]
    assert start[:4] == ("docker", "run", "--detach", "--rm")
    assert start[-1] == "apache/kafka:4.3.1"
    assert "127.0.0.1:40123:40123" in start
    assert "KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://127.0.0.1:40123" in start
    name = start[start.index("--name") + 1]
    assert machine.commands[-1] == ("docker", "rm", "--force", name)


def test_the_image_can_be_named() -> None:
    machine = FakeMachine(docker=True)

    with given(machine, {"KAFKA_IMAGE": "kafka:mine"}):
        assert machine.commands[-1][-1] == "kafka:mine"


def test_without_docker_the_broker_of_the_machine_is_taken() -> None:
    with given(FakeMachine(local=True)) as address:
        assert address == "localhost:9092"


def test_where_there_is_none_the_ways_to_one_are_told() -> None:
    with (
        pytest.raises(NoKafkaError, match=r"KAFKA_BOOTSTRAP_SERVERS is not set.*start Docker, or a broker"),
        given(FakeMachine()),
    ):
        raise AssertionError("there is none")


def test_an_image_that_cannot_be_had_is_told() -> None:
    with (
        pytest.raises(NoKafkaError, match=r"did not start 'apache/kafka:4\.3\.1'.*set KAFKA_IMAGE"),
        given(FakeMachine(docker=True, image=False)),
    ):
        raise AssertionError("there is none")


def test_a_broker_that_does_not_answer_is_told_with_its_log_and_its_container_goes() -> None:
    machine = FakeMachine(docker=True, starts=False)

    with pytest.raises(NoKafkaError, match="nobody answers\nout of memory"), given(machine):
        raise AssertionError("there is none")
    assert machine.commands[-1][:3] == ("docker", "rm", "--force")


def test_this_machine_runs_programs_and_finds_ports() -> None:
    machine = ThisMachine()

    assert machine.run(("echo", "there"), 30) == "there\n"
    assert machine.run(("false",), 30) is None
    assert machine.run(("no-program-has-this-name",), 30) is None
    assert not machine.listens(f"127.0.0.1:{machine.free_port()}")
