"""The serdes with a schema registry that write to the topics of a topology: sinks, repartitions and changelogs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ConfigError
from pykstreams.core.names import changelog_name
from pykstreams.serdes.defaults import default_part, or_default
from pykstreams.serdes.registry.first_requests import RegistrySerde, registry_serdes
from pykstreams.state.spec import user_store
from pykstreams.topology.plan import SinkNode, SubtopologyPlan, TopologyPlan

CHOSEN: Final = "chosen per record"
"""Stands for the topic of a sink that is a function."""


@dataclass(frozen=True, slots=True)
class SchemaUse:
    """A serde that asks a registry when it writes a key or a value.

    :param topic: the topic that it is told: that of a sink, or the changelog of a store, also where logging is off.
    :param side: ``key`` or ``value``.
    """

    topic: str
    side: str
    serde: RegistrySerde

    def __str__(self) -> str:
        return f"{self.side} of {self.topic}"


def schema_uses(plan: TopologyPlan, config: StreamsConfig) -> list[SchemaUse]:
    """Returns those of all sinks and stores, each once, in the order of the topology.

    Not those of stores that a user has written, nor of stores without a changelog to write to: global ones, and those
    whose source topic serves as one. Nor what operators write inside of values, under names that are no topics, such as
    the hashes of a foreign-key join (``-vh``).
    """
    given = [one for part in plan.subtopologies for one in (*_of_sinks(part), *_of_stores(part, plan.application_id))]
    found: dict[tuple[str, str, int], SchemaUse] = {}
    for topic, side, serializer in given:
        for serde, told in _inside(serializer, topic, side, config):
            found.setdefault((told, side, id(serde)), SchemaUse(told, side, serde))
    return list(found.values())


def _of_sinks(part: SubtopologyPlan) -> Iterator[tuple[str, str, object]]:
    for node in part.nodes.values():
        if isinstance(node, SinkNode):
            topic = node.topic if isinstance(node.topic, str) else CHOSEN
            yield topic, "key", node.key_serializer
            yield topic, "value", node.value_serializer


def _of_stores(part: SubtopologyPlan, application_id: str) -> Iterator[tuple[str, str, object]]:
    for name, builder in part.stores.items():
        if builder.make is user_store:  # its author alone knows
            continue
        topic = part.changelogs.get(name, changelog_name(application_id, name))
        if topic in part.reused_changelogs:  # its bytes are those that were read
            continue
        yield topic, "key", builder.key_serde
        for one in builder.value_serde if isinstance(builder.value_serde, tuple) else (builder.value_serde,):
            yield topic, "value", one


def _inside(given: object, topic: str, side: str, config: StreamsConfig) -> list[tuple[RegistrySerde, str]]:
    part = default_part(given, side)
    try:
        serde = or_default(given, lambda: config.default_key_serde if part == "key" else config.default_value_serde)
        return registry_serdes(serde, topic)
    except ConfigError:  # there is none: said by check_serdes, and by the list of types
        return []
