"""Lists: the two layouts, and bytes that are none. The bytes themselves are compared in tests/golden."""

from __future__ import annotations

from typing import Any

import pytest

from pykstreams.core.errors import SerdeError
from pykstreams.serdes import ListSerde, LongSerde, Serdes, StringSerde, bind_serializer


class OwnLong(LongSerde):
    """To Java a class of its own, whose size it does not know."""


def test_entries_of_a_built_in_number_have_no_lengths_and_those_of_a_subclass_have() -> None:
    assert ListSerde(LongSerde()).serialize("t", [5]) == bytes.fromhex("00 00000000 00000001 0000000000000005")
    assert ListSerde(OwnLong()).serialize("t", [5]) == bytes.fromhex("01 00000001 00000008 0000000000000005")


def test_a_list_of_numbers_reads_the_layout_with_lengths_too() -> None:
    data = ListSerde(OwnLong()).serialize("t", [5, None])

    assert ListSerde(LongSerde()).deserialize("t", data) == [5, None]


def test_a_list_may_end_with_an_empty_entry() -> None:
    serde = ListSerde(StringSerde())

    assert serde.deserialize("t", serde.serialize("t", ["a", ""])) == ["a", ""]


def test_tuples_are_written_and_read_as_lists() -> None:
    serde: Any = ListSerde(StringSerde())

    assert serde.deserialize("t", serde.serialize("t", ("a", "b"))) == ["a", "b"]


@pytest.mark.parametrize("value", ["abc", {"a"}, 5, b"ab"])
def test_only_lists_are_written(value: Any) -> None:
    with pytest.raises(SerdeError, match=r"ListSerde\(inner=StringSerde.* expected a list"):
        ListSerde(StringSerde()).serialize("t", value)


def test_a_wrong_entry_is_named() -> None:
    with pytest.raises(SerdeError, match=r"LongSerde\(\) cannot write 'x' of type str"):
        bind_serializer(Serdes.list(Serdes.long()), "t")([1, "x"], ())


def test_an_entry_without_bytes_is_refused() -> None:
    nothing: Any = Serdes.from_functions(lambda data: None, bytes)  # type: ignore[arg-type, return-value]

    with pytest.raises(SerdeError, match="an entry that is not None has no bytes"):
        ListSerde(nothing).serialize("t", ["a"])


@pytest.mark.parametrize(
    ("inner", "data", "message"),
    [
        (StringSerde(), "02", "the first byte is neither 00 nor 01"),
        (StringSerde(), "00 00000000 00000000", "its entries have one size, and those of the inner serde have not"),
        (StringSerde(), "01 00000001 00000005 61", "entry 0 has length 5, 1 bytes are left"),
        (StringSerde(), "01 7fffffff", "a count is 2147483647, with 5 bytes in all"),
        (LongSerde(), "00 00000000 00000001 0005", "entry 0 wants 8 bytes, 2 are left"),
        (LongSerde(), "00 ffffffff 00000000", "a count is -1, with 9 bytes in all"),
    ],
)
def test_bytes_that_are_no_list_are_explained(inner: Any, data: str, message: str) -> None:
    with pytest.raises(SerdeError, match=message):
        ListSerde(inner).deserialize("t", bytes.fromhex(data))
