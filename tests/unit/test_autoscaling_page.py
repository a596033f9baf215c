"""The names of ``docs/guides/autoscaling.md``, and the JSON that autoscalers read, are what the program has."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click
import pytest

from pykstreams.cli.app import cli
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.inspection.group_tools import GroupView
from pykstreams.runtime.groups.lag_report import LagReport, PartitionLag, StandbyLag, TaskLag
from pykstreams.runtime.groups.status import status_of
from tests.docs.pages import Page

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "guides" / "autoscaling.md").read_text(encoding="utf-8")
MANUAL = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
CONFIGURATION = (DOCS / "reference" / "configuration.md").read_text(encoding="utf-8")
METRICS = (DOCS / "reference" / "metrics.md").read_text(encoding="utf-8")
CLIENT_SETTINGS = {"auto.offset.reset", "statistics.interval.ms", "session.timeout.ms"}
"""Settings of librdkafka, which our page of settings does not list."""

REPORT = LagReport(
    "shop",
    "classic",
    "Stable",
    "read_uncommitted",
    (
        TaskLag(
            TaskId(1, 0),
            (PartitionLag(TopicPartition("shop-x-repartition", 0), "repartition", 99, 100, 1),),
            (StandbyLag("shop-2", "/10.0.0.2", 30),),
        ),
    ),
)


def shape(value: Any) -> Any:
    """The names and types of JSON, of lists those of the first element."""
    if isinstance(value, dict):
        return {name: shape(one) for name, one in value.items()}
    return [shape(value[0])] if isinstance(value, list) and value else type(value).__name__


def test_json_of_the_manual_is_that_of_the_program() -> None:
    [block] = Page("docs/reference/cli.md").of("json")
    documented, printed = json.loads(block.text), json.loads(json.dumps(REPORT.as_dict()))

    assert shape(documented) == shape(printed)
    assert documented["tasks"] == printed["tasks"]


def test_json_of_the_status_has_the_names_of_the_manual() -> None:
    section = MANUAL.split("\n## status\n")[1].split("\n## ")[0]
    found = status_of("shop", GroupView("classic", ()), [TaskId(0, 0)]).as_dict()

    assert [name for name in found if f"`{name}`" not in section] == []


def test_fields_that_the_page_asks_for_are_there() -> None:
    lag = set(re.findall(r"pykstreams lag .*?jq '(.*?)'", PAGE))
    status = set(re.findall(r"pykstreams status .*?jq '(.*?)'", PAGE))
    [task] = json.loads(json.dumps(REPORT.as_dict()))["tasks"]

    assert lag == {".total", ".tasks | max_by(.lag) | .task, .lag"}
    assert {"task", "lag"} <= set(task)
    assert status == {".unassigned | length"}
    assert "unassigned" in status_of("shop", GroupView("classic", ()), []).as_dict()


def test_metrics_of_the_page_are_metrics() -> None:
    names = set(re.findall(r"kafka_streams_\w+", PAGE))

    assert len(names) == 3
    assert [name for name in names if f"| `{name}` |" not in METRICS] == []


def test_settings_of_the_page_are_settings() -> None:
    names = {name for name in re.findall(r"`([a-z]+(?:\.[a-z]+)+)(?:=\w+)?`", PAGE) if not name.endswith(".py")}

    assert len(names) >= 8
    assert [name for name in names - CLIENT_SETTINGS if name not in CONFIGURATION] == []


@pytest.mark.parametrize("command", sorted(set(re.findall(r"pykstreams (lag|status|topics|run) ", PAGE))))
def test_commands_of_the_page_have_the_options_that_it_gives_them(command: str) -> None:
    found = cli.get_command(click.Context(cli), command)

    assert found is not None
    has = {option for parameter in found.params for option in parameter.opts}
    lines = re.findall(rf"pykstreams {command} ([^`|\n]*)", PAGE)
    assert {option for line in lines for option in re.findall(r"--[a-z-]+", line)} <= has
