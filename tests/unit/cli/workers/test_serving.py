"""``pykstreams run --http``: what it refuses, what it tells the group, and that it answers while the worker runs."""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from prometheus_client.parser import text_string_to_metric_families

from pykstreams.cli.workers.serving import Listening, Serving
from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ConfigError
from pykstreams.http import Address
from pykstreams.http.server import bound, check_ca
from tests.brokers.ports import free_ports
from tests.brokers.reaper import Process

ROOT = Path(__file__).parents[4]
PATIENCE_S = 60.0

SCRIPT = """
from pykstreams import Consumed, Materialized, Serdes, StreamsBuilder
application_id = "served"
text = Serdes.string()
builder = StreamsBuilder()
builder.table("prices", Consumed(key_serde=text, value_serde=text), materialized=Materialized("prices"))
"""


@pytest.mark.parametrize(
    ("given", "worker", "published"),
    [(None, None, "127.0.0.1:{port}"), ("shop-3:80", None, "shop-3:80"), ("shop-3:80", 2, "shop-3:81")],
)
def test_the_address_is_told_to_the_group_unless_the_user_said_one(
    given: str | None, worker: int | None, published: str
) -> None:
    config = StreamsConfig({"application.id": "a", **({} if given is None else {"application.server": given})})
    with bound(Address.parse(":0")) as sock:
        told = Listening(Serving(":0"), sock, Address.parse(":0"), worker).told(config)

        assert told.application_server == published.format(port=sock.getsockname()[1])


def test_options_go_on_to_the_worker_processes(tmp_path: Path) -> None:
    serving = Serving(":80", "token", "cert", "key", "ca", "5")

    assert serving.arguments() == [
        *("--http", ":80", "--http-token-file", "token", "--http-tls-cert", "cert", "--http-tls-key", "key"),
        *("--http-tls-ca", "ca", "--http-stale", "5"),
    ]
    assert Serving().arguments() == []


@pytest.mark.parametrize(
    ("serving", "text"),
    [
        (Serving(None, "token"), "give --http HOST:PORT"),
        (Serving(None, stale="allow"), "give --http HOST:PORT"),
        (Serving(":80", certificate="cert"), "belong together; give both"),
        (Serving(":80", ca_file="ca"), "give --http-tls-cert and --http-tls-key, too"),
        (Serving("shop"), "is no host:port"),
        (Serving(":80", stale="often"), "write refuse, allow"),
        (Serving(":80", "missing"), "cannot be read"),
        (Serving(":80", os.devnull), "holds no token"),
        (Serving(":80", certificate=os.devnull, key=os.devnull), "TLS cannot be served with certificate"),
    ],
)
def test_options_that_cannot_work_are_refused_at_the_start(serving: Serving, text: str) -> None:
    with pytest.raises((click.UsageError, ConfigError), match=text):
        serving.check()


def test_file_by_which_no_certificate_can_be_checked_is_refused() -> None:
    check_ca(None)

    with pytest.raises(ConfigError, match=r"cannot be checked by '/dev/null': .*give a PEM file of certificates"):
        check_ca("/dev/null")


def test_without_the_extra_it_is_refused_at_the_start_with_what_to_install() -> None:
    script = """
import sys
sys.modules["uvicorn"] = None
from pykstreams.cli.workers.serving import Serving
Serving(":80").check()
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=False)
    *_, error = found.stderr.strip().splitlines()

    assert error == (
        "pykstreams.core.errors.ConfigError: --http cannot be served: pykstreams.http needs uvicorn, which is not "
        "installed; pip install 'pykstreams[http]'"
    )


@pytest.mark.slow
def test_a_worker_answers_while_it_runs(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(SCRIPT)
    [port] = free_ports(1)
    command = [sys.executable, "-m", "pykstreams", "run", "app.py", "--embedded", "--http", f":{port}"]
    process = Process(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)})
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        status = 0
        for _ in range(600):
            try:
                connection.request("GET", "/health/ready")
                with connection.getresponse() as answer:
                    answer.read()
                    status = answer.status
            except OSError:
                connection.close()
            if status == 200:
                break
            with pytest.raises(subprocess.TimeoutExpired):  # it runs
                process.wait(0.1)
        connection.request("GET", "/stores/prices/keys/tea")
        with connection.getresponse() as answer:
            answer.read()
            assert (status, answer.status) == (200, 404)
        connection.request("GET", "/metrics")
        with connection.getresponse() as answer:
            families = {family.name: family for family in text_string_to_metric_families(answer.read().decode())}
        [threads] = families["kafka_streams_alive_stream_threads"].samples
        assert threads.value == 1
        connection.close()
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
