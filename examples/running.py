"""Runs examples on the records in their folders: in the test driver, or on a cluster beside a worker.

An example is a folder with a script of the same name. Its ``data.jsonl`` has a record a line, in the order in which
they come: ``{"topic": "orders", "key": "o1", "value": {"item": "tea"}, "time": "2026-01-01T12:00:00Z"}``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
from confluent_kafka import Consumer, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from pykstreams import StreamsConfig, Topology, Windowed
from pykstreams.dsl.script import load_script
from pykstreams.serdes import JsonSerde
from pykstreams.testing import ProducedRecord, TopologyTestDriver
from pykstreams.topology.plan import SinkNode, SourceNode, TopologyPlan

FOLDER = Path(__file__).parent
PARTITIONS = 4
_PATIENCE_S = 10.0


@dataclass(frozen=True, slots=True)
class Sent:
    """A record of the data of an example, with what JSON has for its key and its value."""

    topic: str
    key: Any
    value: Any
    time: datetime


@dataclass(frozen=True, slots=True)
class Example:
    """An example: its folder, and what is in it."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def script(self) -> Path:
        return self.folder / f"{self.name}.py"

    @property
    def picture(self) -> Path:
        return self.folder / "topology.svg"

    @property
    def records(self) -> list[Sent]:
        """The records of ``data.jsonl``, in the order in which they come."""
        lines = (self.folder / "data.jsonl").read_bytes().splitlines()
        return [_sent(**orjson.loads(line)) for line in lines]

    def topology(self) -> tuple[Topology, StreamsConfig]:
        """Builds the topology as ``pykstreams run`` does, with the settings of the script."""
        script = load_script(str(self.script))
        config = StreamsConfig(script.settings)
        return script.build(config), config


def examples() -> dict[str, Example]:
    """All examples by name."""
    return {path.name: Example(path) for path in sorted(FOLDER.iterdir()) if (path / "data.jsonl").exists()}


def played(example: Example) -> Iterator[str]:
    """Pipes the records of an example through the test driver, and yields them as lines, each before its results.

    Where the topology writes no topic, the rows of its stores come last.
    """
    driver, topics = _started(example)
    with driver:
        for record in example.records:
            yield _line(record.time, record.topic, record.key, record.value)
            _pipe(record, driver, topics)
            for produced in driver.take_produced():
                if produced.topic in topics.written:
                    yield "  -> " + topics.line(produced.topic, produced.key, produced.value, produced.timestamp)
        if not topics.written:
            for name, store in driver.get_all_state_stores().items():
                with store.all() as rows:
                    for row in rows:
                        yield f"  {name}: {_text(row.key)} = {_text(getattr(row.value, 'value', row.value))}"


def written_bytes(example: Example) -> list[ProducedRecord]:
    """Pipes the records of an example through the test driver, and returns all that is written to any topic."""
    driver, topics = _started(example)
    with driver:
        for record in example.records:
            _pipe(record, driver, topics)
        return driver.take_produced()


def _started(example: Example) -> tuple[TopologyTestDriver, _Topics]:
    topology, config = example.topology()
    topics = _Topics(topology.plan(config))
    return TopologyTestDriver(topology, config, initial_wall_clock_time=example.records[0].time), topics


def _pipe(record: Sent, driver: TopologyTestDriver, topics: _Topics) -> None:
    key, value = topics.read[record.topic]
    piped = driver.create_input_topic(record.topic, key, value)
    piped.pipe_input(_typed(key, record.key), _typed(value, record.value), record.time)


def send(example: Example, bootstrap_servers: str) -> None:
    """Sends the records of an example to the topics of a cluster, which are created where they are missing."""
    topology, config = example.topology()
    topics = _Topics(topology.plan(config))
    _create_topics([*topics.read, *topics.written], bootstrap_servers)
    producer = Producer({"bootstrap.servers": bootstrap_servers, "partitioner": "murmur2_random"})
    for record in example.records:
        key, value = (
            serde.serializer.serialize(record.topic, _typed(serde, plain))
            for serde, plain in zip(topics.read[record.topic], (record.key, record.value), strict=True)
        )
        producer.produce(record.topic, value, key, timestamp=round(record.time.timestamp() * 1000))
    producer.flush()


def received(example: Example, bootstrap_servers: str, stopped: Callable[[], bool] = lambda: False) -> Iterator[str]:
    """Yields as lines what workers write to the output topics of an example, until it is stopped."""
    topology, config = example.topology()
    topics = _Topics(topology.plan(config))
    if not topics.written:
        return
    consumer = Consumer(
        {"bootstrap.servers": bootstrap_servers, "group.id": f"{example.name}-results", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(list(topics.written))
    try:
        while not stopped():
            message: Message | None = consumer.poll(0.2)
            if message is not None and message.error() is None:
                yield topics.line(message.topic() or "", message.key(), message.value(), message.timestamp()[1])
    finally:
        consumer.close()


class _Topics:
    """The topics that a topology reads, and those that it writes for others, each with the serdes of key and value."""

    def __init__(self, plan: TopologyPlan) -> None:
        nodes = list(plan.whole.nodes.values())
        internal = {topic.name for topic in plan.internal_topics}
        sources = [node for node in nodes if isinstance(node, SourceNode)]
        self.read: dict[str, tuple[Any, Any]] = {
            topic: (source.key_deserializer, source.value_deserializer)
            for source in (*sources, *(one.source for one in plan.global_stores))
            for topic in source.topics
            if topic not in internal
        }
        self.written: dict[str, tuple[Any, Any]] = {
            node.topic: (node.key_serializer, node.value_serializer)
            for node in nodes
            if isinstance(node, SinkNode) and isinstance(node.topic, str) and node.topic not in internal
        }

    def line(self, topic: str, key: bytes | None, value: bytes | None, timestamp_ms: int | None) -> str:
        """A record of an output topic as a line."""
        plain = (
            serde.deserializer.deserialize(topic, data)
            for serde, data in zip(self.written[topic], (key, value), strict=True)
        )
        return _line(datetime.fromtimestamp((timestamp_ms or 0) / 1000, UTC), topic, *plain)


def _sent(topic: str, key: Any, value: Any, time: str) -> Sent:
    return Sent(topic, key, value, datetime.fromisoformat(time))


def _typed(serde: Any, plain: Any) -> Any:
    """What a serde writes for a value that JSON has: values of a type are made from it."""
    return serde.deserialize("", orjson.dumps(plain)) if isinstance(serde, JsonSerde) and plain is not None else plain


def _line(time: datetime, topic: str, key: object, value: object) -> str:
    return f"{time:%H:%M:%S} {topic}: {_text(key)} = {_text(value)}"


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Windowed):
        return f"{_text(value.key)} {value.window.start_time:%H:%M} to {value.window.end_time:%H:%M}"
    return orjson.dumps(value).decode()


def _create_topics(names: list[str], bootstrap_servers: str) -> None:
    """Creates topics that keep old records; an embedded cluster has no such request, and makes them when asked for."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    found = admin.list_topics(timeout=_PATIENCE_S)
    missing = [name for name in dict.fromkeys(names) if name not in found.topics]
    if str(found.cluster_id).startswith("mockCluster"):
        for name in missing:
            admin.list_topics(name, timeout=_PATIENCE_S)
    elif missing:
        settings = {"retention.ms": "-1"}
        wanted = [NewTopic(name, num_partitions=PARTITIONS, config=settings) for name in missing]
        for future in admin.create_topics(wanted).values():
            future.result()
