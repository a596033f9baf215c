"""The way into a topic for records that are serialized already, such as the rows of a table as its store has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from pykstreams.core.types import Headers

SerializedRecord: TypeAlias = tuple[bytes, bytes | None, int, Headers]
"""(key, value, timestamp in ms, headers); no value for a tombstone"""


class SendSerialized(Protocol):
    """Sends one record; where no partition is given, to the one that the sink chooses."""

    def __call__(
        self, key: bytes, value: bytes, timestamp: int, headers: Headers, partition: int | None = None, /
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class SerializedSink:
    """A sink that takes records which are serialized already.

    :param key_serializer: that of the sink; the keys it takes must have the bytes that this would write.
    :param value_serializer: the same for values.
    :param send: sends records in order.
    :param send_one: sends one.
    """

    key_serializer: object
    value_serializer: object
    send: Callable[[Iterable[SerializedRecord]], None]
    send_one: SendSerialized
