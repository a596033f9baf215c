"""Byte layouts of rows, drawn out; expected bytes are those of Kafka Streams 4.3.1."""

from __future__ import annotations

import pytest

from pykstreams.state.encoding.changelog_rows import ChangelogColumns
from pykstreams.state.encoding.layout import (
    NO_TIMESTAMP,
    PLAIN,
    TIMESTAMPED,
    WITH_HEADERS,
    Layout,
    pack_headers,
    unpack_headers,
)


def test_plain_row_is_its_value() -> None:
    assert PLAIN.pack(b"v", 5, (("h", b"x"),)) == b"v"
    assert PLAIN.unpack(b"v") == (b"v", NO_TIMESTAMP, ())


def test_timestamped_row_is_eight_bytes_of_time_and_the_value() -> None:
    packed = TIMESTAMPED.pack(b"v", 258, ())

    assert packed.hex(" ") == "00 00 00 00 00 00 01 02 76"
    assert TIMESTAMPED.unpack(packed) == (b"v", 258, ())


def test_timestamp_of_a_row_may_be_minus_one() -> None:
    assert TIMESTAMPED.pack(b"", -1, ()).hex() == "ff" * 8
    assert TIMESTAMPED.unpack(b"\xff" * 8) == (b"", -1, ())


def test_row_without_headers_starts_with_a_zero() -> None:
    packed = WITH_HEADERS.pack(b"v", 1, ())

    assert packed.hex(" ") == "00 00 00 00 00 00 00 00 01 76"
    assert WITH_HEADERS.unpack(packed) == (b"v", 1, ())


def test_row_with_headers_starts_with_their_size() -> None:
    headers = (("a", b"xy"), ("é", None), ("a", b""))
    packed = WITH_HEADERS.pack(b"v", 1, headers)

    assert packed.hex(" ") == "1a 06 02 61 04 78 79 04 c3 a9 01 02 61 00 00 00 00 00 00 00 00 01 76"
    assert WITH_HEADERS.unpack(packed) == (b"v", 1, headers)


@pytest.mark.parametrize("size", [63, 64, 8191, 8192, 100_000])
def test_sizes_of_any_width_are_read_back(size: int) -> None:
    headers = (("h" * size, b"x" * size),)

    assert unpack_headers(pack_headers(headers)) == headers
    assert WITH_HEADERS.unpack(WITH_HEADERS.pack(b"v", 1, headers)) == (b"v", 1, headers)


@pytest.mark.parametrize("layout", [PLAIN, TIMESTAMPED, WITH_HEADERS])
def test_restored_rows_are_packed_and_deletes_stay(layout: Layout) -> None:
    rows = [(b"a", b"1", 7, (("h", b"x"),)), (b"b", None, 8, ())]
    expected = [(b"a", layout.pack(b"1", 7, (("h", b"x"),))), (b"b", None)]

    assert list(layout.restored(ChangelogColumns.of(rows))) == expected
