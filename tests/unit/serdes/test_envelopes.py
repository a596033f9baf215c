"""Combined keys, changes and subscriptions: errors. Their bytes are compared in tests/golden."""

from __future__ import annotations

from typing import Any

import pytest

from pykstreams.core.errors import SerdeError
from pykstreams.core.hashing import murmur3_128
from pykstreams.serdes import (
    ChangeSerde,
    CombinedKey,
    CombinedKeySerde,
    Instruction,
    LongSerde,
    OptionalSerde,
    Serdes,
    StringSerde,
    SubscriptionResponseWrapper,
    SubscriptionResponseWrapperSerde,
    SubscriptionWrapper,
    SubscriptionWrapperSerde,
)

COMBINED = CombinedKeySerde(StringSerde(), LongSerde())
CHANGE = ChangeSerde(StringSerde())
SUBSCRIPTION = SubscriptionWrapperSerde(StringSerde())
RESPONSE = SubscriptionResponseWrapperSerde(StringSerde())
HASH = murmur3_128(b"value")
NO_BYTES: Any = Serdes.from_functions(lambda data: None, bytes)  # type: ignore[arg-type, return-value]


def test_the_partial_key_serializer_gives_the_prefix_bytes() -> None:
    serializer = COMBINED.partial_key_serializer()

    assert serializer.serialize("t", "fk") == COMBINED.prefix_bytes("t", "fk") == b"\0\0\0\2fk"
    assert serializer.serialize("t", None) is None


@pytest.mark.parametrize("value", [CombinedKey(None, 1), CombinedKey("a", None), "abc", 5])
def test_only_whole_combined_keys_are_written(value: Any) -> None:
    with pytest.raises(SerdeError, match="expected a CombinedKey whose prefix and suffix are not None"):
        COMBINED.serialize("t", value)


def test_refusal_of_a_missing_part_names_the_serde_that_writes_it() -> None:
    with pytest.raises(SerdeError, match="wants an OptionalSerde"):
        COMBINED.serialize("t", CombinedKey("a", None))  # type: ignore[arg-type]


def test_missing_suffix_has_the_bytes_of_the_prefix_and_an_empty_one_has_not() -> None:
    serde = CombinedKeySerde(StringSerde(), OptionalSerde(StringSerde()))
    missing, empty = serde.serialize("t", CombinedKey("fk", None)), serde.serialize("t", CombinedKey("fk", ""))

    assert missing == serde.prefix_bytes("t", "fk")
    assert empty == b"\0\0\0\2fk\x01"
    assert serde.deserialize("t", missing) == CombinedKey("fk", None)
    assert serde.deserialize("t", empty) == CombinedKey("fk", "")


def test_optional_serde_refuses_what_is_neither_missing_nor_marked_as_there() -> None:
    with pytest.raises(SerdeError, match="expected no bytes, or 01 and the bytes of a value"):
        OptionalSerde(StringSerde()).deserialize("t", b"a")
    with pytest.raises(SerdeError, match="the inner serde gives no bytes"):
        OptionalSerde(NO_BYTES).serialize("t", "a")


def test_a_prefix_of_none_is_refused() -> None:
    with pytest.raises(SerdeError, match="the prefix must not be None"):
        COMBINED.prefix_bytes("t", None)  # type: ignore[arg-type]
    with pytest.raises(SerdeError, match="the prefix has no bytes"):
        CombinedKeySerde(NO_BYTES, LongSerde()).prefix_bytes("t", "a")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("000000", "expected a length in 4 bytes"),
        ("00000003 6162", "the prefix has length 3, 2 bytes are left"),
        ("ffffffff 6162", "the prefix has length -1, 2 bytes are left"),
        ("00000001 61 00", r"LongSerde\(\) cannot read 1 bytes"),
    ],
)
def test_bytes_that_are_no_combined_key_are_explained(data: str, message: str) -> None:
    with pytest.raises(SerdeError, match=message):
        COMBINED.deserialize("t", bytes.fromhex(data))


def test_a_change_without_values_is_refused() -> None:
    with pytest.raises(SerdeError, match=r"cannot write .None, None, True. of type tuple .* both values are None"):
        CHANGE.serialize("t", (None, None, True))


@pytest.mark.parametrize("value", [None, "ab", 5, ("a", "b")])
def test_only_changes_are_written(value: Any) -> None:
    with pytest.raises(SerdeError, match=r"expected \(new, old, is_latest\)"):
        CHANGE.serialize("t", value)


def test_a_value_without_bytes_cannot_be_in_a_change() -> None:
    for change in (("a", None, True), (None, "a", True), ("a", "b", True)):
        with pytest.raises(SerdeError, match=r"expected \(new, old, is_latest\)"):
            ChangeSerde(NO_BYTES).serialize("t", change)


def test_a_wrong_value_in_a_change_is_named() -> None:
    with pytest.raises(SerdeError, match=r"StringSerde\(encoding='utf-8'\) cannot write 5"):
        CHANGE.serialize("t", (5, None, True))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, r"cannot read None \(no bytes\) of topic 't': no change"),
        (b"", "cannot read 0 bytes of topic 't': no change"),
        (b"\x06", "the last byte is 6; expected 0 to 5"),
        (b"\x02\x03", "the byte before the last is neither 0 nor 1"),
        (b"\x03", "the byte before the last is neither 0 nor 1"),
        (b"\x08ab\x02", "the new value has length 4, 2 bytes are left"),
        (b"\x01ab\x02", "the new value has length -1, 2 bytes are left"),
        (b"\xff\xff\xff\xff\xff\x01\x02", "does not end after five bytes"),
    ],
)
def test_bytes_that_are_no_change_are_explained(data: Any, message: str) -> None:
    with pytest.raises(SerdeError, match=message):
        CHANGE.deserialize("t", data)


def test_a_subscription_comes_back() -> None:
    wrapper = SubscriptionWrapper(HASH, Instruction.DELETE_KEY_AND_PROPAGATE, "pk", 3)

    assert SUBSCRIPTION.deserialize("t", SUBSCRIPTION.serialize("t", wrapper)) == wrapper


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (SubscriptionWrapper(b"short", Instruction(0), "pk", 1), "its hash has 5 bytes; expected 16"),
        (SubscriptionWrapper(None, Instruction(0), "pk", None), "required argument is not an integer"),
        (SubscriptionWrapper(None, Instruction(0), "pk", 1, 2), "its version is 2; expected 0 or 1"),
        (SubscriptionWrapper(None, Instruction(0), None, 1), "expected a SubscriptionWrapper with a primary key"),
        (5, "expected a SubscriptionWrapper with a primary key"),
    ],
)
def test_only_whole_subscriptions_are_written(value: Any, message: str) -> None:
    with pytest.raises(SerdeError, match=message):
        SUBSCRIPTION.serialize("t", value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "no subscription: index out of range"),
        ("01", "its hash wants 16 bytes, 0 are left"),
        ("8109", "no subscription: 9 is not a valid Instruction"),
        ("8201", "its version is 2; expected 0 or 1"),
        ("810100", "1 bytes are left for key and partition"),
    ],
)
def test_bytes_that_are_no_subscription_are_explained(data: str, message: str) -> None:
    with pytest.raises(SerdeError, match=message):
        SUBSCRIPTION.deserialize("t", bytes.fromhex(data))


def test_a_response_comes_back_with_and_without_value() -> None:
    for response in (SubscriptionResponseWrapper(HASH, "v"), SubscriptionResponseWrapper(None, None)):
        assert RESPONSE.deserialize("t", RESPONSE.serialize("t", response)) == response


@pytest.mark.parametrize("value", [SubscriptionResponseWrapper(b"short", "v"), 5, ("a",)])
def test_only_responses_are_written(value: Any) -> None:
    with pytest.raises(SerdeError, match="expected a SubscriptionResponseWrapper"):
        RESPONSE.serialize("t", value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "no response: index out of range"),
        ("00", "its hash wants 16 bytes, 0"),
        ("81", "its version is 1; expected 0"),
    ],
)
def test_bytes_that_are_no_response_are_explained(data: str, message: str) -> None:
    with pytest.raises(SerdeError, match=message):
        RESPONSE.deserialize("t", bytes.fromhex(data))
