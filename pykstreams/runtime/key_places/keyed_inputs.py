"""The input topics of which it matters in which partitions their keys lie.

Those are topics with several partitions whose records come, without a repartition topic in between, to an operator
that keeps something under their keys: a join by key, an aggregation, a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pykstreams.processors import Reorder, UserFixedKeyProcessor, UserProcessor
from pykstreams.processors.retrying import Retrying
from pykstreams.serdes.windowed import SessionWindowedDeserializer, TimeWindowedDeserializer
from pykstreams.topology.placement.answer_partitioner import AnswerPartitioner
from pykstreams.topology.placement.key_placement import KeyPlacement
from pykstreams.topology.plan import ProcessorNode, SinkNode, SourceNode, SubtopologyPlan, TopologyPlan

_OWN_AFFAIR = (UserProcessor, UserFixedKeyProcessor, Retrying, Reorder)
"""Operators whose stores hold nothing that another partition could miss, or nothing that we know of."""

_WINDOWED = (TimeWindowedDeserializer, SessionWindowedDeserializer)
"""Java's producers hash what these read without the window."""


@dataclass(frozen=True, slots=True)
class KeyedInput:
    """One of those topics.

    :param placement: the partitioner that its source names, ``None`` for Kafka's murmur2.
    :param readers: the operators to which its keys matter, in the order of the topology.
    :param met_by: the other topics whose records are to meet those of this one.
    """

    topic: str
    partitions: int
    placement: KeyPlacement | None
    readers: tuple[str, ...]
    met_by: tuple[str, ...]


def keyed_inputs(plan: TopologyPlan, partitions: Mapping[str, int]) -> dict[str, KeyedInput]:
    """Returns those topics by name.

    :param partitions: how many each topic has that exists; others are left out.
    """
    own = {topic.name for part in plan.subtopologies for topic in part.repartition_topics.values()}
    own.update(topic.name for part in plan.subtopologies for topic in part.changelog_topics.values())
    answers = _answer_topics(plan)
    return {
        topic: KeyedInput(topic, count, source.placement, readers, tuple(sorted(_met_by(part, topic) - answers)))
        for part in plan.subtopologies
        for source in part.sources
        if not isinstance(source.key_deserializer, _WINDOWED) and (readers := tuple(_readers(part, source)))
        for topic, count in partitions.items()
        if count > 1 and topic not in own and _reads(source, topic)
    }


def _reads(source: SourceNode, topic: str) -> bool:
    return topic in source.topics or (source.pattern is not None and source.pattern.fullmatch(topic) is not None)


def _readers(part: SubtopologyPlan, source: SourceNode) -> Iterator[str]:
    below: set[str] = {source.name}
    for name, node in part.nodes.items():  # parents come first
        if name not in below or not isinstance(node, SourceNode | ProcessorNode):
            continue
        below.update(node.children)
        if isinstance(node, ProcessorNode) and node.stores and _keeps_by_key(node):
            yield name


def _keeps_by_key(node: ProcessorNode) -> bool:
    return hasattr(node.operator, "build") and not isinstance(node.operator, _OWN_AFFAIR)


def _met_by(part: SubtopologyPlan, topic: str) -> set[str]:
    return {other for group in part.copartition_groups if topic in group for other in group} - {topic}


def _answer_topics(plan: TopologyPlan) -> set[object]:
    """The topics whose records go back to the partition that asked, wherever it has its keys."""
    return {
        node.topic
        for part in plan.subtopologies
        for node in part.nodes.values()
        if isinstance(node, SinkNode) and isinstance(node.partitioner, AnswerPartitioner)
    }
