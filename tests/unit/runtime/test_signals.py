"""Signals that stop an application, once."""

from __future__ import annotations

import signal
import threading
from typing import Any

import pytest

from pykstreams.runtime.signals import stopped_by_signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_stops_and_the_next_one_has_its_usual_effect(number: signal.Signals) -> None:
    usual: list[int] = []
    stops: list[str] = []
    before = signal.signal(number, lambda found, frame: usual.append(found))
    try:
        with stopped_by_signals(lambda: stops.append("stop")):
            signal.raise_signal(number)
            first = usual[:]
            signal.raise_signal(number)
    finally:
        signal.signal(number, before)

    assert (stops, first, usual) == (["stop"], [], [number])


def test_afterwards_signals_are_handled_as_before() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with stopped_by_signals(lambda: None):
        during = signal.getsignal(signal.SIGTERM)

    assert during is not before
    assert signal.getsignal(signal.SIGTERM) is before


def test_other_threads_than_the_main_one_leave_signals_alone() -> None:
    before, found = signal.getsignal(signal.SIGTERM), []

    def enter() -> None:
        with stopped_by_signals(lambda: None):
            found.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()

    assert found == [before]


def test_a_signal_whose_handler_is_none_of_python_s_stops_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a program that embeds Python, and had a handler of its own before."""
    before = signal.getsignal(signal.SIGTERM)
    stops: list[str] = []
    real = signal.signal

    def of_another_language(number: int, handler: Any) -> Any:
        found = real(number, handler)
        return None if found is before else found

    monkeypatch.setattr(signal, "signal", of_another_language)
    try:
        with stopped_by_signals(lambda: stops.append("stop")):
            signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        real(signal.SIGTERM, before)

    assert stops == ["stop"]
