"""Calls into a client that are waited for a bounded time."""

from __future__ import annotations

import threading

import pytest

from pykstreams.runtime.clients import bounded
from pykstreams.runtime.clients.bounded import BoundedCalls, HangingCallError, close_in_time


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "_CLOSE_S", 0.0)
    monkeypatch.setattr(bounded, "GRACE_S", 0.01)


def test_close_is_done_when_the_client_has_closed() -> None:
    closed: list[str] = []

    close_in_time("of a test", lambda: closed.append("closed"))

    assert closed == ["closed"]


def test_error_of_a_close_is_raised() -> None:
    def close() -> None:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        close_in_time("of a test", close)


@pytest.mark.usefixtures("impatient")
def test_client_that_does_not_close_is_left_behind_aloud(caplog: pytest.LogCaptureFixture) -> None:
    gate = threading.Event()

    close_in_time("of a test", gate.wait)

    gate.set()
    assert "the client of a test did not close within 0.01 s and is left behind" in caplog.text


@pytest.mark.usefixtures("impatient")
def test_call_that_does_not_come_back_raises_and_the_thread_ends_after_it() -> None:
    gate, calls = threading.Event(), BoundedCalls("a test")

    with pytest.raises(HangingCallError):
        calls.call(lambda _: gate.wait(), 0.0)
    calls.end()
    gate.set()

    for thread in threading.enumerate():
        if thread.name == "a test":
            thread.join(10)
            assert not thread.is_alive()
