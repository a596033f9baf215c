"""Every serde reads back what it wrote, and whatever it reads, it gives a value or a ``SerializationError``."""

from __future__ import annotations

import math
import struct
import uuid
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykstreams.core.errors import SerializationError
from pykstreams.core.hashing import murmur2, partition_for_key
from pykstreams.core.windows import Window, Windowed
from pykstreams.serdes import (
    AvroSerde,
    ChangeSerde,
    CombinedKey,
    CombinedKeySerde,
    Instruction,
    JsonSerde,
    OptionalSerde,
    Serdes,
    SessionWindowedSerde,
    StringSerde,
    SubscriptionResponseWrapper,
    SubscriptionResponseWrapperSerde,
    SubscriptionWrapper,
    SubscriptionWrapperSerde,
    TimeWindowedSerde,
    bind_deserializer,
    bind_serializer,
)
from pykstreams.serdes.base import column_reader


@dataclass
class Order:
    id: int
    name: str
    price: float | None = None
    tags: tuple[str, ...] = ()


def _narrow(number: float) -> float:
    return struct.unpack(">f", struct.pack(">f", number))[0]  # type: ignore[no-any-return]


FEW = settings(max_examples=30, deadline=None)
"""Many serdes share a test; each gets few examples, which add up."""

LONGS = st.integers(-(2**63), 2**63 - 1)
TIMES = st.integers(0, 2**61)
TEXT = st.text()
DIGESTS = st.none() | st.binary(min_size=16, max_size=16)
NUMBERS = st.floats(allow_nan=False)
JSON = st.recursive(
    st.none() | st.booleans() | LONGS | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
ORDERS = st.builds(
    Order,
    LONGS,
    TEXT,
    st.none() | st.floats(allow_nan=False, allow_infinity=False),
    st.lists(TEXT, max_size=3).map(tuple),
)
AVRO_ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": "string"},
        {"name": "price", "type": ["null", "double"]},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}


def _windowed(keys: st.SearchStrategy[Any], size: int | None) -> st.SearchStrategy[Any]:
    def window(start: int, length: int) -> Window:
        return Window(start, start + (length if size is None else size))

    return st.builds(Windowed, keys, st.builds(window, TIMES, TIMES))


CASES: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "short": (Serdes.short(), st.integers(-(2**15), 2**15 - 1)),
    "integer": (Serdes.integer(), st.integers(-(2**31), 2**31 - 1)),
    "long": (Serdes.long(), LONGS),
    "float": (Serdes.float(), st.floats(width=32, allow_nan=False)),
    "double": (Serdes.double(), NUMBERS),
    "boolean": (Serdes.boolean(), st.booleans()),
    "string": (Serdes.string(), TEXT),
    "string in UTF-16": (Serdes.string("utf-16-be"), TEXT),
    "bytes": (Serdes.bytes(), st.binary()),
    "uuid": (Serdes.uuid(), st.uuids()),
    "void": (Serdes.void(), st.none()),
    "list of strings": (Serdes.list(Serdes.string()), st.lists(st.none() | TEXT)),
    "list of longs": (Serdes.list(Serdes.long()), st.lists(st.none() | LONGS)),
    "list of UUIDs": (Serdes.list(Serdes.uuid()), st.lists(st.none() | st.uuids())),
    "list of lists": (
        Serdes.list(Serdes.list(Serdes.short())),
        st.lists(st.none() | st.lists(st.integers(0, 9))),
    ),
    "time window": (TimeWindowedSerde(Serdes.string(), 7), _windowed(TEXT, 7)),
    "session": (SessionWindowedSerde(Serdes.long()), _windowed(LONGS, None)),
    "change": (
        ChangeSerde(Serdes.string()),
        st.tuples(st.none() | TEXT, st.none() | TEXT, st.just(True)).filter(lambda change: change[:2] != (None, None)),
    ),
    "combined key with parts that may be missing": (
        CombinedKeySerde(OptionalSerde(Serdes.string()), OptionalSerde(Serdes.string())),
        st.builds(CombinedKey, st.none() | TEXT, st.none() | TEXT),
    ),
    "combined key": (CombinedKeySerde(Serdes.string(), Serdes.long()), st.builds(CombinedKey, TEXT, LONGS)),
    "subscription": (
        SubscriptionWrapperSerde(Serdes.string()),
        st.builds(SubscriptionWrapper, DIGESTS, st.sampled_from(Instruction), TEXT, st.integers(0, 99), st.just(1))
        | st.builds(SubscriptionWrapper, DIGESTS, st.sampled_from(Instruction), TEXT, st.none(), st.just(0)),
    ),
    "subscription response": (
        SubscriptionResponseWrapperSerde(Serdes.string()),
        st.builds(SubscriptionResponseWrapper, DIGESTS, st.none() | TEXT.filter(bool), st.none()),
    ),
    "JSON": (JsonSerde(), JSON),
    "JSON of a dataclass": (JsonSerde(Order), ORDERS),
    "JSON of a list": (JsonSerde(list[Order]), st.lists(ORDERS, max_size=3)),
    "Avro": (AvroSerde(AVRO_ORDER, type_=Order), ORDERS.map(lambda order: order)),
    "functions": (Serdes.from_functions(str.encode, bytes.decode), TEXT),
}


@pytest.mark.parametrize("name", CASES)
@FEW
@given(data=st.data())
def test_what_was_written_is_read_back(name: str, data: st.DataObject) -> None:
    serde, values = CASES[name]
    value = data.draw(values)
    expected = Order(value.id, value.name, value.price, value.tags) if isinstance(value, Order) else value

    got = serde.deserializer.deserialize("t", serde.serializer.serialize("t", value))

    assert expected == got


@pytest.mark.parametrize("name", CASES)
@FEW
@given(data=st.data())
def test_any_bytes_give_a_value_or_a_serialization_error(name: str, data: st.DataObject) -> None:
    serde, values = CASES[name]
    written = serde.serializer.serialize("t", data.draw(values)) or b""
    broken = data.draw(st.binary(max_size=40) | st.just(written[:-1]) | st.just(written[1:]) | _mixed(written))
    decode = bind_deserializer(serde, "t")
    try:
        decode(broken, ())
    except SerializationError as error:
        assert "'t'" in str(error)


def _mixed(written: bytes) -> st.SearchStrategy[bytes]:
    """The written bytes with one of them changed."""

    def change(position: int, byte: int) -> bytes:
        return written[:position] + bytes([byte]) + written[position + 1 :]

    return st.builds(change, st.integers(0, max(len(written) - 1, 0)), st.integers(0, 255))


ANYTHING = (
    st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.booleans()
    | st.uuids()
    | st.lists(st.integers() | st.text(), max_size=3)
    | st.tuples(st.integers() | st.none(), st.text())
    | st.tuples(st.none() | st.text(), st.none() | st.integers(), st.booleans())
    | st.builds(object)
    | st.builds(Windowed, st.none() | st.integers(), st.none() | st.just(Window(0, 1)))
)


@pytest.mark.parametrize("name", CASES)
@FEW
@given(value=ANYTHING)
def test_any_value_gives_bytes_or_a_serialization_error(name: str, value: Any) -> None:
    encode = bind_serializer(CASES[name][0], "t")
    try:
        data = encode(value, ())
    except SerializationError as error:
        assert "'t'" in str(error)
    else:
        assert isinstance(data, bytes)


@pytest.mark.parametrize("name", sorted(CASES.keys() - {"change"}))
def test_none_has_no_bytes_and_no_bytes_are_none(name: str) -> None:
    serde = CASES[name][0]

    assert bind_serializer(serde, "t")(None, ()) is None
    assert bind_deserializer(serde, "t")(None, ()) is None


@given(number=st.floats(max_value=3e38, min_value=-3e38))
def test_a_float_is_rounded_as_the_hardware_rounds(number: float) -> None:
    serde = Serdes.float()
    got = serde.deserializer.deserialize("t", serde.serializer.serialize("t", number))

    assert got == _narrow(number) or math.isnan(number)


@given(prefix=TEXT, other=TEXT, suffix=TEXT)
def test_prefix_bytes_start_the_keys_with_that_prefix_and_no_others(prefix: str, other: str, suffix: str) -> None:
    serde = CombinedKeySerde(StringSerde(), StringSerde())
    key = serde.serialize("t", CombinedKey(other, suffix))
    assert key is not None

    assert (prefix == other) == key.startswith(serde.prefix_bytes("t", prefix))


@given(text=st.text(st.characters()), encoding=st.sampled_from(["utf-8", "ascii", "latin-1", "utf-16-be"]))
def test_text_is_always_written(text: str, encoding: str) -> None:
    assert isinstance(StringSerde(encoding).serialize("t", text), bytes)


@given(data=st.binary(), partitions=st.integers(1, 1000))
def test_partitions_are_in_range(data: bytes, partitions: int) -> None:
    assert -(2**31) <= murmur2(data) < 2**31
    assert 0 <= partition_for_key(data, partitions) < partitions


@given(text=st.text(alphabet="0123456789abcdefABCDEF-{}+ ", max_size=40))
def test_text_that_is_read_as_a_uuid_has_five_groups(text: str) -> None:
    try:
        found = Serdes.uuid().deserializer.deserialize("t", text.encode())
    except SerializationError:
        return
    assert isinstance(found, uuid.UUID)
    assert text.count("-") == 4


READ_AT_ONCE = [
    Serdes.string(),
    Serdes.short(),
    Serdes.integer(),
    Serdes.long(),
    Serdes.float(),
    Serdes.double(),
    Serdes.bytes(),
    JsonSerde(),
]


@pytest.mark.parametrize("serde", READ_AT_ONCE, ids=repr)
@FEW
@given(data=st.data())
def test_many_values_read_at_once_are_those_that_are_read_one_by_one(serde: Any, data: st.DataObject) -> None:
    width = serde.width
    one = st.binary() | JSON.map(orjson.dumps) if width is None else st.binary(min_size=width, max_size=width)
    column = data.draw(st.lists(one))
    read, decode = column_reader(serde), bind_deserializer(serde, "topic")
    assert read is not None
    try:
        at_once = [*read(column)]
    except Exception:  # then they are read one by one
        with pytest.raises(SerializationError) if isinstance(serde, JsonSerde) else nullcontext():
            [decode(value, ()) for value in column]
        return

    assert repr(at_once) == repr([decode(value, ()) for value in column])
