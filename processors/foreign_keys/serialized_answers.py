"""Answers of a foreign-key join in bytes: most of what they are made of was serialized before.

The key of an answer is in the subscription, its value in the right table's store, or made once for all that have
subscribed. So answers go straight into their topic where the serdes, whatever the topic, write the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from pykstreams.core.processor import OperatorContext
from pykstreams.core.types import Encoder, Headers
from pykstreams.processors.foreign_keys.foreign_key_serdes import ForeignKeySerdes
from pykstreams.serdes.base import AnySerde, bind_serializer, write_same_bytes
from pykstreams.serdes.subscription import SubscriptionResponseWrapperSerde, response_bytes

Answer: TypeAlias = Callable[[bytes, bytes | None, bytes, int, Headers, int | None], None]
"""(primary key, hash, value of the right row, timestamp in ms, headers, partition that asked); no value has no bytes"""


class SerializedAnswers(NamedTuple):
    """The way of answers into their topic.

    :param value_serde: that of the right table's values.
    :param encode_value: writes them.
    """

    answer: Answer
    value_serde: AnySerde
    encode_value: Encoder


def serialized_answers(serdes: ForeignKeySerdes, context: OperatorContext) -> SerializedAnswers | None:
    """Makes the way; ``None`` where somebody has to see answers, or the serdes might write other bytes."""
    sink, primary_key = context.serialized_sink, serdes.primary_key_serde(context)
    if sink is None or not isinstance(sink.value_serializer, SubscriptionResponseWrapperSerde):
        return None
    value = sink.value_serializer.value
    if not (write_same_bytes(primary_key, sink.key_serializer) and write_same_bytes(value, value)):
        return None
    send = sink.send_one

    def answer(
        primary_key: bytes, digest: bytes | None, value: bytes, timestamp: int, headers: Headers, partition: int | None
    ) -> None:
        send(primary_key, response_bytes(digest, value), timestamp, headers, partition)

    return SerializedAnswers(answer, value, bind_serializer(value, context.node))
