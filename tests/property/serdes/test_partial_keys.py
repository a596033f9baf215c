"""A partial key is what the keys with its first part start with, and no others."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykstreams.serdes import (
    AvroCombinedKeySerde,
    CombinedKey,
    CombinedKeySerde,
    JsonCombinedKeySerde,
    LongSerde,
    StringSerde,
)

LONGS = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text()
SHORT = st.text(alphabet='1a",:{}[]\\ ', max_size=4)
PLAIN = st.recursive(
    st.booleans() | LONGS | SHORT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SHORT, inner, max_size=2),
    max_leaves=4,
)
NESTED = {"type": "array", "items": ["null", "long", {"type": "map", "values": "string"}]}


def avro(prefix: Any, suffix: Any) -> AvroCombinedKeySerde[Any, Any]:
    fields = [{"name": "a", "type": prefix}, {"name": "b", "type": suffix}]
    return AvroCombinedKeySerde({"type": "record", "name": "Key", "fields": fields})


CASES: dict[str, tuple[Any, Any, Any]] = {
    "length-encoded": (CombinedKeySerde(StringSerde(), LongSerde()), TEXT, LONGS),
    "json": (JsonCombinedKeySerde(), PLAIN, PLAIN),
    "json of texts": (JsonCombinedKeySerde(names=("a", "b")), SHORT | st.integers(0, 200), TEXT),
    "avro of texts": (avro("string", ["null", "string"]), TEXT, st.none() | TEXT),
    "avro of longs": (avro("long", "long"), LONGS | st.integers(-70, 70), LONGS),
    "avro of lists": (
        avro(NESTED, "string"),
        st.lists(st.none() | st.integers(-3, 3) | st.dictionaries(SHORT, SHORT, max_size=1), max_size=3),
        TEXT,
    ),
}


def _same(one: Any, other: Any) -> bool:
    """Whether two values are equal and of equal types all through (``1 == True`` in Python, not in bytes)."""
    return repr(one) == repr(other)


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_partial_key_starts_its_own_keys_and_no_others(name: str, data: st.DataObject) -> None:
    serde, prefixes, suffixes = CASES[name]
    first, second = data.draw(prefixes), data.draw(prefixes)
    key = CombinedKey(second, data.draw(suffixes))
    written = serde.serialize("t", key)

    assert written is not None
    assert serde.deserialize("t", written) == key
    assert written.startswith(serde.partial_key_serializer().serialize("t", second))
    assert written.startswith(serde.partial_key_serializer().serialize("t", first)) is _same(first, second)
