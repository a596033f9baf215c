"""Topics that are joined or merged by key have equal partition counts: repartition topics are given the count of their
group, and whatever is unequal then is refused (``CopartitionedTopicsEnforcer``, 4.3.1).

What the script alone shows is checked when the topology is built (``Topology.check_copartitioning``); here the counts
of a cluster, or of the test driver, are known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from pykstreams.core.errors import TopologyError
from pykstreams.core.shown_values import with_noun
from pykstreams.processors import ExpiringTable, TableSource
from pykstreams.topology.plan import ProcessorNode, SubtopologyPlan


def enforce_copartitioning(part: SubtopologyPlan, counts: dict[str, int]) -> None:
    """Sets the partition count of the group on its repartition topics that have none of their own.

    :param counts: partition counts by topic; those of such repartition topics are changed.
    """
    for group in part.copartition_groups:
        free = [name for name in group if _is_free(part, name)]
        there = [name for name in group if name in counts or name in free]
        known = [counts[name] for name in deciding_topics(part, there) if name in counts]
        if known:  # else nothing that is read upstream exists
            counts.update(dict.fromkeys(free, max(known)))


def deciding_topics(part: SubtopologyPlan, group: Collection[str]) -> list[str]:
    """Returns the topics of a group of which the largest has as many partitions as repartition topics of the group get.

    That is one that has a number of its own, else those that decide, else all.
    """
    names = sorted(group)
    given = [name for name in names if not _is_free(part, name)]
    return given[:1] or [name for name in names if part.repartition_topics[name].decides] or names


def check_copartitioning(part: SubtopologyPlan, counts: Mapping[str, int]) -> None:
    """Raises ``TopologyError`` where the topics of a group have unequal partition counts, with the cure."""
    for fault in copartitioning_faults(part, counts):
        raise fault


def copartitioning_faults(part: SubtopologyPlan, counts: Mapping[str, int]) -> Iterator[TopologyError]:
    """Yields an error for each group whose topics have unequal partition counts, with the cure."""
    for group in part.copartition_groups:
        given = (name for name in group if name in counts and not _is_free(part, name))
        found = sorted(((counts[name], name) for name in given), reverse=True)
        if not found or found[0][0] == found[-1][0]:
            continue
        (most, larger), (fewest, smaller) = found[0], found[-1]
        yield TopologyError(
            f"{_reader(part, larger)} ({larger}, {with_noun(most, 'partition')}) and {_reader(part, smaller)} "
            f"({smaller}, {with_noun(fewest, 'partition')}) are joined or merged by key and need equal "
            f"partition counts; {_cure(part, counts, larger, smaller)}"
        )


def _cure(part: SubtopologyPlan, counts: Mapping[str, int], larger: str, smaller: str) -> str:
    for topic, other in ((larger, smaller), (smaller, larger)):
        if topic in part.repartition_topics:
            return (
                f"set num_partitions={counts[other]} in the Repartitioned that makes {topic!r}, or leave it out there"
            )
    stream, other = larger, smaller
    if _feeds_table(part, larger) and not _feeds_table(part, smaller):
        stream, other = smaller, larger
    return (
        f"call .repartition(Repartitioned(num_partitions={counts[other]})) on the stream of {stream!r}, or recreate "
        f"{other!r} with {with_noun(counts[stream], 'partition')}"
    )


def _is_free(part: SubtopologyPlan, topic: str) -> bool:
    return topic in part.repartition_topics and part.repartition_topics[topic].partitions is None


def _feeds_table(part: SubtopologyPlan, topic: str) -> bool:
    """Whether a topic is read as a table, whose rows cannot be repartitioned."""
    readers = (source for source in part.sources if topic in source.topics)
    children = (part.nodes[child] for source in readers for child in source.children)
    operators = (node.operator for node in children if isinstance(node, ProcessorNode))
    return any(
        isinstance(operator.table if isinstance(operator, ExpiringTable) else operator, TableSource)
        for operator in operators
    )


def _reader(part: SubtopologyPlan, topic: str) -> str:
    """The source node that reads a topic."""
    for source in part.sources:
        if topic in source.topics or (source.pattern is not None and source.pattern.fullmatch(topic)):
            return source.name
    return "a source"
