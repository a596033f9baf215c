"""Fixtures for tests with the real Java library: brokers as for the other tests with Kafka, and one JVM for all."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest

from tests.interop.fleet import Fleet
from tests.interop.java_host import JavaHost, class_path
from tests.interop.modes import MODES, Mode
from tests.interop.programs import Program
from tests.interop.turns import Turns


def pytest_itemcollected(item: pytest.Item) -> None:
    """Where tests run in several processes, one of them has the JVM."""
    item.add_marker(pytest.mark.integration)
    item.add_marker(pytest.mark.slow)
    item.add_marker(pytest.mark.xdist_group("interop"))


class MakeTurns(Protocol):
    """``make_turns("count")`` gives an application of its own, which is ended after the test."""

    def __call__(
        self,
        program: str,
        mode: Mode = MODES["kept"],
        *,
        one_state_directory: bool = False,
        spec: Program | None = None,
    ) -> Turns: ...


class MakeFleet(Protocol):
    """``make_fleet("count", "streams")`` gives an application of its own, without a worker."""

    def __call__(self, program: str, mode: str, spec: Program | None = None) -> Fleet: ...


@pytest.fixture(scope="session")
def java_path() -> str:
    """The class path of the Java side."""
    missing = [tool for tool in ("java", "javac", "mvn") if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"there is no {' and no '.join(missing)} on this machine; install a JDK, 17 or newer, and Maven")
    return class_path()


@pytest.fixture(scope="session")
def java(java_path: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaHost]:
    """A JVM for all applications that are not killed."""
    host = JavaHost(java_path, tmp_path_factory.mktemp("java") / "java.log")
    yield host
    host.kill()


@pytest.fixture
def make_turns(
    bootstrap_servers: str,
    java_path: str,
    java: JavaHost,
    make_name: Callable[[str], str],
    tmp_path: Path,
) -> Iterator[MakeTurns]:
    """A factory of applications on which Java and Python take turns."""
    made: list[Turns] = []

    def make(
        program: str,
        mode: Mode = MODES["kept"],
        *,
        one_state_directory: bool = False,
        spec: Program | None = None,
    ) -> Turns:
        name = make_name(program.replace("_", "-"))
        turns = Turns(
            name,
            program,
            mode,
            brokers=bootstrap_servers,
            folder=tmp_path / name,
            java=java,
            make_host=lambda log: JavaHost(java_path, log),
            one_state_directory=one_state_directory,
            spec=spec,
        )
        made.append(turns)
        return turns

    yield make
    for turns in made:
        turns.end()


@pytest.fixture
def make_fleet(make_turns: MakeTurns, java: JavaHost) -> Iterator[MakeFleet]:
    """A factory of applications that several workers share, which are ended after the test."""
    made: list[Fleet] = []

    def make(program: str, mode: str, spec: Program | None = None) -> Fleet:
        made.append(Fleet(make_turns(program, MODES[mode], spec=spec), java))
        return made[-1]

    yield make
    for fleet in made:
        fleet.end()
