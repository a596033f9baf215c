"""Partitions windowed keys by the key alone, so that all windows of a key are in the partition of the key.

Kafka Streams chooses so where a stream is written with a windowed serializer and without a partitioner
(``WindowedStreamPartitioner``, 4.3.1).
"""

from __future__ import annotations

from typing import Any, Final, cast

from pykstreams.core.hashing import partition_for_key
from pykstreams.core.types import Encoder, K
from pykstreams.serdes.base import bind_serializer
from pykstreams.serdes.windowed import SessionWindowedSerializer, TimeWindowedSerializer

_TIME_BYTES: Final = 8


class WindowedPartitioner:
    """A partitioner ``(topic, windowed key, value, number of partitions) -> partition``.

    The key alone is what comes before the last ``suffix_bytes`` of a serialized key: sinks know, and hash those bytes
    without serializing the key again.
    """

    def __init__(self, serializer: TimeWindowedSerializer[K] | SessionWindowedSerializer[K]) -> None:
        self.suffix_bytes = _TIME_BYTES if isinstance(serializer, TimeWindowedSerializer) else 2 * _TIME_BYTES
        self._inner = serializer.inner
        self._encoders: dict[str, Encoder] = {}

    def __call__(self, topic: str, key: Any, value: object, partitions: int) -> int:
        encode = self._encoders.get(topic)
        if encode is None:
            encode = self._encoders[topic] = bind_serializer(self._inner, topic)
        return partition_for_key(cast("bytes", encode(key.key, ())), partitions)


def windowed_partitioner(key_serializer: object) -> WindowedPartitioner | None:
    """The partitioner for keys that this serializer writes, ``None`` where it writes no windowed keys."""
    if isinstance(key_serializer, TimeWindowedSerializer | SessionWindowedSerializer):
        return WindowedPartitioner(key_serializer)
    return None
