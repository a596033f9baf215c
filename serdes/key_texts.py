"""Keys as queries show them, and the keys that are meant by such texts.

Text, times, UUIDs and decimal numbers are written as they are, so are numbers, ``true`` and ``false``; bytes are
base64; all else is JSON: ``{"prefix": ..., "suffix": ...}`` for a combined key, ``{"key": ..., "window": {"start":
..., "end": ...}}``, in ms, for a key in a window. Text may have the quotes that it has in JSON, but for keys that are
text alone, where a quote belongs to the key. Invariant: what is shown of a key means this key, by whatever serde.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import UnionType
from typing import Final
from uuid import UUID

import orjson

from pykstreams.core.errors import SerializationError
from pykstreams.core.shown_values import cut
from pykstreams.core.types import duration_ms
from pykstreams.core.windows import Window, Windowed
from pykstreams.serdes.avro import AvroSerde
from pykstreams.serdes.base import AnySerde, bind_serializer
from pykstreams.serdes.combined_key import CombinedKey, CombinedKeySerde
from pykstreams.serdes.composed_keys import JsonCombinedKeySerde, PrefixChecked
from pykstreams.serdes.json.json_keys import JsonKeySerde
from pykstreams.serdes.json.json_serde import JsonSerde
from pykstreams.serdes.json.structured import plain_reader
from pykstreams.serdes.list_serde import ListSerde
from pykstreams.serdes.optional import OptionalSerde
from pykstreams.serdes.primitives import (
    BooleanSerde,
    BytesSerde,
    DoubleSerde,
    FloatSerde,
    IntegerSerde,
    LongSerde,
    ShortSerde,
    StringSerde,
    UUIDSerde,
)
from pykstreams.serdes.text_values import TextSerde
from pykstreams.serdes.told_topic import ToldTopic
from pykstreams.serdes.windowed import LAST_MS, SessionWindowedSerde, TimeWindowedSerde

HOW = (
    "text, times, UUIDs, numbers, true and false are written as they are, bytes in base64, anything else in JSON, as "
    "queries show it"
)
"""How keys are written, for messages."""
_REASON_CHARACTERS: Final = 400
"""How much is told of what a serde says of a key, in whose words the key may be."""


def key_of_text(serde: AnySerde, topic: str, text: str, *, store: str) -> object:
    """Returns the key that is meant by a text, by the serde of the keys; ``ValueError`` for what is none.

    :param topic: the topic that the serde gets, which is not named like the store.

    >>> key_of_text(LongSerde(), "log", "5", store="s"), key_of_text(JsonSerde(), "log", '{"id": 5}', store="s")
    (5, {'id': 5})
    """
    return key_reader(serde, topic, store=store)(text)


def key_reader(serde: AnySerde, topic: str, *, store: str) -> Callable[[str], object]:
    """Returns ``key_of_text`` of one store, for many texts."""
    read, encode = _reader(serde, topic), bind_serializer(serde, topic)
    meant_by = _only if isinstance(serde, StringSerde) else _value_and_text

    def key_of(text: str) -> object:
        refused: Exception | None = None
        for value in meant_by(text):
            try:
                key = read(value)
                if key is None or encode(key, ()) is None:
                    raise ValueError("no key is null")
                return key
            except (ValueError, KeyError, TypeError, ArithmeticError, SerializationError) as error:
                refused = refused or error
        raise ValueError(
            f"{cut(repr(text))} is no key of store {store!r}, whose key serde is {serde!r}: "
            f"{cut(str(refused), _REASON_CHARACTERS)}; {HOW}"
        ) from refused

    return key_of


def prefix_of_text(serde: AnySerde, topic: str, text: str, *, store: str) -> bytes | None:
    """Returns the bytes that keys with a prefix begin with; ``None`` for keys without prefixes.

    Text and bytes begin with text and bytes, a combined key with its first part. Raises ``ValueError`` for a text that
    is no prefix.

    >>> prefix_of_text(StringSerde(), "log", "te", store="s"), prefix_of_text(LongSerde(), "log", "5", store="s")
    (b'te', None)
    """
    match serde:
        case StringSerde():
            return serde.serialize(topic, text)
        case TextSerde():
            return text.encode()
        case BytesSerde():
            return bytes_of_text(text)
        case CombinedKeySerde():
            return serde.prefix_bytes(topic, key_of_text(serde.prefix, topic, text, store=store))
        case JsonCombinedKeySerde():
            first = key_of_text(serde.parts[0], topic, text, store=store)
            return serde.partial_key_serializer().serialize(topic, first)
    return None


def bytes_of_text(text: str) -> bytes:
    """Reads base64 of either alphabet, with or without its padding.

    >>> bytes_of_text("AP8"), bytes_of_text("_-8=")
    (b'\\x00\\xff', b'\\xff\\xef')
    """
    plain = text.rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)


def _only(text: str) -> tuple[object]:
    return (text,)


def _value_and_text(text: str) -> Iterator[object]:
    """The values of JSON that a text may stand for: what it is as JSON, or else the text."""
    with suppress(orjson.JSONDecodeError):
        yield orjson.loads(text)
    yield text


def _reader(serde: AnySerde, topic: str) -> Callable[[object], object]:
    """Returns the function that makes a key of a value of JSON."""
    match serde:
        case StringSerde():
            return _text
        case ShortSerde() | IntegerSerde() | LongSerde():
            return lambda value: int(_number(value, int))
        case FloatSerde() | DoubleSerde():
            return lambda value: float(_number(value, int | float))
        case BooleanSerde():
            return _boolean
        case UUIDSerde():
            return lambda value: UUID(_text(value))
        case BytesSerde():
            return lambda value: bytes_of_text(_text(value))
        case TextSerde():
            return lambda value: serde.deserialize(topic, _text(value).encode())
        case JsonSerde() | JsonKeySerde():
            return lambda value: serde.deserialize(topic, orjson.dumps(value))
        case AvroSerde():
            return _as_it_is if serde.type_ is None else plain_reader(serde.type_)
        case OptionalSerde():
            return _optional(_reader(serde.inner, topic))
        case ListSerde():
            one = _optional(_reader(serde.inner, topic))
            return lambda value: [one(each) for each in _list(value)]
        case ToldTopic() | PrefixChecked():
            return _reader(serde.inner, topic)
        case CombinedKeySerde():
            return _combined(serde.prefix, serde.suffix, topic)
        case JsonCombinedKeySerde():
            return _combined(*serde.parts, topic)
        case TimeWindowedSerde():
            return _windowed(serde.inner, topic, duration_ms(serde.window_size, "window size"))
        case SessionWindowedSerde():
            return _windowed(serde.inner, topic, None)
    return _as_it_is


def _as_it_is(value: object) -> object:
    return value


def _optional(read: Callable[[object], object]) -> Callable[[object], object]:
    return lambda value: None if value is None else read(value)


def _combined(prefix: AnySerde, suffix: AnySerde, topic: str) -> Callable[[object], object]:
    first, second = _reader(prefix, topic), _reader(suffix, topic)

    def read(value: object) -> CombinedKey[object, object]:
        parts = _object(value)
        return CombinedKey(first(parts["prefix"]), second(parts["suffix"]))

    return read


def _windowed(inner: AnySerde, topic: str, size: int | None) -> Callable[[object], object]:
    """Reads keys in windows.

    :param size: the length of each window in ms; ``None`` where they have any.
    """
    read_key = _reader(inner, topic)

    def read(value: object) -> Windowed[object]:
        parts = _object(value)
        times = _object(parts["window"])
        window = Window(*(int(_number(times[name], int)) for name in ("start", "end")))
        if size is not None and window.end != min(window.start + size, LAST_MS):
            raise ValueError(f"windows are of {size} ms, and this one is of {window.end - window.start}")
        return Windowed(read_key(parts["key"]), window)

    return read


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("expected true or false")
    return value


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    raise ValueError(f"expected a text, got {cut(repr(value))}")


def _number(value: object, kind: type | UnionType) -> int | float | str:
    if isinstance(value, str | int | float) and isinstance(value, str | kind) and not isinstance(value, bool):
        return value
    raise ValueError(f"expected a number, got {cut(repr(value))}")


def _object(value: object) -> dict[str, object]:
    if isinstance(value, dict):
        return value
    raise ValueError(f"expected an object of JSON, got {cut(repr(value))}")


def _list(value: object) -> list[object]:
    if isinstance(value, list):
        return value
    raise ValueError(f"expected a list, got {cut(repr(value))}")
