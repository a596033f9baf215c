"""Values of records in messages: cut, and hidden while an application wants it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pykstreams.core.errors import SerdeError
from pykstreams.core.shown_values import (
    hide_values,
    reason,
    show_values,
    shown,
    shown_bytes,
    shown_text,
    without_values,
)
from pykstreams.serdes import LongSerde


@pytest.fixture
def hidden() -> Iterator[None]:
    owner = object()
    hide_values(owner)
    yield
    show_values(owner)


def test_a_value_is_shown_and_cut() -> None:
    assert shown("Ann") == "'Ann'"
    assert shown("x" * 500) == "'" + "x" * 119 + "..."


def test_bytes_are_shown_by_their_start() -> None:
    assert shown_bytes(b"\1\2") == "2 bytes (hex 0102)"
    assert shown_bytes(b"") == "0 bytes"
    assert shown_bytes(b"x" * 20) == f"20 bytes (hex {'78' * 16}...)"
    assert shown_bytes(5) == "5 (no bytes)"


def test_text_in_bytes_is_shown_as_text_and_cut() -> None:
    assert shown_text(b'{"id":5}') == "8 bytes ('{\"id\":5}')"
    assert shown_text("Zürich\n".encode()) == "8 bytes ('Zürich\\n')"
    assert shown_text(b"x" * 500) == f"500 bytes ('{'x' * 119}...)"
    assert shown_text(b"") == "0 bytes"
    assert shown_text(bytearray(b"a")) == "1 bytes ('a')"
    assert shown_text(5) == "5 (no bytes)"


@pytest.mark.parametrize("data", [b"\xff\xfe", b"\x00\x00\x00\x01a", b"{\x1b[31m}", "\u202e".encode()])
def test_bytes_that_are_no_text_that_can_be_printed_are_shown_in_hex(data: bytes) -> None:
    assert shown_text(data) == shown_bytes(data)


@pytest.mark.usefixtures("hidden")
def test_hidden_values_are_told_by_type_and_length_alone() -> None:
    assert shown("Ann") == "<str hidden>"
    assert shown_bytes(b"Ann") == "3 bytes"
    assert shown_text(b"Ann") == "3 bytes"
    assert reason("ValidationError: name is 'Ann'") == "ValidationError"


@pytest.mark.usefixtures("hidden")
def test_a_serde_error_has_no_values_where_they_are_hidden() -> None:
    with pytest.raises(SerdeError) as wrong:
        LongSerde().serialize("orders", "Ann")  # type: ignore[arg-type]
    with pytest.raises(SerdeError) as bad:
        LongSerde().deserialize("orders", b"Ann")

    assert "Ann" not in str(wrong.value)
    assert "416e6e" not in str(bad.value)


@pytest.mark.usefixtures("hidden")
def test_causes_of_serde_errors_go_where_values_are_hidden() -> None:
    error = SerdeError("outer")
    error.__cause__ = SerdeError("inner")
    error.__cause__.__cause__ = ValueError("Ann")

    without_values(error)

    assert str(error.__cause__) == "inner"
    assert error.__cause__.__cause__ is None


def test_values_are_hidden_until_the_last_that_wants_it_has_ended() -> None:
    one, other = object(), object()
    hide_values(one)
    hide_values(other)
    hide_values(other)
    show_values(one)

    assert shown(1) == "<int hidden>"
    show_values(other)
    show_values(other)
    assert shown(1) == "1"
