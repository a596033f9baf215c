"""The state of real stores as members report it: while tasks are restored, work and end, and after a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from pykstreams import Consumed, Grouped, Materialized, Serdes, Stores, StreamsBuilder, StreamsConfig
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.runtime.membership.offset_sums import OffsetSums
from pykstreams.runtime.membership.protocol.subscription_info import RUNNING
from pykstreams.runtime.restore.open_tasks import CHECKPOINT_S
from pykstreams.runtime.restore.restore import Restorer, StateRestoreListener
from pykstreams.runtime.swap.only_stores import Nowhere
from pykstreams.runtime.tasks.collector import RecordCollector
from pykstreams.runtime.tasks.stores.initial_state import InitialState
from pykstreams.runtime.tasks.task import Task, TaskParts
from pykstreams.runtime.worker.state_updater import StateUpdater
from pykstreams.state.directory.state_directory import StateDirectory
from pykstreams.state.engines.rocksdb import RocksDbEngine
from pykstreams.state.interfaces.record_cache import RecordCache
from tests.unit.runtime.cluster_fakes import FakeChangelogs, FakeClock
from tests.unit.state.support import Context

TASK = TaskId(0, 0)
ORDERS = TopicPartition("orders", 0)
ON_DISK, IN_MEMORY = TopicPartition("shop-disk-changelog", 0), TopicPartition("shop-memory-changelog", 0)
TEXT = Serdes.string()


class OneWorker:
    """A worker of one task with a store on disk and one in memory; tests take the turns of its state updater."""

    def __init__(self, folder: Path) -> None:
        builder = StreamsBuilder()
        grouped = builder.stream("orders", Consumed(key_serde=TEXT, value_serde=TEXT)).group_by_key(
            Grouped(key_serde=TEXT, value_serde=TEXT)
        )
        grouped.count(materialized=Materialized("disk"))
        grouped.count(materialized=Materialized(Stores.in_memory_key_value_store("memory")))
        self.config = StreamsConfig({"application.id": "shop", "bootstrap.servers": "nowhere"})
        self.plan = builder.build().plan(self.config).subtopologies[0]
        self.clock, self.logs = FakeClock(), FakeChangelogs()
        self.directory = StateDirectory(folder, "shop", clock=self.clock)
        self.restorer = Restorer(self.logs, self.logs, StateRestoreListener())
        self.updater = StateUpdater(
            "updater",
            restorer=lambda: (self.restorer, lambda: None),
            directory=self.directory,
            clock=self.clock,
            task_timeout_ms=0,
            cleanup_delay_ms=600_000,
        )
        self.updater._restorer = self.restorer
        self.sums = OffsetSums({0: self.plan.changelogs}, StateDirectory(folder, "shop", clock=self.clock), None)
        self.sums.add("member")

    def open(self) -> Task:
        task = Task(
            TASK,
            self.plan,
            [ORDERS],
            TaskParts(
                config=self.config,
                clock=self.clock,
                collector=RecordCollector(Nowhere(), config=self.config, partition_count=lambda topic: 1),
                cache=RecordCache(0),
                metrics=StreamsMetrics(),
            ),
            InitialState(self.directory.task_dir(TASK)),
        )
        self.updater.open(task, {})
        self.turn()
        return task

    def turn(self) -> None:
        self.updater.turn(self.restorer, 0)

    def reported(self, *running: TaskId) -> dict[TaskId, int]:
        return self.sums.of("member", running=running, opened=self.updater.offset_sums())


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[OneWorker]:
    found = OneWorker(tmp_path)
    yield found
    found.directory.close()


def test_the_state_of_a_task_grows_while_it_is_restored(worker: OneWorker) -> None:
    before = worker.reported()
    worker.logs.ends = {ON_DISK: 9, IN_MEMORY: 4}
    worker.logs.put(ON_DISK, 0, 1, 2)
    task = worker.open()
    first = worker.reported()
    worker.logs.put(IN_MEMORY, 0, 1)
    worker.turn()
    second = worker.reported()
    worker.updater.close(task)
    worker.turn()

    assert (before, first, second) == ({}, {TASK: 3}, {TASK: 5})


def test_a_task_that_works_is_reported_as_such_and_when_it_was_revoked_by_its_last_commit(worker: OneWorker) -> None:
    task = worker.open()
    task.post_commit({ON_DISK: 7, IN_MEMORY: 5})
    works, revoked = worker.reported(TASK), worker.reported()
    worker.updater.close(task)
    waits = worker.reported()
    worker.turn()

    assert (works, revoked, waits) == ({TASK: RUNNING}, {TASK: 12}, {TASK: 12})


def test_what_a_closed_task_has_left_on_disk_is_reported_also_after_a_restart(
    worker: OneWorker, tmp_path: Path
) -> None:
    task = worker.open()
    task.post_commit({ON_DISK: 7, IN_MEMORY: 5})
    worker.updater.close(task)
    worker.turn()
    closed = worker.reported()

    assert closed == OneWorker(tmp_path).reported() == {TASK: 7}


def test_state_that_another_process_has_open_is_not_reported(worker: OneWorker, tmp_path: Path) -> None:
    task = worker.open()
    task.post_commit({ON_DISK: 7})
    worker.updater.close(task)
    worker.turn()
    other = OneWorker(tmp_path)
    other.logs.ends[ON_DISK] = 7
    opened = other.open()
    elsewhere = worker.reported()
    other.updater.close(opened)
    other.turn()

    assert elsewhere == {}
    assert worker.reported() == {TASK: 7}


def test_state_that_its_changelog_no_longer_covers_is_deleted_and_not_reported(worker: OneWorker) -> None:
    task = worker.open()
    task.post_commit({ON_DISK: 7})
    worker.updater.close(task)
    worker.turn()
    worker.logs.begins, worker.logs.ends = {ON_DISK: 8}, {ON_DISK: 9}
    worker.open()

    assert worker.reported() == {}


def work_until_killed(folder: str) -> None:
    """Commits a row with each offset, and prints offsets whose checkpoint was written."""
    worker = OneWorker(Path(folder))
    task = worker.open()
    store = task.stores["disk"]
    for offset in range(1, 1 << 40):
        store.restore([(b"key-%d" % (offset % 50), b"%08d" % offset, offset, ())])
        task.post_commit({ON_DISK: offset})
        if offset % 100 == 0:
            worker.clock.advance(CHECKPOINT_S)
            worker.turn()
            print(offset, flush=True)


@pytest.mark.slow
def test_after_a_kill_no_more_is_reported_than_the_stores_have(tmp_path: Path) -> None:
    """The write buffers are so small that RocksDB flushes all the time."""
    child = dedent(
        f"""
        from pykstreams.state.engines import rocksdb, rocksdb_memory
        from tests.unit.runtime.worker.test_state_left_behind import work_until_killed
        rocksdb_memory.WRITE_BUFFER_BYTES = rocksdb._OFFSET_BUFFER_BYTES = 64 << 10
        work_until_killed({str(tmp_path)!r})
        """
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])}
    with subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        while int(process.stdout.readline()) < 10_000:
            assert process.poll() is None
        process.send_signal(signal.SIGKILL)
    reported = OneWorker(tmp_path).reported()
    engine = RocksDbEngine("disk")
    engine.open(Context(tmp_path / "shop" / str(TASK)))
    left = engine.committed_offset()
    engine.close()

    assert left is not None
    assert 0 < reported[TASK] <= left
