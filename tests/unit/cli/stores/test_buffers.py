"""What the commands say of the buffers of operators, in folders and of a running application: they are not queried."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pykstreams import BufferConfig, Joined, KStream, Materialized, Stores, StreamsBuilder, Suppressed, TimeWindows
from pykstreams.cli.app import cli
from pykstreams.http import Address, HttpOptions, HttpServer, app
from pykstreams.http.server import bound
from tests.unit.cli.live.test_stores import SETTINGS
from tests.unit.http.served_application import Streams
from tests.unit.runtime.queries.queried import TOPIC, Application

SCRIPT = """
from tests.unit.cli.stores.test_buffers import held_back
application_id = "shop"
config = {"default.key.serde": "pykstreams.serdes.primitives:StringSerde",
          "default.value.serde": "pykstreams.serdes.primitives:StringSerde"}
def build():
    return held_back()
"""
BUFFERS = ["final-store", "late-Buffer"]


def held_back() -> StreamsBuilder:
    """A suppression in memory, and a join that has records wait on disk."""
    builder = StreamsBuilder()
    stream: KStream[str, str] = builder.stream(TOPIC)
    counts = stream.group_by_key().windowed_by(TimeWindows(10_000, grace=0)).count(materialized=Materialized("counts"))
    counts.suppress(Suppressed.until_window_closes(BufferConfig(), name="final")).to_stream().foreach(print)
    history = Materialized[str, str](Stores.persistent_versioned_key_value_store("history", 60_000))
    table = stream.to_table(materialized=history)
    waiting = Joined[str, str, str](name="late", grace_period=timedelta(seconds=1))
    stream.join(table, lambda one, other: one, joined=waiting).foreach(print)
    return builder


@pytest.fixture(params=["folders", "url"])
def invoke(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Result]]:
    """Calls ``pykstreams state`` on what an application has left, or while it runs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text(SCRIPT)
    tasks = Application(held_back(), tmp_path / "shop", settings=SETTINGS).start()
    options = HttpOptions()
    server = HttpServer(app(Streams(tasks), options=options), bound(Address.parse(":0")), options)
    server.start()

    def call(command: str, *words: str) -> Result:
        if request.param == "folders":
            arguments = ["shop.py", *words, "--state-dir", str(tmp_path)]
        else:
            arguments = [*words, "--url", f"http://127.0.0.1:{server.port}"]
        return CliRunner(env={}).invoke(cli, ["state", command, *arguments], catch_exceptions=False)

    yield call
    server.close()
    tasks.close()


def test_buffers_are_listed_as_such(invoke: Callable[..., Result]) -> None:
    kinds = dict(line.split("  ")[:2] for line in invoke("list").stdout.splitlines())

    assert kinds == {"counts": "window", "history": "versioned", **dict.fromkeys(BUFFERS, "buffer")}


@pytest.mark.parametrize("store", BUFFERS)
@pytest.mark.parametrize("command", [("get", "apple"), ("export", "--to", "csv:out.csv")], ids=["get", "export"])
def test_buffer_is_not_queried_and_what_to_read_is_said(
    invoke: Callable[..., Result], command: tuple[str, ...], store: str
) -> None:
    name, *words = command
    refused = invoke(name, store, *words)

    assert refused.exit_code == 2
    assert f"store {store!r} is a buffer, in which an operator such as suppress keeps what waits" in refused.stderr
    assert "Query the table in front of the operator, or read the topic behind it" in refused.stderr


def test_rows_of_a_buffer_are_not_shown(tmp_path: Path) -> None:
    tasks = Application(held_back(), tmp_path / "shop", settings=SETTINGS).start()
    options = HttpOptions()
    server = HttpServer(app(Streams(tasks), options=options), bound(Address.parse(":0")), options)
    server.start()
    url = f"http://127.0.0.1:{server.port}"
    refused = CliRunner(env={}).invoke(cli, ["state", "show", "final-store", "--url", url], catch_exceptions=False)
    server.close()
    tasks.close()

    assert refused.exit_code == 2
    assert "store 'final-store' is a buffer" in refused.stderr
