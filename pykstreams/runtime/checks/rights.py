"""The rights that an application needs, for the check and for an administrator."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pykstreams.core.config import StreamsConfig
from pykstreams.topology.plan import SinkNode, TopologyPlan

GROUP_RIGHTS: Final = frozenset({"DESCRIBE", "READ"})
"""The operations of members on their group."""


@dataclass(frozen=True, slots=True)
class TopicRights:
    """The operations on one topic, by Kafka's names; ``is_own``: the application creates it."""

    topic: str
    operations: frozenset[str]
    is_own: bool = False


def wanted_rights(plan: TopologyPlan, config: StreamsConfig) -> Iterator[TopicRights]:
    """Yields the rights on topics that are known by name, sorted; one entry for each topic."""
    wanted: dict[str, set[str]] = {}
    own: set[str] = set()
    for part in plan.subtopologies:
        for topic in part.source_topics:
            wanted.setdefault(topic, set()).update({"DESCRIBE", "READ"})
        for node in part.nodes.values():
            if isinstance(node, SinkNode) and isinstance(node.topic, str):
                wanted.setdefault(node.topic, set()).update({"DESCRIBE", "WRITE"})
        for topic in part.repartition_topics:  # records that were processed are deleted
            wanted.setdefault(topic, set()).update({"DESCRIBE", "DESCRIBE_CONFIGS", "READ", "WRITE", "DELETE"})
        for topic in part.changelog_topics:
            wanted.setdefault(topic, set()).update({"DESCRIBE", "DESCRIBE_CONFIGS", "READ", "WRITE"})
        own.update(part.repartition_topics, part.changelog_topics)
    for store in plan.global_stores:
        wanted.setdefault(store.topic, set()).update({"DESCRIBE", "READ"})
    if (letters := config.errors_dead_letter_queue_topic_name) is not None:
        wanted.setdefault(letters, set()).update({"DESCRIBE", "WRITE"})
    for topic in sorted(wanted):
        yield TopicRights(topic, frozenset(wanted[topic]), topic in own)


def acl_lines(plan: TopologyPlan, config: StreamsConfig, bootstrap: str, principal: str) -> Iterator[str]:
    """Yields the commands by which an administrator allows an application what it does."""
    begin = f"kafka-acls.sh --bootstrap-server {bootstrap} --add --allow-principal {shlex.quote(principal)}"

    def said(operations: frozenset[str]) -> str:
        return " ".join(f"--operation {_camel(one)}" for one in sorted(operations))

    for one in wanted_rights(plan, config):
        if not one.is_own:
            yield f"{begin} {said(one.operations)} --topic {one.topic}"
    patterns = sorted({one.pattern for part in plan.subtopologies for one in part.source_patterns})
    for pattern in patterns:
        yield f"# topics that match {pattern}: --operation Describe --operation Read"
    internal = frozenset({"CREATE", "DELETE", "DESCRIBE", "DESCRIBE_CONFIGS", "READ", "WRITE"})
    prefixed = "--resource-pattern-type prefixed"
    yield f"{begin} {said(internal)} --topic {plan.application_id}- {prefixed}"
    yield f"{begin} {said(GROUP_RIGHTS)} --group {plan.application_id}"
    if config.exactly_once:
        ids = f"--transactional-id {plan.application_id}- {prefixed}"
        yield f"{begin} {said(frozenset({'DESCRIBE', 'WRITE'}))} {ids}"


def _camel(operation: str) -> str:
    return "".join(word.capitalize() for word in operation.split("_"))
