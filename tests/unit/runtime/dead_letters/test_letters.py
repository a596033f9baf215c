"""What a dead letter says, which of them are meant, and what it is when it is sent again."""

from __future__ import annotations

from typing import Any

import pytest

from pykstreams.core.handlers import ErrorHandlerContext, dead_letter_record
from pykstreams.core.ids import TaskId
from pykstreams.runtime.dead_letters.letters import DeadLetter, Selection
from pykstreams.runtime.tasks.raw_message import RawMessage


def letter(offset: int = 7, timestamp: int = 5, headers: Any = (("h", b"1"),), error: Any = None) -> DeadLetter:
    context = ErrorHandlerContext("orders", 3, 9, headers, "NODE", TaskId(0, 3), timestamp, b"k", b"v")
    record = dead_letter_record("dead", context, ConnectionError("no answer") if error is None else error)
    return DeadLetter.of(RawMessage("dead", 1, offset, timestamp, record.key, record.value, record.headers))


def test_a_letter_of_the_built_in_handlers_is_read_back() -> None:
    found = letter(
        headers=(("h", b"1"), ("__streams.errors.attempts", b"3"), ("__streams.errors.first.failure", b"44"))
    )

    assert (found.topic, found.partition, found.offset, found.timestamp) == ("dead", 1, 7, 5)
    assert (found.key, found.value, found.headers) == (b"k", b"v", (("h", b"1"),))
    assert (found.exception, found.message) == ("builtins.ConnectionError", "no answer")
    assert (found.source_topic, found.source_partition, found.source_offset) == ("orders", 3, 9)
    assert (found.attempts, found.first_failure, found.replays) == (3, 44, 0)
    assert "ConnectionError" in (found.stacktrace or "")


def test_a_record_that_says_nothing_is_a_letter_about_which_nothing_is_known() -> None:
    found = DeadLetter.of(RawMessage("dead", 0, 1, -1, None, None, (("__streams.errors.partition", b"x"),)))

    assert (found.exception, found.source_topic, found.source_partition, found.replays) == (None, None, None, 0)


def test_a_replay_drops_the_headers_of_the_error_and_counts() -> None:
    first = letter().headers_of_replay()
    again = letter(headers=first).headers_of_replay()

    assert first == (("h", b"1"), ("__streams.replays", b"1"))
    assert again == (("h", b"1"), ("__streams.replays", b"2"))


@pytest.mark.parametrize(
    ("selection", "meant"),
    [
        (Selection(), True),
        (Selection(source_topics=("orders", "x")), True),
        (Selection(source_topics=("x",)), False),
        (Selection(exceptions=("builtins.ConnectionError",)), True),
        (Selection(exceptions=("ConnectionError",)), True),
        (Selection(exceptions=("Error",)), False),
        (Selection(since=5), True),
        (Selection(since=6), False),
        (Selection(places=[(1, 7)]), True),
        (Selection(places=[(0, 7)]), False),
        (Selection(exceptions=("ConnectionError",), since=6), False),
    ],
)
def test_a_selection_means_what_all_of_it_means(selection: Selection, meant: bool) -> None:
    assert selection.has(letter()) is meant


def test_letters_of_unknown_errors_are_of_no_class() -> None:
    unknown = DeadLetter.of(RawMessage("dead", 0, 1, 5, None, None, ()))

    assert not Selection(exceptions=("ConnectionError",)).has(unknown)
