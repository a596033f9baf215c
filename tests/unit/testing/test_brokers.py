"""Where the fixture ``kafka`` has its broker from."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager

import pytest

from pykstreams.core.errors import ClusterError
from pykstreams.testing.brokers import NoKafkaError, Ran, ThisMachine, broker


class FakeMachine:
    """A machine with or without Docker, and a broker of its own.

    :param refusals: what Docker says to one attempt to start a container after the other, before it starts one.
    """

    def __init__(
        self, *, docker: bool = False, local: bool = False, refusals: Sequence[str] = (), starts: bool = True
    ) -> None:
        self._docker = docker
        self._local = local
        self._refusals = list(refusals)
        self._starts = starts
        self._ports = itertools.count(40123)
        self.commands: list[tuple[str, ...]] = []

    def run(self, command: Sequence[str], timeout_s: float) -> Ran:
        self.commands.append(tuple(command))
        if command[1] == "logs":
            return Ran("out of memory")
        if command[1] == "run" and self._refusals:
            return Ran(None, self._refusals.pop(0))
        return Ran("" if self._docker else None)

    def listens(self, address: str) -> bool:
        return self._local and address == "localhost:9092"

    def free_port(self) -> int:
        return next(self._ports)

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
        pytest.raises(NoKafkaError, match=r"did not start 'apache/kafka:4\.3\.1': no such image; .*set KAFKA_IMAGE"),
        given(FakeMachine(docker=True, refusals=["no such image\n"])),
    ):
        raise AssertionError("there is none")


@pytest.mark.parametrize(
    "said",
    [
        "Bind for 127.0.0.1:40123 failed: port is already allocated.",
        "failed to bind host port for 127.0.0.1:40123: address already in use",
    ],
)
def test_a_port_that_was_taken_meanwhile_is_given_up_for_another_one(said: str) -> None:
    machine = FakeMachine(docker=True, refusals=[said])

    with given(machine) as address:
        assert address == "127.0.0.1:40124"
    run_or_removed = [command[1] for command in machine.commands]
    assert run_or_removed == ["version", "run", "rm", "run", "rm"]


def test_an_error_of_docker_about_ports_that_stays_is_told() -> None:
    machine = FakeMachine(docker=True, refusals=["address already in use"] * 3)

    with pytest.raises(NoKafkaError, match="address already in use"), given(machine):
        raise AssertionError("there is none")


def test_a_broker_that_does_not_answer_is_told_with_its_log_and_its_container_goes() -> None:
    machine = FakeMachine(docker=True, starts=False)

    with pytest.raises(NoKafkaError, match="nobody answers\nout of memory"), given(machine):
        raise AssertionError("there is none")
    assert machine.commands[-1][:3] == ("docker", "rm", "--force")


def test_this_machine_runs_programs_and_finds_ports() -> None:
    machine = ThisMachine()

    assert machine.run(("echo", "there"), 30) == ("there\n", "")
    assert machine.run(("sh", "-c", "echo why >&2; false"), 30) == (None, "why\n")
    assert "no-program-has-this-name" in machine.run(("no-program-has-this-name",), 30).error
    assert not machine.listens(f"127.0.0.1:{machine.free_port()}")
