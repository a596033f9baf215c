"""Applications of one topology over the same input topics: one reads all records, others start from a bootstrap.

What they hold and what they have sent is compared when nothing is left to read. Each has output topics, workers and
state directories of its own.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from pykstreams.bulk.application import Application
from pykstreams.core.ids import TaskId
from pykstreams.state.bulk.manifest import content_hash, read
from pykstreams.state.bulk.offline import OfflineStore
from pykstreams.state.bulk.take_over import StoreToMake, take_over
from pykstreams.state.directory.state_directory import application_folder
from pykstreams.state.interfaces.engine import Row
from tests.brokers.brokers import create_topic
from tests.brokers.offsets import committed
from tests.brokers.producers import producer_in_order
from tests.integration.workers import Workers

PARTITIONS = 4

Record: TypeAlias = tuple[str, str, str | None, int]
"""(topic, key, value, timestamp)"""

Shown: TypeAlias = Callable[[OfflineStore], Iterable[Row]]
"""What counts of a store whose rows are not equal byte by byte."""


@dataclass
class Twin(Workers):
    """One of the applications.

    :param owner: the one whose input topics it reads.
    :param inputs: the names of these topics.
    """

    owner: str = ""
    inputs: Collection[str] = ()

    def topic(self, name: str) -> str:
        return f"{self.owner if name in self.inputs else self.name}-{name}"

    @cached_property
    def application(self) -> Application:
        """The same, as a job sees it."""
        return Application(str(self.folder / "application.py"), self.settings_of())

    @property
    def tasks(self) -> int:
        return len(self.application.plan.subtopologies) * PARTITIONS

    def settings_of(self) -> dict[str, object]:
        pairs = dict(setting.split("=", 1) for setting in self.settings)
        ids = {"application.id": self.name, "bootstrap.servers": self.brokers, "app.prefix": self.name}
        return {**ids, **pairs}

    def wait_for_tasks(self) -> None:
        """Waits until its workers run all tasks."""
        self.wait("all tasks run", lambda: self.running_tasks() == self.tasks)

    def stop(self, worker: str) -> None:
        """Stops a worker, which may be another machine's from then on."""
        super().stop(worker)
        del self.processes[worker]

    def read_all(self) -> None:
        """Waits until it has read everything, and nothing is under way between its sub-topologies."""
        self.wait("everything is read", self._is_read)

    def _is_read(self) -> bool:
        plan = self.application.plan
        own = {topic for part in plan.subtopologies for topic in part.repartition_topics}
        topics = {*own, *map(self.topic, self.inputs)}
        places = [TopicPartition(topic, number) for topic in sorted(topics) for number in range(PARTITIONS)]
        before, committed, after = self._ends(places), self._committed(places), self._ends(places)
        return before == after and all(end in (0, offset) for end, offset in zip(after, committed, strict=True))

    def _ends(self, places: list[TopicPartition]) -> list[int]:
        asked: dict[TopicPartition, OffsetSpec] = dict.fromkeys(places, OffsetSpec.latest())
        return [done.result(60).offset for done in self._admin.list_offsets(asked).values()]

    def _committed(self, places: list[TopicPartition]) -> list[int]:
        consumer = self._reader(self.name)
        try:
            return [place.offset for place in committed(consumer, places)]
        finally:
            consumer.close()

    @cached_property
    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.brokers})

    def write(self, records: Iterable[Record]) -> None:
        """Writes records with timestamps of their own."""
        settings = {"linger.ms": 50, "partitioner": "murmur2_random", "queue.buffering.max.messages": 200_000}
        producer = producer_in_order(self.brokers, settings)
        for topic, key, value, timestamp in records:
            while True:
                try:
                    producer.produce(self.topic(topic), value, key=key, timestamp=timestamp)
                    break
                except BufferError:
                    producer.poll(1)
        assert producer.flush(60) == 0

    def stores(self, machine: str = "one", shown: Mapping[str, Shown] | None = None) -> dict[tuple[str, int], object]:
        """How many rows each store of each task has on a machine that has stopped, and their hash."""
        state = application_folder(self.folder / machine, self.name)
        return self._hashes(lambda task: state / str(task), shown or {})

    def stores_of_bootstrap(
        self, bootstrap: Path, shown: Mapping[str, Shown] | None = None
    ) -> dict[tuple[str, int], object]:
        """The same of a bootstrap."""

        def taken_over(task: TaskId) -> Path:
            folder = self.folder / "taken-over" / str(task)
            part = next(part for part in self.application.plan.subtopologies if part.id == task.subtopology)
            files = read(bootstrap).task_files(task)
            stores = [StoreToMake(part.stores[name], found, 0, None) for name, found in files.items()]
            take_over(folder, task, bootstrap, stores, self.application.config, "mark")
            return folder

        return self._hashes(taken_over, shown or {})

    def _hashes(self, folder_of: Callable[[TaskId], Path], shown: Mapping[str, Shown]) -> dict[tuple[str, int], object]:
        hashes: dict[tuple[str, int], object] = {}
        for part in self.application.plan.subtopologies:
            for partition in range(PARTITIONS if part.stores else 0):
                task = TaskId(part.id, partition)
                folder = folder_of(task)
                for name, builder in part.stores.items():
                    with OfflineStore.in_folder(builder, task, self.application.config, folder) as store:
                        rows = list(shown.get(name, OfflineStore.engine_rows)(store))
                    hashes[name, partition] = len(rows), content_hash(rows)
        return hashes

    def outputs(self, topics: Iterable[str]) -> dict[str, dict[str, bytes]]:
        """The last value of each key; to have been deleted is to have none, whether it was ever there or not."""
        return {
            topic: {key: value for key, value in values.items() if value is not None}
            for topic, values in self.last_values(topics).items()
        }


@dataclass
class Twins:
    """Makes them: all run the same script.

    :param script: builds the topology; ``app.inputs`` and ``app.prefix`` are what names of topics begin with.
    """

    brokers: str
    folder: Path
    make_name: Callable[[str], str]
    script: str
    inputs: Collection[str]
    outputs: Collection[str]
    patience_s: float
    made: list[Twin] = field(default_factory=list)

    def make(self, kind: str) -> Twin:
        """Makes one with its output topics; the first one has the input topics, too."""
        name = self.make_name(kind)
        owner = self.made[0].name if self.made else name
        folder = self.folder / name
        folder.mkdir()
        (folder / "application.py").write_text(textwrap.dedent(self.script))
        settings = (
            f"app.inputs={owner}",
            "statestore.cache.max.bytes=0",
            "consumer.auto.offset.reset=earliest",
            "producer.linger.ms=5",  # jobs write a little to each of many changelogs
        )
        twin = Twin(
            self.brokers,
            name,
            folder,
            self.script,
            PARTITIONS,
            settings,
            patience_s=self.patience_s,
            owner=owner,
            inputs=self.inputs,
        )
        for topic in (*self.outputs, *(() if self.made else self.inputs)):
            create_topic(self.brokers, twin.topic(topic), partitions=PARTITIONS)
        self.made.append(twin)
        return twin

    def end(self) -> None:
        for twin in self.made:
            twin.end()


def waiting(store: OfflineStore) -> Iterator[Row]:
    """Which records wait for others; their numbers, which end the keys, have a gap where a store was opened again."""
    for key, value in store.engine_rows():
        yield key[:-4], value


def subscriptions(store: OfflineStore) -> Iterator[Row]:
    """Who has asked for what. Which kind of answer the last message wanted depends on who was faster, in a stream, too:
    where an answer has come too late the row is asked for anew, and in any case.
    """
    for row in store.rows():
        yield repr(row.key).encode(), repr((row.value.hash, row.value.primary_key, row.timestamp)).encode()
