"""The reaper, beside tests that are killed in the middle, and beside tests that end in order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
PATIENCE_S = 30.0

RUN = """
import os, signal, sys
from tests.brokers.reaper import Process, when_killed

folder = sys.argv[1]
for name in ("first", "second"):
    when_killed([sys.executable, "-c", f"open({folder + '/order'!r}, 'a').write({name!r} + ' ')"])
when_killed(["touch", folder + "/taken-back"])()
child = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import signal; signal.pause()'])"
process = Process([sys.executable, "-c", child])
ended = Process([sys.executable, "-c", ""])
ended.wait()
print(process.pid, flush=True)
signal.pause()
"""

CONTAINERS = """
import pathlib, signal, sys
from tests.brokers import compose

folder = pathlib.Path(sys.argv[1])
compose.compose_command = lambda: str(folder / "compose")
compose.ensure_image = lambda: None
compose.wait_until_ready = lambda brokers: None
with compose.broker_with({}, "the-project", folder):
    print("up", flush=True)
    if sys.argv[2:] != ["orderly"]:
        signal.pause()
"""
COMPOSE = """#!/bin/sh
# stands for docker-compose: notes the project and what is done with it
while [ "$1" != -p ]; do shift; done
shift
echo "$@" >> "$(dirname "$0")/order"
echo 127.0.0.1:9092
"""


def run(folder: Path, script: str = RUN, *arguments: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", script, str(folder), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)


def wait_until(done: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S  # noqa: TID251 - other processes are waited for
    while not done():
        assert time.monotonic() < deadline, what  # noqa: TID251


def living(group: int) -> list[str]:
    """The processes of a group that have not ended; one that nobody has waited for has."""
    shown = subprocess.run(["ps", "-A", "-o", "pgid=,stat=,pid=,args="], capture_output=True, text=True, check=True)
    rows = [line.split(maxsplit=3) for line in shown.stdout.splitlines()]
    return [" ".join(row) for row in rows if row[0] == str(group) and not row[1].startswith("Z")]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_what_was_started_ends_with_a_run_that_is_killed(tmp_path: Path, number: signal.Signals) -> None:
    with run(tmp_path) as tests:
        assert tests.stdout is not None
        session = int(tests.stdout.readline())
        wait_until(lambda: len(living(session)) == 2, "the process and its child were not started")
        tests.send_signal(number)

    wait_until(lambda: not living(session), f"still there: {living(session)}")
    order = tmp_path / "order"
    wait_until(lambda: order.exists() and order.read_text() == "second first ", "the commands were not run")
    assert not (tmp_path / "taken-back").exists()


@pytest.fixture
def compose(tmp_path: Path) -> Path:
    """A folder with a compose command, and what was done with it."""
    path = tmp_path / "compose"
    path.write_text(COMPOSE)
    path.chmod(0o755)
    return tmp_path


ENDED = ["the-project kill", "the-project down -v -t 1 --remove-orphans"]


def test_containers_are_taken_down_after_a_run_that_is_killed(compose: Path) -> None:
    with run(compose, CONTAINERS) as tests:
        assert tests.stdout is not None
        assert tests.stdout.readline() == b"up\n"
        before = (compose / "order").read_text().splitlines()
        tests.send_signal(signal.SIGTERM)

    wait_until(lambda: (compose / "order").read_text().splitlines() == [*before, *ENDED], "containers are left")
    assert before[0] == "the-project up -d"


def test_containers_are_taken_down_once_by_a_run_that_ends_in_order(compose: Path) -> None:
    with run(compose, CONTAINERS, "orderly") as tests:
        tests.communicate()

    assert tests.returncode == 0
    assert (compose / "order").read_text().splitlines()[-3:] == ["the-project port kafka 29092", *ENDED]
