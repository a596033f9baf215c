"""The buffer of a suppression: order, prior values, what it counts, its changelog, and restoring."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykstreams.core.errors import ConfigError, InvalidStateStoreError, ProcessorStateError
from pykstreams.serdes import Serdes
from pykstreams.state.buffers.suppression_buffer import NEVER, NOT_BUFFERED, SuppressionBuffer, suppression_buffer
from tests.unit.state.support import Context


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return Context(tmp_path)


def opened(context: Context, **options: Any) -> SuppressionBuffer:
    buffer = suppression_buffer("sup", Serdes.string(), Serdes.string(), **options).build()
    buffer.init(context)
    return buffer


def put(
    buffer: SuppressionBuffer, context: Context, time: int, key: str, new: str | None, old: str | None = None
) -> None:
    context.record(time, offset=len(context.logged))
    assert context.current.raw is not None
    buffer.put(time, key, (new, old, False), context.current.raw)


def evicted(buffer: SuppressionBuffer, until: int) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    buffer.evict_until(until, lambda key, change, raw: found.append((key, *change, raw[1])))
    return found


def test_changes_leave_by_time_and_at_one_time_by_key(context: Context) -> None:
    buffer = opened(context)
    for time, key in ((5, "b"), (3, "z"), (5, "a"), (9, "c")):
        put(buffer, context, time, key, key.upper())

    assert evicted(buffer, 5) == [("z", "Z", None, True, 3), ("a", "A", None, True, 5), ("b", "B", None, True, 5)]
    assert (buffer.min_time, buffer.record_count) == (9, 1)
    assert [key for key, *_ in evicted(buffer, NEVER)] == ["c"]
    assert (buffer.min_time, buffer.record_count, buffer.size_bytes) == (NEVER, 0, 0)
    assert evicted(buffer, NEVER) == []


def test_a_key_that_changes_again_keeps_its_place_and_takes_the_rest_of_the_last_change(context: Context) -> None:
    buffer = opened(context)
    put(buffer, context, 3, "a", "1", "0")
    put(buffer, context, 8, "a", "2", "1")

    assert buffer.min_time == 3
    assert evicted(buffer, 3) == [("a", "2", "1", True, 8)]


def test_the_prior_value_is_the_old_value_of_the_first_change(context: Context) -> None:
    buffer = opened(context)
    put(buffer, context, 3, "a", "1", "0")
    put(buffer, context, 3, "b", "1")
    put(buffer, context, 8, "a", "2", "1")

    assert [buffer.prior_value(key) for key in "abc"] == ["0", None, NOT_BUFFERED]


def test_a_key_is_there_while_it_leaves_and_stays_when_leaving_fails(context: Context) -> None:
    buffer = opened(context)
    put(buffer, context, 3, "a", "1", "0")
    seen = []

    def fail(key: str, change: Any, raw: Any) -> None:
        seen.append(buffer.prior_value(key))
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        buffer.evict_first(fail)

    assert seen == ["0"]
    assert evicted(buffer, 3) == [("a", "1", "0", True, 3)]


def test_size_counts_time_key_values_and_where_they_came_from(context: Context) -> None:
    buffer = opened(context)
    context_size = 20 + len("in")
    put(buffer, context, 3, "key", "new", "old")

    assert buffer.size_bytes == 8 + 3 + context_size + 3 + 3
    put(buffer, context, 4, "key", None, "older")
    assert buffer.size_bytes == 8 + 3 + context_size + 3 + 5
    put(buffer, context, 4, "k", "v")
    assert buffer.size_bytes == 8 + 3 + context_size + 3 + 5 + 8 + 1 + context_size + 1


def test_the_changelog_gets_one_row_a_key_at_the_flush(context: Context) -> None:
    buffer = opened(context)
    put(buffer, context, 3, "a", "1")
    put(buffer, context, 4, "a", "2", "1")
    put(buffer, context, 5, "b", "1")
    put(buffer, context, 6, "c", "1")
    evicted(buffer, 3)

    assert context.logged == []
    buffer.flush_cache()
    rows = {key: (value, timestamp, headers) for key, value, timestamp, headers in context.logged}
    assert [row[0] for row in context.logged] == [b"a", b"b", b"c"]
    assert rows[b"a"] == (None, None, ())
    value, *rest = rows[b"b"]
    assert rest == [None, (("v", b"\x03"),)]
    assert value is not None
    assert value.hex() == (
        "0000000000000005" "0000000000000000" "00000002" "696e" "00000001" "00000000"
        "ffffffff" "ffffffff" "00000001" "31" "0000000000000005"
    )  # fmt: skip
    context.logged.clear()
    buffer.flush_cache()
    assert context.logged == []


def test_a_key_that_came_and_left_between_two_flushes_gets_a_tombstone(context: Context) -> None:
    buffer = opened(context)
    put(buffer, context, 3, "a", "1")
    evicted(buffer, 3)
    buffer.flush_cache()

    assert context.logged == [(b"a", None, None, ())]


def test_without_changelog_nothing_is_written(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "changelog", lambda name: None)
    buffer = opened(context, logging=False)
    put(buffer, context, 3, "a", "1")
    evicted(buffer, 3)
    put(buffer, context, 3, "b", "1")
    buffer.flush_cache()

    assert (context.logged, buffer.record_count) == ([], 1)


def restored(context: Context, rows: list[Any]) -> SuppressionBuffer:
    buffer = opened(context)
    for row in rows:
        buffer.restore([row])
    buffer.end_restore()
    return buffer


def test_a_restored_buffer_is_the_one_that_wrote_the_changelog(context: Context) -> None:
    buffer = opened(context)
    put(buffer, context, 3, "b", "1", "0")
    put(buffer, context, 3, "a", "1")
    put(buffer, context, 1, "gone", "1")
    buffer.flush_cache()
    put(buffer, context, 7, "b", None, "1")
    evicted(buffer, 2)
    buffer.flush_cache()

    again = restored(context, context.logged)

    assert (again.size_bytes, again.record_count, again.min_time) == (buffer.size_bytes, 2, 3)
    assert again.prior_value("b") == "0"
    assert evicted(again, 9) == evicted(buffer, 9) == [("a", "1", None, True, 3), ("b", None, "1", True, 7)]
    context.logged.clear()
    again.flush_cache()
    assert [row[:2] for row in context.logged] == [(b"a", None), (b"b", None)]


def test_a_buffer_that_is_handed_over_while_it_is_restored_gives_out_what_was_restored(context: Context) -> None:
    """Nothing may be left to restore for the task that takes it up, and then nobody ends it."""
    buffer = opened(context)
    put(buffer, context, 3, "a", "1")
    buffer.flush_cache()
    again = opened(context)
    again.restore(context.changelog_rows())
    again.release()
    again.init(context.of_another_task())

    assert again.min_time == 3
    assert evicted(again, 3) == [("a", "1", None, True, 3)]


def test_what_was_restored_is_not_written_again(context: Context) -> None:
    buffer = opened(context)
    put(buffer, context, 3, "a", "1")
    buffer.flush_cache()
    rows, context.logged = context.logged, []

    restored(context, rows).flush_cache()

    assert context.logged == []


def test_a_restored_key_keeps_the_first_place_in_the_changelog(context: Context) -> None:
    """As in Kafka Streams: it left at 3 and came back at 8 between two commits, so no tombstone lies in between."""
    buffer = opened(context)
    put(buffer, context, 3, "a", "1")
    buffer.flush_cache()
    evicted(buffer, 3)
    put(buffer, context, 8, "a", "2", "1")
    buffer.flush_cache()

    assert (buffer.min_time, restored(context, context.logged).min_time) == (8, 3)


def test_a_change_after_restoring_knows_where_the_restored_one_came_from(context: Context) -> None:
    buffer = opened(context)
    context.record(3, topic="orders", offset=17, headers=(("h", b"1"),))
    assert context.current.raw is not None
    buffer.put(3, "a", ("1", None, True), context.current.raw)
    buffer.flush_cache()

    found: list[Any] = []
    restored(context, context.logged).evict_first(lambda key, change, raw: found.append(raw))
    context.current.raw = found[0]

    assert context.current.context is not None
    assert context.current.context == ("orders", 1, 17, 3, (("h", b"1"),), None, None)


def test_rows_of_older_versions_take_the_prior_value_of_the_row_before(context: Context) -> None:
    first = bytes.fromhex("0000000000000003 00000001 30 00000001 31")
    second = bytes.fromhex("0000000000000004 00000001 31 00000001 32")

    buffer = restored(context, [(b"a", first, 50, ()), (b"a", second, 51, ())])

    assert buffer.prior_value("a") == "0"
    assert evicted(buffer, 3) == [("a", "2", "1", True, 51)]


def test_a_changelog_of_something_else_is_refused(context: Context) -> None:
    with pytest.raises(ProcessorStateError) as caught:
        restored(context, [(b"a", b"x", 50, ())])

    assert str(caught.value) == (
        "store 'sup' cannot be restored: the row of key b'a' in its changelog 'shop-sup-changelog' is no row of a "
        "suppression buffer: 8 bytes are wanted at 0 of 1. Was the changelog written by something else? Reset the "
        "application, or give the suppression another name"
    )


def test_the_headers_of_the_record_reach_the_serdes(context: Context) -> None:
    seen: list[Any] = []

    class Noting:
        serializer = deserializer = property(lambda self: self)

        def serialize(self, topic: str, data: Any, headers: Any = None) -> bytes:
            seen.append(("in", topic, data, headers))
            return str(data).encode()

        def deserialize(self, topic: str, data: Any, headers: Any = None) -> str:
            seen.append(("out", topic, data, headers))
            return str(data.decode())

    buffer = suppression_buffer("sup", Noting(), Noting()).build()
    buffer.init(context)
    context.record(3, headers=(("h", b"1"),))
    assert context.current.raw is not None
    buffer.put(3, "k", ("n", None, True), context.current.raw)
    context.record(4, headers=(("h", b"2"),))
    evicted(buffer, 3)

    topic = "shop-sup-changelog"
    assert seen == [
        ("in", topic, "k", (("h", b"1"),)),
        ("in", topic, "n", (("h", b"1"),)),
        ("out", topic, b"n", (("h", b"2"),)),
        ("out", topic, b"k", (("h", b"2"),)),
    ]


def test_a_buffer_needs_serdes(context: Context) -> None:
    with pytest.raises(ConfigError, match=r"store 'sup' of task 0_1 has no value serde"):
        suppression_buffer("sup", Serdes.string()).build().init(context)


def test_a_closed_buffer_is_empty_and_takes_nothing(context: Context) -> None:
    buffer = opened(context)
    put(buffer, context, 3, "a", "1")
    buffer.close()

    assert (buffer.is_open, buffer.record_count, buffer.size_bytes, buffer.min_time) == (False, 0, 0, NEVER)
    with pytest.raises(InvalidStateStoreError, match="store 'sup' is not open: its task was closed"):
        put(buffer, context, 3, "a", "1")


def test_a_buffer_stands_for_no_offset(context: Context) -> None:
    buffer = opened(context)
    buffer.commit(17)

    assert (buffer.name, buffer.persistent, buffer.committed_offset(), buffer.uncommitted_bytes) == (
        "sup",
        False,
        None,
        0,
    )
