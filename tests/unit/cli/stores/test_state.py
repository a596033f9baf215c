"""``pykstreams state`` on the folders that a stopped application has left."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from pykstreams import KStream, Materialized, Serdes, SessionWindows, Stores, StreamsBuilder, TimeWindows
from pykstreams.cli.app import cli
from pykstreams.cli.stores.state import key_of, moment
from pykstreams.core.clock import SystemClock
from pykstreams.core.config import StreamsConfig
from pykstreams.core.ids import TaskId
from pykstreams.core.types import END_OF_TIME
from pykstreams.serdes.json.json_serde import JsonSerde
from pykstreams.state.directory.state_directory import StateDirectory
from tests.unit.runtime.queries.queried import TOPIC, Application

SCRIPT = """
from tests.unit.cli.stores.test_state import shop
application_id = "shop"
config = {"default.key.serde": "pykstreams.serdes.primitives:StringSerde",
          "default.value.serde": "pykstreams.serdes.primitives:StringSerde"}
def build():
    return shop()
"""


def shop() -> StreamsBuilder:
    """A store of each kind, all of them filled from one topic."""
    builder = StreamsBuilder()
    stream: KStream[str, str] = builder.stream(TOPIC)
    grouped = stream.group_by_key()
    grouped.count(materialized=Materialized("totals"))
    grouped.windowed_by(TimeWindows(10_000, grace=0)).count(materialized=Materialized("per-window"))
    grouped.windowed_by(SessionWindows(5_000, grace=0)).count(materialized=Materialized("per-session"))
    stream.to_table(materialized=Materialized(Stores.persistent_versioned_key_value_store("history", 10**9)))
    stream.to_table(materialized=Materialized(Stores.in_memory_key_value_store("forgotten")))
    return builder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What an application has left behind: of two partitions, committed."""
    app = Application(shop(), tmp_path / "tasks", partitions=2)
    for task in app.by_partition.values():  # as a worker names them
        (tmp_path / "shop").mkdir(exist_ok=True)
        (tmp_path / "shop" / str(task.id)).symlink_to(tmp_path / "tasks" / str(task.id.partition))
    app.start()
    app.feed(("apple", "red", 0), ("apple", "green", 12_000), ("pear", "yellow", 13_000), partition=1)
    app.commit()
    app.close()
    for task in app.by_partition.values():  # as a worker leaves it that lets go of the task
        (tmp_path / "shop" / str(task.id) / ".lock").touch()
    return tmp_path


@pytest.fixture
def invoke(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    (folder / "shop.py").write_text(SCRIPT)
    monkeypatch.chdir(folder)

    def call(command: str, *arguments: str) -> Result:
        words = ["state", command, "shop.py", "--state-dir", str(folder), *arguments]
        return CliRunner(env={}).invoke(cli, words, catch_exceptions=False)

    return call


def test_value_of_a_key_is_shown_with_its_time_and_partition(invoke: Callable[..., Result]) -> None:
    result = invoke("get", "totals", "apple")

    assert result.output == "2  (of 1970-01-01T00:00:12.000Z, partition 1)\n"
    assert result.exit_code == 0


def test_versioned_store_is_shown_as_of_a_time(invoke: Callable[..., Result]) -> None:
    newest = invoke("get", "history", "apple")
    before = invoke("get", "history", "apple", "--as-of", "1970-01-01T00:00:11Z")
    by_number = invoke("get", "history", "apple", "--as-of", "11999")

    assert newest.output == "green  (of 1970-01-01T00:00:12.000Z, partition 1)\n"
    assert before.output == by_number.output == "red  (of 1970-01-01T00:00:00.000Z, partition 1)\n"


def test_windows_and_sessions_of_a_key_are_shown(invoke: Callable[..., Result]) -> None:
    windows = invoke("get", "per-window", "apple")
    sessions = invoke("get", "per-session", "apple")

    assert windows.output == (
        "1970-01-01T00:00:00.000Z to 1970-01-01T00:00:10.000Z  1  (of 1970-01-01T00:00:00.000Z, partition 1)\n"
        "1970-01-01T00:00:10.000Z to 1970-01-01T00:00:20.000Z  1  (of 1970-01-01T00:00:12.000Z, partition 1)\n"
    )
    assert sessions.output == (
        "1970-01-01T00:00:00.000Z to 1970-01-01T00:00:00.000Z  1  (partition 1)\n"
        "1970-01-01T00:00:12.000Z to 1970-01-01T00:00:12.000Z  1  (partition 1)\n"
    )


@pytest.mark.parametrize("store", ["totals", "per-window", "per-session"])
def test_rows_of_another_form_are_told_with_what_to_do(invoke: Callable[..., Result], store: str) -> None:
    result = invoke("get", store, "apple", "--set", "dsl.store.format=HEADERS")

    assert result.exit_code == 4
    assert result.stdout == ""
    assert f"store {store!r} of task 0_0 in " in result.stderr
    assert "They are read only with the topology and the settings that wrote them" in result.stderr


def test_json_is_for_programs(invoke: Callable[..., Result]) -> None:
    result = invoke("get", "per-window", "pear", "--format", "json")

    assert json.loads(result.output) == [
        {"key": "pear", "window": {"start": 10_000, "end": 20_000}, "value": 1, "timestamp": 13_000}
    ]


@pytest.mark.parametrize(("form", "printed"), [("text", ""), ("json", "[]\n")])
def test_key_that_is_not_there_is_said_on_standard_error_with_an_exit_code_of_its_own(
    invoke: Callable[..., Result], form: str, printed: str
) -> None:
    result = invoke("get", "totals", "plum", "--format", form)

    assert result.stdout == printed
    assert result.stderr == "store 'totals' has nothing for 'plum' in its 2 partitions here\n"
    assert result.exit_code == 6


NOT_CLOSED = (
    "partition 1 of store 'totals': not known to have been closed in good order (after a crash or kill -9, in a copy, "
    "or by an older release), so that what was written since the last flush, possibly everything since the start, may "
    "be in the changelog only; start the application, which restores it, or ask it while it runs, with --url\n"
)


@pytest.fixture(params=["4711", None], ids=["killed", "copied"])
def left(request: pytest.FixtureRequest, folder: Path) -> None:
    """A folder of which it is not known that it was closed in good order."""
    lock = folder / "shop" / "0_1" / ".lock"
    lock.unlink() if request.param is None else lock.write_text(request.param)


@pytest.mark.usefixtures("left")
@pytest.mark.parametrize(("form", "printed"), [("text", ""), ("json", "[]\n")])
def test_key_that_may_be_in_the_changelog_only_is_not_known(
    invoke: Callable[..., Result], form: str, printed: str
) -> None:
    nothing = invoke("get", "totals", "plum", "--format", form)

    assert (nothing.stdout, nothing.exit_code) == (printed, 7)
    assert nothing.stderr == (
        "not known: the 2 partitions of store 'totals' here have nothing for 'plum', and may not have all of it\n"
        + NOT_CLOSED
    )


@pytest.mark.usefixtures("left")
def test_value_that_may_be_an_old_one_is_shown_with_a_warning(invoke: Callable[..., Result]) -> None:
    something = invoke("get", "totals", "apple")

    assert (something.stdout, something.stderr) == ("2  (of 1970-01-01T00:00:12.000Z, partition 1)\n", NOT_CLOSED)
    assert something.exit_code == 0


@pytest.mark.usefixtures("left")
@pytest.mark.parametrize("source", [[], ["--from", "shop"]], ids=str)
def test_export_that_may_lack_rows_is_told(invoke: Callable[..., Result], source: list[str]) -> None:
    done = invoke("export", "totals", "--to", "json:totals.jsonl", *source)

    assert done.stderr == NOT_CLOSED
    assert done.exit_code == 0


def test_worker_that_lets_go_of_a_task_leaves_a_folder_that_is_complete(
    invoke: Callable[..., Result], folder: Path
) -> None:
    directory = StateDirectory(folder, "shop", clock=SystemClock())
    directory.lock(TaskId(0, 1))
    held = (folder / "shop" / "0_1" / ".lock").read_text()
    directory.close()

    assert held == str(os.getpid())
    assert invoke("get", "totals", "plum").stderr == "store 'totals' has nothing for 'plum' in its 2 partitions here\n"


@pytest.mark.parametrize(
    "command", [["list"], ["get", "totals", "apple"], ["export", "totals", "--to", "json:x.jsonl"]]
)
def test_state_directory_that_is_not_there_is_an_error(
    invoke: Callable[..., Result], folder: Path, command: list[str]
) -> None:
    done = invoke(*command, "--state-dir", str(folder / "nope"))

    assert (done.exit_code, done.stdout) == (2, "")
    assert "nope" in done.stderr


def test_stores_are_listed_with_their_kinds_and_partitions(invoke: Callable[..., Result], folder: Path) -> None:
    (folder / "shop" / "0_0").unlink()
    result = invoke("list")
    listed = dict(line.split("  ", 1) for line in result.stdout.splitlines())
    as_json = json.loads(invoke("list", "--format", "json").output)

    assert listed == {
        "totals": "key-value  partitions 1",
        "per-window": "window  partitions 1",
        "per-session": "session  partitions 1",
        "history": "versioned  partitions 1",
        "forgotten": "key-value  in memory, and not on disk",
    }
    assert {"store": "totals", "kind": "key-value", "partitions": [1]} in as_json
    assert result.stderr == ""


def test_folder_that_was_looked_in_is_told_where_stores_on_disk_are_not_there(
    invoke: Callable[..., Result], folder: Path
) -> None:
    other = folder / "other"
    other.mkdir()
    result = invoke("list", "--state-dir", str(other))

    assert "totals  key-value  not here" in result.stdout.splitlines()
    assert result.stderr.startswith(f"looked in '{other}")
    assert result.stderr.endswith("; name another folder with --state-dir\n")


def test_store_is_exported_to_a_file(invoke: Callable[..., Result], folder: Path) -> None:
    whole = invoke("export", "totals", "--to", "json:totals.jsonl")
    then = invoke("export", "history", "--to", "csv:history.csv", "--as-of", "11999", "--from", str(folder / "shop"))
    again = invoke("export", "totals", "--to", "json:totals.jsonl")
    lines = [json.loads(line) for line in (folder / "totals.jsonl").read_text().splitlines()]

    assert (whole.output, whole.exit_code) == ("totals: 2 rows of 2 tasks are in totals.jsonl\n", 0)
    assert {("0_1", "apple", 2), ("0_1", "pear", 1)} == {(row["task"], row["key"], row["value"]) for row in lines}
    assert '"0_1",1,"apple",1970-01-01 00:00:00.000000Z,1970-01-01 00:00:12.000000Z,"red"' in (
        (folder / "history.csv").read_text().splitlines()
    )
    assert then.output == "history: 1 rows of 2 tasks are in history.csv\n"
    assert (again.exit_code, "'totals.jsonl' is there already" in again.stderr) == (2, True)


def test_folder_that_a_worker_uses_is_named_with_its_process(invoke: Callable[..., Result], folder: Path) -> None:
    directory = StateDirectory(folder, "shop", clock=SystemClock())
    directory.lock(TaskId(0, 1))
    result = invoke("get", "totals", "apple")
    directory.close()

    assert result.exit_code == 5
    assert result.stderr == (
        f"LockError: folder {str(folder / 'shop' / '0_1')!r} is in use by process {os.getpid()}; stop the application, "
        "or ask it while it runs (with --url on the command line, with KafkaStreams.store in its process)\n"
    )
    assert invoke("get", "totals", "apple").exit_code == 0


def test_global_store_is_read_where_one_worker_keeps_it(
    invoke: Callable[..., Result], folder: Path, tmp_path: Path
) -> None:
    script = SCRIPT.replace("return shop()", "return rates()").replace("import shop", "import rates")
    (folder / "shop.py").write_text(script)
    app = Application(_table("rates"), tmp_path / "worker").start()
    app.feed(("euro", "1.1", 5))
    app.commit()
    app.close()
    (folder / "shop" / "global-0").symlink_to(tmp_path / "worker" / "0")
    worker = StateDirectory(folder, "shop", clock=SystemClock())
    worker.process_id(lambda: "worker-of-this-test")
    locked = invoke("get", "rates", "euro")
    worker.close()
    assert invoke("export", "rates", "--to", "json:rates.jsonl").exit_code == 0

    found = invoke("get", "rates", "euro")
    assert "store 'rates': not known to have been closed in good order" in found.stderr
    assert found.stdout == "1.1  (of 1970-01-01T00:00:00.005Z)\n"
    assert invoke("list").output == "rates  key-value  whole\n"
    row = {"task": None, "partition": None, "key": "euro", "value": "1.1", "timestamp": "1970-01-01T00:00:00.005Z"}
    assert json.loads((folder / "rates.jsonl").read_text()) == row
    assert (locked.exit_code, "is in use by process worker-of-this-test" in locked.stderr) == (5, True)


def _table(name: str) -> StreamsBuilder:
    builder = StreamsBuilder()
    builder.table(TOPIC, materialized=Materialized(name))
    return builder


def rates() -> StreamsBuilder:
    """A global table alone."""
    builder = StreamsBuilder()
    builder.global_table("rates", materialized=Materialized("rates"))
    return builder


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("totalz", "apple"), "the topology has no store 'totalz'; its stores are: "),
        (
            ("totals", "apple", "--as-of", "5"),
            "store 'totals' keeps no history, it is a key-value store; leave --as-of out",
        ),
        (("history", "apple", "--as-of", "soon"), "'soon' is no time (Invalid isoformat string: 'soon'); write 2026-"),
        (("history", "apple", "--as-of", "2026-01-01T00:00"), "has no time zone"),
        (
            ("forgotten", "apple"),
            "store 'forgotten' is kept in memory, so nothing of it is on disk; look into its chang",
        ),
    ],
)
def test_what_cannot_be_shown_is_said(invoke: Callable[..., Result], arguments: tuple[str, ...], text: str) -> None:
    result = invoke("get", *arguments)

    assert result.exit_code == 2
    assert text in " ".join(result.stderr.split())


def test_wrong_folder_is_said(invoke: Callable[..., Result], folder: Path) -> None:
    result = invoke("get", "totals", "apple", "--application-id", "other")

    assert result.exit_code == 2
    assert result.stderr == (
        f"ConfigError: there is no state of store 'totals' in {str(folder / 'pykstreams' / 'other')!r}; name the "
        "folder of the worker with --state-dir\n"
    )


@pytest.mark.parametrize(
    ("serde", "text", "key"),
    [
        (Serdes.string(), "5", "5"),
        (Serdes.long(), "-5", -5),
        (Serdes.double(), "2.5", 2.5),
        (Serdes.boolean(), "true", True),
        (Serdes.bytes(), "AP8=", b"\x00\xff"),
        (JsonSerde(), '{"id": 1}', {"id": 1}),
        (JsonSerde(), "apple", "apple"),
        (JsonSerde(int), "5", 5),
    ],
    ids=str,
)
def test_key_is_read_as_the_serde_wants_it(serde: Any, text: str, key: Any) -> None:
    builder = Stores.key_value_store_builder(Stores.persistent_key_value_store("s"), serde, Serdes.string())

    assert key_of(builder, StreamsConfig({}), "log", text) == key


def test_key_that_the_serde_cannot_take_is_refused() -> None:
    builder = Stores.key_value_store_builder(Stores.persistent_key_value_store("s"), Serdes.long(), Serdes.string())

    with pytest.raises(
        click.BadParameter, match=r"^'five' is no key of store 's', whose key serde is LongSerde\(\): .*; text, times"
    ):
        key_of(builder, StreamsConfig({}), "log", "five")


def test_time_is_a_date_or_a_number() -> None:
    assert (moment("0"), moment("1970-01-01T01:00:01+01:00")) == (0, 1000)


def test_time_beyond_all_timestamps_is_the_last_one_or_refused() -> None:
    assert moment("9" * 20) == END_OF_TIME
    with pytest.raises(click.BadParameter, match="is no time"):
        moment("9" * 5000)
