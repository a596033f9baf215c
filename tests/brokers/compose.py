"""Brokers in containers, run by compose through pytest-docker."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pytest_docker.plugin import Services, get_docker_services

from tests.brokers.brokers import wait_until_ready
from tests.brokers.choice import KafkaChoiceError, compose_command
from tests.brokers.ports import free_ports
from tests.brokers.reaper import when_killed
from tests.brokers.settings import KAFKA_IMAGE, environment_name

ROOT = Path(__file__).parents[2]
ONE_BROKER_FILE = ROOT / "docker-compose.yml"
THREE_BROKERS_FILE = ROOT / "tests/brokers/docker-compose.cluster.yml"
# pytest-docker's default has --wait: docker-compose 1.29 does not know it, and asking Kafka is faster.
SETUP = ["up -d"]
# An orderly stop of throw-away brokers is lost time: 10 s for three of them.
CLEANUP = ["down -v -t 0 --remove-orphans"]


class ComposeBrokers:
    """The brokers of one compose project; implements ``Brokers``."""

    def __init__(self, services: Services, nodes: tuple[str, ...]) -> None:
        self.nodes = nodes
        self.project: str = services._docker_compose._compose_project_name
        self.bootstrap_servers = ",".join(f"127.0.0.1:{services.port_for(node, 29092)}" for node in nodes)
        self._services = services

    def kill(self, node: str) -> None:
        self._compose(f"kill -s SIGKILL {node}")

    def stop(self, node: str) -> None:
        self._compose(f"stop -t 30 {node}")

    def start(self, node: str) -> None:
        self._compose(f"start {node}")

    @contextlib.contextmanager
    def paused(self, node: str) -> Iterator[None]:
        self._compose(f"pause {node}")
        try:
            yield
        finally:
            self._compose(f"unpause {node}")

    def log_tail(self) -> str:
        return self._compose("logs --tail 40")

    def _compose(self, subcommand: str) -> str:
        # pytest-docker keeps what runs commands on the project in a private attribute
        output: bytes = self._services._docker_compose.execute(subcommand)
        return output.decode()


@functools.cache
def ensure_image() -> None:
    """Pulls the broker's image, or builds it where no registry can be reached; quick when it is there."""
    command = [str(ROOT / "scripts/kafka/build-image.sh"), KAFKA_IMAGE]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise KafkaChoiceError(f"image {KAFKA_IMAGE!r} cannot be pulled or built:\n{done.stderr}")


@contextlib.contextmanager
def broker_with(settings: Mapping[str, str], project: str, directory: Path) -> Iterator[ComposeBrokers]:
    """One broker, with settings beside those of ``docker-compose.yml``."""
    os.environ["KAFKA_PORT"] = str(free_ports(1)[0])  # the one that it publishes
    environment = {environment_name(name): value for name, value in settings.items()}
    override = directory / "docker-compose.override.json"  # JSON is YAML
    override.write_text(json.dumps({"services": {"kafka": {"environment": environment}}}))
    with _brokers([ONE_BROKER_FILE, override], project, ("kafka",)) as brokers:
        yield brokers


@contextlib.contextmanager
def three_brokers(project: str) -> Iterator[ComposeBrokers]:
    """Three brokers of one cluster."""
    for number, port in enumerate(free_ports(3), start=1):
        os.environ[f"KAFKA_PORT_{number}"] = str(port)
    with _brokers([THREE_BROKERS_FILE], project, ("kafka-1", "kafka-2", "kafka-3")) as brokers:
        yield brokers


@contextlib.contextmanager
def _brokers(files: Sequence[Path], project: str, nodes: tuple[str, ...]) -> Iterator[ComposeBrokers]:
    ensure_image()
    compose, names = compose_command(), [str(file) for file in files]
    assert compose is not None, "there is no docker compose"
    options = " ".join(f"-f {shlex.quote(name)}" for name in names)
    cleanup = "; ".join(f"{compose} {options} -p {project} {subcommand}" for subcommand in CLEANUP)
    cleaned_up = when_killed(["sh", "-c", cleanup])
    with get_docker_services(compose, names, project, SETUP, CLEANUP) as services:
        brokers = ComposeBrokers(services, nodes)
        wait_until_ready(brokers)
        yield brokers
    cleaned_up()
