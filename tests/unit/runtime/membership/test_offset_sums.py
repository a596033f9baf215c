"""The sums that the members of one process report: once each, and no more than what is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from pykstreams.core.ids import TaskId
from pykstreams.runtime.membership.offset_sums import OffsetSums
from pykstreams.runtime.membership.protocol.subscription_info import RUNNING

FIRST, SECOND, THIRD = TaskId(0, 0), TaskId(0, 1), TaskId(0, 2)
STATELESS = TaskId(1, 0)


@dataclass
class Standbys:
    sums: dict[TaskId, int] = field(default_factory=dict)
    members: dict[TaskId, str] = field(default_factory=dict)

    def offset_sums(self) -> Mapping[TaskId, int]:
        return self.sums

    def member_of(self, task_id: TaskId) -> str | None:
        return self.members.get(task_id)


@dataclass
class Folders:
    found: dict[TaskId, dict[str, int]] = field(default_factory=dict)

    def free_checkpoints(self) -> Mapping[TaskId, Mapping[str, int]]:
        return self.found


class Process:
    """A process with two members, where sub-topology 0 has the stores ``counts`` and ``sums``."""

    def __init__(self) -> None:
        self.standbys, self.folders = Standbys(), Folders()
        self.sums = OffsetSums({0: {"counts", "sums"}}, self.folders, self.standbys)
        self.sums.add("one")
        self.sums.add("another")


@pytest.fixture
def process() -> Process:
    return Process()


def test_a_task_that_runs_is_said_to_run_and_one_that_is_restored_has_its_sum(process: Process) -> None:
    assert process.sums.of("one", running={FIRST}, opened={FIRST: 7, SECOND: 5}) == {FIRST: RUNNING, SECOND: 5}


def test_tasks_without_state_are_left_out(process: Process) -> None:
    process.folders.found = {STATELESS: {"counts": 3}}

    assert process.sums.of("one", running={FIRST, STATELESS}, opened={}) == {FIRST: RUNNING}


def test_a_standby_counts_for_the_member_that_it_was_assigned_to(process: Process) -> None:
    process.standbys.sums, process.standbys.members = {FIRST: 7, SECOND: 5}, {FIRST: "one", SECOND: "another"}

    assert process.sums.of("one", running=(), opened={}) == {FIRST: 7}
    assert process.sums.of("another", running=(), opened={}) == {SECOND: 5}


def test_a_standby_that_is_nobodys_any_more_counts_for_the_first_member(process: Process) -> None:
    process.standbys.sums = {FIRST: 7}

    assert process.sums.of("one", running=(), opened={}) == {FIRST: 7}
    assert process.sums.of("another", running=(), opened={}) == {}


def test_state_that_nobody_has_open_is_reported_by_the_first_member_only(process: Process) -> None:
    process.folders.found = {FIRST: {"counts": 7, "sums": 5}}

    assert process.sums.of("one", running=(), opened={}) == {FIRST: 12}
    assert process.sums.of("another", running=(), opened={}) == {}


def test_when_the_first_member_ends_the_next_one_reports_it(process: Process) -> None:
    process.folders.found = {FIRST: {"counts": 7}}
    process.sums.remove("one")
    after = process.sums.of("another", running=(), opened={})
    process.sums.add("one")

    assert after == process.sums.of("another", running=(), opened={}) == {FIRST: 7}
    assert process.sums.of("one", running=(), opened={}) == {}


def test_stores_that_the_topology_does_not_have_any_more_do_not_count(process: Process) -> None:
    process.folders.found = {FIRST: {"counts": 7, "former": 5}, SECOND: {"former": 5}, STATELESS: {"counts": 1}}

    assert process.sums.of("one", running=(), opened={}) == {FIRST: 7}


def test_a_task_that_was_opened_while_folders_were_looked_through_counts_as_open(process: Process) -> None:
    process.folders.found = {FIRST: {"counts": 7}, SECOND: {"counts": 1}, THIRD: {"counts": 3}}
    process.standbys.sums, process.standbys.members = {SECOND: 9}, {SECOND: "one"}

    assert process.sums.of("one", running=(), opened={FIRST: 8}) == {FIRST: 8, SECOND: 9, THIRD: 3}


def test_a_process_without_standby_tasks_reports_the_rest(process: Process) -> None:
    sums = OffsetSums({0: {"counts"}}, process.folders, None)
    sums.add("one")

    assert sums.of("one", running={FIRST}, opened={}) == {FIRST: RUNNING}
