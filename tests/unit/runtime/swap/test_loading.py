"""A bootstrap for tasks that run: when it is checked, and which workers get it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from pykstreams.core.errors import BootstrapError, ConfigError
from pykstreams.runtime.clients.positions import Offsets
from pykstreams.runtime.swap.generation import Generation
from pykstreams.runtime.swap.loading import BootstrapLoading
from pykstreams.runtime.tasks.task import Task
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.state.bulk.folder import Folder, folder_at
from tests.unit.runtime.cluster_fakes import FakeTask
from tests.unit.runtime.swap.fake_offsets import FakeOffsets
from tests.unit.runtime.swap.test_generation import CONFIG, MADE_MS, ORDERS, TASK, at, counts, of

LAYOUT = TopicLayout({"orders": 1}, {TASK: frozenset({ORDERS})})


class Worker:
    def __init__(self, offset: int) -> None:
        self.name = "worker"
        self.offset = offset
        self.loaded: list[Generation] = []

    def committed(self) -> Mapping[Task, Offsets]:
        task = FakeTask(TASK, [ORDERS], {})
        task.input_partitions = (ORDERS,)
        return {task: at(self.offset)}

    def load(self, generation: Generation) -> None:
        self.loaded.append(generation)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    (tmp_path / str(MADE_MS)).mkdir()
    of(counts(), tmp_path)
    return folder_at(str(tmp_path / str(MADE_MS)))


def load(loading: BootstrapLoading, folder: Folder, *, embedded: bool = False) -> None:
    loading.load(folder, LAYOUT, FakeOffsets(), embedded=embedded)


def test_all_workers_get_what_is_loaded_also_those_that_come_later(folder: Folder) -> None:
    first, second, later = Worker(50), Worker(60), Worker(0)
    loading = BootstrapLoading(counts(), CONFIG, lambda: [first, second])
    loading.give(later)
    before = later.loaded[:]
    load(loading, folder)
    loading.give(later)

    assert before == []
    assert first.loaded == second.loaded == later.loaded
    assert len(later.loaded) == 1


def test_no_worker_gets_what_a_task_of_one_of_them_cannot_be_swapped_to(folder: Folder) -> None:
    first, behind = Worker(50), Worker(39)
    loading = BootstrapLoading(counts(), CONFIG, lambda: [first, behind])
    with pytest.raises(BootstrapError, match="task 0_0 has come to 39 only"):
        load(loading, folder)

    assert (first.loaded, loading.progress.waiting) == ([], None)


def test_what_was_asked_for_before_the_start_is_loaded_with_it(folder: Folder) -> None:
    worker = Worker(50)
    loading = BootstrapLoading(counts(), CONFIG, lambda: [worker])
    progress = loading.progress
    loading.load_remembered(LAYOUT, FakeOffsets(), embedded=False)
    loading.remember(folder)
    before = worker.loaded[:]
    loading.load_remembered(LAYOUT, FakeOffsets(), embedded=False)

    assert (before, len(worker.loaded), progress.error) == ([], 1, None)


def test_an_embedded_cluster_has_no_transactions_to_load_in(folder: Folder) -> None:
    worker = Worker(50)
    with pytest.raises(ConfigError, match="an embedded cluster has none"):
        load(BootstrapLoading(counts(), CONFIG, lambda: [worker]), folder, embedded=True)

    assert worker.loaded == []
