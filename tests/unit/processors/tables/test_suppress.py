"""Suppression of a table, operator by itself: when changes go on, and what they carry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykstreams.core.errors import StreamsError
from pykstreams.core.windows import Window, Windowed
from pykstreams.processors import StoredView, SuppressedView, TableSuppress
from pykstreams.serdes import Serdes, WindowedSerdes
from pykstreams.state.buffers.suppression_buffer import SuppressionBuffer, suppression_buffer
from tests.unit.processors.fakes import FakeOperatorContext, FakeStore
from tests.unit.state.support import Context


class Suppression:
    """A suppression in a task, with a buffer of its own."""

    def __init__(self, folder: Path, operator: TableSuppress, key_serde: Any = None, *, failing: bool = False) -> None:
        self.stores = Context(folder)
        self.buffer: SuppressionBuffer = suppression_buffer(
            operator.store, key_serde or Serdes.string(), Serdes.string()
        ).build()
        self.buffer.init(self.stores)
        self.context = FakeOperatorContext(failing=failing, sup=self.buffer)
        self.context.current = self.stores.current
        self.process = self.context.start(operator)

    def change(self, key: Any, new: str | None, timestamp: int, old: str | None = None, **record: Any) -> None:
        self.stores.record(timestamp, **record)
        self.process(key, (new, old, False), timestamp, record.get("headers", ()))

    def gone_on(self) -> list[tuple[Any, ...]]:
        found, self.context.forwarded[:] = [*self.context.forwarded], []
        return [(key, *change[:2], timestamp) for key, change, timestamp, _ in found]


def test_a_change_goes_on_when_stream_time_has_passed_it_by_the_limit(tmp_path: Path) -> None:
    table = Suppression(tmp_path, TableSuppress("sup", 10))
    table.change("a", "1", 5)
    table.change("b", "1", 14)
    assert table.gone_on() == []

    table.change("a", "2", 15, "1")
    assert table.gone_on() == [("a", "2", "1", 15)]
    table.change("a", "3", 9, "2")
    table.change("a", "4", 23, "3")
    assert table.gone_on() == [("a", "4", "3", 23)]


def test_stream_time_is_that_of_the_records_of_this_operator(tmp_path: Path) -> None:
    table = Suppression(tmp_path, TableSuppress("sup", 10))
    table.change("a", "1", 50)
    table.change("b", "1", 5)

    assert table.gone_on() == [("b", "1", None, 5)]


def test_without_a_limit_in_time_every_change_goes_on_at_once_as_the_newest(tmp_path: Path) -> None:
    table = Suppression(tmp_path, TableSuppress("sup", 0))
    table.change("a", None, 5, "0", headers=(("h", b"1"),))

    assert table.context.forwarded == [("a", (None, "0", True), 5, (("h", b"1"),))]


def test_a_change_goes_on_as_part_of_the_record_that_brought_it(tmp_path: Path) -> None:
    table = Suppression(tmp_path, TableSuppress("sup", 10))
    seen: list[Any] = []
    table.context.children["child"] = lambda *record: seen.append((record, table.stores.current.context))
    process = TableSuppress("sup", 10).build(table.context)
    table.stores.record(5, topic="in", offset=3, headers=(("h", b"1"),))
    process("a", ("1", None, True), 5, (("h", b"1"),))
    table.stores.record(15, topic="other", offset=8)
    now = table.stores.current.raw
    process("b", ("1", None, True), 15, ())

    ((record, brought),) = seen
    assert record == ("a", ("1", None, True), 5, (("h", b"1"),))
    assert (brought.topic, brought.offset, brought.timestamp, brought.headers) == ("in", 3, 5, (("h", b"1"),))
    assert table.stores.current.raw is now


def test_the_oldest_go_on_early_when_there_are_too_many(tmp_path: Path) -> None:
    table = Suppression(tmp_path, TableSuppress("sup", 100, max_records=2))
    for key, timestamp in (("a", 3), ("b", 1), ("c", 2), ("a", 9)):
        table.change(key, "1", timestamp)

    assert table.gone_on() == [("b", "1", None, 1)]


def test_the_oldest_go_on_early_when_they_are_too_large(tmp_path: Path) -> None:
    row = 8 + 1 + 20 + len("in") + 1
    table = Suppression(tmp_path, TableSuppress("sup", 100, max_bytes=2 * row))
    table.change("a", "1", 3)
    table.change("b", "1", 4)
    assert table.gone_on() == []

    table.change("c", "1" * (row + 2), 5)
    assert table.gone_on() == [("a", "1", None, 3), ("b", "1", None, 4), ("c", "1" * (row + 2), None, 5)]


def test_nothing_may_wait_with_a_limit_of_no_records(tmp_path: Path) -> None:
    table = Suppression(tmp_path, TableSuppress("sup", 100, max_records=0))
    table.change("a", "1", 3)

    assert table.gone_on() == [("a", "1", None, 3)]


@pytest.mark.parametrize(
    ("operator", "said"),
    [
        (
            TableSuppress("sup", 100, max_records=1, shut_down_when_full=True),
            "NODE exceeded what its buffer may hold: 2 records (at most 1) and 64 bytes (no limit); give its "
            "BufferConfig room for what waits, or let it emit early (when_full=BufferFullStrategy.EMIT_EARLY), or "
            "suppress for a shorter time",
        ),
        (
            TableSuppress("sup", 100, max_bytes=63, shut_down_when_full=True),
            "NODE exceeded what its buffer may hold: 2 records (no limit) and 64 bytes (at most 63); give its "
            "BufferConfig room for what waits, or let it emit early (when_full=BufferFullStrategy.EMIT_EARLY), or "
            "suppress for a shorter time",
        ),
    ],
)
def test_a_full_buffer_that_must_not_emit_early_is_an_error(tmp_path: Path, operator: TableSuppress, said: str) -> None:
    table = Suppression(tmp_path, operator)
    table.change("a", "1", 3)
    table.change("b", "1", 4)

    ((error, *record),) = table.context.failed
    assert isinstance(error, StreamsError)
    assert str(error) == said
    assert record == ["b", ("1", None, False), 4, ()]
    assert table.buffer.record_count == 2


def test_what_has_expired_goes_on_before_the_buffer_is_measured(tmp_path: Path) -> None:
    table = Suppression(tmp_path, TableSuppress("sup", 10, max_records=1, shut_down_when_full=True))
    table.change("a", "1", 3)
    table.change("b", "1", 13)

    assert table.gone_on() == [("a", "1", None, 3)]
    assert table.context.failed == []


def window(key: str, start: int, end: int) -> Windowed[str]:
    return Windowed(key, Window(start, end))


def final(folder: Path, **options: Any) -> Suppression:
    return Suppression(
        folder, TableSuppress("sup", 5, final=True, **options), WindowedSerdes.time_windowed(Serdes.string(), 10)
    )


def test_the_last_change_of_a_window_goes_on_when_the_window_closes(tmp_path: Path) -> None:
    table = final(tmp_path)
    table.change(window("a", 0, 10), "1", 3)
    table.change(window("a", 0, 10), "2", 12, "1")
    table.change(window("a", 10, 20), "1", 14)
    assert table.gone_on() == []

    table.change(window("b", 10, 20), "1", 15)
    assert table.gone_on() == [(window("a", 0, 10), "2", "1", 12)]


def test_a_deletion_of_a_window_does_not_go_on(tmp_path: Path) -> None:
    table = final(tmp_path)
    table.change(window("a", 0, 10), "1", 3)
    table.change(window("a", 0, 10), None, 4, "1")
    table.change(window("a", 20, 30), "1", 25)

    assert table.gone_on() == []
    assert table.buffer.record_count == 1


def test_emitting_early_is_no_cure_where_results_must_be_final(tmp_path: Path) -> None:
    table = final(tmp_path, max_records=0, shut_down_when_full=True)
    table.change(window("a", 0, 10), "1", 3)

    ((error, *_),) = table.context.failed
    assert str(error) == (
        "NODE exceeded what its buffer may hold: 1 records (at most 0) and 40 bytes (no limit); give its BufferConfig "
        "room for what waits, or suppress for a shorter time"
    )


def test_a_change_stays_when_a_child_fails(tmp_path: Path) -> None:
    table = Suppression(tmp_path, TableSuppress("sup", 10))
    table.context.child_error = OSError("no")
    table.change("a", "1", 5)
    table.change("b", "1", 15)
    table.context.child_error = None

    assert [type(error) for error, *_ in table.context.failed] == [OSError]
    table.change("b", "2", 15)
    assert table.gone_on() == [("a", "1", None, 5)]


def test_others_see_what_was_there_before_the_changes_that_wait(tmp_path: Path) -> None:
    table = Suppression(tmp_path, TableSuppress("sup", 10))
    parent = FakeStore()
    parent.rows = {"a": ("2", 6), "b": ("1", 5), "c": ("7", 1)}
    table.context._stores["parent"] = parent
    view: SuppressedView[str, str] = SuppressedView(StoredView("parent"), "sup")
    read = view.build(table.context)
    table.change("a", "1", 5, "0")
    table.change("a", "2", 6, "1")
    table.change("b", "1", 5)

    assert view.stores == ("sup", "parent")
    assert [read(key) for key in "abcd"] == [("0", -1), None, ("7", 1), None]
