"""The thread of a member's session, and the events that it leaves for the worker."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from pykstreams.core.clock import Clock
from pykstreams.core.errors import StreamsError

log = logging.getLogger(__name__)

EventT = TypeVar("EventT")

IDLE_S: Final = 1.0
"""How long the thread waits for the worker where nothing is due."""
_BACKOFF_S: Final = (0.1, 0.2, 0.5, 1.0)
_STOP_S: Final = 10.0
_LONGEST_WAIT_S: Final = 60.0

LONGEST_BACKOFF_S: Final = _BACKOFF_S[-1]


def backoff_s(failures: int) -> float:
    """How long to wait after so many failures in a row, of which there is at least one."""
    return _BACKOFF_S[min(failures, len(_BACKOFF_S)) - 1]


class SessionThread(Generic[EventT]):
    """Runs the steps of a session until it is stopped.

    ``changed`` guards whatever both the thread and the worker touch.

    :param step: does what is due; returns for how many seconds nothing else is.
    :param refuse: takes a mistake that ended the thread; it is called with ``changed`` held.
    :param close: ends a request that is under way.
    :param max_poll_s: after how long without ``poll`` the worker counts as stuck (``max.poll.interval.ms``).
    """

    def __init__(
        self,
        name: str,
        step: Callable[[], float],
        *,
        refuse: Callable[[StreamsError], None],
        close: Callable[[], None],
        clock: Clock,
        max_poll_s: float,
    ) -> None:
        self.changed = threading.Condition()
        self.is_stopping = False
        self._step = step
        self._refuse = refuse
        self._close = close
        self._clock = clock
        self._max_poll_s = max_poll_s
        self._polled_at = clock.monotonic()
        self._events: deque[EventT] = deque()
        self._woken = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread, with a request that may be under way.

        A step that does not come to its end is left behind after a while: the thread ends by itself.
        """
        with self.changed:
            self.is_stopping = True
            self.wake()
        self._close()
        if self._thread.is_alive():
            self._thread.join(_STOP_S)

    def wake(self) -> None:
        """Lets the next step begin at once; also when one is under way, which may not have seen what changed."""
        with self.changed:
            self._woken = True
            self.changed.notify_all()

    def report(self, event: EventT) -> None:
        """Leaves an event for the worker."""
        with self.changed:
            self._events.append(event)
            self.changed.notify_all()

    def withdraw(self, *kinds: type[EventT]) -> bool:
        """Withdraws events that the worker has not taken yet, of these kinds or of all; returns whether any were."""
        with self.changed:
            before = len(self._events)
            self._events = deque(event for event in self._events if kinds and not isinstance(event, kinds))
            return len(self._events) < before

    def poll(self, timeout_s: float) -> EventT | None:
        """Returns the next event, waits for it if need be."""
        self._polled_at = self._clock.monotonic()
        if not self._events and not timeout_s:
            return None
        with self.changed:
            self.changed.wait_for(lambda: bool(self._events), timeout_s)
            return self._events.popleft() if self._events else None

    def was_left_alone(self) -> bool:
        """Whether the worker has not polled for longer than it may, which is said in the log."""
        if self._clock.monotonic() - self._polled_at <= self._max_poll_s:
            return False
        log.warning(
            "the worker was busy for longer than max.poll.interval.ms (%g s) and leaves the group, so that others do "
            "its work; raise consumer.max.poll.interval.ms, or do less per record",
            self._max_poll_s,
        )
        return True

    def _run(self) -> None:
        try:
            while not self.is_stopping:
                with self.changed:
                    self._woken = False
                patience_s = self._step()
                with self.changed:
                    self.changed.wait_for(lambda: self._woken or self.is_stopping, min(patience_s, _LONGEST_WAIT_S))
        except BaseException as error:
            log.exception("the session of %s in the group ended by a mistake in it", self._thread.name)
            ended = StreamsError(f"the session of {self._thread.name} in the group ended: {error!r}")
            ended.__cause__ = error
            with self.changed:
                self._refuse(ended)
