"""The operator around a function that is tried again: what it does with records that cannot be kept, and with errors
below."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pykstreams.core.errors import ProcessingError
from pykstreams.processors import MapValues
from pykstreams.processors.backoff import Backoff, RetryPolicy
from pykstreams.processors.retrying import Retrying
from pykstreams.serdes import Serdes
from pykstreams.state.buffers.retry_buffer import RetryBuffer, retry_buffer
from tests.unit.processors.fakes import FakeOperatorContext
from tests.unit.processors.tables.test_reorder import NumberSerde
from tests.unit.state.support import Context

POLICY = RetryPolicy(lambda _: True, None, None, Backoff(100, 100, 1.0, 0.0, 0), 10)


@pytest.fixture
def buffer(tmp_path: Path) -> Iterator[RetryBuffer]:
    made = retry_buffer("buffer", Serdes.string(), NumberSerde()).build()
    made.init(Context(tmp_path))
    yield made
    made.close()


class Refusing:
    """Adds one, but not while it is down."""

    def __init__(self) -> None:
        self.down = True

    def __call__(self, value: int) -> int:
        if self.down:
            raise ConnectionError(value)
        return value + 1


def started(
    buffer: RetryBuffer, function: Callable[[Any], Any], **options: Any
) -> tuple[FakeOperatorContext, Callable[..., None]]:
    context = FakeOperatorContext(buffer=buffer, **options)
    return context, context.start(Retrying(MapValues(function), POLICY, "buffer"))


def ring(context: FakeOperatorContext) -> None:
    """Runs the last punctuation that was scheduled, when it is due."""
    _, _, _, callback, options = context.processing.calls[-1]
    context.processing.now_ms = options["start_time"]
    callback(options["start_time"])


def test_a_record_that_cannot_be_kept_goes_to_the_handler(buffer: RetryBuffer) -> None:
    context, process = started(buffer, Refusing())
    process("a", "no number", 5, ())

    ((error, *record),) = context.failed
    assert record == ["a", "no number", 5, ()]
    assert isinstance(error.__context__, ConnectionError)
    assert len(buffer) == 0


def test_a_key_without_bytes_goes_to_the_handler_while_others_wait(buffer: RetryBuffer) -> None:
    context, process = started(buffer, Refusing())
    process("a", 1, 5, ())
    process(3, 2, 6, ())

    ((_, *record),) = context.failed
    assert record == [3, 2, 6, ()]


def test_a_record_that_cannot_be_read_again_keeps_the_next_of_its_key_from_nothing(buffer: RetryBuffer) -> None:
    function = Refusing()
    context, process = started(buffer, function)
    process("a", 0, 5, ())
    process("a", 1, 6, ())
    function.down = False
    ring(context)

    ((error, *record),) = context.failed
    assert "b'0' begins with a zero" in str(error)
    assert record == [None, None, 5, ()]
    assert context.forwarded == [("a", 2, 6, ())]


def test_an_error_of_the_handler_further_down_passes_through(buffer: RetryBuffer) -> None:
    function = Refusing()
    context, process = started(buffer, function)
    process("a", 1, 5, ())
    function.down = False
    context.child_error = ProcessingError("below", node="CHILD")

    with pytest.raises(ProcessingError, match="below"):
        ring(context)
    assert context.failed == []


def test_the_current_record_is_the_one_that_is_tried_and_then_again_the_one_before(buffer: RetryBuffer) -> None:
    seen: list[Any] = []
    function = Refusing()
    context, process = started(buffer, function)
    context.current.raw = (None, 5, (("h", b"1"),))
    process("a", 1, 5, (("h", b"1"),))
    function.down = False
    context.current.raw = None
    context.children["child"] = lambda *record: seen.append((record, context.current.raw))
    context, process = context, context.start(Retrying(MapValues(lambda value: value), POLICY, "buffer"))
    ring(context)

    assert seen == [(("a", 1, 5, (("h", b"1"),)), (None, 5, (("h", b"1"),)))]
    assert context.current.raw is None


def test_nothing_is_scheduled_while_nothing_waits(buffer: RetryBuffer) -> None:
    function = Refusing()
    context, process = started(buffer, function)
    assert context.processing.calls == []
    process("a", 1, 5, ())
    process("b", 2, 6, ())
    assert len(context.processing.calls) == 1, "the second is due later than the first"

    function.down = False
    ring(context)
    assert len(context.processing.calls) == 1


def test_a_turn_of_tries_ends_after_its_time(buffer: RetryBuffer) -> None:
    function = Refusing()
    context, process = started(buffer, function)
    for value in range(1, 5):
        process("a", value, 5, ())

    def slow(*record: Any) -> None:
        context.processing.now_ms += 60

    context.children["child"] = slow
    function.down = False
    context.start(Retrying(MapValues(function), POLICY, "buffer"))
    ring(context)
    assert len(buffer) == 2, "100 ms are over after two of them"
    ring(context)
    assert len(buffer) == 0


def test_others_are_tried_although_an_error_has_ended_the_turn(buffer: RetryBuffer) -> None:
    function = Refusing()
    context, process = started(buffer, function)
    process("a", 1, 5, ())
    process("b", 2, 6, ())
    function.down = False
    context.child_error = ProcessingError("below", node="CHILD")
    with pytest.raises(ProcessingError, match="below"):
        ring(context)
    assert len(context.processing.calls) == 2
    context.child_error = None
    ring(context)

    assert context.forwarded == [("b", 3, 6, ())]


def test_a_turn_of_tries_ends_when_the_clock_is_set_back(buffer: RetryBuffer) -> None:
    tried: list[int] = []

    def goes_back(value: int) -> int:
        tried.append(value)
        if len(tried) > 1:
            context.processing.now_ms += 60 if len(tried) > 2 else -1000
        raise ConnectionError(value)

    context, process = started(buffer, goes_back)
    process("a", 1, 5, ())
    ring(context)
    assert tried == [1, 1]
    ring(context)
    assert tried == [1, 1, 1], "after its back-off by the clock as it is now"


def test_the_room_is_what_may_still_wait(buffer: RetryBuffer) -> None:
    context, process = started(buffer, Refusing())
    (room,) = context.limits
    process("a", 1, 5, ())
    process("a", 2, 5, ())
    assert room() == 8
