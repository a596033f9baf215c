"""A run of tests that is ended by a signal leaves no broker and no worker behind.

The run is one of its own: pytest, in this process or in two, over a module whose test has a broker and a worker and
then waits for ever.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.brokers.choice import Flavour, chosen
from tests.brokers.reaper import Process

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PATIENCE_S = 240.0

MODULE = """
import json, signal
from pathlib import Path

from tests.integration.conftest import start_broker
from tests.integration.workers import Workers
from tests.brokers.brokers import create_topic
from tests.brokers.fixtures import make_name

APPLICATION = '''
from pykstreams import Consumed, Serdes, StreamsBuilder

def build(config):
    builder = StreamsBuilder()
    text = Serdes.string()
    builder.stream(config["app.prefix"] + "-in", Consumed(key_serde=text, value_serde=text)).foreach(print)
    return builder.build()
'''

def test_that_waits(start_broker, make_name, tmp_path):
    broker = start_broker()
    app = Workers(broker.bootstrap_servers, make_name("waiting"), tmp_path, APPLICATION, 1)
    create_topic(broker.bootstrap_servers, app.topic("in"))
    app.start_all(["one"], 1)
    started = {"worker": app.processes["one"].pid, "project": getattr(broker, "project", None)}
    if started["project"] is None:
        started["broker"] = broker.pid("kafka")
        started["data"] = str(broker.directory)
    found = Path("started.new")
    found.write_text(json.dumps(started))
    found.rename("started.json")
    signal.pause()
"""


@pytest.mark.parametrize(
    "options",
    [
        pytest.param((), marks=pytest.mark.nightly, id="one process"),
        pytest.param(("-n", "2"), id="two processes"),
    ],
)
def test_brokers_and_workers_end_with_a_run_that_gets_sigterm(
    start_broker: Callable[..., Any], tmp_path: Path, options: tuple[str, ...]
) -> None:
    (tmp_path / "test_waiting.py").write_text(MODULE)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    started = tmp_path / "started.json"
    command = [sys.executable, "-m", "pytest", "-p", "tests.brokers.plugin", "-p", "no:cacheprovider", *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "KAFKA_FLAVOUR": chosen().flavour.value}
    for name in list(environment):
        if name.startswith("PYTEST_"):  # what the processes of this run tell each other
            del environment[name]
    log = tmp_path / "log"
    with log.open("wb") as out:
        run = Process(command, cwd=tmp_path, env=environment, stdout=out, stderr=out)
    try:
        wait_until(lambda: started.exists() or run.poll() is not None, log.read_text)
        assert started.exists(), log.read_text()
        run.send_signal(signal.SIGTERM)
        run.wait(PATIENCE_S)
    finally:
        run.kill()
    found = json.loads(started.read_text())

    wait_until(lambda: not left_of(found), lambda: f"still there: {left_of(found)}\n{log.read_text()}")


def left_of(started: dict[str, Any]) -> list[str]:
    """What there still is of it; a process that nobody has waited for counts as ended."""
    names = ["worker"]
    left = []
    if chosen().flavour is Flavour.DOCKER:
        label = f"label=com.docker.compose.project={started['project']}"
        left = output("docker", "ps", "--all", "--quiet", "--filter", label).split()
    else:
        names.append("broker")
        left = [started["data"]] if Path(started["data"]).exists() else []
    states = {name: output("ps", "-o", "stat=", "-p", str(started[name])) for name in names}
    return [*left, *(name for name, state in states.items() if state and not state.startswith("Z"))]


def output(*command: str) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout.strip()


def wait_until(done: Callable[[], bool], otherwise: Callable[[], str]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < deadline, otherwise()
        time.sleep(0.1)
