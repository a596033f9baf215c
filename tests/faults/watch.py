"""Looks at results as they become readable: for gaps, and for the end."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.brokers.offsets import committed
from tests.brokers.records import key_of, partition_of, topic_of, value_of
from tests.faults.applications import Application
from tests.faults.silence import Gaps
from tests.faults.topics import PARTITIONS, Output, number_of

_ASK_S = 20.0


class Watch:
    """A thread with a plain consumer that reads what is committed."""

    def __init__(self, bootstrap_servers: str, wanted: Sequence[Application]) -> None:
        self.gaps = Gaps()
        self._applications = {one.name: one for one in wanted}
        self._topics = {output.topic(one.name): (one.name, output) for one in wanted for output in one.outputs}
        self._highest: dict[tuple[str, Output], Counter[str]] = {of: Counter() for of in self._topics.values()}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._settings = {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "watch",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "fetch.queue.backoff.ms": 5,
            "reconnect.backoff.max.ms": 500,
            "socket.timeout.ms": 6000,
            "topic.metadata.refresh.interval.ms": 1000,
            "log_level": 0,
        }
        self._consumer = Consumer(self._settings)

    def start(self) -> None:
        self._consumer.assign(
            [TopicPartition(topic, number, 0) for topic in self._topics for number in range(PARTITIONS)]
        )
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
            self._consumer.close()

    def input(self, output: Output, partition: int) -> None:
        """There is input for a partition of an output of every application."""
        owing = [name for name, one in self._applications.items() if output in one.outputs]
        self.gaps.input([(name, output, partition) for name in owing], time.time())

    def has_results(self, application: str) -> bool:
        """Whether each output of an application has got something."""
        outputs = [output for output in self._applications[application].outputs if output is not Output.RATED]
        return all(self._highest[application, output] for output in outputs)

    def behind(self, application: str, expected: Mapping[Output, Mapping[str, int]]) -> list[str]:
        """Which outputs have not come as far as they must, and how many of their keys."""
        found = []
        for output in self._applications[application].judged:
            counts = expected[output]
            highest = self._highest[application, output]
            low = sum(highest[key] < count for key, count in counts.items())
            if low:
                found.append(f"{output}: {low} of {len(counts)} keys")
        return found

    def unread(self, application: str) -> list[str]:
        """Which partitions of its inputs an application has not read to the end, by what it has committed."""
        reader = Consumer({**self._settings, "group.id": application})
        try:
            return self._unread(reader, self._applications[application].inputs)
        except KafkaException as error:
            return [str(error)]
        finally:
            reader.close()

    def explain(self, application: str) -> list[str]:
        """What an application that does not finish has not read, and which of its topics a transaction holds up."""
        settled = Consumer({**self._settings, "group.id": application})
        written = Consumer({**self._settings, "group.id": application, "isolation.level": "read_uncommitted"})
        try:
            known = settled.list_topics(timeout=_ASK_S).topics
            own = sorted(name for name in known if name.startswith(f"{application}-"))
            between = [name for name in own if name.endswith(("-repartition", "-topic"))]
            found = self._unread(settled, [*self._applications[application].inputs, *between])
            for place in (TopicPartition(name, number) for name in own for number in known[name].partitions):
                stable, end = (one.get_watermark_offsets(place, timeout=_ASK_S)[1] for one in (settled, written))
                if stable != end:
                    found.append(f"{place.topic}-{place.partition} is stable up to {stable} of {end}")
        finally:
            settled.close()
            written.close()
        return found

    def _unread(self, reader: Consumer, topics: Sequence[str]) -> list[str]:
        found = []
        places = [TopicPartition(name, number) for name in topics for number in range(PARTITIONS)]
        for place in committed(reader, places):
            end = reader.get_watermark_offsets(place, timeout=_ASK_S)[1]
            if max(place.offset, 0) != end:
                found.append(f"{place.topic}-{place.partition} is read up to {place.offset} of {end}")
        return found

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                messages = self._consumer.consume(1000, 0.2)
            except KafkaException:  # brokers are away; it goes on when they are back
                continue
            now = time.time()
            for message in messages:
                if message.error() is not None:
                    continue
                name, output = self._topics[topic_of(message)]
                self.gaps.result((name, output, partition_of(message)), now)
                key, value = key_of(message).decode(), value_of(message)
                highest = self._highest[name, output]
                highest[key] = max(highest[key], number_of(output, value))
