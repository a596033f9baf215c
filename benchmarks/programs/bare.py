"""The floor: the work of each workload as a loop over confluent-kafka, with nothing of a framework around it.

    python -m benchmarks.programs.bare NAME=VALUE...      (the fields of ``Job``)

State is written back at each commit, like Kafka Streams' record cache does, but without any limit: a dict in front
of RocksDB, whose entries become one write batch, changelog records and output.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from io import BytesIO
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from confluent_kafka import Consumer, Producer, TopicPartition, murmur2
from fastavro import parse_schema, schemaless_reader, schemaless_writer
from orjson import dumps, loads
from rocksdict import BlockBasedOptions, Cache, Options, Rdict, WriteBatch, WriteOptions

from benchmarks.programs.bare_join import JoinForeignKey
from benchmarks.programs.job import Job, Progress, report
from benchmarks.settings import EXACTLY_ONCE, PARTITIONS
from benchmarks.topics.avro_events import HEAD, SCHEMA
from benchmarks.topics.fill import Topics

Messages: TypeAlias = Iterable[Any]
"""Those of confluent_kafka, which types whatever a record may lack as optional."""

FETCH_SIZE = 2000


class Work(Protocol):
    """What a loop does with the records it gets."""

    topics: list[str]

    def process(self, messages: Messages) -> None: ...

    def flush(self) -> None: ...


class Sender:
    """Sends records, and waits when the queue is full."""

    def __init__(self, job: Job) -> None:
        self._in_transactions = job.guarantee == EXACTLY_ONCE
        transactions = {"transactional.id": job.application_id} if self._in_transactions else {}
        self.producer = Producer(
            {
                **transactions,
                "bootstrap.servers": job.brokers,
                "partitioner": "murmur2_random",
                "enable.idempotence": True,
                "linger.ms": int(job.linger_ms),
                "batch.size": int(job.batch_bytes),
                "queue.buffering.max.messages": 500_000,
                "queue.buffering.max.kbytes": 262_144,
            }
        )
        self._produce = self.producer.produce
        if self._in_transactions:
            self.producer.init_transactions()
            self.producer.begin_transaction()

    def commit(self, consumer: Consumer, offsets: list[TopicPartition]) -> None:
        """Waits until all is delivered, and commits the offsets with it or after it."""
        if self._in_transactions:
            self.producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata())
            self.producer.commit_transaction()
            self.producer.begin_transaction()
        else:
            self.producer.flush()
            consumer.commit(offsets=offsets, asynchronous=False)

    def __call__(self, topic: str, key: bytes | None, value: bytes, timestamp: int, partition: int = -1) -> None:
        while True:
            try:
                self._produce(topic, value, key, partition, None, None, timestamp)
                return
            except BufferError:
                self.producer.poll(0.02)


class FilterMapJson:
    """w1-json."""

    def __init__(self, job: Job, send: Sender) -> None:
        self.topics = [job.source]
        self._sink, self._send = job.sink, send

    def process(self, messages: Messages) -> None:
        send, sink = self._send, self._sink
        for message in messages:
            value = loads(message.value())
            if value["amount"] % 10 != 0:
                value["price"] = value["price"] * 2
                send(sink, message.key(), dumps(value), message.timestamp()[1])

    def flush(self) -> None:
        """Keeps nothing back."""


class FilterMapAvro:
    """w1-avro; there is one schema, so no registry is asked."""

    def __init__(self, job: Job, send: Sender) -> None:
        self.topics = [job.source]
        self._sink, self._send = job.sink, send
        self._schema = parse_schema(SCHEMA)

    def process(self, messages: Messages) -> None:
        send, sink, schema, behind = self._send, self._sink, self._schema, len(HEAD)
        for message in messages:
            data = BytesIO(message.value())
            data.seek(behind)
            value: Any = schemaless_reader(data, schema, None)
            if value["amount"] % 10 != 0:
                value["price"] = value["price"] * 2
                output = BytesIO(HEAD)
                output.seek(behind)
                schemaless_writer(output, schema, value)
                send(sink, message.key(), output.getvalue(), message.timestamp()[1])

    def flush(self) -> None:
        """Keeps nothing back."""


class FilterMapString:
    """w1-string."""

    def __init__(self, job: Job, send: Sender) -> None:
        self.topics = [job.source]
        self._sink, self._send = job.sink, send

    def process(self, messages: Messages) -> None:
        send, sink = self._send, self._sink
        for message in messages:
            value = message.value().decode()
            if value[9] != "0":
                send(sink, message.key(), value.upper().encode(), message.timestamp()[1])

    def flush(self) -> None:
        """Keeps nothing back."""


class _WriteBack:
    """A store with its changelog: aggregates as objects until ``flush``, as bytes below."""

    def __init__(
        self, job: Job, send: Sender, name: str, read: Callable[[bytes], Any], write: Callable[[Any], bytes]
    ) -> None:
        self._changelog = f"{job.application_id}-{name}-changelog"
        Topics(job.brokers).create(self._changelog, compacted=True)
        self._sink, self._send, self._read, self._write = job.sink, send, read, write
        self._store = open_store(job, name)
        self.dirty: dict[bytes, list[Any]] = {}
        """key -> [aggregate, partition, timestamp]"""

    def load(self, key: bytes) -> Any:
        stored = self._store.get(key)
        return None if stored is None else self._read(stored)

    def flush(self) -> None:
        batch, send, changelog, sink, write = (
            WriteBatch(raw_mode=True),
            self._send,
            self._changelog,
            self._sink,
            self._write,
        )
        for key, (aggregate, partition, timestamp) in self.dirty.items():
            value = write(aggregate)
            batch.put(key, value)
            send(changelog, key, value, timestamp, partition)
            send(sink, key, value, timestamp)
        self._store.write(batch)
        self.dirty.clear()


class Aggregate:
    """w2, w2-evicting, w2-many-keys and w2-exactly-once: this cache never evicts."""

    def __init__(self, job: Job, send: Sender) -> None:
        self.topics = [job.source]
        self._state = _WriteBack(job, send, "totals", loads, dumps)

    def flush(self) -> None:
        self._state.flush()

    def process(self, messages: Messages) -> None:
        dirty, load = self._state.dirty, self._state.load
        for message in messages:
            key, value = message.key(), loads(message.value())
            entry = dirty.get(key)
            if entry is None:
                dirty[key] = entry = [load(key) or {"count": 0, "sum": 0}, 0, 0]
            total = entry[0]
            total["count"] += 1
            total["sum"] += value["amount"]
            entry[1] = message.partition()
            entry[2] = message.timestamp()[1]


class AggregateUncached:
    """w2-uncached: every record reads and writes the store, its changelog and the output."""

    def __init__(self, job: Job, send: Sender) -> None:
        self.topics = [job.source]
        self._changelog = f"{job.application_id}-totals-changelog"
        Topics(job.brokers).create(self._changelog, compacted=True)
        self._store = open_store(job, "totals")
        self._sink, self._send = job.sink, send

    def process(self, messages: Messages) -> None:
        get, put, send, changelog, sink = self._store.get, self._store.put, self._send, self._changelog, self._sink
        for message in messages:
            key, value = message.key(), loads(message.value())
            stored = get(key)
            total = {"count": 0, "sum": 0} if stored is None else loads(stored)
            total["count"] += 1
            total["sum"] += value["amount"]
            updated, timestamp = dumps(total), message.timestamp()[1]
            put(key, updated)
            send(changelog, key, updated, timestamp, message.partition())
            send(sink, key, updated, timestamp)

    def flush(self) -> None:
        """Keeps nothing back."""


class Customers:
    """cogroup and cogroup-joins: three topics into one store, uncached."""

    def __init__(self, job: Job, send: Sender) -> None:
        self._names = {f"{job.source}-{number}": name for number, name in ((1, "first"), (2, "second"), (3, "third"))}
        self.topics = list(self._names)
        self._changelog = f"{job.application_id}-customers-changelog"
        Topics(job.brokers).create(self._changelog, compacted=True)
        self._store = open_store(job, "customers")
        self._sink, self._send = job.sink, send

    def process(self, messages: Messages) -> None:
        get, put, send, changelog, sink = self._store.get, self._store.put, self._send, self._changelog, self._sink
        names = self._names
        for message in messages:
            key, value = message.key(), loads(message.value())
            stored = get(key)
            customer = (
                {name: {"count": 0, "sum": 0} for name in ("first", "second", "third")}
                if stored is None
                else loads(stored)
            )
            total = customer[names[message.topic()]]
            total["count"] += 1
            total["sum"] += value["amount"]
            updated, timestamp = dumps(customer), message.timestamp()[1]
            put(key, updated)
            send(changelog, key, updated, timestamp, message.partition())
            send(sink, key, updated, timestamp)

    def flush(self) -> None:
        """Keeps nothing back."""


class CountByUser:
    """w3: the source and the repartition topic are read by the same loop, as one worker does."""

    def __init__(self, job: Job, send: Sender) -> None:
        self._repartition = f"{job.application_id}-by-user-repartition"
        Topics(job.brokers).create(self._repartition)
        self.topics = [job.source, self._repartition]
        self._send = send
        self._state = _WriteBack(
            job, send, "counts", lambda stored: int.from_bytes(stored, "big"), lambda count: count.to_bytes(8, "big")
        )

    def flush(self) -> None:
        self._state.flush()

    def process(self, messages: Messages) -> None:
        dirty, load, send, repartition = self._state.dirty, self._state.load, self._send, self._repartition
        for message in messages:
            data = message.value()
            value = loads(data)
            if message.topic() != repartition:
                send(repartition, value["user"].encode(), data, message.timestamp()[1])
                continue
            key = message.key()
            entry = dirty.get(key)
            if entry is None:
                dirty[key] = entry = [load(key) or 0, 0, 0]
            entry[0] += 1
            entry[1] = message.partition()
            entry[2] = message.timestamp()[1]


class CountByMinute:
    """w4: rows are kept by key and start of the window; the output is partitioned by the key alone."""

    def __init__(self, job: Job, send: Sender) -> None:
        self.topics = [job.source]
        self._changelog = f"{job.application_id}-counts-changelog"
        Topics(job.brokers).create(self._changelog, compacted=True)
        self._store = open_store(job, "counts")
        self._sink, self._send = job.sink, send
        self._dirty: dict[bytes, list[int]] = {}
        """key and window -> [count, partition, timestamp]"""

    def process(self, messages: Messages) -> None:
        dirty, get = self._dirty, self._store.get
        for message in messages:
            loads(message.value())
            timestamp = message.timestamp()[1]
            key = message.key() + (timestamp - timestamp % 60_000).to_bytes(8, "big")
            entry = dirty.get(key)
            if entry is None:
                stored = get(key)
                count = 0 if stored is None else int.from_bytes(stored, "big")
                dirty[key] = entry = [count, message.partition(), 0]
            entry[0] += 1
            entry[2] = timestamp

    def flush(self) -> None:
        batch, send, changelog, sink = WriteBatch(raw_mode=True), self._send, self._changelog, self._sink
        for key, (count, partition, timestamp) in self._dirty.items():
            value = count.to_bytes(8, "big")
            batch.put(key, value)
            send(changelog, key + b"\0\0\0\0", value, timestamp, partition)
            send(sink, key, value, timestamp, murmur2(key[:-8], PARTITIONS))
        self._store.write(batch)
        self._dirty.clear()


class JoinTable:
    """w5: the table is read to its end first, into RocksDB; its topic is also its changelog."""

    def __init__(self, job: Job, send: Sender) -> None:
        self.topics = [job.source]
        self._store = open_store(job, "customers")
        load(job, f"{job.source}-table", self._store)
        self._sink, self._send = job.sink, send

    def process(self, messages: Messages) -> None:
        get, send, sink = self._store.get, self._send, self._sink
        for message in messages:
            key, value = message.key(), loads(message.value())
            customer = get(key)
            if customer is not None:
                value["note"] = loads(customer)["name"]
                send(sink, key, dumps(value), message.timestamp()[1])

    def flush(self) -> None:
        """Keeps nothing back."""


WORK: dict[str, Callable[[Job, Sender], Work]] = {
    "w1-json": FilterMapJson,
    "w1-string": FilterMapString,
    "w1-avro": FilterMapAvro,
    "w2": Aggregate,
    "w2-evicting": Aggregate,
    "w2-uncached": AggregateUncached,
    "w2-many-keys": Aggregate,
    "w2-exactly-once": Aggregate,
    "w3": CountByUser,
    "w3-exactly-once": CountByUser,
    "w4": CountByMinute,
    "w5": JoinTable,
    "w6": lambda job, send: JoinForeignKey(job, send, open_store),
    "cogroup": Customers,
    "cogroup-joins": Customers,
}


def run(job: Job) -> None:
    """Consumes, works and commits until it is killed."""
    send = Sender(job)
    work = WORK[job.workload](job, send)
    progress = Progress(job.measured)
    consumer = _consumer(job)
    consumer.subscribe(work.topics)
    report(0)
    interval = int(job.commit_interval_ms) / 1000
    due = time.monotonic() + interval
    offsets: dict[tuple[str, int], int] = {}
    while True:
        messages: list[Any] = [message for message in consumer.consume(FETCH_SIZE, 0.1) if message.error() is None]
        if messages:
            work.process(messages)
            for message in messages:
                offsets[message.topic(), message.partition()] = message.offset() + 1
        send.producer.poll(0)
        if offsets and time.monotonic() >= due:
            work.flush()
            done = [(topic, partition, offset) for (topic, partition), offset in offsets.items()]
            send.commit(consumer, [TopicPartition(*each) for each in done])
            progress.committed(done)
            offsets.clear()
            due = time.monotonic() + interval


def restore(job: Job) -> None:
    """Reads a changelog into RocksDB, a write batch for each fetch."""
    store = open_store(job, "totals")
    report(load(job, f"{job.application_id}-totals-changelog", store, started=lambda: report(0)))


def load(job: Job, topic: str, store: Rdict, *, started: Callable[[], None] = lambda: None) -> int:
    """Reads a topic from its beginning to its end into a store; gives the number of records."""
    consumer = _consumer(job)
    wanted = sum(consumer.get_watermark_offsets(TopicPartition(topic, number))[1] for number in range(PARTITIONS))
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    loaded = 0
    started()
    while loaded < wanted:
        batch = WriteBatch(raw_mode=True)
        messages: Messages = consumer.consume(FETCH_SIZE, 0.1)
        for message in messages:
            if message.error() is None:
                batch.put(message.key(), message.value())
                loaded += 1
        store.write(batch)
    consumer.close()
    return loaded


def open_store(job: Job, name: str) -> Rdict:
    """RocksDB as Kafka Streams sets it up, without a log of its own: the changelog is the log."""
    table = BlockBasedOptions()
    table.set_block_cache(Cache(50 << 20))
    table.set_block_size(4096)
    table.set_bloom_filter(10, True)
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_write_buffer_size(16 << 20)
    options.set_max_write_buffer_number(3)
    options.set_block_based_table_factory(table)
    Path(job.state_dir).mkdir(parents=True, exist_ok=True)
    store = Rdict(str(Path(job.state_dir) / name), options)
    unlogged = WriteOptions()
    unlogged.disable_wal = True  # type: ignore[method-assign,assignment]  # typed as a method
    store.set_write_options(unlogged)
    return store


def _consumer(job: Job) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": job.brokers,
            "group.id": job.application_id,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "fetch.queue.backoff.ms": 1,
            "queued.min.messages": 20_000,
        }
    )


if __name__ == "__main__":
    given = Job.from_arguments(sys.argv[1:])
    if given.workload == "restore":
        restore(given)
    else:
        run(given)
