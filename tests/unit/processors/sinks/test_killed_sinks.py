"""A process with a sink in a database is killed between every two steps, and the next one goes on: rows are exact."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from tests.brokers.reaper import Process
from tests.databases.effect_once import EXPECTED, STEPS, create_effects, effects
from tests.databases.postgres import PostgresServer, postgres_server, programs

ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    if programs() is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    with postgres_server() as server:
        yield server


def run_child(url: str, kafka: Path, *death: str) -> int:
    command = [sys.executable, "-m", "tests.databases.effect_once", url, str(kafka), *death]
    return Process(command, cwd=ROOT).wait(60)


def killed_one_after_the_other(url: str, kafka: Path, steps: tuple[str, ...]) -> None:
    """Kills one process after the other, each at another step; a last one comes to the end."""
    engine = create_engine(url)
    create_effects(engine)
    for step in steps:
        code = run_child(url, kafka, step, "1")
        rows = effects(engine)

        assert code == -signal.SIGKILL, step
        assert sorted({*rows}) == rows, f"twice after {step}"
    assert run_child(url, kafka) == 0
    rows = effects(engine)
    engine.dispose()

    assert rows == EXPECTED


@pytest.mark.slow
def test_rows_are_exact_after_kills_around_the_commits_of_database_and_kafka(tmp_path: Path) -> None:
    steps = ("rows written", "rows committed", "settled")
    killed_one_after_the_other(f"sqlite:///{tmp_path / 'effects.db'}", tmp_path / "kafka", steps)


@pytest.mark.nightly
def test_rows_are_exact_after_a_kill_between_every_two_steps(tmp_path: Path) -> None:
    killed_one_after_the_other(f"sqlite:///{tmp_path / 'effects.db'}", tmp_path / "kafka", STEPS)


@pytest.mark.nightly
@pytest.mark.parametrize("number", [1, 2])
def test_rows_in_postgresql_are_exact_after_each_kill(postgres: PostgresServer, tmp_path: Path, number: int) -> None:
    engine = create_engine(postgres.url)
    for step in STEPS:
        with engine.begin() as connection:
            connection.exec_driver_sql("drop table if exists effects, pykstreams_offsets")
        create_effects(engine)
        kafka = tmp_path / step
        code = run_child(postgres.url, kafka, step, str(number))
        # a task claims its partition once; for a second time it has none to die at
        expected = 0 if number > 1 and "claim" in step else -signal.SIGKILL

        assert code == expected, step
        assert run_child(postgres.url, kafka) == 0
        assert effects(engine) == EXPECTED, step
    engine.dispose()
