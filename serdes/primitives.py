"""Serdes of numbers, text, bytes and UUIDs, with the bytes of Kafka's own serializers (clients 4.3.1).

Layouts: integers and floats are big-endian (short 2 bytes, integer and float 4, long and double 8); a boolean
is one byte, 01 or 00; text is its encoding without a length; a UUID is its 36 characters. A ``None`` has no
bytes.
"""

from __future__ import annotations

import codecs
import re
import struct
import uuid
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Final, TypeVar

from pykstreams.core.errors import ConfigError, SerdeError
from pykstreams.core.types import ColumnReader, Decoder, Encoder, Headers
from pykstreams.serdes.base import CompiledSerde, EncoderOf, refused_bytes, refused_text, refused_value, wrong_type

T = TypeVar("T")

_SHORT = struct.Struct(">h")
_INTEGER = struct.Struct(">i")
_LONG = struct.Struct(">q")
_FLOAT = struct.Struct(">f")
_DOUBLE = struct.Struct(">d")
_FIRST: Final = itemgetter(0)
_NO_NUMBER: Final = (struct.error, OverflowError, TypeError, ValueError)
_NAN: Final = bytes.fromhex("7ff8000000000000")

_UUID_GROUPS = re.compile("([0-9a-fA-F]+)-([0-9a-fA-F]+)-([0-9a-fA-F]+)-([0-9a-fA-F]+)-([0-9a-fA-F]+)")
_UUID_BITS = (32, 16, 16, 16, 48)


class _OutOfRangeError(SerdeError, OverflowError):
    """A number that does not fit; a ``SerializationError`` for handlers, an ``OverflowError`` for callers."""


class _PrimitiveSerde(CompiledSerde[T]):
    """A serde that passes over the topic."""

    def writes_as(self, other: object) -> bool:
        return self._is_of_this_module and self == other

    def column_reader(self) -> ColumnReader | None:
        return self._column_reader() if self._is_of_this_module else None

    def _column_reader(self) -> ColumnReader | None:
        return None

    @property
    def _is_of_this_module(self) -> bool:
        """Whether it writes and reads what its class says; a user's subclass may do something else."""
        return type(self).__module__ == __name__


@dataclass(frozen=True)
class ShortSerde(_PrimitiveSerde[int]):
    """2-byte integers; ``OverflowError`` outside of -32,768 to 32,767."""

    width = 2

    def encoder(self, topic: str) -> Encoder:
        return _number_encoder(_SHORT, self, topic, "an int from -2**15 to 2**15 - 1")

    def decoder(self, topic: str) -> Decoder:
        return _number_decoder(_SHORT, self, topic)

    def _column_reader(self) -> ColumnReader:
        return _number_reader(_SHORT)


@dataclass(frozen=True)
class IntegerSerde(_PrimitiveSerde[int]):
    """4-byte integers; ``OverflowError`` outside of -2**31 to 2**31 - 1."""

    width = 4

    def encoder(self, topic: str) -> Encoder:
        return _number_encoder(_INTEGER, self, topic, "an int from -2**31 to 2**31 - 1")

    def decoder(self, topic: str) -> Decoder:
        return _number_decoder(_INTEGER, self, topic)

    def _column_reader(self) -> ColumnReader:
        return _number_reader(_INTEGER)


@dataclass(frozen=True)
class LongSerde(_PrimitiveSerde[int]):
    """8-byte integers; ``OverflowError`` outside of -2**63 to 2**63 - 1."""

    width = 8

    def encoder(self, topic: str) -> Encoder:
        return _number_encoder(_LONG, self, topic, "an int from -2**63 to 2**63 - 1")

    def decoder(self, topic: str) -> Decoder:
        return _number_decoder(_LONG, self, topic)

    def _column_reader(self) -> ColumnReader:
        return _number_reader(_LONG)


@dataclass(frozen=True)
class FloatSerde(_PrimitiveSerde[float]):
    """4-byte IEEE 754 numbers; the value is rounded to what fits, ``OverflowError`` beyond the largest."""

    width = 4

    def encoder(self, topic: str) -> Encoder:
        return _number_encoder(_FLOAT, self, topic, "a float of at most 3.4028235e38")

    def decoder(self, topic: str) -> Decoder:
        return _number_decoder(_FLOAT, self, topic)

    def _column_reader(self) -> ColumnReader:
        return _number_reader(_FLOAT)


@dataclass(frozen=True)
class DoubleSerde(_PrimitiveSerde[float]):
    """8-byte IEEE 754 numbers; every NaN has the same bytes (``DoubleSerializer.serialize``, 4.3.1)."""

    width = 8

    def encoder(self, topic: str) -> Encoder:
        pack = _DOUBLE.pack

        def encode(data: object, headers: Headers) -> bytes | None:
            if data is None:
                return None
            try:
                raw = pack(data)
            except _NO_NUMBER as error:
                raise _refused_number(self, topic, data, (int, float), "a float") from error
            return raw if data == data else _NAN  # no NaN is equal to itself

        return encode

    def decoder(self, topic: str) -> Decoder:
        return _number_decoder(_DOUBLE, self, topic)

    def _column_reader(self) -> ColumnReader:
        return _number_reader(_DOUBLE)


@dataclass(frozen=True)
class BooleanSerde(_PrimitiveSerde[bool]):
    """One byte, 01 or 00; nothing but ``True`` and ``False`` is written."""

    width = 1

    def encoder(self, topic: str) -> Encoder:
        def encode(data: object, headers: Headers) -> bytes | None:
            if data is True:
                return b"\x01"
            if data is False:
                return b"\x00"
            if data is None:
                return None
            raise wrong_type(repr(self), topic, data, "a bool")

        return encode

    def decoder(self, topic: str) -> Decoder:
        def decode(data: bytes | None, headers: Headers) -> bool | None:
            if data == b"\x01":
                return True
            if data == b"\x00":
                return False
            if data is None:
                return None
            raise refused_bytes(repr(self), topic, data, "expected one byte, 00 or 01")

        return decode


@dataclass(frozen=True)
class StringSerde(_PrimitiveSerde[str]):
    """Text in an encoding, UTF-8 unless told otherwise.

    As in Java neither direction fails for text of the wrong kind: bytes that are no UTF-8 become U+FFFD,
    characters that the encoding does not have become a question mark (``StringDeserializer`` and
    ``StringSerializer``, 4.3.1). Raises ``ConfigError`` for an unknown encoding.
    """

    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        try:
            "".encode(self.encoding)
        except LookupError as error:
            raise ConfigError(f"encoding of StringSerde is {self.encoding!r}; Python has no such encoding") from error

    def encoder(self, topic: str) -> EncoderOf[str]:
        encoding = self.encoding

        def encode(data: str | None, headers: Headers) -> bytes | None:
            if data is None:
                return None
            try:
                return data.encode(encoding)
            except UnicodeEncodeError:
                return _encode_with_question_marks(data, encoding)
            except (AttributeError, TypeError) as error:
                raise wrong_type(repr(self), topic, data, "a str") from error

        def encode_utf_8(data: str | None, headers: Headers) -> bytes | None:
            if data is None:
                return None
            try:
                return data.encode()
            except UnicodeEncodeError:
                return _encode_with_question_marks(data, "utf-8")
            except (AttributeError, TypeError) as error:
                raise wrong_type(repr(self), topic, data, "a str") from error

        return encode_utf_8 if _is_utf_8(encoding) else encode

    def decoder(self, topic: str) -> Decoder:
        encoding = self.encoding
        errors = "pykstreams.replace" if _is_utf_8(encoding) else "replace"

        def decode(data: bytes | None, headers: Headers) -> str | None:
            if data is None:
                return None
            try:
                return data.decode(encoding)
            except UnicodeDecodeError:
                return data.decode(encoding, errors)
            except AttributeError as error:
                raise refused_bytes(repr(self), topic, data, "expected bytes") from error

        def decode_utf_8(data: bytes | None, headers: Headers) -> str | None:
            if data is None:
                return None
            try:
                return data.decode()
            except UnicodeDecodeError:
                return data.decode("utf-8", errors)
            except AttributeError as error:
                raise refused_bytes(repr(self), topic, data, "expected bytes") from error

        return decode_utf_8 if _is_utf_8(encoding) else decode

    def _column_reader(self) -> ColumnReader | None:
        return partial(map, bytes.decode) if _is_utf_8(self.encoding) else None


@dataclass(frozen=True)
class BytesSerde(_PrimitiveSerde[bytes]):
    """Bytes as they are; ``bytearray`` and ``memoryview`` are written too, and read back as ``bytes``."""

    def encoder(self, topic: str) -> Encoder:
        def encode(data: object, headers: Headers) -> bytes | None:
            if type(data) is bytes or data is None:
                return data
            if isinstance(data, bytes | bytearray | memoryview):
                return bytes(data)
            raise wrong_type(repr(self), topic, data, "bytes, bytearray or memoryview")

        return encode

    def decoder(self, topic: str) -> Decoder:
        return _unchanged

    def _column_reader(self) -> ColumnReader:
        return iter


@dataclass(frozen=True)
class UUIDSerde(_PrimitiveSerde[uuid.UUID]):
    """UUIDs as their 36 characters; reading takes what Java's ``UUID.fromString`` takes."""

    width = 36

    def encoder(self, topic: str) -> Encoder:
        as_uuid = uuid.UUID

        def encode(data: object, headers: Headers) -> bytes | None:
            if data is None:
                return None
            if isinstance(data, as_uuid):
                return str(data).encode()
            raise wrong_type(repr(self), topic, data, "a uuid.UUID")

        return encode

    def decoder(self, topic: str) -> Decoder:
        def decode(data: bytes | None, headers: Headers) -> uuid.UUID | None:
            if data is None:
                return None
            try:
                return _parse_uuid(data.decode())
            except (ValueError, AttributeError) as error:
                raise refused_text(repr(self), topic, data, "expected a UUID as 36 characters") from error

        return decode


@dataclass(frozen=True)
class VoidSerde(_PrimitiveSerde[None]):
    """No value at all: only ``None`` is written, only no bytes are read."""

    def encoder(self, topic: str) -> Encoder:
        def encode(data: object, headers: Headers) -> None:
            if data is not None:
                raise wrong_type(repr(self), topic, data, "None")

        return encode

    def decoder(self, topic: str) -> Decoder:
        def decode(data: bytes | None, headers: Headers) -> None:
            if data is not None:
                raise refused_bytes(repr(self), topic, data, "expected no bytes")

        return decode


def _unchanged(data: bytes | None, headers: Headers) -> bytes | None:
    return data


def _number_encoder(layout: struct.Struct, serde: CompiledSerde[T], topic: str, expected: str) -> Encoder:
    pack = layout.pack
    kinds: tuple[type, ...] = (int, float) if layout is _FLOAT else (int,)

    def encode(data: object, headers: Headers) -> bytes | None:
        if data is None:
            return None
        try:
            return pack(data)
        except _NO_NUMBER as error:
            raise _refused_number(serde, topic, data, kinds, expected) from error

    return encode


def _refused_number(
    serde: CompiledSerde[T], topic: str, data: object, kinds: tuple[type, ...], expected: str
) -> SerdeError:
    if not isinstance(data, kinds):
        return wrong_type(repr(serde), topic, data, expected)
    refused = refused_value(repr(serde), topic, data, f"expected {expected}")
    return _OutOfRangeError(str(refused), topic=topic, serde=repr(serde))


def _number_decoder(layout: struct.Struct, serde: CompiledSerde[T], topic: str) -> Decoder:
    unpack = layout.unpack

    def decode(data: bytes | None, headers: Headers) -> object:
        if data is None:
            return None
        try:
            return unpack(data)[0]
        except (struct.error, TypeError) as error:
            raise refused_bytes(repr(serde), topic, data, f"expected {layout.size} bytes") from error

    return decode


def _number_reader(layout: struct.Struct) -> ColumnReader:
    unpack = layout.unpack
    return lambda column: map(_FIRST, map(unpack, column))


def _parse_uuid(text: str) -> uuid.UUID:
    """Reads a UUID as ``UUID.fromString`` of Java 17: five hex groups, each cut to its width."""
    match = _UUID_GROUPS.fullmatch(text)
    if match is None or len(text) > 36:
        raise ValueError(f"{text!r} is no UUID")
    number = 0
    for group, bits in zip(match.groups(), _UUID_BITS, strict=True):
        part = int(group, 16)
        if part >= 1 << 63:
            raise ValueError(f"{text!r} is no UUID")
        number = number << bits | part & ((1 << bits) - 1)
    return uuid.UUID(int=number)


def _is_utf_8(encoding: str) -> bool:
    return codecs.lookup(encoding).name == "utf-8"


def _encode_with_question_marks(text: str, encoding: str) -> bytes:
    """Encodes as Java does: a surrogate pair is one character, a lone surrogate a question mark."""
    joined = text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")
    return joined.encode(encoding, "replace")


def _replace(error: UnicodeError) -> tuple[str, int]:
    """One U+FFFD for each mistake as Java counts them: an encoded surrogate, even cut off, is one."""
    assert isinstance(error, UnicodeDecodeError)
    data, start = error.object, error.start
    if data[start] != 0xED or not b"\xa0" <= data[start + 1 : start + 2] <= b"\xbf":
        return "\ufffd", error.end
    return "\ufffd", start + (3 if b"\x80" <= data[start + 2 : start + 3] <= b"\xbf" else 2)


codecs.register_error("pykstreams.replace", _replace)


SIMPLE_SERDES: Final = (
    ShortSerde,
    IntegerSerde,
    LongSerde,
    FloatSerde,
    DoubleSerde,
    BooleanSerde,
    StringSerde,
    BytesSerde,
    UUIDSerde,
)
"""Serdes of which two are equal, or write the same value in different bytes; that of no value is none of them."""
