"""The operator before a re-ordered table: what it drops, and what becomes of errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pykstreams.core.errors import ProcessingError, SerdeError
from pykstreams.processors import Reorder
from pykstreams.processors.drop_reasons import LATE_FOR_ORDER, NULL_TABLE_KEY
from pykstreams.serdes import Serdes
from pykstreams.state.buffers.reorder_buffer import ReorderBuffer, reorder_buffer
from tests.unit.processors.fakes import FakeOperatorContext
from tests.unit.state.support import Context


class NumberSerde:
    """Text of digits; ``deserialize`` refuses what begins with a zero."""

    serializer = deserializer = property(lambda self: self)

    def serialize(self, topic: str, data: int | None, headers: Any = None) -> bytes | None:
        return None if data is None else b"%d" % data

    def deserialize(self, topic: str, data: bytes | None, headers: Any = None) -> int | None:
        if data is not None and data.startswith(b"0"):
            raise ValueError(f"{data!r} begins with a zero")
        return None if data is None else int(data)


@pytest.fixture
def buffer(tmp_path: Path) -> Iterator[ReorderBuffer]:
    made = reorder_buffer("buffer", Serdes.string(), NumberSerde(), grace_ms=10).build()
    made.init(Context(tmp_path))
    yield made
    made.close()


def started(buffer: ReorderBuffer, **options: Any) -> tuple[FakeOperatorContext, Callable[..., None]]:
    context = FakeOperatorContext(buffer=buffer, **options)
    process = context.start(Reorder("buffer"))

    def with_record(key: Any, value: Any, timestamp: int, headers: Any = ()) -> None:
        context.current.raw = (None, timestamp, headers)
        process(key, value, timestamp, headers)

    return context, with_record


def test_records_leave_with_their_own_headers_and_as_the_current_record(buffer: ReorderBuffer) -> None:
    context, process = started(buffer)
    process("a", 1, 5, (("h", b"1"),))
    process("b", None, 4)
    process("c", 3, 15)

    assert context.forwarded == [("b", None, 4, ()), ("a", 1, 5, (("h", b"1"),))]
    assert context.current.raw == (None, 15, ())


def test_a_record_without_key_is_dropped_and_moves_no_time_on(buffer: ReorderBuffer) -> None:
    context, process = started(buffer)
    process("a", 1, 5)
    process(None, 2, 100)
    process("b", 3, 6)

    assert (context.forwarded, context.dropped) == ([], [NULL_TABLE_KEY])


def test_a_record_later_than_the_grace_is_dropped(buffer: ReorderBuffer) -> None:
    context, process = started(buffer)
    process("a", 1, 50)
    process("a", 2, 39)

    assert (context.forwarded, context.dropped) == ([], [LATE_FOR_ORDER])


def test_a_record_that_cannot_be_kept_is_reported_and_moves_no_time_on(buffer: ReorderBuffer) -> None:
    context, process = started(buffer)
    process("a", 1, 5)
    process("b", "no number", 100)
    process("c", 3, 6)

    ((error, *record),) = context.failed
    assert (type(error), record) == (SerdeError, ["b", "no number", 100, ()])
    assert (context.forwarded, context.dropped) == ([], [])


def test_a_record_that_cannot_be_read_again_keeps_nobody_else_from_leaving(buffer: ReorderBuffer) -> None:
    context, process = started(buffer)
    process("a", 0, 5)
    process("b", 1, 6)
    process("c", 2, 16)

    ((error, *record),) = context.failed
    assert "b'0' begins with a zero" in str(error)
    assert record == ["c", 2, 16, ()]
    assert context.forwarded == [("b", 1, 6, ())]


def test_an_error_further_down_passes_through(buffer: ReorderBuffer) -> None:
    context, process = started(buffer)
    context.child_error = ProcessingError("below", node="CHILD")
    process("a", 1, 5)

    with pytest.raises(ProcessingError, match="below"):
        process("b", 2, 15)
    assert context.failed == []
