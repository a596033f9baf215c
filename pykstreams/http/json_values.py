"""Keys and values as JSON, and keys from the texts of a URL.

Texts, numbers, booleans, lists and dictionaries are themselves; dataclasses, pydantic models, msgspec structs and
protobuf messages objects of their fields; bytes are base64, times ISO 8601, UUIDs and decimals texts, members of an
enumeration their values; not-a-number and infinity are null. A key in a window is ``{"key": ..., "window": {"start":
..., "end": ...}}``, in ms.
"""

from __future__ import annotations

import base64
import binascii
from decimal import Decimal
from uuid import UUID

import orjson

from pykstreams.core.errors import SerializationError
from pykstreams.core.windows import Window, Windowed
from pykstreams.http.problems import ProblemError
from pykstreams.serdes import json_serde, primitives
from pykstreams.serdes.base import AnySerde
from pykstreams.serdes.windowed import SessionWindowedSerde, TimeWindowedSerde


def json_bytes(value: object, where: str) -> bytes:
    """Writes a value as JSON; a ``ProblemError`` when it has no such form.

    >>> json_bytes({"id": b"\\x00\\xff"}, "here")
    b'{"id":"AP8="}'
    """
    try:
        return orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS)
    except TypeError as error:  # also of what is nested too deep, and of integers beyond 64 bits
        raise ProblemError(
            "no-json",
            f"a {type(value).__qualname__} of {where} has no form in JSON: {error}; read it by KafkaStreams.store, or "
            "keep a dataclass, a pydantic model, a msgspec struct or what JSON has",
        ) from error


def _plain(value: object) -> object:
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, set | frozenset):
        return list(value)
    if callable(dump := getattr(value, "model_dump", None)):
        return dump(mode="json", by_alias=True)
    if hasattr(value, "__struct_fields__"):
        import msgspec

        return msgspec.to_builtins(value)
    if hasattr(value, "DESCRIPTOR"):
        from google.protobuf.json_format import MessageToDict

        return MessageToDict(value)
    if hasattr(value, "_asdict"):
        return value._asdict()
    raise TypeError(f"no form is known for {type(value).__qualname__}")


def key_of_text(store: str, serde: AnySerde, text: str) -> object:
    """Reads a key as it stands in a URL, by the key serde of the store; a ``ProblemError`` when it is none.

    Text as it is; numbers, ``true`` or ``false`` and UUIDs as they are written; bytes in base64, of either alphabet; a
    key in a window as the object above; everything else in JSON.
    """
    try:
        return _key(store, serde, text)
    except (ValueError, KeyError, TypeError, SerializationError, binascii.Error) as error:
        raise ProblemError(
            "bad-key",
            f"{text!r} is no key of store {store!r}, whose key serde is {serde!r}: {error}; text, numbers, true, false "
            "and UUIDs are written as they are, bytes in base64, anything else in JSON",
        ) from error


def _key(store: str, serde: AnySerde, text: str) -> object:
    match serde:
        case primitives.StringSerde():
            return text
        case primitives.ShortSerde() | primitives.IntegerSerde() | primitives.LongSerde():
            return int(text)
        case primitives.FloatSerde() | primitives.DoubleSerde():
            return float(text)
        case primitives.BooleanSerde():
            return {"true": True, "false": False}[text]
        case primitives.UUIDSerde():
            return UUID(text)
        case primitives.BytesSerde():
            return bytes_of_text(text)
        case TimeWindowedSerde() | SessionWindowedSerde():
            parts = orjson.loads(text)
            inner = parts["key"] if isinstance(parts["key"], str) else orjson.dumps(parts["key"]).decode()
            window = Window(int(parts["window"]["start"]), int(parts["window"]["end"]))
            return Windowed(_key(store, serde.inner, inner), window)
        case json_serde.JsonSerde():
            try:
                return serde.deserialize(store, text.encode())
            except SerializationError:
                return serde.deserialize(store, orjson.dumps(text))  # JSON's text needs no quotes here
    try:
        return orjson.loads(text)
    except ValueError:
        return text


def bytes_of_text(text: str) -> bytes:
    """Reads base64 of either alphabet, with or without its padding.

    >>> bytes_of_text("AP8"), bytes_of_text("_-8=")
    (b'\\x00\\xff', b'\\xff\\xef')
    """
    plain = text.rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
