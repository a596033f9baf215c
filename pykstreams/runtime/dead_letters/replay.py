"""Reads the letters of a topic, and sends them again: each transaction holds letters and the news that they were sent.

Invariant: a letter that the group of a replay knows to be replayed is never sent again by that group, whatever crashes,
and however often the program is started.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pykstreams.core.clock import SystemClock
from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ClusterError, MissingSinkTopicError, MissingSourceTopicError, StreamsError
from pykstreams.core.ids import TopicPartition
from pykstreams.core.names import similar_name
from pykstreams.runtime.clients.admin import TOOL_PATIENCE_S, ClusterAdmin
from pykstreams.runtime.clients.consumers.group_consumer import GroupConsumer
from pykstreams.runtime.clients.consumers.snapshot import read_partition
from pykstreams.runtime.clients.partitioner import partition_for_key
from pykstreams.runtime.clients.producer import WorkerProducer
from pykstreams.runtime.dead_letters.letters import DeadLetter, Selection
from pykstreams.runtime.dead_letters.progress import Replayed

log = logging.getLogger(__name__)

_AT_ONCE: Final = 500
"""How many letters one transaction holds."""
_START_S: Final = 30.0
_LOOK_S: Final = 2.0
_LOOKS: Final = 15


@dataclass(frozen=True, slots=True)
class Letters:
    """The letters that a topic has when it is looked at.

    :param config: names brokers and group (``application.id``).
    :param embedded: whether the cluster is an embedded one, which knows no members of groups.
    """

    config: StreamsConfig
    topic: str
    begins: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    partition_counts: Mapping[str, int]
    embedded: bool = False

    @classmethod
    def of(cls, config: StreamsConfig, topic: str) -> Letters:
        """Looks; ``MissingSourceTopicError`` when there is no such topic, ``ClusterError`` when nobody answers soon."""
        admin = ClusterAdmin.open(config.client_supplier, config, f"{config.application_id}-admin", SystemClock())
        admin.wait_until_reachable(at_most_s=TOOL_PATIENCE_S)
        counts = admin.partition_counts()
        if topic not in counts:
            raise MissingSourceTopicError(
                f"topic {topic!r} does not exist on {admin.bootstrap}{_hint(topic, counts)}; correct its name"
            )
        places = [TopicPartition(topic, partition) for partition in range(counts[topic])]
        begins, ends = admin.beginning_offsets(places), admin.end_offsets(places)
        return cls(config, topic, begins, ends, counts, admin.embedded)

    def of_partition(self, place: TopicPartition) -> Iterator[DeadLetter]:
        """Yields those of one partition, in order."""
        begin, end = self.begins[place], self.ends[place]
        for messages in read_partition(self.config.client_supplier, self.config, place, begin, end):
            yield from map(DeadLetter.of, messages)

    def __iter__(self) -> Iterator[DeadLetter]:
        for place in self.begins:
            yield from self.of_partition(place)


class Replay:
    """Sends the letters of a topic that are meant, and that its group has not replayed yet.

    :param to: the topic to send them to; ``None`` for the one where each was read.
    :param tell: called with each letter, and where it goes; ``None`` for one that has no topic to go to.
    """

    def __init__(
        self,
        letters: Letters,
        selection: Selection,
        to: str | None,
        tell: Callable[[DeadLetter, str | None], None],
    ) -> None:
        self._letters = letters
        self._selection = selection
        self._to = to
        self._tell = tell
        if to is not None:
            self._check(to)

    def look(self) -> None:
        """Reports what would be sent."""
        with _Group(self._letters) as group:
            for place in self._letters.begins:
                for letter in self._meant(place, group.replayed(place)):
                    self._tell(letter, self._target(letter))

    def send(self) -> None:
        """Sends; ``ClusterError`` when a transaction fails, of which nothing was sent then."""
        config = self._letters.config
        group_id = config.application_id
        producer = WorkerProducer.open_for_one_transaction(
            config.client_supplier, config, f"{group_id}-producer", transactional_id=group_id
        )
        try:
            producer.start_transactions(_START_S)  # a replay that was killed is over then, and its offsets are known
            with _Group(self._letters) as group:
                for place in self._letters.begins:
                    self._send(producer, group, place)
        finally:
            producer.discard()

    def _send(self, producer: WorkerProducer, group: _Group, place: TopicPartition) -> None:
        replayed = group.replayed(place)
        batch: list[tuple[DeadLetter, str]] = []
        for letter in self._meant(place, replayed):
            target = self._target(letter)
            if target is None:
                self._tell(letter, None)
                continue
            batch.append((letter, target))
            if len(batch) == _AT_ONCE:
                self._transact(producer, group, place, replayed, batch)
                batch = []
        if batch:
            self._transact(producer, group, place, replayed, batch)

    def _transact(
        self,
        producer: WorkerProducer,
        group: _Group,
        place: TopicPartition,
        replayed: Replayed,
        batch: list[tuple[DeadLetter, str]],
    ) -> None:
        for letter, _ in batch:
            replayed.add(letter.offset, letter.offset + 1)
        committed = replayed.committed()
        producer.begin()
        try:
            for letter, target in batch:
                self._produce(producer, letter, target)
            producer.commit({place: committed}, group.transaction_metadata())
        except StreamsError as error:
            producer.abort()
            raise ClusterError(
                f"{len(batch)} letters of {place}, from offset {batch[0][0].offset} on, were not replayed: {error}; "
                "start the replay again, which goes on there"
            ) from error
        for letter, target in batch:
            self._tell(letter, target)

    def _produce(self, producer: WorkerProducer, letter: DeadLetter, target: str) -> None:
        time = max(letter.timestamp, 1)  # the client takes 0 for "now"
        while True:
            try:
                producer.produce(
                    target,
                    letter.value,
                    letter.key,
                    self._partition(letter, target),
                    timestamp=time,
                    headers=list(letter.headers_of_replay()),
                )
                return
            except BufferError:
                producer.poll(_LOOK_S)

    def _partition(self, letter: DeadLetter, target: str) -> int:
        """The partition where the record was read, or else that of its key."""
        count = self._letters.partition_counts[target]
        found = letter.source_partition
        if target == letter.source_topic and found is not None and 0 <= found < count:
            return found
        return -1 if letter.key is None else partition_for_key(letter.key, count)

    def _target(self, letter: DeadLetter) -> str | None:
        target = self._to or letter.source_topic
        if target is not None:
            self._check(target)
        return target

    def _check(self, topic: str) -> None:
        if topic not in self._letters.partition_counts:
            near = _hint(topic, self._letters.partition_counts)
            raise MissingSinkTopicError(
                f"topic {topic!r}, to which letters of {self._letters.topic!r} are to be sent, does not exist{near}; "
                "create it, or send them elsewhere with --to TOPIC"
            )

    def _meant(self, place: TopicPartition, replayed: Replayed) -> Iterator[DeadLetter]:
        """Yields what is to be sent; notes on the way the offsets at which there is no letter."""
        behind = 0
        for letter in self._letters.of_partition(place):
            replayed.add(behind, letter.offset)
            behind = letter.offset + 1
            if not replayed.has(letter.offset) and self._selection.has(letter):
                yield letter


class _Group:
    """The group that knows what was replayed."""

    def __init__(self, letters: Letters) -> None:
        self._letters = letters
        config = letters.config
        self._consumer = GroupConsumer.open(config.client_supplier, config, f"{config.application_id}-group")

    def __enter__(self) -> _Group:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close(leave=True)

    def replayed(self, place: TopicPartition) -> Replayed:
        """The offsets of a partition that were replayed."""
        for _ in range(_LOOKS):
            committed = self._consumer.committed([place], _LOOK_S)
            if committed is not None:
                return Replayed(*committed.get(place, (0, "")))
            self._consumer.poll(0.1)
        raise ClusterError(
            f"what group {self._letters.config.application_id!r} has replayed of {place} could not be read within "
            f"{_LOOKS * _LOOK_S:g} s; look at the brokers"
        )

    def transaction_metadata(self) -> bytes:
        """The group as a transaction takes it."""
        return self._consumer.transaction_metadata()


def _hint(topic: str, existing: Collection[str]) -> str:
    """A topic whose name is nearly the same, as part of a message."""
    near = similar_name(topic, [name for name in existing if not name.startswith("__")])
    return "" if near is None else f" (did you mean {near!r}?)"
