"""The way of a table's rows from the cache of its store straight into a topic, in the bytes that the store has made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from pykstreams.core.types import Headers

SerializedRecord: TypeAlias = tuple[bytes, bytes | None, int, Headers]
"""(key, value, timestamp in ms, headers); no value for a tombstone"""


@dataclass(frozen=True, slots=True)
class SerializedSink:
    """A sink that takes records which are serialized already.

    :param key_serializer: that of the sink; the keys it takes must have the bytes that this would write.
    :param value_serializer: the same for values.
    :param send: sends records in order.
    """

    key_serializer: object
    value_serializer: object
    send: Callable[[Iterable[SerializedRecord]], None]
