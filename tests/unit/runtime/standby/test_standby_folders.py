"""Who has which folder: a worker that asks for one, a standby in it, or open stores that wait."""

from __future__ import annotations

from pathlib import Path

from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.standby.standby_folders import Standby, StandbyFolders
from pykstreams.runtime.tasks.stores.open_stores import OpenStores
from pykstreams.runtime.tasks.stores.state_offsets import StateOffsets
from pykstreams.state.directory.file_lock import FileLock
from tests.unit.runtime.cluster_fakes import FakeTask

ONE, TWO = TaskId(0, 1), TaskId(0, 2)
INPUTS = frozenset({TopicPartition("orders", 1)})


def standby(task_id: TaskId, *, is_open: bool = False) -> Standby:
    return Standby(FakeTask(task_id, INPUTS, {}), INPUTS, (None, None), is_open)


def stores() -> OpenStores:
    return OpenStores({}, StateOffsets({}))


def test_no_standby_enters_a_folder_that_a_worker_has_asked_for() -> None:
    folders = StandbyFolders()

    assert not folders.ask_for(ONE)
    assert not folders.enter(standby(ONE))
    folders.allow(ONE)
    assert folders.enter(standby(ONE))


def test_a_worker_that_asks_for_a_folder_is_told_of_the_standby_that_has_to_leave() -> None:
    folders = StandbyFolders()
    one, two = standby(ONE), standby(TWO)
    folders.enter(one)
    folders.enter(two)

    assert folders.ask_for(ONE)
    assert folders.asked_for() == [one]


def test_only_standbys_whose_stores_are_open_are_shown() -> None:
    folders = StandbyFolders()
    one = standby(ONE, is_open=True)
    folders.enter(one)
    folders.enter(standby(TWO))

    assert folders.open_tasks() == [one.task]


def test_stores_of_a_standby_that_leaves_wait_until_they_are_taken_once(tmp_path: Path) -> None:
    folders = StandbyFolders()
    folders.enter(standby(ONE))
    left, lock = stores(), FileLock(tmp_path / "lock")
    folders.replace(ONE, left, lock)

    assert folders.standbys == {}
    assert folders.waiting() == {ONE: left}
    assert folders.taken(ONE) == (left, lock)
    assert folders.taken(ONE) is None


def test_stores_that_wait_are_nobodys_when_neither_a_worker_nor_a_wanted_standby_is_to_have_them(
    tmp_path: Path,
) -> None:
    folders = StandbyFolders()
    for task_id in (ONE, TWO):
        folders.leave_open(task_id, stores(), FileLock(tmp_path / str(task_id)))

    assert folders.sort_out({ONE: INPUTS}) == ({ONE: INPUTS}, {TWO})
    folders.ask_for(ONE)
    folders.ask_for(TWO)
    assert folders.sort_out({ONE: INPUTS}) == ({}, set())
    assert folders.allow(TWO)
    assert folders.sort_out({ONE: INPUTS}) == ({}, {TWO})
