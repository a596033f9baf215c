"""The topics of a topology that the application does not make itself: those of sources, sinks and dead letters.

They are looked for before the first record. Brokers that create topics by themselves are asked for missing sinks and
dead letters first, as the producer would ask them with the first record; a missing source is an error on them, too
(``RepartitionTopics.setup``, 4.3.1).

Names that Kafka refuses are looked for in the plan, before anybody is asked: as in Kafka Streams, a topology with such
a name can be built.

Invariant: one error names every topic that is missing.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Protocol

from pykstreams.core.errors import MissingSinkTopicError, MissingSourceTopicError, TopologyError
from pykstreams.core.names import fault_of_topic, similar_name
from pykstreams.topology.plan import SinkNode, SourceNode, TopologyPlan

BROKER_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})

_LOOK_S = 0.1
_SOME_PARTITIONS = 4
"""How many a topic gets in the command that makes it, where nothing tells how many it needs."""
_DEAD_LETTERS = "which errors.dead.letter.queue.topic.name gives for dead letters,"


class UserTopicClient(Protocol):
    """The used methods of an administrative client."""

    @property
    def bootstrap(self) -> str: ...

    def partition_counts(self) -> dict[str, int]: ...

    def touch(self, topics: Iterable[str]) -> None: ...


class UserTopics:
    """Looks for the topics of one plan.

    :param dead_letters: the topic of dead letters, if there is one (``errors.dead.letter.queue.topic.name``).
    :param patience_s: how long brokers may take to create a topic that they were asked for.
    """

    def __init__(
        self, client: UserTopicClient, plan: TopologyPlan, *, dead_letters: str | None = None, patience_s: float = 2.0
    ) -> None:
        self._client = client
        self._plan = plan
        self._dead_letters = dead_letters
        self._looks = max(1, round(patience_s / _LOOK_S))
        self._own = _own_topics(plan)

    def check(self) -> None:
        """Raises ``MissingSourceTopicError`` or ``MissingSinkTopicError`` when topics are missing, and
        ``TopologyError`` when Kafka has no topics of such names.
        """
        check_topic_names(self._plan, self._dead_letters)
        existing: Mapping[str, int] = self._client.partition_counts()
        unread, unwritten = self.missing(existing)
        if unwritten and not unread:
            existing = self._asked_for(unwritten)
            unwritten = _missing(_sinks(self._plan, self._own, self._dead_letters), existing)
        if unread:
            raise MissingSourceTopicError(self._told({**unwritten, **unread}, existing))
        if unwritten:
            raise MissingSinkTopicError(self._told(unwritten, existing))

    def missing(self, existing: Mapping[str, int]) -> tuple[dict[str, str], dict[str, str]]:
        """Topics that are read, and topics that are only written, that do not exist; each with what wants it."""
        unread = _missing(_sources(self._plan, self._own), existing)
        unwritten = _missing(_sinks(self._plan, self._own, self._dead_letters), existing)
        return unread, {topic: what for topic, what in unwritten.items() if topic not in unread}

    def cure(self, topic: str, existing: Mapping[str, int]) -> str:
        """The command that makes a topic, and a name that may have been meant."""
        command, near = self._command(topic, existing), self._nearest(topic, existing)
        return command if near is None else f"did you mean {near!r}? Correct the name, or create it:\n    {command}"

    def check_sources(self, existing: Mapping[str, int]) -> None:
        """Raises ``MissingSourceTopicError`` when topics that are read are not among those that exist."""
        if missing := _missing(_sources(self._plan, self._own), existing):
            raise MissingSourceTopicError(self._told(missing, existing))

    def _asked_for(self, topics: Mapping[str, str]) -> Mapping[str, int]:
        """Asks for topics by their names, upon which some brokers create them; returns what exists then."""
        for _ in range(self._looks):
            self._client.touch(topics)
            existing = self._client.partition_counts()
            if topics.keys() <= existing.keys():
                break
            threading.Event().wait(_LOOK_S)  # brokers answer first and create then
        return existing

    def _told(self, missing: Mapping[str, str], existing: Mapping[str, int]) -> str:
        def hint(topic: str) -> str:
            return self._hint(topic, existing)

        where = self._client.bootstrap
        if len(missing) == 1:
            ((topic, what),) = missing.items()
            place = "the settings" if what is _DEAD_LETTERS else "the topology"
            return (
                f"topic {topic!r}, {what} does not exist on {where}{hint(topic)}; correct its name in {place}, or "
                f"create it, for instance with\n{self._command(topic, existing)}\n{self._all()}"
            )
        lines = "".join(f"\n- {topic!r}, {what.rstrip(',')}{hint(topic)}" for topic, what in sorted(missing.items()))
        commands = "".join(f"\n{self._command(topic, existing)}" for topic in sorted(missing))
        return (
            f"{len(missing)} topics do not exist on {where}; correct their names, or create them, for instance as "
            f"below:{lines}{commands}\n{self._all()}"
        )

    def _all(self) -> str:
        """The command of ours that makes every topic that is missing."""
        return (
            f"(pykstreams topics TOPOLOGY --create --bootstrap-servers {self._client.bootstrap}, with the same "
            "--config and --set, creates every topic that is missing)"
        )

    def _hint(self, topic: str, existing: Mapping[str, int]) -> str:
        near = self._nearest(topic, existing)
        return "" if near is None else f" (did you mean {near!r}?)"

    def _nearest(self, topic: str, existing: Mapping[str, int]) -> str | None:
        """The topic whose name is nearly the same."""
        return similar_name(topic, existing.keys() - self._own - BROKER_TOPICS)

    def _command(self, topic: str, existing: Mapping[str, int]) -> str:
        """The command that makes a topic, with as many partitions as topics have that are read or written with it."""
        counts = [
            existing[found]
            for part in self._plan.subtopologies
            if topic in (topics := {*_names(part.sources), *_written(part.nodes.values())})
            for found in topics
            if found in existing
        ]
        return (
            f"kafka-topics.sh --bootstrap-server {self._client.bootstrap} --create --topic {topic} "
            f"--partitions {max(counts, default=_SOME_PARTITIONS)}"
        )


def refused_topics(plan: TopologyPlan, dead_letters: str | None) -> dict[str, str]:
    """Topics of users whose names Kafka refuses, each with what wants it and what is wrong with the name."""
    own = _own_topics(plan)
    refused: dict[str, str] = {}
    for topic, what in (*_sources(plan, own), *_sinks(plan, own, dead_letters)):
        if (fault := fault_of_topic(topic)) is not None:
            refused.setdefault(topic, f"{what} {fault}")
    return refused


def check_topic_names(plan: TopologyPlan, dead_letters: str | None) -> None:
    """Raises ``TopologyError`` that names every topic whose name Kafka refuses."""
    if refused := refused_topics(plan, dead_letters):
        told = "; ".join(f"topic {topic!r}, {what}" for topic, what in refused.items())
        raise TopologyError(f"{told}: Kafka has no such topics; correct the name in the topology or the settings")


def _own_topics(plan: TopologyPlan) -> frozenset[str]:
    return frozenset(
        topic for part in plan.subtopologies for topic in (*part.repartition_topics, *part.changelog_topics)
    )


def _sources(plan: TopologyPlan, own: Collection[str]) -> Iterator[tuple[str, str]]:
    for part in plan.subtopologies:
        for source in part.sources:
            yield from ((topic, f"which {source.name} reads,") for topic in source.topics if topic not in own)
    for store in plan.global_stores:
        yield store.topic, f"which global store {store.store.name!r} reads,"


def _sinks(plan: TopologyPlan, own: Collection[str], dead_letters: str | None) -> Iterator[tuple[str, str]]:
    for part in plan.subtopologies:
        for node in part.nodes.values():
            if isinstance(node, SinkNode) and isinstance(node.topic, str) and node.topic not in own:
                yield node.topic, f"which {node.name} writes,"
    if dead_letters is not None:
        yield dead_letters, _DEAD_LETTERS


def _names(sources: Iterable[SourceNode]) -> Iterator[str]:
    for source in sources:
        yield from source.topics


def _written(nodes: Iterable[object]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, SinkNode) and isinstance(node.topic, str):
            yield node.topic


def _missing(wanted: Iterable[tuple[str, str]], existing: Mapping[str, int]) -> dict[str, str]:
    """The message for each topic that does not exist, with its first reader or writer."""
    missing: dict[str, str] = {}
    for topic, what in wanted:
        if topic not in existing:
            missing.setdefault(topic, what)
    return missing
