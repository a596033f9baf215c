"""``pykstreams lag`` and ``status``: what they print, and how they end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pykstreams.cli import group as group_module
from pykstreams.cli.app import cli
from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ClusterError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.inspection.group_tools import GroupView
from pykstreams.runtime.groups.lag_report import LagReport, PartitionLag, TaskLag
from pykstreams.runtime.groups.status import GroupStatus, status_of
from pykstreams.topology.plan import TopologyPlan

SCRIPT = """
from pykstreams import StreamsBuilder
application_id = "shop"
builder = StreamsBuilder()
builder.stream("orders").foreach(print)
"""


class Looks:
    """A cluster whose group has a lag of 7; or none, where it fails."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure
        self.config: StreamsConfig | None = None

    def lag(self) -> LagReport:
        self._fail()
        place = PartitionLag(TopicPartition("orders", 0), "input", 3, 10, 7)
        return LagReport("shop", "classic", "Stable", "read_uncommitted", (TaskLag(TaskId(0, 0), (place,)),))

    def status(self) -> GroupStatus:
        self._fail()
        return status_of("shop", GroupView("classic", (), "Empty"), [TaskId(0, 0)])

    def _fail(self) -> None:
        if self.failure is not None:
            raise self.failure


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    found = Looks()

    @contextmanager
    def opened(plan: TopologyPlan, config: StreamsConfig) -> Iterator[Looks]:
        found.config = config
        yield found

    monkeypatch.setattr(group_module, "opened", opened)
    return found


def invoke(folder: Path, command: str, *options: str) -> Result:
    (folder / "group_job.py").write_text(SCRIPT, encoding="utf-8")
    return CliRunner().invoke(cli, [command, str(folder / "group_job.py"), *options])


@pytest.mark.parametrize(
    ("command", "last", "key", "value"),
    [
        ("lag", "total: 7 (input 7, repartition 0)", "total", 7),
        ("status", "tasks that nobody has: 0_0", "unassigned", ["0_0"]),
    ],
)
def test_command_prints_text_and_json(
    command: str, last: str, key: str, value: object, looks: Looks, tmp_path: Path
) -> None:
    text = invoke(tmp_path, command, "--bootstrap-servers", "a:1")
    shaped = invoke(tmp_path, command, "--bootstrap-servers", "a:1", "--format", "json")

    assert (text.exit_code, text.stdout.splitlines()[-1]) == (0, last)
    assert (shaped.exit_code, json.loads(shaped.stdout)[key]) == (0, value)


@pytest.mark.parametrize("command", ["lag", "status"])
def test_settings_come_from_all_sources(command: str, looks: Looks, tmp_path: Path) -> None:
    file = tmp_path / "shop.properties"
    file.write_text("bootstrap.servers = a:1\n", encoding="utf-8")
    options = ["--config", str(file), "--set", "processing.guarantee=exactly_once_v2", "--application-id", "eu"]

    assert invoke(tmp_path, command, *options).exit_code == 0
    assert looks.config is not None
    assert (looks.config.application_id, looks.config.processing_guarantee) == ("eu", "exactly_once_v2")
    assert list(looks.config.bootstrap_servers) == ["a:1"]


@pytest.mark.parametrize("command", ["lag", "status"])
def test_command_without_brokers_is_a_usage_error(command: str, looks: Looks, tmp_path: Path) -> None:
    result = invoke(tmp_path, command)

    assert result.exit_code == 2
    assert "give --bootstrap-servers HOST:PORT" in result.output


@pytest.mark.parametrize("command", ["lag", "status"])
def test_cluster_that_does_not_answer_ends_with_3(command: str, looks: Looks, tmp_path: Path) -> None:
    looks.failure = ClusterError("no broker answered")

    assert invoke(tmp_path, command, "--bootstrap-servers", "a:1").exit_code == 3


@pytest.mark.parametrize("command", ["lag", "status"])
def test_command_does_not_wait_long_for_brokers_that_are_not_there(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pykstreams.runtime.clients.admin.TOOL_PATIENCE_S", 0.1)

    result = invoke(tmp_path, command, "--bootstrap-servers", "127.0.0.1:1")

    assert result.exit_code == 3
    assert "no broker answered at 127.0.0.1:1 within 0.1 s" in result.output
