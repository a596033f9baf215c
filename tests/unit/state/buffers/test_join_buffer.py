"""The buffer of a stream-table join with grace: order, lateness, changelog, restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykstreams.core.errors import ConfigError, InvalidStateStoreError, ProcessorStateError
from pykstreams.serdes import Serdes
from pykstreams.state.buffers.join_buffer import JoinBuffer, join_buffer
from pykstreams.state.engines.memory import MemoryEngine
from tests.unit.state.support import Context


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return Context(tmp_path)


def opened(context: Context, grace_ms: int = 10) -> JoinBuffer:
    buffer = join_buffer("j-Buffer", Serdes.string(), Serdes.string(), grace_ms=grace_ms, topic="j").build()
    buffer.init(context)
    return buffer


def put(buffer: JoinBuffer, context: Context, timestamp: int, key: str, value: str, **record: Any) -> bool:
    context.record(timestamp, **record)
    assert context.current.raw is not None
    return buffer.put(key, value, context.current.raw)


def evicted(buffer: JoinBuffer) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    buffer.evict(lambda key, value, raw: found.append((key, value, raw[1])))
    return found


def test_records_leave_in_order_of_time_and_key_when_the_grace_has_passed(context: Context) -> None:
    buffer = opened(context)
    for timestamp, key in ((8, "b"), (5, "a"), (8, "a"), (9, "z")):
        assert put(buffer, context, timestamp, key, key.upper())
    assert evicted(buffer) == []

    put(buffer, context, 18, "x", "X")
    assert evicted(buffer) == [("a", "A", 5), ("a", "A", 8), ("b", "B", 8)]
    assert evicted(buffer) == []
    put(buffer, context, 28, "y", "Y")
    assert evicted(buffer) == [("z", "Z", 9), ("x", "X", 18)]


def test_records_of_one_key_and_time_keep_their_order(context: Context) -> None:
    buffer = opened(context, grace_ms=0)
    for value in "321":
        put(buffer, context, 5, "a", value)

    assert [value for _, value, _ in evicted(buffer)] == ["3", "2", "1"]


def test_without_grace_a_record_of_the_largest_timestamp_leaves_at_once(context: Context) -> None:
    buffer = opened(context, grace_ms=0)
    put(buffer, context, 2**63 - 1, "a", "last")

    assert evicted(buffer) == [("a", "last", 2**63 - 1)]


def test_a_record_older_than_the_grace_does_not_wait(context: Context) -> None:
    buffer = opened(context)
    put(buffer, context, 20, "a", "1")

    assert not put(buffer, context, 9, "a", "late")
    assert put(buffer, context, 10, "a", "edge")
    assert evicted(buffer) == [("a", "edge", 10)]


def test_a_record_brings_back_where_it_came_from(context: Context) -> None:
    buffer = opened(context, grace_ms=0)
    put(buffer, context, 5, "a", "1", topic="orders", offset=17, headers=(("h", b"1"),))
    found: list[Any] = []
    buffer.evict(lambda key, value, raw: found.append(raw))
    context.current.raw = found[0]

    assert context.current.context == ("orders", 1, 17, 5, (("h", b"1"),), None, None)


def test_the_changelog_gets_each_record_at_once_and_a_tombstone_when_it_has_left(context: Context) -> None:
    buffer = opened(context)
    put(buffer, context, 5, "a", "s5")
    put(buffer, context, 15, "a", "s15", offset=2)
    evicted(buffer)

    first = bytes.fromhex("00 0000000000000005 61 00000001")
    assert context.logged == [
        (
            first,
            bytes.fromhex(
                "0000000000000005 0000000000000000 00000002 696e 00000001 00000000 ffffffff ffffffff 00000002 7335"
                "0000000000000000"
            ),
            None,
            (),
        ),
        (
            bytes.fromhex("00 000000000000000f 61 00000002"),
            bytes.fromhex(
                "000000000000000f 0000000000000002 00000002 696e 00000001 00000000 ffffffff ffffffff 00000003 733135"
                "0000000000000000"
            ),
            None,
            (),
        ),
        (first, None, None, ()),
    ]


def test_a_record_stays_when_the_join_fails(context: Context) -> None:
    buffer = opened(context, grace_ms=0)
    put(buffer, context, 5, "a", "1")
    put(buffer, context, 5, "b", "1")

    def fail_at_b(key: str, value: str, raw: Any) -> None:
        if key == "b":
            raise OSError("no")

    with pytest.raises(OSError, match="no"):
        buffer.evict(fail_at_b)
    assert evicted(buffer) == [("b", "1", 5)]


def test_what_waits_is_there_after_a_restart_with_its_time_and_sequence(context: Context) -> None:
    buffer = opened(context)
    put(buffer, context, 20, "a", "1")
    put(buffer, context, 15, "b", "1")
    buffer.commit(7)
    buffer.close()

    again = opened(context)
    assert again.committed_offset() == 7
    assert not put(again, context, 9, "a", "late")
    put(again, context, 20, "a", "2")
    put(again, context, 30, "c", "1")
    assert evicted(again) == [("b", "1", 15), ("a", "1", 20), ("a", "2", 20)]
    again.close()


def test_what_waits_is_restored_from_the_changelog(context: Context, tmp_path: Path) -> None:
    buffer = opened(context)
    put(buffer, context, 5, "gone", "1")
    put(buffer, context, 20, "a", "1", headers=(("h", None),))
    put(buffer, context, 15, "b", "1")
    evicted(buffer)

    other = opened(Context(tmp_path / "other"))
    other.restore(context.changelog_rows())
    other.end_restore()

    assert other.approximate_num_entries() == 2
    assert sorted(other.raw_rows()) == sorted(buffer.raw_rows())
    put(other, context, 30, "c", "1")
    assert evicted(other) == [("b", "1", 15), ("a", "1", 20)]
    buffer.close()
    other.close()


def test_a_null_key_cannot_wait(context: Context) -> None:
    with pytest.raises(TypeError, match="the key for store 'j-Buffer' is None"):
        put(opened(context), context, 5, None, "1")  # type: ignore[arg-type]


def test_serdes_are_told_the_name_of_the_join(context: Context) -> None:
    with pytest.raises(ConfigError, match="store 'j-Buffer' of task 0_1 has no key serde"):
        join_buffer("j-Buffer", None, None, grace_ms=1, topic="j").build().init(context)

    topics: list[str] = []

    class Noting:
        serializer = deserializer = property(lambda self: self)

        def serialize(self, topic: str, data: Any, headers: Any = None) -> bytes:
            topics.append(topic)
            return b"x"

        def deserialize(self, topic: str, data: Any, headers: Any = None) -> str:
            topics.append(topic)
            return "x"

    buffer = join_buffer("j-Buffer", Noting(), Noting(), grace_ms=0, topic="j").build()
    buffer.init(context)
    put(buffer, context, 5, "a", "1")
    evicted(buffer)

    assert topics == ["j"] * 4
    buffer.close()


def test_a_changelog_of_something_else_is_refused(context: Context) -> None:
    buffer = opened(context, grace_ms=0)
    buffer.restore([(bytes.fromhex("00 0000000000000005 61 00000001"), b"x", 0, ())])
    buffer.end_restore()

    with pytest.raises(ProcessorStateError) as caught:
        evicted(buffer)

    assert str(caught.value) == (
        "store 'j-Buffer': the row of key b'\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x05a\\x00\\x00\\x00\\x01' is no "
        "record that waits for a join: 8 bytes are wanted at 0 of 1. Was its changelog written by something else? "
        "Reset the application, or give the join another name"
    )
    buffer.close()


def test_a_closed_buffer_takes_nothing(context: Context) -> None:
    buffer = opened(context)
    buffer.close()

    assert (buffer.name, buffer.is_open, buffer.persistent) == ("j-Buffer", False, True)
    with pytest.raises(InvalidStateStoreError, match="store 'j-Buffer' is not open"):
        put(buffer, context, 5, "a", "1")


@given(
    grace_ms=st.integers(0, 10),
    records=st.lists(
        st.tuples(st.integers(0, 30), st.sampled_from(["", "a", "aa", "b"]), st.booleans(), st.booleans()), max_size=40
    ),
)
def test_a_buffer_equals_a_sorted_list(grace_ms: int, records: list[tuple[int, str, bool, bool]]) -> None:
    """Some records are followed by a look at what is due, some by a restart from the changelog."""
    context = Context(Path())
    rows: list[tuple[int, bytes, int]] = []
    stream_time = -1

    def made() -> JoinBuffer:
        buffer = JoinBuffer("j-Buffer", Serdes.string(), Serdes.string(), grace_ms, "j", MemoryEngine(), logging=True)
        buffer.init(context)
        buffer.restore(context.changelog_rows())
        buffer.end_restore()
        return buffer

    buffer = made()
    for number, (timestamp, key, looks, restarts) in enumerate(records):
        late = timestamp < stream_time - grace_ms
        assert put(buffer, context, timestamp, key, str(number)) is not late
        if not late:
            rows.append((timestamp, key.encode(), number))
            stream_time = max(stream_time, timestamp)
        if looks:
            due = sorted(row for row in rows if row[0] <= stream_time - grace_ms)
            rows = [row for row in rows if row not in due]

            assert evicted(buffer) == [(key.decode(), str(number), time) for time, key, number in due]
        if restarts:
            buffer = made()
            stream_time = max((time for time, _, _ in rows), default=-1)
