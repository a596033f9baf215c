"""A cluster and a group for tests of this room, and the application that they belong to."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from pykstreams.core.config import StreamsConfig
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.clients.admin import TopicSpec
from pykstreams.runtime.clients.inspection.group_tools import GroupView
from pykstreams.runtime.clients.positions import Offsets
from pykstreams.runtime.groups.inspection import GroupInspection
from pykstreams.topology.plan import InternalTopic, TopologyPlan
from tests.unit.runtime.cluster_fakes import FakeClock
from tests.unit.runtime.plans import part, plan, sink, source

EMPTY = GroupView("classic", (), "Empty")
X = "shop-x-repartition"
COUNTS = InternalTopic("shop-counts-changelog", "changelog", None, {})


@dataclass
class FakeCluster:
    """Topics with two partitions; each holds the offsets 10 to 100, of which 90 and up are in an open transaction."""

    topics: dict[str, int] = field(default_factory=lambda: dict.fromkeys(["orders", X, COUNTS.name], 2))
    bootstrap: str = "broker:9092"
    young: int = 95
    """The first offset after any time."""

    def partition_counts(self, expected: Collection[str] = ()) -> dict[str, int]:
        return dict(self.topics)

    def beginning_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(self._there(partitions), 10)

    def end_offsets(
        self, partitions: Collection[TopicPartition], *, read_committed: bool = False
    ) -> dict[TopicPartition, int]:
        return dict.fromkeys(self._there(partitions), 90 if read_committed else 100)

    def offsets_at(self, partitions: Collection[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        return dict.fromkeys(self._there(partitions), self.young)

    def _there(self, partitions: Collection[TopicPartition]) -> Collection[TopicPartition]:
        assert all(place.partition < self.topics.get(place.topic, 0) for place in partitions)
        return partitions

    def touch(self, topics: object) -> None:
        raise AssertionError("a tool that looks makes no topics")

    def create_topics(self, topics: Collection[TopicSpec]) -> None:
        raise AssertionError("a tool that looks makes no topics")

    def topic_settings(self, topics: Collection[str]) -> dict[str, dict[str, str]]:
        return {}


@dataclass
class FakeGroup:
    """A group with offsets."""

    offsets: dict[TopicPartition, int] = field(default_factory=dict)
    seen: GroupView = EMPTY

    def view(self) -> GroupView:
        return self.seen

    def committed(self, partitions: Collection[TopicPartition], *, stable: bool = True) -> Offsets:
        assert not stable
        return {place: (self.offsets[place], "") for place in partitions if place in self.offsets}


def shop() -> TopologyPlan:
    """Orders are repartitioned by a first sub-topology, and counted by a second one."""
    return plan(
        part(0, source("A", "orders"), sink("B", X)),
        part(1, source("D", X), repartition=[(X, None)], changelogs={"counts": COUNTS}),
    )


def inspection(
    cluster: FakeCluster, group: FakeGroup, topology: TopologyPlan | None = None, **settings: str
) -> GroupInspection:
    """The room over the fakes; settings have underscores for dots."""
    named = {name.replace("_", "."): value for name, value in settings.items()}
    config = StreamsConfig({"application.id": "shop", "bootstrap.servers": "broker:9092", **named})
    return GroupInspection(topology or shop(), config, cluster, group, FakeClock())
