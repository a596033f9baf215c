"""Keys inside windows: sizes, settings, base keys and errors."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from pykstreams.core.errors import ConfigError, SerdeError
from pykstreams.core.windows import Window, Windowed
from pykstreams.serdes import (
    LongSerde,
    SessionWindowedDeserializer,
    SessionWindowedSerde,
    SessionWindowedSerializer,
    StringSerde,
    TimeWindowedDeserializer,
    TimeWindowedSerde,
    TimeWindowedSerializer,
    WindowedSerdes,
)

KEY = Windowed("key", Window(5, 15))


class Closing(StringSerde):
    """Counts how often it was closed."""

    closed = 0

    def close(self) -> None:
        type(self).closed += 1


def test_the_window_size_gives_the_end() -> None:
    serde = TimeWindowedSerde(StringSerde(), timedelta(seconds=1))

    got = serde.deserializer.deserialize("t", serde.serializer.serialize("t", KEY))

    assert got == Windowed("key", Window(5, 1005))
    assert serde.deserializer.window_size_ms == 1000


def test_a_window_that_would_end_after_the_last_ms_ends_there() -> None:
    data = b"key" + (2**63 - 5).to_bytes(8, "big")

    got = TimeWindowedDeserializer(StringSerde(), 10).deserialize("t", data)

    assert got == Windowed("key", Window(2**63 - 5, 2**63 - 1))


def test_a_changelog_key_has_a_sequence_number_behind_the_start() -> None:
    data = TimeWindowedSerializer(StringSerde()).serialize("t", KEY)
    assert data is not None

    got = TimeWindowedSerde(StringSerde(), 10, changelog=True).deserializer.deserialize("t", data + b"\0\0\0\1")

    assert got == KEY


def test_the_base_key_is_the_key_alone() -> None:
    assert TimeWindowedSerializer(StringSerde()).serialize_base_key("t", KEY) == b"key"
    assert SessionWindowedSerializer(StringSerde()).serialize_base_key("t", KEY) == b"key"


def test_a_base_key_of_none_is_refused() -> None:
    with pytest.raises(SerdeError, match="expected a Windowed with a key that is not None"):
        TimeWindowedSerializer(StringSerde()).serialize_base_key("t", Windowed(None, Window(0, 1)))


@pytest.mark.parametrize("value", ["key", 5, Windowed(None, Window(0, 1))])
@pytest.mark.parametrize("kind", [TimeWindowedSerializer, SessionWindowedSerializer])
def test_only_windowed_keys_are_written(kind: Any, value: Any) -> None:
    with pytest.raises(SerdeError, match="expected a Windowed with a key that is not None"):
        kind(StringSerde()).serialize("t", value)


@pytest.mark.parametrize(
    ("deserializer", "data", "message"),
    [
        (TimeWindowedDeserializer(StringSerde(), 10), "00", "no key in a time window: unpack requires"),
        (TimeWindowedDeserializer(StringSerde(), 10), "ffffffffffffffff", "window start is -1; it must not be"),
        (TimeWindowedDeserializer(StringSerde(), 10), "7fffffffffffffff", "leaves no room for a window"),
        (SessionWindowedDeserializer(StringSerde()), "00", "no key in a session: unpack requires"),
        (SessionWindowedDeserializer(StringSerde()), "00" * 15 + "01", "window end 0 lies before its start 1"),
    ],
)
def test_bytes_that_are_no_windowed_key_are_explained(deserializer: Any, data: str, message: str) -> None:
    with pytest.raises(SerdeError, match=message):
        deserializer.deserialize("t", bytes.fromhex(data))


def test_an_error_of_the_key_names_the_inner_serde() -> None:
    with pytest.raises(SerdeError, match=r"LongSerde\(\) cannot read 1 bytes \(hex 6b\)"):
        TimeWindowedDeserializer(LongSerde(), 10).deserialize("t", b"k" + bytes(8))


@pytest.mark.parametrize("size", [0, -1])
def test_a_window_size_below_one_ms_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="window size is"):
        TimeWindowedSerde(StringSerde(), size)


def test_the_factories_give_the_same_serdes() -> None:
    assert WindowedSerdes.time_windowed(StringSerde(), 10) == TimeWindowedSerde(StringSerde(), 10)
    assert WindowedSerdes.session_windowed(StringSerde()) == SessionWindowedSerde(StringSerde())


def test_settings_that_agree_or_are_silent_are_accepted() -> None:
    setting = TimeWindowedSerializer.WINDOWED_INNER_SERIALIZER_CLASS
    for serializer in (TimeWindowedSerializer(StringSerde()), SessionWindowedSerializer(StringSerde())):
        serializer.configure({}, True)
        serializer.configure({setting: "pykstreams.serdes:StringSerde"}, True)
    TimeWindowedDeserializer(StringSerde(), 10).configure({}, True)
    SessionWindowedDeserializer(StringSerde()).configure({}, True)


def test_settings_that_name_another_inner_serde_are_refused() -> None:
    settings = {"windowed.inner.serializer.class": LongSerde, "windowed.inner.deserializer.class": LongSerde}
    message = (
        r"windowed.inner.(de)?serializer.class is .*LongSerde.*, and the (de)?serializer was made with StringSerde"
    )
    for side in (
        TimeWindowedSerializer(StringSerde()),
        SessionWindowedSerializer(StringSerde()),
        TimeWindowedDeserializer(StringSerde(), 10),
        SessionWindowedDeserializer(StringSerde()),
    ):
        with pytest.raises(ConfigError, match=message):
            side.configure(settings, True)


def test_a_window_size_in_the_settings_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"window.size.ms is 5, and the deserializer was made with 10; remove"):
        TimeWindowedDeserializer(StringSerde(), 10).configure({"window.size.ms": 5}, True)


def test_closing_closes_the_inner_serde() -> None:
    inner = Closing()
    for side in (
        TimeWindowedSerializer(inner),
        SessionWindowedSerializer(inner),
        TimeWindowedDeserializer(inner, 10),
        SessionWindowedDeserializer(inner),
        TimeWindowedSerializer(StringSerde()),
    ):
        side.close()

    assert Closing.closed == 4
