"""Which Kafka the tests use: given address, Docker, local process, none; nothing is left out silently."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.brokers import plugin
from tests.brokers.choice import Flavour, KafkaChoice, KafkaChoiceError, choose

ROOT = Path(__file__).parents[3]


@dataclass
class FakeMachine:
    docker: bool = False
    java: bool = False

    def has_docker(self) -> bool:
        return self.docker

    def has_java(self) -> bool:
        return self.java


EVERYTHING = FakeMachine(docker=True, java=True)
NOTHING = FakeMachine()


@pytest.mark.parametrize(
    ("environment", "machine", "header"),
    [
        ({"KAFKA_BOOTSTRAP_SERVERS": "host:9092"}, EVERYTHING, "KAFKA_BOOTSTRAP_SERVERS=host:9092"),
        ({}, EVERYTHING, "docker 4.3.1"),
        ({}, FakeMachine(java=True), "local JVM 4.3.1"),
        ({}, NOTHING, "none"),
        ({"KAFKA_FLAVOUR": "docker"}, EVERYTHING, "docker 4.3.1"),
        ({"KAFKA_FLAVOUR": "local"}, EVERYTHING, "local JVM 4.3.1"),
        ({"KAFKA_FLAVOUR": "none"}, EVERYTHING, "none"),
    ],
)
def test_first_that_can_be_had_is_chosen(environment: dict[str, str], machine: FakeMachine, header: str) -> None:
    assert str(choose(environment, machine)) == header


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        (
            {"KAFKA_FLAVOUR": "docker"},
            "KAFKA_FLAVOUR='docker', but no Docker daemon answers or compose is missing; "
            "scripts/kafka/docker-up.sh installs and starts both (as root, on Debian)",
        ),
        (
            {"KAFKA_FLAVOUR": "local"},
            "KAFKA_FLAVOUR='local', but Java 17 or Maven is missing; "
            "install both (Debian: apt-get install openjdk-17-jdk-headless maven)",
        ),
        ({"KAFKA_FLAVOUR": "podman"}, "KAFKA_FLAVOUR='podman' is unknown; use 'docker', 'local' or 'none'"),
        (
            {"KAFKA_FLAVOUR": "local", "KAFKA_BOOTSTRAP_SERVERS": "a:1"},
            "KAFKA_BOOTSTRAP_SERVERS='a:1' and KAFKA_FLAVOUR='local' exclude each other; unset one",
        ),
    ],
)
def test_wish_that_cannot_be_met_is_an_error(environment: dict[str, str], message: str) -> None:
    with pytest.raises(KafkaChoiceError) as raised:
        choose(environment, NOTHING)

    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("choice", "advice"),
    [
        (
            KafkaChoice(Flavour.NONE),
            "start Docker, or install Java 17 and Maven, or set KAFKA_BOOTSTRAP_SERVERS, and run again",
        ),
        (KafkaChoice(Flavour.NONE, forced=True), "unset KAFKA_FLAVOUR"),
        (
            KafkaChoice(Flavour.GIVEN, "a:1"),
            "unset KAFKA_BOOTSTRAP_SERVERS, so that the tests start brokers of their own",
        ),
    ],
)
def test_advice_fits_the_reason(choice: KafkaChoice, advice: str) -> None:
    assert choice.how_to_run_the_rest() == advice


def run_pytest(**environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a few of the integration tests in a process of its own."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in {"KAFKA_BOOTSTRAP_SERVERS", "KAFKA_FLAVOUR", "REQUIRE_KAFKA"}
    }
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/integration/test_broker_round_trip.py"]
    return subprocess.run(
        command, cwd=ROOT, env={**inherited, **environment}, capture_output=True, text=True, timeout=120
    )


@pytest.mark.slow
def test_run_without_kafka_says_what_was_not_run() -> None:
    done = run_pytest(KAFKA_FLAVOUR="none")
    lines = done.stdout.splitlines()

    assert "kafka: none" in lines
    assert lines[-2].startswith("NOT RUN: ")
    assert lines[-2].endswith(" tests against Kafka (kafka: none); to run them, unset KAFKA_FLAVOUR")


@pytest.mark.slow
def test_run_without_kafka_fails_where_kafka_is_required() -> None:
    done = run_pytest(KAFKA_FLAVOUR="none", REQUIRE_KAFKA="1")

    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "tests cannot run with kafka: none; unset KAFKA_FLAVOUR" in done.stderr


@dataclass(eq=False)
class FakeItem:
    """A test in ``tests/integration``."""

    fixturenames: tuple[str, ...] = ("bootstrap_servers",)
    path: Path = ROOT / "tests" / "integration" / "test_x.py"
    marks: list[pytest.Mark] = field(default_factory=list)

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        self.marks.append(mark.mark)

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return next((mark for mark in self.marks if mark.name == name), None)


class FakeConfig:
    """The configuration of a process that runs tests for another, or (without output) starts such processes."""

    def __init__(self, **output: Any) -> None:
        self.stash = pytest.Stash()
        self.hook = SimpleNamespace(pytest_deselected=lambda items: None)
        self.__dict__.update(output)


@pytest.fixture
def left_out(monkeypatch: pytest.MonkeyPatch) -> Callable[[], FakeConfig]:
    """Leaves out a test for want of Kafka in another process; gives the configuration that heard of it."""
    monkeypatch.setattr(plugin, "chosen", lambda: KafkaChoice(Flavour.NONE, forced=True))

    def leave_out() -> FakeConfig:
        running, starting = FakeConfig(workeroutput={}), FakeConfig()
        item = FakeItem()
        plugin.pytest_itemcollected(item)  # type: ignore[arg-type]
        items = [item]
        plugin.pytest_collection_modifyitems(running, items)  # type: ignore[arg-type]
        assert items == []
        plugin.pytest_testnodedown(SimpleNamespace(config=starting, workeroutput=running.workeroutput))  # type: ignore[attr-defined]
        return starting

    return leave_out


def test_process_that_runs_tests_for_another_tells_it_what_it_has_left_out(
    left_out: Callable[[], FakeConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REQUIRE_KAFKA", raising=False)
    lines: list[str] = []
    terminal = SimpleNamespace(write_line=lambda line, **look: lines.append(line))
    plugin.pytest_terminal_summary(terminal, left_out())  # type: ignore[arg-type]

    assert lines == ["NOT RUN: 1 tests against Kafka (kafka: none); to run them, unset KAFKA_FLAVOUR"]


def test_process_that_runs_tests_for_another_runs_none_where_kafka_is_required(
    left_out: Callable[[], FakeConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUIRE_KAFKA", "1")

    with pytest.raises(pytest.UsageError, match="REQUIRE_KAFKA=1, but 1 tests cannot run with kafka: none"):
        left_out()


@pytest.mark.parametrize(
    ("fixtures", "group"),
    [(("bootstrap_servers",), "shared broker"), (("start_broker",), None), (("three_brokers",), "test_x")],
)
def test_tests_that_share_brokers_stay_in_one_process(fixtures: tuple[str, ...], group: str | None) -> None:
    item = FakeItem(fixtures)
    plugin.pytest_itemcollected(item)  # type: ignore[arg-type]
    mark = item.get_closest_marker("xdist_group")

    assert (None if mark is None else mark.args[0]) == group
