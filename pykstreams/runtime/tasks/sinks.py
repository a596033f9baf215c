"""Compiles a sink: serializers bound to the topic, partitioner, topic extractor, producer.

Four shapes, from fast to slow: a fixed topic without a partitioner, one with windowed keys, one with a partitioner, a
topic chosen per record. Behaviour: ``SinkNode.process`` and ``RecordCollectorImpl.send``, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, cast

from pykstreams.core.errors import WrongTypeError
from pykstreams.core.handlers import SerializationExceptionOrigin
from pykstreams.core.processor import CurrentRecord
from pykstreams.core.record import ProducerRecord, RecordContext
from pykstreams.core.serialized_sink import SendSerialized, SerializedRecord, SerializedSink
from pykstreams.core.types import Encoder, Forward, Headers, Produce, Sent, StreamPartitioner, TopicNameExtractor
from pykstreams.core.user_code.functions import describe_function
from pykstreams.runtime.tasks.collector import ANY_PARTITION, RecordCollector
from pykstreams.runtime.tasks.failures import Failures
from pykstreams.serdes.base import bind_serializer
from pykstreams.topology.placement.answer_partitioner import AnswerPartitioner
from pykstreams.topology.placement.windowed_partitioner import WindowedPartitioner

_Fail: TypeAlias = Callable[[Exception, object, object, int, Headers], None]
_Write: TypeAlias = Callable[[object, object, int, Headers, int], None]
"""Sends a record to one partition of one topic."""


class _SendTo(Protocol):
    """A ``Forward`` that takes the partition, too."""

    def __call__(
        self, key: object, value: object, timestamp: int, headers: Headers, partition: int = ..., /
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class Sink:
    """A sink of one task, before it is compiled.

    ``fail`` takes exceptions of the extractor, the partitioner and of serialization. With ``lets_go`` the raw key and
    value of the input record are forgotten when something is sent, and dead letters are written without them.
    """

    node: str
    key_serializer: object
    value_serializer: object
    collector: RecordCollector
    failures: Failures
    current: CurrentRecord
    drop: Callable[[str], None]
    fail: _Fail
    lets_go: bool
    around: Sequence[Callable[[Produce], Produce]] = ()
    """Wrap each way out one after the other, for what has to see each record that is sent."""

    def to_topic(self, topic: str, partitioner: StreamPartitioner[object, object] | None) -> Forward:
        """Returns the callable for a fixed topic."""
        write = self._writer(topic)
        if partitioner is not None:
            send_to_partition = self._partitioned(topic, partitioner, write)
            if isinstance(partitioner, WindowedPartitioner):
                return self._by_windowed_key(topic, partitioner.suffix_bytes, send_to_partition)
            return send_to_partition
        return self._to_partition(topic, write)

    def _to_partition(self, topic: str, write: _Write) -> _SendTo:
        """Returns the callable for a fixed topic and any partition of it; the client chooses where none is given."""
        encode_key = bind_serializer(self.key_serializer, topic)
        encode_value = bind_serializer(self.value_serializer, topic)
        (produce, wait), fail = self._ways_out(), self.fail
        refused, time_zero = self.collector.refused, self.collector.time_zero

        def send(key: object, value: object, timestamp: int, headers: Headers, partition: int = ANY_PARTITION) -> None:
            try:
                raw_key = encode_key(key, headers)
                raw_value = encode_value(value, headers)
            except Exception:
                raw_key = raw_value = None  # the error is left here, or it would show as the context of the next
            else:
                try:
                    produce(
                        topic,
                        raw_value,
                        raw_key,
                        partition,
                        None,
                        None,
                        timestamp or time_zero(),
                        list(headers) if headers else None,
                    )
                except BufferError:
                    wait(topic, raw_value, raw_key, partition, None, None, timestamp, headers)
                except Exception as error:
                    chosen = None if partition == ANY_PARTITION else partition
                    refused(error, ProducerRecord(topic, raw_key, raw_value, chosen, timestamp, headers))
                return
            try:  # once more, slowly, to find out which of the two it was
                write(key, value, timestamp, headers, partition)
            except Exception as error:
                fail(error, key, value, timestamp, headers)

        return send

    def _by_windowed_key(self, topic: str, suffix_bytes: int, slowly: Forward) -> Forward:
        """Chooses the partition by the bytes of the key that come before those of its window."""
        encode_key = bind_serializer(self.key_serializer, topic)
        encode_value = bind_serializer(self.value_serializer, topic)
        choose = self._by_key_alone(topic, suffix_bytes)
        (produce, wait), refused, time_zero = self._ways_out(), self.collector.refused, self.collector.time_zero

        def send(key: object, value: object, timestamp: int, headers: Headers) -> None:
            try:
                raw_key: Any = encode_key(key, headers)  # a null key fails below, and is for the slow way to tell
                raw_value = encode_value(value, headers)
                partition = choose(raw_key)
            except Exception:
                raw_key = raw_value = None  # the error is left here, or it would show as the context of the next
            else:
                try:
                    produce(
                        topic,
                        raw_value,
                        raw_key,
                        partition,
                        None,
                        None,
                        timestamp or time_zero(),
                        list(headers) if headers else None,
                    )
                except BufferError:
                    wait(topic, raw_value, raw_key, partition, None, None, timestamp, headers)
                except Exception as error:
                    refused(error, ProducerRecord(topic, raw_key, raw_value, partition, timestamp, headers))
                return
            slowly(key, value, timestamp, headers)

        return send

    def of_serialized(self, topic: str, partitioner: StreamPartitioner[object, object] | None) -> SerializedSink | None:
        """Returns the way into a fixed topic for records in bytes; ``None`` where a user's code would have to see them.

        Its errors are those of the client, and those of partitions that it is told and that the topic does not have;
        they go where those of ``to_topic`` go.
        """
        if self.lets_go:
            return None
        if partitioner is None or isinstance(partitioner, AnswerPartitioner):
            choose = None
        elif isinstance(partitioner, WindowedPartitioner):
            choose = self._by_key_alone(topic, partitioner.suffix_bytes)
        else:
            return None
        send, send_one = self._serialized_sender(topic, choose), self._one_serialized_sender(topic, choose, partitioner)
        return SerializedSink(self.key_serializer, self.value_serializer, send, send_one)

    def _serialized_sender(
        self, topic: str, choose: Callable[[bytes], int] | None
    ) -> Callable[[Iterable[SerializedRecord]], None]:
        produce, wait = self._ways_out()
        refused, time_zero = self.collector.refused, self.collector.time_zero

        def send(records: Iterable[SerializedRecord]) -> None:
            partition = ANY_PARTITION
            for key, value, timestamp, headers in records:
                if choose is not None:
                    partition = choose(key)
                try:
                    produce(
                        topic,
                        value,
                        key,
                        partition,
                        None,
                        None,
                        timestamp or time_zero(),
                        list(headers) if headers else None,
                    )
                except BufferError:
                    wait(topic, value, key, partition, None, None, timestamp, headers)
                except Exception as error:
                    chosen = None if partition == ANY_PARTITION else partition
                    refused(error, ProducerRecord(topic, key, value, chosen, timestamp, headers))

        return send

    def _one_serialized_sender(
        self, topic: str, choose: Callable[[bytes], int] | None, partitioner: Callable[..., object] | None
    ) -> SendSerialized:
        collector, checked, fail, node = self.collector, self._checked, self.fail, self.node
        produce, wait = self._ways_out()
        refused, time_zero = collector.refused, collector.time_zero
        partition_count, partitions_of = collector.partition_count, collector.partitions_of

        def send_one(key: bytes, value: bytes, timestamp: int, headers: Headers, told: int | None = None) -> None:
            try:
                if told is None:
                    partition = ANY_PARTITION if choose is None else choose(key)
                else:
                    count = partition_count(topic) or partitions_of(topic, node)
                    partition = told if 0 <= told < count else checked(told, topic, count, partitioner)
            except Exception as error:
                fail(error, key, value, timestamp, headers)
                return
            try:
                produce(
                    topic,
                    value,
                    key,
                    partition,
                    None,
                    None,
                    timestamp or time_zero(),
                    list(headers) if headers else None,
                )
            except BufferError:
                wait(topic, value, key, partition, None, None, timestamp, headers)
            except Exception as error:
                chosen = None if partition == ANY_PARTITION else partition
                refused(error, ProducerRecord(topic, key, value, chosen, timestamp, headers))

        return send_one

    def _by_key_alone(self, topic: str, suffix_bytes: int) -> Callable[[bytes], int]:
        """Returns the callable that chooses a partition by the bytes of a key that come before those of its window."""
        collector, node = self.collector, self.node
        partition_count, partitions_of = collector.partition_count, collector.partitions_of
        partition_for_key = collector.partition_for_key

        def choose(key: bytes) -> int:
            return partition_for_key(key[:-suffix_bytes], partition_count(topic) or partitions_of(topic, node))

        return choose

    def to_chosen_topic(
        self, extractor: TopicNameExtractor[object, object], partitioner: StreamPartitioner[object, object] | None
    ) -> Forward:
        """Returns the callable for a topic that is chosen per record."""
        current, fail = self.current, self.fail
        senders: dict[str, Forward] = {}

        def open_sender(topic: object) -> Forward:
            if not isinstance(topic, str):
                raise TypeError(f"topic extractor {describe_function(extractor)} gave {topic!r}; expected a topic name")
            sender = senders[topic] = self.to_topic(topic, partitioner)
            return sender

        def send(key: object, value: object, timestamp: int, headers: Headers) -> None:
            try:
                context = current.context
                topic = extractor(key, value, _as_seen(context, timestamp, headers))
                try:
                    sender = senders.get(topic)
                except TypeError:  # it has no hash, and is no text
                    sender = None
                if sender is None:
                    sender = open_sender(topic)
            except Exception as error:
                fail(error, key, value, timestamp, headers)
                return
            sender(key, value, timestamp, headers)

        return send

    def _partitioned(self, topic: str, partitioner: StreamPartitioner[object, object], write: _Write) -> Forward:
        collector, fail, node, drop = self.collector, self.fail, self.node, self.drop
        send_to = self._to_partition(topic, write)
        partition_count, partitions_of = collector.partition_count, collector.partitions_of
        checked = self._checked

        def send_elsewhere(
            chosen: object, count: int, key: object, value: object, timestamp: int, headers: Headers
        ) -> None:
            if chosen is None:
                write(key, value, timestamp, headers, ANY_PARTITION)
            elif isinstance(chosen, int):
                write(key, value, timestamp, headers, checked(chosen, topic, count, partitioner))
            else:
                try:
                    partitions = _in_order(cast("Collection[int]", chosen))
                except TypeError as error:
                    raise TypeError(
                        f"partitioner {describe_function(partitioner)} chose {chosen!r} for topic {topic!r}; expected "
                        f"a number from 0 to {count - 1}, several of them, or None"
                    ) from error
                if not partitions:
                    drop(f"the partitioner chose no partition of topic {topic!r}")
                for partition in partitions:
                    write(key, value, timestamp, headers, checked(partition, topic, count, partitioner))

        def send(key: object, value: object, timestamp: int, headers: Headers) -> None:
            try:
                count = partition_count(topic) or partitions_of(topic, node)
                chosen = partitioner(topic, key, value, count)
                if chosen.__class__ is not int or not 0 <= chosen < count:
                    send_elsewhere(chosen, count, key, value, timestamp, headers)
                    return
            except Exception as error:
                fail(error, key, value, timestamp, headers)
                return
            send_to(key, value, timestamp, headers, chosen)

        return send

    def _checked(self, chosen: object, topic: str, count: int, partitioner: Callable[..., object] | None) -> int:
        if isinstance(chosen, int) and chosen >= 0 and (chosen < count or self.collector.one_record_at_a_time):
            return chosen
        named = None if partitioner is None else describe_function(partitioner)
        raise ValueError(
            f"partitioner {named} chose partition {chosen!r} of topic {topic!r}; expected a number from 0 to "
            f"{count - 1}"
        )

    def _writer(self, topic: str) -> _Write:
        encode_key = bind_serializer(self.key_serializer, topic)
        encode_value = bind_serializer(self.value_serializer, topic)
        (_, send), refused = self._ways_out(), self.collector.refused

        def write(key: object, value: object, timestamp: int, headers: Headers, partition: int) -> None:
            raw: list[bytes | None] = []
            steps: tuple[tuple[Encoder, object, SerializationExceptionOrigin], ...] = (
                (encode_key, key, SerializationExceptionOrigin.KEY),
                (encode_value, value, SerializationExceptionOrigin.VALUE),
            )
            for encode, data, origin in steps:
                try:
                    raw.append(encode(data, headers))
                except Exception as error:
                    chosen = None if partition == ANY_PARTITION else partition
                    record = ProducerRecord(topic, key, value, chosen, timestamp, headers)
                    if isinstance(error, WrongTypeError):
                        raise self.failures.wrong_type(self.node, record, error, origin) from error
                    self.failures.unserializable(self.node, record, error, origin)
                    return
            raw_key, raw_value = raw
            try:
                send(topic, raw_value, raw_key, partition, None, None, timestamp, headers)
            except Exception as error:
                refused(error, ProducerRecord(topic, raw_key, raw_value, partition, timestamp, headers))

        return write

    def _ways_out(self) -> tuple[Produce, Produce]:
        """``produce`` of the client, and what waits while there is no room."""
        produce: Produce = self.collector.produce
        wait: Produce = self._wait_for_room
        for wrap in self.around:
            produce, wait = wrap(produce), wrap(wait)
        return (self._letting_go(produce), self._letting_go(wait)) if self.lets_go else (produce, wait)

    def _wait_for_room(self, *sent: *Sent) -> None:
        topic, value, key, partition, _, _, timestamp, headers = sent
        self.collector.produce_when_there_is_room(topic, value, key, partition, timestamp, headers or ())

    def _letting_go(self, send: Produce) -> Produce:
        let_go = self.current.let_go

        def send_and_let_go(*sent: *Sent) -> None:
            let_go()
            send(*sent)

        return send_and_let_go


def _as_seen(context: RecordContext | None, timestamp: int, headers: Headers) -> RecordContext:
    """The context that a topic extractor gets: where the input came from, time and headers of this record."""
    if context is None:
        return RecordContext(None, -1, -1, timestamp, headers)
    return RecordContext(context.topic, context.partition, context.offset, timestamp, headers)


def _in_order(partitions: Collection[int]) -> Collection[int]:
    """Each partition once; those of a set ascending, so that the order is the same in every process."""
    if isinstance(partitions, set | frozenset):
        return sorted(partitions)
    return cast("Collection[int]", dict.fromkeys(partitions))
