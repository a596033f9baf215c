"""Calls into a client that are waited for a bounded time, whatever the client does with the time it was given.

librdkafka's transactional calls take a time-out and may stay away for much longer than that, while their coordinator is
away. So they run on a thread of their own, which can be left behind.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")

GRACE_S = 2.0
"""How much longer than its own time-out a call is waited for."""

_CLOSE_S = 8.0


class HangingCallError(Exception):
    """A call did not come back; its client must not be used any more."""


class BoundedCalls:
    """A thread that makes the calls of one client, one after the other."""

    def __init__(self, name: str) -> None:
        self._orders: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def call(self, act: Callable[[float], T], timeout_s: float) -> T:
        """Returns what ``act(timeout_s)`` returns, and raises what it raises.

        ``HangingCallError`` when it takes longer than its time-out and ``GRACE_S``.
        """
        done: Future[T] = Future()
        self._orders.put((partial(act, timeout_s), done))
        try:
            return done.result(timeout_s + GRACE_S)
        except TimeoutError:
            raise HangingCallError(f"no answer within {timeout_s + GRACE_S:g} s") from None
        finally:
            del done  # an error in it is held by its own traceback otherwise, and the client with them

    def end(self) -> None:
        """Ends the thread when all calls have ended; waits for nothing."""
        self._orders.put(None)

    def _run(self) -> None:
        while (order := self._orders.get()) is not None:
            act, done = order
            try:
                done.set_result(act())
            except BaseException as error:
                done.set_exception(error)
            del order, act, done  # they hold the client


def close_in_time(client: str, close: Callable[[], object]) -> None:
    """Closes a client, and raises what ``close`` raises; one that hangs is left behind, aloud.

    librdkafka was seen to wait without end while it took down a static member of a group, once in some thirty times on
    a busy machine. That must not keep an application from ending.
    """
    calls = BoundedCalls(f"close {client}")
    try:
        calls.call(lambda _: close(), _CLOSE_S)
    except HangingCallError:
        log.warning(
            "the client %s did not close within %g s and is left behind; it is gone when this process ends",
            client,
            _CLOSE_S + GRACE_S,
        )
    finally:
        calls.end()
