"""A check for serdes of combined keys: whether the bytes of partial keys find exactly the keys they should."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from pykstreams.core.errors import SerializationError
from pykstreams.serdes.base import bind_deserializer, bind_serializer
from pykstreams.serdes.combined_key import CombinedKey
from pykstreams.serdes.composed_keys import ComposedKeySerde

P = TypeVar("P")
S = TypeVar("S")

_TEXTS = ("", "1", "12", "a", "aa", "ab", "a,", 'a"', "b", "\u00e4")
_SAMPLES: tuple[tuple[object, ...], ...] = (
    _TEXTS,
    (0, 1, 2, 10, 12, 127, 128, 123456),
    tuple({"key": key} for key in (1, 12, 123)),
    tuple({"key": text} for text in _TEXTS),
    tuple(text.encode() for text in _TEXTS),
)


def assert_prefix_serde(
    serde: ComposedKeySerde[P, S],
    keys: Iterable[CombinedKey[P, S]] | None = None,
    *,
    topic: str = "topic",
) -> None:
    """Asserts that each key starts with its partial key, and with no other; and that keys come back as they were.

    ``keys`` should have first parts that begin alike, such as 1 and 12. Without keys those of some samples are taken
    that the serde writes and reads back: texts, integers, bytes and dicts with a field ``key``. Raises
    ``AssertionError`` with the keys and their bytes, ``ValueError`` where there is nothing to check.

    >>> from pykstreams.serdes import JsonCombinedKeySerde
    >>> assert_prefix_serde(JsonCombinedKeySerde())
    """
    encode, decode = bind_serializer(serde.serializer, topic), bind_deserializer(serde.deserializer, topic)
    encode_partial = bind_serializer(serde.partial_key_serializer(), topic)
    whole: list[tuple[tuple[object, object], bytes]] = []
    partial: list[tuple[object, bytes]] = []
    key: tuple[object, object]
    for key in _samples(serde, topic) if keys is None else keys:
        written = encode(key, ())
        assert written is not None, f"{key!r} is written as nothing"
        assert decode(written, ()) == key, (
            f"{key!r} is written as {written!r}, which is read as {decode(written, ())!r}"
        )
        whole.append((key, written))
        if all(key[0] != prefix for prefix, _ in partial):
            start = encode_partial(key[0], ())
            assert start, f"the partial key {key[0]!r} is written as nothing, which all keys start with"
            partial.append((key[0], start))
    if not whole:
        raise ValueError(f"{serde!r} writes and reads back none of the sample keys; give keys of its own")
    for prefix, start in partial:
        for key, written in whole:
            if key[0] == prefix:
                assert written.startswith(start), (
                    f"{key!r} is written as {written!r}, which does not start with its partial key {start!r}"
                )
            else:
                assert not written.startswith(start), (
                    f"{key!r} is written as {written!r}, which starts with the partial key of {prefix!r}, {start!r}"
                )


def _samples(serde: ComposedKeySerde[P, S], topic: str) -> Iterator[CombinedKey[object, object]]:
    """Keys of all kinds that come back as they were; a serde may well take more kinds, and make its own of them."""
    encode, decode = bind_serializer(serde.serializer, topic), bind_deserializer(serde.deserializer, topic)

    def comes_back(key: object) -> bool:
        try:
            return bool(decode(encode(key, ()), ()) == key)
        except SerializationError:
            return False

    for prefixes in _SAMPLES:
        for suffixes in _SAMPLES:
            keys = [CombinedKey(prefix, suffix) for prefix in prefixes for suffix in suffixes]
            if all(map(comes_back, keys)):
                yield from keys
