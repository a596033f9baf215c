"""Serdes that neither a step nor the configuration gives: found in a plan, before anything runs.

Without this the first task would find them, step by step. Sources, sinks and stores are looked at; what an operator
does with a serde of its own shows in the stores and topics that it uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ConfigError
from pykstreams.serdes.defaults import OverDefault, default_part
from pykstreams.state.interfaces.store import TaskStore
from pykstreams.state.spec import StoreBuilder, user_store
from pykstreams.topology.plan import SinkNode, SourceNode, TopologyPlan


def check_serdes(plan: TopologyPlan, config: StreamsConfig) -> None:
    """Raises ``ConfigError`` when steps lack serdes; it names all of them."""
    if said := missing_serdes(plan, config):
        raise ConfigError("\n".join(said))


def missing_serdes(plan: TopologyPlan, config: StreamsConfig) -> list[str]:
    """Returns a text for keys and one for values, each naming all steps that lack a serde, with the cure."""
    missing: dict[str, list[str]] = {"key": [], "value": []}
    lacking: dict[str, list[str]] = {"key": [], "value": []}
    for step, given, side in _wanted(plan):
        part = default_part(given, side)
        if (given is None or isinstance(given, OverDefault)) and config[f"default.{part}.serde"] is None:
            _add(missing[part], step)
            if given is not None and given.lacking is not None:
                _add(lacking[part], given.lacking)
    return [_told(part, steps, lacking[part]) for part, steps in missing.items() if steps]


def _add(texts: list[str], text: str) -> None:
    if text not in texts:
        texts.append(text)


def _told(part: str, steps: list[str], lacking: list[str]) -> str:
    who = f"{', '.join(steps[:-1])} and {steps[-1]} need" if steps[1:] else f"{steps[0]} needs"
    why = "".join(f" ({reason})" for reason in lacking)
    return (
        f"{who} a {part} serde and none is set{why}; give a type or a serde as {part}_serde in the options of the step "
        f"(Consumed, Produced, Grouped, Materialized), annotate the function before it, or set "
        f"'default.{part}.serde'"
    )


def _wanted(plan: TopologyPlan) -> Iterator[tuple[str, object, str]]:
    """Yields what needs a serde, what was given, and whether it is for keys or for values."""
    own = {topic for part in plan.subtopologies for topic in part.repartition_topics}

    def place(node: str, topics: Iterable[str]) -> str:
        shown = [repr(topic) for topic in topics if topic not in own]
        return f"{node} (topic {', '.join(shown)})" if shown else node

    for part in plan.subtopologies:
        for node in part.nodes.values():
            if isinstance(node, SourceNode):
                yield from _of_source(node, place(node.name, node.topics))
            elif isinstance(node, SinkNode):
                topics = (node.topic,) if isinstance(node.topic, str) else ()
                step = place(node.name, topics)
                yield step, node.key_serializer, "key"
                yield step, node.value_serializer, "value"
        for name, builder in part.stores.items():
            yield from _of_store(name, builder)
    for one in plan.global_stores:
        yield from _of_source(one.source, f"{one.source.name} (topic {one.topic!r})")
        yield from _of_store(one.store.name, one.store)


def _of_source(node: SourceNode, step: str) -> Iterator[tuple[str, object, str]]:
    yield step, node.key_deserializer, "key"
    yield step, node.value_deserializer, "value"


def _of_store(name: str, builder: StoreBuilder[TaskStore]) -> Iterator[tuple[str, object, str]]:
    if builder.make is user_store:  # reads and writes as its author likes
        return
    yield f"store {name!r}", builder.key_serde, "key"
    values = builder.value_serde if isinstance(builder.value_serde, tuple) else (builder.value_serde,)
    for given in values:
        yield f"store {name!r}", given, "value"
