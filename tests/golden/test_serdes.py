"""The bytes of every serde beside those of Kafka's own serializers (serdes.json says how they were recorded)."""

from __future__ import annotations

import json
import math
import uuid
from pathlib import Path
from typing import Any

import pytest

from pykstreams.core.errors import SerializationError
from pykstreams.core.windows import Window, Windowed
from pykstreams.serdes import (
    ChangeSerde,
    CombinedKey,
    CombinedKeySerde,
    Instruction,
    Serdes,
    SessionWindowedSerde,
    StringSerde,
    SubscriptionResponseWrapper,
    SubscriptionResponseWrapperSerde,
    SubscriptionWrapper,
    SubscriptionWrapperSerde,
    TimeWindowedSerde,
)

GOLDEN = json.loads(Path(__file__).with_name("serdes.json").read_text())
SIMPLE = {"long", "integer", "short", "double", "float", "boolean", "string", "uuid", "void"}

# Java refuses lists that end with an entry of no bytes, and fills an entry that was cut off with zeros.
JAVA_MISTAKES: dict[tuple[str, str], Any] = {
    ("list:string", "010000000100000000"): [""],
    ("list:string", "0100000002000000016100000000"): ["a", ""],
    ("list:string", "01000000010000000261"): SerializationError,
    ("list:long", "00000000000000000100000000000005"): SerializationError,
}


def serde(name: str) -> Any:
    kind, _, rest = name.partition(":")
    if kind in SIMPLE:
        return getattr(Serdes, kind)()
    if kind == "list":
        return Serdes.list(serde(rest))
    if kind.startswith("time_windowed"):
        inner, _, size = rest.rpartition(":")
        return TimeWindowedSerde(serde(inner), int(size), changelog=kind.endswith("changelog"))
    if kind == "combined_prefix":
        return Serdes.from_functions(serde(f"combined:{rest}").partial_key_serializer(), bytes)
    if kind == "combined":
        return CombinedKeySerde(*map(serde, rest.split(":")))
    kinds: dict[str, Any] = {
        "session_windowed": SessionWindowedSerde,
        "change": ChangeSerde,
        "subscription": SubscriptionWrapperSerde,
        "subscription_response": SubscriptionResponseWrapperSerde,
    }
    return kinds[kind](serde(rest))


def value_of(name: str, value: Any) -> Any:
    """Gives the Python value that JSON stands for."""
    kind, _, rest = name.partition(":")
    if value is None:
        return None
    if kind in ("double", "float"):
        return float(value)
    if kind == "uuid":
        return uuid.UUID(value)
    if kind == "list":
        return [value_of(rest, entry) for entry in value]
    if "windowed" in kind:
        return Windowed(value[0], Window(value[1], value[2]))
    if kind == "change":
        return tuple(value)
    if kind == "combined":
        return CombinedKey(*value)
    if kind == "subscription":
        digest, instruction, key, version, partition = value
        return SubscriptionWrapper(_hash(digest), Instruction(instruction), key, partition, version)
    if kind == "subscription_response":
        return SubscriptionResponseWrapper(_hash(value[0]), value[1])
    return value


def _hash(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def _row(row: dict[str, Any]) -> str:
    return f"{row['serde']}-{str(row.get('value'))[:20]}-{(row.get('hex') or '')[:20]}"


def _written() -> list[dict[str, Any]]:
    return [row for row in GOLDEN["written"] if "error" not in row]


@pytest.mark.parametrize("row", _written(), ids=_row)
def test_bytes_are_those_of_java(row: dict[str, Any]) -> None:
    name, expected = row["serde"], _hash(row["hex"])

    assert expected == serde(name).serializer.serialize("t", value_of(name, row["value"]))


@pytest.mark.parametrize("row", [row for row in _written() if not row["serde"].startswith("combined_prefix")], ids=_row)
def test_bytes_of_java_are_read_back(row: dict[str, Any]) -> None:
    name, expected = row["serde"], value_of(row["serde"], row["value"])
    if row.get("read_back_latest"):  # written bytes do not say whether a change is the latest
        expected = (*expected[:2], True)

    got = serde(name).deserializer.deserialize("t", _hash(row["hex"]))

    assert got == expected or (math.isnan(got) and math.isnan(expected))


@pytest.mark.parametrize("row", [row for row in GOLDEN["written"] if "error" in row], ids=_row)
def test_values_that_java_refuses_are_refused(row: dict[str, Any]) -> None:
    with pytest.raises(SerializationError):
        serde(row["serde"]).serializer.serialize("t", value_of(row["serde"], row["value"]))


@pytest.mark.parametrize("row", GOLDEN["read"], ids=_row)
def test_bytes_are_read_or_refused_as_in_java(row: dict[str, Any]) -> None:
    name, data = row["serde"], bytes.fromhex(row["hex"])
    default = SerializationError if "error" in row else value_of(name, row.get("value"))
    expected = JAVA_MISTAKES.get((name, row["hex"]), default)

    if expected is SerializationError:
        with pytest.raises(SerializationError):
            serde(name).deserializer.deserialize("t", data)
    else:
        assert expected == serde(name).deserializer.deserialize("t", data)


@pytest.mark.parametrize("row", GOLDEN["surrogates"], ids=lambda row: str(row["utf16"]))
def test_surrogates_are_written_as_in_java(row: dict[str, Any]) -> None:
    text = "".join(map(chr, row["utf16"]))

    assert bytes.fromhex(row["hex"]) == StringSerde().serialize("t", text)
    assert bytes.fromhex(row["hex"]) == StringSerde("UTF8").serialize("t", text)


def test_malformed_utf_8_is_read_as_in_java() -> None:
    decode = StringSerde().decoder("t")
    rows = GOLDEN["malformed_utf_8"]

    expected = [bytes.fromhex(row["utf_16"]).decode("utf-16-be") for row in rows]

    assert expected == [decode(bytes.fromhex(row["hex"]), ()) for row in rows]
