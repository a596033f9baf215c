"""The event loop on which coroutines of operators run: one thread of the process, while any task needs it.

Invariant: the loop object is the same for the life of the process, also when its thread ended and starts anew; so a
client that a coroutine made and kept (a session, a pool of connections) stays usable when tasks come and go. Only a
loop that a coroutine blocks, so that its thread does not end, is left behind, and another one takes its place.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import threading

__all__ = ["SHARED", "EventLoopThread"]

log = logging.getLogger(__name__)

_END_S = 5.0


class EventLoopThread:
    """A loop with a thread that starts with the first user and stops with the last; safe to use from any thread."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._users = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        """Whether there is a thread."""
        return self._thread is not None

    def acquire(self) -> asyncio.AbstractEventLoop:
        """Returns the loop, running; each call needs its ``release``."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                atexit.register(self._close)
            if self._thread is None:
                self._thread = threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True)
                self._thread.start()
            self._users += 1
            return self._loop

    def release(self) -> None:
        """Lets go of the loop; the last one waits until its thread has ended, and at most ``_END_S``."""
        with self._lock:
            self._users -= 1
            if self._users or self._loop is None or self._thread is None:
                return
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_END_S)
            if self._thread.is_alive():
                log.warning(
                    "the thread of coroutines, %s, did not end within %g s and is left behind: one of them blocks it; "
                    "let calls that block go through asyncio.to_thread, and give them timeouts",
                    self._name,
                    _END_S,
                )
                atexit.unregister(self._close)
                self._loop = None
            self._thread = None

    def _close(self) -> None:
        if self._loop is not None and not self._loop.is_running():
            self._loop.close()


SHARED = EventLoopThread("pykstreams-event-loop")
"""The one that all operators of this process use."""
