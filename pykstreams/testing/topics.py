"""The topics of a test driver: which task reads which partition, and where a record belongs."""

from __future__ import annotations

from dataclasses import dataclass, field

from pykstreams.core.hashing import partition_for_key
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.topics.copartitioning import check_copartitioning, enforce_copartitioning
from pykstreams.topology.java.hash_order import hash_set_order
from pykstreams.topology.placement.key_placement import KeyPlacement
from pykstreams.topology.plan import SubtopologyPlan, TopologyPlan


@dataclass(slots=True)
class DriverTopics:
    """The topics that the tasks of a driver read.

    A pattern stands for one topic whose name is the text of the pattern: all topics that match share its
    partitions and its offsets, as in Kafka's driver.
    """

    partitions: int
    repartitioned: dict[str, int]
    """Repartition topics with partition counts of their own."""
    names: tuple[str, ...]
    patterns: tuple[str, ...]
    feeding_global_stores: tuple[str, ...]
    written: frozenset[str]
    """Changelogs, and the topics of sinks, but those that are chosen per record."""
    _plan: TopologyPlan
    _placements: dict[str, KeyPlacement]
    """Where keys lie by topics and patterns, where not where murmur2 puts them."""
    _next_offsets: dict[TopicPartition, int] = field(default_factory=dict)
    _keyless: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: TopologyPlan, partitions: int) -> DriverTopics:
        """Reads them from a plan; ``partitions`` is that of every topic without a count of its own."""
        wanted: dict[str, int] = {}
        if partitions > 1:
            for part in plan.subtopologies:
                for topic in part.repartition_topics.values():
                    wanted[topic.name] = topic.partitions or partitions
            for part in plan.subtopologies:
                counts = {name: wanted.get(name, partitions) for group in part.copartition_groups for name in group}
                enforce_copartitioning(part, counts)
                check_copartitioning(part, counts)
                wanted.update((name, counts[name]) for name in part.repartition_topics if name in counts)
        return cls(
            partitions,
            wanted,
            plan.whole.source_topics,
            tuple(pattern.pattern for pattern in plan.whole.source_patterns),
            tuple(store.topic for store in plan.global_stores),
            frozenset((*plan.whole.sink_topics, *(topic.name for topic in plan.whole.changelog_topics.values()))),
            plan,
            {
                topic: source.placement
                for source in plan.whole.sources
                if source.placement is not None
                for topic in (*source.topics, *([] if source.pattern is None else [source.pattern.pattern]))
            },
        )

    def partition_count(self, topic: str) -> int:
        """The number of partitions of a topic, whether a task reads it or not."""
        return self.repartitioned.get(topic, self.partitions)

    def read_by(self, part: SubtopologyPlan) -> tuple[str, ...]:
        """The topics that a sub-topology reads, patterns included, in the order of Kafka's driver.

        With ``max.task.idle.ms`` the order shows: it decides which empty topic is waited for first.
        """
        return hash_set_order((*part.source_topics, *(pattern.pattern for pattern in part.source_patterns)))

    def source(self, topic: str) -> str | None:
        """The topic or pattern under which records of a topic are queued; ``None`` if no task reads it."""
        if topic in self.names:
            return topic
        for found in self._plan.whole.source_patterns:
            if found.fullmatch(topic):
                return found.pattern
        return None

    def partition_of(self, topic: str, source: str, key: bytes | None, chosen: int | None) -> int:
        """Where a record goes: where its sender wants it, or by its key, as the source says; without one in turn."""
        count = self.partition_count(source)
        if count == 1:
            return 0
        if chosen is not None:
            if chosen >= count:
                raise ValueError(f"a record was sent to partition {chosen} of {topic!r}, which has {count}")
            return chosen
        if key is not None:
            return self._placements.get(source, partition_for_key)(key, count)
        turn = self._keyless.get(source, 0)
        self._keyless[source] = turn + 1
        return turn % count

    def next_offset(self, partition: TopicPartition) -> int:
        """Appends a record, and sets its offset."""
        offset = self._next_offsets.get(partition, 0)
        self._next_offsets[partition] = offset + 1
        return offset
