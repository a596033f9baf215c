"""Messages between the process of a server and its worker."""

from __future__ import annotations

import pytest

from pykstreams.http.process.messages import Messages, frame


def test_a_message_whose_reader_fails_is_not_read_again() -> None:
    """Otherwise nothing behind it would be read any more."""
    messages = Messages()
    with pytest.raises(RuntimeError):
        for _ in messages.of(frame("one") + frame("two")):
            raise RuntimeError("the reader failed")

    assert [message.kind for message in messages.of(frame("three"))] == ["two", "three"]
