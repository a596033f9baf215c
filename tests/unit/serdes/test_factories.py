"""The factories of ``Serdes``."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from decimal import Decimal
from types import NoneType
from typing import Any

import pytest

from pykstreams.core.errors import SerdeError
from pykstreams.serdes import (
    BooleanSerde,
    BytesSerde,
    DoubleSerde,
    FloatSerde,
    IntegerSerde,
    ListSerde,
    LongSerde,
    Serde,
    Serdes,
    SessionWindowedSerde,
    ShortSerde,
    StringSerde,
    TimeWindowedSerde,
    UUIDSerde,
    VoidSerde,
    WindowedSerdes,
)
from pykstreams.serdes.by_type import TYPES, TypeSerdes


def test_each_factory_gives_its_serde() -> None:
    assert [
        Serdes.string("latin-1"),
        Serdes.short(),
        Serdes.integer(),
        Serdes.long(),
        Serdes.float(),
        Serdes.double(),
        Serdes.boolean(),
        Serdes.bytes(),
        Serdes.uuid(),
        Serdes.void(),
        Serdes.list(Serdes.long()),
    ] == [
        StringSerde("latin-1"),
        ShortSerde(),
        IntegerSerde(),
        LongSerde(),
        FloatSerde(),
        DoubleSerde(),
        BooleanSerde(),
        BytesSerde(),
        UUIDSerde(),
        VoidSerde(),
        ListSerde(LongSerde()),
    ]


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        (str, StringSerde()),
        (bytes, BytesSerde()),
        (int, LongSerde()),
        (float, DoubleSerde()),
        (bool, BooleanSerde()),
        (uuid.UUID, UUIDSerde()),
        (NoneType, VoidSerde()),
    ],
)
def test_a_type_has_the_serde_of_its_values(type_: Any, expected: object) -> None:
    assert Serdes.for_type(type_) == expected


def test_a_simple_type_has_the_serde_that_was_registered_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TYPES, "__dict__", TypeSerdes().__dict__)
    registered = Serdes.string("latin-1")
    TYPES.register(str, registered)

    assert Serdes.for_type(str) is registered


def test_the_serde_of_a_type_for_keys_writes_equal_keys_alike() -> None:
    keys = Serdes.for_type(Decimal, is_key=True).serializer

    assert keys.serialize("topic", Decimal("1.50")) == keys.serialize("topic", Decimal("1.5")) == b"1.5"
    assert Serdes.for_type(Decimal).serializer.serialize("topic", Decimal("1.50")) == b"1.50"


@pytest.mark.parametrize(
    "given",
    [lambda: Decimal, lambda: Serdes.for_type(Decimal), lambda: Serdes.for_type(Decimal, is_key=True)],
    ids=["type", "serde of values", "serde of keys"],
)
def test_keys_in_windows_are_written_as_keys_whether_a_type_is_given_or_its_serde(given: Callable[[], Any]) -> None:
    inner, of_keys = given(), Serdes.for_type(Decimal, is_key=True)

    assert WindowedSerdes.time_windowed(inner, 5) == TimeWindowedSerde(of_keys, 5)
    assert WindowedSerdes.session_windowed(inner) == SessionWindowedSerde(of_keys)


def test_lists_have_values_of_a_type() -> None:
    assert Serdes.list(int) == ListSerde(LongSerde())


@pytest.mark.parametrize(
    "make", [lambda inner: WindowedSerdes.time_windowed(inner, 5), WindowedSerdes.session_windowed, Serdes.list]
)
@pytest.mark.parametrize("inner", [None, 5])
def test_what_is_neither_a_type_nor_a_serde_is_refused(make: Callable[[Any], object], inner: object) -> None:
    with pytest.raises(TypeError, match=rf"^inner is {inner}; expected a type, such as str, or a serde$"):
        make(inner)


def test_a_type_without_serde_is_refused() -> None:
    with pytest.raises(
        TypeError, match=r"there is no serde for object, .*; register one, types.register\(object, serde\)"
    ):
        Serdes.for_type(object)


def test_functions_become_a_serde_whose_errors_name_them() -> None:
    serde = Serdes.from_functions(str.encode, bytes.decode)

    assert isinstance(serde, Serde)
    assert serde.serializer.serialize("t", "a") == b"a"
    assert serde.deserializer.deserialize("t", b"a") == "a"
    assert repr(serde.serializer) == "str.encode"
    assert repr(serde.deserializer) == "bytes.decode"
    with pytest.raises(SerdeError, match=r"str.encode cannot write 5 of type int for topic 't': TypeError"):
        serde.serializer.serialize("t", 5)  # type: ignore[arg-type]


def test_a_serializer_and_a_deserializer_stay_what_they_are() -> None:
    serializer, deserializer = StringSerde().serializer, StringSerde("latin-1").deserializer

    serde = Serdes.from_functions(serializer, deserializer)

    assert serde.serializer is serializer
    assert serde.deserializer is deserializer
