"""What a cache knows of the rows below it: by their time some of them cannot be there."""

from __future__ import annotations

from collections.abc import Iterator

from pykstreams.state.interfaces.engine import Row
from pykstreams.state.layers.rows_below import RowsBelow

TIME_AT = slice(0, 8)


class Below:
    def __init__(self, *keys: bytes) -> None:
        self.rows = dict.fromkeys(keys, b"row")
        self.asked: list[bytes] = []

    def get(self, key: bytes) -> bytes | None:
        self.asked.append(key)
        return self.rows.get(key)

    def put(self, key: bytes, packed: bytes | None) -> None:
        raise AssertionError("nothing is put")

    def scan(self, lower: bytes | None, upper: bytes | None, reverse: bool) -> Iterator[Row]:
        return iter(self.rows.items())


def key_of(time: int) -> bytes:
    return time.to_bytes(8, "big") + b"key"


def test_any_row_may_be_below_until_the_latest_time_is_known() -> None:
    below = Below(key_of(5))
    rows = RowsBelow(below, TIME_AT)

    assert not rows.none_since(key_of(1_000)[TIME_AT])
    assert rows.get(key_of(5)) == b"row"
    assert rows.get(key_of(1_000)) is None
    assert below.asked == [key_of(5), key_of(1_000)]


def test_a_row_later_than_all_below_is_not_looked_for() -> None:
    below = Below(key_of(5))
    rows = RowsBelow(below, TIME_AT)
    rows.know(key_of(5)[TIME_AT])

    assert (rows.get(key_of(6)), rows.get(key_of(5))) == (None, b"row")
    assert below.asked == [key_of(5)]
    assert list(rows.scan_since(key_of(6)[TIME_AT], b"", b"\xff", False)) == []
    assert list(rows.scan_since(key_of(5)[TIME_AT], b"", b"\xff", False)) == [(key_of(5), b"row")]


def test_a_row_that_was_evicted_may_be_below_from_then_on() -> None:
    below = Below()
    rows = RowsBelow(below, TIME_AT)
    rows.know(b"")
    rows.note_eviction(key_of(7))
    rows.note_eviction(key_of(3))

    assert not rows.none_since(key_of(7)[TIME_AT])
    assert rows.none_since(key_of(8)[TIME_AT])
    rows.get(key_of(7))
    assert below.asked == [key_of(7)]


def test_keys_without_a_time_are_always_looked_for() -> None:
    below = Below(b"a")
    rows = RowsBelow(below, None)
    rows.know(b"")
    rows.note_eviction(b"b")

    assert (rows.get(b"a"), rows.get(b"b")) == (b"row", None)
    assert below.asked == [b"a", b"b"]
