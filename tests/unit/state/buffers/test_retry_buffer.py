"""The buffer of records that are tried again: lanes of keys, what is logged, and what a restart finds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pykstreams.core.errors import ProcessorStateError
from pykstreams.runtime.tasks.offset_metadata import ProcessorMetadata
from pykstreams.runtime.tasks.raw_message import RawMessage
from pykstreams.serdes import Serdes
from pykstreams.state.buffers.retry_buffer import UNTRIED, RetryBuffer, Trials, retry_buffer
from tests.unit.state.support import Context

TEXT = Serdes.string()
MESSAGE = RawMessage("in", 3, 9, 5, b"raw key", b"raw value", ())
RAW = (MESSAGE, 5, (("h", b"1"),))


def opened(folder: Path, numbers: ProcessorMetadata, context: Context | None = None) -> RetryBuffer:
    buffer = retry_buffer("buffer", TEXT, TEXT).build()
    buffer.init(context or Context(folder))
    buffer.follow(numbers)
    return buffer


@pytest.fixture
def numbers() -> ProcessorMetadata:
    return ProcessorMetadata()


@pytest.fixture
def buffer(tmp_path: Path, numbers: ProcessorMetadata) -> Iterator[RetryBuffer]:
    made = opened(tmp_path, numbers)
    yield made
    made.close()


def left(buffer: RetryBuffer, now: int = 10**9) -> list[tuple[object, object]]:
    found = []
    while (waiting := buffer.take(now)) is not None:
        found.append(buffer.record(waiting))
        buffer.remove(waiting)
    return found


def test_only_the_first_of_a_key_is_due(buffer: RetryBuffer) -> None:
    buffer.put("a", "1", RAW, Trials(1, 100, 200))
    buffer.put("a", "2", RAW, UNTRIED)
    buffer.put("b", "3", RAW, Trials(1, 100, 150))

    assert (len(buffer), buffer.next_due, buffer.take(149)) == (3, 150, None)
    assert buffer.keeps("a", ())
    assert left(buffer) == [("b", "3"), ("a", "1"), ("a", "2")]
    assert (len(buffer), buffer.next_due, buffer.keeps("a", ())) == (0, None, False)


def test_records_without_key_are_due_each_on_its_own(buffer: RetryBuffer) -> None:
    buffer.put(None, "1", RAW, Trials(1, 100, 200))
    buffer.put(None, None, RAW, Trials(1, 100, 150))

    assert not buffer.keeps(None, ())
    assert left(buffer) == [(None, None), (None, "1")]


def test_a_record_comes_back_as_it_was_with_its_trials(buffer: RetryBuffer) -> None:
    buffer.put("a", "1", RAW, Trials(1, 100, 200))
    waiting = buffer.take(200)
    assert waiting is not None
    buffer.put_back(waiting, Trials(2, 100, 300))
    again = buffer.take(300)

    assert again is not None
    assert again.trials == Trials(2, 100, 300)
    message, timestamp, headers = again.raw
    assert (message.topic(), message.partition(), message.offset(), timestamp, headers) == ("in", 3, 9, *RAW[1:])


def test_the_raw_record_is_kept_where_a_dead_letter_may_show_it(tmp_path: Path, numbers: ProcessorMetadata) -> None:
    def kept(keeps: bool) -> tuple[Any, Any]:
        context = Context(tmp_path / str(keeps))
        context.current.keeps_messages = keeps
        buffer = opened(tmp_path, numbers, context)
        buffer.put("a", "1", RAW, Trials(1, 100, 200))
        waiting = buffer.take(200)
        assert waiting is not None
        message = waiting.raw[0]
        buffer.close()
        return message.key(), message.value()

    assert kept(True) == (b"raw key", b"raw value")
    assert kept(False) == (None, None)


def test_what_a_punctuator_brought_has_no_message(buffer: RetryBuffer) -> None:
    buffer.put("a", "1", (None, 5, ()), Trials(1, 100, 200))
    waiting = buffer.take(200)

    assert waiting is not None
    assert waiting.raw == (None, 5, ())


def test_a_restart_finds_what_was_committed(tmp_path: Path, numbers: ProcessorMetadata) -> None:
    buffer = opened(tmp_path, numbers)
    buffer.put("a", "1", RAW, Trials(3, 100, 200))
    buffer.put("a", "2", RAW, UNTRIED)
    buffer.put(None, "3", RAW, Trials(1, 100, 150))
    buffer.commit(3)
    assert left(buffer, 150) == [(None, "3")]
    buffer.close()

    again = opened(tmp_path, numbers)
    assert (len(again), again.next_due) == (3, 150)
    assert left(again) == [(None, "3"), ("a", "1"), ("a", "2")]
    again.commit(3)
    again.close()
    last = opened(tmp_path, numbers)
    assert [*last.raw_rows()] == []
    last.close()


def test_a_restart_takes_away_what_was_put_after_the_commit(tmp_path: Path, numbers: ProcessorMetadata) -> None:
    buffer = opened(tmp_path, numbers)
    buffer.put("a", "1", RAW, Trials(1, 100, 200))
    committed = ProcessorMetadata(numbers.values())
    buffer.put("a", "2", RAW, UNTRIED)
    buffer.commit(None)
    buffer.close()

    again = opened(tmp_path, committed)
    again.put("a", "3", RAW, UNTRIED)
    assert left(again) == [("a", "1"), ("a", "3")]
    again.flush_cache()
    again.commit(None)
    assert [*again.raw_rows()] == []
    again.close()


def test_a_commit_always_has_a_sequence(buffer: RetryBuffer, numbers: ProcessorMetadata) -> None:
    buffer.flush_cache()

    assert numbers.values() == {"buffer.sequence": 0}


def test_a_row_that_is_no_record_says_what_to_do(buffer: RetryBuffer) -> None:
    buffer.put("a", "1", RAW, Trials(1, 100, 200))
    ((row_key, _, _, _),) = buffer.raw_rows()
    buffer._engine.put(row_key, b"x")

    with pytest.raises(
        ProcessorStateError,
        match=r"store 'buffer': the row of key b'.*a' is no record that waits for a retry: .* Was its changelog "
        r"written by something else\? Reset the application, or give the retry another name",
    ):
        buffer.take(200)
