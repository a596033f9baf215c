"""Which Kafka the tests run against: decided here, once, and printed at the start of the run.

``KAFKA_BOOTSTRAP_SERVERS`` comes first, then Docker where a daemon answers, then a local process where Java
and Maven are there, then none. ``KAFKA_FLAVOUR=docker|local|none`` leaves only that one; what it asks for
and this machine does not have is an error. ``REQUIRE_KAFKA=1`` makes it an error when tests cannot be run
for want of a broker.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from tests.brokers.settings import KAFKA_VERSION

OLDEST_JAVA = 17


class KafkaChoiceError(Exception):
    """The environment asks for a Kafka that cannot be had."""


class Flavour(Enum):
    """Where the brokers come from."""

    GIVEN = "given"
    DOCKER = "docker"
    LOCAL = "local"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class KafkaChoice:
    """What was chosen; ``given`` holds the address, and is empty for every other flavour.

    ``forced`` is true where ``KAFKA_FLAVOUR`` made the choice.
    """

    flavour: Flavour
    given: str = ""
    forced: bool = False

    def __str__(self) -> str:
        match self.flavour:
            case Flavour.GIVEN:
                return f"KAFKA_BOOTSTRAP_SERVERS={self.given}"
            case Flavour.DOCKER:
                return f"docker {KAFKA_VERSION}"
            case Flavour.LOCAL:
                return f"local JVM {KAFKA_VERSION}"
            case Flavour.NONE:
                return "none"

    def how_to_run_the_rest(self) -> str:
        """What to do so that the tests run which this choice cannot run."""
        if self.flavour is Flavour.GIVEN:
            return "unset KAFKA_BOOTSTRAP_SERVERS, so that the tests start brokers of their own"
        if self.forced:
            return "unset KAFKA_FLAVOUR"
        return f"start Docker, or install Java {OLDEST_JAVA} and Maven, or set KAFKA_BOOTSTRAP_SERVERS, and run again"


class Machine(Protocol):
    """What the choice asks the machine."""

    def has_docker(self) -> bool: ...

    def has_java(self) -> bool: ...


class ThisMachine:
    """Asks the real one."""

    def has_docker(self) -> bool:
        """Whether a daemon answers, and compose is there to talk to it."""
        return _succeeds("docker", "info") and compose_command() is not None

    def has_java(self) -> bool:
        """Whether Java is new enough for the broker, and Maven is there to fetch it."""
        if shutil.which("java") is None or shutil.which("mvn") is None:
            return False
        done = subprocess.run(["java", "-version"], capture_output=True, text=True)
        found = re.search(r'version "(\d+)', done.stderr)
        return found is not None and int(found[1]) >= OLDEST_JAVA


def choose(environment: Mapping[str, str], machine: Machine) -> KafkaChoice:
    """The choice for an environment and a machine."""
    given = environment.get("KAFKA_BOOTSTRAP_SERVERS", "")
    forced = environment.get("KAFKA_FLAVOUR", "")
    if given and forced:
        raise KafkaChoiceError(
            f"KAFKA_BOOTSTRAP_SERVERS={given!r} and KAFKA_FLAVOUR={forced!r} exclude each other; unset one"
        )
    if given:
        return KafkaChoice(Flavour.GIVEN, given)
    match forced:
        case "":
            if machine.has_docker():
                return KafkaChoice(Flavour.DOCKER)
            return KafkaChoice(Flavour.LOCAL if machine.has_java() else Flavour.NONE)
        case "docker":
            if not machine.has_docker():
                raise KafkaChoiceError(
                    "KAFKA_FLAVOUR='docker', but no Docker daemon answers or compose is missing; "
                    "scripts/kafka/docker-up.sh installs and starts both (as root, on Debian)"
                )
            return KafkaChoice(Flavour.DOCKER, forced=True)
        case "local":
            if not machine.has_java():
                raise KafkaChoiceError(
                    f"KAFKA_FLAVOUR='local', but Java {OLDEST_JAVA} or Maven is missing; "
                    "install both (Debian: apt-get install openjdk-17-jdk-headless maven)"
                )
            return KafkaChoice(Flavour.LOCAL, forced=True)
        case "none":
            return KafkaChoice(Flavour.NONE, forced=True)
    raise KafkaChoiceError(f"KAFKA_FLAVOUR={forced!r} is unknown; use 'docker', 'local' or 'none'")


@functools.cache
def chosen() -> KafkaChoice:
    """The choice of this run."""
    return choose(os.environ, ThisMachine())


@functools.cache
def compose_command() -> str | None:
    """``docker compose`` (v2) where there is one, else ``docker-compose``, else nothing."""
    if _succeeds("docker", "compose", "version"):
        return "docker compose"
    return "docker-compose" if shutil.which("docker-compose") else None


def _succeeds(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, timeout=30).returncode == 0
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return False
