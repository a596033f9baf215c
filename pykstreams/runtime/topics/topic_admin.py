"""Topics of an application on the cluster: checked, counted and created before the first task starts.

Partition counts follow Kafka Streams (``RepartitionTopics``, ``CopartitionedTopicsEnforcer``, 4.3.1): a
repartition topic has the partitions the user gave it, else the most of any topic its writers read; topics
that are joined by key need equal counts; a changelog has one partition per task.

Invariant: what ``prepare`` returns exists on the cluster.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from pykstreams.core.errors import (
    ClusterError,
    MisconfiguredInternalTopicError,
    MissingInternalTopicsError,
    StreamsError,
    TaskAssignmentError,
    TopologyError,
)
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.shown_values import with_noun
from pykstreams.runtime.clients.admin import TopicSpec
from pykstreams.runtime.clients.mock_cluster import PARTITIONS as EMBEDDED_PARTITIONS
from pykstreams.runtime.topics.copartitioning import copartitioning_faults, enforce_copartitioning
from pykstreams.runtime.topics.user_topics import BROKER_TOPICS, UserTopics
from pykstreams.topology.plan import InternalTopic, SubtopologyPlan, TopologyPlan

log = logging.getLogger(__name__)


class TopicClient(Protocol):
    """The methods of an administrative client that this module calls."""

    @property
    def bootstrap(self) -> str: ...

    def partition_counts(self, expected: Collection[str] = ()) -> dict[str, int]: ...

    def touch(self, topics: Iterable[str]) -> None: ...

    def create_topics(self, topics: Collection[TopicSpec]) -> None: ...

    def topic_settings(self, topics: Collection[str]) -> dict[str, dict[str, str]]: ...


@dataclass(frozen=True, slots=True)
class TopicLayout:
    """The result of checking a plan against the cluster."""

    partitions: Mapping[str, int]
    """Partition counts of all topics that the topology reads or owns."""
    inputs: Mapping[TaskId, frozenset[TopicPartition]]
    """Every task there is, with the partitions that it reads."""


class TopicAdmin:
    """Prepares the topics of one plan."""

    def __init__(
        self,
        client: TopicClient,
        plan: TopologyPlan,
        *,
        replication: int,
        embedded: bool,
    ) -> None:
        self._client = client
        self._plan = plan
        self._replication = replication
        self._embedded = embedded
        self._user_topics = UserTopics(client, plan)
        self._reused = {topic.name: topic for part in plan.subtopologies for topic in part.reused_changelogs.values()}
        """Source topics from which stores are restored; they are the user's, and must be there."""
        self._internal = [topic for topic in plan.internal_topics if topic.name not in self._reused]
        self._own = {topic.name for topic in self._internal}
        self._prepared: frozenset[str] = frozenset()
        """The internal topics that were there, or were made, when topics were prepared the last time."""
        self._known: frozenset[str] = frozenset()
        """The same, with the topics of others that the application reads."""

    def check(self) -> None:
        """Asks whether what was prepared is still there.

        ``MissingSourceTopicError`` or ``MissingInternalTopicsError`` where it is not.
        """
        self._check_presence(self._client.partition_counts())

    def prepare(self) -> TopicLayout:
        """Checks what must be there, creates what may be missing; may be called again."""
        if self._embedded:
            self._appear()
        existing = self._client.partition_counts(self._known)
        self._check_presence(existing)
        sources, counts, uncounted = self._counted(existing)
        if uncounted:
            raise TaskAssignmentError(
                f"the partitions of repartition topics {uncounted} cannot be worked out, because "
                "nothing that is read upstream exists; create at least one topic that matches the "
                "pattern of the source, or give the number with Repartitioned(num_partitions=...)"
            )
        for fault in self._faults(existing, counts):
            raise fault
        tasks = _task_counts(sources, counts)
        inputs = _inputs(sources, counts, tasks)
        self._create(counts, existing)
        self._prepared = frozenset(topic.name for topic in self._internal if counts[topic.name])
        read = {store.topic for store in self._plan.global_stores}.union(*sources.values())
        self._known = self._prepared.union(read.intersection(existing))
        counts.update({store.topic: existing[store.topic] for store in self._plan.global_stores})
        return TopicLayout(counts, inputs)

    def look(self) -> TopicLayout:
        """The tasks that there are, or would be once internal topics are made; creates nothing.

        ``MissingSourceTopicError`` where a topic is missing that the user makes.
        """
        existing = self._client.partition_counts()
        self._user_topics.check_sources(existing)
        sources, counts, _ = self._counted(existing)
        return TopicLayout(counts, _inputs(sources, counts, _task_counts(sources, counts)))

    def faults(self) -> list[StreamsError]:
        """Everything that ``prepare`` would refuse of the topics that exist; creates and changes nothing."""
        existing = self._client.partition_counts()
        _, counts, _ = self._counted(existing)
        return list(self._faults(existing, counts))

    def missing(self) -> list[TopicSpec]:
        """The internal topics that ``prepare`` would create, as far as their partitions are known."""
        existing = self._client.partition_counts()
        return self._wanted(self._counted(existing)[1], existing)

    def create_missing(self) -> list[TopicSpec]:
        """Creates the internal topics that do not exist, and returns them; refuses what ``prepare`` refuses."""
        wanted = self.missing()
        self.prepare()
        return wanted

    def _counted(self, existing: Mapping[str, int]) -> tuple[dict[int, tuple[str, ...]], dict[str, int], list[str]]:
        """The sources of each sub-topology, the partitions of all topics, and the repartition topics without a count.

        Topics that do not exist and are not the application's are left out.
        """
        sources = {part.id: self._sources(part, existing) for part in self._plan.subtopologies}
        counts, uncounted = self._partition_counts(existing, sources)
        tasks = _task_counts(sources, counts)
        for part in self._plan.subtopologies:
            counts.update(dict.fromkeys(part.changelog_topics, tasks[part.id]))
        return sources, counts, uncounted

    def _faults(self, existing: Mapping[str, int], counts: Mapping[str, int]) -> Iterator[StreamsError]:
        yield from self._pattern_faults(existing)
        unequal = [fault for part in self._plan.subtopologies for fault in copartitioning_faults(part, counts)]
        yield from unequal
        if not unequal:  # the counts of internal topics follow from these
            yield from self._count_faults(counts, existing)
        yield from self._setting_faults(existing)

    def _appear(self) -> None:
        wanted = {topic.name for topic in self._internal}
        for topic in self._internal:
            if topic.partitions not in (None, EMBEDDED_PARTITIONS):
                raise TopologyError(
                    f"repartition topic {topic.name!r} asks for {with_noun(topic.partitions, 'partition')}, and an "
                    f"embedded cluster has {EMBEDDED_PARTITIONS} in every topic; leave the number out, or "
                    "use a real cluster"
                )
        wanted.update(store.topic for store in self._plan.global_stores)
        for part in self._plan.subtopologies:
            wanted.update(part.source_topics)
            wanted.update(part.sink_topics)
        self._client.touch(sorted(wanted))

    def _sources(self, part: SubtopologyPlan, existing: Mapping[str, int]) -> tuple[str, ...]:
        """The topics a sub-topology reads, with those that match its patterns now."""
        matching = sorted(
            name for name in self._foreign(existing) if any(p.fullmatch(name) for p in part.source_patterns)
        )
        return tuple(dict.fromkeys((*part.source_topics, *matching)))

    def _foreign(self, existing: Mapping[str, int]) -> set[str]:
        """The topics that a pattern may match."""
        return existing.keys() - self._own - BROKER_TOPICS

    def _check_presence(self, existing: Mapping[str, int]) -> None:
        self._user_topics.check_sources(existing)
        if gone := sorted(self._prepared.difference(existing)):
            raise MissingInternalTopicsError(
                f"internal topics {gone} were deleted on {self._client.bootstrap} while the application ran; they are "
                "not made anew under it, for stores would go on without the past of their changelogs. Bring them back "
                "(from a backup or a mirror), or stop all workers and start again: what was in repartition topics is "
                "lost then, and workers tell what to do about state whose changelog is gone",
                gone,
            )

    def _pattern_faults(self, existing: Mapping[str, int]) -> Iterator[TopologyError]:
        """Finds a topic that two patterns match (``SourceNodeFactory.getTopics``, 4.3.1)."""
        patterns = [
            (source.pattern, source.name)
            for part in self._plan.subtopologies
            for source in part.sources
            if source.pattern is not None
        ]
        for topic in sorted(self._foreign(existing)) if len(patterns) > 1 else ():
            matched = [
                f"{pattern.pattern!r} of source {name}" for pattern, name in patterns if pattern.fullmatch(topic)
            ]
            if len(matched) > 1:
                yield TopologyError(
                    f"topic {topic!r} matches the patterns {matched[0]} and {matched[1]}; a topic is read by one "
                    "source, so narrow one of the two"
                )

    def _partition_counts(
        self, existing: Mapping[str, int], sources: Mapping[int, tuple[str, ...]]
    ) -> tuple[dict[str, int], list[str]]:
        """Counts of all topics that are read, those of repartition topics worked out; and those where that failed."""
        repartition: dict[str, InternalTopic] = {}
        for part in self._plan.subtopologies:
            repartition.update(part.repartition_topics)
        external = {name for names in sources.values() for name in names if name not in repartition}
        counts = {name: existing[name] for name in external if name in existing}
        counts.update({name: topic.partitions for name, topic in repartition.items() if topic.partitions is not None})
        missing = [name for name in repartition if name not in counts]
        while missing:
            for name in missing:
                upstream = [
                    counts[source]
                    for part in self._plan.subtopologies
                    if name in part.sink_topics
                    for source in sources[part.id]
                    if source in counts
                ]
                if upstream:
                    counts[name] = max(upstream)
            left = [name for name in missing if name not in counts]
            if len(left) == len(missing):
                break
            missing = left
        for part in self._plan.subtopologies:
            enforce_copartitioning(part, counts)
        return counts, sorted(name for name in missing if name not in counts)

    def _count_faults(
        self, counts: Mapping[str, int], existing: Mapping[str, int]
    ) -> Iterator[MisconfiguredInternalTopicError]:
        for topic in self._internal:
            needed = counts.get(topic.name)
            if needed is not None and existing.get(topic.name, needed) != needed:
                yield MisconfiguredInternalTopicError(
                    f"{topic.kind} topic {topic.name!r} has {with_noun(existing[topic.name], 'partition')} and needs "
                    f"{needed}: the partitions of a source topic were changed, or somebody else created it. Kafka "
                    "takes no partitions away; stop all workers and reset the application (pykstreams reset), so that "
                    "the topic is made anew, or start with another application.id; or copy the source into a new topic "
                    "with the number of partitions that it had, and read that one"
                )

    def _setting_faults(self, existing: Mapping[str, int]) -> Iterator[MisconfiguredInternalTopicError]:
        """Finds internal topics that lose records; warns of source topics that do and that stores are restored from,
        as Kafka Streams lets them (``ChangelogTopics.setup``, 4.3.1), and of changelogs that were made for a shorter
        retention of their store.
        """
        there = [topic for topic in self._internal if topic.name in existing]
        if self._embedded or not (there or self._reused):
            return
        try:
            settings = self._client.topic_settings([*(topic.name for topic in there), *self._reused])
        except ClusterError as error:
            log.warning("the settings of internal topics were not checked: %s", error)
            return
        for topic in there:
            if fault := _fault(topic, settings.get(topic.name, {})):
                yield MisconfiguredInternalTopicError(
                    f"{topic.kind} topic {topic.name!r} {fault.what}; {self._change(topic.name, fault.cure)} changes it"
                )
            elif (kept := _short_retention(topic, settings.get(topic.name, {}))) is not None:
                self._warn_of_short_retention(topic, kept)
        for topic in self._reused.values():
            if fault := _fault(topic, settings.get(topic.name, {})):
                log.warning(
                    "topic %r, from which a store is restored, %s: use %s, or give the store a changelog of its own by "
                    "leaving reuse.ktable.source.topics out of topology.optimization",
                    topic.name,
                    fault.what,
                    self._change(topic.name, fault.cure),
                )

    def _change(self, topic: str, setting: str) -> str:
        """The command that changes a setting of a topic."""
        return (
            f"kafka-configs.sh --bootstrap-server {self._client.bootstrap} --alter --entity-type topics "
            f"--entity-name {topic} --add-config {setting}"
        )

    def _warn_of_short_retention(self, topic: InternalTopic, kept_ms: int) -> None:
        wanted = topic.config["retention.ms"]
        log.warning(
            "changelog topic %r keeps records for %s ms (retention.ms), and one that is made now for %s ms: its store "
            "is restored as a whole while stream time is less than %s ms behind the clock; for more: %s",
            topic.name,
            kept_ms,
            wanted,
            kept_ms - (topic.least_retention_ms or 0),
            self._change(topic.name, f"retention.ms={wanted}"),
        )

    def _create(self, counts: Mapping[str, int], existing: Mapping[str, int]) -> None:
        if self._embedded:
            return
        wanted = self._wanted(counts, existing)
        for topic in wanted:
            log.info("creating topic %s with %s partitions", topic.name, topic.partitions)
        self._client.create_topics(wanted)

    def _wanted(self, counts: Mapping[str, int], existing: Mapping[str, int]) -> list[TopicSpec]:
        return [
            TopicSpec(topic.name, counts[topic.name], self._replication, topic.config)
            for topic in self._internal
            if topic.name not in existing and counts.get(topic.name)
        ]


def _task_counts(sources: Mapping[int, tuple[str, ...]], counts: Mapping[str, int]) -> dict[int, int]:
    return {
        number: max((counts[name] for name in names if name in counts), default=0) for number, names in sources.items()
    }


def _inputs(
    sources: Mapping[int, tuple[str, ...]], counts: Mapping[str, int], tasks: Mapping[int, int]
) -> dict[TaskId, frozenset[TopicPartition]]:
    return {
        TaskId(subtopology, number): frozenset(
            TopicPartition(topic, number) for topic in sources[subtopology] if number < counts.get(topic, 0)
        )
        for subtopology, size in tasks.items()
        for number in range(size)
    }


def _short_retention(topic: InternalTopic, found: Mapping[str, str]) -> int | None:
    """Returns how long an existing topic keeps records, in ms, if that is shorter than it would be made."""
    if "delete" not in found.get("cleanup.policy", "") or "retention.ms" not in topic.config.keys() & found.keys():
        return None
    kept, wanted = int(found["retention.ms"]), int(topic.config["retention.ms"])
    return kept if kept != -1 and (wanted == -1 or kept < wanted) else None


@dataclass(frozen=True, slots=True)
class _Fault:
    """A fault in the settings of a topic, and the setting that mends it."""

    what: str
    cure: str


def _fault(topic: InternalTopic, found: Mapping[str, str]) -> _Fault | None:
    """The fault in the settings of an existing topic (``InternalTopicManager``, 4.3.1), if there is one."""
    wanted, policy = topic.config, found.get("cleanup.policy", "")
    if topic.kind == "repartition" and "compact" in policy:
        what = f"is compacted (cleanup.policy={policy!r}), so records would vanish before they are processed"
        return _Fault(what, "cleanup.policy=delete")
    if topic.kind == "changelog" and "delete" in policy and "delete" not in wanted["cleanup.policy"]:
        what = f"deletes old records (cleanup.policy={policy!r}), so state would get lost"
        return _Fault(what, "cleanup.policy=compact")
    if (retention := _short_retention(topic, found)) is not None:
        least, needed = topic.least_retention_ms, wanted["retention.ms"]
        if least is None or retention < least:
            what = f"keeps records for {retention} ms (retention.ms) and must keep them for {needed} ms"
            return _Fault(what, f"retention.ms={needed}")
    if "min.compaction.lag.ms" in wanted and "min.compaction.lag.ms" in found:
        lag, longer = int(found["min.compaction.lag.ms"]), int(wanted["min.compaction.lag.ms"])
        if lag < longer:
            what = f"compacts after {lag} ms (min.compaction.lag.ms) and must wait for {longer} ms"
            return _Fault(what, f"min.compaction.lag.ms={longer}")
    return None
