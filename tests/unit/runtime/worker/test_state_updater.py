"""The state-updater thread: locks, opens, restores, hands over and closes; it waits for locks, and tells failures."""

from __future__ import annotations

import errno
import logging
import os
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pykstreams.core.clock import SystemClock
from pykstreams.core.errors import (
    ClusterError,
    ClusterUnavailableError,
    DamagedStoreError,
    DiskFullError,
    LockError,
    MissingInternalTopicsError,
    ProcessorStateError,
    StoreEngineError,
)
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.consumers.restore_consumer import RestoreBatch
from pykstreams.runtime.pause import Pause
from pykstreams.runtime.restore import remade_changelogs
from pykstreams.runtime.restore.restore import Damaged, Restorer, StateRestoreListener
from pykstreams.runtime.swap.shadow import Shadow
from pykstreams.runtime.tasks.stores.open_stores import OpenStores
from pykstreams.runtime.worker import state_updater
from pykstreams.runtime.worker.state_updater import Corrupted, Failed, Report, Restored, StateUpdater
from pykstreams.state.bulk.take_over import mark_of, put_mark
from pykstreams.state.directory.file_lock import FileLock
from pykstreams.state.directory.state_directory import StateDirectory
from tests.unit.runtime.cluster_fakes import FakeChangelogs, FakeRestoredStore, FakeTask

TASK = TaskId(0, 1)
LOG = TopicPartition("shop-counts-changelog", 1)
PATIENCE_S = 60.0


def reports(updater: StateUpdater, count: int = 1) -> list[Report]:
    """Waits for so many reports."""
    clock = SystemClock()
    deadline = clock.monotonic() + PATIENCE_S
    found: list[Report] = []
    while len(found) < count:
        assert clock.monotonic() < deadline, found
        found += updater.reports()
    return found


@pytest.fixture
def logs() -> FakeChangelogs:
    return FakeChangelogs()


@pytest.fixture
def directory(tmp_path: Path) -> StateDirectory:
    return StateDirectory(tmp_path, "shop", clock=SystemClock())


@pytest.fixture
def other(tmp_path: Path) -> Iterator[StateDirectory]:
    """The directory as another worker sees it."""
    found = StateDirectory(tmp_path, "shop", clock=SystemClock())
    yield found
    found.close()


@pytest.fixture
def start(logs: FakeChangelogs, directory: StateDirectory) -> Iterator[Callable[..., StateUpdater]]:
    made: list[StateUpdater] = []

    def make(task_timeout_ms: int = 60_000, pause: Pause | None = None) -> StateUpdater:
        updater = StateUpdater(
            "updater",
            restorer=lambda: (Restorer(logs, logs, StateRestoreListener()), lambda: None),
            directory=directory,
            clock=SystemClock(),
            task_timeout_ms=task_timeout_ms,
            cleanup_delay_ms=600_000,
            pause=pause,
        )
        updater.start()
        made.append(updater)
        return updater

    yield make
    for updater in made:
        updater.stop()


def task(store: FakeRestoredStore | None = None) -> FakeTask:
    return FakeTask(TASK, [TopicPartition("orders", 1)], {} if store is None else {LOG: store})


def test_task_without_stores_is_handed_over_at_once(start: Callable[..., StateUpdater]) -> None:
    updater = start()
    updater.open(task(), {})

    assert reports(updater) == [Restored(TASK, frozenset())]


def test_task_is_handed_over_when_it_is_restored(start: Callable[..., StateUpdater], logs: FakeChangelogs) -> None:
    store = FakeRestoredStore()
    logs.ends[LOG] = 2
    logs.put(LOG, 0, 1)
    updater = start()
    updater.open(task(store), {})

    assert reports(updater) == [Restored(TASK, frozenset({LOG}))]
    assert store.commits == [2]


def test_news_of_a_task_that_was_let_go_are_not_taken_for_those_of_its_successor(
    start: Callable[..., StateUpdater],
) -> None:
    clock = SystemClock()
    deadline = clock.monotonic() + PATIENCE_S
    updater, first, second = start(), task(), task()
    updater.open(first, {})
    while updater._reports.is_empty:  # it is restored, and nobody was notified of it yet
        assert clock.monotonic() < deadline
    updater.close(first)
    updater.open(second, {})
    updater.stop()

    assert updater.reports() == [Restored(TASK, frozenset())]


def test_folder_is_locked_while_the_task_is_open_and_free_after(
    start: Callable[..., StateUpdater], other: StateDirectory
) -> None:
    updater, opened = start(), task()
    updater.open(opened, {})
    reports(updater)
    with pytest.raises(LockError):
        other.lock(TASK)

    updater.close(opened)
    updater.stop()

    other.lock(TASK)
    assert opened.history == ["open", "close"]


def test_task_waits_for_the_lock_of_another_worker(start: Callable[..., StateUpdater], other: StateDirectory) -> None:
    other.lock(TASK)
    updater, opened = start(), task()
    updater.open(opened, {})
    neighbour = FakeTask(TaskId(0, 2), [], {})
    updater.open(neighbour, {})
    first = reports(updater)
    other.unlock(TASK)

    assert first == [Restored(TaskId(0, 2), frozenset())]
    assert reports(updater) == [Restored(TASK, frozenset())]


def test_lock_that_is_never_let_go_is_an_error(start: Callable[..., StateUpdater], other: StateDirectory) -> None:
    other.lock(TASK)
    updater = start(task_timeout_ms=0)
    updater.open(task(), {})

    (failed,) = reports(updater)

    assert isinstance(failed, Failed)
    assert isinstance(failed.error, LockError)
    assert str(failed.error) == (
        f"task 0_1 has waited 0 s (task.timeout.ms) for its state: folder {str(other.task_dir(TASK))!r} of task 0_1 is "
        f"in use by process {os.getpid()}; wait until that process has stopped, or give this worker a state.dir of its "
        "own"
    )


def test_state_that_its_changelog_no_longer_covers_is_deleted(
    start: Callable[..., StateUpdater], logs: FakeChangelogs, directory: StateDirectory
) -> None:
    logs.begins[LOG], logs.ends[LOG] = 5, 9
    row = directory.task_dir(TASK) / "rocksdb"
    row.mkdir()
    updater = start()
    updater.open(task(FakeRestoredStore(offset=2)), {})

    assert reports(updater) == [Corrupted(TASK)]
    assert not row.exists()


def test_state_whose_changelog_is_too_short_by_the_word_of_one_broker_is_tried_again_after_a_while(
    start: Callable[..., StateUpdater],
    logs: FakeChangelogs,
    directory: StateDirectory,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A broker that was stopped does not know yet that another one leads the changelog."""
    monkeypatch.setattr(state_updater, "_CLUSTER_RETRY_S", 0.01)
    ends = [3, 3, 4]
    monkeypatch.setattr(logs, "end_offsets", lambda places, timeout_s: {LOG: ends.pop(0)})
    row = directory.task_dir(TASK) / "rocksdb"
    row.mkdir()
    updater = start()
    opened = task(FakeRestoredStore(offset=4))
    updater.open(opened, {})

    assert reports(updater) == [Restored(TASK, frozenset({LOG}))]
    assert opened.history == ["open", "close", "open", "close", "open"]
    assert caplog.text.count("a broker that leads it no longer may say so, too") == 1
    assert row.exists()


def test_changelog_that_turns_out_to_be_too_short_while_it_is_read_has_its_task_opened_anew(
    start: Callable[..., StateUpdater],
    logs: FakeChangelogs,
    directory: StateDirectory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ends = [9, 3]
    monkeypatch.setattr(logs, "end_offsets", lambda places, timeout_s: {LOG: ends.pop(0)})
    logs.batches.append(RestoreBatch(out_of_range=[LOG]))
    row = directory.task_dir(TASK) / "rocksdb"
    row.mkdir()
    updater = start()
    updater.open(task(FakeRestoredStore(offset=4)), {})

    assert reports(updater) == [Corrupted(TASK)]
    assert row.exists()


def test_state_whose_changelog_was_made_anew_is_left_alone_and_both_ways_out_are_told(
    start: Callable[..., StateUpdater],
    logs: FakeChangelogs,
    directory: StateDirectory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may be the only copy that is left."""
    monkeypatch.setattr(remade_changelogs, "CONFIRM_S", 0.0)
    logs.ends[LOG] = 3
    row = directory.task_dir(TASK) / "rocksdb"
    row.mkdir()
    updater = start()
    updater.open(task(FakeRestoredStore(offset=4)), {})

    (failed,) = reports(updater)

    assert isinstance(failed, Failed)
    assert isinstance(failed.error, MissingInternalTopicsError)
    assert failed.error.topics == ["shop-counts-changelog"]
    assert str(failed.error) == (
        "store 'counts' of task 0_1 stands for offset 4 of shop-counts-changelog-1, which goes from 0 to 3: the topic "
        "was deleted and made anew, for instance by a reset on another machine or with another state directory, or the "
        "brokers have lost records of it. The local state may be the only copy that is left, so it is not touched, and "
        "nothing is processed. After a reset, delete the local state here, too: stop all workers, and run pykstreams "
        "reset with --to-current and the --state-dir of this worker. Otherwise bring back topic "
        "'shop-counts-changelog' with all its records and offsets (from a backup or a mirror); or delete the folder "
        f"{str(row.parent)!r}, and the task goes on with what the topic holds now"
    )
    assert row.exists()


def test_store_that_is_damaged_is_told_and_left_alone_and_others_are_opened(
    start: Callable[..., StateUpdater], directory: StateDirectory, other: StateDirectory
) -> None:
    error = StoreEngineError("store 'counts' cannot be opened")

    class Broken(FakeTask):
        def open_stores(self, kept: OpenStores | None = None) -> dict[TopicPartition, Any]:
            raise error

    row = directory.task_dir(TASK) / "rocksdb"
    row.mkdir()
    updater, neighbour = start(), TaskId(0, 2)
    broken = Broken(TASK, [], {})
    updater.open(broken, {})
    updater.open(FakeTask(neighbour, [], {}), {})

    assert reports(updater, 2) == [Damaged(TASK, error), Restored(neighbour, frozenset())]
    assert broken.history == ["close"]
    assert row.exists()
    other.lock(TASK)


def test_damaged_store_that_has_a_changelog_is_set_aside_before_its_task_is_told_of(
    start: Callable[..., StateUpdater],
    directory: StateDirectory,
    other: StateDirectory,
    caplog: pytest.LogCaptureFixture,
) -> None:
    cause = Exception("Corruption: CURRENT file corrupted")
    error = DamagedStoreError("store 'counts' cannot be opened", store="counts", task_id=TASK)
    error.__cause__ = cause
    folder = directory.task_dir(TASK) / "rocksdb" / "counts"
    (folder / "rows").mkdir(parents=True)
    (folder.parent / "rates").mkdir()
    updater, broken = start(), task(FakeRestoredStore("counts"))
    broken.open_failure = error
    updater.open(broken, {})

    assert reports(updater) == [Damaged(TASK, error)]
    [aside] = directory.task_dir(TASK).glob("counts.damaged-*")
    assert (aside / "rows").is_dir()
    assert [path.name for path in folder.parent.iterdir()] == ["rates"]
    assert broken.history == ["close"]
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR] == [
        f"task 0_1: store 'counts' is damaged; it was set aside in {str(aside)!r}, and it is restored from its "
        "changelog. Look at the disk. The cause: Corruption: CURRENT file corrupted"
    ]
    other.lock(TASK)


def test_full_disk_on_which_a_folder_cannot_be_made_ready_is_told_as_such(
    start: Callable[..., StateUpdater], directory: StateDirectory
) -> None:
    updater, full = start(), task()
    full.open_failure = OSError(errno.ENOSPC, "No space left on device")
    updater.open(full, {})

    (report,) = reports(updater)
    assert isinstance(report, Damaged)
    assert isinstance(report.error, DiskFullError)
    assert report.error.folder == str(directory.task_dir(TASK))


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_full_disk_on_which_a_folder_cannot_be_locked_is_told_as_such(
    start: Callable[..., StateUpdater], monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def full(self: FileLock, content: str | None = None) -> bool:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(FileLock, "take", full)
    updater = start()
    updater.open(task(), {})

    (report,) = reports(updater)
    assert isinstance(report, Damaged)
    assert isinstance(report.error, DiskFullError)


def test_damaged_store_of_a_task_that_ran_is_set_aside_when_the_task_is_closed(
    start: Callable[..., StateUpdater], directory: StateDirectory
) -> None:
    folder = directory.task_dir(TASK) / "rocksdb" / "counts"
    folder.mkdir(parents=True)
    updater, ran = start(), task(FakeRestoredStore("counts"))
    updater.open(ran, {})
    reports(updater)
    updater.close(ran, DamagedStoreError("store 'counts' cannot be read", store="counts", task_id=TASK))
    updater.stop()

    assert len([*directory.task_dir(TASK).glob("counts.damaged-*")]) == 1
    assert not folder.exists()


def test_state_that_is_based_on_a_bootstrap_begins_anew_when_a_store_of_it_is_damaged(
    start: Callable[..., StateUpdater], directory: StateDirectory
) -> None:
    """Its changelog may lack what the files of the bootstrap hold."""
    put_mark(directory.task_dir(TASK), "00ff")
    updater, ran = start(), task(FakeRestoredStore("counts"))
    updater.open(ran, {})
    reports(updater)
    updater.close(ran, DamagedStoreError("store 'counts' cannot be read", store="counts", task_id=TASK))
    updater.stop()

    assert mark_of(directory.task_dir(TASK)) is None


def test_damaged_store_that_cannot_be_set_aside_is_left_where_it_is(
    start: Callable[..., StateUpdater],
    directory: StateDirectory,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def rename(self: Path, target: Path) -> Path:
        raise PermissionError(13, "Permission denied")

    folder = directory.task_dir(TASK) / "rocksdb" / "counts"
    folder.mkdir(parents=True)
    updater, ran = start(), task(FakeRestoredStore("counts"))
    updater.open(ran, {})
    reports(updater)
    monkeypatch.setattr(Path, "rename", rename)
    updater.close(ran, DamagedStoreError("store 'counts' cannot be read", store="counts", task_id=TASK))
    updater.stop()

    assert folder.exists()
    assert "task 0_1: store 'counts' is damaged, and stays as it is: the damaged store in" in caplog.text
    assert "Permission denied; give the worker the right to write there, or delete the folder of" in caplog.text


def test_folder_that_cannot_be_locked_is_told_and_others_are_opened(
    start: Callable[..., StateUpdater], directory: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    error, neighbour, lock = StoreEngineError("read-only"), TaskId(0, 2), directory.lock

    def locked(task_id: TaskId) -> Path:
        if task_id == TASK:
            raise error
        return lock(task_id)

    monkeypatch.setattr(directory, "lock", locked)
    updater = start()
    updater.open(task(), {})
    updater.open(FakeTask(neighbour, [], {}), {})

    assert reports(updater, 2) == [Damaged(TASK, error), Restored(neighbour, frozenset())]


def test_task_that_is_closed_while_it_is_restored_keeps_its_progress(
    start: Callable[..., StateUpdater], logs: FakeChangelogs
) -> None:
    store = FakeRestoredStore()
    logs.ends[LOG] = 9
    updater, opened = start(), task(store)
    updater.open(opened, {})
    updater.close(opened)
    updater.stop()

    assert updater.reports() == []
    assert store.commits == [0]
    assert opened.history == ["open", "close"]


def test_store_that_cannot_be_opened_ends_the_worker(start: Callable[..., StateUpdater]) -> None:
    class Broken(FakeTask):
        def open_stores(self, kept: OpenStores | None = None) -> dict[TopicPartition, Any]:
            raise ProcessorStateError("store 'counts' cannot be opened")

    updater = start()
    broken = Broken(TASK, [], {})
    updater.open(broken, {})

    (failed,) = reports(updater)

    assert isinstance(failed, Failed)
    assert "cannot be opened" in str(failed.error)


def test_what_is_no_exception_and_ends_the_thread_ends_the_worker(start: Callable[..., StateUpdater]) -> None:
    """Foreign extensions raise such, for instance; else a worker would wait for its tasks, alive and for good."""

    class Exiting(FakeTask):
        def open_stores(self, kept: OpenStores | None = None) -> dict[TopicPartition, Any]:
            sys.exit("enough")

    updater = start()
    updater.open(Exiting(TASK, [], {}), {})

    (failed,) = reports(updater)

    assert isinstance(failed, Failed)
    assert "the thread of state was ended by SystemExit('enough')" in str(failed.error)


def test_running_task_is_closed_also_after_the_thread_has_failed(start: Callable[..., StateUpdater]) -> None:
    class Broken(FakeTask):
        def open_stores(self, kept: OpenStores | None = None) -> dict[TopicPartition, Any]:
            raise ProcessorStateError("store 'counts' cannot be opened")

    updater, running = start(), FakeTask(TaskId(0, 2), [], {})
    updater.open(running, {})
    reports(updater)
    updater.open(Broken(TASK, [], {}), {})
    reports(updater)
    updater.stop()

    updater.close(running)

    assert running.history == ["open", "close"]


def test_tasks_are_closed_that_are_let_go_while_the_thread_fails(
    logs: FakeChangelogs, directory: StateDirectory, other: StateDirectory
) -> None:
    class Broken(FakeTask):
        def open_stores(self, kept: OpenStores | None = None) -> dict[TopicPartition, Any]:
            raise ProcessorStateError("store 'counts' cannot be opened")

    let_go = threading.Event()
    updater = StateUpdater(
        "updater",
        restorer=lambda: (Restorer(logs, logs, StateRestoreListener()), lambda: assert_set(let_go)),
        directory=directory,
        clock=SystemClock(),
        task_timeout_ms=60_000,
        cleanup_delay_ms=600_000,
    )
    updater.start()
    running, restoring = FakeTask(TaskId(0, 2), [], {}), task(FakeRestoredStore())
    logs.ends[LOG] = 9
    updater.open(running, {})
    updater.open(restoring, {})
    updater.open(Broken(TaskId(0, 3), [], {}), {})
    assert isinstance(reports(updater, 2)[-1], Failed)
    never_opened = FakeTask(TaskId(0, 4), [], {})
    updater.open(never_opened, {})
    for one in (running, restoring, never_opened):
        updater.close(one)
    let_go.set()
    updater.stop()

    assert [one.history for one in (running, restoring, never_opened)] == [["open", "close"]] * 2 + [[]]
    for number in range(1, 5):
        other.lock(TaskId(0, number))


def assert_set(event: threading.Event) -> None:
    assert event.wait(PATIENCE_S)


def test_folder_is_free_also_when_its_state_cannot_be_deleted(
    start: Callable[..., StateUpdater],
    logs: FakeChangelogs,
    directory: StateDirectory,
    other: StateDirectory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def wipe(task_id: TaskId) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(directory, "wipe", wipe)
    logs.begins[LOG], logs.ends[LOG] = 5, 9
    updater = start()
    updater.open(task(FakeRestoredStore(offset=3)), {})
    (failed,) = reports(updater)
    updater.stop()

    assert isinstance(failed, Failed)
    other.lock(TASK)


class StubShadow(Shadow):
    """A shadow that notes what it is told, in the history of its task."""

    def __init__(self, task: FakeTask) -> None:
        self.task_id = task.id
        self._history = task.history

    def step(self) -> bool:
        if self._history[-1] != "step":
            self._history.append("step")
        return False

    def adopt(self) -> None:
        self._history.append("adopt")

    def discard(self) -> None:
        self._history.append("discard")


def followed(updater: StateUpdater, opened: FakeTask) -> StubShadow:
    """Opens a task, and gives it a shadow that has begun."""
    updater.open(opened, {})
    reports(updater)
    shadow = StubShadow(opened)
    updater.follow(shadow)
    clock = SystemClock()
    deadline = clock.monotonic() + PATIENCE_S
    while "step" not in opened.history:
        assert clock.monotonic() < deadline
    return shadow


def test_shadow_takes_the_place_of_its_task_when_that_is_closed(start: Callable[..., StateUpdater]) -> None:
    updater, opened = start(), task()
    updater.close(opened, followed(updater, opened))
    updater.stop()

    assert opened.history == ["open", "step", "close", "adopt"]


def test_shadow_goes_with_its_task_and_stays_when_another_is_closed(start: Callable[..., StateUpdater]) -> None:
    updater, opened, other = start(), task(), FakeTask(TaskId(0, 2), [], {})
    followed(updater, opened)
    updater.open(other, {})
    reports(updater)
    updater.close(other)
    updater.close(opened)
    updater.stop()

    assert opened.history == ["open", "step", "discard", "close"]
    assert other.history == ["open", "close"]


def test_shadow_is_given_up_when_its_task_cannot_be_closed_or_the_worker_ends(
    start: Callable[..., StateUpdater],
) -> None:
    class Broken(FakeTask):
        def close(self) -> None:
            raise ProcessorStateError("store 'counts' cannot be closed")

    updater, broken = start(), Broken(TASK, [], {})
    updater.close(broken, followed(updater, broken))
    last = FakeTask(TaskId(0, 2), [], {})
    followed(updater, last)
    updater.stop()

    assert broken.history == ["open", "step", "discard"]
    assert last.history == ["open", "step", "discard"]


def test_whatever_closing_raises_the_folder_is_free_and_other_tasks_are_opened(
    start: Callable[..., StateUpdater], other: StateDirectory
) -> None:
    class Broken(FakeTask):
        def close(self) -> None:
            raise ValueError("a store of the user's cannot be closed")

    updater, broken = start(), Broken(TASK, [], {})
    updater.open(broken, {})
    reports(updater)
    updater.close(broken)
    updater.open(FakeTask(TaskId(0, 2), [], {}), {})

    assert reports(updater) == [Restored(TaskId(0, 2), frozenset())]
    assert other.lock(TASK)


def restoring_updater(logs: FakeChangelogs, directory: StateDirectory, listener: StateRestoreListener) -> StateUpdater:
    """A thread that is started, and restores with this listener until it is told to stop."""
    logs.ends[LOG] = 9
    updater = StateUpdater(
        "updater",
        restorer=lambda: (Restorer(logs, logs, listener), lambda: None),
        directory=directory,
        clock=SystemClock(),
        task_timeout_ms=60_000,
        cleanup_delay_ms=600_000,
    )
    updater.start()
    return updater


class FailingListener(StateRestoreListener):
    def on_restore_suspended(self, topic_partition: TopicPartition, store_name: str, total_restored: int) -> None:
        raise ValueError("the listener of the user fails")


def test_task_is_closed_and_its_folder_free_when_the_listener_fails_that_is_notified_of_it(
    logs: FakeChangelogs, directory: StateDirectory, other: StateDirectory
) -> None:
    updater, opened = restoring_updater(logs, directory, FailingListener()), task(FakeRestoredStore())
    updater.open(opened, {})
    updater.close(opened)
    (failed,) = reports(updater)
    updater.stop()

    assert isinstance(failed, Failed)
    assert str(failed.error) == "the listener of the user fails"
    assert opened.history == ["open", "close"]
    other.lock(TASK)


def test_task_is_closed_and_its_folder_free_when_reading_its_changelog_cannot_be_stopped(
    logs: FakeChangelogs, directory: StateDirectory, other: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unassign(partitions: Collection[TopicPartition]) -> None:
        raise ClusterError("giving up partitions: erroneous state")

    monkeypatch.setattr(logs, "unassign", unassign)
    updater, store = restoring_updater(logs, directory, StateRestoreListener()), FakeRestoredStore()
    opened = task(store)
    updater.open(opened, {})
    updater.close(opened)
    (failed,) = reports(updater)
    updater.stop()

    assert isinstance(failed, Failed)
    assert (store.commits, opened.history) == ([0], ["open", "close"])
    other.lock(TASK)


def test_every_task_that_is_restored_is_closed_at_the_end_whatever_one_of_them_raises(
    logs: FakeChangelogs, directory: StateDirectory, other: StateDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    updater = restoring_updater(logs, directory, FailingListener())
    places = {TaskId(0, number): TopicPartition(LOG.topic, number) for number in range(3)}
    logs.ends.update(dict.fromkeys(places.values(), 9))
    opened = [FakeTask(task_id, [], {place: FakeRestoredStore()}) for task_id, place in places.items()]
    for one in opened:
        updater.open(one, {})
    updater.stop()

    assert [one.history for one in opened] == [["open", "close"]] * 3
    assert caplog.text.count("its state was not put in order") == 3
    for task_id in places:
        other.lock(task_id)


def test_shadow_that_cannot_be_deleted_does_not_keep_its_task_open(
    start: Callable[..., StateUpdater], other: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def discard(self: StubShadow) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(StubShadow, "discard", discard)
    updater, opened = start(), task()
    followed(updater, opened)
    updater.close(opened)
    updater.stop()

    assert opened.history == ["open", "step", "close"]
    other.lock(TASK)


def test_task_waits_for_a_cluster_that_does_not_answer(
    start: Callable[..., StateUpdater], logs: FakeChangelogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_updater, "_CLUSTER_RETRY_S", 0.01)
    answers = [ClusterUnavailableError("no leader"), ClusterUnavailableError("no leader")]
    ask = logs.end_offsets

    def end_offsets(places: Collection[TopicPartition], timeout_s: float) -> Mapping[TopicPartition, int]:
        if answers:
            raise answers.pop()
        return ask(places)

    monkeypatch.setattr(logs, "end_offsets", end_offsets)
    updater = start()
    task = FakeTask(TASK, [], {LOG: FakeRestoredStore("counts")})
    updater.open(task, {})

    assert reports(updater) == [Restored(TASK, frozenset({LOG}))]
    assert task.history == ["open", "close", "open", "close", "open"]


def test_tasks_wait_together_for_a_cluster_that_does_not_answer(
    start: Callable[..., StateUpdater], logs: FakeChangelogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them asks at a time, so that as many tasks as there are do not take as many times as long."""
    asked: list[TopicPartition] = []
    goes_on = threading.Event()

    def end_offsets(places: Collection[TopicPartition], timeout_s: float) -> Mapping[TopicPartition, int]:
        asked.extend(places)
        assert goes_on.wait(PATIENCE_S)
        raise ClusterUnavailableError(f"no leader within {timeout_s:g} s")

    monkeypatch.setattr(logs, "end_offsets", end_offsets)
    updater = start()
    for number in range(5):
        place = TopicPartition(LOG.topic, number)
        updater.open(FakeTask(TaskId(0, number), [], {place: FakeRestoredStore()}), {})
    goes_on.set()
    last = FakeTask(TaskId(1, 0), [], {})
    updater.open(last, {})
    updater.close(last)
    updater.stop()

    assert len(asked) == 1


def test_stop_waits_for_no_more_than_the_request_that_is_under_way(
    start: Callable[..., StateUpdater], logs: FakeChangelogs, monkeypatch: pytest.MonkeyPatch, other: StateDirectory
) -> None:
    begun, answers = threading.Event(), threading.Event()

    def end_offsets(places: Collection[TopicPartition], timeout_s: float) -> Mapping[TopicPartition, int]:
        begun.set()
        assert answers.wait(PATIENCE_S)
        raise ClusterUnavailableError("no leader")

    monkeypatch.setattr(logs, "end_offsets", end_offsets)
    updater = start()
    tasks = [
        FakeTask(TaskId(0, number), [], {TopicPartition(LOG.topic, number): FakeRestoredStore()}) for number in (1, 2)
    ]
    for one in tasks:
        updater.open(one, {})
    assert begun.wait(PATIENCE_S)
    for one in tasks:
        updater.close(one)
    stopping = threading.Thread(target=updater.stop)
    stopping.start()
    while not updater._stopping.is_set():
        threading.Event().wait(0.001)
    answers.set()
    stopping.join(PATIENCE_S)

    assert not stopping.is_alive()
    assert [one.history for one in tasks] == [["open", "close"], []]  # the second one did not ask as well
    assert other.lock(TaskId(0, 1)) and other.lock(TaskId(0, 2))


def test_cluster_that_does_not_answer_for_the_task_timeout_ends_the_worker(
    start: Callable[..., StateUpdater], logs: FakeChangelogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_updater, "_CLUSTER_RETRY_S", 0.01)

    def end_offsets(places: Collection[TopicPartition], timeout_s: float) -> Mapping[TopicPartition, int]:
        raise ClusterUnavailableError("no leader")

    monkeypatch.setattr(logs, "end_offsets", end_offsets)
    updater = start(task_timeout_ms=50)
    updater.open(FakeTask(TASK, [], {LOG: FakeRestoredStore("counts")}), {})
    (report,) = reports(updater)

    assert isinstance(report, Failed)
    assert "requests of updater have failed for" in str(report.error)


def test_nothing_is_restored_during_a_pause_and_tasks_with_nothing_to_restore_are_handed_over(
    start: Callable[..., StateUpdater], logs: FakeChangelogs
) -> None:
    store, pause = FakeRestoredStore(), Pause()
    pause.is_set = True
    logs.ends[LOG] = 2
    logs.put(LOG, 0, 1)
    updater = start(pause=pause)
    updater.open(task(store), {})
    updater.open(FakeTask(TaskId(0, 2), [TopicPartition("orders", 2)], {}), {})
    assert reports(updater) == [Restored(TaskId(0, 2), frozenset())]
    assert store.rows == []
    pause.is_set = False

    assert reports(updater) == [Restored(TASK, frozenset({LOG}))]
    assert store.commits == [2]


def test_a_task_can_be_given_up_during_a_pause_with_what_was_restored_of_it(
    start: Callable[..., StateUpdater], logs: FakeChangelogs, other: StateDirectory
) -> None:
    store, pause = FakeRestoredStore(), Pause()
    pause.is_set = True
    logs.ends[LOG] = 2
    updater = start(pause=pause)
    given = task(store)
    updater.open(given, {})
    updater.close(given)
    updater.stop()

    assert given.history == ["open", "close"]
    assert store.commits == [0]
    other.lock(TASK)
