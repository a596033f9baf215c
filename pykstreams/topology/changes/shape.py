"""The shape of a topology: the parts that outlive a restart, as plain values that can be kept and compared.

Names of internal topics are without the application id, so that shapes of two applications can be compared.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar, cast

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import TopologyError
from pykstreams.serdes.json.json_types import JsonData
from pykstreams.state.interfaces.store import TaskStore
from pykstreams.state.spec import StoreBuilder
from pykstreams.topology.changes.kept_windows import windows_of_store
from pykstreams.topology.changes.lineage import read_topics, topics_of_store, written_topics
from pykstreams.topology.changes.serde_types import SerdeTypes, serde_name, serde_types, serde_types_from
from pykstreams.topology.plan import SinkNode, SubtopologyPlan, TopologyPlan

FORMAT: Final = 4
_FORMATS: Final = (1, 2, 3, FORMAT)
"""Those that can be read; the first one knows nothing of windows, and of what leads where, the second one nothing of
the types of JSON, the third one nothing of forms on disk, and of how long changelogs keep rows."""


@dataclass(frozen=True, slots=True)
class StoreShape:
    """A store.

    :param changelog: ``None`` where it has none.
    :param retention_ms: how long windows and sessions are kept; ``None`` where it keeps none.
    :param windows: the definition of its windows, without the grace period; ``None`` where no operator says it.
    :param window_size_ms: the length that its rows are read with; ``None`` where it keeps no windows.
    :param segment_interval_ms: how much time lies in one part of what is on disk; ``None`` where it is not divided.
    :param history_retention_ms: how long old versions are kept; ``None`` where they are not.
    :param fed_by: the topics from which records reach it; ``None``: not known.
    :param key_types: the JSON types of the key serde; ``None``: not known.
    :param value_types: those of the value serde.
    :param disk_form: the form in which rows lie on disk; ``None``: not known, or one that never changes.
    :param changelog_retention_ms: how long its changelog topic, made by this topology, keeps windows and sessions;
        ``None``: not known, or for ever.
    """

    name: str
    subtopology: int
    kind: str
    key_serde: str
    value_serde: str
    changelog: str | None = None
    retention_ms: int | None = None
    windows: str | None = None
    window_size_ms: int | None = None
    segment_interval_ms: int | None = None
    history_retention_ms: int | None = None
    fed_by: tuple[str, ...] | None = None
    key_types: SerdeTypes | None = None
    value_types: SerdeTypes | None = None
    disk_form: str | None = None
    changelog_retention_ms: int | None = None


@dataclass(frozen=True, slots=True)
class TopicShape:
    """A repartition topic (``partitions`` as the user gave them), or a topic that is read (``None``)."""

    name: str
    subtopology: int
    key_serde: str
    value_serde: str
    partitions: int | None = None
    key_types: SerdeTypes | None = None
    value_types: SerdeTypes | None = None


T = TypeVar("T", StoreShape, TopicShape)


@dataclass(frozen=True, slots=True)
class TopologyShape:
    """A whole topology, each part sorted by name."""

    application_id: str
    stores: tuple[StoreShape, ...] = ()
    repartition_topics: tuple[TopicShape, ...] = ()
    inputs: tuple[TopicShape, ...] = ()
    """Topics that are read; a pattern stands as ``/pattern/``."""
    written: Mapping[str, tuple[str, ...]] | None = None
    """Topics that are written, each with those from which records reach it; ``None``: not known."""

    @property
    def knows_windows(self) -> bool:
        """Whether it says all that this release compares: a description of an older release does not."""
        return self.written is not None

    def as_dict(self) -> dict[str, object]:
        """The shape for JSON."""
        return {
            "format": FORMAT,
            "application_id": self.application_id,
            "stores": [_as_dict(one) for one in self.stores],
            "repartition_topics": [_as_dict(one) for one in self.repartition_topics],
            "inputs": [_as_dict(one) for one in self.inputs],
            "written": self.written,
        }


def shape_of(plan: TopologyPlan, config: StreamsConfig) -> TopologyShape:
    """Returns the shape of a plan."""
    prefix = f"{plan.application_id}-"
    stores: list[StoreShape] = []
    repartition: list[TopicShape] = []
    inputs: list[TopicShape] = []
    for part in plan.subtopologies:
        for name, builder in part.stores.items():
            changelog = part.changelogs.get(name)
            own = changelog in part.changelog_topics
            known = changelog.removeprefix(prefix) if changelog is not None and own else changelog
            own_topics = tuple(topic.removeprefix(prefix) for topic in topics_of_store(part, name))
            shape = _store(builder, part.id, known, config)
            stores.append(
                dataclasses.replace(
                    shape,
                    windows=windows_of_store(part, name),
                    fed_by=own_topics,
                    changelog_retention_ms=_changelog_retention_ms(part, name),
                )
            )
        for topic in _read(part, config):
            if topic.name in part.repartition_topics:
                given = part.repartition_topics[topic.name].partitions
                repartition.append(dataclasses.replace(topic, name=topic.name.removeprefix(prefix), partitions=given))
            else:
                inputs.append(topic)
    written = {
        topic.removeprefix(prefix): tuple(above.removeprefix(prefix) for above in sources)
        for topic, sources in written_topics(plan).items()
    }
    return TopologyShape(
        plan.application_id, _sorted(stores), _sorted(_as_written(plan, repartition, config)), _sorted(inputs), written
    )


def shape_from(data: object) -> TopologyShape:
    """Reads what ``as_dict`` has written; ``TopologyError`` for anything else."""
    try:
        if not isinstance(data, dict) or data["format"] not in _FORMATS:
            raise TopologyError("it has another format; describe the topology anew with this release")
        return TopologyShape(
            str(data["application_id"]),
            tuple(_with_tuples(StoreShape(**{**one, **_types_from(one)})) for one in data["stores"]),
            tuple(TopicShape(**{**one, **_types_from(one)}) for one in data["repartition_topics"]),
            tuple(TopicShape(**{**one, **_types_from(one)}) for one in data["inputs"]),
            None if data.get("written") is None else {name: tuple(above) for name, above in data["written"].items()},
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise TopologyError(
            f"this is no description of a topology ({error!r}); make one with 'pykstreams describe --format json'"
        ) from error


def _as_dict(part: StoreShape | TopicShape) -> dict[str, object]:
    values = {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}
    return {name: one.as_dict() if isinstance(one, SerdeTypes) else one for name, one in values.items()}


def _types_from(part: JsonData) -> dict[str, SerdeTypes | None]:
    sides = ("key_types", "value_types")
    return {side: serde_types_from(cast("JsonData | None", part.get(side))) for side in sides}


def _with_tuples(store: StoreShape) -> StoreShape:
    """JSON has lists."""
    return store if store.fed_by is None else dataclasses.replace(store, fed_by=tuple(store.fed_by))


def _store(
    builder: StoreBuilder[TaskStore], subtopology: int, changelog: str | None, config: StreamsConfig
) -> StoreShape:
    values = builder.value_serde if isinstance(builder.value_serde, tuple) else (builder.value_serde,)
    return StoreShape(
        builder.name,
        subtopology,
        builder.supplier.metrics_scope
        if hasattr(builder.supplier, "metrics_scope")
        else type(builder.supplier).__name__,
        serde_name(builder.key_serde, "key", config),
        ", ".join(serde_name(one, "value", config) for one in values),
        changelog,
        builder.retention_ms,
        window_size_ms=getattr(builder.supplier, "window_size_ms", None),
        segment_interval_ms=getattr(builder.supplier, "segment_interval_ms", None),
        history_retention_ms=builder.history_retention_ms,
        key_types=serde_types((builder.key_serde,), "key", config),
        value_types=serde_types(values, "value", config),
        disk_form=getattr(builder.supplier, "disk_form", None),
    )


def _changelog_retention_ms(part: SubtopologyPlan, store: str) -> int | None:
    """How long the changelog topic of a window or session store keeps rows; without an end it is -1 in its settings."""
    topic = part.changelog_topics.get(part.changelogs.get(store, ""))
    kept = topic.config.get("retention.ms", "") if topic is not None else ""
    return int(kept) if kept.isdecimal() else None


def _read(part: SubtopologyPlan, config: StreamsConfig) -> Iterable[TopicShape]:
    for source in part.sources:
        for name in read_topics(source):
            yield _topic(name, part.id, source.key_deserializer, source.value_deserializer, config)


def _as_written(plan: TopologyPlan, topics: list[TopicShape], config: StreamsConfig) -> Iterable[TopicShape]:
    """Repartition topics with the serdes of those who write them, which are what lies in them."""
    written = {
        node.topic.removeprefix(f"{plan.application_id}-"): node
        for part in plan.subtopologies
        for node in part.nodes.values()
        if isinstance(node, SinkNode) and isinstance(node.topic, str)
    }
    for topic in topics:
        sink = written.get(topic.name)
        if sink is None:
            yield topic
        else:
            found = _topic(topic.name, topic.subtopology, sink.key_serializer, sink.value_serializer, config)
            yield dataclasses.replace(found, partitions=topic.partitions)


def _topic(name: str, subtopology: int, key: object, value: object, config: StreamsConfig) -> TopicShape:
    return TopicShape(
        name,
        subtopology,
        serde_name(key, "key", config),
        serde_name(value, "value", config),
        key_types=serde_types((key,), "key", config),
        value_types=serde_types((value,), "value", config),
    )


def _sorted(parts: Iterable[T]) -> tuple[T, ...]:
    return tuple(sorted(parts, key=lambda part: (part.name, part.subtopology)))
