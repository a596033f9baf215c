"""Records the topologies that Kafka Streams tells brokers: ``python -m tests.interop.record_topologies``.

A coordinator keeps what the first member of a streams group has told it in ``__consumer_offsets``, in the layout in
which it came.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from confluent_kafka import Consumer, Message, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.brokers.brokers import create_topics
from tests.brokers.local_broker import LocalBrokers
from tests.interop.java_host import JavaError, JavaHost, class_path
from tests.interop.modes import STREAMS
from tests.interop.programs import OPTIMIZED, PROGRAMS
from tests.unit.runtime.membership.java_topologies import TOPOLOGIES, RecordedTopology, settings_of

_OFFSETS_TOPIC = "__consumer_offsets"
_KEY_TYPE = (23).to_bytes(2, "big")
"""``StreamsGroupTopologyKey``, 4.3.1."""
_VERSION_BYTES = 2
_REFUSED = "Not all copartition groups were converted to broker topology"
"""What 4.3.1 says of a cogroup of which one stream is repartitioned and the other is not."""


def told_topologies(brokers: str) -> dict[str, bytes]:
    """The topologies of all streams groups of a cluster, by group, as their first members told them."""
    settings = {"bootstrap.servers": brokers, "group.id": "reader", "enable.partition.eof": True}
    consumer = Consumer({**settings, "enable.auto.commit": False, "auto.offset.reset": "earliest"})
    try:
        count = len(consumer.list_topics(_OFFSETS_TOPIC, timeout=30).topics[_OFFSETS_TOPIC].partitions)
        consumer.assign([TopicPartition(_OFFSETS_TOPIC, number, 0) for number in range(count)])
        found: dict[str, bytes] = {}
        ended = 0
        while ended < count:
            for message in consumer.consume(500, 1.0):
                ended += message.error() is not None
                found.update(_told(message))
        return found
    finally:
        consumer.close()


def _told(message: Message) -> dict[str, bytes]:
    key, value = message.key() or b"", message.value()
    if message.error() is not None or not key.startswith(_KEY_TYPE) or value is None:
        return {}
    return {key[len(_KEY_TYPE) + 2 :].decode(): value[_VERSION_BYTES:]}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        brokers = LocalBrokers(Path(folder) / "brokers")
        brokers.start_all()
        host = JavaHost(class_path(), Path(folder) / "java.log")
        try:
            recorded = _record(brokers.bootstrap_servers, host, Path(folder))
        finally:
            host.kill()
            brokers.stop_all()
    TOPOLOGIES.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n")


def _record(brokers: str, host: JavaHost, folder: Path) -> list[RecordedTopology]:
    admin = AdminClient({"bootstrap.servers": brokers})
    groups: dict[str, tuple[str, bool]] = {}
    for program, spec in PROGRAMS.items():
        for optimized in (False, True):
            settings = settings_of(program, OPTIMIZED if optimized else {})
            name = settings["application.id"]
            groups[name] = program, optimized
            topics = [NewTopic(settings["app.prefix"] + topic, 1) for topic in (*spec.inputs, *spec.outputs)]
            create_topics(admin, topics)
            own = {"bootstrap.servers": brokers, "state.dir": str(folder / name)}
            host.start(name, program, {**settings, **STREAMS, **own})
            try:
                host.wait_for(name, "STATE", "RUNNING")
            except JavaError as error:
                if _REFUSED not in str(error):
                    raise
            else:
                host.stop(name, leave=True)
    told = told_topologies(brokers)
    return [
        {"program": program, "optimized": optimized, "told": told[name].hex() if name in told else None}
        for name, (program, optimized) in groups.items()
    ]


if __name__ == "__main__":
    main()
