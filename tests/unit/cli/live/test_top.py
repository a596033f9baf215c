"""``pykstreams top``: the facts of an application in the terminal."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner
from rich.console import Console

from pykstreams.cli.app import cli
from pykstreams.cli.live.facts import InstanceFacts
from pykstreams.cli.live.frame import Moment, frame
from pykstreams.cli.live.server import Server
from pykstreams.cli.live.top import _next
from pykstreams.http import Address, HttpOptions, HttpServer, app
from pykstreams.http.server import bound
from tests.unit.http.live.test_browser import counting, thread
from tests.unit.http.served_application import Streams
from tests.unit.runtime.queries.queried import Application


def instance(name: str, now_ms: int, processed: int, **more: Any) -> InstanceFacts:
    number = int(name.partition(":")[0][-1])
    task = {
        "id": f"0_{number}",
        "subtopology": 0,
        "partition": number,
        "running": True,
        "remaining": 0,
        "processed": processed,
        "lag": 37,
        "late": 0,
        "dropped": 0,
        "failed": 0,
    }
    made: Any = {
        "application": "page-views",
        "instance": name,
        "now_ms": now_ms,
        "state": "running",
        "ready": True,
        "tasks": [task | more.pop("task", {})],
        "standbys": [],
        "nodes": {"source": {"consumed": processed}},
        "log": [],
        **more,
    }
    return cast("InstanceFacts", made)


def shown(*moment: Any, problem: str = "") -> list[str]:
    console = Console(file=io.StringIO(), width=140, color_system=None)
    console.print(frame(Moment(*moment), problem))
    written = console.file
    assert isinstance(written, io.StringIO)
    return [" ".join(line.split()) for line in written.getvalue().splitlines()]


def test_rates_are_made_of_two_answers() -> None:
    before = [instance("host-1:80", 1_000, 100), instance("host-2:80", 1_000, 0)]
    now = [instance("host-1:80", 3_000, 700), instance("host-2:80", 2_000, 24_000)]

    lines = shown(now, before)

    assert lines[0] == "page-views running 24.3k records/s lag 74 dropped 0 instances 2"
    assert "0_1 host-1:80 running 300 37 0 0 0" in lines
    assert "0_2 host-2:80 running 24k 37 0 0 0" in lines
    assert "source 24.3k 0 0 0" in lines


def test_the_first_answer_has_no_rates() -> None:
    assert shown([instance("host-1:80", 1_000, 100)])[0].startswith("page-views running - records/s")


def test_an_instance_that_began_anew_has_no_negative_rate() -> None:
    lines = shown([instance("host-1:80", 3_000, 5)], [instance("host-1:80", 1_000, 900)])

    assert "0_1 host-1:80 running 0 37 0 0 0" in lines


def test_restoring_copies_losses_log_and_instances_that_are_away_are_told() -> None:
    restoring = {"running": False, "remaining": 1_200, "late": 2, "dropped": 3, "failed": 1}
    line = {"at_ms": 0, "level": "WARNING", "text": "counted dropped a record", "thread": "t"}
    copy = {"store": "counts", "partition": 4, "lag": 9}
    told = instance(
        "host-1:80", 1_000, 0, task=restoring, log=[line], standbys=[copy], ready=False, state="rebalancing"
    )

    lines = shown([told, {"instance": "host-2:80", "error": "it was not reached"}])

    assert lines[0].startswith("page-views rebalancing")
    assert "0_1 host-1:80 restoring, 1200 to go - 37 2 3 1" in lines
    assert "counts 4 host-1:80 9" in lines
    assert "host-2:80: it was not reached" in lines
    assert "00:00:00 WARNING counted dropped a record" in lines


def test_a_server_that_is_away_is_told_beside_the_last_facts() -> None:
    last = Moment([instance("host-1:80", 1_000, 100)])

    moment, problem = _next(Server("http://127.0.0.1:1"), last)

    assert moment is last
    lines = shown(last.instances, problem=problem)
    assert lines[1].startswith("No facts for now: http://127.0.0.1:1 was not reached")
    assert "0_1 host-1:80 running - 37 0 0 0" in lines


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    application, options = Application(counting(), tmp_path).start(), HttpOptions()
    streams = Streams(application)
    streams.threads = [thread()]
    server = HttpServer(app(streams, options=options), bound(Address.parse(":0")), options)
    server.start()
    yield f"http://127.0.0.1:{server.port}"
    server.close()
    application.close()


def test_one_picture_is_printed(url: str) -> None:
    result = CliRunner(env={"COLUMNS": "140"}).invoke(cli, ["top", "--url", url, "--once", "--interval", "0.2"])

    assert result.exit_code == 0, result.output
    assert result.output.startswith("shop  running  0 records/s  lag 37")


@pytest.mark.parametrize("columns", ["20", None])
def test_a_picture_that_goes_elsewhere_than_to_a_terminal_is_whole(
    monkeypatch: pytest.MonkeyPatch, columns: str | None
) -> None:
    """Or ``grep`` would not find what was cut off at a width that nobody sees."""
    name, text = f"{'a' * 60}.example-1:8080", f"counted dropped a record: {'it is late ' * 20}"
    line = {"at_ms": 0, "level": "WARNING", "text": text, "thread": ""}
    facts = {"instances": [instance(name, 1_000, 100, log=[line])]}
    monkeypatch.setattr(Server, "get", lambda *_: facts)
    command = ["top", "--url", "http://a:1", "--once", "--interval", "0.2"]
    lines = CliRunner(env={"COLUMNS": columns}).invoke(cli, command, catch_exceptions=False).output.splitlines()

    assert ["0_1", name, "running"] in [one.split()[:3] for one in lines]
    assert lines[-1].rstrip() == f"00:00:00 WARNING {text}".rstrip()


def test_an_address_where_nobody_answers_ends_it_with_the_reason() -> None:
    result = CliRunner().invoke(cli, ["top", "--url", "http://127.0.0.1:1", "--once"])

    assert result.exit_code == 3
    assert "http://127.0.0.1:1 was not reached" in result.output


@pytest.mark.parametrize("interval", ["nan", "inf", "0.1"])
def test_interval_that_is_no_time_is_refused(interval: str) -> None:
    result = CliRunner().invoke(cli, ["top", "--url", "http://a:1", "--once", "--interval", interval])

    assert result.exit_code == 2
    assert "Invalid value for '--interval'" in result.stderr
