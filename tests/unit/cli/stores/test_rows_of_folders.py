"""``pykstreams state get`` on folders, beside what the same application answered over HTTP while it ran."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pykstreams import Consumed, KStream, Materialized, Serdes, SessionWindows, Stores, StreamsBuilder, TimeWindows
from pykstreams.cli.app import cli
from pykstreams.http import Address, HttpOptions, HttpServer, app
from pykstreams.http.server import bound
from pykstreams.serdes.avro import AvroSerde
from pykstreams.serdes.base import AnySerde
from pykstreams.serdes.json.json_serde import JsonSerde
from tests.unit.http.served_application import Streams
from tests.unit.runtime.queries.queried import TOPIC, Application

SETTINGS = {
    "default.key.serde": "pykstreams.serdes.primitives:StringSerde",
    "default.value.serde": "pykstreams.serdes.primitives:StringSerde",
}

SCRIPT = f"""
from tests.unit.cli.stores.test_rows_of_folders import typed
application_id = "shop"
config = {SETTINGS!r}
def build():
    return typed()
"""


@dataclass
class Sale:
    """A value whose ``repr`` is no JSON."""

    item: str
    at: datetime


def typed() -> StreamsBuilder:
    """A store of each kind, with values that JSON has only in another form."""
    builder = StreamsBuilder()
    stream: KStream[str, str] = builder.stream(TOPIC)
    sales = stream.map_values(_sale)
    made = JsonSerde(Sale)
    sales.to_table(materialized=Materialized("last", value_serde=made))
    history = Stores.persistent_versioned_key_value_store("history", 10**9)
    sales.to_table(materialized=Materialized(history, value_serde=made))
    grouped = stream.group_by_key()
    windows = grouped.windowed_by(TimeWindows(10_000, grace=0))
    windows.aggregate(lambda: b"", _longer, materialized=Materialized("per-window", value_serde=Serdes.bytes()))
    sessions = grouped.windowed_by(SessionWindows(5_000, grace=0))
    sessions.aggregate(
        lambda: b"",
        _longer,
        lambda key, left, right: left + right,
        materialized=Materialized("per-session", value_serde=Serdes.bytes()),
    )
    return builder


def _sale(item: str) -> Sale:
    return Sale(item, datetime(2026, 1, 1, tzinfo=UTC))


def _longer(key: str, value: str, found: bytes) -> bytes:
    return found + value.encode()


def left_behind(path: Path, application: Application) -> None:
    """Commits and closes an application, and names its folders as a worker does."""
    application.commit()
    application.close()
    (path / "shop").mkdir()
    for task in application.by_partition.values():
        (path / "shop" / str(task.id)).symlink_to(path / "tasks" / str(task.id.partition))
        (path / "shop" / str(task.id) / ".lock").touch()


def state(*words: str) -> Result:
    """Calls a command on the state of an application."""
    return CliRunner(env={}).invoke(cli, ["state", *words], catch_exceptions=False)


ASKED = [("last",), ("history",), ("history", "--as-of", "11999"), ("per-window",), ("per-session",)]


@pytest.fixture
def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[list[Any], list[Any]]]:
    """Returns the rows of a key that a running application shows, and those of its folders when it has stopped."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text(SCRIPT)
    application = Application(typed(), tmp_path / "tasks", settings=SETTINGS).start()
    application.feed(("apple", "red", 0), ("apple", "green", 12_000), ("pear", "yellow", 13_000))
    options = HttpOptions()
    server = HttpServer(app(Streams(application), options=options), bound(Address.parse(":0")), options)
    server.start()
    url = f"http://127.0.0.1:{server.port}"
    live = {}
    for store, *more in ASKED:
        asked = state("get", store, "apple", *more, "--url", url, "--format", "json")
        live[store, *more] = json.loads(asked.stdout)
    server.close()
    left_behind(tmp_path, application)

    def call(store: str, *more: str) -> tuple[list[Any], list[Any]]:
        stopped = state("get", "shop.py", store, "apple", *more, "--state-dir", str(tmp_path), "--format", "json")
        return live[store, *more], json.loads(stopped.stdout)

    return call


@pytest.mark.parametrize("asked", ASKED, ids=" ".join)
def test_folders_and_running_applications_answer_alike(
    both: Callable[..., tuple[list[Any], list[Any]]], asked: tuple[str, ...]
) -> None:
    live, stopped = both(*asked)
    sources = [(one.pop("from", None), other.pop("from", None)) for one, other in zip(live, stopped, strict=True)]

    assert live
    assert stopped == live
    assert [list(row) for row in stopped] == [list(row) for row in live]
    for running, stopped_source in sources:
        if running is None:
            assert stopped_source is None
        else:
            assert stopped_source == {"partition": 0, "host": None, "role": "stopped", "position": {}}
            assert running.keys() == stopped_source.keys()


UNREAD = """
from pykstreams import Materialized, StreamsBuilder, TimeWindows
from pykstreams.serdes.json.json_serde import JsonSerde
from tests.unit.cli.stores.test_rows_of_folders import joined
application_id = "shop"
def build():
    return joined(JsonSerde(dict))
"""


def joined(values: AnySerde) -> StreamsBuilder:
    """Texts that are put together, for each key and for each window of it."""
    builder = StreamsBuilder()
    stream: KStream[str, str] = builder.stream(TOPIC, Consumed(key_serde=Serdes.string(), value_serde=Serdes.string()))
    grouped = stream.group_by_key()
    grouped.reduce(str.__add__, materialized=Materialized("whole", value_serde=values))
    windows = grouped.windowed_by(TimeWindows(10_000, grace=0))
    windows.reduce(str.__add__, materialized=Materialized("per-window", value_serde=values))
    return builder


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (Serdes.string(), '{"size": 1'),
        (JsonSerde(), '"{\\"size\\": 1"'),
        (AvroSerde("string"), "0x147b2273697a65223a2031"),
    ],
    ids=["text", "json", "bytes"],
)
@pytest.mark.parametrize("form", ["text", "json"])
def test_value_that_cannot_be_read_is_shown_with_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: AnySerde, shown: str, form: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text(UNREAD)
    application = Application(joined(written), tmp_path / "tasks", settings=SETTINGS).start()
    application.feed(("apple", '{"size": 1', 12_000))
    left_behind(tmp_path, application)
    whole = state("get", "shop.py", "whole", "apple", "--state-dir", str(tmp_path), "--format", form)
    windows = state("get", "shop.py", "per-window", "apple", "--state-dir", str(tmp_path), "--format", form)

    assert (whole.exit_code, whole.stdout, windows.exit_code) == (4, "", 4)
    assert whole.stderr.splitlines()[0] == (
        "SerdeError: the value of key 'apple' in store 'whole', partition 0, cannot be read by JsonSerde(dict): "
        + shown
    )
    assert windows.stderr.splitlines()[0] == (
        "SerdeError: the value of key 'apple' in store 'per-window', partition 0, 1970-01-01T00:00:10.000Z to "
        f"1970-01-01T00:00:20.000Z, cannot be read by JsonSerde(dict): {shown}"
    )


LONGS = """
from pykstreams import Serdes
from tests.unit.cli.stores.test_rows_of_folders import {make}
application_id = "shop"
def build():
    return {make}(Serdes.long())
"""


def test_export_names_key_store_and_window_of_a_value_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text(LONGS.format(make="joined"))
    application = Application(joined(Serdes.string()), tmp_path / "tasks", settings=SETTINGS).start()
    application.feed(("apple", '{"size": 1', 12_000))
    left_behind(tmp_path, application)
    told = {}
    for store in ("whole", "per-window"):
        done = state("export", "shop.py", store, "--state-dir", str(tmp_path), "--to", f"json:{store}.json")
        told[store] = done.stderr.splitlines()[0]
        assert done.exit_code == 4
        assert not (tmp_path / f"{store}.json").exists()

    assert told["whole"].startswith(
        "SerdeError: the value of key 'apple' in store 'whole', partition 0, cannot be read: LongSerde() cannot read "
        "10 bytes"
    )
    assert told["per-window"].startswith(
        "SerdeError: the value of key 'apple' in store 'per-window', partition 0, from 10000 to 20000 ms, cannot be "
        "read: LongSerde() cannot read 10 bytes"
    )


def test_export_names_the_store_of_a_key_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text(LONGS.format(make="counted"))
    application = Application(counted(Serdes.string()), tmp_path / "tasks", settings=SETTINGS).start()
    application.feed(("apple", "red", 12_000))
    left_behind(tmp_path, application)
    done = state("export", "shop.py", "counts", "--state-dir", str(tmp_path), "--to", "json:out.json")

    assert done.exit_code == 4
    assert done.stderr.splitlines()[0].startswith(
        "SerdeError: a key in store 'counts', partition 0, cannot be read: LongSerde() cannot read 5 bytes"
    )


def counted(keys: AnySerde) -> StreamsBuilder:
    """A count of the records of each key."""
    builder = StreamsBuilder()
    stream: KStream[Any, str] = builder.stream(TOPIC, Consumed(key_serde=keys, value_serde=Serdes.string()))
    stream.group_by_key().count(materialized=Materialized("counts", key_serde=keys))
    return builder
