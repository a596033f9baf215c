"""Writes wait for their commit; an early flush claims no newer offset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from pykstreams.state.engines.transactional import Range, WriteBuffer
from pykstreams.state.interfaces.engine import Row, Write
from pykstreams.state.interfaces.store import StoreContext
from tests.unit.state.support import Context


class Disk:
    """A durable engine in memory that keeps each batch it was given."""

    def __init__(self) -> None:
        self.rows: dict[bytes, bytes] = {}
        self.offset: int | None = None
        self.batches: list[tuple[list[Write], int | None]] = []

    def open(self, context: StoreContext) -> None:
        pass

    def get(self, key: bytes) -> bytes | None:
        return self.rows.get(key)

    def scan(self, lower: bytes | None, upper: bytes | None, reverse: bool) -> Iterator[Row]:
        keys = sorted(key for key in self.rows if (lower is None or lower <= key) and (upper is None or key < upper))
        return iter([(key, self.rows[key]) for key in (reversed(keys) if reverse else keys)])

    def load(self, rows: Iterable[Write]) -> None:
        self.write_batch(rows, None)

    def write_batch(self, rows: Iterable[Write], offset: int | None, dropped: Iterable[Range] = ()) -> None:
        batch = list(rows)
        self.batches.append((batch, offset))
        for lower, upper in dropped:
            for key in [key for key in self.rows if lower <= key < upper]:
                del self.rows[key]
        for key, packed in batch:
            if packed is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = packed
        self.offset = self.offset if offset is None else offset

    def end_load(self) -> None:
        """It is always ready."""

    def committed_offset(self) -> int | None:
        return self.offset

    def flushed_offset(self) -> int | None:
        return None

    def approximate_num_entries(self) -> int:
        return len(self.rows)

    def property_value(self, name: str) -> int | None:
        return None

    def statistics(self) -> str | None:
        return None

    def close(self) -> None:
        pass


def buffer(tmp_path: Path, guarantee: str = "at_least_once", limit_bytes: int = 1000) -> tuple[WriteBuffer, Disk]:
    disk = Disk()
    made = WriteBuffer(disk, limit_bytes)
    made.open(Context(tmp_path, {"processing.guarantee": guarantee}))
    return made, disk


def test_commit_writes_everything_and_its_offset_in_one_batch(tmp_path: Path) -> None:
    store, disk = buffer(tmp_path)
    store.put(b"a", b"1")
    store.put(b"b", b"2")
    store.put(b"a", None)

    assert disk.batches == []
    store.commit(7)
    assert disk.batches == [([(b"a", None), (b"b", b"2")], 7)]
    assert store.committed_offset() == 7
    assert store.uncommitted_bytes == 0


def test_commit_without_writes_still_moves_the_offset(tmp_path: Path) -> None:
    store, disk = buffer(tmp_path)
    store.commit(7)
    store.commit(None)

    assert disk.batches == [([], 7)]


def test_a_dropped_range_goes_with_the_next_commit(tmp_path: Path) -> None:
    store, disk = buffer(tmp_path)
    disk.rows = {b"a": b"1", b"b": b"2", b"c": b"3"}
    store.put(b"aa", b"4")
    store.put(b"c", b"5")
    store.drop(b"a", b"c")

    assert disk.batches == []
    store.commit(9)
    assert disk.batches == [([(b"c", b"5")], 9)]
    assert disk.rows == {b"c": b"5"}
    store.commit(10)
    assert disk.rows == {b"c": b"5"}


def test_several_ranges_are_dropped_and_their_neighbours_stay(tmp_path: Path) -> None:
    store, disk = buffer(tmp_path)
    disk.rows = {b"a": b"1", b"c": b"1", b"f": b"1"}
    for key in (b"b", b"g", b"d", b"e", b"a"):
        store.put(key, b"2")
    store.drop(b"a", b"c")
    store.drop(b"c", b"d")
    store.drop(b"x", b"z")
    store.put(b"d", b"3")
    store.drop(b"e", b"g")
    store.commit(1)

    assert disk.rows == {b"d": b"3", b"g": b"2"}


def test_a_drop_does_not_put_the_waiting_keys_in_order(tmp_path: Path) -> None:
    store, _ = buffer(tmp_path)
    store.put(b"a", b"1")
    store.drop(b"a", b"b")

    assert not store._keys.awake


def test_a_drop_alone_is_committed_too(tmp_path: Path) -> None:
    store, disk = buffer(tmp_path)
    disk.rows = {b"a": b"1"}
    store.drop(b"a", b"b")
    store.commit(None)

    assert disk.rows == {}


def test_an_uncommitted_drop_is_forgotten_with_closing(tmp_path: Path) -> None:
    store, disk = buffer(tmp_path)
    disk.rows = {b"a": b"1"}
    store.drop(b"a", b"b")
    store.close()
    store.commit(1)

    assert disk.rows == {b"a": b"1"}


def test_uncommitted_writes_are_gone_after_closing(tmp_path: Path) -> None:
    store, disk = buffer(tmp_path)
    store.put(b"a", b"1")
    store.close()

    assert disk.batches == []
    assert store.uncommitted_bytes == 0


def test_scans_see_waiting_writes_over_durable_ones(tmp_path: Path) -> None:
    store, disk = buffer(tmp_path)
    disk.rows = {b"a": b"1", b"b": b"2", b"c": b"3"}
    store.put(b"b", None)
    store.put(b"bb", b"4")
    store.put(b"c", b"5")

    assert list(store.scan(None, None, False)) == [(b"a", b"1"), (b"bb", b"4"), (b"c", b"5")]
    assert list(store.scan(b"b", None, True)) == [(b"c", b"5"), (b"bb", b"4")]
    assert list(store.scan(b"b", b"c", False)) == [(b"bb", b"4")]
    assert store.get(b"b") is None


def test_size_counts_each_waiting_row_once(tmp_path: Path) -> None:
    store, _ = buffer(tmp_path)
    store.put(b"key", b"12345")
    once = store.uncommitted_bytes
    store.put(b"key", b"123")
    store.put(b"key", None)
    store.put(b"key", b"12345")

    assert store.uncommitted_bytes == once == 3 + 5 + 64


def test_too_many_writes_are_written_early_without_an_offset_under_at_least_once(tmp_path: Path) -> None:
    store, disk = buffer(tmp_path, limit_bytes=200)
    store.commit(3)
    for number in range(4):
        store.put(b"key%d" % number, b"value")

    assert disk.batches[1:] == [([(b"key0", b"value"), (b"key1", b"value"), (b"key2", b"value")], None)]
    assert store.committed_offset() == 3
    assert store.get(b"key0") == b"value"


def test_too_many_writes_keep_waiting_under_exactly_once(tmp_path: Path) -> None:
    """The runtime sees ``uncommitted_bytes`` and commits: rows of an aborted transaction must not reach the disk."""
    store, disk = buffer(tmp_path, "exactly_once_v2", limit_bytes=200)
    for number in range(9):
        store.put(b"key%d" % number, b"value")

    assert disk.batches == []
    assert store.uncommitted_bytes > 200


def test_reading_the_changelog_again_from_the_stored_offset_mends_an_early_flush(tmp_path: Path) -> None:
    changelog: list[Write] = [(b"k%d" % (number % 3), b"%d" % number) for number in range(12)]
    changelog[10] = (b"k1", None)
    store, disk = buffer(tmp_path, limit_bytes=150)
    for offset, (key, packed) in enumerate(changelog[:9]):
        store.put(key, packed)
        if offset == 4:
            store.commit(offset)
    crashed = dict(disk.rows)

    after_crash, disk_after = buffer(tmp_path)
    disk_after.rows, disk_after.offset = crashed, disk.offset
    start = after_crash.committed_offset()
    assert start is not None
    after_crash.write(changelog[start + 1 :])

    assert disk_after.rows == {b"k0": b"9", b"k2": b"11"}


@pytest.mark.parametrize("waiting", [False, True])
def test_restored_rows_go_straight_to_the_disk_and_over_waiting_ones(tmp_path: Path, waiting: bool) -> None:
    store, disk = buffer(tmp_path)
    if waiting:
        store.put(b"a", b"waiting")
    store.write([(b"a", b"1"), (b"b", b"2"), (b"b", None)])

    assert disk.rows == {b"a": b"1"}
    assert store.get(b"a") == b"1"
    assert disk.offset is None
