"""The text that is committed beside an offset: partition time and processor metadata, as in Kafka Streams.

Layout before base64 (``TopicPartitionMetadata.encode``, ``ProcessorMetadata.serialize``, 4.3.1), numbers
big-endian::

    1 byte   version, 2
    8 bytes  partition time in ms, -1 when unknown
    then, unless the metadata is empty:
    4 bytes  number of entries
    each     4 bytes length of the key, key in UTF-8, 8 bytes value

Version 1 ends after the partition time. Text that cannot be read counts as none, as in Kafka Streams: the
price is a stream time that starts anew, which is better than a task that cannot start. A NUL at the end is passed over:
``confluent_kafka`` writes one, and so did releases of ours (docs/decisions/0019-offset-metadata.md).
"""

from __future__ import annotations

import base64
import binascii
import logging
import struct
from collections.abc import Mapping

from pykstreams.topology.java.hash_order import hash_set_order

log = logging.getLogger(__name__)

UNKNOWN_TIME = -1

_HEAD = struct.Struct(">bq")
_COUNT = struct.Struct(">i")
_VALUE = struct.Struct(">q")
_VERSION = 2


class ProcessorMetadata:
    """Numbers that operators keep across restarts, such as the time at which windows were last emitted.

    Only values that were put since the last commit make a commit necessary; restored ones do not.
    """

    __slots__ = ("_values", "needs_commit")

    def __init__(self, values: Mapping[str, int] | None = None) -> None:
        self._values = dict(values or {})
        self.needs_commit = False

    def get(self, key: str) -> int | None:
        """Returns a number, ``None`` if nobody has put it."""
        return self._values.get(key)

    def put(self, key: str, value: int) -> None:
        """Keeps a number; it is committed with every input partition."""
        self._values[key] = value
        self.needs_commit = True

    def update(self, other: Mapping[str, int]) -> None:
        """Merges what is new or larger; a task's partitions may differ after a crash."""
        for key, value in other.items():
            known = self._values.get(key)
            if known is None or known < value:
                self._values[key] = value

    def values(self) -> Mapping[str, int]:
        """The entries, in the order in which they were first put."""
        return self._values


def encode(partition_time: int, metadata: Mapping[str, int]) -> str:
    """Returns the text for one partition.

    >>> encode(5, {})
    'AgAAAAAAAAAF'
    """
    parts = [_HEAD.pack(_VERSION, partition_time)]
    if metadata:
        parts.append(_COUNT.pack(len(metadata)))
        for key in hash_set_order(metadata):
            name = key.encode()
            parts += (_COUNT.pack(len(name)), name, _VALUE.pack(metadata[key]))
    return base64.b64encode(b"".join(parts)).decode("ascii")


def decode(text: str | None) -> tuple[int, dict[str, int]]:
    """Returns partition time and metadata; ``(-1, {})`` without text and, with a warning, for one not ours.

    >>> decode("AgAAAAAAAAAF")
    (5, {})
    """
    if not text:
        return UNKNOWN_TIME, {}
    try:
        data = base64.b64decode(text.removesuffix("\0"), validate=True)
        version, partition_time = _HEAD.unpack_from(data)
        if version not in (1, _VERSION):
            raise ValueError(f"version {version}")
        return partition_time, _entries(data[_HEAD.size :]) if version == _VERSION else {}
    except (ValueError, binascii.Error, struct.error) as error:
        log.warning(
            "metadata %r of a committed offset cannot be read (%s); its partition starts without a time",
            text,
            error,
        )
        return UNKNOWN_TIME, {}


def _entries(data: bytes) -> dict[str, int]:
    if not data:
        return {}
    (count,) = _COUNT.unpack_from(data)
    at = _COUNT.size
    found: dict[str, int] = {}
    for _ in range(count):
        (length,) = _COUNT.unpack_from(data, at)
        at += _COUNT.size
        name = data[at : at + length]
        if len(name) != length:
            raise ValueError(f"{len(name)} of {length} bytes of a name")
        at += length
        (found[name.decode()],) = _VALUE.unpack_from(data, at)
        at += _VALUE.size
    return found
