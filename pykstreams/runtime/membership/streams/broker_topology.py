"""The topology as a member tells it to the brokers, field by field as Kafka Streams does.

Sources: ``StreamThread.initBrokerTopology``, ``StreamsGroupHeartbeatRequestManager``, 4.3.1. A member whose topology
differs from that of the group is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pykstreams.core.errors import ConfigError
from pykstreams.runtime.clients.coordinators.streams_heartbeat import CopartitionGroup, SubtopologyOfGroup, TopicOfGroup
from pykstreams.topology.plan import InternalTopic, SubtopologyPlan, TopologyPlan

_AS_MANY_AS_SOURCES: Final = 0


def broker_topology(plan: TopologyPlan, replication: int) -> tuple[SubtopologyOfGroup, ...]:
    """Returns the sub-topologies that have tasks.

    :param replication: ``replication.factor``.
    """
    repartitioned = {name for part in plan.subtopologies for name in part.repartition_topics}
    parts = [part for part in plan.subtopologies if part.source_topics or part.source_patterns]
    for part in parts:
        if part.source_patterns:
            raise ConfigError(
                f"source {part.source_patterns[0].pattern!r} reads all topics that match a pattern, which the streams "
                "group protocol of this Kafka release does not know; name its topics, or set group.protocol=classic"
            )
    # by the id as text, which comes out the same on the wire
    return tuple(
        _subtopology(part, plan.ordered_copartition_groups, repartitioned, replication)
        for part in sorted(parts, key=lambda part: str(part.id))
    )


def _subtopology(
    part: SubtopologyPlan, groups: Iterable[tuple[str, ...]], repartitioned: set[str], replication: int
) -> SubtopologyOfGroup:
    sources = tuple(sorted({*part.source_topics}.difference(part.repartition_topics)))
    repartition_sources = tuple(sorted(part.repartition_topics))
    changelogs = {**part.changelog_topics, **part.reused_changelogs}
    return SubtopologyOfGroup(
        part.id,
        sources,
        tuple(sorted(repartitioned.intersection(part.sink_topics))),
        tuple(_topic(part.repartition_topics[name], replication) for name in repartition_sources),
        tuple(_topic(changelogs[name], replication) for name in sorted(changelogs)),
        tuple(
            CopartitionGroup(
                tuple(sources.index(topic) for topic in group if topic in sources),
                tuple(repartition_sources.index(topic) for topic in group if topic in repartition_sources),
            )
            for group in groups
            if {*group}.issubset(part.source_topics)
        ),
    )


def _topic(topic: InternalTopic, replication: int) -> TopicOfGroup:
    partitions = _AS_MANY_AS_SOURCES if topic.partitions is None else topic.partitions
    return TopicOfGroup(topic.name, partitions, replication, tuple(sorted(topic.config.items())))
