"""The bootstrap that an application is asked to go over to: checked, given to its workers, and to those that come."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ConfigError
from pykstreams.runtime.clients.positions import OffsetReader, Offsets
from pykstreams.runtime.swap.bootstrap import Bootstrap
from pykstreams.runtime.swap.generation import BootstrapLoad, Generation
from pykstreams.runtime.tasks.task import Task
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.state.bulk.folder import Folder
from pykstreams.topology.plan import TopologyPlan


class SwappingWorker(Protocol):
    """The methods of a worker whose tasks are swapped."""

    @property
    def name(self) -> str: ...

    def committed(self) -> Mapping[Task, Offsets]: ...

    def load(self, generation: Generation, /) -> None: ...


class BootstrapLoading:
    """The bootstraps that one application is given while it runs; the last one counts.

    :param workers: returns the workers that there are.
    """

    def __init__(
        self, plan: TopologyPlan, config: StreamsConfig, workers: Callable[[], Collection[SwappingWorker]]
    ) -> None:
        self._plan = plan
        self._config = config
        self._workers = workers
        self._remembered: Folder | None = None
        self._generation: Generation | None = None

    @property
    def progress(self) -> BootstrapLoad:
        """How far it is, now and later."""
        return BootstrapLoad(lambda: self._generation, lambda: [one.name for one in self._workers()])

    def remember(self, folder: Folder) -> None:
        """Keeps a bootstrap for ``load_remembered``."""
        self._remembered = folder

    def load_remembered(self, layout: TopicLayout, offsets: OffsetReader, *, embedded: bool) -> None:
        """Loads what was asked for before the start."""
        if self._remembered is not None:
            self.load(self._remembered, layout, offsets, embedded=embedded)

    def load(self, folder: Folder, layout: TopicLayout, offsets: OffsetReader, *, embedded: bool) -> None:
        """Checks a bootstrap as far as possible, and gives it to the workers."""
        if embedded:
            raise ConfigError(
                "a bootstrap is loaded into a running application in a transaction, and an embedded cluster has none; "
                "use a real cluster, or start with bootstrap=folder"
            )
        bootstrap = Bootstrap(folder, self._plan, self._config)
        bootstrap.check_tasks(layout)
        generation = Generation(bootstrap, self._plan, self._config, offsets)
        for worker in self._workers():
            for task, committed in worker.committed().items():
                generation.check(task.id, task.input_partitions, committed)
        self._generation = generation
        for worker in self._workers():
            worker.load(generation)

    def give(self, worker: SwappingWorker) -> None:
        """Loads the same into a worker that was made afterwards."""
        if self._generation is not None:
            worker.load(self._generation)
