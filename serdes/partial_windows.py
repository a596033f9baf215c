"""Count windows that are not full, as their store keeps them, big-endian::

    size (4) | value

The value is written as by ``OptionalSerde``: it may be null, and has no bytes then.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from pykstreams.core.types import Decoder, Encoder, Headers
from pykstreams.core.windows import PartialWindow
from pykstreams.serdes.base import CompiledSerde, Serde, refused_bytes, refused_value
from pykstreams.serdes.optional import OptionalSerde

VA = TypeVar("VA")

_SIZE: Final = struct.Struct(">i")


@dataclass(frozen=True)
class PartialWindowSerde(CompiledSerde[PartialWindow[VA]], Generic[VA]):
    """The size and the value of a window, whose serde is the inner one.

    >>> from pykstreams.serdes import StringSerde
    >>> PartialWindowSerde(StringSerde()).serialize("topic", PartialWindow(2, "ab"))
    b'\\x00\\x00\\x00\\x02\\x01ab'
    """

    inner: Serde[VA]

    def encoder(self, topic: str) -> Encoder:
        encode_value = OptionalSerde(self.inner).encoder(topic)

        def encode(data: object, headers: Headers) -> bytes | None:
            if data is None:
                return None
            if not isinstance(data, PartialWindow):
                raise refused_value(repr(self), topic, data, "expected a PartialWindow")
            return _SIZE.pack(data.size) + (encode_value(data.value, headers) or b"")

        return encode

    def decoder(self, topic: str) -> Decoder:
        decode_value = OptionalSerde(self.inner).decoder(topic)

        def decode(data: bytes | None, headers: Headers) -> object:
            if data is None:
                return None
            if len(data) < _SIZE.size:
                raise refused_bytes(repr(self), topic, data, "expected a size and a value")
            return PartialWindow(_SIZE.unpack_from(data)[0], decode_value(data[_SIZE.size :], headers))

        return decode
