"""Numbers, text, bytes and UUIDs: what is refused, and how the error reads."""

from __future__ import annotations

import struct
import uuid
from decimal import Decimal
from typing import Any

import pytest

from pykstreams.core.errors import ConfigError, SerdeError, SerializationError
from pykstreams.serdes import (
    BooleanSerde,
    BytesSerde,
    DoubleSerde,
    FloatSerde,
    IntegerSerde,
    LongSerde,
    Serdes,
    ShortSerde,
    StringSerde,
    UUIDSerde,
    VoidSerde,
)
from pykstreams.serdes.base import fixed_width


@pytest.mark.parametrize(("serde", "bits"), [(ShortSerde(), 16), (IntegerSerde(), 32), (LongSerde(), 64)])
def test_an_int_out_of_range_is_an_overflow_error_and_a_serde_error(serde: Any, bits: int) -> None:
    for number in (2 ** (bits - 1), -(2 ** (bits - 1)) - 1, 10**400):
        with pytest.raises(OverflowError) as caught:
            serde.serialize("orders", number)
        assert isinstance(caught.value, SerdeError)
        assert f"expected an int from -2**{bits - 1} to 2**{bits - 1} - 1" in str(caught.value)
        assert caught.value.topic == "orders"


@pytest.mark.parametrize(("serde", "number"), [(FloatSerde(), 1e39), (FloatSerde(), 10**400), (DoubleSerde(), 10**400)])
def test_a_float_out_of_range_is_an_overflow_error(serde: Any, number: float) -> None:
    with pytest.raises(OverflowError, match="expected a float"):
        serde.serialize("orders", number)


@pytest.mark.parametrize("value", [1.0, "1", b"1", Decimal(1), [1]])
def test_the_long_serde_refuses_what_is_no_int_and_names_value_and_serde(value: object) -> None:
    with pytest.raises(SerdeError) as caught:
        LongSerde().serialize("orders", value)  # type: ignore[arg-type]

    assert not isinstance(caught.value, OverflowError)
    assert str(caught.value) == (
        f"LongSerde() cannot write {value!r} of type {type(value).__name__} for topic 'orders': "
        "expected an int from -2**63 to 2**63 - 1"
    )
    assert caught.value.serde == "LongSerde()"


def test_the_double_serde_takes_ints_and_refuses_text() -> None:
    assert DoubleSerde().serialize("t", 3) == DoubleSerde().serialize("t", 3.0)
    with pytest.raises(SerializationError, match=r"DoubleSerde\(\) cannot write '3' of type str"):
        DoubleSerde().serialize("t", "3")  # type: ignore[arg-type]


@pytest.mark.parametrize("written", ["7ff8000000000000", "fff8000000000000", "7ff0000000000001", "ffffffffffffffff"])
def test_every_nan_is_written_as_the_one_of_java(written: str) -> None:
    """DoubleSerializer.serialize, 4.3.1, by Double.doubleToLongBits; processors make those with a sign."""
    (number,) = struct.unpack(">d", bytes.fromhex(written))

    assert bytes.fromhex("7ff8000000000000") == DoubleSerde().serialize("orders", number)


def test_bytes_of_the_wrong_length_are_shown_in_hex() -> None:
    with pytest.raises(SerdeError) as caught:
        LongSerde().deserialize("orders", b"\x00\x01\xff")

    assert str(caught.value) == "LongSerde() cannot read 3 bytes (hex 0001ff) of topic 'orders': expected 8 bytes"


def test_empty_bytes_are_no_number() -> None:
    with pytest.raises(SerdeError, match="cannot read 0 bytes of topic 't': expected 4 bytes"):
        FloatSerde().deserialize("t", b"")


@pytest.mark.parametrize("value", [1, 0, "true", b"\x01"])
def test_only_bools_are_written_as_booleans(value: object) -> None:
    with pytest.raises(SerdeError, match="expected a bool"):
        BooleanSerde().serialize("t", value)  # type: ignore[arg-type]


@pytest.mark.parametrize("data", [b"", b"\x02", b"\x00\x00"])
def test_a_boolean_is_one_byte_of_two(data: bytes) -> None:
    with pytest.raises(SerdeError, match="expected one byte, 00 or 01"):
        BooleanSerde().deserialize("t", data)


@pytest.mark.parametrize("value", [b"a", 5, ["a"]])
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_only_text_is_written_as_text(value: object, encoding: str) -> None:
    with pytest.raises(SerdeError, match=r"StringSerde\(encoding='.*'\) cannot write .* expected a str"):
        StringSerde(encoding).serialize("t", value)  # type: ignore[arg-type]


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_only_bytes_are_read_as_text(encoding: str) -> None:
    with pytest.raises(SerdeError, match="expected bytes"):
        StringSerde(encoding).deserialize("t", 5)  # type: ignore[arg-type]


def test_text_is_written_in_the_encoding_given() -> None:
    serde = StringSerde("latin-1")

    assert serde.serialize("t", "é") == b"\xe9"
    assert serde.deserialize("t", b"\xe9") == "é"
    assert serde.serialize("t", "日") == b"?"
    assert StringSerde("ascii").deserialize("t", b"a\xe9") == "a\ufffd"


@pytest.mark.parametrize("encoding", ["klingon", "rot13", "base64"])
def test_an_unknown_encoding_is_refused(encoding: str) -> None:
    with pytest.raises(ConfigError, match=f"encoding of StringSerde is '{encoding}'; Python has no such encoding"):
        StringSerde(encoding)


@pytest.mark.parametrize("value", [bytearray(b"ab"), memoryview(b"ab"), memoryview(b"aXbX")[::2]])
def test_buffers_are_written_as_bytes(value: Any) -> None:
    data = BytesSerde().serialize("t", value)

    assert data == b"ab"
    assert type(data) is bytes


def test_bytes_are_passed_on_without_a_copy() -> None:
    data = b"payload"

    assert BytesSerde().serialize("t", data) is data
    assert BytesSerde().deserialize("t", data) is data


@pytest.mark.parametrize("value", ["text", 5, [1]])
def test_only_buffers_are_written_as_bytes(value: object) -> None:
    with pytest.raises(SerdeError, match="expected bytes, bytearray or memoryview"):
        BytesSerde().serialize("t", value)  # type: ignore[arg-type]


def test_only_uuids_are_written_as_uuids() -> None:
    text = "00112233-4455-6677-8899-aabbccddeeff"

    assert UUIDSerde().serialize("t", uuid.UUID(text)) == text.encode()
    with pytest.raises(SerdeError, match=r"expected a uuid.UUID"):
        UUIDSerde().serialize("t", text)  # type: ignore[arg-type]


def test_text_that_is_no_uuid_is_shown() -> None:
    with pytest.raises(SerdeError, match=r"cannot read 3 bytes \('no!'\) of topic 't': expected a UUID"):
        UUIDSerde().deserialize("t", b"no!")


def test_nothing_but_none_is_void() -> None:
    with pytest.raises(SerdeError, match=r"VoidSerde.. cannot write 0 of type int for topic 't': expected None"):
        VoidSerde().serialize("t", 0)  # type: ignore[arg-type]
    with pytest.raises(SerdeError, match=r"VoidSerde.. cannot read 0 bytes of topic 't': expected no bytes"):
        VoidSerde().deserialize("t", b"")


def test_serdes_are_equal_by_their_settings() -> None:
    assert LongSerde() == LongSerde()
    assert StringSerde() != StringSerde("latin-1")
    assert len({LongSerde(), LongSerde(), IntegerSerde()}) == 2


@pytest.mark.parametrize(
    ("serde", "value"),
    [
        (Serdes.short(), -1),
        (Serdes.integer(), 1),
        (Serdes.long(), 1),
        (Serdes.float(), 0.5),
        (Serdes.double(), 0.5),
        (Serdes.boolean(), False),
        (Serdes.uuid(), uuid.UUID(int=1)),
    ],
)
def test_serde_tells_the_width_of_its_values(serde: Any, value: Any) -> None:
    assert fixed_width(serde) == len(serde.serializer.serialize("topic", value))


@pytest.mark.parametrize("serde", [Serdes.string(), Serdes.bytes(), Serdes.void(), len, None])
def test_serde_whose_values_differ_in_width_tells_none(serde: Any) -> None:
    assert fixed_width(serde) is None
