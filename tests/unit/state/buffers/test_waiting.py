"""The store of what waits for a partner in a left or outer join."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pykstreams.errors import InvalidStateStoreError
from pykstreams.serdes.primitives import LongSerde, StringSerde
from pykstreams.state import Stores
from pykstreams.state.buffers.waiting import JoinProgress, WaitingRecords, waiting_records
from pykstreams.state.spec import StoreBuilder
from tests.unit.state.support import Context

LEFT, RIGHT = True, False
ENGINES = [Stores.in_memory_key_value_store, Stores.persistent_key_value_store]


def made(context: Context, engine: Callable[[str], Any] = Stores.in_memory_key_value_store) -> WaitingRecords:
    builder = StoreBuilder(engine("shared"), waiting_records, StringSerde(), (StringSerde(), LongSerde()))
    store = builder.build()
    store.init(context)
    context.record(77, headers=[("h", b"1")])
    return store


def waiting(store: WaitingRecords) -> list[tuple[int, bool, Any, Any]]:
    return [(time, left, key, value) for _, time, left, key, value in store.scan()]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_records_come_by_time_and_at_one_time_those_of_the_right_side_first(tmp_path: Path, engine: Any) -> None:
    store = made(Context(tmp_path), engine)
    store.add("b", 5, LEFT, "x")
    store.add("a", 9, LEFT, "y")
    store.add("z", 5, RIGHT, 3)
    store.add("a", 5, LEFT, "w")

    assert waiting(store) == [(5, RIGHT, "z", 3), (5, LEFT, "a", "w"), (5, LEFT, "b", "x"), (9, LEFT, "a", "y")]
    store.close()


def test_records_of_one_key_time_and_side_come_in_the_order_in_which_they_came(tmp_path: Path, engine: Any) -> None:
    store = made(Context(tmp_path), engine)
    for value in ("x", "", "y"):
        store.add("a", 5, LEFT, value)

    assert waiting(store) == [(5, LEFT, "a", "x"), (5, LEFT, "a", ""), (5, LEFT, "a", "y")]
    store.close()


def test_discarding_takes_all_records_of_a_key_time_and_side(tmp_path: Path) -> None:
    store = made(Context(tmp_path))
    store.add("a", 5, LEFT, "x")
    store.add("a", 5, LEFT, "y")
    store.add("a", 5, RIGHT, 1)
    store.discard("a", 5, LEFT)

    assert waiting(store) == [(5, RIGHT, "a", 1)]


def test_the_changelog_has_the_lists_of_kafka_streams_with_the_time_of_the_record_and_no_headers(
    tmp_path: Path,
) -> None:
    context = Context(tmp_path)
    store = made(context)
    store.add("k", 10, LEFT, "a1")
    store.add("k", 10, LEFT, "b")
    store.add("j", 10, RIGHT, 7)

    left, right = bytes.fromhex("000000000000000a016b"), bytes.fromhex("000000000000000a006a")
    assert context.logged == [
        (left, bytes.fromhex("01 00000001 00000003 016131"), 77, ()),
        (left, bytes.fromhex("01 00000002 00000003 016131 00000002 0162"), 77, ()),
        (right, bytes.fromhex("01 00000001 00000009 00 0000000000000007"), 77, ()),
    ]


def test_the_changelog_hears_of_what_is_discarded_only_if_it_waited_and_of_what_is_removed_always(
    tmp_path: Path,
) -> None:
    context = Context(tmp_path)
    store = made(context)
    store.discard("a", 5, LEFT)
    assert context.logged == []

    store.add("a", 5, LEFT, "x")
    store.discard("a", 5, LEFT)
    store.remove(b"raw")

    assert [(key[9:], value) for key, value, _, _ in context.logged[1:]] == [(b"a", None), (b"", None)]


def test_a_value_without_bytes_takes_its_predecessors_away(tmp_path: Path) -> None:
    """As in Kafka Streams, where null stands for a deletion."""

    builder = StoreBuilder(
        Stores.in_memory_key_value_store("shared"), waiting_records, StringSerde(), (_Serializing(), LongSerde())
    )
    context = Context(tmp_path)
    store = builder.build()
    store.init(context)
    context.record(1)
    store.add("a", 5, LEFT, "x")
    store.add("a", 5, LEFT, "nothing")

    assert waiting(store) == []


class _Serializing:
    """A serde that has no bytes for one value."""

    def __init__(self) -> None:
        self.serializer = self
        self.deserializer = StringSerde().deserializer

    def serialize(self, topic: str, data: Any, headers: Any = None) -> bytes | None:
        return None if data == "nothing" else str(data).encode()


def test_what_was_logged_is_there_again_after_it_is_restored(tmp_path: Path, engine: Any) -> None:
    before = Context(tmp_path / "before")
    store = made(before, engine)
    store.add("a", 5, LEFT, "x")
    store.add("a", 5, LEFT, "y")
    store.add("b", 6, RIGHT, 1)
    store.add("c", 7, RIGHT, 2)
    store.discard("b", 6, RIGHT)
    expected = waiting(store)
    store.close()

    restored = made(Context(tmp_path / "after"), engine)
    restored.restore(before.changelog_rows())
    restored.end_restore()

    assert waiting(restored) == expected
    restored.close()


def test_a_store_on_disk_keeps_what_was_committed(tmp_path: Path) -> None:
    context = Context(tmp_path)
    store = made(context, Stores.persistent_key_value_store)
    store.add("a", 5, LEFT, "x")
    store.commit(3)
    store.add("a", 5, LEFT, "y")
    store.close()

    reopened = made(context, Stores.persistent_key_value_store)
    assert (waiting(reopened), reopened.committed_offset()) == ([(5, LEFT, "a", "x")], 3)
    reopened.close()


def test_every_record_is_one_raw_row(tmp_path: Path) -> None:
    store = made(Context(tmp_path))
    store.add("a", 5, LEFT, "x")
    store.add("a", 5, LEFT, "y")

    key = bytes.fromhex("0000000000000005 01 61")
    assert list(store.raw_rows()) == [(key, b"\x01x", None, ()), (key, b"\x01y", None, ())]
    assert store.approximate_num_entries() == 1


def test_a_closed_store_is_refused(tmp_path: Path) -> None:
    store = made(Context(tmp_path))
    store.close()

    with pytest.raises(InvalidStateStoreError, match="store 'shared' is not open"):
        store.add("a", 5, LEFT, "x")


def test_nobody_need_look_before_the_window_of_the_earliest_record_closes() -> None:
    progress = JoinProgress()
    progress.note(20)
    progress.note(10)
    progress.stream_time = 15

    assert not progress.may_have_closed(5)
    progress.stream_time = 16
    assert progress.may_have_closed(5)


def test_somebody_looks_where_no_record_is_known_unless_the_window_closes_at_once() -> None:
    progress = JoinProgress()

    assert (progress.may_have_closed(1), progress.may_have_closed(0)) == (True, False)
