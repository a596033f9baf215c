"""The options of ``pykstreams reset``: one target, a question, and a dry run that does nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from pykstreams.cli import reset as reset_module
from pykstreams.cli.app import cli
from pykstreams.cli.reset import target_of
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.clients.inspection.group_tools import GroupMember
from pykstreams.runtime.reset.reset_plan import OffsetChange, ResetPlan
from pykstreams.runtime.reset.targets import AtTime, Current, Earliest, Latest, ShiftBy, Target, ToOffset

SCRIPT = """
from pykstreams import StreamsBuilder
application_id = "shop"
builder = StreamsBuilder()
builder.stream("orders").foreach(print)
"""
LINES = ["offset of orders-0 in group shop: none -> 0", "delete topic shop-x-changelog"]


class Work:
    """A reset that remembers whether it was carried out."""

    def __init__(self) -> None:
        self.done = False

    def check_members(self, *, force: bool) -> tuple[GroupMember, ...]:
        return ()

    def plan(self, target: Target, *, internal_topics: Collection[str], keep_state: bool) -> ResetPlan:
        return ResetPlan("shop", (OffsetChange(TopicPartition("orders", 0), None, 0),), ("shop-x-changelog",))

    def carry_out(self, plan: ResetPlan, members: Collection[GroupMember]) -> None:
        self.done = True


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    found = Work()

    @contextmanager
    def opened(*_: object) -> Iterator[Work]:
        yield found

    monkeypatch.setattr(reset_module, "opened", opened)
    return found


def invoke(folder: Path, *options: str, answer: str | None = None) -> Result:
    (folder / "reset_job.py").write_text(SCRIPT, encoding="utf-8")
    arguments = ["reset", str(folder / "reset_job.py"), "--bootstrap-servers", "a:1", "--state-dir", str(folder)]
    return CliRunner().invoke(cli, [*arguments, *options], input=answer)


@pytest.mark.parametrize(
    ("options", "answer", "done", "last"),
    [
        (["--dry-run"], None, False, "nothing was done (--dry-run)"),
        (["--dry-run", "--yes"], None, False, "nothing was done (--dry-run)"),
        (["--yes"], None, True, "done"),
        ([], "y\n", True, "done"),
        ([], "n\n", False, "nothing was done"),
    ],
)
def test_reset_prints_its_plan_and_does_it_when_it_is_told_to(
    options: list[str], answer: str | None, done: bool, last: str, work: Work, tmp_path: Path
) -> None:
    result = invoke(tmp_path, *options, answer=answer)
    lines = result.output.splitlines()

    assert (result.exit_code, work.done) == (0, done)
    assert lines[:2] == LINES
    assert lines[-1] == last


def test_question_that_nobody_answers_is_a_usage_error(work: Work, tmp_path: Path) -> None:
    result = invoke(tmp_path, answer="")

    assert (result.exit_code, work.done) == (2, False)
    assert "give --yes, or look with --dry-run" in result.output


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, Earliest()),
        ({"to_earliest": True, "to_latest": False}, Earliest()),
        ({"to_latest": True}, Latest()),
        ({"to_current": True}, Current()),
        ({"to_datetime": "1970-01-01T00:01Z"}, AtTime(60_000)),
        ({"by_duration": "PT1M"}, AtTime(40_000)),
        ({"shift_by": 0}, ShiftBy(0)),
        ({"to_offset": 0}, ToOffset(0)),
    ],
)
def test_option_becomes_its_target(options: dict[str, object], expected: Target) -> None:
    assert target_of(options, now_ms=100_000) == expected


def test_two_targets_are_refused() -> None:
    with pytest.raises(click.UsageError, match="--to-latest, --shift-by contradict each other"):
        target_of({"to_latest": True, "shift_by": 1}, now_ms=0)
