"""Binding serializers into the compiled path, naming serdes in settings, and the texts of errors."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest

from pykstreams.core.errors import ConfigError, SerdeError, SerializationError
from pykstreams.core.types import Encoder, Headers
from pykstreams.serdes import (
    JsonSerde,
    LongSerde,
    Serde,
    Serdes,
    StringSerde,
    bind_deserializer,
    bind_serializer,
    located,
    resolve_serde,
)
from pykstreams.serdes.base import (
    write_same_bytes,
)

HEADERS = (("h", b"1"),)


class Recording:
    """A user's serializer and deserializer that keeps what it was called with."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def serialize(self, topic: str, data: Any, headers: Headers | None = None) -> bytes | None:
        self.calls.append((topic, data, headers))
        return None if data is None else str(data).encode()

    def deserialize(self, topic: str, data: bytes | None, headers: Headers | None = None) -> Any:
        self.calls.append((topic, data, headers))
        return None if data is None else data.decode()


class Broken:
    """A user's serializer and deserializer that fails."""

    def serialize(self, topic: str, data: Any, headers: Headers | None = None) -> bytes | None:
        raise KeyError("price")

    def deserialize(self, topic: str, data: bytes | None, headers: Headers | None = None) -> Any:
        raise KeyError("price")


class Upper(StringSerde):
    """A built-in serde with one side changed the uncompiled way."""

    def serialize(self, topic: str, data: str | None, headers: Headers | None = None) -> bytes | None:
        return None if data is None else data.upper().encode()


class Inherited(Serde[int]):
    """A serde on the base class."""

    def serialize(self, topic: str, data: int | None, headers: Headers | None = None) -> bytes | None:
        return None if data is None else str(data).encode()

    def deserialize(self, topic: str, data: bytes | None, headers: Headers | None = None) -> int | None:
        return None if data is None else int(data)


class Configured(StringSerde):
    """A serde that wants settings."""

    seen: tuple[Any, ...] = ()

    def configure(self, configs: Any, is_key: bool) -> None:
        type(self).seen = (configs, is_key)


class NeedsArguments(StringSerde):
    def __init__(self, encoding: str) -> None:
        super().__init__(encoding)


def test_an_object_gets_topic_data_and_headers() -> None:
    recording = Recording()

    assert bind_serializer(recording, "orders")(5, HEADERS) == b"5"
    assert bind_deserializer(recording, "orders")(b"5", HEADERS) == "5"
    assert recording.calls == [("orders", 5, HEADERS), ("orders", b"5", HEADERS)]


def test_an_object_decides_about_none_and_a_function_never_gets_it() -> None:
    recording = Recording()
    bind_serializer(recording, "orders")(None, ())
    bind_deserializer(recording, "orders")(None, ())

    assert recording.calls == [("orders", None, ()), ("orders", None, ())]
    assert bind_serializer(str.encode, "orders")(None, ()) is None
    assert bind_deserializer(bytes.decode, "orders")(None, ()) is None


def test_functions_and_classes_without_serialize_are_called_with_the_data_alone() -> None:
    assert bind_serializer(str.encode, "orders")("a", HEADERS) == b"a"
    assert bind_deserializer(float, "orders")(b"1.5", HEADERS) == 1.5


def test_a_serde_stands_for_its_serializer_and_deserializer() -> None:
    serde = Serdes.from_functions(str.encode, bytes.decode)

    assert bind_serializer(serde, "orders")("a", ()) == b"a"
    assert bind_deserializer(serde, "orders")(b"a", ()) == "a"


def test_a_class_on_the_base_class_serializes_by_itself() -> None:
    serde = Inherited()

    assert isinstance(serde, Serde)
    assert bind_serializer(serde.serializer, "t")(5, ()) == b"5"
    assert bind_deserializer(serde.deserializer, "t")(b"5", ()) == 5


def test_an_overridden_serialize_of_a_built_in_serde_is_used() -> None:
    assert bind_serializer(Upper(), "t")("a", ()) == b"A"
    assert bind_deserializer(Upper(), "t")(b"a", ()) == "a"


def test_errors_of_user_serializers_name_serde_topic_value_and_cause() -> None:
    with pytest.raises(SerdeError) as caught:
        bind_serializer(Broken(), "orders")({"id": 1}, ())

    assert str(caught.value) == ("Broken cannot write {'id': 1} of type dict for topic 'orders': KeyError: 'price'")
    assert (caught.value.topic, caught.value.serde) == ("orders", "Broken")
    assert isinstance(caught.value.__cause__, KeyError)


def test_errors_of_user_deserializers_show_the_first_bytes() -> None:
    with pytest.raises(SerdeError) as caught:
        bind_deserializer(Broken(), "orders")(bytes(range(40)), ())

    assert str(caught.value) == (
        "Broken cannot read 40 bytes (hex 000102030405060708090a0b0c0d0e0f...) of topic 'orders': KeyError: 'price'"
    )


def test_a_serialization_error_of_a_user_passes_unchanged() -> None:
    raised = SerializationError("mine")

    def fail(data: Any) -> bytes:
        raise raised

    with pytest.raises(SerializationError) as caught:
        bind_serializer(fail, "orders")("a", ())
    assert caught.value is raised
    with pytest.raises(SerializationError) as caught:
        bind_deserializer(fail, "orders")(b"a", ())
    assert caught.value is raised


def test_a_value_without_a_repr_is_reported_all_the_same() -> None:
    class Odd:
        def __repr__(self) -> str:
            raise RuntimeError("no repr")

    with pytest.raises(SerdeError, match="cannot write <a value whose repr raised RuntimeError> of type Odd"):
        LongSerde().serialize("t", Odd())  # type: ignore[arg-type]


def test_long_values_are_cut_in_messages() -> None:
    with pytest.raises(SerdeError) as caught:
        LongSerde().serialize("t", "x" * 1000)  # type: ignore[arg-type]

    assert len(str(caught.value)) < 300


def test_deserializing_something_that_is_no_bytes_is_reported() -> None:
    with pytest.raises(SerdeError, match=r"LongSerde\(\) cannot read 'text' \(no bytes\) of topic 't'"):
        LongSerde().deserialize("t", "text")  # type: ignore[arg-type]


@pytest.mark.parametrize("bind", [bind_serializer, bind_deserializer])
def test_binding_refuses_a_class_and_says_to_make_an_instance(bind: Any) -> None:
    with pytest.raises(ConfigError, match=r"for topic 't' is the class LongSerde; pass an instance, LongSerde\(\)"):
        bind(LongSerde, "t")


def test_binding_refuses_what_cannot_serialize() -> None:
    with pytest.raises(ConfigError, match="serializer for topic 't' is 5; expected an object with serialize"):
        bind_serializer(5, "t")
    with pytest.raises(ConfigError, match="deserializer for topic 't' is None; expected an object with deserialize"):
        bind_deserializer(None, "t")


def test_a_serde_is_found_as_instance_class_or_text() -> None:
    serde = JsonSerde()

    assert resolve_serde(serde) is serde
    assert resolve_serde(LongSerde) == LongSerde()
    assert resolve_serde("pykstreams.serdes:LongSerde") == LongSerde()


def test_a_serde_is_configured_when_settings_are_given() -> None:
    resolve_serde(Configured)
    without_settings = Configured.seen

    resolve_serde(Configured, configs={"a": 1}, is_key=True)

    assert without_settings == ()
    assert Configured.seen == ({"a": 1}, True)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("LongSerde", "serde is 'LongSerde'; expected 'module:attribute', such as 'shop.serdes:OrderSerde'"),
        ("no_such_module:Serde", "serde 'no_such_module:Serde' cannot be imported: No module named"),
        ("pykstreams.serdes:NoSerde", "serde 'pykstreams.serdes:NoSerde' cannot be imported: module"),
        (NeedsArguments, "NeedsArguments'> cannot be made without arguments: .*; pass an instance"),
        (5, "serde is 5; expected an object with the attributes serializer and deserializer"),
    ],
)
def test_what_is_no_serde_is_refused(value: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        resolve_serde(value)


def test_an_error_gets_the_position_of_its_record() -> None:
    error = SerdeError("LongSerde() cannot read it", topic="orders", serde="LongSerde()")

    found = located(error, "orders", 3, 17)

    assert str(found) == "LongSerde() cannot read it (record orders-3 at offset 17)"
    assert (found.topic, found.partition, found.offset, found.serde) == ("orders", 3, 17, "LongSerde()")
    assert found.__cause__ is error


def test_an_error_is_located_once() -> None:
    error = located(ValueError("bad"), "orders", 3, 17)

    assert located(error, "others", 1, 1) is error


def test_an_error_without_text_is_named_by_its_class() -> None:
    assert str(located(StopIteration(), "orders", 0, 1)) == "StopIteration (record orders-0 at offset 1)"


class _Shouting(StringSerde):
    """A user's serde."""

    def encoder(self, topic: str) -> Encoder:
        return lambda data, headers: None if data is None else f"{topic}: {data}".encode()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (Serdes.string(), Serdes.string(), True),
        (Serdes.string(), Serdes.string().serializer, True),
        (Serdes.string(), Serdes.string("latin-1"), False),
        (Serdes.long(), Serdes.integer(), False),
        (JsonSerde(), JsonSerde(), True),
        (JsonSerde(dict), JsonSerde(list), False),
        (JsonSerde(), JsonSerde(dumps=str), False),
        (_Shouting(), _Shouting(), False),
        (str.encode, str.encode, False),
        (Serdes.list(Serdes.long()), Serdes.list(Serdes.long()), False),
    ],
)
def test_serializers_are_known_to_write_the_same_bytes(one: Any, other: Any, same: bool) -> None:
    """``False`` for all that a user made, and that may look at the topic."""
    assert write_same_bytes(one, other) is same


@pytest.mark.parametrize(
    ("serde", "data", "told"),
    [
        (JsonSerde(dict[str, int]), b'{"id":null}', "11 bytes ('{\"id\":null}')"),
        (JsonSerde(), b"{", "1 bytes ('{')"),
        (Serdes.for_type(Decimal), b"twelve", "6 bytes ('twelve')"),
        (Serdes.uuid(), b"no!", "3 bytes ('no!')"),
        (JsonSerde(), b"\x00\x01", "2 bytes (hex 0001)"),
        (Serdes.long(), b"bad", "3 bytes (hex 626164)"),
    ],
)
def test_text_that_cannot_be_read_is_shown_as_text(serde: Serde[Any], data: bytes, told: str) -> None:
    with pytest.raises(SerdeError, match=f"cannot read {re.escape(told)} of topic 't'"):
        serde.deserializer.deserialize("t", data)
