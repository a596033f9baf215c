"""Signals by which a process is asked to end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Has the first SIGINT or SIGTERM call ``stop``; a second one has its usual effect, as all have afterwards.

    Elsewhere than in the main thread it does nothing. ``stop`` takes no lock: the thread may hold it already.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[signal.Signals, Any] = {}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def caught(number: int, frame: FrameType | None) -> None:
        restore()
        stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        found = signal.signal(number, caught)
        # a handler that is none of Python's, as of a program that embeds it, cannot be put back
        before[number] = signal.SIG_DFL if found is None else found
    try:
        yield
    finally:
        restore()
