"""The topics and stores of a topology with the types of their keys and values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pykstreams.core.config import StreamsConfig
from pykstreams.serdes.by_type import TYPES
from pykstreams.serdes.defaults import OverDefault, default_part, or_default
from pykstreams.state.spec import user_store
from pykstreams.topology.plan import SinkNode, SourceNode, TopologyPlan

_NONE: Final = "none"


@dataclass(frozen=True, slots=True)
class WrittenType:
    """The types of a topic or a store, as text; a serde where no type stands for it, and why it is none where it lacks.

    :param kind: ``topic`` or ``store``.
    :param role: ``read``, ``written`` or ``kept``.
    """

    kind: str
    role: str
    name: str
    key: str
    value: str

    @property
    def lacks(self) -> bool:
        """Whether there is no serde for one of the two."""
        return any(part == _NONE or part.startswith(f"{_NONE}: ") for part in (self.key, self.value))


def written_types(plan: TopologyPlan, config: StreamsConfig) -> list[WrittenType]:
    """Returns those of all topics and stores, each once: topics in the order of the topology, then stores."""
    found = dict.fromkeys(_topics(plan, config))
    found |= dict.fromkeys(_stores(plan, config))
    return list(found)


def _topics(plan: TopologyPlan, config: StreamsConfig) -> Iterator[WrittenType]:
    nodes = [node for part in plan.subtopologies for node in part.nodes.values()]
    for node in (*nodes, *(one.source for one in plan.global_stores)):
        if isinstance(node, SourceNode):
            names = node.topics if node.pattern is None else (f"/{node.pattern.pattern}/",)
            types = _of(node.key_deserializer, "key", config), _of(node.value_deserializer, "value", config)
            yield from (WrittenType("topic", "read", name, *types) for name in names)
        elif isinstance(node, SinkNode):
            name = node.topic if isinstance(node.topic, str) else "chosen per record"
            types = _of(node.key_serializer, "key", config), _of(node.value_serializer, "value", config)
            yield WrittenType("topic", "written", name, *types)


def _stores(plan: TopologyPlan, config: StreamsConfig) -> Iterator[WrittenType]:
    stores = [builder for part in plan.subtopologies for builder in part.stores.values()]
    for builder in (*stores, *(one.store for one in plan.global_stores)):
        if builder.make is user_store:  # its author alone knows
            yield WrittenType("store", "kept", builder.name, "its own", "its own")
            continue
        values = builder.value_serde if isinstance(builder.value_serde, tuple) else (builder.value_serde,)
        value = " | ".join(dict.fromkeys(_of(one, "value", config) for one in values))
        yield WrittenType("store", "kept", builder.name, _of(builder.key_serde, "key", config), value)


def _of(given: object, side: str, config: StreamsConfig) -> str:
    known = known_type(given, side, config)
    if known is not None:
        return known
    return f"{_NONE}: {given.lacking}" if isinstance(given, OverDefault) and given.lacking else _NONE


def known_type(given: object, side: str, config: StreamsConfig) -> str | None:
    """Returns the type that a serde stands for, or how it is made; ``None`` where there is no serde.

    :param side: ``key`` or ``value``, by which a default serde is taken.
    """
    part = default_part(given, side)
    if given is None or isinstance(given, OverDefault):
        if config[f"default.{part}.serde"] is None:
            return None
        default = config.default_key_serde if part == "key" else config.default_value_serde
        given = or_default(given, lambda: default)
    return TYPES.name_of(given)
