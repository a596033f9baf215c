"""The broker that the fixture ``kafka`` gives: one that is named, one in Docker, or one that is there already.

``KAFKA_BOOTSTRAP_SERVERS`` names one and comes first; then Docker where a daemon answers, with the image that
``KAFKA_IMAGE`` names; then whoever listens on ``localhost:9092``.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from pykstreams.core.clock import SystemClock
from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ClusterError
from pykstreams.runtime.clients.admin import ClusterAdmin

IMAGE: Final = "apache/kafka:4.3.1"
LOCAL: Final = "localhost:9092"
_START_TIMEOUT_S: Final = 60.0
_DOCKER_TIMEOUT_S: Final = 300.0
"""The image may have to be pulled."""

_STARTS: Final = 3
"""How many ports are tried: a free one may be taken by another program before Docker has it."""
_PORT_TAKEN: Final = ("port is already allocated", "address already in use")
"""What Docker says then."""

_SETTINGS: Mapping[str, str] = {
    "KAFKA_NODE_ID": "1",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9093",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "KAFKA_AUTO_CREATE_TOPICS_ENABLE": "false",
    "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
}


class NoKafkaError(Exception):
    """There is no broker for tests; the text says how to get one."""


class Ran(NamedTuple):
    """The output of a program and its messages; ``output`` is ``None`` where it is missing, fails or hangs."""

    output: str | None
    error: str = ""


class Machine(Protocol):
    """The questions to the machine that tests run on."""

    def run(self, command: Sequence[str], timeout_s: float) -> Ran:
        """Runs a program to its end."""
        ...

    def listens(self, address: str) -> bool:
        """Whether somebody takes connections at an address."""
        ...

    def free_port(self) -> int:
        """Returns a port that nobody listens on."""
        ...

    def wait_until_ready(self, bootstrap_servers: str) -> None:
        """Waits for a broker that has just been started; ``ClusterError`` where it does not come."""
        ...


class ThisMachine:
    """The real one."""

    def run(self, command: Sequence[str], timeout_s: float) -> Ran:
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s)
        except (FileNotFoundError, subprocess.TimeoutExpired) as error:
            return Ran(None, str(error))
        return Ran(done.stdout if done.returncode == 0 else None, done.stderr)

    def listens(self, address: str) -> bool:
        host, _, port = address.rpartition(":")
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
            return True
        return False

    def free_port(self) -> int:
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            port: int = found.getsockname()[1]
            return port

    def wait_until_ready(self, bootstrap_servers: str) -> None:
        config = StreamsConfig({"application.id": "kafka-for-tests", "bootstrap.servers": bootstrap_servers})
        admin = ClusterAdmin.open(config.client_supplier, config, "kafka-for-tests", SystemClock())
        admin.wait_until_reachable(at_most_s=_START_TIMEOUT_S)


@contextlib.contextmanager
def broker(environment: Mapping[str, str], machine: Machine) -> Iterator[str]:
    """Yields the address of a broker, which is taken away afterwards if it was started here; ``NoKafkaError`` if there
    is none.
    """
    if given := environment.get("KAFKA_BOOTSTRAP_SERVERS"):
        yield given
    elif machine.run(("docker", "version"), 30).output is not None:
        with _in_docker(environment.get("KAFKA_IMAGE", IMAGE), machine) as address:
            yield address
    elif machine.listens(LOCAL):
        yield LOCAL
    else:
        raise NoKafkaError(
            f"there is no Kafka for tests: KAFKA_BOOTSTRAP_SERVERS is not set, no Docker daemon answers, and nobody "
            f"listens on {LOCAL}; start Docker, or a broker"
        )


@contextlib.contextmanager
def _in_docker(image: str, machine: Machine) -> Iterator[str]:
    name = f"pykstreams-kafka-{secrets.token_hex(4)}"
    try:
        address = _started(image, name, machine)
        try:
            machine.wait_until_ready(address)
        except ClusterError as error:
            log = machine.run(("docker", "logs", "--tail", "40", name), 30)
            raise NoKafkaError(
                f"the broker of {image!r} does not answer at {address}: {error}\n{log.output or ''}"
            ) from error
        yield address
    finally:
        _remove(name, machine)


def _started(image: str, name: str, machine: Machine) -> str:
    """Starts a broker, and returns its address."""
    for others_left in reversed(range(_STARTS)):
        port = machine.free_port()
        start = _start_command(image, name, port)
        ran = machine.run(start, _DOCKER_TIMEOUT_S)
        if ran.output is not None:
            return f"127.0.0.1:{port}"
        if not others_left or not any(said in ran.error for said in _PORT_TAKEN):
            break
        _remove(name, machine)
    raise NoKafkaError(
        f"Docker did not start {image!r}: {ran.error.strip()}; the command was {' '.join(start)}. If there is no such "
        "image, set KAFKA_IMAGE to one that is there"
    )


def _start_command(image: str, name: str, port: int) -> tuple[str, ...]:
    settings = {
        **_SETTINGS,
        "KAFKA_LISTENERS": f"CONTROLLER://localhost:9093,PLAINTEXT://:{port}",
        "KAFKA_ADVERTISED_LISTENERS": f"PLAINTEXT://127.0.0.1:{port}",
    }
    variables = [part for setting, value in settings.items() for part in ("--env", f"{setting}={value}")]
    publish = f"127.0.0.1:{port}:{port}"
    return ("docker", "run", "--detach", "--rm", "--name", name, "--publish", publish, *variables, image)


def _remove(name: str, machine: Machine) -> None:
    machine.run(("docker", "rm", "--force", name), 60)
