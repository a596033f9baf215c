"""The buffer of a re-ordered table: order, lateness, changelog, and how it goes back to the last commit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykstreams.core.errors import InvalidStateStoreError, ProcessorStateError
from pykstreams.runtime.tasks.offset_metadata import ProcessorMetadata
from pykstreams.serdes import Serdes
from pykstreams.state.buffers.reorder_buffer import ReorderBuffer, reorder_buffer
from tests.unit.state.support import Context


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return Context(tmp_path)


def opened(context: Context, numbers: ProcessorMetadata | None = None, grace_ms: int = 10) -> ReorderBuffer:
    buffer = reorder_buffer("t-Buffer", Serdes.string(), Serdes.string(), grace_ms=grace_ms).build()
    buffer.init(context)
    buffer.follow(ProcessorMetadata() if numbers is None else numbers)
    return buffer


def put(buffer: ReorderBuffer, context: Context, timestamp: int, key: str, value: str | None, **record: Any) -> bool:
    context.record(timestamp, **record)
    assert context.current.raw is not None
    return buffer.put(key, value, context.current.raw)


def taken(buffer: ReorderBuffer) -> list[tuple[Any, ...]]:
    found = []
    while (waited := buffer.take()) is not None:
        key, value, raw = buffer.record(waited)
        found.append((key, value, raw[1]))
    return found


def committed(buffer: ReorderBuffer, context: Context) -> list[Any]:
    """Commits; gives what that wrote to the changelog."""
    before = len(context.logged)
    buffer.flush_cache()
    buffer.commit(len(context.logged))
    return context.logged[before:]


ROW_5 = bytes.fromhex("0000000000000005 0000000000000001 61")


def test_records_of_one_time_leave_as_they_came_whatever_their_keys(context: Context) -> None:
    buffer = opened(context)
    for key in ("b", "a", "b", "ab"):
        assert put(buffer, context, 5, key, None)
    assert taken(buffer) == []
    put(buffer, context, 15, "z", "Z")

    assert taken(buffer) == [("b", None, 5), ("a", None, 5), ("b", None, 5), ("ab", None, 5)]
    buffer.close()


def test_without_grace_a_record_of_the_largest_timestamp_leaves_at_once(context: Context) -> None:
    buffer = opened(context, grace_ms=0)
    put(buffer, context, 2**63 - 1, "a", "last")

    assert taken(buffer) == [("a", "last", 2**63 - 1)]
    committed(buffer, context)
    assert [key[16:] for key, *_ in committed(buffer, context)] == [b"a"]
    buffer.close()


def test_a_record_is_late_when_it_would_leave_after_a_newer_one(context: Context) -> None:
    buffer = opened(context)
    put(buffer, context, 20, "a", "1")

    assert not put(buffer, context, 9, "a", "late")
    assert put(buffer, context, 10, "a", "edge")
    assert taken(buffer) == [("a", "edge", 10)]
    buffer.close()


def test_the_changelog_loses_a_row_when_what_came_of_it_has_been_committed(context: Context) -> None:
    buffer = opened(context)
    put(buffer, context, 5, "a", "s5")
    put(buffer, context, 15, "a", "s15", offset=2)
    taken(buffer)
    value = bytes.fromhex(
        "0000000000000005 0000000000000000 00000002 696e 00000001 00000000 ffffffff ffffffff 00000002 7335"
        "0000000000000000"
    )

    first: tuple[Any, ...] = context.logged[0]
    assert first == (ROW_5, value, None, ())
    assert committed(buffer, context) == []
    assert committed(buffer, context) == [(ROW_5, None, None, ())]
    assert committed(buffer, context) == []
    buffer.close()


def test_a_restart_goes_back_to_the_last_commit(context: Context, tmp_path: Path) -> None:
    numbers = ProcessorMetadata()
    buffer = opened(context, numbers)
    put(buffer, context, 5, "a", "5")
    put(buffer, context, 16, "a", "16")
    assert taken(buffer) == [("a", "5", 5)]
    committed(buffer, context)
    at_commit = dict(numbers.values())
    put(buffer, context, 14, "a", "14")
    put(buffer, context, 40, "a", "40")
    assert [value for _, value, _ in taken(buffer)] == ["14", "16"]
    buffer.close()

    for folder in (tmp_path, tmp_path / "other"):
        restarted = Context(folder)
        again = opened(restarted, ProcessorMetadata(at_commit))
        again.restore(context.changelog_rows())
        again.end_restore()
        assert not put(again, restarted, 5, "a", "late")
        put(again, restarted, 14, "a", "14")
        put(again, restarted, 40, "a", "40")

        assert [value for _, value, _ in taken(again)] == ["14", "16"]
        removed = {row[0] for row in restarted.logged if row[1] is None}
        assert removed == {
            ROW_5,
            bytes.fromhex("000000000000000e 0000000000000003 61"),
            bytes.fromhex("0000000000000028 0000000000000004 61"),
        }
        again.close()


def test_nothing_is_lost_where_a_commit_told_no_numbers(context: Context, tmp_path: Path) -> None:
    buffer = opened(context)
    put(buffer, context, 20, "a", "1")
    buffer.close()

    other = opened(Context(tmp_path / "other"))
    other.restore(context.changelog_rows())
    other.end_restore()
    put(other, context, 5, "a", "2")
    put(other, context, 20, "a", "3")
    put(other, context, 30, "b", "4")

    assert [value for _, value, _ in taken(other)] == ["2", "1", "3"]
    other.close()


def test_a_changelog_of_something_else_is_refused(context: Context) -> None:
    buffer = opened(context)
    buffer.restore([(ROW_5, b"x", 0, ())])
    buffer.end_restore()
    put(buffer, context, 20, "a", "1")

    with pytest.raises(ProcessorStateError) as caught:
        taken(buffer)

    assert str(caught.value) == (
        f"store 't-Buffer': the row of key {ROW_5!r} is no record that waits for a table: 8 bytes are wanted at 0 of "
        "1. Was its changelog written by something else? Reset the application, or give the table another name"
    )
    buffer.close()


def test_a_closed_buffer_takes_nothing(context: Context) -> None:
    buffer = opened(context)
    buffer.close()

    with pytest.raises(InvalidStateStoreError, match="store 't-Buffer' is not open"):
        put(buffer, context, 5, "a", "1")
