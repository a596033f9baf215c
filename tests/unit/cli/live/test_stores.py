"""``pykstreams state`` with ``--url``: the stores of an application that runs, over HTTP."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pykstreams.cli.app import cli
from pykstreams.cli.live.server import Row
from pykstreams.cli.live.stores import export_live, told
from pykstreams.http import Address, HttpOptions, HttpServer, app
from pykstreams.http.server import bound
from tests.unit.cli.stores.test_state import shop
from tests.unit.http.served_application import Streams
from tests.unit.runtime.queries.queried import Application

SETTINGS = {
    "default.key.serde": "pykstreams.serdes.primitives:StringSerde",
    "default.value.serde": "pykstreams.serdes.primitives:StringSerde",
}


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """The address of an application with a store of each kind, whose answers have two rows at most."""
    tasks = Application(shop(), tmp_path / "tasks", settings=SETTINGS).start()
    tasks.feed(*((key, "x", time) for time, key in enumerate(["apple", "pear", "a,b", 'qu"ote', "fig"])))
    tasks.feed(("apple", "y", 20_000))
    (tmp_path / "token").write_text("secret\n")
    options = HttpOptions(token="secret", max_rows=500)
    server = HttpServer(app(Streams(tasks), options=options), bound(Address.parse(":0")), options)
    server.start()
    yield f"http://127.0.0.1:{server.port}"
    server.close()
    tasks.close()


@pytest.fixture
def invoke(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pykstreams.cli.live.stores.PAGE_ROWS", 2)

    def call(*words: str) -> Result:
        arguments = ["state", *words, "--url", url, "--token-file", "token"]
        return CliRunner(env={}).invoke(cli, arguments, catch_exceptions=False)

    return call


def test_the_first_rows_of_a_store_are_shown(invoke: Callable[..., Result]) -> None:
    assert invoke("show", "totals", "--limit", "3").output == (
        "a,b  1  (of 1970-01-01T00:00:00.002Z)\n"
        "apple  2  (of 1970-01-01T00:00:20.000Z)\n"
        "fig  1  (of 1970-01-01T00:00:00.004Z)\n"
    )
    assert len(json.loads(invoke("show", "per-window", "--format", "json").output)) == 6


def test_stores_are_listed_as_those_of_folders(invoke: Callable[..., Result]) -> None:
    listed = dict(line.split("  ", 1) for line in invoke("list").output.splitlines())
    as_json = json.loads(invoke("list", "--format", "json").output)

    assert listed == {
        "totals": "key-value  partitions 0",
        "per-window": "window  partitions 0",
        "per-session": "session  partitions 0",
        "history": "versioned  partitions 0",
        "forgotten": "key-value  partitions 0",
    }
    assert {"store": "totals", "kind": "key-value", "partitions": [0]} in as_json


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("shop.py",), "1 arguments were given, and none is needed"),
        (("--state-dir", "x"), "--state-dir is for reading folders"),
        (("--stale", "allow"), "--stale is for reading rows"),
    ],
    ids=str,
)
def test_list_refuses_what_asking_does_not_heed(
    invoke: Callable[..., Result], words: tuple[str, ...], said: str
) -> None:
    refused = invoke("list", *words)

    assert refused.exit_code == 2
    assert said in " ".join(refused.output.split())


def test_list_of_folders_needs_a_topology() -> None:
    result = CliRunner().invoke(cli, ["state", "list"])

    assert result.exit_code == 2
    assert "0 arguments were given, and TOPOLOGY is needed" in result.output


def test_what_a_store_has_for_a_key_is_shown(invoke: Callable[..., Result]) -> None:
    start = "1970-01-01T00:00"
    assert invoke("get", "totals", "apple").output == f"2  (of {start}:20.000Z)\n"
    assert invoke("get", "history", "apple", "--as-of", "5").output == f"x  (of {start}:00.000Z)\n"
    assert invoke("get", "per-window", "apple").output == (
        f"{start}:00.000Z to {start}:10.000Z  1  (of {start}:00.000Z)\n"
        f"{start}:20.000Z to {start}:30.000Z  1  (of {start}:20.000Z)\n"
    )
    assert invoke("get", "per-session", "pear").output == f"{start}:00.001Z to {start}:00.001Z  1\n"


@pytest.mark.parametrize("store", ["totals", "per-window", "per-session", "history"])
@pytest.mark.parametrize(("form", "printed"), [("text", ""), ("json", "[]\n")])
def test_nothing_for_a_key_has_an_exit_code_of_its_own(
    invoke: Callable[..., Result], store: str, form: str, printed: str
) -> None:
    nothing = invoke("get", store, "nothing", "--format", form)

    assert (nothing.exit_code, nothing.stdout) == (6, printed)
    assert nothing.stderr == f"store {store!r} has nothing for 'nothing'\n"
    assert invoke("get", store, "apple").exit_code == 0


def test_all_rows_are_exported_without_any_extra(invoke: Callable[..., Result], tmp_path: Path) -> None:
    assert invoke("export", "totals", "--to", "csv:totals.csv").output == "totals: 5 rows are in totals.csv\n"
    invoke("export", "totals", "--to", "json:totals.json")

    assert (tmp_path / "totals.csv").read_text().splitlines() == [
        "key,window_start,window_end,value,timestamp",
        '"a,b",,,1,2',
        "apple,,,2,20000",
        "fig,,,1,4",
        "pear,,,1,1",
        '"qu""ote",,,1,3',
    ]
    rows = [json.loads(line) for line in (tmp_path / "totals.json").read_text().splitlines()]
    assert [(row["key"], row["value"]) for row in rows] == [
        ("a,b", 1),
        ("apple", 2),
        ("fig", 1),
        ("pear", 1),
        ('qu"ote', 1),
    ]


def test_a_file_that_is_there_is_not_written_over(invoke: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "there").write_text("old")

    assert "name a new file" in invoke("export", "totals", "--to", "csv:there").output
    assert "write csv:PATH or json:PATH" in invoke("export", "totals", "--to", "parquet:new").output
    assert (tmp_path / "there").read_text() == "old"


@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_file_that_is_exported_has_its_name_when_it_is_whole(form: str, tmp_path: Path) -> None:
    path, names = tmp_path / "totals", []

    def rows() -> Iterator[Row]:
        for key in ("apple", "pear"):
            names.append([one.name for one in tmp_path.iterdir()])
            yield {"key": key, "value": 1}

    assert export_live(rows(), f"{form}:{path}") == 2
    assert names == [[".totals.unfinished"]] * 2
    assert [one.name for one in tmp_path.iterdir()] == ["totals"]


def test_an_export_that_fails_leaves_no_file(invoke: Callable[..., Result], tmp_path: Path) -> None:
    result = invoke("export", "nothing", "--to", "csv:new.csv")

    assert result.exit_code == 2
    assert "the topology has no store 'nothing'" in result.output
    assert [one.name for one in tmp_path.iterdir() if "new.csv" in one.name] == []


def test_what_the_application_refuses_is_an_error_that_says_why(invoke: Callable[..., Result], tmp_path: Path) -> None:
    by_key = invoke("show", "history")
    assert (by_key.exit_code, "whose rows are read by key only" in by_key.output) == (2, True)
    (tmp_path / "token").write_text("other")
    refused = invoke("show", "totals")
    assert refused.exit_code == 2
    assert "answered 401" in refused.output
    assert "needs the token" in refused.output
    assert "caused by" not in refused.output


def test_an_application_that_does_not_answer_is_an_error_that_says_so() -> None:
    with bound(Address.parse(":0")) as sock:
        url = f"http://127.0.0.1:{sock.getsockname()[1]}"
        result = CliRunner().invoke(cli, ["state", "show", "totals", "--url", url], catch_exceptions=False)

    assert result.exit_code != 0
    assert "was not reached" in result.output


@pytest.mark.parametrize("words", [["get", "totals"], ["get", "a", "b", "c"], ["export", "a", "b", "--to", "csv:x"]])
def test_the_topology_is_left_out_with_a_url(words: list[str]) -> None:
    result = CliRunner().invoke(cli, ["state", *words, "--url", "http://127.0.0.1:1"])

    assert result.exit_code == 2
    assert re.search("(is|are) needed", result.output)


GET, EXPORT = ["get", "totals", "tea"], ["export", "totals", "--to", "csv:x"]
OF_FOLDERS = [
    ["--config", __file__],
    ["--set", "commit.interval.ms=5"],
    ["--application-id", "shop"],
    ["--state-dir", "state"],
]
OF_EXPORTS = [["--bootstrap-servers", "broker:9092"], ["--as-of", "5"], ["--from", "copy"], ["--raw"]]


@pytest.mark.parametrize(
    ("words", "option"),
    [(GET, option) for option in OF_FOLDERS] + [(EXPORT, option) for option in OF_FOLDERS + OF_EXPORTS],
)
def test_options_of_folders_are_refused_with_a_url(words: list[str], option: list[str]) -> None:
    result = CliRunner().invoke(cli, ["state", *words, *option, "--url", "http://127.0.0.1:1"])

    assert result.exit_code == 2
    assert result.stderr.endswith(
        f"Error: {option[0]} is for reading folders or topics, which --url does not; leave one of them out\n"
    )


@pytest.mark.parametrize("words", [GET, EXPORT], ids=lambda words: words[0])
@pytest.mark.parametrize("option", ["--token-file", "--tls-ca", "--stale"])
def test_options_of_running_applications_are_refused_without_a_url(words: list[str], option: str) -> None:
    result = CliRunner().invoke(cli, ["state", words[0], "shop.py", *words[1:], option, "refuse"])

    assert result.exit_code == 2
    assert result.stderr.endswith(
        f"Error: {option} is for asking a running application; name it with --url http://HOST:PORT\n"
    )


def test_all_options_of_the_other_way_are_named() -> None:
    words = ["state", "get", "shop.py", "totals", "tea", "--tls-ca", "ca.pem", "--token-file", "token"]

    assert "Error: --token-file and --tls-ca are for asking" in CliRunner().invoke(cli, words).stderr


@pytest.mark.parametrize(("stale_ms", "age"), [(250, "250 ms old"), (None, "of unknown age")])
def test_how_old_the_answer_of_a_standby_task_is_is_told(
    stale_ms: int | None, age: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told(iter([{"key": "tea", "value": 1, "from": {"role": "standby", "stale_ms": stale_ms}}]), "text")

    assert capsys.readouterr().out == f"tea  1  (standby, {age})\n"
