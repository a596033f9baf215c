"""The application whose state is built, as every process of a job sees it: its plan, its stores, its tasks.

A job names the application as the command line does (``module:attribute``, ``path.py:attribute``), and each process
loads it anew: so serdes, aggregators and extractors are the application's own, and none of them has to be pickled.

Invariant: every process of a job plans the same topology; what a process needs of it is looked up by name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ConfigError, UnknownStateStoreError
from pykstreams.core.ids import TaskId
from pykstreams.dsl.script import load_script
from pykstreams.runtime.clients.admin import TopicSpec
from pykstreams.runtime.topics.topic_admin import TopicAdmin, TopicLayout
from pykstreams.state.interfaces.store import TaskStore
from pykstreams.state.spec import StoreBuilder
from pykstreams.topology.plan import SubtopologyPlan, TopologyPlan
from pykstreams.topology.topology import Topology


@dataclass(frozen=True)
class Application:
    """An application, by reference or as the topology itself.

    :param named: ``module:attribute`` or a script; a ``Topology`` serves where no other process has to load it.
    :param settings: settings of Kafka Streams; those of the script apply where they say nothing.
    """

    named: str | Topology
    settings: Mapping[str, object] = field(default_factory=dict)

    @cached_property
    def config(self) -> StreamsConfig:
        """The configuration."""
        own = {} if isinstance(self.named, Topology) else load_script(self.named).settings
        config = StreamsConfig({**own, **self.settings})
        if "application.id" not in config:
            raise ConfigError(
                f"the application {self.named!r} has no name; give application.id in the settings, or write "
                'application_id = "ID" into the script'
            )
        return config

    @cached_property
    def plan(self) -> TopologyPlan:
        """The plan of its topology."""
        built = self.named if isinstance(self.named, Topology) else load_script(self.named).build(self.config)
        return built.plan(self.config)

    def store(self, name: str) -> StorePlace:
        """Finds a store of a task by its name."""
        for part in self.plan.subtopologies:
            if name in part.stores:
                return StorePlace(self, part, part.stores[name])
        known = sorted(name for part in self.plan.subtopologies for name in part.stores)
        if any(one.store.name == name for one in self.plan.global_stores):
            raise UnknownStateStoreError(
                f"store {name!r} is a global one: every worker reads it from its topic, so there is nothing to build"
            )
        raise UnknownStateStoreError(
            f"no store of {self.config.application_id!r} is named {name!r}; there are {known}. A store without a name "
            "of its own gets one by Materialized.as_(name)"
        )

    def layout(self, partitions: int | Mapping[str, int]) -> TopicLayout:
        """Works out the tasks and topics that the plan has with so many partitions.

        :param partitions: the partition counts of its source topics, or one number for all of them.
        """
        return TopicAdmin(_GivenTopics(self.plan, partitions), self.plan, replication=1, embedded=False).prepare()

    def __getstate__(self) -> dict[str, object]:
        return {"named": self.named, "settings": dict(self.settings)}


@dataclass(frozen=True)
class StorePlace:
    """Where in an application a store is."""

    application: Application
    part: SubtopologyPlan
    builder: StoreBuilder[TaskStore]

    @property
    def name(self) -> str:
        """The name of the store."""
        return self.builder.name

    @property
    def changelog(self) -> str | None:
        """The topic that it is restored from."""
        return self.part.changelogs.get(self.name)

    @property
    def own_changelog(self) -> bool:
        """Whether that topic is the application's own, and no source topic."""
        return self.changelog in self.part.changelog_topics

    @property
    def serde_topic(self) -> str:
        """The topic that is passed to its serdes."""
        return self.application.plan.serde_topic(self.name)

    def task(self, partition: int) -> TaskId:
        """The task that has the store of a partition."""
        return TaskId(self.part.id, partition)


def tasks_of(layout: TopicLayout, part: SubtopologyPlan) -> int:
    """How many tasks a sub-topology has."""
    return sum(task.subtopology == part.id for task in layout.inputs)


class _GivenTopics:
    """A cluster of which only the partition counts are known."""

    bootstrap = "the partition counts given"

    def __init__(self, plan: TopologyPlan, partitions: int | Mapping[str, int]) -> None:
        if isinstance(partitions, int):
            internal = {topic for part in plan.subtopologies for topic in part.repartition_topics}
            sources = {topic for part in plan.subtopologies for topic in part.source_topics} - internal
            sources.update(store.topic for store in plan.global_stores)
            self._counts = dict.fromkeys(sources, partitions)
        else:
            self._counts = dict(partitions)

    def partition_counts(self, expected: Collection[str] = ()) -> dict[str, int]:
        return dict(self._counts)

    def touch(self, topics: Iterable[str]) -> None:
        """Nothing has to appear."""

    def create_topics(self, topics: Iterable[TopicSpec]) -> None:
        """Nothing is made."""

    def topic_settings(self, topics: Iterable[str]) -> dict[str, dict[str, str]]:
        return {}
